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

# ---- nodes whose cards are cut in slices ----

sliced_nodes() { # as NVIDIA's labels and device plugin show them with the strategies mixed and single, and GKE; the card between them is whole
	kb_control nodes '[
		{"metadata":{"name":"node-mixed","labels":{"nvidia.com/gpu.product":"NVIDIA-H100-80GB-HBM3","nvidia.com/mig-1g.10gb.product":"NVIDIA-H100-80GB-HBM3-MIG-1g.10gb"}},
			"status":{"allocatable":{"nvidia.com/gpu":"0","nvidia.com/mig-1g.10gb":"1"}}},
		{"metadata":{"name":"node-single","labels":{"nvidia.com/gpu.product":"NVIDIA-A100-SXM4-40GB-MIG-1g.5gb"}},"status":{"allocatable":{"nvidia.com/gpu":"7"}}},
		{"metadata":{"name":"node-whole","labels":{"cloud.google.com/gke-accelerator":"nvidia-l4"}},"status":{"allocatable":{"nvidia.com/gpu":"1"}}},
		{"metadata":{"name":"node-gke","labels":{"cloud.google.com/gke-accelerator":"nvidia-tesla-a100","cloud.google.com/gke-gpu-partition-size":"2g.10gb"}},
			"status":{"allocatable":{"nvidia.com/gpu":"3"}}}]' >/dev/null
}
runs_on() { # runs_on WISH GPU NODE RESOURCE
	local spec='.pods[-1].object.spec'
	script_lines 2
	GPUS="\"$1\"" kb_config 'pods = 1;'
	no_volume
	burst run --json
	all_done 2
	is "$(json '.pods[0].gpu')" "$2" "its GPU"
	is "$(kb_control state | jq -r "$spec.nodeName")" "$3" "its node"
	is "$(kb_control state | jq -c "$spec.containers[0].resources.limits")" "{\"$4\":\"1\"}" "what it asks for"
	rm -rf out
}
c_each_slice_is_offered_as_one() {
	sliced_nodes
	runs_on "H100 MIG 1g.10gb" "H100 SXM MIG 1g.10gb" node-mixed nvidia.com/mig-1g.10gb
	runs_on "A100 MIG 1g.5gb" "A100 40GB MIG 1g.5gb" node-single nvidia.com/gpu
	runs_on "A100 MIG 2g.10gb" "A100 40GB MIG 2g.10gb" node-gke nvidia.com/gpu
	runs_on L4 L4 node-whole nvidia.com/gpu
}
c_a_slice_is_not_its_card() {
	sliced_nodes
	GPUS='"A100"' wrong_gpu "no node of the cluster has A100 for burst; its nodes have A100 40GB MIG 2g.10gb, H100 SXM MIG 1g.10gb, A100 40GB MIG 1g.5gb, L4"
}
wrong_gpu() {
	script_lines 2
	kb_config 'pods = 1; wait = "3s";'
	no_volume
	burst run
	fails 4 "$1"
}
# A list of nodes comes in pages, to a run as to doctor.
c_a_card_on_the_last_page() {
	fault "list nodes" '{"page":1}' -1
	GPUS='"RTX 4090"' one_pod
	is "$(kb_control state | jq -r '.pods[0].object.spec.nodeName')" node-b "its node"
	burst doctor
	has out.txt "RTX 4090 has a price"
}
t_slices_and_pages() { cases c_each_slice_is_offered_as_one c_a_slice_is_not_its_card c_a_card_on_the_last_page; }

run_tests "$@"
