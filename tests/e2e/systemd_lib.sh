# systemd_lib.sh - a real systemd of a user, in namespaces of the test. A script's functions with the names that it gives to
# under_systemd run inside; it ends with `if [ -n "${INSIDE:-}" ]; then WHY=; inside "$INSIDE"; else run_tests "$@"; fi`.
# shellcheck shell=bash

ITSELF=$(realpath "$0")
SYSTEMD=$(for f in /usr/lib/systemd/systemd /lib/systemd/systemd; do [ ! -x $f ] || { echo $f; break; }; done)

# In its namespaces: a systemd that has just booted, with a cgroup of its own as the root, then the function.
inside() {
	{ mount --make-rprivate / && mount -t proc proc /proc && mount -t tmpfs none /run && mount -t tmpfs none /sys/fs/cgroup &&
		mount -t cgroup2 none /sys/fs/cgroup; } || exit 77
	mkdir -p /run/systemd/system run
	export XDG_RUNTIME_DIR=$T/run
	unset DBUS_SESSION_BUS_ADDRESS
	"$SYSTEMD" --user --log-target=console >systemd.log 2>&1 </dev/null &
	wait_for 15 "systemd to answer" systemctl --user show-environment && "$@"
	echo "$WHY" >why
}
# under_systemd FUNCTION: in a cgroup and namespaces whose processes all end with it, and in a minute at the latest
under_systemd() {
	[ "$(id -u)" = 0 ] || { skip "not root"; return; }
	{ [ -n "$SYSTEMD" ] && command -v systemctl >/dev/null; } || { skip "no systemd"; return; }
	unshare -mpfC true 2>unshare.txt || { skip "no namespaces ($(tail -n 1 unshare.txt))"; return; }
	mkdir -p cgroup
	cat >outside.sh <<-E
		mount -t cgroup2 none cgroup || exit 77
		mkdir cgroup/burst-\$\$ || exit 77
		end() { find cgroup/burst-\$\$ -depth -type d -exec rmdir {} +; }
		trap end EXIT
		(echo 0 >cgroup/burst-\$\$/cgroup.procs && exec timeout -k 2 60 unshare -mpfC --kill-child env INSIDE=$1 T='$T' bash '$ITSELF')
	E
	STATUS=0
	unshare -m bash outside.sh >inside.txt 2>&1 </dev/null || STATUS=$?
	[ "$STATUS" != 77 ] || { skip "nothing may be mounted ($(tail -n 1 inside.txt))"; return; }
	is "$STATUS" 0 "exit status ($(tail -n 2 inside.txt systemd.log | tr '\n' '|'))"
	[ -n "$WHY" ] || WHY=$(cat why)
}
