# billed.sh - the part `billed` of bench.sh, in a shell of its own: what a run is billed against the ideal, on pods of both stand-ins
# that take 33 s to come up. The work is a worker that rests for a fixed time at each segment, so that a busy machine changes little.
#
#   BILLED="runpod:300:4 modal:48:3:1000:0.02"   only these rows: VENDOR:SEGMENTS:PODS[:MS A SEGMENT[:MAX COST]]
#   BILLED_AT_ONCE=3                             so many rows at once, each with a stand-in of its own
#
# ideal: one boot (the shortest that this run saw) for each pod that rendered something, and the compute seconds. one pod: one
# boot and the compute seconds, whatever was rented. Both say nothing of what was cut off by a cap.
# shellcheck shell=bash disable=SC2034,SC2154
. tests/e2e/lib.sh
BURST=$burst # not the one with sanitizers
BILLED_ROWS="
	runpod:300:1 runpod:300:2 runpod:300:4 runpod:3000:1 runpod:3000:2 runpod:3000:4 runpod:3000:4:100
	modal:300:1 modal:300:2 modal:300:4 modal:3000:1 modal:3000:2 modal:3000:4 modal:3000:4:100
	runpod:48:1:1000:0.02 runpod:48:3:1000:0.02 modal:48:1:1000:0.057 modal:48:3:1000:0.057"
complain() { echo "bench: ${ROW:-}: $*" >&2; }

boot_for_33_s() {
	case $1 in
	runpod) RP_SLOW=1 rp_start && rp_control settings '{"boot":{"provision_ms":2000,"pull_ms":22000,"direct_ms":6000,"banner_ms":3000},
		"quotas":{"minute":6000,"hour":60000,"day":600000}}' ;;
	modal) MD_SLOW=1 md_start && md_control settings '{"boot":{"schedule_ms":2000,"start_ms":30000,"tunnel_ms":1000,"build_ms":500}}' ;;
	esac >/dev/null
}
billed_config() { # billed_config VENDOR SEGMENTS PODS MS CAP
	mkdir -p code
	cp "$ROOT/tests/workers/fast.py" code/
	seq "$2" | awk '{printf "{\"id\":\"s%06d\",\"text\":\"L%d.\"}\n", $1, $1}' >script.jsonl
	ENGINE=fast MAX_COST=$5 DURATION=1h
	JOB='worker = "HUM_MS='$4' /usr/bin/python3 \"$BURST_CODE/fast.py\"";'
	case $1 in
	runpod) GPUS='"RTX 4090"' rp_config "pods = $3; code = { path = \"code\"; };" ;;
	modal) GPUS='"L40S"' md_config "pods = $3; code = { path = \"code\"; };" ;;
	esac
}
vendors_seconds() { # as the stand-in's own meter has them
	case $1 in
	runpod) rp_control billing | jq '[.[].seconds] | add // 0' ;;
	modal) md_control state | jq '[.sandboxes[] | select(.started_ms and .ended_ms) | (.ended_ms - .started_ms) / 1000] | add // 0' ;;
	esac
}
billed_row() { # billed_row VENDOR:SEGMENTS:PODS:MS:CAP: one line of the table
	local vendor segments pods ms cap before
	IFS=: read -r vendor segments pods ms cap <<<"$1"
	ROW=$1 T=$work/billed-${1//:/-} WHY=''
	mkdir -p "$T/home" && cd "$T" || return
	export HOME=$T/home XDG_CONFIG_HOME=$T/home/.config BURST_STATE_DIR=$T/state
	# shellcheck source=/dev/null
	. "$ROOT/tests/cloud/$vendor/client.sh"
	boot_for_33_s "$vendor" || return
	billed_config "$vendor" "$segments" "$pods" "${ms:-15}" "${cap:-5.00}"
	before=$(now_us)
	"$BURST" run --json >out.txt 2>err.txt </dev/null
	tail -n 1 out.txt | jq -r --arg vendor "$vendor" --arg segments "$segments" --arg pods "$pods" --arg ms "${ms:-15}" --arg cap "${cap:--}" \
		--argjson meter "$(vendors_seconds "$vendor")" --argjson wall $((($(now_us) - before) / 1000000)) '
		def r2: . * 100 | round / 100;
		def at_work: [.pods[] | select(.compute_seconds > 0)];
		([at_work[].phases | .queue_s + .boot_s] | min // 33) as $boot
		| ($boot + .compute_seconds) as $one | (([at_work | length, 1] | max) * $boot + .compute_seconds) as $ideal
		| [$vendor, $segments, $ms, $pods, $cap, .segments.rendered, (.pods | length), (at_work | length), $wall, .billed_seconds,
			($meter | round), (.compute_seconds * 10 | round / 10), (.billed_seconds / $ideal | r2), (.billed_seconds / $one | r2),
			.cost_usd] | @tsv' >row
	if [ -n "${BILLED_KEEP:-}" ]; then
		mkdir -p "$BILLED_KEEP/${1//:/-}" && cp out.txt err.txt state/ledger.db "$BILLED_KEEP/${1//:/-}/"
		case $vendor in runpod) rp_control state ;; modal) md_control state ;; esac >"$BILLED_KEEP/${1//:/-}/cloud.json"
	fi
	case $vendor in runpod) rp_stop ;; modal) md_stop ;; esac
	[ -s row ] || complain "it ended without a result: $(tail -n 2 err.txt)"
}
billed_bench() {
	local row rows=${BILLED:-$BILLED_ROWS}
	WORK=$work
	cloud_can_all || return
	echo "# billed against the ideal: boot 33 s, each segment takes the worker a fixed time (ms); the aim is billed / ideal of at most 1.25."
	echo "# used: pods that rendered something; ideal: one boot for each of these and compute; one pod: one boot and compute"
	for row in $rows; do
		while [ "$(jobs -rp | wc -l)" -ge "${BILLED_AT_ONCE:-3}" ]; do wait -n; done
		(billed_row "$row") &
	done
	wait
	{
		printf 'vendor\tsegments\tms\tpods\tcap $\trendered\trented\tused\twall s\tbilled s\tmeter s\tcompute s\t/ ideal\t/ one pod\tcost $\n'
		for row in $rows; do cat "$work/billed-${row//:/-}/row" 2>/dev/null; done
	} | column_table
}
column_table() { awk -F'\t' '{for (i = 1; i <= NF; i++) printf "%*s%s", (i == 1 ? -7 : 9), $i, (i < NF ? " " : "\n")}'; }
cloud_can_all() {
	local why
	. tests/cloud/runpod/lib.sh
	why=$(rp_can) || { echo "# billed: left out: $why"; return 1; }
	. tests/cloud/modal/lib.sh
	why=$(md_can) || { echo "# billed: left out: $why"; return 1; }
}
