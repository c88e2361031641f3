# learning.sh - how far plans are off, before the first run of an engine on a GPU and after one, two and three runs. Sourced by bench.sh.
#
# Each setting has a test worker (tests/workers/padded.py) and a pod that comes up, with times that burst is not told: they lie in a file
# that travels with the code. Before the first run the engine is known either from another GPU, whose measurements are carried over
# (their hidden times differ from the roofline model by `off`), or by the prior that it ships with. Segments, batches and pods are real.
# shellcheck shell=bash disable=SC2154

# name, GPU measured before, GPU, segments, pods ("auto": the planner chooses), seconds of a batch beside its segments, of its longest
# segment and of all of them (for a text of 80 characters on the GPU), largest batch, boot of its pods in ms, off: how far the GPU is
# from the roofline. The engine of new_setup has a setup of 3 s, which the first run on a volume pays.
LEARNING_ROWS="
mostly_shared  L4         L40S      240 1    0.20 0.80 0.004 32 900  0.90
mostly_each    T4         RTX_A5000 160 1    0.05 0.10 0.030 16 1500 1.15
host_bound     A10        RTX_4090  150 1    0.60 0.15 0.003 24 600  1.00
slow_boot      L4         A40       120 1    0.10 0.50 0.010 40 4000 1.10
two_pods       L40S       H100_SXM  160 2    0.10 0.60 0.040 16 800  0.85
planner_widens L4         L40S      200 auto 0.10 0.70 0.030 16 700  1.05
new_setup      RTX_A5000  RTX_3090  160 1    0.10 0.60 0.008 32 700  1.00
"

learning_segments() { # learning_segments N SEED
	awk -v n="$1" -v seed="$2" 'BEGIN {
		srand(seed)
		for (i = 0; i < n; i++) {
			text = ""
			while (length(text) < 40 + rand() * 80) text = text "some words "
			printf "{\"id\":\"s%04d\",\"text\":\"%s\"}\n", i, text
		}
	}'
}
learning_gpu() { # learning_gpu NAME FIELD
	jq -r --arg gpu "${1//_/ }" --arg field "$2" '.[] | select(.gpu == $gpu) | .[$field]' "$work/gpus.json"
}
# The hidden times of a GPU, as shell text that the worker reads. What a batch shares follows bandwidth, what each segment adds the peak.
learning_hidden() { # learning_hidden GPU LIKE OFF ONCE SHARED EACH MAX_BATCH
	awk -v once="$4" -v shared="$5" -v each="$6" -v off="$3" -v most="$7" -v b="$(learning_gpu "$1" bandwidth_gb_s)" \
		-v like_b="$(learning_gpu "$2" bandwidth_gb_s)" -v t="$(learning_gpu "$1" tflops)" -v like_t="$(learning_gpu "$2" tflops)" 'BEGIN {
		printf "export ONCE=%f LONGEST=%f EACH=%f MAX_BATCH=%d JITTER=0.03\n", once, off * shared / 80 * like_b / b,
			off * each / 80 * like_t / t, most }'
}
learning_config() { # learning_config GPU BOOT_MS PODS SETUP KEYS
	local job=''
	# shellcheck disable=SC2016
	[ "${ENGINE:-}" = espeak ] || job='worker = ". \"$BURST_CODE/hidden\"; exec python3 \"$BURST_CODE/padded.py\"";'
	# shellcheck disable=SC2016
	[ "$4" = 0 ] || job="$job setup = \"sleep $4; echo >\\\"\$BURST_ENV/done\\\"\";"
	cat >burst.cfg <<-E
		provider = "local_play";
		gpu = ["${1//_/ }"];
		$([ "$3" = auto ] || echo "pods = $3;")
		volume = { name = "v"; size_gb = 1; create = true; };
		caps = { max_cost = 5.00; max_duration = "10m"; };
		code = { path = "code"; };
		job = { name = "learning"; type = "tts"; engine = "${ENGINE:-padded}"; input = "script.jsonl"; output = "out"; check = { enabled = false; }; $job };
		providers = { local_play = { price_per_hour = 3.60; boot_delay = "${2}ms"; gpu = "${1//_/ }"; }; };
		$5
	E
}
# One run: planned and actual seconds and dollars, and what the plan's speed was taken from.
learning_run() { # learning_run FOLDER
	"$burst" run --yes -o "$1" >out.txt 2>err.txt </dev/null || { echo "bench: $PWD: $(tail -n 1 err.txt)" >&2; return 1; }
	sqlite3 -separator ' ' "$BURST_STATE_DIR/ledger.db" "
		SELECT planned_ms / 1000.0, planned_microusd / 1e6,
			(SELECT (max(max(safe_ms), max(worked_ms)) - min(create_ms)) / 1000.0 FROM pod WHERE run = r.id AND create_ms > 0), cost_microusd / 1e6,
			(SELECT count(*) FROM pod WHERE run = r.id AND create_ms > 0)
		FROM run r ORDER BY seq DESC LIMIT 1"
	sed -n 's/^plan: .*(batch times: \(.*\))$/\1/p' err.txt | tail -n 1 >source
}
learning_row() { # learning_row NAME BEFORE GPU SEGMENTS PODS ONCE SHARED EACH MAX_BATCH BOOT_MS OFF
	local n setup=0 keys=''
	mkdir -p "$work/learning/$1/code"
	cd "$work/learning/$1" || return
	export BURST_STATE_DIR=$PWD/state
	cp "$root/tests/workers/"{padded,answers}.py code/
	[ "$1" != new_setup ] || setup=3
	[ "$5" != auto ] || keys='goal = "balanced"; value_of_time = 10.0;'
	learning_segments $(($4 / 2)) 1 >script.jsonl
	learning_hidden "$2" "$2" 1 "$6" "$7" "$8" "$9" >code/hidden
	learning_config "$2" "${10}" 1 "$setup" ''
	learning_run other >/dev/null || return
	learning_hidden "$3" "$2" "${11}" "$6" "$7" "$8" "$9" >code/hidden
	learning_config "$3" "${10}" "$5" "$setup" "$keys"
	for n in 0 1 2 3; do
		learning_segments "$4" "$((n + 2))" >script.jsonl
		learning_run "out$n" >row || return
		echo "$1 $n $(cat row) $(tr ' ' '_' <source)"
	done
}
# espeak itself, whose prior ships with burst. How fast it is depends on what else this machine does, so it is shown and not counted.
learning_espeak() {
	local n
	mkdir -p "$work/learning/espeak/code"
	cd "$work/learning/espeak" || return
	export BURST_STATE_DIR=$PWD/state
	for n in 0 1 2 3; do
		learning_segments 400 "$n" >script.jsonl
		ENGINE=espeak learning_config none 800 1 0 ''
		learning_run "out$n" >row || return
		echo "espeak $n $(cat row) $(tr ' ' '_' <source)"
	done
}
learning_bench() {
	local row root=$PWD
	mkdir -p "$work/learning"
	"$burst" gpus --json >"$work/gpus.json"
	echo "# |planned - actual| before the first run of a known engine (aim: under 25 %) and after three runs (under 10 %); hidden times, local pods"
	echo "# load before: $(cut -d' ' -f1-3 /proc/loadavg) on $(nproc) cores"
	while read -r row; do
		[ -n "$row" ] || continue
		while [ "$(jobs -rp | wc -l)" -ge "${LEARNING_AT_ONCE:-4}" ]; do wait -n; done
		# shellcheck disable=SC2086
		(learning_row $row >"$work/learning/${row%% *}.rows") &
	done <<<"${LEARNING:-$LEARNING_ROWS}"
	[ -n "${LEARNING:-}" ] || (learning_espeak >"$work/learning/espeak.rows") &
	wait
	cat "$work/learning"/*.rows | awk '
		function off(planned, was) { return was > 0 && planned > 0 ? 100 * (planned - was) / was : 999 }
		function size(x) { return x < 0 ? -x : x }
		BEGIN { printf "%-15s %5s %-13s %9s %8s %6s %9s %9s %6s %5s\n", "setting", "runs", "speed", "planned s", "was s", "off", "planned $", "was $", "off", "pods" }
		{
			time = off($3, $5); cost = off($4, $6)
			printf "%-15s %5d %-13s %9.1f %8.1f %5.0f%% %9.4f %9.4f %5.0f%% %5d\n", $1, $2, $8, $3, $5, time, $4, $6, cost, $7
			if ($1 == "espeak") next
			sum_t[$2] += size(time); sum_c[$2] += size(cost); n[$2]++
			if (size(time) > most_t[$2]) most_t[$2] = size(time)
			if (size(cost) > most_c[$2]) most_c[$2] = size(cost)
		}
		END {
			for (k = 0; k <= 3; k++)
				if (n[k])
					printf "after %d runs, %d settings: makespan off by %.0f%% (worst %.0f%%), cost by %.0f%% (worst %.0f%%)\n", k, n[k],
						sum_t[k] / n[k], most_t[k], sum_c[k] / n[k], most_c[k]
		}'
	echo "# load after: $(cut -d' ' -f1-3 /proc/loadavg)"
}
