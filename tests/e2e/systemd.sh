#!/bin/bash
# systemd.sh - burst's own units under a real systemd of a user, in namespaces of the test: what outlives a run lives on, and a stop
# reaches the run.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/pooled_lib.sh"
. "$(dirname "$0")/queue_lib.sh"

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
service_is() { [ "$(systemctl --user show -P ActiveState burst-nightly.service)" = "$1" ]; }

what_outlives_a_run() {
	burst schedule add nightly every 1m --backend systemd
	is "$STATUS" 0 "exit status of add ($(tail -n 1 err.txt))"
	mkdir other
	cp script.jsonl other
	sed "/^volume/d" burst.cfg >other/burst.cfg
	burst submit --quiet 12s other # its client dies, as at a reboot: the schedule starts another one
	kill "$(pgrep -f -- "queue run $T/")"
	wait_for 10 "the first runner to end" no_runner
	ledger "update schedule set made_ms = made_ms - 86400000"
	# it waits until the oneshot service is over
	timeout 40 systemctl --user start burst-nightly.service || complain "the service failed: $(tail -n 2 state/jobs/*.queue.log)"
	wait_for 5 "the service to end" service_is inactive
	kept_now || complain "no pod is kept"
	is "$(pgrep -cf -- "burst keep ")" 1 "clients that keep pods"
	is "$(pgrep -cf -- "queue run $T/")" 1 "the queue's clients"
	[ -z "$WHY" ] || return
	wait_for 20 "the queue to be empty" all_ended
	wait_for 20 "the kept pod's release" all_over
}
a_stop_reaches_the_run() {
	burst schedule add nightly every 1m --backend systemd
	ledger "update schedule set made_ms = made_ms - 86400000"
	systemctl --user start --no-block burst-nightly.service
	wait_for 30 "a segment" file_count out 1
	timeout 40 systemctl --user stop burst-nightly.service
	is "$(systemctl --user show -P Result burst-nightly.service)" exit-code "how the service ended"
	is "$(ledger "select status from run")" interrupted "the run"
	is "$(ledger "select state || ' ' || exit_status from request")" "running 143" "the request"
	is "$(open_pods)" 0 "pods"
}
t_what_outlives_a_run() {
	script_lines 2
	config 'pods = 1; keep_warm = "10s";'
	under_systemd what_outlives_a_run
}
t_a_stop_reaches_the_run() {
	slow_segments 60
	under_systemd a_stop_reaches_the_run
}

if [ -n "${INSIDE:-}" ]; then
	WHY=''
	inside "$INSIDE"
else
	run_tests "$@"
fi
