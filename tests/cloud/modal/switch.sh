# switch.sh - what tests/e2e/vendor_switch.sh needs of Modal: its words, and the ways in which only a sandbox can end: by its
# lifetime, or left to itself.
# shellcheck shell=bash
# shellcheck disable=SC2034,SC2317 # used and called by vendor_switch.sh
BOOT=                # boot_limit: what it is by default
ENDS_WITHIN_S=40     # after its client's last word
CREATE=SandboxCreate # the request
DROP_LINE=drop       # what the stand-in calls it
ITS_OWN_ENDS="c_it_works_on_alone c_it_is_booked_until_its_own_end c_sync_fails_for_a_while c_taken_back_while_it_is_alone
	c_attach_while_it_works c_its_agent_is_stopped c_shells_are_killed_in_it c_all_of_it_stands_still c_it_cannot_sync
	c_its_first_process_is_killed"
ITS_OWN_NEXT=c_another_app_of_this_account

is_well_set_up() { in_its_lifetime 660 725; } # ten minutes, and the two that its own end comes before the service's
ends_asked_for() { asked SandboxTerminate; }
ended_itself() { # ended_itself [SECONDS]: since it was killed, by the end of its first process
	wait_for "${1:-40}" "sandbox $ID to end" md_is "$ID" .state ENDED
	is "$(ends_asked_for)" 0 "ends that were asked for"
	is "$(md_get "$ID" .ended)" SUCCESS "how it ended"
	[ $((SECONDS - KILLED)) -le "${1:-40}" ] || complain "it took $((SECONDS - KILLED)) s"
}
ended_alone() { # its first process came to its end
	is "$(md_get "$ID" .ended)" SUCCESS "how the one that could not be reached ended"
}
was_ended() { # was_ended ID WHAT
	is "$(md_get "$1" .ended)" TERMINATED "$2"
}
first_process() { md_get "$ID" .pid; }
inside() { # inside COMMAND...: in the sandbox, which sees its own processes alone
	nsenter -t "$(first_process)" -m -p "$@"
}
in_its_lifetime() { # in_its_lifetime FROM TO: the seconds that the service itself gives it
	local s
	s=$(md_control state | jq '.sandboxes[0].timeout_s')
	[ "$s" -ge "$1" ] && [ "$s" -le "$2" ] || complain "timeout_secs is $s"
	is "$(md_control state | jq '.sandboxes[0].idle_s')" null "idle_timeout_secs"
}

# ---- the sandbox itself ----

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
somebody_elses_account() { an_image; }
rented() { # rented NAME [TAGS]: by somebody else; its id in $ID
	md_call SandboxCreate "{\"appId\":\"$APP\",\"definition\":{\"entrypointArgs\":[\"sleep\",\"1000\"],\"imageId\":\"$IMAGE_ID\",\"timeoutSecs\":3600,
		\"networkAccess\":{\"networkAccessType\":1},\"name\":\"$1\"},\"tags\":[${2:-}]}"
	ID=$(jq -r '.messages[0].sandboxId' reply.json)
}
marked() { rented "burst-$1" "$(marks "$1" "$2")"; } # marked ATTEMPT HARD-END: a sandbox of a machine that is no more; its id in $ID
ended_by_hand() {
	md_call SandboxTerminate "{\"sandboxId\":\"$1\"}"
	wait_for 20 "it to end" md_is "$1" .state ENDED
}
half_of_its_marker() { # not by us: our marks are all there or none
	rented half-marked '{"tagName":"burst","tagValue":"1"}'
	reap
	is "$(names_alive)" "half-marked mine " "what is nobody's of ours"
	ended_by_hand "$ID"
}
c_another_app_of_this_account() { # the tags decide, not the app: what was rented under another name of it is ours to see
	working
	killed
	sed -i 's/modal = {/modal = { app = "other";/' burst.cfg
	reap
	is "$(md_get "$ID" .ended)" TERMINATED "what it had rented under the first name"
}

t_lists_are_refused() {
	cases c_killed_and_lists_are_refused c_named_and_lists_are_refused
}
