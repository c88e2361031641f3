#!/bin/bash
# resumed.sh - what a run was told holds when it is resumed; a dead run is settled once, whoever comes first.
. "$(dirname "$0")/lib.sh"

t_a_resumed_run_keeps_its_caps() {
	cat >burst.cfg <<-'E2'
		provider = "local";
		job = { name = "c"; type = "command"; run = "sleep 13; echo done >f"; outputs = ["f"]; output = "out"; };
		providers = { local = { price_per_hour = 36.0; }; };
	E2
	burst run --max-cost 0.23 --max-duration 12s -q
	is "$STATUS" 5 "the run: exit status ($(tail -n 2 err.txt))"
	local run before
	run=$(ledger 'select id from run')
	before=$(ledger 'select cost_microusd from run')
	[ "$before" -gt 0 ] || complain "nothing was rented: $(cat err.txt)"
	burst resume
	is "$STATUS" 5 "resume: exit status ($(tail -n 2 err.txt))"
	is "$(ledger 'select cost_microusd <= 230000 from run')" 1 "what it cost in all ($(ledger 'select cost_microusd from run'), before $before)"
	burst attach "$run" --max-cost 0
	is "$STATUS" 5 "attach to what has ended"
	burst resume --max-cost 0
	is "$STATUS" 2 "no cap at all: exit status"
	burst resume --max-cost 1 --max-duration 2m --json
	is "$STATUS" 0 "resume with other caps: exit status ($(tail -n 2 err.txt))"
	is "$(cat out/f)" "done" "its output"
	is "$(json ".cost_usd > $before / 1000000")" true "what it cost in all ($(json .cost_usd))"
}

choice_says() { [ -n "$(ledger "select run from choice where $1")" ]; }
decided() { ledger "select $1 from choice"; }
t_a_resumed_run_keeps_its_decision() { # width, goal, deadline, forecasts: made once; what can be had bounds the width
	script_lines 3000
	REHEARSE='capacity = 3; boot_delay = "1s";' config 'goal = "time"; deadline = "30m";'
	burst_bg run
	wait_for 40 "some files" file_count out 20
	kill -INT "$PID"
	burst_wait
	is "$STATUS" 130 "the run: exit status ($(tail -n 2 err.txt))"
	has err.txt "plan: 3 pods"
	is "$(ledger 'select count(*) from pod')" 3 "pods that were asked for"
	[ "$(grep -c 'renting a pod' err.txt)" -le 3 ] || complain "more lines than pods" # a quick create shows none
	is "$(decided "goal, pods, pods_open, at_once")" "time|3|1|1" "what it decided"
	is "$(decided "deadline_ms - (select started_ms from run) between 1700000 and 1800000")" 1 "its deadline, from the command's start"
	[ "$(ledger 'select count(*) from forecast')" -gt 0 ] || complain "no forecast is in the ledger"
	local before kept
	before=$(ledger 'select count(*) from pod')
	kept=$(ledger 'select * from choice')
	burst_bg resume
	wait_for 40 "three pods of the resumed run" row_says "(select count(*) from pod where ready_ms > 0) = $before + 3"
	kill -INT "$PID"
	burst_wait
	is "$(ledger 'select count(*) from pod')" $((before + 3)) "pods with those of the resumed run ($(tail -n 2 err.txt))"
	is "$(ledger 'select * from choice')" "$kept" "what it decided, after resume"
	burst ledger "$(ledger 'select id from run')"
	has out.txt 'decided   goal time; deadline '
	"$BURST" ledger "$(ledger 'select id from run')" --json >decision.json
	schema run decision.json
	is "$(jq -c '.decision | [.goal, .pods, .pods_planned, .at_once, .deadline, (.deadline_at != null), (.forecasts | length > 0)]' decision.json)" \
		'["time",3,true,true,"30m",true,true]' "the decision for programs"
	has out.txt 'because   3 pods of no GPU at local_play'
	has out.txt 'expected  no GPU at local_play: up in '
	has out.txt 'one run in ten is slower by a factor of '
}

t_a_deadline_that_has_passed_is_dropped_on_resume() { # which is said; another one may be named, and it counts from then
	script_lines 3000
	LOCAL='capacity = 2;' config 'goal = "time"; deadline = "30m";'
	burst_bg run
	wait_for 40 "some files" file_count out 5
	kill -INT "$PID"
	burst_wait
	ledger "update choice set deadline_ms = 1000000000000"
	burst_bg resume
	wait_for 40 "the word about it" grep -q "its deadline (30m: 2001-09-09T01:46:40Z) cannot be kept any more: it continues without one" err.txt
	kill -INT "$PID"
	burst_wait
	is "$STATUS" 130 "resume: exit status ($(tail -n 2 err.txt))"
	burst_bg resume --deadline 50m
	wait_for 40 "a new deadline" choice_says "deadline = '50m' and deadline_ms - strftime('%s', 'now') * 1000 between 2900000 and 3000000"
	kill -INT "$PID"
	burst_wait
	hasnt err.txt "cannot be kept"
	burst resume --deadline 1s
	is "$STATUS" 5 "a deadline before a pod is up: exit status ($(tail -n 2 err.txt))"
}

t_a_lower_cap_holds_for_a_living_pod() { # ... which was rented to live for five minutes; at $0.10 a second there are 15 s left
	cat >burst.cfg <<-'E2'
		provider = "local";
		job = { name = "c"; type = "command"; run = "sleep 60; echo done >f"; outputs = ["f"]; output = "out"; };
		providers = { local = { price_per_hour = 360.0; }; };
	E2
	burst_bg run --max-cost 30 --max-duration 5m
	wait_for 40 "a pod at work" row_says "ready_ms > 0"
	kill -9 "$PID"
	burst_wait 2>/dev/null
	local cap
	cap=$(ledger "select cast((strftime('%s', 'now') + 1 - create_ms / 1000) / 10.0 + 1.5 as text) from pod")
	burst resume --max-cost "$cap" --json
	is "$STATUS" 5 "resume --max-cost $cap: exit status ($(tail -n 2 err.txt))"
	has err.txt "the caps leave it less time than it was rented for"
	is "$(json ".cost_usd <= $cap")" true "what it cost in all ($(json .cost_usd), with a cap of $cap)"
	is "$(pods_left)" "" "pods"
}

t_a_lower_price_holds_for_a_living_pod() { # as burst.cfg has it by then: it goes at once
	cat >burst.cfg <<-'E2'
		provider = "local";
		wait = "3s";
		job = { name = "c"; type = "command"; run = "sleep 60; echo done >f"; outputs = ["f"]; output = "out"; };
		caps = { max_cost = 30.0; max_duration = "5m"; };
		providers = { local = { price_per_hour = 36.0; }; };
	E2
	burst_bg run
	wait_for 40 "a pod at work" row_says "ready_ms > 0"
	kill -9 "$PID"
	burst_wait 2>/dev/null
	sed -i 's/^caps = {/& max_price_per_hour = 35.0;/' burst.cfg
	local began=$SECONDS
	burst resume --json
	is "$STATUS" 4 "resume: exit status ($(tail -n 2 err.txt))"
	[ $((SECONDS - began)) -le 30 ] || complain "it took $((SECONDS - began)) s"
	has err.txt "its price is above caps.max_price_per_hour"
	is "$(json '.pods | length')" 1 pods
	is "$(pods_left)" "" "pods that are left"
}

t_a_resumed_run_keeps_its_flags() { # it was tried at home, and the file has a vendor; its output folder is that of then, too
	script_lines 100
	config 'pods = 1;'
	sed -i 's/provider = "local"/provider = "runpod"/' burst.cfg
	mkdir elsewhere
	burst_bg run -p local --pods 2 -o there
	wait_for 40 "a file" file_count there 1
	kill -9 "$PID"
	burst_wait 2>/dev/null
	cd elsewhere || return
	burst attach "$(ledger 'select id from run')" --max-cost 0.9
	cd ..
	is "$STATUS" 0 "attach: exit status ($(tail -n 2 elsewhere/err.txt))"
	is "$(ledger 'select group_concat(distinct provider) from pod')" local "who was rented from"
	is "$(wavs there)" 100 files
}

t_a_resumed_run_may_overwrite_as_before() { # what --force allowed the run it allows whoever comes back to it, and nobody else
	script_lines 100
	config 'pods = 1;'
	mkdir out
	echo mine >out/s099.wav
	burst run
	is "$STATUS" 2 "a run without --force: exit status"
	has err.txt "s099.wav is there and was not made by this job"
	burst_bg run --force
	wait_for 40 "a file" file_count out 3
	kill -9 "$PID"
	burst_wait 2>/dev/null
	burst fetch "$(ledger 'select id from run')"
	is "$STATUS" 0 "fetch: exit status ($(tail -n 2 err.txt))"
	burst resume
	is "$STATUS" 0 "resume: exit status ($(tail -n 2 err.txt))"
	is "$(head -c 4 out/s099.wav)" RIFF "the file that stood there"
	is "$(wavs)" 100 files
}

fast_cancel() { # fast_cancel RUN: by a clock on which a second is a minute; how long it took by that in $MINUTES
	local began=${EPOCHREALTIME/./}
	STATUS=0
	NO_FAKE_STAT=1 timeout -k 5 90 faketime -f '+0 x60' "$BURST" cancel "$1" >out.txt 2>err.txt </dev/null || STATUS=$?
	MINUTES=$(((${EPOCHREALTIME/./} - began) / 1000000))
}

t_client_that_does_not_end_on_cancel_clock() { # it is waited for, which is said; then who it is and what to do
	false_clock || return 0
	script_lines 300
	config 'pods = 1; lease = "1m";'
	burst_bg run
	wait_for 40 "a file" file_count out 1
	local run
	run=$(ledger 'select id from run')
	kill -9 "$PID"
	burst_wait 2>/dev/null
	hold_lock "state/runs/$run/lock" "process %d" &
	local wedged=$!
	wait_for 10 "the lock" grep -q "process $wedged" "state/runs/$run/lock"
	fast_cancel "$run"
	is "$STATUS" 9 "exit status"
	[ $MINUTES -ge 6 ] && [ $MINUTES -lt 8 ] || complain "it was waited for $MINUTES minutes"
	has err.txt "run $run: asked its client (process $wedged) to stop; waiting for it to release its pods"
	has err.txt "run $run: its client (process $wedged) does not exit, and its pods may still be billing; run \`kill -9 $wedged\`"
	: >"state/runs/$run/lock" # written on a full disk: nobody knows who it is, and no command is made up
	STATUS=0
	NO_FAKE_STAT=1 timeout -k 5 90 faketime -f '+0 x100' "$BURST" cancel "$run" >out.txt 2>err.txt </dev/null || STATUS=$?
	is "$STATUS" 9 "exit status without a note"
	has err.txt "its pods may still be billing: another process still holds"
	hasnt err.txt "kill -9"
	kill -9 $wedged
	wait $wedged 2>/dev/null
	burst cancel "$run"
	is "$STATUS" 0 "cancel, when it has ended"
}

t_client_that_looks_for_a_lost_pod_on_cancel_clock() { # is waited for as long as anything happens
	false_clock || return 0
	script_lines 300
	config 'pods = 1; lease = "1m";'
	burst_bg run
	wait_for 40 "a file" file_count out 1
	local run holder i
	run=$(ledger 'select id from run')
	kill -9 "$PID"
	burst_wait 2>/dev/null
	ledger "update pod set state = 'intent'"
	hold_lock "state/runs/$run/lock" "process %d" &
	holder=$!
	wait_for 10 "the lock" grep -q "process $holder" "state/runs/$run/lock"
	fast_cancel "$run"
	is "$STATUS" 9 "exit status, when nothing happens"
	[ $MINUTES -ge 8 ] && [ $MINUTES -lt 10 ] || complain "it was waited for $MINUTES minutes"
	NO_FAKE_STAT=1 timeout -k 5 90 faketime -f '+0 x60' "$BURST" cancel "$run" >out.txt 2>err.txt </dev/null &
	SHELL_PID=$!
	for i in ambiguous live releasing; do # each 3 minutes there
		ledger "update pod set state = '$i'"
		read -rt 3 <> <(:) || :
	done
	running_as $SHELL_PID || complain "it was not waited for ($(tail -n 1 err.txt))"
	has err.txt "waiting for it to find the pod of a create whose reply was lost"
	hasnt err.txt "kill -9"
	: >free
	burst_wait
	is "$STATUS" 0 "cancel, when it has ended ($(tail -n 2 err.txt | tr '\n' '|'))"
}

dead_run() { # it had brought a file home
	script_lines 300
	config 'pods = 2;'
	burst_bg run
	wait_for 40 "a file" file_count out 1
	kill -9 "$PID"
	burst_wait 2>/dev/null
}

two_jobs() { # in folders a and b
	local name
	allow_volumes v
	for name in a b; do
		mkdir -p $name
		sed "s/name = \"e2e\"/name = \"$name\"/" burst.cfg >$name/burst.cfg
		cp script.jsonl $name/
	done
}

t_dead_run_is_settled_by_two_at_once() { # two timers in the same second: who comes second to it renders all the same
	dead_run
	script_lines 3
	two_jobs
	(cd a && burst run && exit "$STATUS") &
	local first=$! one=0
	(cd b && burst run && exit "$STATUS")
	is "$?" 0 "one of them ($(tail -n 2 b/err.txt))"
	wait $first || one=$?
	is "$one" 0 "the other one ($(tail -n 2 a/err.txt))"
	is "$(wavs a/out) $(wavs b/out)" "3 3" files
	is "$(ledger "select count(*) from run where status = 'interrupted'")" 1 "the dead one"
	cp a/err.txt .
}

# A dead run, detached and past its hard end, at a vendor whose key takes its time: until there is a file called go, the next run
# has judged it and not taken it up. The run's id in $run
judged_not_settled() {
	script_lines 2
	config
	burst run
	run=$(ledger 'select id from run')
	ledger "create temp table t as select * from pod;
		update t set seq = null, attempt = 'cccccccccccccccc', id = 'rp1', provider = 'runpod', account = 'x', state = 'live', gone_ms = 0,
			released_ms = 0, hard_end_s = hard_end_s - 864000, create_ms = create_ms - 864000000;
		insert into pod select * from t;
		update run set status = 'running', detached = 1, ended_ms = 0"
	mkdir -p home/.config/burst
	echo "providers = { runpod = { api_key_command = \"touch '$T/asked'; until [ -e '$T/go' ]; do sleep 0.1; done; exit 1\"; }; };" >home/.config/burst/burst.cfg
	script_lines 3
	two_jobs
	cd a || return
	burst_bg run
	cd .. || return
	wait_for 20 "the key's command" test -e asked
}

t_settled_by_somebody_else_meanwhile() { # its row stays as that one wrote it
	local run
	judged_not_settled
	ledger "update run set status = 'done', detached = 0, ended_ms = 7 where id = '$run'"
	: >go
	burst_wait
	is "$STATUS" 0 "exit status ($(tail -n 2 a/err.txt))"
	has a/err.txt "run $run: another client handles it"
	is "$(ledger "select status || ' ' || ended_ms from run where id = '$run'")" "done 7" "its row"
	is "$(ledger "select state from pod where id = 'rp1'")" live "its pod"
	is "$(wavs a/out)" 3 files
	ledger "update pod set state = 'gone' where id = 'rp1'"
	cp a/err.txt .
}

t_settled_by_somebody_else_just_now() { # who holds its lock
	local run
	judged_not_settled
	mkdir -p "state/runs/$run"
	hold_lock "state/runs/$run/lock" "process %d" &
	local holder=$!
	wait_for 10 "the lock" grep -q "process $holder" "state/runs/$run/lock"
	: >go
	burst_wait
	kill -9 $holder
	is "$STATUS" 0 "exit status ($(tail -n 2 a/err.txt))"
	has a/err.txt "run $run: another client handles it"
	is "$(wavs a/out)" 3 files
	# nobody does any more
	cd b || return
	burst run
	cd .. || return
	is "$STATUS" 0 "the next one: exit status ($(tail -n 2 b/err.txt))"
	has b/err.txt "pod rp1 of runpod"
	is "$(ledger "select state from pod where id = 'rp1'")" gone "its pod"
	is "$(ledger "select status from run where id = '$run'")" interrupted "its row"
	cp b/err.txt .
}

t_dead_run_is_settled_by_the_next() {
	dead_run
	burst run
	is "$STATUS" 0 "the next run ($(tail -n 2 err.txt))"
	has err.txt "its client exited; releasing its pods"
	all_right 300
}

t_max_duration_begins_anew() { # the pods that the run may take from others must end within it
	living_run
	kill_it
	LIMIT=120 burst resume "$RUN" --max-duration 20m
	is "$STATUS" 0 "resume ($(tail -n 2 err.txt | tr '\n' '|'))"
	is "$(ledger "select ends_by_ms between ended_ms + 900000 and ended_ms + 1200000 from run where id = '$RUN'")" 1 "its end in the ledger"
}

run_tests "$@"
