#!/bin/bash
# runpod.sh - burst against a RunPod of our own (tests/cloud/runpod): its API is simulated, its pods are real.
. "$(dirname "$0")/lib.sh"
. "$ROOT/tests/cloud/runpod/client.sh"
. "$ROOT/tests/cloud/common/pooled.sh"
CONFIG=rp_config

t_a_kept_pod_is_taken_over() {
	cloud || return
	kept_pod_is_taken_over
	cloud_over
}
sold_out() { rp_fault F5 '"times":-1'; }
t_a_waiting_run_takes_a_pod() {
	cloud || return
	waiting_run_takes_pod
	cloud_over
}

t_renders_and_gives_back() {
	cloud || return
	script_lines 40
	slow_worker SLOW=0.6 # enough for a second one
	rp_config 'pods = 2; code = { path = "code"; };'
	burst run --json --trace
	all_done 40 2
	is "$(json '.pods[0].gpu')" "RTX 4090" gpu
	is "$(json '[.pods[].cost_usd > 0] | all')" true "it costs"
	cloud_over
}

t_calibrates() {
	cloud || return
	script_lines 12
	mkdir code
	cp "$ROOT/tests/workers/"{padded,answers}.py code/
	allow_volumes v
	rp_api POST /v2/network-volumes '{"name":"v","size":10,"dataCenter":"US-KS-2"}'
	ENGINE=padded JOB='worker = "ONCE=0.1 EACH=0.001 MAX_BATCH=4 python3 \"$BURST_CODE/padded.py\""; check = { enabled = false; };' \
		rp_config 'code = { path = "code"; };'
	burst calibrate -y --gpu "RTX 4090,L40S" --max-cost 0.40 --json
	is "$STATUS" 0 "calibrate ($(tail -n 2 err.txt | tr '\n' '|'))"
	schema calibrate
	is "$(json '[.gpus[] | "\(.gpu) \(.measured.batch_max)"] | join(", ")')" "RTX 4090 4, L40S 4" "what was measured"
	is "$(pods_ever)" 2 "pods that were rented"
	is "$(json '.cost_usd > 0 and .cost_usd < 0.4')" true "its cost"
	[ ! -e out ] || complain "files in the job's output folder: $(find out | head -n 3)"
	is "$(find state/calibrate -mindepth 1 | wc -l)" 0 "files kept in the state folder"
	cloud_over
}

# The stand-in's nvidia-smi says what /tmp/gpu-busy of its pod does, here by the job's own word.
gpu_job() { # gpu_job PERCENT
	script_lines 24
	slow_worker SLOW=0.5
	cat >code/busy.sh <<-E
		echo $1 >/tmp/gpu-busy
		SLOW=0.5 exec sh "\$BURST_CODE/worker.sh"
	E
	JOB='worker = "sh \"$BURST_CODE/busy.sh\""; check = { enabled = false; };' GPUS='"RTX 4090"' rp_config 'code = { path = "code"; };'
}
t_how_busy_its_gpu_was() {
	cloud || return
	gpu_job 3
	burst run -o idle
	is "$STATUS" 0 "the first run ($(tail -n 1 err.txt))"
	has err.txt "the GPUs were at most 3% busy while workers rendered: a smaller card, larger batches or fewer pods cost less"
	is "$(ledger "select gpu_samples >= 5 and gpu_busy_p50 = 3 and gpu_busy_p95 = 3 and gpu_memory_peak_mib = 412 from pod")" 1 "the ledger"
	burst ledger "$(ledger "select id from run")"
	grep -qE '^gpu +.*RTX 4090 of pod [^ ]+: 3% busy \(median\), 3% \(95th percentile\) in [0-9]+ samples; 412 MiB of memory at most$' out.txt ||
		complain "burst ledger RUN: $(grep ^gpu out.txt)"
	has out.txt "a smaller card, larger batches or fewer pods cost less"
	burst ledger "$(ledger "select id from run")" --json
	is "$(json '.pods[0].gpu_use | "\(.busy_p50) \(.busy_p95) \(.memory_peak_mib)"')" "3 3 412" "its JSON"
	schema run
	gpu_job 100
	burst run -o pinned
	is "$STATUS" 0 "the second run ($(tail -n 1 err.txt))"
	has err.txt "the GPUs were always busy: a card with more bandwidth or compute is faster"
	cloud_over
}

t_without_a_gpu() { # a whole job on a CPU pod, where the volume is
	cloud || return
	script_lines 12
	allow_volumes v
	rp_api POST /v2/network-volumes '{"name":"v","size":10,"dataCenter":"US-KS-2"}'
	rp_control stock '{"flavour":"cpu5g","price":0.01}' >/dev/null # the cheapest now
	GPUS='"none"' POD='cpu = 3; memory_gb = 24;' rp_config
	burst offers --json
	is "$(json 'first | "\(.gpu) \(.gpus) \(.price_usd_hour)"')" "none 0 0.08548" "the cheapest offer"
	burst run --json --trace
	all_done 12 1
	is "$(json '.pods[0] | "\(.gpu) \(.region)"')" "none US-KS-2" "where it ran"
	is "$(json '.pods[0].cost_usd > 0')" true "it costs"
	rp_control requests | jq -c '.[] | select(.op == "createPod") | .body' >created
	is "$(jq -c '[.cpu, .gpu, .cloud, .disk, .dataCenterIds, .mounts.network[0].path]' created)" \
		'[{"id":"cpu5g","vcpuCount":8},null,"SECURE",40,["US-KS-2"],"/workspace"]' "what was asked for"
	is "$(rp_control billing | jq '.[0].usd > 0')" true "the vendor's bill"
	cloud_over
}

t_two_clients_make_one_volume() { # it bills every month: of those that start at once one makes it
	cloud || return
	rp_control fault '{"times":-1,"when":{"op":"listDataCenters"},"do":{"delay_ms":1500}}' >/dev/null
	local one two
	allow_volumes v
	for one in a b; do
		mkdir "$one"
		(cd "$one" && script_lines 3 && rp_config)
		(cd "$one" && exec timeout -k 5 90 "$BURST" run >out.txt 2>err.txt </dev/null) &
		[ $one = a ] && two=$!
	done
	one=$!
	burst volume create v
	is "$STATUS" 0 "volume create ($(tail -n 1 err.txt))"
	wait "$one" || complain "a run: $(tail -n 2 b/err.txt)"
	wait "$two" || complain "the other run: $(tail -n 2 a/err.txt)"
	is "$(asked createVolume)" 1 "volumes that were made"
	is "$(wavs a/out) $(wavs b/out)" "3 3" files
	cloud_over
}

volumes_alive() { rp_control state | jq '[.volumes[] | select(.deleted_ms | not)] | length'; }
t_two_machines_make_one_volume() { # at the same moment: each lists again, and the one whose id comes later removes its own
	cloud || return
	rp_control fault '{"times":2,"when":{"op":"createVolume"},"do":{"delay_ms":1000}}' >/dev/null
	local one two=
	for one in a b; do
		mkdir "$one"
		(cd "$one" && script_lines 3 && rp_config)
		(cd "$one" && BURST_STATE_DIR="$T/state-$one" exec timeout -k 5 120 "$BURST" run -y >out.txt 2>err.txt </dev/null) &
		two="$two $!"
	done
	for one in $two; do wait "$one" || complain "a run: $(tail -n 2 a/err.txt) $(tail -n 2 b/err.txt)"; done
	is "$(asked createVolume) $(volumes_alive)" "2 1" "volumes that were made, and that are left"
	is "$(cat a/err.txt b/err.txt | grep -c 'removing ours, .* which is empty')" 1 "how often it is said"
	is "$(wavs a/out) $(wavs b/out)" "3 3" files
	cloud_over
}
t_a_killed_create_makes_no_second_volume() { # the client dies while it waits for the reply, and the next one's lists lag
	cloud || return
	script_lines 3
	rp_config
	rp_control fault '{"times":1,"when":{"op":"createVolume"},"do":{"hang_ms":60000}}' >/dev/null
	burst_bg run --json
	wait_for 60 "the volume" eval '[ "$(volumes_alive)" = 1 ]'
	kill_it
	is "$(ledger "select count(*) from fact where name like 'volume-create:%' and value > 0")" 1 "the intent in the ledger"
	rp_control fault '{"times":3,"when":{"op":"listVolumes"},"do":{"status":200,"body":"{\"networkVolumes\":[]}"}}' >/dev/null
	LIMIT=180 burst run --json
	all_done 3
	has err.txt "volume v: runpod was told to create it a moment ago; looking for it for "
	is "$(asked createVolume) $(volumes_alive)" "1 1" "volumes that were made, and that are left"
	cloud_over
}

no_volume() { # no_volume STATUS WORDS WHAT: nothing was made, neither a volume nor a pod
	burst run --json
	is "$STATUS" "$1" "exit status with $3 ($(tail -n 2 err.txt | tr '\n' '|'))"
	has err.txt "$2"
	is "$(asked createVolume)" 0 "volumes made with $3"
	is "$(pods_ever)" 0 "pods with $3"
}
t_no_volume_without_an_offer() { # it bills for ever and ties the job to its data centre: names, cloud, price and stock come first
	cloud || return
	script_lines 3
	GPUS='"RTX 4900"' rp_config 'wait = "3s";'
	no_volume 2 'did you mean "RTX 4090"?' "a misspelt GPU"
	RUNPOD='cloud = "COMMUNITY";' GPUS='"RTX 4090"' rp_config 'wait = "3s";'
	no_volume 2 "can only be attached in the SECURE cloud" "the COMMUNITY cloud"
	rp_control stock "{\"gpu\":\"$RTX4090\",\"cloud\":\"SECURE\",\"free\":0}" >/dev/null
	GPUS='"RTX 4090"' rp_config 'wait = "3s";'
	no_volume 4 'volume "v" is created only when there is one' "a GPU that is in the COMMUNITY cloud alone"
	rp_control stock "{\"gpu\":\"$RTX4090\",\"free\":0}" >/dev/null
	no_volume 4 'volume "v" is created only when there is one' "a GPU that is sold out"
	rp_control stock "{\"gpu\":\"$RTX4090\",\"dc\":\"AP-JP-1\",\"free\":4}" >/dev/null
	no_volume 4 "the GPUs of the config are available in AP-JP-1, where no volume can be created" "a GPU where no volumes are"
	rp_control stock "{\"gpu\":\"$RTX4090\",\"dc\":\"US-KS-2\",\"cloud\":\"SECURE\",\"free\":4}" >/dev/null
	burst run --json
	all_done 3 1
	is "$(rp_control requests | jq -c '[.[] | select(.op == "createVolume").body.dataCenter]')" '["US-KS-2"]' "where the volume is"
	cloud_over
}

t_a_volume_is_warmed() { # from the cheapest CPU pod beside it; the GPU pod finds the environment and does not set it up
	cloud || return
	script_lines 40
	slow_worker SLOW=0.6
	JOB="$JOB"' setup = "{ echo once; command -v nvidia-smi; } >$BURST_ENV/where; sleep 3; echo x >$BURST_ENV/weights";' \
		POD='cpu = 16; memory_gb = 64; disk_gb = 40;' rp_config 'spot = true; pods = 2; code = { path = "code"; };'
	burst volume warm v
	is "$STATUS" 2 "exit status: there is no such volume"
	rp_api POST /v2/network-volumes '{"name":"v","size":10,"dataCenter":"US-KS-2"}'
	local folder
	folder=$RP_STATE/volumes/$(jq -r .id reply.json)
	burst volume warm v --memory 7
	is "$STATUS" 0 "exit status ($(tail -n 2 err.txt | tr '\n' '|'))"
	has err.txt 'volume v of runpod in US-KS-2: filled from a pod without a GPU for $0.0827 an hour; at most $0.0242 in all'
	has out.txt 'volume v of runpod: ready for job "e2e", for $'
	rp_control requests | jq -c '.[] | select(.op == "createPod") | .body | [.cpu, .gpu, .disk, .dataCenterIds]' >created
	is "$(cat created)" '[{"id":"cpu3g","vcpuCount":2},null,20,["US-KS-2"]]' "what was rented"
	is "$(cat "$folder"/env/*/where)" once "setups, on a pod without a GPU"
	burst run --json
	all_done 40 3
	is "$(json '.pods[0].gpu')" "RTX 4090" "what the run rented"
	is "$(cat "$folder"/env/*/where)" once "setups"
	is "$(json '[.pods[].phases.sync_s + .pods[].phases.load_s | . < 2] | all')" true "no setup time"
	cloud_over
}

created() { # what was created, in order: the card, or "cpu"
	rp_control requests | jq -r '[.[] | select(.op == "createPod") | .body | if .cpu then "cpu" else "gpu" end] | join(" ")'
}
gpu_setup_job() { # gpu_setup_job SETUP: of a job that needs a GPU, by a setup that does not
	script_lines 6
	slow_worker SLOW=0.1
	JOB="$JOB"' vram_gb = 8; setup_needs_gpu = false; estimate = { each = 0.002; }; setup = "'"$1"'";' GPUS='"RTX 4090", "RTX 5090"' \
		rp_config 'pods = 1; code = { path = "code"; };'
}
t_a_gpu_pod_never_downloads() { # the first run makes the volume, a CPU pod fills it, then a GPU is rented
	cloud || return
	local folder gpus='"RTX 5090"'
	gpu_setup_job '{ echo once; command -v nvidia-smi; true; } >$BURST_ENV/where'
	rp_control stock '{"gpu":"NVIDIA GeForce RTX 5090","dc":"CA-MTL-1","cloud":"SECURE","free":4}' >/dev/null
	LIMIT=240 burst run --json --deadline 40m
	all_done 6
	is "$(created)" "cpu gpu" "what was rented"
	is "$(ledger "select count(*) from choice where deadline_ms <= 2400000 + (select started_ms from run where type = 'warm')")" 1 \
		"a deadline counts from the start of the command, not from the end of the filling"
	is "$(json '[.pods[].gpu] | join(" ")')" "RTX 4090" "pods of the run"
	folder=$(echo "$RP_STATE"/volumes/*)
	is "$(cat "$folder"/env/*/where)" once "setups, on a pod without a GPU"
	has err.txt 'volume v of runpod lacks what the job'"'"'s setup makes: a pod without a GPU fills it before GPUs are rented'
	has err.txt 'volume v of runpod: ready for job "e2e", for $'
	is "$(ledger "select group_concat(type, ' ') from (select type from run order by started_ms)")" "warm tts" "runs in the ledger"
	is "$(ledger "select count(*) from run where type = 'tts' and max_cost_microusd < (select max_cost_microusd from run where type = 'warm')")" 1 \
		"the warming counts toward max_cost"
	rm -rf out
	sed -i "s/^gpu .*/gpu = [$gpus];/" burst.cfg # another kind of card finds it, too
	LIMIT=240 burst run --json
	all_done 6
	is "$(created)" "cpu gpu gpu" "what was rented by both runs"
	is "$(json '[.pods[].gpu] | join(" ")')" "RTX 5090" "pods of the second run"
	cloud_over
}
t_calibrate_never_downloads_on_a_gpu() { # one CPU pod fills the volume for all cards; its cost is in the sum and counts toward --max-cost
	cloud || return
	gpu_setup_job '{ echo once; command -v nvidia-smi; true; } >>$BURST_ENV/where'
	rp_control stock '{"gpu":"NVIDIA GeForce RTX 5090","dc":"CA-MTL-1","cloud":"SECURE","free":4}' >/dev/null
	LIMIT=240 burst calibrate -y --max-cost 0.40 --json
	is "$STATUS" 0 "calibrate ($(tail -n 2 err.txt | tr '\n' '|'))"
	is "$(created)" "cpu gpu gpu" "what was rented"
	is "$(cat "$RP_STATE"/volumes/*/env/*/where)" once "setups, on a pod without a GPU"
	has err.txt 'a pod without a GPU fills it before GPUs are rented'
	is "$(ledger "select group_concat(type, ' ') from (select type from run order by started_ms)")" "warm calibrate calibrate" "runs in the ledger"
	is "$(json '.cost_usd')" "$(ledger "select sum(cost_microusd) / 1e6 from run")" "its cost, with the warming"
	cloud_over
}
t_without_a_cpu_pod_the_gpu_pod_downloads() {
	cloud || return
	gpu_setup_job 'echo once >>$BURST_ENV/where'
	rp_control stock '{"cpu":0}' >/dev/null
	burst run --json
	all_done 6
	is "$(created)" gpu "what was rented"
	has err.txt 'no pod without a GPU is free beside volume v of runpod: the first GPU pod runs the setup'
	cloud_over
}
t_a_setup_that_fails_rents_no_gpu() {
	cloud || return
	gpu_setup_job 'echo burst: no such weights >&2; exit 1'
	burst run --json
	is "$STATUS" 1 "exit status ($(tail -n 2 err.txt | tr '\n' '|'))"
	is "$(created)" cpu "what was rented"
	has err.txt 'no such weights'
	has err.txt 'volume v of runpod could not be filled from a pod without a GPU (exit status 1): no GPU was rented'
	is "$(jq -s length out.txt)" 1 "objects on stdout"
	cloud_over
}

t_a_cpu_pod_that_is_lost_is_replaced_by_one() { # while it fills the volume
	cloud || return
	gpu_setup_job 'echo once >>$BURST_ENV/where; sleep 4'
	rp_fault F15 '"ms":5000,"to":"TERMINATED"'
	LIMIT=240 burst run --json
	all_done 6
	is "$(created)" "cpu cpu gpu" "what was rented"
	cloud_over
}
t_a_cpu_pod_that_is_lost_for_good_rents_no_gpu() { # no other one is free within `wait`
	cloud || return
	gpu_setup_job 'echo once >>$BURST_ENV/where; sleep 60'
	sed -i 's/^caps/wait = "5s"; caps/' burst.cfg
	rp_fault F15 '"ms":5000,"to":"EXITED"'
	rp_fault F5 '"skip":1,"times":-1'
	LIMIT=240 burst run --json
	is "$STATUS" 4 "exit status ($(tail -n 2 err.txt | tr '\n' '|'))"
	created >requests.txt
	hasnt requests.txt gpu
	has err.txt 'volume v of runpod: the pod without a GPU that filled it was lost, and no other was free in time: no GPU was rented'
	is "$(jq -s length out.txt)" 1 "objects on stdout"
	cloud_over
}

t_a_setup_is_of_one_kind_of_card() { # what the user's own setup compiles runs on cards of one architecture alone
	cloud || return
	script_lines 3
	slow_worker SLOW=0.1
	local job=$JOB gpu folder seed=0
	rp_api POST /v2/network-volumes '{"name":"v","size":10,"dataCenter":"EU-RO-1"}'
	for gpu in 'RTX 4090' 'RTX 5090' 'RTX 4090'; do
		seed=$((seed + 1))
		rm -rf out
		JOB="$job seed = $seed; vram_gb = 8;"' setup = "echo once >$BURST_ENV/made";' GPUS="\"$gpu\"" rp_config 'pods = 1; code = { path = "code"; };'
		burst run --json --allow-volume v
		is "$(json ".pods[0].gpu")" "$gpu" "what was rented ($STATUS: $(tail -n 1 err.txt))"
		all_done 3
	done
	folder=$(echo "$RP_STATE"/volumes/*)
	is "$(cat "$folder"/env/*/made | wc -l)" 2 "setups: one for sm_89, one for sm_120"
	cloud_over
}
# What torch of the image has no kernels for is rented once: the run goes on with the next card, and later ones leave it out.
t_a_card_without_kernels_is_left_out() {
	cloud || return
	script_lines 6
	slow_worker SLOW=0.1
	cat >code/picky.sh <<-'E'
		case $(nvidia-smi --query-gpu=name --format=csv,noheader) in
		*5090*) echo '{"hello":1,"protocol":1,"error":"torch 2.6.0 has no kernels for it","unfit":"card"}'; exit 1 ;;
		esac
		exec sh "$BURST_CODE/worker.sh"
	E
	JOB='worker = "sh \"$BURST_CODE/picky.sh\""; vram_gb = 8; estimate = { each = 0.002; }; check = { enabled = false; };'
	GPUS='"RTX 5090", "RTX 4090"' rp_config 'pods = 1; code = { path = "code"; };'
	burst run --json
	is "$(json '[.pods[].gpu] | join(" ")')" "RTX 5090 RTX 4090" "what was rented ($STATUS: $(tail -n 1 err.txt))"
	is "$(json '[.pods[].released] | all')" true released
	is "$(json '.pods[0].compute_seconds')" 0 "what the first one rendered"
	has err.txt 'no worker can run there: torch 2.6.0 has no kernels for it; name another image than host/tts:1 in pod.image, or leave RTX 5090 out of gpu'
	all_done 6
	rm -rf out
	burst plan
	is "$STATUS" 0 "plan ($(tail -n 2 err.txt | tr '\n' '|'))"
	grep -q '^left out: RTX 5090.*: torch 2.6.0 has no kernels for it (image host/tts:1, reported by a pod on 20' out.txt || complain "the plan: $(grep -i 5090 out.txt)"
	burst plan --json
	is "$(json '.cards_left_out | map([.provider, .gpu] | join(" ")) | join(", ")')" "runpod RTX 5090" "what plan --json leaves out"
	case $(json '.cards_left_out[0].why') in "torch 2.6.0 has no kernels for it (image host/tts:1, reported by a pod on 20"*) ;; *) complain "why: $(json '.cards_left_out[0].why')" ;; esac
	burst run --json
	is "$(json '[.pods[].gpu] | join(" ")')" "RTX 4090" "what the second run rented"
	has err.txt 'left out: RTX 5090 at runpod: torch 2.6.0 has no kernels for it (image host/tts:1, reported by a pod on 20'
	all_done 6
	# nothing else will do: nothing is rented
	rm -rf out
	GPUS='"RTX 5090"' rp_config 'pods = 1; code = { path = "code"; };'
	burst run --json
	is "$STATUS" 4 "exit status with that card alone ($(tail -n 2 err.txt | tr '\n' '|'))"
	has err.txt 'no card on offer can run the job: RTX 5090'
	is "$(pods_ever)" 3 "pods that were made"
	burst doctor
	has out.txt 'runpod: RTX 5090 skipped since 20'
	# another image may have them
	sed -i 's|host/tts:1|host/tts:2|' burst.cfg
	burst plan
	is "$STATUS" 0 "plan with another image ($(tail -n 2 err.txt | tr '\n' '|'))"
	! grep -q 'left out' out.txt || complain "with another image: $(grep 'left out' out.txt)"
	sed -i 's|host/tts:2|host/tts:1|' burst.cfg
	burst doctor --forget-cards
	has out.txt 'runpod: RTX 5090 may be rented again'
	burst plan
	is "$STATUS" 0 "plan when it is forgotten ($(tail -n 2 err.txt | tr '\n' '|'))"
	cloud_over
}
t_a_warming_that_needs_a_gpu() {
	cloud || return
	script_lines 2
	JOB='setup = "nvidia-smi";' rp_config
	rp_api POST /v2/network-volumes '{"name":"v","size":10,"dataCenter":"EU-RO-1"}'
	burst volume warm v
	is "$STATUS" 1 "exit status"
	has err.txt "setup failed: "
	has err.txt "nvidia-smi: not found"
	has err.txt "if its setup ran out of the pod's 4 GB of memory: burst volume warm v --memory GB"
	is "$(pods_ever)" 1 "pods that were made"
	rp_control stock '{"cpu":0}' >/dev/null
	sed -i 's/^caps/wait = "2s"; caps/' burst.cfg
	burst volume warm v
	is "$STATUS" 4 "exit status without a CPU pod"
	has err.txt "a pod without a GPU, none of which is available now; at most \$2.00 in all"
	has err.txt "no CPU pod is available at RunPod now"
	cloud_over
}

t_a_cpu_pod_must_do() { # what it cannot be is said before anything is rented; a GPU that is sold out gives way to one
	cloud || return
	script_lines 3
	GPUS='"none"' POD='cpu = 64;' rp_config
	burst run --json
	is "$STATUS" 2 "exit status"
	has err.txt "no CPU pod of RunPod's has 64 vCPUs: lower pod.cpu, pod.memory_gb or pod.disk_gb"
	GPUS='"none"' JOB='vram_gb = 8;' rp_config
	burst run --json
	is "$STATUS" 2 "exit status"
	has err.txt 'this job needs a GPU with 8 GB of memory'
	is "$(pods_ever)" 0 "pods that were made"
	GPUS='"RTX 4090", "none"' rp_config
	rp_control stock "{\"gpu\":\"$RTX4090\",\"free\":0}" >/dev/null
	burst run --json
	all_done 3 1
	is "$(json '.pods[0].gpu')" none gpu
	cloud_over
}

answers() { # answers JSON: so it answers whatever it is asked, and what it knew of the account's limits is forgotten
	curl -qsS -X DELETE "$RUNPOD_API_URL/_control/faults" >/dev/null
	rp_control fault "{\"times\":-1,\"when\":{\"op\":\".*\"},\"do\":$1}" >/dev/null
	ledger "delete from fact where name not like 'volume%'"
}
t_reasons_are_told_apart() { # four things that want something else done; and nobody waits where that cannot help
	cloud || return
	script_lines 3
	rp_config 'wait = "10m";'
	burst ledger
	answers '{"status":402,"detail":"insufficient balance"}'
	each_says 3 "insufficient balance (the account cannot pay: add credit at RunPod's console)"
	answers '{"status":401,"detail":"unauthorized"}'
	each_says 3 "RunPod's console makes one: Settings, API Keys)"
	answers '{"status":403,"detail":"forbidden"}'
	each_says 3 "(the API key or the account has no access to this)"
	rp_config 'wait = "12s";'
	sed -i '/volume = {/d' burst.cfg # which is looked for before a run begins
	answers '{"status":500,"detail":"internal error"}'
	each_says 6 "HTTP 500 from RunPod: internal error"
	has err.txt "asking again in"
	burst run
	has err.txt "provider failed: runpod: offers: HTTP 500 from RunPod: internal error; next try in "
	answers '{"reset":true}'
	burst run
	is "$STATUS" 6 "a line that is cut"
	has err.txt "no network: runpod: offers: "
	other_reasons RUNPOD_API_URL "$RUNPOD_API_URL/_control/faults"
	cloud_over
}
t_a_long_retry_after_is_told() { # at once
	cloud || return
	script_lines 3
	rp_config
	burst ledger
	answers '{"status":429,"detail":"slow down","headers":{"Retry-After":"3600"}}'
	burst offers
	is "$STATUS" 6 "exit status of the first one"
	grep -qE 'slow down \(to be asked again in (59m|1h)' err.txt || complain "the first one: $(tail -n 1 err.txt)"
	local began=$SECONDS
	burst offers
	is "$STATUS" 6 "exit status ($(cat err.txt))"
	grep -qE 'rate limit: .* the next one may be sent in (59m|1h)' err.txt || complain "offers: $(tail -n 1 err.txt)"
	burst doctor
	grep -qE 'bad  runpod: rate limit: .* the next one may be sent in (59m|1h)' out.txt || complain "doctor: $(grep runpod out.txt)"
	[ $((SECONDS - began)) -le 30 ] || complain "it took $((SECONDS - began)) s"
	curl -qsS -X DELETE "$RUNPOD_API_URL/_control/faults" >/dev/null
	cloud_over
}
t_told_beforehand() { # what a run would rent, and what would stop it
	cloud || return
	script_lines 3
	rp_config
	sed -i 's/create = true/create = false/' burst.cfg
	burst run --json
	is "$STATUS" 2 "exit status of a run without its volume"
	has err.txt 'no volume "v" at RunPod: `burst volume create v`'
	burst plan
	is "$STATUS" 2 "exit status of plan"
	burst doctor
	is "$STATUS" 1 "exit status of doctor"
	has out.txt 'bad  runpod: no volume "v" at RunPod'
	allow_volumes v
	rp_api POST /v2/network-volumes '{"name":"v","size":10,"dataCenter":"US-TX-3"}'
	burst plan
	is "$(grep -oE '[A-Z]+-[A-Z]+-[0-9]' out.txt | sort -u)" US-TX-3 "where plan looks"
	burst offers
	has out.txt EU-RO-1 # all there is
	burst doctor
	is "$STATUS" 0 "exit status of doctor ($(grep ^bad out.txt))"
	has out.txt "runpod: 2 offers for this job, first RTX 4090, \$0.6955 an hour"
	has out.txt "runpod: no pod has reported yet whether it can end itself"
	GPUS='"H100 SXM", "RTX 4900", "RTX 4090"' rp_config
	burst run --json
	all_done 3 1
	has err.txt 'catalog has no GPU called "RTX 4900"; did you mean "RTX 4090"?'
	has err.txt 'but not in US-TX-3, where volume "v" is: skipped'
	burst doctor
	has out.txt "runpod: the pods' call to end themselves answered on"
	GPUS='"RTX 4900"' rp_config
	rm -r out
	for how in run plan doctor; do
		burst $how
		has <(cat out.txt err.txt) 'catalog has no GPU called "RTX 4900"; did you mean "RTX 4090"?'
		is "$how $STATUS" "$how $([ $how = doctor ] && echo 1 || echo 2)" "exit status with a GPU that there is not"
	done
	is "$(pods_ever)" 1 "pods that ever were"
	rp_config
	rp_control settings '{"balance":1.25}' >/dev/null
	burst doctor
	is "$STATUS" 1 "exit status of doctor without money"
	has out.txt 'bad  runpod: balance $1.25 cannot pay'
	RUNPOD_API_KEY=wrong burst doctor
	is "$(grep -c "HTTP 401" out.txt)" 1 "how often a wrong key is told"
	cloud_over
}

t_a_volume_is_tidied() { # over S3, file by file; what lists say is not relied upon
	cloud || return
	script_lines 5
	rp_config
	burst run --json
	all_done 5 1
	local run folder keys=$RUNPOD_S3_SECRET_KEY
	run=$(json .run)
	folder=$RP_STATE/volumes/$(rp_control state | jq -r '.volumes[0].id')
	mkdir -p "$folder/env/.half.00f1/lib" "$folder/runs/strange/p"
	echo old | tee "$folder/env/.half.00f1/lib/x&y.txt" >"$folder/runs/strange/p/a b#c.wav"
	touch -d '40 days ago' "$folder/env/.half.00f1/lib/x&y.txt" "$folder/runs/strange/p/a b#c.wav"
	unset RUNPOD_S3_SECRET_KEY RUNPOD_S3_ACCESS_KEY
	burst volume gc v --older-than 0s
	is "$STATUS" 3 "exit status without keys"
	has err.txt "need RUNPOD_S3_ACCESS_KEY and RUNPOD_S3_SECRET_KEY (made in RunPod's console"
	burst volume gc
	is "$STATUS" 0 "exit status without keys, for all"
	has err.txt "unless it has keys for that"
	export RUNPOD_S3_SECRET_KEY=$keys RUNPOD_S3_ACCESS_KEY
	RUNPOD_S3_ACCESS_KEY=$(cat "$RP_STATE/s3.access")
	burst volume gc v --older-than 0s -n
	has out.txt "v: runs/$run would be removed ("
	has out.txt "v: env/.half.00f1 would be removed (1 kB): an unfinished build"
	[ -d "$folder/runs/$run" ] || complain "a dry run removed it"
	rp_fault F23 '"times":2'
	burst volume gc v --older-than 0s
	is "$STATUS" 0 "gc ($(tail -n 1 err.txt))"
	has out.txt "v: runs/$run removed ("
	has out.txt "runs/strange stays: not in this ledger"
	[ ! -e "$folder/runs/$run" ] && [ ! -e "$folder/env/.half.00f1" ] || complain "it is still there: $(find "$folder/runs" "$folder/env" | head -n 5 | tr '\n' ' ')"
	[ -f "$folder/runs/strange/p/a b#c.wav" ] || complain "a stranger's run went"
	[ -n "$(ls "$folder/agent")" ] || complain "the agent is gone too"
	burst volume gc v --older-than 0s --force -y
	has out.txt "v: runs/strange removed ("
	[ ! -e "$folder/runs/strange" ] || complain "the stranger's run is still there"
	rp_fault F23 '"way":"loop","times":50'
	mkdir -p "$folder/runs/other"
	burst volume gc v --older-than 0s
	is "$STATUS" 6 "exit status: pages in a loop"
	has err.txt "the same page repeatedly"
	cloud_over
}

t_an_image_on_a_terminal() { # how far it is, as the pod's log says
	cloud || return
	script_lines 6
	rp_config 'pods = 1;'
	rp_control fault '{"when":{"op":"createPod"},"do":{"pod":{"pull_ms":24000,"pull_says_ms":500,"pull_percent":1}}}' >/dev/null
	TERM=xterm timeout -k 5 100 python3 "$ROOT/tests/e2e/terminal.py" 80x24 'expect:image [4-9][0-9] %' \
		'expect:waiting for the RTX [45]090 image: [4-9][0-9] %' end -- "$BURST" run >term.txt 2>&1
	is $? 0 "exit status ($(cat term.txt))"
	is "$(wavs)" 6 files
	cloud_over
}

t_keeps_the_contract_of_providers() {
	local why
	why=$(rp_can) || { skip "$why"; return; }
	rp_start || return
	make -s -C "$ROOT" BUILD=build e2e-tools || complain "it does not build"
	timeout 120 "$ROOT/build/e2e/conform" runpod >said.txt 2>&1 || complain "$(grep -m 2 -v '^\[' said.txt | tr '\n' ' ')"
	rp_stop
}
t_a_balance_below_the_cap() { # refused before anything is rented
	cloud || return
	script_lines 3
	rp_config
	rp_control settings '{"balance":1.25}' >/dev/null
	burst run --json
	is "$STATUS" 3 "exit status"
	has err.txt 'runpod: the balance of $1.25 cannot pay this run'"'"'s cap of $2.00: add credit, or lower caps.max_cost'
	is "$(json .error.code)" balance code
	is "$(rp_control state | jq '.pods | length')" 0 "pods that were made"
	cloud_over
}

t_no_secret_is_seen() {
	cloud || return
	script_lines 12
	slow_worker SLOW=0.3
	rp_config 'code = { path = "code"; };'
	burst_bg run --json --trace -v
	while running_as "$PID"; do # every command line on this machine, the pods' included
		cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\0' '\n' >>cmdlines
		read -rt 0.1 <> <(:) || :
	done
	burst_wait
	all_done 12 1
	no_secrets_in cmdlines err.txt out.txt state out
	has cmdlines worker.sh
	has err.txt BURST_HARD_END
	cloud_over
}

run_tests "$@"
