#!/bin/bash
# runpod.sh - burst against a RunPod of our own (tests/cloud/runpod): its API is simulated, its pods are real.
. "$(dirname "$0")/lib.sh"
. "$ROOT/tests/cloud/runpod/client.sh"

t_renders_and_gives_back() {
	cloud || return
	script_lines 40
	rp_slow_worker SLOW=0.3 # both find work
	rp_config 'pods = 2; code = { path = "code"; };'
	burst run --json --trace
	all_done 40 2
	is "$(json '.pods[0].gpu')" "NVIDIA GeForce RTX 4090" gpu
	is "$(json '[.pods[].cost_usd > 0] | all')" true "it costs"
	cloud_over
}

t_a_balance_below_the_cap() { # refused before anything is rented
	cloud || return
	script_lines 3
	rp_config
	rp_control settings '{"balance":1.25}' >/dev/null
	burst run --json
	is "$STATUS" 3 "exit status"
	has err.txt 'runpod: the balance of $1.25 cannot pay this run'"'"'s cap of $2.00: add credit, or lower caps.max_cost'
	is "$(json .error.code)" balance code
	is "$(rp_control state | jq '.pods | length')" 0 "pods that were made"
	cloud_over
}

t_no_secret_is_seen() {
	cloud || return
	script_lines 12
	rp_slow_worker SLOW=0.3
	rp_config 'code = { path = "code"; };'
	burst_bg run --json --trace -v
	while running_as "$PID"; do # every command line on this machine, the pods' included
		cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\0' '\n' >>cmdlines
		read -rt 0.1 <> <(:) || :
	done
	burst_wait
	all_done 12 1
	no_secrets_in cmdlines err.txt out.txt state out
	has cmdlines worker.sh
	has err.txt BURST_HARD_END
	cloud_over
}

run_tests "$@"
