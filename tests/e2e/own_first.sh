#!/bin/bash
# own_first.sh - one run on an own box, a Slurm cluster and RunPod: own machines first, what they cannot take is rented, and what one
# of them loses goes on at the others. The box's sshd and Slurm are real, RunPod is a stand-in (tests/cloud); all pods are real.
. "$(dirname "$0")/slurm_lib.sh"
. "$(dirname "$0")/boxes_lib.sh"
. "$ROOT/tests/cloud/runpod/client.sh"

all_three() { # all_three SEGMENTS: three pods, of which the box has room for one, and the cluster, too: others have its other GPUs
	local why
	has_cluster || return
	why=$(rp_can) || { skip "$why"; return 1; }
	boxes b1 || return
	gpus b1 "NVIDIA L40S"
	rp_start || return
	OTHERS_JOB=$(sbatch --parsable --gres=gpu:l40s:3 -o /dev/null --wrap 'sleep 300')
	script_lines "$1"
	slow_worker SLOW=0.5 MAX_BATCH=1
	GPUS='"L40S"' rp_config "code = { path = \"code\"; }; pods = 3; wait = \"20s\";"
	sed -i 's/^provider = .*/provider = ["ssh", "slurm", "runpod"];/; /^volume = /d' burst.cfg
	mkdir -p "$XDG_CONFIG_HOME/burst"
	cat >"$XDG_CONFIG_HOME/burst/burst.cfg" <<-E
		providers = { ssh = { hosts = ["b1"]; price_per_hour = 0.30; };
		              slurm = { volume_dir = "$T/shared"; price_per_gpu_hour = ["L40S=0.80"]; }; };
	E
}
all_over() {
	is "$(rp_pods | wc -l)" 0 "pods that are left: $(rp_pods)"
	rp_invariants
	rp_stop
	scancel "$OTHERS_JOB"
	boxes_gone
}
a_job() { # the id of the pod's job, which runs
	squeue -h -t R -o '%i %j' | awk '/ burst-/ { print $1; exit }'
}
t_one_fails_midway() { # the cluster's job is cancelled by its administrator
	all_three 100 || return
	burst_bg run --json
	wait_for 60 "files, also of the cluster" file_count out 30
	scancel "$(a_job)"
	burst_wait
	is "$STATUS" 0 "exit status ($(tail -n 3 err.txt | tr '\n' '|'))"
	all_right 100
	is "$(json '[.pods[].provider] | unique | join(" ")')" "runpod slurm ssh" "who rendered"
	is "$(json '[.pods[] | select(.released)] | length')" "$(json '.pods | length')" "released pods"
	all_over
}
run_tests "$@"
