# random.sh - which faults the rounds of tests/e2e/vendor_random.sh draw at Modal: of the API, of the wire, of the sandboxes and of
# the volume.
# shellcheck shell=bash
# shellcheck disable=SC2317 # called by common/random.sh
clear_faults() { curl -qsS -X DELETE "$MD_SIDE_URL/_control/faults" >/dev/null; }
OTHER_END=2/failed # of images that no sandbox can be made of

# ---- what goes wrong ----

# Any call but the create: whoever loses the answer to that waits a minute for a list that may lag.
ANY='(?!SandboxCreate$).*'
a_lost_create() {
	draw 8
	case $D in
	0) fault error_after ;;
	1) fault error_after '"status":"UNAVAILABLE"' ;;
	2) fault lost_reply ;;
	3) fault rst_stream '"op":"SandboxCreate"' ;;
	4) fault cut_stream '"op":"SandboxCreate","bytes":9' ;;
	5) fault no_status '"op":"SandboxCreate"' ;;
	6) fault unavailable '"op":"SandboxCreate"' ;;
	7) fault late_error '"op":"SandboxCreate"' ;;
	esac
}
an_api_fault() {
	draw 20
	case $D in
	0 | 1) fault exhausted ;;
	2) fault throttled "\"op\":\"$ANY\",\"retry_after_s\":0.7" ;;
	3) fault throttled '"op":"SandboxCreate|SandboxTerminate","retry_after_s":2' ;;
	4) fault unavailable "\"op\":\"$ANY\"" ;;
	5) fault unavailable "\"op\":\"$ANY\",\"status\":\"INTERNAL\"" ;;
	6) rule SandboxTerminate '{"status":"UNAVAILABLE"}' ;;
	7) rule SandboxTerminate '{"status":"INTERNAL","after":true}' ;;
	8) fault rst_stream "\"op\":\"$ANY\"" ;;
	9) fault cut_stream "\"op\":\"$ANY\"" ;;
	10) fault late_error "\"op\":\"$ANY\"" ;;
	11) fault no_status "\"op\":\"$ANY\"" ;;
	12) fault goaway "\"op\":\"$ANY\"" ;;
	13) one_of 502 503 504 429; fault http "\"op\":\"$ANY\",\"status\":$D" ;;
	14) fault compressed '"op":"SandboxListV2"' ;;
	15) fault short_token; rule AuthTokenGet '{"status":"UNAVAILABLE"}' ;;
	16) rule "$ANY" '{"delay_ms":2500}' ;;
	17) rule '.*' '{"wire":{"split":true},"strange":true}' ;;
	18) fault empty_list ;;
	19) fault refused '"when":{"gpu":"L40S"},"status":"FAILED_PRECONDITION"' ;;
	esac
}
a_sandbox_fault() {
	draw 16
	case $D in
	0) fault never_scheduled ;;
	1) fault never_starts ;;
	2) one_of no_tunnel tls_only; fault "$D" ;;
	3) one_of 2 1000; fault reset_conns "\"count\":$D" ;;
	4) fault late_sshd '"ms":3000' ;;
	5) fault wrong_key ;;
	6 | 7) draw 100000; fault drops "\"bytes\":$((20000 + D)),\"drops\":2" ;;
	8) fault init_failure ;;
	9 | 10) draw 6; fault preempted "\"ms\":$((1500 + D * 1500))" ;;
	11) draw 6; fault evicted "\"ms\":$((1500 + D * 1500))" ;;
	12) fault slow_end '"ms":6000' ;;
	13) fault late_schedule '"ms":4000' ;;
	14) fault lose_unsynced ;;
	15) fault sync_fails ;;
	esac
}
a_volume_fault() {
	draw 4
	case $D in
	0) fault dead_urls ;;
	1) rule 'Volume(Get|Put)Files?2' '{"status":"UNAVAILABLE"}' ;;
	2) rule 'Volume(Get|Put)Files?2' '{"wire":{"rst_after":0}}' ;;
	3) rule VolumeGetOrCreate '{"status":"INTERNAL","after":true}' ;;
	esac
}
an_image_fault() {
	one_of '{"image":{"build_ms":3000}}' '{"image":{"result":"TERMINATED"}}'
	rule ImageGetOrCreate "$D"
	one_of '{"rst_after":1}' '{"cut_after":40}'
	rule ImageJoinStreaming "{\"wire\":$D}"
}
a_refusal() {
	if one_in 2; then
		fault refused
	else
		rule 'VolumeGetOrCreate|AppGetOrCreate|SandboxCreate' '{"status":"PERMISSION_DENIED","message":"no access"}'
	fi
}
BLOWS_KNOWN=('{"drop":true}' '{"drop":true}' '{"kill":9}' '{"end":"TERMINATED","hard":true}' '{"end":"MEMORY_MANAGER_EVICTION","hard":true}'
	'{"end":"TIMEOUT"}' '{"quirks":{"fail_sync":true}}')
what_goes_wrong() {
	an_api_fault
	! one_in 2 || an_api_fault
	! one_in 4 || a_lost_create
	! one_in 8 || rule SandboxCreate '{"sandbox":{"unlisted_ms":9000}}'
	! one_in 2 || a_sandbox_fault
	! one_in 4 || a_volume_fault
	! one_in 6 || an_image_fault
	! one_in 9 || a_refusal
	! one_in 3 || md_control settings '{"list_tunnels":false}' >/dev/null
}
