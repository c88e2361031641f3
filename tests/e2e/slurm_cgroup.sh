#!/bin/bash
# slurm_cgroup.sh - a Slurm cluster that tracks the processes of jobs and steps by control groups: what a step starts dies with it.
export TRACKER=cgroup
. "$(dirname "$0")/slurm_lib.sh"

t_a_run_and_its_interrupted_connection() { # the agent is no child of the connection that brought it
	has_cluster || return
	slow_on_cluster 30
	burst_bg run
	wait_for 40 "a file" file_count out 1
	pkill -KILL -P "$PID" -f 'srun|sh -c PATH' || complain "no connection to cut"
	burst_wait
	is $STATUS 0 "exit status: $(tail -n 3 err.txt)"
	all_right 30
	is "$(ledger 'select count(*) from pod')" 1 pods
}

run_tests "$@"
