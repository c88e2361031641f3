#!/bin/bash
# soak.sh BUILD N SECONDS [FROM] - what `make soak` runs: the simulator from seed FROM on (or from a random place), then two rows
# beside each other: the local provider's, own boxes' and RunPod's kill points, full disks, random faults and spoilt lines; Modal's and
# Vast.ai's; then the kill points of pods that pass from run to run. A part that fails ends nothing: the rest runs, and the last line names what failed. Logs: BUILD/soak/.
set -u
cd "$(dirname "$0")/.." || exit
. tests/stop.sh
build=$1 n=$2 seconds=$3 from=${4:-}
logs=$build/soak
export BURST=$PWD/$build/burst
rm -rf "$logs"
mkdir -p "$logs"
began=$SECONDS

seed() { echo "${from:-$(od -An -N4 -tu4 /dev/urandom | tr -d " ")}"; }
part() { # part NAME COMMAND...
	local name=$1 at=$SECONDS status=0
	shift
	"$@" >"$logs/$name.log" 2>&1 || status=$?
	echo $status >"$logs/$name.status"
	echo "$name: $([ $status = 0 ] && echo ok || echo "FAILED, see $logs/$name.log"), $((SECONDS - at)) s"
	grep -E '^(ok|skip|FAILED|soak:|sim:) |^    ' "$logs/$name.log" | sed 's/^/    /'
}
vendor() { # vendor NAME
	part "$1_kill" env VENDOR="$1" KILL_POINTS=all bash tests/e2e/vendor_kill.sh
	part "$1_machine" env VENDOR="$1" FULL_POINTS=100 bash tests/e2e/vendor_machine.sh
	part "$1_random" env VENDOR="$1" bash tests/e2e/vendor_random.sh "$seconds" "$(seed)"
	part "$1_network" env VENDOR="$1" NAMED=all bash tests/e2e/vendor_network.sh "$seconds" "$(seed)"
}
# Pods that pass from run to run, and the queue, killed at each write of the ledger: most of the time they wait, so all run at once.
handover() {
	local who
	for who in run_that_keeps client_that_keeps run_that_takes_over run_that_waits run_that_hands_on; do
		part "pooled_$who" env KILL_POINTS=all KILL_RESULTS="$logs/pooled_$who.points" \
			bash tests/e2e/pooled_killed.sh "t_the_${who}_is_killed_at_any_write" &
	done
	part queue_kill env KILL_POINTS=all bash tests/e2e/queue_killed.sh t_submit_killed_at_any_write t_runner_killed_at_any_write &
	wait
}
local_and_runpod() {
	part local_kill env KILL_POINTS=all bash tests/e2e/local_kill.sh
	part boxes_kill env KILL_POINTS=all bash tests/e2e/boxes_kill.sh
	part slurm_kill env KILL_POINTS=all bash tests/e2e/slurm_kill.sh
	part local_machine env FULL_POINTS=all bash tests/e2e/local_machine.sh
	vendor runpod
}
modal_and_vast() {
	vendor modal
	vendor vast
}

# shellcheck disable=SC2086 # no FROM: one word less
part sim bash tests/sim/soak.sh "$build/tests/sim" "$n" $from &
wait
local_and_runpod &
modal_and_vast &
wait
handover
failed=
for status in "$logs"/*.status; do
	[ "$(cat "$status")" = 0 ] || failed="$failed $(basename "$status" .status)"
done
echo "soak: $(find "$logs" -name '*.status' | wc -l) parts in $((SECONDS - began)) s:${failed:- all well}${failed:+ FAILED}"
[ -z "$failed" ]
