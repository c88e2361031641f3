# client.sh - burst as a client of the stand-in: `. tests/cloud/vast/client.sh` after tests/e2e/lib.sh.
#
#   cloud, cloud_over       begin and end of a test with one stand-in; cloud skips the test where there can be none
#   va_config KEY=VALUE;... burst.cfg for it; VAST="..." and JOB="..." add to the groups, GPUS='"L40S"' is the list
#   and what common/client.sh has: cases, all_done, in_vain
# shellcheck shell=bash
# shellcheck source-path=SCRIPTDIR
. "$ROOT/tests/cloud/vast/lib.sh"
# shellcheck source-path=SCRIPTDIR
. "$ROOT/tests/cloud/common/client.sh"

va_config() {
	local gpus=${GPUS:-'"RTX 4090", "L40S"'}
	cat >burst.cfg <<-E
		provider = "vast";
		gpu = [$gpus];
		caps = { max_cost = ${MAX_COST:-2.00}; max_duration = "${DURATION:-10m}"; ${CAPS:-} };
		pod = { image = "${IMAGE:-host/tts:1}"; ${POD:-} };
		job = { name = "e2e"; type = "tts"; engine = "${ENGINE:-espeak}"; input = "script.jsonl"; voice = "en"; output = "out"; ${JOB:-} };
		providers = { vast = { ${VAST:-} }; };
		$*
	E
}

cloud() { # or the test is skipped
	local why
	why=$(cloud_can) || { skip "$why"; return 1; }
	va_start
}
cloud_over() { # what must be true at the end of every test
	is "$(va_pods | wc -l)" 0 "pods that are left: $(va_pods)"
	va_invariants
	# shellcheck disable=SC2046
	ids_in_ledger $(va_control state | jq -r '.pods[] | select(.told).id')
	va_stop
}

# ---- what happened ----

pods_ever() { va_control state | jq '.pods | length'; }
asked() { # asked OP [JQ CONDITION]: how many such requests
	va_control requests | jq --arg op "$1" "[.[] | select(.op == \$op and (${2:-true}))] | length"
}
all_paid_for() {
	paid_for < <(va_control billing | jq -r '.[] | "\(.id) \(.seconds * 1000 | floor) \(.told)"')
}
PIECES='.[] | select(.op == "createInstance") | .body | objects | [.env | objects | to_entries[] | select(.key | startswith("BURST_P")).value | strings]'
no_secrets_in() { # no_secrets_in FILE...: also folders
	{
		echo "$VAST_API_KEY"
		va_control state | jq -r '.pods[].key'
		va_control requests | jq -r "$PIECES | .[] | select(length >= 20)"
		va_control requests | jq -r "$PIECES | join(\"\")" |
			while read -r packed; do base64 -d <<<"$packed" 2>/dev/null | gzip -dc 2>/dev/null | sed -n "s/^export BURST_HOST_KEY_B64=//p" | tr -d "'"; done | host_keys
	} >secrets
	untold "$@"
}

# ---- the words that scripts for every vendor use ----

VENDOR=vast NO_VOLUMES=yes NO_CPU_PODS=yes
# shellcheck disable=SC2016 # expanded on a pod
IS_FIRST='[ "$(hostname)" = C.30000000 ]'
# it is asked for its pods every 10 s
SEGMENTS=30 SLOW_S=3 WAIT=40s BOOT_LIMIT=20s
vendor_config() { va_config "$@"; }
pods_alive() { va_pods; }
ids_ever() { va_control state | jq -r '.pods[].id'; }
creates_ever() { cat c_*/cloud/requests.jsonl | grep -cE '"op":"createInstance"'; }
add_rule() { va_control fault "$1" >/dev/null; }
unheard() { va_control unheard "{\"ms\":$1}" >/dev/null; }      # for so many ms it hears no client
strike() { va_control "pods/$1" "$2"; }                          # what happens to a pod: strike ID JSON
reclaim() { strike "$1" '{"outbid":true}' >/dev/null; }          # as a spot pod is
grace() { va_control settings "{\"stop_grace_ms\":$1}" >/dev/null; } # between SIGTERM and the end of a pod
delayed_create() { add_rule "{\"when\":{\"op\":\"createInstance\"},\"do\":{\"delay_ms\":$1}}"; }
create_has_begun() { va_control state | jq -e '.faults[0].hits == 1'; }
