#!/bin/bash
# queue_killed.sh - what a dead client or runner of the queue left is gone on with; a full disk and a removed ledger are said.
. "$(dirname "$0")/lib.sh"
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/queue_lib.sh"

runners() { # of this test's queue: each was told of its folder and its state folder
	local p
	for p in $(pgrep -f -- "queue run $T/"); do
		tr '\0' '\n' <"/proc/$p/environ" | grep -qxF "BURST_STATE_DIR=$BURST_STATE_DIR" && echo "$p"
	done 2>/dev/null
}
kill_the_runner() {
	# shellcheck disable=SC2046
	kill -9 $(runners) || complain "there was no runner"
}
queued_log() { cat "$BURST_STATE_DIR"/jobs/*.queue.log 2>/dev/null; }

# The client reads its open file without a fault, and would wait in it for ever.
t_ledger_is_removed_while_it_waits() {
	script_lines 1
	config
	burst submit --quiet 1h
	is "$STATUS" 0 "submit"
	wait_for 10 "the client to wait" waits_quietly
	rm state/ledger.db*
	wait_for 20 "the client to end" no_runner
	is "$(queued_log | grep -c "ledger.db: was removed or replaced")" 1 "lines about it ($(queued_log))"
}
waits_quietly() { "$BURST" queue ls 2>/dev/null | grep -q waiting; }
a_pod() { ledger "select count(*) from pod where $1" 2>/dev/null | grep -qv '^0$'; }
client_dies() { # client_dies WHAT COMMAND...
	script_lines 60
	config
	burst submit --quiet 0
	kill_the_client_at "$@"
	stamp >stamp.txt
	waits_for_the_queue
	unchanged stamp.txt
	all_bound 60 killed
	is "$(runs)" 1 runs
	is "$(ledger 'select deaths from request')" 1 "deaths of its client"
}
t_client_dies_at_its_intent() { client_dies "a row" a_pod 1; }
t_client_dies_when_connected() { client_dies "a connection" a_pod "connected_ms > 0"; }
t_client_dies_at_a_file() { client_dies "a file" file_count out 1; }
t_client_and_runner_die() {
	local recorded missed
	script_lines 60
	config
	burst submit --quiet 0
	wait_for 40 "a file" file_count out 1
	kill_the_runner
	kill -9 "$(client_of_the_run)"
	wait_for 10 "the client's end" no_client_of_a_run
	stat -c '%n %i %Y %y' out/*.wav >stamp.txt
	recorded=$(ledger "select count(*) from segment where state = 1")
	# A client may die when a file has its place and its line in the manifest, and no row in the ledger yet: it counts as cached.
	missed=$(($(grep -c . stamp.txt) - recorded))
	script_lines 61 # the run that continues renders the new line too
	burst queue ls
	has err.txt "no client works on the queue"
	is "$(grep -c " running " out.txt)" 1 "running, by ls"
	burst submit --quiet 0
	waits_for_the_queue
	is "$(requests "state = 'done'")" 2 "done"
	all_right 61
	unchanged stamp.txt
	is "$(ledger "select count(*) from segment where state = 1")" $((61 - missed)) "segments that were rendered"
	is "$(ledger "select rendered || ' ' || cached from run where status = 'done'")" "$((61 - missed)) $missed" "rendered and cached"
}
# After a reboot, say: what was queued is not forgotten by whoever renders that job next.
t_a_run_wakes_the_queue() {
	script_lines 2
	config
	"$BURST" submit --quiet 1h >/dev/null 2>&1
	wait_for 10 "its client" has_a_client
	kill_the_runner
	ledger "update request set quiet_ms = 0"
	burst status
	has out.txt '1 queued without a client: `burst queue ls`'
	burst run -n
	wait_for 5 "no client" no_runner
	is "$(requests "state = 'pending'")" 1 pending
	burst run
	is "$STATUS" 0 "run"
	waits_for_the_queue
	all_bound 2
	is "$(runs)" 1 runs
}
# The runner alone dies: its run goes on, and the next runner waits for it.
t_runner_dies_alone() {
	script_lines 200
	config
	burst submit --quiet 0
	wait_for 40 "a file" file_count out 1
	kill_the_runner
	burst queue run
	is "$STATUS" 0 "queue run ($(tail -n 2 err.txt))"
	all_bound 200
	is "$(runs)" 1 runs
}
t_interrupted_and_gone_on_with() {
	script_lines 200
	config
	"$BURST" submit --quiet 1h >/dev/null 2>&1
	wait_for 10 "its client" has_a_client
	kill_the_runner
	ledger "update request set quiet_ms = 0"
	burst_bg queue run
	wait_for 40 "a file" file_count out 3
	kill -TERM "$PID"
	burst_wait
	is "$STATUS" 143 "exit status"
	is "$(ledger 'select status from run')" interrupted "the run"
	is "$(requests "state = 'running'")" 1 "requests that wait for it"
	stamp >stamp.txt
	burst queue run
	is "$STATUS" 0 "queue run ($(tail -n 2 err.txt))"
	unchanged stamp.txt
	all_bound 200 killed
	is "$(runs)" 1 runs
}
t_cancelled_is_not_begun_anew() {
	script_lines 200
	config
	burst submit --quiet 0
	wait_for 40 "a file" file_count out 3
	burst cancel
	is "$STATUS" 0 "cancel ($(cat err.txt))"
	waits_for_the_queue
	is "$(requests "state = 'failed' and exit_status = 143")" 1 "failed requests"
	is "$(runs)" 1 runs
}

has_a_client() { "$BURST" queue ls --json | jq -e '.[0].client'; }
points_of() { # points_of COMMAND...: how many writes it makes
	killed before 0 "$@"
	wc -l <points
}
some() { # some N: of 1..N all, or a spread sample
	if [ "${KILL_POINTS:-}" = all ]; then seq "$1"; else awk -v n="$1" 'BEGIN {for (i = 0; i < 6 && i < n; i++) print int(n * (i + .5) / (n < 6 ? n : 6)) + 1}'; fi
}
fresh() { # fresh NAME: an empty ledger that knows its tables, and a job
	mkdir -p "$T/$1" && cd "$T/$1" || return
	export BURST_STATE_DIR=$T/$1/state
	script_lines 2
	config
	"$BURST" queue ls >/dev/null 2>&1
}
t_submit_killed_at_any_write() {
	local n count when
	make -s -C "$ROOT" e2e-tools || { complain "killer.so cannot be built"; return; }
	fresh count
	count=$(points_of submit --quiet 1h)
	wait_for 10 "its client" has_a_client
	kill_the_runner
	[ "$count" -ge 3 ] || complain "only $count writes"
	for n in $(some "$count"); do
		for when in before after; do
			fresh "$when-$n"
			killed "$when" "$n" submit --quiet 0
			[ "$STATUS" = 137 ] || [ "$(requests 1)" = 1 ] || complain "$when $n: it said that it was queued"
			[ "$(requests 1)" -le 1 ] || complain "$when $n: $(requests 1) requests"
			burst submit --quiet 0
			is "$STATUS" 0 "$when $n: the next submit ($(cat err.txt))"
			waits_for_the_queue
			all_bound 2
			wait_for 10 "the client to end" no_runner
			[ -z "$WHY" ] || { complain "killed $when $n"; return; }
		done
	done
	echo "    $count writes"
}
t_runner_killed_at_any_write() {
	local n count when
	make -s -C "$ROOT" e2e-tools || { complain "killer.so cannot be built"; return; }
	queued_alone() { # two requests, and nobody who works on them
		fresh "$1"
		burst submit --quiet 1h
		wait_for 10 "its client" has_a_client
		burst submit --quiet 1h
		kill_the_runner
		ledger "update request set quiet_ms = 0"
	}
	queued_alone count
	count=$(points_of queue run)
	all_bound 2
	[ "$count" -ge 8 ] || complain "only $count writes"
	for n in $(some "$count"); do
		for when in before after; do
			queued_alone "$when-$n"
			killed "$when" "$n" queue run
			burst queue run
			is "$STATUS" 0 "killed $when $n: the next runner ($(tail -n 2 err.txt))"
			is "$(requests "state = 'done'")" 2 "killed $when $n: done"
			all_bound 2
			is "$(ledger "select count(*) from pod where id != ''")" 1 "killed $when $n: pods"
			[ -z "$WHY" ] || return
		done
	done
	echo "    $count writes"
}

# ---- faults ----
t_disk_full_while_queuing() { # loud, exit 6, nothing half-written; the next submit is as if nothing had happened
	local n said
	make -s -C "$ROOT" e2e-tools || { complain "failer.so cannot be built"; return; }
	for n in 1 2 3 4 5 6 8 10; do
		fresh "$n"
		STATUS=0
		env FAIL_AT="on $n ENOSPC" FAIL_UNDER="$BURST_STATE_DIR/ledger.db" ASAN_OPTIONS="$ASAN_OPTIONS:verify_asan_link_order=0" \
			LD_PRELOAD="$ROOT/build/e2e/failer.so" timeout -k 5 60 "$BURST" submit --quiet 0 >out.txt 2>err.txt </dev/null || STATUS=$?
		said=$STATUS
		[ "$said" = 6 ] || [ "$said" = 0 ] || complain "write $n fails: exit $said ($(cat err.txt))"
		[ "$said" = 0 ] || has err.txt "nothing was queued"
		is "$(requests 1)" "$((said == 0))" "write $n fails, exit $said: requests"
		is "$(ledger 'pragma integrity_check')" ok "write $n fails: the ledger"
		burst submit --quiet 0
		is "$STATUS" 0 "write $n fails: the next submit"
		waits_for_the_queue
		all_bound 2
		wait_for 10 "the client to end" no_runner
	done
}
# With its whole folder gone, the client leaves nothing behind.
t_state_folder_removed_while_the_queue_waits() {
	script_lines 2
	config
	burst submit --quiet 1h
	wait_for 10 "its client" has_a_client
	kill_the_runner
	wait_for 10 "it to be dead" no_runner
	burst_bg queue run "$T/burst.cfg"
	wait_for 10 "a client in the foreground" has_a_client
	rm -r "$BURST_STATE_DIR"
	burst_wait
	is "$STATUS" 1 "exit status"
	is "$(grep -c . err.txt)" 2 "lines ($(cat err.txt))"
	has err.txt "burst: the queue of $T/burst.cfg ends: $T/state/ledger.db: was removed or replaced"
	[ ! -e "$BURST_STATE_DIR" ] || complain "the folder is back: $(find "$BURST_STATE_DIR")"
}
# What is queued while the client is busy with a run of the ledger before is not left alone by its end.
t_ledger_replaced_while_the_queue_renders() {
	allow_volumes v # which the new ledger does not know
	slow_segments 12
	burst submit --quiet 0
	wait_for 40 "a file" file_count out 1
	rm "$BURST_STATE_DIR"/ledger.db*
	burst submit --quiet 0
	is "$STATUS" 0 "submit with a new ledger ($(cat err.txt))"
	waits_for_the_queue
	is "$(requests "state = 'done'")" 1 "done"
	wait_for 10 "the client to end" no_runner
}

run_tests "$@"
