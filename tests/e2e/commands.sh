#!/bin/bash
# commands.sh - every command against real runs and real pods of the local provider.
. "$(dirname "$0")/lib.sh"

living_run() { # a run of 800 segments on two pods in the background; its id in $RUN
	script_lines 800
	config 'pods = 2;'
	burst_bg run
	wait_for 40 "some files" file_count out 2
	RUN=$("$BURST" ledger --json | jq -r '.[0].run')
}
kill_it() {
	kill -9 "$PID"
	burst_wait
}
a_pod() { pods_left | head -n 1; }

t_init_runs_as_is() {
	burst init -y
	is "$STATUS" 0 init
	burst run
	is "$STATUS" 0 "run ($(tail -n 2 err.txt))"
	is "$(wavs)" 3 files
	[ "$(wc -l <burst.cfg)" -le 15 ] || complain "burst.cfg has $(wc -l <burst.cfg) lines"
	burst init -y
	is "$STATUS" 2 "init again"
	has err.txt "already exists; nothing was changed"
}

t_init_says_what_to_do_next() {
	burst init -y "a book"
	is "$STATUS" 0 init
	has err.txt "next: cd 'a book', then \`burst plan\` shows what a run would rent and cost, \`burst run\` renders into out"
	hasnt err.txt gitignore
	git init -q repo
	burst init -y repo
	has err.txt "keep the output out of git: echo out/ >>repo/.gitignore"
	rm repo/burst.cfg
	echo out/ >repo/.gitignore
	burst init -y repo
	hasnt err.txt "keep the output"
	burst init -y --full full
	grep -q '^# keep_on_failure = ' full/burst.cfg || complain "--full leaves out a key"
	cd full || return
	burst plan
	is "$STATUS" 0 "plan of the full one ($(tail -n 1 err.txt))"
}

t_init_of_a_command_runs_as_is() {
	burst init -t command
	is "$STATUS" 0 init
	burst run
	is "$STATUS" 0 "run ($(tail -n 2 err.txt))"
	is "$(cat out/hello-0.txt)" "pod 0 of 1" "what came home"
	[ "$(wc -l <burst.cfg)" -le 15 ] || complain "burst.cfg has $(wc -l <burst.cfg) lines"
	sed -i 's/^pods = [^;]*;/pods = 2;/' burst.cfg
	burst run --force
	is "$STATUS" 0 "on two pods ($(tail -n 2 err.txt))"
	is "$(cat out/hello-?.txt | tr '\n' ,)" "pod 0 of 2,pod 1 of 2," "what came home then"
}

t_yes_is_taken_everywhere() { # and says nothing where nothing is asked
	local command
	script_lines 2
	config
	for command in run plan offers ps ledger reap doctor "volume ls" help "completion bash" "init new"; do
		# shellcheck disable=SC2086 # words
		burst $command -y
		is "$STATUS" 0 "$command -y ($(tail -n 1 err.txt))"
	done
	for command in attach resume cancel logs fetch; do
		burst $command --yes nosuchrun
		hasnt err.txt "unknown flag"
	done
}

t_dry_run_and_plan() {
	script_lines 3
	config
	for how in "run --dry-run" plan; do
		# shellcheck disable=SC2086
		burst $how
		is "$STATUS" 0 "$how ($(tail -n 2 err.txt))"
		has out.txt "3 segments, 3 to render"
		is "$("$BURST" ledger --json)" "[]" "runs after $how"
		[ ! -e out ] || complain "$how made the output folder"
	done
	touch out
	burst plan
	is "$STATUS" 2 "plan of a job whose output is no folder"
	has err.txt "output $T/out: "
}

t_a_run_beside_a_plan() { # which waits for a vendor: it keeps nobody from rendering, cron least of all
	local how user=$XDG_CONFIG_HOME/burst/burst.cfg planning
	script_lines 2
	config
	sed -i 's/^provider = .*/provider = ["local", "runpod"];/' burst.cfg
	mkdir -p "${user%/*}"
	echo "providers = { runpod = { api_key_command = \"touch '$T/asked'; until [ -e '$T/go' ]; do sleep 0.1; done; exit 1\"; }; };" >"$user"
	unset RUNPOD_API_KEY
	for how in "run --dry-run" plan; do
		rm -rf asked go out
		# shellcheck disable=SC2086
		timeout -k 5 60 "$BURST" $how >plan.txt 2>plan-err.txt </dev/null &
		planning=$!
		wait_for 20 "$how to ask a vendor" test -e asked
		burst run -p local
		is "$STATUS" 0 "run beside $how ($(tail -n 1 err.txt))"
		is "$(wavs)" 2 "its files"
		touch go
		STATUS=0
		wait $planning || STATUS=$?
		is "$STATUS" 0 "$how ($(tail -n 1 plan-err.txt))"
	done
}

t_a_plan_beside_a_run() {
	local how holder
	script_lines 100
	mkdir code
	cp "$ROOT/tests/workers/worker.sh" code/
	ENGINE='test'
	JOB='worker = "SLOW=0.5 MAX_BATCH=1 sh \"$BURST_CODE/worker.sh\""; check = { enabled = false; }; estimate = { once = 0.5; };'
	config 'code = { path = "code"; };'
	burst_bg run
	wait_for 40 "some files" file_count out 2
	for how in "run --dry-run" plan; do
		STATUS=0
		# shellcheck disable=SC2086
		"$BURST" $how >plan.txt 2>plan-err.txt </dev/null || STATUS=$?
		is "$STATUS" 0 "$how beside a living run ($(tail -n 1 plan-err.txt))"
		has plan.txt "100 segments, "
	done
	running_as "$PID" || complain "the run is over already"
	kill -INT "$PID"
	burst_wait
	is "$STATUS" 130 "the run"
	# a file that came home after the plan had read the manifest
	echo mine >out/s099.wav
	flock out sleep 60 &
	holder=$!
	wait_for 20 "the folder's lock" eval '! flock -n out true'
	burst plan
	is "$STATUS" 0 "plan beside a run that wrote a file meanwhile ($(tail -n 1 err.txt))"
	pkill -P $holder
	wait $holder 2>/dev/null
	burst plan
	is "$STATUS" 2 "plan with a foreign file"
	has err.txt "out/s099.wav is there and was not made by this job"
}

t_a_detached_run_that_never_began_has_an_object() {
	local id
	config
	burst run -d --json
	is "$STATUS" 2 "without its script"
	schema run
	is "$(json '"\(.status) \(.error.code)"')" "failed config" "its object"
	script_lines 2
	burst run
	burst run -d --json
	is "$STATUS" 0 "nothing left to render ($(tail -n 1 err.txt))"
	schema run
	is "$(json '"\(.status) \(.segments.cached)"')" "done 2" "its object"
	# and one that began prints its id, and keeps nobody waiting who reads it
	script_lines 60
	mkdir code
	cp "$ROOT/tests/workers/worker.sh" code/
	ENGINE='test'
	JOB='worker = "SLOW=0.5 MAX_BATCH=1 sh \"$BURST_CODE/worker.sh\""; check = { enabled = false; };'
	config 'code = { path = "code"; };'
	id=$(timeout 90 "$BURST" run -d -o more 2>err.txt </dev/null) || complain "run -d: $(tail -n 1 err.txt)"
	is "$("$BURST" ledger "$id" --json | jq -r .status)" running "what it did meanwhile"
	burst cancel "$id"
	is "$STATUS" 0 "cancel ($(tail -n 1 err.txt))"
}

t_a_plan_has_no_object() {
	script_lines 3
	config
	burst run -n --json
	is "$STATUS" 2 "run -n --json"
	is "$(wc -l <out.txt)" 1 "lines on stdout"
	schema run
	is "$(json .error.code)" usage "its error"
}

t_offers() {
	config
	burst offers --json
	is "$STATUS" 0 "exit status ($(tail -n 2 err.txt))"
	schema offers
	is "$(jq -r '.[0].provider' out.txt)" local provider
	is "$(jq -r '.[0].price_usd_hour' out.txt)" 0.69 price
}

t_ps_with_live_pods() {
	burst ps --json
	is "$(cat out.txt)" "[]" "ps of nothing"
	burst ps
	has err.txt "no pods or volumes are billing according to this ledger"
	living_run
	"$BURST" ps --json >ps.json
	"$BURST" ps >ps.txt
	is "$(jq '[.[] | select(.kind == "pod")] | length > 0' ps.json)" true "pods in ps"
	has ps.txt "$RUN"
	# what it cost until now is no secret of the run's end
	"$BURST" ledger --json >ledger.json
	"$BURST" ledger "$RUN" --json >run.json
	is "$(jq '.[0] | .status == "running" and .cost_usd > 0 and .billed_seconds > 0 and .segments.rendered > 0' ledger.json)" true \
		"the ledger of a living run ($(cat ledger.json))"
	is "$(jq '.cost_usd > 0 and .segments.rendered > 0' run.json)" true "the run itself ($(cat run.json))"
	schema ledger ledger.json
	kill_it
	burst ledger
	has out.txt "no client"
	burst ledger "$RUN"
	has out.txt "its client exited: \`burst resume $RUN\`"
	burst ps --json
	schema ps
	is "$(json '[.[] | select(.kind == "pod") | .state] | unique | join(" ")')" unwatched "pods without a client"
	burst ps
	has err.txt "no client and may be gone"
	ledger "update pod set hard_end_s = hard_end_s - 1000000, create_ms = create_ms - 1000000000"
	burst ps --json
	schema ps
	is "$(json '[.[] | select(.kind == "pod") | "\(.state) \(.age_seconds < 900)"] | unique | join(",")')" "over true" "pods past their hard end"
	ledger "update pod set hard_end_s = hard_end_s + 1000000, create_ms = create_ms + 1000000000"
	burst cancel "$RUN"
	is "$STATUS" 0 "cancel of a dead run ($(tail -n 1 err.txt))"
	is "$(pods_left)" "" pods
	burst cancel "$RUN"
	is "$STATUS" 0 "cancel again"
}

t_status_in_one_line() {
	local before
	burst status
	is "$STATUS $(cat out.txt err.txt)" "0 no run yet | nothing runs | nothing bills | \$0.00 today" "status of nothing"
	is "$(ls "$BURST_STATE_DIR")" "" "what status left in the state folder"
	burst status --json
	schema status
	is "$(json '"\(.ledger) \(.last_success)"')" "none null" "its object"
	script_lines 2
	config
	burst run
	is "$STATUS" 0 "run ($(tail -n 1 err.txt))"
	before=$(sha256sum <"$BURST_STATE_DIR/ledger.db")
	burst status
	has out.txt " ago | nothing runs | nothing bills | \$"
	is "$(wc -l <out.txt)" 1 lines
	is "$(sha256sum <"$BURST_STATE_DIR/ledger.db")" "$before" "the ledger that status read"
	burst status --json
	schema status
	is "$(json '"\(.ledger) \(.last_success.run) \(.last_success.age_seconds < 300) \(.today_usd > 0)"')" \
		"read $("$BURST" ledger --json | jq -r '.[0].run') true true" "after a run"
	is "$(json .today_usd)" "$("$BURST" ledger --json | jq '.[0].cost_usd')" "the dollars of today"
	ledger "update run set started_ms = started_ms - 200000000, ended_ms = ended_ms - 200000000; update pod set create_ms = create_ms - 200000000"
	burst status
	has out.txt "| \$0.00 today"
	# a run that began two days ago and whose pod billed until now
	ledger "update run set ended_ms = 0, status = 'running'; update pod set billed_ms = $(date +%s)000 - create_ms, released_ms = $(date +%s)000, gone_ms = $(date +%s)000, price_microusd_h = 1000000, cost_microusd = 56000000"
	burst status --json
	schema status
	[ "$(json '.today_usd * 100 | floor')" -ge "$(($(date +%-H) * 100))" ] || complain "a pod since the day before yesterday costs today: $(json .today_usd)"
	ledger_locked burst status
	is "$STATUS $(cat out.txt err.txt)" "0 the ledger is locked by another process" "status of a locked ledger"
	ledger_locked burst status --json
	schema status
	is "$(json .ledger)" locked "its object"
}
ledger_locked() { # ledger_locked COMMAND...: while another process lets nobody even read
	local holder
	python3 - "$BURST_STATE_DIR/ledger.db" <<-'E' &
		import sqlite3, sys, time
		db = sqlite3.connect(sys.argv[1], isolation_level=None)
		db.execute("pragma locking_mode=exclusive")
		db.execute("begin immediate")
		db.execute("pragma user_version=%d" % db.execute("pragma user_version").fetchone()[0])
		open("locked", "w").close()
		time.sleep(120)
	E
	holder=$!
	wait_for 20 "a locked ledger" test -e locked
	"$@"
	kill $holder
	wait $holder 2>/dev/null
	rm -f locked
}

t_status_of_a_dead_run() {
	living_run
	burst status
	hasnt out.txt "!!"
	has out.txt "no success yet | "
	has out.txt " runs | 2 pods bill, \$"
	kill_it
	burst status
	has out.txt "!! 2 pods bill without a client: \`burst reap\` !! | "
	has out.txt ", 1 without a client"
	burst status --json
	schema status
	is "$(json '"\(.pods.billing) \(.pods.without_client) \(.running[0].client) \(.today_usd > 0)"')" "2 2 false true" "its object"
	burst cancel "$RUN"
	burst status
	has out.txt "nothing runs | nothing bills"
}

t_ps_shows_how_far_a_run_is() {
	local done
	slow_segments 60
	burst_bg run
	wait_for 60 "three files" file_count out 3
	burst ps
	is "$STATUS" 0 ps
	is "$(head -n 1 out.txt | tr -s ' ' | cut -d' ' -f1,2,3)" "RUN JOB POD" "the first columns"
	grep -qE "^$(ledger 'select id from run') +e2e +local-[0-9a-f]+ .* working +[0-9]+/60 +[0-9.]+s " out.txt || complain "ps says: $(sed -n 2p out.txt)"
	burst ps --json
	schema ps
	done=$(json '.[0].segments.done')
	[ "$done" -ge 3 ] && [ "$done" -lt 60 ] || complain "$done segments are done"
	is "$(json '.[0] | [.job, .segments.total, .phase, (.eta_seconds > 1 and .eta_seconds < 120)] | @csv')" '"e2e",60,"working",true' "what --json says"
	burst cancel
	burst_wait
}

t_cancel_a_living_run() {
	living_run
	STATUS=0
	"$BURST" cancel "$RUN" 2>cancel.txt || STATUS=$?
	is "$STATUS" 0 "cancel ($(cat cancel.txt))"
	is "$(pods_left)" "" "pods at once"
	burst_wait
	is "$STATUS" 143 "the run itself"
}

t_logs() {
	local phase lines
	living_run
	timeout 60 "$BURST" logs -f "$RUN" >follow.txt 2>&1 &
	local follower=$!
	kill -INT "$PID"
	burst_wait
	STATUS=0
	wait $follower || STATUS=$?
	is "$STATUS" 0 "logs -f"
	burst logs "$RUN"
	is "$STATUS" 0 logs
	for phase in "requested: no GPU of local" queue: boot: connect: sync: load: "release: "; do
		lines=$(grep -cE "^[0-9T:-]+Z pod [^ ]+: $phase" out.txt)
		[ "$lines" -ge 1 ] || complain "the phase $phase has no line"
		is "$(grep -cE "^[0-9T:-]+Z pod [^ ]+: $phase" follow.txt)" "$lines" "lines of the phase $phase that were followed"
	done
	grep -qE 'pod [^ ]+: load: [0-9.]+s, \$0\.[0-9]+ so far' out.txt || complain "the phase load has no time and price: $(grep load out.txt)"
	grep -qE 'gone, [0-9.]+s billed, \$0\.[0-9]+$' out.txt || complain "the end has no bill: $(grep release out.txt)"
	is "$(grep -oE '^[0-9-]+T[0-9:]+Z' out.txt | sort -c 2>&1)" "" "the order of the lines"
	has out.txt "BILLED"
	mkdir elsewhere && cd elsewhere || return
	burst logs
	is "$STATUS" 0 "logs where nothing ran"
	has err.txt "run $RUN (job"
	cd .. || return
	burst logs nonsense
	is "$STATUS" 2 "logs of nothing"
}

t_logs_of_a_run_whose_client_died() {
	living_run
	kill_it
	burst logs -f "$RUN"
	is "$STATUS" 0 "logs -f ($(tail -n 1 err.txt))"
	[ -s out.txt ] || complain "the log is empty"
	has err.txt "run $RUN: client exited; end of log"
	burst reap
	is "$STATUS" 0 reap
	burst logs -f "$RUN"
	is "$STATUS" 0 "logs -f of a run that was settled"
	hasnt err.txt "client exited"
}

t_attach_when_the_client_dies() { # `burst attach && publish`: nothing is published
	living_run
	"$BURST" attach "$RUN" --json >attach.txt 2>attach-err.txt </dev/null &
	local attached=$!
	wait_for 20 "attach to show progress" grep -q "/800 " attach-err.txt
	kill_it
	STATUS=0
	wait $attached || STATUS=$?
	is "$STATUS" 9 "attach ($(tail -n 1 attach-err.txt))"
	has attach-err.txt "run $RUN: its client died; "
	has attach-err.txt "\`burst resume $RUN\` continues it, \`burst reap\` releases its pods"
	schema run attach.txt
	is "$(jq -r '"\(.run) \(.status) \(.error.code) \(.pods | length > 0)"' attach.txt)" "$RUN unreleased unreleased true" "its object"
	burst reap
	is "$STATUS" 0 "reap ($(tail -n 1 err.txt))"
	burst attach "$RUN" --json
	is "$STATUS" 143 "attach to a run that was settled"
	has err.txt "run $RUN has ended: interrupted"
	schema run
	is "$(json '"\(.run) \(.status) \([.pods[].released] | all)"')" "$RUN interrupted true" "its object"
	is "$("$BURST" ledger --json | jq '.[0].exit_status')" 143 "what the ledger says"
}

folder_of_its_own() { # folder_of_its_own NAME N: a project with so many segments; to there
	mkdir -p "$T/$1" && cd "$T/$1" || return
	script_lines "$2"
	config 'pods = 1;'
	sed -i "s/name = \"\(e2e\|v\)\"/name = \"$1\"/" burst.cfg
}
without_run() { # without_run WHAT STATUS TEXT: each command that acts on a RUN, without one, in this folder
	local how
	for how in attach resume cancel; do
		burst $how
		is "$STATUS" "$2" "$how $1 ($(tail -n 2 err.txt))"
		has err.txt "$3"
		[ "$2" != 2 ] || hasnt out.txt .
	done
}
t_without_run_this_folder_is_meant() { # in another project's folder `burst cancel` has stopped this run, and `burst resume` rented for it
	folder_of_its_own done 2
	burst run
	is "$STATUS" 0 "the first one ($(tail -n 2 err.txt))"
	local first pods run
	first=$(ledger 'select id from run')
	folder_of_its_own lives 800
	burst_bg run
	wait_for 40 "some files" file_count out 2
	run=$(ledger "select id from run where job = 'lives'")
	cd ../done || return
	without_run "where it is done" 0 "(job \"done\" in $T/done)"
	burst logs
	has err.txt "run $first (job"
	cp burst.cfg good.cfg
	echo 'gpu = ;' >>burst.cfg
	burst cancel
	is "$STATUS" 0 "cancel beside a broken burst.cfg ($(tail -n 2 err.txt))"
	has err.txt "run $first: done; all pods gone (job \"done\" in $T/done)"
	mv good.cfg burst.cfg
	mkdir "$T/new" "$T/empty"
	cp burst.cfg script.jsonl "$T/new"
	cd "$T/new" || return
	without_run "where nothing ran" 2 "$T/new/burst.cfg was never run by this user"
	has err.txt "running elsewhere: run $run (job \"lives\" in $T/lives)"
	cd "$T/empty" || return
	without_run "where there is no burst.cfg" 2 "no burst.cfg in this folder"
	ln -s ../lives/burst.cfg .
	without_run "where it is a link out of the project" 2 "out of the project"
	rm burst.cfg
	running_as "$PID" || complain "the run ended"
	kill_it
	pods=$(ledger 'select count(*) from pod')
	without_run "beside a dead run of another folder" 2 "running elsewhere: run $run (job \"lives\" in $T/lives)"
	is "$(ledger 'select count(*) from pod')" "$pods" "pods ever rented"
	cd "$T/lives" || return
	"$BURST" attach >attach.txt 2>&1 </dev/null &
	local attached=$!
	wait_for 20 "attach" grep -q "run $run: continuing (job \"lives\" in $T/lives)" attach.txt
	wait_for 20 "attach to hold the run" grep -q "^process $attached" "$BURST_STATE_DIR/runs/$run/lock"
	cd "$T/empty" || return
	burst cancel "$run"
	is "$STATUS" 0 "cancel by its id ($(tail -n 2 err.txt))"
	# by its client, or by cancel itself where that client had not begun yet
	grep -qF -e "run $run: interrupted; all pods gone (job \"lives\" in $T/lives)" -e "run $run: its 1 pod is gone (job \"lives\" in $T/lives)" err.txt ||
		complain "cancel: $(tail -n 2 err.txt)"
	wait $attached
	is "$?" 143 "attach to a run that was cancelled"
	is "$(pods_left)" "" pods
}

t_cancelled_before_it_had_a_pod() { # its client died in between
	script_lines 2
	config
	burst run
	ledger "update run set status = 'running', exit_status = 0"
	RUN=$("$BURST" ledger --json | jq -r '.[0].run')
	burst cancel "$RUN"
	is "$STATUS" 0 cancel
	burst attach "$RUN"
	is "$STATUS" 143 "attach to a run that was cancelled"
}

t_resume_of_a_done_run() {
	script_lines 3
	config
	burst run
	RUN=$("$BURST" ledger --json | jq -r '.[0].run')
	burst resume "$RUN"
	is "$STATUS" 0 resume
	has err.txt "run $RUN is already done"
	burst attach "$RUN"
	is "$STATUS" 0 attach
	for how in resume attach; do
		burst $how "$RUN" --json
		is "$STATUS" 0 "$how --json"
		schema run
		is "$(json '"\(.run) \(.status) \(.segments.rendered) \(.pods | length)"')" "$RUN done 3 1" "what $how --json prints"
	done
	burst ledger --json
	schema ledger
	burst ledger "$RUN" --json
	schema run
	burst ledger "$RUN"
	has out.txt "3 rendered"
}

t_ledger_of_an_older_burst() {
	mkdir -p "$BURST_STATE_DIR"
	sqlite3 "$BURST_STATE_DIR/ledger.db" <"$ROOT/tests/unit/ledger_3.sql"
	burst ledger --json
	schema ledger
	is "$(json '.[] | "\(.run) \(.status) \(.cost_usd)"')" $'1125-204442-6a6f failed 0.000384\n1125-204440-6b28 done 0.000192' "its runs"
	burst ledger 1125-204440-6b28 --json
	is "$(json '"\(.billed_seconds) \(.cost_usd) \(.pods[0].cost_usd) \(.pods[0].released)"')" "1 0.000192 0.000192 true" "one run"
	burst ps
	is "$STATUS" 0 "nothing bills"
}
t_ledger_sums() {
	burst ledger --by day --json
	is "$STATUS $(cat out.txt)" "0 []" "nothing ever ran"
	script_lines 2
	config
	burst run
	# a pod of two hours at $1 an hour that was created an hour before midnight in New York
	ledger "update pod set create_ms = 1795320000000, released_ms = 1795327200000, billed_ms = 7200000, cost_microusd = 2000000"
	export TZ=America/New_York
	burst ledger --by day --json
	schema ledger_by
	is "$(json '.[] | "\(.day) \(.runs) \(.pods) \(.billed_seconds) \(.cost_usd)"')" $'2026-11-22 1 1 3600 1\n2026-11-21 1 1 3600 1' "by day"
	TZ=UTC burst ledger --by day --csv
	is "$(cut -d, -f 1-4,7 out.txt)" $'day,runs,pods,billed_seconds,cost_usd\n2026-11-22,1,1,7200.000,2.000000' "by day in UTC"
	burst ledger --by project --json
	schema ledger_by
	is "$(json '.[] | "\(.project) \(.cost_usd)"')" "$PWD 2" "by project"
	burst ledger --by provider
	has out.txt "local"
	burst ledger --by gpu --csv
	is "$(wc -l <out.txt) $(cut -d, -f 7 out.txt | tail -n 1)" "2 2.000000" "by GPU"
	burst ledger --csv
	is "$(wc -l <out.txt) $(tail -n 1 out.txt | cut -d, -f 4,8)" "2 done,2" "the runs"
	burst ledger --by week
	is "$STATUS" 2 "an unknown word"
	has err.txt "day, project, gpu or provider"
	burst ledger --by day --json --csv
	is "$STATUS" 2 "two forms at once"
}

t_reconcile() { # this machine's own pods have a vendor too, which knows how long they lived
	burst ledger --reconcile --json
	is "$STATUS $(cat out.txt)" "0 []" "nothing ever ran"
	script_lines 3
	config 'pods = 2;'
	burst run
	RUN=$("$BURST" ledger --json | jq -r '.[0].run')
	burst ledger --reconcile --json
	is "$STATUS" 0 "exit status ($(tail -n 2 err.txt))"
	schema reconcile
	is "$(json '[.[] | "\(.run) \(.state) \(.billed_vendor_is) \(.cost_beside_usd)"] | unique | .[]')" "$RUN agrees reported 0" "the pods"
	is "$(json 'all(.[]; .cost_vendor_usd > 0 and .cost_vendor_usd <= .cost_usd)')" true "dollars"
	burst ledger "$RUN" --reconcile
	is "$STATUS" 0 "one run"
	has out.txt ": agrees"
	burst ledger "$RUN"
	grep -q '^vendor .* billed, .* for [12] pods\? that burst counts as ' out.txt || complain "$(cat out.txt)"
	burst ledger nosuch --reconcile
	is "$STATUS" 2 "a run that is none"
	burst ledger --reconcile --most 3
	is "$STATUS" 2 "a flag of the list"
	# what its vendor has forgotten stays as it was said
	rm -rf state/local/ended
	burst ledger "$RUN" --reconcile --json
	is "$STATUS" 0 "no record any more"
	schema reconcile
	is "$(json 'all(.[]; .billed_vendor_s > 0)')" true "what was said"
}

t_ssh_passes_the_exit_code() {
	living_run
	local pod
	pod=$(ledger "select id from pod where port > 0 and state = 'live' limit 1")
	STATUS=0
	"$BURST" ssh "$pod" 'echo hello; exit 7' >ssh.txt 2>ssh-err.txt </dev/null || STATUS=$?
	is "$STATUS" 7 "exit code ($(cat ssh-err.txt))"
	has ssh.txt hello
	kill -TERM "$PID"
	burst_wait
	burst ssh "$pod" true
	is "$STATUS" 2 "ssh to a pod that is gone"
}

t_ssh_from_a_state_folder_with_odd_characters() { # ssh splits values at blanks, and replaces "%h" and "${HOME}"
	local pod
	export BURST_STATE_DIR="$T/state of a%h\"b \${HOME}"
	living_run
	pod=$(ledger "select id from pod where port > 0 and state = 'live' limit 1")
	STATUS=0
	"$BURST" ssh "$pod" 'echo hello; exit 7' >ssh.txt 2>ssh-err.txt </dev/null || STATUS=$?
	is "$STATUS" 7 "exit code ($(cat ssh-err.txt))"
	has ssh.txt hello
	kill -TERM "$PID"
	burst_wait
}

t_reap_a_strangers_pod() {
	living_run
	local pod
	pod=$(a_pod)
	kill_it
	mv state/ledger.db their-ledger
	rm -f state/ledger.db-wal state/ledger.db-shm
	burst reap
	is "$STATUS" 0 "reap ($(tail -n 1 err.txt))"
	has out.txt "skipped (burst reap $pod --force releases it)"
	[ -n "$(pods_left)" ] || complain "a stranger's pod was ended"
	for pod in $(pods_left); do
		burst reap "$pod" --force
		is "$STATUS" 0 "reap --force ($(tail -n 1 err.txt))"
		has out.txt "pod $pod of local: gone (as requested)"
	done
	burst reap "$pod" --force
	is "$STATUS" 9 "reap of one that is nowhere, and that this ledger never knew"
	has err.txt "pod $pod: not among burst's pods at local"
	burst ssh "$pod"
	is "$STATUS" 2 "ssh to one that nobody knows"
	is "$(cat err.txt)" "burst: no pod \"$pod\" in this ledger; \`burst ps\` lists them" words
}

t_reap_tells_of_the_pod() { # that was named
	living_run
	local pod
	pod=$(a_pod)
	kill_it
	burst reap "$pod"
	is "$STATUS" 0 "reap ($(tail -n 1 err.txt))"
	has err.txt "run $RUN: all pods released"
	has out.txt "pod $pod of local: gone (seen at "
}


t_reap_a_pod_past_its_hard_end() {
	# a pod of another machine, whose own switch does not work, 400 s past its hard end; and one that is not
	config
	local pod now
	now=$(date +%s)
	for pod in 1 2; do
		jq -n --argjson over $((now - (pod == 1 ? 400 : 200))) --arg name "burst-$pod" '{conf: {price: 690000}, name: $name,
			script: "exec sleep 300", volume: "", env: {BURST_SSH_PORT: "22", BURST_HOME: "/run/burst"},
			marker: {machine: "00000000000000aa", run: "r1", attempt: $name, hard_end_s: $over}}' |
			"$BURST" local-cloud rent "$BURST_STATE_DIR" >"rent$pod.txt" 2>&1 || complain "rent: $(cat "rent$pod.txt")"
	done
	burst reap
	is "$STATUS" 0 "reap ($(tail -n 1 err.txt))"
	has out.txt "pod $(jq -r '.pods[0].id' rent1.txt) of local: gone (past its hard end)"
	has out.txt "skipped (burst reap"
	is "$(pods_left)" "$(jq -r '.pods[0].id' rent2.txt)" "who is left"
	burst reap "$(pods_left)" --force
	is "$STATUS" 0 "reap --force"
}

strangers_pod() { # strangers_pod RUN ATTEMPT MACHINE: a pod that no row names; its id in $ID
	jq -n --arg run "$1" --arg attempt "$2" --arg machine "$3" --argjson over $(($(date +%s) + 600)) '{conf: {price: 690000},
		name: "burst-\(if $attempt == "" then "0" else $attempt end)", script: "exec sleep 300", volume: "", env: {BURST_SSH_PORT: "22", BURST_HOME: "/run/burst"},
		marker: {machine: $machine, run: $run, attempt: $attempt, hard_end_s: $over}}' |
		"$BURST" local-cloud rent "$BURST_STATE_DIR" >rent.txt 2>&1 || complain "rent: $(cat rent.txt)"
	ID=$(jq -r '.pods[0].id' rent.txt)
}
t_many_outputs_are_synced_together() { # each before it has its name, what is written of them before that, their folders after it
	command -v strace >/dev/null || { skip "no strace"; return; }
	case $BURST in */asan/*) ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0 ;; esac
	cat >burst.cfg <<-'E'
		provider = "local";
		caps = { max_cost = 1.00; max_duration = "10m"; };
		job = { name = "many"; type = "command"; output = "out"; outputs = ["a/*", "b/*"];
			run = "mkdir a b; for i in $(seq 120); do echo $i >a/$i; echo $i >b/$i; done"; };
	E
	STATUS=0
	timeout -k 5 120 strace -f -y -o calls -e trace=fsync,fdatasync,rename,renameat,renameat2 "$BURST" run >out.txt 2>err.txt </dev/null || STATUS=$?
	is "$STATUS" 0 "exit status ($(tail -n 2 err.txt))"
	is "$(find out/a out/b -type f -size +0 | wc -l)" 240 files
	is "$(jq -r '.sha256 + "  out/" + .file' out/manifest.jsonl | sha256sum -c --quiet 2>&1 | wc -l)" 0 "files that the manifest does not know"
	# the first line of a call tells its order; the pods' own folder is not looked at
	awk -v out="$T/out" 'index($0, out "/") || index($0, out ">") {
		part = ""
		if (match($0, /\/[ab]\/[0-9]+\.part>/)) part = substr($0, RSTART + 1, RLENGTH - 7)
		if (/fsync\(/ && part != "") synced[part] = 1
		if (/fsync\(/ && /manifest\.jsonl>/) written++
		if (/fsync\(/ && /\/out\/[ab]>/) folders++
		if (/renameat\(/ && match($0, /\/[ab]>, "[0-9]+\.part"/)) {
			split(substr($0, RSTART + 1, RLENGTH - 7), of, />, "/)
			named++
			if (!synced[of[1] "/" of[2]]) early++
			if (!written) unwritten++
		}
	}
	END {print named + 0, early + 0, unwritten + 0; print written + 0, folders + 0}' calls >counted
	is "$(head -n 1 counted)" "240 0 0" "renames, those before the file was synced, those before the manifest was"
	[ "$(tail -n 1 counted | awk '{print $1 + $2}')" -le 20 ] || complain "the manifest and the folders are synced so often: $(tail -n 1 counted)"
}
t_reap_what_an_ended_run_left() { # a second pod of one create, in no list before the run had ended
	local machine
	script_lines 2
	config
	burst run
	is "$STATUS" 0 "run"
	RUN=$("$BURST" ledger --json | jq -r '.[0].run')
	machine=$(ledger "select value from fact where name = 'machine'")
	strangers_pod "$RUN" aaaaaaaaaaaaaaaa 00000000000000aa
	local theirs=$ID
	strangers_pod "$RUN" bbbbbbbbbbbbbbbb "$machine"
	burst reap
	is "$STATUS" 0 "reap ($(tail -n 1 err.txt))"
	has out.txt "pod $ID of local: gone (its run has ended)"
	is "$(pods_left)" "$theirs" "who is left"
	burst reap "$theirs" --force
	is "$STATUS" 0 "reap --force"
}
billed_for_two_seconds() { # the only pod, since its create call
	[ "$(($(date +%s%3N) - $(ledger "select max(create_ms) from pod")))" -ge 2100 ]
}
t_reap_what_was_taken_for_unmade() { # its create was answered by nobody, and lists missed it: it billed until it was reaped
	living_run
	local pod
	pod=$(a_pod)
	kill_it
	ledger "update run set status = 'interrupted'"
	ledger "update pod set id = '', state = 'failed', release_ms = 0, released_ms = create_ms + 1 where id = '$pod'"
	wait_for 20 "two billed seconds" billed_for_two_seconds
	burst reap
	is "$STATUS" 0 "reap ($(tail -n 1 err.txt))"
	is "$(ledger "select state, billed_ms >= 2000 and released_ms - create_ms >= 2000 and cost_microusd > 0 from pod where id = '$pod'")" "gone|1" \
		"what its row says: $(ledger "select state, billed_ms, released_ms - create_ms, cost_microusd from pod where id = '$pod'")"
	is "$(ledger "select run.billed_ms = sum(pod.billed_ms) and run.cost_microusd = sum(pod.cost_microusd) from run, pod where pod.run = run.id and run.status = 'interrupted'")" 1 \
		"what its run's row says: $(ledger "select billed_ms, cost_microusd from run")"
}
t_reap_a_pod_that_nobody_knows() { # whoever names a pod is told of that one
	script_lines 2
	config
	burst run
	burst reap nosuchpod --force
	is "$STATUS" 9 "a pod that is nowhere"
	has err.txt "pod nosuchpod: not among burst's pods at local"
	has err.txt "misspelled"
	burst reap "$(ledger 'select id from pod')" --force
	is "$STATUS" 0 "one that the ledger knows is gone ($(tail -n 1 err.txt))"
	has out.txt ": gone"
}
t_reap_of_an_empty_name() { # `burst reap "$POD" --force` with POD unset: it is no pod's name, least of all of those that lost their mark
	local command words
	script_lines 2
	config
	strangers_pod r1 "" ""
	[ -n "$(pods_left)" ] || complain "there is no pod"
	for command in 'reap|--force' 'reap|-p|local|--force' 'reap|' cancel resume attach logs fetch ledger ssh 'volume|rm|-y'; do
		IFS='|' read -ra words <<<"$command"
		burst "${words[@]}" ""
		is "$STATUS" 2 "$command of nothing"
		has err.txt "empty argument"
	done
	burst reap --force
	is "$STATUS" 2 "reap --force without a name ($(cat err.txt))"
	has err.txt "needs a POD"
	is "$(pods_left)" "$ID" "who is left"
	burst reap "$ID" --force
	is "$STATUS" 0 "by its id"
}
t_reap_leaves_the_one_that_is_named() { # somebody else's, and it was not to be forced: it goes on billing, and that is no success
	config
	strangers_pod r1 aaaaaaaaaaaaaaaa 00000000000000aa
	local first=$ID
	burst reap
	is "$STATUS" 0 "reap of all that is to be reaped"
	burst reap "$first"
	is "$STATUS" 9 "reap without --force"
	has err.txt "pod $first was skipped and may still be billing; release it with: burst reap $first --force"
	is "$(pods_left)" "$first" "who is left"
	burst reap "$first" --force
	is "$STATUS" 0 "reap --force"
}
t_reap_without_one_of_two_accounts() { # what can be given back is; what cannot be asked for is named
	living_run
	kill_it
	ledger "create temp table t as select * from pod limit 1;
		update t set seq = null, attempt = 'cccccccccccccccc', id = 'rp1', provider = 'runpod', account = 'x';
		insert into pod select * from t"
	unset RUNPOD_API_KEY
	burst reap
	is "$STATUS" 9 "exit status ($(tail -n 3 err.txt | tr '\n' '|'))"
	is "$(pods_left)" "" "pods here"
	has err.txt "pod rp1 of runpod may still be billing; release it with: burst reap rp1 --force"
	is "$("$BURST" ledger "$RUN" --json | jq -r .status)" unreleased "the run"
	burst attach "$RUN"
	is "$STATUS" 9 "attach to it"
}
not_looked_at() { # not_looked_at WHAT WHY: reap had an account there that it could not open
	burst reap
	is "$STATUS" 3 "$1 ($(tail -n 2 err.txt | tr '\n' '|'))"
	has err.txt "runpod was not checked: "
	has err.txt "$2"
	hasnt err.txt "no pods of burst are left"
	burst reap -p runpod
	is "$STATUS" 3 "$1, asked for by name"
	burst reap -p local,runpod
	is "$STATUS" 3 "$1, one of two that are asked for"
	has err.txt "runpod was not checked: "
}
t_reap_without_the_key_of_an_account() { # a password store that is locked, at night: that is not "nothing is left"
	local user=$XDG_CONFIG_HOME/burst/burst.cfg
	unset RUNPOD_API_KEY
	burst reap
	is "$STATUS" 0 "no account at all ($(cat err.txt))"
	has err.txt "no pods of burst are left at local"
	burst reap -p runpod
	is "$STATUS" 3 "no account, asked for by name"
	mkdir -p "${user%/*}" "$HOME/.runpod"
	echo 'providers = { runpod = { api_key_command = "exit 2"; }; };' >"$user"
	not_looked_at "a command that fails" "/.config/burst/burst.cfg:1: api_key_command: the command failed with exit status 2"
	echo 'providers = { runpod = { api_key_command = "true"; }; };' >"$user"
	not_looked_at "a command that prints nothing" "/.config/burst/burst.cfg:1: api_key_command: the command's output is not a key: it is empty"
	rm "$user"
	export RUNPOD_API_KEY='a b'
	not_looked_at "a key that is none" "RUNPOD_API_KEY: api_key: it contains a blank or a control character"
	unset RUNPOD_API_KEY
	printf '[default\napi_key = "x"\n' >"$HOME/.runpod/config.toml"
	not_looked_at "a file that cannot be read" "/.runpod/config.toml:1: a table's name must end with ]"
	# pods of this machine's own are given back all the same; one that may be there is named
	strangers_pod r1 aaaaaaaaaaaaaaaa 00000000000000aa
	burst reap "$ID" --force
	is "$STATUS" 0 "a pod of another account, by its name ($(tail -n 2 err.txt))"
	has err.txt "runpod was not checked: "
	rm "$HOME/.runpod/config.toml"
	script_lines 2
	config
	burst run
	is "$STATUS" 0 "run ($(tail -n 2 err.txt))"
	ledger "create temp table t as select * from pod limit 1;
		update t set seq = null, attempt = 'cccccccccccccccc', id = 'rp1', provider = 'runpod', account = 'x', state = 'live', gone_ms = 0,
			hard_end_s = unixepoch() + 3600;
		insert into pod select * from t;
		update run set status = 'running', detached = 1"
	export RUNPOD_API_KEY='a b'
	burst reap
	is "$STATUS" 9 "with a pod there ($(tail -n 2 err.txt | tr '\n' '|'))"
	has err.txt "pod rp1 of runpod may still be billing"
	unset RUNPOD_API_KEY
	burst reap
	is "$STATUS" 9 "the same without a key ($(tail -n 2 err.txt | tr '\n' '|'))"
}
holding() { # holding NOTE: somebody holds the run's lock and has written that into it; who, in $HOLDER
	local lock=state/runs/$RUN/lock
	bash -c "exec 9<>'$lock'; flock 9; echo '$1' >'$lock'; exec sleep 120" &
	HOLDER=$!
	wait_for 20 "the lock" grep -qx "$1" "$lock"
}
let_go() {
	kill -9 "$HOLDER"
	wait "$HOLDER" 2>/dev/null
}
t_cancel_stops_nobody_else() { # whose number stands in the lock for another reason
	local by cancelling
	living_run
	kill_it
	sleep 120 &
	by=$!
	holding "volume gc, process $by"
	"$BURST" cancel "$RUN" >cancel.txt 2>&1 </dev/null &
	cancelling=$!
	wait_for 30 "cancel to wait" grep -q "run $RUN: waiting for its lock, held by volume gc, process $by" cancel.txt
	running_as $by || complain "a bystander was ended"
	let_go
	STATUS=0
	wait $cancelling || STATUS=$?
	is "$STATUS" 0 "cancel ($(tail -n 2 cancel.txt))"
	has cancel.txt "run $RUN: its"
	# of a run that has ended there is nobody to be stopped and nothing to wait for
	holding "process $by"
	burst cancel "$RUN"
	is "$STATUS" 0 "cancel of a run that has ended"
	has err.txt "run $RUN: interrupted; all pods gone"
	running_as $by || complain "a bystander was ended by the cancel of a run that has ended"
	let_go
	kill $by
	wait $by 2>/dev/null
}
settling() { # settling RUN: another run holds its lock and stands still there; who, in $PID
	PID=$(sed -n 's/^settled by process //p' "state/runs/$1/lock")
	[ -n "$PID" ] && grep -q ') [Tt] ' "/proc/$PID/stat"
}
t_cancel_beside_a_run_that_settles_it() { # that run goes on
	local first cancelling
	command -v strace >/dev/null || { skip "no strace"; return; }
	case $BURST in */asan/*) ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0 ;; esac
	living_run
	first=$RUN
	kill_it
	script_lines 30
	# it stands still as soon as it holds the first run's lock and has said so there
	timeout -k 5 120 strace -f -o /dev/null -P "$T/state/runs/$first/lock" -e trace=pwrite64 -e inject=pwrite64:signal=STOP:when=1 \
		"$BURST" run -o "$T/second" --force >out.txt 2>err.txt </dev/null &
	SHELL_PID=$!
	wait_for 60 "the second run to settle the first" settling "$first"
	"$BURST" cancel "$first" >cancel.txt 2>&1 </dev/null &
	cancelling=$!
	wait_for 30 "cancel to wait" grep -q "waiting for its lock, held by settled by process $PID" cancel.txt
	kill -CONT "$PID"
	burst_wait
	is "$STATUS" 0 "the run that settles ($(tail -n 2 err.txt | tr '\n' '|'))"
	is "$(wavs second)" 30 "its files"
	STATUS=0
	wait $cancelling || STATUS=$?
	is "$STATUS" 0 "cancel ($(tail -n 2 cancel.txt))"
	has cancel.txt "run $first: interrupted; all pods gone"
}
t_outputs_that_match_nothing() { # the pod is gone with what it wrote: that is no success
	cat >burst.cfg <<-'E2'
		provider = "local"; pods = 2;
		job = { name = "c"; type = "command"; run = "[ $BURST_INDEX = 0 ] && echo x >film.MP4; true"; outputs = ["*.mp4"]; output = "out"; };
	E2
	burst run --quiet
	is "$STATUS" 1 "exit status"
	has err.txt 'no file of its folder matches outputs (*.mp4): nothing was fetched'
	sed -i 's/film.MP4/film.mp4/' burst.cfg
	burst run --quiet
	is "$STATUS" 0 "one pod of two has one ($(tail -n 2 err.txt))"
	is "$(cat err.txt)" "" "what is said then"
	rm -rf out
	sed -i 's/film.mp4/&; exit 3/' burst.cfg
	burst run --quiet
	has err.txt "exit code 3"
}
pod_out_of_reach() { # pod_out_of_reach ID SECONDS: the oldest run has a pod at RunPod, too, whose hard end is in so many seconds
	ledger "create temp table t as select * from pod where id not like 'rp%' limit 1;
		update t set seq = null, attempt = '$1' || '_attempt', id = '$1', provider = 'runpod', account = 'x', state = 'live', gone_ms = 0, released_ms = 0,
			hard_end_s = strftime('%s') + $2, create_ms = (strftime('%s') + $2 - 600) * 1000, price_microusd_h = 600000, billed_ms = 0;
		insert into pod select * from t;
		update run set status = 'unreleased' where id = (select run from t)"
}
t_a_vendor_whose_key_is_gone() { # stops what comes after until the pod's hard end, and not for ever
	script_lines 2
	config
	unset RUNPOD_API_KEY
	burst run
	local old
	old=$(ledger 'select id from run')
	pod_out_of_reach rp1 600
	script_lines 4
	burst run
	is "$STATUS" 9 "a run before its hard end: exit status ($(tail -n 2 err.txt | tr '\n' '|'))"
	has err.txt "pod rp1 of runpod may still be billing"
	# a newer run, which nothing bills for, is not the one that is meant
	ledger "create temp table t as select * from run; update t set seq = null, id = '9999-1', status = 'done', started_ms = started_ms + 1000; insert into run select * from t"
	burst cancel
	is "$STATUS" 9 "cancel: exit status ($(tail -n 2 err.txt | tr '\n' '|'))"
	has err.txt "pod rp1"
	ledger "update pod set hard_end_s = hard_end_s - 2592000, create_ms = create_ms - 2592000000 where id = 'rp1'"
	burst run
	is "$STATUS" 0 "a run after its hard end: exit status ($(tail -n 2 err.txt | tr '\n' '|'))"
	has err.txt "pod rp1 of runpod: runpod: no api_key"
	has err.txt "so it counts as gone: check the provider's console"
	is "$(wavs)" 4 files
	is "$(ledger "select state || ' ' || billed_ms || ' ' || cost_microusd from pod where id = 'rp1'")" "gone 600000 100000" "the pod"
	is "$(ledger "select status from run where id = '$old'")" "done" "the old run"
	burst reap
	is "$STATUS" 0 "reap ($(tail -n 2 err.txt | tr '\n' '|'))"
	hasnt err.txt rp1
	# not before, unless somebody says so
	pod_out_of_reach rp2 600
	burst reap rp2 --force
	is "$STATUS" 9 "reap --force: exit status"
	has err.txt "pod rp2 of runpod: counts as gone without confirmation; it may bill until 20"
	is "$(ledger "select state from pod where id = 'rp2'")" gone "the pod"
	burst reap
	is "$STATUS" 0 "reap afterwards ($(tail -n 2 err.txt | tr '\n' '|'))"
	is "$(ledger "select count(*) from run where status = 'unreleased'")" 0 "runs that are not released"
}
stub_of_the_vendor() { # its pid in $STUB, its address in the caller's RUNPOD_API_URL
	perl "$ROOT/tests/e2e/http_stub.pl" "$T/port" "$T/asked" "$T/codes" &
	STUB=$!
	wait_for 10 "a stub of the vendor's" test -s port
	RUNPOD_API_URL=http://127.0.0.1:$(cat port)
}
stub_over() {
	kill "$STUB"
	wait "$STUB" 2>/dev/null
}
refused_keys() { # refused_keys TIMES: a run where RunPod refuses the key, and has two pods of an old run by the ledger
	ledger "create temp table t as select * from pod where id = 'rp1'; update t set seq = null, attempt = 'b', id = 'rp2'; insert into pod select * from t"
	echo 'GET /v2/pods.* 401' >codes
	local -x RUNPOD_API_KEY=revoked RUNPOD_API_URL
	stub_of_the_vendor
	script_lines 4
	LIMIT=60
	burst run
	stub_over
	is "$STATUS" 0 "exit status ($(tail -n 2 err.txt | tr '\n' '|'))"
	has err.txt "HTTP 401 from RunPod (is the API key correct and not expired?); its hard end was"
	is "$(grep -c "GET /v2/pods" asked)" "$1" "how often it was asked"
	is "$(wavs)" 4 files
	is "$(ledger "select group_concat(distinct state) from pod where id like 'rp%'")" gone "the pods"
}
t_a_vendor_whose_key_is_refused() { # that it is there does not help
	script_lines 2
	config
	burst run
	pod_out_of_reach rp1 -864000
	refused_keys 2 # once for its pods, once for those that no row names
}
t_a_vendor_whose_key_is_refused_to_a_detached_run() { # whose pods would be left to finish its queue
	script_lines 2
	config
	burst run
	pod_out_of_reach rp1 -864000
	ledger "update run set status = 'running', detached = 1"
	refused_keys 3 # and once for the time there
	is "$(ledger "select status from run order by seq limit 1")" interrupted "the run"
}
t_by_its_vendors_clock_one_of_two_pods_works_on() { # ours is two hours ahead: the last of their ends counts, not the first
	script_lines 2
	config
	burst run
	pod_out_of_reach rp1 -864000
	ledger "create temp table t as select * from pod where id = 'rp1'; update t set seq = null, attempt = 'b', id = 'rp2', hard_end_s = strftime('%s') - 3600;
		insert into pod select * from t; update run set status = 'running', detached = 1"
	echo 'GET /v2/pods.* 200' >codes
	echo '{"pods":[]}' >codes.reply
	echo -7200 >codes.date
	local -x RUNPOD_API_KEY=k RUNPOD_API_URL
	stub_of_the_vendor
	script_lines 4
	burst run
	is "$STATUS" 7 "while one may be at work: exit status ($(tail -n 2 err.txt | tr '\n' '|'))"
	has asked "GET /v2/pods"
	echo 0 >codes.date
	burst run
	is "$STATUS" 0 "when both are over: exit status ($(tail -n 2 err.txt | tr '\n' '|'))"
	is "$(ledger "select group_concat(distinct state) from pod where id like 'rp%'")" gone "the pods"
	stub_over
}
t_reap_whatever_ones_file_says_of_renting() { # a vendor whose object is not loaded, as from cron; a value that is out of its range
	living_run
	kill_it
	mkdir -p home/.config/burst
	echo 'provider = ["mine"]; providers = { mine = { key = 1; }; }; lease = "5s"; pots = 2;' >home/.config/burst/burst.cfg
	burst reap
	is "$STATUS" 0 "reap ($(tail -n 3 err.txt | tr '\n' '|'))"
	is "$(pods_left)" "" "pods"
	has err.txt 'provider "mine"'
	has err.txt 'unknown key "pots", did you mean "pods"?; continuing without it'
	has err.txt 'lease is out of range'
	burst cancel "$RUN"
	is "$STATUS" 0 "cancel ($(tail -n 3 err.txt | tr '\n' '|'))"
	burst run
	is "$STATUS" 2 "but a run: exit status"
	burst reap -p mine
	is "$STATUS" 2 "and a flag: exit status"
}
t_cancel_a_client_that_was_suspended() { # Ctrl-Z in another terminal
	living_run
	kill -STOP "$PID"
	"$BURST" cancel "$RUN" >cancel.txt 2>&1 </dev/null &
	local cancelling=$!
	wait_for 60 "its pods to be gone" no_pods
	STATUS=0
	wait $cancelling || STATUS=$?
	is "$STATUS" 0 "cancel ($(tail -n 2 cancel.txt))"
	burst_wait
	is "$STATUS" 143 "the run"
}

t_attach_to_a_living_run() {
	living_run
	"$BURST" attach "$RUN" >attach.txt 2>attach-err.txt </dev/null &
	local attached=$!
	wait_for 10 "attach to show progress" grep -q "/800 " attach-err.txt
	# it only looks on: an interrupt of it leaves the run alone
	"$BURST" attach >second.txt 2>&1 </dev/null &
	local second=$!
	wait_for 10 "a second one" grep -q "/800 " second.txt
	kill -TERM $second
	wait $second 2>/dev/null
	"$BURST" ps --json | jq -e 'any(.[]; .kind == "pod")' >/dev/null || complain "the pods went with it"
	running_as "$PID" || complain "the run ended"
	burst attach --max-cost 9 "$RUN"
	is "$STATUS" 2 "attach with a cap, to a client that has its own"
	has err.txt "run $RUN has a client, whose caps cannot change"
	kill -INT "$PID"
	burst_wait
	is "$STATUS" 130 "the run"
	STATUS=0
	wait $attached || STATUS=$?
	is "$STATUS" 130 "attach ends as the run did ($(tail -n 1 attach-err.txt))"
	has attach-err.txt "run $RUN: interrupted"
	burst attach "$RUN"
	is "$STATUS" 130 "attach to one that has ended"
	has err.txt "run $RUN has ended: interrupted"
}

t_fetch_rents_nothing() {
	living_run
	for pod in $(pods_left); do "$BURST" reap "$pod" --force >>reap.txt 2>&1; done
	kill_it
	burst reap
	local before
	before=$(wavs)
	find out -name 's00*.wav' | head -n 2 >lost.txt
	xargs rm <lost.txt
	burst fetch "$RUN"
	is "$STATUS" 0 "fetch ($(tail -n 2 err.txt))"
	[ "$(wavs)" -ge "$before" ] || complain "$(wavs) files, $before before two were lost"
	while read -r f; do [ -s "$f" ] || complain "$f is not home again"; done <lost.txt
	is "$("$BURST" ledger --json | jq length)" 1 "runs"
	f=$(basename "$(head -n 1 lost.txt)" .wav)
	is "$(jq -r "select(.id==\"$f\").sha256" out/manifest.jsonl | tail -n 1)" "$(sha256sum "out/$f.wav" | cut -d' ' -f1)" hash
}

t_fetch_leaves_what_has_changed() {
	living_run
	for pod in $(pods_left); do "$BURST" reap "$pod" --force >>reap.txt 2>&1; done
	kill_it
	burst reap
	local same other
	same=$(basename "$(find out -name 's*.wav' | sort | sed -n 1p)" .wav)
	other=$(basename "$(find out -name 's*.wav' | sort | sed -n 2p)" .wav)
	rm "out/$same.wav" "out/$other.wav"
	sed -i "/\"$other\"/s/This is/That was/" script.jsonl
	burst fetch "$RUN"
	is "$STATUS" 1 "fetch ($(tail -n 1 err.txt))"
	[ -s "out/$same.wav" ] || complain "$same is not home again"
	[ ! -e "out/$other.wav" ] || complain "the old text's sound came home as $other"
	has err.txt "$other: not fetched: the job's text or settings have changed since the run"
	burst resume "$RUN"
	is "$STATUS" 2 "resume of a changed job ($(tail -n 1 err.txt))"
	has err.txt "1 of the job's segments changed since run $RUN began ($other first)"
	is "$(pods_left)" "" pods
}

t_fetch_refuses_a_hostile_log() { # what a pod wrote down of its files is checked as in a run
	living_run
	for pod in $(pods_left); do "$BURST" reap "$pod" --force >>reap.txt 2>&1; done
	kill_it
	burst reap
	local a b c d log
	# of one pod, so that no other log has them
	log=$(find "$BURST_STATE_DIR/volumes" -name events.jsonl -exec grep -Hc '"ok":true' {} + | sort -t : -k 2 -n | tail -n 1 | cut -d: -f1)
	read -r a b c d < <(jq -r 'select(.ev == "segment" and .ok).id' "$log" | head -n 4 | xargs)
	[ -n "$d" ] || { complain "fewer than four files in one log"; return; }
	for f in "$a" "$b" "$c" "$d"; do rm -f "out/$f.wav"; done
	jq -c --arg a "$a" --arg b "$b" --arg c "$c" 'if .ev != "segment" then . elif .id == $a then .sha256 = "zz" + .sha256[2:]
		elif .id == $b then .bytes = 9000000000000 elif .id == $c then .path = "../../../" + .path else . end' "$log" >log
	jq -c --arg a "$a" 'select(.ev == "segment" and .id == $a)' log >one
	for _ in 1 2 3 4 5 6 7 8 9 10; do cat one one; done >>log
	cp log "$log"
	burst fetch "$RUN"
	is "$STATUS" 1 "fetch ($(tail -n 1 err.txt))"
	has err.txt "$a: the pod reports an invalid file ($a.wav); it is not fetched"
	has err.txt "$b: the pod reports a file of 9000000000000 bytes, more than it can have ($b.wav); it is not fetched"
	has err.txt "$c: the pod reports an invalid file ($c.wav); it is not fetched"
	is "$(grep -c "$a: the pod reports" err.txt)" 8 "how often a bad report is followed"
	[ -s "out/$d.wav" ] || complain "$d is not home again"
	for f in "$a" "$b" "$c"; do [ ! -e "out/$f.wav" ] || complain "$f came home"; done
}

t_volumes() {
	config
	burst volume create w
	is "$STATUS" 0 "create ($(tail -n 1 err.txt))"
	burst volume ls
	has out.txt w
	burst volume rm w
	is "$STATUS" 2 "rm without -y"
	burst volume rm w -y
	is "$STATUS" 0 "rm -y ($(tail -n 1 err.txt))"
	burst volume rm w -y
	is "$STATUS" 2 "rm again"
	has err.txt "w: no such volume"
}

t_volume_in_use_is_not_removed() {
	living_run
	STATUS=0
	"$BURST" volume rm v -y >rm.txt 2>&1 </dev/null || STATUS=$?
	is "$STATUS" 2 "rm of a volume in use"
	has rm.txt "volume v: a pod uses it now (see \`burst ps\`)"
	[ -d "state/volumes/v/runs/$RUN" ] || complain "its files are gone"
	# the vendor refuses too, whatever our ledger says (the run is dead by then: it would end at the loss of its ledger)
	kill -9 "$PID"
	burst_wait
	mv state/ledger.db their-ledger && rm -f state/ledger.db-wal state/ledger.db-shm
	STATUS=0
	"$BURST" volume rm v -y >rm.txt 2>&1 </dev/null || STATUS=$?
	[ "$STATUS" != 0 ] || complain "a volume in use was removed"
	has rm.txt "in use by pod"
	[ -d "state/volumes/v/runs/$RUN" ] || complain "its files are gone"
	for pod in $(pods_left); do "$BURST" reap "$pod" --force >>reap.txt 2>&1; done
}

gc_stays() { # gc_stays WHY FLAGS...: the run's folder is still there
	local why=$1
	shift
	"$BURST" volume gc "$@" >gc.txt 2>gc-err.txt </dev/null || complain "gc: $(cat gc-err.txt)"
	has gc.txt "runs/$RUN stays: $why"
	[ -d "state/volumes/v/runs/$RUN" ] || complain "it went although: $why"
}
t_volume_gc() {
	script_lines 3
	config
	burst run
	is "$STATUS" 0 "run ($(tail -n 1 err.txt))"
	RUN=$("$BURST" ledger --json | jq -r '.[0].run')
	local dir=state/volumes/v/runs/$RUN
	[ -d "$dir" ] || complain "no folder $dir"
	burst volume gc
	is "$STATUS" 0 "gc ($(tail -n 1 err.txt))"
	is "$(cat out.txt)" "v: 0 folders, 0.0 kB freed" "gc of a young run"
	has "state/runs/$RUN/lock" "volume gc, process " # no client's: nothing for \`cancel\` to stop
	burst volume gc v --older-than 0s -n
	has out.txt "v: runs/$RUN would be removed ("
	has out.txt "all outputs fetched"
	[ -d "$dir" ] || complain "a dry run removed it"
	burst volume gc v --older-than 0s
	is "$STATUS" 0 "gc ($(tail -n 1 err.txt))"
	has out.txt "v: runs/$RUN removed ("
	[ ! -e "$dir" ] || complain "$dir is still there"
	[ -d state/volumes/v/agent ] || complain "the agent is gone too"
	is "$(wavs)" 3 "files at home"
	burst run
	is "$STATUS" 0 "a run afterwards"
	burst volume rm v -n
	is "$STATUS" 2 "a flag of gc with rm"
	burst volume gc nonsense
	is "$STATUS" 2 "gc of no volume"
}

t_volume_gc_keeps_what_is_needed() {
	living_run
	gc_stays "the run is active" --older-than 0s --force -y
	kill_it
	gc_stays "its pods may still be active" --older-than 0s
	burst cancel "$RUN"
	gc_stays "" --older-than 0s
	grep -q "of 800 outputs are not fetched (.burst fetch $RUN" gc.txt || complain "$(cat gc.txt)"
	mkdir -p state/volumes/v/runs/strange state/volumes/v/code/.half outside
	ln -s "$T/outside" state/volumes/v/runs/link
	burst volume gc --older-than 0s --force
	is "$STATUS" 2 "--force without -y"
	burst volume gc --older-than 0s --force -y
	is "$STATUS" 0 "--force -y ($(tail -n 1 err.txt))"
	has out.txt "outputs never fetched"
	[ ! -e "state/volumes/v/runs/$RUN" ] || complain "it is still there"
	[ -d state/volumes/v/runs/strange ] && [ -d outside ] || complain "a stranger's run of today went"
	[ -d state/volumes/v/code/.half ] || complain "a build of today went"
}

t_volume_warm() { # the setup is run once, by the pod that fills the volume; the run finds all that it needs
	JOB='setup = "head -c 1000 /dev/zero >\"$BURST_ENV/weights\"";' \
		config 'code = { path = "."; };'
	printf '%s\n' home state '*.txt' >.burstignore
	script_lines 4
	burst volume warm v
	is "$STATUS" 2 "exit status: there is no such volume"
	has err.txt "v: no such volume"
	burst volume create v
	burst volume warm v --older-than 3d
	has err.txt '--older-than is a flag of `burst volume gc`'
	mkdir elsewhere
	(cd elsewhere && "$BURST" volume warm v --config .. >../out.txt 2>../err.txt) || complain "warm: $(tail -n 2 err.txt | tr '\n' '|')"
	has out.txt 'volume v of local: ready for job "e2e", for $'
	has err.txt "volume v of local: filled from a pod without a GPU for \$0.6900 an hour; at most \$0.1150 in all"
	is "$(ls state/volumes/v/env/*/weights | wc -l)" 1 "environments" # each setup leaves one
	[ ! -e out ] || complain "it made an output folder"
	"$BURST" ledger --json | jq -r '.[0] | "\(.status) \(.billed_seconds > 0)"' >ledger.txt
	has ledger.txt "done true"
	rm -r elsewhere ledger.txt
	burst run --json
	is "$STATUS $(json .status) $(wavs)" "0 done 4" "the run that follows"
	burst run --json --force
	is "$(ls state/volumes/v/kit | wc -l) $(ls state/volumes/v/env | wc -l)" "1 1" "worker files, environments"
	! ls state/volumes/v/code/*/out >ls.txt 2>&1 || complain "the outputs travelled with the code: $(cat ls.txt | tr '\n' ' ')"
}

t_volume_warm_that_fails() { # with the setup's own words; nothing half made is left, and nothing to resume
	JOB='setup = "echo half >\"$BURST_ENV/x\"; echo CUDA is not available >&2; exit 3";' config
	script_lines 2
	burst volume create v
	burst volume warm v
	is "$STATUS" 1 "exit status"
	has err.txt "setup failed: CUDA is not available"
	is "$(ls -A state/volumes/v/env 2>/dev/null | wc -l)" 0 "environments"
	burst resume
	is "$STATUS" 2 "exit status of resume"
	has err.txt 'filled a volume and has no files: `burst volume warm` fills it again'
	sed -i '/job = /d' burst.cfg
	burst volume warm v
	is "$STATUS" 2 "exit status without a job"
	has err.txt "no job for volume v: give its burst.cfg"
}

t_doctor() {
	config
	burst doctor
	is "$STATUS" 1 "exit status without the script"
	has out.txt "job.input: script.jsonl: No such file"
	script_lines 2
	burst doctor
	is "$STATUS" 0 "doctor ($(grep bad out.txt))"
	has out.txt 'job "e2e": 2 segments'
	has out.txt "ledger in"
	has out.txt 'a neural voice needs no GPU and no account: job.engine = "piper"'
	sed -i 's/engine = "espeak"/engine = "piper"/; s/voice = "en"; //' burst.cfg
	burst doctor
	! grep -q 'a neural voice needs' out.txt || complain "doctor recommends what the job has"
	printf 'provider = "local";\n' >burst.cfg
	burst doctor
	has out.txt 'a neural voice needs no GPU and no account: job.engine = "piper"'
}

t_the_page_lists_the_engines() { # as `burst engines` does: a page must not promise another licence
	local count=0 row
	sed -n '/^## Voices$/,/^## [^V]/p' "$ROOT/jobs/README.md" >voices.md
	burst engines --json
	while read -r row; do
		count=$((count + 1))
		has voices.md "$row"
	done < <(jq -r '.[] | "| `\(.engine)` | \(.code_licence) / \(.weights_licence) | \(.languages) | \(.clones_from // "-") | \(.ran) |"' out.txt)
	is "$count" "$(grep -c '^| `' voices.md)" "engines in the table of jobs/README.md"
	[ "$count" -ge 5 ] || complain "only $count engines"
}

t_doctor_fails_when_a_run_would() {
	local -x LOCAL_ISOLATION=namespaces
	config
	script_lines 2
	STATUS=0
	unshare -m true 2>/dev/null || { skip "not root"; return; }
	mkdir -p state
	unshare -m sh -c "mount -t tmpfs -o size=1m,mode=700 none '$T/state' && exec '$BURST' doctor" >out.txt 2>err.txt </dev/null || STATUS=$?
	is "$STATUS" 1 "exit status without room"
	grep -q "^bad  .*MB free; burst rents nothing that it cannot record" out.txt || complain "$(cat out.txt err.txt)"
	STATUS=0
	unshare -m sh -c "mount --bind /dev/null /usr/sbin/sshd && exec '$BURST' doctor" >out.txt 2>err.txt </dev/null || STATUS=$?
	is "$STATUS" 1 "exit status without sshd"
	has out.txt "no sshd for local pods: install openssh-server"
	STATUS=0
	unshare -m sh -c "mount -t tmpfs none /proc && exec '$ROOT/build/burst' doctor" >out.txt 2>err.txt </dev/null || STATUS=$?
	is "$STATUS" 1 "exit status without /proc"
	has out.txt "/proc is not mounted here"
	script_lines 2
	STATUS=0
	unshare -m sh -c "mount -t tmpfs none /proc && exec timeout 30 '$ROOT/build/burst' run" >out.txt 2>err.txt </dev/null || STATUS=$?
	[ "$STATUS" != 0 ] && [ "$STATUS" != 124 ] && [ "$STATUS" != 9 ] || complain "a run without /proc: exit status $STATUS"
	has err.txt "/proc is not mounted here"
	burst doctor
	is "$STATUS" 0 "exit status when all is well ($(grep ^bad out.txt))"
}

told_by_both() { # told_by_both STATUS WORDS: `run` ends so, and `doctor` says beforehand that it would
	burst doctor
	is "$STATUS" 1 "doctor, where run says $2 ($(grep ^bad out.txt))"
	grep -q "^bad  .*$2" out.txt || complain "doctor does not say \"$2\": $(cat out.txt)"
	[ ! -d out ] || complain "doctor made the output folder"
	burst run
	is "$STATUS" "$1" "run, where doctor says $2 ($(tail -n 1 err.txt))"
	rm -rf out
}
t_doctor_knows_what_stops_a_run() {
	script_lines 2
	config 'wait = "2s";'
	sed -i 's/max_duration/max_price_per_hour = 0.60; max_duration/' burst.cfg
	told_by_both 5 'the cheapest offer for this job is \$0.6900 an hour, above caps.max_price_per_hour'
	sed -i 's/max_price_per_hour = 0.60/max_price_per_hour = 0.69/' burst.cfg
	burst doctor
	is "$STATUS" 0 "doctor with the very price ($(grep ^bad out.txt))"
	has out.txt "local: 1 offer for this job"
	[ ! -e out ] || complain "doctor made the output folder"
	config 'deliver = { on = "cpu"; };'
	told_by_both 2 'deliver needs run'
	config 'pods = 100;'
	printf '#!/bin/sh\nulimit -n 128\nexec "%s" "$@"\n' "$BURST" >few && chmod 755 few
	CLIENT=$T/few
	told_by_both 2 'are too many'
	CLIENT=''
	config
	touch out
	told_by_both 2 'output'
	mkdir out
	echo mine >out/s001.wav
	burst doctor
	is "$STATUS" 1 "doctor with a foreign file"
	has out.txt "was not made by this job"
	rm -r out
	burst doctor
	is "$STATUS" 0 "doctor when all is well ($(grep ^bad out.txt))"
}

t_on_exit_gets_the_json() {
	script_lines 2
	config
	mkdir -p home/.config/burst
	echo "on_exit = \"cat > $T/exit.json\";" >home/.config/burst/burst.cfg
	burst run
	is "$STATUS" 0 "exit status ($(tail -n 1 err.txt))"
	is "$(jq -r .status exit.json)" done "status in the JSON"
	cp exit.json out.txt
	schema run
}

t_completion_and_help() {
	local shell
	for shell in bash zsh fish; do
		burst completion $shell
		is "$STATUS" 0 "completion $shell"
		has out.txt fetch
	done
	burst help fetch
	has out.txt "usage: burst fetch RUN"
}
offers() { # offers WORD...: what bash completes behind `burst`
	PATH=$(dirname "$BURST"):$PATH bash -c 'source <(burst completion bash)
		COMP_WORDS=(burst "$@") COMP_CWORD=$# COMPREPLY=(); _burst; echo "${COMPREPLY[*]}"' - "$@"
}
t_completion_offers_what_there_is() {
	script_lines 1
	config
	burst run
	is "$STATUS" 0 "run ($(tail -n 1 err.txt))"
	RUN=$(ledger "select id from run")
	is "$(offers volume rm '')" v "volumes to remove"
	is "$(offers logs '')" "$RUN" "runs with a log"
	is "$(offers attach '')" "" "runs to attach to, when none lives"
	ledger "update run set status = 'running'"
	is "$(offers attach '') $(offers cancel '')" "$RUN $RUN" "living runs"
	burst submit --quiet 1h
	is "$(offers queue rm '')" "$(ledger "select id from request")" "requests to remove"
	burst queue rm "$(ledger "select id from request")"
	ledger "update run set status = 'done'"
	wait_for 10 "the queue's client to end" eval '! pgrep -f -- "queue run $T/" >/dev/null'
}

t_a_job_in_another_folder() { # its outputs are beside its config where that does not say where, also when it is resumed from elsewhere
	mkdir project
	cat >project/burst.cfg <<-'E2'
		provider = "local";
		job = { name = "c"; type = "command"; run = "echo $((6 * 7)) >f"; outputs = ["f"]; };
	E2
	burst run project
	is "$STATUS" 0 "exit status ($(tail -n 2 err.txt))"
	is "$(cat project/out/f)" 42 "its output"
	[ ! -e out ] || complain "a folder here"
	is "$(ledger 'select output from run')" "$T/project/out" "what the ledger says"
}
t_two_parts_make_the_same_file() { # one of the two would be lost: said, and not rendered again
	cat >burst.cfg <<-'E'
		provider = "local";
		pods = 3;
		job = { name = "t"; type = "command"; run = "echo $BURST_INDEX >same.txt"; outputs = ["*.txt"]; output = "out"; };
	E
	burst run --json
	is "$STATUS" 1 "exit status"
	is "$(json .segments.rendered),$(json .segments.failed)" 1,2 "one made it"
	grep -q 'makes same.txt, as command-[0-2] does: put $BURST_INDEX into the name' err.txt || complain "said: $(tail -n 3 err.txt)"
	is "$(cat out/same.txt | wc -l)" 1 "the file that is there"
}

odd_names() { # a run of the commands on stdin
	mkdir -p code && cat >code/go.sh
	cat >burst.cfg <<-'E'
		provider = "local";
		code = { path = "code"; };
		job = { name = "t"; type = "command"; run = "sh go.sh"; outputs = ["*.txt", "f/**"]; output = "out"; };
	E
	echo "$*" >>burst.cfg
	burst run --json
}
t_outputs_with_odd_names() { # come home, as long as they are
	odd_names <<-'E'
		echo 1 >' a b.txt'; echo 2 >-c.txt; echo 3 >'~d.txt'; echo 4 >'é.txt'; echo 5 >'e:?*".txt'; : >empty.txt
		echo 6 >"$(printf 'x%.0s' $(seq 251)).txt"; d=f/$(printf 'y%.0s' $(seq 255)); mkdir -p "$d"; echo 7 >"$d/$(printf 'z%.0s' $(seq 255))"
	E
	is "$STATUS" 0 "exit status ($(tail -n 2 err.txt))"
	is "$(find out -type f -not -name manifest.jsonl | wc -l)" 8 "files"
	is "$(cat "out/$(printf 'x%.0s' {1..251}).txt")" 6 "the longest name"
	burst run --json
	is "$STATUS" 0 "again: over its own"
}
t_outputs_that_cannot_come() { # by the name they have: the segment fails at once, and says which
	local name
	for name in 'a\377.txt' 'b\nc.txt' 'd\\e.txt' 'f\342\200\256.txt' 'f/.git/config' 'f/x.part'; do
		rm -rf out
		odd_names <<-E
			mkdir -p f/.git; echo 1 >"\$(printf '$name')"; echo 2 >good.txt
		E
		is "$STATUS" 1 "$name: exit status ($(tail -n 2 err.txt))"
		has err.txt "which is not a valid name here: rename it, or leave it out of job.outputs"
		is "$(grep -c 'not a valid name here' err.txt)" 2 "$name: said" # as it happens, and at the end
		is "$(json '.pods | length')" 1 "$name: pods"
	done
}
t_output_that_the_volume_does_not_take() { # something is in its way: the command has not done its work, and is run again
	odd_names 'pod = { worker_root = true; };' <<-'E'
		b=$BURST_VOLUME/runs/$BURST_RUN/$BURST_ATTEMPT/out/$BURST_SEGMENT; mkdir -p "$b" f; echo 1 >f/a
		if [ -e "$b/f" ]; then rm -rf "$b/f"; else echo 2 >"$b/f"; fi
	E
	is "$STATUS" 0 "once: exit status ($(tail -n 2 err.txt))"
	has err.txt "output f/a could not be kept: "
	is "$(cat out/f/a)" 1 "the file"
	rm -rf out
	odd_names 'pod = { worker_root = true; };' <<-'E'
		b=$BURST_VOLUME/runs/$BURST_RUN/$BURST_ATTEMPT/out/$BURST_SEGMENT; mkdir -p "$b" f; echo 1 >f/a; rm -rf "$b/f"; echo 2 >"$b/f"
	E
	is "$STATUS" 1 "for good: exit status"
	is "$(json .segments.rendered),$(json .segments.failed)" 0,1 "segments"
	is "$(grep -c "the command ended with exit code 0: output f/a could not be kept: " err.txt)" 4 "said in $(grep -E 'warning|failed' err.txt | tr '\n' '|')" # each time, and at the end
}
brought() { # what each of them wrote, in short
	sha256sum out/*.txt | cut -c1-8 | tr '\n' ' '
}
t_what_is_safe_of_a_command_is_not_run_again() { # by whoever resumes its run; what is gone is
	mkdir code
	cat >burst.cfg <<-'E'
		provider = "local"; pods = 3; code = { path = "code"; }; providers = { local = { price_per_hour = 0.69; }; };
		job = { name = "t"; type = "command"; outputs = ["*.txt"]; output = "out";
			run = "[ $BURST_INDEX != 1 ] || [ -e ok ] || exit 4; [ $BURST_INDEX = 2 ] || head -c 16 /dev/urandom >$BURST_INDEX.txt"; };
	E
	burst run --json
	is "$STATUS" 1 "exit status"
	local was first second pods run
	run=$(json .run)
	was=$(brought)
	pods=$(json '.pods | length')
	touch code/ok
	burst resume "$run" --json
	is "$STATUS" 0 "resumed: exit status ($(tail -n 2 err.txt))"
	is "$(json '.pods | length')" $((pods + 1)) "pods, with the one for what had failed"
	is "$(json '"\(.segments.rendered) \(.segments.cached) \(.segments.failed)"')" "3 0 0" "segments"
	read -r first second <<<"$(brought)"
	is "$first " "$was" "what was safe"
	[ -n "$second" ] || complain "nothing came of what had failed"
	is "$(jq -r .file out/manifest.jsonl | tr '\n' ' ')" "0.txt 1.txt " "files in the manifest"
	ledger "update run set status = 'partial' where id = '$run'" # as one that has something left to do
	rm out/0.txt
	burst resume "$run" --json
	is "$STATUS" 0 "resumed without a file: exit status ($(tail -n 2 err.txt))"
	is "$(brought | wc -w) $(brought | cut -d ' ' -f 2)" "2 $second" "the other one"
	is "$(json '.pods | length')" $((pods + 2)) "pods, with the one for what was gone"
	local went
	for went in "mv out out.before" "rm -r out" "rm out/0.txt"; do
		ledger "update run set status = 'partial' where id = '$run'"
		$went
		if [ "$went" = "rm out/0.txt" ]; then # and the first one that resumes gets nowhere
			burst resume "$run" --max-cost 0.000001
			is "$STATUS" 5 "resumed with too little ($(tail -n 2 err.txt))"
		fi
		burst resume "$run" --max-cost 1
		is "$STATUS" 0 "resumed after $went: exit status ($(tail -n 2 err.txt))"
		is "$(brought | wc -w)" 2 "files after $went"
	done
	burst run --force -q # another run writes over both
	is "$STATUS" 0 "another run: exit status ($(tail -n 2 err.txt))"
	was=$(brought)
	ledger "update run set status = 'partial' where id = '$run'"
	burst resume "$run"
	is "$STATUS" 0 "resumed after another run: exit status ($(tail -n 2 err.txt))"
	is "$(brought | wc -w) $(brought | tr ' ' '\n' | grep -cxF -f <(tr ' ' '\n' <<<"$was" | grep .))" "2 0" "files, and those that stayed as the other run made them"
	was=$(brought)
	echo mine >out/0.txt
	ledger "update run set status = 'partial' where id = '$run'"
	burst resume "$run"
	is "$STATUS $(cat out/0.txt)" "2 mine" "resumed after a change by hand ($(tail -n 2 err.txt))"
	has err.txt "0.txt is there and was not made by this job; use --force"
	burst resume "$run" --force
	is "$STATUS" 0 "... with --force: exit status ($(tail -n 2 err.txt))"
	is "$(brought | cut -d ' ' -f 2)" "$(cut -d ' ' -f 2 <<<"$was")" "the other one, which stays"
	! grep -aqx mine out/0.txt || complain "it was not written over"
}
t_what_a_lost_create_may_have_cost() { # counts against the cap of whoever resumes, and is no cost of the run's
	script_lines 3
	LOCAL='fail_rents = 1;' config
	burst run --json
	is "$STATUS" 0 "exit status ($(tail -n 2 err.txt))"
	is "$(ledger "select count(*) from pod where state = 'failed'")" 1 "creates that failed"
	local hours
	for hours in 2 1; do # at $0.69, within a cap of $1: as if its answer had been lost, and it had lived for so long
		rm -f out/s002.wav
		ledger "update run set status = 'partial'; update pod set released_ms = create_ms + $hours * 3600000, price_microusd_h = 690000 where state = 'failed'"
		burst resume --json
		is "$STATUS" $((hours == 2 ? 5 : 0)) "exit status after $hours h ($(tail -n 2 err.txt))"
	done
	is "$(json '.cost_usd < 0.1')" true "the run's cost, $(json .cost_usd)"
}
t_a_log_beside_the_code() { # `burst run -v >log 2>&1` in the folder that travels: what is written meanwhile does not
	mkdir code
	cat >code/burst.cfg <<-'E'
		provider = "local"; code = { path = "."; };
		job = { name = "t"; type = "command"; outputs = ["names"]; run = "ls >names"; };
	E
	for round in 1 2; do
		(cd code && timeout 60 "$BURST" run -v -o ../out >>log 2>&1 </dev/null) || complain "round $round: exit $? ($(tail -n 2 code/log))"
	done
	has code/log "code: log skipped (what this command writes)"
	is "$(tr '\n' ' ' <out/names)" "burst.cfg names " "what travelled"
}
t_values_of_variables() { # arrive as they are, whatever text they are; others are no value
	cat >burst.cfg <<-'E'
		provider = "local";
		job = { name = "t"; type = "command"; run = "printf %s \"$V\" >v.txt"; outputs = ["v.txt"]; output = "out"; env = ["V"]; };
	E
	V=$'two\nlines "q" \'s\' \\ $x `id` é \001 ' burst run
	is "$STATUS" 0 "exit status ($(tail -n 2 err.txt))"
	is "$(cat out/v.txt; echo .)" $'two\nlines "q" \'s\' \\ $x `id` é \001 .' "the value"
	V=$'a\xff' burst run
	is "$STATUS" 2 "no text: exit status"
	has err.txt "the value of V in your environment is not UTF-8 text and cannot be sent to pods"
	burst volume create v
	V=$'a\xff' burst volume warm v
	is "$STATUS" 2 "no text, volume warm: exit status"
	has err.txt "the value of V in your environment is not UTF-8 text"
	is "$("$BURST" ledger --json | jq length)" 1 "runs"
}
t_progress_bars() { # of a line that is written over the last state is told
	cat >burst.cfg <<-'E'
		provider = "local";
		job = { name = "t"; type = "command"; no_outputs = true; output = "out";
			run = "for i in $(seq 3000); do printf '\\r%5d of 3000 |##########          |' $i; done; printf '\\rall of it\\r\\n'; printf '1 %%\\r2 %%\\n' >&2"; };
	E
	burst run -v
	is "$STATUS" 0 "exit status ($(tail -n 2 err.txt))"
	is "$(grep -o '| .*' err.txt | grep -E 'all of it|%|of 3000' | tr '\n' ,)" "| all of it,| 2 %," "told"
}
t_a_streamed_file_that_is_replaced() { # what it is in the end comes home
	cat >burst.cfg <<-'E'
		provider = "local";
		job = { name = "t"; type = "command"; stream = true; outputs = ["a.txt"]; output = "out";
			run = "sleep 1; echo first >x; mv x a.txt; sleep 2; echo second and last >x; mv x a.txt; sleep 1"; };
	E
	burst run
	is "$STATUS" 0 "exit status ($(tail -n 2 err.txt))"
	is "$(cat out/a.txt)" "second and last" "the file"
	is "$(jq -r 'select(.file == "a.txt") | .sha256' out/manifest.jsonl | tail -n 1)" "$(sha256sum <out/a.txt | cut -d' ' -f1)" "its hash"
}
t_words_that_are_no_text() { # whatever bytes it prints are its log, and no fault of the pod's
	cat >burst.cfg <<-'E'
		provider = "local";
		pods = 1;
		job = { name = "t"; type = "command"; run = "printf 'a\\000b\\377\\033[2Jc\\n'; printf 'd\\000\\n' >&2; head -c 3000 /dev/urandom; echo 1 >$BURST_INDEX.txt";
			outputs = ["*.txt"]; output = "out"; };
	E
	burst run --json
	is "$STATUS" 0 "exit status ($(tail -n 3 err.txt))"
	is "$(json .segments.failed)" 0 "failed"
	is "$(cat out/*.txt | wc -l)" "$(json .segments.total)" "files"
	burst logs "$(json .run)"
	LC_ALL=C grep -q '[[:cntrl:]]' out.txt && complain "the log drives a terminal"
	has out.txt "a"
}

run_tests "$@"
