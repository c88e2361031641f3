#!/bin/bash
# runpod.sh - burst against a RunPod of our own (tests/cloud/runpod): its API is simulated, its pods are real.
. "$(dirname "$0")/lib.sh"
. "$ROOT/tests/cloud/runpod/lib.sh"

rp_config() { # rp_config KEY=VALUE;...: burst.cfg for the stand-in; RUNPOD="..." and JOB="..." add to the groups
	cat >burst.cfg <<-E
		provider = "runpod";
		gpu = ["RTX 4090", "L40S"];
		volume = { name = "v"; size_gb = 10; create = true; };
		caps = { max_cost = 2.00; max_duration = "10m"; };
		pod = { image = "${IMAGE:-host/tts:1}"; };
		job = { name = "e2e"; type = "tts"; engine = "${ENGINE:-espeak}"; input = "script.jsonl"; voice = "en"; output = "out"; ${JOB:-} };
		providers = { runpod = { ${RUNPOD:-} }; };
		$*
	E
}
cloud() { # or the test is skipped
	local why
	why=$(rp_can) || { skip "$why"; return 1; }
	rp_start || return 1
	rp_control settings '{"quotas":{"minute":6000,"hour":60000,"day":600000}}' >/dev/null
}
cloud_over() { # what must be true at the end of every test
	is "$(rp_pods | wc -l)" 0 "pods that are left: $(rp_pods)"
	rp_invariants
	rp_stop
}

t_renders_and_gives_back() {
	cloud || return
	script_lines 12
	rp_config 'pods = 2;'
	burst run --json --trace
	is "$STATUS" 0 "exit status ($(tail -n 2 err.txt))"
	is "$(wavs)" 12 files
	is "$(json .status)" done status
	is "$(json '[.pods[].released] | all')" true "all released"
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

run_tests "$@"
