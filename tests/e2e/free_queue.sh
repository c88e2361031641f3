#!/bin/bash
# free_queue.sh - pods that wait for their start without costing anything: what counts, what bounds the wait, and what remains when
# the client dies meanwhile. The pods are tests/rehearsal's queue_play.
. "$(dirname "$0")/lib.sh"

queued() { row_says "id != '' and run_ms > 0 and start_ms = 0"; }
free_until_now() { # what everything shows of a pod in the queue
	"$BURST" ps --json >ps.json
	is "$(jq -r '.[0] | "\(.phase) \(.cost_usd)"' ps.json)" "queued 0" "in the queue, by ps"
	is "$("$BURST" ledger --json | jq '.[0] | .billed_seconds + .cost_usd')" 0 "billed in the queue, by ledger"
}
sums_up() { # the phases of each pod of out.txt sum to its life by the ledger
	local lived
	lived=$(ledger 'select (gone_ms - create_ms) / 1000.0 from pod where create_ms > 0 order by seq' | jq -sc .)
	is "$(json "[[.pods[].phases | add], $lived] | transpose | map((.[0] - .[1]) | fabs < 0.01) | all")" true "phases sum to the life"
}
ended_free() { # STATUS: the run has ended, its one pod cost nothing
	is "$STATUS" "$1" "exit status ($(tail -n 2 err.txt))"
	is "$(ledger 'select billed_ms, cost_microusd, start_ms, state from pod')" "0|0|0|gone" "its bill"
	is "$(pods_left)" "" "pods left"
}

t_the_wait_counts_for_nothing() { # and the queue is longer than caps.max_duration
	script_lines 2
	QUEUE=25s config 'pods = 1;'
	sed -i 's/max_cost = 1.00; max_duration = "10m"/max_cost = 1.00; max_duration = "24s"/' burst.cfg
	burst_bg run --json
	wait_for 20 "a pod in the queue" queued
	free_until_now
	burst_wait
	is "$STATUS" 0 "exit status ($(tail -n 2 err.txt))"
	schema run
	is "$(json '.pods | length')" 1 "pods"
	is "$(json '.pods[0] | .phases.queue_s >= 24 and .billed_seconds < 24 and .billed_seconds > 0')" true "the wait is not billed ($(json '.pods[0] | "\(.billed_seconds) \(.phases.queue_s)"'))"
	is "$(json '.pods[0] | (.cost_usd - .billed_seconds * 0.69 / 3600) | fabs < 0.000002')" true "its cost"
	sums_up
	is "$(ledger 'select billed_ms <= gone_ms - start_ms + 999 and start_ms >= create_ms + 24000 from pod')" 1 "billed from the start"
	is "$("$BURST" ledger --json | jq '.[0].billed_seconds')" "$(json .billed_seconds)" "billed, by ledger"
	"$BURST" report >report.txt 2>&1 || complain "report: $(tail -n 1 report.txt)"
	has report.html queue
}

t_nothing_starts_within_wait() {
	script_lines 2
	QUEUE=1h config 'pods = 1; wait = "6s";'
	burst run --json
	ended_free 4
	is "$(json '"\(.cost_usd) \(.billed_seconds)"')" "0 0" "cost of the run"
	is "$(json '.pods[0].phases.queue_s >= 5')" true "the wait, by its phases"
	sums_up
	has err.txt "no usable pod could be rented within"
}

t_the_wait_is_planned_with() { # from what pods have waited before, and never as a cost
	script_lines 2
	QUEUE=8s config 'pods = 1;'
	burst plan
	has out.txt "queue unknown"
	burst run
	is "$STATUS" 0 "exit status ($(tail -n 2 err.txt))"
	rm -r out
	burst plan
	has out.txt "queue: about "
	has out.txt "which costs nothing (measured: 1 pod)"
	sed -i 's/price_per_hour = 0.69/price_per_hour = 0/' burst.cfg
	burst offers
	has out.txt "no price given"
	burst plan --explain
	has out.txt "no price given: queue_play names none"
}

t_no_price_is_never_0() { # whatever shows a cost: nobody knows what such a pod costs
	script_lines 2
	QUEUE=1s config 'pods = 1;'
	sed -i 's/price_per_hour = 0.69/price_per_hour = 0/' burst.cfg
	no_zero() { ! grep -q '\$0\.00' out.txt err.txt || complain "${command:-run}: $(grep -h '\$0\.00' out.txt err.txt)"; }
	burst run
	is "$STATUS" 0 "exit status ($(tail -n 2 err.txt))"
	has err.txt "queue_play: no price given, so caps on cost do not count these pods: set it in providers.queue_play"
	has err.txt "booting (no GPU, queue_play here, no price given)"
	no_zero
	id=$("$BURST" ledger --json | jq -r '.[0].run')
	for command in ps "ledger $id" ledger "ledger --by provider" "logs $id" offers plan "plan --explain"; do
		# shellcheck disable=SC2086 # words
		burst $command
		grep -q "no price" out.txt err.txt || [ "$command" = ps ] || complain "$command does not say so: $(head -n 3 out.txt)"
		no_zero
	done
	burst status
	has out.txt " today, beside pods without a price"
	is "$("$BURST" ledger "$id" --json | jq -c '[.unpriced_seconds == .billed_seconds, .billed_seconds > 0, .pods[0].unpriced_seconds > 0]')" '[true,true,true]' "the run's object"
	is "$("$BURST" offers --json | jq -c '[.[].price_usd_hour] | unique')" '[null]' "the price of offers"
	"$BURST" offers --json >offers.json
	burst plan --offers offers.json --json
	is "$(jq -c '.pick | [.price_usd_hour, .cost_usd, .usd_per_segment]' out.txt)" '[null,null,null]' "a plan with them"
	burst report --json
	is "$(jq -c '[.runs[0] | .unpriced_seconds, .pods[0].unpriced_seconds] | map(. > 0)' out.txt)" '[true,true]' "for the report page"
	burst report -o page.html
	node "$ROOT/tests/e2e/dom.mjs" page.html >out.txt 2>&1
	has out.txt "<b>no price</b>"
	no_zero
	rm -rf out
	QUEUE=1s config 'pods = 1;'
	burst run --json
	is "$(json '"\(.unpriced_seconds) \(.cost_usd > 0)"')" "0 true" "of a run with a price"
}

t_cancelled_in_the_queue() {
	script_lines 2
	QUEUE=1h config 'pods = 1;'
	burst_bg run
	wait_for 20 "a pod in the queue" queued
	"$BURST" cancel >cancel.txt 2>&1 || complain "cancel: $(tail -n 1 cancel.txt)"
	burst_wait
	ended_free 143
}

t_killed_in_the_queue_then_reap() {
	script_lines 2
	QUEUE=1h config 'pods = 1;'
	mkdir -p "$XDG_CONFIG_HOME/burst" # reap reads no project's file
	echo 'providers = { queue_play = { queue = "1h"; }; };' >"$XDG_CONFIG_HOME/burst/burst.cfg"
	burst_bg run
	wait_for 20 "a pod in the queue" queued
	kill_it
	burst reap
	ended_free 0
}

t_killed_in_the_queue_then_resume() { # it waits on, keeps its place, and bills from its start
	script_lines 2
	QUEUE=15s config 'pods = 1;'
	burst_bg run
	wait_for 20 "a pod in the queue" queued
	kill_it
	free_until_now
	burst resume --json
	is "$STATUS" 0 "exit status ($(tail -n 2 err.txt))"
	all_right 2
	is "$(ledger 'select count(*), min(start_ms >= create_ms + 14000), min(billed_ms < gone_ms - create_ms - 13000) from pod')" "1|1|1" "one pod, billed from its start"
}

t_detached_in_the_queue() { # run -d returns when the pod has started and has the queue
	script_lines 2
	QUEUE=6s config 'pods = 1;'
	burst run -d
	is "$STATUS" 0 "run -d ($(tail -n 2 err.txt))"
	row_says "start_ms > create_ms + 5000" || complain "it returned before its pod had started"
	burst attach
	is "$STATUS" 0 "attach ($(tail -n 2 err.txt))"
	all_right 2
	is "$(ledger 'select billed_ms < gone_ms - create_ms - 4000 from pod')" 1 "billed from its start"
}

t_a_lost_create_is_sent_again() { # under the same name, so nothing has to be looked for
	script_lines 2
	QUEUE=1s REHEARSE='lose_creates = 2;' config 'pods = 1;'
	burst run --json
	is "$STATUS" 0 "exit status ($(tail -n 2 err.txt))"
	has err.txt "the reply to a create was lost; sending it again"
	hasnt err.txt "looking for the pod"
	is "$(json '.pods | length')" 1 "pods"
	all_right 2
}

t_another_vendor_under_one_cap() { # after a quarter of wait, as the order says
	script_lines 2
	QUEUE=1h config 'pods = 1; wait = "24s";'
	sed -i 's/^provider = .*/provider = ["queue_play", "local"];/; s/providers = { /providers = { local = { price_per_hour = 0.69; }; /' burst.cfg
	burst run --json
	is "$STATUS" 0 "exit status ($(tail -n 2 err.txt))"
	is "$(json '[.pods[] | .provider + (if .cost_usd > 0 then " costs" else " free" end)] | join(",")')" "queue_play free,local costs" "pods"
	is "$(json '(.cost_usd - ([.pods[].cost_usd] | add)) | fabs < 0.000002')" true "cost of the run"
}

run_tests "$@"
