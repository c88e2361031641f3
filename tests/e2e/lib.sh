# lib.sh - what every end-to-end script begins with: `. "$(dirname "$0")/lib.sh"`.
#
# A script holds functions named t_SOMETHING, each one test; `run_tests "$@"` at the end runs all, or those that are named. A test
# that is only a group of cases (`cases c_ONE c_TWO`) can also be run case by case. LIST=1 prints the names of all tests, with
# the cases of a group instead of the group.
# Every test gets an empty folder of its own ($T, also the current folder), a state folder of its own, a small job, and must
# leave no pod, process or mount behind. Lines "ok NAME", "FAILED NAME: why", "skip NAME: why" go to stdout; tests/check.py
# counts them. BURST names the program (default: build/burst).
# shellcheck shell=bash
set -u
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
BURST=${BURST:-$ROOT/build/burst}
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=1:abort_on_error=0:exitcode=99}
export BURST_CACHE_DIR= # no render cache: what a test removes is rendered again (tests/e2e/renders.sh has one)
SCRIPT=$(basename "$0" .sh)
case $SCRIPT in # vendor_X.sh is X for each vendor that VENDOR names
vendor_*) SCRIPT=${VENDOR:?"$SCRIPT wants VENDOR=modal, runpod or vast"}_${SCRIPT#vendor_} ;;
esac
WORK=
FAILED_TESTS=0

cleanup_all() {
	[ -n "${KEEP:-}" ] || rm -rf "$WORK"
}
if [ -z "${LIST:-}" ]; then
	WORK=$(mktemp -d "${TMPDIR:-/tmp}/burst-e2e-XXXXXX")
	trap cleanup_all EXIT
fi

# where this machine has no namespaces the tests go on without, which nothing does by itself
[ -n "${LIST:-}" ] || "$BURST" local-cloud check "$WORK" <<<'{}' 2>/dev/null | grep -q 'ok: pods are namespaces' ||
	export LOCAL_ISOLATION=${LOCAL_ISOLATION:-auto}

# ---- saying what is wrong: the first complaint of a test counts ----
complain() {
	[ -n "$WHY" ] || WHY=$*
}
is() { # is GOT WANT WHAT
	[ "$1" = "$2" ] || complain "$3: got \"$1\", want \"$2\""
}
has() { # has FILE TEXT: the file holds this text
	grep -qF -- "$2" "$1" || complain "$1 does not say \"$2\": $(tail -n 5 "$1" | tr '\n' '|')"
}
hasnt() {
	! grep -qF -- "$2" "$1" || complain "$1 says \"$2\""
}
skip() {
	SKIP=$*
}

# ---- waiting: by a condition and a deadline, never for a fixed time ----
wait_for() { # wait_for SECONDS WHAT COMMAND...: until the command succeeds
	local until=$((SECONDS + $1)) what=$2
	shift 2
	until "$@" >/dev/null 2>&1; do
		if [ $SECONDS -ge $until ]; then
			complain "waited in vain for $what ($(tail -qn 1 out.txt err.txt 2>/dev/null | tr '\n' '|'))"
			return 1
		fi
		read -rt 0.05 <> <(:) || :
	done
}
file_count() { # finished wav files in a folder, at least N
	[ "$(find "$1" -name '*.wav' -not -name joined.wav 2>/dev/null | wc -l)" -ge "$2" ]
}
running_as() { # the process lives and is no zombie
	case $(sed 's/.*) //' "/proc/$1/stat" 2>/dev/null) in '' | Z*) return 1 ;; esac
}

# ---- a small job ----
script_lines() { # script_lines N: N segments of different lengths
	local i words="one two three four five six seven eight nine ten eleven twelve"
	for i in $(seq "$1"); do
		printf '{"id":"s%03d","text":"This is line number %d of the test script, and it says %s."}\n' "$i" "$i" \
			"$(echo "$words" | cut -d' ' -f1-$((i % 12 + 1)))"
	done >script.jsonl
}
# config [KEY=VALUE;]... : burst.cfg for the local provider. Lines are libconfig; LOCAL="...", JOB="..." and
# POD="..." add to the groups; INPUT="..." is the script. REHEARSE="..." are keys of tests/rehearsal, which then is the provider.
# QUEUE="5s": its pods wait that long in a queue that costs nothing. CARRIED=1: pods are reached through a child process.
rehearse() {
	[ -n "${CHECKING:-}" ] || make -s -C "$ROOT" rehearsal || complain "the rehearsal cannot be built"
	export BURST_PROVIDER_PATH=$ROOT/build/rehearsal/rehearsal.so:$ROOT/build/rehearsal/queue.so
	[ -z "${LOCAL_ISOLATION:-}" ] || export LOCAL_PLAY_ISOLATION=$LOCAL_ISOLATION QUEUE_PLAY_ISOLATION=$LOCAL_ISOLATION
}
config() {
	local provider=local pretences=${REHEARSE:-}
	[ -z "${CARRIED:-}" ] || pretences="carrier = [\"python3\", \"$ROOT/tests/e2e/carrier.py\"]; $pretences"
	[ -z "$pretences" ] || { provider=local_play; rehearse; }
	[ -z "${QUEUE:-}" ] || { provider=queue_play pretences="queue = \"$QUEUE\"; $pretences"; rehearse; }
	cat >burst.cfg <<-E
		provider = "$provider";
		volume = { name = "v"; size_gb = 1; create = true; };
		caps = { max_cost = 1.00; max_duration = "10m"; };
		job = { name = "e2e"; type = "tts"; engine = "${ENGINE:-espeak}"; input = "${INPUT:-script.jsonl}"; voice = "en"; output = "out"; ${JOB:-} };
		providers = { $provider = { price_per_hour = 0.69; ${LOCAL:-} $pretences }; };${POD:+ pod = { $POD \};}
		$*
	E
}
slow_worker() { # slow_worker [NAME=VALUE...]: the job's worker is tests/workers/worker.sh, so slow or with these faults
	mkdir -p code
	cp "$ROOT/tests/workers/worker.sh" code/
	ENGINE='test'
	JOB="worker = \"${*:+$* }sh \\\"\$BURST_CODE/worker.sh\\\"\"; check = { enabled = false; };"
}
slow_segments() { # slow_segments N [CONFIG...]: half a second each, on one pod
	script_lines "$1"
	shift
	slow_worker SLOW=0.5 MAX_BATCH=1
	config 'pods = 1; code = { path = "code"; };' "$@"
}
allow_volumes() { # allow_volumes NAME: as one's own file does, of a volume that the project's runs did not make
	mkdir -p "$XDG_CONFIG_HOME/burst"
	echo "volumes = [\"$1\"];" >>"$XDG_CONFIG_HOME/burst/burst.cfg"
}
burst() { # runs it with a bound; status in $STATUS, words in ./out.txt and ./err.txt
	STATUS=0
	timeout -k 5 "${LIMIT:-90}" "${CLIENT:-$BURST}" "$@" >out.txt 2>err.txt </dev/null || STATUS=$?
}
burst_bg() { # in the background; its pid in $PID
	timeout -k 5 "${LIMIT:-120}" "${CLIENT:-$BURST}" "$@" >out.txt 2>err.txt </dev/null &
	SHELL_PID=$!
	wait_for 10 "burst to start" has_begun "$SHELL_PID"
	PID=$(pgrep -P "$SHELL_PID" | head -n 1) # empty when it is over already
}
has_begun() { pgrep -P "$1" || ! running_as "$1"; }
burst_wait() { # waits for the one in the background; status in $STATUS
	STATUS=0
	wait "$SHELL_PID" || STATUS=$?
}
living_run() { # a run of 800 segments on two pods in the background; its id in $RUN
	script_lines 800
	config 'pods = 2;'
	burst_bg run
	wait_for 40 "some files" file_count out 2
	RUN=$("$BURST" ledger --json | jq -r '.[0].run')
}
others_enter() { # others_enter FOLDER: an ordinary user of this machine can, who needs a way there from / on
	setpriv --reuid=65534 --regid=65534 --clear-groups test -e "$1/." 2>/dev/null
}
false_clock() { # or the test is skipped
	command -v faketime >/dev/null || { skip "no faketime"; return 1; }
	case $BURST in */asan/*) skip "faketime and the sanitizers do not go together"; return 1 ;; esac
}
kill_it() { # without a word
	kill -9 "$PID"
	burst_wait
}

# ---- a bad line between the client and its pods ----
# through RULE... : from here on the client of this test reaches its pods through relay.c, whose rules these are; what happens
# to the connections is in relay.log. WIRES="api:PORT ...": names for ports that are no pods
through() {
	local tools=$ROOT/build/e2e port=
	[ -n "${CHECKING:-}" ] || make -s -C "$ROOT" e2e-tools || { complain "the relay cannot be built"; return; }
	relay_stop
	rm -f relay.says relay.sock relay.log
	mkfifo relay.says
	RELAY_NAMES=${WIRES:-} "$tools/relay" "$T/relay.sock" "$T/relay.log" "$@" >relay.says &
	RELAY_PID=$!
	read -rt 10 port <relay.says || { complain "the relay did not start"; return; }
	cat >client <<-E
		#!/bin/sh
		export LD_PRELOAD='$tools/detour.so' ASAN_OPTIONS='$ASAN_OPTIONS:verify_asan_link_order=0' DETOUR='$T/relay.sock $port'
		exec '$BURST' "\$@"
	E
	chmod 755 client
	CLIENT=$T/client
}
relay_stop() {
	[ -z "$RELAY_PID" ] || { kill "$RELAY_PID"; wait "$RELAY_PID"; } 2>/dev/null
	RELAY_PID=
}
relayed() { # relayed POD.CONN WORD: so many such lines in the relay's log
	grep -c "^$1 $2" relay.log
}

came_to() { # came_to WORD RULE: so many lines of the relay's log in which that happens by this very rule
	local word rest n=0
	while read -r _ word rest; do
		[ "$word" != "$1" ] || [[ " $rest" != *" $2" ]] || n=$((n + 1))
	done <relay.log
	echo $n
}

json() { # json EXPR: of the last line of out.txt
	tail -n 1 out.txt | jq -r "$1"
}
schema() { # schema NAME [FILE]: the file, or out.txt, is what tests/schema/NAME.json says
	python3 - "$ROOT/tests/schema/$1.json" "${2:-out.txt}" 2>schema.txt <<-'E' || complain "$1 --json: $(tail -n 1 schema.txt)"
		import json, sys
		import jsonschema
		schema = json.load(open(sys.argv[1]))
		jsonschema.Draft202012Validator(schema).validate(json.load(open(sys.argv[2])))
	E
}
# shellcheck disable=SC2120 # scripts give the folder
wavs() { # how many verified files: RIFF and not empty
	find "${1:-out}" -name '*.wav' -not -name joined.wav -size +1k 2>/dev/null | wc -l
}

# ---- the ledger ----
ledger() { # ledger SQL: nothing where there is none; burst may be writing
	sqlite3 -cmd '.timeout 10000' "file:$BURST_STATE_DIR/ledger.db?mode=rw" "$1"
}

row_says() { # row_says CONDITION: of a pod
	[ -n "$(ledger "select id from pod where $1" 2>/dev/null)" ]
}

# ---- what was safe stays as it was ----
safe_files() { # what the ledger calls safe
	ledger "select file from segment where state = 1 order by file" 2>/dev/null
}
stamp() { # name, inode, mtime of each file that the ledger calls safe
	local f
	for f in $(safe_files); do stat -c '%n %i %Y %y' "out/$f"; done
}
safe_is_whole() { # each of them lies there with the hash that the ledger has
	ledger "select sha256 || '  out/' || file from segment where state = 1" 2>/dev/null >safe.sums
	[ ! -s safe.sums ] || sha256sum -c --quiet safe.sums >safe.said 2>&1 || complain "the ledger calls it safe: $(head -n 1 safe.said)"
}
unchanged() { # unchanged FILE: all in this stamp is as it was
	local now
	now=$(cut -d' ' -f1 "$1" | xargs -r stat -c '%n %i %Y %y')
	is "$now" "$(cat "$1")" "what was safe before"
}
all_right() { # all_right N: N good files, each with the hash that the manifest says
	is "$(wavs)" "$1" files
	is "$(jq -r '[.id,.sha256] | @tsv' out/manifest.jsonl | sort -u | wc -l)" "$1" "lines of the manifest"
	jq -r '.sha256 + "  out/" + .file' out/manifest.jsonl | sort -u | sha256sum -c --quiet >/dev/null 2>&1 ||
		complain "a file differs from the manifest"
	[ -z "$(find out -name '*.part' -o -name '*.tmp')" ] || complain "half files: $(find out -name '*.part')"
}

# ---- nothing may be left ----
pods_left() {
	local dir
	for dir in "$BURST_STATE_DIR" "$BURST_STATE_DIR/queue_play"; do
		[ ! -d "$dir" ] || "$BURST" local-cloud list "$dir" <<<'{}' 2>/dev/null | jq -r '.pods[]? | select(.state != "gone") | .id'
	done
}
descendants() { # of these processes
	local p
	for p in "$@"; do
		echo "$p"
		# shellcheck disable=SC2046
		descendants $(pgrep -P "$p")
	done
}
pod_processes() { # pod_processes PATTERN: those in this test's pods whose command line matches (other tests run beside this one)
	local p
	# shellcheck disable=SC2046
	for p in $(descendants $(marked_processes) | sort -u); do
		{ tr '\0' ' ' <"/proc/$p/cmdline"; } 2>/dev/null | grep -qE "$1" && echo "$p"
	done
}
kill_in_pods() { # kill_in_pods SIGNAL PATTERN: fails when there was none
	local pids
	pids=$(pod_processes "$2")
	# shellcheck disable=SC2086
	[ -n "$pids" ] && kill "-$1" $pids 2>/dev/null
}
marked_processes() { # processes that were told of this test's state folder
	pgrep -f -- "$T/state"
}
nothing_left() {
	wait_for 20 "pods to be gone (left: $(pods_left | tr '\n' ' '))" no_pods
	wait_for 10 "processes to end" no_processes || complain "$(pgrep -af -- "$T/state" | head -n 3)"
	! grep -qF "$T/" /proc/mounts || complain "mounts are left: $(grep -F "$T/" /proc/mounts | head -n 2)"
}
no_pods() { [ -z "$(pods_left)" ]; }
no_processes() { [ -z "$(marked_processes)" ]; }

one_test() {
	local name=$1 began=$SECONDS
	unset XDG_STATE_HOME XDG_CACHE_HOME NO_COLOR BURST_CLIENT_FD BURST_PROVIDER_PATH
	WHY='' SKIP='' ENGINE='' JOB='' LOCAL='' QUEUE='' REHEARSE='' POD='' LIMIT=90 PID='' SHELL_PID='' RELAY_PID='' CLIENT=''
	case $name in
	c_*) cd "$WORK" && one_case "$name" ;; # of a stand-in cloud: see tests/cloud/common/client.sh
	*) one_test_alone "$name" ;;
	esac
	if [ -n "$WHY" ]; then
		echo "FAILED $SCRIPT/$name: $WHY"
		FAILED_TESTS=$((FAILED_TESTS + 1))
	elif [ -n "$SKIP" ]; then
		echo "skip $SCRIPT/$name: $SKIP"
	else
		echo "ok $SCRIPT/$name ($((SECONDS - began)) s)"
	fi
	cd "$WORK" || return
}
one_test_alone() {
	local name=$1
	T=$WORK/$name
	mkdir -p "$T"
	cd "$T" || return
	export HOME=$T/home XDG_CONFIG_HOME=$T/home/.config BURST_STATE_DIR=$T/state
	mkdir -p "$HOME"
	"$name"
	relay_stop
	[ -z "$SKIP" ] || return
	[ "${LEAVES_PODS:-}" = "$name" ] || nothing_left
	! grep -qs "Sanitizer\|runtime error" err.txt || complain "sanitizer: $(grep -m 1 "Sanitizer\|runtime error" err.txt)"
}
list_tests() { # the body of a group is one line, which calls cases
	local name group='^ *([A-Z_]+=[^ ]* )*(cases|its_clock_is_wrong|killed_while_a_create_is_under_way)( |;|$)'
	cases() { printf '%s\n' "$@"; }
	for name; do
		if [ "$(declare -f "$name" | wc -l)" = 4 ] && declare -f "$name" | sed -n 3p | grep -qE "$group"; then
			"$name"
		else
			echo "$name"
		fi
	done
}
hold_lock() { # hold_lock FILE NOTE: as burst does, for two minutes or until there is a file "free"; %d in the note is the process, which SIGTERM does not end
	exec python3 -c 'if True:
		import fcntl, os, signal, sys, time
		signal.signal(signal.SIGTERM, signal.SIG_IGN)
		lock = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT, 0o600)
		fcntl.lockf(lock, fcntl.LOCK_EX)
		os.ftruncate(lock, 0)
		os.write(lock, (sys.argv[2].replace("%d", str(os.getpid())) + "\n").encode())
		until = time.time() + 120
		while time.time() < until and not os.path.exists("free"): time.sleep(0.1)' "$@"
}
run_tests() {
	local names=$*
	[ -n "$names" ] || names=$(declare -F | sed -n 's/^declare -f \(t_.*\)/\1/p')
	if [ -n "${LIST:-}" ]; then
		# shellcheck disable=SC2086 # words
		list_tests $names
		return
	fi
	for name in $names; do
		declare -F "$name" >/dev/null || { echo "FAILED $SCRIPT/$name: there is no such test"; FAILED_TESTS=1; continue; }
		one_test "$name"
	done
	[ $FAILED_TESTS = 0 ]
}
