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
	SLURM='answer_limit = "5s";'
	slow_on_cluster 24
	# shellcheck disable=SC2016
	instead_of squeue 'case "$*" in *--me*-n*) ;; *--me*) [ -e running ] && [ ! -e hung ] && : >hung && exec sleep 1000 ;; esac
		exec "$real" "$@"'
	burst_bg run
	wait_for 40 "a file" file_count out 1
	: >running
	wait_for 30 "a list to hang" [ -e hung ]
	burst_wait
	ended_well 24 1
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
t_a_gpu_that_no_node_has() {
	has_cluster || return
	on_cluster 'wait = "3s";'
	sed -i 's/L40S/H100/' burst.cfg
	refused 'H100 is in none of the partitions that pods may run in' 4
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
# The login node wants a second factor, which nobody can type: the key is right, and it asks for more.
second_factor() {
	printf 'UsePAM yes\nKbdInteractiveAuthentication yes\nAuthenticationMethods publickey,keyboard-interactive\n' >login/second
	cat login/sshd >>login/second # the first mention of an option counts
	cp login/second login/sshd
	kill -HUP "$(cat login/pid)"
	wait_for 10 "the sshd to ask for a second factor" asks_for_more
}
asks_for_more() { ssh -o BatchMode=yes -o ControlPath=none login true 2>&1 | grep -q 'Permission denied (keyboard-interactive)'; }
t_the_login_node_wants_a_second_factor() {
	has_cluster || return
	[ -e /etc/pam.d/sshd ] || { skip "no PAM for sshd"; return; }
	login_node
	second_factor
	SLURM='login = "login";'
	on_cluster 'wait = "1s";'
	refused 'Permission denied (keyboard-interactive).*: ssh must log in without questions: load a key, or share an open connection' 3
	login_node_ends
}
t_a_second_factor_was_given_once() { # a connection that a person has opened carries the run
	has_cluster || return
	[ -e /etc/pam.d/sshd ] || { skip "no PAM for sshd"; return; }
	login_node
	printf '\tControlMaster auto\n\tControlPath %s/login/m\n' "$T" >>login/ssh
	ssh -M -N -f login || complain "no open connection"
	second_factor
	SLURM='login = "login";'
	slow_on_cluster 4
	burst run
	ssh -O exit login 2>/dev/null
	login_node_ends
	is $STATUS 0 "exit status: $(tail -n 3 err.txt)"
	all_right 4
}
# ---- the shared folder is full ----

small_share() { # small_share SIZE: or the test is skipped
	mkdir -p shared
	if [ "$(id -u)" != 0 ] || ! mount -t tmpfs -o "size=$1,mode=755" tmpfs shared 2>/dev/null; then
		skip "no small disk can be mounted here"
		return 1
	fi
}
t_the_shared_folder_is_full() {
	has_cluster || return
	small_share 64k || return
	head -c 64k /dev/zero >shared/filler 2>/dev/null
	on_cluster 'wait = "5m";'
	sed -i '/^volume = /d' burst.cfg
	refused 'No space left on device: make room in providers.slurm.volume_dir'
	is "$(find shared -mindepth 2)" "" "files that are left"
	umount shared
}
t_the_quota_is_used_up() { # the true cat is told so by the kernel's own number
	has_cluster || return
	command -v strace >/dev/null || { skip "no strace"; return; }
	on_cluster 'wait = "5m";'
	# shellcheck disable=SC2016
	instead_of cat 'exec strace -o /dev/null -e trace=write -e inject=write:error=EDQUOT:when=1 "$real" "$@"'
	refused 'Disk quota exceeded: make room in providers.slurm.volume_dir'
	PATH=${PATH#"$T/bin:"}
	is "$(find shared/pods -mindepth 1)" "" "files that are left"
}
t_the_shared_folder_fills_up_while_it_works() {
	has_cluster || return
	small_share 3m || return
	slow_on_cluster 60 'wait = "2s";'
	burst_bg run
	wait_for 40 "a file" file_count out 1
	head -c 3m /dev/zero >shared/filler 2>/dev/null
	burst_wait
	is $STATUS 6 "exit status: $(tail -n 3 err.txt)"
	has err.txt ': the volume is full or cannot be written'
	is "$(queue '%i %T')" "" "jobs that are left"
	umount shared
}

run_tests "$@"
