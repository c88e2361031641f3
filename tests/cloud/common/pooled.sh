# pooled.sh - pods that pass from run to run at any stand-in: sourced by runpod.sh and modal.sh. CONFIG is the vendor's function that
# writes burst.cfg.
# shellcheck shell=bash

pooled_job() { # pooled_job FOLDER SEGMENTS [CONFIG...]: half a second each, on one pod
	mkdir -p "$1"
	(
		cd "$1" || exit
		script_lines "$2"
		slow_worker SLOW=0.5 MAX_BATCH=1
		"$CONFIG" 'pods = 1; code = { path = "code"; };' "${@:3}"
		sed -i "s/name = \"e2e\"/name = \"$1\"/" burst.cfg
	)
}
pooled_start() { # pooled_start FOLDER: in the background; its pid in $PID
	"$BURST" run "$1/burst.cfg" --json >"$1.json" 2>"$1.err" </dev/null &
	PID=$!
}
pooled_end() { # pooled_end PID FOLDER
	STATUS=0
	wait "$1" || STATUS=$?
	is "$STATUS" 0 "$2 ($(tail -n 3 "$2.err" | tr '\n' '|'))"
}
pod_is_kept() { [ "$(ledger "select count(*) from pod p join run r on r.id = p.run where r.type = 'keep' and p.state = 'live'")" = 1 ]; }
run_waits() { [ "$(ledger "select count(*) from run where wants != '' and status = 'running'")" = 1 ]; }
one_pod_for_both() { # each run has the time that it held the pod, and the vendor's meter shows no more than the ledger
	has two.err "taken over from run"
	is "$(file_count one/out "$1" && file_count two/out "$2" && echo all)" all files
	is "$(pods_ever)" 1 "pods that ever were"
	is "$(ledger "select count(*) from pod where state not in ('gone', 'failed')")" 0 "pods that the ledger thinks are there"
	is "$(ledger "select count(*) from pod a join pod b on a.id = b.id and a.handed_to = b.run and b.handed_from = a.run where abs(b.create_ms - a.gone_ms) > 1000")" 0 "gaps between the runs that held it"
	all_paid_for
}

kept_pod_is_taken_over() {
	allow_volumes v
	pooled_job one 3 'keep_warm = "60s";'
	pooled_job two 4
	pooled_start one
	pooled_end "$PID" one
	wait_for 15 "the pod to be kept" pod_is_kept
	pooled_start two
	pooled_end "$PID" two
	wait_for 15 "the client that kept it to end" keeper_is_done
	one_pod_for_both 3 4
	is "$(jq -r '.pods[0].phases.boot_s < 1' two.json)" true "the second run's boot"
}
keeper_is_done() { [ "$(ledger "select count(*) from run where type = 'keep' and status = 'running'")" = 0 ]; }

# sold_out: the vendor's function, after which it has no capacity
waiting_run_takes_pod() {
	local one two
	allow_volumes v
	pooled_job one 16
	pooled_job two 2 'wait = "2m";'
	pooled_start one
	one=$PID
	wait_for 60 "the first run's files" file_count one/out 1
	sold_out
	pooled_start two
	two=$PID
	wait_for 30 "the second to wait" run_waits
	pooled_end "$one" one
	pooled_end "$two" two
	one_pod_for_both 16 2
}
