#!/bin/bash
# modal.sh - burst against a Modal of our own (tests/cloud/modal): its API is simulated, its sandboxes are real.
. "$(dirname "$0")/lib.sh"
. "$ROOT/tests/cloud/modal/client.sh"

t_renders_and_gives_back() {
	cloud || return
	script_lines 40
	slow_worker SLOW=0.3 # both find work
	md_config 'pods = 2; code = { path = "code"; };'
	burst run --json --trace
	all_done 40 2
	is "$(json '.pods[0].gpu')" "NVIDIA L40S" "the GPU that it saw"
	is "$(json '[.pods[].cost_usd > 0] | all')" true "it costs"
	cloud_over
}
t_three_at_once() { # no canary: all mount the volume before anything is on it, and each prepares what it does not see
	cloud || return
	mkdir code
	echo 'cat part >done-$BURST_INDEX' >code/work.sh
	echo a part >code/part
	md_config 'pods = 3; code = { path = "code"; };'
	sed -i '/^job = /d' burst.cfg
	echo 'job = { name = "e2e"; type = "command"; run = "sh work.sh"; outputs = ["done-*"]; output = "out"; };' >>burst.cfg
	burst run --json -v
	is "$STATUS" 0 "exit status ($(tail -n 2 err.txt | tr '\n' '|'))"
	is "$(cat out/done-* | sort | uniq -c | tr -s ' ')" " 3 a part" "what came home"
	is "$(pods_ever)" 3 "sandboxes that ever were"
	cloud_over
}
t_quiz_on_three_sandboxes() {
	cloud || return
	cp "$ROOT/config/examples/quiz/quiz.jsonl" script.jsonl
	md_config 'pods = 3;'
	burst run --json
	all_done 300
	is "$(jq -r .id out/manifest.jsonl | sort -u | wc -l)" 300 "lines of the manifest"
	cloud_over
}
run_tests "$@"
