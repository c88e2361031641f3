#!/bin/bash
# faults.sh - what goes wrong on a pod: workers, agents, sshd, the pod itself.
. "$(dirname "$0")/lib.sh"

# faulty N FAULTS [CONFIG...]: N segments for the test worker with these faults
faulty() {
	local n=$1 faults=$2 more=$JOB
	shift 2
	script_lines "$n"
	slow_worker "$faults"
	JOB+=" hang = \"2s\"; $more"
	config 'code = { path = "code"; };' "$@"
}
t_one_poison_segment_on_four_pods() {
	faulty 60 "CRASH_ON=s031" 'pods = 4;'
	burst run --json
	is "$STATUS" 1 "exit status ($(tail -n 1 err.txt))"
	is "$(json .status)" partial status
	is "$(json .segments.rendered)" 59 rendered
	is "$(json .segments.failed)" 1 failed
	has err.txt "s031"
	is "$(wavs | tr -d ' ')" 59 files
}

t_worker_hangs_once() {
	faulty 8 "ONCE_HANG_ON=s003"
	burst run --json
	is "$STATUS" 0 "exit status ($(tail -n 1 err.txt))"
	is "$(json .segments.rendered)" 8 rendered
}

t_worker_is_killed_once() {
	faulty 8 "ONCE_CRASH_ON=s002"
	burst run --json
	is "$STATUS" 0 "exit status"
	is "$(json .segments.rendered)" 8 rendered
}

t_worker_prints_garbage() {
	faulty 6 "CHATTY=1"
	burst run -v
	is "$STATUS" 0 "exit status"
	is "$(wavs)" 6 files
	hasnt err.txt "$(printf '\033')"
}

t_worker_refuses_a_segment() {
	faulty 6 "REFUSE_ON=s004"
	burst run --json
	is "$STATUS" 1 "exit status"
	has err.txt "cannot say that"
	is "$(json .segments.rendered)" 5 rendered
}

t_worker_reports_a_missing_file() {
	faulty 5 "MISSING_ON=s003"
	burst run --json
	is "$STATUS" 1 "exit status"
	is "$(json .segments.rendered)" 4 rendered
	has err.txt "s003"
}

t_worker_links_out_of_the_pod() {
	faulty 5 "LINK_ON=s003"
	burst run --json
	is "$STATUS" 1 "exit status"
	[ ! -e out/s003.wav ] || complain "a link came home"
	is "$(json .segments.rendered)" 4 rendered
}

t_worker_points_outside() {
	faulty 5 "ESCAPE_ON=s003"
	burst run --json
	is "$STATUS" 1 "exit status"
	is "$(json .segments.rendered)" 4 rendered
	[ ! -e s003.wav ] && [ ! -e ../s003.wav ] || complain "a file came out of the folder"
}

t_no_worker_can_run() {
	faulty 5 "BAD_HELLO=1"
	burst run --json
	is "$STATUS" 1 "exit status"
	has err.txt "no voice today"
	is "$(json '.pods | length')" 1 "pods rented"
}

t_bad_sound_is_rendered_again_and_told() {
	script_lines 3
	mkdir -p code
	cp "$ROOT/tests/workers/worker.sh" code/
	ENGINE='test'
	JOB='worker = "sh \"$BURST_CODE/worker.sh\""; check = { tries = 2; };'
	config 'code = { path = "code"; };'
	burst run --json
	is "$STATUS" 1 "exit status (silence must not pass the canary)"
	has err.txt "first segments"
}

t_what_sounds_wrong_is_kept_and_told() { # the best that could be had; nobody may overlook it, cron neither
	script_lines 6
	mkdir -p code
	cp "$ROOT/tests/workers/worker.sh" code/
	ENGINE='test'
	JOB='worker = "NOISE=1 SILENCE_ON=s005 sh \"$BURST_CODE/worker.sh\""; check = { tries = 2; min_duration = 0.0; clipping = 1.0; };'
	config 'code = { path = "code"; };'
	burst run --json --quiet
	is "$STATUS" 0 "exit status ($(tail -n 1 err.txt))"
	is "$(jq -r 'select(.suspect) | "\(.id) \(.tries)"' out/manifest.jsonl)" "s005 2" "what is suspect, and after how many tries"
	has err.txt "warning: 1 of 6 files is suspect and was kept"
	has err.txt "s005"
	burst run --quiet
	has err.txt "warning: 1 of 6 files is suspect"
}

t_pod_vanishes_in_the_middle() {
	REHEARSE='preempt = "all"; preempt_after = "2s";'
	faulty 24 "SLOW=0.2 MAX_BATCH=2" 'pods = 2;'
	burst run --json
	is "$STATUS" 0 "exit status ($(tail -n 2 err.txt))"
	is "$(json .segments.rendered)" 24 rendered
	[ "$(json '.pods | length')" -gt 2 ] || complain "no pod was replaced"
	is "$(json '[.pods[].released] | all')" true "all released"
}

t_first_creates_are_sold_out() {
	REHEARSE='fail_rents = 1;'
	script_lines 3
	config 'wait = "3m";'
	LIMIT=150
	burst run --json
	is "$STATUS" 0 "exit status ($(tail -n 1 err.txt))"
	is "$(json .segments.rendered)" 3 rendered
}

t_no_capacity_in_time() {
	LOCAL='capacity = 0;'
	script_lines 3
	config 'wait = "2s";'
	burst run --json
	is "$STATUS" 4 "exit status"
	is "$(json .error.code)" no_capacity code
	is "$(json '.pods | length')" 0 pods
	grep -qE "Z no capacity: no offers now; next try in [12]\.[0-9]s, giving up in [12]\.[0-9]s" err.txt || complain "the wait: $(grep capacity err.txt)"
}

t_waiting_is_explained() { # and each pod has one name, from the first line that names it
	REHEARSE='fail_rents = 1; boot_delay = "500ms";'
	script_lines 3
	config 'wait = "60s";'
	burst run --json
	is "$STATUS" 0 "exit status ($(tail -n 2 err.txt))"
	grep -qE "Z no capacity, as fail_rents says \(1 of 1\); next try in [0-9.]+s, giving up in (5[0-9]|60|1m00)s?" err.txt ||
		complain "the wait: $(grep -F 'no capacity' err.txt)"
	is "$(grep -oE 'Z pod [^ :]+' err.txt | sort -u)" "Z pod $(json '.pods[] | select(.cost_usd > 0) | .id')" "names of pods"
}

t_a_pod_that_is_not_up_in_time() {
	REHEARSE='boot_delay = "60s";'
	script_lines 3
	config 'boot_limit = "5s"; wait = "0s"; caps.max_duration = "20s";'
	sed -i 's/ caps.max_duration = "20s";//; s/max_duration = "10m"/max_duration = "25s"/' burst.cfg
	burst run --json
	[ "$STATUS" != 0 ] || complain "exit status 0"
	has err.txt "did not boot"
	is "$(json '[.pods[].released] | all')" true "all released"
}

t_agent_is_killed() {
	faulty 30 "SLOW=0.1 MAX_BATCH=2"
	burst_bg run --json
	wait_for 30 "some files" file_count out 3
	kill_in_pods KILL "burst-agent.* serve" || complain "no agent to kill"
	burst_wait
	is "$STATUS" 0 "exit status ($(tail -n 2 err.txt))"
	is "$(json .segments.rendered)" 30 rendered
}

t_connection_is_cut() {
	faulty 30 "SLOW=0.1 MAX_BATCH=2"
	burst_bg run --json
	for _ in 1 2 3; do
		wait_for 30 "a file more" file_count out $(($(wavs) + 2))
		wait_for 10 "a connection to cut" kill_in_pods KILL "^sshd[^ ]*: .*@"
	done
	burst_wait
	is "$STATUS" 0 "exit status ($(tail -n 2 err.txt))"
	is "$(json .segments.rendered)" 30 rendered
	is "$(json '.pods | length')" 1 pods
}

t_command_fails() {
	cat >burst.cfg <<-'E'
		provider = "local";
		job = { name = "cmd"; type = "command"; run = "echo before; exit 3"; outputs = ["film"]; output = "out"; };
	E
	burst run --json
	is "$STATUS" 1 "exit status"
	has err.txt "before"
	is "$(json .error.message)" "the command ended with exit code 3" message
	is "$(json '.errors | map(.message) | join("|")')" "command-0: the command ended with exit code 3" "what failed"
	schema run <(tail -n 1 out.txt)
}

t_command_outputs() {
	mkdir tree
	echo x >tree/in.txt
	cat >burst.cfg <<-'E'
		provider = "local";
		pods = 2;
		code = { path = "tree"; };
		job = { name = "cmd"; type = "command"; output = "renders"; outputs = ["out/**.txt"];
			run = "mkdir -p out/a/b && cp in.txt out/a/b/f$BURST_INDEX.txt && echo $BURST_COUNT > out/n$BURST_INDEX.txt"; };
	E
	burst run --json
	is "$STATUS" 0 "exit status ($(tail -n 2 err.txt))"
	is "$(cat renders/out/a/b/f0.txt)$(cat renders/out/a/b/f1.txt)" "xx" files
	is "$(cat renders/out/n0.txt)" 2 BURST_COUNT
}

# ---- a pod on which the job failed, kept for a look ----
failing_command() {
	cat >burst.cfg <<-'E'
		provider = "local";
		volume = { name = "v"; size_gb = 1; create = true; };
		job = { name = "cmd"; type = "command"; run = "echo before; exit 3"; outputs = ["film"]; output = "out"; };
	E
}
kept_pod() { # starts a run that keeps its pod so long; the pod in $POD
	burst_bg run --keep-on-failure "$1"
	wait_for 30 "a pod to be kept" grep -q "kept for inspection until" err.txt
	POD=$(pods_left)
	has err.txt "warning: pod $POD: kept for inspection until 20"
	has err.txt "and bills: \`burst ssh $POD\`; \`burst cancel $(ledger 'select id from run order by seq desc limit 1')\` ends it now"
}

t_kept_pod_ends_by_itself() {
	failing_command
	local began=$SECONDS
	kept_pod 8s
	is "$("$BURST" ssh "$POD" "cat /workspace/runs/*/*/command-0.log" </dev/null 2>&1)" before "what ssh sees"
	is "$("$BURST" ps --json | jq -r '.[] | select(.kind == "pod") | .id')" "$POD" "what ps shows"
	burst_wait
	is "$STATUS" 1 "exit status"
	[ $((SECONDS - began)) -ge 8 ] || complain "it went after $((SECONDS - began)) s"
	has err.txt "the command ended with exit code 3"
	is "$("$BURST" ledger --json | jq -r '.[0].status')" failed "the run"
}

t_kept_pod_is_cancelled() {
	failing_command
	kept_pod 10m
	STATUS=0
	"$BURST" cancel >cancel.txt 2>&1 </dev/null || STATUS=$?
	is "$STATUS" 0 "cancel ($(tail -n 1 cancel.txt))"
	is "$(pods_left)" "" "pods after cancel"
	burst_wait
	is "$STATUS" 143 "the run itself"
}

t_kept_pod_of_a_dead_client_is_reaped() {
	failing_command
	kept_pod 10m
	kill -9 "$PID"
	burst_wait
	burst reap
	is "$STATUS" 0 "reap ($(tail -n 1 err.txt))"
	is "$(pods_left)" "" "pods after reap"
}

t_kept_pod_of_a_failed_segment() {
	faulty 6 "REFUSE_ON=s004"
	kept_pod 5s
	burst_wait
	is "$STATUS" 1 "exit status"
	is "$(wavs)" 5 "files"
}

t_nothing_is_kept_of_a_success() {
	script_lines 3
	config
	burst run --keep-on-failure 10m
	is "$STATUS" 0 "exit status ($(tail -n 1 err.txt))"
	hasnt err.txt "kept for inspection"
	is "$(pods_left)" "" pods
}

t_worker_hangs_always() {
	faulty 6 "HANG_ON=s003"
	burst run --json
	is "$STATUS" 1 "exit status"
	is "$(json .segments.rendered)" 5 rendered
	is "$(json .segments.failed)" 1 failed
	has err.txt "s003: failed: "
	grep -q "s003: failed: .*\(hang\|silent\|said nothing\)" err.txt || complain "not why: $(grep s003 err.txt | tail -n 1)"
}

run_tests "$@"
