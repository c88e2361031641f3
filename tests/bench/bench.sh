#!/bin/bash
# bench.sh - `make bench`: figures of this machine, now; medians of several runs. No pass or fail.
set -u
cd "$(dirname "$0")/../.." || exit
burst=$PWD/build/burst
work=$(mktemp -d "${TMPDIR:-/tmp}/burst-bench-XXXXXX")
trap 'rm -rf "$work"' EXIT
export BURST_STATE_DIR=$work/state HOME=$work
unset XDG_CONFIG_HOME XDG_STATE_HOME

median() { sort -n | awk '{v[NR]=$1} END {print (NR % 2) ? v[(NR+1)/2] : (v[NR/2]+v[NR/2+1])/2}'; }
took_ms() { # took_ms COMMAND...: wall time in ms, output dropped
	local before=${EPOCHREALTIME/./}
	"$@" >/dev/null 2>&1
	echo $(((${EPOCHREALTIME/./} - before) / 10)) | awk '{print $1 / 100}'
}
repeat() { # repeat N COMMAND...
	local n=$1
	shift
	for _ in $(seq "$n"); do took_ms "$@"; done | median
}

echo "# the command itself (aims: --version under 5 ms, ps with 10,000 runs under 30 ms)"
base=$(repeat 41 /bin/true)
version=$(repeat 41 "$burst" --version)
"$burst" ps >/dev/null 2>&1
sqlite3 "$BURST_STATE_DIR/ledger.db" "
	WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10000)
	INSERT INTO run (id, job, type, config, output, machine, status, detached, started_ms, ended_ms, max_cost_microusd,
		deadline_ms, total, rendered, cached, failed, billed_ms, compute_ms, wasted_ms, cost_microusd, exit_status,
		error_code, error)
	SELECT printf('r%06d', i), 'bench', 'tts', '', '', '', 'done', 0, i, i + 1, 0, 0, 9, 9, 0, 0, 9000, 5000, 0, 1, 0, '', '' FROM n;" ||
	echo "bench: the ledger could not be filled" >&2
runs=$(sqlite3 "$BURST_STATE_DIR/ledger.db" "SELECT count(*) FROM run")
ps=$(repeat 21 "$burst" ps)
ledger=$(repeat 21 "$burst" ledger)
echo "/bin/true $base ms; burst --version $version ms; burst ps with $runs runs $ps ms; burst ledger $ledger ms"

echo "# 300 questions on two local pods, warm volume, no boot delay: wall, billed against compute + boot (aim: at most 1.15)"
cp -r config/examples/quiz "$work/quiz"
sed -i 's/boot_delay = "2s"/boot_delay = "0s"/; s/join = {[^}]*};//' "$work/quiz/burst.cfg"
one_quiz() {
	rm -rf "$work/out"
	local before=${EPOCHREALTIME/./}
	"$burst" run "$work/quiz/burst.cfg" -o "$work/out" --json 2>/dev/null | tail -n 1 |
		jq -r '[.billed_seconds, .compute_seconds, ([.pods[].phases.boot_s] | add)] | @tsv' >"$work/row"
	echo "$(((${EPOCHREALTIME/./} - before) / 1000)) $(cat "$work/row")"
}
one_quiz >/dev/null # fills the volume
for _ in 1 2 3 4 5; do one_quiz; done >"$work/rows"
wall=$(cut -d' ' -f1 "$work/rows" | median)
billed=$(awk '{print $2}' "$work/rows" | median)
compute=$(awk '{print $3}' "$work/rows" | median)
boot=$(awk '{print $4}' "$work/rows" | median)
echo "wall $wall ms; billed $billed s; compute $compute s; boot $boot s; billed / (compute + boot) = $(awk "BEGIN {printf \"%.2f\", $billed / ($compute + $boot)}")"

echo "# one process after the other by espeak-ng itself, the same 300 texts on this machine (the peer without pods)"
mkdir "$work/plain"
before=${EPOCHREALTIME/./}
jq -r '[.id, (.voice // "en-us"), .text] | @tsv' config/examples/quiz/quiz.jsonl |
	while IFS=$'\t' read -r id voice text; do espeak-ng -v "$voice" -w "$work/plain/$id.wav" -- "$text"; done
plain=$(((${EPOCHREALTIME/./} - before) / 1000))
echo "espeak-ng in a loop $plain ms; burst's wall / that = $(awk "BEGIN {printf \"%.2f\", $wall / $plain}") (renting, verifying and proving the pods gone included)"
