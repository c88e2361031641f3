#!/bin/bash
# calibrate.sh - burst calibrate: rents each GPU briefly through the ordinary run, and measures what plans then know.
. "$(dirname "$0")/lib.sh"

# An engine of hidden times, on pods that are said to have an L4 or a T4.
padded_job() { # padded_job [ONCE] [KEYS]
	script_lines 30
	mkdir -p code
	cp "$ROOT/tests/workers/"{padded,answers}.py code/
	ENGINE=padded
	JOB="worker = \"ONCE=${1:-0.1} LONGEST=0.004 EACH=0.001 MAX_BATCH=8 python3 \\\"\$BURST_CODE/padded.py\\\"\"; check = { enabled = false; };"
	REHEARSE='gpu_prices = ["T4=0.59", "L4=0.80"];'
	config "code = { path = \"code\"; }; ${2:-}"
}
nothing_kept() { # neither in the job's folder nor beside the ledger
	[ ! -e out ] || complain "files in the job's output folder: $(find out | head -n 3)"
	is "$(find state/calibrate -mindepth 1 2>/dev/null | wc -l)" 0 "files kept in the state folder"
}
near() { # near GOT WANT PERCENT WHAT
	awk -v a="$1" -v b="$2" -v p="$3" 'BEGIN {exit !(a >= b * (1 - p / 100) && a <= b * (1 + p / 100))}' || complain "$4: $1, and it is $2"
}

t_two_gpus() {
	padded_job
	burst plan
	is "$STATUS" 2 "a plan without an estimate"
	has err.txt '`burst calibrate` measures it'
	burst calibrate --gpu L4,T4
	is "$STATUS" 2 "without a yes"
	has err.txt "at most \$0.50"
	has err.txt "nothing was rented: answer y on a terminal, or give -y"
	is "$("$BURST" ledger --json)" "[]" "runs without a yes"
	burst calibrate -y --gpu L4,T4 --max-cost 0.20 --json
	is "$STATUS" 0 "calibrate ($(tail -n 2 err.txt | tr '\n' '|'))"
	has err.txt "at most \$0.20"
	schema calibrate
	is "$(json '[.gpus[] | .gpu, .measured.source] | join(" ")')" "L4 measured T4 measured" "what was measured"
	is "$(json '[.gpus[0].batches[].size] | join(" ")')" "1 2 4 8" "sizes of batches"
	# the hidden times: 0.1 s, 0.004 s for each character of the longest, 0.001 s of all; a busy machine only adds to them
	is "$(json '.gpus[0].measured | .once_s > 0.05 and .each_s > 0.0008 and .each_s < 0.003 and .batch_max == 8')" true "o, c and the largest batch"
	is "$(json '.gpus[1] | .predicted.source')" "carried over" "what was expected of the second GPU"
	is "$(json '[.gpus[].cold_start_s > 0] | all')" true "cold starts"
	is "$(ledger "select group_concat(type || ' ' || status, ', ') from run")" "calibrate done, calibrate done" "runs in the ledger"
	is "$(ledger "select count(*) from pod where state != 'gone'")" 0 "pods left in the ledger"
	nothing_kept
	burst plan --json
	is "$(json '.pick | "\(.gpu) \(.speed_source)"')" "T4 measured" "the plan afterwards"
	burst resume "$(ledger "select id from run limit 1")"
	is "$STATUS" 0 "a calibration that ended is not resumed ($(tail -n 1 err.txt))"
	burst run
	is "$STATUS" 0 "the job itself ($(tail -n 1 err.txt))"
	is "$(wavs)" 30 files
	burst calibrate -y --gpu L4
	has out.txt "JOB \$/SEGMENT"
	grep -qE '^ +8 +[0-9.]+ +[0-9.]+ ' out.txt || complain "no predicted time: $(grep -E '^ +8 ' out.txt)"
	has out.txt "largest batch 8"
}

t_what_cannot_be_had() {
	padded_job
	burst calibrate -y --gpu "H100 SXM,T4"
	is "$STATUS" 4 "exit status ($(tail -n 1 err.txt))"
	has out.txt "H100 SXM: not measured: no provider offers it now"
	has out.txt "T4 at local_play"
	# both are offered, and none can be rented
	REHEARSE="$REHEARSE capacity = 0;" config 'code = { path = "code"; }; wait = "1s";'
	burst calibrate -y --gpu T4,L4 --json
	is "$STATUS" 4 "nothing to be had ($(tail -n 1 err.txt))"
	schema calibrate
	is "$(json '[.gpus[] | .measured == null and .exit_status == 4] | all')" true "what is said of both"
	nothing_kept
	# a command has no batches
	cat >burst.cfg <<-'E'
		provider = "local";
		job = { type = "command"; run = "true"; no_outputs = true; output = "out"; };
	E
	burst calibrate -y
	is "$STATUS" 2 "a command"
	has err.txt "is a command: only engines that render segments can be calibrated"
}

t_the_cap_is_kept() {
	padded_job 8
	REHEARSE='gpu_prices = ["T4=20.00", "L4=20.00"];' config 'code = { path = "code"; };'
	burst calibrate -y --gpu T4,L4 --max-cost 0.18 --json # 32 s of them, and all batches take longer
	is "$STATUS" 5 "exit status ($(tail -n 1 err.txt))"
	schema calibrate
	is "$(json '.cost_usd > 0 and .cost_usd <= 0.18')" true "spending below the cap ($(json .cost_usd))"
	is "$(json '.gpus[0].batches | length > 0')" true "what was measured before"
	is "$(json '[.gpus[] | .exit_status == 5 and .error != null] | all')" true "what is said of both"
	is "$(ledger "select count(*) from pod where state != 'gone' and create_ms > 0")" 0 "pods left"
	nothing_kept
	burst calibrate -y --gpu T4 --max-cost nothing
	is "$STATUS" 2 "an amount that is none"
}

t_interrupted() {
	padded_job 3
	burst_bg calibrate -y --gpu T4,L4
	wait_for 30 "a batch" grep -q "working" err.txt
	kill -INT "$PID"
	burst_wait
	is "$STATUS" 130 "exit status ($(tail -n 1 err.txt))"
	is "$(ledger "select count(*) from run")" 1 "runs: the second GPU was not rented"
	nothing_kept
}

t_killed_in_the_middle() { # the next one settles what it left
	padded_job 3
	burst_bg calibrate -y --gpu T4
	wait_for 30 "a batch" grep -q "working" err.txt
	kill -KILL "$PID"
	burst_wait
	[ -n "$(pods_left)" ] || complain "its pod is gone already"
	burst resume
	is "$STATUS" 2 "resume"
	has err.txt "measured an engine and has no files"
	padded_job
	burst calibrate -y --gpu L4
	is "$STATUS" 0 "the next one ($(tail -n 1 err.txt))"
	is "$(ledger "select count(*) from pod where state != 'gone'")" 0 "pods that are not proven gone"
	nothing_kept
	padded_job 3
	burst_bg calibrate -y --gpu T4
	wait_for 30 "a batch" grep -q "working" err.txt
	kill -KILL "$PID"
	burst_wait
	burst reap
	is "$STATUS" 0 "reap ($(tail -n 1 err.txt))"
}

run_tests "$@"
