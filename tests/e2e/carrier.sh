#!/bin/bash
# carrier.sh - pods that are reached through a child process (REACH_DIAL): carrier.py stands for `kubectl exec`, `srun` and
# `ssh -W`, and is as bad as its rules say.
. "$(dirname "$0")/lib.sh"

# dialled RULE...: REHEARSE for a run through carrier.py, which logs its starts to ./carriers
dialled() {
	local rule words=
	for rule; do words="$words, \"$rule\""; done
	REHEARSE="carrier = [\"python3\", \"$ROOT/tests/e2e/carrier.py\", \"log:$PWD/carriers\"$words];"
}
starts() { wc -l <carriers; }
no_carrier_lives() {
	local pid
	for pid in $(cat carriers); do ! running_as "$pid" || return 1; done
}
ended_well() { # SEGMENTS: the run ended well, and no carrier is left
	is $STATUS 0 "exit status: $(tail -n 5 err.txt)"
	file_count out "$1" || complain "files are missing: $(ls out)"
	wait_for 10 "the carriers to end" no_carrier_lives
}
t_a_run() {
	dialled
	script_lines 12
	config 'pods = 1;'
	burst run
	ended_well 12
	# one for all of it; a pod that ends before the answer to its release came is dialled once more
	[ "$(starts)" -le 2 ] || complain "connections: $(starts)"
}
t_noise_before_the_first_byte() {
	dialled "noise:Welcome to the cluster" "noise:$(printf '=%.0s' {1..120})" "words:it says so at its end"
	script_lines 3
	config
	burst run
	ended_well 3
}
t_bytes_one_by_one() {
	dialled split
	script_lines 6
	config
	burst run
	ended_well 6
}
t_bytes_in_lumps() {
	dialled merge
	script_lines 6
	config
	burst run
	ended_well 6
}
t_it_is_cut_and_dialled_again() { # with exit code 0 in the midst of the agent, and of a file: nothing is believed of it
	dialled times:1:cut:up:60000 times:2:cut:down:9000
	slow_segments 8
	burst run
	ended_well 8
	[ "$(starts)" -ge 3 ] || complain "connections: $(starts)"
}
t_it_is_killed() {
	dialled
	slow_segments 8
	burst_bg run
	wait_for 30 "a file" file_count out 1
	kill -KILL "$(tail -n 1 carriers)"
	burst_wait
	ended_well 8
	# one, one after its end, and one where the pod ends before the answer to its release came
	[ "$(starts)" = 2 ] || [ "$(starts)" = 3 ] || complain "connections: $(starts)"
}
t_it_does_not_end_by_itself() {
	dialled linger
	script_lines 3
	config
	burst run
	ended_well 3
}
fails_for() { # fails_for PATTERN: a run ends without a pod that answers, and says why
	script_lines 3
	config 'boot_limit = "20s"; wait = "1s";'
	burst run
	[ $STATUS != 0 ] || complain "it ended well"
	grep -q "$1" err.txt || complain "its last words are not told: $(cat err.txt)"
	no_pods || complain "pods are left: $(pods_left)"
}
t_it_never_connects() {
	dialled refuse "words:error: pods 'p' not found"
	fails_for 'through python3: error: pods .p. not found'
	wait_for 10 "the carriers to end" no_carrier_lives
}
t_a_client_dies_and_another_goes_on() { # the ledger knows how the pod is reached
	dialled
	slow_segments 8
	burst_bg run
	wait_for 30 "a file" file_count out 1
	kill -KILL "$PID"
	burst_wait
	wait_for 10 "its carrier to end" no_carrier_lives
	burst resume
	ended_well 8
	is "$(ledger 'select count(*) from pod')" 1 "pods"
}
t_shells_and_editors_reach_it() {
	local pod
	dialled
	mkdir -p "$XDG_CONFIG_HOME/burst"
	echo "providers = { local_play = { $REHEARSE }; };" >"$XDG_CONFIG_HOME/burst/burst.cfg"
	slow_segments 40
	burst_bg run
	wait_for 30 "a file" file_count out 1
	pod=$(ledger 'select id from pod')
	is "$("$BURST" ssh "$pod" 'echo "100% $((6 * 7))"' </dev/null 2>&1)" "100% 42" "what ssh sees"
	"$BURST" ssh "$pod" 'exit 5' </dev/null
	is $? 5 "its exit code"
	is "$(head -c 3000000 /dev/zero | "$BURST" ssh "$pod" 'wc -c')" 3000000 "bytes to it"
	"$BURST" ssh-config -y "$pod" >/dev/null 2>&1
	is "$(ssh -F "$HOME/.ssh/config" "burst-$pod" 'echo from an editor' </dev/null 2>&1)" "from an editor" "ssh-config"
	kill -INT "$PID"
	burst_wait
	wait_for 10 "the carriers to end" no_carrier_lives
}
t_there_is_no_such_program() {
	REHEARSE='carrier = ["burst-no-such-carrier"];'
	fails_for 'burst-no-such-carrier: no such program'
}

run_tests "$@"
