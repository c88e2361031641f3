#!/bin/bash
# vendor_switch.sh - a pod at VENDOR (modal, runpod or vast) whose client cannot end it: the pod ends itself, or the next burst of this machine
# or of another one ends it; and nobody ends what is wanted. tests/cloud/VENDOR/switch.sh has the cases of one vendor alone.
# shellcheck disable=SC2317 # c_ functions are called by names put together
. "$(dirname "$0")/lib.sh"
# shellcheck source=/dev/null
. "$ROOT/tests/cloud/$VENDOR/client.sh"
# shellcheck source=/dev/null
. "$ROOT/tests/cloud/$VENDOR/switch.sh"

# working [N] [CONFIG...]: burst renders in the background, N slow segments on one pod; its id in $ID
working() {
	script_lines "${1:-60}"
	[ $# = 0 ] || shift
	slow_worker SLOW=0.5 MAX_BATCH=2
	vendor_config "lease = \"10s\"; ${BOOT:+boot_limit = \"$BOOT\";} code = { path = \"code\"; };" "$@"
	LIMIT=200 burst_bg run --json
	wait_for 90 "the first files" file_count out 1
	ID=$(pods_alive | cut -d' ' -f1 | head -n 1)
}
killed() { # without a word
	kill -9 "$PID"
	burst_wait 2>/dev/null
	KILLED=$SECONDS
}
reap() {
	burst reap "$@"
	is "$STATUS" 0 "reap's exit status ($(tail -n 1 err.txt))"
}
names_alive() { pods_alive | cut -d' ' -f3 | sort | tr '\n' ' '; }

# ---- the pod itself ----

c_client_is_killed() {
	working
	is_well_set_up
	killed
	ended_itself "$ENDS_WITHIN_S"
	reap
	is "$(asked "$CREATE")" 1 creates
}
c_line_is_cut_and_the_client_lives() {
	working 16
	strike "$ID" "{\"quirks\":{\"door\":\"reset\"},\"$DROP_LINE\":true}" >/dev/null
	burst_wait
	all_done 16 2
	ended_alone
}
# shellcheck disable=SC2086 # words
t_the_pod_ends_itself() { cases $ITS_OWN_ENDS c_line_is_cut_and_the_client_lives c_client_is_killed; }

# ---- the next burst ----

# The create is on its way when burst dies: it is carried out some seconds later.
dead_in_create() {
	delayed_create 3000
	slow_worker
	vendor_config 'code = { path = "code"; };'
	burst_bg run --json
	wait_for 20 "the intent" intent_is_known
	wait_for 20 "the request" create_has_begun
	kill -9 "$PID"
	burst_wait 2>/dev/null
	intent_is_known || complain "it knew its pod when it died"
}
c_killed_in_a_create_then_resume() {
	dead_in_create
	LIMIT=200 burst resume --json
	all_done 6 1
}
c_killed_in_a_create_then_reap() {
	dead_in_create
	LIMIT=200 reap
	is "$(pods_ever)" 1 "pods that ever were"
}
c_killed_in_a_create_then_run() {
	dead_in_create
	LIMIT=200 burst run --json
	is "$STATUS" 0 "exit status ($(tail -n 1 err.txt))"
	is "$(wavs)" 6 files
}
c_killed_at_work_then_resume() {
	working 24
	killed
	LIMIT=120 burst resume --json
	all_done 24 1
}
c_killed_at_work_then_reap() {
	working
	killed
	reap
	is "$(ends_asked_for)" 1 "ends asked for"
	was_ended "$ID" "how it ended"
}

# ---- another machine ----

c_left_by_another_machine() {
	local old young mine now
	now=$(date +%s)
	vendor_config
	somebody_elses_account
	marked 0123456789abcdef $((now - 400))
	old=$ID
	marked 0123456789abcdee $((now - 100))
	young=$ID
	rented mine
	mine=$ID
	[ -n "$old" ] && [ -n "$young" ] && [ "$old" != "$young" ] || complain "there are no pods: $(cat reply.json)"
	reap
	was_ended "$old" "the one past its hard end"
	is "$(names_alive)" "burst-0123456789abcdee mine " "what it left alone"
	has out.txt "pod $old of $VENDOR: gone (past its hard end)"
	has out.txt "pod $young of $VENDOR: run 1101-000000-aaaa of machine elsewhere"
	reap "$young" --force
	is "$(names_alive)" "mine " "what is nobody's of ours"
	half_of_its_marker
	ended_by_hand "$mine"
	touch state/ledger.db
	ids_ever >state/ledger.db.not # they are in no ledger, and need not be
}
c_two_machines() {
	local n=${TWO_MACHINES_N:-20}
	allow_volumes v
	mkdir -p other/home
	working "$n"
	local one=$PID one_shell=$SHELL_PID
	cd other || return
	export BURST_STATE_DIR=$T/state2
	PID=''
	working "$n"
	(BURST_STATE_DIR=$T/state3; reap; [ -z "$WHY" ] || echo "$WHY"; is "$(grep -c "skipped" out.txt)" 2 "pods that a third machine leaves alone"; echo "$WHY") >../third.txt
	is "$(tr -d '\n' <../third.txt)" "" "the third machine"
	is "$(pods_alive | wc -l)" 2 "pods at work"
	burst_wait
	all_done "$n" 2
	cd ..
	SHELL_PID=$one_shell PID=$one
	burst_wait
	all_done "$n" 2
}
# shellcheck disable=SC2086 # words
t_the_next_burst() { cases c_killed_in_a_create_then_reap c_killed_in_a_create_then_run c_killed_in_a_create_then_resume c_two_machines c_killed_at_work_then_resume c_killed_at_work_then_reap c_left_by_another_machine $ITS_OWN_NEXT; }

run_tests "$@"
