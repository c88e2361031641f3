#!/bin/bash
# slurm_nodes.sh - a Slurm cluster of two nodes, one of which dies or is cut off: the work goes on at the other one.
export NODES=2 SLURMD_TIMEOUT=6
. "$(dirname "$0")/slurm_lib.sh"

node_of() { # node_of POD
	squeue -h -t all -j "${1%%.*}" -o %N
}
processes_of() { # processes_of POD PATTERN: of the job, with such a command line; other clusters here have a job of its number too
	local pid
	{
		grep -lsaxzF "SLURM_JOB_ID=${1%%.*}" /proc/[0-9]*/environ | xargs -r grep -lsaxzF "SLURM_CONF=$SLURM_CONF"
		grep -lsaF "BURST_HOME=/tmp/burst-${1#*.}" /proc/[0-9]*/environ
		echo
	} | grep -o '[0-9]*' | sort -u | while read -r pid; do ! tr '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline" | grep -q "$2" || echo "$pid"; done
}
at_work() { # at_work N: of N segments, a pod that has finished a file: its id in $POD, its node in $NODE
	slow_on_cluster "$1"
	burst_bg run
	wait_for 40 "a file" file_count out 1
	POD=$(ledger 'select id from pod')
	NODE=$(node_of "$POD")
}
went_on_elsewhere() { # went_on_elsewhere N
	local second
	burst_wait
	is $STATUS 0 "exit status: $(tail -n 5 err.txt)"
	all_right "$1"
	is "$(ledger 'select count(*) from pod')" 2 pods
	second=$(ledger "select id from pod where id != '$POD'")
	[ "$(node_of "$second")" != "$NODE" ] || complain "the second pod is on the node that failed"
}
node_comes_back() { # Slurm ends there what it has given up
	bash "$ROOT/tests/cloud/slurm/bed.sh" "$NODE" "$CLUSTER" start
	wait_for 20 "the node to be idle" is_idle
}
is_idle() { [ "$(sinfo -h -N -p main -n "$NODE" -o %T)" = idle ]; }
t_a_node_dies() { # and all that ran on it
	has_cluster || return
	at_work 20
	bash "$ROOT/tests/cloud/slurm/bed.sh" "$NODE" "$CLUSTER" stop
	processes_of "$POD" "slurmstepd: \[${POD%%.*}\." | xargs -r kill -9
	processes_of "$POD" . | xargs -r kill -9
	rm -rf "/tmp/burst-${POD#*.}"
	went_on_elsewhere 20
	node_comes_back
}
t_a_node_is_cut_off() { # its pod works on, which its connection shows; Slurm gives it up
	has_cluster || return
	at_work 60
	bash "$ROOT/tests/cloud/slurm/bed.sh" "$NODE" "$CLUSTER" stop
	went_on_elsewhere 60
	has err.txt "pod $POD: NODE_FAIL"
	node_comes_back
}

run_tests "$@"
