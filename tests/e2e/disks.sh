#!/bin/bash
# disks.sh - disks that are full or closed, files that are in the way: each has its message, its exit status, and leaves nothing behind.
. "$(dirname "$0")/lib.sh"
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/input_lib.sh"

t_ledger_is_read_only() {
	script_lines 2
	config
	"$BURST" ledger || complain "making a ledger"
	unshare -m true 2>/dev/null || { skip "not root"; return; }
	STATUS=0
	unshare -m sh -c "mount --bind state state && mount -o remount,bind,ro state && exec '$BURST' run" >out.txt 2>err.txt </dev/null || STATUS=$?
	is "$STATUS" 1 "exit status ($(tail -n 1 err.txt))"
	has err.txt "state/ledger.db: the file system is read-only: burst rents nothing that it cannot record"
	is "$(wc -l <err.txt)" 1 "lines"
	is "$("$BURST" ledger --json)" "[]" runs
	is "$(pods_left)" "" pods
}

t_the_output_folder_is_too_small() { # an hour of sound, mostly pauses, where 20 MB are free: nothing is rented
	local command
	unshare -m true 2>/dev/null || { skip "not root"; return; }
	for _ in $(seq 60); do printf 'One line.\n\n[pause 60s]\n\n'; done >script.md
	JOB='join = { gap = 0.1; };' INPUT=script.md
	config
	mkdir out
	for command in plan run; do
		STATUS=0
		unshare -m sh -c "mount -t tmpfs -o size=20m none out && exec '$BURST' $command" >out.txt 2>err.txt </dev/null || STATUS=$?
		is "$STATUS" 1 "$command: exit status ($(tail -n 1 err.txt))"
		has err.txt "the output folder $T/out needs about 0.16 GB, and 0.021 GB are free there: free some space, or set another job.output"
	done
	is "$("$BURST" ledger --json)" "[]" runs
}

t_output_is_a_file() {
	script_lines 2
	config
	echo hello >out
	refused 2 "$T/out"
	is "$(cat out)" hello "the file"
}

t_output_not_writable() {
	script_lines 2
	config
	mkdir -m 555 out
	if [ "$(id -u)" != 0 ]; then
		refused 2 "output $T/out: cannot be written: Permission denied"
		chmod 755 out
		return
	fi
	setpriv --reuid=nobody --regid=nogroup --clear-groups true 2>/dev/null || { skip "no other user can run a program here"; return; }
	cp "$BURST" burst-copy
	chmod 711 "$WORK"
	mkdir -m 700 theirs
	chown nobody theirs
	STATUS=0
	BURST_STATE_DIR=$T/theirs HOME=$T/theirs setpriv --reuid=nobody --regid=nogroup --clear-groups \
		./burst-copy run >out.txt 2>err.txt </dev/null || STATUS=$?
	is "$STATUS" 2 "exit status ($(tail -n 2 err.txt))"
	has err.txt "output $T/out: cannot be written: Permission denied"
}

t_foreign_file_under_our_name() {
	script_lines 3
	config
	mkdir out
	echo precious >out/s002.wav
	echo mine >out/notes.txt
	refused 2 s002.wav '--force'
	is "$(cat out/s002.wav)" precious "the foreign file"
	burst run --force
	is "$STATUS" 0 "with --force ($(tail -n 2 err.txt))"
	is "$(wavs)" 3 files
	is "$(cat out/notes.txt)" mine "the other file"
}

small_disk() { # small_disk FOLDER SIZE
	mkdir -p "$1"
	if [ "$(id -u)" != 0 ] || ! mount -t tmpfs -o "size=$2,mode=700" tmpfs "$1" 2>/dev/null; then
		skip "no small disk can be mounted here"
		return 1
	fi
}

t_disk_full_at_the_output() {
	script_lines 20
	slow_worker SLOW=0.2
	config 'code = { path = "code"; }; pods = 1;'
	small_disk "$T/out" 12m || return
	burst_bg run --json # begins, since there is room for all
	wait_for 30 "a file" file_count out 1
	head -c 12M /dev/zero >out/filler 2>/dev/null
	burst_wait
	is "$STATUS" 1 "exit status ($(tail -n 2 err.txt))"
	# of two files that are looked at together, the second may find room and meet the end of it when it is written
	grep -qE "the disk of $T/out is full|$T/out/.*: write: No space left" err.txt || has err.txt "the disk of $T/out is full"
	last_json full
	is "$(json '[.pods[].released] | all')" true "all released"
	umount "$T/out"
}

t_disk_full_on_the_volume() {
	script_lines 20
	config
	small_disk "$T/state/volumes" 1600k || return
	burst run --json
	[ "$STATUS" != 0 ] || complain "it says that all is well"
	has err.txt "the volume is full"
	last_json full
	is "$(json '[.pods[].released] | all')" true "all released"
	wait_for 20 "the pods to go" no_pods
	umount "$T/state/volumes"
}

t_no_room_for_the_ledger() {
	script_lines 2
	config
	small_disk "$T/state" 4m || return
	burst run
	[ "$STATUS" != 0 ] || complain "it ran"
	has err.txt "free some space; nothing was rented"
	umount "$T/state"
}

t_ledger_fills_up_in_the_middle() {
	LIMIT=45
	script_lines 600
	config
	small_disk "$T/state" 40m || return
	burst_bg run --json
	wait_for 40 "a file" file_count out 2
	dd if=/dev/zero of="$T/state/ballast" bs=64k >/dev/null 2>&1
	burst_wait
	wait_for 30 "the pods to go" no_pods
	[ "$STATUS" != 99 ] || complain "it crashed"
	last_json "ledger full"
	wait_for 20 "processes to end" no_processes
	umount "$T/state"
}

t_ledger_corrupt() {
	script_lines 2
	config
	mkdir -p state
	chmod 700 state
	head -c 20000 /dev/urandom >state/ledger.db
	burst run
	[ "$STATUS" != 0 ] || complain "it ran"
	has err.txt ledger.db
	is "$(wc -l <err.txt)" 1 "lines of the message"
	cp err.txt first.txt
	burst ps
	[ "$STATUS" != 0 ] || complain "ps takes it"
}

run_tests "$@"
