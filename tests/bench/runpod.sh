# runpod.sh - the part `runpod` of bench.sh, in a shell of its own: 300 questions on two pods of the stand-in for RunPod, by burst
# and by the script that one would write with curl, ssh and rsync: create, poll, ssh until it answers, rsync code and input,
# run the worker, rsync the outputs, DELETE, poll until it is gone. Same image, GPU, worker and halves for both.
# shellcheck shell=bash disable=SC2154,SC2034
. tests/e2e/lib.sh
. tests/cloud/runpod/lib.sh
PEER_IMAGE=runpod/pytorch:1.0.2-cu1281-torch280-ubuntu2404
PEER_GPU='NVIDIA GeForce RTX 4090'
complain() { echo "bench: $*" >&2; }

# ---- the script, for one pod ----

peer_api() { # peer_api METHOD PATH [BODY]: prints the body, then the status in a line of its own
	curl -sS -X "$1" -H "Authorization: Bearer $RUNPOD_API_KEY" -w '\n%{http_code}\n' \
		${3+-H "Content-Type: application/json"} ${3+--data "$3"} "$RUNPOD_API_URL/v2$2"
}
peer_pod() { # peer_pod N OUT: prints the ms that its worker took
	local id port host ssh=$work/peer$1.ssh job=$work/peer/$1
	id=$(peer_api POST /pods "$(jq -n --arg name "peer-$1-$serial" --arg image "$PEER_IMAGE" --arg gpu "$PEER_GPU" --arg key "$(cat "$work/client.pub")" \
		'{name: $name, image: $image, gpu: {id: $gpu, count: 1}, disk: 20, ports: ["22/tcp"], env: {PUBLIC_KEY: $key}}')" | jq -r '.id? // empty' | head -n 1)
	[ -n "$id" ] || { complain "the script could not create a pod"; return; }
	while true; do
		read -r host port < <(peer_api GET "/pods/$id" | head -n 1 | jq -r '.ssh.direct | select(.) | "\(.host) \(.port)"') && break
		sleep 2
	done
	cat >"$ssh" <<-E2
		Host pod
			HostName $host
			Port $port
			User root
			IdentityFile $work/client
			UserKnownHostsFile /dev/null
			StrictHostKeyChecking no
			IdentitiesOnly yes
			LogLevel ERROR
			ControlMaster auto
			ControlPath $work/peer$1.master
			ControlPersist 60
	E2
	until ssh -F "$ssh" -o ConnectTimeout=5 pod true </dev/null 2>/dev/null; do sleep 1; done
	rsync -az -e "ssh -F $ssh" "$job/" pod:/root/job/
	# shellcheck disable=SC2016
	ssh -F "$ssh" pod 'cd /root/job && mkdir -p out && before=$(date +%s%N) &&
		BURST_OUT=/root/job/out ./espeak-worker <lines.jsonl >worker.log 2>&1; echo $((($(date +%s%N) - before) / 1000000))' </dev/null
	rsync -az -e "ssh -F $ssh" pod:/root/job/out/ "$2/"
	ssh -F "$ssh" -O exit pod 2>/dev/null
	peer_api DELETE "/pods/$id" >/dev/null
	until [ "$(peer_api GET "/pods/$id" | tail -n 1)" = 404 ]; do sleep 2; done
}

# ---- one of each; a row is "wall billed compute cost", in ms and micro-dollars, billed and cost by the stand-in's meter ----

meter() { # of all pods that ever were
	rp_control billing | jq -r '[([.[].seconds] | add // 0) * 1000, ([.[].usd] | add // 0) * 1000000] | map(round) | @tsv'
}
row() { # row WALL COMPUTE BILLED-BEFORE COST-BEFORE
	local billed cost
	read -r billed cost < <(meter)
	echo "$1 $((billed - $3)) $2 $((cost - $4))"
}
peer_row() {
	local before billed cost p halves=()
	rm -rf "$work/peer" "$work/peer.out"
	recipe_halves "$work/peer/0" "$work/peer/1"
	read -r billed cost < <(meter)
	mkdir -p "$work/peer.out"
	before=$(now_us)
	for p in 0 1; do
		peer_pod $p "$work/peer.out" >"$work/peer.compute$p" &
		halves+=($!)
	done
	wait "${halves[@]}"
	row $((($(now_us) - before) / 1000)) "$(awk '{n += $1} END {print n}' "$work"/peer.compute[01])" "$billed" "$cost"
	serial=$((serial + 1))
}
burst_row() {
	local before billed cost wall
	rm -rf "$work/out"
	read -r billed cost < <(meter)
	before=$(now_us)
	"$burst" run "$work/quiz/burst.cfg" -o "$work/out" --json 2>"$work/err" >"$work/json" || cat "$work/err" >&2
	wall=$((($(now_us) - before) / 1000))
	row "$wall" "$(tail -n 1 "$work/json" | jq '.compute_seconds * 1000 | round')" "$billed" "$cost"
	tail -n 1 "$work/json" | jq -r '"\(.pods | length) \([.pods[].phases.release_s] | max * 1000)"' >>"$work/rp.pods"
}

runpod_bench() {
	local why i wall billed compute cost peer_wall peer_billed peer_compute peer_cost
	why=$(rp_can) || { echo "# RunPod: left out: $why"; return; }
	T=$work/runpod
	mkdir -p "$T"
	RP_SLOW=1 rp_start || return
	rp_control settings '{"boot":{"provision_ms":1000,"pull_ms":5500,"direct_ms":500,"banner_ms":1000},"rtt_ms":80,
		"quotas":{"minute":6000,"hour":60000,"day":600000}}' >/dev/null
	echo "# RunPod (its stand-in): 300 questions, two pods, boot 8 s, 80 ms away (API and SSH); against a script of curl, ssh and rsync,"
	echo "# two pods at once, one connection each (ControlMaster). Medians of ${ROUNDS:-3}; billed and cost by the stand-in's own meter"
	rm -rf "$work/quiz"
	mkdir -p "$work/quiz"
	cp config/examples/quiz/quiz.jsonl "$work/quiz/"
	cat >"$work/quiz/burst.cfg" <<-E
		provider = "runpod";
		gpu = ["RTX 4090"];
		pods = 2;
		caps = { max_cost = 1.00; max_duration = "30m"; };
		pod = { image = "$PEER_IMAGE"; disk_gb = 20; };
		job = { name = "quiz"; type = "tts"; engine = "espeak"; input = "quiz.jsonl"; voice = "en-us"; output = "out"; };
	E
	for i in $(seq "${ROUNDS:-3}"); do
		burst_row >>"$work/rp.burst"
		peer_row >>"$work/rp.peer"
	done
	wall=$(column "$work/rp.burst" 1) billed=$(column "$work/rp.burst" 2) compute=$(column "$work/rp.burst" 3) cost=$(column "$work/rp.burst" 4)
	peer_wall=$(column "$work/rp.peer" 1) peer_billed=$(column "$work/rp.peer" 2) peer_compute=$(column "$work/rp.peer" 3)
	peer_cost=$(column "$work/rp.peer" 4)
	say() { echo "$1: $(wavs "$2") files, wall $(seconds "$3") s, billed $(seconds "$4") s, compute $(seconds "$5") s, \$$(awk "BEGIN {printf \"%.5f\", $6 / 1e6}"), billed / compute $(ratio "$4" "$5")"; }
	say burst "$work/out" "$wall" "$billed" "$compute" "$cost"
	echo "... on $(column "$work/rp.pods" 1) pods; $(seconds "$(column "$work/rp.pods" 2)") s of the wall are proof that they are gone: two listings 5 s apart"
	say script "$work/peer.out" "$peer_wall" "$peer_billed" "$peer_compute" "$peer_cost"
	echo "burst / script: wall $(ratio "$wall" "$peer_wall"), billed $(ratio "$billed" "$peer_billed"), compute $(ratio "$compute" "$peer_compute"), cost $(ratio "$cost" "$peer_cost")"
	rp_stop
}
