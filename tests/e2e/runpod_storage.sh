#!/bin/bash
# runpod_storage.sh - RunPod's volumes without a pod, through their S3-compatible API: code goes there before a pod is rented,
# GPU pods go before all of their files are home, and the delivery runs on a pod without a GPU.
# shellcheck disable=SC2016
. "$(dirname "$0")/lib.sh"
. "$ROOT/tests/cloud/runpod/client.sh"

hashing() { # hashing KILOBYTES: a command that hashes the code it was sent
	mkdir -p code/deep
	head -c $(($1 * 512)) /dev/urandom >code/one
	head -c $(($1 * 512)) /dev/urandom >code/deep/two
	command_job 'cat one deep/two | sha256sum >sum' '"sum"' 'code = { path = "code"; };'
}
command_job() { # command_job RUN OUTPUTS [KEYS]
	rp_config "$3"
	sed -i '/^job = /d' burst.cfg
	printf 'job = { name = "e2e"; type = "command"; run = "%s"; outputs = [%s]; output = "out"; };\n' "$1" "$2" >>burst.cfg
}
right_sum() {
	is "$STATUS" 0 "exit status ($(tail -n 3 err.txt | tr '\n' '|'))"
	is "$(cat out/sum)" "$(cat code/one code/deep/two | sha256sum)" "what the pod had"
	is "$(pods_ever)" 1 "pods that ever were"
}
order() { # the requests by their names, those that follow each other once
	rp_control requests | jq -r '.[].op' | grep -E "createPod|deletePod|s3:" | uniq | tr '\n' ' '
}
on_the_volume() { # what is left there of the staging
	find "$RP_STATE"/volumes -path '*/staged/*' | wc -l
}

c_code_goes_first() {
	hashing 12000
	burst run --json -v
	right_sum
	has err.txt "kB on volume v before a pod is rented"
	has err.txt ": code: on the volume already"
	is "$(order)" "s3:PutObject s3:HeadObject createPod deletePod " "what was asked, in order"
	is "$(on_the_volume)" 0 "what is left staged"
}
c_little_code_goes_meanwhile() {
	hashing 200
	burst run --json -v
	right_sum
	hasnt err.txt "before a pod is rented"
	has err.txt "stored on volume v without a pod"
}
c_an_upload_is_lost() { # accepted, and then it is not there
	rp_control fault '{"when":{"op":"s3:PutObject"},"do":{"lose":true}}' >/dev/null
	hashing 12000
	burst run --json -v
	right_sum
	has err.txt "sending it over SSH"
}
c_the_storage_is_full() {
	rp_fault F23 '"way":"full","times":99'
	hashing 12000
	burst run --json -v
	right_sum
	has err.txt "sending it over SSH"
	is "$(asked s3:PutObject)" 1 "uploads tried"
}
c_the_storage_is_busy() {
	rp_fault F23 '"times":3'
	hashing 12000
	burst run --json -v
	right_sum
	has err.txt ": code: on the volume already"
}
c_keys_of_the_storage_are_refused() {
	export RUNPOD_S3_SECRET_KEY=wrong
	hashing 12000
	burst run --json -v
	right_sum
	has err.txt "sending it over SSH"
}
c_a_data_centre_without_storage() { # its volumes cannot be reached without a pod: nothing is built upon that
	unset RUNPOD_S3_URL
	hashing 12000
	allow_volumes v
	rp_api POST /v2/network-volumes '{"name":"v","size":10,"dataCenter":"US-TX-3"}'
	burst run --json -v
	right_sum
	hasnt err.txt "without a pod"
}

c_pods_go_before_their_files() { # the line to the pods is slow, the storage is not
	local api=${RUNPOD_API_URL##*:} s3=${RUNPOD_S3_URL##*:}
	command_job 'for i in 1 2 3 4 5 6; do head -c 4000000 /dev/urandom >$BURST_INDEX-$i.bin; done' '"*.bin"' 'pods = 2;'
	export DETOUR_NOT=" ${api%%/*} ${s3%%/*} "
	through '*.*=delay:80'
	burst run --json -v
	is "$STATUS" 0 "exit status ($(tail -n 3 err.txt | tr '\n' '|'))"
	is "$(find out -name '*.bin' -size 4000000c | wc -l)" 12 files
	is "$(pods_ever)" 2 "pods that ever were"
	is "$(grep -c 'are fetched from there after it is released' err.txt)" 2 "pods let go early"
	[ "$(asked s3:GetObject '.status == 200')" -ge 2 ] || complain "nothing was read from the volume"
	relay_stop
}
c_it_is_delivered_without_a_gpu() {
	script_lines 6
	JOB='' rp_config 'deliver = { run = "ls \"$BURST_OUTPUTS\" | grep -c wav >count; command -v nvidia-smi >>count; true"; outputs = ["count"]; cpu = 4; };'
	burst run --json -v
	all_done 6 2
	is "$(cat out/count)" 6 "files that it found, without a GPU"
	is "$(json .deliver.status)" "done" "the delivery"
	rp_control requests | jq -c '.[] | select(.op == "createPod" and .body.cpu) | [.body.cpu.vcpuCount, .body.gpu, .body.mounts.network[0].volumeId]' >created
	is "$(cat created)" "[4,null,\"$(rp_control state | jq -r '.volumes[0].id')\"]" "the pod that delivered"
	is "$(order | tr ' ' '\n' | grep -v s3: | uniq | tr '\n' ' ')" "createPod deletePod createPod deletePod " "the GPU pod went before the other one came"
	# a new volume of that name has nothing of it, which is known before a pod is rented
	burst volume rm -y v
	burst volume create v
	is "$STATUS" 0 "making the volume anew ($(tail -n 2 err.txt))"
	script_lines 7
	burst run -v
	is "$STATUS" 0 "exit status with a new volume ($(tail -n 3 err.txt))"
	is "$(cat out/count)" 7 "files that it found then"
	hasnt err.txt "removed from the volume"
}
c_a_wrong_secret() { # is found before a pod counts on it: doctor says bad, a run rents nothing
	hashing 10
	burst volume create v
	is "$STATUS" 0 "the volume ($(tail -n 2 err.txt))"
	burst doctor
	has out.txt 'ok   runpod: keys for files of a volume without a pod are accepted (volume "v")'
	local -x RUNPOD_S3_SECRET_KEY=rps_not_the_one_that_was_made
	burst doctor
	is "$STATUS" 1 "doctor's exit status"
	has out.txt "bad  runpod: RunPod's storage refuses RUNPOD_S3_ACCESS_KEY and RUNPOD_S3_SECRET_KEY (HTTP 403"
	burst run --json
	is "$STATUS" 3 "exit status ($(tail -n 2 err.txt))"
	has err.txt "RunPod's storage refuses RUNPOD_S3_ACCESS_KEY and RUNPOD_S3_SECRET_KEY (HTTP 403 for volume \"v\")"
	hasnt err.txt rps_not_the_one
	is "$(pods_ever)" 0 "pods that ever were"
}
t_volumes_without_a_pod() {
	cases c_code_goes_first c_little_code_goes_meanwhile c_an_upload_is_lost c_the_storage_is_full c_the_storage_is_busy \
		c_keys_of_the_storage_are_refused c_a_wrong_secret c_a_data_centre_without_storage c_pods_go_before_their_files c_it_is_delivered_without_a_gpu
}
run_tests "$@"
