# random.sh - which faults the rounds of tests/e2e/vendor_random.sh draw at Vast.ai: of the API and of the instances.
# shellcheck shell=bash
# shellcheck disable=SC2034,SC2317 # used and called by common/random.sh
clear_faults() {
	curl -qsS -X DELETE "$VAST_API_URL/_control/faults" >/dev/null
	va_control settings '{"credit":25.5}' >/dev/null
}

# ---- what goes wrong ----

an_api_fault() {
	draw 22
	case $D in
	0) rule createInstance '{"status":500,"after":true}' ;;
	1) rule createInstance '{"reset":true,"after":true}' ;;
	2) rule createInstance '{"cut":60}' ;;
	3) rule createInstance '{"leaves":true,"error":"invalid_price","msg":"bid too low"}' ;;
	4 | 5) rule createInstance '{"status":410,"error":"no_such_ask","msg":"error 410/3907: no_such_ask"}' ;;
	6) rule 'createInstance|destroyInstance|listInstances' '{"status":429,"text":"API requests too frequent: endpoint threshold=2"}' ;;
	7) add_rule '{"times":-1,"when":{"op":"createInstance","gpu":"RTX 4090"},"do":{"status":403,"msg":"not your own"}}'; plan "  no RTX 4090" ;;
	8) rule destroyInstance '{"status":500}' ;;
	9) rule destroyInstance '{"reset":true,"after":true}' ;;
	10) rule listInstances '{"hide":true}' ;;
	11) rule listInstances '{"set":{"total_instances":99}}' ;;
	12) rule listInstances '{"set":{"next_token":"abc"}}' ;;
	13) rule 'listInstances|searchOffers' '{"cut":30}' ;;
	14) rule 'listInstances|searchOffers|showInstance' '{"status":200,"text":"<html>Welcome</html>"}' ;;
	15) rule 'listInstances|showInstance' '{"set":{"actual_status":"unknown"}}' ;;
	16) rule 'listInstances|showInstance' '{"set":{"actual_status":"rebooting","zebra":[1]}}' ;;
	17) rule '.*' '{"delay_ms":2500}' ;;
	18) rule 'listInstances|destroyInstance|createInstance|searchOffers' '{"status":503}' ;;
	19) rule createInstance '{"twin":true}' ;;
	20) rule 'destroyInstance' '{"cut":10}' ;;
	21) rule 'destroyInstance' '{"status":404,"error":"no_such_instance","msg":"Instance not found"}' ;;
	esac
}
quirk() { rule createInstance "{\"instance\":{$1}}"; }
# The list lags so long that a second pod of one create could not be known: either the one or the other.
a_lagging_list() { if one_in 2; then quirk '"hidden_ms":9000,"unlisted_ms":9000'; else quirk '"unlisted_ms":1000000000'; fi; }
a_pod_fault() {
	draw 13
	case $D in
	0) one_of provisioning loading error; quirk "\"stuck\":\"$D\"" ;;
	1) quirk '"no_ssh":true' ;;
	2) one_of reset silent; quirk "\"door\":\"$D\"" ;;
	3) quirk '"door":"wrong-key"' ;;
	4 | 5) draw 100000; quirk "\"drop_after_bytes\":$((20000 + D)),\"drop_times\":2" ;;
	6) quirk '"no_gpu":true' ;;
	7 | 8 | 9) draw 6; quirk "\"outbid_after_ms\":$((1500 + D * 1500))" ;;
	10) quirk '"outlives_ms":5000' ;;
	11) quirk '"denied_ms":5000' ;;
	12) quirk '"pull_ms":4000' ;;
	esac
}
a_refusal() {
	one_of credit rights
	if [ "$D" = credit ]; then
		va_control settings '{"credit":0}' >/dev/null
		plan "  no credit"
	else
		rule 'searchOffers|createInstance' '{"status":403,"error":"not_authorized","msg":"no right to this"}'
	fi
}

NOW_AND_THEN='spot = true;'
BLOWS_KNOWN=('{"drop_ssh":true}' '{"drop_ssh":true}' '{"kill":9}' '{"outbid":true}' '{"outbid":true}' '{"destroy":true}' '{"label":"mine"}')
what_goes_wrong() {
	an_api_fault
	! one_in 2 || an_api_fault
	! one_in 6 || a_lagging_list
	! one_in 2 || a_pod_fault
	! one_in 9 || a_refusal
}
