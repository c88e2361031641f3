#!/bin/bash
# cloud_modal.sh - the stand-in for Modal, by itself: what the tests of burst rely on. Its clients are the vendor's own, ssh,
# and single calls whose every byte is looked at.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"
# shellcheck source-path=SCRIPTDIR
. "$ROOT/tests/cloud/modal/lib.sh"

GPU='{"count":1,"gpuType":"L4"}'
RECIPE='"FROM debian:12-slim","RUN apt-get install -y openssh-server rsync","RUN mkdir -p /run/sshd /root/.ssh"'
SSHD='set -e; umask 077; mkdir -p /root/.ssh; echo "$HOST_KEY" | base64 -d >/etc/ssh/host; echo "$AUTH_KEY" | base64 -d >/root/.ssh/authorized_keys; exec /usr/sbin/sshd -D -e -o HostKey=/etc/ssh/host'

begin() { # starts one, or skips the test
	local why
	why=$(md_can) || { skip "$why"; return 1; }
	md_start ${TLS:+--tls}
}
over() {
	md_invariants
	md_stop
}
keys() {
	ssh-keygen -q -t ed25519 -N '' -C test -f id
	ssh-keygen -q -t ed25519 -N '' -C test -f host
	echo "pod $(cut -d' ' -f1,2 host.pub)" >known
}
want() { # want STATUS WHAT
	[ "$GRPC" = "$1" ] || complain "$2: got $GRPC, want $1: $(head -c 300 reply.json)"
}
refuse() { # refuse STATUS TEXT METHOD MESSAGE [MORE]
	md_call "$3" "$4" ${5+"$5"}
	want "$1" "$3 $4"
	jq -r .message reply.json | grep -qF -- "$2" || complain "$3 does not say \"$2\" but $(jq -r .message reply.json)"
}
msg() { jq -r ".messages[0]$1 // empty" reply.json; }

# account: app, image, volume and secret in $APP, $IMAGE, $VOLUME, $SECRET
account() {
	md_call AppGetOrCreate '{"appName":"burst","objectCreationType":1}'
	want 0 AppGetOrCreate
	APP=$(msg .appId)
	md_call VolumeGetOrCreate '{"deploymentName":"cache","objectCreationType":1,"version":2}'
	want 0 VolumeGetOrCreate
	VOLUME=$(msg .volumeId)
	md_call ImageGetOrCreate "{\"appId\":\"$APP\",\"builderVersion\":\"2025.06\",\"image\":{\"dockerfileCommands\":[$RECIPE]}}"
	want 0 ImageGetOrCreate
	IMAGE=$(msg .imageId)
	md_call ImageJoinStreaming "{\"imageId\":\"$IMAGE\",\"timeout\":30}"
	want 0 ImageJoinStreaming
	[ -e id ] || keys
	md_call SecretGetOrCreate "{\"objectCreationType\":5,\"envDict\":{\"HOST_KEY\":\"$(base64 -w0 host)\",\"AUTH_KEY\":\"$(base64 -w0 id.pub)\"}}"
	want 0 SecretGetOrCreate
	SECRET=$(msg .secretId)
}
# create NAME COMMAND [MEMBERS OF THE DEFINITION [MORE]]: id in $ID
create() {
	md_call SandboxCreate "$(jq -nc --arg app "$APP" --arg image "$IMAGE" --arg secret "$SECRET" --arg volume "$VOLUME" --arg name "$1" --arg command "$2" \
		--argjson gpu "$GPU" --argjson more "{${3:-}}" '{appId:$app, tags:[{tagName:"burst",tagValue:"run-7"}], definition:({entrypointArgs:["/bin/sh","-c",$command],
		imageId:$image, secretIds:[$secret], timeoutSecs:600, name:$name, networkAccess:{networkAccessType:1}, resources:{memoryMb:2048,milliCpu:2000,gpuConfig:$gpu},
		openPorts:{ports:[{port:22,unencrypted:true}]}, volumeMounts:[{volumeId:$volume,mountPath:"/cache",allowBackgroundCommits:true}]} + $more)}')" ${4+"$4"}
	ID=$(msg .sandboxId)
}
box_ssh() { # box_ssh ID COMMAND
	ssh -F none -i id -p "$(md_get "$1" '.tunnels[0].unencryptedPort // 1')" -o BatchMode=yes -o ConnectTimeout=5 -o StrictHostKeyChecking=yes \
		-o UserKnownHostsFile=known -o HostKeyAlias=pod -o LogLevel=ERROR root@127.0.0.1 "$2" </dev/null
}
logged_in() { box_ssh "$1" true; }
vendor() { node "$MD_HERE/vendor.js" "$1" >vendor.out 2>vendor.err || complain "$(grep -v Warning vendor.err | head -n 12 | tr '\n' ' ')"; }

t_the_vendors_client_lives_with_it() {
	begin || return
	keys
	vendor life
	over
}

t_the_vendors_client_logs_and_tags() {
	begin || return
	keys
	vendor logs_and_tags
	over
}

t_the_vendors_client_runs_commands() {
	begin || return
	keys
	vendor exec
	is "$(grep -c "^[0-9]*$" "$MD_STATE/volumes/$(cat vendor.out)/pid")" 1 "what a command wrote to the volume"
	over
}

t_the_vendors_client_in_trouble() {
	begin || return
	keys
	vendor troubles
	over
}

t_the_vendors_client_with_a_wrong_token() {
	begin || return
	vendor wrong_token
	over
}

t_who_may_ask() {
	begin || return
	local app='{"appName":"x","objectCreationType":1}'
	refuse 9 "x-modal-client-version" AppGetOrCreate "$app" '"headers":{"x-modal-client-version":null}'
	refuse 9 "x-modal-client-type" AppGetOrCreate "$app" '"headers":{"x-modal-client-type":null}'
	refuse 9 "Unknown client type" AppGetOrCreate "$app" '"headers":{"x-modal-client-type":"99"}'
	refuse 9 "Old client" AppGetOrCreate "$app" '"headers":{"x-modal-client-version":"0.1.2"}'
	refuse 9 "python-version" AppGetOrCreate "$app" '"headers":{"x-modal-client-type":"1"}'
	refuse 16 "Token missing" AppGetOrCreate "$app" '"headers":{"x-modal-token-id":null}'
	refuse 16 "Token missing" AppGetOrCreate "$app" '"headers":{"x-modal-token-secret":"as-wrong"}'
	refuse 16 "needs x-modal-auth-token" SandboxListV2 '{}'
	refuse 16 "invalid or has expired" SandboxListV2 '{}' '"headers":{"x-modal-auth-token":"a.b.c"}'
	refuse 12 "unknown method" /modal.client.ModalClient/NoSuchCall '{}' '"bytes":""'
	refuse 12 "not implemented" DictClear '{}'
	md_call AuthTokenGet
	local token
	token=$(msg .token)
	is "$(echo "$token" | cut -d. -f2 | tr '_-' '/+' | base64 -d 2>/dev/null | jq '.exp - .iat')" 1200 "seconds of a token"
	md_call SandboxListV2 '{}' "\"headers\":{\"x-modal-auth-token\":\"$token\"}"
	want 0 "with the token"
	md_control settings '{"auth_token_everywhere":true}' >/dev/null
	refuse 16 "needs x-modal-auth-token" AppGetOrCreate "$app"
	md_control settings '{"auth_token_everywhere":false}' >/dev/null
	md_control clock '{"advance_s":1201}' >/dev/null
	refuse 16 "expired" AppGetOrCreate "$app" "\"headers\":{\"x-modal-auth-token\":\"$token\"}"
	md_fault short_token
	md_call AuthTokenGet
	is "$(msg .token | cut -d. -f2 | tr '_-' '/+' | base64 -d 2>/dev/null | jq '.exp - .iat')" 3 "seconds of a short token"
	is "$(md_control invariants | jq -c .broken)" "[]" "manners so far"
	md_call ClientHello '{}' '"headers":{"te":null,"x-idempotency-key":null}'
	is "$(md_control invariants | jq -r '.broken | join(",")')" "ClientHello: te: trailers is missing,ClientHello: x-idempotency-key is missing" "bad manners"
	md_stop
}

t_field_numbers_are_the_vendors() {
	begin || return
	# app_name 1 "x" is right; a text as field 9 and a number as field 2 are not
	md_call AppGetOrCreate '{}' '"bytes":"CgF4EAEYAUoBeQ=="'
	want 0 "a field that nobody knows"
	is "$(md_control invariants | jq -r '.broken | join(",")')" \
		"AppGetOrCreate: the vendor knows no such field: field 2, wire type 0,AppGetOrCreate: the vendor knows no such field: field 9, wire type 2" "what is told of it"
	md_call AppGetOrCreate '{}' '"bytes":"CgF"'
	want 13 "half a message"
	md_stop
}

t_wrong_definitions_are_found() {
	local why
	why=$(md_can) || { skip "$why"; return; }
	cat >wrong.proto <<-E
		syntax = "proto2";
		enum GenericStatus { GENERIC_STATUS_SUCCESS = 1; GENERIC_STATUS_TIMEOUT = 5; GENERIC_STATUS_NONE = 9; }
		message TunnelData { optional string host = 1; optional string port = 2; optional uint32 container_port = 6; repeated uint32 unencrypted_port = 4; }
		message PortSpecs { repeated TunnelData ports = 1; }
		message AppSetTagsRequest { optional string app_id = 1; repeated Entry tags = 2; }
		message Entry { optional string key = 1; optional string value = 2; }
		message Nothing { optional string a = 1; }
	E
	node "$MD_HERE/proto_check.js" wrong.proto >found && complain "a wrong file is taken for right"
	is "$(sed 's/:.*//' found | tr '\n' ' ')" "TunnelData.port TunnelData.container_port TunnelData.unencrypted_port PortSpecs.ports Nothing GENERIC_STATUS_TIMEOUT GENERIC_STATUS_NONE 3 messages, 7 fields, 3 values compared, 7 differ " "what is found"
}

t_our_definitions_are_the_vendors() {
	local why own=$ROOT/providers/modal/modal.proto
	why=$(md_can) || { skip "$why"; return; }
	[ -e "$own" ] || { skip "no ${own#"$ROOT"/} yet"; return; }
	node "$MD_HERE/proto_check.js" "$own" >found || complain "$(head -n 3 found | tr '\n' '|')"
	[ "$(sed -n '$s/.* messages, \([0-9]*\) fields.*/\1/p' found)" -gt 100 ] || complain "so few: $(tail -n 1 found)"
}

t_curl_is_a_client() {
	begin || return
	head -c 5 /dev/zero >empty
	ask() { # ask METHOD FILE: what comes back without the head of its first frame
		curl -qsS --http2-prior-knowledge -H 'content-type: application/grpc' -H 'te: trailers' -A grpc-node-js/1.14.7 -H 'accept-encoding: identity' -H 'accept:' -H 'content-length:' -H "x-modal-token-id: $MODAL_TOKEN_ID" -H "x-modal-token-secret: $MODAL_TOKEN_SECRET" \
			-H 'x-modal-client-type: 8' -H 'x-modal-client-version: 1.0.0' -H "x-idempotency-key: $RANDOM$RANDOM" --data-binary @"$2" -D head -o body "$MODAL_SERVER_URL/modal.client.ModalClient/$1"
	}
	ask AuthTokenGet empty
	is "$(head -c 5 body | od -An -tu1 | tr -s ' ') $(wc -c <body) $(grep -ac '^grpc-status: 0' head)" " 0 0 0 0 $(($(wc -c <body) - 5)) $(wc -c <body) 1" "a token"
	ask SandboxWait empty
	is "$(wc -c <body) $(grep -a '^grpc-' head | tr -d '\r' | tr '\n' ' ')" "0 grpc-status: 5 grpc-message: Sandbox  not found. " "an error without a body"
	printf '\1\0\0\0\0' >packed
	ask AuthTokenGet packed
	is "$(grep -ao '^grpc-status: [0-9]*' head)" "grpc-status: 13" "a compressed request"
	printf '\0\0\0\0\7x' >short
	ask AuthTokenGet short
	is "$(grep -ao '^grpc-status: [0-9]*' head)" "grpc-status: 13" "a request that is cut"
	over
}

t_with_tls() {
	TLS=1 begin || return
	is "${MODAL_SERVER_URL%:*}" https://localhost "the URL"
	head -c 5 /dev/zero >empty
	is "$(curl -qsS --cacert "$MD_STATE/cert.pem" -w '%{http_version}' -H 'content-type: application/grpc' -H 'te: trailers' --data-binary @empty -D head "$MODAL_SERVER_URL/modal.client.ModalClient/AuthTokenGet") $(grep -ac '^grpc-status: 9' head)" "2 1" "curl"
	curl -qsS -o body --data-binary @empty "$MODAL_SERVER_URL/modal.client.ModalClient/AuthTokenGet" 2>curl.err && complain "curl trusts anybody"
	md_stop
	TLS=1 begin || return
	keys
	GRPC_DEFAULT_SSL_ROOTS_FILE_PATH=$MD_STATE/cert.pem vendor life
	md_call AppGetOrCreate '{"appName":"a","objectCreationType":1}'
	want 0 "a call"
	over
}

t_the_wire() {
	begin || return
	account
	md_call AppGetOrCreate '{"appName":"none"}'
	want 5 "a look-up of nothing"
	is "$(jq -r '"\(.trailers_only) \(.http) \(.pieces | length)"' reply.json)" "true 200 0" "an error without a body"
	md_fault late_error
	md_call ClientHello
	is "$GRPC $(jq -r .trailers_only reply.json)" "14 false" "an error in trailers"
	md_fault unavailable
	md_call ClientHello
	is "$GRPC $(jq -r '.message, .headers["grpc-message"]' reply.json | tr '\n' '|')" \
		"14 connection to the backend was lost: 50% of it|connection to the backend was lost: 50%25 of it|" "a message that needs escapes"
	md_fault throttled
	md_call ClientHello
	is "$GRPC $(jq -r .details reply.json | base64 -d | grep -ao 'type.modal.com/modal.client.RPCRetryPolicy')" \
		"8 type.modal.com/modal.client.RPCRetryPolicy" "a retry policy"
	md_fault split_frames
	md_call VolumeGetOrCreate '{"deploymentName":"cache"}'
	is "$GRPC $(msg .volumeId)" "0 $VOLUME" "a split frame"
	[ "$(jq '.pieces | length' reply.json)" -gt 3 ] || complain "not split: $(jq -c .pieces reply.json)"
	md_fault two_in_one
	md_call ImageJoinStreaming "{\"imageId\":\"$IMAGE\",\"timeout\":5,\"includeLogsForFinished\":true}"
	[ "$(jq '(.messages | length) > (.pieces | length)' reply.json)" = true ] || complain "no two in one: $(jq -c .pieces reply.json)"
	md_fault rst_stream '"messages":1'
	md_call ImageJoinStreaming "{\"imageId\":\"$IMAGE\",\"timeout\":5,\"includeLogsForFinished\":true}"
	is "$GRPC $(jq -r '"\(.rst) \(.messages | length)"' reply.json)" "null 2 1" "a stream reset after one message"
	md_fault cut_stream '"bytes":3'
	md_call ClientHello
	is "$GRPC $(jq -r '"\(.rst) \(.broken)"' reply.json)" "null 2 the body ends within a frame's head" "a stream reset within a frame"
	md_fault no_status
	md_call ClientHello
	is "$GRPC" null "no status at all"
	md_fault compressed
	md_call ClientHello
	is "$(jq -r .broken reply.json)" "compression flag 1" "a compressed message"
	md_fault goaway
	md_call ClientHello
	want 0 "the last call of a connection"
	md_fault http '"status":503'
	md_call ClientHello
	is "$GRPC $(jq .http reply.json)" "null 503" "HTTP 503"
	md_fault strange_fields '"times":1'
	md_call VolumeGetOrCreate '{"deploymentName":"cache"}'
	is "$GRPC $(msg .metadata.name) $(jq .strange reply.json)" "0 cache 4" "strange fields, two in each of two messages"
	over
}

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

t_images() {
	begin || return
	account
	build() { # build COMMANDS-AS-JSON [MORE]
		md_call ImageGetOrCreate "{\"appId\":\"$APP\",\"builderVersion\":\"2025.06\",\"image\":{\"dockerfileCommands\":$1}}"
		local id
		id=$(msg .imageId)
		BUILT=$(msg .result.status)
		[ -n "$BUILT" ] || { md_call ImageJoinStreaming "{\"imageId\":\"$id\",\"timeout\":10}"; BUILT=$(jq -r '[.messages[].result.status // empty][0]' reply.json); }
		WHAT=$(jq -r '[.messages[].result.exception // empty][0]' reply.json)
		ID=$id
	}
	build "[$RECIPE]"
	is "$ID $BUILT" "$IMAGE GENERIC_STATUS_SUCCESS" "the same recipe"
	is "$(jq '.messages | length' reply.json)" 1 "told at once"
	build '["FROM debian:12","RUN if then"]'
	is "$BUILT" GENERIC_STATUS_FAILURE "a RUN that no shell takes: $WHAT"
	build '["FROM debian:12","INSTALL x"]'
	is "$BUILT $WHAT" "GENERIC_STATUS_FAILURE dockerfile parse error: unknown instruction: INSTALL" "an unknown instruction"
	build '["RUN true"]'
	is "$WHAT" "dockerfile parse error: no FROM" "no FROM"
	build '["FROM debian:12","COPY a /a"]'
	is "$WHAT" "COPY failed: a: not found" "COPY of nothing"
	local one two
	with_file() { # BASE64
		md_call ImageGetOrCreate "{\"appId\":\"$APP\",\"builderVersion\":\"2025.06\",\"image\":{\"dockerfileCommands\":[\"FROM debian:12\",\"COPY /.a /opt/a\"],\"contextFiles\":[{\"filename\":\"/.a\",\"data\":\"$1\"}]}}"
		msg .imageId
	}
	one=$(with_file YQ==) two=$(with_file Yg==)
	is "$([ "$one" != "$two" ] && with_file YQ==)" "$one" "an image is what is copied into it, too"
	md_control settings '{"images":{"private/.*":"unauthorized: authentication required"}}' >/dev/null
	build '["FROM private/x:1"]'
	is "$WHAT" "unauthorized: authentication required" "a registry that refuses"
	md_fault image_result '"result":"TERMINATED"'
	build '["FROM debian:12","RUN true"]'
	is "$BUILT" GENERIC_STATUS_TERMINATED "a build that was interrupted"
	build '["FROM debian:12","RUN true"]'
	is "$BUILT" GENERIC_STATUS_SUCCESS "the same build, again"
	md_fault slow_image '"ms":3000'
	md_call ImageGetOrCreate "{\"appId\":\"$APP\",\"builderVersion\":\"2025.06\",\"image\":{\"dockerfileCommands\":[\"FROM debian:12\",\"RUN : slow\"]}}"
	ID=$(msg .imageId)
	md_call ImageJoinStreaming "{\"imageId\":\"$ID\",\"timeout\":0.7}"
	is "$(jq '[.messages[].result | select(. != null)] | length' reply.json)" 0 "a stream that ends before the build"
	local last steps='[.messages[].taskLogs[]?.data | select(. != null and test("^Step"))] | length' told
	told=$(jq -r "$steps" reply.json)
	last=$(jq -r '[.messages[].entryId | select(. != null and . != "")][-1] // ""' reply.json)
	md_call ImageJoinStreaming "{\"imageId\":\"$ID\",\"timeout\":10,\"lastEntryId\":\"$last\"}"
	is "$(jq -r '[.messages[].result.status // empty] | join(",")' reply.json)" GENERIC_STATUS_SUCCESS "and once more"
	is $((told + $(jq -r "$steps" reply.json))) 2 "lines told, each once"
	is "$(jq -r '.messages[-1].taskLogs[0].data' reply.json)" "cleaning up" "a line after the result"
	refuse 5 "not found" ImageFromId '{"imageId":"im-0000000000000000000000"}'
	# what no layer installs is not there
	md_call ImageGetOrCreate "{\"appId\":\"$APP\",\"builderVersion\":\"2025.06\",\"image\":{\"dockerfileCommands\":[\"FROM debian:12\",\"RUN true\"]}}"
	IMAGE=$(msg .imageId)
	create bare 'ls /usr/sbin/sshd /usr/bin/rsync; echo done; sleep 1000'
	wait_for 20 "a look around" eval 'md_get $ID ".log[]" | grep -qx done'
	is "$(md_get "$ID" '.log[]' | grep -c 'No such file')" 2 "what a bare image lacks"
	md_call AppStop "{\"appId\":\"$APP\"}"
	over
}

t_volumes_show_what_is_synced() {
	begin || return
	account
	outside() { # outside PATH: its bytes, through the API
		md_call VolumeGetFile2 "{\"volumeId\":\"$VOLUME\",\"path\":\"$1\"}"
		[ "$GRPC" = 0 ] || { echo "status $GRPC"; return; }
		local url
		for url in $(jq -r '.messages[0].getUrls[]' reply.json); do curl -qsS "$url"; done
	}
	create writer 'echo one >/cache/file; mkdir -p /cache/runs/7; echo there >/cache/runs/7/a; echo written; sleep 1000'
	wait_for 20 "the writer" eval 'md_get $ID ".log[]" | grep -qx written'
	is "$(outside file)" "status 5" "before sync"
	sync_in() { # sync_in PATH...
		nsenter -t "$(md_get "$ID" .pid)" -m -u -i -n -p env -i PATH=/usr/bin:/bin sync "$@"
	}
	sync_in /nonexistent 2>/dev/null && complain "sync of nothing is content"
	sync_in /tmp || complain "sync elsewhere"
	is "$(outside file)" "status 5" "after a sync elsewhere"
	sync_in /cache || complain "sync"
	is "$(outside file)" one "after sync"
	nsenter -t "$(md_get "$ID" .pid)" -m sh -c 'echo two >/cache/file; rm -r /cache/runs; echo new >/cache/late'
	is "$(outside file)" one "written, not synced"
	md_control "sandboxes/$ID" '{"quirks":{"fail_sync":true}}' >/dev/null
	sync_in /cache 2>/dev/null && complain "a sync that fails is content"
	md_control "sandboxes/$ID" '{"quirks":{"fail_sync":false}}' >/dev/null
	# another one sees what was committed when it began, and what it writes itself
	local first=$ID
	create reader 'cat /cache/file /cache/runs/7/a; echo mine >/cache/mine; echo done; sleep 1000'
	wait_for 20 "the reader" eval 'md_get $ID ".log[]" | grep -qx done'
	is "$(md_get "$ID" '.log[1:][]' | tr '\n' ' ')" "one there done " "what a second sandbox finds"
	md_call SandboxTerminate "{\"sandboxId\":\"$first\"}"
	wait_for 10 "its end" md_is "$first" .ended TERMINATED
	is "$(outside file) $(outside late) $(outside runs/7/a)" "two new status 5" "after its end"
	md_fault lose_unsynced
	create loser 'echo lost >/cache/lost; exit 0'
	wait_for 10 "the loser's end" md_is "$ID" .ended SUCCESS
	is "$(outside lost)" "status 5" "what a crash loses"
	md_call AppStop "{\"appId\":\"$APP\"}"
	is "$(outside mine) $(outside file)" "mine two" "after the end of the last"
	md_call VolumeListFiles2 "{\"volumeId\":\"$VOLUME\",\"path\":\"/\",\"recursive\":true}"
	is "$(jq -r '[.messages[].entries[].path] | sort | join(",")' reply.json)" "file,late,mine" "a list"
	# a volume of version 1 knows only the end
	md_call VolumeGetOrCreate '{"deploymentName":"old","objectCreationType":1,"version":1}'
	VOLUME=$(msg .volumeId)
	create old 'echo old >/cache/file; sync /cache; echo done; sleep 1000'
	wait_for 10 "a sync" eval 'md_get $ID ".log[]" | grep -qx done'
	is "$(outside file)" "status 5" "version 1, after sync"
	md_call SandboxTerminate "{\"sandboxId\":\"$ID\"}"
	wait_for 10 "its end" md_is "$ID" .ended TERMINATED
	is "$(outside file)" old "version 1, after the end"
	refuse 9 "not mounted" VolumeCommit "{\"volumeId\":\"$VOLUME\"}"
	over
}

t_files_without_a_sandbox() {
	begin || return
	account
	head -c 9000000 /dev/urandom >big
	head -c 20000 /dev/zero >>big
	head -c 8388608 big >block0
	tail -c +8388609 big | head -c 611392 >block1 # without the zeros at its end
	local h0 h1 e0 e1 url0 url1 files r0 r1
	h0=$(openssl dgst -sha256 -binary block0 | base64)
	h1=$(openssl dgst -sha256 -binary block1 | base64)
	put() { # put [RESPONSE0 RESPONSE1]
		files="[{\"path\":\"in/big\",\"size\":9020000,\"mode\":416,\"blocks\":[{\"contentsSha256\":\"$h0\"${1:+,\"putResponse\":\"$1\"}},{\"contentsSha256\":\"$h1\"${2:+,\"putResponse\":\"$2\"}}]}, {\"path\":\"in/empty\",\"size\":0}]"
		md_call VolumePutFiles2 "{\"volumeId\":\"$VOLUME\",\"files\":$files}"
		want 0 VolumePutFiles2
	}
	md_fault dead_urls
	put
	is "$(curl -qsS -o /dev/null -w '%{http_code}' -T block0 "$(msg '.missingBlocks[0].putUrl')")" 403 "an expired URL"
	put
	is "$(jq -c '[.messages[0].missingBlocks[] | [.fileIndex // "0", .blockIndex // "0" | tonumber]]' reply.json)" '[[0,0],[0,1]]' "missing blocks"
	url0=$(msg '.missingBlocks[0].putUrl') url1=$(msg '.missingBlocks[1].putUrl')
	is "$(curl -qsS -o /dev/null -w '%{http_code}' -T block1 "$url0")" 400 "another block's bytes"
	is "$(curl -qsS -o r0 -w '%{http_code}' -T block0 "$url0") $(curl -qsS -o r1 -w '%{http_code}' -T block1 "$url1")" "200 200" "put"
	put
	is "$(jq '.messages[0].missingBlocks | length' reply.json)" 2 "without the answers they are missing still"
	put "$(base64 -w0 r0)" "$(base64 -w0 r1)"
	is "$(jq '.messages[0].missingBlocks | length' reply.json)" 0 "with the answers"
	is "$(stat -c '%s %a' "$MD_STATE/volumes/$VOLUME/in/big") $(stat -c %s "$MD_STATE/volumes/$VOLUME/in/empty")" "9020000 640 0" "files"
	cmp "$MD_STATE/volumes/$VOLUME/in/big" big || complain "the file differs"
	md_call VolumeGetFile2 "{\"volumeId\":\"$VOLUME\",\"path\":\"/in/big\"}"
	is "$(jq -c '.messages[0] | [(.getUrls | length), .size]' reply.json)" '[2,9020000]' "get"
	jq -r '.messages[0].getUrls[]' reply.json | while read -r url; do curl -qsS "$url"; done | cmp - big || complain "what comes back differs"
	md_call VolumeGetFile2 "{\"volumeId\":\"$VOLUME\",\"path\":\"in/big\",\"start\":8388600,\"len\":100}"
	jq -r '.messages[0].getUrls[]' reply.json | while read -r url; do curl -qsS "$url"; done >part
	cmp part <(tail -c +8388601 big | head -c 100) || complain "a part differs"
	md_control clock '{"advance_s":301}' >/dev/null
	is "$(curl -qsS -o /dev/null -w '%{http_code}' "$(jq -r '.messages[0].getUrls[0]' reply.json)")" 403 "a URL after its time"
	md_call VolumePutFiles2 "{\"volumeId\":\"$VOLUME\",\"files\":[{\"path\":\"in/empty\",\"size\":0}],\"disallowOverwriteExistingFiles\":true}"
	want 6 "a file that is there"
	md_call VolumePutFiles2 "{\"volumeId\":\"$VOLUME\",\"files\":[{\"path\":\"../out\",\"size\":0}]}"
	want 3 "a path that leads out"
	md_call VolumeRemoveFile2 "{\"volumeId\":\"$VOLUME\",\"path\":\"in\"}"
	want 9 "remove a folder"
	md_call VolumeRemoveFile2 "{\"volumeId\":\"$VOLUME\",\"path\":\"in\",\"recursive\":true}"
	want 0 "remove a folder and what is in it"
	refuse 5 "No such file" VolumeListFiles2 "{\"volumeId\":\"$VOLUME\",\"path\":\"in\"}"
	curl -qsS -H 'x-modal-token-id: ak' "$url0" >/dev/null
	is "$(md_control invariants | jq -r '.broken[0]')" "a block's URL is given the header x-modal-token-id" "a token to a block's URL"
	md_stop
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

t_money() {
	begin || return
	account
	create dear 'sleep 100000' '"timeoutSecs":80000,"resources":{"memoryMb":4096,"milliCpu":2000,"gpuConfig":{"count":2,"gpuType":"L4"}}'
	md_wait_state "$ID" RUNNING
	md_control clock '{"advance_s":36000}' >/dev/null
	md_call SandboxTerminate "{\"sandboxId\":\"$ID\"}"
	wait_for 10 "its end" md_is "$ID" .ended TERMINATED
	md_control clock '{"advance_s":36000}' >/dev/null
	md_call SandboxGetResourceUsage "{\"sandboxId\":\"$ID\"}"
	is "$(jq -r '.messages[0] | [.cpuCoreNanosecs, .memGibNanosecs, .gpuNanosecs] | map((tonumber / 1e9 / 100 | floor) * 100) | join(" ")' reply.json) $(msg .gpuType)" \
		"72000 144000 72000 L4" "seconds of cores, GiB and GPUs"
	md_call AppSetTags "{\"appId\":\"$APP\",\"tags\":{\"run\":\"7\"}}"
	local since
	since=$(date -u -d '1 day ago' +%Y-%m-%dT%H:%M:%SZ)
	md_call WorkspaceBillingReport "{\"startTimestamp\":\"$since\",\"resolution\":\"h\",\"appIds\":[\"$APP\"],\"tagNames\":[\"*\"]}"
	want 0 WorkspaceBillingReport
	is "$(jq '[.messages[].cost | tonumber] | add * 10 | floor' reply.json) $(jq -r '.messages[0].tags.run' reply.json)" "$(jq -n '(36000 * (2 * 0.000222 + 3 * (2 * 0.0000131 + 4 * 0.00000222))) * 10 | floor') 7" "tenths of dollars of ten hours"
	[ "$(jq '.messages | length' reply.json)" -ge 10 ] || complain "intervals: $(jq '.messages | length' reply.json)"
	[ "$(md_get "$ID" '.usd * 100 | round')" = "$(jq '[.messages[].cost | tonumber] | add * 100 | round' reply.json)" ] || complain "the control says $(md_get "$ID" .usd)"
	refuse 3 resolution WorkspaceBillingReport "{\"startTimestamp\":\"$since\",\"resolution\":\"m\"}"
	md_control settings '{"billing":{"allowed":false,"usage":false}}' >/dev/null
	refuse 7 "not available" WorkspaceBillingReport "{\"startTimestamp\":\"$since\",\"resolution\":\"h\"}"
	md_call SandboxGetResourceUsage "{\"sandboxId\":\"$ID\"}"
	want 12 "usage where there is none"
	md_call WorkspaceBillingRates
	is "$(jq -r '.messages[0].rates["GPU L4"]' reply.json)" 0.799200 "dollars an hour of an L4"
	# nothing is billed before it runs
	md_fault never_scheduled
	create never 'sleep 1'
	md_control clock '{"advance_s":500}' >/dev/null
	is "$(md_get "$ID" .usd)" 0 "dollars of one that never ran"
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

# Both vendors at once, as for a run that tries one after the other.
t_beside_the_other_vendor() {
	begin || return
	# shellcheck source-path=SCRIPTDIR
	. "$ROOT/tests/cloud/runpod/lib.sh"
	rp_start 2>start.err || return
	account
	create one 'sleep 1000'
	rp_api POST /v2/pods '{"name":"two","image":"host/x","gpu":{"id":"NVIDIA L4","count":1},"ports":[],"args":"sleep 1000"}'
	md_wait_state "$ID" RUNNING
	rp_wait_status "$(jq -r .id reply.json)" RUNNING
	md_call AppStop "{\"appId\":\"$APP\"}"
	rp_stop
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
