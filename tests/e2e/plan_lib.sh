# plan_lib.sh - what the tests of plans share.
# shellcheck shell=bash

offer() { # offer PROVIDER GPU PRICE [JQ]: one of a file of saved offers, changed by JQ
	jq -n --arg p "$1" --arg g "$2" --argjson d "$3" "{provider: \$p, id: (\"SECURE/EU/1/\" + \$g), gpu: \$g, gpus: 1, vram_gb: 24, region: \"EU\", spot: false, stock: \"high\", price_usd_hour: \$d} | ${4:-.}"
}
own_engine() { # own_engine [ESTIMATE]: an engine of one's own on a card with 8 GB
	ENGINE='own' JOB="worker = \"true\"; vram_gb = ${VRAM:-8}; ${WORKERS:-} estimate = { ${1:-gpu = \"RTX 4090\"; once = 1; each = 0.0018;} };"
}
equal_lines() { # equal_lines N: N segments of 80 characters
	local i
	for i in $(seq "$1"); do
		printf '{"id":"s%05d","text":"Every line of this text is as long as each of the others, which is 80 letters..."}\n' "$i"
	done >script.jsonl
}
cold_starts() { # cold_starts PROVIDER SECONDS: all of its pods so far took so long to come up, 0.1 s to fetch and 0.2 s to release
	local i
	"$BURST" ledger >/dev/null 2>&1
	for i in 1 2 3; do
		ledger "insert into pod (attempt, run, provider, account, name, id, state, gpu, region, spot, volume_safe, volume_id, volume_name,
			price_microusd_h, hard_end_s, host, port, user, create_ms, rented_ms, running_ms, reached_ms, connected_ms, synced_ms, ready_ms,
			worked_ms, safe_ms, release_ms, released_ms, gone_ms, compute_ms, wasted_ms, billed_ms, billed_vendor_ms, cost_microusd, event, error)
			select 'past$i$1', 'past', '$1', '', 'p', 'p$i$1', 'gone', 'RTX 4090', '', 0, 0, '', '', 0, 0, '', 0, '',
			at, at, at, up, up, up, up, up + 1000, up + 1100, up + 1100, up + 1300, up + 1300, 0, 0, 0, 0, 0, 0, ''
			from (select 1000000 as at, 1000000 + cast($2 * 1000 as integer) as up)"
	done
}
