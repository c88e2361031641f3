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
t_a_real_cluster() {
	local why
	why=$(bed_can) || { skip "$why"; return; }
	bash "$ROOT/tests/cloud/kubernetes/bed.sh" up "$T/bed" "$BED" 2>bed.txt || { complain "it does not come up: $(tail -n 3 bed.txt | tr '\n' '|')"; return; }
	export KUBERNETES_CONTEXT=bed
	the_least_role
	the_suite
	the_api_server_is_killed
	it_is_preempted
	wait_for 30 "no pod to be left ($(k get pods -o name | tr '\n' ' '))" no_pods
	bash "$ROOT/tests/cloud/kubernetes/bed.sh" down "$T/bed" "$BED"
}

run_tests "$@"
