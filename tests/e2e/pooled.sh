#!/bin/bash
# pooled.sh - a pod that has finished one run is kept and handed to the next: one cold start for both, each run billed for its own
# time.
. "$(dirname "$0")/lib.sh"
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/pooled_lib.sh"

t_two_jobs_share_one_pod() {
	allow_volumes v
	job_in one 3 "$KEEP"
	job_in two 4 'keep_warm = "0";'
	run_in one
	is "$STATUS" 0 "the first ($(cat err.txt))"
	wait_for 10 "the pod to be kept" kept_now
	burst ps --json
	is "$(json ".[0].phase")" kept "what ps says of it ($(cat out.txt))"
	run_in two
	is "$STATUS" 0 "the second ($(cat err.txt))"
	has two.err "taken over from run"
	is "$(creates)" 1 "pods created"
	is "$(find one/out -name '*.wav' | wc -l) $(find two/out -name '*.wav' | wc -l)" "3 4" "files"
	wait_for 20 "all to be over" all_over
	wait_for 20 "who kept it to end" no_keeper
	no_gap
	is "$(jq -r '.pods[0].handed_to != null, .pods[0].released' one.json | xargs)" "true true" "the first run's pod"
	is "$(jq -r '.pods[0].handed_from' two.json)" "$(keeper)" "from whom the second has it"
	cp two.json out.txt
	schema run
}

# The vendor bills a pod as a whole: each run that held it has its part of the bill, and the parts sum to it.
t_the_bill_of_a_shared_pod_is_split() {
	allow_volumes v
	job_in one 3 "$KEEP"
	job_in two 4 'keep_warm = "0";'
	run_in one
	wait_for 10 "the pod to be kept" kept_now
	burst ledger --reconcile --json
	is "$STATUS $(json length)" "0 0" "while a run holds it nothing is asked ($(cat out.txt err.txt))"
	has err.txt "1 pod is not released yet"
	run_in two
	is "$STATUS" 0 "the second ($(cat err.txt))"
	wait_for 20 "all to be over" all_over
	wait_for 20 "who kept it to end" no_keeper
	burst ledger --reconcile --json
	is "$STATUS" 0 "reconciled ($(cat err.txt))"
	schema reconcile
	has err.txt "asking for the bill of 1 pod"
	is "$(json 'length')" 3 "a share for each run, the keeping one too"
	is "$(json '[.[].run] | join(" ")')" "$(jq -r .run one.json) $(keeper) $(jq -r .run two.json)" "whose they are"
	is "$(json '[.[].state] | unique | join(" ")')" agrees "state ($(json '.[0].why'))"
	has out.txt "3 runs held this pod, so its bill is split by their billed time"
	is "$(json '[.[].billed_vendor_s > 0] | all')" true "each has its part"
	is "$(json '([.[].billed_vendor_s] | add) - ([.[].billed_seconds] | add) | fabs < 3')" true "what they sum to ($(cat out.txt))"
	is "$(ledger "select count(*) from pod where vendor_asked_ms > 0 and billed_vendor_ms > 0 and vendor_reported")" 3 "rows with their part"
	burst ledger "$(jq -r .run two.json)" --reconcile --json
	is "$(json '[.[].run] | join(" ")')" "$(jq -r .run two.json)" "of a named run"
	burst ledger --reconcile
	is "$(grep -c "3 runs held this pod" out.txt)" 1 "said once"
}

# Nobody takes it: it goes when its time is over, and what that cost is the keeping run's, as its own phase.
t_a_kept_pod_goes_when_its_time_is_over() {
	job_in one 2 'keep_warm = "3s";'
	run_in one
	is "$STATUS" 0 "the run ($(cat err.txt))"
	has one.err "kept for the next run until"
	wait_for 10 "the pod to be kept" kept_now
	burst ps
	has out.txt "$(keeper)"
	wait_for 30 "all to be over" all_over
	wait_for 20 "who kept it to end" no_keeper
	burst ledger "$(keeper)" --json
	is "$(json '.status')" done "the run that kept it"
	is "$(json '.pods[0].phases | .kept_s >= 2.5 and .kept_s < 8')" true "kept_s ($(json '.pods[0].phases.kept_s'))"
	is "$(json '.pods[0].phases | .boot_s + .compute_s + .idle_s')" 0 "other phases"
	burst ledger "$(keeper)"
	has out.txt kept
	no_gap
}

t_cancel_names_what_is_kept() { # "all pods gone" is true of the run; the pod that it gave away bills
	local kept
	job_in one 2 'keep_warm = "90s";'
	run_in one
	wait_for 10 "the pod to be kept" kept_now
	kept=$(keeper)
	cd one || return
	burst cancel
	is "$STATUS" 0 "the cancel ($(cat err.txt))"
	has err.txt "run $kept keeps 1 pod for the next run, and it bills: \`burst cancel $kept\` releases it now"
	burst cancel "$kept"
	is "$STATUS" 0 "the cancel of what is kept ($(cat err.txt))"
	hasnt err.txt "for the next run"
	cd .. || return
	wait_for 20 "who kept it to end" no_keeper
}

# `auto`: no longer than its own cold start took (ski rental).
t_auto_keeps_no_longer_than_a_cold_start() {
	REHEARSE='boot_delay = "3s";'
	rehearse
	job_in one 2 'keep_warm = "auto";'
	run_in one
	is "$STATUS" 0 "the run ($(cat err.txt))"
	wait_for 10 "the pod to be kept" kept_now
	wait_for 30 "all to be over" all_over
	wait_for 20 "who kept it to end" no_keeper
	local cold kept
	cold=$(ledger "select cold_ms from pod where handed_to != ''")
	kept=$(ledger "select kept_until_ms - kept_ms from pod where kept_ms > 0")
	[ "$cold" -ge 3000 ] || complain "the cold start took $cold ms"
	[ "$kept" -gt 0 ] && [ "$kept" -le "$cold" ] || complain "kept for $kept ms after a cold start of $cold ms"
}

# `auto` keeps no more than the next run needs: a second run's pod of the same kind is released.
t_auto_keeps_one_runs_pods() {
	REHEARSE='boot_delay = "3s";'
	rehearse
	local dir
	allow_volumes v
	for dir in one two; do
		job_in $dir 2 'keep_warm = "auto";'
	done
	start_in one
	local one=$PID
	start_in two
	local two=$PID
	ends "$one" one 0
	ends "$two" two 0
	wait_for 30 "all to be over" all_over
	wait_for 20 "the clients that keep pods to end" no_keeper
	is "$(creates)" 2 "pods created"
	is "$(ledger "select count(*) from pod where kept_ms > 0")" 1 "pods kept ($(cat one.err two.err))"
}

# `auto` learns how often runs come: where the next one comes long after, nothing is kept.
t_auto_learns_how_often_runs_come() {
	REHEARSE='boot_delay = "3s";'
	rehearse
	job_in one 2 'keep_warm = "auto";'
	run_in one
	is "$STATUS" 0 "the run ($(cat err.txt))"
	wait_for 30 "all to be over" all_over
	wait_for 20 "the client that keeps it to end" no_keeper
	is "$(ledger "select count(*) from fact where name like 'gaps:%'")" 1 "what is remembered"
	ledger "update fact set value = '0 60000 60000 60000 60000 60000 60000 60000 60000' where name like 'gaps:%'" >/dev/null
	rm -r one/out
	run_in one --anew
	is "$STATUS" 0 "the next run ($(cat err.txt))"
	is "$(ledger "select count(*) from pod where kept_ms > 0")" 1 "pods kept by both"
	is "$(open_pods)" 0 "pods left"
}

t_the_plan_says_what_is_kept() {
	job_in one 2 'keep_warm = "5m";'
	burst plan one/burst.cfg
	is "$STATUS" 0 "plan ($(cat err.txt))"
	has out.txt 'for at most 5m00s: at most $0.0575 more for each'
	has out.txt 'a pod that waits longer than a cold start, about'
	sed -i 's/"5m"/"auto"/' one/burst.cfg
	burst plan one/burst.cfg
	has out.txt 'as long as its cold start took, about'
	sed -i 's/"auto"/"soon"/' one/burst.cfg
	burst plan one/burst.cfg
	is "$STATUS" 2 "a word that is no time"
	has err.txt 'keep_warm: "soon" is neither "auto" nor a time up to "24h"'
}

t_at_zero_nothing_is_kept() {
	job_in one 2
	run_in one
	is "$STATUS" 0 "the run ($(cat err.txt))"
	is "$(ledger "select count(*) from run")" 1 runs
	is "$(open_pods)" 0 "pods"
}

# What it may cost bounds its time: it is never kept past its hard end.
t_a_pod_is_kept_within_its_cap() {
	job_in one 2 'keep_warm = "1h";'
	sed -i 's/max_duration = "10m"/max_duration = "1m"/' one/burst.cfg
	run_in one
	is "$STATUS" 0 "the run ($(cat err.txt))"
	wait_for 10 "the pod to be kept" kept_now
	is "$(ledger "select count(*) from pod where kept_until_ms > hard_end_s * 1000 - 1000 and kept_ms > 0")" 0 "pods kept to their hard end"
	burst cancel "$(keeper)"
	is "$STATUS" 0 "cancel ($(cat err.txt))"
	is "$(open_pods)" 0 "pods after cancel"
}

# Another environment, another volume, a GPU that is not wanted: a pod of its own.
t_a_pod_is_handed_to_its_like_alone() {
	allow_volumes v
	job_in one 2 "$KEEP"
	job_in two 2 'pod = { cpu = 2; };'
	run_in one
	is "$STATUS" 0 "the first ($(cat err.txt))"
	wait_for 10 "the pod to be kept" kept_now
	run_in two
	is "$STATUS" 0 "the second ($(cat err.txt))"
	hasnt two.err "taken over"
	sed -i 's/name = "v"/name = "w"/; s/cpu = 2; //' two/burst.cfg
	rm -r two/out
	run_in two
	is "$STATUS" 0 "with another volume ($(cat err.txt))"
	hasnt two.err "taken over"
	is "$(creates)" 3 "pods"
	burst cancel "$(keeper)"
	is "$STATUS" 0 "cancel ($(cat err.txt))"
}

# Commands are handed on within their job alone.
t_a_commands_pod_stays_with_its_job() {
	local dir
	allow_volumes v
	for dir in one two; do
		mkdir $dir
		cat >$dir/burst.cfg <<-E
			provider = "local"; pods = 1; $KEEP
			volume = { name = "v"; create = true; };
			job = { name = "$dir"; type = "command"; run = "date +%N >made"; outputs = ["made"]; output = "out"; };
		E
	done
	run_in one
	is "$STATUS" 0 "the first ($(cat err.txt))"
	wait_for 10 "the pod to be kept" kept_now
	run_in two
	is "$STATUS" 0 "another job ($(cat err.txt))"
	hasnt two.err "taken over"
	run_in one --anew
	is "$STATUS" 0 "the same job ($(cat err.txt))"
	has one.err "taken over"
	is "$(creates)" 2 "pods"
	local id
	for id in $(ledger "select id from run where type = 'keep' and status = 'running'"); do
		burst cancel "$id"
	done
	wait_for 20 "all to be over" all_over
}

# Nothing is kept for runs to come, and the only pod goes from the run that has finished to the run that waits.
t_a_waiting_run_gets_the_pod() {
	local one two
	allow_volumes v
	REHEARSE='capacity = 1; boot_delay = "1s";'
	rehearse
	slow_in one 12
	slow_in two 3 'wait = "60s";'
	start_in one
	one=$PID
	wait_for 20 "the first run's files" file_count one/out 1
	start_in two
	two=$PID
	wait_for 20 "the second to wait" waits_for_a_pod
	ends "$one" one 0
	ends "$two" two 0
	has two.err "taken over from run"
	is "$(creates)" 1 "pods created"
	is "$(file_count one/out 12 && file_count two/out 3 && echo all)" all "files"
	is "$(open_pods)" 0 "pods left"
	is "$(ledger "select count(*) from run where wants != ''")" 0 "runs that still wait"
	is "$(ledger "select count(*) from run where type = 'keep'")" 0 "clients that kept it"
	is "$(ledger "select handed_to from pod where id != '' and run = (select id from run where job = 'one')")" "$(ledger "select id from run where job = 'two'")" "to which run it went"
	no_gap
}

# What waits for another kind of pod, or may not pay for this one, gets nothing: the pod is released at once.
t_a_pod_that_no_waiting_run_can_use_is_released() {
	local one two
	allow_volumes v
	LOCAL='capacity = 1;'
	slow_in one 10
	slow_in two 2 'wait = "60s"; pod = { cpu = 2; };'
	start_in one
	one=$PID
	wait_for 20 "the first run's files" file_count one/out 1
	start_in two
	two=$PID
	wait_for 20 "the second to wait" waits_for_a_pod
	ends "$one" one 0
	hasnt one.err "offered to a run"
	is "$(open_pods)" 0 "pods left"
	kill -INT "$two"
	ends "$two" two 130
	hasnt two.err "taken over"
}

# ---- runs that go on ----

# What was cut off while it waited for capacity goes on with a pod that was kept meanwhile.
t_a_resumed_run_takes_a_kept_pod() {
	kill_the_waiter 6 "$KEEP"
	wait_for 10 "the pod to be kept" kept_now
	burst resume "$(ledger "select id from run where job = 'two'")"
	is "$STATUS" 0 "resume ($(cat err.txt))"
	has err.txt "taken over from run"
	is "$(creates)" 1 "pods created"
	is "$(open_pods)" 0 "pods left"
	no_gap
}

# Pods of a detached run end themselves when their work is done, whatever became of this machine: they are not handed on. Once a new
# client has taken them over, they are.
t_an_attached_run_keeps_its_pod() {
	local id
	allow_volumes v
	slow_in one 14 "$KEEP"
	slow_in two 2
	burst run one/burst.cfg -d
	is "$STATUS" 0 "run -d ($(cat err.txt))"
	id=$(ledger "select id from run where job = 'one'")
	kill -9 "$(sed -n 's/^process //p' "$BURST_STATE_DIR/runs/$id/lock")"
	wait_for 10 "its client to be dead" no_client_of "$id"
	burst attach "$id"
	is "$STATUS" 0 "attach ($(cat err.txt))"
	has err.txt "kept for the next run"
	wait_for 10 "the pod to be kept" kept_now
	run_in two
	is "$STATUS" 0 "the second ($(cat two.err))"
	has two.err "taken over from run"
	is "$(creates)" 1 "pods created"
	wait_for 20 "all to be over" all_over
	no_gap
}

# ---- demand smoothing ----

reason() { # what the oldest open request waits for
	"$BURST" queue ls --json one | jq -r '[.[] | select(.state == "waiting")][0].why // ""'
}
waits_for() { [[ "$(reason)" = *"$1"* ]]; }

# A request with a time to spare waits for as much work as a cold start is worth, and starts when its time is near.
t_a_request_waits_for_work_that_fills_a_pod() {
	REHEARSE='boot_delay = "4s";'
	rehearse
	job_in one 2
	burst submit one --quiet 0 --max-wait 8s
	is "$STATUS" 0 "submit ($(cat err.txt))"
	wait_for 6 "it to wait for work" waits_for "of work so far"
	is "$(ledger "select count(*) from run")" 0 "runs so far"
	wait_for 60 "its run" all_done
	is "$(ledger "select count(*) from run where status = 'done'")" 1 runs
	is "$(ledger "select count(*) from run r join request q on q.run = r.id where r.started_ms - q.created_ms < 7500")" 0 "runs before their time"
	wait_for 10 "the client to end" no_queue
}
# A warm pod has no cold start to pay for: the same request starts at once, and takes the pod over.
t_a_request_starts_at_once_where_a_pod_is_warm() {
	allow_volumes v
	REHEARSE='boot_delay = "4s";'
	rehearse
	job_in one 2
	job_in two 2 'keep_warm = "40s";'
	burst submit one --quiet 0 --max-wait 60s
	is "$STATUS" 0 "submit ($(cat err.txt))"
	wait_for 20 "it to wait for work" waits_for "of work so far"
	run_in two
	is "$STATUS" 0 "the run that leaves a pod ($(cat err.txt))"
	wait_for 25 "the run of the request" all_done
	is "$(ledger "select count(*) from run where status = 'done' and type != 'keep'")" 2 runs
	is "$(creates)" 1 "pods created"
	is "$(ledger "select count(*) from pod a join run r on r.id = a.run where r.job = 'one' and a.handed_from != ''")" 1 "pods that the request's run took over"
	wait_for 10 "the client to end" no_queue
}
# The plan of a run that takes a kept pod over is without its boot, so what the run was planned to take is what it took.
t_a_run_is_planned_with_the_kept_pod() {
	allow_volumes v
	REHEARSE='boot_delay = "5s";'
	rehearse
	job_in one 2 "$KEEP"
	job_in two 2
	run_in one
	wait_for 10 "the pod to be kept" kept_now
	burst plan two/burst.cfg --json
	is "$(json '.pick.makespan_p50_s > 0 and .pick.makespan_p50_s < 5')" true "the plan's time is below a boot ($(json .pick.makespan_p50_s))"
	run_in two
	is "$STATUS" 0 "the second run ($(cat two.err))"
	is "$(ledger "select count(*) from pod p join run r on r.id = p.run where r.job = 'two' and p.handed_from != ''")" 1 "pods taken over"
	is "$(ledger "select planned_ms between 1 and 4999 from run where job = 'two'")" 1 "planned without a boot ($(ledger "select planned_ms from run"))"
	has two.err "; with pods that are kept)"
}
# A deadline before any pod could boot is kept with the pod that is up, and refused once that is gone.
t_a_kept_pod_keeps_a_deadline() {
	allow_volumes v
	REHEARSE='boot_delay = "15s";'
	rehearse
	job_in one 2 'keep_warm = "60s";'
	job_in two 2 'deadline = "14s";'
	job_in three 2 'deadline = "14s";'
	run_in one
	wait_for 10 "the pod to be kept" kept_now
	burst plan two/burst.cfg
	is "$STATUS" 0 "plan ($(tail -n 1 err.txt))"
	run_in two
	is "$STATUS" 0 "run ($(tail -n 1 two.err))"
	wait_for 20 "the pod to be gone" all_over
	burst plan three/burst.cfg
	is "$STATUS" 5 "plan without a kept pod ($(tail -n 1 err.txt))"
	has err.txt "booting a pod alone takes "
}
# The pod was rented when an hour cost a tenth of what it costs now: that is what it goes on to cost. A plan with saved offers knows it, too.
t_a_kept_pod_is_planned_at_its_own_price() {
	local live way
	allow_volumes v
	job_in one 2 'keep_warm = "60s";'
	job_in two 2
	sed -i 's/price_per_hour = 0.69/price_per_hour = 6.90/' two/burst.cfg
	(cd two && "$BURST" offers --json >../offers.json 2>/dev/null)
	run_in one
	wait_for 10 "the pod to be kept" kept_now
	for way in "" "--offers offers.json"; do
		# shellcheck disable=SC2086 # words
		burst plan two/burst.cfg --json $way
		is "$STATUS $(json '.pick.price_usd_hour, .pick.pods, .warm_pods' | xargs)" "0 0.69 1 1" "the plan $way ($(tail -n 1 err.txt))"
		live=${live:-$(json .pick.cost_usd)}
		is "$(json .pick.cost_usd)" "$live" "its cost $way"
	done
	schema plan
	run_in two
	is "$STATUS" 0 "the second run ($(tail -n 1 two.err))"
	is "$(ledger "select p.price_microusd_h, r.planned_microusd from pod p join run r on r.id = p.run where r.job = 'two'")" \
		"690000|$(jq -n "$live * 1e6 | round")" "price and planned cost"
	has two.err "; with pods that are kept)"
}
# A budget that is spent before any pod could boot is kept with the pod that is up.
t_a_kept_pod_keeps_a_budget() {
	local command
	allow_volumes v
	job_in one 2 'keep_warm = "60s";'
	job_in two 2 'lease = "60s";'
	job_in three 2 'lease = "60s";'
	run_in one
	wait_for 10 "the pod to be kept" kept_now
	ledger "update pod set create_ms = create_ms - 600000, rented_ms = rented_ms - 600000 where handed_to != ''" # as if it had booted for ten minutes
	burst plan two/burst.cfg --max-cost 0.05 --json
	is "$STATUS $(json .verdict)" "0 found" "plan ($(tail -n 1 err.txt))"
	run_in two --max-cost 0.05
	is "$STATUS" 0 "run ($(tail -n 1 two.err))"
	is "$(creates)" 1 "pods created"
	wait_for 70 "the pod to be gone" all_over
	for command in plan run; do
		burst $command three/burst.cfg --max-cost 0.05
		is "$STATUS" 5 "$command without a kept pod ($(tail -n 1 err.txt))"
		has err.txt "is spent before a pod is ready"
	done
}
t_the_plan_counts_warm_pods() {
	allow_volumes v
	job_in one 2 "$KEEP"
	job_in two 2
	run_in one
	wait_for 10 "the pod to be kept" kept_now
	burst plan two/burst.cfg
	is "$STATUS" 0 "plan ($(cat err.txt))"
	has out.txt "warm: 1 pod is kept for the next run"
	burst plan two/burst.cfg --json
	is "$(json .warm_pods)" 1 "warm_pods"
	schema plan
	sed -i '1i pod = { cpu = 2; };' two/burst.cfg
	burst plan two/burst.cfg --json
	is "$(json .warm_pods)" 0 "warm_pods for another kind of pod ($(cat err.txt))"
	burst cancel "$(keeper)"
	is "$STATUS" 0 "cancel ($(cat err.txt))"
}
all_done() { [ "$(ledger "select count(*) from request where state in ('pending', 'running')")" = 0 ]; }
no_queue() { ! pgrep -f -- "queue run $T/" >/dev/null; }

run_tests "$@"
