# client.sh - burst as a client of the stand-in for Modal: `. tests/cloud/modal/client.sh` after tests/e2e/lib.sh.
#
#   cloud, cloud_over       begin and end of a test with one stand-in; cloud skips the test where there can be none
#                           (CLOUD_OPTIONS: for its server)
#   md_config KEY=VALUE;... burst.cfg for it; MODAL="..." and JOB="..." add to the groups, GPUS='"none"' is the list
#   and what common/client.sh has: cases, all_done, in_vain
# shellcheck shell=bash
# shellcheck source-path=SCRIPTDIR
. "$ROOT/tests/cloud/modal/lib.sh"
# shellcheck source-path=SCRIPTDIR
. "$ROOT/tests/cloud/common/client.sh"

md_config() {
	local gpus=${GPUS:-'"L40S", "A100"'}
	cat >burst.cfg <<-E
		provider = "modal";
		gpu = [$gpus];
		volume = { name = "v"; create = true; };
		caps = { max_cost = ${MAX_COST:-2.00}; max_duration = "${DURATION:-10m}"; ${CAPS:-} };
		pod = { ${IMAGE:+image = \"$IMAGE\";} ${POD:-} };
		job = { name = "e2e"; type = "tts"; engine = "${ENGINE:-espeak}"; input = "script.jsonl"; voice = "en"; output = "out"; ${JOB:-} };
		providers = { modal = { ${MODAL:-} }; };
		$*
	E
}

cloud() { # or the test is skipped
	local why
	why=$(md_can) || { skip "$why"; return 1; }
	# shellcheck disable=SC2086
	md_start ${CLOUD_OPTIONS:-}
}
cloud_over() { # what must be true at the end of every test
	is "$(md_sandboxes | wc -l)" 0 "sandboxes that are left: $(md_sandboxes)"
	md_invariants
	# shellcheck disable=SC2046
	ids_in_ledger $(md_control state | jq -r '.sandboxes[] | select((.unasked | not) and .told).id')
	md_stop
}

# ---- what happened ----

pods_ever() { md_control state | jq '.sandboxes | length'; }
asked() { # asked METHOD [JQ CONDITION]: how many such requests
	md_control requests | jq --arg m "$1" "[.[] | select((.method // .op) == \$m and (${2:-true}))] | length"
}

# ---- what the ledger says ----

all_paid_for() { # until their end was asked for: what they take for it the ledger holds as the vendor's own figure
	paid_for < <(md_control state | jq -r '.sandboxes[] | select(.started_ms and .ended_ms and (.unasked | not)) | "\(.id) \([.ending_ms - .started_ms, 0] | max | floor) \(.told)"')
}
no_secrets_in() { # no_secrets_in FILE...: also folders
	{
		echo "$MODAL_TOKEN_SECRET"
		md_control state | jq -r '.secrets[].host_key // empty' | host_keys
	} >secrets
	untold "$@"
}

# ---- the words that scripts for every vendor use ----

VENDOR=modal
vendor_config() { md_config "$@"; }
pods_alive() { md_sandboxes; }
ids_ever() { md_control state | jq -r '.sandboxes[].id'; }
creates_ever() { cat c_*/modal/requests.jsonl | grep -c '"op":"SandboxCreate"'; }
add_fault() { md_fault "$@"; }
add_rule() { md_control fault "$1" >/dev/null; }
unheard() { md_control unheard "{\"ms\":$1}" >/dev/null; } # for so many ms it hears nobody
strike() { md_control "sandboxes/$1" "$2"; }                # what happens to a pod: strike ID JSON
reclaim() { strike "$1" '{"end":"TERMINATED"}' >/dev/null; } # as a preemptible sandbox is
grace() { md_control settings "{\"stop_grace_ms\":$1}" >/dev/null; } # between SIGTERM and the end of a pod
delayed_create() { add_rule "{\"when\":{\"op\":\"SandboxCreate\"},\"do\":{\"delay_ms\":$1}}"; }
create_has_begun() { md_control state | jq -e '.faults[0].hits == 1'; }
