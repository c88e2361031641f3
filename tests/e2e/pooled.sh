#!/bin/bash
# pooled.sh - a pod that has finished one run is kept and handed to the next: one cold start for both, each run billed for its own
# time, and one owner whatever dies.
. "$(dirname "$0")/lib.sh"

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
keeper_pid() { sed -n 's/^process //p' "$BURST_STATE_DIR/runs/$(keeper)/lock"; }
# Each pod's time is in one row for each run that held it, end to end.
no_gap() {
	is "$(ledger "select count(*) from pod a join pod b on a.id = b.id and a.handed_to = b.run and b.handed_from = a.run where a.handed_to != '' and b.create_ms != a.gone_ms")" 0 "gaps between the runs that held a pod"
	is "$(ledger "select count(*) from pod a where a.handed_to != '' and not exists (select 1 from pod b where b.id = a.id and b.handed_from = a.run)")" 0 "pods handed to nobody"
}

t_two_jobs_share_one_pod() {
	allow_volumes v
	job_in one 3 "$KEEP"
	job_in two 4 'keep_warm = "0";'
	run_in one
	is "$STATUS" 0 "the first ($(cat err.txt))"
	wait_for 10 "the pod to be kept" kept_now
	run_in two
	is "$STATUS" 0 "the second ($(cat err.txt))"
	has two.err "taken over from run"
	is "$(creates)" 1 "pods created"
	is "$(find one/out -name '*.wav' | wc -l) $(find two/out -name '*.wav' | wc -l)" "3 4" "files"
	wait_for 20 "all to be over" all_over
	wait_for 20 "who kept it to end" no_keeper
	no_gap
	is "$(jq -r '.pods[0].handed_to != null, .pods[0].released' one.json | xargs)" "true true" "the first run's pod"
	is "$(jq -r '.pods[0].handed_from' two.json)" "$(keeper)" "from whom the second has it"
	cp two.json out.txt
	schema run
}

run_tests "$@"
