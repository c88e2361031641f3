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
midnight_in() { # midnight_in SECONDS: sets a time zone in which the next day begins then
	local left=$(($(date -u +%s) % 86400 + $1))
	left=$(((86400 - left % 86400) % 86400))
	# POSIX has the sign turned round: what is added to local time to get UTC
	TZ=$(printf 'XXX-%d:%02d:%02d' $((left / 3600)) $((left / 60 % 60)) $((left % 60)))
	export TZ
}

t_a_day_has_its_dollars() {
	script_lines 2
	config
	price 36 # a cent a second
	own 'caps = { per_day = 0.50; };'
	burst run --json
	is "$STATUS" 0 "exit status ($(tail -n 1 err.txt))"
	has err.txt 'are spent or reserved (caps.per_day): this run may cost $0.5000, in place of its caps.max_cost of $1.00'
	is "$(json '.cost_usd > 0 and .cost_usd <= 0.5')" true "within the day ($(json .cost_usd))"
	local first
	first=$(spent)
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

run_tests "$@"
