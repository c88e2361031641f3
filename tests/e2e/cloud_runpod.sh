#!/bin/bash
# cloud_runpod.sh - pods of the stand-in for RunPod, by itself: what the tests of burst rely on. curl and ssh are its clients.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"
# shellcheck source-path=SCRIPTDIR
. "$ROOT/tests/cloud/runpod/lib.sh"
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/cloud_runpod_lib.sh"

pod_ssh() { # pod_ssh ID COMMAND
	ssh -F none -i id -p "$(rp_get "$1" '.view.ssh.direct.port // 1')" -o BatchMode=yes -o ConnectTimeout=5 -o StrictHostKeyChecking=no \
		-o UserKnownHostsFile=/dev/null -o LogLevel=ERROR root@127.0.0.1 "$2" </dev/null
}
logged_in() { pod_ssh "$1" true; }

t_life_of_a_pod() {
	begin || return
	keys
	create life "\"env\":{\"PUBLIC_KEY\":\"$(cat id.pub)\",\"GREETING\":\"a b\"}"
	want 201 create
	is "$(jq -r .status reply.json)" PROVISIONING "status in the 201"
	wait_for 30 "a login" logged_in "$ID"
	is "$(pod_ssh "$ID" '. /etc/rp_environment; echo "$GREETING $RUNPOD_POD_ID $RUNPOD_DC_ID"; hostname' | tr '\n' ' ')" "a b $ID EU-RO-1 $ID " "inside"
	is "$(pod_ssh "$ID" 'nvidia-smi --query-gpu=name,memory.total --format=csv,noheader,nounits')" "$GPU, 24576" nvidia-smi
	is "$(pod_ssh "$ID" "ls $ROOT 2>&1 | wc -l; cat /proc/1/comm; ps ax | grep -c '[n]ode'" | tr '\n' ' ')" "1 start.sh 0 " "what it sees of this machine"
	# the pod's own key, from inside, through the address that this machine uses
	is "$(pod_ssh "$ID" ". /etc/rp_environment; curl -sS -o /dev/null -w '%{http_code}' -H \"Authorization: Bearer \$RUNPOD_API_KEY\" $RUNPOD_API_URL/v2/pods/\$RUNPOD_POD_ID")" 200 "GET from inside"
	is "$(pod_ssh "$ID" ". /etc/rp_environment; curl -sS -o /dev/null -w '%{http_code}' -H \"Authorization: Bearer \$RUNPOD_API_KEY\" $RUNPOD_API_URL/v2/pods")" 403 "list from inside"
	is "$(rp_get "$ID" .told)" false "is anybody told of it by what it asks itself?"
	rp_api GET "/v2/pods/$ID"
	is "$(rp_get "$ID" .told)" true "was its client told of it while it lived?"
	rp_control unheard '{"ms":60000}' >/dev/null
	is "$(rp_get "$ID" .told)" false "and if that client died at once?"
	rp_api DELETE "/v2/pods/$ID"
	want 204 delete
	is "$(wc -c <reply.json)" 0 "bytes of the 204"
	rp_api GET "/v2/pods/$ID"
	want 404 "get afterwards"
	rp_api DELETE "/v2/pods/$ID"
	want 404 "second delete"
	# that list is nothing a pod's switch asks for, and the only request of that kind
	is "$(rp_control invariants | jq -r '.broken | map(sub(".* is by the key"; "by the key")) | join("|")')" \
		"by the key of pod $ID and not its switch's: GET /v2/pods undefined" "what the stand-in has to say of it"
	rp_stop
}

t_a_pod_ends_itself() {
	begin || return
	IMAGE=host/x create self "\"args\":\"bash -c 'curl -sS -X DELETE -H \\\"Authorization: Bearer \$RUNPOD_API_KEY\\\" $RUNPOD_API_URL/v2/pods/\$RUNPOD_POD_ID; sleep infinity'\""
	want 201 create
	rp_wait_status "$ID" TERMINATED
	is "$(rp_control requests | jq -r '.[-1] | "\(.key) \(.op) \(.status)"')" "pod deletePod 204" "who ended it"
	# a key without rights
	rp_control settings '{"pod_key":{"get":false,"delete":false,"action":false,"graphql":false}}' >/dev/null
	create powerless
	is "$(curl -qsS -o /dev/null -w '%{http_code}' -X DELETE -H "Authorization: Bearer $(rp_get "$ID" .key)" "$RUNPOD_API_URL/v2/pods/$ID")" 403 "a key without rights"
	rp_stop
}

t_start_commands() {
	begin || return
	IMAGE=host/x
	create words '"args":"sh -c '\''printf \"[%s]\" \"$@\"; echo; sleep 100'\'' x one \"two three\" four\\ five"'
	wait_for 20 "words as a shell splits them" eval 'rp_log '"$ID"' | grep -qF "[one][two three][four five]"'
	create json '"args":"{\"entrypoint\":[\"/bin/sh\",\"-c\"],\"cmd\":[\"echo json $0; sleep 100\",\"works\"]}"'
	wait_for 20 "a JSON object" eval 'rp_log '"$ID"' | grep -qF "json works"'
	create none '"args":""'
	wait_for 20 "an empty command to fail" eval 'rp_log '"$ID"' | grep -q "no command\|exited with code"'
	rp_stop
}

t_a_container_that_ends_is_started_again() {
	begin || return
	IMAGE=host/x create again '"args":"bash -c \"echo n >>/count; cat /count | wc -l; sleep 0.3; exit 3\""'
	wait_for 20 "a third start on the same disk" eval 'rp_log '"$ID"' | grep -q "container 3$"'
	is "$(rp_log "$ID" | grep -c 'start container')" "$(rp_log "$ID" | grep -c 'container [0-9]*$')" "starts in the system log"
	has <(rp_log "$ID") "container exited with code 3"
	is "$(rp_control state | jq '.pods[0].ended_ms')" null "billing goes on"
	rp_control settings '{"crash_keeps_disk":false}' >/dev/null
	IMAGE=host/x create fresh '"args":"bash -c \"echo n >>/count; echo have $(cat /count | wc -l); sleep 0.1\""'
	wait_for 20 "three starts" eval '[ "$(rp_log '"$ID"' | grep -c "container have")" -ge 3 ]'
	is "$(rp_log "$ID" | grep 'container have' | sed 's/.*have //' | sort -u)" 1 "lines on a fresh disk"
	# killed from outside, restarted through the API
	IMAGE=host/x create long '"args":"bash -c \"echo up; sleep 1000\""'
	rp_wait_status "$ID" RUNNING
	rp_control "pods/$ID" '{"kill":9}' >/dev/null
	wait_for 20 "a second start" rp_is "$ID" .starts 2
	wait_for 20 "RUNNING" rp_is "$ID" .status RUNNING
	rp_api POST "/v2/pods/$ID/action" '{"action":"restart"}'
	want 200 restart
	wait_for 20 "a third start" rp_is "$ID" .starts 3
	rp_api POST "/v2/pods/$ID/action" '{"action":"start"}'
	want 409 "start of one that is not stopped"
	rp_api POST "/v2/pods/$ID/action" '{"action":"stop"}'
	want 200 stop
	is "$(jq -r '.status, .cost' reply.json | tr '\n' ' ')" "EXITED 0 " "a stopped pod"
	rp_api POST "/v2/pods/$ID/action" '{"action":"start"}'
	want 200 start
	wait_for 20 "a fourth start" rp_is "$ID" .starts 4
	rp_stop
}

t_faults_of_pods() {
	begin || return
	keys
	local env
	env="\"env\":{\"PUBLIC_KEY\":\"$(cat id.pub)\"}"
	rp_fault F14; create f14; rp_wait_status "$ID" ERROR
	has <(rp_log "$ID") "error creating container"
	rp_fault F10; create f10 "$env"; rp_wait_status "$ID" RUNNING
	is "$(rp_get "$ID" '"\(.view.runtime) \(.view.ssh.direct)"')" "null null" F10
	rp_fault F25; create f25 "$env"
	wait_for 30 "a login" logged_in "$ID"
	pod_ssh "$ID" nvidia-smi >f25.txt && complain "F25: nvidia-smi is content"
	is "$(cat f25.txt)" "No devices were found" F25
	# the same pod, misbehaving later: port
	local before
	before=$(ssh-keyscan -t ed25519 -p "$(rp_get "$ID" .port)" 127.0.0.1 2>/dev/null | cut -d' ' -f3)
	rp_control "pods/$ID" '{"quirks":{"door":"wrong-key"}}' >/dev/null
	wait_for 10 "another host key" eval 'k=$(ssh-keyscan -t ed25519 -p "$(rp_get $ID .port)" 127.0.0.1 2>/dev/null | cut -d" " -f3); [ -n "$k" ] && [ "$k" != "'"$before"'" ]'
	rp_control "pods/$ID" '{"quirks":{"door":"reset"}}' >/dev/null
	logged_in "$ID" 2>/dev/null && complain "F11: a login through a reset port"
	rp_control "pods/$ID" '{"quirks":{"door":"silent"}}' >/dev/null
	is "$(timeout 1 bash -c "exec 3<>/dev/tcp/127.0.0.1/$(rp_get "$ID" .port); head -c 1 <&3" | wc -c)" 0 "F11: bytes of a silent port"
	rp_control "pods/$ID" '{"quirks":{"door":null,"drop_after_bytes":300000}}' >/dev/null
	[ "$(pod_ssh "$ID" 'head -c 3000000 /dev/zero' 2>/dev/null | wc -c)" -lt 3000000 ] || complain "F13: all bytes came through"
	is "$(pod_ssh "$ID" 'head -c 3000000 /dev/zero' | wc -c)" 3000000 "F13: bytes of the second try"
	# preempted: EXITED, its volume stays
	rp_control "pods/$ID" '{"preempt":"EXITED"}' >/dev/null
	is "$(rp_get "$ID" '"\(.status) \(.view.cost) \(.view.ssh.direct)"')" "EXITED 0 null" F15
	rp_stop
}

t_a_minimal_image() {
	local why
	export RP_IMAGE_CACHE=${RP_IMAGE_CACHE:-$ROOT/build/minimal}
	why=$("$ROOT/tests/cloud/minimal_root.sh" "$RP_IMAGE_CACHE" 2>&1) || { skip "$why"; return; }
	begin || return
	IMAGE=debian:bookworm-slim create small '"args":"bash -c \"for p in curl sshd wget python3; do command -v $p || echo no $p; done; ls /etc/ssl/certs 2>&1 | wc -l; apt-get -qq update && apt-get -qq -y --no-install-recommends install openssh-server curl >/dev/null 2>&1; command -v sshd curl; sleep 1000\""'
	wait_for 60 "what it wants to be installed from the mirror" eval 'rp_log '"$ID"' | grep -q "container /usr/bin/curl"' || rp_log "$ID" | tail -n 5
	has <(rp_log "$ID") "container no curl"
	has <(rp_log "$ID") "container no sshd"
	has <(rp_log "$ID") "container /usr/sbin/sshd"
	rp_stop
}

# What burst starts on its pods, where it has to install everything first: our host key, and an end by the pod's own key.
t_the_start_script_on_a_minimal_image() {
	local why
	export RP_IMAGE_CACHE=${RP_IMAGE_CACHE:-$ROOT/build/minimal}
	why=$("$ROOT/tests/cloud/minimal_root.sh" "$RP_IMAGE_CACHE" 2>&1) || { skip "$why"; return; }
	begin || return
	keys
	ssh-keygen -q -t ed25519 -N '' -C test -f host
	jq -nc --arg host "$(base64 -w0 <host)" --arg mine "$(cat id.pub)" --arg hard $(($(date +%s) + 300)) --arg api "$RUNPOD_API_URL" \
		--arg script "$(cat "$ROOT"/providers/{http,runpod/end}.sh "$ROOT"/jobs/agent/start.sh | base64 -w0)" --arg gpu "$GPU" '{name: "small", image: "debian:bookworm-slim",
		gpu: {id: $gpu, count: 1}, ports: ["22/tcp"], args: "sh -c \u0027echo \($script) | base64 -d >/start && exec sh /start\u0027",
		env: {BURST_CONTAINER: "1", BURST_RUN: "r", BURST_ATTEMPT: "a", BURST_HARD_END: $hard, BURST_HOST_KEY_B64: $host,
		BURST_AUTHORIZED_KEY: $mine, BURST_API_URL: $api}}' >body
	rp_api POST /v2/pods @body
	want 201 create
	ID=$(jq -r .id reply.json)
	wait_for 60 "a login" logged_in "$ID"
	is "$(ssh-keyscan -t ed25519 -p "$(rp_get "$ID" .port)" 127.0.0.1 2>/dev/null | cut -d' ' -f3)" "$(cut -d' ' -f2 host.pub)" "the host key"
	wait_for 60 "the switch to be tried" eval 'pod_ssh '"$ID"' "cat \$BURST_HOME/switch" | grep -q "^unproven http 200"'
	pod_ssh "$ID" 'echo enough >$BURST_HOME/end'
	rp_wait_status "$ID" TERMINATED
	is "$(rp_control requests | jq -r '.[-1] | "\(.key) \(.op) \(.status)"')" "pod deletePod 204" "who ended it"
	rp_invariants
	rp_stop
}

t_nothing_outlives_it() {
	begin || return
	IMAGE=host/x create one '"args":"bash -c \"setsid sleep 4321 & trap : TERM; while :; do sleep 1; done\""'
	rp_wait_status "$ID" RUNNING
	local net
	net=$(readlink "/proc/$(rp_get "$ID" .pid)/ns/net")
	[ -n "$(cloud_processes_of "$net")" ] || complain "the pod has no process in a network of its own"
	[ "$net" != "$(readlink /proc/self/ns/net)" ] || complain "the pod is in this machine's network"
	kill -9 "$RP_PID"
	wait "$RP_PID" 2>/dev/null
	RP_PID=
	wait_for 10 "the pod to die with a killed server" cloud_nothing_left "$RP_STATE" "$net"
}

run_tests "$@"
