#!/bin/bash
# slurm_accounts.sh - a Slurm cluster with accounting (slurmdbd): what it bills, whom it refuses, and what it remembers of old jobs.
export ACCOUNTS=1
. "$(dirname "$0")/slurm_lib.sh"
UNIT_PRICE='price_per_billing_hour = 0.08;' # a pod with an L40S is 11 units: 0.88 an hour

accounted() { # accounted FIELD [POD]: of the pod's job in sacct, once it has ended
	local job=${2:-$(ledger 'select id from pod')}
	sacct -X -n -P -j "${job%%.*}" -o "End,$1" | sed -n 's/^[0-9].*|//p'
}
is_accounted() { [ -n "$(accounted State "$@")" ]; }
reconciled() {
	wait_for 20 "accounting to know the end" is_accounted
	burst ledger --reconcile
	is $STATUS 0 "reconcile: $(tail -n 3 err.txt)"
}

# ---- what it bills ----

t_the_bill_is_that_of_accounting() {
	local seconds
	has_cluster || return
	PRICE=$UNIT_PRICE
	slow_on_cluster 6
	burst offers
	has out.txt '$0.8800'
	burst run
	is $STATUS 0 "exit status: $(tail -n 3 err.txt)"
	all_right 6
	reconciled
	has out.txt ': agrees'
	seconds=$(accounted ElapsedRaw)
	is "$(accounted AllocTRES | grep -o 'billing=[0-9]*')" billing=11 "units in sacct"
	is "$(ledger 'select billed_vendor_ms from pod')" "${seconds}000" "seconds of accounting"
	is "$(ledger 'select cost_vendor_microusd from pod')" $(((880000 * seconds + 3599) / 3600)) "11 units for $seconds s"
}
t_a_price_of_the_card_comes_first() {
	has_cluster || return
	PRICE="$UNIT_PRICE $L40S_PRICE"
	slow_on_cluster 2
	burst offers
	has out.txt '$0.8000'
	is "$(grep -c 'price_per_gpu_hour says $0.8000 an hour, price_per_billing_hour $0.8800 for 11 units: the first one counts' err.txt)" 1 \
		"lines about both prices"
	burst run
	is $STATUS 0 "exit status: $(tail -n 3 err.txt)"
	reconciled
	has out.txt ': agrees'
	is "$(ledger 'select cost_vendor_microusd from pod')" 0 "dollars by a price that does not count"
}
t_no_price_is_no_zero() {
	has_cluster || return
	PRICE=''
	slow_on_cluster 2
	burst offers
	has out.txt 'no price given'
	burst run
	is $STATUS 0 "exit status: $(tail -n 3 err.txt)"
	has err.txt 'slurm: no price given'
	reconciled
	has out.txt ': agrees'
	burst report
	cat out.txt err.txt >said.txt
	hasnt said.txt '$0.0'
}
t_a_price_of_zero_is_a_mistake() {
	has_cluster || return
	PRICE='price_per_billing_hour = 0;'
	script_lines 2
	on_cluster
	burst offers
	is $STATUS 2 "exit status"
	has err.txt 'providers.slurm.price_per_billing_hour must be more than 0'
}

# ---- whom it refuses ----

# refused KEYS FRAGMENT [STATUS [CONFIG...]]: a run ends long before `wait`, says so in its last line, and leaves nothing
refused() {
	local keys=$1 fragment=$2 status=${3:-6} since=$SECONDS
	shift $(($# < 3 ? $# : 3))
	SLURM=$keys
	script_lines 2
	on_cluster 'wait = "5m";' "$@"
	burst run
	is $STATUS "$status" "exit status with $keys: $(tail -n 3 err.txt)"
	tail -n 1 err.txt >last.txt
	has last.txt "$fragment"
	[ $((SECONDS - since)) -lt 60 ] || complain "$keys: it was tried again and again"
	is "$(queue '%i %T %r')" "" "jobs that are left"
	is "$(find shared/pods -mindepth 1)" "" "files that are left"
}
t_what_is_refused_at_the_submit() {
	has_cluster || return
	refused 'account = "nope";' 'Invalid account or account/partition combination specified: see providers.slurm.account and partitions'
	refused 'account = "alien";' 'Invalid account or account/partition combination specified: see providers.slurm.account and partitions'
	refused 'qos = "nope";' 'Invalid qos specification: see providers.slurm.qos'
	refused 'qos = "closed";' 'Invalid qos specification: see providers.slurm.qos'
	refused 'constraint = "nope";' 'Invalid feature specification: see providers.slurm.constraint'
	refused 'partitions = ["nope"];' 'providers.slurm.partitions: the cluster has no partition "nope"' 2
	refused '' 'Memory specification can not be satisfied' 6 'pod = { memory_gb = 900; };'
}
t_what_is_accepted_and_never_starts() {
	has_cluster || return
	refused 'partitions = ["members"];' 'account not permitted to use this partition (members allows alien not lab): see providers.slurm.account'
	refused 'qos = "brief";' 'QOSMaxWallDurationPerJobLimit: the account or QOS allows shorter jobs only: lower caps.max_duration'
	refused 'partitions = ["brief"];' 'PartitionTimeLimit: the partition allows shorter jobs only: lower caps.max_duration'
}
# waits_in_vain KEYS FRAGMENT: what may pass is waited for, and the reason is in the last line
waits_in_vain() {
	SLURM=$1
	script_lines 2
	on_cluster 'wait = "3s";'
	burst run
	is $STATUS 4 "exit status with $1: $(tail -n 3 err.txt)"
	tail -n 1 err.txt >last.txt
	has last.txt "$2"
	is "$(queue '%i %T %r')" "" "jobs that are left"
	is "$(ledger 'select sum(billed_ms) from pod')" "${3-0}" "what it billed"
}
t_a_limit_that_may_pass() {
	local job
	has_cluster || return
	waits_in_vain 'account = "spent";' 'AssocGrpBillingMinutes: the budget of the account or QOS is used up'
	waits_in_vain 'account = "full";' 'AssocMaxSubmitJobLimit'
	job=$(printf '#!/bin/sh\nsleep 300\n' | sbatch --parsable --qos=single -o /dev/null)
	waits_in_vain 'qos = "single";' 'QOSMaxJobsPerUserLimit: other jobs of yours must end first'
	scancel "$job"
}

# ---- what it remembers ----

# The controller forgets jobs that have ended: accounting alone knows them from here on. Undone by remembering.
forgetting() {
	sed -i 's/^MinJobAge=.*/MinJobAge=2/' "$SLURM_CONF"
	scontrol reconfigure
}
remembering() {
	sed -i 's/^MinJobAge=.*/MinJobAge=300/' "$SLURM_CONF"
	scontrol reconfigure
}
is_forgotten() { ! squeue -h -t all -j "$1" >/dev/null 2>&1; }
wait_until_forgotten() { # wait_until_forgotten POD
	forgetting
	wait_for 30 "the job to be forgotten" is_forgotten "${1%%.*}"
	remembering
	is_accounted "$1" || complain "sacct does not know it"
}
billed_as_accounted() { # billed_as_accounted POD: up to the roundings of both
	local ours theirs
	ours=$(ledger "select billed_ms / 1000 from pod where id = '$1'") theirs=$(accounted ElapsedRaw "$1")
	[ $((ours - theirs)) -ge 0 ] && [ $((ours - theirs)) -le 2 ] || complain "billed $ours s, but it ran for $theirs s"
}
t_cancelled_and_forgotten() { # its end is that of accounting, not the moment in which somebody looks
	local pod
	has_cluster || return
	PRICE=$UNIT_PRICE
	slow_on_cluster 20
	burst_bg run
	wait_for 40 "a file" file_count out 2
	pod=$(ledger 'select id from pod')
	kill_it
	scancel "${pod%%.*}"
	wait_until_forgotten "$pod"
	burst resume
	is $STATUS 0 "resume: $(tail -n 3 err.txt)"
	all_right 20
	has err.txt "pod $pod: CANCELLED by $(id -u); its unfinished segments go to other pods"
	billed_as_accounted "$pod"
	reconciled
	is "$(grep -c ': agrees' out.txt)" 2 "pods whose bills agree"
}
t_ended_by_itself_and_forgotten() {
	local pod
	has_cluster || return
	PRICE=$UNIT_PRICE
	slow_on_cluster 6
	burst run -d
	is $STATUS 0 "run -d: $(tail -n 3 err.txt)"
	pod=$(ledger 'select id from pod')
	kill -KILL "$(sed -n 's/^process //p' "$BURST_STATE_DIR/runs/$(cat out.txt)/lock")"
	wait_for 40 "the pod to end itself" is_accounted "$pod"
	wait_until_forgotten "$pod"
	burst attach
	is $STATUS 0 "attach: $(tail -n 3 err.txt)"
	all_right 6
	billed_as_accounted "$pod"
	reconciled
	has out.txt ': agrees'
}
t_accounting_is_away() { # what the controller knows holds, and nothing hangs
	has_cluster || return
	PRICE=$UNIT_PRICE
	slow_on_cluster 4
	bash "$ROOT/tests/cloud/slurm/bed.sh" dbd "$CLUSTER" stop
	burst run
	is $STATUS 0 "exit status: $(tail -n 3 err.txt)"
	all_right 4
	burst ledger --reconcile # squeue still knows when it ended
	has out.txt ': agrees'
	is "$(ledger 'select cost_vendor_microusd from pod')" 0 "dollars without accounting"
	bash "$ROOT/tests/cloud/slurm/bed.sh" dbd "$CLUSTER" start
	reconciled
	has out.txt ': agrees'
}

run_tests "$@"
