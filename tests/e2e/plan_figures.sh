#!/bin/bash
# plan_figures.sh - every figure of a plan has its source and its interval: prices that move, boots of a rehearsal, guesses.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/plan_lib.sh"

figure() { # figure NAME FILTER: of the pick
	json ".pick.figures[] | select(.name == \"$1\") | $2"
}
on_runpod() {
	ENGINE='own' JOB='worker = "true"; vram_gb = 8; estimate = { gpu = "RTX 4090"; once = 1; each = 0.0018; };'
	config 'gpu = ["RTX 4090"];'
	sed -i 's/^provider = .*/provider = "runpod"/; /^volume/d' burst.cfg
}
looks_at() { # looks_at GPU MICRODOLLARS...: an hour apart, up to an hour ago
	local gpu=$1 key looks='' at price
	shift
	key=$(printf '%s\n1\nEU\n0' "$gpu" | sha256sum | cut -c1-24)
	at=$(($(date +%s) / 60 - 60 * $#))
	for price in "$@"; do
		looks="$looks${looks:+ }$at=$price"
		at=60
	done
	ledger "insert or replace into fact (name, value) values ('prices:runpod:$key', '$looks')" || complain "the ledger"
}

t_a_price_that_moves() {
	local before
	on_runpod
	equal_lines 200
	jq -s . <(offer runpod "RTX 4090" 0.40) >offers.json
	burst plan --offers offers.json --json
	is "$STATUS" 0 "plan ($(tail -n 1 err.txt))"
	is "$(figure price '"\(.p10) \(.p50) \(.p90) \(.source) \(.samples)"')" "0.4 0.4 0.4 saved offer 0" "never looked at"
	before=$(json .pick.cost_p90_usd)
	looks_at "RTX 4090" 400000 400000 400000
	burst plan --offers offers.json --explain
	tr -s ' \n' ' ' <out.txt | grep -q 'price: $0.4000 an hour (offers saved on .*; the same in 3 looks in' || complain "a price that stands: $(grep -A1 price: out.txt)"
	hasnt out.txt "it moves"
	looks_at "RTX 4090" 400000 300000 600000
	burst plan --offers offers.json --json
	is "$(figure price '"\(.p10) \(.p50) \(.p90) \(.samples)"')" "0.3 0.4 0.6 3" "the range"
	[ "$(json ".pick.cost_p90_usd > $before * 1.1")" = true ] || complain "the 90% is that of a price that stands: $(json .pick.cost_p90_usd), $before"
	burst plan --offers offers.json --explain
	has out.txt "it moves; nine looks of ten found at most \$0.6000 an hour"
	tr -s ' \n' ' ' <out.txt | grep -q '; $0.30.* to $0.60.* in eight looks of ten, 3 in' || complain "no range: $(grep -A1 price: out.txt)"
	burst plan --list-prices --json
	is "$(figure price .source)" "list price" "a list"
}
# Before the first run, a pod of a rehearsal boots as late as its settings say; after it, as late as it did.
t_the_boot_of_a_rehearsal() {
	script_lines 3
	REHEARSE='boot_delay = "2s";'
	config
	burst plan --json
	is "$STATUS" 0 "plan ($(tail -n 1 err.txt))"
	is "$(figure queue '"\(.p50) \(.p90) \(.source)"')" "2.1 2.5 prior" "with the delay"
	burst plan --explain
	has out.txt "and a boot_delay of 2.0s)"
	burst run
	is "$STATUS" 0 "run ($(tail -n 1 err.txt))"
	rm -rf out
	burst plan --json
	is "$(figure queue '"\(.source) \(.samples)"')" "measured 1" "after a run"
	[ "$(json '[.pick.figures[] | select(.name == "queue" or .name == "boot") | .p50] | add | . > 1.9 and . < 20')" = true ] ||
		complain "it took $(figure queue .p50) and $(figure boot .p50) s"
}
# What no pod here has shown is a prior, with an interval as wide as that allows.
t_a_guess_is_no_measurement() {
	on_runpod
	equal_lines 200
	jq -s . <(offer runpod "RTX 4090" 0.40 '.spot = true') >offers.json
	burst plan --offers offers.json --spot --json
	is "$STATUS" 0 "plan ($(tail -n 1 err.txt))"
	is "$(json '[.pick.figures[] | select(.name != "price") | .source] | unique | join(" ")')" "prior" "all are priors"
	is "$(json '[.pick.figures[] | select(.samples > 0) | .name] | join(" ")')" "" "none has samples"
	is "$(json '[.pick.figures[] | select(.name != "price") | select(.p90 < 1.2 * .p50) | .name] | join(" ")')" "" "each has an interval"
	is "$(figure interruptions '"\(.p50) \(.source)"')" "28800 prior" "the guess of eight hours"
	[ "$(figure interruptions '.p10 < 9000 and .p90 > 200000')" = true ] || complain "the guess is too sure: $(figure interruptions .)"
	cold_starts runpod 40
	ledger "update pod set spot = 1, billed_ms = 7200000, preempted = (id != 'p1runpod')"
	burst plan --offers offers.json --spot --json
	is "$(figure interruptions '"\(.p50) \(.source) \(.samples)"')" "10800 measured 2" "six hours, two were taken"
	[ "$(figure interruptions '.p10 > 4000 and .p10 < 10800 and .p90 > 10800 and .p90 < 60000')" = true ] || complain "its interval: $(figure interruptions .)"
	is "$(figure boot .source) $(figure speed .source)" "measured prior" "boots are measured now, the speed is not"
	burst plan --offers offers.json --spot
	has out.txt "never measured here"
}

# What stands on stderr stands in the JSON, to its end.
t_a_long_message_is_whole() {
	local said
	script_lines 3
	REHEARSE='boot_delay = "9s"; gpu_prices = ["RTX PRO 6000=1.69"];'
	own_engine 'gpu = "RTX PRO 6000"; once = 1; each = 0.0018;'
	config 'deadline = "2s"; gpu = ["RTX PRO 6000"];'
	mv burst.cfg a_deadline_that_no_plan_can_keep.cfg
	burst run a_deadline_that_no_plan_can_keep.cfg --json
	is "$STATUS" 5 "the deadline cannot be kept ($(tail -n 1 err.txt))"
	said=$(json .error.message)
	[ "${#said}" -gt 256 ] || complain "the message has only ${#said} characters: $said"
	has err.txt "$said"
	[[ $said == *"; nothing was rented" ]] || complain "it ends with ${said: -40}"
}

run_tests "$@"
