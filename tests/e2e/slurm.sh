#!/bin/bash
# slurm.sh - pods as jobs of a real Slurm cluster: whole runs, from the login node and over ssh to it.
. "$(dirname "$0")/slurm_lib.sh"

t_the_suite_for_providers() {
	has_cluster || return
	[ -n "${CHECKING:-}" ] || make -s -C "$ROOT" "$ROOT/build/e2e/conform" || complain "the suite cannot be built"
	on_cluster
	rm -rf /tmp/burst-00000000000000f? # of an earlier one that failed
	BURST=$BURST "$ROOT/build/e2e/conform" slurm >out.txt 2>err.txt || complain "$(grep -v '^\[' err.txt | head -n 3 | tr '\n' '|')"
	for name in $(pod_names); do rm -rf "/tmp/$name"; done # its pods run another script, which removes nothing
}
t_a_run_on_two_pods() {
	has_cluster || return
	slow_on_cluster 40 'pods = 2;'
	burst run --goal time
	is $STATUS 0 "exit status: $(tail -n 3 err.txt)"
	all_right 40
	is "$(ledger 'select count(*) from pod')" 2 pods
	is "$(ledger 'select count(distinct gpu) || gpu from pod')" 1L40S "GPU of the pods"
}
t_the_quiz() {
	has_cluster || return
	script_lines 300
	on_cluster 'pods = 2;'
	burst run --json
	is $STATUS 0 "exit status: $(tail -n 3 err.txt)"
	all_right 300
	is "$(json '.segments.rendered') $(json '.pods | length')" "300 2" "segments and pods"
}
t_over_ssh_to_the_login_node() {
	has_cluster || return
	login_node
	SLURM='login = "login";'
	slow_on_cluster 6
	burst run
	login_node_ends
	is $STATUS 0 "exit status: $(tail -n 3 err.txt)"
	all_right 6
	! pgrep -f "$T/login/ssh" >/dev/null || complain "an ssh is left: $(pgrep -af "$T/login/ssh")"
}
t_the_pods_have_the_whole_job() {
	has_cluster || return
	slow_on_cluster 20
	burst run -d
	is $STATUS 0 "exit status: $(tail -n 3 err.txt)"
	wait_for 30 "the queue to be handed over" handed_over
	kill -KILL "$(sed -n 's/^process //p' "$BURST_STATE_DIR/runs/$(cat out.txt)/lock")" # no client lives
	wait_for 60 "the pod to end itself" no_jobs
	is "$(squeue -h -t all -o '%j %T' | grep -c '^burst-.* COMPLETED')" 1 "pods that ended by themselves"
	burst attach
	is $STATUS 0 "attach: $(tail -n 3 err.txt)"
	all_right 20
}
handed_over() { [ "$(ledger 'select detached from run')" = 1 ]; }
no_jobs() { [ -z "$(queue %i)" ]; }
t_shells_and_logs_reach_a_pod() {
	local pod
	has_cluster || return
	slow_on_cluster 60
	burst_bg run
	wait_for 40 "a file" file_count out 1
	pod=$(ledger 'select id from pod')
	is "$("$BURST" ssh "$pod" 'echo "100% $((6 * 7))"' </dev/null 2>&1)" "100% 42" "what ssh sees"
	"$BURST" ssh "$pod" 'exit 5' </dev/null
	is $? 5 "its exit code"
	is "$(head -c 3000000 /dev/zero | "$BURST" ssh "$pod" 'wc -c')" 3000000 "bytes to it"
	"$BURST" logs -y >logs.txt 2>&1
	"$BURST" cancel -y >cancel.txt 2>&1 || complain "cancel: $(tail -n 2 cancel.txt)"
	burst_wait
	is "$(ledger "select count(*) from pod where gone_ms = 0")" 0 "pods that are not gone"
}
t_what_slurm_knows_of_a_pod() { # no secret, and limits that end it also when nobody looks on
	local job key left_s
	has_cluster || return
	job=$(printf '#!/bin/sh\nsleep 300\n' | sbatch --parsable --gres=gpu:l40s:4 -o /dev/null)
	slow_on_cluster 3 'wait = "5m";'
	burst_bg run
	wait_for 30 "the pod to wait" is_state PENDING 1
	key=$(sed -n "s/^export BURST_HOST_KEY_B64='\(.*\)'/\1/p" shared/pods/*/env)
	[ ${#key} -gt 300 ] || complain "there is no key in the pod's file"
	is "$(stat -c %a shared/pods/*/env)" 600 "mode of that file"
	scontrol write batch_script "$(queue %i)" - >batch.txt 2>&1
	scontrol show job "$(queue %i)" >job.txt
	has batch.txt 'BURST_HOST_KEY_B64'
	hasnt batch.txt "$key"
	hasnt job.txt "$key"
	! grep -lsaF "$key" /proc/[0-9]*/environ /proc/[0-9]*/cmdline >found.txt || complain "the key is in $(head -n 1 found.txt)"
	has job.txt 'TimeLimit=00:10:00'
	has job.txt 'Requeue=0'
	left_s=$(($(date -d "$(sed -n 's/.*Deadline=//p' job.txt)" +%s) - $(date +%s)))
	[ $left_s -gt 600 ] && [ $left_s -lt $((300 + 600 + 180)) ] || complain "$left_s s to the deadline"
	scancel "$job"
	burst_wait
	is $STATUS 0 "exit status: $(tail -n 3 err.txt)"
}
t_spot_pods_are_those_of_a_partition() {
	has_cluster || return
	SLURM='spot_partition = "high";'
	script_lines 3
	on_cluster 'spot = true;'
	burst run
	is $STATUS 0 "exit status: $(tail -n 3 err.txt)"
	is "$(squeue -h -t all -o '%i %P %j' | sort -n | sed -n 's/^[0-9]* \(.*\) burst-.*/\1/p' | tail -n 1)" high "its partition"
}
t_doctor() {
	has_cluster || return
	script_lines 3
	on_cluster
	burst doctor
	has out.txt 'ok   slurm: slurm-wlm'
	has out.txt 'ok   slurm: partition main: gpu:l40s:4'
	has out.txt "ok   slurm: volumes are in $T/shared"
	has out.txt 'ok   slurm: jobs can be submitted'
	sed -i "s,$T/shared,/proc/shared," "$XDG_CONFIG_HOME/burst/burst.cfg"
	burst doctor
	has out.txt 'bad  slurm: volume_dir: /proc/shared cannot be written to'
	is $STATUS 1 "exit status"
}

run_tests "$@"
