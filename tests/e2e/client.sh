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

t_stopped_past_the_lease() {
	script_lines 200
	config 'pods = 1; lease = "10s";'
	burst_bg run
	wait_for 40 "files" file_count out 3
	kill -STOP "$PID"
	stamp >stamp.txt
	wait_for 40 "the pod to end by itself" no_pods
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
	wait_for 40 "the hard end" no_pods
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

# ---- run -d returns when the pods have the queue, and not before ----

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

run_tests "$@"
