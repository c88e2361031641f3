#!/bin/bash
# vendors.sh - one run, two vendors: what one has no capacity for, loses or makes too dear goes on at the other; caps hold across
# both; the files are the same. Both are stand-ins (tests/cloud), their pods are real.
. "$(dirname "$0")/lib.sh"
. "$ROOT/tests/cloud/runpod/client.sh"
. "$ROOT/tests/cloud/modal/lib.sh"

cloud() { # both of them, or the test is skipped
	local why
	why=$(rp_can && md_can) || { skip "$why"; return 1; }
	rp_start && md_start 2>/dev/null || return 1 # bash warns of a second coprocess
	rp_control settings '{"quotas":{"minute":6000,"hour":60000,"day":600000}}' >/dev/null
}
cloud_over() {
	is "$(rp_pods | wc -l)" 0 "pods that are left: $(rp_pods)"
	is "$(md_sandboxes | wc -l)" 0 "sandboxes that are left: $(md_sandboxes)"
	rp_invariants
	md_invariants
	# shellcheck disable=SC2046
	ids_in_ledger $(rp_control state | jq -r '.pods[].id') $(md_control state | jq -r '.sandboxes[].id')
	md_stop
	rp_stop
}
both() { # both SEGMENTS [KEYS]: a job that either can do
	script_lines "$1"
	shift
	slow_worker SLOW=0.4 MAX_BATCH=2
	GPUS='"L40S"' rp_config 'code = { path = "code"; };' "$@"
	sed -i 's/^provider = .*/provider = ["runpod", "modal"];/; /image = /d' burst.cfg
}
rendered_by() { # how many segments, by the manifest
	jq -r .provider out/manifest.jsonl | grep -c "$1"
}
all_home() { # all_home SEGMENTS
	is "$STATUS" 0 "exit status ($(tail -n 3 err.txt | tr '\n' '|'))"
	is "$(wavs)" "$1" files
	is "$(jq -r .id out/manifest.jsonl | sort -u | wc -l)" "$1" "lines of the manifest"
	jq -r '.sha256 + "  out/" + .file' out/manifest.jsonl | sha256sum -c --quiet >/dev/null 2>&1 || complain "a file differs from the manifest"
}
sold_out() { # sold_out GPU: at RunPod
	rp_control stock "{\"gpu\":\"$1\",\"free\":0}" >/dev/null
}

c_the_first_has_nothing() {
	both 10
	sold_out 'NVIDIA L40S'
	burst run --json
	all_home 10
	is "$(rendered_by modal)" 10 "segments of the second vendor"
	is "$(rp_control state | jq '.pods | length')" 0 "pods at the first"
}
c_the_first_fails_half_way() { # its pod is taken away, and there is no other
	both 40
	burst_bg run --json
	wait_for 60 "some files" file_count out 4
	rp_fault F5 '"times":99'
	rp_control "pods/$(rp_pods | cut -d' ' -f1)" '{"preempt":"EXITED"}' >/dev/null
	burst_wait
	all_home 40
	[ "$(rendered_by runpod)" -ge 4 ] || complain "the first vendor's work was thrown away: $(rendered_by runpod)"
	[ "$(rendered_by modal)" -ge 1 ] || complain "the second vendor did nothing"
	is "$(json '[.pods[].provider] | sort | join(" ")')" "modal runpod" "who was paid"
}
c_each_has_one() { # two pods are wanted, each vendor has one
	both 80 'pods = 2;'
	rp_control stock '{"gpu":"NVIDIA L40S","free":1}' >/dev/null
	burst run --json
	all_home 80
	is "$(json '[.pods[].provider] | sort | join(" ")')" "modal runpod" "who was paid"
	[ "$(rendered_by runpod)" -ge 5 ] && [ "$(rendered_by modal)" -ge 5 ] || complain "one of them idled: $(rendered_by runpod) $(rendered_by modal)"
}
c_the_second_fails() { # the other way round: what Modal loses goes on at RunPod
	both 40
	sed -i 's/^provider = .*/provider = ["modal", "runpod"];/' burst.cfg
	burst_bg run --json
	wait_for 60 "some files" file_count out 4
	md_fault exhausted '"times":99'
	md_control "sandboxes/$(md_sandboxes | cut -d' ' -f1)" '{"end":"TERMINATED"}' >/dev/null
	burst_wait
	all_home 40
	[ "$(rendered_by modal)" -ge 4 ] || complain "the first vendor's work was thrown away: $(rendered_by modal)"
}
c_a_key_is_refused() { # of one of them: the other one does it
	both 6
	RUNPOD_API_KEY=wrong-wrong-wrong-wrong burst run --json
	all_home 6
	is "$(rendered_by modal)" 6 "segments of the second vendor"
	has err.txt "runpod"
}
c_too_dear_at_the_first() {
	both 6
	sed -i 's/max_duration/max_price_per_hour = 3.40; max_duration/' burst.cfg
	rp_control stock '{"gpu":"NVIDIA L40S","price":3.50}' >/dev/null
	burst run --json
	all_home 6
	is "$(rendered_by modal)" 6 "segments of the second vendor"
	is "$(rp_control state | jq '.pods | length')" 0 "pods at the first"
}
c_caps_hold_across_both() { # what the first has cost is not there for the second
	local spent
	both 400
	sed -i 's/max_cost = 2.00/max_cost = 0.02/' burst.cfg
	burst_bg run --json
	wait_for 60 "some files" file_count out 4
	rp_fault F5 '"times":99'
	rp_control "pods/$(rp_pods | cut -d' ' -f1)" '{"preempt":"EXITED"}' >/dev/null
	burst_wait
	is "$STATUS" 5 "exit status ($(tail -n 2 err.txt | tr '\n' '|'))"
	spent=$(jq -n "$(rp_control billing | jq '[.[].usd] | add // 0') + $(md_control billing | jq '[.. | .usd? // empty] | add // 0')")
	[ "$(jq -n "$spent <= 0.02")" = true ] || complain "by the vendors' meters it cost $spent"
	[ "$(json '.cost_usd <= 0.02')" = true ] || complain "it cost $(json .cost_usd)"
	is "$(json '[.pods[].provider] | unique | join(" ")')" "modal runpod" "who was paid"
}
t_two_vendors() {
	cases c_the_first_has_nothing c_the_first_fails_half_way c_each_has_one c_the_second_fails c_a_key_is_refused c_too_dear_at_the_first \
		c_caps_hold_across_both
}
run_tests "$@"
