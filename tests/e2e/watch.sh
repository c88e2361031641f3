#!/bin/bash
# watch.sh - runs are watched and steered: ps, status, logs, attach, cancel, resume, ssh, the hook at the end.
. "$(dirname "$0")/lib.sh"

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
	is "$(json .last_failure)" null "failures"
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

# What failed last night is not hidden by what another job did since; a success of the job itself ends it.
t_status_of_a_failure() {
	local dir
	for dir in bad good; do
		mkdir $dir
		cat >$dir/burst.cfg <<-E
			provider = "local"; job = { name = "$dir"; type = "command"; run = "test $dir = good"; no_outputs = true; };
		E
		burst run $dir/burst.cfg
	done
	burst status
	has out.txt "bad failed "
	has out.txt " ago: \`burst logs $(ledger "select id from run where job = 'bad'")\` | good done "
	burst status --json
	schema status
	is "$(json '"\(.last_failure.job) \(.last_failure.status) \(.last_success.job)"')" "bad failed good" "its object"
	sed -i 's/test bad = good/true/' bad/burst.cfg
	burst run bad/burst.cfg
	burst status
	hasnt out.txt failed
	ledger "update run set status = 'failed', started_ms = started_ms - 90000000, ended_ms = ended_ms - 90000000 where job = 'good'"
	burst status
	hasnt out.txt failed # more than a day ago
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

says_hello() { # says_hello POD: a command there is heard, and its exit code is passed on
	STATUS=0
	"$BURST" ssh "$1" 'echo hello; exit 7' >ssh.txt 2>ssh-err.txt </dev/null || STATUS=$?
	is "$STATUS" 7 "exit code ($(cat ssh-err.txt))"
	has ssh.txt hello
}
t_ssh_passes_the_exit_code() {
	living_run
	local pod
	pod=$(ledger "select id from pod where port > 0 and state = 'live' limit 1")
	says_hello "$pod"
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
	says_hello "$pod"
	kill -TERM "$PID"
	burst_wait
}

holding() { # holding NOTE: somebody holds the run's lock and has written that into it; who, in $HOLDER
	local lock=state/runs/$RUN/lock
	hold_lock "$lock" "$1" &
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

# A command that was typed once and failed does not stand in the prompt all day, in all folders.
t_status_of_a_one_off() {
	burst run -- false
	is "$STATUS" 1 "exit status"
	burst status
	has out.txt "failed"
	ledger "update run set started_ms = started_ms - 540000, ended_ms = ended_ms - 540000"
	burst status
	has out.txt "failed"
	ledger "update run set started_ms = started_ms - 61000, ended_ms = ended_ms - 61000"
	burst status
	hasnt out.txt "failed"
	burst status --json
	is "$(json .last_failure)" null "after ten minutes"
	ledger "update run set status = 'unreleased'" # this may cost money
	burst status --json
	is "$(json .last_failure.status)" unreleased "one that may still bill"
	ledger "update run set status = 'failed', config = '$T/burst.cfg'"
	echo "provider = \"local\";" >burst.cfg # a job stays for a day
	burst status --json
	is "$(json .last_failure.status)" failed "of a job with a burst.cfg"
}

has_ended() { ! running_as "$1"; }
# One that hangs, reads nothing and started others holds the run for its limit, no longer, and leaves nothing.
t_on_exit_that_hangs_is_ended() {
	script_lines 2
	config
	mkdir -p home/.config/burst
	echo 'sleep 300 & echo $! >sleeper; wait' >hang.sh
	echo "on_exit = \"sh $T/hang.sh\"; on_exit_limit = \"1s\";" >home/.config/burst/burst.cfg
	local began=$SECONDS
	burst run
	is "$STATUS" 0 "exit status ($(tail -n 1 err.txt))"
	has err.txt "warning: on_exit: /bin/sh does not end: killed after 1 s"
	[ $((SECONDS - began)) -lt 60 ] || complain "the run took $((SECONDS - began)) s"
	wait_for 20 "the end of what it started" has_ended "$(cat sleeper)"
	burst run --anew
	is "$STATUS" 0 "the job is free ($(tail -n 1 err.txt))"
	echo "on_exit = \"true\"; on_exit_limit = \"0\";" >home/.config/burst/burst.cfg
	burst run
	is "$STATUS" 2 "no limit"
	has err.txt 'on_exit_limit'
}

run_tests "$@"
