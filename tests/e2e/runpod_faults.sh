#!/bin/bash
# runpod_faults.sh - what RunPod does to its clients: each fault of the stand-in, and what must come of it.
# shellcheck disable=SC2317 # c_ functions are called by names put together
. "$(dirname "$0")/lib.sh"
. "$ROOT/tests/cloud/runpod/client.sh"

render() { # render [CONFIG...]
	rp_config "$@"
	burst run --json
}
gpus_used() { json '[.pods[] | select(.id != "") | .gpu] | join(",")'; }

# ---- creates ----

c_create_says_500_and_made_it() {
	rp_fault F1
	render
	all_done 6 1
	is "$(asked createPod)" 1 creates
}
c_create_is_cut_and_made_it() {
	rp_fault F2
	render
	all_done 6 1
	is "$(asked createPod)" 1 creates
}
c_create_hangs() { # and made it: a list shows it before the answer comes
	rp_control fault '{"when":{"op":"createPod"},"do":{"hang_ms":60000}}' >/dev/null
	render
	all_done 6 1
	is "$(asked createPod)" 1 creates
	has err.txt "has not answered its create for"
	[ "$(json '.billed_seconds | floor')" -lt 55 ] || complain "billed for $(json .billed_seconds) s"
}
c_create_answers_in_half_a_sentence() {
	rp_control fault '{"when":{"op":"createPod"},"do":{"cut":60}}' >/dev/null
	render
	all_done 6 1
	is "$(asked createPod)" 1 creates
}
c_sold_out_twice() {
	rp_fault F5 '"times":2'
	render
	all_done 6 1
	is "$(asked createPod)" 3 creates
}
c_sold_out_for_ever() {
	rp_fault F5 '"times":-1'
	render 'wait = "3s";'
	in_vain 4 0
	is "$(json .error.code)" no_capacity code
}
says_400() { # says_400 TIMES WORDS
	rp_control fault "{\"times\":$1,\"when\":{\"op\":\"createPod\"},\"do\":{\"status\":400,\"detail\":\"$2\"}}" >/dev/null
}
c_refused_in_words_of_no_kind() { # the next offer tells
	says_400 1 "request could not be processed"
	render
	all_done 6 1
	is "$(asked createPod)" 2 creates
	is "$(gpus_used)" "L40S" "where it went"
	has err.txt "request could not be processed"
}
c_refused_at_every_offer() { # whatever it waits for capacity
	says_400 -1 "request could not be processed"
	render 'wait = "10m";'
	in_vain 6 0
	is "$(asked createPod)" 2 creates
	is "$(json .error.code)" refused code
	has err.txt "runpod refuses the request at each of its offers (2): check pod and providers.runpod"
	has err.txt "request could not be processed"
}
c_sold_out_in_other_words() {
	says_400 2 "No GPUs available"
	render
	all_done 6 1
	is "$(asked createPod)" 3 creates
}
c_hosts_too_old_for_the_default_image() { # which is not what runs there
	rp_control stock '{"cuda":["12.4"]}' >/dev/null
	rp_config
	burst offers --json
	is "$(json 'map(select(.gpu == "RTX 4090")) | length > 0')" true "offers"
	burst doctor
	has out.txt "RTX 4090"
	burst run --json
	all_done 6 1
	is "$(asked listGpus '.url | test("minCuda")')" 0 "catalogs with a floor"
	sed -i '/^pod/d' burst.cfg # so it runs the default one
	burst offers --json
	is "$STATUS $(tail -n 1 out.txt)" "0 []" "offers for the default image"
}
c_too_many_requests() {
	rp_control settings '{"quotas":{"minute":60,"hour":3000,"day":50000}}' >/dev/null # those that the fault speaks of
	rp_fault F6 '"op":"createPod"'
	local began=$SECONDS
	render
	all_done 6 1
	[ $((SECONDS - began)) -ge 12 ] || complain "it did not wait for the window that was exhausted"
}
no_more_this_hour() {
	rp_control fault '{"times":-1,"when":{"op":"createPod"},"do":{"status":429,"detail":"rate limit exceeded for the hour window",
		"headers":{"Retry-After":"2","RateLimit":"\"hour\";r=0;t=1812"}}}' >/dev/null
}
c_too_many_requests_this_hour() {
	no_more_this_hour
	render 'wait = "5s";'
	in_vain 6 0
	has err.txt "rate limit"
}
c_too_many_requests_and_a_signal() {
	no_more_this_hour
	rp_config
	burst_bg run --json --trace
	wait_for 20 "the refusal" grep -q "429 in" err.txt
	kill -TERM "$PID"
	wait_for 50 "it to leave" has_ended
	burst_wait
	is "$STATUS" 143 "exit status"
}
has_ended() { ! running_as "$PID"; }
c_no_money() {
	rp_fault F7 '"times":-1'
	render
	in_vain 3 0
	is "$(json .error.code)" balance code
	is "$(asked createPod)" 1 creates
}
c_a_pool_that_is_closed_to_us() {
	rp_fault F8 "\"times\":-1,\"when\":{\"gpu\":\"$RTX4090\"}"
	render
	all_done 6 1
	is "$(gpus_used)" "L40S" "where it went"
}
c_wrong_key() {
	export RUNPOD_API_KEY=rpa_NOBODYKNOWSTHIS
	render
	in_vain 3 0
	is "$(json .error.code)" credentials code
}
c_key_may_not_look() {
	rp_control fault '{"times":-1,"when":{"op":"listVolumes|listGpus"},"do":{"status":403,"detail":"access denied"}}' >/dev/null
	render
	in_vain 3 0
}
c_image_that_is_nowhere() {
	IMAGE=nobody/has:this
	render
	in_vain 2 0
	is "$(asked createPod)" 1 creates
	has err.txt "was not found on its registry"
}
c_old_api() {
	RUNPOD_API_URL=$RUNPOD_API_URL/v1 render
	in_vain 2 0
	has err.txt "this API no longer exists"
}
c_two_pods_of_one_create() {
	rp_fault F28
	render
	all_done 6 2
	has err.txt "has this run's marker but is not needed"
}
c_dearer_than_it_was_offered() {
	rp_fault F22 '"cost":9.5'
	CAPS='max_price_per_hour = 2.00;'
	render
	all_done 6 2
	has err.txt "its price is above caps.max_price_per_hour"
}
c_so_dear_that_the_cap_would_break() {
	rp_fault F22 '"cost":19.5'
	render
	all_done 6 2
	has err.txt "caps.max_cost would be exceeded"
	[ "$(json .cost_usd | cut -d. -f1)" -lt 2 ] || complain "it cost $(json .cost_usd)"
}
# The vendor's meter runs for the disk too, whether the pod's price shows it or not: the caps hold by that meter.
big_disk() { # big_disk COST_WITH_DISK: 500 GB on what costs $0.25
	rp_control settings "{\"billing\":{\"cost_with_disk\":$1}}" >/dev/null
	GPUS='"RTX A4000"' POD='disk_gb = 500;'
	rp_config
	sed -i '/^volume/d' burst.cfg
	burst offers --json
	is "$(json 'map(.price_usd_hour) | min')" 0.318494 "the price with its disk"
	sed -i 's/caps = {/& max_price_per_hour = 0.318494;/; s/max_cost = 2.00/max_cost = 0.004/' burst.cfg
	slow_worker SLOW=0.4
	script_lines 300
	sed -i "s/engine = \"[a-z]*\"/engine = \"test\"/; s/output = \"out\";/& $(sed 's/[\&/]/\\&/g' <<<"$JOB")/" burst.cfg
	echo 'code = { path = "code"; };' >>burst.cfg
	burst run --json
	is "$STATUS $(json .status)" "5 capped" "the end"
	[ "$(wavs)" -ge 1 ] || complain "nothing was rendered"
	[ "$(rp_control billing | jq '([.[].usd] | add) <= 0.004')" = true ] || complain "the meter shows $(rp_control billing | jq -c '[.[].usd]')"
	[ "$(rp_control billing | jq --argjson ours "$(json .cost_usd)" '([.[].usd] | add) <= $ours')" = true ] ||
		complain "the meter shows $(rp_control billing | jq -c '[.[].usd]'), we say $(json .cost_usd)"
}
c_a_big_disk_that_the_price_shows() {
	big_disk true
}
c_a_big_disk_that_the_price_does_not_show() {
	big_disk false
}
c_a_little_dearer_is_taken() {
	rp_fault F22 '"cost":0.7'
	MAX_COST=0.05
	render
	all_done 6 1
	is "$(ledger 'select price_microusd_h from pod')" 700000 "the price that counts"
}

# ---- pods that do not come up ----

# A pod that is given up counts once, another does the work.
another_did() { # another_did [WORDS]
	all_done 6 2
	[ -z "${1:-}" ] || has err.txt "$1"
}
c_stuck_before_its_image() {
	rp_fault F9
	render 'boot_limit = "6s";'
	another_did "did not boot within"
}
c_stuck_with_its_image() {
	rp_control fault "{\"when\":{\"op\":\"createPod\"},\"do\":{\"pod\":{\"stuck\":\"STARTING\"}}}" >/dev/null
	render 'boot_limit = "6s";'
	another_did "did not boot within"
}
c_running_without_a_port() {
	rp_fault F10
	render 'boot_limit = "6s";'
	another_did "did not boot within"
}
c_running_with_an_empty_runtime() {
	rp_fault F10 '"runtime":{}'
	render 'boot_limit = "6s";'
	another_did "did not boot within"
}
c_port_without_sshd() {
	rp_fault F11
	render 'boot_limit = "8s";'
	another_did "did not boot within"
}
c_port_without_a_word() {
	rp_fault F11 '"door":"silent"'
	render 'boot_limit = "8s";'
	another_did "did not boot within"
}
c_somebody_elses_host_key() {
	rp_fault F12
	render
	another_did "host key"
}
c_container_cannot_be_made() {
	rp_fault F14
	render
	another_did "it failed to start"
}
c_no_gpu_in_it() {
	rp_control fault '{"when":{"op":"createPod"},"do":{"pod":{"no_gpu":true}}}' >/dev/null
	mkdir -p code
	cp "$ROOT/tests/workers/worker.sh" code/
	ENGINE=chatterbox
	JOB='worker = "sh \"$BURST_CODE/worker.sh\""; vram_gb = 8;'
	render 'code = { path = "code"; };'
	is "$STATUS" 1 "exit status ($(tail -n 1 err.txt))"
	has err.txt "no GPU"
	is "$(pods_ever)" 1 "pods that ever were"
	burst offers --json
	is "$(json '[.[] | select(.avoided) | .avoided.reason] | join(",")')" "it showed no GPU" "avoided"
}
# Three runs that go well, whose pods took so many seconds to come up, as far as the ledger knows.
pods_came_up_in() {
	local i
	for i in 1 2 3; do
		rm -rf out
		render
		all_done 6 "$i"
	done
	rm -rf out
	ledger "UPDATE pod SET connected_ms = create_ms + ${1}000" || complain "the ledger cannot be changed"
}
c_stuck_host_is_given_up_early_and_avoided() {
	command -v sqlite3 >/dev/null || { skip "no sqlite3"; return; }
	LIMIT=150
	pods_came_up_in 22
	rp_fault F9
	render
	all_done 6 5
	has err.txt "did not boot within 1m"
	local lived
	lived=$(rp_control state | jq '[.pods[] | .ended_ms - .created_ms] | .[3] / 1000 | floor')
	[ "$lived" -ge 66 ] && [ "$lived" -lt 90 ] || complain "the stuck pod lived for $lived s"
	is "$(gpus_used)" "RTX 4090,L40S" "what was tried"
	burst offers --json
	is "$(json '[.[] | select(.avoided) | "\(.gpu): \(.avoided.reason)"] | join(",")')" "RTX 4090: its container never ran" "avoided"
	is "$(json '.[-1].gpu')" "RTX 4090" "the last offer"
	burst plan
	has out.txt "its container never ran"
	rm -rf out
	render
	all_done 6 6
	is "$(gpus_used)" "L40S" "where the next run went"
	has err.txt "its container never ran; others are tried before it"
	rm -rf out
	burst run --json --gpu "RTX 4090" # nothing else will do
	all_done 6 7
	has err.txt "no other offer is left, so it is retried"
	burst offers --json
	is "$(json '[.[] | select(.avoided)] | length')" 0 "avoided once a pod of it has worked"
}
c_pull_that_moves_is_waited_for() {
	command -v sqlite3 >/dev/null || { skip "no sqlite3"; return; }
	LIMIT=150
	pods_came_up_in 22
	rp_control fault '{"when":{"op":"createPod"},"do":{"pod":{"pull_ms":80000,"pull_says_ms":5000}}}' >/dev/null
	render
	all_done 6 4
	has err.txt "its provider's log shows progress"
}
c_volume_that_cannot_be_written() {
	rp_fault F26
	render
	is "$STATUS" 1 "exit status ($(tail -n 1 err.txt))"
	is "$(wavs)" 0 files
}
c_volume_that_is_full() {
	rp_fault F26 '"how":"full"'
	render
	is "$STATUS" 1 "exit status ($(tail -n 1 err.txt))"
}
c_image_that_cannot_be_pulled() {
	rp_control settings '{"images":{"host/tts:1":"unpullable"}}' >/dev/null
	render 'wait = "5s";'
	is "$STATUS" 6 "exit status"
	has err.txt "its container cannot run"
	has err.txt "its image cannot be pulled: error pulling image: toomanyrequests: You have reached your pull rate limit"
	is "$(pods_ever)" 2 "pods that could not have worked"
}
c_image_that_no_registry_has() { # the pod stays as it is: only its log says so
	LIMIT=150
	IMAGE=nowhere/tts:9
	render 'boot_limit = "40s"; wait = "5s";'
	is "$STATUS" 2 "exit status ($(tail -n 2 err.txt | tr '\n' '|'))"
	has err.txt "its image cannot be pulled: error pulling image: manifest for nowhere/tts:9 not found: manifest unknown"
	has err.txt "2 pods in a row could not start"
	has err.txt "check pod.image"
	hasnt err.txt "did not boot within"
	is "$(pods_ever)" 2 "pods that could not have worked"
}

# ---- what the API says of them ----

c_get_knows_it_late() {
	rp_fault F3
	render
	all_done 6 1
}
c_listed_late() {
	rp_fault F3 '"list":true,"ms":8000'
	render
	all_done 6 1
}
c_never_listed() {
	rp_fault F4 '"times":-1'
	render 'boot_limit = "30s";'
	all_done 6 1
	[ "$(asked getPod '.key == "account"')" -ge 1 ] || complain "it was not asked for by its id"
	is "$(rp_control state | jq '[.pods[] | select(.ended_ms == null)] | length')" 0 "pods that live on, unlisted"
}
c_missing_once() {
	rp_fault F17 '"skip":1'
	render
	all_done 6 1
}
c_a_word_nobody_knows() {
	rp_fault F18 '"times":-1'
	render
	all_done 6 1
}
c_answers_that_are_cut() {
	rp_fault F21 '"times":4'
	render
	all_done 6 1
}
c_answers_that_are_no_json() {
	rp_fault F21 '"way":"invalid","times":2'
	render
	all_done 6 1
}
c_pages_of_html() {
	rp_fault F21 '"way":"html","times":3,"op":"listGpus|listPods|listVolumes"'
	render
	all_done 6 1
}
c_an_answer_without_end() {
	rp_fault F21 '"way":"big"'
	render
	all_done 6 1
}
c_more_than_it_should_say() {
	rp_fault F29 '"times":-1,"cursor":""'
	render
	all_done 6 1
}
c_lists_come_in_pages() { # of one row each: what is on the second one is neither gone nor to be made
	local name
	for name in a b v; do rp_api POST /v2/network-volumes "{\"name\":\"$name\",\"size\":10,\"dataCenter\":\"EU-RO-1\"}"; done
	rp_control settings '{"page":1}' >/dev/null
	slow_worker SLOW=0.8
	script_lines 40
	rp_config 'pods = 2; code = { path = "code"; };'
	burst run --json --allow-volume v
	all_done 40 2
	is "$(asked createVolume)" 3 "volumes that were made"
	[ "$(asked listPods '(.url | test("cursor="))')" -ge 1 ] || complain "no second page was asked for"
}
c_a_list_with_further_pages() { # which cannot be had: its cursor leads to the first one
	rp_fault F29 '"times":3,"when":{"op":"listPods"}'
	render
	all_done 6 1
	has err.txt "has further pages"
}
c_a_list_that_never_is_whole() {
	rp_fault F29 '"times":-1,"when":{"op":"listPods"}'
	rp_config
	burst_bg run --json
	wait_for 20 "it to say so" grep -q "has further pages" err.txt
	wait_for 60 "the pod's end" eval '[ "$(asked deletePod)" -gt 0 ]'
	# two signals that come at once may be heard as one
	wait_for 20 "it to leave" eval 'kill -TERM "$PID" 2>/dev/null; read -rt 0.5 <> <(:); ! running_as "$PID"'
	burst_wait
	is "$STATUS" 9 "exit status"
	is "$(pods_ever)" 1 "pods that ever were"
}

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
	wait_for 60 "its delivery" grep -q "delivering" err.txt
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
	wait_for 60 "its delivery" grep -q "delivering" err.txt
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
	wait_for 60 "its delivery" grep -q "delivering" err.txt
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
	rp_slow_worker SLOW=0.5 MAX_BATCH=2
	JOB="$JOB join = { gap = 0.1; };" rp_config 'code = { path = "code"; };'
	burst_bg run --json
	wait_for 60 "a file" file_count out 1
	mkdir out/joined.wav
	unreleased_run
	has run-err.txt "joined.wav"
	rmdir out/joined.wav
	is_left_to_do joined.wav
}
c_delete_fails_at_first() {
	rp_fault F16 '"times":6'
	render
	all_done 6 1
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

# ---- at work ----

slowly() { # slowly N [CONFIG...]: N segments of half a second each
	script_lines "$1"
	shift
	rp_slow_worker SLOW=0.5 MAX_BATCH=2
	rp_config 'code = { path = "code"; };' "$@"
}
c_ssh_drops_in_a_transfer() {
	rp_fault F13 '"bytes":60000,"drops":2'
	render
	all_done 6 1
}
c_taken_back_in_a_batch() {
	rp_fault F15 '"ms":8000'
	slowly 16
	burst run --json
	all_done 16 2
}
c_spot_is_taken_back() {
	rp_fault F15 '"ms":8000,"to":"TERMINATED"'
	slowly 16 'spot = true;'
	burst run --json
	all_done 16 2
	is "$(json '.pods[0].spot')" true spot
	has err.txt "it is gone"
	rendered=$(find cloud/volumes -name events.jsonl -exec cat {} + | grep -c '"ev":"segment".*"ok":true')
	[ "$rendered" -le 18 ] || complain "$rendered were rendered, where a batch has 2 of 16"
}
c_spot_at_hosts_without_an_address() { # of their own, unless one is asked for
	rp_control stock "{\"gpu\":\"$RTX4090\",\"bid\":0.1}" >/dev/null
	RUNPOD='cloud = "COMMUNITY";' rp_config 'spot = true;'
	sed -i '/^volume/d' burst.cfg # there are none
	burst run --json
	all_done 6 1
	is "$(json '.pods[0].spot')" true spot
}
# The create's answer is lost, its client dies, and the vendor takes the pod back before any list shows it.
c_taken_back_before_anybody_saw_it() {
	rp_fault F2
	rp_fault F3 '"list":true,"ms":60000'
	rp_config 'spot = true;'
	burst_bg run --json
	wait_for 10 "a pod" eval '[ -n "$(rp_pods)" ]'
	kill -KILL "$PID"
	burst_wait 2>/dev/null
	is "$(intent_is_known && echo yes)" yes "the intent alone is known"
	rp_control "pods/$(rp_pods | cut -d' ' -f1)" '{"preempt":"TERMINATED"}' >/dev/null
	is "$(rp_control billing | jq '[.[] | select(.unasked)] | length')" 1 "pods that nobody could learn of"
	burst run --json
	all_done 6 2
	has err.txt "was never answered; looking for its pod for at least 60 s"
	is "$(in_ledger "select count(*) from pod where state not in ('gone', 'failed')")" 0 "pods that the ledger holds for open"
}
c_its_files_are_saved_from_the_volume() { # although the storage fails at first
	rp_fault F15 '"ms":8000,"to":"TERMINATED"'
	rp_fault F23 '"times":2'
	slowly 16
	burst run --json
	all_done 16 2
	[ "$(asked s3:GetObject '.status == 200')" -ge 1 ] || complain "nothing was read from the volume"
}
c_storage_that_thinks_our_clock_is_wrong() {
	rp_control settings '{"s3_clock_ms":7200000}' >/dev/null
	rp_fault F15 '"ms":8000,"to":"TERMINATED"'
	slowly 16
	burst run --json
	all_done 16 2
	is "$(asked s3:GetObject '.status == 200')" 0 "files read from the volume"
}
c_port_moves() {
	rp_control fault '{"when":{"op":"createPod"},"do":{"pod":{"stale_port_ms":6000}}}' >/dev/null
	slowly 30
	burst_bg run --json
	wait_for 40 "the first file" file_count out 1
	rp_control "pods/$(rp_pods | cut -d' ' -f1)" '{"move_port":true}' >/dev/null
	burst_wait
	all_done 30 1
}
c_log_is_cut() {
	rp_fault F14
	rp_fault F20 '"multiline":true,"cut":4'
	rp_config
	burst run --json -v
	all_done 6 2
	has err.txt "its provider's log: system: pulling image"
}
c_log_says_nothing() { # and does not keep the pod from being released
	rp_fault F14
	rp_fault F20 '"quiet_ms":60000'
	render
	all_done 6 2
	[ "$(rp_control state | jq '.pods[0] | .ended_ms - .created_ms | floor')" -lt 8000 ] || complain "a pod waited for its log"
}

# ---- all together ----

# The first pod is the canary; then one is taken back at work, another never answers.
c_quiz_on_four_pods() {
	rp_fault F11 '"skip":1'
	rp_fault F15 '"skip":2,"ms":9000,"to":"TERMINATED"'
	script_lines 300
	mkdir -p code
	rp_slow_worker SLOW=0.3 MAX_BATCH=8
	LIMIT=200
	rp_config 'pods = 4; boot_limit = "10s"; code = { path = "code"; };'
	burst run --json
	all_done 300
	is "$(json .segments.rendered)" 300 rendered
	[ "$(pods_ever)" -ge 5 ] || complain "only $(pods_ever) pods"
	is "$(jq -r .id out/manifest.jsonl | sort -u | wc -l)" 300 "segments in the manifest"
	has err.txt "did not boot within"
	is "$(asked createPod)" "$(pods_ever)" creates
}

# Each waits at most for what must be waited for: the slowest come first.
t_every_fault() {
	# shellcheck disable=SC2046
	cases c_create_says_500_and_made_it c_create_is_cut_and_made_it c_create_answers_in_half_a_sentence c_never_listed c_a_list_that_never_is_whole c_taken_back_before_anybody_saw_it \
		c_stuck_host_is_given_up_early_and_avoided c_pull_that_moves_is_waited_for \
		c_stuck_before_its_image c_running_without_a_port c_dearer_than_it_was_offered c_so_dear_that_the_cap_would_break \
		$(declare -F | sed -n 's/^declare -f \(c_.*\)/\1/p' | grep -vxE "c_create_(says_500|is_cut|answers_in).*|c_never_listed|c_a_list_that_never.*|c_taken_back_before.*|c_stuck_host_is_given_up.*|c_pull_that_moves.*|c_stuck_before_its_image|c_running_without_a_port|c_dearer.*|c_so_dear.*")
}

run_tests "$@"
