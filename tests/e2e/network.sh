#!/bin/bash
# network.sh - the connection to a pod breaks or freezes: the sessions of the pod's sshd are killed (the client sees the
# connection cut) or stopped (it sees silence); a relay in between cuts, resets, holds up and spoils connections to the byte,
# or leads them to somebody else. All outputs come home, nothing that is safe is rendered twice.
. "$(dirname "$0")/lib.sh"

sessions() { # processes of sshd that serve a connection to a pod of this test
	pod_processes '^sshd[^ ]*: .*@'
}
has_session() { [ -n "$(sessions)" ]; }
signal_sessions() { # shellcheck disable=SC2046
	kill "-$1" $(sessions) 2>/dev/null
}
stamp() {
	local f
	for f in $(ledger "select file from segment where state = 1"); do
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
	script_lines "${LINES_CUT:-300}"
	config 'pods = 1;'
	burst_bg run
	for n in "$@"; do
		wait_for 40 "$n files" file_count out "$n"
		wait_for 10 "a session to cut at $n files" has_session
		signal_sessions "$signal"
		stamp >stamp.txt
	done
	burst_wait
	unchanged
	all_home "${LINES_CUT:-300}"
}
t_cut_during_batches() { cuts KILL 3; }
t_cut_again_and_again() { LINES_CUT=1200 cuts KILL 2 60 200; }
t_frozen_connection() { cuts STOP 3; }
t_cut_during_sync() {
	local i
	mkdir code
	for i in $(seq 2000); do head -c 4096 /dev/urandom >"code/f$i"; done
	script_lines 6
	config 'code = { path = "code"; };'
	through '*.*=delay:150'
	burst_bg run
	wait_for 40 "a session" has_session
	signal_sessions KILL
	burst_wait
	all_home 6
}

t_cut_while_many_files_of_one_command_come() { # they are asked for again; the command is not run again
	cat >burst.cfg <<-'E'
		provider = "local"; pod = { worker_root = true; };
		volume = { name = "v"; size_gb = 1; create = true; };
		job = { name = "t"; type = "command"; outputs = ["*.bin"]; output = "out";
			run = "echo ran >>$BURST_VOLUME/ran; for i in $(seq 20); do head -c 4000000 /dev/urandom >$i.bin; done; sha256sum *.bin >$BURST_VOLUME/sums"; };
	E
	through '*.*=delay:150'
	burst_bg run
	local parts
	for parts in 2 6; do
		wait_for 60 "$parts files under way" eval '[ "$(find out -name "*.part" 2>/dev/null | wc -l)" -ge '$parts' ]'
		wait_for 10 "a session" has_session
		signal_sessions KILL
	done
	burst_wait
	is "$STATUS" 0 "exit status ($(tail -n 2 err.txt))"
	is "$(cat state/volumes/v/ran)" ran "how often it ran"
	is "$(cat state/volumes/v/runs/*/*/events.jsonl | grep -c '"ev":"segment"')" 1 "segments rendered"
	(cd out && sha256sum --quiet -c ../state/volumes/v/sums) || complain "files differ"
}

hash_code() { # hash_code MS: a command that hashes what it was sent; each way takes so long
	cat >burst.cfg <<-E
		provider = "local";
		volume = { name = "v"; size_gb = 1; create = true; };
		job = { name = "t"; type = "command"; run = "cat f* | sha256sum >sum"; outputs = ["sum"]; output = "out"; };
		code = { path = "code"; };
	E
	through "*.*=delay:$1"
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
lanes() { pod_processes 'burst-agent lane '; }
has_lane() { [ -n "$(lanes)" ]; }
t_big_code_over_a_long_line() { # several channels carry one stream
	big_code 200
	hash_code 30
	burst_bg run
	wait_for 40 "several channels" has_lane
	burst_wait
	code_arrived
}
t_code_that_shrinks_in_part() { # what is packed and what is not make one stream
	local i
	mkdir code
	for i in $(seq 6); do
		head -c 6000000 /dev/urandom >"code/f$i.random"
		seq "$i" 1200000 | head -c 6000000 >"code/f$i.text"
	done
	hash_code 10
	burst run
	code_arrived
	[ "$(awk '$2 == "over" { n += $3 } END { print n + 0 }' relay.log)" -lt 62000000 ] ||
		complain "of 72 MB too little shrank: $(grep -h ' over ' relay.log | tr '\n' ' ')"
}
kill_lane() { kill -KILL "$(lanes | tail -n 1)" 2>/dev/null; }
t_one_of_several_channels_ends() {
	big_code 240
	hash_code 30
	burst_bg run
	wait_for 40 "one of several channels to be killed" kill_lane
	burst_wait
	code_arrived
}

# ---- to the byte ----

# Of an untroubled run of this size: about 0.6 MB up (handshake 3 kB, agent 160 kB, worker files 25 kB, code 400 kB, control)
# and 2.7 MB down (12 files of 0.2 MB).
all_over() { [ "$(grep -c ' open ' relay.log)" = "$(grep -cE ' (over|void) ' relay.log)" ]; }
spoilt() { # spoilt RULE...: one run with this line, and each rule has spoilt it once
	local rule
	rm -rf out state code
	mkdir code
	head -c 400000 /dev/urandom >code/blob
	through "$@"
	burst run --json
	is "$STATUS" 0 "$*: exit status ($(tail -n 2 err.txt))"
	is "$(wavs)" 12 "$*: files"
	is "$(jq -r .id out/manifest.jsonl | sort | uniq -d)" "" "$*: twice in the manifest"
	jq -r '.sha256 + "  out/" + .file' out/manifest.jsonl | sha256sum -c --quiet >/dev/null 2>&1 ||
		complain "$*: a file differs from the manifest"
	[ -z "$(find out -name '*.part')" ] || complain "$*: half files are left"
	is "$(json '.pods | length')" 1 "$*: pods"
	is "$(cat state/volumes/v/runs/*/*/events.jsonl | grep -c '"ev":"segment"')" 12 "$*: segments rendered, none twice"
	for rule; do is "$(came_to fired "$rule")" 1 "$*: the line was spoilt by $rule"; done
	# what is under way when a connection breaks may come again (on a busy machine some files), what is home may not
	wait_for 10 "the relay to have seen the end" all_over
	[ "$(awk '$2 == "over" { n += $4 } END { print n + 0 }' relay.log)" -lt $((2750000 + $# * 800000)) ] ||
		complain "$*: what was home came again: $(grep over relay.log)"
	nothing_left
}
spoilt_each() { # spoilt_each ACTION N...: a run for each
	local action=$1 n
	shift
	script_lines 12
	config 'pods = 1; code = { path = "code"; };'
	for n in "$@"; do [ -n "$WHY" ] || spoilt "1.1=$action:$n"; done
}
t_cut_to_the_byte_going_up() { spoilt_each cut:up 1 700 2500 4000 90000 300000 590000; }
t_cut_to_the_byte_coming_down() { spoilt_each cut:down 30 900 1800 4000 60000 800000 2500000; }
t_reset_to_the_byte() {
	spoilt_each reset:up 3000 350000
	spoilt_each reset:down 2200 1500000
}
t_cut_one_connection_after_another() {
	spoilt_each cut:down 500
	spoilt 1.1=cut:up:100000 1.2=cut:up:250000 1.3=cut:down:1500 1.4=cut:down:200000 1.5=reset:down:900000 1.6=cut:down:700001
}
# a spoilt byte is never taken for data: the connection goes, and the next one goes on
without_libssh2s_leak() { # it forgets the host key of a handshake whose signature is wrong
	echo leak:libssh2_session_handshake >lsan.supp
	export LSAN_OPTIONS=suppressions=$T/lsan.supp:print_suppressions=0
	ASAN_OPTIONS+=:fast_unwind_on_malloc=0
	"$@"
	unset LSAN_OPTIONS
	ASAN_OPTIONS=${ASAN_OPTIONS%:fast_unwind_on_malloc=0}
}
t_a_byte_is_spoilt_going_up() { without_libssh2s_leak spoilt_each flip:up 5 600 2000 120000 400000; }
t_a_byte_is_spoilt_coming_down() { without_libssh2s_leak spoilt_each flip:down 5 700 2100 300000 1700001; }
t_a_silent_line_is_noticed_soon() { # within 15 s, through a child 60 s, and a little for what happens here
	local began most=$((${CARRIED:-0} ? 62 : 17))
	script_lines 12
	config 'pods = 1;'
	through '1.1=stall:down:1200000'
	burst_bg run --json -v
	wait_for 60 "the line to fall silent" eval '[ "$(relayed 1.1 fired)" = 1 ]'
	began=$SECONDS
	wait_for 80 "it to be noticed" grep -q "connection lost" err.txt
	[ $((SECONDS - began)) -le $most ] || complain "it was noticed after $((SECONDS - began)) s"
	burst_wait
	is "$STATUS" 0 "exit status ($(tail -n 2 err.txt | tr '\n' '|'))"
	is "$(wavs)" 12 files
}
t_the_line_falls_silent() { spoilt_each stall:down 1200000; }

# ---- pods that are not what they should be ----
two_offers() { # a pod that is no good has a next one
	REHEARSE='spot_price_per_hour = 0.30;'
	script_lines 6
	config 'pods = 1; spot = true;' "$@"
}
given_up_for_the_next() { # given_up_for_the_next WORDS
	is "$STATUS" 0 "exit status ($(tail -n 2 err.txt))"
	is "$(wavs)" 6 files
	has err.txt "$1"
	has err.txt "pod $(json '.pods[0].id')"
	is "$(json '.pods | length')" 2 pods
	is "$(json '.pods[0].compute_seconds > 0')" false "work done by the bad one"
	is "$(json '[.pods[].released] | all')" true "all released"
}
t_sshd_never_speaks() {
	two_offers 'boot_limit = "5s";'
	through '1.*=silent'
	burst run --json
	given_up_for_the_next "it did not boot within"
}
t_nobody_listens() {
	two_offers 'boot_limit = "5s";'
	through '1.*=refuse'
	burst run --json
	given_up_for_the_next "it did not boot within"
}
t_no_sshd_speaks_anywhere() {
	two_offers 'boot_limit = "5s"; wait = "1s";'
	through '*.*=silent'
	burst run --json
	is "$STATUS" 6 "exit status"
	is "$(json .status)" failed status
	json .error.message >message.txt
	has message.txt "did not boot within"
	is "$(json '[.pods[].released] | all')" true "all released"
	is "$(wavs)" 0 files
}
# somebody else's sshd, which would let anybody in and writes down whatever it is sent
rogue_sshd() { # its port in $ROGUE
	mkdir -p rogue
	[ "$(id -u)" != 0 ] || mkdir -p /run/sshd
	ssh-keygen -q -t ed25519 -N '' -C rogue -f rogue/host
	cat >rogue/record <<-E
		#!/bin/sh
		exec cat >>"$T/rogue/heard"
	E
	chmod 755 rogue/record
	local try
	for try in 1 2 3 4 5; do
		ROGUE=$((20000 + (RANDOM + try) % 20000))
		/usr/sbin/sshd -D -e -f /dev/null -o Port=$ROGUE -o ListenAddress=127.0.0.1 -o HostKey="$T/rogue/host" \
			-o PidFile=none -o UsePAM=no -o StrictModes=no -o LogLevel=DEBUG1 -o AuthorizedKeysFile=none \
			-o ForceCommand="$T/rogue/record" >rogue/log 2>&1 &
		ROGUE_PID=$!
		wait_for 5 "the other sshd" grep -q "Server listening\|Cannot bind" rogue/log
		! grep -q "Cannot bind" rogue/log || continue
		return
	done
	complain "no port for the other sshd"
}
t_another_host_key() {
	two_offers 'boot_limit = "20s";'
	rogue_sshd
	through "1.*=to:$ROGUE"
	burst run --json
	kill "$ROGUE_PID"
	wait "$ROGUE_PID" 2>/dev/null
	given_up_for_the_next "host key"
	is "$(relayed 1.2 open)" 0 "asked again who has shown a wrong key"
	[ ! -e rogue/heard ] || complain "it was sent something"
	! grep -qi "userauth-request\|publickey" rogue/log || complain "we gave it a name or a key: $(grep -m1 -i "userauth-request\|publickey" rogue/log)"
}
t_another_host_key_everywhere() {
	two_offers 'wait = "1s";'
	rogue_sshd
	through "*.*=to:$ROGUE"
	burst run --json
	kill "$ROGUE_PID"
	wait "$ROGUE_PID" 2>/dev/null
	is "$STATUS" 6 "exit status"
	json .error.message >message.txt
	has message.txt "host key"
	is "$(json '[.pods[].released] | all')" true "all released"
	is "$(wavs)" 0 files
}

run_tests "$@"
