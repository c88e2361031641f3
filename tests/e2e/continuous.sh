#!/bin/bash
# continuous.sh - engines whose segments join while others are rendered: never more than the worker takes, never too few, none twice.
. "$(dirname "$0")/lib.sh"

# A worker of eight places; EACH makes a segment of this script take about a second when all are taken.
continuous_job() { # continuous_job SEGMENTS [VARIABLES of the worker]
	script_lines "$1"
	mkdir -p code
	cp "$ROOT/tests/workers/"{continuous,answers}.py code/
	ENGINE='continuous'
	JOB='worker = "EACH='${EACH:-0.001}' LONGEST=0.002 LIMIT=8 '${2:-}' python3 \"$BURST_CODE/continuous.py\""; '${CAP:-}'check = { enabled = false; };'
	config "pods = ${PODS:-1};" 'code = { path = "code"; };'
}
begun() { # as the workers of all runs say, run after run: "SEGMENT IN_FLIGHT" in each line. A client that comes back reads, and writes, all of it again
	find "$BURST_STATE_DIR"/runs -name log -printf '%T@ %p\n' | sort -n | cut -d' ' -f2- | while read -r log; do cat "$log"; done | sed -n 's/.*begin \(s[0-9]*\) \([0-9]*\) \([0-9.]*\)$/\1 \2 \3/p' | awk '!seen[$0]++'
}
most_in_flight() { begun | cut -d' ' -f2 | sort -n | tail -n 1; }
begun_twice() { begun | cut -d' ' -f1 | sort | uniq -d | tr '\n' ' '; }

t_places_are_kept_full() {
	local mean
	continuous_job 80
	burst run
	is "$STATUS" 0 "run ($(tail -n 2 err.txt))"
	all_right 80
	is "$(most_in_flight)" 8 "the most segments in flight"
	is "$(begun_twice)" "" "segments rendered twice"
	# after the canary; batch by batch it would be 4.5
	mean=$(begun | tail -n +12 | awk '{sum += $2} END {print 10 * sum / NR}')
	[ "${mean%.*}" -ge 55 ] || complain "in flight when one began: $(begun | cut -d' ' -f2 | tr '\n' ' ')"
	is "$(ledger "select count(*) > 10, max(longest) from batch")" "1|0.0" "batches that are learned from, by their shares"
	# shares of the time add up to it, and the pod counts as busy once, however many batches it holds
	is "$(ledger "select sum(took_ms) between compute_ms * 0.9 and compute_ms + 50 from batch, run")" 1 "shares of $(ledger "select sum(took_ms), compute_ms from batch, run")"
	mv out kept
	burst plan # a second run knows how fast it is
	has out.txt "measured"
	CAP='max_batch = 4; ' continuous_job 30
	burst run -o capped
	is "$STATUS" 0 "run with max_batch ($(tail -n 2 err.txt))"
	is "$(begun | tail -n 30 | cut -d' ' -f2 | sort -n | tail -n 1)" 4 "the most in flight, by the user's word"
}

t_several_pods() {
	PODS=3 continuous_job 90
	LOCAL='price_per_hour = 0.1;' burst run
	is "$STATUS" 0 "run ($(tail -n 2 err.txt))"
	all_right 90
	is "$(most_in_flight)" 8 "the most segments in flight"
	is "$(begun_twice)" "" "segments rendered twice"
}

t_worker_dies_with_several_batches() {
	continuous_job 60 'ONCE_CRASH_ON=s030'
	burst run
	is "$STATUS" 0 "run ($(tail -n 2 err.txt))"
	all_right 60
	[ "$(begun_twice | wc -w)" -le 8 ] || complain "rendered twice: $(begun_twice)"
	[ "$(begun_twice | wc -w)" -ge 1 ] || complain "it died with nothing in its hands"
}

t_out_of_memory_takes_fewer() {
	continuous_job 40 'OOM_OVER=5'
	burst run
	is "$STATUS" 0 "run ($(tail -n 2 err.txt))"
	all_right 40
	is "$(begun | tail -n 20 | awk '$2 > 4' | wc -l)" 0 "segments beside more than three, at the end"
}

t_handed_over_and_killed() {
	local run
	EACH=0.004 continuous_job 60
	burst run -d
	is "$STATUS" 0 "run -d ($(tail -n 2 err.txt))"
	run=$(cat out.txt)
	wait_for 40 "files" file_count out 5
	kill -9 "$(background_client "$run")"
	stamp >stamp.txt
	burst attach "$run"
	is "$STATUS" 0 "attach ($(tail -n 2 err.txt))"
	unchanged stamp.txt
	all_right 60
	is "$(begun_twice)" "" "segments rendered twice"
}

t_killed_and_resumed() {
	EACH=0.004 continuous_job 60
	burst_bg run
	wait_for 40 "files" file_count out 8
	kill -9 "$PID"
	burst_wait
	stamp >stamp.txt
	burst resume
	is "$STATUS" 0 "resume ($(tail -n 2 err.txt))"
	unchanged stamp.txt
	all_right 60
	is "$(begun_twice)" "" "segments rendered twice"
	is "$(ledger "select count(distinct attempt) from pod")" 1 "pods: the one that had them goes on"
}
background_client() { sed -n 's/^process //p' "$BURST_STATE_DIR/runs/$1/lock"; } # its pid, from the run's lock

run_tests "$@"
