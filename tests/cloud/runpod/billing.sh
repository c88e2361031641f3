# billing.sh - what tests/e2e/vendor_billing.sh needs of RunPod: every way in which RunPod may reckon, and what a bill may say.
# shellcheck shell=bash
# shellcheck disable=SC2034,SC2317 # used and called by vendor_billing.sh
bills() { # bills SETTINGS: how the vendor reckons from now on
	rp_control settings "{\"billing\":$1}" >/dev/null
}
rendered() { # one run on one pod whose image takes some seconds to pull; its id in $RUN, the pod's in $ID
	rp_control settings "{\"boot\":{\"pull_ms\":${PULL_MS:-100}},\"billing\":{\"lag_s\":${LAG_S:-0}}}" >/dev/null
	script_lines 3
	rp_config
	burst run --json
	is "$STATUS" 0 "run ($(tail -n 2 err.txt | tr '\n' '|'))"
	RUN=$(json .run)
	ID=$(json '.pods[0].id')
}
as_billed() { # what burst made of the bill is what the vendor knows it to be
	local truth
	truth=$(rp_control billing | jq -c --arg id "$ID" '.[] | select(.id == $id)')
	about "$(json '.[0].billed_vendor_s')" "$(jq .seconds <<<"$truth")" 0.2 "seconds implied"
	about "$(json '.[0].cost_vendor_usd')" "$(jq .usd <<<"$truth")" 0.000002 "dollars"
	is "$(json '.[0].billed_vendor_is')" implied "whose seconds"
	is "$(ledger "select billed_vendor_ms, cost_vendor_microusd, vendor_asked_ms > gone_ms from pod")" \
		"$(json '"\(.[0].billed_vendor_s * 1000 | round)|\(.[0].cost_vendor_usd * 1e6 | round)|1"')" "the ledger"
}

# ---- four ways to reckon ----

AGAIN='; ask again after [0-9-]* ?[0-2][0-9]:15 UTC'
c_from_create_without_disk() {
	PULL_MS=6000 rendered
	reconciled 0 agrees "^agrees$AGAIN\$"
	as_billed
	is "$(json '.[0] | .price_usd_hour == .price_list_usd_hour and .cost_beside_usd == 0')" true "the disk is in the price"
}
c_from_create_with_disk() {
	bills '{"cost_with_disk":true}'
	PULL_MS=6000 rendered
	reconciled 0 agrees "^agrees$AGAIN\$"
	as_billed
	is "$(json '.[0] | .price_usd_hour == .price_list_usd_hour and .cost_beside_usd == 0')" true "the disk is in the price"
}
FROM_START='^the vendor bills [0-9.]+s less than burst counted'
c_from_running_without_disk() {
	bills '{"from":"running"}'
	PULL_MS=9000 rendered
	reconciled 0 differs "$FROM_START$AGAIN\$"
	as_billed
	is "$(json '.[0].billed_seconds - .[0].billed_vendor_s > 8')" true "the pull is not billed"
}
c_from_running_with_disk() {
	bills '{"from":"running","cost_with_disk":true}'
	PULL_MS=9000 rendered
	reconciled 0 differs "$FROM_START$AGAIN\$"
	as_billed
}

# ---- what else a bill may say ----

c_not_yet() {
	LAG_S=300 rendered
	is "$(json '.pods[0].billed_vendor_s')" null "nothing on the bill at the end of the run"
	reconciled 0 not_yet '^no record yet; ask again after [0-9-]* ?[0-2][0-9]:15 UTC$'
	is "$(json '.[0] | "\(.billed_vendor_s) \(.billed_vendor_is) \(.cost_vendor_usd) \(.difference_usd) \(.final)"')" \
		"null null null null false" "what is not known"
	burst ledger --reconcile
	is "$STATUS" 0 "for people"
	has out.txt "$ID: no record yet; ask again after"
	rp_control clock '{"advance_s":301}' >/dev/null
	reconciled 0 agrees '^agrees'
	as_billed
	burst ledger --reconcile "$RUN"
	is "$STATUS" 0 "for people"
	has out.txt implied
	has out.txt "$ID: agrees"
	burst ledger "$RUN" --json
	schema run
	is "$(json '.pods[0] | .billed_vendor_s > 0 and .cost_vendor_usd > 0')" true "it stands beside our count"
}
c_every_time_is_kept() { # POST, 201, startedAt, DELETE sent and accepted, 404
	PULL_MS=2000 rendered
	is "$(ledger 'select create_ms > 0 and rented_ms >= create_ms and running_ms > rented_ms and release_ms > running_ms and
		released_ms >= release_ms and gone_ms >= released_ms from pod')" 1 "the times of the pod"
	is "$(ledger 'select vendor_started_ms from pod')" "$(rp_get "$ID" '.started_ms / 1000 | floor * 1000')" "startedAt"
	is "$(ledger 'select price_microusd_h, price_list_microusd_h from pod')" "695480|695480" "its prices"
	is "$(ledger 'select billed_ms from pod')" "$(ledger 'select (released_ms - create_ms + 999) / 1000 * 1000 from pod')" "billed by our count"
}
c_the_last_word() { # a day later the bill is final, and is not asked for again
	rendered
	rp_control pods/"$ID" '{"bill_shift_s":[-172800,-172800]}' >/dev/null
	ledger 'update pod set create_ms = create_ms - 172800000, rented_ms = rented_ms - 172800000, running_ms = running_ms - 172800000,
		vendor_started_ms = vendor_started_ms - 172800000, release_ms = release_ms - 172800000,
		released_ms = released_ms - 172800000, gone_ms = gone_ms - 172800000, vendor_asked_ms = gone_ms - 172800000'
	reconciled 0 agrees '^agrees$'
	is "$(json '.[0].final')" true final
	has err.txt "asking for the bill of 1 pod"
	burst ledger --reconcile --json
	is "$(cat out.txt)" "[]" "asked again"
	has err.txt "no pod awaits its vendor's final record"
	burst ledger --reconcile "$RUN" --json
	is "$(json '.[0].state')" agrees "asked by its name"
	# older than a month, and never answered: told, not asked for
	ledger 'update pod set vendor_asked_ms = 0, gone_ms = gone_ms - 2592000000'
	burst ledger --reconcile --json
	is "$STATUS $(cat out.txt)" "0 []" "an old one"
	has err.txt "1 pod without a final record ended more than 30 days ago: name the run to ask for it"
}
c_no_answer() {
	rendered
	bills '{"lag_s":300}'
	ledger 'update pod set billed_vendor_ms = 7000, cost_vendor_microusd = 900'
	RUNPOD_API_URL=http://127.0.0.1:9 burst ledger --reconcile --json
	is "$STATUS" 6 "no network ($(tail -n 1 err.txt))"
	schema reconcile
	is "$(json '.[0] | "\(.state) \(.billed_vendor_s)"')" "not_asked 7" "what was known"
	rp_control fault '{"when":{"op":"billingPods"},"do":{"status":500},"times":-1}' >/dev/null
	burst ledger --reconcile
	is "$STATUS" 6 "500 for ever"
	curl -qsS -X DELETE "$RUNPOD_API_URL/_control/faults" >/dev/null
	burst ledger --reconcile --json
	is "$STATUS $(json '.[0].cost_vendor_usd')" "0 0.0009" "a record that went away is kept"
}
c_doctor_knows_the_purse() {
	script_lines 1
	rp_config
	rp_control settings '{"balance":12.5,"spend_limit":40}' >/dev/null
	burst doctor
	has out.txt "runpod: balance \$12.50"
	has out.txt "runpod: spending \$0.00 an hour now, the account's limit is \$40.00 an hour"
}

# ---- what vendor_billing.sh wants to know ----

ITS_OWN_BILLS="c_from_create_without_disk c_from_create_with_disk c_from_running_without_disk c_from_running_with_disk
	c_not_yet c_every_time_is_kept c_the_last_word c_no_answer c_doctor_knows_the_purse"
ONE_POD=yes # in each case
TOO_LONG='^(billed for 10m[0-9]+s at \$0\.6955 per hour, but|\$0\.[0-9]+ is billed for the hour from)'
billed_longer() { # billed_longer SECONDS: than it lived
	rp_control pods/"$ID" "{\"bill_shift_s\":[0,$1]}" >/dev/null
	rp_control clock "{\"advance_s\":$1}" >/dev/null
}
still_too_much() { # in an hour that it did not see
	has err.txt "confirm that it is gone (\`burst reap\`, the vendor's console)"
	billed_longer 7200
	reconciled 1 excess '^\$0\.[0-9]+ is billed for the hour from .*, but the pod was confirmed gone at '
}
WRONG_KEY=RUNPOD_API_KEY=rpa_WRONG
other_keys() {
	has err.txt "burst: runpod: pod $ID: billing: HTTP 401 from RunPod"
	env -u RUNPOD_API_KEY timeout 60 "$BURST" ledger --reconcile >out.txt 2>err.txt </dev/null
	is "$?" 3 "no key"
	has err.txt "set RUNPOD_API_KEY"
	has out.txt "$ID: not known: runpod: "
	RUNPOD_API_KEY=$(cat "$RP_STATE/readonly.key") burst ledger --reconcile --json
	is "$STATUS $(json '.[0].state')" "0 agrees" "another key of the account"
}
