#!/bin/bash
# cloud_modal_files.sh - images, volumes and bills of the stand-in for Modal.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"
# shellcheck source-path=SCRIPTDIR
. "$ROOT/tests/cloud/modal/lib.sh"
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/cloud_modal_lib.sh"

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

run_tests "$@"
