# machine.sh - for scripts in which the machine that runs burst fails while it has pods at some vendor, after that vendor's
# client.sh: its disk is full at one call, its ledger is locked, spoilt, of another version or gone, it sleeps for longer than
# the lease, its clock jumps. The pods are given back all the same, the exit status is true, and what is wrong is named.
#
# The vendor's script says: VENDOR, vendor_config TEXT (writes burst.cfg), pods_alive (lines "ID ..."), ids_ever, all_paid_for.
# FULL_POINTS=all: the disk is full at each call, 100: at so many (SAMPLE of them when nothing is said).
# shellcheck shell=bash
# shellcheck disable=SC2317 # c_ functions are called by names put together
SAMPLE=${SAMPLE:-4}
SEGMENTS=${SEGMENTS:-6} # so many of SLOW_S are work for two pods, as soon as the vendor tells of a pod
SLOW_S=${SLOW_S:-3}

two_pods() { # so slow that both find work
	slow_worker SLOW="$SLOW_S" MAX_BATCH=1
	script_lines "$SEGMENTS"
	vendor_config 'pods = 2; code = { path = "code"; };'
}
with_a_failing_disk() { # with_a_failing_disk once|on N ERROR FOLDER[:FOLDER]: what was counted is in points
	STATUS=0
	timeout -k 5 120 env LD_PRELOAD="$ROOT/build/e2e/failer.so" ASAN_OPTIONS="$ASAN_OPTIONS:verify_asan_link_order=0" \
		FAIL_AT="$1 $2 $3" FAIL_UNDER="$4" FAIL_LOG=points "$BURST" run --json >out.txt 2>err.txt </dev/null || STATUS=$?
}
truly_over() { # truly_over TEXT [TIMES]: what a run that met something bad may have come to; pods never outlive it
	cp err.txt first.txt
	cp out.txt first.json
	is "$(pods_alive)" "" "pods after exit $STATUS"
	case $STATUS in
	0) all_right "$SEGMENTS" ;;
	1 | 2) grep -qE "$1" err.txt || complain "exit $STATUS, and err.txt does not say \"$1\": $(tail -n 3 err.txt | tr '\n' '|')" ;;
	*) complain "exit $STATUS ($(tail -n 3 err.txt | tr '\n' '|'))" ;;
	esac
	[ "$(json '[.pods[].released] | all')" = true ] || complain "exit $STATUS, no pod is left, and the result says: $(json '[.pods[] | {id, released}] | tostring')"
	[ "$(grep -cE "$1" err.txt)" -le "${2:-4}" ] || complain "it is said $(grep -cE "$1" err.txt) times: $(grep -m 2 -E "$1" err.txt | tr '\n' '|')"
}
goes_on() { # all is well again; a minute of it may be for a create that nobody wrote down the end of
	local LIMIT=240
	burst run --json
	is "$STATUS" 0 "the next run ($(tail -n 2 err.txt | tr '\n' '|'))"
	is "$(json .status)" "done" "status of the next run"
	unchanged stamp.txt
	all_right "$SEGMENTS"
	burst reap
	is "$STATUS" 0 "reap ($(tail -n 2 err.txt))"
	is "$(pods_alive)" "" "pods after reap"
	cp first.txt state/ledger.db.said # what a ledger could not be told was told to whoever sat there
}

# ---- the disk is full ----

full_at() { # full_at once|on N
	two_pods
	with_a_failing_disk "$1" "$2" ENOSPC "$T/state:$T/out"
	[ "$(wc -l <points)" -ge "$2" ] && echo met >met
	truly_over "No space left|the disk .*is full|that the disk is not full"
	stamp >stamp.txt
	goes_on
}
c_count_disk() {
	two_pods
	with_a_failing_disk once 0 ENOSPC "$T/state:$T/out"
	all_done "$SEGMENTS"
}
full_points() { # a line for each: the call alone fails, or it and all that follow
	awk '{print "once", $1; print "on", $1}' c_count_disk/points
}
full_sample() { # full_sample N
	full_points | awk -v n="$1" '{all[NR] = $0} END {for (i = 0; i < n; i++) print all[int(NR * (i + 0.5) / n / 2) * 2 + 1 + i % 2]}'
}
disk_is_full_at_one_call() { # after c_count_disk
	[ -s c_count_disk/points ] || return
	local way n names=()
	while read -r way n; do
		eval "c_full_${way}_$n() { full_at $way $n; }"
		names+=("c_full_${way}_$n")
	done < <(if [ "${FULL_POINTS:-}" = all ]; then full_points; else full_sample "${FULL_POINTS:-$SAMPLE}"; fi)
	cases "${names[@]}"
	echo "    ${#names[@]} of $(full_points | wc -l) points, $(find . -name met | wc -l) met"
}

# ---- the ledger ----

at_work() { # the client is at work on two pods and has a file home
	two_pods
	burst_bg run --json
	wait_for 60 "a file" file_count out 1
	wait_for 60 "both pods to be rented" both_rented # or one would come up behind the back of who looks for them
}
both_rented() { [ "$(ledger "select count(*) from pod where id != ''")" = 2 ]; }
both_work() { [ "$(ledger "select count(*) from pod where state = 'live' and ready_ms > 0")" = 2 ]; }
killed() {
	kill -9 "$PID"
	burst_wait 2>/dev/null
}
# Its client dies; nobody can read the ledger. The pods are found by their marks; with it moved away, as the message says, reap
# has nothing to complain of.
found_by_their_marks() { # found_by_their_marks TEXT: what reap has to say of the ledger
	cannot_reap "$1"
	ended_by_their_marks 1
	moved_away
	burst reap --provider "$VENDOR"
	is "$STATUS" 0 "reap without a ledger ($(tail -n 2 err.txt))"
}
ended_by_their_marks() { # ended_by_their_marks [STATUS]: of a reap that names none of them
	local ids id
	ids=$(pods_alive | cut -d' ' -f1)
	[ -n "$ids" ] || complain "no pod was left to be found"
	burst reap --provider "$VENDOR"
	is "$STATUS" "${1:-0}" "reap without a ledger ($(tail -n 2 err.txt))"
	for id in $ids; do
		has out.txt "burst reap $id --force releases it"
		STATUS=0
		"${CLIENT:-$BURST}" reap "$id" --force --provider "$VENDOR" >forced.txt 2>&1 </dev/null || STATUS=$?
		is "$STATUS" 0 "reap $id --force ($(tail -n 1 forced.txt))"
	done
	is "$(pods_alive)" "" "pods after reap --force"
	no_ledger_knows_them
}
moved_away() {
	mkdir -p away
	mv state/ledger.db* away/
}
no_ledger_knows_them() { ids_ever >state/ledger.db.not; } # nor need it
about_to_lock() { # opened now: Python takes long to start on a machine under load
	burst ledger
	python3 -c '
import signal, sqlite3
ledger = sqlite3.connect("state/ledger.db", isolation_level=None, timeout=20)
signal.signal(signal.SIGUSR1, lambda *_: None)
print("ready", flush=True)
signal.pause()
ledger.execute("BEGIN EXCLUSIVE")
print("held", flush=True)
signal.pause()' >lock.txt 2>&1 &
	LOCK_PID=$!
	wait_for 30 "the other process" grep -q ready lock.txt
}
locked() { # until unlocked
	kill -USR1 "$LOCK_PID"
	wait_for 30 "the ledger to be locked" grep -q held lock.txt
}
unlocked() { { kill "$LOCK_PID" && wait "$LOCK_PID"; } 2>/dev/null; }
spoil() { # spoil FILE AT BYTES
	dd if=/dev/urandom of="$1" bs=1 seek="$2" count="$3" conv=notrunc 2>/dev/null
}
lives_on() { # lives_on TEXT: so does the client, and says this if it has met what is wrong
	burst_wait
	truly_over "$1" 2
	stamp >stamp.txt
}
# The next command reads the ledger again: what of it can be read counts, or it says what to do, and that is enough.
then_all_is_well() {
	burst reap --provider "$VENDOR"
	if [ "$STATUS" != 0 ]; then
		grep -qE "ledger.db: is (damaged|not a ledger): move it away" err.txt || complain "reap: $(tail -n 2 err.txt | tr '\n' '|')"
		moved_away
	fi
	goes_on
	no_ledger_knows_them
}

c_ledger_read_only_at_work() {
	two_pods
	with_a_failing_disk on 60 EROFS "$T/state/ledger.db"
	truly_over "ledger.db.*(read-only|disk failed|cannot be written)" 2
	is "$STATUS" 1 "exit status"
	stamp >stamp.txt
	goes_on
}
c_ledger_locked_for_good() {
	about_to_lock
	at_work
	locked
	lives_on "ledger.db: locked by another process"
	is "$STATUS" 1 "exit status"
	has first.txt "ledger.db: locked by another process"
	unlocked
	goes_on
}
c_ledger_locked_from_the_start() {
	two_pods
	about_to_lock
	locked
	burst run --json
	is "$STATUS" 1 "exit status ($(tail -n 2 err.txt))"
	has err.txt "ledger.db: locked by another process: retry when it has ended"
	is "$(pods_ever)" 0 "pods that ever were"
	unlocked
}
c_ledger_header_is_spoilt() {
	at_work
	spoil state/ledger.db 0 100
	spoil state/ledger.db-wal 0 32
	lives_on "ledger.db: is (damaged|not a ledger)"
	then_all_is_well
}
c_ledger_middle_is_spoilt() {
	at_work
	spoil state/ledger.db $(($(stat -c %s state/ledger.db) / 8192 * 4096)) 4096
	lives_on "ledger.db: is (damaged|not a ledger)"
	then_all_is_well
}
c_ledger_wal_is_spoilt() {
	at_work
	spoil state/ledger.db-wal $(($(stat -c %s state/ledger.db-wal) / 2)) 4096
	lives_on "ledger.db: is (damaged|not a ledger)"
	then_all_is_well
}
c_ledger_spoilt_and_killed() {
	at_work
	killed
	rm state/ledger.db-wal
	spoil state/ledger.db 0 4096
	found_by_their_marks "ledger.db: is (damaged|not a ledger): move it away"
}
c_ledger_is_removed() {
	at_work
	rm state/ledger.db*
	lost_its_ledger
}
c_ledger_is_replaced() { # by one that knows nothing
	at_work
	BURST_STATE_DIR=$T/fresh "$BURST" ledger >fresh.txt 2>&1 || complain "no other ledger: $(cat fresh.txt)"
	rm state/ledger.db-*
	mv fresh/ledger.db state/ledger.db
	lost_its_ledger
}
lost_its_ledger() {
	lives_on "ledger.db: was removed or replaced"
	is "$STATUS" 1 "exit status"
	has first.txt "ledger.db: was removed or replaced"
	allow_volumes v # whose it is went with the ledger
	goes_on
	no_ledger_knows_them
}
c_ledger_removed_and_killed() {
	at_work
	rm state/ledger.db*
	killed
	ended_by_their_marks
}
# What it can read tells it what to give back; that it cannot write that down is said once, and found out by the next reap.
c_ledger_locked_and_killed() {
	local LIMIT=240 # many a write waits for whoever holds it
	about_to_lock
	at_work
	killed
	locked
	[ -n "$(pods_alive)" ] || complain "no pod was left to be ended"
	burst reap --provider "$VENDOR"
	is "$STATUS" 0 "reap with a locked ledger ($(tail -n 2 err.txt | tr '\n' '|'))"
	is "$(pods_alive)" "" "pods after it"
	is "$(grep -c "ledger.db: locked by another process: retry when it has ended" err.txt)" 1 "times that it is said ($(tail -n 4 err.txt | tr '\n' '|'))"
	unlocked
	reaped_as_ever
	is "$(ledger "select count(*) from pod where state not in ('gone', 'failed')")" 0 "pods that live by the ledger"
}
# Whoever holds it lets nobody read it either, and never ends.
c_ledger_held_and_killed() {
	at_work
	killed
	held_whole
	found_by_their_marks "ledger.db: locked by another process: retry when it has ended"
	unlocked
}
c_ledger_held_and_killed_then_free() {
	at_work
	killed
	held_whole
	cannot_reap "ledger.db: locked by another process: retry when it has ended"
	[ -n "$(pods_alive)" ] || complain "no pod was left to be ended"
	unlocked
	reaped_as_ever
}
held_whole() { # until unlocked
	python3 -c '
import signal, sqlite3
ledger = sqlite3.connect("state/ledger.db", isolation_level=None, timeout=20)
ledger.execute("PRAGMA locking_mode = EXCLUSIVE")
ledger.execute("BEGIN EXCLUSIVE")
print("held", flush=True)
signal.pause()' >lock.txt 2>&1 &
	LOCK_PID=$!
	wait_for 60 "the ledger to be held" grep -q held lock.txt
}
c_ledger_read_only_and_killed() {
	unshare -m true 2>/dev/null || { skip "not root"; return; }
	at_work
	killed
	with_a_read_only_ledger
	if [ "$VENDOR" = local ]; then # a local pod is told of in the very folder
		burst reap --provider local
		is "$STATUS" 1 "exit status of reap"
		has err.txt "ledger.db: cannot be written"
	else
		cannot_reap "ledger.db: (cannot be written|the file system is read-only)"
		ended_by_their_marks 1
	fi
	CLIENT=
	reaped_as_ever
}
with_a_read_only_ledger() { # the client is one that may write nothing there
	cat >client <<-E
		#!/bin/sh
		exec unshare -m sh -c 'mount --bind "\$0/state" "\$0/state" && mount -o remount,bind,ro "\$0/state" && exec "\$@"' '$T' '$BURST' "\$@"
	E
	chmod 755 client
	CLIENT=$T/client
}
cannot_reap() { # cannot_reap TEXT: it says so in one line
	burst reap --provider "$VENDOR"
	[ "$STATUS" != 0 ] || complain "reap: exit 0"
	grep -qE "$1" err.txt || complain "reap does not say \"$1\": $(tail -n 2 err.txt | tr '\n' '|')"
	is "$(grep -c . err.txt)" 1 "lines that reap says ($(head -n 2 err.txt | tr '\n' '|'))"
	cp err.txt reap.txt
}
reaped_as_ever() {
	burst reap --provider "$VENDOR"
	is "$STATUS" 0 "reap afterwards ($(tail -n 2 err.txt))"
	is "$(pods_alive)" "" "pods after reap"
}
c_ledger_of_a_newer_burst() {
	at_work
	ledger "PRAGMA user_version = 99" || complain "no other version"
	killed
	found_by_their_marks "ledger.db: was written by a newer burst"
}

# ---- it sleeps ----

c_stopped_past_the_lease() {
	slow_worker SLOW=0.4 MAX_BATCH=2
	vendor_config 'pods = 1; lease = "10s"; code = { path = "code"; };'
	script_lines 40
	LIMIT=200 burst_bg run --json # a minute of it is for a pod that its vendor does not know any more
	wait_for 60 "files" file_count out 3
	kill -STOP "$PID"
	stamp >stamp.txt
	wait_for 60 "the pod to end by itself" no_pod_lives
	kill -CONT "$PID"
	burst_wait
	is "$STATUS" 0 "exit status ($(tail -n 2 err.txt))"
	unchanged stamp.txt
	all_right 40
	all_paid_for
}
no_pod_lives() { [ -z "$(pods_alive)" ]; }

# ---- its clock ----

faked() { # faked COMMAND...: by the clock in clock.txt
	LD_PRELOAD=$(faketime -f +0 sh -c 'echo "$LD_PRELOAD"') FAKETIME_TIMESTAMP_FILE=$T/clock.txt FAKETIME_NO_CACHE=1 \
		FAKETIME_DONT_FAKE_MONOTONIC=1 NO_FAKE_STAT=1 timeout -k 5 120 "$@"
}
can_fake() {
	command -v faketime >/dev/null || { skip "no faketime"; return 1; }
	case $BURST in */asan/*) skip "faketime and the sanitizers do not go together"; return 1 ;; esac
}
clock_jumps() { # clock_jumps OFFSET
	can_fake || return
	two_pods
	echo +0 >clock.txt
	faked "$BURST" run --json >out.txt 2>err.txt </dev/null &
	SHELL_PID=$!
	wait_for 60 "a file" file_count out 1
	stamp >stamp.txt
	echo "$1" >clock.txt
	burst_wait
	is "$STATUS" 0 "exit status after a jump by $1 ($(tail -n 2 err.txt))"
	is "$(pods_alive)" "" "pods after it"
	unchanged stamp.txt
	all_right "$SEGMENTS"
}
c_clock_jumps_ahead() { clock_jumps +1d; }
c_clock_jumps_back() { clock_jumps -1d; }
# Modal is asked for a secret first. The sandbox that follows lives no longer than its run wants, whatever the clock says by then.
c_clock_jumps_back_in_a_create() {
	can_fake || return
	slow_worker SLOW=0.2 MAX_BATCH=1
	vendor_config 'pods = 1; code = { path = "code"; };'
	echo +0 >clock.txt
	add_rule '{"when":{"op":"SecretGetOrCreate"},"do":{"delay_ms":4000}}'
	faked "$BURST" run --json >out.txt 2>err.txt </dev/null &
	SHELL_PID=$!
	wait_for 60 "the secret to be asked for" create_has_begun
	echo -1d >clock.txt
	burst_wait
	is "$STATUS" 0 "exit status after the jump ($(tail -n 2 err.txt))"
	is "$(pods_alive)" "" "pods after it"
	all_right "$SEGMENTS"
}
clock_is_off() { # clock_is_off OFFSET WORDS
	can_fake || return
	two_pods
	echo "$1" >clock.txt
	STATUS=0
	faked "$BURST" run --json >out.txt 2>err.txt </dev/null || STATUS=$?
	is "$STATUS" 2 "exit status with $1 ($(tail -n 2 err.txt))"
	grep -q "this machine's clock is .*$2.*set the clock" err.txt || complain "not told: $(tail -n 2 err.txt | tr '\n' '|')"
	is "$(pods_ever)" 0 "pods that ever were"
}
c_clock_a_day_ahead() { clock_is_off +1d "ahead of"; }
c_clock_a_day_behind() { clock_is_off -1d "behind"; }
# A reap by a clock that is a day ahead ends nobody's pods at work.
c_reap_a_day_ahead() {
	can_fake || return
	at_work
	echo +1d >clock.txt
	STATUS=0
	BURST_STATE_DIR=$T/elsewhere faked "$BURST" reap --provider "$VENDOR" >reap.txt 2>&1 </dev/null || STATUS=$?
	is "$STATUS" 0 "reap ($(tail -n 2 reap.txt))"
	# one pod or two: the second may still be on its way
	grep -q "skipped" reap.txt || complain "it saw no pod at work"
	is "$(grep -v "skipped" reap.txt)" "" "pods that it does not leave alone"
	burst_wait
	all_done "$SEGMENTS"
}
# ... nor does whoever settles what dead clients left end the pods of a run that was handed over to them.
c_handed_over_a_day_ahead() {
	can_fake || return
	at_work
	wait_for 60 "both pods at work" both_work # one that is not would be ended: nobody handed it anything
	killed
	ledger "update run set detached = 1"
	pods_alive | cut -d' ' -f1 >before.txt
	echo +1d >clock.txt
	STATUS=0
	faked "$BURST" reap --provider "$VENDOR" >reap.txt 2>&1 </dev/null || STATUS=$?
	is "$STATUS" 0 "reap ($(tail -n 2 reap.txt))"
	is "$(pods_alive | cut -d' ' -f1)" "$(cat before.txt)" "pods that it left"
	is "$(grep -c "skipped" reap.txt)" "$(grep -c . before.txt)" "pods that it says it left"
	burst cancel
	is "$STATUS" 0 "cancel ($(tail -n 2 err.txt))"
}

its_disk_is_full() { # while a run does each of the calls that are sampled
	local only=${ONLY:-}
	ONLY=${only:+"$only|c_count_disk"}
	cases c_count_disk
	ONLY=$only
	disk_is_full_at_one_call
}
ledger_cases() {
	echo c_ledger_read_only_at_work c_ledger_locked_for_good c_ledger_locked_from_the_start c_ledger_locked_and_killed \
		c_ledger_held_and_killed c_ledger_held_and_killed_then_free c_ledger_read_only_and_killed c_ledger_header_is_spoilt \
		c_ledger_middle_is_spoilt c_ledger_wal_is_spoilt c_ledger_spoilt_and_killed c_ledger_is_removed c_ledger_is_replaced c_ledger_removed_and_killed \
		c_ledger_of_a_newer_burst
}
its_clock_is_wrong() {
	# shellcheck disable=SC2046
	cases c_clock_jumps_ahead c_clock_jumps_back $([ "$VENDOR" != modal ] || echo c_clock_jumps_back_in_a_create) c_clock_a_day_ahead c_clock_a_day_behind c_reap_a_day_ahead c_handed_over_a_day_ahead
}
