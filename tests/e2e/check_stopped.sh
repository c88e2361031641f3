#!/bin/bash
# check_stopped.sh - who stops `make check` halfway stops all of it: no pod, process, mount, namespace or file is left.
. "$(dirname "$0")/lib.sh"

stamps() { # stamps PID...: "PID START" of those that live
	local p
	for p; do
		[ -r "/proc/$p/stat" ] && echo "$p $(sed 's/.*) //' "/proc/$p/stat" 2>/dev/null | cut -d' ' -f20)"
	done
}
pods_work() { # pods_work N: so many sshds of pods serve a session
	[ "$(descendants "$CHECK" | xargs -r ps -o args= -p 2>/dev/null | grep -c '^sshd: ')" -ge "$1" ]
}
stopped_by() { # stopped_by SIGNAL EXIT-STATUS
	local status=0 left
	CHECK_LOGS=$T/logs TMPDIR=$T setsid python3 "$ROOT/tests/check.py" client/t_stopped_past_the_lease_detached \
		runpod_machine/c_stopped_past_the_lease >check.txt 2>&1 </dev/null &
	CHECK=$!
	wait_for 90 "pods at work" pods_work 2
	# shellcheck disable=SC2046
	stamps $(descendants "$CHECK") >before.txt
	kill "-$1" "$CHECK"
	wait "$CHECK" || status=$?
	is "$status" "$2" "exit status ($(tail -n 2 check.txt | tr '\n' '|'))"
	has check.txt "check: stopped"
	[ "$(wc -l <before.txt)" -ge 10 ] || complain "it ran only $(wc -l <before.txt) processes"
	# shellcheck disable=SC2046
	left=$(stamps $(cut -d' ' -f1 before.txt) | grep -xFf before.txt)
	is "$left" "" "processes left: $(ps -o pid=,args= -p "$(echo "$left" | cut -d' ' -f1 | paste -sd,)" 2>/dev/null | head -n 3 | tr '\n' '|')"
	is "$(pgrep -f -- "$T/bc-" | wc -l)" 0 "processes that were told of its folder"
	is "$(grep -cF "$T/bc-" /proc/self/mounts)" 0 "mounts left"
	is "$(find . -maxdepth 1 -name 'bc-*' | wc -l)" 0 "folders left"
}

t_stopped_by_a_signal() { stopped_by TERM 143; }
t_stopped_at_the_keyboard() { stopped_by INT 130; }

run_tests "$@"
