#!/bin/bash
# cloud_modal.sh - the stand-in for Modal, by itself: what the tests of burst rely on. Who may ask, and how: its clients are the
# vendor's own, ssh, and single calls whose every byte is looked at.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"
# shellcheck source-path=SCRIPTDIR
. "$ROOT/tests/cloud/modal/lib.sh"
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/cloud_modal_lib.sh"

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

run_tests "$@"
