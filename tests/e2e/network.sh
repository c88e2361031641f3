#!/bin/bash
# network.sh - the connection to a pod breaks or freezes: the sessions of the pod's sshd are killed (the client sees the
# connection cut) or stopped (it sees silence). All outputs come home, nothing that is safe is rendered twice.
. "$(dirname "$0")/lib.sh"

descendants() { # of these processes
	local p
	for p in "$@"; do
		echo "$p"
		# shellcheck disable=SC2046
		descendants $(pgrep -P "$p")
	done
}
sessions() { # processes of sshd that serve a connection to a pod of this test
	local p
	# shellcheck disable=SC2046
	for p in $(descendants $(marked_processes) | sort -u); do
		{ tr '\0' ' ' <"/proc/$p/cmdline"; } 2>/dev/null | grep -q '^sshd[^ ]*: .*@' && echo "$p"
	done
}
has_session() { [ -n "$(sessions)" ]; }
signal_sessions() { # shellcheck disable=SC2046
	kill "-$1" $(sessions) 2>/dev/null
}
stamp() {
	local f
	for f in $(sqlite3 -readonly "$BURST_STATE_DIR/ledger.db" "select file from segment where state = 1"); do
		stat -c '%n %i %y' "out/$f"
	done
}
unchanged() {
	is "$(cut -d' ' -f1 stamp.txt | xargs -r stat -c '%n %i %y')" "$(cat stamp.txt)" "what was safe before"
}
all_home() { # all_home N
	is "$STATUS" 0 "exit status ($(tail -n 2 err.txt))"
	is "$(wavs)" "$1" files
	is "$(wc -l <out/manifest.jsonl)" "$1" "lines of the manifest: nothing twice"
}
cuts() { # cuts SIGNAL FILES...: when so many files are home
	local signal=$1 n
	shift
	script_lines 120
	config 'pods = 1;'
	burst_bg run
	for n in "$@"; do
		wait_for 40 "$n files" file_count out "$n"
		has_session || complain "there was no session to cut at $n files"
		signal_sessions "$signal"
		stamp >stamp.txt
	done
	burst_wait
	unchanged
	all_home 120
}
t_cut_during_batches() { cuts KILL 3; }
t_cut_again_and_again() { cuts KILL 2 20 40; }
t_frozen_connection() { cuts STOP 3; }
t_cut_during_sync() {
	local i
	mkdir code
	for i in $(seq 2000); do head -c 4096 /dev/urandom >"code/f$i"; done
	script_lines 6
	config 'code = { path = "code"; };'
	burst_bg run
	wait_for 40 "a session" has_session
	signal_sessions KILL
	burst_wait
	all_home 6
}

hash_code() { # a command that hashes what it was sent, over a line of that length
	cat >burst.cfg <<-E
		provider = "local";
		volume = { name = "v"; size_gb = 1; create = true; };
		job = { name = "t"; type = "command"; run = "cat f* | sha256sum >sum"; outputs = ["sum"]; output = "out"; };
		code = { path = "code"; };
		providers = { local = { round_trip = "$1"; }; };
	E
}
code_arrived() {
	is "$STATUS" 0 "exit status ($(tail -n 2 err.txt))"
	is "$(cat out/sum)" "$(cat code/f* | sha256sum)" "what the pod had"
}
big_code() { # big_code FILES: of half a megabyte each
	local i
	mkdir code
	for i in $(seq "$1"); do head -c 500000 /dev/urandom >"code/f$i"; done
}
t_big_code_over_a_long_line() { # several sessions carry one stream
	big_code 40
	hash_code 20ms
	burst run
	code_arrived
}
several_sessions() { [ "$(sessions | wc -l)" -gt 6 ]; }
t_one_of_several_sessions_is_cut() {
	big_code 120
	hash_code 60ms
	burst_bg run
	wait_for 40 "several sessions" several_sessions
	kill -KILL "$(sessions | tail -n 1)"
	burst_wait
	code_arrived
}

run_tests "$@"
