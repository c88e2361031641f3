#!/bin/bash
# runpod.sh - burst against a RunPod of our own (tests/cloud/runpod): its API is simulated, its pods are real.
. "$(dirname "$0")/lib.sh"
. "$ROOT/tests/cloud/runpod/client.sh"

t_renders_and_gives_back() {
	cloud || return
	script_lines 12
	rp_config 'pods = 2;'
	burst run --json --trace
	all_done 12 2
	is "$(json '.pods[0].gpu')" "NVIDIA GeForce RTX 4090" gpu
	is "$(json '[.pods[].cost_usd > 0] | all')" true "it costs"
	cloud_over
}

run_tests "$@"
