#!/bin/sh
# agent_commands.sh - commands on the pod: their output, where it is lost, what they leave behind.
# shellcheck disable=SC2016,SC2013,SC2015,SC2086,SC2154 # pod-side $ stays; paths of our own making have no blanks
. "$(dirname "$0")/agent_lib.sh"

test_command_that_does_not_die() {
	start_undead 0
	tell '{"op":"start","workers":1,"command":true,"hang_s":1}'
	tell "{\"op\":\"batch\",\"id\":\"b1\",\"segments\":[{\"id\":\"c1\",\"run\":\"exec python3 $dir/worker.py command\"},{\"id\":\"c2\",\"run\":\"exit 5\"}]}"
	expect '"line":"(undead|nothing may trace here)"'
	grep -q '"line":"nothing may' "$said" && { echo "skipped: nothing may trace here"; return 0; }
	expect '"id":"c1".*"code":137.*"error":"it was silent for too long and was ended"'
	expect '"id":"c2".*"code":5'
}

test_command() {
	mkdir -p "$dir/code/out"
	echo data >"$dir/code/in.txt"
	echo old >"$dir/code/out/old.mp4"
	put_tree code "$dir/code"
	tell '{"op":"start","workers":1,"command":true,"code":"code/'$tree'","outputs":["out/**.mp4","top-*.txt"]}'
	expect '"state":"ready","engine":"command"'
	tell '{"op":"batch","id":"b1","segments":[{"id":"c1","run":"cat in.txt; echo $BURST_INDEX of $BURST_COUNT; mkdir -p out/deep/er; echo film >out/deep/er/a.mp4; echo t >top-1.txt; echo no >other.txt; ln -s /etc/passwd out/evil.mp4; echo changed >>in.txt","index":2,"count":5}]}'
	expect '"ev":"segment","id":"c1","batch":"b1","try":1,"ok":true,"code":0,"ms":[0-9]*,"outputs":2'
	expect '"ev":"log","id":"c1","line":"data"'
	expect '"ev":"log","id":"c1","line":"2 of 5"'
	hash=$(echo film | sha256sum | cut -d' ' -f1)
	expect "\"ev\":\"output\",\"id\":\"c1\",\"name\":\"out/deep/er/a.mp4\",\"path\":\"runs/r1/$BURST_ATTEMPT/out/c1/out/deep/er/a.mp4\",\"bytes\":5,\"sha256\":\"$hash\""
	equal 'code untouched' "$(cat "$BURST_VOLUME/code/$tree/in.txt" "$BURST_HOME"/tree/*/"$tree/in.txt" | tr '\n' ' ')" 'data data '
	equal 'log kept' "$(cat "$P/c1.log")" "$(printf 'data\n2 of 5')"
	equal 'outputs' "$(count '"ev":"output"')" 2
	tell '{"op":"batch","id":"b2","segments":[{"id":"c2","run":"echo part >out/p.mp4; echo why; exit 7"}]}'
	expect '"id":"c2".*"ok":false,"code":7.*"outputs":1.*"reason":"worker","error":"exit status 7: why"'
	expect '"id":"b2","state":"done"'
	for _ in $(seq 100); do
		ls -d "$BURST_HOME"/work/segment.c2* >/dev/null 2>&1 || break
		sleep 0.05
	done
	ls -d "$BURST_HOME"/work/segment.c2* 2>/dev/null && fail 'the private copy is still there'
}

# Whoever hears that a command has failed may send it again at once: its old folder, which takes a while to go, is not in the way.
test_command_leaves_its_place() {
	tell '{"op":"start","workers":1,"command":true}'
	tell '{"op":"batch","id":"b1","segments":[{"id":"c1","run":"i=0; while [ $i -lt 20000 ]; do : >f$i; i=$((i+1)); done; exit 3"}]}'
	expect '"id":"c1".*"ok":false,"code":3'
	[ -e "$BURST_HOME/work/segment.c1" ] && fail 'the old folder is still there'
}

test_command_streams() {
	tell '{"op":"start","workers":1,"command":true,"outputs":["out/*.mp4"],"stream":true}'
	tell '{"op":"batch","id":"b1","segments":[{"id":"c1","run":"mkdir out; sleep 0.3; echo a >out/a.tmp; mv out/a.tmp out/a.mp4; echo grows >out/b.mp4; until [ -e go ]; do sleep 0.05; done; echo more >>out/b.mp4"}]}'
	expect '"ev":"output","id":"c1","name":"out/a.mp4"'
	refuse '"name":"out/b.mp4"'
	: >"$BURST_HOME/work/segment.c1/go"
	expect '"ev":"output","id":"c1","name":"out/b.mp4".*"bytes":11'
	expect '"id":"c1".*"ok":true.*"outputs":2'
}

# A folder now, a file before: what cannot be kept is no success of the command.
test_output_lost() {
	tell '{"op":"start","workers":1,"command":true,"root":true,"outputs":["r/*.txt","good.txt","gone/*"]}'
	tell '{"op":"batch","id":"b1","segments":[{"id":"c1","run":"o=$BURST_VOLUME/runs/$BURST_RUN/$BURST_ATTEMPT/out/$BURST_SEGMENT; mkdir -p $o; echo x >$o/r; mkdir r; echo y >r/a.txt; echo z >good.txt"}]}'
	expect '"ev":"segment","id":"c1".*"ok":false,"code":0,.*"outputs":1,.*"reason":"missing","error":"output r/a.txt could not be kept: [^"]'
	equal outputs "$(count '"ev":"output"')" 1
	expect '"ev":"output","id":"c1","name":"good.txt"'
	equal 'half files' "$(find "$P" -name '*.part')" ''
	tell '{"op":"batch","id":"b2","segments":[{"id":"c2","run":"o=$BURST_VOLUME/runs/$BURST_RUN/$BURST_ATTEMPT/out/$BURST_SEGMENT; mkdir -p $o; echo x >$o/r; mkdir r; echo y >r/a.txt; exit 4"}]}'
	expect '"ev":"segment","id":"c2".*"ok":false,"code":4,.*"outputs":0,.*"reason":"worker","error":"exit status 4"'
}

# With `stream` it may be lost while the command runs: the look at its exit takes it once more. One that the command has taken
# away again is not lost.
test_output_lost_in_the_stream() {
	tell '{"op":"start","workers":1,"command":true,"root":true,"outputs":["r/*.txt"],"stream":true}'
	tell '{"op":"batch","id":"b1","segments":[{"id":"c1","run":"o=$BURST_VOLUME/runs/$BURST_RUN/$BURST_ATTEMPT/out/$BURST_SEGMENT; mkdir -p $o r; echo x >$o/r; until [ -e go ]; do for f in a b; do echo $f >r/$f.tmp; mv r/$f.tmp r/$f.txt; done; sleep 0.1; done; rm r/b.txt $o/r"}]}'
	expect 'output r/a.txt could not be kept'
	expect 'output r/b.txt could not be kept'
	refuse '"ev":"output"'
	: >"$BURST_HOME/work/segment.c1/go"
	expect '"ev":"segment","id":"c1".*"ok":true,.*"outputs":1,'
	equal outputs "$(count '"ev":"output","id":"c1","name":"r/a.txt"')" 1
}

# A file larger than a file may be, on a volume that has room: it is lost, the agent lives, and no half of it stays.
test_output_too_large() {
	detach
	for pid in $(serve_pid); do kill "$pid"; done
	pod
	limit_was=$(ulimit -f)
	# shellcheck disable=SC3045 # every sh that we know can set the soft one alone
	ulimit -S -f 400
	attach 0
	# shellcheck disable=SC3045
	ulimit -S -f "$limit_was"
	tell '{"op":"start","workers":1,"command":true,"outputs":["*.bin"]}'
	tell '{"op":"batch","id":"b1","segments":[{"id":"c1","run":"ulimit -S -f unlimited; head -c 300000 /dev/zero >big.bin"}]}'
	expect '"ev":"segment","id":"c1".*"ok":false,"code":0,.*"outputs":0,.*"reason":"missing","error":"output big.bin could not be kept: File too large"'
	refuse '"ev":"fatal"'
	equal 'half files' "$(find "$P" -name '*.part')" ''
}

test_command_leaves_nothing_behind() {
	tell '{"op":"start","workers":1,"command":true}'
	tell '{"op":"batch","id":"b1","segments":[{"id":"c1","run":"sleep 4321 & echo gone"}]}'
	expect '"id":"c1".*"ok":true'
	# one that left its group, and a child of it that left that one
	tell '{"op":"batch","id":"b2","segments":[{"id":"c2","run":"setsid sh -c \"setsid sleep 4322 & exec sleep 4324\" & sleep 4323"}]}'
	expect '"id":"b2","state":"started"'
	for _ in $(seq 100); do
		[ "$(pgrep -fc '^sleep 432[234]')" = 3 ] && break
		sleep 0.05
	done
	tell '{"op":"end"}'
	wait_for_end
	for _ in $(seq 100); do
		pgrep -f 'sleep 432[1234]' >/dev/null || break
		sleep 0.05
	done
	pgrep -f 'sleep 432[1234]' >/dev/null && fail 'processes are left'
}

# What a command has finished counts, however it ends; what is still being written does not. $1: how it ends.
ends_early() {
	tell '{"op":"start","workers":1,"command":true,"outputs":["out/**.wav"]}'
	tell "{\"op\":\"batch\",\"id\":\"b1\",\"segments\":[{\"id\":\"c1\",\"run\":\"mkdir -p out/new; echo a >out/tmp; mv out/tmp out/moved.wav; echo b >out/closed.wav; echo c >out/t; ln out/t out/linked.wav; echo d >out/new/e.wav; (exec 7>out/open.wav; echo half >&7; echo ready; exec sleep 4325 >/dev/null 2>&1) & until [ -e go ]; do sleep 0.02; done; $1\"}]}"
	expect '"line":"ready"'
}

finished_outputs() {
	sed -n 's/.*"ev":"output".*"name":"\([^"]*\)".*/\1/p' "$said" | sort | tr '\n' ' '
}

test_command_is_halted() {
	ends_early 'exit 0'
	tell '{"op":"halt"}'
	expect '"ev":"revoked","ids":\["b1"\]'
	equal outputs "$(finished_outputs)" 'out/closed.wav out/linked.wav out/moved.wav out/new/e.wav '
	expect '"line":"output out/open.wav: was still being written when the command ended, and is not kept"'
	refuse '"ev":"segment"'
	pgrep -f 'sleep 4325' >/dev/null && fail 'a process is left'
	tell '{"op":"batch","id":"b2","segments":[{"id":"c1","run":"exit 0"}]}' # the place is free again
	expect '"id":"c1","batch":"b2".*"ok":true'
}

# It may save what it has when it is told; what it closes then is finished if it ends itself.
test_command_answers_a_halt() {
	tell '{"op":"start","workers":1,"command":true,"outputs":["*.wav"]}'
	tell '{"op":"batch","id":"b1","segments":[{"id":"c1","run":"exec 7>a.wav; trap \"echo rest >&7; exec 7>&-; exit 0\" TERM; echo half >&7; echo ready; while :; do sleep 0.02; done"}]}'
	expect '"line":"ready"'
	tell '{"op":"halt"}'
	expect '"ev":"revoked","ids":\["b1"\]'
	expect '"ev":"output","id":"c1","name":"a.wav".*"bytes":10'
}

# Its shell dies of the signal that one of its children answers: that child has the same time for it.
test_child_answers_a_halt() {
	tell '{"op":"start","workers":1,"command":true,"outputs":["*.wav"]}'
	tell '{"op":"batch","id":"b1","segments":[{"id":"c1","run":"sh -c \"trap \\\"sleep 0.5; echo rest >t; mv t a.wav; exit 0\\\" TERM; echo ready; while :; do sleep 0.02; done\"; echo later"}]}'
	expect '"line":"ready"'
	tell '{"op":"halt"}'
	expect '"ev":"revoked","ids":\["b1"\]'
	expect '"ev":"output","id":"c1","name":"a.wav".*"bytes":5'
}

# One that has left its group lives on when the rest of it is killed, and writes on.
test_command_leaves_a_writer() {
	tell '{"op":"start","workers":1,"command":true,"outputs":["*.wav"]}'
	tell '{"op":"batch","id":"b1","segments":[{"id":"c1","run":"echo a >a.wav; setsid sh -c \"exec 7>b.wav; echo half >&7; exec sleep 4326 >/dev/null 2>&1\" & until [ -s b.wav ]; do sleep 0.02; done; exit 3"}]}'
	expect '"ev":"segment","id":"c1".*"code":3,.*"outputs":1,'
	equal outputs "$(finished_outputs)" 'a.wav '
	expect '"line":"output b.wav: was still being written when the command ended, and is not kept"'
	tell '{"op":"end"}'
	wait_for_end
}

test_command_is_killed() {
	ends_early 'kill -9 $$'
	: >"$BURST_HOME/work/segment.c1/go"
	expect '"ev":"segment","id":"c1".*"ok":false,"code":137,.*"outputs":4,'
	equal outputs "$(finished_outputs)" 'out/closed.wav out/linked.wav out/moved.wav out/new/e.wav '
}

test_command_fails() {
	ends_early 'echo last >out/last.wav; exit 3'
	: >"$BURST_HOME/work/segment.c1/go"
	expect '"ev":"segment","id":"c1".*"ok":false,"code":3,.*"outputs":5,.*"error":"exit status 3'
	equal outputs "$(finished_outputs)" 'out/closed.wav out/last.wav out/linked.wav out/moved.wav out/new/e.wav '
}

# A file that nobody finished is not done, whatever the exit status.
test_command_ends_before_its_writer() {
	ends_early 'exit 0'
	: >"$BURST_HOME/work/segment.c1/go"
	expect '"ev":"segment","id":"c1".*"ok":false,"code":0,.*"outputs":4,.*"reason":"missing","error":"output out/open.wav was still being written when the command ended"'
}

test_command_hangs() {
	tell '{"op":"start","workers":1,"command":true,"hang_s":2,"outputs":["*.wav"]}'
	tell '{"op":"batch","id":"b1","segments":[{"id":"c1","run":"echo a >a.wav; exec 7>b.wav; echo half >&7; echo ready; exec sleep 4325"}]}'
	expect '"id":"c1".*"code":137,.*"outputs":1,.*"error":"it was silent for too long'
	equal outputs "$(finished_outputs)" 'a.wav '
}

# The container is about to end, or nobody renews the lease: what is finished reaches the volume.
test_pod_is_taken_back() {
	ends_early 'exit 0'
	: >"$BURST_HOME/leaving"
	expect '"ev":"revoked","ids":\["b1"\]'
	equal outputs "$(finished_outputs)" 'out/closed.wav out/linked.wav out/moved.wav out/new/e.wav '
	expect '"ev":"synced"'
	equal 'on the volume' "$(cat "$P/out/c1/out/closed.wav")" b
}

test_lease_is_over_soon() {
	ends_early 'exit 0'
	tell '{"op":"renew","lease_s":4}'
	expect '"ev":"revoked","ids":\["b1"\]'
	equal outputs "$(finished_outputs)" 'out/closed.wav out/linked.wav out/moved.wav out/new/e.wav '
}

# Links and the like are named, once; a bad name costs that file alone.
test_outputs_that_are_none() {
	tell '{"op":"start","workers":1,"command":true,"outputs":["**.wav"]}'
	tell '{"op":"batch","id":"b1","segments":[{"id":"c1","run":"echo a >a.wav; ln -s a.wav b.wav; mkfifo c.wav; for n in 1 2; do echo x >\"$(printf \"bad\\\\n$n.wav\")\"; done"}]}'
	expect '"ev":"segment","id":"c1".*"ok":true,.*"outputs":1,'
	expect '"line":"output [bc].wav: is no plain file, and is not fetched"' 1
	equal 'bad names' "$(count '"ev":"output".*"error":"name"')" 2
}

# One descriptor, however deep: a command can make more levels than a process has descriptors.
test_outputs_lie_deep() {
	detach
	for pid in $(serve_pid); do kill "$pid"; done
	pod
	# shellcheck disable=SC3045
	limit_was=$(ulimit -n)
	# shellcheck disable=SC3045
	ulimit -S -n 64
	attach 0
	# shellcheck disable=SC3045
	ulimit -S -n "$limit_was"
	tell '{"op":"start","workers":1,"command":true,"outputs":["**.wav"]}'
	tell '{"op":"batch","id":"b1","segments":[{"id":"c1","run":"for i in $(seq 300); do mkdir d; cd d; done; echo a >a.wav"}]}'
	expect '"ev":"segment","id":"c1".*"ok":true,.*"outputs":1,'
}

# Another agent, which this program starts.
by() {
	detach
	for pid in $(serve_pid); do kill "$pid"; done
	pod
	agent_was=$AGENT AGENT=$1
	attach 0
	AGENT=$agent_was
}

# The kernel kills a child for want of memory; its shell goes on, and ends well.
child_dies() { # HOW
	tell '{"op":"start","workers":1,"command":true,"outputs":["*.wav"]}'
	tell "{\"op\":\"batch\",\"id\":\"b1\",\"segments\":[{\"id\":\"c1\",\"run\":\"echo a >early.wav; echo ready; until [ -e go ]; do sleep 0.05; done; sh -c 'exec 7>torn.wav; echo half >&7; $1'; echo b >t; mv t late.wav\"}]}"
	expect '"line":"ready"'
}
its_file_is_torn() {
	: >"$BURST_HOME/work/segment.c1/go"
	expect '"ev":"segment","id":"c1".*"ok":false,"code":0,.*"outputs":2,.*"error":"output torn.wav may not be finished: the kernel killed a process for want of memory"'
	equal outputs "$(finished_outputs)" 'early.wav late.wav '
}

# A folder of ours stands for its control group.
test_memory_is_used_up_as_told() {
	mkdir "$top/group"
	printf 'oom 9\noom_kill 4\noom_group_kill 0\n' >"$top/group/memory.events"
	unshare -m mount --bind "$top/group" /sys/fs/cgroup 2>/dev/null || return 0
	printf '#!/bin/sh\nexec unshare -m sh -c '\''mount --bind %s /sys/fs/cgroup && exec "$@"'\'' - %s "$@"\n' "$top/group" "$AGENT" >"$top/grouped"
	chmod 755 "$top/grouped"
	by "$top/grouped"
	child_dies 'kill -9 $$'
	printf 'oom 9\noom_kill 5\noom_group_kill 0\n' >"$top/group/memory.events"
	its_file_is_torn
}

# A control group of its own with little memory, if this machine lets one be made: a plain folder at its place limits nothing.
test_memory_is_used_up() {
	group=/sys/fs/cgroup/memory$(sed -n 's/.*:memory://p' /proc/self/cgroup) limit=memory.limit_in_bytes
	grep -q :memory: /proc/self/cgroup || group=/sys/fs/cgroup$(sed -n 's/^0:://p' /proc/self/cgroup) limit=memory.max
	group=$group/burst-$$
	mkdir "$group" 2>/dev/null && [ -e "$group/cgroup.procs" ] && echo 64M 2>/dev/null >"$group/$limit" || {
		rmdir "$group" 2>/dev/null
		return 0
	}
	printf '#!/bin/sh\necho $$ >%s/cgroup.procs && exec %s "$@"\n' "$group" "$AGENT" >"$top/small"
	chmod 755 "$top/small"
	by "$top/small"
	child_dies 'exec tail /dev/zero'
	its_file_is_torn
	leave
	for _ in $(seq 200); do
		rmdir "$group" 2>/dev/null && break
		sleep 0.05
	done
	attach 0
}

run_tests
