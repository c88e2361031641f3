#!/bin/bash
# ledger.sh - what the ledger says of runs and their cost.
. "$(dirname "$0")/lib.sh"

t_ledger_of_an_older_burst() { # refused, unchanged, in one line each; reap goes by markers
	local command
	burst ledger --json
	ledger "PRAGMA user_version = 3" || complain "no other version"
	cp "$BURST_STATE_DIR/ledger.db" old.db
	for command in "ledger" "ps" "status" "reap"; do
		burst $command
		is "$(grep -c "ledger.db: was written by an older burst (version 3, this one reads [0-9]*): move it aside" err.txt)" 1 \
			"lines of $command ($(head -n 3 err.txt))"
		cmp -s "$BURST_STATE_DIR/ledger.db" old.db || complain "$command changed it"
	done
	mv "$BURST_STATE_DIR/ledger.db" aside.db
	rm -f "$BURST_STATE_DIR"/ledger.db-*
	burst ps
	is "$STATUS" 0 "nothing bills"
}

t_ledger_sums() {
	burst ledger --by day --json
	is "$STATUS $(cat out.txt)" "0 []" "nothing ever ran"
	script_lines 2
	config
	burst run
	# a pod of two hours at $1 an hour that was created an hour before midnight in New York
	ledger "update pod set create_ms = 1795320000000, released_ms = 1795327200000, billed_ms = 7200000, cost_microusd = 2000000"
	export TZ=America/New_York
	burst ledger --by day --json
	schema ledger_by
	is "$(json '.[] | "\(.day) \(.runs) \(.pods) \(.billed_seconds) \(.cost_usd)"')" $'2026-11-22 1 1 3600 1\n2026-11-21 1 1 3600 1' "by day"
	TZ=UTC burst ledger --by day --csv
	is "$(cut -d, -f 1-4,7 out.txt)" $'day,runs,pods,billed_seconds,cost_usd\n2026-11-22,1,1,7200.000,2.000000' "by day in UTC"
	burst ledger --by project --json
	schema ledger_by
	is "$(json '.[] | "\(.project) \(.cost_usd)"')" "$PWD 2" "by project"
	burst ledger --by provider
	has out.txt "local"
	burst ledger --by gpu --csv
	is "$(wc -l <out.txt) $(cut -d, -f 7 out.txt | tail -n 1)" "2 2.000000" "by GPU"
	burst ledger --csv
	is "$(wc -l <out.txt) $(tail -n 1 out.txt | cut -d, -f 4,8)" "2 done,2" "the runs"
	burst ledger --by week
	is "$STATUS" 2 "an unknown word"
	has err.txt "day, project, gpu or provider"
	burst ledger --by day --json --csv
	is "$STATUS" 2 "two forms at once"
}

t_reconcile() { # this machine's own pods have a vendor too, which knows how long they lived
	burst ledger --reconcile --json
	is "$STATUS $(cat out.txt)" "0 []" "nothing ever ran"
	script_lines 3
	config 'pods = 2;'
	burst run
	RUN=$("$BURST" ledger --json | jq -r '.[0].run')
	burst ledger --reconcile --json
	is "$STATUS" 0 "exit status ($(tail -n 2 err.txt))"
	schema reconcile
	is "$(json '[.[] | "\(.run) \(.state) \(.billed_vendor_is) \(.cost_beside_usd)"] | unique | .[]')" "$RUN agrees reported 0" "the pods"
	is "$(json 'all(.[]; .cost_vendor_usd > 0 and .cost_vendor_usd <= .cost_usd)')" true "dollars"
	burst ledger "$RUN" --reconcile
	is "$STATUS" 0 "one run"
	has out.txt ": agrees"
	burst ledger "$RUN"
	grep -qE '^vendor +[0-9.ms]+, <?\$[0-9.]+ for [12] pods?; the larger of each bill and burst.s count: <?\$[0-9.]+ \(see --reconcile\)$' out.txt ||
		complain "which figure counts: $(grep ^vendor out.txt)"
	burst ledger nosuch --reconcile
	is "$STATUS" 2 "a run that is none"
	burst ledger --reconcile --most 3
	is "$STATUS" 2 "a flag of the list"
	# what its vendor has forgotten stays as it was said
	rm -rf state/local/ended
	burst ledger "$RUN" --reconcile --json
	is "$STATUS" 0 "no record any more"
	schema reconcile
	is "$(json 'all(.[]; .billed_vendor_s > 0)')" true "what was said"
}

t_what_a_lost_create_may_have_cost() { # counts against the cap of whoever resumes, and is no cost of the run's
	script_lines 3
	REHEARSE='fail_rents = 1;' config
	burst run --json
	is "$STATUS" 0 "exit status ($(tail -n 2 err.txt))"
	is "$(ledger "select count(*) from pod where state = 'failed'")" 1 "creates that failed"
	local hours
	for hours in 2 1; do # at $0.69, within a cap of $1: as if its answer had been lost, and it had lived for so long
		rm -f out/s002.wav
		ledger "update run set status = 'partial'; update pod set released_ms = create_ms + $hours * 3600000, price_microusd_h = 690000 where state = 'failed'"
		burst resume --json
		is "$STATUS" $((hours == 2 ? 5 : 0)) "exit status after $hours h ($(tail -n 2 err.txt))"
	done
	is "$(json '.cost_usd < 0.1')" true "the run's cost, $(json .cost_usd)"
}

run_tests "$@"
