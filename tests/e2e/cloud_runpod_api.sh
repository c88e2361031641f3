#!/bin/bash
# cloud_runpod_api.sh - what the stand-in for RunPod answers: errors, limits, volumes, logs, bills, offers.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"
# shellcheck source-path=SCRIPTDIR
. "$ROOT/tests/cloud/runpod/lib.sh"
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/cloud_runpod_lib.sh"

detail() { # the reply says so
	jq -r '.detail, .errors[]?' reply.json | grep -qF -- "$1" || complain "the reply does not say \"$1\": $(head -c 300 reply.json)"
}
keep_reply() { mkdir -p replies && cp reply.json "replies/$1.json"; }

t_validation() {
	begin || return
	local ok='"name":"v","image":"runpod/base:1"' gpu="\"gpu\":{\"id\":\"$GPU\",\"count\":1}" full
	full='There are no longer any instances available with the requested specifications. Please refresh and try again.'
	refuse() { # refuse STATUS BODY TEXT
		rp_api POST /v2/pods "$2"
		want "$1" "$2"
		detail "$3"
		is "$(grep -ci '^content-type: application/problem+json' reply.head)" 1 "problem+json for $2"
		grep -qi '^ratelimit: "minute";r=' reply.head || complain "no RateLimit header"
		grep -qi '^ratelimit-policy: "minute";q=60;w=60' reply.head || complain "no RateLimit-Policy header"
	}
	refuse 422 "{$ok,$gpu,\"interruptible\":true}" "\$: additional properties 'interruptible' not allowed"
	refuse 422 "{\"image\":\"runpod/base:1\",$gpu}" "\$: missing property 'name'"
	refuse 422 "{\"name\":\"v\",$gpu}" "\$: missing property 'image'"
	refuse 422 "{$ok,$gpu,\"mounts\":{\"network\":[{\"volumeId\":\"x\"}]}}" "missing property 'path'"
	refuse 422 "{$ok,$gpu,\"env\":{\"A\":1}}" "got number, want string"
	refuse 422 "{$ok,$gpu,\"cloud\":\"ALL\"}" "value must be one of 'SECURE', 'COMMUNITY'"
	refuse 422 "{$ok,\"gpu\":{\"id\":\"$GPU\",\"count\":1,\"minRamPerGpu\":8}}" "additional properties 'minRamPerGpu' not allowed"
	refuse 422 "{\"name\":\"v\",\"image\":\"no/such:image\",$gpu}" "not found on its registry"
	refuse 400 "{$ok}" "exactly one of gpu or cpu"
	refuse 400 "{$ok,$gpu,\"cpu\":{\"id\":\"cpu5c\",\"vcpuCount\":2}}" "exactly one of gpu or cpu"
	refuse 400 "{$ok,$gpu,\"mounts\":{\"network\":[],\"persistent\":{\"size\":10,\"path\":\"/w\"}}}" "mutually exclusive"
	refuse 400 "{$ok,\"gpu\":{\"id\":\"$GPU\"}}" "$full"
	refuse 400 "{$ok,\"gpu\":{\"id\":\"RTX 4090\",\"count\":1}}" "$full"
	refuse 400 "{$ok,$gpu,\"dataCenterIds\":[\"AP-JP-1\"]}" "$full"
	refuse 400 "{$ok,\"gpu\":{\"id\":\"$GPU\",\"count\":1,\"minCudaVersion\":\"99.0\"}}" "$full"
	refuse 400 "{$ok,\"gpu\":{\"id\":\"$GPU\",\"count\":1,\"minCudaVersion\":\"12.4\",\"allowedCudaVersions\":[\"12.8\"]}}" "mutually exclusive"
	refuse 400 "{$ok,\"cpu\":{\"id\":\"cpu5c\",\"vcpuCount\":6}}" "power of two"
	rp_api POST /v2/network-volumes '{"name":"v","size":10,"dataCenter":"EU-CZ-1"}'
	want 201 "create a volume"
	local v
	v=$(jq -r .id reply.json)
	refuse 400 "{$ok,$gpu,\"cloud\":\"COMMUNITY\",\"mounts\":{\"network\":[{\"volumeId\":\"$v\",\"path\":\"/w\"}]}}" "$full"
	refuse 400 "{$ok,$gpu,\"dataCenterIds\":[\"EU-RO-1\"],\"mounts\":{\"network\":[{\"volumeId\":\"$v\",\"path\":\"/w\"}]}}" "$full"
	is "$(rp_pods)" "" "pods after so many refusals"
	RP_KEY='' rp_api GET /v2/pods
	want 401 "no key"
	RP_KEY=rpa_wrong rp_api GET /v2/pods
	want 401 "a wrong key"
	RP_KEY=$(cat "$RP_STATE/readonly.key") rp_api POST /v2/pods "{$ok,$gpu}"
	want 403 "a read-only key"
	RP_KEY=$(cat "$RP_STATE/readonly.key") rp_api GET /v2/pods
	want 200 "a read-only key's list"
	rp_api PUT /v2/pods '{}'
	want 405 "PUT"
	is "$(grep -i '^allow:' reply.head | tr -d '\r')" "Allow: GET, POST" "Allow"
	rp_api GET /v1/pods
	want 410 "the old API"
	rp_api GET '/v2/catalog/gpus?include=AVAILABILITY'
	want 400 "include without product"
	rp_api GET '/v2/catalog/gpus?product=POD'
	want 400 "product without include"
	rp_stop
}

t_rate_limit() {
	begin || return
	rp_control settings '{"quotas":{"minute":5}}' >/dev/null
	local n
	for n in 1 2 3 4 5 6; do rp_api GET /v2/pods; done
	want 429 "the sixth in a minute of five"
	detail "rate limit exceeded for the minute window"
	grep -qi '^retry-after: [0-9]' reply.head || complain "no Retry-After"
	grep -qi '^ratelimit: "minute";r=0;' reply.head || complain "the window does not show as empty"
	rp_control clock '{"advance_s":60}' >/dev/null
	rp_api GET /v2/pods
	want 200 "a minute later"
	rp_stop
}

t_faults() {
	begin || return
	rp_fault F5 '"times":2'
	create f5; want 400 F5
	create f5; want 400 F5
	create f5; want 201 "F5, the third"
	rp_fault F1
	create f1; want 500 F1
	is "$(rp_pods | grep -c ' f1$')" 1 "F1: pods made by a 500"
	rp_fault F2
	create f2; want 000 F2
	is "$(rp_pods | grep -c ' f2$')" 1 "F2: pods made by a lost reply"
	rp_fault F3 '"ms":60000'
	create f3; want 201 F3
	rp_api GET "/v2/pods/$ID"; want 404 "F3: GET"
	rp_control clock '{"advance_s":61}' >/dev/null
	rp_api GET "/v2/pods/$ID"; want 200 "F3: GET later"
	rp_fault F4
	create f4
	rp_api GET /v2/pods
	is "$(jq '[.pods[] | select(.name == "f4")] | length' reply.json)" 0 "F4: listed"
	rp_fault F6
	rp_api GET /v2/pods; want 429 F6
	grep -qi '^retry-after: 2' reply.head && grep -qi '^ratelimit: "minute";r=0;t=12' reply.head || complain "F6: headers"
	rp_fault F7; create f7; want 402 F7
	rp_fault F8 '"when":{"gpu":".*4090"}'; create f8; want 403 F8
	rp_fault F9; create f9
	rp_fault F22 '"cost":42.5'; create f22
	is "$(jq .cost reply.json)" 42.5 "F22: cost"
	rp_fault F27; create f27
	rp_api DELETE "/v2/pods/$ID"; want 409 F27
	rp_fault F28; create f28
	is "$(rp_pods | grep -c ' f28$')" 2 "F28: twins"
	rp_control clock '{"advance_s":60}' >/dev/null
	rp_fault F16; rp_api DELETE "/v2/pods/$ID"; want 500 F16
	rp_api DELETE "/v2/pods/$ID"; want 204 "F16, again"
	rp_fault F16 '"way":"lingers","ms":20000'; create f16; rp_wait_status "$ID" RUNNING
	rp_api DELETE "/v2/pods/$ID"; want 204 "F16 lingers"
	rp_api GET "/v2/pods/$ID"; is "$(jq -r .status reply.json)" RUNNING "F16: after its end"
	rp_control clock '{"advance_s":21}' >/dev/null
	rp_api GET "/v2/pods/$ID"; want 404 "F16: 21 s after its end"
	rp_fault F16 '"way":"appears","ms":5000'; create f16b
	rp_api DELETE "/v2/pods/$ID"; want 404 "F16 appears"
	rp_fault F17; rp_api GET /v2/pods; local n; n=$(jq '.pods | length' reply.json)
	rp_api GET /v2/pods; is "$(($(jq '.pods | length' reply.json) - n))" 1 "F17: one missing, once"
	rp_fault F18; rp_api GET /v2/pods; is "$(jq -r '.pods[0].status' reply.json)" RESTARTING F18
	rp_fault F29; rp_api GET /v2/pods; is "$(jq -r '.nextCursor, .pods[0].zebra.stripes[0]' reply.json | tr '\n' ' ')" "b3BhcXVl 1 " F29
	rp_control clock '{"advance_s":60}' >/dev/null
	rp_fault F21; rp_api GET /v2/pods; is "$(wc -c <reply.json)" 40 "F21: bytes of a cut reply"
	rp_fault F21 '"way":"html"'; rp_api GET /v2/pods; want 502 "F21 html"
	rp_fault F21 '"way":"big"'; rp_api GET /v2/pods; [ "$(wc -c <reply.json)" -gt 8000000 ] || complain "F21 big"
	is "$(rp_pods | grep ' f9$' | cut -d' ' -f2)" PROVISIONING F9
	rp_stop
}

t_volumes_and_s3() {
	begin || return
	rp_api POST /v2/network-volumes '{"name":"cache","size":20,"dataCenter":"EU-RO-1"}'
	want 201 "create a volume"
	local v
	v=$(jq -r .id reply.json)
	printf 'hello from here' >file
	curl --version | grep -q 'libcurl/7\.[0-7]' && { skip "curl is too old to sign"; rp_stop; return; }
	local sha
	sha=$(sha256sum file | cut -d' ' -f1)
	rp_s3 PUT "/$v/in/a%20b.txt" --data-binary @file -H "Content-Type: text/plain" -H "x-amz-content-sha256: $sha"
	is "$HTTP" 200 "put: $(cat reply.s3)"
	local env
	IMAGE=host/x create vol "\"mounts\":{\"network\":[{\"volumeId\":\"$v\",\"path\":\"/workspace\"}]},\"args\":\"bash -c 'cat /workspace/in/*; echo; echo back >/workspace/out.txt; echo \$RUNPOD_VOLUME_ID; sleep 1000'\""
	want 201 create
	is "$(jq -r .dataCenterId reply.json)" EU-RO-1 "where the volume is"
	wait_for 20 "the pod to see the object" eval 'rp_log '"$ID"' | grep -qF "container hello from here"'
	wait_for 5 "the volume's id" eval 'rp_log '"$ID"' | grep -qF "container '"$v"'"'
	rp_api DELETE "/v2/network-volumes/$v"
	want 400 "delete a volume in use"
	rp_api DELETE "/v2/pods/$ID"
	local empty
	empty=$(printf '' | sha256sum | cut -d' ' -f1)
	rp_s3 GET "/$v/out.txt" -H "x-amz-content-sha256: $empty"
	is "$HTTP $(cat reply.s3)" "200 back" "get what the pod wrote"
	rp_s3 GET "/$v/in/a%20b.txt" -H "x-amz-content-sha256: $empty" -H "Range: bytes=6-9"
	is "$HTTP $(cat reply.s3)" "206 from" "a range"
	rp_s3 HEAD "/$v/in/a%20b.txt" -H "x-amz-content-sha256: $empty" -I
	is "$HTTP $(grep -i '^content-length' reply.head | tr -d '\r')" "200 Content-Length: 15" head
	rp_s3 GET "/$v?list-type=2&prefix=" -H "x-amz-content-sha256: $empty"
	is "$HTTP $(grep -o '<Key>[^<]*' reply.s3 | tr '\n' ' ')" "200 <Key>in/a b.txt <Key>out.txt " list
	rp_s3 GET "/$v?prefix=&list-type=2" -H "x-amz-content-sha256: $empty"
	is "$HTTP $(grep -o 'SignatureDoesNotMatch' reply.s3 | head -n 1)" "403 SignatureDoesNotMatch" "an unsorted query as it was signed"
	rp_s3 GET "/$v/out.txt"
	[ "$HTTP" = 400 ] || [ "$HTTP" = 200 ] || complain "without x-amz-content-sha256: $HTTP"
	RP_S3_USER="$RUNPOD_S3_ACCESS_KEY:wrong" rp_s3 GET "/$v/out.txt" -H "x-amz-content-sha256: $empty"
	is "$HTTP" 403 "a wrong secret"
	rp_s3 PUT "/$v/x" --data-binary @file -H "Content-Type: text/plain" -H "x-amz-content-sha256: $empty"
	is "$HTTP" 400 "a body that is not what was signed"
	rp_control settings '{"s3_clock_ms":7200000}' >/dev/null
	rp_s3 GET "/$v/out.txt" -H "x-amz-content-sha256: $empty"
	is "$HTTP $(grep -o RequestTimeTooSkewed reply.s3 | head -n 1)" "403 RequestTimeTooSkewed" F24
	rp_control settings '{"s3_clock_ms":0}' >/dev/null
	# in parts
	rp_s3 POST "/$v/big?uploads=" -H "x-amz-content-sha256: $empty"
	is "$HTTP" 200 "create upload: $(cat reply.s3)"
	local up etag1 etag2
	up=$(sed -n 's/.*<UploadId>\([^<]*\).*/\1/p' reply.s3)
	rp_s3 PUT "/$v/big?partNumber=1&uploadId=$up" --data-binary @file -H "Content-Type: text/plain" -H "x-amz-content-sha256: $sha"
	etag1=$(sed -n 's/^ETag: "\(.*\)".*/\1/ip' reply.head)
	rp_s3 PUT "/$v/big?partNumber=2&uploadId=$up" --data-binary @file -H "Content-Type: text/plain" -H "x-amz-content-sha256: $sha"
	etag2=$(sed -n 's/^ETag: "\(.*\)".*/\1/ip' reply.head)
	printf '<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>"%s"</ETag></Part><Part><PartNumber>2</PartNumber><ETag>"%s"</ETag></Part></CompleteMultipartUpload>' "$etag1" "$etag2" >parts.xml
	rp_s3 POST "/$v/big?uploadId=$up" --data-binary @parts.xml -H "Content-Type: text/xml" -H "x-amz-content-sha256: $(sha256sum parts.xml | cut -d' ' -f1)"
	is "$HTTP $(grep -o '<Key>big' reply.s3)" "200 <Key>big" complete
	is "$(wc -c <"$RP_STATE/volumes/$v/big")" 30 "bytes on the volume"
	rp_fault F23 '"times":2'
	rp_s3 GET "/$v/out.txt" -H "x-amz-content-sha256: $empty"
	is "$HTTP" 502 F23
	rp_control faults/0 '{}' >/dev/null
	curl -qsS -X DELETE "$RUNPOD_API_URL/_control/faults" >/dev/null
	rp_s3 DELETE "/$v/big" -H "x-amz-content-sha256: $empty"
	is "$HTTP" 204 "delete an object"
	rp_s3 HEAD "/$v/big" -H "x-amz-content-sha256: $empty" -I
	is "$HTTP" 404 "head of a deleted one"
	# what a pod may find: a volume that cannot be written
	rp_fault F26 '"how":"full"'
	IMAGE=host/x create full "\"mounts\":{\"network\":[{\"volumeId\":\"$v\",\"path\":\"/workspace\"}]},\"args\":\"bash -c 'echo x >/workspace/x || echo cannot; sleep 1000'\""
	wait_for 20 "a full volume" eval 'rp_log '"$ID"' | grep -q "container cannot"'
	has <(rp_log "$ID") "No space left"
	rp_stop
}

t_logs_as_events() {
	begin || return
	IMAGE=host/x create logs '"args":"bash -c \"for i in 1 2 3; do echo line $i; done; sleep 1; echo late; sleep 1000\""'
	wait_for 20 "a line" eval 'rp_log '"$ID"' | grep -q "line 3"'
	timeout 4 curl -qsSN -H "Authorization: Bearer $RUNPOD_API_KEY" "$RUNPOD_API_URL/v2/pods/$ID/logs?source=container&tail=2" >events
	is "$(sed -n 's/^data: //p' events | jq -r .line | tr '\n' ',')" "line 2,line 3,late," "the last two and what came later"
	grep -qE '^id: [0-9T:-]+Z/[0-9]{12}$' events || complain "ids: $(head -n 1 events)"
	local last
	last=$(sed -n 's/^id: //p' events | sed -n 2p)
	timeout 2 curl -qsSN -H "Last-Event-ID: $last" -H "Authorization: Bearer $RUNPOD_API_KEY" "$RUNPOD_API_URL/v2/pods/$ID/logs?source=container" >events
	is "$(sed -n 's/^data: //p' events | jq -r .line | tr '\n' ',')" "late," "after an id"
	timeout 1 curl -qsSN -D quiet.head -H "Authorization: Bearer $RUNPOD_API_KEY" "$RUNPOD_API_URL/v2/pods/$ID/logs?source=container&tail=0" >events
	is "$(cat quiet.head events | wc -c)" 0 "bytes while there is nothing to say"
	rp_fault F20 '"cut":2'
	curl -qsSN -m 5 -H "Authorization: Bearer $RUNPOD_API_KEY" "$RUNPOD_API_URL/v2/pods/$ID/logs?source=system" >events 2>/dev/null
	is "$(grep -c '^data:.*}$' events)" 1 "F20: whole events before the cut"
	rp_api GET "/v2/pods/$ID/logs?tail=5001"
	want 422 "a tail that is too long"
	rp_stop
}

t_billing() {
	begin || return
	rp_control settings '{"billing":{"lag_s":300}}' >/dev/null
	create bill '"disk":40'
	rp_control clock '{"advance_s":3600}' >/dev/null
	rp_api DELETE "/v2/pods/$ID"
	rp_api GET "/v2/billing/pods?bucketSize=hour&podId=$ID"
	[ "$(jq '.metadata.totals.gpuAmount * 1000 | round' reply.json)" -lt 690 ] || complain "all of it is there before the lag is over"
	rp_control clock '{"advance_s":600}' >/dev/null
	rp_api GET "/v2/billing/pods?bucketSize=hour&podId=$ID"
	want 200 billing
	is "$(jq '.metadata.totals.gpuAmount * 1000 | round' reply.json)" 690 "an hour of 0.69 in thousandths"
	is "$(jq '.metadata.totals.diskAmount * 10000 | round' reply.json)" 55 "an hour of 40 GB in ten-thousandths"
	is "$(jq '.metadata.uniquePodCount, (.records | length >= 1)' reply.json | tr '\n' ' ')" "1 true " records
	rp_api GET "/v2/billing/pods?lastN=2&startTime=2026-01-01T00:00:00Z"
	want 400 "lastN with startTime"
	# billed from RUNNING on
	rp_control settings '{"billing":{"from":"running","cost_with_disk":true}}' >/dev/null
	rp_fault F9
	create never '"disk":40'
	is "$(jq '.cost * 10000 | round' reply.json)" 6955 "cost with its disk"
	rp_control clock '{"advance_s":3600}' >/dev/null
	is "$(rp_control billing | jq -r '.[-1].seconds')" 0 "seconds of a pod that never ran"
	rp_stop
}

t_spot_and_graphql() {
	begin || return
	gql() { rp_api POST /graphql "$(jq -nc --arg q "$1" --argjson v "${2:-{\}}" '{query:$q,variables:$v}')"; }
	gql 'query { myself { id clientBalance currentSpendPerHr spendLimit } }'
	is "$(jq -r '.data.myself.clientBalance' reply.json)" 25.5 balance
	gql 'query($id:String!,$n:Int=1){ gpuTypes(input:{id:$id}){ id lowestPrice(input:{gpuCount:$n,secureCloud:true}){minimumBidPrice uninterruptablePrice stockStatus} } }' "{\"id\":\"$GPU\"}"
	is "$(jq -r '.data.gpuTypes[0].lowestPrice | "\(.minimumBidPrice) \(.uninterruptablePrice) \(.stockStatus)"' reply.json)" "0.35 0.69 High" "floor price"
	local rent='mutation($input: PodRentInterruptableInput!){ podRentInterruptable(input:$input){ id desiredStatus imageName machineId } }'
	gql "$rent" "{\"input\":{\"name\":\"s\",\"imageName\":\"host/x\",\"gpuTypeId\":\"$GPU\",\"gpuCount\":1,\"bidPerGpu\":0.1,\"cloudType\":\"SECURE\"}}"
	is "$HTTP $(jq -r '.data.podRentInterruptable, (.errors[0].message | .[0:43])' reply.json | tr '\n' ' ')" "200 null There are no longer any instances available " "a bid below the floor"
	gql "$rent" "{\"input\":{\"name\":\"s\",\"imageName\":\"host/x\",\"gpuTypeId\":\"$GPU\",\"gpuCount\":1,\"bidPerGpu\":0.4,\"cloudType\":\"SECURE\",\"ports\":\"22/tcp\",\"dockerArgs\":\"sleep 1000\",\"env\":[{\"key\":\"A\",\"value\":\"b\"}]}}"
	ID=$(jq -r .data.podRentInterruptable.id reply.json)
	rp_wait_status "$ID" RUNNING
	rp_api GET "/v2/pods/$ID"
	is "$(jq -r '"\(.cost) \(.env.A)"' reply.json)" "0.4 b" "a spot pod in v2"
	rp_control "pods/$ID" '{"preempt":"EXITED"}' >/dev/null
	gql "query { pod(input:{podId:\"$ID\"}) { desiredStatus lastStatusChange } }"
	is "$(jq -r '.data.pod | "\(.desiredStatus) \(.lastStatusChange[0:7])"' reply.json)" "EXITED Outbid:" preempted
	gql "mutation{podTerminate(input:{podId:\"$ID\"})}"
	is "$(jq -c . reply.json)" '{"data":{"podTerminate":null}}' podTerminate
	gql "mutation{podTerminate(input:{podId:\"$ID\"})}"
	is "$(jq -r '.errors[0].message' reply.json)" "pod not found to terminate" "podTerminate again"
	rp_stop
}

t_capacity() {
	begin || return
	rp_control stock "{\"gpu\":\"$GPU\",\"free\":0}" >/dev/null
	rp_control stock "{\"gpu\":\"$GPU\",\"dc\":\"EU-CZ-1\",\"cloud\":\"SECURE\",\"free\":1,\"price\":0.5}" >/dev/null
	rp_api GET '/v2/catalog/gpus?include=AVAILABILITY&product=POD&count=1&cloud=SECURE'
	is "$(jq -r --arg g "$GPU" '.gpus[] | select(.id == $g) | "\(.availability) \(.dataCenters[].id) \(.price.secure)"' reply.json)" "LOW EU-CZ-1 0.5" catalog
	create one; want 201 "the only one"
	is "$(jq -r '"\(.dataCenterId) \(.cost)"' reply.json)" "EU-CZ-1 0.5" where
	create two; want 400 "one too many"
	local first
	first=$(rp_pods | cut -d' ' -f1)
	rp_api DELETE "/v2/pods/$first"
	create three; want 201 "after one was given back"
	rp_api GET '/v2/catalog/gpus/NVIDIA%20GeForce%20RTX%204090'; want 200 "one type"
	rp_api GET '/v2/catalog/gpus/RTX%204090'; want 404 "no type"
	rp_stop
}

t_vendors_schemas() {
	begin || return
	[ -r "$VENDOR_FILE" ] || { skip "the vendor's OpenAPI file is not here"; rp_stop; return; }
	python3 -c 'from jsonschema import Draft202012Validator' 2>/dev/null || { skip "no python3-jsonschema >= 4"; rp_stop; return; }
	keys
	rp_api POST /v2/network-volumes '{"name":"v","size":10,"dataCenter":"EU-RO-1"}'; keep_reply volume.NetworkVolume
	local v
	v=$(jq -r .id reply.json)
	create a "\"env\":{\"PUBLIC_KEY\":\"$(cat id.pub)\"},\"mounts\":{\"network\":[{\"volumeId\":\"$v\",\"path\":\"/workspace\"}]}"; keep_reply created.Pod
	wait_for 20 "a port" eval '[ "$(rp_get '"$ID"' .view.ssh.direct)" != null ]'
	rp_api GET /v2/pods; keep_reply pods.ListPodsResponse
	rp_api GET "/v2/pods/$ID"; keep_reply running.Pod
	rp_api PATCH "/v2/pods/$ID" '{"name":"b"}'; keep_reply patched.Pod
	rp_api POST "/v2/pods/$ID/action" '{"action":"stop"}'; keep_reply stopped.Pod
	rp_api POST /v2/pods '{"name":"cpu","image":"runpod/base:1","cpu":{"id":"cpu5c","vcpuCount":4}}'; want 201 "a CPU pod"; keep_reply cpu.Pod
	rp_api GET /v2/network-volumes; keep_reply volumes.ListNetworkVolumesResponse
	rp_api PATCH "/v2/network-volumes/$v" '{"size":20}'; keep_reply grown.NetworkVolume
	rp_api PATCH "/v2/network-volumes/$v" '{"size":12}'; want 400 shrink; keep_reply shrink.ErrorResponse
	rp_api PATCH "/v2/network-volumes/$v" '{}'; want 422 nothing
	rp_api GET '/v2/catalog/gpus?include=AVAILABILITY&product=POD'; keep_reply gpus.ListGpuTypesResponse
	rp_api GET '/v2/catalog/gpus/NVIDIA%20L4'; keep_reply gpu.GpuType
	rp_api GET '/v2/catalog/cpus?include=AVAILABILITY&product=POD&vcpuCount=4'; keep_reply cpus.ListCpuTypesResponse
	rp_api GET '/v2/catalog/datacenters?include=GPU_AVAILABILITY,CPU_AVAILABILITY&regions=EUROPE'; keep_reply dcs.ListDataCentersResponse
	rp_control clock '{"advance_s":7200}' >/dev/null
	rp_api GET '/v2/billing/pods?bucketSize=hour'; keep_reply bill.ListPodBillingResponse
	[ "$(jq '.records | length' reply.json)" -ge 2 ] || complain "no billing records"
	rp_api GET '/v2/billing/network-volumes'; keep_reply volumebill.ListNetworkVolumeBillingResponse
	rp_api PUT /v2/account/ssh-keys "{\"keys\":[\"$(cat id.pub)\"]}"; keep_reply keys.SshKeys
	rp_api PUT /v2/account/ssh-keys '{"keys":["not a key"]}'; want 422 "a bad key"; keep_reply badkey.ErrorResponse
	local body n=0
	for body in '{}' '{"name":"","image":"runpod/base:1"}' '{"name":"x","image":"runpod/base:1","gpu":{"count":0}}' '{"name":"x","image":"runpod/base:1","zebra":1}' \
		'{"name":"x","image":"runpod/base:1","cpu":{"id":"","vcpuCount":1}}' '{"name":"x","image":"runpod/base:1","mounts":{"persistent":{"size":1,"path":"/x"}}}' \
		'{"name":"x","image":"runpod/base:1","gpu":{"id":"a","minCudaVersion":"12"}}' '{"name":"x","templateId":""}' '{"name":"x","templateId":"none"}' \
		'{"name":"x","image":"runpod/base:1","ports":"22/tcp"}' '{"name":"x","image":"runpod/base:1","disk":0.5}' '{"name":"x","image":"runpod/base:1","registry":null}'; do
		rp_api POST /v2/pods "$body"
		keep_reply "refused$((n += 1)).ErrorResponse"
	done
	python3 "$ROOT/tests/cloud/runpod/validate.py" "$VENDOR_FILE" "$RP_STATE/requests.jsonl" replies >fits.txt 2>&1 || complain "$(head -n 5 fits.txt | tr '\n' '|')"
	has fits.txt "held against the vendor's schemas"
	rp_stop
}

run_tests "$@"
