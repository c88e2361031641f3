#!/bin/bash
# client.sh - the client dies, sleeps, is signalled or loses its terminal: the outputs are right, nothing safe is rendered
# twice, no pod is left.
. "$(dirname "$0")/lib.sh"

# ---- kill -9, then `resume`, `reap` or `run` ----
come_back() { # come_back resume|reap|run N
	stamp >stamp.txt
	if [ "$1" = resume ] && [ -n "$(ledger 'select id from run' 2>/dev/null)" ]; then
		burst resume
	elif [ "$1" = run ]; then
		burst run
		is "$(pods_left)" "" "pods after run"
	else
		burst reap
		is "$STATUS" 0 "reap ($(tail -n 2 err.txt))"
		is "$(pods_left)" "" "pods after reap"
		burst run
	fi
	is "$STATUS" 0 "coming back by $1 ($(tail -n 2 err.txt))"
	unchanged stamp.txt
	all_right "$2"
	! grep -rqa "PRIVATE KEY" state || complain "a private key is left in $(grep -rla "PRIVATE KEY" state | head -n 1)"
}
killed_when() { # killed_when resume|reap WHAT COMMAND...: killed as soon as the command succeeds
	local how=$1 what=$2
	shift 2
	script_lines 8
	config 'pods = 2;'
	burst_bg run
	wait_for 40 "$what" "$@"
	kill -9 "$PID" 2>/dev/null
	burst_wait 2>/dev/null
	come_back "$how" 8
}
row_says() { # a pod is in this state
	[ -n "$(ledger "select id from pod where $1" 2>/dev/null)" ]
}
row_exists() { ledger "select count(*) from pod where $1" 2>/dev/null | grep -qv '^0$'; }

t_killed_at_intent_reap() { killed_when reap "a row" row_exists "1"; }
t_killed_at_intent_resume() { killed_when resume "a row" row_exists "1"; }
t_killed_when_rented_resume() { killed_when resume "a pod's id" row_exists "id != ''"; }
t_killed_when_rented_reap() { killed_when reap "a pod's id" row_exists "id != ''"; }
t_killed_when_connected_resume() { killed_when resume "a connection" row_exists "connected_ms > 0"; }
t_killed_at_the_first_file_resume() { killed_when resume "a file" file_count out 1; }
t_killed_at_the_first_file_reap() { killed_when reap "a file" file_count out 1; }
t_killed_at_half_resume() { killed_when resume "files" file_count out 5; }
t_killed_at_the_last_file_resume() { killed_when resume "all files" file_count out 8; }
t_killed_at_the_last_file_reap() { killed_when reap "all files" file_count out 8; }

# The exact call: strace kills the client at the N-th of one kind.
killed_at_call() { # killed_at_call resume|reap CALL N
	local how=$1
	command -v strace >/dev/null || { skip "no strace"; return; }
	script_lines 8
	config 'pods = 2;'
	timeout -k 5 90 strace -o /dev/null -e trace="$2" -e inject="$2:signal=KILL:when=$3" "$BURST" run \
		>out.txt 2>err.txt </dev/null || :
	come_back "$how" 8
}
t_killed_at_fdatasync_3_resume() { killed_at_call resume fdatasync 3; }
t_killed_at_fdatasync_8_reap() { killed_at_call reap fdatasync 8; }
t_killed_at_fdatasync_20_resume() { killed_at_call resume fdatasync 20; }
t_killed_at_write_40_reap() { killed_at_call reap write 40; }

# The same in any thread, those that write outputs too, and to the call: fsync and rename there, fdatasync in the ledger.
killed_around() { # killed_around resume|reap before|after CALL N
	local how=$1
	make -s -C "$ROOT" e2e-tools || { complain "killer.so cannot be built"; return; }
	script_lines 6
	config 'pods = 1;'
	STATUS=0
	timeout -k 5 90 env LD_PRELOAD="$ROOT/build/e2e/killer.so" ASAN_OPTIONS="$ASAN_OPTIONS:verify_asan_link_order=0" \
		KILL_AT="$2 $3 $4" "$BURST" run >out.txt 2>err.txt </dev/null || STATUS=$?
	is "$STATUS" 137 "killed $2 $3 $4"
	come_back "$how" 6
}
# Rename 1 is that of the list of keys, 2 and 3 are the SSH keys of a pod, 4 to 9 the outputs; these have an fsync before and after.
t_killed_before_rename_2_reap() { killed_around reap before rename 2; }
t_killed_before_rename_3_resume() { killed_around resume before rename 3; }
t_killed_after_rename_5_reap() { killed_around reap after rename 5; }
t_killed_before_rename_8_resume() { killed_around resume before rename 8; }
t_killed_after_rename_9_run() { killed_around run after rename 9; } # nothing is left to render, and its pod lives
t_killed_after_rename_9_resume() { killed_around resume after rename 9; }
t_killed_before_fsync_1_resume() { killed_around resume before fsync 1; }
t_killed_after_fsync_7_reap() { killed_around reap after fsync 7; }
t_killed_before_fsync_12_resume() { killed_around resume before fsync 12; }
t_killed_before_fdatasync_8_reap() { killed_around reap before fdatasync 8; }
t_killed_after_fdatasync_10_resume() { killed_around resume after fdatasync 10; }
t_killed_before_fdatasync_12_resume() { killed_around resume before fdatasync 12; }

# ---- signals ----
ends_with() { # ends_with SIGNAL STATUS
	script_lines 600
	config 'pods = 2;'
	burst_bg run --json
	wait_for 40 "a file" file_count out 1
	kill "-$1" "$PID"
	burst_wait
	is "$STATUS" "$2" "exit status after SIG$1"
	is "$(json .status)" interrupted status
	is "$(json '[.pods[].released] | all')" true "all released"
}
t_sigterm() { ends_with TERM 143; }
t_sighup() { ends_with HUP 129; }
t_two_interrupts() {
	script_lines 600
	config 'pods = 2;'
	burst_bg run --json
	wait_for 40 "a file" file_count out 1
	kill -INT "$PID"
	kill -INT "$PID"
	local began=$SECONDS
	burst_wait
	[ $((SECONDS - began)) -le 20 ] || complain "it took $((SECONDS - began)) s"
	is "$STATUS" 130 "exit status"
	is "$(json '[.pods[].released] | all')" true "all released"
}
t_interrupted_while_files_get_their_names() { # the manifest, which is made anew at the end, has a line for each of them
	make -s -C "$ROOT" e2e-tools || { complain "failer.so cannot be built"; return; }
	script_lines 200
	config 'pods = 2;'
	cat >client <<-E
		#!/bin/sh
		export FAIL_AT="late 300 rename" FAIL_UNDER='$T/out' ASAN_OPTIONS='$ASAN_OPTIONS:verify_asan_link_order=0'
		LD_PRELOAD='$ROOT/build/e2e/failer.so' exec '$BURST' "\$@"
	E
	chmod 755 client
	CLIENT=$T/client burst_bg run
	wait_for 60 "a few files" file_count out 8
	while running_as "$PID"; do # several at once may be heard as one
		kill -INT "$PID" 2>/dev/null
		read -rt 0.3 <> <(:) || :
	done
	burst_wait
	[ "$STATUS" = 130 ] || [ "$STATUS" = 9 ] || complain "exit status $STATUS"
	is "$(find out -name '*.wav' -printf '%f\n' | sort)" "$(jq -r .file out/manifest.jsonl | sort -u)" "the manifest's files"
	burst run
	is "$STATUS" 0 "the next run ($(tail -n 2 err.txt))"
	all_right 200
}

# ---- a client that stands still ----
gone_by_itself() { [ -z "$(pods_left)" ]; }
t_stopped_past_the_lease() {
	script_lines 200
	config 'pods = 1; lease = "10s";'
	burst_bg run
	wait_for 40 "files" file_count out 3
	kill -STOP "$PID"
	stamp >stamp.txt
	wait_for 40 "the pod to end by itself" gone_by_itself
	kill -CONT "$PID"
	burst_wait
	is "$STATUS" 0 "exit status ($(tail -n 2 err.txt))"
	unchanged stamp.txt
	all_right 200
}

# The hard end needs nobody.
t_hard_end_with_a_dead_client() {
	script_lines 300
	config 'lease = "60s";'
	sed -i 's/max_duration = "10m"/max_duration = "25s"/' burst.cfg
	burst_bg run
	wait_for 20 "a pod" row_exists "connected_ms > 0"
	kill -9 "$PID" 2>/dev/null
	burst_wait 2>/dev/null
	wait_for 40 "the hard end" gone_by_itself
	burst reap
	is "$STATUS" 0 reap
}

# ---- no terminal, no streams ----
t_streams_closed() {
	script_lines 6
	config
	STATUS=0
	timeout -k 5 90 "$BURST" run <&- >&- 2>&- || STATUS=$?
	is "$STATUS" 0 "exit status"
	all_right 6
}
run_ended() { [ "$(ledger "select count(*) from run where status != 'running'")" = 1 ]; }
t_terminal_closed() {
	command -v script >/dev/null || { skip "no script(1)"; return; }
	script_lines 600 # it must not be done before the terminal goes
	config 'pods = 2;'
	setsid script -qefc "exec '$BURST' run" /dev/null </dev/null >term.txt 2>&1 &
	local terminal=$!
	wait_for 40 "a file" file_count out 1
	kill -9 "$terminal"
	wait "$terminal" 2>/dev/null
	wait_for 60 "the run to end" run_ended
	is "$(ledger 'select status, exit_status from run')" "interrupted|129" "the run"
}

# ---- clocks ----
false_clock() { # or the test is skipped
	command -v faketime >/dev/null || { skip "no faketime"; return 1; }
	case $BURST in */asan/*) skip "faketime and the sanitizers do not go together"; return 1 ;; esac
}
clock_off() { # clock_off OFFSET: the client's clock stands wrong from its start
	false_clock || return 0
	script_lines 6
	config
	STATUS=0
	NO_FAKE_STAT=1 timeout -k 5 90 faketime -f "$1" "$BURST" run >out.txt 2>err.txt </dev/null || STATUS=$?
	is "$STATUS" 0 "exit status with $1 ($(tail -n 2 err.txt))"
	all_right 6
}
t_clock_a_day_ahead() { clock_off +1d; }
clock_jumps() { # clock_jumps OFFSET: the client's wall clock jumps while files come home
	false_clock || return 0
	local lib
	lib=$(faketime -f +0 sh -c 'echo "$LD_PRELOAD"')
	script_lines 120
	config 'pods = 2;'
	echo +0 >clock.txt
	LD_PRELOAD=$lib FAKETIME_TIMESTAMP_FILE=$T/clock.txt FAKETIME_NO_CACHE=1 FAKETIME_DONT_FAKE_MONOTONIC=1 NO_FAKE_STAT=1 \
		timeout -k 5 90 "$BURST" run >out.txt 2>err.txt </dev/null &
	SHELL_PID=$!
	wait_for 40 "files" file_count out 3
	stamp >stamp.txt
	local end
	end=$(first_end)
	echo "$1" >clock.txt
	burst_wait
	is "$STATUS" 0 "exit status after a jump by $1 ($(tail -n 2 err.txt))"
	is "$(first_end)" "$end" "the hard end of its first pod"
	unchanged stamp.txt
	all_right 120
}
first_end() { ledger 'select id, hard_end_s from pod order by seq limit 1'; }
t_clock_jumps_ahead() { clock_jumps +1d; }
t_clock_jumps_back() { clock_jumps -1d; }

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
	wait_for 60 "the pods to end by themselves" gone_by_itself
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
	LOCAL='boot_delay = "3s";'
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
	config
	burst run -d
	returns 0 ": done: 2 rendered" "a run that is soon done"
	LOCAL='capacity = 0;'
	config 'wait = "2s";'
	burst run -d
	returns 4 "no usable pod could be rented" "no capacity"
	LOCAL='boot_delay = "30s";'
	config
	burst run -d --max-duration 8s
	returns 5 "cap" "a cap"
	JOB='worker = "sh \"$BURST_CODE/worker.sh\""; check = { enabled = false; };' ENGINE=test LOCAL=''
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
	LOCAL='boot_delay = "30s";'
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
		kill -$signal -- "-$SHELL_PID"
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
	LOCAL='boot_delay = "5s";'
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
	has err.txt "its files cannot be fetched without it, so this client stays attached"
	has err.txt "run $(cat out.txt): continues in the background (process $(background_client "$(cat out.txt)")); keep this machine awake until it ends"
	is "$(ledger 'select detached from run')" 0 "detached, by the ledger"
	burst attach
	is "$STATUS" 0 "attach ($(tail -n 2 err.txt))"
	all_right 12
}
t_detaching_without_waiting() { # --no-wait: as soon as there is a run
	LOCAL='boot_delay = "20s";'
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
	LOCAL='boot_delay = "4s";'
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

t_interrupted_as_it_begins() { # at each write of the ledger, up to the one after the run's row: it is no run of a dead client
	command -v strace >/dev/null || { skip "no strace"; return; }
	script_lines 20
	config 'pods = 1;'
	local k
	for k in 1 2 3 4 5; do
		burst doctor
		STATUS=0
		ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0 timeout -k 5 60 strace -o /dev/null -e trace=fdatasync -e inject="fdatasync:signal=TERM:when=$k" "$BURST" run >out.txt 2>err.txt </dev/null ||
			STATUS=$?
		is "$STATUS" 143 "write $k: exit status"
		is "$(ledger "select count(*) from run where status = 'running'")" 0 "write $k: runs of a dead client"
		[ "$k" != 5 ] || is "$(ledger 'select status from run')" interrupted "write $k: the run"
		wait_for 20 "its pods to be gone" no_pods
		rm -rf state out
	done
}

# ---- what a run was told when it began ----
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
deep() { # deep BYTES: an absolute path of so many bytes below this folder
	local path=$PWD
	while [ ${#path} -lt $(($1 - 201)) ]; do path=$path/$(printf 'd%.0s' $(seq 99)); done
	while [ ${#path} -lt $(($1 - 101)) ]; do path=$path/$(printf 'e%.0s' $(seq 49)); done
	printf '%s/%s' "$path" "$(printf 'f%.0s' $(seq $(($1 - ${#path} - 1))))"
}
t_long_paths() { # the ledger has them whole, or nothing is rented
	script_lines 100
	config 'pods = 1;'
	local out
	out=$(deep 511)
	burst_bg run -o "$out"
	wait_for 40 "a file" file_count "$out" 1
	kill -9 "$PID"
	burst_wait 2>/dev/null
	burst resume
	is "$STATUS" 0 "an output folder of 511 bytes: resume ($(tail -n 2 err.txt | cut -c 1-300))"
	is "$(wavs "$out")" 100 files
	local pods
	pods=$(ledger 'select count(*) from pod')
	burst run -o "$(deep 512)"
	is "$STATUS" 2 "an output folder of 512 bytes: exit status"
	has err.txt "the output folder has a path of 512 bytes, more than the ledger's limit of 511"
	is "$(ledger 'select count(*) from pod')" "$pods" "pods"
	out=$(dirname "$(deep 512)")
	mkdir -p "$out"
	out=$out/$(printf 'g%.0s' $(seq $((512 - ${#out} - 1))))
	cp burst.cfg "$out"
	cp script.jsonl "$(dirname "$out")"
	burst run -o there --allow-volume v "$out"
	is "$STATUS" 2 "a config of 512 bytes: exit status ($(tail -n 2 err.txt | cut -c 1-300))"
	has err.txt "burst.cfg has a path of 512 bytes"
	is "$(ledger 'select count(*) from pod')" "$pods" "pods"
}
t_second_run_beside_detached_pods() {
	detached_and_killed
	burst run
	is "$STATUS" 7 "a second run ($(tail -n 2 err.txt))"
	burst cancel "$run"
	is "$STATUS" 0 "cancel"
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
	bash -c "trap '' TERM; exec 9<>state/runs/$run/lock; flock 9; echo process \$\$ >state/runs/$run/lock; exec sleep 60" &
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
	bash -c "trap '' TERM; exec 9<>state/runs/$run/lock; flock 9; echo process \$\$ >state/runs/$run/lock; while [ -e state ] && ! [ -e free ]; do sleep 0.1; done" &
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
settling() {
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
	settling
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
	settling
	mkdir -p "state/runs/$run"
	exec 7>>"state/runs/$run/lock"
	flock 7 || complain "no lock"
	: >go
	burst_wait
	exec 7>&-
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

run_tests "$@"
