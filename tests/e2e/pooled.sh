#!/bin/bash
# pooled.sh - a pod that has finished one run is kept and handed to the next: one cold start for both, each run billed for its own
# time, and one owner whatever dies.
. "$(dirname "$0")/lib.sh"

KEEP='keep_warm = "20s";'

# job_in FOLDER N [CONFIG...]: a small job of its own, N segments
job_in() {
	local dir=$1 n=$2
	shift 2
	mkdir -p "$dir"
	(
		cd "$dir" || exit
		script_lines "$n"
		config "pods = 1;" "$@"
		sed -i "s/name = \"e2e\"/name = \"$dir\"/" burst.cfg
	)
}
run_in() { # run_in FOLDER [FLAG...]
	local dir=$1
	shift
	burst run "$dir/burst.cfg" --json "$@"
	cp out.txt "$dir.json"
	cp err.txt "$dir.err"
}
creates() { ledger "select count(distinct id) from pod where id != ''"; }
open_pods() { ledger "select count(*) from pod where state not in ('gone', 'failed')"; }
all_over() { [ "$(open_pods)" = 0 ]; }
no_keeper() { [ "$(ledger "select count(*) from run where type = 'keep' and status = 'running'")" = 0 ]; }
kept_now() { [ "$(ledger "select count(*) from pod p join run r on r.id = p.run where r.type = 'keep' and p.state = 'live'")" = "${1:-1}" ]; }
keeper() { ledger "select id from run where type = 'keep' order by seq desc limit 1"; }
keeper_pid() { sed -n 's/^process //p' "$BURST_STATE_DIR/runs/$(keeper)/lock"; }
# Each pod's time is in one row for each run that held it, end to end (within the second to which billing rounds).
no_gap() {
	is "$(ledger "select count(*) from pod a join pod b on a.id = b.id and a.handed_to = b.run and b.handed_from = a.run where a.handed_to != '' and abs(b.create_ms - a.gone_ms) > 1000")" 0 "gaps between the runs that held a pod"
	is "$(ledger "select count(*) from pod a where a.handed_to != '' and not exists (select 1 from pod b where b.id = a.id and b.handed_from = a.run)")" 0 "pods handed to nobody"
}

t_two_jobs_share_one_pod() {
	allow_volumes v
	job_in one 3 "$KEEP"
	job_in two 4 'keep_warm = "0";'
	run_in one
	is "$STATUS" 0 "the first ($(cat err.txt))"
	wait_for 10 "the pod to be kept" kept_now
	burst ps --json
	is "$(json ".[0].phase")" kept "what ps says of it ($(cat out.txt))"
	run_in two
	is "$STATUS" 0 "the second ($(cat err.txt))"
	has two.err "taken over from run"
	is "$(creates)" 1 "pods created"
	is "$(find one/out -name '*.wav' | wc -l) $(find two/out -name '*.wav' | wc -l)" "3 4" "files"
	wait_for 20 "all to be over" all_over
	wait_for 20 "who kept it to end" no_keeper
	no_gap
	is "$(jq -r '.pods[0].handed_to != null, .pods[0].released' one.json | xargs)" "true true" "the first run's pod"
	is "$(jq -r '.pods[0].handed_from' two.json)" "$(keeper)" "from whom the second has it"
	cp two.json out.txt
	schema run
}

# The vendor bills a pod as a whole: each run that held it has its part of the bill, and the parts sum to it.
t_the_bill_of_a_shared_pod_is_split() {
	allow_volumes v
	job_in one 3 "$KEEP"
	job_in two 4 'keep_warm = "0";'
	run_in one
	wait_for 10 "the pod to be kept" kept_now
	burst ledger --reconcile --json
	is "$STATUS $(json length)" "0 0" "while a run holds it nothing is asked ($(cat out.txt err.txt))"
	has err.txt "1 pod is not released yet"
	run_in two
	is "$STATUS" 0 "the second ($(cat err.txt))"
	wait_for 20 "all to be over" all_over
	wait_for 20 "who kept it to end" no_keeper
	burst ledger --reconcile --json
	is "$STATUS" 0 "reconciled ($(cat err.txt))"
	schema reconcile
	has err.txt "asking for the bills of 1 pod of 3 runs"
	is "$(json 'length')" 3 "a share for each run, the keeping one too"
	is "$(json '[.[].run] | join(" ")')" "$(jq -r .run one.json) $(keeper) $(jq -r .run two.json)" "whose they are"
	is "$(json '[.[].state] | unique | join(" ")')" agrees "state ($(json '.[0].why'))"
	has out.txt "3 runs held this pod, so its bill is split by their billed time"
	is "$(json '[.[].billed_vendor_s > 0] | all')" true "each has its part"
	is "$(json '([.[].billed_vendor_s] | add) - ([.[].billed_seconds] | add) | fabs < 3')" true "what they sum to ($(cat out.txt))"
	is "$(ledger "select count(*) from pod where vendor_asked_ms > 0 and billed_vendor_ms > 0 and vendor_reported")" 3 "rows with their part"
	burst ledger "$(jq -r .run two.json)" --reconcile --json
	is "$(json '[.[].run] | join(" ")')" "$(jq -r .run two.json)" "of a named run"
	burst ledger --reconcile
	is "$(grep -c "3 runs held this pod" out.txt)" 1 "said once"
}

# Nobody takes it: it goes when its time is over, and what that cost is the keeping run's, as its own phase.
t_a_kept_pod_goes_when_its_time_is_over() {
	job_in one 2 'keep_warm = "3s";'
	run_in one
	is "$STATUS" 0 "the run ($(cat err.txt))"
	has one.err "kept for the next run until"
	wait_for 10 "the pod to be kept" kept_now
	burst ps
	has out.txt "$(keeper)"
	wait_for 30 "all to be over" all_over
	wait_for 20 "who kept it to end" no_keeper
	burst ledger "$(keeper)" --json
	is "$(json '.status')" done "the run that kept it"
	is "$(json '.pods[0].phases | .kept_s >= 2.5 and .kept_s < 8')" true "kept_s ($(json '.pods[0].phases.kept_s'))"
	is "$(json '.pods[0].phases | .boot_s + .compute_s + .idle_s')" 0 "other phases"
	burst ledger "$(keeper)"
	has out.txt kept
	no_gap
}

# `auto`: no longer than its own cold start took (ski rental).
t_auto_keeps_no_longer_than_a_cold_start() {
	LOCAL='boot_delay = "3s";'
	job_in one 2 'keep_warm = "auto";'
	run_in one
	is "$STATUS" 0 "the run ($(cat err.txt))"
	wait_for 10 "the pod to be kept" kept_now
	wait_for 30 "all to be over" all_over
	wait_for 20 "who kept it to end" no_keeper
	local cold kept
	cold=$(ledger "select cold_ms from pod where handed_to != ''")
	kept=$(ledger "select kept_until_ms - kept_ms from pod where kept_ms > 0")
	[ "$cold" -ge 3000 ] || complain "the cold start took $cold ms"
	[ "$kept" -gt 0 ] && [ "$kept" -le "$cold" ] || complain "kept for $kept ms after a cold start of $cold ms"
}

# `auto` keeps no more than the next run needs: a second run's pod of the same kind is released.
t_auto_keeps_one_runs_pods() {
	LOCAL='boot_delay = "3s";'
	local dir
	allow_volumes v
	for dir in one two; do
		job_in $dir 2 'keep_warm = "auto";'
	done
	start_in one
	local one=$PID
	start_in two
	local two=$PID
	ends "$one" one 0
	ends "$two" two 0
	wait_for 30 "all to be over" all_over
	wait_for 20 "the clients that keep pods to end" no_keeper
	is "$(creates)" 2 "pods created"
	is "$(ledger "select count(*) from pod where kept_ms > 0")" 1 "pods kept ($(cat one.err two.err))"
}

# `auto` learns how often runs come: where the next one comes long after, nothing is kept.
t_auto_learns_how_often_runs_come() {
	LOCAL='boot_delay = "3s";'
	job_in one 2 'keep_warm = "auto";'
	run_in one
	is "$STATUS" 0 "the run ($(cat err.txt))"
	wait_for 30 "all to be over" all_over
	wait_for 20 "the client that keeps it to end" no_keeper
	is "$(ledger "select count(*) from fact where name like 'gaps:%'")" 1 "what is remembered"
	ledger "update fact set value = '0 60000 60000 60000 60000 60000 60000 60000 60000' where name like 'gaps:%'" >/dev/null
	rm -r one/out
	run_in one --anew
	is "$STATUS" 0 "the next run ($(cat err.txt))"
	is "$(ledger "select count(*) from pod where kept_ms > 0")" 1 "pods kept by both"
	is "$(open_pods)" 0 "pods left"
}

t_the_plan_says_what_is_kept() {
	job_in one 2 'keep_warm = "5m";'
	burst plan one/burst.cfg
	is "$STATUS" 0 "plan ($(cat err.txt))"
	has out.txt 'for at most 5m00s: at most $0.0575 more for each'
	sed -i 's/"5m"/"auto"/' one/burst.cfg
	burst plan one/burst.cfg
	has out.txt 'as long as its cold start took, about'
	sed -i 's/"auto"/"soon"/' one/burst.cfg
	burst plan one/burst.cfg
	is "$STATUS" 2 "a word that is no time"
	has err.txt 'keep_warm: "soon" is neither "auto" nor a time up to "24h"'
}

t_at_zero_nothing_is_kept() {
	job_in one 2
	run_in one
	is "$STATUS" 0 "the run ($(cat err.txt))"
	is "$(ledger "select count(*) from run")" 1 runs
	is "$(open_pods)" 0 "pods"
}

# What it may cost bounds its time: it is never kept past its hard end.
t_a_pod_is_kept_within_its_cap() {
	job_in one 2 'keep_warm = "1h";'
	sed -i 's/max_duration = "10m"/max_duration = "1m"/' one/burst.cfg
	run_in one
	is "$STATUS" 0 "the run ($(cat err.txt))"
	wait_for 10 "the pod to be kept" kept_now
	is "$(ledger "select count(*) from pod where kept_until_ms > hard_end_s * 1000 - 1000 and kept_ms > 0")" 0 "pods kept to their hard end"
	burst cancel "$(keeper)"
	is "$STATUS" 0 "cancel ($(cat err.txt))"
	is "$(open_pods)" 0 "pods after cancel"
}

# Another environment, another volume, a GPU that is not wanted: a pod of its own.
t_a_pod_is_handed_to_its_like_alone() {
	allow_volumes v
	job_in one 2 "$KEEP"
	job_in two 2 'pod = { cpu = 2; };'
	run_in one
	is "$STATUS" 0 "the first ($(cat err.txt))"
	wait_for 10 "the pod to be kept" kept_now
	run_in two
	is "$STATUS" 0 "the second ($(cat err.txt))"
	hasnt two.err "taken over"
	sed -i 's/name = "v"/name = "w"/; s/cpu = 2; //' two/burst.cfg
	rm -r two/out
	run_in two
	is "$STATUS" 0 "with another volume ($(cat err.txt))"
	hasnt two.err "taken over"
	is "$(creates)" 3 "pods"
	burst cancel "$(keeper)"
	is "$STATUS" 0 "cancel ($(cat err.txt))"
}

# Commands are handed on within their job alone.
t_a_commands_pod_stays_with_its_job() {
	local dir
	allow_volumes v
	for dir in one two; do
		mkdir $dir
		cat >$dir/burst.cfg <<-E
			provider = "local"; pods = 1; $KEEP
			volume = { name = "v"; create = true; };
			job = { name = "$dir"; type = "command"; run = "date +%N >made"; outputs = ["made"]; output = "out"; };
		E
	done
	run_in one
	is "$STATUS" 0 "the first ($(cat err.txt))"
	wait_for 10 "the pod to be kept" kept_now
	run_in two
	is "$STATUS" 0 "another job ($(cat err.txt))"
	hasnt two.err "taken over"
	run_in one --anew
	is "$STATUS" 0 "the same job ($(cat err.txt))"
	has one.err "taken over"
	is "$(creates)" 2 "pods"
	local id
	for id in $(ledger "select id from run where type = 'keep' and status = 'running'"); do
		burst cancel "$id"
	done
	wait_for 20 "all to be over" all_over
}

# ---- a run that waits for capacity ----

# slow_in FOLDER N [CONFIG...]: a job whose segments take half a second each, on one pod
slow_in() {
	local dir=$1 n=$2
	shift 2
	mkdir -p "$dir"
	(
		cd "$dir" || exit
		slow_segments "$n" "$@"
		sed -i "s/name = \"e2e\"/name = \"$dir\"/" burst.cfg
	)
}
start_in() { # start_in FOLDER [FLAG...]: in the background; its pid in $PID
	"$BURST" run "$1/burst.cfg" --json "${@:2}" >"$1.json" 2>"$1.err" </dev/null &
	PID=$!
}
ends() { # ends PID FOLDER STATUS
	STATUS=0
	{ wait "$1" || STATUS=$?; } 2>/dev/null
	is "$STATUS" "$3" "$2 ($(tail -n 4 "$2.err" | tr '\n' '|'))"
}
waits_for_a_pod() { [ "$(ledger "select count(*) from run where wants != '' and status = 'running'")" = "${1:-1}" ]; }

# Nothing is kept for runs to come, and the only pod goes from the run that has finished to the run that waits.
t_a_waiting_run_gets_the_pod() {
	local one two
	allow_volumes v
	LOCAL='capacity = 1; boot_delay = "1s";'
	slow_in one 12
	slow_in two 3 'wait = "60s";'
	start_in one
	one=$PID
	wait_for 20 "the first run's files" file_count one/out 1
	start_in two
	two=$PID
	wait_for 20 "the second to wait" waits_for_a_pod
	ends "$one" one 0
	ends "$two" two 0
	has two.err "taken over from run"
	is "$(creates)" 1 "pods created"
	is "$(file_count one/out 12 && file_count two/out 3 && echo all)" all "files"
	is "$(open_pods)" 0 "pods left"
	is "$(ledger "select count(*) from run where wants != ''")" 0 "runs that still wait"
	is "$(ledger "select count(*) from run where type = 'keep'")" 0 "clients that kept it"
	is "$(ledger "select handed_to from pod where id != '' and run = (select id from run where job = 'one')")" "$(ledger "select id from run where job = 'two'")" "to which run it went"
	no_gap
}

# What waits for another kind of pod, or may not pay for this one, gets nothing: the pod is released at once.
t_a_pod_that_no_waiting_run_can_use_is_released() {
	local one two
	allow_volumes v
	LOCAL='capacity = 1;'
	slow_in one 10
	slow_in two 2 'wait = "60s"; pod = { cpu = 2; };'
	start_in one
	one=$PID
	wait_for 20 "the first run's files" file_count one/out 1
	start_in two
	two=$PID
	wait_for 20 "the second to wait" waits_for_a_pod
	ends "$one" one 0
	hasnt one.err "offered to a run"
	is "$(open_pods)" 0 "pods left"
	kill -INT "$two"
	ends "$two" two 130
	hasnt two.err "taken over"
}

# A run that died while it waited is no reason to hold a pod.
t_a_dead_run_gets_nothing() {
	local one two
	allow_volumes v
	LOCAL='capacity = 1;'
	slow_in one 10
	slow_in two 2 'wait = "60s";'
	start_in one
	one=$PID
	wait_for 20 "the first run's files" file_count one/out 1
	start_in two
	two=$PID
	wait_for 20 "the second to wait" waits_for_a_pod
	kill -9 "$two"
	ends "$two" two 137
	ends "$one" one 0
	hasnt one.err "offered to a run"
	is "$(open_pods)" 0 "pods left"
}

# ---- runs that go on ----

# What was cut off while it waited for capacity goes on with a pod that was kept meanwhile.
t_a_resumed_run_takes_a_kept_pod() {
	local one two
	allow_volumes v
	LOCAL='capacity = 1;'
	slow_in one 6 "$KEEP"
	slow_in two 2 'wait = "60s";'
	start_in one
	one=$PID
	wait_for 20 "the first run's files" file_count one/out 1
	start_in two
	two=$PID
	wait_for 20 "the second to wait" waits_for_a_pod
	kill -9 "$two"
	ends "$two" two 137
	ends "$one" one 0
	wait_for 10 "the pod to be kept" kept_now
	burst resume "$(ledger "select id from run where job = 'two'")"
	is "$STATUS" 0 "resume ($(cat err.txt))"
	has err.txt "taken over from run"
	is "$(creates)" 1 "pods created"
	is "$(open_pods)" 0 "pods left"
	no_gap
}

# Pods of a detached run end themselves when their work is done, whatever became of this machine: they are not handed on. Once a new
# client has taken them over, they are.
t_an_attached_run_keeps_its_pod() {
	local id
	allow_volumes v
	slow_in one 14 "$KEEP"
	slow_in two 2
	burst run one/burst.cfg -d
	is "$STATUS" 0 "run -d ($(cat err.txt))"
	id=$(ledger "select id from run where job = 'one'")
	kill -9 "$(sed -n 's/^process //p' "$BURST_STATE_DIR/runs/$id/lock")"
	wait_for 10 "its client to be dead" no_client_of "$id"
	burst attach "$id"
	is "$STATUS" 0 "attach ($(cat err.txt))"
	has err.txt "kept for the next run"
	wait_for 10 "the pod to be kept" kept_now
	run_in two
	is "$STATUS" 0 "the second ($(cat two.err))"
	has two.err "taken over from run"
	is "$(creates)" 1 "pods created"
	wait_for 20 "all to be over" all_over
	no_gap
}

# ---- who dies ----

# The client that keeps it: the pod is an orphan, and the next run settles it.
t_the_keeper_is_killed() {
	allow_volumes v
	job_in one 2 "$KEEP"
	job_in two 2
	run_in one
	wait_for 10 "the pod to be kept" kept_now
	kill -9 "$(keeper_pid)"
	wait_for 10 "it to be dead" no_client_of "$(keeper)"
	run_in two
	is "$STATUS" 0 "the second ($(cat err.txt))"
	is "$(open_pods)" 0 "pods"
	is "$(ledger "select status from run where type = 'keep'")" interrupted "the run that kept it"
	no_gap
}
no_client_of() { flock -n -s "$BURST_STATE_DIR/runs/$1/lock" true; }

# The run that took it over, at work: `resume` goes on with that very pod.
t_the_next_run_is_killed() {
	allow_volumes v
	job_in one 1 "$KEEP"
	mkdir -p two
	(
		cd two || exit
		slow_segments 12
		sed -i 's/name = "e2e"/name = "two"/' burst.cfg
		cp burst.cfg ../one/burst.cfg
		cp -r code ../one/
		sed -i "s/name = \"two\"/name = \"one\"/; 1i $KEEP" ../one/burst.cfg
	)
	run_in one
	is "$STATUS" 0 "the first ($(cat err.txt))"
	wait_for 10 "the pod to be kept" kept_now
	burst_bg run two/burst.cfg
	wait_for 30 "a file" file_count two/out 2
	has err.txt "taken over"
	kill -9 "$PID"
	burst_wait
	wait_for 20 "who kept it to end" no_keeper
	burst resume "$(ledger "select id from run where job = 'two'")"
	is "$STATUS" 0 "resume ($(cat err.txt))"
	is "$(creates)" 1 "pods"
	is "$(file_count two/out 12 && echo all)" all "files"
	is "$(open_pods)" 0 "pods left"
	no_gap
}

# Every write of the ledger is where a client dies once: the run that offers a pod with the client that keeps it, the run that takes it
# over, the run that waits for it, and the run that hands it on to one that waits. The pod has one owner then, whom the next run
# settles; nothing is left, and no time is billed twice. A spread sample of the points; KILL_POINTS=all: all of them; KILL_PART=2/4:
# the second quarter of them. KILL_RESULTS=FILE: a line there for each point, and a point that fails ends nothing.
killed() { # killed before|after N COMMAND...: at the ledger's N-th write; 137, or 0 where there were fewer
	STATUS=0
	{ timeout -k 5 90 env LD_PRELOAD="$ROOT/build/e2e/killer.so" ASAN_OPTIONS="$ASAN_OPTIONS:verify_asan_link_order=0" \
		KILL_AT="$1 ledger $2" KILL_LOG="$PWD/points" "$BURST" "${@:3}" >out.txt 2>err.txt </dev/null || STATUS=$?; } 2>/dev/null
	[ "$STATUS" = 137 ] || [ "$STATUS" = 0 ] || complain "killed $1 $2: exit $STATUS ($(tail -n 2 err.txt | tr '\n' '|'))"
}
chosen() { # chosen SAMPLE: of the points counted in points, as "before N" and "after N"; after is another moment where it is durable
	if [ "${KILL_POINTS:-}" = all ]; then
		awk -v part="${KILL_PART:-1/1}" 'BEGIN {split(part, p, "/")}
			{all[++n] = "before " $1} $3 == "fdatasync" {all[++n] = "after " $1}
			END {for (i = 1; i <= n; i++) if (i % p[2] == p[1] % p[2]) print all[i]}' points
	else
		awk -v m="${KILL_POINTS:-$1}" 'END {for (i = 0; i < m && i < NR; i++) {
			n = int(NR * (i + .5) / (NR < m ? NR : m)) + 1; print "before " n; print "after " n}}' points
	fi
}
at_each_write() { # at_each_write SAMPLE POINT: calls POINT WHEN N at each point chosen from points
	local count points when n most=$1 point=$2 failed=0
	count=$(wc -l <points)
	[ "$count" -ge 8 ] || complain "only $count writes"
	points=$(chosen "$most")
	while read -r when n; do
		[ -z "$WHY" ] || break
		"$point" "$when" "$n"
		wait_for 20 "killed $when $n: pods to be gone" no_pods
		[ -n "${KILL_RESULTS:-}" ] || continue
		echo "$point $when $n: ${WHY:-ok}" >>"$KILL_RESULTS"
		[ -z "$WHY" ] || failed=$((failed + 1))
		WHY=''
	done <<<"$points"
	[ $failed = 0 ] || complain "$failed points failed: see $KILL_RESULTS"
	cd "$T" || return
	echo "    $(wc -l <<<"$points") points of $count writes"
}
fresh() { # fresh NAME: a ledger of its own, and two jobs
	mkdir -p "$T/$1" && cd "$T/$1" || return
	export BURST_STATE_DIR=$T/$1/state
	job_in one 2 'keep_warm = "4s";'
	job_in two 2
}
whole() { # whole WHAT [FILES]: the next runs settle the pods of the dead, and render both jobs
	run_in one
	is "$STATUS" 0 "$1: the first job ($(cat err.txt))"
	run_in two
	is "$STATUS" 0 "$1: the second job ($(cat err.txt))"
	is "$(find one/out -name '*.wav' | wc -l) $(find two/out -name '*.wav' | wc -l)" "${2:-2 2}" "$1: files"
	wait_for 30 "$1: all to be over" all_over
	wait_for 20 "$1: who kept it to end" no_keeper
	burst reap
	is "$STATUS" 0 "$1: reap ($(cat err.txt))"
	hasnt out.txt gone
	is "$(ledger "select count(*) from (select attempt from pod where handed_to = '' and id != '' group by id having count(*) > 1)")" 0 "$1: pods with two owners"
	no_gap
}
t_the_run_that_keeps_is_killed_at_any_write() {
	allow_volumes v
	fresh count
	killed before 0 run one/burst.cfg
	wait_for 20 "all to be over" all_over
	at_each_write 5 keeping_is_killed
}
keeping_is_killed() {
	fresh "$1-$2"
	killed "$1" "$2" run one/burst.cfg
	whole "killed $1 $2"
}
# The client that keeps it, a process of its own.
keeper_killed() { # keeper_killed before|after N: that of the first job's run, which ends well
	STATUS=0
	env KILL_ONLY=keep KILL_AT="$1 ledger $2" KILL_LOG="$PWD/points" LD_PRELOAD="$ROOT/build/e2e/killer.so" \
		ASAN_OPTIONS="$ASAN_OPTIONS:verify_asan_link_order=0" "$BURST" run one/burst.cfg >out.txt 2>err.txt </dev/null || STATUS=$?
	is "$STATUS" 0 "$1 $2: the run ($(tail -n 2 err.txt | tr '\n' '|'))"
	wait_for 30 "$1 $2: the client that keeps the pod to end" no_process_keeps
}
no_process_keeps() { ! pgrep -f -- "^burst keep $(ledger "select id from run where job = 'one' and type != 'keep'")\$" >/dev/null; }
t_the_client_that_keeps_is_killed_at_any_write() {
	allow_volumes v
	fresh count
	keeper_killed before 0
	wait_for 20 "all to be over" all_over
	at_each_write 2 keeper_is_killed
}
keeper_is_killed() {
	fresh "$1-$2"
	keeper_killed "$1" "$2"
	whole "killed $1 $2"
}
t_the_run_that_takes_over_is_killed_at_any_write() {
	allow_volumes v
	fresh count
	run_in one
	wait_for 10 "the pod to be kept" kept_now
	killed before 0 run two/burst.cfg
	has err.txt "taken over"
	at_each_write 5 taking_over_is_killed
}
taking_over_is_killed() {
	fresh "$1-$2"
	run_in one
	wait_for 10 "the pod to be kept" kept_now
	killed "$1" "$2" run two/burst.cfg
	whole "killed $1 $2"
}

# The same for a pod that goes to a run that waits: the run that finishes with it dies, or the run that waits for it.
fresh_to_wait() { # fresh_to_wait NAME: the first has the only pod for some seconds, the second waits for it
	mkdir -p "$T/$1" && cd "$T/$1" || return
	export BURST_STATE_DIR=$T/$1/state
	LOCAL='capacity = 1;'
	slow_in one 6
	slow_in two 2 'wait = "8s";'
}
one_works() { # the first job renders, or its client is gone
	file_count one/out 1 || ! running_as "$1"
}
t_the_run_that_waits_is_killed_at_any_write() {
	allow_volumes v
	waiting_is_killed before 0 only
	has err.txt "taken over"
	at_each_write 3 waiting_is_killed
}
waiting_is_killed() {
	local one
	fresh_to_wait "$1-$2"
	start_in one
	one=$PID
	wait_for 20 "the first run's files" file_count one/out 1
	killed "$1" "$2" run two/burst.cfg
	ends "$one" one 0
	[ -n "${3:-}" ] || whole "killed $1 $2" "6 2"
}
t_the_run_that_hands_on_is_killed_at_any_write() {
	allow_volumes v
	hand_on before 0
	has two.err "taken over"
	at_each_write 3 handing_on_is_killed
}
handing_on_is_killed() {
	hand_on "$1" "$2"
	whole "killed $1 $2" "6 2"
}
hand_on() { # hand_on WHEN N: the first job dies at its N-th write while the second waits, which may then find no capacity
	local one two
	fresh_to_wait "$1-$2"
	(killed "$1" "$2" run one/burst.cfg && [ -z "$WHY" ]) &
	one=$!
	wait_for 20 "the first run's files" one_works "$one"
	start_in two
	two=$PID
	wait "$one" || complain "killed $1 $2: the first run"
	STATUS=0
	wait "$two" || STATUS=$?
	[ "$STATUS" = 0 ] || [ "$STATUS" = 4 ] || complain "killed $1 $2: the second run: exit $STATUS ($(tail -n 3 two.err | tr '\n' '|'))"
}

# ---- demand smoothing ----

reason() { # what the oldest open request waits for
	"$BURST" queue ls --json one | jq -r '[.[] | select(.state == "waiting")][0].why // ""'
}
waits_for() { [[ "$(reason)" = *"$1"* ]]; }

# A request with a time to spare waits for as much work as a cold start is worth, and starts when its time is near.
t_a_request_waits_for_work_that_fills_a_pod() {
	LOCAL='boot_delay = "4s";'
	job_in one 2
	burst submit one --quiet 0 --max-wait 8s
	is "$STATUS" 0 "submit ($(cat err.txt))"
	wait_for 6 "it to wait for work" waits_for "of work so far"
	is "$(ledger "select count(*) from run")" 0 "runs so far"
	wait_for 60 "its run" all_done
	is "$(ledger "select count(*) from run where status = 'done'")" 1 runs
	is "$(ledger "select count(*) from run r join request q on q.run = r.id where r.started_ms - q.created_ms < 7500")" 0 "runs before their time"
	wait_for 10 "the client to end" no_queue
}
# A warm pod has no cold start to pay for: the same request starts at once, and takes the pod over.
t_a_request_starts_at_once_where_a_pod_is_warm() {
	allow_volumes v
	LOCAL='boot_delay = "4s";'
	job_in one 2
	job_in two 2 'keep_warm = "40s";'
	burst submit one --quiet 0 --max-wait 60s
	is "$STATUS" 0 "submit ($(cat err.txt))"
	wait_for 20 "it to wait for work" waits_for "of work so far"
	run_in two
	is "$STATUS" 0 "the run that leaves a pod ($(cat err.txt))"
	wait_for 25 "the run of the request" all_done
	is "$(ledger "select count(*) from run where status = 'done' and type != 'keep'")" 2 runs
	is "$(creates)" 1 "pods created"
	is "$(ledger "select count(*) from pod a join run r on r.id = a.run where r.job = 'one' and a.handed_from != ''")" 1 "pods that the request's run took over"
	wait_for 10 "the client to end" no_queue
}
t_the_plan_counts_warm_pods() {
	allow_volumes v
	job_in one 2 "$KEEP"
	job_in two 2
	run_in one
	wait_for 10 "the pod to be kept" kept_now
	burst plan two/burst.cfg
	is "$STATUS" 0 "plan ($(cat err.txt))"
	has out.txt "warm: 1 pod is kept for the next run"
	burst plan two/burst.cfg --json
	is "$(json .warm_pods)" 1 "warm_pods"
	schema plan
	sed -i '1i pod = { cpu = 2; };' two/burst.cfg
	burst plan two/burst.cfg --json
	is "$(json .warm_pods)" 0 "warm_pods for another kind of pod ($(cat err.txt))"
	burst cancel "$(keeper)"
	is "$STATUS" 0 "cancel ($(cat err.txt))"
}
all_done() { [ "$(ledger "select count(*) from request where state in ('pending', 'running')")" = 0 ]; }
no_queue() { ! pgrep -f -- "queue run $T/" >/dev/null; }

run_tests "$@"
