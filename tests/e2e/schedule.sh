#!/bin/bash
# schedule.sh - `burst schedule`: what wakes it is written and removed without a trace, what was missed is made up for once, and nothing
# is rendered twice.
. "$(dirname "$0")/lib.sh"
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/queue_lib.sh"

# A crontab program that keeps its text in a file; cron's own needs root, and there is one test with it.
fake_crontab() {
	mkdir -p bin
	cat >bin/crontab <<-E
		#!/bin/sh
		case \$1 in
		-l) [ -f '$T/tab' ] || { echo "no crontab for me" >&2; exit 1; }; cat '$T/tab' ;;
		-r) rm '$T/tab' ;;
		-) cat >'$T/tab' ;;
		esac
	E
	chmod 755 bin/crontab
	export PATH=$T/bin:$PATH
}
fake_systemctl() {
	mkdir -p bin
	printf '#!/bin/sh\necho "$@" >>%s/systemctl.log\n' "'$T'" >bin/systemctl
	printf '#!/bin/sh\necho no\n' >bin/loginctl
	chmod 755 bin/systemctl bin/loginctl
	export PATH=$T/bin:$PATH
}
FOUND_BY=$PATH
job() {
	export TZ=UTC HOME=$T PATH=$FOUND_BY
	script_lines 2
	config
}
fields() { # fields HOURS_AGO: the fields of a crontab for the minute that was then, every day
	date -u -d "$1 hours ago" '+%-M %-H * * *'
}
made_ago() { # made_ago DAYS: as if the schedule had been made then
	ledger "update schedule set made_ms = made_ms - $1 * 86400000"
}
states() { # of each request, oldest first
	ledger "select group_concat(state, ' ') from (select state from request order by seq)"
}
queue_log() { cat "$BURST_STATE_DIR"/jobs/*.queue.log; }

t_added_listed_and_removed() {
	job
	fake_crontab
	printf '# mine\n0 1 * * * backup\n' >tab
	cp tab tab.before
	burst schedule add nightly daily 02:00 --backend crontab
	is "$STATUS" 0 "exit status"
	has err.txt "first "
	has tab "0 2 * * * BURST_STATE_DIR='$BURST_STATE_DIR'"
	burst schedule add weekly weekly mon 03:00 --backend crontab --catch-up 0
	burst schedule add nightly daily 04:30 --backend crontab # in its place
	has err.txt "schedule nightly: replaced: daily 04:30, next run "
	is "$(grep -c 'schedule run nightly --due' tab)" 2 "lines of nightly"
	has tab "30 4 * * * "
	burst schedule ls --json
	schema schedule
	is "$(json '[.schedules[] | [.name, .when, .installed] | join(" ")] | join(", ")')" "nightly daily 04:30 true, weekly weekly mon 03:00 true" listed
	burst schedule ls
	has out.txt "UTC"
	sed -i '/nightly/d' tab
	burst schedule ls
	has out.txt "crontab (gone: add it again)"
	burst schedule rm weekly
	burst schedule rm nightly
	is "$STATUS" 0 "exit status of rm"
	cmp -s tab tab.before || complain "the crontab is not what it was: $(cat tab)"
	is "$(find "$BURST_STATE_DIR/schedules" -type f 2>/dev/null)" "" "files left"
	burst schedule rm nightly
	is "$STATUS" 2 "exit status of rm of none"
	rm tab # one who had no crontab has none afterwards
	burst schedule add nightly daily 02:00 --backend crontab
	burst schedule rm nightly
	[ ! -e tab ] || complain "a crontab is left"
}

t_started_ahead_of_a_cold_start() {
	job
	fake_crontab
	burst schedule add nightly daily 02:00 --backend crontab --ahead auto
	is "$STATUS" 2 "before any run"
	has err.txt "no run of this job has had a pod yet, so the cold start is unknown: give a time, like --ahead 5m"
	burst schedule add nightly daily 02:00 --backend crontab --ahead 20m
	is "$STATUS" 0 "a given time ($(tail -n 1 err.txt))"
	has tab "40 1 * * * "
	has err.txt 'starts 20m00s before each time of "daily 02:00". No pod idles'
	config 'prewarm = "auto";'
	burst schedule add nightly daily 02:00 --backend crontab
	has err.txt 'prewarm: starts at its times until a run of this job has shown how long a cold start takes'
	has tab "0 2 * * * "
	burst run
	is "$STATUS" 0 "run ($(tail -n 1 err.txt))"
	burst schedule add nightly daily 02:00 --backend crontab --ahead off
	has tab "0 2 * * * "
	script_lines 3
	burst plan
	has out.txt 'prewarm: its schedules start 1m00s before each time: without the earlier start, the first pod would work'
	burst schedule add nightly daily 02:00 --backend crontab
	is "$STATUS" 0 "after a run ($(tail -n 1 err.txt))"
	has tab "59 1 * * * "
	has err.txt 'starts 1m00s before each time of "daily 02:00", by the cold start; each start looks again: without the earlier start, the first pod would work '
	burst schedule ls
	has out.txt 'nightly is for "daily 02:00": without the earlier start, the first pod would work'
	burst schedule ls --json
	schema schedule
	is "$(json '.schedules[0].ahead | .times, .ahead_s' | xargs)" "daily 02:00 60" "the start ahead as JSON"
	burst plan --json
	schema plan
	is "$(json .prewarm.ahead_s)" 60 "of a plan as JSON"
	burst schedule add nightly daily 02:00 --backend crontab --ahead auto
	has err.txt 'each start looks again'
	is "$("$BURST" schedule ls --json | jq -r '.schedules[0] | .when, .next_at[11:19]' | xargs)" "59 1 * * * 01:59:00" "the rule"
	ledger "update pod set create_ms = create_ms - 600000" || complain "the ledger"
	burst schedule run nightly # pods took ten minutes longer
	is "$STATUS" 0 "schedule run ($(tail -n 1 err.txt))"
	grep -qE '^[1-4][0-9] 1 ' tab || complain "the timer does not follow: $(cat tab)"
	is "$(grep -c ' 1 [*] [*] [*] ' tab)" 1 "lines of its time"
	grep -qE 'schedule nightly: starts at "[1-4][0-9] 1 [*] [*] [*]" from now on' err.txt || complain "no word: $(cat err.txt)"
	# back to a minute: the start that moves behind the one that was submitted is for the same time
	local minute at
	minute=$(awk '/ 1 [*] [*] [*] / { print $1 }' tab)
	at=$(date -d "01:$minute" +%s)
	[ "$at" -lt "$(date +%s)" ] || at=$(date -d "yesterday 01:$minute" +%s)
	ledger "update pod set create_ms = create_ms + 600000" || complain "the ledger"
	ledger "update schedule set due_ms = ${at}000" || complain "the ledger"
	burst schedule run nightly --due
	is "$STATUS" 0 "schedule run --due ($(tail -n 1 err.txt))"
	has tab "59 1 * * * "
	is "$(ledger "select (due_ms / 1000 - $at) / 60 from schedule")" $((59 - 10#$minute)) "minutes to the start that counts as submitted"
	burst schedule add nightly daily 02:00 --backend crontab --ahead 20m
	burst schedule run nightly
	has tab "40 1 * * * "
}

t_units_are_valid() {
	job
	fake_systemctl
	burst schedule add nightly "30 7 13 * 5" --backend systemd
	is "$STATUS" 0 "exit status"
	has err.txt "loginctl enable-linger"
	local units=$XDG_CONFIG_HOME/systemd/user
	is "$(ls "$units")" "$(printf 'burst-nightly.service\nburst-nightly.timer')" units
	has systemctl.log "--user restart burst-nightly.timer"
	burst schedule ls --json
	is "$(json '.schedules[0].installed')" true installed
	local analyze
	analyze=$(command -v systemd-analyze)
	if [ -n "$analyze" ]; then
		mkdir run
		XDG_RUNTIME_DIR=$T/run "$analyze" verify --user "$units/burst-nightly.timer" "$units/burst-nightly.service" >verify.txt 2>&1 || complain "verify: $(head -n 3 verify.txt)"
		hasnt verify.txt burst-nightly
		sed -n 's/^OnCalendar=//p' "$units/burst-nightly.timer" | while read -r when; do
			"$analyze" calendar "$when" >>calendar.txt 2>&1 || echo "systemd does not take $when" >bad
		done
		[ ! -e bad ] || complain "$(cat bad)"
	fi
	# what the unit says is run as systemd would run it
	local command setting
	command=$(sed -n 's/^ExecStart=//p' "$units/burst-nightly.service")
	setting=$(sed -n 's/^Environment="\(.*\)"/\1/p' "$units/burst-nightly.service")
	ledger "update schedule set rule = '$(fields 1)'"
	made_ago 1
	eval "env -i '$setting' HOME='$T' timeout 90 $command" </dev/null >unit.txt 2>&1
	is "$?" 0 "exit status of the unit's command ($(tail -n 2 unit.txt))"
	is "$(wavs)" 2 files
	burst schedule rm nightly
	is "$(find "$units" -type f)" "" "units left"
	has systemctl.log "--user disable --now burst-nightly.timer"
}

# A schedule that works is not lost for one that cannot be installed.
t_the_schedule_before_survives_a_failed_one() {
	job
	fake_crontab
	printf '# mine\n' >tab
	burst schedule add nightly daily 02:00 --backend crontab
	cp tab tab.before
	local before
	before=$(ledger 'select * from schedule')
	sed -i "s|^-) |-) [ ! -e '$T/full' ] \|\| { echo disk full >\&2; exit 1; }; |" bin/crontab
	: >full
	burst schedule add nightly daily 03:00 --backend crontab
	is "$STATUS" 1 "exit status"
	has err.txt "schedule nightly: not replaced: crontab failed with exit status 1: disk full"
	cmp -s tab tab.before || complain "the crontab changed: $(cat tab)"
	is "$(ledger 'select * from schedule')" "$before" "the row"
	rm full
	# units: each step of systemd's may fail, and the files are as they were
	fake_systemctl
	burst schedule add weekly weekly mon 03:00 --backend systemd
	local units=$XDG_CONFIG_HOME/systemd/user step
	cp -r "$units" units.before
	for step in daemon-reload enable restart; do
		printf '#!/bin/sh\necho "$@" >>%s/systemctl.log\ncase $2 in %s) echo no bus >&2; exit 1 ;; esac\n' "'$T'" $step >bin/systemctl
		burst schedule add weekly weekly tue 04:00 --backend systemd
		is "$STATUS" 1 "$step fails: exit status"
		has err.txt "schedule weekly: not replaced: systemctl failed with exit status 1: no bus"
		diff -r "$units" units.before >diff.txt || complain "$step: the units changed: $(head -n 3 diff.txt)"
		burst schedule add other daily 05:00 --backend systemd
		is "$STATUS" 1 "$step fails for a new one: exit status"
		diff -r "$units" units.before >diff.txt || complain "$step: units are left: $(head -n 3 diff.txt)"
	done
	# from one timer to another: the new one fails, or the old one cannot be removed
	burst schedule add nightly daily 03:00 --backend systemd
	is "$STATUS" 1 "another timer that fails: exit status"
	is "$(ledger "select backend from schedule where name = 'nightly'")" crontab "its timer"
	fake_systemctl
	: >full
	burst schedule add nightly daily 03:00 --backend systemd
	is "$STATUS" 1 "an old timer that stays: exit status"
	is "$(ledger "select rule from schedule where name = 'nightly'")" "daily 02:00" "its rule"
	diff -r "$units" units.before >diff.txt || complain "units are left: $(head -n 3 diff.txt)"
	rm full
	burst schedule add nightly daily 03:00 --backend systemd
	is "$STATUS" 0 "exit status at last ($(tail -n 1 err.txt))"
	is "$(cat tab)" "# mine" "the crontab"
	is "$(ledger 'select count(*) from schedule')" 2 schedules
}

# Two state folders have schedules of one name: neither touches the other's.
t_two_state_folders() {
	job
	fake_crontab
	fake_systemctl
	burst schedule add nightly daily 02:00 --backend crontab
	cp tab tab.one
	BURST_STATE_DIR=$T/state2 burst schedule add nightly daily 03:00 --backend crontab
	is "$STATUS" 0 "exit status"
	is "$(grep -c 'schedule run nightly --due' tab)" 4 lines
	BURST_STATE_DIR=$T/state2 burst schedule rm nightly
	cmp -s tab tab.one || complain "the first one's lines changed: $(cat tab)"
	burst schedule add weekly daily 02:00 --backend systemd
	BURST_STATE_DIR=$T/state2 burst schedule add weekly daily 03:00 --backend systemd
	is "$STATUS" 2 "units: exit status"
	has err.txt 'another state folder has a schedule "weekly"'
	has "$XDG_CONFIG_HOME/systemd/user/burst-weekly.timer" "2:0:00"
	burst schedule ls --json
	is "$(json '[.schedules[].installed] | all')" true installed
}

# A path adds no line to a crontab or a unit.
t_paths_add_no_line() {
	job
	fake_crontab
	fake_systemctl
	local odd=$'st\n* * * * * touch pwned\n#' backend
	printf '# mine\n' >tab
	for backend in crontab systemd; do
		BURST_STATE_DIR=$T/$odd burst schedule add nightly daily 02:00 --backend $backend
		is "$STATUS" 2 "$backend: exit status"
		has err.txt "the path of the state folder has a line break"
		is "$(grep -c "^burst: .*touch pwned" err.txt)" 1 "$backend: the path in one line ($(cat err.txt))"
		mkdir -p "$odd"
		cp "$BURST" "$odd/burst" # the program itself stands in such a folder
		BURST=$T/$odd/burst burst schedule add nightly daily 02:00 --backend $backend
		is "$STATUS" 2 "$backend: the program's path: exit status ($(tail -n 1 err.txt))"
		has err.txt "the path of burst has a line break"
	done
	is "$(cat tab)" "# mine" "the crontab"
	[ ! -e "$XDG_CONFIG_HOME/systemd/user" ] || is "$(find "$XDG_CONFIG_HOME/systemd/user" -type f)" "" units
	is "$(ledger 'select count(*) from schedule')" 0 schedules
	odd="a % \$HOME 'b' \"c\" \\d"
	BURST_STATE_DIR=$T/$odd burst schedule add nightly "$(fields 1)" --backend crontab
	is "$STATUS" 0 "quotes: exit status"
	# cron takes the backslash before a "%" away, and gives the rest to a shell
	grep -F -- ' --due ' tab | head -n 1 | cut -d' ' -f6- | sed 's/\\%/%/g' >line.sh
	made=$(BURST_STATE_DIR=$T/$odd "$BURST" schedule ls --json | jq -r '.schedules[0].name')
	is "$made" nightly "its name"
	sqlite3 "$T/$odd/ledger.db" "update schedule set made_ms = made_ms - 86400000"
	env -i HOME="$T" PATH="$FOUND_BY" timeout 90 sh line.sh
	is "$?" 0 "exit status of cron's line"
	is "$(wavs)" 2 files
}

t_a_missed_run_is_made_up_for_once() {
	job
	fake_crontab
	burst schedule add nightly "$(fields 3)" --backend crontab
	burst schedule run nightly --due
	is "$STATUS" 0 "exit status"
	is "$(states)" "" "before it was due"
	made_ago 3
	for _ in 1 2 3; do # a timer and its ticks, at once
		"$BURST" schedule run nightly --due >>wakes.txt 2>&1 &
	done
	wait
	is "$(states)" "done" requests
	is "$(wavs)" 2 files
	has wakes.txt "2 earlier times were missed"
	is "$(ledger 'select count(*) from run')" 1 runs
	burst schedule run nightly --due
	is "$(states)" "done" "requests after one more wake"
	burst schedule log nightly
	has out.txt " done "
	queue_log >queue.log
	has queue.log ": done"
	burst schedule ls --json
	schema schedule
	is "$(json '.schedules[0].last | [.state, .run, .exit_status] | join(" ")')" "done $(ledger 'select id from run') 0" "its last"
}

t_what_was_missed_for_too_long_is_said() {
	job
	fake_crontab
	burst schedule add nightly "$(fields 3)" --backend crontab --catch-up 1h
	made_ago 2
	burst schedule run nightly --due
	is "$STATUS" 0 "exit status"
	is "$(states)" removed requests
	is "$(wavs)" 0 files
	burst schedule log nightly
	has out.txt "asleep for longer than --catch-up"
	burst schedule run nightly --due
	is "$(states)" removed "requests after one more wake"
}

t_no_capacity_is_tried_again() {
	LOCAL='capacity = 0;'
	job
	echo 'wait = "1s";' >>burst.cfg
	fake_crontab
	burst schedule add nightly "$(fields 1)" --backend crontab
	made_ago 1
	"$BURST" schedule run nightly --due >wake.txt 2>&1 &
	local pid=$!
	wait_for 60 "the first try" are "tries = 1" 1
	is "$(requests "state = 'pending' and not_before_ms > created_ms")" 1 "requests that the queue will retry"
	ledger "update request set tries = 11, not_before_ms = 0"
	STATUS=0
	wait $pid || STATUS=$?
	is "$STATUS" 4 "exit status ($(queue_log | tail -n 3))"
	is "$(ledger "select state || ' ' || tries || ' ' || exit_status from request")" "failed 12 4" request
	is "$(queue_log | grep -c 'will be retried later')" 2 "tries in the log"
	rm script.jsonl # of no use to try again
	burst schedule run nightly
	is "$STATUS" 2 "exit status by hand"
	has err.txt "script.jsonl"
	is "$(ledger "select tries from request order by seq desc limit 1")" 0 "retries of a mistake"
}

# The machine goes down in the middle: the next wake goes on, and what is home is not rendered again.
t_killed_in_the_middle() {
	job
	slow_segments 6
	fake_crontab
	burst schedule add nightly "$(fields 1)" --backend crontab
	made_ago 1
	setsid "$BURST" schedule run nightly --due >/dev/null 2>&1 &
	local pid=$!
	wait_for 60 "the first file" file_count out 1
	# shellcheck disable=SC2046
	kill -9 -- -$pid $(descendants $pid) 2>/dev/null
	wait $pid 2>/dev/null
	is "$(states)" running "requests after the kill"
	burst schedule run nightly --due
	is "$STATUS" 0 "exit status ($(queue_log | tail -n 3))"
	is "$(states)" "done" requests
	is "$(runs)" 1 runs
	all_right 6
}

# Whichever write of the ledger its process dies at: the next tick finds one request for what was due.
t_killed_at_any_write() {
	make -s -C "$ROOT" e2e-tools || { complain "killer.so cannot be built"; return; }
	job
	fake_crontab
	burst run
	is "$STATUS" 0 "exit status of a run" # from now on there is nothing to rent
	burst schedule add nightly "$(fields 1)" --backend crontab
	made_ago 1
	local when n=0 dies=137
	while [ $dies = 137 ]; do
		n=$((n + 2))
		for when in before after; do
			ledger "delete from request; update schedule set due_ms = 0, request = ''"
			killed $when $n schedule run nightly --due
			dies=$STATUS
			burst schedule run nightly --due
			is "$STATUS $(states)" "0 done" "$when $n ($dies)"
			is "$(ledger "select request = (select id from request) from schedule")" 1 "$when $n: the one that the schedule names"
		done
	done
	[ $n -gt 2 ] || complain "only $n writes"
	echo "    about $n writes"
}

# systemd fires no timer while what it started before still works on the queue, which may wait for long.
t_what_becomes_due_while_the_queue_waits() {
	job
	fake_crontab
	burst schedule add nightly "$(fields 1)" --backend crontab
	burst submit --quiet 1h
	wait_for 20 "the queue to wait" are "state = 'pending'" 1
	made_ago 1
	wait_for 40 "the schedule's request" are 1 2
	waits_for_the_queue
	all_bound 2
	is "$(runs)" 1 runs
	wait_for 10 "the client to end" no_runner
}

# What burst cannot keep it does not write.
t_a_crontab_with_a_zero_byte() {
	job
	fake_crontab
	printf '0 1 * * * one\n\0\n0 2 * * * two\n' >tab
	cp tab tab.before
	burst schedule add nightly daily 02:00 --backend crontab
	is "$STATUS" 1 "exit status"
	has err.txt "the crontab has a zero byte: not changed"
	cmp -s tab tab.before || complain "lines are lost: $(tr '\0' '@' <tab)"
}

# started_with WORD COMMAND...: as a caller that ignores SIGCHLD, or blocks all signals, starts it
started_with() {
	exec python3 -c 'import os, signal, sys
if sys.argv[1] == "ignored":
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
else:
    signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 32))
os.execv(sys.argv[2], sys.argv[2:])' "$@"
}
has_ended() { ! running_as "$1"; }
ends_with() { # ends_with PID STATUS WHAT: soon
	wait_for 30 "the end of $3" has_ended "$1" || kill -9 "$1"
	STATUS=0
	{ wait "$1" || STATUS=$?; } 2>/dev/null
	is "$STATUS" "$2" "exit status of $3 ($(tail -n 1 err.txt))"
}
# What a timer ignores or blocks is no reason to wait for ever for a program, or to be deaf to a stop.
t_signals_of_the_caller() {
	job
	fake_crontab
	(started_with ignored "$BURST" schedule add nightly "$(fields 1)" --backend crontab) >out.txt 2>err.txt </dev/null &
	ends_with $! 0 "add"
	has tab "schedule run nightly --due"
	slow_segments 60
	made_ago 1
	(started_with blocked "$BURST" schedule run nightly --due) >out.txt 2>err.txt </dev/null &
	local pid=$!
	wait_for 60 "a segment" file_count out 1
	kill -TERM $pid
	ends_with $pid 143 "the schedule after SIGTERM"
	is "$(ledger "select status from run")" interrupted "the run"
	is "$(states)" running "what goes on with the next one"
}

t_overlap() {
	job
	slow_segments 6
	fake_crontab
	burst schedule add nightly "$(fields 1)" --backend crontab
	made_ago 1
	burst_bg run
	wait_for 60 "a segment" file_count out 1
	timeout 90 "$BURST" schedule run nightly --due >/dev/null 2>&1
	is "$(states)" "done" "after it"
	burst_wait
	is "$STATUS" 0 "exit status"
	is "$(ledger 'select max(tries) from request')" 0 tries
	all_right 6
}

t_no_key_is_written() {
	job
	fake_crontab
	sed -i 's/^provider = .*/provider = ["local", "runpod"];/' burst.cfg
	export HTTPS_PROXY=http://me:secretpass@proxy:3128
	RUNPOD_API_KEY=rpa_0123456789abcdef burst schedule add nightly daily 02:00 --backend crontab
	is "$STATUS" 3 "exit status"
	has err.txt "RUNPOD_API_KEY is set only in this shell"
	[ ! -e tab ] || complain "the crontab was written"
	mkdir -p "$XDG_CONFIG_HOME/burst"
	echo 'providers = { runpod = { api_key_command = "echo rpa_0123456789abcdef"; }; };' >"$XDG_CONFIG_HOME/burst/burst.cfg"
	chmod 600 "$XDG_CONFIG_HOME/burst/burst.cfg"
	RUNPOD_API_KEY=rpa_0123456789abcdef burst schedule add nightly daily 02:00 --backend crontab
	is "$STATUS" 0 "exit status with a key in the user's file"
	! grep -rqF -e rpa_0123456789abcdef -e secretpass tab "$BURST_STATE_DIR" || complain "a secret was written: $(grep -rlF rpa_0123456789abcdef tab "$BURST_STATE_DIR")"
}

t_bad_input() {
	job
	fake_crontab
	local line words status
	while IFS='|' read -r line status words; do
		# shellcheck disable=SC2086
		burst schedule $line
		is "$STATUS" "$status" "exit status of \"$line\""
		has err.txt "$words"
		is "$(wc -l <err.txt)" 1 "lines of \"$line\""
	done <<-E
		add nightly tomorrow|2|is not a time to run at
		add nightly 0 0 31 2 *x|2|is not a valid day of the week
		add Nightly daily 02:00|2|is not a valid name
		add nightly daily 02:00 --backend at|2|systemd or crontab
		add nightly daily 02:00 --catch-up soon|2|--catch-up
		add nightly daily 02:00 --config nowhere.cfg|2|nowhere.cfg
		add nightly daily 02:00 --ahead soon|2|--ahead
		add nightly daily 02:00 --ahead 1d|2|--ahead 1d: must be less than a day
		add nightly monthly 1 00:04 --ahead 5m|2|on another day
		add nightly|2|expected add NAME WHEN
		run nightly|2|no schedule "nightly"
		sing|2|expected add NAME WHEN
	E
	is "$(ledger 'select count(*) from schedule')" 0 "schedules made"
	mkdir empty
	timeout 20 env PATH="$T/empty" "$BURST" schedule add nightly daily 02:00 >out.txt 2>err.txt
	is "$?" 1 "exit status without any cron"
	has err.txt "install cron"
	cat >bin/crontab <<-'E'
		#!/bin/sh
		[ "$1" = -l ] && { echo "no crontab for me" >&2; exit 1; }
		echo "you may not use this program" >&2
		exit 1
	E
	burst schedule add nightly daily 02:00 --backend crontab
	is "$STATUS" 1 "exit status where cron refuses"
	has err.txt "you may not use this program"
	is "$(ledger 'select count(*) from schedule')" 0 "schedules left"
}

# Debian's cron, in a namespace with a spool of its own: up to a minute until it looks.
t_cron_wakes_it() {
	command -v cron crontab >/dev/null || { skip "no cron"; return; }
	unshare -m true 2>/dev/null || { skip "not root"; return; }
	job
	cat >inside.sh <<-E
		set -e
		mount -t tmpfs none /var/spool/cron
		mkdir -p /var/spool/cron/crontabs
		mount -t tmpfs none /run
		mount --bind /dev/null /etc/crontab
		mount -t tmpfs none /etc/cron.d
		cron -f &
		trap 'kill \$!' EXIT
		sleep 1.5 # cron tells crontabs apart by the second
		'$BURST' schedule add often every 1m --backend crontab
		n=0
		until '$BURST' schedule log often --json | grep -q '"state":"done"' || [ \$n -ge 100 ]; do sleep 1; n=\$((n + 1)); done
		cat '$BURST_STATE_DIR/jobs/'*.queue.log >'$T/often.log'
		'$BURST' schedule rm often
		crontab -l 2>&1 || :
	E
	unshare -m sh inside.sh >cron.txt 2>&1 </dev/null
	is "$(wavs)" 2 "files ($(tail -n 3 often.log cron.txt))"
	is "$(tail -n 1 cron.txt)" "no crontab for root" "the crontab afterwards"
}

run_tests "$@"
