#!/bin/bash
# start.sh - the CMD of the stand-in's "official" images, which does in this order what the vendor's does: sshd only when a
# key was given, host keys only where there are none, the environment for login shells, and then nothing, for ever.
set -e

setup_ssh() {
	[ -n "$PUBLIC_KEY" ] || return 0
	echo "Setting up SSH..."
	mkdir -p ~/.ssh
	echo "$PUBLIC_KEY" >>~/.ssh/authorized_keys
	chmod 700 -R ~/.ssh
	for type in rsa ecdsa ed25519; do
		[ -f /etc/ssh/ssh_host_${type}_key ] ||
			ssh-keygen -t $type -f /etc/ssh/ssh_host_${type}_key -q -N ''
	done
	mkdir -p /run/sshd
	/usr/sbin/sshd
	echo "SSH host keys:"
	for key in /etc/ssh/*.pub; do
		ssh-keygen -lf "$key"
	done
}

export_env_vars() {
	env | grep -E '^[A-Z_][A-Z0-9_]*=' | grep -v '^PUBLIC_KEY=' |
		awk -F = '{ val = $0; sub(/^[^=]*=/, "", val); print "export " $1 "=\"" val "\"" }' >/etc/rp_environment
	echo 'source /etc/rp_environment' >>~/.bashrc
}

echo "Pod Started"
[ ! -x /pre_start.sh ] || /pre_start.sh
setup_ssh
export_env_vars
[ ! -x /post_start.sh ] || /post_start.sh
echo "Start script(s) finished, pod is ready to use."
sleep infinity
