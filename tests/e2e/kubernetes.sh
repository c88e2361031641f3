#!/bin/bash
# kubernetes.sh - pods on a Kubernetes cluster: the stand-in (tests/cloud/kubernetes), with the real kubectl between.
# shellcheck disable=SC2317 # c_ functions are called by names put together
. "$(dirname "$0")/kubernetes_lib.sh"

# ---- a run ----

c_two_pods_and_no_secret() {
	script_lines 30
	slow_worker SLOW=0.5 MAX_BATCH=1
	kb_config 'pods = 2; code = { path = "code"; };'
	no_volume
	burst run --goal time --json
	all_done 30 2
	is "$(json '[.pods[].billed_seconds > 0] | all')" true "billed seconds"
	# what others in the namespace can read, and what the API server's log would keep
	grep -v '"op":"exec"' cloud/requests.jsonl | grep -qE 'PRIVATE|HOST_KEY_B64","value' && complain "a secret is in a request"
	! grep -rqa "PRIVATE KEY" state || complain "a private key is left here"
	is "$(asked exec '(.command | join(" ")) | contains("keys")')" 2 "deliveries of keys"
}
c_the_quiz() {
	script_lines 300
	kb_config 'pods = 2;'
	no_volume
	burst run --json
	all_done 300 2
}
c_a_volume_that_one_pod_can_use() {
	script_lines 4
	kb_config 'pods = 2;'
	burst run --json
	all_done 4 1
	is "$(kb_control state | jq -r '.claims[].metadata.name')" v "claims"
	has err.txt "volume claim v is not ReadWriteMany: one pod at a time can use it"
	burst volume rm v --yes
	is "$STATUS" 0 "volume rm ($(tail -n 1 err.txt))"
}
t_the_suite_for_providers() {
	cloud || return
	kb_config
	BURST=$BURST timeout 100 "$ROOT/build/e2e/conform" kubernetes >said.txt 2>&1 || complain "$(grep -v '^\[' said.txt | head -n 3 | tr '\n' '|')"
	kb_invariants
	kb_stop
}
t_runs() { cases c_the_quiz c_two_pods_and_no_secret c_a_volume_that_one_pod_can_use; }

# ---- requests that fail ----

c_a_create_is_lost() { fault "create pods" '{"status":500,"after":true}'; one_pod; }
c_a_create_is_reset() { fault "create pods" '{"reset":true}'; one_pod; }
c_a_create_comes_too_soon() { fault "create pods" '{"status":429,"reason":"TooManyRequests","message":"slow down"}'; one_pod; }
c_lists_fail() { fault "list pods" '{"status":500}' 2; one_pod; }
c_a_list_is_no_list() { fault "list pods" '{"body":"{}"}' 2; one_pod; }
c_a_login_expires() { fault "list pods" '{"status":401,"reason":"Unauthorized","message":"Unauthorized"}'; one_pod; }
c_keys_do_not_arrive() { kb_fault '{"when":{"op":"exec"},"times":2,"do":{"status":500}}'; one_pod; }
c_keys_lose_their_end() { kb_fault '{"when":{"op":"exec"},"times":1,"do":{"exec":{"cut_after_bytes":100}}}'; one_pod; }
c_an_exec_says_nothing_of_its_end() { kb_fault '{"when":{"op":"exec"},"times":-1,"do":{"exec":{"no_status":true}}}'; one_pod; }
c_a_release_fails() { fault "delete pods" '{"status":500}' 2; one_pod; }
t_requests_fail() {
	cases c_a_create_is_lost c_a_create_is_reset c_a_create_comes_too_soon c_lists_fail c_a_list_is_no_list c_a_login_expires \
		c_keys_do_not_arrive c_keys_lose_their_end c_an_exec_says_nothing_of_its_end c_a_release_fails
}

# ---- pods that are lost ----

struck() { # struck JSON [ENDS]: one pod is, in the midst of its work, and another one finishes
	rendered 12
	wait_for 60 "the first file" is_working
	kb_control "pods/$(pod_name)" "$1" >/dev/null
	burst_wait
	all_done 12 2
}
c_preempted() { struck '{"disrupt":{"reason":"PreemptionByScheduler"}}'; }
c_preempted_and_its_object_stays() { struck '{"disrupt":{"reason":"EvictionByEvictionAPI","stays":true,"phase":"Succeeded"}}'; }
c_deleted_under_an_exec() { struck '{"delete":true}'; }
c_out_of_memory() { struck '{"disrupt":{"why":"OOMKilled","phase":"Succeeded","hard":true}}'; }
c_the_line_is_cut() {
	kb_fault '{"when":{"op":"exec"},"skip":1,"times":1,"do":{"exec":{"cut_after_bytes":60000}}}'
	rendered 12
	burst_wait
	all_done 12 1
}
t_pods_are_lost() { cases c_preempted c_preempted_and_its_object_stays c_deleted_under_an_exec c_out_of_memory c_the_line_is_cut; }

# ---- the queue ----

queued_for_good() { # queued_for_good JSON WORDS
	fault "create pods" "{\"pod\":$1}" -1
	script_lines 2
	kb_config 'pods = 1; wait = "6s";'
	no_volume
	burst run --json
	fails 4 "$2"
	is "$(json .cost_usd)" 0 cost
}
c_no_node_fits() { queued_for_good '{"unschedulable":"0/3 nodes are available: 3 Insufficient nvidia.com/gpu."}' .; }
# Kueue's gate is a wait in a queue: nothing bills, and the pod goes although Kueue's finalizer is on it.
c_kueue_admits_none() {
	kb_control kueue '{}' >/dev/null
	KUBE='queue = "team-a";' queued_for_good '{}' .
	is "$(kb_control state | jq -r '.pods[0].object.metadata.labels["kueue.x-k8s.io/queue-name"]')" team-a "its queue"
	wait_for 10 "Kueue to let its object go" no_objects # it has ended
}
no_objects() { [ -z "$(kb_pods)" ]; }
c_kueue_admits_late() {
	kb_control kueue '{"admit_after_ms":6000}' >/dev/null
	KUBE='queue = "team-a";' one_pod
	is "$(json '.pods[0].phases.queue_s >= 5')" true "seconds in the queue: $(json '.pods[0].phases.queue_s')"
	is "$(json '.pods[0] | .billed_seconds <= (.phases | add) - .phases.queue_s + 2')" true "billed seconds: $(json '.pods[0]')"
}
c_a_wait_that_ends() {
	fault "create pods" '{"pod":{"queue_ms":4000}}'
	one_pod
}
t_the_queue() { cases c_no_node_fits c_kueue_admits_none c_kueue_admits_late c_a_wait_that_ends; }

# ---- what a user can get wrong ----

wrong() { # wrong STATUS WORDS [CONFIG...]
	local status=$1 words=$2
	shift 2
	script_lines 2
	kb_config "pods = 1; wait = \"${WAIT:-3s}\";" "$@"
	no_volume
	burst run
	fails "$status" "$words"
}
c_an_unknown_context() { KUBERNETES_CONTEXT=nosuch wrong 2 'context "nosuch" does not exist.*kubectl config get-contexts'; }
c_no_context() { unset KUBERNETES_CONTEXT; wrong 3 "no context: name one of kubectl config get-contexts"; }
c_a_gpu_that_no_node_has() { GPUS='"H100"' wrong 4 "no node of the cluster has H100 for burst; its nodes have L40S, RTX 4090"; }
c_no_right_to_exec() {
	kb_control rights '{"pods/exec":[]}' >/dev/null
	burst doctor
	script_lines 2
	kb_config
	burst doctor
	has out.txt "bad  kubernetes: no right to create pods/exec: burst doctor --rights prints the Role"
}
c_no_right_to_exec_in_a_run() {
	kb_control rights '{"pods/exec":[]}' >/dev/null
	GPUS='"L40S"' WAIT=40s wrong 6 "its keys cannot be brought: no right to create pods/exec: burst doctor --rights prints the Role"
}
c_no_right_to_create() { kb_control rights '{"pods":["get","list"]}' >/dev/null; wrong 3 'cannot create resource "pods".*burst doctor --rights prints the Role'; }
c_no_right_to_list_nodes() { kb_control rights '{"nodes":[]}' >/dev/null; one_pod; }
c_a_quota() { fault "create pods" '{"status":403,"reason":"Forbidden","message":"pods \"x\" is forbidden: exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1"}' -1; wrong 4 "exceeded quota"; }
c_an_image_that_is_nowhere() { WAIT=30s IMAGE=nowhere/x:1 wrong 2 "nowhere/x:1.*not found"; }
c_a_claim_that_is_missing() {
	script_lines 2
	kb_config 'pods = 1;'
	sed -i 's/^volume.*/volume = { name = "nosuch"; };/' burst.cfg
	burst run
	fails 2 'no volume claim "nosuch"'
}
c_no_kubectl() {
	mkdir bin
	for tool in sh env ssh tar timeout; do ln -s "$(command -v $tool)" bin/; done
	script_lines 2
	kb_config
	no_volume
	BURST=$(command -v "$BURST") PATH=$PWD/bin burst run
	fails 2 "kubectl: no such program: kubectl 1.30 or newer is needed"
}
t_mistakes() {
	cases c_an_unknown_context c_no_context c_no_kubectl c_a_gpu_that_no_node_has c_no_right_to_exec c_no_right_to_exec_in_a_run c_no_right_to_create c_no_right_to_list_nodes c_a_quota \
		c_an_image_that_is_nowhere c_a_claim_that_is_missing
}

# ---- a client that dies ----

c_before_the_keys() { # the pod ends itself when its first lease would end
	kb_fault '{"when":{"op":"exec"},"times":-1,"do":{"status":500}}'
	rendered 2 'boot_limit = "20s";'
	wait_for 30 "a pod" pod_is phase Running
	killed
	wait_for 60 "the pod to end itself" pod_is phase Succeeded
	is "$(kb_control state | jq '.pods[0] | (.ended_ms - .created_ms) / 1000 | . > 15 and . < 35')" true "seconds until then"
	burst reap
}
c_while_it_renders() {
	rendered 12
	wait_for 60 "the first file" is_working
	killed
	burst resume --json
	all_done 12 1
}
c_while_it_waits() {
	fault "create pods" '{"pod":{"queue_ms":3600000}}'
	rendered 2
	wait_for 30 "a pod" pod_is phase Pending
	killed
	burst reap
	is "$STATUS" 0 "reap ($(tail -n 1 err.txt))"
}
t_the_client_dies() { cases c_before_the_keys c_while_it_renders c_while_it_waits; }

run_tests "$@"
