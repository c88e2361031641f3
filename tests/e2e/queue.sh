#!/bin/bash
# queue.sh - triggers are queued, never lost: submits merge, one client renders the newest state once, and what a dead client left is
# gone on with.
. "$(dirname "$0")/lib.sh"

requests() { ledger "select count(*) from request where $1" 2>/dev/null; }
are() { [ "$(requests "$1")" = "$2" ]; } # are WHERE N
all_ended() { are "state in ('pending','running')" 0; }
waits_for_the_queue() { wait_for 60 "the queue to be empty" all_ended; }
runs() { ledger "select count(*) from run" 2>/dev/null; }
rendered() { ledger "select coalesce(sum(rendered), 0) from run" 2>/dev/null; }
queued_log() { cat "$BURST_STATE_DIR"/jobs/*.queue.log 2>/dev/null; }
no_runner() { ! pgrep -f -- "queue run $T/" >/dev/null; }
# Each request is bound to one run that is done, or found all there; and each segment was rendered once.
all_bound() { # all_bound SEGMENTS
	is "$(requests "state != 'done' and state != 'removed'")" 0 "requests that are not done ($(ledger 'select state, error from request' | tr '\n' ';'))"
	is "$(ledger "select count(*) from request where run != '' and run not in (select id from run where status = 'done')")" 0 "bound to no good run"
	is "$(ledger "select count(*) from request q join run r on r.id = q.run where r.started_ms < q.created_ms")" 0 "runs that began before their request"
	is "$(rendered)" "$1" "segments rendered"
	all_right "$1"
}

t_submits_merge_into_one_run() {
	script_lines 3
	config
	burst submit --quiet 2s --json
	is "$STATUS" 0 "submit ($(cat err.txt))"
	schema submit
	burst submit --quiet 2s
	burst submit --quiet 1s "$T"
	burst queue ls --json
	schema queue
	is "$(json '[.[].state] | unique | join(",")')" waiting "state"
	waits_for_the_queue
	all_bound 3
	is "$(runs)" 1 runs
	burst queue ls
	is "$(grep -c " done " out.txt)" 3 "done, by ls"
	burst queue ls --json "$T"
	schema queue
	# what comes later is a run of its own; nothing to render takes none
	burst submit --quiet 0
	waits_for_the_queue
	script_lines 4
	burst submit --quiet 0
	waits_for_the_queue
	all_bound 4
	is "$(runs)" 2 runs
	wait_for 10 "the client to end" no_runner
}

# Twenty hooks at once: none is refused, one client, one run, and no request is without one.
t_twenty_submits_at_once() {
	local i pids=()
	script_lines 3
	config
	for i in $(seq 20); do
		"$BURST" submit --quiet 1s >/dev/null 2>"$i.err" </dev/null &
		pids+=($!)
	done
	for i in $(seq 20); do
		wait "${pids[$((i - 1))]}" || complain "submit $i: $(cat "$i.err")"
	done
	is "$(requests 1)" 20 requests
	waits_for_the_queue
	all_bound 3
	[ "$(runs)" -le 2 ] || complain "$(runs) runs"
}

# While it renders, a new text comes: the client looks again before it ends.
t_what_comes_during_a_run_is_rendered_next() {
	script_lines 200
	config
	burst submit --quiet 0
	wait_for 40 "a file" file_count out 1
	script_lines 201
	burst submit --quiet 0
	LIMIT=90
	wait_for 90 "the queue to be empty" all_ended
	all_bound 201
	is "$(runs)" 2 runs
}

# A run of `burst run` goes on: that alone knows exit 7.
t_a_run_in_the_way_is_waited_for() {
	script_lines 300
	config
	burst_bg run
	wait_for 40 "a file" file_count out 1
	"$BURST" submit --quiet 0 2>/dev/null || complain "submit: $?"
	wait_for 20 "the queue to wait for it" waits_for_it
	"$BURST" run >busy.txt 2>&1 </dev/null
	is $? 7 "exit status of a second run"
	burst_wait
	is "$STATUS" 0 "the run"
	waits_for_the_queue
	all_bound 300
}
waits_for_it() { "$BURST" queue ls 2>/dev/null | grep -q "goes on"; }

t_mistakes_are_told_at_once_or_kept() {
	script_lines 1
	burst submit
	is "$STATUS" 2 "no burst.cfg"
	config 'nonsense = 1;'
	burst submit
	is "$STATUS" 2 "a mistake in burst.cfg"
	config
	burst submit --by 7pm
	is "$STATUS" 2 "--by"
	burst submit --below 0
	is "$STATUS" 2 "--below"
	is "$(requests 1 2>/dev/null)" "" "requests"
	rm script.jsonl
	burst submit --quiet 0
	is "$STATUS" 0 "submit"
	waits_for_the_queue
	burst queue ls
	has out.txt "script.jsonl"
	is "$(requests "state = 'failed' and exit_status = 2")" 1 "failed requests"
	burst queue rm q
	is "$STATUS" 2 "rm of what has ended"
	burst queue rm
	is "$STATUS" 2 "rm of nothing"
	burst queue run
	is "$STATUS" 0 "run of an empty queue"
}

t_removed_while_it_waits() {
	script_lines 1
	config
	burst submit --quiet 1h
	burst submit --quiet 1h --json
	local id
	id=$(json .request)
	burst queue rm "$id"
	is "$STATUS" 0 "rm ($(cat err.txt))"
	is "$(requests "state = 'pending'")" 1 pending
	burst queue rm --all
	is "$(requests "state = 'removed'")" 2 removed
	wait_for 10 "the client to end" no_runner
	is "$(runs)" 0 runs
}

run_tests "$@"
