#!/bin/sh
# start.sh - the first process of every pod, and its dead-man's switch. It starts sshd and watches the clock. When the lease
# expires, at the hard end, or at the agent's request, it ends the pod in the provider's way. It never execs another program.
# Slow work (installing, calling the provider) runs in the background, so that nothing stops the watch. The provider's end.sh
# precedes this text. CONTROL.md describes the interface. Runs in dash, busybox ash and bash on a base system.

umask 077
# Keys leave the environment before any child could inherit them.
host_key_b64=$BURST_HOST_KEY_B64 authorized_key=$BURST_AUTHORIZED_KEY
unset BURST_HOST_KEY_B64 BURST_AUTHORIZED_KEY
# Handlers, not ignored signals: children get the defaults back. Otherwise no process inside can kill process 1.
leaving=
trap : HUP QUIT USR1 USR2 ALRM PIPE
trap leaving=1 INT TERM

home=${BURST_HOME:-/run/burst}
if ! mkdir -p "$home" 2>/dev/null || ! [ -w "$home" ]; then
	home=/tmp/burst-$(id -u)
	mkdir -p "$home"
fi
chmod 700 "$home"
volume=${BURST_VOLUME:-/workspace}
mkdir -p "$volume" 2>/dev/null
log=$home/start.log

say() {
	echo "$(date '+%Y-%m-%d %H:%M:%S') $*" >>"$log"
}

is_number() {
	case $1 in
	'' | *[!0-9]* | ?????????????*) return 1 ;;
	esac
}

# ---- save the environment for the agent ----

quoted() {
	rest=$1 done=
	while :; do
		case $rest in
		*\'*) done="$done${rest%%\'*}'\\''" rest=${rest#*\'} ;;
		*) break ;;
		esac
	done
	printf "'%s'" "$done$rest"
}

save_env() {
	names=$(env | sed -n 's/^\([A-Za-z_][A-Za-z0-9_]*\)=.*/\1/p' | sort -u)
	for name in $names; do
		case $name in
		_ | PWD | OLDPWD | SHLVL) continue ;;
		esac
		# a line inside a longer value can look like a variable; such a name is not set
		eval "[ -n \"\${$name+set}\" ]" || continue
		eval "value=\$$name"
		# shellcheck disable=SC2154
		[ "$name" != PATH ] || value=$given_path
		printf '%s=%s\n' "$name" "$(quoted "$value")"
	done >"$home/env.new"
	mv -f "$home/env.new" "$home/env"
}

given_path=$PATH
PATH=${PATH:-/usr/bin:/bin}:/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin

# ---- the clock ----

read_clock() {
	clock=$(date +%s 2>/dev/null)
	is_number "$clock" && now=$clock
	up=
	if [ -r "${BURST_UPTIME_FILE:-/proc/uptime}" ]; then
		read -r up rest <"${BURST_UPTIME_FILE:-/proc/uptime}"
		up=${up%%.*}
		is_number "$up" || up=
	fi
}

set_limits() {
	read_clock
	hard_end=$BURST_HARD_END lease_wall=$BURST_FIRST_LEASE_END
	is_number "$lease_wall" || lease_wall=$hard_end
	is_number "$hard_end" || hard_end=$lease_wall
	is_number "$hard_end" || {
		say "no valid hard end in the environment: ending this pod"
		hard_end=$now lease_wall=$now
	}
	lease_up='' hard_up=''
	count_from_start
	allow_late_start
	[ -z "$up" ] || {
		hard_up=$((up + hard_end - now))
		lease_up=$((up + lease_wall - now))
	}
	take_old_lease
}

# Sets $born to the container's first start. A restart finds it in a file.
read_first_start() {
	[ -s "$home/born" ] || echo "$now" >"$home/born"
	read -r born <"$home/born"
	is_number "$born" && [ "$born" -le "$now" ]
}

# Where waiting is free, the time in the queue uses up neither the pod's life nor its first lease: both also count from the first
# start. The agent reads both ends from the saved environment.
count_from_start() {
	is_number "$BURST_RUN_S" || return
	read_first_start || born=$now
	run_end=$((born + BURST_RUN_S))
	[ "$hard_end" -le "$run_end" ] || hard_end=$run_end
	! is_number "$BURST_FIRST_LEASE_S" || lease_wall=$((born + BURST_FIRST_LEASE_S))
	[ "$lease_wall" -le "$hard_end" ] || lease_wall=$hard_end
	BURST_HARD_END=$hard_end BURST_FIRST_LEASE_END=$lease_wall
}

# A slow image pull can use up the first lease while a client waits for the pod. So the lease counts from the container's first
# start, within limits; a restart does not extend it.
allow_late_start() {
	is_number "$BURST_LATE_START_S" && is_number "$BURST_LEASE_S" || return
	read_first_start || return
	late_wall=$((born + BURST_LATE_START_S)) longest=$((lease_wall + BURST_LEASE_S))
	[ "$late_wall" -le "$longest" ] || late_wall=$longest
	[ "$late_wall" -le "$lease_wall" ] || lease_wall=$late_wall
}

# Fails if there is no lease file of this attempt.
read_lease_file() {
	[ -r "$home/lease" ] || return
	who='' wall='' upto='' rest=''
	read -r who wall upto rest <"$home/lease"
	[ "$who" = "$BURST_ATTEMPT" ] && is_number "$wall" && is_number "$upto" && [ -z "$rest" ]
}

# A restarted container finds its earlier lease. Its uptime may have restarted too, so until the lease file changes, the lease
# ends by the wall clock, or by the uptime if that is sooner.
take_old_lease() {
	old_lease=
	read_lease_file || return
	old_lease="$wall $upto" lease_wall=$wall
	[ -n "$up" ] || return
	lease_up=$((up + wall - now))
	[ "$upto" -ge "$lease_up" ] || lease_up=$upto
}

read_lease() {
	read_lease_file && [ "$wall $upto" != "$old_lease" ] || return 0
	lease_wall=$wall lease_up=$upto old_lease=
}

# Succeeds and sets $reason if this pod must end now.
must_end() {
	read_clock
	read_lease
	if [ -e "$home/end" ]; then
		reason='the agent requested it'
		read -r reason <"$home/end"
	elif may_leave; then
		reason='asked to end'
	elif [ "$now" -ge "$hard_end" ]; then
		reason='hard end reached'
	elif [ -n "$up" ] && [ -n "$hard_up" ] && [ "$up" -ge "$hard_up" ]; then
		reason='hard end reached (uptime)'
	elif [ -n "$up" ] && [ -n "$lease_up" ]; then
		[ "$up" -ge "$lease_up" ] || return 1
		reason='lease expired'
	else
		[ "$now" -ge "$lease_wall" ] || return 1
		reason='lease expired (wall clock)'
	fi
}

# ---- sshd ----

bounded() { # SECONDS COMMAND...
	if command -v timeout >/dev/null 2>&1; then
		timeout "$@"
	else
		shift
		"$@"
	fi
}

find_sshd() {
	for sshd in /usr/sbin/sshd /usr/local/sbin/sshd /usr/local/bin/sshd /usr/bin/sshd /sbin/sshd; do
		[ -x "$sshd" ] && return 0
	done
	sshd=$(command -v sshd)
}

is_root() {
	[ "$(id -u)" = 0 ]
}

# A pod that is no container may be a group of processes on a user's machine. Never change the system there.
is_container() {
	[ "$BURST_CONTAINER" = 1 ]
}

# A restart during an install leaves half-installed packages, which block any other install until they are configured.
apt_install() { # PACKAGE...
	export DEBIAN_FRONTEND=noninteractive
	bounded 300 dpkg --configure -a
	bounded 300 apt-get -q update
	set -- -q -y --no-install-recommends -o DPkg::Lock::Timeout=120 install "$@"
	bounded 600 apt-get "$@" && return
	bounded 600 apt-get -q -y --no-install-recommends -o DPkg::Lock::Timeout=120 -f install
	bounded 600 apt-get "$@"
}

install_packages() { # PACKAGE...
	is_root || return 1
	is_container || return 1
	if command -v apt-get >/dev/null 2>&1; then
		# the package must not start an sshd of its own on the port
		policy=/usr/sbin/policy-rc.d
		[ -e "$policy" ] && policy= || printf '#!/bin/sh\nexit 101\n' >"$policy"
		[ -z "$policy" ] || chmod 755 "$policy"
		apt_install "$@"
		status=$?
		[ -z "$policy" ] || rm -f "$policy"
		return $status
	elif command -v apk >/dev/null 2>&1; then
		bounded 300 apk add --no-cache "$@"
	elif command -v dnf >/dev/null 2>&1; then
		bounded 600 dnf -y -q install "$@"
	elif command -v microdnf >/dev/null 2>&1; then
		bounded 600 microdnf -y install "$@"
	else
		return 1
	fi
}

# One install at a time: the switch may need curl during the install of sshd.
install_in_turn() {
	turn=0
	until mkdir "$home/installing" 2>/dev/null; do
		turn=$((turn + 1))
		[ $turn -gt 900 ] && break
		sleep 1
	done
	install_packages "$@"
	status=$?
	rmdir "$home/installing" 2>/dev/null
	return $status
}

install_sshd() {
	try=0
	while [ $try -lt 10 ] && ! find_sshd; do
		try=$((try + 1))
		say "no sshd found: installing one, try $try"
		install_in_turn openssh-server >>"$log" 2>&1 || sleep $((try * 3))
	done
}

decode_base64() {
	if command -v base64 >/dev/null 2>&1; then
		base64 -d
	elif command -v openssl >/dev/null 2>&1; then
		openssl base64 -d -A
	elif command -v python3 >/dev/null 2>&1; then
		python3 -c 'import base64,sys;sys.stdout.write(base64.b64decode(sys.stdin.read()).decode())'
	else
		perl -MMIME::Base64 -e 'undef $/;print decode_base64(<STDIN>)'
	fi
}

write_keys() {
	printf '%s\n' "$host_key_b64" | decode_base64 >"$home/host_key"
	printf '%s\n' "$authorized_key" >"$home/authorized_keys"
	chmod 600 "$home/host_key" "$home/authorized_keys"
	host_key_b64=
}

write_sshd_config() {
	! is_root || prepare_root
	cat >"$home/sshd_config" <<-END
		Port ${BURST_SSH_PORT:-22}
		HostKey "$home/host_key"
		AuthorizedKeysFile "$home/authorized_keys"
		PidFile "$home/sshd.pid"
		AuthenticationMethods publickey
		PubkeyAuthentication yes
		PasswordAuthentication no
		KbdInteractiveAuthentication no
		PermitRootLogin prohibit-password
		UsePAM no
		StrictModes no
		UseDNS no
		PrintMotd no
		PrintLastLog no
		PermitUserRC no
		X11Forwarding no
		LoginGraceTime 60
		MaxStartups 100:30:200
		MaxSessions 100
		ClientAliveInterval 30
		ClientAliveCountMax 10
		Subsystem sftp internal-sftp
	END
	is_container || echo "ListenAddress 127.0.0.1" >>"$home/sshd_config"
	cp "$home/sshd_config" "$home/sshd_config.plain"
	echo "SetEnv \"BURST_HOME=$home\" \"BURST_VOLUME=$volume\"" >>"$home/sshd_config"
	"$sshd" -t -f "$home/sshd_config" >>"$log" 2>&1 && return
	# before OpenSSH 7.8
	mv "$home/sshd_config.plain" "$home/sshd_config"
	echo "PermitUserEnvironment yes" >>"$home/sshd_config"
	printf 'environment="BURST_HOME=%s",environment="BURST_VOLUME=%s" %s\n' "$home" "$volume" \
		"$authorized_key" >"$home/authorized_keys"
}

# Makes what sshd needs as root: its folder, its user, and an account for root that is not locked.
prepare_root() {
	mkdir -p /run/sshd /var/empty 2>/dev/null
	chmod 755 /run/sshd /var/empty 2>/dev/null
	is_container || return
	grep -q '^sshd:' /etc/passwd 2>/dev/null ||
		echo 'sshd:x:65533:65534::/run/sshd:/usr/sbin/nologin' >>/etc/passwd
	if grep -q '^root:!' /etc/shadow 2>/dev/null; then
		sed 's/^root:![^:]*:/root:*:/' /etc/shadow >"$home/shadow" && cat "$home/shadow" >/etc/shadow
		rm -f "$home/shadow"
	fi
}

# Where a child process of the client brings the connection, no port is opened: this file, run by sh, serves one connection.
write_connect() {
	write_sshd_config
	# without -E it ends without a word where stderr is no terminal of its own
	printf 'exec %s -i -E /dev/null -f %s\n' "$(quoted "$sshd")" "$(quoted "$home/sshd_config")" >"$home/connect.new"
	mv -f "$home/connect.new" "$home/connect"
	say 'sshd serves connections through the file connect'
}

start_sshd() {
	write_sshd_config
	sshd_starts=$((sshd_starts + 1))
	"$sshd" -D -e -f "$home/sshd_config" >>"$home/sshd.log" 2>&1 </dev/null &
	sshd_pid=$!
	say "sshd started on port ${BURST_SSH_PORT:-22} (start $sshd_starts)"
}

# Called once a second; must not block.
keep_sshd() {
	! [ -e "$home/connect" ] || return
	[ -n "$sshd_pid" ] && kill -0 "$sshd_pid" 2>/dev/null && return
	[ -n "$install_pid" ] && kill -0 "$install_pid" 2>/dev/null && return
	if ! find_sshd; then
		[ -z "$install_pid" ] || {
			[ -n "$install_failed" ] || say 'sshd cannot be installed'
			install_failed=1
			return
		}
		install_sshd &
		install_pid=$!
		return
	fi
	if [ "$BURST_REACH" = dial ]; then
		write_connect
		return
	fi
	[ "$sshd_starts" -lt 200 ] || return
	[ "$tick" -ge "$sshd_next_tick" ] || return
	# the first restart is immediate; later pauses grow to 30 s
	sshd_next_tick=$((tick + (sshd_starts < 30 ? sshd_starts : 30)))
	start_sshd
}

# ---- end the pod in the provider's way ----

report_switch() {
	say "switch: $*"
	echo "$*" >"$home/switch.new" && mv -f "$home/switch.new" "$home/switch"
}

# Run this in the background: a hanging volume must not keep the pod alive. Other pods can write to the volume, so this never
# writes through a link.
copy_log_to_volume() {
	dir=$volume/runs/$BURST_RUN/$BURST_ATTEMPT
	[ -d "$dir" ] || return
	rm -f "$dir/start.log.new" "$dir/start.log"
	(set -C && cat "$log" >"$dir/start.log.new") 2>/dev/null && mv -f "$dir/start.log.new" "$dir/start.log"
}

prepare_switch() {
	if command -v vendor_switch >/dev/null 2>&1; then
		vendor_switch
	else
		report_switch 'unproven exit'
	fi
}

end_pod() {
	say "ending this pod: $reason"
	! command -v vendor_end >/dev/null 2>&1 || vendor_end
	[ -n "$sshd_pid" ] && kill "$sshd_pid" 2>/dev/null
	exit 0
}

# ---- the watch ----

# The container is about to end: a spot pod is taken back, for example. The agent makes durable what is finished.
tell_leaving() {
	[ -n "$leaving" ] || return 0
	leaving='' told_tick=$tick
	say 'this container is asked to end'
	rm -f "$home/left"
	: >"$home/leaving"
}

# Succeeds after such a request if there is nothing to wait for: the agent is through, or there is none to take the request. Where
# a pod ends by its vendor's API alone, the request may be a restart.
may_leave() {
	[ -n "$told_tick" ] && ! command -v vendor_end >/dev/null 2>&1 || return
	[ -e "$home/left" ] || { [ -e "$home/leaving" ] && [ $((tick - told_tick)) -ge 2 ]; }
}

now=0 tick=0 told_tick='' reason=
sshd_pid='' install_pid='' sshd_starts=0 sshd_next_tick=0 install_failed=''
rmdir "$home/installing" 2>/dev/null
rm -f "$home/connect" "$home/left"
set_limits
save_env
write_keys
prepare_switch
say "attempt $BURST_ATTEMPT of run $BURST_RUN: $((hard_end - now)) s to the hard end, $((lease_wall - now)) s of lease"
until must_end; do
	tell_leaving
	keep_sshd
	sleep 1
	tick=$((tick + 1))
done
end_pod
