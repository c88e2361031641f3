#!/bin/sh
# agent_room.sh - a volume without room: no segment is at fault, and the pod says so.
# shellcheck disable=SC2016,SC2013,SC2015,SC2086,SC2154 # pod-side $ stays; paths of our own making have no blanks
. "$(dirname "$0")/agent_lib.sh"

# A fresh pod whose volume is of one megabyte (or MEGABYTES), at $full; fails where none can be made.
pod_with_little_room() {
	[ "$(id -u)" = 0 ] && mkdir -p "$dir/full" && mount -t tmpfs -o "size=${1:-1}m" none "$dir/full" 2>/dev/null || return
	detach
	for pid in $(serve_pid); do kill "$pid"; done
	full=$dir/full
	pod
	BURST_VOLUME=$full
	sed "s|^BURST_VOLUME=.*|BURST_VOLUME='$full'|" "$BURST_HOME/env" >"$dir/env" && mv "$dir/env" "$BURST_HOME/env"
	attach 0
}

leave_little_room() {
	leave
	umount "$full"
	attach 0
}

test_volume_full() {
	pod_with_little_room || return 0
	tell '{"op":"start","workers":1,"command":true,"outputs":["*.bin"]}'
	tell '{"op":"batch","id":"b1","segments":[{"id":"c1","run":"head -c 3000000 /dev/zero >big.bin"}]}'
	expect '"ev":"fatal","error":".*(full|written)'
	refuse '"ok":false'
	leave_little_room
}

# What fails then is no fault of the segments: another pod may have room for them.
test_volume_fills_up_under_a_worker() {
	pod_with_little_room || return 0
	cat >"$dir/worker.sh" <<-'E'
		echo '{"hello":1,"protocol":1,"engine":"t","version":"1","max_batch":8}'
		read -r batch
		cat /dev/zero >"$BURST_VOLUME/fill" 2>/dev/null
		no='"ok":false,"error":"No space left on device"'
		printf '{"segment":"%s",'"$no"'}\n' q1 q2 q3
		echo '{"batch":"b1","done":true}'
		read -r batch
	E
	tell "{\"op\":\"start\",\"workers\":1,\"root\":true,\"worker\":\"exec sh $dir/worker.sh\"}"
	batch b1 q1 q2 q3 q4
	expect '"ev":"fatal","error":"the volume is full'
	tell '{"op":"renew"}'
	expect '"ev":"lease"'
	refuse '"ev":"segment"'
	leave_little_room
}

# ... also of one that takes away what it could not write whole, so that there is room again for what is small.
untidy_worker() { # WORDS [BYTES that it keeps of the first segment]
	cat >"$dir/worker.sh" <<-E
		echo '{"hello":1,"protocol":1,"engine":"t","version":"1","max_batch":1}'
		read -r batch
		if [ -n "$2" ]; then
			head -c "$2" /dev/zero >"\$BURST_OUT/q1.wav"
			echo '{"segment":"q1","ok":true,"file":"q1.wav"}'
			echo '{"batch":"b1","done":true}'
			read -r batch
		fi
		cat /dev/zero >"\$BURST_VOLUME/q2.wav.tmp" 2>/dev/null
		rm "\$BURST_VOLUME/q2.wav.tmp"
		echo '{"segment":"q2","ok":false,"error":"$1"}'
		echo '{"batch":"b2","done":true}'
		read -r batch
	E
	tell "{\"op\":\"start\",\"workers\":1,\"root\":true,\"worker\":\"exec sh $dir/worker.sh\"}"
}

test_volume_fills_up_and_is_tidied() {
	pod_with_little_room || return 0
	untidy_worker 'it could not be written'
	batch b2 q2
	expect '"ev":"fatal","error":"the volume is full'
	leave_little_room
	pod_with_little_room 16
	untidy_worker 'q2.wav.tmp: No space left on device'
	batch b2 q2
	expect '"ev":"fatal","error":"the volume is full'
	leave_little_room
	pod_with_little_room 16
	untidy_worker 'it could not be written' 9000000 # there is room for 7 MB more
	batch b1 q1
	expect '"id":"q1".*"ok":true'
	batch b2 q2
	expect '"ev":"fatal","error":"the volume is full'
	refuse '"ok":false'
	leave_little_room
}

test_a_segment_that_cannot_be_had_is_no_fault_of_the_volume() {
	pod_with_little_room 16 || return 0
	untidy_worker 'it cannot say that'
	batch b2 q2
	expect '"id":"q2".*"ok":false,"reason":"worker","error":"it cannot say that"'
	expect '"id":"b2","state":"done"'
	refuse '"ev":"fatal"'
	leave_little_room
}

# Each of many that fail is no reason to write a large file: whoever renews the lease is waiting meanwhile.
test_many_fail_at_once() {
	cat >"$dir/worker.py" <<-'E'
		import json
		print('{"hello":1,"protocol":1,"engine":"t","version":"1","max_batch":1000}', flush=True)
		batch = json.loads(input())
		for s in batch["segments"]:
		    print(json.dumps({"segment": s["id"], "ok": False, "error": "s.tmp: No space left on device"}))
		print(json.dumps({"batch": batch["batch"], "done": True}), flush=True)
		input()
	E
	tell "{\"op\":\"start\",\"workers\":1,\"worker\":\"exec python3 $dir/worker.py\"}"
	expect '"state":"ready"'
	batch b1 $(seq -f 's%.0f' 800)
	renewed=0
	until grep -q '"id":"b1","state":"done"' "$said"; do
		tell '{"op":"renew","lease_s":100}'
		renewed=$((renewed + 1))
		expect '"ev":"lease"' $renewed || break
	done
	equal 'segments' "$(count '"reason":"worker","error":"s.tmp: No space')" 800
	refuse '"ev":"fatal"'
}

# ... but one that fills up after that is noticed.
test_volume_fills_up_later() {
	pod_with_little_room 100 || return 0
	cat >"$dir/worker.sh" <<-'E'
		echo '{"hello":1,"protocol":1,"engine":"t","version":"1","max_batch":1000}'
		read -r batch
		for i in $(seq 400); do
			echo '{"segment":"q'$i'","ok":false,"error":"q.tmp: No space left on device"}'
			[ $i != 1 ] || until [ -e "$0.go" ]; do sleep 0.1; done
			[ -e "$BURST_VOLUME/fill" ] || cat /dev/zero >"$BURST_VOLUME/fill" 2>/dev/null
			sleep 0.1
		done
	E
	tell "{\"op\":\"start\",\"workers\":1,\"root\":true,\"worker\":\"exec sh $dir/worker.sh\"}"
	batch b1 $(seq -f 'q%.0f' 400)
	expect '"id":"q1".*"ok":false'
	refuse '"ev":"fatal"'
	: >"$dir/worker.sh.go"
	# whichever meets it first: the look for room, or the line that says which segment failed
	expect '"ev":"fatal","error":"(the volume is full|the event log cannot be written: No space)'
	leave_little_room
}

test_volume_fills_up_under_a_command() {
	pod_with_little_room || return 0
	tell '{"op":"start","workers":1,"command":true,"root":true}'
	tell '{"op":"batch","id":"b1","segments":[{"id":"c1","run":"cat /dev/zero >$BURST_VOLUME/fill 2>/dev/null"}]}'
	expect '"ev":"fatal","error":"the volume is full'
	tell '{"op":"renew"}'
	expect '"ev":"lease"'
	refuse '"ev":"segment"'
	leave_little_room
}

run_tests
