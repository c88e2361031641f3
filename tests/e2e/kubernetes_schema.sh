#!/bin/bash
# kubernetes_schema.sh - every request to the stand-in is one that Kubernetes has published: path, parameters, and all fields of its body,
# with every key of the config that comes to be in a Pod. Needs the OpenAPI files: `make kubernetes-bed` leaves them, or
# BURST_KUBERNETES_OPENAPI names their folder (api/openapi-spec/v3 of the source of Kubernetes).
. "$(dirname "$0")/kubernetes_lib.sh"
OPENAPI=${BURST_KUBERNETES_OPENAPI:-$ROOT/build/kubernetes-bed/openapi}

t_requests_are_published_ones() {
	[ -e "$OPENAPI/api__v1_openapi.json" ] || { skip "no OpenAPI files of Kubernetes: make kubernetes-bed, or BURST_KUBERNETES_OPENAPI=FOLDER"; return; }
	python3 -c 'import jsonschema' 2>/dev/null || { skip "no jsonschema (Debian package python3-jsonschema)"; return; }
	cloud || return
	kb_control nodes '[{"metadata":{"name":"node-s","labels":{"pool":"gpu","tier":"spot","cloud.google.com/gke-accelerator":"nvidia-l40s"}},"spec":{"taints":[{"key":"team","effect":"NoSchedule"}]},
		"status":{"allocatable":{"nvidia.com/gpu":"2"}}}]' >/dev/null
	script_lines 4
	KUBE='node_selector = ["pool=gpu"]; tolerations = ["team"]; spot_selector = ["tier=spot"]; spot_tolerations = ["spot=yes:NoSchedule"]; spot_prices = ["L40S=0.40"];
		runtime_class = "nvidia"; queue = "team-a"; priority_class = "low"; service_account = "burst"; user_namespaces = true; pull_secret = "registry";
		storage_class = "fast"; volume_access = "ReadWriteMany";' POD='cpu = 2; memory_gb = 4; disk_gb = 8;' GPUS='"L40S"' kb_config 'pods = 1; spot = true;'
	burst run --json
	all_done 4 1
	is "$(kb_control state | jq -r '.pods[0].object.spec | [.nodeSelector.tier, .priorityClassName, .hostUsers] | tostring')" '["spot","low",false]' "what the pod has of its config"
	burst doctor
	burst volume list
	"$BURST" logs >/dev/null 2>&1
	burst volume rm v --yes
	kb_control state >state.json
	python3 "$ROOT/tests/cloud/kubernetes/validate.py" "$OPENAPI" cloud/requests.jsonl state.json >said.txt 2>&1 || complain "$(head -n 3 said.txt | tr '\n' '|')"
	jq -c 'select(.op == "create pods") | .body.spec.zebra = 1' cloud/requests.jsonl >wrong.jsonl
	! python3 "$ROOT/tests/cloud/kubernetes/validate.py" "$OPENAPI" wrong.jsonl state.json >wrong.txt 2>&1 || complain "a field that no Pod has passes"
	tail -n 1 said.txt | sed 's/^/    /'
	has said.txt "create persistentvolumeclaims"
	has said.txt "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
	cloud_over
}

run_tests "$@"
