#!/bin/bash
# core.sh - a client that dies, or is looked into, tells no keys: no core dump, no look by other processes of its user. The
# programs that it starts dump core as the user has it. The program without sanitizers, which take signals themselves.
. "$(dirname "$0")/../e2e/lib.sh"
BURST=$ROOT/build/burst
ulimit -c unlimited 2>/dev/null

cores() { find "$T" "$1" -maxdepth 2 \( -name 'core' -o -name 'core.*' -o -name '*.core' \) -type f 2>/dev/null; }
can_dump() { # this machine leaves a core in the folder of who dies, and we may have one
	case $(cat /proc/sys/kernel/core_pattern) in core*) ;; *) return 1 ;; esac
	(cd "$T" && mkdir -p dumps && cd dumps && { sh -c 'kill -SEGV $$'; } 2>/dev/null)
	[ -n "$(cores "$T/dumps")" ] && rm -rf "$T/dumps"
}
at_work() { # a client with a key and a pod, in $PID
	script_lines 30
	slow_worker SLOW=1
	config 'code = { path = "code"; }; lease = "10s";'
	burst_bg run
	wait_for 40 "files" file_count out 1
}
t_a_client_that_dies_leaves_no_core() {
	local sig dumps=
	[ "$(ulimit -Hc)" = unlimited ] || { skip "no core files here by the user's own limit"; return; }
	can_dump && dumps=1
	for sig in SEGV ABRT; do
		at_work
		is "$(awk '/Max core file size/ {print $5}' "/proc/$PID/limits")" 0 "its limit"
		kill -$sig "$PID"
		burst_wait
		[ "$STATUS" -gt 128 ] || complain "$sig: it did not die: $STATUS"
		is "$(cores "$T")" "" "$sig: core files"
		timeout 60 "$BURST" reap >reap.txt 2>&1 || complain "reap: $(tail -n 1 reap.txt)"
		rm -rf out
	done
	[ -n "$dumps" ] || echo "     (no program leaves a core file here: only the limit was looked at)" >&2
}
# somebody who can log in, whom this machine knows in our own mount namespace only
SOMEBODY=54321
as_somebody() {
	{ cat /etc/passwd; echo "somebody:x:$SOMEBODY:$SOMEBODY::$T/theirs:/bin/sh"; } >"$T/passwd"
	{ cat /etc/shadow; echo "somebody:*:1:0:99999:7:::"; } >"$T/shadow"
	unshare -m sh -c 'mount --bind "$0/passwd" /etc/passwd && mount --bind "$0/shadow" /etc/shadow && exec "$@"' "$T" \
		setpriv --reuid=$SOMEBODY --regid=$SOMEBODY --clear-groups env HOME="$T/theirs" XDG_CONFIG_HOME="$T/theirs/.config" \
		BURST_STATE_DIR="$T/theirs/state" "$@"
}
t_nobody_looks_into_a_client() { # of an ordinary user, and a whole render is done all the same
	[ "$(id -u)" = 0 ] || { skip "root starts it as an ordinary user"; return; }
	unshare -m true 2>/dev/null || { skip "no mount namespaces"; return; }
	chmod 755 "$WORK" "$T"
	install -d -o $SOMEBODY -g $SOMEBODY theirs theirs/job
	cd theirs/job || return
	script_lines 8
	slow_worker SLOW=0.5
	config 'code = { path = "code"; };'
	chmod -R a+rX .
	install -m 755 "$BURST" "$T/burst" # the tree it was built in may be nobody's to enter
	as_somebody timeout 90 "$T/burst" run >out.txt 2>err.txt </dev/null &
	local run=$! client
	wait_for 40 "files" file_count out 1
	client=$(pgrep -u $SOMEBODY -f "^$T/burst run" | head -n 1)
	[ -n "$client" ] || complain "no client"
	is "$(stat -c %u "/proc/$client/environ" "/proc/$client/mem" 2>/dev/null | sort -u)" 0 "who owns its memory and environment in /proc"
	! as_somebody cat "/proc/$client/environ" >/dev/null 2>&1 || complain "its user's other programs read its environment"
	wait $run
	is $? 0 "exit status ($(tail -n 2 err.txt))"
	is "$(wavs)" 8 files
	cd "$T" || return
	cp theirs/job/err.txt .
	export BURST_STATE_DIR=$T/theirs/state
}
t_children_dump_as_the_user_has_it() {
	cat >burst.cfg <<-'E2'
		provider = "local";
		job = { name = "cmd"; type = "command"; run = "awk '/Max core/ {print $5}' /proc/self/limits >limit.txt"; outputs = ["limit.txt"]; output = "out"; };
	E2
	(
		ulimit -Sc 4096
		burst run
		is "$STATUS" 0 "exit status ($(tail -n 2 err.txt))"
		is "$(cat out/limit.txt)" 4194304 "the limit of a command on a pod of this machine"
		[ -z "$WHY" ] || echo "$WHY" >why
	)
	[ ! -e why ] || complain "$(cat why)"
}

run_tests "$@"
