# wide.sh - very many pods in one burst: `. tests/cloud/runpod/wide.sh` after tests/e2e/lib.sh. The stand-in's pods are those of
# common/light.py: SSH and the agent's half are real, what is behind them is not.
#
#   wide_run PODS SEGMENTS RENDER_MS [MINUTE_S]   one burst; the vendor's minute, of 60 requests, may be shorter than ours.
#                                                 Leaves wide.json: what it took, and the counts of both sides
#   wide_right PODS SEGMENTS                      complains of whatever is not as it must be
#   long_job SEGMENTS PODS [RENDER_MS]            one burst on pods of this machine; watch.json says what it took
#   long_right SEGMENTS PODS                      complains of whatever is not as it must be
# shellcheck shell=bash
# shellcheck source-path=SCRIPTDIR
. "$ROOT/tests/cloud/runpod/client.sh"
MEMORY_KB=36000 MEMORY_POD_KB=360 MEMORY_SEGMENT_KB=9 # twice of what it takes

wide_can() {
	rp_can >/dev/null || { rp_can; return 1; }
	/usr/bin/python3 -W ignore -c 'import asyncssh' 2>/dev/null || { echo "no asyncssh (Debian package python3-asyncssh)"; return 1; }
}
wide_script() { # wide_script N
	seq "$1" | awk '{printf "{\"id\":\"s%06d\",\"text\":\"Line %d of many.\"}\n", $1, $1}' >script.jsonl
}
wide_run() {
	local pods=$1 segments=$2 minute=${4:-60}
	LIGHT_RENDER_MS=$3 rp_start --light || return 1
	rp_control settings '{"lengths":{"minute":'"$minute"',"hour":'$((minute * 60))',"day":'$((minute * 1440))'},"balance":1000000,"spend_limit":100000}' >/dev/null
	rp_control stock '{"gpu":"NVIDIA GeForce RTX 4090","free":100000}' >/dev/null
	wide_script "$segments"
	MAX_COST=10000 DURATION=3h IMAGE=host/tts:1 rp_config "pods = $pods; wait = \"1h\"; lease = \"2h\"; boot_limit = \"1h\";"
	sed -i '/^volume = /d' burst.cfg
	python3 "$RP_HERE/../common/watch.py" "$RUNPOD_API_URL" "$pods" watch.json "$BURST" run --json >out.txt 2>err.txt </dev/null
	STATUS=$(jq .status watch.json)
	rp_control light >light.json
	rp_control requests >requests.json
	sqlite3 -json "$BURST_STATE_DIR/ledger.db" "select attempt, event, state from pod where id <> ''" >pods.json
	ledger "pragma wal_checkpoint(truncate)" >/dev/null
	jq -n --argjson minute "$minute" --slurpfile watch watch.json --slurpfile light light.json --slurpfile asked requests.json --slurpfile rows pods.json \
		--argjson ledger "$(stat -c %s "$BURST_STATE_DIR/ledger.db")" '
		def spread: sort | {least: .[0], median: .[length / 2 | floor], most: .[-1]};
		$watch[0] + {
			ledger_bytes: $ledger,
			requests: ($asked[0] | length), refused: ([$asked[0][] | select(.status == 429)] | length),
			most_a_minute: ([$asked[0] | group_by(.at_ms / 1000 / $minute | floor)[] | length] | max),
			by_op: ($asked[0] | group_by(.op) | map({key: .[0].op, value: length}) | from_entries),
			pods_used: ([$light[0].pods[] | select(.batches > 0)] | length), pods_made: ($light[0].pods | length),
			batches: ([$light[0].pods[].batches] | spread), segments: ([$light[0].pods[].segments] | spread),
			rendered: ([$light[0].pods[].segments] | add), connections: ([$light[0].pods[].attached] | add),
			connections_a_pod: ([$light[0].pods[].attached] | spread), unconnected: ([$light[0].pods[] | select(.attached == 0)] | length),
			events: ([$light[0].pods[].events] | add), events_heard: ([$rows[0][].event] | add),
			events_lost: ([$rows[0][] | select($light[0].pods[.attempt].batches > 0 and .event < $light[0].pods[.attempt].events)] | length),
			pods_left: ([$rows[0][] | select(.state != "gone")] | length), stand_in_cpu_s: $light[0].cpu_s
		}' >wide.json || complain "no figures: $(tail -n 2 err.txt | tr '\n' '|')"
}
# No more memory than a bound that grows with the pods and the segments. Sanitizers take a multiple.
memory_right() { # memory_right PODS SEGMENTS: of watch.json
	local kb=$((MEMORY_KB + $1 * MEMORY_POD_KB + $2 * MEMORY_SEGMENT_KB))
	! grep -qa __asan_init "$BURST" || kb=$((kb * 4 + 400000))
	is "$(jq ".most_kb <= $kb" watch.json)" true "memory ($(jq .most_kb watch.json) kB, at most $kb)"
}
# Work is shared out: no pod that was ready in the first half of the time in which there was work got nothing, and none got more than
# three times what the one in the middle of all got.
shared_right() {
	ledger "select ready_ms, worked_ms, (select count(*) from segment where segment.attempt = pod.attempt and segment.state = 1) from pod where ready_ms > 0" |
		jq -Rn '[inputs | split("|") | map(tonumber)] | (map(.[0]) | min) as $first | (map(.[1]) | max) as $last
			| (map(.[2]) | sort) as $all | ([.[] | select(.[0] <= $first + ($last - $first) / 2) | .[2]] | sort) as $early
			| {early: ($early | length), least: $early[0], median: $all[length / 2 | floor], most: $all[-1]}' >shared.json
	is "$(jq '.early > 0 and .least > 0 and .most <= 3 * .median' shared.json)" true "how the segments are shared out ($(jq -c . shared.json))"
}
wide_right() { # wide_right PODS SEGMENTS
	is "$STATUS" 0 "exit status ($(tail -n 3 err.txt | tr '\n' '|'))"
	is "$(wavs)" "$2" files
	is "$(ledger "select count(*), count(distinct id) from segment where state = 1")" "$2|$2" "safe exactly once"
	is "$(jq .rendered wide.json)" "$2" "rendered, each once"
	is "$(jq ".pods_made > $1 * 3 / 4 and .pods_made <= $1" wide.json)" true "pods that were made ($(jq .pods_made wide.json))" # not those that came too late
	# one a pod; none only to those that were not needed any more when they were up
	is "$(jq '.connections_a_pod.most' wide.json)" 1 "connections of one pod ($(jq .connections wide.json) of all)"
	is "$(jq ".unconnected <= $(ledger "select count(*) from pod where id <> '' and ready_ms = 0")" wide.json)" true \
		"pods without a connection ($(jq .unconnected wide.json)), all released before they were ready"
	is "$(jq .events_lost wide.json)" 0 "pods of which an event was lost"
	is "$(jq .refused wide.json)" 0 "requests beyond the account's limits"
	is "$(jq '.most_a_minute <= 60' wide.json)" true "requests a minute ($(jq .most_a_minute wide.json))"
	is "$(jq .pods_left wide.json)" 0 "pods that are not gone"
	is "$(rp_pods | wc -l)" 0 "pods that are left"
	memory_right "$1" "$2"
	shared_right
}
long_job() { # by a worker that takes no time
	mkdir -p code
	cp "$ROOT/tests/workers/fast.py" code/
	seq "$1" | awk '{printf "{\"id\":\"s%06d\",\"text\":\"L%d.\"}\n", $1, $1}' >script.jsonl
	ENGINE=fast
	JOB='worker = "HUM_MS='${3:-0}' /usr/bin/python3 \"$BURST_CODE/fast.py\"";'
	LOCAL="capacity = $2;" config "pods = $2; code = { path = \"code\"; };"
	sed -i 's/max_duration = "10m"/max_duration = "10h"/; s/max_cost = 1.00/max_cost = 1000.0/' burst.cfg
	python3 "$ROOT/tests/cloud/common/watch.py" - "$2" watch.json "$BURST" run --json >out.txt 2>err.txt </dev/null
	STATUS=$(jq .status watch.json)
}
# Nothing that a pod said went unheard, whether or not it was of use: its own list of events is with its files.
long_heard() {
	ledger "select attempt, event from pod" | while IFS='|' read -r attempt event; do
		cat "$BURST_STATE_DIR"/volumes/v/runs/*/"$attempt"/events.jsonl 2>/dev/null | jq -r --arg a "$attempt" --argjson heard "$event" \
			'select(.ev == "segment" and .n > $heard) | "\($a) \(.n) of \($heard)"' | head -n 1
	done >unheard
	is "$(cat unheard)" "" "pods of which an event was lost"
	is "$(cat "$BURST_STATE_DIR"/volumes/v/runs/*/*/events.jsonl | grep -c '"ev":"segment"')" "$1" "rendered, each once"
}
long_right() { # long_right SEGMENTS PODS
	is "$STATUS" 0 "exit status ($(tail -n 3 err.txt | tr '\n' '|'))"
	is "$(json '.segments | "\(.rendered) \(.failed)"')" "$1 0" rendered
	is "$(wavs)" "$1" files
	is "$(wc -l <out/manifest.jsonl)" "$1" "lines of the manifest"
	is "$(json '[.pods[].released] | [length, all] | join(" ")')" "$2 true" "pods, all gone"
	long_heard "$1"
	memory_right "$2" "$1"
	shared_right
}
