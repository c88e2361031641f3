# runpod.sh - the part `runpod` of bench.sh, in a shell of its own: 300 questions on pods of the stand-in for RunPod, by burst
# and by the script that one would write with curl, ssh and rsync: create, poll, ssh until it answers, rsync code and input,
# run the worker, rsync the outputs, DELETE, poll until it is gone. Same image, GPU and worker for both.
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
peer_row() { # peer_row PODS
	local before billed cost p parts=()
	rm -rf "$work/peer" "$work/peer.out$1"
	# shellcheck disable=SC2046
	recipe_parts $(seq -f "$work/peer/%g" 0 $(($1 - 1)))
	read -r billed cost < <(meter)
	mkdir -p "$work/peer.out$1"
	before=$(now_us)
	for p in $(seq 0 $(($1 - 1))); do
		peer_pod "$p" "$work/peer.out$1" >"$work/peer/compute$p" &
		parts+=($!)
	done
	wait "${parts[@]}"
	row $((($(now_us) - before) / 1000)) "$(cat "$work"/peer/compute* | awk '{n += $1} END {print n}')" "$billed" "$cost"
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

say() { # say WHO FOLDER ROWS
	local billed compute
	billed=$(column "$3" 2) compute=$(column "$3" 3)
	echo "$1: $(wavs "$2") files, wall $(seconds "$(column "$3" 1)") s, billed $(seconds "$billed") s, compute $(seconds "$compute") s," \
		"\$$(awk "BEGIN {printf \"%.5f\", $(column "$3" 4) / 1e6}"); billed / compute $(ratio "$billed" "$compute")"
}
against() { ratio "$(column "$work/rp.burst" "$2")" "$(column "$work/rp.peer$1" "$2")"; } # against PODS COLUMN

runpod_bench() {
	local why i n
	why=$(rp_can) || { echo "# RunPod: left out: $why"; return; }
	T=$work/runpod
	mkdir -p "$T"
	RP_SLOW=1 rp_start || return
	rp_control settings '{"boot":{"provision_ms":1000,"pull_ms":5500,"direct_ms":500,"banner_ms":1000},"rtt_ms":80,
		"quotas":{"minute":6000,"hour":60000,"day":600000}}' >/dev/null
	echo "# RunPod (its stand-in): 300 questions, up to two pods, boot 8 s, 80 ms away (API and SSH); against a script of curl, ssh and"
	echo "# rsync with one pod or two at once, one connection each (ControlMaster). Medians of ${ROUNDS:-3}; billed and cost by the stand-in's own meter"
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
		for n in 1 2; do peer_row $n >>"$work/rp.peer$n"; done
	done
	say burst "$work/out" "$work/rp.burst"
	echo "... on $(column "$work/rp.pods" 1) of the 2 that it may have; $(seconds "$(column "$work/rp.pods" 2)") s of its wall are proof that they are gone: two listings 5 s apart"
	for n in 1 2; do
		say "script, $n at once" "$work/peer.out$n" "$work/rp.peer$n"
		echo "burst / script: wall $(against "$n" 1), billed $(against "$n" 2), compute $(against "$n" 3), cost $(against "$n" 4)"
	done
	rp_stop
}
