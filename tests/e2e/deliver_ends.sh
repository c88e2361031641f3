#!/bin/bash
# deliver_ends.sh - deliveries whose client dies or is told to stop: a delivery is settled like any run, and done once.
# shellcheck disable=SC2016
. "$(dirname "$0")/lib.sh"
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/deliver_lib.sh"

t_a_resumed_run_delivers_with_the_code_as_it_is() {
	script_lines 3
	mkdir code
	echo 'echo old; exit 7' >code/up.sh
	delivering 'sh up.sh >all' 'outputs = ["all"];'
	echo 'code = { path = "code"; };' >>burst.cfg
	burst run
	is "$STATUS" 1 "exit status"
	echo 'echo mended' >code/up.sh
	burst resume
	is "$STATUS $(cat out/all)" "0 mended" "resume ($(tail -n 3 err.txt))"
}
t_interrupted() {
	script_lines 4
	delivering 'echo begun; sleep 100'
	burst_bg run --json
	wait_for 40 "the delivery" grep -q "| begun" err.txt
	kill -TERM "$PID"
	burst_wait
	is "$STATUS" 143 "exit status"
	is "$(wavs)" 4 files
	is "$(json .status)" interrupted status
	is "$(runs "where status = 'running'")" 0 "runs that are still called running"
}
first_run() { ledger 'select id from run order by seq limit 1'; }
client_died() { # in the midst of a delivery; the next one would go well
	script_lines 4
	delivering '[ -e '"$T"'/now ] || { echo begun; sleep 100; }; echo delivered >all' 'outputs = ["all"];'
	burst_bg run --json
	wait_for 60 "the delivery" grep -q "| begun" err.txt
	kill -KILL "$PID"
	burst_wait
	: >now
}
t_client_dies() { # the delivery that it leaves is settled like any other run, and the run is not done
	local -x LOCAL_ISOLATION=process
	client_died
	burst reap
	is "$STATUS" 0 "reap ($(tail -n 3 err.txt))"
	burst attach "$(first_run)"
	is "$STATUS" 143 "attach ($(tail -n 1 err.txt))"
	burst resume "$(first_run)"
	is "$STATUS $(cat out/all)" "0 delivered" "resume ($(tail -n 3 err.txt))"
	is "$(runs "where status = 'done'")" 2 "runs that are done"
}
t_client_dies_and_somebody_attaches() {
	local -x LOCAL_ISOLATION=process
	client_died
	burst attach "$(first_run)"
	is "$STATUS $(cat out/all)" "0 delivered" "attach ($(tail -n 3 err.txt))"
	is "$(ledger "select status from run order by seq" | tr '\n' ' ')" "done interrupted done " "the run, its delivery, and the next"
}
last_run() { ledger 'select id from run order by seq desc limit 1'; }
t_whoever_resumes_means_the_render() { # not its delivery, which is the newest run: by itself it delivers what is there no more
	local -x LOCAL_ISOLATION=process
	script_lines 3
	delivering '[ -e '"$T"'/now ] || exit 7; echo delivered >all' 'outputs = ["all"];'
	burst run
	is "$STATUS" 1 "exit status"
	: >now
	burst volume gc v --older-than 0s
	local delivery
	delivery=$(last_run)
	burst resume "$delivery"
	is "$STATUS" 2 "resume of the delivery ($(tail -n 1 err.txt))"
	has err.txt "run $delivery is stage deliver of run $(first_run); to repeat what is missing, run \`burst resume $(first_run)\`"
	burst resume
	is "$STATUS $(cat out/all)" "0 delivered" "resume ($(tail -n 3 err.txt))"
	is "$(jq -r 'select(.former) | .file' out/manifest.jsonl)" "" "what is former after it"
	is "$(runs "where status = 'done'")" 2 "runs that are done"
	burst resume
	is "$STATUS" 0 "resume of what is done"
	has err.txt "run $(first_run) is already done"
}
t_client_dies_and_what_it_delivers_is_not_done_twice() { # its pod is released before another one begins
	local -x LOCAL_ISOLATION=process
	script_lines 3
	delivering 'echo begun; until [ -e '"$T"'/now ]; do sleep 0.1; done; echo delivered >>'"$T"'/uploads'
	burst_bg run
	wait_for 60 "the delivery" grep -q "| begun" err.txt
	kill -KILL "$PID"
	burst_wait
	burst_bg resume
	wait_for 60 "the next delivery" grep -q "| begun" err.txt
	is "$(ledger "select state from pod order by seq" | tail -n 2 | head -n 1)" gone "the pod of the first delivery"
	: >now
	burst_wait
	is "$STATUS" 0 "exit status of resume ($(tail -n 3 err.txt))"
	burst run
	is "$STATUS" 0 "exit status ($(tail -n 3 err.txt))"
	hasnt err.txt "stage deliver"
	is "$(cat uploads)" delivered "what was delivered"
	is "$(find "$BURST_STATE_DIR/jobs" -mindepth 1 -not -name '*.lock' | wc -l)" 0 "what is left of it"
}
t_client_dies_and_is_canceled() { # its delivery's pod ends with it
	local -x LOCAL_ISOLATION=process
	local what
	script_lines 3
	for what in first again; do # again: nothing is rendered, the delivery is that of a run that is over
		delivering "echo begun $what; until [ -e $T/now ]; do sleep 0.1; done"
		burst_bg run
		wait_for 60 "the delivery" grep -q "| begun $what" err.txt
		kill -KILL "$PID"
		burst_wait
		burst cancel "$(ledger "select id from run where job = 'e2e' order by seq desc limit 1")"
		is "$STATUS" 0 "exit status ($(tail -n 3 err.txt))"
		is "$(ledger "select count(*) from pod where state <> 'gone'")" 0 "pods ($(tail -n 3 err.txt))"
		wait_for 10 "the end of all processes" no_processes
		is "$(runs "where status = 'running'")" 0 "runs that go on"
	done
}
t_a_delivery_is_canceled_by_its_own_id() { # its client hears of it, and the render says how it ended
	local -x LOCAL_ISOLATION=process
	script_lines 3
	delivering 'echo begun; sleep 100'
	burst_bg run --json
	wait_for 60 "the delivery" grep -q "| begun" err.txt
	"$BURST" cancel "$(ledger "select id from run where job = 'e2e-deliver'")" >cancel.txt 2>&1 || complain "cancel: $(tail -n 2 cancel.txt)"
	burst_wait
	is "$(json .status) $(json .deliver.status)" "interrupted interrupted" "the run and its delivery ($(tail -n 2 err.txt))"
	is "$(ledger "select count(*) from pod where state <> 'gone'")" 0 pods
	is "$(runs "where status = 'running'")" 0 "runs that go on"
}
pods_are_gone() { [ "$(ledger "select count(*) from pod where state <> 'gone'")" = 0 ]; }
ended_while_it_joins() {
	PATH=$T/bin:$PATH burst_bg run --json
	wait_for 60 "the joining" [ -e joining ]
	wait_for 20 "the end of its pod" pods_are_gone
	kill -TERM "$PID"
	: >on
	burst_wait
}
t_a_signal_while_its_files_are_joined() { # all is home, nothing bills: then nothing is rented for a delivery, either
	local -x LOCAL_ISOLATION=process
	script_lines 3
	JOB='join = { loudness = -16.0; };' delivering 'echo delivered >'"$T"'/upload'
	mkdir bin
	command -v ffmpeg >/dev/null || { skip "no ffmpeg"; return; }
	cat >bin/ffmpeg <<-E
		#!/bin/sh
		case "\$*" in *-version*) exit 0 ;; esac
		: >$T/joining
		until [ -e $T/on ]; do sleep 0.1; done
		exec $(command -v ffmpeg) "\$@"
	E
	chmod +x bin/ffmpeg
	ended_while_it_joins
	is "$STATUS" 143 "exit status ($(tail -n 3 err.txt))"
	is "$(json .status)" interrupted status
	has err.txt "interrupted before stage deliver: all outputs fetched; run \`burst resume\` to continue"
	is "$(runs)" 1 runs
	[ ! -e upload ] || complain "it was delivered"
	burst resume
	is "$STATUS" 0 "exit status of resume ($(tail -n 3 err.txt))"
	is "$(cat upload)" delivered "what was delivered then"
	rm out/s001.wav joining on # rendered anew it is the same: there is nothing to deliver, and nothing left to stop
	ended_while_it_joins
	is "$STATUS $(json .status)" "0 done" "where all was delivered ($(tail -n 3 err.txt))"
}
t_a_commands_client_dies_while_it_delivers() { # what was rendered is as it was, and is delivered by whoever resumes
	local -x LOCAL_ISOLATION=process
	cat >burst.cfg <<-E
		provider = "local";
		volume = { name = "v"; size_gb = 1; create = true; };
		job = { name = "t"; type = "command"; run = "echo ran >>$T/ran; echo film >film"; outputs = ["film"]; output = "out"; };
		deliver = { run = "echo begun >>$T/begun; while [ -e $T/hold ]; do sleep 0.1; done; [ ! -e $T/now ] || rev <\"\$BURST_OUTPUTS\"/film >mlif"; outputs = ["mlif"]; };
	E
	: >hold
	burst_bg run
	wait_for 60 "the delivery" [ -e begun ]
	kill -KILL "$PID"
	burst_wait
	rm hold
	: >now
	burst resume "$(ledger "select id from run order by seq limit 1")"
	is "$STATUS $(cat ran out/film out/mlif | tr '\n' ' ')" "0 ran film mlif " "exit status, how often it ran, and its files ($(tail -n 3 err.txt))"
}
t_of_a_run_that_was_resumed() { # long after it began: what its pod may take begins with the pod
	local -x LOCAL_ISOLATION=process
	script_lines 3
	delivering 'ls \"$BURST_OUTPUTS\" | grep -c wav >count; [ -e '"$T"'/now ] || sleep 100' 'outputs = ["count"];'
	burst_bg run
	wait_for 60 "the render" file_count out 3
	kill -KILL "$PID"
	burst_wait
	ledger "update run set started_ms = started_ms - 900000"
	: >now
	burst resume --json
	is "$STATUS" 0 "exit status ($(tail -n 3 err.txt))"
	is "$(json .deliver.status)" "done" "the delivery"
	is "$(cat out/count)" 3 "files that it found"
}
t_another_render_after_a_client_that_died() { # while it delivered: each is delivered, once
	local -x LOCAL_ISOLATION=process
	script_lines 3
	delivering 'ls \"$BURST_OUTPUTS\" | grep -c wav >>'"$T"'/uploads; until [ -e '"$T"'/now ]; do sleep 0.1; done'
	burst_bg run
	wait_for 60 "the delivery" [ -e uploads ]
	script_lines 5
	burst run --output out2
	is "$STATUS" 7 "exit status of the other, while it lives ($(tail -n 3 err.txt))"
	kill -KILL "$PID"
	burst_wait
	: >now
	burst run --output out2
	is "$STATUS" 0 "exit status then ($(tail -n 3 err.txt))"
	is "$(find out2 -name '*.wav' | wc -l)" 5 "files of the other"
	is "$(tr '\n' ' ' <uploads)" "3 5 " "what was delivered"
}
few_are_open() { [ "$(find "/proc/$PID/fd" -mindepth 1 | wc -l)" -le "$1" ] && [ "$(find "/proc/$PID/task" -mindepth 1 -maxdepth 1 | wc -l)" -le "$2" ]; }
clients_of_locks() { cat "$BURST_STATE_DIR"/runs/*/lock | sort | uniq -c | tr -s ' '; }
t_it_runs_in_the_process_of_its_render() { # both locks are held until the end of both; nothing of the first engine is left open
	local -x LOCAL_ISOLATION=process
	cat >burst.cfg <<-E
		provider = "local";
		volume = { name = "v"; size_gb = 1; create = true; };
		job = { name = "t"; type = "command"; run = "echo ran; until [ -e $T/rendered ]; do sleep 0.1; done; echo film >film"; outputs = ["film"]; output = "out"; };
		deliver = { run = "echo begun; until [ -e $T/now ]; do sleep 0.1; done; cat \"\$BURST_OUTPUTS\"/film >copy"; outputs = ["copy"]; };
	E
	burst_bg run
	wait_for 60 "the render" grep -q "| ran" err.txt
	local files threads
	files=$(find "/proc/$PID/fd" -mindepth 1 | wc -l) threads=$(find "/proc/$PID/task" -mindepth 1 -maxdepth 1 | wc -l)
	: >rendered
	wait_for 60 "the delivery" grep -q "| begun" err.txt
	is "$(clients_of_locks)" " 2 process $PID" "who holds the locks of both runs"
	wait_for 10 "no more open files ($files) and threads ($threads) than in the render" few_are_open $((files + 2)) "$threads"
	"$BURST" run >second.txt 2>&1
	is "$?" 7 "exit status of another run meanwhile ($(tail -n 1 second.txt))"
	: >now
	burst_wait
	is "$STATUS $(cat out/copy)" "0 film" "exit status, and what was delivered ($(tail -n 3 err.txt))"
}
t_ctrl_c_while_it_delivers() { # is heard by its engine alone, once: one release, and both runs say so
	local -x LOCAL_ISOLATION=process
	script_lines 3
	delivering 'echo begun; sleep 100'
	burst_bg run --json
	wait_for 60 "the delivery" grep -q "| begun" err.txt
	kill -INT "$PID"
	burst_wait
	is "$STATUS $(json .status) $(json .deliver.status)" "130 interrupted interrupted" "exit status, the run, its delivery ($(tail -n 3 err.txt))"
	is "$(ledger "select group_concat(exit_status) from run")" 130,130 "exit statuses in the ledger"
	is "$(ledger "select count(*) from pod where state <> 'gone'")" 0 "pods"
	sed -i 's/sleep 100/true/' burst.cfg
	burst resume
	is "$STATUS" 0 "exit status of resume ($(tail -n 3 err.txt))"
	is "$(wavs)" 3 files
}

run_tests "$@"
