#!/bin/bash
# modal_contract.sh - the providers' conformance suite against a Modal of our own (tests/cloud/modal), on good days and bad; and
# what burst does with its volumes while no sandbox runs.
. "$(dirname "$0")/lib.sh"
. "$ROOT/tests/cloud/modal/lib.sh"

conforms() { # with what was asked of the stand-in before
	timeout 120 "$ROOT/build/e2e/conform" modal >said.txt 2>&1 || complain "$(grep -m 2 -v '^\[' said.txt | tr '\n' ' ')"
}
asked() { # METHOD: so many times
	md_control requests | jq --arg op "$1" '[.[] | select(.op == $op)] | length'
}
cloud() {
	local why
	why=$(md_can) || { skip "$why"; return 1; }
	md_start || return 1
	make -s -C "$ROOT" BUILD=build e2e-tools || complain "it does not build"
}

t_keeps_the_contract_of_providers() {
	cloud || return
	conforms
	is "$(asked VolumePutFiles2) $(asked VolumeGetFile2)" "8 5" "calls about files" # a block that is there is not put again
	md_stop
}

t_keeps_it_when_addresses_expire() { # of blocks, on the way there and back: they are asked for again
	cloud || return
	md_fault dead_urls '"op":"VolumePutFiles2","times":2'
	md_fault dead_urls '"op":"VolumeGetFile2","times":2'
	conforms
	is "$(asked VolumePutFiles2) $(asked VolumeGetFile2)" "10 7" "calls about files"
	md_stop
}

# ---- burst and its volumes ----

# shellcheck disable=SC2120
job() { # KEY=VALUE;... : a command that shows what came with the code, with PODS pods
	mkdir -p code
	cat >burst.cfg <<-E
		provider = "modal";
		gpu = ["${GPU:-none}"];
		pods = ${PODS:-1};
		volume = { name = "v"; size_gb = 20; create = true; };
		caps = { max_cost = 2.00; max_duration = "10m"; };
		code = { path = "code"; };
		job = { name = "e2e"; type = "command"; run = "sha256sum <large >sum-\$BURST_INDEX"; outputs = ["sum-*"]; output = "out"; };
		pod = { ${POD:-} };
		$*
	E
}
order() { # the calls of these names, in order, each told once in a row
	md_control requests | jq -r --arg names "$1" '.[].op | select(test("^(" + $names + ")$"))' | uniq | tr '\n' ' '
}

t_code_is_there_before_a_sandbox() { # in blocks; expired addresses are asked for again, blocks that are there are not put again
	cloud || return
	job
	{ head -c 9000000 /dev/urandom; head -c 9000000 /dev/zero; } >code/large
	md_fault dead_urls '"op":"VolumePutFiles2"'
	burst run --json --trace
	is "$STATUS" 0 "exit status ($(tail -n 2 err.txt | tr '\n' '|'))"
	is "$(cut -c1-64 out/sum-0)" "$(sha256sum <code/large | cut -c1-64)" "what the job saw"
	has err.txt 'modal: creating volume "v": $0.0900 a month for each GiB on it, until it is removed'
	has err.txt 'bytes stored on volume v without a pod'
	is "$(order 'VolumePutFiles2|SandboxCreate')" "VolumePutFiles2 SandboxCreate " "order of the calls"
	hasnt err.txt 'sending it over SSH'
	is "$(find "$MD_STATE"/volumes -path '*/staged/*' | wc -l)" 0 "what is left staged"
	burst ps --json
	is "$(json '.[] | select(.kind == "volume") | "\(.name) \(.size_gb) \(.price_usd_month)"')" "v 20 1.8" "the volume in ps"
	burst volume ls
	has out.txt '$0.0900' # one GiB begun
	cp burst.cfg other.cfg
	sed -i 's/name = "e2e"/name = "again"/; s/output = "out"/output = "out2"/' other.cfg
	burst run --json other.cfg # the tree is there: nothing is put
	is "$STATUS" 0 "exit status, again ($(tail -n 2 err.txt | tr '\n' '|'))"
	hasnt err.txt 'without a pod'
	burst volume rm v -y
	is "$STATUS" 0 "volume rm ($(tail -n 1 err.txt))"
	md_stop
}

t_what_is_paid_for_is_rented() { # GPUs, cores and memory: what an offer costs is what the sandbox has
	cloud || return
	GPU=L40S:2 POD='cpu = 2; memory_gb = 5; disk_gb = 100;' job
	echo x >code/large
	burst offers --json
	is "$(json '.[0] | "\(.gpu) \(.gpus)"')" "L40S 2" "the offer"
	local price
	price=$(json '.[0].price_usd_hour')
	burst run --json
	is "$STATUS" 0 "exit status ($(tail -n 2 err.txt | tr '\n' '|'))"
	is "$(md_control state | jq -c '.sandboxes[0] | [.gpu.type, .gpu.count, .cpu, .memory_gib]')" '["L40S",2,2,5]' "what was rented"
	GPU=none POD='cpu = 2; memory_gb = 5;' job
	burst offers --json
	is "$(json '.[0] | "\(.gpu) \(.price_usd_hour < '"$price"' and .price_usd_hour > 0)"')" "none true" "an offer without a GPU"
	POD='cpu = 1000;' job
	burst run --json
	is "$STATUS" 2 "exit status: too many cores"
	has err.txt "no sandbox of Modal's has 1000 cores: lower pod.cpu"
	is "$(asked SandboxCreate)" 1 "sandboxes that ever were"
	md_stop
}

t_staged_code_serves_all() { # each sandbox has its own sight of the volume
	cloud || return
	PODS=3 job
	sed -i 's/run = "/run = "sleep 3; /' burst.cfg # so that one that comes late is still needed
	head -c 3000000 /dev/urandom >code/large
	burst run --json -v
	is "$STATUS" 0 "exit status ($(tail -n 2 err.txt | tr '\n' '|'))"
	is "$(cat out/sum-* | cut -c1-64 | sort | uniq -c | tr -s ' ')" " 3 $(sha256sum <code/large | cut -c1-64)" "what the jobs saw"
	local ready took # a busy machine's third sandbox may come when all is done
	ready=$(grep -c ': code: ' err.txt) took=$(grep -c ': code: on the volume already' err.txt)
	[ "$took" -ge 2 ] || complain "$took sandboxes took it from the volume"
	is "$took" "$ready" "sandboxes that took it from the volume, of those that came"
	md_stop
}

handed_over() { [ "$(ledger 'select detached from run')" = 1 ]; }
no_sandboxes() { [ -z "$(md_sandboxes)" ]; }

t_outputs_come_after_the_end() { # nobody watches: the sandbox works, syncs and ends; what it made is fetched from the volume
	cloud || return
	job
	echo x >code/large
	sed -i 's/run = "/run = "sleep 3; /' burst.cfg
	burst run -d
	is "$STATUS" 0 "run -d ($(tail -n 2 err.txt))"
	wait_for 40 "the queue to be handed over" handed_over
	kill -9 "$(sed -n 's/^process //p' "$BURST_STATE_DIR/runs/$(cat out.txt)/lock")"
	wait_for 60 "the sandbox to end itself" no_sandboxes
	[ ! -e out/sum-0 ] || complain "the file is here before it was fetched"
	md_fault dead_urls '"op":"VolumeGetFile2","times":2'
	burst attach
	is "$STATUS" 0 "attach ($(tail -n 2 err.txt | tr '\n' '|'))"
	is "$(cut -c1-64 out/sum-0)" "$(sha256sum <code/large | cut -c1-64)" "what came home"
	[ "$(asked VolumeGetFile2)" -ge 3 ] || complain "expired addresses were not asked for again"
	is "$(asked SandboxCreate)" 1 "sandboxes that ever were"
	md_stop
}

t_a_volume_is_tidied() {
	cloud || return
	job
	echo x >code/large
	burst run --json
	is "$STATUS" 0 "exit status ($(tail -n 2 err.txt | tr '\n' '|'))"
	local run folder
	run=$(json .run)
	folder=$MD_STATE/volumes/$(md_control state | jq -r '.volumes[0].id')
	[ -d "$folder/runs/$run" ] || complain "the run left nothing to tidy: $(ls "$folder")"
	mkdir -p "$folder/env/.half.00f1/lib" "$folder/runs/strange/p"
	echo old | tee "$folder/env/.half.00f1/lib/x" >"$folder/runs/strange/p/a b#c.wav"
	find "$folder/env/.half.00f1" "$folder/runs/strange" -depth -exec touch -d '40 days ago' {} +
	burst volume gc v --older-than 0s -n
	has out.txt "v: runs/$run would be removed ("
	has out.txt "v: env/.half.00f1 would be removed (1 kB): an unfinished build"
	[ -d "$folder/runs/$run" ] || complain "a dry run removed it"
	burst volume gc v --older-than 0s
	is "$STATUS" 0 "gc ($(tail -n 1 err.txt))"
	has out.txt "v: runs/$run removed ("
	has out.txt "runs/strange stays: not in this ledger"
	[ ! -e "$folder/runs/$run" ] && [ ! -e "$folder/env/.half.00f1" ] || complain "it is still there"
	[ -f "$folder/runs/strange/p/a b#c.wav" ] || complain "a stranger's run went"
	burst volume gc v --older-than 0s --force -y
	has out.txt "v: runs/strange removed ("
	[ ! -e "$folder/runs/strange" ] || complain "the stranger's run is still there"
	md_stop
}

run_tests "$@"
