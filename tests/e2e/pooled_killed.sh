#!/bin/bash
# pooled_killed.sh - clients that die while a pod is kept or handed over: it has one owner whatever dies.
. "$(dirname "$0")/lib.sh"
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/pooled_lib.sh"

keeper_pid() { sed -n 's/^process //p' "$BURST_STATE_DIR/runs/$(keeper)/lock"; }

# A run that died while it waited is no reason to hold a pod.
t_a_dead_run_gets_nothing() {
	kill_the_waiter 10
	hasnt one.err "offered to a run"
	is "$(open_pods)" 0 "pods left"
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

run_tests "$@"
