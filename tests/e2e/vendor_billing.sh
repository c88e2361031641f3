#!/bin/bash
# vendor_billing.sh - `burst ledger --reconcile` compares what VENDOR (modal, runpod or vast) bills with what burst counts, and says so when
# there is too much on the bill or the key is wrong. tests/cloud/VENDOR/billing.sh has the cases of one vendor alone.
# shellcheck disable=SC2317 # c_ functions are called by names put together
. "$(dirname "$0")/lib.sh"
# shellcheck source=/dev/null
. "$ROOT/tests/cloud/$VENDOR/client.sh"
# shellcheck source=/dev/null
. "$ROOT/tests/cloud/$VENDOR/billing.sh"

reconciled() { # reconciled EXIT-STATUS STATE WHY: of the last pod there is
	burst ledger --reconcile --json
	is "$STATUS" "$1" "exit status ($(tail -n 2 err.txt | tr '\n' '|'))"
	schema reconcile
	[ -z "$ONE_POD" ] || is "$(json length)" 1 "pods"
	is "$(json '.[-1].state')" "$2" "state ($(json '.[-1].why'))"
	json '.[-1].why' >why.txt
	grep -qE -- "$3" why.txt || complain "it says \"$(cat why.txt)\", want \"$3\""
}
about() { # about GOT WANT OFF WHAT: numbers
	jq -en --argjson got "$1" --argjson want "$2" --argjson off "$3" '($got - $want) | fabs <= $off' >/dev/null ||
		complain "$4: got $1, want about $2"
}

c_too_much() {
	rendered
	billed_longer 600
	reconciled 1 excess "$TOO_LONG"
	has err.txt "warning: pod $ID of $VENDOR: "
	cp err.txt reconcile-err.txt
	burst ledger --reconcile
	is "$STATUS" 1 "for people"
	has out.txt "$ID: TOO MUCH: "
	cp reconcile-err.txt err.txt
	still_too_much
}
c_the_larger_one_counts() { # our count and the bill stand side by side; sums and caps go by the larger one
	rendered
	cp out.txt run.json
	billed_longer 600
	burst ledger --reconcile --json
	cp out.txt bill.json
	burst ledger --json
	schema ledger
	is "$(json '.[0] | "\(.cost_usd) \(.cost_counted_usd) \(.billed_seconds)"')" \
		"$(jq -r '.[0].cost_vendor_usd' bill.json) $(jq -r '"\(.cost_counted_usd) \(.billed_seconds)"' run.json)" "the run"
	burst ledger
	has out.txt COUNTED
	burst ledger "$RUN" --json
	schema run
	is "$(json '.pods[0] | .cost_usd == .cost_vendor_usd and .cost_counted_usd < .cost_usd and .billed_seconds < .billed_vendor_s')" true "its pod"
	burst ledger "$RUN"
	grep -qE 'by the vendor, \$[0-9.]+ counted here' out.txt || complain "ledger RUN says $(grep ^spent out.txt)"
	burst ledger --by provider --json
	schema ledger_by
	is "$(json '.[0].cost_usd')" "$(jq '.[0].cost_vendor_usd' bill.json)" "the sum"
	is "$(json '.[0].cost_counted_usd')" "$(jq .cost_counted_usd run.json)" "the sum of our counts"
	burst status --json
	is "$(json .today_usd)" "$(jq '.[0].cost_vendor_usd' bill.json)" "today"
	burst report -o report.html
	has report.html "(counted: "
	# a day's cap between the two is used up
	sed -i "s|caps = {|caps = { per_day = $(jq '.[0] | (.cost_usd + .cost_vendor_usd) / 2' bill.json);|" burst.cfg
	rm -rf out
	burst run --json
	is "$STATUS" 5 "a run beyond the day's cap ($(tail -n 1 err.txt))"
	is "$(ledger 'select count(*) from pod')" 1 "pods"
}
c_keys() {
	local key=${WRONG_KEY%%=*} right
	right=${!key}
	rendered
	export "$key=${WRONG_KEY#*=}"
	burst ledger --reconcile --json
	is "$STATUS" 3 "a wrong key"
	schema reconcile
	is "$(json '.[0].state')" not_asked "state"
	hasnt out.txt "${WRONG_KEY#*=}"
	export "$key=$right"
	other_keys
}
# shellcheck disable=SC2086 # words
t_what_is_billed() { cases $ITS_OWN_BILLS c_too_much c_the_larger_one_counts c_keys; }

run_tests "$@"
