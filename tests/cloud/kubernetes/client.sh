# client.sh - burst as a client of the stand-in: `. tests/cloud/kubernetes/client.sh` after tests/e2e/lib.sh.
#
#   cloud, cloud_over       begin and end of a test with one stand-in; cloud skips the test where there can be none
#   kb_config KEY=VALUE;... burst.cfg for it; KUBE="..." and JOB="..." add to the groups, GPUS='"none"' is the list
#   counted_kubectl, started PATTERN, busiest_minute      how often kubectl was started
#   and what common/client.sh has: cases, all_done, in_vain
# shellcheck shell=bash
# shellcheck source-path=SCRIPTDIR
. "$ROOT/tests/cloud/kubernetes/lib.sh"
# shellcheck source-path=SCRIPTDIR
. "$ROOT/tests/cloud/common/client.sh"

kb_config() {
	local gpus=${GPUS:-'"L40S", "RTX 4090"'}
	mkdir -p "$XDG_CONFIG_HOME/burst"
	cat >"$XDG_CONFIG_HOME/burst/burst.cfg" <<-E
		providers = { kubernetes = { prices = ["L40S=1.10", "RTX 4090=0.60", "none=0.05"]; ${KUBE:-} }; };
	E
	cat >burst.cfg <<-E
		provider = "kubernetes";
		gpu = [$gpus];
		volume = { name = "v"; create = true; };
		caps = { max_cost = ${MAX_COST:-2.00}; max_duration = "${DURATION:-10m}"; ${CAPS:-} };
		pod = { image = "${IMAGE:-host/tts:1}"; ${POD:-} };
		job = { name = "e2e"; type = "tts"; engine = "${ENGINE:-espeak}"; input = "script.jsonl"; voice = "en"; output = "out"; ${JOB:-} };
		$*
	E
}

cloud() { # or the test is skipped
	local why
	why=$(kb_can) || { skip "$why"; return 1; }
	kb_start
}
cloud_over() { # what must be true at the end of every test
	is "$(kb_pods | wc -l)" 0 "pods that are left: $(kb_pods)"
	kb_invariants
	# shellcheck disable=SC2046
	ids_in_ledger $(kb_control state | jq -r '.pods[].name')
	kb_stop
}
pods_ever() { kb_control state | jq '.pods | length'; }
asked() { # asked OP [JQ CONDITION]: how many such requests
	kb_control requests | jq --arg op "$1" "[.[] | select(.op == \$op and (${2:-true}))] | length"
}
all_paid_for() { # a cluster writes no bills: from the choice of a node to the end of its container, in whole seconds as its objects have them
	paid_for < <(kb_control state | jq -r '.pods[] | select(.scheduled_ms > 0) | "\(.name) \(((.ended_ms / 1000 | floor) - (.scheduled_ms / 1000 | floor)) * 1000) true"')
}
no_secrets_in() { # no_secrets_in FILE...: also folders. What a pod was brought by kubectl exec is told nobody else
	: >secrets
	! grep -rqaE "PRIVATE KEY|LS0tLS1CRUdJTiBPUEVOU1NI" -- "$@" || complain "a private key is left in $(grep -rlaE "PRIVATE KEY|LS0tLS1CRUdJTiBPUEVOU1NI" -- "$@" | head -n 1)"
}
# counted: from now on each start of kubectl is a line "SECONDS VERB PATH" in $T/kubectls
counted_kubectl() {
	local real
	real=$(command -v kubectl)
	mkdir -p "$T/bin"
	cat >"$T/bin/kubectl" <<-E
		#!/bin/bash
		for word; do case \$word in create | get | delete | exec) verb=\$word ;; /*) path=\${word%%\?*} ;; esac; done
		echo "\$EPOCHSECONDS \$verb \${path:-}" >>'$T/kubectls'
		exec '$real' "\$@"
	E
	chmod 755 "$T/bin/kubectl"
	export PATH=$T/bin:$PATH
}
started() { grep -cE "^[0-9]+ $1" "$T/kubectls"; } # started PATTERN: "create .*/pods", "get .*/pods"
said_of_kubectls() { echo "$(started 'get .*/pods$') requests for lists, $(started 'delete .*/pods/') deletions, $(started .) kubectls, at most $(busiest_minute) a minute"; }
left_behind() { # left_behind ATTEMPT: of a pod's object on stdin, another one that a machine which is no more has left
	jq -c --arg attempt "$1" '.metadata |= {name: "burst-\($attempt)", labels: (.labels + {"burst.dev/attempt": $attempt, "burst.dev/machine": "00000000000000aa"}),
		annotations: (.annotations + {"burst.dev/hard-end": "1700000000"})} | del(.spec.nodeName)'
}
busiest_minute() { awk '{n[int($1 / 60)]++} END {for (m in n) if (n[m] > most) most = n[m]; print most + 0}' "$T/kubectls"; }

# ---- the words that scripts for every vendor use ----

# shellcheck disable=SC2034 # for vendor_kill.sh
VENDOR=kubernetes REQUESTS=order # each is a kubectl
vendor_config() { KUBE="volume_access = \"ReadWriteMany\"; ${KUBE:-}" kb_config "$@"; }
pods_alive() { kb_pods; }
ids_ever() { kb_control state | jq -r '.pods[].name'; }
add_rule() { kb_control fault "$1" >/dev/null; }
strike() { kb_control "pods/$1" "$2"; }                       # what happens to a pod: strike ID JSON
reclaim() { strike "$1" '{"disrupt":{"reason":"PreemptionByScheduler"}}' >/dev/null; }
delayed_create() { add_rule "{\"when\":{\"op\":\"create pods\"},\"do\":{\"delay_ms\":$1}}"; }
create_has_begun() { kb_control state | jq -e '.faults[0].hits == 1'; }
