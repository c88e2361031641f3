#!/bin/bash
# systemd.sh - burst's own units under a real systemd of a user, in namespaces of the test: what outlives a run lives on, and a stop
# reaches the run.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/pooled_lib.sh"
. "$(dirname "$0")/queue_lib.sh"
. "$(dirname "$0")/systemd_lib.sh"

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
