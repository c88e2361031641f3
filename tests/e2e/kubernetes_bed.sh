#!/bin/bash
# kubernetes_bed.sh - pods on a real Kubernetes of one node (tests/cloud/kubernetes/bed.sh), where its programs are: `make kubernetes-bed`
# compiles them, or BURST_KUBERNETES_BED names their folder.
. "$(dirname "$0")/lib.sh"
# shellcheck source-path=SCRIPTDIR
. "$ROOT/tests/cloud/kubernetes/client.sh"
k() { KUBECONFIG=$T/bed/admin.kubeconfig kubectl --context=bed "$@"; }
pods_now() { k get pods -l burst.dev/machine -o name | wc -l; }
no_pods() { [ "$(pods_now)" = 0 ]; }
bed_config() { # [CONFIG...]
	KUBE='image = "bed.test/debian:12";' IMAGE=bed.test/debian:12 GPUS='"L40S"' kb_config "$@"
	sed -i '/^volume/d' burst.cfg
}
slowly() { # SEGMENTS [CONFIG...]
	script_lines "$1"
	shift
	slow_worker SLOW=0.5 MAX_BATCH=2
	bed_config 'pods = 1; code = { path = "code"; };' "$@"
}
is_working() { file_count out 1; }
fresh() { rm -rf out code burst.cfg; }

the_least_role() { # what `burst doctor --rights` prints is enough, and without it doctor says what is missing
	export KUBECONFIG=$T/bed/weak.kubeconfig
	slowly 4
	burst doctor
	has out.txt "bad  kubernetes: no right to create pods/exec"
	"$BURST" doctor --rights | sed 's/name: NAME/name: weak/' | k apply -f - >applied.txt 2>&1 || complain "the Role: $(cat applied.txt)"
	burst doctor
	hasnt out.txt "no right"
	has out.txt "ok   kubernetes: the cluster would accept a pod"
	burst run --json
	is "$STATUS" 0 "a run with the least Role ($(tail -n 2 err.txt | tr '\n' '|'))"
	is "$(wavs)" 4 files
	fresh
	export KUBECONFIG=$T/bed/admin.kubeconfig
}
the_suite() {
	bed_config
	BURST=$BURST timeout 100 "$ROOT/build/e2e/conform" kubernetes >said.txt 2>&1 || complain "$(grep -v '^\[' said.txt | head -n 3 | tr '\n' '|')"
}
the_api_server_is_killed() {
	slowly 20
	burst_bg run --json
	wait_for 60 "the first file" is_working
	kill -9 "$(pgrep -f "kube-apiserver.*secure-port=${PORT:-17443}")"
	burst_wait
	is "$STATUS" 0 "a run whose API server was killed ($(tail -n 2 err.txt | tr '\n' '|'))"
	is "$(wavs)" 20 files
	fresh
}
it_is_preempted() {
	k create priorityclass high --value=1000 >/dev/null
	slowly 20 'wait = "60s";'
	burst_bg run --json
	wait_for 60 "the first file" is_working
	k create -f - >/dev/null <<-'E'
		{"apiVersion":"v1","kind":"Pod","metadata":{"name":"other"},"spec":{"priorityClassName":"high","restartPolicy":"Never","terminationGracePeriodSeconds":1,
		"activeDeadlineSeconds":15,"containers":[{"name":"main","image":"bed.test/debian:12","command":["sleep","15"],"resources":{"limits":{"nvidia.com/gpu":"2"}}}]}}
	E
	burst_wait
	is "$STATUS" 0 "a run that was preempted ($(tail -n 2 err.txt | tr '\n' '|'))"
	is "$(wavs)" 20 files
	is "$(json '.pods | length')" 2 pods
	k delete pod other --grace-period=0 --force >/dev/null 2>&1
	fresh
}

# ---- slices, and nodes in pages ----

# The node has a slice as NVIDIA's device plugin shows it (strategy mixed), behind 210 nodes that are on paper only: a page has 200.
a_slice_on_the_second_page() {
	local list
	jq -n '{apiVersion: "v1", kind: "List", items: [range(210) | {apiVersion: "v1", kind: "Node", metadata: {name: "a-\(.)", labels: {type: "paper"}}}]}' |
		k create -f - >/dev/null
	k label node localhost nvidia.com/mig-1g.10gb.product=NVIDIA-H100-80GB-HBM3-MIG-1g.10gb >/dev/null
	for list in capacity allocatable; do
		k patch node localhost --subresource=status --type=json -p "[{\"op\":\"add\",\"path\":\"/status/$list/nvidia.com~1mig-1g.10gb\",\"value\":\"1\"}]" >/dev/null
	done
	script_lines 4
	slow_worker
	KUBE='image = "bed.test/debian:12";' IMAGE=bed.test/debian:12 GPUS='"H100 MIG 1g.10gb"' kb_config 'pods = 1; code = { path = "code"; };'
	sed -i '/^volume/d' burst.cfg
	burst_bg run --json
	wait_for 60 "a pod" there_are 1
	is "$(k get pods -l burst.dev/machine -o json | jq -c '.items[0].spec.containers[0].resources.limits')" '{"nvidia.com/mig-1g.10gb":"1"}' "what it asks for"
	burst_wait
	is "$STATUS" 0 "a run on a slice ($(tail -n 2 err.txt | tr '\n' '|'))"
	is "$(json '.pods[0].gpu')" "H100 SXM MIG 1g.10gb" "its GPU"
	is "$(wavs)" 4 files
	k delete nodes -l type=paper >/dev/null
	fresh
}

# ---- objects ----

# Each key of the config that comes to be in a Pod, as the API server itself takes it: doctor's trial and the pod's create are strict.
every_key() {
	k create priorityclass low --value=1 >/dev/null
	k create serviceaccount burst >/dev/null
	k create -f - >/dev/null <<-'E'
		{"apiVersion":"node.k8s.io/v1","kind":"RuntimeClass","metadata":{"name":"plain"},"handler":"runc"}
	E
	k create -f - >/dev/null <<-E
		{"apiVersion":"v1","kind":"PersistentVolume","metadata":{"name":"disk"},"spec":{"capacity":{"storage":"30Gi"},"accessModes":["ReadWriteMany"],
		"storageClassName":"fast","hostPath":{"path":"$T/bed/disk","type":"DirectoryOrCreate"}}}
	E
	k label node localhost pool=gpu tier=spot >/dev/null
	script_lines 4
	slow_worker
	KUBE='image = "bed.test/debian:12"; node_selector = ["pool=gpu"]; tolerations = ["team", "dedicated=gpu:NoSchedule"]; spot_selector = ["tier=spot"];
		spot_tolerations = ["spot:NoExecute"]; spot_prices = ["L40S=0.40"]; runtime_class = "plain"; priority_class = "low"; service_account = "burst";
		pull_secret = "registry"; storage_class = "fast"; volume_access = "ReadWriteMany"; queue = "team-a";' \
		IMAGE=bed.test/debian:12 POD='cpu = 1; memory_gb = 1;' GPUS='"L40S"' kb_config 'pods = 1; spot = true; code = { path = "code"; };'
	burst doctor
	has out.txt "ok   kubernetes: the cluster would accept a pod"
	burst run --json
	is "$STATUS" 0 "a run with every key ($(tail -n 2 err.txt | tr '\n' '|'))"
	is "$(json '.pods[0].spot')" true "spot"
	burst volume rm v --yes
	is "$STATUS" 0 "volume rm ($(tail -n 1 err.txt))"
	"$BURST" doctor --rights | k apply --validate=strict --dry-run=server -f - >applied.txt 2>&1 || complain "the Role: $(cat applied.txt)"
	fresh
}

# ---- many pods ----

# KWOK's pods run no container: this shows what listing and releasing 200 of them costs, in kubectls and seconds.
# One is rented by burst; the others are copies, as if a machine had left them.
many_pods() {
	local from n path=$PATH
	[ -x "$BED/bin/kwok" ] || { echo "    no KWOK (make kubernetes-bed): many pods were left out"; return; }
	"$BED/bin/kwok" --kubeconfig "$T/bed/admin.kubeconfig" --config "$ROOT/tests/cloud/kubernetes/kwok.yaml" --manage-all-nodes=false \
		--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake --node-ip=127.0.0.1 --node-port=$((${PORT:-17443} + 6)) \
		--server-address="127.0.0.1:$((${PORT:-17443} + 6))" --tls-cert-file="$T/bed/kubelet.crt" --tls-private-key-file="$T/bed/kubelet.key" >kwok.txt 2>&1 &
	local kwok=$!
	jq -n '{apiVersion: "v1", kind: "List", items: [range(25) | {apiVersion: "v1", kind: "Node",
		metadata: {name: "fake-\(.)", annotations: {"kwok.x-k8s.io/node": "fake"}, labels: {type: "fake", "nvidia.com/gpu.product": "NVIDIA-L40S", "nvidia.com/gpu.memory": "46068"}},
		spec: {taints: [{key: "fake", effect: "NoSchedule"}]},
		status: ({cpu: "64", memory: "512Gi", pods: "110", "nvidia.com/gpu": "8", "ephemeral-storage": "900Gi"} | {capacity: ., allocatable: .})}]}' | k create -f - >/dev/null
	wait_for 30 "KWOK's nodes" fakes_are_ready
	script_lines 2
	slow_worker SLOW=600 MAX_BATCH=1
	KUBE='image = "x"; node_selector = ["type=fake"]; tolerations = ["fake"];' IMAGE=x GPUS='"L40S"' kb_config 'pods = 1; code = { path = "code"; };'
	sed -i '/^volume/d' burst.cfg
	burst_bg run
	wait_for 60 "a pod" there_are 1
	kill -9 "$PID"
	burst_wait 2>/dev/null
	k get pods -l burst.dev/machine -o json | jq '.items[0] | del(.status)' >pod.json
	for n in $(seq -f '%016.0f' 2 200); do left_behind "$n" <pod.json; done | jq -s '{apiVersion: "v1", kind: "List", items: .}' | k create -f - >created.txt 2>&1 ||
		complain "no 200 pods: $(tail -n 1 created.txt)"
	wait_for 60 "200 pods to run" all_run 200
	echo "    a list of $(pods_now) pods has $(k get --raw "/api/v1/namespaces/default/pods?labelSelector=burst.dev%2Fmachine" | wc -c) bytes"
	counted_kubectl
	from=$SECONDS
	LIMIT=200 burst reap
	is "$STATUS" 0 "reap of 200 pods ($(tail -n 2 err.txt | tr '\n' '|'))"
	echo "    200 pods released in $((SECONDS - from)) s: $(said_of_kubectls)"
	PATH=$path
	is "$(pods_now)" 0 "pods left of 200"
	kill $kwok
	wait $kwok 2>/dev/null
	k delete nodes -l type=fake >/dev/null
	fresh
}
fakes_are_ready() { [ "$(k get nodes -l type=fake -o json | jq '[.items[].status.conditions[]? | select(.type == "Ready" and .status == "True")] | length')" = 25 ]; }
all_run() { [ "$(k get pods -l burst.dev/machine --field-selector=status.phase=Running -o name | wc -l)" = "$1" ]; }
there_are() { [ "$(pods_now)" -ge "$1" ]; }

# ---- its node is lost ----

# The one node: so the rest cannot go elsewhere, and the run ends. Last of all, since the bed is of no use afterwards.
the_kubelet_dies() {
	local pod
	slowly 20 'lease = "20s"; wait = "10s";'
	LIMIT=240 burst_bg run --json
	wait_for 60 "the first file" is_working
	pod=$(k get pods -l burst.dev/machine -o name | cut -d/ -f2)
	kill -9 "$(pgrep -f "^kubelet .*--root-dir=$T/bed/kubelet")"
	burst_wait
	case $STATUS in 1 | 4) ;; *) complain "exit $STATUS ($(tail -n 2 err.txt | tr '\n' '|'))" ;; esac
	has err.txt "pod $pod: node localhost is lost, so its object was deleted by force"
	is "$(pods_now)" 0 "pods after it"
	wait_for 30 "its container to end by itself" only_pauses
	burst reap
	is "$STATUS" 0 "reap ($(tail -n 2 err.txt | tr '\n' '|'))"
	fresh
}
only_pauses() { # of all that runs in pods
	[ -z "$(find /sys/fs/cgroup/memory/burst-bed /sys/fs/cgroup/burst-bed -name cgroup.procs -exec cat {} + 2>/dev/null | sort -u | xargs -rI{} cat /proc/{}/comm 2>/dev/null | grep -vx pause)" ]
}

bed_up() {
	local why
	why=$(bed_can) || { skip "$why"; return 1; }
	bash "$ROOT/tests/cloud/kubernetes/bed.sh" up "$T/bed" "$BED" 2>bed.txt || { complain "it does not come up: $(tail -n 3 bed.txt | tr '\n' '|')"; return 1; }
	export KUBERNETES_CONTEXT=bed KUBECONFIG=$T/bed/admin.kubeconfig
}
bed_down() {
	wait_for 30 "no pod to be left ($(k get pods -o name | tr '\n' ' '))" no_pods
	bash "$ROOT/tests/cloud/kubernetes/bed.sh" down "$T/bed" "$BED"
}
t_many_pods_and_a_lost_node() {
	bed_up || return
	every_key
	many_pods
	the_kubelet_dies
	bed_down
}
t_a_real_cluster() {
	bed_up || return
	the_least_role
	the_suite
	the_api_server_is_killed
	it_is_preempted
	a_slice_on_the_second_page
	bed_down
}

run_tests "$@"
