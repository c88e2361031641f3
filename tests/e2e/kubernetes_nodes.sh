#!/bin/bash
# kubernetes_nodes.sh - nodes that are lost under their pods: the kubelet answers no more, containers run on, and nobody confirms an end.
# The stand-in (tests/cloud/kubernetes), with the real kubectl between.
# shellcheck disable=SC2317 # c_ functions are called by names put together
. "$(dirname "$0")/kubernetes_lib.sh"

node_of() { kb_control state | jq -r --arg name "$1" '.pods[] | select(.name == $name).object.spec.nodeName'; }
lose_its_node() { # lose_its_node [JSON]: that of the one pod; its name in $POD
	POD=$(pod_name)
	kb_control "nodes/$(node_of "$POD")" "${1:-{\"lost\":true,\"unknown_after_ms\":3000\}}" >/dev/null
}
container_of() { kb_control state | jq -r --arg name "$1" '.pods[] | select(.name == $name).pid'; }
has_ended_itself() { [ "$(container_of "$POD")" = 0 ]; }

# The rest is rendered elsewhere. The lost pod's object is deleted by force once its node is known to be lost, and its container ends itself.
c_the_rest_goes_elsewhere() {
	LIMIT=240 rendered 12 'lease = "20s"; wait = "60s";'
	wait_for 60 "the first file" is_working
	lose_its_node
	burst_wait
	all_done 12
	has err.txt "pod $POD: node $(node_of "$POD") is lost, so its object was deleted by force"
	wait_for 60 "its container to end by itself" has_ended_itself
}
c_evicted_by_the_cluster() { # as it does with pods of lost nodes after some minutes
	rendered 12 'lease = "20s"; wait = "60s";'
	wait_for 60 "the first file" is_working
	lose_its_node '{"lost":true,"unknown_after_ms":1000,"evict_after_ms":1000}'
	burst_wait
	all_done 12
	wait_for 60 "its container to end by itself" has_ended_itself
}
# The node answers the cluster, and does not end the pod: that holds its GPU, so it is not forgotten.
c_a_node_that_does_not_end_its_pod() {
	fault "create pods" '{"pod":{"node_lost":true}}'
	rendered 12 'lease = "20s"; wait = "60s";'
	wait_for 60 "a pod" pod_is phase Running
	POD=$(pod_name)
	kill -INT "$PID"
	wait_for 90 "it to be asked for its end twice" was_asked_twice
	wait_for 60 "a list that shows its node's silence" a_list_shows_silence
	wait_for 30 "burst to leave at once" leaves
	burst_wait
	is "$STATUS" 9 "exit status ($(tail -n 2 err.txt | tr '\n' '|'))"
	has err.txt "a pod could not be confirmed gone: it may still be billing: node node-a does not confirm its end"
	has err.txt "burst reap $POD"
	is "$(asked "delete pods" '.url | endswith("=0")')" 0 "deletions by force"
	kb_control "pods/$POD" '{"confirm":true}' >/dev/null
	burst reap
	is "$STATUS" 0 "reap ($(tail -n 2 err.txt | tr '\n' '|'))"
}
leaves() { kill -INT "$PID" 2>/dev/null; sleep 0.2; ! running_as "$PID"; }
a_list_shows_silence() { # 15 s after the end of its grace
	local end
	end=$(date -d "$(kb_control state | jq -r --arg name "$POD" '.pods[] | select(.name == $name).object.metadata.deletionTimestamp')" +%s)
	[ "$(asked "list pods" ".at_ms > ($end + 16) * 1000")" -ge 1 ]
}
was_asked_twice() { [ "$(asked "delete pods")" -ge 2 ]; }
t_lost_nodes() { cases c_the_rest_goes_elsewhere c_a_node_that_does_not_end_its_pod c_evicted_by_the_cluster; }

run_tests "$@"
