# faults.sh - what tests/e2e/vendor_faults.sh needs of Vast.ai: rules of the stand-in, and what Vast.ai alone does to its clients.
# shellcheck shell=bash
# shellcheck disable=SC2034,SC2317 # used and called by vendor_faults.sh

create_does() { echo "{\"when\":{\"op\":\"createInstance\"},\"do\":{$1}}"; }
instance_is() { create_does "\"instance\":{$1}"; }
declare -A FAULTS=(
	[create says an error and made it]=$(create_does '"status":500,"after":true')
	[create is cut and made it]=$(create_does '"reset":true,"after":true')
	[create hangs]=$(create_does '"hang_ms":60000')
	[create is answered by half]=$(create_does '"cut":20')
	[sold out]=$(create_does '"status":410,"error":"no_such_ask","msg":"error 410/3907: no_such_ask Instance type is no longer available."')
	[one GPU is closed]='{"when":{"op":"createInstance","gpu":"RTX 4090"},"do":{"status":403,"msg":"not your own"}}'
	[wrong host key]=$(instance_is '"door":"wrong-key"')
	[no GPU]=$(instance_is '"no_gpu":true')
	[listed late]=$(instance_is '"hidden_ms":8000,"unlisted_ms":8000')
	[never listed]=$(instance_is '"unlisted_ms":1000000000')
	[unknown fields]='{"when":{"op":"listInstances|showInstance|createInstance|searchOffers"},"do":{"set":{"zebra":{"stripes":[1,2]}}}}'
	[end fails]='{"when":{"op":"destroyInstance"},"do":{"status":500}}'
	[outlives its end]=$(instance_is '"outlives_ms":14000')
	[line drops]=$(instance_is '"drop_after_bytes":60000,"drop_times":2')
	[taken back]=$(instance_is '"outbid_after_ms":14000')
	[extreme sshd]=$(instance_is '"door":"ssh_packet_4g"')
)
EXTREMES="listInstances:headers_100000 listInstances:trailers_endless:1 listInstances:json_wide:2 searchOffers:continue_endless
	destroyInstance:header_100k destroyInstance:chunk_huge:1"
extreme() { # extreme OP NAME [SKIP [TIMES]]
	add_rule "{\"skip\":${3:-0},\"times\":${4:-1},\"when\":{\"op\":\"$1\"},\"do\":{\"extreme\":\"$2\",\"after\":true}}"
}
EXTREME_HEAD=header_10m
CREATE=createInstance NEXT_GPU=L40S HANGS_S=60 END_FAILS=6
FIRST="c_create_says_an_error_and_made_it c_create_is_cut_and_made_it c_create_is_answered_by_half c_never_listed c_create_fails_and_leaves_an_instance"

meter() { va_control billing | jq -r '.[0].usd'; } # dollars of its pod until now
wrong_key() { export VAST_API_KEY=0000nobodyknowsthiskey0000; }
is_avoided() {
	burst offers --json
	is "$(json '[.[] | select(.avoided) | .avoided.reason] | join(",")')" "it showed no GPU" "avoided"
}
looked_up_by_its_id() {
	[ "$(asked showInstance '.key == "account"')" -ge 1 ] || complain "it was not asked for by its id"
	is "$(va_pods | wc -l)" 0 "pods that live on, unlisted"
}
says_it_was_taken_back() { has err.txt "Vast.ai stopped it: has the account credit?"; } # on demand; c_a_bid_is_outbid
render() { # render [CONFIG...]
	va_config "$@"
	burst run --json
}

# ---- creates ----

c_create_fails_and_leaves_an_instance() { # whose disk would bill: the refusal names it
	add_rule "$(create_does '"leaves":true,"error":"invalid_price","msg":"bid too low"')"
	render
	all_done 6 2
	is "$(asked destroyInstance '.key == "account"')" 2 "ends asked for"
	is "$(va_control state | jq '.pods[0].actual')" '"created"' "what was left"
}
c_what_a_create_leaves_cannot_be_ended_at_once() { # so lists find it
	add_rule "$(create_does '"leaves":true')"
	add_rule '{"times":6,"when":{"op":"destroyInstance"},"do":{"status":500}}'
	render
	all_done 6
	has err.txt "the reply to a create was lost"
}
c_two_instances_of_one_create() {
	add_rule "$(create_does '"twin":true')"
	render
	all_done 6 2
	has err.txt "has this run's marker but is not needed"
}
c_machine_leaves_before_the_hard_end() { # it is skipped without a request; the next one is taken
	va_control market '{"gpu":"RTX 4090","days":0.001}' >/dev/null
	render
	all_done 6 1
	is "$(gpus_used)" L40S "where it went"
	is "$(asked createInstance)" 1 creates
	grep -rq "takes the machine back .* before this pod's hard end" state/runs || complain "the run's log does not say why"
}
c_no_credit() {
	va_control settings '{"credit":0}' >/dev/null
	render
	in_vain 3 0
	is "$(asked createInstance)" 0 creates
	has err.txt 'the balance of $0.00 cannot pay'
}
c_too_frequent_without_retry_after() {
	va_control settings '{"intervals":{"createInstance":4.5,"listInstances":1,"showInstance":2,"destroyInstance":3}}' >/dev/null
	add_rule '{"times":2,"when":{"op":"createInstance"},"do":{"status":429,"text":"API requests too frequent: endpoint threshold=4.5"}}'
	local began=$SECONDS
	render
	all_done 6 1
	[ $((SECONDS - began)) -ge 9 ] || complain "it did not wait as long as the refusals said"
}
c_a_stranger_has_more_than_a_page() { # and ours is on the second one
	local i
	for i in $(seq 26); do
		va_control market '{"gpu":"RTX 3090","rentable":true}' >/dev/null
		va_api PUT /api/v0/asks/7000003/ '{"image":"host/x","label":"training","runtype":"args","args":["sleep","1"],"target_state":"stopped"}'
		[ "$HTTP" = 200 ] || complain "a stranger's instance: $HTTP $(cat reply.json)"
	done
	render
	all_done 6 27
	for i in $(va_pods | cut -d' ' -f1); do va_api DELETE "/api/v0/instances/$i/"; done
	touch state/ledger.db
	ids_ever >state/ledger.db.not # the strangers' are in no ledger, and need not be
}
c_image_that_cannot_be_pulled() {
	va_control settings '{"images":{"host/tts:1":"unpullable"}}' >/dev/null
	render 'wait = "5s";'
	has err.txt "toomanyrequests"
	is "$(wavs)" 0 files
}
c_heartbeat_is_lost() { # for a while nothing is known of it: its line works
	add_rule '{"times":2,"when":{"op":"listInstances|showInstance"},"do":{"set":{"actual_status":"unknown"}}}'
	render
	all_done 6 1
}
c_a_bid_is_outbid() {
	fault "taken back"
	slowly 20 'spot = true;'
	burst run --json
	all_done 20 2
	has err.txt "the vendor reclaimed it (preempted)"
}
c_spot_is_a_bid() {
	render 'spot = true;'
	all_done 6 1
	is "$(va_control state | jq '.pods[0].bid')" 0.22 "its bid"
	is "$(json '.pods[0].spot')" true spot
}
