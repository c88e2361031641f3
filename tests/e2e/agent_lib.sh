# agent_lib.sh - what the tests of the agent share: `burst-agent attach` driven through pipes, without sshd, in a folder of its own.
# AGENT=path (default: the one under build/kit). SEPARATE=no: workers cannot be another user. ONLY=name: one test. Each test prints one
# line; the first failure shows what the agent had said.
# shellcheck shell=sh
# shellcheck disable=SC2016,SC2009,SC2013,SC2015,SC2034,SC2086 # pod-side $ stays; paths of our own making have no blanks

here=$(cd "$(dirname "$0")/../.." && pwd)
AGENT=${AGENT:-$here/build/kit/burst-agent}
top=$(mktemp -d "${TMPDIR:-/tmp}/burst-agent-test.XXXXXX")
# A copy, because workers run as another user, who may not reach the tree: a clone in root's home is closed to others.
WORKERS=$top/workers
WORKER=$WORKERS/worker.sh
mkdir "$WORKERS" && cp "$here/tests/workers/"*.sh "$here/tests/workers/"*.py "$WORKERS" || exit 1
fails=0 n=0
export BURST_RUN=r1 BURST_ATTEMPT=aaaabbbbccccdddd

cleanup() {
	for pid in $(cat "$top"/*/pids 2>/dev/null); do
		kill -9 "$pid" 2>/dev/null
	done
	umount -l "$top"/*/full 2>/dev/null
	rm -rf "$top"
}
trap cleanup EXIT
trap 'exit 130' INT TERM
trap 'exit 141' PIPE

# A fresh pod: its own home and volume.
pod() {
	n=$((n + 1))
	dir=$top/$n
	mkdir -p "$dir/home" "$dir/volume"
	[ "$SEPARATE" = no ] || chmod 755 "$top" "$dir" "$dir/home" "$dir/volume"
	export BURST_HOME=$dir/home BURST_VOLUME=$dir/volume
	P=$dir/volume/runs/r1/$BURST_ATTEMPT
	printf "BURST_RUN='r1'\nBURST_ATTEMPT='%s'\nBURST_VOLUME='%s'\nBURST_HARD_END='%s'\nBURST_FIRST_LEASE_END='%s'\nPATH='%s'\nQUOTED='it'\\\\''s'\nRUNPOD_API_KEY='secret-key'\nBURST_HIDE='RUNPOD_API_KEY'\n" \
		$BURST_ATTEMPT "$BURST_VOLUME" $(($(date +%s) + 3600)) $(($(date +%s) + 600)) "$PATH" >"$BURST_HOME/env"
	chmod 600 "$BURST_HOME/env"
}

# attach FROM: what it says goes to $said; fd 3 is where we speak.
attach() {
	said=$dir/said
	mkfifo "$dir/ask"
	"$AGENT" attach <"$dir/ask" >"$said" 2>"$dir/stderr" &
	client=$!
	echo $client >>"$dir/pids"
	exec 3>"$dir/ask"
	rm "$dir/ask"
	tell "{\"op\":\"attach\",\"from\":$1}"
	expect '"ev":"hello"'
}

# The id of a folder as a tree (orchestrator/sync/tree.c).
tree_id() { # FOLDER
	(cd "$1" && {
		echo 'burst-tree 1'
		find . -mindepth 1 -printf '%P\n' | LC_ALL=C sort | while IFS= read -r path; do
			if [ -L "$path" ]; then
				printf 'l %s\t%s\n' "$path" "$(readlink "$path")"
			elif [ -d "$path" ]; then
				echo "d $path"
			elif [ -x "$path" ]; then
				echo "x $(sha256sum <"$path" | cut -c1-64) $path"
			else
				echo "f $(sha256sum <"$path" | cut -c1-64) $path"
			fi
		done
	} | sha256sum | cut -c1-64)
}

# Puts a folder onto the volume, below code/ or kit/; its id in $tree.
put_tree() { # code|kit FOLDER
	tree=$(tree_id "$2")
	tar -C "$2" -cf - . | "$AGENT" tree --dir "$1" --id "$tree" >"$dir/tree.said" 2>&1 || fail "tree: $(cat "$dir/tree.said")"
}

tell() {
	printf '%s\n' "$1" >&3
}

detach() {
	exec 3>&-
	wait $client 2>/dev/null
}

serve_pid() {
	for p in /proc/[0-9]*; do
		[ "$(readlink "$p/cwd" 2>/dev/null)" = "$BURST_HOME" ] &&
			tr '\0' ' ' <"$p/cmdline" 2>/dev/null | grep -q '^burst-agent serve' && echo "${p#/proc/}"
	done
}

wait_for_end() {
	for _ in $(seq 100); do
		[ -e "$BURST_HOME/end" ] && break
		sleep 0.05
	done
}

# ends_agent [SIGNAL]: waits until it is gone.
ends_agent() {
	for pid in $(serve_pid); do kill "$@" "$pid"; done
	for _ in $(seq 200); do
		[ -z "$(serve_pid)" ] && break
		sleep 0.05
	done
}

another_agent() { # after the first one was killed
	detach
	ends_agent -9
	attach 0
}

leave() {
	tell '{"op":"end","reason":"test"}'
	wait_for_end
	detach
	ends_agent # what it has open is in use until then
}

fail() {
	fails=$((fails + 1))
	echo "not ok: $name: $1"
	echo "---- said:"
	tail -n 40 "$said"
	cat "$dir/stderr" "$BURST_HOME/agent.log" 2>/dev/null | tail -n 20
	return 1
}

# expect REGEX [TIMES]: waits (bounded) until the agent has said it so often.
expect() {
	for _ in $(seq 400); do
		[ "$(grep -cE -- "$1" "$said" 2>/dev/null)" -ge "${2:-1}" ] && return 0
		sleep 0.05
	done
	fail "never said: $1"
}

refuse() { # never said so far
	grep -qE -- "$1" "$said" && fail "said: $1"
}

equal() { # WHAT GOT WANT
	[ "$2" = "$3" ] || fail "$1: got '$2', want '$3'"
}

count() {
	grep -cE -- "$1" "$said"
}

segments() { # ID...
	list=
	for id; do
		list="$list,{\"id\":\"$id\",\"file\":\"$id.wav\",\"text\":\"say $id\"}"
	done
	echo "${list#,}"
}

batch() { # ID SEGMENT...
	b=$1
	shift
	tell "{\"op\":\"batch\",\"id\":\"$b\",\"estimate_s\":0.1,\"segments\":[$(segments "$@")]}"
}

start() { # WORKERS ENV HANG
	tell "{\"op\":\"start\",\"workers\":$1,\"worker\":\"exec $WORKER\",\"env\":{$2},\"hang_s\":${3:-60}}"
}

# WORKERS: each is followed by a tracer, which never looks at what becomes of it. Killed, it stays, as one that a driver holds.
# Fails where nothing may trace here.
start_undead() {
	echo "BURST_KILL_WAIT_S='1'" >>"$BURST_HOME/env"
	detach
	ends_agent
	attach 0
	cat >"$dir/worker.py" <<-'E'
		import ctypes, os, sys, time
		libc = ctypes.CDLL(None, use_errno=True)
		def undead():
		    ready, told = os.pipe()
		    me, child = os.getpid(), os.fork()
		    if child == 0:
		        os.setpgid(0, 0)
		        os.read(ready, 1)
		        traces = libc.ptrace(0x4206, me, None, None) == 0
		        print('undead' if traces else 'nothing may trace here', file=sys.stderr, flush=True)
		        time.sleep(1000)
		    libc.prctl(0x59616D61, child, 0, 0, 0)
		    os.write(told, b'x')
		    time.sleep(1000)
		if len(sys.argv) > 1:
		    undead()
		print('{"hello":1,"protocol":1,"engine":"t","version":"1","max_batch":8}', flush=True)
		input()
		undead()
	E
	tell "{\"op\":\"start\",\"workers\":$1,\"worker\":\"exec python3 $dir/worker.py\",\"hang_s\":1}"
}

run() {
	name=$1
	[ -n "$ONLY" ] && [ "$ONLY" != "$name" ] && return
	failed_before=$fails
	BURST_ATTEMPT=aaaabbbbccccdddd
	pod
	attach 0
	"test_$name"
	leave
	grep -hE 'Sanitizer|runtime error' "$BURST_HOME/agent.log" "$dir/stderr" 2>/dev/null && fail 'a sanitizer speaks'
	[ "$fails" = "$failed_before" ] && echo "ok: $name"
}

run_tests() { # those of the script
	for t in $(sed -n 's/^test_\([a-z_]*\)() {.*/\1/p' "$0"); do
		run "$t"
	done
	[ $fails = 0 ]
}
