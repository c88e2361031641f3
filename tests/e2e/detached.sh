#!/bin/bash
# detached.sh - `run -d` returns when the pods have the queue: they finish it alone, whatever becomes of the client, or nothing bills.
. "$(dirname "$0")/lib.sh"

# ---- detached ----

background_client() { # its pid, from the run's lock
	sed -n 's/^process //p' "$BURST_STATE_DIR/runs/$1/lock"
}

detached_and_killed() { # its background client is killed once the pods have the queue; the run's id in $run
	script_lines 40
	config 'pods = 2;'
	burst run -d
	is "$STATUS" 0 "run -d ($(tail -n 2 err.txt))"
	run=$(cat out.txt)
	wait_for 40 "the queue to be handed over" handed_over
	kill -9 "$(background_client "$run")"
}
handed_over() { [ "$(ledger 'select detached from run')" = 1 ]; }

t_detached_client_killed_then_attach() {
	detached_and_killed
	stamp >stamp.txt
	burst attach "$run"
	is "$STATUS" 0 "attach ($(tail -n 2 err.txt))"
	unchanged stamp.txt
	all_right 40
}

t_attached_ten_days_after_it_was_handed_over() { # its pods finished it and are over: all comes from their volume, and nothing is rented
	script_lines 200
	config 'pods = 2;'
	burst run -d
	is "$STATUS" 0 "run -d ($(tail -n 2 err.txt))"
	local run pods
	run=$(cat out.txt)
	wait_for 40 "the queue to be handed over" handed_over
	wait_for 40 "its pods to know" file_count out $(($(wavs) + 5))
	kill -9 "$(background_client "$run")"
	wait_for 90 "its pods to finish it" no_pods
	[ "$(wavs)" -lt 200 ] || complain "nothing is left for an attach"
	ledger "update pod set hard_end_s = hard_end_s - 864000, create_ms = create_ms - 864000000, rented_ms = rented_ms - 864000000,
		running_ms = running_ms - 864000000, connected_ms = connected_ms - 864000000"
	pods=$(ledger "select count(*) from pod")
	burst attach "$run" --json
	is "$STATUS" 0 "attach ($(tail -n 2 err.txt))"
	all_right 200
	is "$(json '.pods | length')" "$pods" "pods, those of then"
	is "$(json '.cost_usd < 1')" true "what it cost ($(json .cost_usd))"
	ledger "select billed_ms, hard_end_s * 1000 - create_ms from pod" >billed.txt
	is "$(awk -F '|' '$1 < $2 || $1 > $2 + 15000' billed.txt)" "" "pods that are not billed until their hard end, or for long after it"
}

t_detached_client_killed_then_resume() {
	detached_and_killed
	stamp >stamp.txt
	burst resume "$run"
	is "$STATUS" 0 "resume ($(tail -n 2 err.txt))"
	unchanged stamp.txt
	all_right 40
}

t_stopped_past_the_lease_detached() {
	script_lines 100
	config 'pods = 2; lease = "10s";'
	burst run -d
	is "$STATUS" 0 "run -d ($(tail -n 2 err.txt))"
	run=$(cat out.txt)
	wait_for 40 "the queue to be handed over" handed_over
	local client
	client=$(background_client "$run")
	kill -STOP "$client"
	stamp >stamp.txt
	local rented
	rented=$(rented_pods)
	wait_for 60 "the pods to end by themselves" no_pods
	kill -CONT "$client"
	burst attach "$run"
	is "$STATUS" 0 "attach ($(tail -n 2 err.txt))"
	unchanged stamp.txt
	all_right 100
	is "$(rented_pods)" "$rented" "pods: none rented again"
}
rented_pods() { ledger 'select count(distinct attempt) from pod'; }

# ---- run -d, before there is an id: a key's command holds it up until there is a file called go ----

detaching() { # the starter's pid in $PID
	script_lines 20
	config 'pods = 1;'
	sed -i 's/provider = "local"/provider = ["local", "runpod"]/' burst.cfg
	mkdir -p home/.config/burst
	echo "providers = { runpod = { api_url = \"http://127.0.0.1:1\"; api_key_command = \"touch '$T/asked'; until [ -e '$T/go' ]; do sleep 0.1; done; echo k\"; }; };" \
		>home/.config/burst/burst.cfg
	burst_bg run -d
	wait_for 20 "the key's command" test -e asked
}
runs_and_pods() { ledger 'select (select count(*) from run) || " " || (select count(*) from pod)' 2>/dev/null; }

t_detaching_is_interrupted() { # the client is in a session of its own, where no Ctrl-C comes
	detaching
	kill -INT -- "-$SHELL_PID"
	burst_wait
	: >go
	is "$STATUS" 130 "exit status ($(tail -n 2 err.txt))"
	has err.txt "interrupted before the handover: the run has ended"
	is "$(cat out.txt)" "" "an id"
	wait_for 10 "its processes to end" no_processes
	is "$(runs_and_pods)" "0 0" "runs and pods"
}

t_detaching_and_nobody_waits() { # whoever started it never had the id: nothing is rented
	detaching
	local client
	client=$(pgrep -P "$PID")
	kill -9 "$PID"
	burst_wait 2>/dev/null
	: >go
	[ -n "$client" ] || complain "no client"
	ended() { ! running_as "$client"; }
	wait_for 30 "the client to end" ended
	is "$(ledger 'select status from run')" interrupted "the run"
	is "$(runs_and_pods)" "1 0" "runs and pods"
}

t_detaching_and_the_terminal_closes() { # with -d it goes on
	detaching
	kill -HUP "$PID"
	: >go
	burst_wait
	is "$STATUS" 0 "exit status ($(tail -n 2 err.txt))"
	local run
	run=$(cat out.txt)
	burst attach "$run"
	is "$STATUS" 0 "attach ($(tail -n 2 err.txt))"
	is "$(wavs)" 20 files
}

# ---- run -d returns when the pods have the queue, and not before ----

on_the_volume() { find state/volumes -name 's0*.wav' | wc -l; }

t_detached_client_dies_as_it_returns() { # the laptop is closed at once: its pods have every line, finish them, and end themselves
	REHEARSE='boot_delay = "3s";'
	slow_segments 20
	burst run -d
	is "$STATUS" 0 "run -d ($(tail -n 2 err.txt))"
	local run home
	run=$(cat out.txt)
	kill -9 "$(background_client "$run")"
	is "$(grep -cxE '[a-z0-9]{6}' out.txt) $(wc -l <out.txt)" "1 1" "the run's id, alone"
	has err.txt "run $run: 20 of 20 segments to render"
	has err.txt "run $run: handed over: "
	has err.txt "\`burst attach $run\` shows progress and fetches the files"
	is "$(ledger 'select detached from run')" 1 "detached, by the ledger"
	grep -qs '"mode":"detached"' state/volumes/v/runs/*/*/events.jsonl || complain "its agent does not know"
	home=$(wavs)
	[ "$home" -lt 20 ] || complain "nothing is left for the pod"
	wait_for 60 "its pod to finish and to end itself" no_pods
	is "$(on_the_volume)" 20 "files on the volume"
	burst attach "$run"
	is "$STATUS" 0 "attach ($(tail -n 2 err.txt))"
	all_right 20
	is "$(rented_pods)" 1 "pods ever rented"
}

returns() { # returns STATUS TEXT WHAT: run -d ended so, with the id of its run, which bills nothing
	is "$STATUS" "$1" "$3: exit status ($(tail -n 2 err.txt))"
	has err.txt "$2"
	is "$(cat out.txt)" "$(ledger 'select id from run order by seq desc limit 1')" "$3: stdout"
	is "$(pods_left)" "" "$3: pods"
	rm -rf out
}

t_detached_run_ends_before_it_is_handed_over() { # -d says how, as `run` does
	script_lines 2
	REHEARSE='boot_delay = "0s";'
	config
	for _ in 1 2 3 4 5; do # on a busy machine the pod may have the queue before it has rendered it
		burst run -d
		grep -q ": handed over: " err.txt || break
		wait_for 60 "the client to end" eval '! running_as "$(background_client "$(cat out.txt)")"'
		rm -rf out
	done
	returns 0 ": done: 2 rendered" "a run that is soon done"
	LOCAL='capacity = 0;'
	config 'wait = "2s";'
	burst run -d
	returns 4 "no usable pod could be rented" "no capacity"
	LOCAL='' REHEARSE='boot_delay = "30s";'
	config
	burst run -d --max-duration 8s
	returns 5 "cap" "a cap"
	JOB='worker = "sh \"$BURST_CODE/worker.sh\""; check = { enabled = false; };' ENGINE=test REHEARSE='boot_delay = "0s";'
	mkdir code
	echo 'exit 3' >code/worker.sh
	config 'code = { path = "code"; };'
	burst run -d --json
	is "$STATUS" 1 "a worker that fails: exit status ($(tail -n 2 err.txt))"
	is "$(head -n 1 out.txt)" "$(ledger 'select id from run order by seq desc limit 1')" "the first line"
	tail -n 1 out.txt >object.txt
	schema run object.txt
	is "$(json '"\(.run) \(.status)"')" "$(head -n 1 out.txt) failed" "its object, which comes behind the id"
}

detaching_while_it_boots() { # the starter's pid in $PID, the run's id in $RUN
	script_lines 20
	REHEARSE='boot_delay = "30s";'
	config 'pods = 1;'
	burst_bg run -d
	wait_for 30 "a pod" row_says "state = 'live'"
	RUN=$(ledger 'select id from run')
	is "$(cat out.txt)" "" "an id before the pods have the queue"
}

released_as() { # released_as STATUS: the run has ended so, and its pod is gone
	wait_for 40 "the client to end" no_client
	is "$(ledger 'select status || " " || exit_status from run')" "$1" "the run"
	is "$(ledger 'select group_concat(state) from pod')" gone "its pod"
}
no_client() { ! running_as "$(background_client "$RUN")"; }

t_detaching_is_interrupted_while_it_boots() {
	local signal status
	for signal in INT TERM; do
		status=$([ $signal = INT ] && echo 130 || echo 143)
		detaching_while_it_boots
		[ $signal = INT ] || kill -STOP "$(background_client "$RUN")" # by Ctrl-Z in another life, or a debugger: it hears of it all the same
		kill -$signal "$PID" # not the group: timeout sends its own to all of it, and the third one leaves at once
		burst_wait
		is "$STATUS" "$status" "SIG$signal: exit status ($(tail -n 2 err.txt))"
		has err.txt "interrupted before the handover: the run has ended (run $RUN, whose pods are gone)"
		is "$(cat out.txt)" "$RUN" "SIG$signal: stdout"
		released_as "interrupted $status"
		burst attach "$RUN"
		is "$STATUS" "$status" "SIG$signal: attach ends as the run did"
		rm -rf state out
	done
}

t_detaching_and_its_starter_is_killed_while_it_boots() { # nobody has its id: it ends
	detaching_while_it_boots
	kill -9 "$PID"
	burst_wait 2>/dev/null
	released_as "interrupted 143"
}

t_detaching_and_its_client_is_killed_while_it_boots() { # who waits is told what may bill
	detaching_while_it_boots
	kill -9 "$(background_client "$RUN")"
	burst_wait
	is "$STATUS" 9 "exit status ($(tail -n 2 err.txt))"
	has err.txt "run $RUN: its client died before the pods had the queue; 1 pod may still be billing: \`burst resume $RUN\` continues it, \`burst cancel $RUN\` ends it"
	is "$(cat out.txt)" "$RUN" stdout
	burst cancel
	is "$STATUS" 0 "cancel ($(tail -n 2 err.txt))"
	is "$(pods_left)" "" pods
}

t_detaching_and_the_terminal_closes_while_it_boots() {
	script_lines 400 # enough that it is not done before it is handed over
	REHEARSE='boot_delay = "5s";'
	config 'pods = 1;'
	python3 - "$BURST" <<-'E' || complain "no terminal"
		import os, pty, sqlite3, sys, time
		pid, fd = pty.fork()
		if pid == 0:
		    os.execv("/bin/sh", ["sh", "-c", 'trap : HUP; "$0" run -d; echo $? >status.txt', sys.argv[1]])
		until = time.time() + 30
		while time.time() < until: # until there is a pod; then the window is closed
		    try:
		        if sqlite3.connect(f"file:{os.environ['BURST_STATE_DIR']}/ledger.db?mode=ro", uri=True).execute(
		            "select count(*) from pod where state = 'live'").fetchone()[0]: break
		    except sqlite3.Error: pass
		    time.sleep(0.1)
		os.close(fd)
	E
	wait_for 40 "run -d to end" test -s status.txt
	wait_for 10 "the queue to be handed over" handed_over
	burst attach "$(ledger 'select id from run')"
	is "$STATUS" 0 "attach ($(tail -n 2 err.txt))"
	is "$(wavs)" 400 files
}

t_detached_pods_that_cannot_be_left_alone() { # without a volume their files go with them
	slow_segments 12
	sed -i '/^volume/d' burst.cfg
	burst run -d
	is "$STATUS" 0 "exit status ($(tail -n 2 err.txt))"
	is "$(grep -nE 'no volume: this machine must stay awake until the run ends|booting|renting' err.txt | head -n 1 | grep -c 'no volume')" 1 \
		"that this machine must stay awake, before anything is rented ($(head -n 3 err.txt))"
	hasnt err.txt "warning:"
	has err.txt "run $(cat out.txt): continues in the background (process $(background_client "$(cat out.txt)")); keep this machine awake until it ends"
	is "$(ledger 'select detached from run')" 0 "detached, by the ledger"
	burst attach
	is "$STATUS" 0 "attach ($(tail -n 2 err.txt))"
	has err.txt "files in $T/out"
	all_right 12
}

t_detaching_without_waiting() { # --no-wait: as soon as there is a run
	REHEARSE='boot_delay = "20s";'
	script_lines 20
	config 'pods = 1; boot_limit = "30s";'
	burst run --no-wait
	is "$STATUS" 2 "without -d"
	burst run -d --no-wait
	is "$STATUS" 0 "exit status ($(tail -n 2 err.txt))"
	local run
	run=$(cat out.txt)
	is "$run" "$(ledger 'select id from run')" stdout
	has err.txt "run $run: continues in the background"
	is "$(ledger 'select count(*) from pod where connected_ms > 0')" 0 "pods that were reached"
	burst cancel
	is "$STATUS" 0 "cancel ($(tail -n 2 err.txt))"
}

t_a_pod_that_nobody_reaches_bills_for_its_boot_limit() { # its client is gone before it is up: not for a lease more
	REHEARSE='boot_delay = "4s";'
	script_lines 20
	config 'pods = 1; boot_limit = "12s"; lease = "10m";'
	burst run -d --no-wait
	is "$STATUS" 0 "exit status ($(tail -n 2 err.txt))"
	wait_for 30 "a pod" row_says "state = 'live'"
	kill -9 "$(background_client "$(cat out.txt)")"
	wait_for 60 "it to end itself" no_pods
	burst reap
	is "$STATUS" 0 "reap ($(tail -n 2 err.txt))"
	burst ledger --reconcile --json
	is "$(json '.[0].billed_vendor_s >= 4 and .[0].billed_vendor_s <= 20')" true "what it was billed ($(json '.[0].billed_vendor_s') s)"
}

# ---- what a run was told when it began ----

t_second_run_beside_detached_pods() {
	detached_and_killed
	burst run
	is "$STATUS" 7 "a second run ($(tail -n 2 err.txt))"
	burst cancel "$run"
	is "$STATUS" 0 "cancel"
}

run_tests "$@"
