#!/bin/bash
# cloud_modal_sandboxes.sh - sandboxes of the stand-in for Modal: how they are made, listed, reached and ended.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"
# shellcheck source-path=SCRIPTDIR
. "$ROOT/tests/cloud/modal/lib.sh"
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/cloud_modal_lib.sh"

box_ssh() { # box_ssh ID COMMAND
	ssh -F none -i id -p "$(md_get "$1" '.tunnels[0].unencryptedPort // 1')" -o BatchMode=yes -o ConnectTimeout=5 -o StrictHostKeyChecking=yes \
		-o UserKnownHostsFile=known -o HostKeyAlias=pod -o LogLevel=ERROR root@127.0.0.1 "$2" </dev/null
}
logged_in() { box_ssh "$1" true; }

t_life_of_a_sandbox() {
	begin || return
	account
	md_fault late_schedule '"ms":3000'
	create life "$SSHD"
	want 0 SandboxCreate
	local task
	md_call SandboxGetTaskId "{\"sandboxId\":\"$ID\"}"
	is "$(jq -c '.messages[0]' reply.json)" "{}" "its task while it is queued"
	md_call SandboxGetTunnels "{\"sandboxId\":\"$ID\",\"timeout\":0.1}"
	is "$(msg .result.status)" GENERIC_STATUS_TIMEOUT "its tunnels while it is queued"
	md_call SandboxWait "{\"sandboxId\":\"$ID\",\"timeout\":0.1}"
	is "$(jq -c '.messages[0]' reply.json)" "{}" "its result while it is queued"
	md_call SandboxGetTunnels "{\"sandboxId\":\"$ID\",\"timeout\":20}"
	is "$(msg .result.status) $(jq -c '.messages[0].tunnels[0] | [.port, .unencryptedHost, .containerPort]' reply.json)" \
		'GENERIC_STATUS_SUCCESS [443,"127.0.0.1",22]' "its tunnels"
	md_call SandboxGetTaskId "{\"sandboxId\":\"$ID\"}"
	task=$(msg .taskId)
	[[ $task =~ ^ta-[0-9A-Za-z]{22}$ ]] || complain "task id: $task"
	wait_for 20 "a login" logged_in "$ID"
	is "$(box_ssh "$ID" 'nvidia-smi --query-gpu=name --format=csv,noheader; cat /proc/1/comm')" "NVIDIA L4
sshd" "inside"
	is "$(box_ssh "$ID" "ls '$ROOT' 2>&1 | grep -c 'No such file'")" 1 "this machine's files"
	md_call SandboxWait "{\"sandboxId\":\"$ID\"}"
	is "$(jq -c '.messages[0]' reply.json)" "{}" "its result while it runs"
	md_call SandboxTerminate "{\"sandboxId\":\"$ID\"}"
	is "$(jq -c '.messages[0]' reply.json)" "{}" "terminate"
	md_call SandboxWait "{\"sandboxId\":\"$ID\",\"timeout\":10}"
	is "$(msg .result.status)" GENERIC_STATUS_TERMINATED "its result"
	md_call SandboxTerminate "{\"sandboxId\":\"$ID\"}"
	is "$(msg .existingResult.status)" GENERIC_STATUS_TERMINATED "terminate once more"
	md_call SandboxGetTaskId "{\"sandboxId\":\"$ID\"}"
	is "$(msg .taskId) $(msg .taskResult.status)" "$task GENERIC_STATUS_TERMINATED" "its task when it is over"
	md_call SandboxGetTunnels "{\"sandboxId\":\"$ID\"}"
	want 5 "its tunnels when it is over"
	md_control settings '{"tunnels_of_ended":"FAILED_PRECONDITION"}' >/dev/null
	md_call SandboxGetTunnels "{\"sandboxId\":\"$ID\"}"
	want 9 "its tunnels when it is over, otherwise"
	md_call TaskGetInfo "{\"taskId\":\"$task\"}"
	[ "$(jq '.messages[0].info | .finishedAt > .startedAt and .startedAt > .enqueuedAt and .gpuType == "L4"' reply.json)" = true ] ||
		complain "its times: $(jq -c '.messages[0]' reply.json)"
	md_call SandboxGetLogs "{\"sandboxId\":\"$ID\",\"timeout\":5}"
	is "$(jq -r '[.messages[].items[]?.data | select(test("listening on 0.0.0.0 port 22"))] | length' reply.json) $(jq '.messages[-1].eof' reply.json)" "1 true" "its log"
	md_call SandboxWait '{"sandboxId":"sb-0000000000000000000000"}'
	want 5 "a sandbox that never was"
	over
}

t_how_it_ends() {
	begin || return
	account
	ended() { # ended HOW EXITCODE WHAT
		wait_for 20 "$3" md_is "$ID" .ended "$1"
		is "$(md_get "$ID" .result.exitcode)" "$2" "$3: exit code"
	}
	create good 'exit 0'; ended SUCCESS 0 "exit 0"
	create bad 'exit 7'; ended FAILURE 7 "exit 7"
	create killed 'kill -9 $$; sleep 100 & sleep 100'; md_wait_state "$ID" RUNNING
	md_control "sandboxes/$ID" '{"kill":9}' >/dev/null; ended FAILURE 137 "killed"
	create long 'sleep 1000' '"timeoutSecs":60'; md_wait_state "$ID" RUNNING
	md_control clock '{"advance_s":61}' >/dev/null; ended TIMEOUT 0 "its time is over"
	md_control settings '{"timeout_from":"running"}' >/dev/null
	md_fault late_schedule '"ms":60000'; create late 'sleep 1000' '"timeoutSecs":60'
	md_control clock '{"advance_s":61}' >/dev/null; md_wait_state "$ID" RUNNING
	md_control clock '{"advance_s":50}' >/dev/null; is "$(md_get "$ID" .state)" RUNNING "111 s after creation, 50 after its start"
	md_control clock '{"advance_s":11}' >/dev/null; ended TIMEOUT 0 "its time since its start is over"
	create idle "$SSHD" '"idleTimeoutSecs":30'
	wait_for 20 "a login" logged_in "$ID"
	box_ssh "$ID" 'sleep 1000' 2>/dev/null &
	local ssh=$!
	wait_for 10 "the connection" box_ssh "$ID" "pgrep -x sleep"
	md_control clock '{"advance_s":31}' >/dev/null
	is "$(md_get "$ID" .state)" RUNNING "idle with a connection"
	md_control "sandboxes/$ID" '{"drop":true}' >/dev/null
	wait $ssh
	md_control clock '{"advance_s":31}' >/dev/null; ended IDLE_TIMEOUT 0 "idle"
	md_fault preempted '"ms":1'; create preempted 'sleep 1000'; ended TERMINATED 0 preempted
	md_fault evicted '"ms":1'; create evicted 'sleep 1000'; ended MEMORY_MANAGER_EVICTION 0 evicted
	md_fault init_failure; create init 'sleep 1000'; ended INIT_FAILURE 0 "init failure"
	md_control clock '{"advance_s":2}' >/dev/null
	create nosuch '' '"entrypointArgs":["/no/such/program"]'; ended INIT_FAILURE 0 "a program that is not there"
	# without a task: only its result
	md_fault never_scheduled; create never 'sleep 1'
	md_control clock '{"advance_s":100}' >/dev/null
	is "$(md_get "$ID" .state)" QUEUED "never scheduled"
	md_call SandboxTerminate "{\"sandboxId\":\"$ID\"}"
	md_call SandboxGetTaskId "{\"sandboxId\":\"$ID\"}"
	is "$(msg .taskId)$(msg .taskResult.status)" GENERIC_STATUS_TERMINATED "its task"
	md_fault slow_end '"ms":1000'; create slow 'sleep 1000'; md_wait_state "$ID" RUNNING
	md_call SandboxTerminate "{\"sandboxId\":\"$ID\"}"
	md_call SandboxWait "{\"sandboxId\":\"$ID\",\"timeout\":0.2}"
	is "$(jq -c '.messages[0]' reply.json)" "{}" "soon after a slow terminate"
	ended TERMINATED 0 "slow end"
	over
}

t_create_is_checked() {
	begin || return
	account
	md_control settings '{"creates_per_s":1000}' >/dev/null
	no() { # no STATUS TEXT MEMBERS
		create refused 'sleep 1' "$3"
		want "$1" "$3"
		jq -r .message reply.json | grep -qF -- "$2" || complain "$3: does not say \"$2\" but $(jq -r .message reply.json)"
	}
	no 3 "timeout_secs" '"timeoutSecs":0'
	no 3 "timeout_secs" '"timeoutSecs":86401'
	no 3 "absolute" '"workdir":"relative"'
	no 3 "network_access" '"networkAccess":null'
	no 3 "Invalid GPU type" '"resources":{"gpuConfig":{"count":1,"gpuType":"RTX 4090"}}'
	no 3 "Invalid GPU count" '"resources":{"gpuConfig":{"count":9,"gpuType":"L4"}}'
	no 3 "ephemeral_disk" '"resources":{"ephemeralDiskMb":10}'
	no 3 "Invalid Sandbox name" '"name":"a b"'
	no 3 "twice" "\"volumeMounts\":[{\"volumeId\":\"$VOLUME\",\"mountPath\":\"/a\"},{\"volumeId\":\"$VOLUME\",\"mountPath\":\"/b\"}]"
	no 3 "network blocked" '"networkAccess":{"networkAccessType":2}'
	no 5 "Image im-x not found" '"imageId":"im-x"'
	no 5 "Secret st-x not found" '"secretIds":["st-x"]'
	no 5 "Volume vo-x not found" '"volumeMounts":[{"volumeId":"vo-x","mountPath":"/a"}]'
	refuse 3 "Invalid environment variable" SecretGetOrCreate '{"objectCreationType":5,"envDict":{"A-B":"x"}}'
	refuse 5 "not found" VolumeGetOrCreate '{"deploymentName":"none"}'
	refuse 5 "Environment 'test' not found" VolumeGetOrCreate '{"deploymentName":"cache","environmentName":"test"}'
	refuse 5 "Environment 'test' not found" EnvironmentGetOrCreate '{"deploymentName":"test"}'
	md_call EnvironmentGetOrCreate
	is "$(msg .metadata.name) $(msg .metadata.settings.imageBuilderVersion)" "main 2025.06" "the default environment"
	refuse 6 "already exists" VolumeGetOrCreate '{"deploymentName":"cache","objectCreationType":2}'
	is "$(md_sandboxes)" "" "sandboxes after so many refusals"
	create twin 'sleep 1000'
	create twin 'sleep 1000'
	want 6 "a name in use"
	md_call SandboxTerminate "{\"sandboxId\":\"$ID\"}" # no id: of nothing
	want 5 "terminate of nothing"
	md_call SandboxTerminate "{\"sandboxId\":\"$(md_sandboxes | cut -d' ' -f1)\"}"
	wait_for 10 "the twin's end" eval '[ -z "$(md_sandboxes)" ]'
	# the rate of creation
	md_control settings '{"creates_per_s":2}' >/dev/null
	md_control clock '{"advance_s":10}' >/dev/null
	local n
	for n in 1 2 3; do md_call SandboxCreate '{"appId":"'"$APP"'"}'; done
	want 8 "the third in a second of two"
	# GPUs run out: it waits, and runs when one is given back
	md_control settings '{"creates_per_s":1000,"gpus":{"L4":{"free":1}}}' >/dev/null
	create first 'sleep 1000'
	local first=$ID
	md_wait_state "$first" RUNNING
	create second 'sleep 1000'
	md_control clock '{"advance_s":30}' >/dev/null
	is "$(md_get "$ID" .state)" QUEUED "the second on one GPU"
	md_call SandboxTerminate "{\"sandboxId\":\"$first\"}"
	md_wait_state "$ID" RUNNING
	md_call SandboxTerminate "{\"sandboxId\":\"$ID\"}"
	wait_for 10 "the end" eval '[ -z "$(md_sandboxes)" ]'
	is "$(md_control invariants | jq -c .broken)" "[]" "invariants"
	create long 'exit 0' '"timeoutSecs":86400,"environmentVariables":{"contents":{"A":"b"}}'
	wait_for 10 "its end" md_is "$ID" .ended SUCCESS
	is "$(md_control invariants | jq '.broken | length')" 2 "what is told of oddities"
	create teller "echo $(base64 -w0 host)"
	is "$(md_control invariants | jq -r '.broken[] | select(test("tells"))')" "SandboxCreate tells the secret's HOST_KEY" "a secret in an argument"
	md_stop
}

t_lists() {
	begin || return
	account
	md_control settings '{"creates_per_s":1000,"page":2}' >/dev/null
	local n before=0 seen='' one
	for n in 1 2 3 4 5; do create "box-$n" 'sleep 1000'; done
	for n in 1 2 3 4; do
		md_call SandboxList "{\"appId\":\"$APP\",\"beforeTimestamp\":$before,\"tags\":[{\"tagName\":\"burst\",\"tagValue\":\"run-7\"}]}"
		want 0 SandboxList
		one=$(jq -r '[.messages[0].sandboxes[]?.name] | join(",")' reply.json)
		seen="$seen $one"
		before=$(jq '.messages[0].sandboxes[-1]?.createdAt // 0' reply.json)
		[ -n "$one" ] || break
	done
	is "$seen" " box-5,box-4 box-3,box-2 box-1 " "pages, newest first"
	md_call SandboxList "{\"appId\":\"$APP\",\"tags\":[{\"tagName\":\"burst\",\"tagValue\":\"run-8\"}]}"
	is "$(jq -c '.messages[0]' reply.json)" '{}' "those of another run"
	md_call SandboxTagsSet "{\"sandboxId\":\"$ID\",\"tags\":[{\"tagName\":\"burst\",\"tagValue\":\"run-8\"}]}"
	want 0 SandboxTagsSet
	md_call SandboxTagsGet "{\"sandboxId\":\"$ID\"}"
	is "$(msg '.tags[0].tagValue')" run-8 "tags"
	refuse 3 "Invalid tag" SandboxTagsSet "{\"sandboxId\":\"$ID\",\"tags\":[{\"tagName\":\"a b\",\"tagValue\":\"x\"}]}"
	md_call SandboxTerminate "{\"sandboxId\":\"$ID\"}"
	wait_for 10 "its end" md_is "$ID" .ended TERMINATED
	md_call SandboxList "{\"appId\":\"$APP\"}"
	is "$(msg '.sandboxes[0].name')" box-4 "without those that are over"
	is "$(md_get "$ID" .told)" true "was its client told of it while it lived?"
	md_control unheard '{"ms":60000}' >/dev/null
	is "$(md_get "$ID" .told)" false "and if that client died at once?"
	md_call SandboxList "{\"appId\":\"$APP\",\"includeFinished\":true}"
	is "$(msg '.sandboxes[0].name') $(msg '.sandboxes[0].taskInfo.result.status')" "box-5 GENERIC_STATUS_TERMINATED" "with those that are over"
	md_fault unlisted
	create hidden 'sleep 1000'
	md_call SandboxList "{\"appId\":\"$APP\"}"
	is "$(msg '.sandboxes[0].name')" box-4 "one that is not listed yet"
	md_control clock '{"advance_s":31}' >/dev/null
	md_call SandboxList "{\"appId\":\"$APP\"}"
	is "$(msg '.sandboxes[0].name')" hidden "one that is listed late"
	md_fault empty_list
	md_call SandboxList "{\"appId\":\"$APP\"}"
	is "$(jq -c '.messages[0]' reply.json)" '{}' "an empty list"
	md_call AppStop "{\"appId\":\"$APP\"}"
	want 0 AppStop
	is "$(md_sandboxes)" "" "sandboxes of a stopped app"
	over
}

t_a_create_whose_reply_is_lost() {
	begin || return
	account
	local key='"headers":{"x-idempotency-key":"0f2c1f6e-7a55-4d9b-8f6b-2a1f8f1f1f1f"}' first
	md_fault lost_reply
	create lost 'sleep 1000' '' "$key"
	is "$GRPC $(jq '.messages | length' reply.json)" "null 0" "the reply"
	first=$(md_sandboxes | cut -d' ' -f1)
	[ -n "$first" ] || complain "no sandbox was made"
	create lost 'sleep 1000' '' "${key/\}/,\"x-retry-attempt\":\"1\"\}}"
	is "$GRPC $ID" "0 $first" "the same key once more"
	md_fault error_after
	create after 'sleep 1000'
	want 13 "an error after it was made"
	is "$(md_sandboxes | wc -l)" 2 "sandboxes"
	md_call SandboxGetFromName '{"appName":"burst","sandboxName":"after"}'
	want 0 "the one that was made, by its name"
	md_call SandboxWait "{\"sandboxId\":\"$first\"}" "${key/\}/,\"x-retry-attempt\":\"1\"\}}"
	is "$(jq -c '.messages[0]' reply.json)" "{}" "that key with another call"
	is "$(md_control invariants | jq -r '.broken[] | select(test("key"))')" "SandboxWait: the idempotency key of SandboxCreate is used again" "what is told of it"
	# where keys mean nothing, the name is what tells
	md_control settings '{"dedupe":false}' >/dev/null
	create lost 'sleep 1000' '' "${key/\}/,\"x-retry-attempt\":\"2\"\}}"
	want 6 "the same key where keys mean nothing"
	md_fault exhausted; create more 'sleep 1'; want 8 exhausted
	md_fault refused; create more 'sleep 1'; want 5 refused
	md_fault throttled '"when":{"op":"SandboxWait"},"times":2'
	md_call SandboxWait "{\"sandboxId\":\"$first\"}"; want 8 throttled
	md_call AppGetOrCreate '{"appName":"burst"}'; want 0 "another call in between"
	md_call SandboxWait "{\"sandboxId\":\"$first\"}"; want 8 "throttled, again"
	md_call SandboxWait "{\"sandboxId\":\"$first\"}"; want 0 "and no more"
	md_call AppStop "{\"appId\":\"$APP\"}"
	is "$(md_sandboxes)" "" "sandboxes left"
	md_stop
}

t_logs() {
	begin || return
	account
	create logs 'for i in 1 2 3; do echo "line $i"; done; while [ ! -e /cache/go ]; do sleep 0.05; done; echo late; sleep 1000'
	wait_for 20 "three lines" eval '[ "$(md_get $ID ".log | length")" = 4 ]'
	md_call SandboxGetLogs "{\"sandboxId\":\"$ID\",\"timeout\":0.2,\"lastEntryId\":\"0-0\",\"fileDescriptor\":1}"
	is "$(jq -c '[[.messages[].items[]?.data], ([.messages[].eof] | any)]' reply.json)" '[["line 1\n","line 2\n","line 3\n"],false]' "what there is, no end"
	local last
	last=$(jq -r '.messages[1].entryId' reply.json)
	md_call SandboxGetLogs "{\"sandboxId\":\"$ID\",\"timeout\":0.2,\"lastEntryId\":\"$last\",\"fileDescriptor\":1}"
	is "$(jq -r '[.messages[].items[]?.data] | join("")' reply.json)" "line 3" "after the second"
	last=$(jq -r '.messages[-1].entryId' reply.json)
	md_call SandboxGetLogs "{\"sandboxId\":\"$ID\",\"timeout\":0.1,\"fileDescriptor\":3}"
	is "$(jq -r '[.messages[].items[]?.data] | join("")' reply.json)" "waiting to be scheduled" "of the service itself"
	md_call SandboxTerminate "{\"sandboxId\":\"$ID\"}"
	md_call SandboxGetLogs "{\"sandboxId\":\"$ID\",\"timeout\":20,\"lastEntryId\":\"$last\",\"fileDescriptor\":1}"
	is "$(jq -r '.messages[-1].eof' reply.json)" true "the end of the log"
	over
}

t_bad_tunnels() {
	begin || return
	account
	md_fault reset_conns
	create resets "$SSHD"
	md_wait_state "$ID" RUNNING
	wait_for 10 "sshd" eval 'md_get $ID ".log[]" | grep -q "listening on 0"'
	logged_in "$ID" 2>/dev/null && complain "the first connection was not reset"
	logged_in "$ID" 2>/dev/null && complain "the second connection was not reset"
	logged_in "$ID" || complain "the third connection"
	md_control "sandboxes/$ID" '{"quirks":{"door":"wrong-key"}}' >/dev/null
	logged_in "$ID" 2>ssh.err && complain "a login with another host key"
	has ssh.err "Host key verification failed"
	md_control "sandboxes/$ID" '{"quirks":{"door":null,"drop_after_bytes":300000}}' >/dev/null
	[ "$(box_ssh "$ID" 'head -c 3000000 /dev/zero' 2>/dev/null | wc -c)" -lt 3000000 ] || complain "all bytes came through"
	is "$(box_ssh "$ID" 'head -c 3000000 /dev/zero' | wc -c)" 3000000 "bytes of the second try"
	md_fault late_sshd '"ms":60000'
	create late "$SSHD"
	wait_for 20 "sshd" eval 'md_get $ID ".log[]" | grep -q "listening on 0"'
	logged_in "$ID" 2>/dev/null && complain "a login before its time"
	md_control clock '{"advance_s":61}' >/dev/null
	logged_in "$ID" || complain "a login after its time"
	md_fault no_tunnel
	create none "$SSHD"
	md_wait_state "$ID" RUNNING
	md_call SandboxGetTunnels "{\"sandboxId\":\"$ID\",\"timeout\":0.5}"
	is "$(msg .result.status)" GENERIC_STATUS_TIMEOUT "no tunnel"
	md_fault tls_only
	create tls "$SSHD"
	md_call SandboxGetTunnels "{\"sandboxId\":\"$ID\",\"timeout\":20}"
	is "$(jq -c '.messages[0].tunnels[0] | [.port, .unencryptedPort]' reply.json)" "[443,null]" "no raw tunnel"
	md_fault no_gpu; create nogpu 'nvidia-smi; sleep 1000'
	wait_for 10 "no GPU" eval 'md_get $ID ".log[]" | grep -q "No devices were found"'
	md_fault other_gpu; create other 'nvidia-smi -L; sleep 1000'
	wait_for 10 "another GPU" eval 'md_get $ID ".log[]" | grep -q "NVIDIA H200"'
	md_call AppStop "{\"appId\":\"$APP\"}"
	over
}

# What burst starts on its pods: our host key, the volume, and an end of its own.
t_the_start_script() {
	begin || return
	account
	local script end=$(($(date +%s) + 300))
	script=$(cat "$ROOT"/providers/modal/end.sh "$ROOT"/jobs/agent/start.sh | base64 -w0)
	md_call SecretGetOrCreate "$(jq -nc --arg host "$(base64 -w0 host)" --arg mine "$(cat id.pub)" --arg hard "$end" '{objectCreationType:5,
		envDict:{BURST_CONTAINER:"1",BURST_RUN:"r",BURST_ATTEMPT:"a",BURST_HARD_END:$hard,BURST_VOLUME:"/cache",BURST_HOST_KEY_B64:$host,BURST_AUTHORIZED_KEY:$mine}}')"
	SECRET=$(msg .secretId)
	create script "echo $script | base64 -d >/start && exec sh /start"
	want 0 SandboxCreate
	wait_for 30 "a login" logged_in "$ID"
	is "$(box_ssh "$ID" 'sed -n "s/^BURST_VOLUME=//p" /run/burst/env; cat /proc/1/comm; echo kept >/cache/kept; echo enough >/run/burst/end' | tr '\n' ' ')" "'/cache' sh " "inside"
	wait_for 30 "it to end itself" md_is "$ID" .ended SUCCESS
	is "$(cat "$MD_STATE/volumes/$VOLUME/kept")" kept "on the volume"
	over
}

t_nothing_outlives_it() {
	begin || return
	account
	create one 'setsid sleep 4321 & trap : TERM; while :; do sleep 1; done'
	md_wait_state "$ID" RUNNING
	local net
	net=$(readlink "/proc/$(md_get "$ID" .pid)/ns/net")
	[ -n "$(cloud_processes_of "$net")" ] || complain "the sandbox has no process in a network of its own"
	[ "$net" != "$(readlink /proc/self/ns/net)" ] || complain "the sandbox is in this machine's network"
	kill -9 "$MD_PID"
	wait "$MD_PID" 2>/dev/null
	MD_PID=
	wait_for 10 "the sandbox to die with a killed server" cloud_nothing_left "$MD_STATE" "$net"
}

run_tests "$@"
