#!/bin/bash
# queue_plan.sh - one plan for all jobs that wait: which share pods, when each starts.
. "$(dirname "$0")/lib.sh"
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/queue_lib.sh"
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/pooled_lib.sh"

submit_in() { # submit_in FOLDER [FLAG...]
	burst submit "$1" --quiet 1h "${@:2}"
	is "$STATUS" 0 "submit of $1 ($(cat err.txt))"
}
group_of() { json ".jobs[] | select(.job == \"$1\") | .group"; }

# Two jobs that need the same pods share them; a job that needs another kind of pod does not.
t_jobs_of_one_kind_share_pods() {
	allow_volumes v
	REHEARSE='boot_delay = "20s";'
	rehearse
	job_in one 3
	job_in two 4
	job_in other 3 'pod = { cpu = 2; };'
	submit_in one --by 3h
	submit_in two --by 2h
	submit_in other --by 3h
	burst queue plan --json
	is "$STATUS" 0 "queue plan ($(cat err.txt))"
	schema queue_plan
	is "$(json '.groups | length')" 2 "groups ($(cat out.txt))"
	is "$(group_of one)" "$(group_of two)" "the group of two jobs of one kind"
	[ "$(group_of one)" != "$(group_of other)" ] || complain "another kind of pod is shared"
	is "$(json '[.groups[] | select(.jobs | length == 2) | .jobs[] | sub(".*/(?<f>[^/]*)/burst.cfg"; "\(.f)")] | join(" ")')" "two one" "the order, by deadline"
	is "$(json '.score.cost_usd < .one_by_one.cost_usd')" true "what it saves"
	is "$(json '.exact')" true "exact"
	burst queue plan
	has out.txt "GROUP"
	has out.txt "each job on its own pods: "
	is "$(ledger "select count(*) from run")" 0 "runs: it rents nothing"
	burst queue rm --all
	wait_for 20 "the clients to end" no_runner
	burst queue plan --json
	schema queue_plan
	is "$(json '.jobs | length')" 0 "jobs of an empty queue"
	burst queue plan one
	is "$STATUS" 2 "plan with an argument"
}

# The deadline of a config counts as --by does, if it is a time of day.
t_the_deadline_of_a_config_counts() {
	local at=$((($(date +%s) + 5 * 3600) / 60 * 60))
	allow_volumes v
	REHEARSE='boot_delay = "20s";'
	rehearse
	job_in one 3 "deadline = \"$(date -d "@$at" +%H:%M)\";"
	job_in two 3 'deadline = "50m";'
	submit_in one --by 9h
	submit_in two --by 9h
	burst queue plan --json
	is "$STATUS" 0 "queue plan ($(cat err.txt))"
	schema queue_plan
	is "$(json '.jobs[] | select(.job == "one") | .by | sub("[.][0-9]+"; "") | fromdate')" "$at" "when the first should be done"
	is "$(json '.jobs[] | select(.job == "two") | (.by | sub("[.][0-9]+"; "") | fromdate) > now + 8 * 3600')" true "a deadline that counts from the start lets it wait"
	burst plan one/burst.cfg --json
	schema plan
	is "$(json '.due_at | sub("[.][0-9]+"; "") | fromdate')" "$at" "due"
	burst queue rm --all
	wait_for 20 "the clients to end" no_runner
}

# A deadline that cannot be kept, a budget that pays for nothing, a config with a mistake: one line each.
t_what_cannot_be_kept_is_told() {
	REHEARSE='boot_delay = "20s";'
	rehearse
	JOB='estimate = { once = 2500.0; longest = 0.0; each = 0.0; };' job_in late 3
	job_in poor 3
	sed -i 's|caps = {|caps = { max_cost = 0.0001;|; s|max_cost = 0.0001; max_cost = [0-9.]*;|max_cost = 0.0001;|' poor/burst.cfg
	job_in wrong 3
	submit_in late --by 36m # later than half an hour, so that it does not start at once
	submit_in poor --by 2h
	submit_in wrong --by 2h
	sed -i '1i nonsense = 1;' wrong/burst.cfg
	burst queue plan
	is "$STATUS" 0 "queue plan ($(cat err.txt))"
	grep -q '^late: .* late: no plan is done by ' out.txt || complain "the deadline ($(cat out.txt))"
	has out.txt 'poor: its caps.max_cost ($0.00010) pays for no plan'
	has out.txt 'nonsense'
	burst queue plan --json
	schema queue_plan
	is "$(json '.score.left_out')" 1 "left out"
	is "$(json '[.jobs[].problem] | join(",")')" "late,budget,not planned" "problems"
	burst queue rm --all
	wait_for 20 "the clients to end" no_runner
}

# ---- the queue's client follows the plan ----

slow_guessed_in() { # slow_guessed_in FOLDER N [CONFIG...]: half a second each, as its estimate says
	slow_in "$@"
	sed -i 's/check = { enabled = false; };/& estimate = { once = 0.5; longest = 0.0; each = 0.005; };/' "$1/burst.cfg"
}
reason_in() { "$BURST" queue ls --json "$1" | jq -r '[.[] | select(.state == "waiting")][0].why // ""'; }
waits_in() { [[ "$(reason_in "$1")" = *"$2"* ]]; } # waits_in FOLDER WORDS

# The later deadline waits for the pod of the run that is at work; another kind of pod does not.
t_a_request_waits_for_the_pod_of_a_run() {
	allow_volumes v
	REHEARSE='boot_delay = "3s";'
	rehearse
	slow_guessed_in one 30
	slow_guessed_in two 4
	slow_guessed_in other 4 'pod = { cpu = 2; };'
	burst submit one --quiet 0
	is "$STATUS" 0 "submit of one ($(cat err.txt))"
	wait_for 40 "a file of the first" file_count one/out 1
	burst submit two --quiet 0 --by 2h
	burst submit other --quiet 0 --by 2h
	wait_for 30 "the second to wait for the pod" waits_in two "it shares the pods of run "
	wait_for 30 "another kind to wait for work" waits_in other "of work so far"
	is "$(ledger "select count(*) from run")" 1 "runs so far"
	wait_for 60 "the second to be done" are "state = 'done'" 2
	is "$(creates)" 1 "pods created"
	is "$(ledger "select count(*) from pod a join run r on r.id = a.run where r.job = 'two' and a.handed_from != ''")" 1 "pods that the second took over"
	is "$(file_count one/out 30 && file_count two/out 4 && echo all)" all "files"
	burst queue rm --all
	wait_for 20 "all to be over" all_over
	wait_for 20 "the clients to end" no_runner
	no_gap
}

# Two queues that both wait have one plan: the later one waits for the pods of the other. A price that moves is in the next plan.
t_two_queues_that_wait_have_one_plan() {
	allow_volumes v
	REHEARSE='boot_delay = "20s";'
	rehearse
	slow_guessed_in one 4
	slow_guessed_in two 4
	burst submit one --quiet 0 --by 2h
	burst submit two --quiet 0 --by 3h
	wait_for 40 "the first to wait for work" waits_in one "of work so far"
	wait_for 100 "the second to wait for the pods of the first" waits_in two "it shares the pods of the job in one"
	is "$(ledger "select count(*) from run")" 0 "runs"
	burst queue plan --json
	is "$(json '[(.groups | length), (.groups[0].jobs | length)] | tostring')" "[1,2]" "one group of two"
	local before
	before=$(json .score.cost_usd)
	sed -i 's/price_per_hour = [0-9.]*/price_per_hour = 1.38/' one/burst.cfg two/burst.cfg
	burst queue plan --json
	is "$(json ".score.cost_usd / $before * 100 | round")" 200 "cost at twice the price, in hundredths"
	burst queue rm --all
	wait_for 20 "the clients to end" no_runner
}

run_tests "$@"
