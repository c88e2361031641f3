# client.sh - burst as a client of the stand-in: `. tests/cloud/runpod/client.sh` after tests/e2e/lib.sh.
#
#   cloud, cloud_over       begin and end of a test with one stand-in; cloud skips the test where there can be none
#   rp_config KEY=VALUE;... burst.cfg for it; RUNPOD="..." and JOB="..." add to the groups, GPUS='"none"' is the list
#   and what common/client.sh has: cases, all_done, in_vain
# shellcheck shell=bash
# shellcheck source-path=SCRIPTDIR
. "$ROOT/tests/cloud/runpod/lib.sh"
# shellcheck source-path=SCRIPTDIR
. "$ROOT/tests/cloud/common/client.sh"
RTX4090='NVIDIA GeForce RTX 4090'

rp_config() {
	local gpus=${GPUS:-'"RTX 4090", "L40S"'}
	cat >burst.cfg <<-E
		provider = "runpod";
		gpu = [$gpus];
		volume = { name = "v"; size_gb = 10; create = true; };
		caps = { max_cost = ${MAX_COST:-2.00}; max_duration = "${DURATION:-10m}"; ${CAPS:-} };
		pod = { image = "${IMAGE:-host/tts:1}"; ${POD:-} };
		job = { name = "e2e"; type = "tts"; engine = "${ENGINE:-espeak}"; input = "script.jsonl"; voice = "en"; output = "out"; ${JOB:-} };
		providers = { runpod = { ${RUNPOD:-} }; };
		$*
	E
}

cloud() { # or the test is skipped
	local why
	why=$(rp_can) || { skip "$why"; return 1; }
	rp_start || return 1
	rp_control settings '{"quotas":{"minute":6000,"hour":60000,"day":600000}}' >/dev/null
}
cloud_over() { # what must be true at the end of every test
	is "$(rp_pods | wc -l)" 0 "pods that are left: $(rp_pods)"
	rp_invariants
	all_in_ledger
	rp_stop
}
all_in_ledger() { # every pod that ever was and that a list has shown: the answer to its create may have been lost
	# shellcheck disable=SC2046
	ids_in_ledger $(rp_control state | jq -r '.pods[] | select((.unasked | not) and .told).id')
}

# ---- what happened ----

pods_ever() { rp_control state | jq '.pods | length'; }
asked() { # asked OP [JQ CONDITION]: how many such requests
	rp_control requests | jq --arg op "$1" "[.[] | select(.op == \$op and (${2:-true}))] | length"
}
# ---- what the ledger says ----

all_paid_for() {
	paid_for < <(rp_control billing | jq -r '.[] | select(.unasked | not) | "\(.id) \(.seconds * 1000 | floor) \(.told)"')
}
no_secrets_in() { # no_secrets_in FILE...: also folders
	{
		printf '%s\n' "$RUNPOD_API_KEY" "$RUNPOD_S3_SECRET_KEY"
		rp_control state | jq -r '.pods[].key'
		rp_control requests | jq -r '.[] | .body | objects | .env.BURST_HOST_KEY_B64? // empty' | host_keys
	} >secrets
	untold "$@"
}

# ---- the words that scripts for every vendor use ----

VENDOR=runpod
vendor_config() { rp_config "$@"; }
pods_alive() { rp_pods; }
ids_ever() { rp_control state | jq -r '.pods[].id'; }
creates_ever() { cat c_*/cloud/requests.jsonl | grep -cE '"op":"(createPod|graphql:podRent)'; }
add_fault() { rp_fault "$@"; }
add_rule() { rp_control fault "$1" >/dev/null; }
unheard() { rp_control unheard "{\"ms\":$1}" >/dev/null; } # for so many ms it hears nobody
strike() { rp_control "pods/$1" "$2"; }                     # what happens to a pod: strike ID JSON
reclaim() { strike "$1" '{"preempt":"EXITED"}' >/dev/null; } # as a spot pod is
grace() { rp_control settings "{\"stop_grace_ms\":$1}" >/dev/null; } # between SIGTERM and the end of a pod
delayed_create() { add_rule "{\"when\":{\"op\":\"createPod\"},\"do\":{\"delay_ms\":$1}}"; }
create_has_begun() { rp_control state | jq -e '.faults[0].hits == 1'; }
