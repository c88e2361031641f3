# billing.sh - what tests/e2e/vendor_billing.sh needs of Vast.ai, and what its charges may say.
# shellcheck shell=bash
# shellcheck disable=SC2034,SC2317 # used and called by vendor_billing.sh
rendered() { # one run on one pod; its id in $RUN, the pod's in $ID
	va_control settings "{\"charge_digits\":6,\"billing_lag_s\":${LAG_S:-0}}" >/dev/null
	script_lines 3
	va_config
	burst run --json
	is "$STATUS" 0 "run ($(tail -n 2 err.txt | tr '\n' '|'))"
	RUN=$(json .run)
	ID=$(json '.pods[0].id')
}
c_traffic_stands_beside_the_price() {
	rendered
	reconciled 0 agrees '^agrees'
	is "$(json '.[0].billed_vendor_is')" implied "whose seconds"
	about "$(json '.[0].cost_vendor_usd')" "$(va_control billing | jq '.[0].usd')" 0.000002 dollars
	about "$(json '.[0].cost_beside_usd')" 0.004 0.000002 traffic
}
c_not_yet() {
	LAG_S=300 rendered
	reconciled 0 not_yet '^no record yet; ask again after'
	va_control clock '{"advance_s":301}' >/dev/null
	reconciled 0 agrees '^agrees'
}
c_doctor_knows_the_purse() {
	script_lines 1
	va_config
	burst doctor
	has out.txt 'vast: balance $25.50'
	va_control settings '{"credit":0}' >/dev/null
	burst doctor
	is "$STATUS" 1 "doctor without credit"
	has out.txt "the account has no credit"
}

# ---- what vendor_billing.sh wants to know ----

ITS_OWN_BILLS="c_traffic_stands_beside_the_price c_not_yet c_doctor_knows_the_purse"
ONE_POD=yes # in each case
TOO_LONG='^billed for [0-9]+m[0-9]+s at '
billed_longer() { # billed_longer SECONDS: than it lived
	va_control pods/"$ID" "{\"billed_longer_s\":$1}" >/dev/null
}
still_too_much() { has err.txt "confirm that it is gone (\`burst reap\`, the vendor's console)"; }
WRONG_KEY=VAST_API_KEY=0000wrongwrongwrong0000
other_keys() {
	has err.txt "burst: vast: pod $ID: billing: HTTP 404 from Vast.ai: Invalid user key"
	env -u VAST_API_KEY timeout 60 "$BURST" ledger --reconcile >out.txt 2>err.txt </dev/null
	is "$?" 3 "no key"
	has err.txt "set VAST_API_KEY"
}
