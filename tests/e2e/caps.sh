#!/bin/bash
# caps.sh - caps over runs: what a day and a month may cost, of all runs and of one project's.
. "$(dirname "$0")/lib.sh"

own() { # own LINE...: one's own file
	mkdir -p "$XDG_CONFIG_HOME/burst"
	printf '%s\n' "$@" >"$XDG_CONFIG_HOME/burst/burst.cfg"
}
price() { sed -i "s/price_per_hour = 0.69/price_per_hour = $1/" burst.cfg; }
spent() { # in micro-dollars, by the ledger
	ledger "SELECT coalesce(sum(cost_microusd), 0) FROM pod"
}
time_is() { # time_is SECONDS: sets a time zone in which the day began so many seconds ago
	local east=$((($1 - $(date -u +%s) % 86400 + 2 * 86400) % 86400))
	# POSIX has the sign turned round: what is added to local time to get UTC
	TZ=$(printf 'XXX-%d:%02d:%02d' $((east / 3600)) $((east / 60 % 60)) $((east % 60)))
	export TZ
}
of_the_day() { # of_the_day N: dollars of the Nth day by the ledger, the newest first
	"$BURST" ledger --by day --json | jq ".[$(($1 - 1))].cost_usd // 0"
}

slow_job() { # slow_job N: a command of a second for each of N segments
	cat >burst.cfg <<-E
		provider = "local";
		caps = { max_cost = 1.00; max_duration = "10m"; };
		job = { name = "e2e"; type = "tts"; engine = "test"; input = "script.jsonl"; output = "out"; check = { enabled = false; };
			worker = "SLOW=1 sh \"\$BURST_CODE/worker.sh\""; };
		code = { path = "code"; };
		providers = { local = { price_per_hour = 20; }; };
	E
	script_lines "$1"
	mkdir -p code
	cp "$ROOT/tests/workers/worker.sh" code/
}

t_plan_and_status_say_what_is_left() {
	script_lines 2
	config
	price 36
	own 'caps = { per_day = 2.00; per_month = 0.80; };'
	burst status
	has out.txt '| $0.00 of $2.00 today'
	burst run
	is "$STATUS" 0 "exit status ($(tail -n 1 err.txt))"
	echo '{"id":"n1","text":"This one is new."}' >>script.jsonl
	burst plan
	is "$STATUS" 0 "exit status ($(tail -n 1 err.txt))"
	has out.txt 'of $2.00 today are spent or reserved (caps.per_day), $1.9'
	has out.txt 'of $0.8000 this month are spent or reserved (caps.per_month), $0.7'
	has err.txt 'this run may cost $0.7'
	burst plan --json
	schema plan
	is "$(json '.caps | map(.cap + " " + .of) | join(",")')" "per_day all,per_month all" "caps of the plan"
	is "$(json '.caps[1] | (.limit_usd - .spent_usd - .reserved_usd - .left_usd) | fabs < 0.000002')" true "what is left is the rest"
	burst status --json
	schema status
	is "$(json .per_day_usd)" 2 "cap of the day in status"
	own 'caps = { per_day = 0.01; };'
	burst plan
	is "$STATUS" 5 "nothing is left: exit status ($(tail -n 1 err.txt))"
	has out.txt pick # it is shown all the same
	has err.txt 'of $0.0100 today are spent or reserved (caps.per_day): wait until'
	burst plan --json
	schema plan
	is "$STATUS" 5 "as JSON: exit status"
	own 'caps = { per_dya = 1; };' # a prompt does not break by it
	burst status
	is "$STATUS" 0 "status beside a broken file"
	is "$(cat err.txt)" "" "what status says of it"
}

t_a_day_has_its_dollars() {
	script_lines 2
	config
	price 36 # a cent a second
	own 'caps = { per_day = 0.50; };'
	burst run --json
	is "$STATUS" 0 "exit status ($(tail -n 1 err.txt))"
	has err.txt 'are spent or reserved (caps.per_day): this run may cost $0.5000 instead of its caps.max_cost of $1.00'
	is "$(json '.cost_usd > 0 and .cost_usd <= 0.5')" true "within the day ($(json .cost_usd))"
	local first
	first=$(spent)
	own "caps = { per_day = $(jq -n "$first / 1e6 + 0.0005"); };" # 50 ms of a pod: any cold start costs more
	echo '{"id":"n0","text":"This one is new, too."}' >>script.jsonl
	burst run --json
	is "$STATUS" 5 "a little is left: exit status ($(tail -n 1 err.txt))"
	has err.txt 'burst: $0.00050 of caps.per_day ($0.0'
	has err.txt ' is left, which is spent before a pod is ready'
	own "caps = { per_day = 0.01; };" # as if it had been spent
	echo '{"id":"n1","text":"This one is new."}' >>script.jsonl
	burst run --json
	is "$STATUS" 5 "exit status ($(tail -n 1 err.txt))"
	has err.txt '/.config/burst/burst.cfg:1: $0.0'
	has err.txt 'of $0.0100 today are spent or reserved (caps.per_day): wait until '
	has err.txt 'or raise caps.per_day; nothing was rented'
	is "$(json .status)" capped status
	is "$(json .cost_usd)" 0 cost
	is "$(spent)" "$first" "spent after the refusal"
	is "$(ledger 'SELECT count(*) FROM run')" 1 "runs in the ledger"
	is "$(find state/runs -mindepth 1 -maxdepth 1 | wc -l)" 1 "folders of runs"
	rm -r out # what costs nothing is never refused
	own
	burst run
	own "caps = { per_day = 0.01; };"
	burst run
	is "$STATUS" 0 "nothing to render: exit status"
}

t_over_midnight() {
	slow_job 45
	own 'caps = { per_day = 0.20; };'
	time_is $((86400 - 10)) # the day changes while it renders
	burst run --json
	is "$STATUS" 5 "exit status ($(tail -n 1 err.txt))"
	is "$(json .status)" capped status
	has err.txt 'today are spent or reserved (caps.per_day): this run may cost $0.2000'
	has err.txt '; its cap was the remainder of caps.per_day ($0.2000)' # why it ended
	is "$(json '.cost_usd > 0.1 and .cost_usd <= 0.20')" true "spending within the day ($(json .cost_usd))"
	is "$("$BURST" ledger --by day --json | jq length)" 2 "days"
	local pods new first
	pods=$(ledger 'SELECT count(*) FROM pod')
	new=$(of_the_day 1) first=$(of_the_day 2)
	# the new day has paid for its own part only, and it is what plan says
	burst plan --json
	is "$(json ".caps[0].spent_usd - $new | fabs < 0.000002")" true "what the day has cost ($(json .caps[0].spent_usd), ledger $new and $first)"
	# on with it, on the new day's rest and no more
	burst resume --json
	is "$STATUS" 5 "resumed: exit status ($(tail -n 1 err.txt))"
	is "$(of_the_day 2)" "$first" "the first day"
	is "$(of_the_day 1 | jq '. <= 0.20')" true "the second day ($(of_the_day 1))"
	# nothing of use is left: it fetches and rents nothing, and still ends well-behaved
	own "caps = { per_day = $new; };"
	pods=$(ledger 'SELECT count(*) FROM pod')
	burst resume --json
	is "$STATUS" 5 "nothing left: exit status ($(tail -n 1 err.txt))"
	has err.txt 'does not pay for one pod: raise it, or choose a cheaper GPU; its cap was the remainder of caps.per_day'
	is "$(ledger 'SELECT count(*) FROM pod')" "$pods" "pods rented"
	own
	sed -i 's/price_per_hour = 20/price_per_hour = 1/' burst.cfg
	burst resume --json
	is "$STATUS" 0 "without a cap: exit status ($(tail -n 1 err.txt))"
	is "$(wavs)" 45 files
}

t_a_delivery_is_within_what_its_run_has_reserved() {
	script_lines 2
	config 'deliver = { run = "echo x >there"; outputs = ["there"]; };'
	own 'caps = { per_day = 1.00; };'
	sed -i 's/max_duration = "10m"/max_duration = "10m"; per_day = 1.00/' burst.cfg
	burst run --json
	is "$STATUS" 0 "exit status ($(tail -n 3 err.txt))"
	is "$(json .deliver.status)" "done" "the delivery"
	is "$(cat out/there)" x "what it brought"
	local all
	all=$(spent)
	echo '{"id":"n1","text":"This one is new."}' >>script.jsonl
	burst plan --json
	is "$(json '[.caps[] | .spent_usd * 1e6 | round] | join(" ")')" "$all $all" "what the day and the project have cost, deliveries too"
}

t_pods_of_a_dead_client_are_kept() { # what they may still cost stays theirs
	slow_job 30
	own 'caps = { per_day = 0.34; };'
	burst_bg run
	wait_for 40 "half of the files" file_count out 16
	kill -9 "$PID"
	burst_wait
	own 'caps = { per_day = 0.01; };'
	burst resume --json
	is "$STATUS" 0 "resume ($(tail -n 2 err.txt))"
	is "$(wavs)" 30 files
	is "$(ledger 'SELECT count(*) FROM pod')" 1 "pods"
}

request_is() { [ "$(ledger "select count(*) from request where $1")" = 1 ]; }
t_a_queued_request_waits_for_money() {
	script_lines 2
	config
	own 'caps = { per_day = 0; };'
	burst submit --quiet 0
	wait_for 30 "the refusal" request_is "tries = 1 and state = 'pending'"
	burst queue ls
	has out.txt 'next try at'
	own
	burst submit --quiet 0 # a new request does not wait for that
	wait_for 40 "the render" request_is "tries = 1 and state = 'done'"
	is "$(wavs)" 2 files
	wait_for 20 "the queue's client to end" no_processes
}

t_eight_at_once() {
	local i pids='' fine=0 capped=0
	own 'caps = { per_day = 0.50; };'
	for i in 1 2 3 4 5 6 7 8; do
		mkdir "p$i"
		cd "p$i" || return
		slow_job 6
		sed -i 's/max_cost = 1.00/max_cost = 0.25/' burst.cfg
		cd ..
	done
	for i in 1 2 3 4 5 6 7 8; do
		(cd "p$i" && timeout 90 "$BURST" run >out.txt 2>err.txt </dev/null) &
		pids="$pids $!"
	done
	for i in $pids; do
		STATUS=0
		wait "$i" || STATUS=$?
		case $STATUS in
		0) fine=$((fine + 1)) ;;
		5) capped=$((capped + 1)) ;;
		*) complain "exit status $STATUS ($(tail -qn 1 p*/err.txt | head -n 3))" ;;
		esac
	done
	[ $fine -ge 2 ] || complain "only $fine of 8 ran"
	[ $capped -ge 1 ] || complain "all of them ran"
	[ "$(spent)" -le 500000 ] || complain "the day cost $(spent) micro-dollars"
	grep -q 'is reserved by [12] runs* in progress' p*/err.txt || complain "no refusal names the runs under way"
	is "$(ledger "SELECT count(*) FROM run WHERE status != 'done'")" 0 "runs that did not end well"
}

run_tests "$@"
