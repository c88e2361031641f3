# faults_end.sh - what RunPod alone does when pods are to end, and `burst reap` and deliveries at that moment. See faults.sh.
# shellcheck shell=bash
# shellcheck disable=SC2034,SC2317 # used and called by vendor_faults.sh

# ---- the end ----

left_at_once() { # it is interrupted until it leaves, while a release is refused
	wait_for 60 "the release to be refused" grep -q "not released yet, retrying until it is gone" err.txt
	local began=$SECONDS
	until grep -q "leaving at once" err.txt || [ $((SECONDS - began)) -ge 60 ]; do # the third one leaves
		kill -INT "$PID" 2>/dev/null
		read -rt 1 <> <(:) || :
	done
	burst_wait
}
client_is_killed_at_work() {
	slow_worker SLOW=1
	rp_config 'code = { path = "code"; };'
	burst_bg run --json
	wait_for 60 "a file" file_count out 1
	kill -9 "$PID"
	burst_wait
}
c_reap_names_what_is_left() {
	local id
	client_is_killed_at_work
	id=$(rp_pods | cut -d' ' -f1) # its agent is told to end it, and may have done so by the end of reap
	rp_fault F16 '"times":-1'
	burst_bg reap
	left_at_once
	is "$(grep -c "releasing it\|releasing what it left" err.txt)" 1 "how often it was tried"
	is "$STATUS" 9 "exit status of reap ($(tail -n 2 err.txt | tr '\n' '|'))"
	has err.txt "may still be billing; release it with: burst reap $id --force"
	curl -qsS -X DELETE "$RUNPOD_API_URL/_control/faults" >/dev/null
	burst reap
	is "$STATUS" 0 "exit status of reap again"
	has err.txt "all pods released"
}
c_reap_of_one_that_is_denied() { # nothing is known of it where its release is asked for; it is shown all the same
	rp_fault F16 '"way":"appears","ms":20000'
	client_is_killed_at_work
	ledger "update run set status = 'interrupted'"
	burst reap
	is "$STATUS $(rp_pods)" "0 " "exit status of reap, and pods ($(tail -n 2 err.txt | tr '\n' '|'))"
	has out.txt "gone (its run has ended)"
}
young_pod_is_reaped() { # by its id nobody has heard of it, neither who ends it nor who asks for it
	rp_control fault '{"when":{"op":"createPod"},"do":{"pod":{"hidden_ms":15000,"delete_404_ms":15000}}}' >/dev/null
	rp_config
	burst_bg run --json
	wait_for 60 "its pod" eval "ledger \"select id from pod\" | grep -q ."
	kill -9 "$PID"
	burst_wait
	ledger "update run set status = 'interrupted'"
	[ $# = 0 ] || rp_fault "$@"
	burst reap
	is "$STATUS $(rp_pods)" "0 " "exit status of reap, and pods ($(tail -n 2 err.txt | tr '\n' '|'))"
	has out.txt "gone (its run has ended)"
	is "$(ledger "select billed_ms >= 14000 from pod")" 1 "what it billed: $(ledger "select billed_ms from pod")"
}
c_reap_of_one_that_only_the_list_knows() { young_pod_is_reaped; }
c_reap_of_one_that_a_list_misses() { young_pod_is_reaped F17 '"skip":1'; }          # once, when it is looked at the first time
c_reap_of_one_that_lists_miss_twice() { young_pod_is_reaped F17 '"skip":1,"times":2'; } # then it is released once more
unreleased_run() { # all is home, its pod is not given up, and nobody waits for that: exit 9; then `burst reap` could end it
	left_at_once
	is "$STATUS $(json .status)" "9 unreleased" "exit status ($(tail -n 2 err.txt | tr '\n' '|'))"
	is "$(wavs)" 6 "files"
	cp err.txt run-err.txt
	curl -qsS -X DELETE "$RUNPOD_API_URL/_control/faults" >/dev/null
	burst reap
	is "$STATUS" 0 "exit status of reap"
}
is_left_to_do() { # is_left_to_do FILE: until `burst resume` does it, the run has not gone well
	burst attach
	is "$STATUS" 1 "attach, once its pod is gone"
	is "$(ledger 'select status from run order by seq limit 1')" partial "the run by the ledger"
	burst resume --json
	is "$STATUS $(json .status)" "0 done" "resume ($(tail -n 2 err.txt | tr '\n' '|'))"
	[ -f "out/$1" ] || complain "no $1"
}
c_ended_with_9_before_its_delivery() {
	rp_fault F16 '"times":-1'
	rp_config 'deliver = { run = "touch delivered"; outputs = ["delivered"]; };'
	burst_bg run --json
	unreleased_run
	is_left_to_do delivered
}
c_its_delivery_ended_with_9() { # and had gone well: it is not done again
	rp_config 'deliver = { run = "date +%N >delivered; sleep 2"; outputs = ["delivered"]; };'
	burst_bg run --json
	wait_for 60 "its delivery" grep -q "stage deliver" err.txt
	rp_fault F16 '"times":-1'
	left_at_once
	is "$STATUS $(json .status)" "9 partial" "exit status ($(tail -n 2 err.txt | tr '\n' '|'))"
	cp out/delivered was
	curl -qsS -X DELETE "$RUNPOD_API_URL/_control/faults" >/dev/null
	burst reap
	is "$STATUS" 0 "exit status of reap"
	is "$(ledger 'select group_concat(status) from run order by seq')" "partial,done" "the runs by the ledger"
	burst resume --json
	is "$STATUS $(json .status)" "0 done" "resume ($(tail -n 2 err.txt | tr '\n' '|'))"
	is "$(cat out/delivered)" "$(cat was)" "what was delivered"
	is "$(ledger 'select count(*) from run')" 2 "runs"
}
c_its_delivery_is_interrupted_after_it_went_well() { # while its pod is given back: it is not done again
	rp_config 'deliver = { run = "date +%N >delivered; sleep 2"; outputs = ["delivered"]; };'
	burst_bg run --json
	wait_for 60 "its delivery" grep -q "stage deliver" err.txt
	rp_fault F16 '"way":"lingers","ms":8000'
	wait_for 60 "what it brings" [ -e out/delivered ]
	wait_for 60 "the release of its pod" eval "[ \"\$(ledger \"select count(*) from pod where release_ms > 0\")\" = 2 ]"
	kill -TERM "$PID"
	burst_wait
	is "$STATUS $(json .status)" "143 interrupted" "exit status ($(tail -n 2 err.txt | tr '\n' '|'))"
	cp out/delivered was
	burst resume --json
	is "$STATUS $(json .status)" "0 done" "resume ($(tail -n 2 err.txt | tr '\n' '|'))"
	is "$(cat out/delivered)" "$(cat was)" "what was delivered"
	is "$(ledger 'select count(*) from run')" 2 "runs"
}
c_its_delivery_is_interrupted_and_brought_nothing() { # while its pod is given back: it is still to be done
	rp_config 'deliver = { run = "date +%N >delivered; sleep 2"; outputs = ["*.mp3"]; };'
	burst_bg run --json
	wait_for 60 "its delivery" grep -q "stage deliver" err.txt
	rp_fault F16 '"way":"lingers","ms":8000'
	wait_for 60 "the end of its command" eval "[ \"\$(ledger \"select count(*) from pod where release_ms > 0\")\" = 2 ]"
	kill -TERM "$PID"
	burst_wait
	is "$STATUS $(json .status)" "143 interrupted" "exit status ($(tail -n 2 err.txt | tr '\n' '|'))"
	burst resume --json
	is "$STATUS $(json .status)" "1 partial" "resume ($(tail -n 2 err.txt | tr '\n' '|'))"
	has err.txt "no file of its folder matches outputs (*.mp3"
}
c_ended_with_9_and_could_not_join() {
	rp_fault F16 '"times":-1'
	script_lines 6
	slow_worker SLOW=0.5 MAX_BATCH=2
	JOB="$JOB join = { gap = 0.1; };" rp_config 'code = { path = "code"; };'
	burst_bg run --json
	wait_for 60 "a file" file_count out 1
	mkdir out/joined.wav
	unreleased_run
	has run-err.txt "joined.wav"
	rmdir out/joined.wav
	is_left_to_do joined.wav
}
c_delete_is_accepted_and_it_stays() {
	rp_fault F16 '"way":"lingers","ms":8000'
	render
	all_done 6 1
	all_paid_for
	[ "$(json '.pods[0].phases.release_s | floor')" -ge 8 ] || complain "it was taken for gone while it was listed"
}
c_delete_knows_nothing_of_it() {
	rp_fault F16 '"way":"appears","ms":8000'
	render
	all_done 6 1
	all_paid_for
	[ "$(rp_control billing | jq '.[0].seconds | floor')" -lt 16 ] || complain "it was not asked again when it was seen: $(rp_control billing)"
}
# DELETE says 404, and for 25 s GET and the lists deny it as well: then it is there again, and bills.
bills_no_more() { # the vendor's meter has stopped, and no pod is left
	is "$(rp_pods)" "" "pods that are left"
	all_paid_for
	is "$(rp_control state | jq '[.pods[] | select(.ended_ms)] | length')" 1 "pods that ended"
}
c_denied_when_it_is_released() {
	rp_fault F16 '"way":"denied","ms":25000'
	LIMIT=180
	render
	all_done 6 1
	bills_no_more
}
c_denied_when_it_is_reaped() {
	rp_fault F16 '"way":"denied","ms":25000'
	LIMIT=180
	client_is_killed_at_work
	ledger "update run set status = 'interrupted'"
	burst reap
	is "$STATUS" 0 "exit status of reap ($(tail -n 2 err.txt | tr '\n' '|'))"
	bills_no_more
}
# The account's key is refused from when the pods are to go: each ends itself, with its own key, and `burst` goes on asking.
c_key_is_revoked_at_the_end() {
	LIMIT=200
	slow_worker SLOW=0.3
	script_lines 12
	rp_config 'code = { path = "code"; };'
	burst_bg run --json
	wait_for 60 "some files" file_count out 6
	rp_control fault '{"times":-1,"when":{"key":"account"},"do":{"status":401,"detail":"unauthorized"}}' >/dev/null
	wait_for 60 "the release to be refused" eval '[ "$(asked deletePod)" -gt 0 ]'
	wait_for 25 "the pod to end itself" eval '[ -z "$(rp_pods)" ]'
	has err.txt "asking its agent to end it"
	curl -qsS -X DELETE "$RUNPOD_API_URL/_control/faults" >/dev/null
	burst_wait
	all_done 12 1
	all_paid_for
}
# An answer that does not come is not waited for: the end is asked for again, the list too.
c_delete_is_never_answered() {
	rp_control fault '{"when":{"op":"deletePod"},"times":1,"do":{"delay_ms":100000}}' >/dev/null
	render
	all_done 6 1
	is "$(json '.pods[0].phases.release_s | . > 10 and . < 30')" true "10 s to 30 s for its release"
}
c_list_is_never_answered() {
	rp_control fault '{"when":{"op":"listPods"},"times":2,"do":{"delay_ms":100000}}' >/dev/null
	render
	all_done 6 1
	[ "$SECONDS" -le 60 ] || complain "it took $SECONDS s"
}
c_locked() {
	rp_fault F27
	render
	all_done 6 1
	[ "$(asked patchPod)" -ge 1 ] || complain "nobody unlocked it"
}
