#!/bin/bash
# queue.sh - triggers are queued, never lost: submits merge, and one client renders the newest state once.
. "$(dirname "$0")/lib.sh"
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/queue_lib.sh"

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
	burst queue rm nosuch
	is "$STATUS" 2 "rm of an unknown request"
	has err.txt 'no request "nosuch"; `burst queue ls` lists them'
	burst keep nosuch
	is "$STATUS" 2 "keep of an unknown run"
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
# Looks of ten days at 02:00 found a lower price on eight of them: that is what --below auto waits for.
t_below_what_most_days_reached() {
	local now day looks=''
	script_lines 3
	config
	burst submit --below auto
	is "$STATUS" 2 "without a run"
	has err.txt "no run of this job has rented a pod at a price yet: give a price, like --below 0.40"
	burst run
	is "$STATUS" 0 "run ($(tail -n 1 err.txt))"
	burst submit --below auto
	is "$STATUS" 2 "after one day"
	has err.txt "are known for 1 day, 7 are needed"
	now=$(date +%s)
	for day in $(seq 10 -1 1); do
		looks="$looks$((now / 86400 * 1440 - day * 1440 + 120))=$((day > 8 ? 690000 : 390000)) "
	done
	looks=$(awk '{ for (i = 1; i <= NF; i++) { split($i, a, "="); printf "%d=%d ", a[1] - last, a[2]; last = a[1] } }' <<<"$looks")
	TZ=UTC ledger "update fact set value = '$looks' where name like 'prices:local:%'" || complain "the ledger"
	# a run that had another kind of pod, which was cheaper on the same days, at half past two
	ledger "create temp table t as select * from pod limit 1; update t set seq = null, attempt = 'there', id = 'there', region = 'there';
		insert into pod select * from t" || complain "the ledger"
	cheap_there() { # cheap_there PRICE: what it cost on all ten days
		local text=$((10#$(awk '{ print $1 }' <<<"${looks%%=*}") + 30))=$1 i
		for i in 1 2 3 4 5 6 7 8 9; do text="$text 1440=$1"; done
		ledger "insert or replace into fact (name, value) values ('prices:local:$(printf 'none\n1\nthere\n0' | sha256sum | cut -c1-24)', '$text')" || complain "the ledger"
	}
	cheap_there 290000
	script_lines 4
	TZ=UTC burst submit --quiet 1h --below auto
	has err.txt "--below auto: \$0.2900 an hour, which the cheapest of 2 kinds of pods that its runs had reached on 10 of 10 days"
	burst queue rm --all
	cheap_there 990000
	TZ=UTC burst submit --quiet 1h --below auto
	has err.txt "--below auto: \$0.3900 an hour, which the cheapest of 2 kinds of pods"
	burst queue rm --all
	wait_for 20 "the client to end" no_runner
	ledger "delete from pod where attempt = 'there'"
	TZ=UTC burst submit --quiet 0 --below auto
	is "$STATUS" 0 "after ten days ($(tail -n 1 err.txt))"
	has err.txt "--below auto: \$0.3900 an hour, which no GPU at local reached on 8 of 10 days"
	wait_for 20 "it to wait for the price" waits_because 'the price is $0.6900/h'
	sed -i 's/price_per_hour = 0.69/price_per_hour = 0.39/' burst.cfg
	burst submit --quiet 0 --below auto
	waits_for_the_queue
	all_bound 4
}
waits_because() { "$BURST" queue ls 2>/dev/null | grep -qF -- "$1"; }
by_of() { "$BURST" queue ls --json | jq -r '.[-1].by'; }
t_times_of_day_over_dst() { # --by at the hours that a clock passes twice, or skips
	false_clock || return
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
