#!/bin/bash
# slurm_faults.sh - a Slurm cluster that goes wrong under a run: its controller, its nodes, its answers, its limits.
. "$(dirname "$0")/slurm_lib.sh"

ended_well() { # SEGMENTS [PODS]
	is $STATUS 0 "exit status: $(tail -n 5 err.txt)"
	all_right "$1"
	[ -z "${2:-}" ] || is "$(ledger 'select count(*) from pod')" "$2" pods
}
t_the_controller_goes_and_comes_back() { # open connections live, lists fail and prove nothing
	has_cluster || return
	slow_on_cluster 24
	burst_bg run
	wait_for 40 "a file" file_count out 1
	bash "$ROOT/tests/cloud/slurm/bed.sh" ctld "$CLUSTER" stop
	wait_for 40 "more files" file_count out 5
	bash "$ROOT/tests/cloud/slurm/bed.sh" ctld "$CLUSTER" start
	burst_wait
	ended_well 24 1
}
t_the_node_is_drained() { # what runs goes on
	has_cluster || return
	slow_on_cluster 10
	burst_bg run
	wait_for 40 "a file" file_count out 1
	scontrol update nodename="$(hostname -s)" state=drain reason=test
	burst_wait
	scontrol update nodename="$(hostname -s)" state=resume
	ended_well 10 1
}
t_one_list_is_empty() {
	has_cluster || return
	slow_on_cluster 30
	# shellcheck disable=SC2016
	instead_of squeue 'case "$*" in *--me*-n*) ;; *--me*) [ -e running ] && [ ! -e lied ] && : >lied && exit 0 ;; esac
		exec "$real" "$@"'
	burst_bg run
	wait_for 40 "a file" file_count out 1
	: >running
	burst_wait
	[ -e lied ] || complain "no list was empty"
	ended_well 30 1
}
t_a_list_hangs() {
	has_cluster || return
	slow_on_cluster 30
	# shellcheck disable=SC2016
	instead_of squeue 'case "$*" in *--me*-n*) ;; *--me*) [ -e running ] && [ ! -e hung ] && : >hung && exec sleep 1000 ;; esac
		exec "$real" "$@"'
	burst_bg run
	wait_for 40 "a file" file_count out 1
	: >running
	wait_for 30 "a list to hang" [ -e hung ]
	burst_wait
	ended_well 30 1
	! pgrep -f 'sleep 1000' >/dev/null || complain "the hanging squeue is left"
}
t_the_node_fails() { # and comes back; the work goes on in another pod
	has_cluster || return
	slow_on_cluster 20
	burst_bg run
	wait_for 40 "a file" file_count out 1
	scontrol update nodename="$(hostname -s)" state=down reason=test
	wait_for 30 "the job to fail" failed_node
	scontrol update nodename="$(hostname -s)" state=resume 2>/dev/null # it may have come back by itself
	burst_wait
	ended_well 20 2
}
failed_node() { squeue -h -t all -o '%j %T' | grep -q '^burst-.* NODE_FAIL'; }
t_it_is_preempted() {
	local job
	has_cluster || return
	slow_on_cluster 20
	burst_bg run
	wait_for 40 "a file" file_count out 1
	job=$(printf '#!/bin/sh\nsleep 3\n' | sbatch --parsable -p high --gres=gpu:l40s:4 -o /dev/null)
	burst_wait
	[ -n "$(squeue -h -t all -o '%j %T' | grep '^burst-.* PREEMPTED')" ] || complain "nothing was preempted: $job"
	ended_well 20 2
	scancel "$job"
}
t_it_waits_for_ever() { # nothing billed, nothing left
	local job
	has_cluster || return
	job=$(printf '#!/bin/sh\nsleep 300\n' | sbatch --parsable --gres=gpu:l40s:4 -o /dev/null)
	script_lines 3
	on_cluster 'wait = "3s";'
	burst run --json
	scancel "$job"
	is $STATUS 4 "exit status: $(tail -n 3 err.txt)"
	is "$(json .cost_usd)" 0 "its cost"
}

# refused FRAGMENT [STATUS]: a run ends soon, says so in one line, and no job is left
refused() {
	script_lines 3
	burst run
	is $STATUS "${2:-6}" "exit status: $(tail -n 3 err.txt)"
	grep -q "$1" err.txt || complain "it does not say \"$1\": $(cat err.txt)"
	[ -z "$(queue %i)" ] || complain "left: $(queue '%i %T %r')"
}
t_an_unknown_partition() {
	has_cluster || return
	on_cluster 'wait = "1s";'
	sed -i 's/slurm = {/slurm = { partitions = ["nope"];/' "$XDG_CONFIG_HOME/burst/burst.cfg"
	refused 'providers.slurm.partitions: the cluster has no partition "nope"' 2
}
t_longer_than_the_partition_allows() { # Slurm accepts such a job, and never starts it
	has_cluster || return
	SLURM='partitions = ["brief"];'
	on_cluster 'wait = "5s";'
	refused 'PartitionTimeLimit: the partition allows shorter jobs only: lower caps.max_duration'
}
t_a_folder_that_cannot_be_made() {
	has_cluster || return
	on_cluster 'wait = "1s";'
	sed -i "s,$T/shared,/proc/shared," "$XDG_CONFIG_HOME/burst/burst.cfg"
	refused '/proc/shared'
}
t_the_login_node_is_not_the_known_one() {
	has_cluster || return
	login_node
	SLURM='login = "login";'
	ssh-keygen -q -t ed25519 -N '' -f login/other
	sed -i "s,ssh-ed25519 .*,$(cut -d' ' -f1,2 login/other.pub)," login/known
	on_cluster 'wait = "1s";'
	refused 'host key'
	login_node_ends
}
t_nobody_listens_at_the_login_node() {
	has_cluster || return
	login_node
	login_node_ends
	PATH=$T/bin:$PATH
	SLURM='login = "login";'
	on_cluster 'wait = "1s";'
	refused 'Connection refused'
	PATH=${PATH#"$T/bin:"}
}

run_tests "$@"
