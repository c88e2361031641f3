# dispatch.sh - the part `dispatch` of bench.sh, in a shell of its own: batches of an engine whose batches take
# o + a x longest + c x sum, on local pods whose worker sleeps for so long (tests/workers/padded.py). Figures are beside the least time
# that is possible (dispatch.py), and beside the same worker when it says that it renders one segment after the other.
#
#   DISPATCH="60:1 1000:4"   only these rows: SEGMENTS:PODS[:again|:unlike]; again: a second run, whose speed is known, for a deadline;
#                            unlike: texts of unlike length, in batches and (tests/workers/continuous.py) joining while others are rendered
#   DISPATCH_SCALE=0.5       times of the worker; a small scale shows messages rather than batches
# shellcheck shell=bash disable=SC2154
DISPATCH_ROWS="60:1 300:1 1000:1 1000:4 1000:4:again 300:1:unlike"
dispatch_most=80 # segments in a batch
# r = c/a = 0.022 at the mean length of the texts, 67 characters, as in a published sweep (27 times as much at b = 64)
dispatch_speed() { awk -v s="$1" 'BEGIN {printf "%.6f %.6f %.6f\n", .1 * s, .0131 * s, .000324 * s}'; }

dispatch_run() { # dispatch_run BATCHING SEGMENTS PODS [again]: prints "compute makespan batches" of the run, in seconds
	local home=$work/dispatch-$1-$2-$3${4#again} round worker=padded.py texts=
	mkdir -p "$home/code"
	cp tests/workers/{padded,continuous,answers}.py "$home/code/"
	[ "${4:-}" != unlike ] || texts=unlike
	[ "$1" != continuous ] || worker=continuous.py
	python3 tests/bench/dispatch.py texts "$2" $texts >"$home/script.jsonl"
	cat >"$home/burst.cfg" <<-E
		provider = "local";
		pods = $3;
		caps = { max_cost = 1.00; max_duration = "10m"; };
		job = { name = "dispatch"; type = "tts"; engine = "test"; input = "script.jsonl"; output = "out"; max_batch = $dispatch_most; max_chars = 1000;
			check = { enabled = false; };
			worker = "ONCE=$once LONGEST=$longest EACH=$each BATCHING=$1 MAX_BATCH=$dispatch_most LIMIT=$dispatch_most python3 \"\$BURST_CODE/$worker\""; };
		code = { path = "code"; };
		volume = { name = "v"; size_gb = 1; create = true; };
		providers = { local = { price_per_hour = 0.69; capacity = 8; }; };
	E
	local hurry=()
	for round in first $([ "${4:-}" != again ] || echo again); do
		if [ "$round" = first ] && [ -e "$home/first" ]; then # by the row without "again"
			hurry=(--deadline 30s)
			continue
		fi
		BURST_STATE_DIR=$home/state "$burst" run "$home/burst.cfg" -o "$home/$round" "${hurry[@]}" \
			>"$home/out.txt" 2>"$home/err.txt" </dev/null || tail -n 3 "$home/err.txt" >&2
		hurry=(--deadline 30s)
	done
	# without boots: from the first batch begun to the last one done, as the client heard it
	sqlite3 -separator ' ' "$home/state/ledger.db" "SELECT printf('%.3f', (SELECT compute_ms / 1000.0 FROM run ORDER BY seq DESC LIMIT 1)),
		printf('%.3f', (max(done_ms) - min(done_ms - took_ms)) / 1000.0), count(*) FROM batch
		WHERE run = (SELECT id FROM run ORDER BY seq DESC LIMIT 1)"
}
dispatch_row() { # dispatch_row SEGMENTS:PODS[:again]
	local n pods again scale=${DISPATCH_SCALE:-} once longest each
	IFS=: read -r n pods again <<<"$1"
	[ -n "$scale" ] || scale=$(awk -v n="$n" 'BEGIN {print n < 100 ? 1 : n < 1000 ? 0.5 : 0.3}')
	read -r once longest each <<<"$(dispatch_speed "$scale")"
	for kind in none padded; do dispatch_run $kind "$n" "$pods" "$again" >"$work/dispatch.$kind.$1" & done
	python3 tests/bench/dispatch.py best "$n" "$pods" $dispatch_most "$once" "$longest" "$each" >"$work/dispatch.best.$1"
	wait
	paste -d' ' "$work/dispatch.best.$1" "$work/dispatch.none.$1" "$work/dispatch.padded.$1" | awk -v n="$n" -v pods="$pods" -v again="$again" '{
		printf "%4d segments, %d pod%s%s: least %6.2f s, makespan %6.2f s", n, pods, pods == 1 ? " " : "s", again ? ", speed known" : "", $1, $2
		split("none padded", kind, " ")
		for (i = 0; i < 2; i++) {
			c = $(3 + 3 * i); m = $(4 + 3 * i)
			printf "; %s %6.2f s = %.2f, makespan %6.2f s = %.2f, %d batches", kind[i + 1], c, c / $1, m, m / $2, $(5 + 3 * i)
		}
		print "" }'
}
# Both against the least that batches allow: what continuous batching saves is beyond any dispatcher of batches.
dispatch_unlike() { # dispatch_unlike SEGMENTS:1:unlike
	local n=${1%%:*} scale=${DISPATCH_SCALE:-0.5} once longest each
	read -r once longest each <<<"$(dispatch_speed "$scale")"
	for kind in padded continuous; do dispatch_run $kind "$n" 1 unlike >"$work/dispatch.$kind.$1" & done
	python3 tests/bench/dispatch.py best "$n" 1 $dispatch_most "$once" "$longest" "$each" unlike >"$work/dispatch.best.$1"
	python3 tests/bench/dispatch.py beside "$n" $dispatch_most "$longest" "$each" unlike >"$work/dispatch.beside.$1"
	wait
	paste -d' ' "$work/dispatch.best.$1" "$work/dispatch.padded.$1" "$work/dispatch.beside.$1" "$work/dispatch.continuous.$1" | awk -v n="$n" '{
		printf "%4d segments of unlike length, 1 pod: padded %.2f s, least %.2f s = %.2f; continuous %.2f s, least %.2f s = %.2f; ",
			n, $3, $1, $3 / $1, $8, $6, $8 / $6
		printf "continuous / padded %.2f, and of the least that padded batches can take %.2f\n", $8 / $3, $8 / $1 }'
}
dispatch_bench() {
	local row
	echo "# dispatch for an engine whose batches take o + a x longest + c x sum, against the least possible and against batches as for an engine"
	echo "# that renders one by one (aims for padded: compute of 60 segments in 1.45 times the least, 300 in 1.1, 1,000 in 1.05; four pods 1.15)"
	for row in ${DISPATCH:-$DISPATCH_ROWS}; do
		case $row in *:unlike) dispatch_unlike "$row" ;; *) dispatch_row "$row" ;; esac
	done
}
