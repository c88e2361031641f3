#!/bin/sh
# agent_batches.sh - workers that crash, hang, run out of memory, cannot be killed or say nonsense: which segments are tried again.
# shellcheck disable=SC2016,SC2013,SC2015,SC2086,SC2154 # pod-side $ stays; paths of our own making have no blanks
. "$(dirname "$0")/agent_lib.sh"

test_crash_once_is_tried_again_whole() {
	start 1 '"ONCE_CRASH_ON":"q2"'
	batch b1 q1 q2 q3
	expect '"id":"b1","state":"done"'
	equal retries "$(count '"id":"b1","state":"retry".*"reason":"crash"')" 1
	equal 'done once each' "$(count '"ev":"segment".*"ok":true')" 3
	expect '"id":"q2","batch":"b1","try":2,"ok":true'
	expect '"id":"q1","batch":"b1","try":1,"ok":true'
	expect '"state":"exited","code":3'
}

test_poison_is_found() {
	start 1 '"CRASH_ON":"q3"'
	batch b1 q1 q2 q3 q4 q5 q6 q7 q8
	batch b2 q9
	expect '"id":"b2","state":"done"'
	expect '"id":"b1","state":"done"'
	equal good "$(count '"ev":"segment".*"ok":true')" 8
	expect '"id":"q3","batch":"b1","try":[0-9],"ok":false,"reason":"poison"'
	refuse '"ev":"fatal"'
}

test_poison_first_of_a_true_batch() {
	start 1 '"CRASH_ON":"q1"'
	batch b1 q1 q2 q3 q4 q5 q6 q7 q8
	expect '"id":"b1","state":"done"'
	equal good "$(count '"ev":"segment".*"ok":true')" 7
	expect '"id":"q1".*"reason":"poison"'
}

test_two_poisons_alone() {
	start 1 '"KILL_ON":"q1"'
	batch b1 q1
	expect '"id":"b1","state":"retry".*"reason":"oom"'
	expect '"id":"q1".*"ok":false,"reason":"poison"'
	expect '"id":"b1","state":"done"'
}

test_hang_is_ended() {
	start 1 '"ONCE_HANG_ON":"q1"' 1
	batch b1 q1 q2
	expect '"id":"b1","state":"retry".*"reason":"hang"'
	expect '"id":"b1","state":"done"'
	equal good "$(count '"ev":"segment".*"ok":true')" 2
}

test_hang_outside_of_its_group() {
	cat >"$dir/worker.py" <<-'E'
		import os, time
		print('{"hello":1,"protocol":1,"engine":"t","version":"1","max_batch":8}', flush=True)
		input()
		child = os.fork()
		os.setpgid(child or 0, child or 0)
		if child:
		    os.setpgid(0, child)
		time.sleep(1000)
	E
	tell "{\"op\":\"start\",\"workers\":1,\"worker\":\"exec python3 $dir/worker.py\",\"hang_s\":1}"
	batch b1 q1
	expect '"ev":"worker","w":0,"state":"exited","code":137,"error":"hang"'
	expect '"id":"b1","state":"retry".*"reason":"hang"'
}

test_worker_that_does_not_die() {
	start_undead 2
	batch b1 q1
	expect '"line":"(undead|nothing may trace here)"'
	grep -q '"line":"nothing may' "$said" && { echo "skipped: nothing may trace here"; return 0; }
	expect '"ev":"worker","w":.,"state":"failed","error":"it was killed and does not end"'
	refuse '"ev":"fatal"'
	expect '"id":"b1","state":"started"' 2 # by the other one
	expect '"ev":"worker","w":.,"state":"failed","error":"it was killed and does not end"' 2
	expect '"ev":"fatal","error":"no worker can be kept running: it was killed and does not end"'
	refuse '"ev":"segment"'
}

test_worker_that_does_not_die_detached() {
	start_undead 1
	batch b1 q1
	tell '{"op":"handover","lease_s":20}'
	expect '"line":"(undead|nothing may trace here)"'
	grep -q '"line":"nothing may' "$said" && { echo "skipped: nothing may trace here"; return 0; }
	detach
	for _ in $(seq 400); do
		[ -e "$BURST_HOME/end" ] && break
		sleep 0.05
	done
	grep -q 'does not end' "$BURST_HOME/end" || fail 'it holds its pod'
	attach 0
}

test_out_of_memory_halves() {
	start 1 '"OOM_OVER":"2"'
	batch b1 q1 q2 q3 q4 q5 q6 q7 q8
	expect '"id":"b1","state":"done"'
	equal good "$(count '"ev":"segment".*"ok":true')" 8
	equal ooms "$(count '"reason":"oom"')" 2
	equal 'no restart' "$(count '"state":"ready"')" 1
	batch b2 r1 r2 r3 r4
	expect '"id":"b2","state":"done"'
	equal 'learned' "$(count '"id":"b2","state":"retry"')" 0
}

start_continuous() { # ENV [HANG]
	tell "{\"op\":\"start\",\"workers\":1,\"worker\":\"exec python3 $WORKERS/continuous.py\",\"env\":{\"EACH\":\"0.005\",\"LIMIT\":\"4\"${1:+,$1}},\"hang_s\":${2:-60}}"
	expect '"state":"ready"'
}

most_in_flight() { # of all segments that were begun
	sed -n 's/.*"line":"begin [^ ]* \([0-9]*\) .*/\1/p' "$said" | sort -n | tail -n 1
}

# Three batches of three with a worker that takes four: a batch begins before the one before it is over.
test_continuous_is_refilled() {
	start_continuous
	expect '"state":"ready","engine":"continuous".*"max_batch":4,"batching":"continuous"'
	batch b1 q1 q2 q3
	batch b2 q4 q5 q6
	batch b3 q7 q8 q9
	expect '"ev":"batch","id":"b3","state":"done"'
	equal segments "$(count '"ev":"segment".*"ok":true')" 9
	equal 'in flight' "$(most_in_flight)" 4
	equal 'begun once each' "$(count '"state":"started"')" 3
	equal retries "$(count '"state":"retry"')" 0
	# what is said of each: its start, its segments, its end
	for b in b1 b2 b3; do
		equal "events of $b" "$(grep -oE "\"id\":\"$b\",\"state\":\"[a-z]*|\"batch\":\"$b\"" "$said" | sed 's/"$//; s/.*"//' | tr '\n' ' ')" \
			"started $b $b $b done "
	done
	second=$(grep -n '"id":"b2","state":"started"' "$said" | head -n 1 | cut -d: -f1)
	first=$(grep -n '"id":"b1","state":"done"' "$said" | head -n 1 | cut -d: -f1)
	[ "$second" -lt "$first" ] || fail "b2 has waited for the end of b1"
	# each ms of the worker belongs to one batch: together they are not longer than the whole
	equal 'shares of the time' "$(sed -n 's/.*"t":\([0-9]*\),.*"state":"started".*/s \1/p; s/.*"t":\([0-9]*\),.*"state":"done","busy_ms":\([0-9]*\).*/d \1 \2/p' "$said" |
		awk '$1 == "s" && !from {from = $2} $1 == "d" {to = $2; sum += $3} END {all = to - from; print (sum > all * 0.8 && sum <= all + 5) ? "fine" : sum " of " all}')" fine
}

test_continuous_asks_for_odd_numbers() {
	start_continuous '"SAYS":"{\"take\":0}|{\"take\":999999999999}"'
	batch b1 q1 q2 q3 q4 q5 q6 q7 q8 q9
	expect '"id":"b1","state":"done"'
	equal 'in flight' "$(most_in_flight)" 4
	equal segments "$(count '"ev":"segment".*"ok":true')" 9
}

test_continuous_asks_for_less_than_nothing() {
	start_continuous '"SAYS":"{\"take\":-1}"'
	expect '"state":"exited"'
	batch b1 q1
	expect '"state":"failed","error":"it ended 5 times without a finished segment'
	expect '"ev":"fatal"'
}

# Of protocol 1, or of an engine that is not continuous: such a line is log, and the worker has one batch at a time.
test_take_of_others_is_log() {
	start_continuous '"PROTOCOL":"1","SAYS":"{\"take\":3}"'
	expect '"max_batch":4,"batching":"none"'
	expect '"ev":"log","w":0,"line":"{."take.":3}"'
	refuse '"state":"exited"'
}

test_continuous_crash_loses_nothing() {
	start_continuous '"ONCE_CRASH_ON":"q6"'
	batch b1 q1 q2 q3
	batch b2 q4 q5 q6
	batch b3 q7 q8 q9
	expect '"id":"b1","state":"done"' && expect '"id":"b2","state":"done"' && expect '"id":"b3","state":"done"'
	equal 'done once each' "$(grep '"ev":"segment".*"ok":true' "$said" | grep -o '"id":"q[0-9]*"' | sort -u | wc -l) $(count '"ev":"segment".*"ok":true')" "9 9"
	refuse '"ok":false'
}

# Whoever was in flight with the culprit is innocent.
test_continuous_poison_is_found() {
	start_continuous '"CRASH_ON":"q5"'
	batch b1 q1 q2 q3
	batch b2 q4 q5 q6
	batch b3 q7 q8 q9
	expect '"id":"b1","state":"done"' && expect '"id":"b2","state":"done"' && expect '"id":"b3","state":"done"'
	equal good "$(count '"ev":"segment".*"ok":true')" 8
	expect '"id":"q5","batch":"b2","try":[0-9],"ok":false,"reason":"poison"'
	equal bad "$(count '"ok":false')" 1
	refuse '"ev":"fatal"'
}

test_continuous_hang_is_ended() {
	start_continuous '"HANG_ON":"q2"' 1
	batch b1 q1 q2 q3
	expect '"id":"b1","state":"retry".*"reason":"hang"'
	expect '"id":"b1","state":"done"'
	equal good "$(count '"ev":"segment".*"ok":true')" 2
	expect '"id":"q2".*"reason":"poison"'
}

test_continuous_out_of_memory_takes_fewer() {
	start_continuous '"OOM_OVER":"2"'
	batch b1 q1 q2 q3
	batch b2 q4 q5 q6
	expect '"id":"b1","state":"done"' && expect '"id":"b2","state":"done"'
	equal good "$(count '"ev":"segment".*"ok":true')" 6
	equal 'no restart' "$(count '"state":"ready"')" 1
	batch b3 r1 r2 r3 r4
	expect '"id":"b3","state":"done"'
	equal learned "$(count '"id":"b3","state":"retry"')" 0
}

# The log alone tells what was finished, and who is away misses nothing.
test_continuous_reconnects() {
	start_continuous '"EACH":"0.05"'
	batch b1 q1 q2 q3
	batch b2 q4 q5 q6
	expect '"id":"q1".*"ok":true'
	detach
	attach 0
	expect '"ev":"hello".*"running":\[.*"q6".*\]'
	expect '"id":"b1","state":"done"' && expect '"id":"b2","state":"done"'
	equal good "$(count '"ev":"segment".*"ok":true')" 6
	equal 'numbered once' "$(grep -o '"n":[0-9]*' "$said" | sort | uniq -d | wc -l)" 0
}

test_continuous_is_revoked() {
	start_continuous '"EACH":"0.05"'
	batch b1 q1 q2 q3 q4 q5 q6
	batch b2 r1
	expect '"ev":"batch","id":"b1","state":"started"'
	tell '{"op":"revoke"}'
	expect '"ev":"revoked","ids":\["b2"\]'
	expect '"id":"b1","state":"done"'
	equal 'what was begun is finished' "$(count '"ev":"segment".*"ok":true')" 6
}

test_garbage() {
	start 1 '"GARBAGE_ON":"q1"'
	batch b1 q1 q2
	expect '"id":"b1","state":"retry".*"reason":"garbage"'
	expect '"id":"b1","state":"done"'
	expect '"id":"q2","batch":"b1".*"ok":true'
	expect '"id":"q1".*"reason":"poison"'
}

test_endless_line() {
	start 1 '"HUGE_ON":"q1"'
	batch b1 q1
	expect '"id":"b1","state":"retry".*"reason":"garbage"'
	expect '"id":"q1".*"reason":"poison"'
}

test_what_is_not_there() {
	start 1 '"MISSING_ON":"q1","LINK_ON":"q2","ESCAPE_ON":"q3","REFUSE_ON":"q4","FORGET_ON":"q5"'
	batch b1 q1 q2 q3 q4 q5 q6
	expect '"id":"b1","state":"done"'
	expect '"id":"q1".*"ok":false,"reason":"missing"'
	expect '"id":"q2".*"ok":false,"reason":"mismatch"'
	expect '"id":"q3".*"ok":false,"reason":"mismatch"'
	expect '"id":"q4".*"ok":false,"reason":"worker","error":"cannot say that"'
	expect '"id":"q5".*"ok":false,"reason":"missing"'
	equal good "$(count '"ev":"segment".*"ok":true')" 1
}

test_bad_hello_is_final() {
	start 2 '"BAD_HELLO":"1"'
	expect '"state":"failed","error":"no voice today"' 2
	expect '"ev":"fatal"'
	equal 'no restart' "$(count '"state":"ready"')" 0
}

test_worker_that_always_dies() {
	tell '{"op":"start","workers":1,"worker":"echo no such thing >&2; exit 4"}'
	expect '"state":"failed","error":"it ended 5 times without a finished segment: no such thing"'
	expect '"ev":"fatal"'
	equal starts "$(count '"state":"exited","code":4,"error":"no such thing"')" 5
}

test_no_hello() {
	start 1 '"SILENT":"1"' 1
	batch b1 q1
	tell '{"op":"end"}'
	wait_for_end
	equal left "$(ps -e -o args= | grep -c "[w]orker.sh.*$dir")" 0
}

run_tests
