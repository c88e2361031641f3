# switch.sh - what tests/e2e/vendor_switch.sh needs of RunPod: its words, and the ways in which only a pod there can end.
# shellcheck shell=bash
# shellcheck disable=SC2034,SC2317 # used and called by vendor_switch.sh
export RP_IMAGE_CACHE=${RP_IMAGE_CACHE:-$ROOT/build/minimal}

BOOT=30s             # boot_limit
ENDS_WITHIN_S=25     # after its client's last word
CREATE=createPod     # the request
DROP_LINE=drop_ssh   # what the stand-in calls it
ITS_OWN_ENDS="c_workers_cannot_reach_the_switch c_api_is_away_when_it_is_time c_image_without_curl c_key_without_rights
	c_container_begins_anew c_container_begins_anew_on_its_disk c_image_with_its_own_entrypoint c_shells_are_killed_in_the_pod
	c_out_of_memory_in_the_pod c_only_the_old_api_may_end_it c_key_without_rights_is_allowed c_it_learns_late_that_it_may_not
	c_it_is_left_to_itself"
ITS_OWN_NEXT=c_changed_at_the_console

is_well_set_up() { :; }
ends_asked_for() { asked deletePod '.key == "account"'; }

ended_itself() { # ended_itself [SECONDS]: since it was killed, with the pod's own key
	rp_wait_status "$ID" TERMINATED "${1:-70}"
	is "$(ends_asked_for)" 0 "ends that somebody else asked for"
	[ $((SECONDS - KILLED)) -le "${1:-70}" ] || complain "it took $((SECONDS - KILLED)) s"
}
ended_alone() { # with its own key
	is "$(rp_control requests | jq -r --arg p "/v2/pods/$ID" '[.[] | select(.url == $p and .key == "pod" and .status == 204)] | length')" 1 "ends asked for by the pod itself"
}
was_ended() { # was_ended ID WHAT
	is "$(rp_get "$1" .status)" TERMINATED "$2"
}
first_process() { # of the pod's container
	rp_control state | jq -r --arg id "$ID" '.pods[] | select(.id == $id) | .pid'
}

# ---- the pod itself ----

c_image_with_its_own_entrypoint() { # which would never have come to our command
	IMAGE=entered/serving:1
	working
	killed
	ended_itself 25
	reap
}
c_shells_are_killed_in_the_pod() {
	working
	local all
	all=$(descendants "$(first_process)" | tail -n +2)
	# shellcheck disable=SC2086
	kill -KILL $all 2>/dev/null # some have ended by now
	[ "$(grep -c . <<<"$all")" -ge 3 ] || complain "these were killed: $all"
	killed
	ended_itself 25
	reap
}
# The kernel's own killer: the pod's processes share 64 MB, and one of them wants all there is.
memory_group() { # memory_group MB PID...: prints its folder; fails where this machine does not let us
	local at limit group
	if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
		at=/sys/fs/cgroup limit=memory.max
	else
		at=/sys/fs/cgroup/memory limit=memory.limit_in_bytes
	fi
	group=$at/burst-test-$$-$RANDOM
	mkdir "$group" 2>/dev/null || return 1
	[ -e "$group/cgroup.procs" ] && echo "$1M" >"$group/$limit" || { # else a plain folder, where nothing is limited
		rmdir "$group"
		return 1
	}
	shift
	for pid; do echo "$pid" >"$group/cgroup.procs"; done 2>/dev/null # some have ended by now
	[ -n "$(cat "$group/cgroup.procs")" ] && echo "$group"
}
c_out_of_memory_in_the_pod() {
	local group
	working
	# shellcheck disable=SC2046
	group=$(memory_group 64 $(descendants "$(first_process)")) || {
		skip "no memory cgroup can be made here"
		kill -TERM "$PID"
		burst_wait
		return
	}
	killed # first: a client that sees what the kernel ends may release the pod itself
	sh -c 'echo $$ >"$1/cgroup.procs"; exec nsenter -t "$2" -m -p tail /dev/zero' sh "$group" "$(first_process)" >/dev/null 2>&1
	is "$?" 137 "the end of what wanted all memory"
	ended_itself 25
	reap
	wait_for 10 "its processes to be gone" rmdir "$group"
}
c_container_begins_anew() {
	rp_control settings '{"crash_keeps_disk":false}' >/dev/null
	working
	killed
	rp_control "pods/$ID" '{"kill":9}' >/dev/null
	wait_for 10 "the container to begin anew" eval '[ "$(rp_get "$ID" .starts)" -ge 2 ]'
	# its lease file is gone: what its environment says, an epoch, holds
	ended_itself 45
	reap
}
c_container_begins_anew_on_its_disk() {
	working
	killed
	rp_control "pods/$ID" '{"kill":9}' >/dev/null
	ended_itself 25
	reap
}
c_api_is_away_when_it_is_time() {
	working
	rp_control fault '{"times":-1,"when":{"key":"pod"},"do":{"reset":true}}' >/dev/null
	killed
	wait_for 30 "the first try" eval '[ "$(rp_control requests | jq "[.[] | select(.key == \"pod\" and .op == \"deletePod\")] | length")" -ge 1 ]'
	curl -qsS -X DELETE "$RUNPOD_API_URL/_control/faults" >/dev/null
	ended_itself 85
	reap
}
c_only_the_old_api_may_end_it() {
	rp_control settings '{"pod_key":{"delete":false,"action":false}}' >/dev/null
	working
	killed
	rp_wait_status "$ID" TERMINATED 25
	[ "$(asked graphql:podTerminate '.key == "pod"')" -ge 1 ] || complain "GraphQL was not asked"
	reap
}
# With the pod's key a worker could end other pods of the account; without the switch the pod would bill until its hard end.
c_workers_cannot_reach_the_switch() {
	script_lines 3
	slow_worker
	cat >code/hostile.sh <<-'E'
		for f in /proc/1/environ /proc/1/mem "$BURST_HOME"/api.* "$BURST_HOME/host_key" "$BURST_HOME/env"; do
			cat "$f" >/dev/null 2>&1 && echo "it reads $f"
		done
		for f in "$BURST_HOME/lease" "$BURST_HOME/end" "$BURST_HOME/switch" "$BURST_HOME/x" "$BURST_VOLUME/code/x" "$BURST_VOLUME/agent/x"; do
			(echo x >>"$f") 2>/dev/null && echo "it writes $f"
		done
		for p in /proc/[0-9]*; do
			[ "$(stat -c %u "$p" 2>/dev/null)" != "$(id -u)" ] && kill -0 "${p#/proc/}" 2>/dev/null && echo "it kills $(tr '\0' ' ' <"$p/cmdline")"
		done
		echo "tried as $(id -u)"
		exec sh "$BURST_CODE/worker.sh"
	E
	JOB='worker = "sh \"$BURST_CODE/hostile.sh\""; check = { enabled = false; };'
	rp_config 'code = { path = "code"; };'
	burst run --json -v
	all_done 3 1
	has err.txt "| tried as 61001"
	hasnt err.txt "| it "
	# the job may ask for root, and then it has what root has
	POD='worker_root = true;'
	rp_config 'code = { path = "code"; };'
	rm -rf out
	burst run --json -v
	has err.txt "| tried as 0"
	has err.txt "| it reads /proc/1/environ"
	has err.txt "its workers are root in the pod"
}
c_key_without_rights() {
	rp_control settings '{"pod_key":{"get":false,"delete":false,"action":false,"graphql":false}}' >/dev/null
	rp_config
	burst run --json
	is "$STATUS" 6 "exit status ($(tail -n 1 err.txt))"
	has err.txt "it cannot end itself if this client dies, so it gets no work"
	is "$(wavs)" 0 files
	is "$(json '[.pods[].released] | all')" true "all released"
	is "$(pods_ever)" 2 "pods that could never have worked"
	has err.txt "2 pods in a row cannot end themselves if this client dies: pod.allow_unproven_switch = true gives such pods work"
	# which is so for the next run, too
	burst run --json
	is "$STATUS" 6 "exit status of the next run"
	is "$(pods_ever)" 2 "pods that ever were"
	has err.txt "pods of this account could not end themselves within the last day (http 403 "
	has err.txt "pod.allow_unproven_switch = true gives such pods work"
	POD='allow_unproven_switch = true;'
	rp_config
	burst run --json
	all_done 6 3
}
c_key_without_rights_is_allowed() {
	rp_control settings '{"pod_key":{"get":false,"delete":false,"action":false,"graphql":false}}' >/dev/null
	POD='allow_unproven_switch = true;'
	rp_config
	burst run --json
	all_done 6 1
	has err.txt "its dead-man's switch: bad http 403"
}
c_it_learns_late_that_it_may_not() { # whatever it asks with; what is left of that does the second pod no harm
	rp_control fault '{"skip":1,"times":3,"when":{"op":"getPod","key":"pod"},"do":{"status":403,"detail":"access denied"}}' >/dev/null
	rp_control fault '{"when":{"op":"getPod","key":"pod"},"do":{"delay_ms":8000,"status":403,"detail":"access denied"}}' >/dev/null
	working 16
	burst_wait
	all_done 16 2
	has err.txt "it cannot end itself if this client dies, so it gets no work"
}
c_image_without_curl() {
	[ -e "$RP_IMAGE_CACHE/root/.complete" ] || { skip "the minimal image is not built (tests/cloud/minimal_root.sh $RP_IMAGE_CACHE)"; return; }
	IMAGE=debian:12
	LIMIT=200
	BOOT=90s
	working
	killed
	ended_itself
	reap
}
c_it_is_left_to_itself() {
	rp_config
	burst run -d --json
	is "$STATUS" 0 "exit status ($(tail -n 1 err.txt))"
	kill -9 "$(sed -n 's/^process //p' "$BURST_STATE_DIR/runs/$(json .run)/lock")" # as -d returns
	wait_for 40 "the pod to end itself" eval '[ -z "$(rp_pods)" ]'
	burst attach
	is "$STATUS" 0 "attach ($(tail -n 1 err.txt))"
	is "$(wavs)" 6 files
}

# ---- another machine ----

somebody_elses_account() { :; }
rented() { # rented NAME [ENV]: by somebody else; its id in $ID
	rp_api POST /v2/pods "{\"name\":\"$1\",\"image\":\"host/x\",\"args\":\"sleep 1000\",\"gpu\":{\"id\":\"$RTX4090\",\"count\":1},\"ports\":[\"22/tcp\"]${2:+,\"env\":{$2\}}}"
	ID=$(jq -r .id reply.json)
}
marked() { # marked ATTEMPT HARD-END: a pod of a machine that is no more; its id in $ID
	rented "burst-$1" "\"BURST_MACHINE\":\"elsewhere\",\"BURST_RUN\":\"1101-000000-aaaa\",\"BURST_ATTEMPT\":\"$1\",\"BURST_HARD_END\":\"$2\""
}
ended_by_hand() { rp_api DELETE "/v2/pods/$1"; }
half_of_its_marker() { # somebody took it away, at the console
	marked 0123456789abcded $(($(date +%s) - 400))
	rp_api PATCH "/v2/pods/$ID" '{"env":{}}'
	reap
	has out.txt "pod $ID of runpod: skipped: its name is burst-0123456789abcded, but its marker is missing"
	is "$(rp_pods | wc -l)" 2 "pods that it left alone"
	reap "$ID" --force
}
c_changed_at_the_console() { # renamed, its mark taken away, stopped: it is given back all the same, and its work done elsewhere
	working 20
	rp_api PATCH "/v2/pods/$ID" '{"name":"my pod","env":{}}'
	is "$(rp_get "$ID" '"\(.name) \(.env.BURST_RUN)"')" "my pod null" "what the vendor knows of it"
	rp_api POST "/v2/pods/$ID/action" '{"action":"stop"}'
	burst_wait
	all_done 20 2
	is "$(rp_get "$ID" .status)" TERMINATED "the one that was stopped"
}
