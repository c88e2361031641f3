# random.sh - which faults the rounds of tests/e2e/vendor_random.sh draw at RunPod: of the API, of the pods and of the storage.
# shellcheck shell=bash
# shellcheck disable=SC2317 # called by common/random.sh
clear_faults() {
	curl -qsS -X DELETE "$RUNPOD_API_URL/_control/faults" >/dev/null
	rp_control settings '{"s3_clock_ms":0}' >/dev/null
}

# ---- what goes wrong ----

quotas_of_the_fault() { rp_control settings '{"quotas":{"minute":60,"hour":3000,"day":50000}}' >/dev/null; }
an_api_fault() {
	draw 22
	case $D in
	0) fault F1 ;;
	1) fault F2 ;;
	2) rule createPod '{"cut":60}' ;;
	3) fault F3 ;;
	4 | 5) fault F5 ;;
	6) fault F6 '"op":"createPod|deletePod|listPods"'; quotas_of_the_fault ;;
	7) fault F8 "\"when\":{\"gpu\":\"$RTX4090\"}" ;;
	8 | 9) fault F16 ;;
	10) fault F16 '"way":"lingers","ms":7000' ;;
	11) fault F16 '"way":"appears","ms":9000' ;;
	12 | 13) fault F17 ;;
	14) fault F18 ;;
	15) fault F21 ;;
	16) fault F21 '"way":"invalid"' ;;
	17) fault F21 '"way":"html","op":"listGpus|listPods|listVolumes"' ;;
	18) fault F27 ;;
	19) one_of '' '"cursor":"",'; fault F29 "$D\"op\":\"listPods\"" ;;
	20) rule '.*' '{"delay_ms":2500}' ;;
	21) rule 'listPods|deletePod|createPod' '{"status":503,"detail":"upstream"}' ;;
	esac
}
# The list lags so long that a second pod of one create could not be known: either the one or the other.
a_lagging_list() { if one_in 2; then fault F28; else fault F3 '"list":true,"ms":9000'; fi; }
a_pod_fault() {
	draw 14
	case $D in
	0) one_of PROVISIONING STARTING; rule createPod "{\"pod\":{\"stuck\":\"$D\"}}" ;;
	1) fault F10 ;;
	2) one_of reset silent; fault F11 "\"door\":\"$D\"" ;;
	3) fault F12 ;;
	4 | 5) draw 100000; fault F13 "\"bytes\":$((20000 + D)),\"drops\":2" ;;
	6) fault F14 ;;
	7 | 8) draw 6; fault F15 "\"ms\":$((1500 + D * 1500))" ;;
	9) draw 6; fault F15 "\"ms\":$((1500 + D * 1500)),\"to\":\"TERMINATED\"" ;;
	10) fault F19 '"ms":5000' ;;
	11) one_of 0.7 9.5; fault F22 "\"cost\":$D" ;;
	12) one_of ro full; fault F26 "\"how\":\"$D\"" ;;
	13) fault F20 '"multiline":true,"cut":4'; fault F14 ;;
	esac
}
a_storage_fault() {
	draw 4
	case $D in
	0) fault F23 ;;
	1) fault F23 '"way":"loop"' ;;
	2) fault F23 '"way":"full"' ;;
	3)
		rp_control settings '{"s3_clock_ms":7200000}' >/dev/null
		plan "  F24: the storage's clock is off"
		;;
	esac
}
a_refusal() {
	if one_in 2; then fault F7; else rule 'listGpus|listVolumes|createPod' '{"status":403,"detail":"access denied"}'; fi
}

NOW_AND_THEN='spot = true;'
BLOWS_KNOWN=('{"drop_ssh":true}' '{"drop_ssh":true}' '{"kill":9}' '{"move_port":true}' '{"preempt":"EXITED"}' '{"preempt":"TERMINATED"}' '{"locked":true}')
what_goes_wrong() {
	an_api_fault
	! one_in 2 || an_api_fault
	! one_in 6 || a_lagging_list
	! one_in 2 || a_pod_fault
	! one_in 6 || a_storage_fault
	! one_in 9 || a_refusal
}
