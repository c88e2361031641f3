# faults_calls.sh - what any call to Modal may meet: errors, broken streams, slow images, lists that are refused. See faults.sh.
# shellcheck shell=bash
# shellcheck disable=SC2034,SC2317 # used and called by vendor_faults.sh

# ---- any call ----

CALLS="AuthTokenGet AppGetOrCreate VolumeGetOrCreate VolumePutFiles2 EnvironmentGetOrCreate ImageGetOrCreate SecretGetOrCreate SandboxList SandboxGetTunnels SandboxTerminate"
once_each() { # once_each DO: of each call that may be repeated, the first
	local op
	md_control settings '{"list_tunnels":false}' >/dev/null # they are to be asked for
	allow_volumes v
	md_call VolumeGetOrCreate '{"deploymentName":"v","objectCreationType":1,"version":2}' # or the first look for it fails by itself
	for op in $CALLS; do add_rule "{\"when\":{\"op\":\"$op\"},\"do\":$1}"; done
}
each_was_repeated() {
	local op
	all_done 6 1
	for op in $CALLS; do
		[ "$(repeats "$op")" = 1 ] || complain "$op: $(repeats "$op" 2>&1) repeats"
	done
	is "$(md_control state | jq '[.faults[].hits] | add')" "$(wc -w <<<"$CALLS")" "calls that failed"
}
c_14_once_each() {
	once_each '{"status":"UNAVAILABLE","message":"50% of it is down"}'
	HOW=--trace render
	each_was_repeated
	has err.txt "50% of it is down"
}
c_13_once_each() { # carried out, and nothing is made twice by that
	once_each '{"status":"INTERNAL","message":"internal error","after":true}'
	render
	each_was_repeated
	is "$(md_control state | jq '[(.apps | length), (.volumes | length), (.secrets | length)] | join(" ")')" '"1 1 1"' "apps, volumes, secrets"
}
c_14_in_trailers_once_each() {
	once_each '{"status":"UNAVAILABLE","wire":{"late_error":true}}'
	render
	each_was_repeated
}
c_stream_is_reset_once_each() {
	once_each '{"wire":{"rst_after":0}}'
	render
	each_was_repeated
}
c_reply_ends_in_its_head_once_each() {
	once_each '{"wire":{"cut_after":3}}'
	render
	each_was_repeated
}
c_connection_is_lost_once_each() {
	once_each '{"wire":{"reset":true}}'
	render
	each_was_repeated
}
c_503_of_a_proxy_once_each() {
	once_each '{"wire":{"http":503}}'
	render
	each_was_repeated
}
c_no_status_once_each() {
	once_each '{"wire":{"no_status":true}}'
	render
	each_was_repeated
}
c_put_off_once_each() {
	local op
	once_each '{"status":"RESOURCE_EXHAUSTED","message":"rate limited","retry_after_s":0.3}'
	render
	all_done 6 1
	for op in $CALLS; do is "$(repeats "$op" throttle-retry)" 1 "repeats of $op"; done
}
c_put_off_for_an_hour() {
	add_rule '{"times":-1,"when":{"op":"AppGetOrCreate"},"do":{"status":"RESOURCE_EXHAUSTED","message":"come back later","retry_after_s":3600}}'
	render 'wait = "5s";'
	[ "$STATUS" = 4 ] || [ "$STATUS" = 6 ] || complain "exit status $STATUS"
	is "$(pods_ever)" 0 "pods that ever were"
	has err.txt "come back later"
}
c_frames_in_pieces() {
	add_rule '{"times":-1,"do":{"wire":{"split":true}}}'
	render
	all_done 6 1
}
c_two_messages_in_one_piece() {
	add_rule '{"times":-1,"do":{"wire":{"merge":true}}}'
	render
	all_done 6 1
}
c_goaway_once_each() { # the call under way is to be carried to its end; some versions of libcurl lose its status
	once_each '{"wire":{"goaway":true}}'
	md_fault goaway '"op":"SandboxCreate"'
	render
	all_done 6 1
	is "$(asked SandboxCreate)" 1 creates
}
c_compressed_list() { # not read as if it were plain
	md_fault compressed '"op":"SandboxList"'
	render
	all_done 6 1
}
c_away_for_good() {
	add_rule '{"times":-1,"do":{"status":"UNAVAILABLE","message":"we are down"}}'
	render 'wait = "5s";'
	in_vain 6 0
	has err.txt "we are down"
}
c_short_tokens() { # of the session: a new one well before the old one's end, and no call that is refused
	md_fault short_token '"times":-1'
	md_fault late_schedule '"ms":9000' # it is listed again and again meanwhile
	script_lines 3
	md_config
	burst run --json
	all_done 3 1
	[ "$(asked AuthTokenGet)" -ge 4 ] || complain "only $(asked AuthTokenGet) tokens"
	is "$(md_control requests | jq '[.[] | select(.status == 16)] | length')" 0 "calls with a token that is over"
}

# ---- the image ----

c_image_is_built_slowly() {
	md_fault slow_image '"ms":3000'
	render
	all_done 6 1
}
c_image_stream_breaks() { # at once, in the middle, without its end
	md_fault slow_image '"ms":2000'
	md_fault rst_stream '"op":"ImageJoinStreaming","messages":1'
	md_fault cut_stream '"op":"ImageJoinStreaming","skip":1,"bytes":40'
	md_fault late_error '"op":"ImageJoinStreaming","skip":2'
	render
	all_done 6 1
	[ "$(asked ImageJoinStreaming)" -ge 4 ] || complain "only $(asked ImageJoinStreaming) streams"
}
c_image_is_begun_anew() {
	md_fault image_result '"result":"TERMINATED"'
	render
	all_done 6 1
	[ "$(asked ImageGetOrCreate)" -ge 2 ] || complain "it was asked for once"
}
c_image_cannot_be_built() {
	md_fault image_result '"message":"apt-get: no such thing"'
	render
	in_vain 2 0
	has err.txt "apt-get: no such thing"
	is "$(asked SandboxCreate)" 0 creates
}

# ---- lists ----

c_no_list_v2() { # the older call for it does
	md_fault lists_refused '"v2":true,"status":"UNIMPLEMENTED","times":-1'
	render
	all_done 6 1
	[ "$(asked SandboxList '.message.appId != ""')" -gt 0 ] || complain "the app was not listed by SandboxList"
}
c_no_list_without_an_app() {
	md_control settings '{"list_whole":false}' >/dev/null
	render
	all_done 6 1
	is "$(asked SandboxList)" 1 "lists of the whole environment"
	hasnt err.txt "refuses to list"
}
c_lists_are_refused() { # pods come up, and are proven gone, by their ids
	md_fault lists_refused '"times":-1'
	render
	all_done 6 1
	has err.txt "looked up one by one (SandboxWait, where that is refused TaskGetInfo)"
}
c_lists_and_waits_are_refused() {
	md_fault lists_refused '"op":"SandboxList(V2)?|SandboxWait","times":-1'
	render
	all_done 6 1
}
c_lists_are_refused_half_way() {
	script_lines 40
	slow_worker SLOW=0.5
	md_config 'code = { path = "code"; };'
	burst_bg run --json
	wait_for 60 "some files" file_count out 2
	md_fault lists_refused '"times":-1,"status":"PERMISSION_DENIED"'
	burst_wait
	all_done 40 1
}
