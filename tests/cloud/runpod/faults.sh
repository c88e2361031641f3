# faults.sh - what tests/e2e/vendor_faults.sh needs of RunPod: the stand-in's names of faults, and what RunPod alone does to its clients
# when they create pods, wait for them, list them and use them.
# shellcheck shell=bash
# shellcheck disable=SC2034,SC2317 # used and called by vendor_faults.sh

declare -A FAULTS=(
	[create says an error and made it]=F1
	[create is cut and made it]=F2
	[create hangs]='{"when":{"op":"createPod"},"do":{"hang_ms":60000}}'
	[create is answered by half]='{"when":{"op":"createPod"},"do":{"cut":60}}'
	[sold out]=F5
	[one GPU is closed]="F8 \"when\":{\"gpu\":\"$RTX4090\"}"
	[wrong host key]=F12
	[no GPU]='{"when":{"op":"createPod"},"do":{"pod":{"no_gpu":true}}}'
	[listed late]='F3 "list":true,"ms":8000'
	[never listed]=F4
	[unknown fields]='F29 "cursor":""'
	[end fails]=F16
	[outlives its end]='F16 "way":"outlives","ms":14000'
	[line drops]='F13 "bytes":60000,"drops":2'
	[taken back]='F15 "ms":8000'
	[extreme sshd]='{"when":{"op":"createPod"},"do":{"pod":{"door":"ssh_packet_4g"}}}'
)
EXTREMES="listPods:headers_100000 listPods:trailers_endless:1 listPods:json_wide:2 listPods:json_deep:3 listGpus:continue_endless
	deletePod:header_100k deletePod:chunk_huge:1 s3.*:header_10m"
extreme() { # extreme OP NAME [SKIP [TIMES]]
	add_rule "{\"skip\":${3:-0},\"times\":${4:-1},\"when\":{\"op\":\"$1\"},\"do\":{\"extreme\":\"$2\",\"after\":true}}"
}
EXTREME_HEAD=header_10m
CREATE=createPod NEXT_GPU=L40S HANGS_S=60 END_FAILS=6
FIRST="c_create_says_an_error_and_made_it c_create_is_cut_and_made_it c_create_is_answered_by_half c_never_listed c_a_list_that_never_is_whole
	c_taken_back_before_anybody_saw_it c_stuck_host_is_given_up_early_and_avoided c_pull_that_moves_is_waited_for c_stuck_before_its_image
	c_running_without_a_port c_dearer_than_it_was_offered c_so_dear_that_the_cap_would_break"

meter() { rp_control billing | jq -r '.[0].usd'; } # dollars of its pod until now
wrong_key() { export RUNPOD_API_KEY=rpa_NOBODYKNOWSTHIS; }
is_avoided() {
	burst offers --json
	is "$(json '[.[] | select(.avoided) | .avoided.reason] | join(",")')" "it showed no GPU" "avoided"
}
looked_up_by_its_id() {
	[ "$(asked getPod '.key == "account"')" -ge 1 ] || complain "it was not asked for by its id"
	is "$(rp_control state | jq '[.pods[] | select(.ended_ms == null)] | length')" 0 "pods that live on, unlisted"
}
says_it_was_taken_back() { :; }
render() { # render [CONFIG...]
	rp_config "$@"
	burst run --json
}

# ---- creates ----

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
	has err.txt "runpod: the request is refused at each of its offers (2): check pod and providers.runpod"
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
c_no_money() {
	rp_fault F7 '"times":-1'
	render
	in_vain 3 0
	is "$(json .error.code)" balance code
	is "$(asked createPod)" 1 creates
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
c_container_cannot_be_made() {
	rp_fault F14
	render
	another_did "it failed to start"
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

# ---- at work ----

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
	slow_worker SLOW=0.3 MAX_BATCH=8
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
