#!/bin/bash
# names.sh - ids on the command line: any part of a run's or a pod's id that is unique names it, in every command.
. "$(dirname "$0")/lib.sh"

t_a_part_of_an_id_is_enough() {
	local run pod
	slow_segments 60
	burst_bg run
	wait_for 60 "a file" file_count out 1
	run=$(ledger 'select id from run')
	pod=$(ledger 'select id from pod')
	is "${#run}" 6 "characters of a run's id"
	names() { # names WANT COMMAND...: it ends well, and speaks of this
		local want=$1
		shift
		burst "$@"
		is "$STATUS" 0 "exit status of $* ($(tail -n 1 err.txt))"
		grep -qF -- "$want" out.txt err.txt || complain "burst $*: it does not say \"$want\": $(head -n 2 out.txt err.txt | tr '\n' '|')"
	}
	names "$run" ledger "${run:1:4}"
	names "$run" ledger "$run"
	names "$run" ledger "${pod: -6}"
	names "code:" logs "${run:2}"
	names "code:" logs "${pod: -5}"
	names "hello" ssh "${pod: -7}" echo hello
	names "hello" ssh "$run" echo hello
	names "<html" report "${run:0:4}" -o -
	burst ssh zzz true
	is "$STATUS" 2 "exit status of ssh to no pod"
	has err.txt 'no pod "zzz" in this ledger'
	burst reap local
	is "$STATUS" 9 "reap of a pod whose client lives, by a part of its id"
	has err.txt "pod $pod was skipped"
	names "run $run" cancel "${pod: -4}"
	burst_wait
}

t_what_several_ids_have_is_told() {
	script_lines 1
	config
	burst run
	ledger "update run set id = 'k7x2fd'"
	mv "$BURST_STATE_DIR"/runs/* "$BURST_STATE_DIR/runs/k7x2fd"
	rm -r out
	burst run
	ledger "update run set id = 'k7zzzz' where id != 'k7x2fd'"
	burst logs k7
	is "$STATUS" 2 "exit status"
	has err.txt '"k7" may be run k7x2fd (e2e), run k7zzzz (e2e): give more of the id'
	burst logs 2f
	is "$STATUS" 0 "exit status of another part ($(tail -n 1 err.txt))"
}

run_tests "$@"
