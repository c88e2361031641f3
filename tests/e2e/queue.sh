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
all_bound() { # all_bound SEGMENTS [killed]: a file that came home as its client was killed counts as cached when that run goes on
	is "$(requests "state != 'done' and state != 'removed'")" 0 "requests that are not done ($(ledger 'select state, error from request' | tr '\n' ';'))"
	is "$(ledger "select count(*) from request where run != '' and run not in (select id from run where status = 'done')")" 0 "bound to no good run"
	is "$(ledger "select count(*) from request q join run r on r.id = q.run where r.started_ms < q.created_ms")" 0 "runs that began before their request"
	[ -n "${2:-}" ] && [ "$(rendered)" -le "$1" ] || is "$(rendered)" "$1" "segments rendered"
	all_right "$1"
}

t_submits_merge_into_one_run() {
	script_lines 3
	config
	burst submit --quiet 1h --json
	is "$STATUS" 0 "submit ($(cat err.txt))"
	schema submit
	burst submit --quiet 1h
	burst submit --quiet 1h "$T"
	burst queue ls --json
	schema queue
	is "$(json '[.[].state] | unique | join(",")')" waiting "state"
	is "$(json '.[0].why')" "starts at $(date -d "$(json '.[0].until')" +%H:%M:%S) unless another request follows" "why it waits"
	ledger "update request set quiet_ms = 1000" # not sooner, however slow this machine is
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
waits_for_it() { "$BURST" queue ls 2>/dev/null | grep -q "continues"; }

# Its pods work on without a client, and would be waited for until their hard end: the queue brings their files home.
t_a_detached_run_is_attached_to() {
	script_lines 60
	JOB='workers = 1;' config
	burst run -d
	is "$STATUS" 0 "run -d ($(tail -n 2 err.txt))"
	wait_for 20 "its client to end" no_client_of_a_run
	burst submit --quiet 0
	waits_for_the_queue
	all_right 60
	is "$(ledger "select group_concat(status) from run")" "done" "the runs"
	is "$(requests "state = 'done'")" 1 "done"
}
no_client_of_a_run() { [ -z "$(client_of_the_run)" ] || ! running_as "$(client_of_the_run)"; }

t_mistakes_are_told_at_once_or_kept() {
	burst help submit # whose --quiet takes a time
	has out.txt "      --quiet TIME  "
	has out.txt "  -q                          only warnings and errors"
	hasnt out.txt "-q, --quiet"
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
	burst status
	has out.txt "nothing runs, 1 queued |"
	burst status --json
	schema status
	burst queue rm --all
	is "$(requests "state = 'removed'")" 2 removed
	wait_for 10 "the client to end" no_runner
	is "$(runs)" 0 runs
}

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

# ---- commits ----
repository() { # repository N: a job of N lines, in a first commit
	export GIT_CONFIG_GLOBAL=$T/gitconfig GIT_CONFIG_NOSYSTEM=1
	git config --global user.email t@t && git config --global user.name t
	script_lines "$1"
	config 'pods = 1;'
	printf 'out\nstate\nhome\n*.txt\ngitconfig\n' >.gitignore
	git init -q . && git add -A && git commit -qm first
}
t_the_newest_commit_is_rendered() {
	repository 2
	script_lines 3
	git commit -qam second
	script_lines 4 # which nobody has committed
	burst submit --quiet 2s --commit HEAD
	is "$STATUS" 0 "submit ($(cat err.txt))"
	burst submit --quiet 2s --commit HEAD~1
	burst submit --quiet 2s --commit main~0 "$T" 2>/dev/null || :
	burst submit --quiet 2s --commit HEAD
	burst submit --commit nothing
	is "$STATUS" 2 "a commit that is not there"
	waits_for_the_queue
	all_bound 3
	is "$(ledger 'select commit_id from run')" "$(git rev-parse HEAD)" "the run's commit"
	is "$(requests "commit_id = '$(git rev-parse HEAD~1)' and state = 'done'")" 1 "the older commit"
	is "$(ledger 'select distinct repo, path from request')" "$T|burst.cfg" "where it lies"
	burst ledger "$(ledger 'select id from run')" --json
	schema run
	is "$(json .commit)" "$(git rev-parse HEAD)" "ledger RUN --json"
}

# ---- kill -9 ----
# The client of the run dies: its runner resumes the run, with the tree of its commit.
t_the_run_of_a_commit_is_resumed() {
	repository 150
	script_lines 151
	burst submit --quiet 0 --commit HEAD
	kill_the_client_at "a few files" file_count out 5
	stamp >stamp.txt
	waits_for_the_queue
	unchanged stamp.txt
	all_bound 150 killed
	is "$(runs)" 1 runs
}
client_of_the_run() { sed -n 's/^process //p' "$BURST_STATE_DIR"/runs/*/lock 2>/dev/null | tail -n 1; }
kill_the_client_at() { # kill_the_client_at WHAT COMMAND...
	local what=$1
	shift
	wait_for 40 "$what" "$@"
	kill -9 "$(client_of_the_run)" || complain "there was no client"
}
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
	pkill -9 -f -- "queue run $T/"
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
	pkill -9 -f -- "queue run $T/"
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
	pkill -9 -f -- "queue run $T/"
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
	pkill -9 -f -- "queue run $T/"
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

# Every write of the ledger that a submit or a runner makes is where it dies once.
killed() { # killed before|after N COMMAND...: at the ledger's N-th write; 137, or 0 where there were fewer
	STATUS=0
	{ timeout -k 5 90 env LD_PRELOAD="$ROOT/build/e2e/killer.so" ASAN_OPTIONS="$ASAN_OPTIONS:verify_asan_link_order=0" \
		KILL_AT="$1 ledger $2" KILL_LOG=points "$BURST" "${@:3}" >out.txt 2>err.txt </dev/null || STATUS=$?; } 2>/dev/null
	[ "$STATUS" = 137 ] || [ "$STATUS" = 0 ] || complain "killed $1 $2: exit $STATUS ($(tail -n 2 err.txt | tr '\n' '|'))"
}
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
	pkill -9 -f -- "queue run $T/"
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
		pkill -9 -f -- "queue run $T/"
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
	pkill -9 -f -- "queue run $T/"
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
t_no_capacity_is_tried_again() {
	script_lines 2
	LOCAL='capacity = 0;' config 'wait = "1s";'
	burst submit --quiet 0
	wait_for 30 "the first try to fail" are "tries = 1 and state = 'pending'" 1
	burst queue ls --json
	schema queue
	is "$(json '.[0] | "\(.tries) \(.exit_status) \(.next_try_at != null)"')" "1 null true" "what ls says"
	has out.txt "next try at"
	LOCAL='' config
	burst submit --quiet 0 # a new request does not wait for that
	waits_for_the_queue
	all_bound 2
	is "$(requests "state = 'done'")" 2 "done"
}
t_waits_for_work_and_for_the_price() {
	script_lines 3
	config
	burst submit --quiet 0 --min-segments 5 --json
	wait_for 20 "it to wait for segments" waits_because "3 segments to render so far"
	script_lines 5
	burst submit --quiet 0 --min-segments 5
	waits_for_the_queue
	all_bound 5
	is "$(runs)" 1 runs
	script_lines 6
	burst submit --quiet 0 --below 0.40
	wait_for 20 "it to wait for the price" waits_because 'the price is $0.6900/h'
	sed -i 's/price_per_hour = 0.69/price_per_hour = 0.39/' burst.cfg
	burst submit --quiet 0 --below 0.40 # each request asks again
	waits_for_the_queue
	all_bound 6
	script_lines 7
	burst submit --quiet 0 --below 0.10 --max-wait 2s
	waits_for_the_queue
	all_bound 7
}
waits_because() { "$BURST" queue ls 2>/dev/null | grep -qF -- "$1"; }
by_of() { "$BURST" queue ls --json | jq -r '.[-1].by'; }
t_times_of_day_over_dst() { # --by at the hours that a clock passes twice, or skips
	command -v faketime >/dev/null || { skip "no faketime"; return; }
	script_lines 1
	config
	export TZ=Europe/Berlin
	submit_at() { # submit_at UTC BY WANTED
		TZ=UTC faketime "$1" env TZ=Europe/Berlin "$BURST" submit --quiet 1h --by "$2" >/dev/null 2>err.txt || complain "submit: $(cat err.txt)"
		is "$(by_of)" "$3" "--by $2, submitted at $1"
	}
	submit_at "2026-10-24 20:00:00" 07:00 2026-10-25T06:00:00Z # 11 hours later by the clock, 12 in truth
	submit_at "2026-10-24 20:00:00" 02:30 2026-10-25T00:30:00Z # the first of two
	submit_at "2026-10-25 00:45:00" 02:30 2026-10-25T01:30:00Z # the second
	submit_at "2027-03-27 20:00:00" 07:00 2027-03-28T05:00:00Z
	submit_at "2027-03-27 20:00:00" 02:30 2027-03-28T01:30:00Z # there is none: so long after midnight
	submit_at "2027-03-28 05:00:00" 07:00 2027-03-29T05:00:00Z # now is not later
	submit_at "2026-07-01 10:00:00" 2h 2026-07-01T12:00:00Z
	unset TZ
	burst queue rm --all
	wait_for 10 "the client to end" no_runner
}

run_tests "$@"
