#!/bin/bash
# modal_switch.sh - who ends a sandbox at Modal when its client cannot: its start script, the service at the end of its lifetime, the
# next burst of this machine, a burst of another one; and that nobody ends what is wanted.
# shellcheck disable=SC2317 # c_ functions are called by names put together
. "$(dirname "$0")/lib.sh"
. "$ROOT/tests/cloud/modal/client.sh"

# working [N] [CONFIG...]: burst renders in the background, N slow segments on one sandbox; its id in $ID
working() {
	script_lines "${1:-60}"
	[ $# = 0 ] || shift
	slow_worker SLOW=0.5 MAX_BATCH=2
	md_config 'lease = "10s"; code = { path = "code"; };' "$@"
	LIMIT=200 burst_bg run --json
	wait_for 90 "the first files" file_count out 1
	ID=$(md_sandboxes | cut -d' ' -f1 | head -n 1)
}
killed() { # without a word
	kill -9 "$PID"
	burst_wait 2>/dev/null
	KILLED=$SECONDS
}
ended_itself() { # ended_itself [SECONDS]: since it was killed, by the end of its first process
	wait_for "${1:-40}" "sandbox $ID to end" md_is "$ID" .state ENDED
	is "$(asked SandboxTerminate)" 0 "ends that were asked for"
	is "$(md_get "$ID" .ended)" SUCCESS "how it ended"
	[ $((SECONDS - KILLED)) -le "${1:-40}" ] || complain "it took $((SECONDS - KILLED)) s"
}
first_process() { md_get "$ID" .pid; }
inside() { # inside COMMAND...: in the sandbox
	nsenter -t "$(first_process)" -m -p "$@"
}
reap() {
	burst reap "$@"
	is "$STATUS" 0 "reap's exit status ($(tail -n 1 err.txt))"
}
in_its_lifetime() { # in_its_lifetime FROM TO: the seconds that the service itself gives it
	local s
	s=$(md_control state | jq '.sandboxes[0].timeout_s')
	[ "$s" -ge "$1" ] && [ "$s" -le "$2" ] || complain "timeout_secs is $s"
	is "$(md_control state | jq '.sandboxes[0].idle_s')" null "idle_timeout_secs"
}

# ---- the sandbox itself ----

c_client_is_killed() {
	working
	in_its_lifetime 660 725 # ten minutes, and the two that its own end comes before the service's
	killed
	ended_itself
	reap
	is "$(asked SandboxCreate)" 1 creates
}
c_shells_are_killed_in_it() {
	working
	inside pkill -KILL sh
	inside pkill -KILL -f burst-agent
	killed
	ended_itself
	reap
}
c_its_agent_is_stopped() {
	working
	inside pkill -STOP -f burst-agent
	killed
	ended_itself 60
	reap
}
# Everything in it but the first process is dead or stopped: the service ends it when its lifetime is over.
c_all_of_it_stands_still() {
	working 60
	killed
	# shellcheck disable=SC2046
	kill -STOP $(descendants "$(first_process)") 2>/dev/null # some are over by now
	md_control clock '{"advance_s":300}' >/dev/null
	md_is "$ID" .state RUNNING || complain "it ended before its lifetime was over"
	md_control clock '{"advance_s":420}' >/dev/null
	wait_for 20 "the service's end of it" md_is "$ID" .state ENDED
	is "$(md_get "$ID" .ended)" TIMEOUT "how it ended"
	is "$(asked SandboxTerminate)" 0 "ends that were asked for"
	reap
}
c_line_is_cut_and_the_client_lives() {
	working 16
	md_control "sandboxes/$ID" '{"quirks":{"door":"reset"},"drop":true}' >/dev/null
	burst_wait
	all_done 16 2
	is "$(md_get "$ID" .ended)" SUCCESS "how the one that could not be reached ended"
}
c_its_first_process_is_killed() { # all of it ends with that
	working
	killed
	md_control "sandboxes/$ID" '{"kill":9}' >/dev/null
	wait_for 10 "the sandbox to end" md_is "$ID" .state ENDED
	is "$(md_get "$ID" .ended)" FAILURE "how it ended"
	reap
}

# ---- left to itself ----

# alone N [CONFIG...]: N slow segments, and once the sandbox has them all its client is killed; the sandbox in $ID
alone() {
	local run
	script_lines "$1"
	shift
	slow_worker SLOW=0.5 MAX_BATCH=2
	md_config 'lease = "20s"; code = { path = "code"; };' "$@"
	burst run -d
	is "$STATUS" 0 "run -d ($(tail -n 1 err.txt))"
	run=$(cat out.txt)
	wait_for 60 "the queue to be handed over" handed_over
	PID=$(sed -n 's/^process //p' "state/runs/$run/lock")
	kill -9 "$PID"
	wait_for 10 "the client to be gone" eval '! running_as "$PID"'
	KILLED=$SECONDS
	ID=$(md_sandboxes | cut -d' ' -f1 | head -n 1)
	[ -n "$ID" ] || complain "no sandbox is left alone"
}
handed_over() { [ "$(in_ledger 'select detached from run')" = 1 ]; }
synced_files() { find modal/volumes -name 's0*.wav' | wc -l; }
attach() { # attach SEGMENTS
	LIMIT=200 burst attach --json
	is "$STATUS" 0 "attach ($(tail -n 1 err.txt))"
	all_right "$1"
	is "$(pods_ever)" 1 "sandboxes that ever were"
}

# Nothing is committed at the end of this one: what comes home was synced while it lived. It works for longer than its lease.
c_it_works_on_alone() {
	md_fault lose_unsynced
	alone 80
	ended_itself 120
	[ $((SECONDS - KILLED)) -ge 20 ] || complain "it ended after $((SECONDS - KILLED)) s, which proves nothing"
	is "$(synced_files)" 80 "files on its volume"
	attach 80
	[ "$(asked block:GET '.status == 200')" -ge 10 ] || complain "nothing was read from the volume"
}
# Nobody looks for 25 s after it ended itself: it is booked until Modal's own record of its end, and `ps` calls it unwatched meanwhile.
c_it_is_booked_until_its_own_end() {
	local seconds
	alone 12
	burst ps --json
	schema ps
	is "$(json '[.[] | select(.kind == "pod") | .state] | join(" ")')" unwatched "its state without a client"
	ended_itself 60
	seconds=$SECONDS
	wait_for 40 "some time to pass" eval '[ $((SECONDS - '"$seconds"')) -ge 25 ]'
	LIMIT=200 burst attach --json
	is "$STATUS" 0 "attach ($(tail -n 1 err.txt))"
	has err.txt "it is booked until then"
	BOX_S=$(md_get "$ID" '(.ended_ms - .created_ms) / 1000')
	is "$(jq -n "$(json '.pods[0].billed_seconds') - $BOX_S | . > -1 and . < 8")" true \
		"booked $(json '.pods[0].billed_seconds') s, it lived for $BOX_S s"
	is "$(json .billed_seconds)" "$(json ".pods[0].billed_seconds")" "the seconds of the run"
}
c_attach_while_it_works() {
	alone 40
	attach 40
}
c_it_cannot_sync() { # nothing is durable: what it has stays for whoever comes before its lease is over
	md_fault sync_fails
	alone 16
	wait_for 40 "its work to be done" eval '[ "$(find modal/sandboxes -name "s0*.wav" | wc -l)" -ge 16 ]'
	attach 16
	is "$(asked block:GET)" 0 "blocks read from the volume"
}
c_sync_fails_for_a_while() { # it does not end before its files are safe
	md_fault sync_fails
	md_fault lose_unsynced
	alone 24
	wait_for 40 "its work to be done" eval '[ "$(find modal/sandboxes -name "s0*.wav" | wc -l)" -ge 24 ]'
	md_control "sandboxes/$ID" '{"quirks":{"fail_sync":false}}' >/dev/null
	ended_itself
	is "$(synced_files)" 24 "files on its volume"
	attach 24
}
c_taken_back_while_it_is_alone() { # what was synced by then is not rendered again
	local synced
	alone 80
	wait_for 60 "a sync of what it rendered" eval '[ "$(synced_files)" -ge 10 ]'
	md_control "sandboxes/$ID" '{"end":"TERMINATED","hard":true}' >/dev/null
	wait_for 10 "its end" md_is "$ID" .state ENDED
	synced=$(synced_files)
	LIMIT=200 burst attach --json
	[ "$(wavs)" -ge $((synced - 2)) ] || complain "$(wavs) files are home, $synced were synced"
	if [ "$STATUS" != 0 ]; then
		LIMIT=200 burst run --json
		is "$STATUS" 0 "the run after it ($(tail -n 1 err.txt))"
		[ "$(json .segments.cached)" -ge $((synced - 2)) ] || complain "only $(json .segments.cached) were kept"
	fi
	all_right 80
}

t_it_ends_itself() {
	cases c_it_works_on_alone c_it_is_booked_until_its_own_end c_sync_fails_for_a_while c_taken_back_while_it_is_alone c_line_is_cut_and_the_client_lives c_attach_while_it_works c_its_agent_is_stopped \
		c_client_is_killed c_shells_are_killed_in_it c_all_of_it_stands_still c_it_cannot_sync c_its_first_process_is_killed
}

# ---- the next burst ----

# The create is on its way when burst dies: it is carried out some seconds later.
dead_in_create() {
	md_control fault '{"when":{"op":"SandboxCreate"},"do":{"delay_ms":3000}}' >/dev/null
	slow_worker
	md_config 'code = { path = "code"; };'
	burst_bg run --json
	wait_for 20 "the intent" intent_is_known
	wait_for 20 "the request" eval 'md_control state | jq -e ".faults[0].hits == 1"'
	kill -9 "$PID"
	burst_wait 2>/dev/null
	intent_is_known || complain "it knew its sandbox when it died"
}
c_killed_in_a_create_then_resume() {
	dead_in_create
	LIMIT=200 burst resume --json
	all_done 6 1
}
c_killed_in_a_create_then_reap() {
	dead_in_create
	LIMIT=200 reap
	is "$(pods_ever)" 1 "sandboxes that ever were"
}
c_killed_in_a_create_then_run() {
	dead_in_create
	LIMIT=200 burst run --json
	is "$STATUS" 0 "exit status ($(tail -n 1 err.txt))"
	is "$(wavs)" 6 files
}
c_killed_at_work_then_resume() {
	working 24
	killed
	LIMIT=120 burst resume --json
	all_done 24 1
}
c_killed_at_work_then_reap() {
	working
	killed
	reap
	is "$(asked SandboxTerminate)" 1 "ends asked for"
	is "$(md_get "$ID" .ended)" TERMINATED "how it ended"
}

# ---- where Modal refuses its lists ----

c_killed_and_lists_are_refused() { # what the ledger knows is looked up by its ids
	md_fault lists_refused '"times":-1'
	working
	killed
	burst doctor
	has out.txt "modal: 1 pod with burst's marker now, among those in this machine's ledger"
	hasnt out.txt "cannot list its pods"
	reap
	is "$(asked SandboxTerminate)" 1 "ends asked for"
	is "$(md_get "$ID" .ended)" TERMINATED "how it ended"
	reap
	has err.txt "Modal refuses to list sandboxes"
	has err.txt "no pods of this machine's ledger are left at"
	burst doctor
	has out.txt "modal: 0 pods with burst's marker now, among those in this machine's ledger"
}
c_named_and_lists_are_refused() {
	md_fault lists_refused '"times":-1'
	working
	kill -STOP "$PID"
	burst reap "$ID"
	is "$STATUS" 9 "reap of a pod whose client lives"
	has out.txt "its client runs here; skipped"
	reap "$ID" --force
	is "$(md_get "$ID" .ended)" TERMINATED "how it ended"
	killed
	reap
}

# ---- another machine ----

marked() { # marked NAME [TAGS]: a sandbox of somebody else; its id in $ID
	md_call SandboxCreate "{\"appId\":\"$APP\",\"definition\":{\"entrypointArgs\":[\"sleep\",\"1000\"],\"imageId\":\"$IMAGE_ID\",\"timeoutSecs\":3600,
		\"networkAccess\":{\"networkAccessType\":1},\"name\":\"$1\"},\"tags\":[${2:-}]}"
	ID=$(jq -r '.messages[0].sandboxId' reply.json)
}
marks() { # marks ATTEMPT HARD-END: as burst tags its own
	local name out=''
	for name in burst=1 burst-machine=elsewhere burst-run=1101-000000-aaaa "burst-attempt=$1" "burst-hard-end=$2"; do
		out="$out${out:+,}{\"tagName\":\"${name%%=*}\",\"tagValue\":\"${name#*=}\"}"
	done
	echo "$out"
}
an_image() {
	md_call AppGetOrCreate '{"appName":"burst","objectCreationType":1}'
	APP=$(jq -r '.messages[0].appId' reply.json)
	md_call ImageGetOrCreate "{\"appId\":\"$APP\",\"image\":{\"dockerfileCommands\":[\"FROM debian:12\"]},\"builderVersion\":\"2025.06\"}"
	IMAGE_ID=$(jq -r '.messages[0].imageId' reply.json)
	wait_for 20 "its image" eval "md_control state | jq -e '.images[] | select(.id == \"$IMAGE_ID\") | .result.status == 1'"
}
c_left_by_another_machine() {
	local old young half app now
	now=$(date +%s)
	md_config
	an_image
	marked burst-0123456789abcdef "$(marks 0123456789abcdef $((now - 400)))"
	old=$ID
	marked burst-0123456789abcdee "$(marks 0123456789abcdee $((now - 100)))"
	young=$ID
	marked half-marked '{"tagName":"burst","tagValue":"1"}' # not by us: our marks are all there or none
	half=$ID
	marked mine
	app=$ID
	[ -n "$old" ] && [ -n "$young" ] && [ "$old" != "$young" ] || complain "there are no sandboxes: $(cat reply.json)"
	reap
	is "$(md_get "$old" .ended)" TERMINATED "the one past its hard end"
	is "$(md_sandboxes | cut -d' ' -f3 | sort | tr '\n' ' ')" "burst-0123456789abcdee half-marked mine " "what it left alone"
	has out.txt "pod $old of modal: gone (past its hard end)"
	has out.txt "pod $young of modal: run 1101-000000-aaaa of machine elsewhere"
	reap "$young" --force
	is "$(md_sandboxes | cut -d' ' -f3 | sort | tr '\n' ' ')" "half-marked mine " "what is nobody's of ours"
	md_call SandboxTerminate "{\"sandboxId\":\"$half\"}"
	md_call SandboxTerminate "{\"sandboxId\":\"$app\"}"
	wait_for 20 "them to end" eval '[ -z "$(md_sandboxes)" ]'
	echo "$old $young $half $app" >state/ledger.db.not # they are in no ledger, and need not be
}
c_another_app_of_this_account() { # the tags decide, not the app: what was rented under another name of it is ours to see
	working
	killed
	sed -i 's/modal = {/modal = { app = "other";/' burst.cfg
	reap
	is "$(md_get "$ID" .ended)" TERMINATED "what it had rented under the first name"
}
c_two_machines() {
	allow_volumes v
	mkdir -p other/home
	working 20
	local one=$PID one_shell=$SHELL_PID
	cd other || return
	export BURST_STATE_DIR=$T/state2
	PID=''
	working 20
	(BURST_STATE_DIR=$T/state3; reap; [ -z "$WHY" ] || echo "$WHY"; is "$(grep -c "skipped" out.txt)" 2 "sandboxes that a third machine leaves alone"; echo "$WHY") >../third.txt
	is "$(tr -d '\n' <../third.txt)" "" "the third machine"
	is "$(md_sandboxes | wc -l)" 2 "sandboxes at work"
	burst_wait
	all_done 20 2
	cd ..
	SHELL_PID=$one_shell PID=$one
	burst_wait
	all_done 20 2
}

t_lists_are_refused() {
	cases c_killed_and_lists_are_refused c_named_and_lists_are_refused
}
t_the_next_burst() {
	cases c_killed_in_a_create_then_reap c_killed_in_a_create_then_run c_killed_in_a_create_then_resume c_two_machines \
		c_killed_at_work_then_resume c_killed_at_work_then_reap c_left_by_another_machine c_another_app_of_this_account
}

run_tests "$@"
