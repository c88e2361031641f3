# pooled_lib.sh - what the tests of kept pods share.
# shellcheck shell=bash

KEEP='keep_warm = "20s";'

# job_in FOLDER N [CONFIG...]: a small job of its own, N segments
job_in() {
	local dir=$1 n=$2
	shift 2
	mkdir -p "$dir"
	(
		cd "$dir" || exit
		script_lines "$n"
		config "pods = 1;" "$@"
		sed -i "s/name = \"e2e\"/name = \"$dir\"/" burst.cfg
	)
}
run_in() { # run_in FOLDER [FLAG...]
	local dir=$1
	shift
	burst run "$dir/burst.cfg" --json "$@"
	cp out.txt "$dir.json"
	cp err.txt "$dir.err"
}
creates() { ledger "select count(distinct id) from pod where id != ''"; }
open_pods() { ledger "select count(*) from pod where state not in ('gone', 'failed')"; }
all_over() { [ "$(open_pods)" = 0 ]; }
no_keeper() { [ "$(ledger "select count(*) from run where type = 'keep' and status = 'running'")" = 0 ]; }
kept_now() { [ "$(ledger "select count(*) from pod p join run r on r.id = p.run where r.type = 'keep' and p.state = 'live'")" = "${1:-1}" ]; }
keeper() { ledger "select id from run where type = 'keep' order by seq desc limit 1"; }
# Each pod's time is in one row for each run that held it, end to end (within the second to which billing rounds).
no_gap() {
	is "$(ledger "select count(*) from pod a join pod b on a.id = b.id and a.handed_to = b.run and b.handed_from = a.run where a.handed_to != '' and abs(b.create_ms - a.gone_ms) > 1000")" 0 "gaps between the runs that held a pod"
	is "$(ledger "select count(*) from pod a where a.handed_to != '' and not exists (select 1 from pod b where b.id = a.id and b.handed_from = a.run)")" 0 "pods handed to nobody"
}

# ---- a run that waits for capacity ----

# slow_in FOLDER N [CONFIG...]: a job whose segments take half a second each, on one pod
slow_in() {
	local dir=$1 n=$2
	shift 2
	mkdir -p "$dir"
	(
		cd "$dir" || exit
		slow_segments "$n" "$@"
		sed -i "s/name = \"e2e\"/name = \"$dir\"/" burst.cfg
	)
}
start_in() { # start_in FOLDER [FLAG...]: in the background; its pid in $PID
	"$BURST" run "$1/burst.cfg" --json "${@:2}" >"$1.json" 2>"$1.err" </dev/null &
	PID=$!
}
ends() { # ends PID FOLDER STATUS
	STATUS=0
	{ wait "$1" || STATUS=$?; } 2>/dev/null
	is "$STATUS" "$3" "$2 ($(tail -n 4 "$2.err" | tr '\n' '|'))"
}
waits_for_a_pod() { [ "$(ledger "select count(*) from run where wants != '' and status = 'running'")" = "${1:-1}" ]; }
no_client_of() {
	python3 -c 'import fcntl, sys; fcntl.lockf(open(sys.argv[1], "r+"), fcntl.LOCK_EX | fcntl.LOCK_NB)' "$BURST_STATE_DIR/runs/$1/lock" 2>/dev/null
}
kill_the_waiter() { # kill_the_waiter N [CONFIG...]: run one has N segments; run two is killed while it waits for the only pod; run one ends
	local one two
	allow_volumes v
	LOCAL='capacity = 1;'
	slow_in one "$@"
	slow_in two 2 'wait = "60s";'
	start_in one
	one=$PID
	wait_for 20 "the first run's files" file_count one/out 1
	start_in two
	two=$PID
	wait_for 20 "the second to wait" waits_for_a_pod
	kill -9 "$two"
	ends "$two" two 137
	ends "$one" one 0
}
