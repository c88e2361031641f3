#!/bin/bash
# modal.sh - burst against a Modal of our own (tests/cloud/modal): its API is simulated, its sandboxes are real.
. "$(dirname "$0")/lib.sh"
. "$ROOT/tests/cloud/modal/client.sh"
. "$ROOT/tests/cloud/common/pooled.sh"
CONFIG=md_config

t_a_kept_pod_is_taken_over() {
	cloud || return
	kept_pod_is_taken_over
	cloud_over
}
sold_out() { md_fault exhausted '"times":-1,"message":"Workspace GPU limit reached"'; }
t_a_waiting_run_takes_a_pod() {
	cloud || return
	waiting_run_takes_pod
	cloud_over
}

t_renders_and_gives_back() {
	cloud || return
	script_lines 40
	slow_worker SLOW=0.6 # enough for a second one
	md_config 'pods = 2; code = { path = "code"; };'
	burst run --json --trace
	all_done 40 2
	is "$(json '.pods[0].gpu')" "L40S" "the GPU that it saw"
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
t_a_volume_is_warmed() { # from the smallest sandbox that does; what the job's own pods have says nothing there
	cloud || return
	script_lines 2
	POD='cpu = 8; memory_gb = 32;' JOB='setup = "echo x >$BURST_ENV/weights";' md_config
	burst volume create v
	is "$STATUS" 0 "exit status of create ($(tail -n 2 err.txt | tr '\n' '|'))"
	local size
	for size in "" "--memory 9"; do
		# shellcheck disable=SC2086
		burst volume warm v $size
		is "$STATUS" 0 "exit status of warm $size ($(tail -n 2 err.txt | tr '\n' '|'))"
		[ -n "$size" ] || has err.txt 'filled from a pod without a GPU for $0.2700 an hour'
	done
	is "$(md_control requests | jq -c '.[] | select((.method // .op) == "SandboxCreate") | (.message // .body).definition.resources | [.milliCpu, .memoryMb, .gpuConfig.count // 0]' |
		paste -sd ' ')" '[1000,4096,0] [1000,9216,0]' "what was rented"
	cloud_over
}
gpu_setup_job() { # gpu_setup_job SETUP: of a job that needs a GPU, by a setup that does not
	script_lines 6
	slow_worker SLOW=0.1
	JOB="$JOB"' vram_gb = 8; setup_needs_gpu = false; estimate = { each = 0.002; }; setup = "'"$1"'";' \
		md_config 'pods = 1; wait = "8s"; code = { path = "code"; };'
}
created() { # GPUs of each sandbox that was requested, in order
	md_control requests | jq -c '.[] | select((.method // .op) == "SandboxCreate") | (.message // .body).definition.resources.gpuConfig.count // 0' | paste -sd ' '
}
t_a_setup_that_fails_rents_no_gpu() {
	cloud || return
	gpu_setup_job 'echo burst: no such weights >&2; exit 1'
	burst run --json
	is "$STATUS" 1 "exit status ($(tail -n 2 err.txt | tr '\n' '|'))"
	is "$(created)" 0 "GPUs of what was rented"
	has err.txt 'volume v of modal could not be filled from a pod without a GPU (exit status 1): no GPU was rented'
	cloud_over
}
t_a_cpu_sandbox_that_is_lost_is_replaced_by_one() { # while it fills the volume
	cloud || return
	gpu_setup_job 'echo once >>$BURST_ENV/where; sleep 6'
	md_fault preempted '"ms":5000'
	LIMIT=240 burst run --json
	all_done 6 3
	is "$(created)" "0 0 1" "GPUs of what was rented"
	cloud_over
}
t_a_cpu_sandbox_that_is_lost_for_good_rents_no_gpu() { # no other one is free within `wait`
	cloud || return
	gpu_setup_job 'echo once >>$BURST_ENV/where; sleep 60'
	md_fault preempted '"ms":5000'
	md_fault never_scheduled '"skip":1,"times":-1'
	LIMIT=240 burst run --json
	is "$STATUS" 4 "exit status ($(tail -n 2 err.txt | tr '\n' '|'))"
	created >requests.txt
	hasnt requests.txt 1
	has err.txt 'volume v of modal: the pod without a GPU that filled it was lost, and no other was free in time: no GPU was rented'
	cloud_over
}
t_a_gpu_sandbox_never_downloads() { # a sandbox without a GPU fills the volume that the run makes; the next one mounts what it left
	cloud || return
	script_lines 6
	slow_worker SLOW=0.1
	JOB="$JOB"' vram_gb = 8; setup_needs_gpu = false; estimate = { each = 0.002; }; setup = "{ echo once; command -v nvidia-smi; true; } >$BURST_ENV/where";' \
		md_config 'pods = 1; code = { path = "code"; };'
	LIMIT=240 burst run --json
	all_done 6 2
	is "$(md_control requests | jq -c '.[] | select((.method // .op) == "SandboxCreate") | (.message // .body).definition.resources.gpuConfig.count // 0' |
		paste -sd ' ')" "0 1" "GPUs of what was rented"
	is "$(cat "$MD_STATE"/volumes/*/env/*/where)" once "setups, on a sandbox without a GPU"
	has err.txt 'volume v of modal lacks what the job'"'"'s setup makes: a pod without a GPU fills it before GPUs are rented'
	is "$(ledger "select group_concat(type, ' ') from (select type from run order by started_ms)")" "warm tts" "runs in the ledger"
	cloud_over
}
t_prices_that_are_withheld() { # list prices, said to be such; where none will do, nothing is made before that is known
	cloud || return
	script_lines 3
	GPUS='"H10O"' md_config
	burst run --json
	is "$STATUS" 2 "exit status with a misspelt GPU"
	CAPS='max_price_per_hour = 0.10;' GPUS='"L40S"' md_config 'wait = "2s";'
	burst run --json
	[ "$STATUS" != 0 ] || complain "it rents above its cap"
	is "$(md_control state | jq '.volumes | length')" 0 "volumes made in vain"
	md_fault unavailable '"op":"WorkspaceBillingRates","status":"PERMISSION_DENIED","times":-1'
	GPUS='"L40S"' md_config
	burst plan
	has err.txt 'using its list prices of 2026-09-01 (L40S $1.95 an hour); set providers.modal.gpu_prices'
	burst run --json
	all_done 3 1
	has err.txt 'using its list prices of 2026-09-01 (L40S $1.95 an hour)'
	is "$(md_control state | jq '.volumes | length')" 1 "volumes"
	cloud_over
}
answers() { # answers JSON [METHOD]: so it answers that call, or any, and what it knew of the account's limits is forgotten
	curl -qsS -X DELETE "$MD_SIDE_URL/_control/faults" >/dev/null
	md_control fault "{\"times\":-1,\"when\":{\"op\":\"${2:-.*}\"},\"do\":$1}" >/dev/null
	ledger "delete from fact where name not like 'volume%'"
}
t_reasons_are_told_apart() { # as in runpod.sh
	cloud || return
	script_lines 3
	md_config 'wait = "10m";'
	burst ledger
	local began=$SECONDS spent='{"status":"RESOURCE_EXHAUSTED","message":"workspace billing cycle spend limit reached"}' call
	answers "$spent"
	each_says 3 "workspace billing cycle spend limit reached (the workspace may not spend more: "
	for call in AppGetOrCreate VolumeGetOrCreate SandboxCreate; do # it is only refused what costs
		answers "$spent" $call
		LIMIT=60 burst run --json
		is "$STATUS $(json .error.code)" "3 balance" "no money at $call ($(tail -n 1 err.txt))"
		hasnt err.txt "next try in"
		hasnt err.txt "files in"
	done
	answers '{"status":"UNAUTHENTICATED","message":"Token missing"}'
	each_says 3 "(are MODAL_TOKEN_ID and MODAL_TOKEN_SECRET right?)"
	answers '{"status":"PERMISSION_DENIED","message":"not yours"}'
	each_says 3 "(the token has no access to this)"
	[ $((SECONDS - began)) -le 90 ] || complain "waiting could not help, and took $((SECONDS - began)) s"
	md_config 'wait = "12s";'
	sed -i '/volume = {/d' burst.cfg # which is looked for before a run begins
	answers '{"status":"UNAVAILABLE","message":"we are down"}'
	each_says 6 "we are down"
	has err.txt "asking again in"
	burst run
	has err.txt "provider failed: modal: "
	other_reasons MODAL_SERVER_URL "$MD_SIDE_URL/_control/faults"
	is "$(pods_ever)" 0 "sandboxes that ever were"
	cloud_over
}
t_a_long_retry_after_is_told() { # at once
	cloud || return
	script_lines 3
	md_config
	burst ledger
	answers '{"status":"RESOURCE_EXHAUSTED","message":"slow down","retry_after_s":3600}'
	local began=$SECONDS command
	for command in offers plan; do
		burst $command
		is "$STATUS" 6 "exit status of $command"
		grep -qE 'RESOURCE_EXHAUSTED: slow down \(to be asked again in (59m|1h)' err.txt || complain "$command: $(tail -n 1 err.txt)"
	done
	burst doctor
	grep -qE 'bad  modal: .*: slow down \(to be asked again in (59m|1h)' out.txt || complain "doctor: $(grep modal out.txt)"
	[ $((SECONDS - began)) -le 30 ] || complain "it took $((SECONDS - began)) s"
	cloud_over
}
# ---- the image ----
state_log() { cat "$BURST_STATE_DIR"/runs/*/log; }
t_image_is_built_once() {
	cloud || return
	script_lines 3
	md_config 'pods = 1;'
	burst run --json -v
	all_done 3
	is "$(asked ImageGetOrCreate) $(asked ImageFromId)" "1 0" "images built, looked for"
	has err.txt "modal: building the pods' image; it is kept there for later runs"
	is "$(find "$MD_STATE"/volumes -path '*/agent/*' | wc -l)" 0 "agents on the volume: it was in the image"
	rm -r out
	burst run --json -v
	all_done 3
	is "$(asked ImageGetOrCreate) $(asked ImageFromId) $(asked ImageJoinStreaming)" "1 1 1" "images built, looked for and joined by the second run"
	hasnt err.txt "building the pods' image"
	rm -r out
	md_control "images/$(md_control state | jq -r '.images[].id')" '{}' >/dev/null
	burst run --json
	all_done 3
	is "$(asked ImageGetOrCreate)" 2 "images built, one was gone"
	cloud_over
}
t_image_gone_before_the_create() {
	cloud || return
	script_lines 3
	md_config 'pods = 1;'
	burst run --json
	all_done 3
	rm -r out
	md_control fault '{"when":{"op":"SecretGetOrCreate"},"do":{"delay_ms":3000}}' >/dev/null
	local secrets
	secrets=$(asked SecretGetOrCreate)
	more_secrets() { [ "$(asked SecretGetOrCreate)" -gt "$secrets" ]; }
	burst run --json &
	local run=$!
	wait_for 20 "the run to have looked for its image" more_secrets
	md_control "images/$(md_control state | jq -r '.images[].id')" '{}' >/dev/null
	wait $run
	is "$(json .status)" done status
	is "$(wavs)" 3 files
	is "$(asked ImageGetOrCreate)" 2 "images built"
	is "$(pods_ever)" 2 "sandboxes of both runs"
	cloud_over
}
t_image_build_fails() {
	cloud || return
	script_lines 3
	md_config 'pods = 2;'
	md_fault image_result '"message":"E: Unable to locate package"'
	burst run --json
	in_vain 2 0
	is "$(json .error.code)" config "code"
	has err.txt "the image cannot be built: E: Unable to locate package; its log ends: Step "
	has err.txt " | Step 4: ENTRYPOINT []"
	is "$(asked ImageGetOrCreate)" 1 "builds"
	burst run --json # what failed is not kept
	all_done 3
	cloud_over
}
t_image_log() {
	cloud || return
	script_lines 3
	md_config 'pods = 1;'
	md_fault slow_image '"ms":14000'
	burst run --json -v &
	local run=$!
	wait_for 13 "the build's first words" grep -q "modal: image: Step 0: FROM" err.txt
	is "$(asked SandboxCreate)" 0 "creates while it is built"
	hasnt err.txt "Step 4: ENTRYPOINT"
	wait $run
	is "$(json .status)" done status
	has err.txt "modal: building the pods' image"
	has err.txt "modal: image: Step 4: ENTRYPOINT []"
	state_log >log.txt
	has log.txt "modal: image: Step 2: COPY /.burst-agent /usr/local/lib/burst/"
	has log.txt "modal: the image was built in "
	is "$(json '.pods[0].billed_seconds < 14')" true "it is not billed: $(json '.pods[0].billed_seconds') s"
	cloud_over
}
t_image_on_a_terminal() {
	command -v script >/dev/null || { skip "no script(1)"; return; }
	cloud || return
	script_lines 3
	md_config 'pods = 1;'
	md_fault slow_image '"ms":14000'
	script -qefc "stty cols 160; exec '$BURST' run" /dev/null </dev/null >term.txt 2>&1 &
	local run=$!
	wait_for 13 "the build below the progress" grep -q "modal: image: Step" term.txt
	wait $run
	is $? 0 "exit status ($(tail -n 2 term.txt))"
	is "$(wavs)" 3 files
	cloud_over
}
t_image_given_up() {
	cloud || return
	script_lines 3
	md_config 'pods = 1;'
	md_fault slow_image '"ms":60000'
	"$BURST" run --json >out.txt 2>err.txt &
	local run=$!
	wait_for 20 "the build to begin" grep -q "building the pods' image" err.txt
	kill -INT $run
	wait_for 5 "the run to end" eval "! running_as $run"
	wait $run
	is $? 130 "exit status"
	is "$(pods_ever)" 0 sandboxes
	cloud_over
}
run_tests "$@"
