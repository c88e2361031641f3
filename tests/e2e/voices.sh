#!/bin/bash
# voices.sh - the Python workers under the real agent: the harness with a fake engine, and engines whose packages are there.
. "$(dirname "$0")/lib.sh"

fake_job() { # fake_job SEGMENTS [SETTING...]: settings are variables of tests/workers/engine_fake.py
	local count=$1
	shift
	script_lines "$count"
	mkdir -p code
	cp "$ROOT/tests/workers/engine_fake.py" code/
	ENGINE=fake
	printf 'export %s\n' "$@" >code/settings
	JOB='worker = ". \"$BURST_CODE/settings\"; exec python3 \"$BURST_KIT/burst_worker.py\" \"$BURST_CODE/engine_fake.py\""; check = { tries = 1; };'
	JOB+=" hang = \"2s\"; vram_gb = 0;"
	config 'code = { path = "code"; }; pods = 1;'
	sed -i 's/ voice = "en";//' burst.cfg
}
timings() { # timings FILTER: of the batches' lines in the log
	grep -ho '{"timing".*}' "$BURST_STATE_DIR"/runs/*/log | jq -cs "map(.timing) | $1"
}
in_log() { # in_log TEXT
	grep -qF -- "$1" "$BURST_STATE_DIR"/runs/*/log || complain "the log does not say \"$1\""
}

t_the_harness_renders_in_batches() {
	fake_job 35 CARD=24 BASE=3 SLOPE=1 ONCE=0.05 EACH=0.0002
	burst run --json
	is "$STATUS" 0 "exit status ($(tail -n 2 err.txt | tr '\n' '|'))"
	all_right 35
	# 3 go first; the probe found room for 16: 3 GiB + 1 GiB a segment in 92 % of 24 GiB
	is "$(timings 'map(.b) | join(" ")')" '"3 16 16"' "the batches"
	is "$(timings 'map(select(.tokens_ms < 50 or .total_ms < .tokens_ms)) | length')" 0 "batches without their times"
	in_log 'memory: 3.00 GiB + 1.000 GiB a segment of 24.0 GiB: batches of 16'
}
t_out_of_memory_is_mended_in_halves() {
	fake_job 19 CARD=24 BASE=3 SLOPE=1 MORE=1.8 # 16 take 32 GiB, 8 take 17
	burst run
	is "$STATUS" 0 "exit status ($(tail -n 2 err.txt | tr '\n' '|'))"
	all_right 19
	in_log 'out of memory with 16 segments: in two halves'
	is "$(timings 'map(.b) | join(" ")')" '"3 16"' "the batches: the agent knows of nothing"
}
t_out_of_memory_comes_back_smaller() { # not even halves fit, alone it does: the agent sends less
	fake_job 12 'FAULTS="number 9 of:oom!"'
	burst run
	is "$STATUS" 0 "exit status ($(tail -n 2 err.txt | tr '\n' '|'))"
	all_right 12
	in_log 'out of memory with'
	is "$(timings 'map(.b) | max')" 9 "the largest batch"
	is "$(timings 'map(.b) | min')" 1 "the smallest batch"
}
t_bad_rows_fail_alone() {
	fake_job 9 'FAULTS="number 4 of:nan?,number 5 of:nan,number 6 of:runaway"'
	burst run
	is "$STATUS" 1 "exit status"
	all_right 7
	has err.txt 's005: failed: worker: the sound has samples that are no numbers'
	has err.txt 's006: failed: worker: it did not end within its cap'
	in_log 's004: the sound has samples that are no numbers; once more, alone and with another seed'
}
t_a_lost_gpu_costs_one_segment() {
	fake_job 6 'FAULTS="number 5 of:cuda"'
	burst run
	is "$STATUS" 1 "exit status"
	all_right 5
	has err.txt 's005: failed: '
	in_log 'the GPU is lost: RuntimeError: CUDA error'
}
t_torch_without_kernels_renders_nothing() {
	fake_job 6 CARD=32 'ARCH="sm_80 sm_90"'
	burst run
	[ "$STATUS" != 0 ] || complain "exit status 0"
	is "$(wavs)" 0 files
	has err.txt 'torch 2.6.0 has no kernels for Fake 5090 (sm_120; it has sm_80 sm_90)'
	is "$(ledger 'select count(*) from pod')" 1 "pods rented for a worker that can never render"
}

run_tests "$@"
