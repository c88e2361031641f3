#!/bin/bash
# slurm_killed.sh - the client of pods on a Slurm cluster dies, while they wait and while they work; others end or adopt them.
. "$(dirname "$0")/slurm_lib.sh"

# Takes all GPUs, so that pods wait.
occupy() { job=$(printf '#!/bin/sh\nsleep 300\n' | sbatch --parsable --gres=gpu:l40s:4 -o /dev/null); }
free_it() { scancel "$job"; }
killed_while_it_waits() {
	occupy
	slow_on_cluster 6 'wait = "5m";'
	burst_bg run
	wait_for 30 "the pod to wait" is_state PENDING 1
	wait_for 10 "the ledger to know" row_says "rented_ms > 0"
	kill_it
}
t_killed_while_it_waits_then_reaped() {
	local job
	has_cluster || return
	killed_while_it_waits
	burst reap -y
	is $STATUS 0 "reap: $(tail -n 3 err.txt)"
	[ -z "$(queue %i)" ] || complain "left: $(queue '%i %T')"
	free_it
	is "$(ledger 'select sum(billed_ms) from pod')" 0 "what it billed"
}
t_killed_while_it_waits_then_resumed() {
	local job
	has_cluster || return
	killed_while_it_waits
	free_it
	burst resume
	is $STATUS 0 "resume: $(tail -n 3 err.txt)"
	all_right 6
	is "$(ledger 'select count(*) from pod')" 1 pods
}
t_killed_while_it_works_then_resumed() {
	has_cluster || return
	slow_on_cluster 20
	burst_bg run
	wait_for 40 "a file" file_count out 2
	kill_it
	stamp >stamp.txt
	burst resume
	is $STATUS 0 "resume: $(tail -n 3 err.txt)"
	unchanged stamp.txt
	all_right 20
	is "$(ledger 'select count(*) from pod')" 1 pods
}
t_killed_while_it_works_then_reaped() {
	has_cluster || return
	slow_on_cluster 60
	burst_bg run
	wait_for 40 "a file" file_count out 1
	kill_it
	burst reap -y
	is $STATUS 0 "reap: $(tail -n 3 err.txt)"
	[ -z "$(queue %i)" ] || complain "left: $(queue '%i %T')"
}
t_killed_in_the_submit() { # the job exists, and no reply came: it is found by its name
	has_cluster || return
	slow_on_cluster 6
	# shellcheck disable=SC2016
	instead_of sbatch '[ ! -e submitted ] || exec "$real" "$@"
		: >submitted
		"$real" "$@"
		sleep 100'
	burst_bg run
	wait_for 30 "the submit" [ -e submitted ]
	wait_for 30 "the job" any_job
	kill_it
	pkill -f "$T/bin/sbatch"
	PATH=${PATH#"$T/bin:"}
	burst reap -y
	is $STATUS 0 "reap: $(tail -n 3 err.txt)"
	[ -z "$(queue %i)" ] || complain "left: $(queue '%i %T')"
}
any_job() { [ -n "$(queue %i)" ]; }
t_cancelled_while_it_waits() {
	local job
	has_cluster || return
	occupy
	slow_on_cluster 6 'wait = "5m";'
	burst_bg run
	wait_for 30 "the pod to wait" is_state PENDING 1
	"$BURST" cancel -y >cancel.txt 2>&1 || complain "cancel: $(tail -n 2 cancel.txt)"
	burst_wait
	is "$(ledger 'select sum(billed_ms) from pod')" 0 "what it billed"
	[ -z "$(queue %i)" ] || complain "left: $(queue '%i %T')"
	free_it
}

run_tests "$@"
