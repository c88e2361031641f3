#!/bin/bash
# kubernetes_many.sh - more pods than anyone watches one by one: how often kubectl is started for them, and that none is left. They wait
# in the queue of the stand-in, so none has a container. MANY=200: so many of them; kubernetes_bed.sh has 200 on a real API server.
. "$(dirname "$0")/kubernetes_lib.sh"
MANY=${MANY:-40}

t_they_are_listed_and_released() {
	local from name
	cloud || return
	fault "create pods" '{"pod":{"unschedulable":"0/3 nodes are available: 3 Insufficient nvidia.com/gpu."}}' -1
	rendered 2
	wait_for 60 "a pod" pod_is phase Pending
	killed
	kb_control state | jq '.pods[0].object | del(.status)' >pod.json
	for name in $(seq -f '%016.0f' 2 "$MANY"); do
		left_behind "$name" <pod.json | curl -qsS -o /dev/null --data-binary @- "$KB_URL/api/v1/namespaces/default/pods" || complain "no pod can be made"
		echo "burst-$name" >>state/ledger.db.not
	done
	is "$(kb_pods | wc -l)" "$MANY" "pods"
	counted_kubectl
	from=$SECONDS
	LIMIT=300 burst reap
	is "$STATUS" 0 "reap ($(tail -n 2 err.txt | tr '\n' '|'))"
	echo "    $MANY pods released in $((SECONDS - from)) s: $(said_of_kubectls)"
	is "$(started 'delete .*/pods/')" "$MANY" "releases"
	[ "$(started 'get .*/pods$')" -le $((5 + SECONDS - from)) ] || complain "$(started 'get .*/pods$') requests for lists in $((SECONDS - from)) s"
	is "$(in_ledger "select sum(billed_ms) from pod")" 0 "what waiting cost"
	cloud_over
}

run_tests "$@"
