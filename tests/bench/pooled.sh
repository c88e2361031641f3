# pooled.sh - what 20 spread-out triggers are billed: each a run of its own job, with keep_warm = "auto", "1m" and "0" (the peer: one
# pod for each), on local pods that boot for 20 s. The same triggers at the same times for all three. Sourced by bench.sh.
# shellcheck shell=bash disable=SC2154

pooled_job() { # pooled_job FOLDER KEEP_WARM
	mkdir -p "$1"
	printf '{"id":"a","text":"Trigger %s has one line to speak."}\n' "${1##*/}" >"$1/script.jsonl"
	cat >"$1/burst.cfg" <<-E
		provider = "local_play"; pods = 1; keep_warm = "$2";
		job = { name = "${1##*/}"; type = "tts"; engine = "espeak"; input = "script.jsonl"; output = "out"; };
		providers = { local_play = { price_per_hour = 3.60; boot_delay = "${POOLED_BOOT:-20}s"; }; };
	E
}
# The times at which triggers come, in s: exponential gaps of this mean, from a fixed seed.
pooled_times() {
	awk -v n="${POOLED_TRIGGERS:-20}" -v mean="${POOLED_GAP:-10}" 'BEGIN { srand(7); for (i = 0; i < n; i++) { printf "%.1f\n", t; t -= mean * log(1 - rand()) } }'
}
pooled_run() { # pooled_run KEEP_WARM
	local dir=$work/pooled/$1 i=0 began=$EPOCHREALTIME at
	mkdir -p "$dir"
	export BURST_STATE_DIR=$dir/state
	for at in $(pooled_times); do
		i=$((i + 1))
		pooled_job "$dir/t$i" "$1"
		sleep "$(awk -v b="$began" -v now="$EPOCHREALTIME" -v at="$at" 'BEGIN { w = b + at - now; print (w > 0 ? w : 0) }')"
		("$burst" run "$dir/t$i/burst.cfg" --yes --quiet >/dev/null 2>"$dir/t$i/err" </dev/null || echo "bench: $1: t$i: $(tail -n 1 "$dir/t$i/err")" >&2
			awk -v b="$began" -v now="$EPOCHREALTIME" -v at="$at" 'BEGIN { print now - b - at }' >"$dir/t$i/took") &
	done
	wait
	until [ "$(sqlite3 "$dir/state/ledger.db" "SELECT count(*) FROM pod WHERE state NOT IN ('gone', 'failed')" 2>/dev/null)" = 0 ]; do sleep 0.5; done
	echo "$1 $(sqlite3 -separator ' ' "$dir/state/ledger.db" "
		SELECT (SELECT count(*) FROM run WHERE type != 'keep' AND status = 'done'), count(DISTINCT id), sum(billed_ms) / 1000,
			sum(CASE WHEN kept_ms > 0 THEN billed_ms ELSE 0 END) / 1000, sum(cost_microusd) / 1e6 FROM pod WHERE id != ''") \
$(cat "$dir"/t*/took | median)" >"$dir/row"
}
pooled_bench() {
	local keep
	echo "# ${POOLED_TRIGGERS:-20} triggers, gaps of ${POOLED_GAP:-10} s on average, boot ${POOLED_BOOT:-20} s; billed seconds are the sum over all pods, kept time included"
	echo "# load before: $(cut -d' ' -f1-3 /proc/loadavg) on $(nproc) cores"
	for keep in 0 auto 1m; do (pooled_run "$keep") & done
	wait
	cat "$work"/pooled/*/row | sort -k4 -nr | awk '
		BEGIN { printf "%-9s %5s %5s %9s %7s %9s %11s %s\n", "keep_warm", "done", "pods", "billed s", "kept s", "cost $", "trigger->s", "billed, of keep_warm 0" }
		$1 == "0" { base = $4 }
		{ row[NR] = $0 }
		END { for (i = 1; i <= NR; i++) { split(row[i], f, " "); printf "%-9s %5d %5d %9d %7d %9.4f %11.1f %.2f\n", f[1], f[2], f[3], f[4], f[5], f[6], f[7], f[4] / base } }'
	echo "# load after: $(cut -d' ' -f1-3 /proc/loadavg)"
}
