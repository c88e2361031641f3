#!/bin/bash
# bench.sh - `make bench`: figures of this machine, now, each beside a named peer that is measured in the same run. Medians.
# No pass or fail, but for load, whose aims are held. `tests/bench/bench.sh PART...` runs parts alone: command job start memory sync runpod
# hook submit plan promises queue dial dispatch learning billed pooled load voices weights environment kubernetes (dispatch and learning take two minutes each, pooled five, billed, voices, weights, environment and kubernetes some, load a quarter of an hour:
# these only run when they are named).
set -u
cd "$(dirname "$0")/../.." || exit
burst=${BENCH_BURST:-$PWD/build/burst} # or another one, to compare
work=$(mktemp -d "${TMPDIR:-/tmp}/burst-bench-XXXXXX")
export BURST_STATE_DIR=$work/state BURST_CACHE_DIR='' HOME=$work LOCAL_ISOLATION=${LOCAL_ISOLATION:-auto}
export LOCAL_PLAY_ISOLATION=$LOCAL_ISOLATION BURST_PROVIDER_PATH=$PWD/build/rehearsal/rehearsal.so
unset XDG_CONFIG_HOME XDG_STATE_HOME
. tests/bench/pods.sh
clean_up() {
	local p
	for p in "$work"/*.id; do
		[ -e "$p" ] && jq -n --arg id "$(cat "$p")" '{id: $id}' | local_cloud release >/dev/null 2>&1
	done
	rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 130' INT TERM

median() { sort -n | awk '{v[NR]=$1} END {if (NR) print (NR % 2) ? v[(NR+1)/2] : (v[NR/2]+v[NR/2+1])/2}'; }
now_us() { echo "${EPOCHREALTIME/./}"; }
took_ms() { # took_ms COMMAND...: wall time in ms, output dropped
	local before
	before=$(now_us)
	"$@" >/dev/null 2>&1
	echo $((($(now_us) - before) / 10)) | awk '{print $1 / 100}'
}
repeat() { # repeat N COMMAND...
	local n=$1
	shift
	for _ in $(seq "$n"); do took_ms "$@"; done | median
}
ratio() { awk "BEGIN {printf \"%.2f\", $1 / $2}"; }
seconds() { awk "BEGIN {printf \"%.2f\", $1 / 1000}"; }

# ---- (c) the command itself ----

part_command() {
	echo "# the command itself (aims: --version in 1.5 times what /bin/true takes, ps with an empty ledger in 2.5 times, with 10,000 runs under 30 ms)"
	local base version empty ps ledger runs status
	"$burst" ps >/dev/null 2>&1
	for _ in $(seq 41); do # in turn, so that all meet the same noise
		echo "$(took_ms /bin/true) $(took_ms "$burst" --version) $(took_ms "$burst" ps)"
	done >"$work/rows"
	base=$(column "$work/rows" 1) version=$(column "$work/rows" 2) empty=$(column "$work/rows" 3)
	echo "/bin/true $base ms; burst --version $version ms: $(ratio "$version" "$base") times that; burst ps with an empty ledger $empty ms:" \
		"$(ratio "$empty" "$base"); $(ldd "$burst" | wc -l) shared objects"
	sqlite3 "$BURST_STATE_DIR/ledger.db" "
		WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10000)
		INSERT INTO run (id, job, type, config, output, machine, status, detached, started_ms, ended_ms, max_cost_microusd,
			deadline_ms, total, rendered, cached, failed, billed_ms, compute_ms, wasted_ms, cost_microusd, exit_status,
			error_code, error)
		SELECT printf('r%06d', i), 'bench', 'tts', '', '', '', 'done', 0, i, i + 1, 0, 0, 9, 9, 0, 0, 9000, 5000, 0, 1, 0, '', '' FROM n;" ||
		echo "bench: the ledger could not be filled" >&2
	runs=$(sqlite3 "$BURST_STATE_DIR/ledger.db" "SELECT count(*) FROM run")
	ps=$(repeat 21 "$burst" ps)
	ledger=$(repeat 21 "$burst" ledger)
	for _ in $(seq 41); do
		echo "$(took_ms /bin/true) $(took_ms "$burst" status)"
	done >"$work/rows"
	base=$(column "$work/rows" 1) status=$(column "$work/rows" 2)
	echo "with $runs runs: burst ps $ps ms; burst ledger $ledger ms; burst status $status ms (aim: under 20 ms), $(ratio "$status" "$base") times /bin/true"
}

# ---- (a) the job against the recipe of shell commands ----

quiz_config() { # quiz_config ROUND_TRIP_MS
	rm -rf "$work/quiz"
	cp -r config/examples/quiz "$work/quiz"
	sed -i "s/join = {[^}]*};//" "$work/quiz/burst.cfg"
	line "$1"
}
# One pod of the recipe: half of the lines. Prints the ms its worker took.
recipe_pod() { # recipe_pod NAME OUT
	pod_rent "$1"
	pod_wait "$1"
	scp -q -r -F "$work/$1.ssh" "$work/recipe/$1" pod:/tmp/job
	# shellcheck disable=SC2016
	ssh -F "$work/$1.ssh" pod 'cd /tmp/job && mkdir -p out && before=$(date +%s%N) &&
		BURST_OUT=/tmp/job/out ./espeak-worker <lines.jsonl >worker.log 2>&1; echo $((($(date +%s%N) - before) / 1000000))'
	mkdir -p "$2"
	scp -q -r -F "$work/$1.ssh" pod:/tmp/job/out "$2"
	pod_release "$1"
}
recipe_parts() { # recipe_parts FOLDER...: the worker in each, and the questions dealt out to them
	local p=0 n=$#
	while [ $# -gt 0 ]; do
		mkdir -p "$1"
		cp build/kit/espeak-worker "$1/"
		jq -c -n --argjson p $p --argjson n $n '[inputs] | to_entries | map(select(.key % $n == $p).value)
			| map({id, file: (.id + ".wav"), text, voice: (.voice // "en"), seed: 1, options: {}}) as $all
			| range(0; $all | length; 64) | {batch: "b\(.)", segments: $all[.:. + 64]}' \
			config/examples/quiz/quiz.jsonl >"$1/lines.jsonl"
		p=$((p + 1))
		shift
	done
}
recipe() { # prints "wall compute" in ms; files in $work/recipe.out
	local before p
	rm -rf "$work/recipe" "$work/recipe.out"
	recipe_parts "$work/recipe/bench0-$serial" "$work/recipe/bench1-$serial"
	before=$(now_us)
	for p in 0 1; do recipe_pod "bench$p-$serial" "$work/recipe.out" >"$work/compute$p" & done
	wait
	echo "$((($(now_us) - before) / 1000)) $(cat "$work/compute0" "$work/compute1" | sort -n | tail -n 1)"
	serial=$((serial + 1))
}
burst_job() { # prints "wall compute billed compute-sum boot-sum rounded" in ms, billed before rounding; files in $work/out
	local before
	rm -rf "$work/out"
	before=$(now_us)
	"$burst" run "$work/quiz/burst.cfg" -o "$work/out" --json 2>"$work/err" >"$work/json" || cat "$work/err" >&2
	echo "$((($(now_us) - before) / 1000)) $(tail -n 1 "$work/json" | jq -r '[([.pods[].compute_seconds] | max),
		([.pods[].phases | add - .release_s] | add), .compute_seconds, ([.pods[].phases | .queue_s + .boot_s] | add), .billed_seconds]
		| map(. * 1000) | @tsv' | tr '\t' ' ')"
}
wavs() { find "$1" -name '*.wav' -size +1k | wc -l; }
column() { cut -d' ' -f"$2" "$1" | median; }
part_job() {
	local rtt wall beyond peer_wall peer_beyond
	for rtt in 0 80; do
		echo "# 300 questions, two pods, $rtt ms away, against a recipe of shell commands on the same pods with the same worker:"
		echo "# rent, scp -r, ssh worker, scp -r back, end (aims: half of its time beyond computing; billed at most 1.15 x (compute + boot))"
		quiz_config $rtt
		burst_job >/dev/null # fills the volume
		for _ in 1 2 3; do burst_job; done >"$work/rows"
		for _ in $(seq $((rtt ? 1 : 3))); do recipe; done >"$work/peer"
		awk '{print $1 - $2}' "$work/rows" >"$work/beyond"
		awk '{print $1 - $2}' "$work/peer" >"$work/peer.beyond"
		wall=$(column "$work/rows" 1) beyond=$(median <"$work/beyond")
		peer_wall=$(column "$work/peer" 1) peer_beyond=$(median <"$work/peer.beyond")
		echo "burst: $(wavs "$work/out") files, wall $(seconds "$wall") s, beyond computing $(seconds "$beyond") s"
		echo "recipe: $(wavs "$work/recipe.out") files, wall $(seconds "$peer_wall") s, beyond computing $(seconds "$peer_beyond") s"
		echo "burst / recipe: wall $(ratio "$wall" "$peer_wall"), beyond computing $(ratio "$beyond" "$peer_beyond")"
		awk '{printf "billed / (compute + boot) = %.2f: billed %.2f s (%.0f when each pod is rounded up), compute %.2f s, queue + boot %.2f s\n",
			$3 / ($4 + $5), $3 / 1000, $6 / 1000, $4 / 1000, $5 / 1000}' "$work/rows" | sort | sed -n 2p
	done
	echo "# espeak-ng itself in a loop, the same 300 texts on this machine (no pods, nothing verified)"
	mkdir "$work/plain"
	local before plain
	before=$(now_us)
	jq -r '[.id, (.voice // "en-us"), .text] | @tsv' config/examples/quiz/quiz.jsonl |
		while IFS=$'\t' read -r id voice text; do espeak-ng -v "$voice" -w "$work/plain/$id.wav" -- "$text"; done
	plain=$((($(now_us) - before) / 1000))
	echo "loop $(seconds $plain) s"
}

# ---- (b) round trips ----

part_start() {
	local rtt=80
	echo "# a pod $rtt ms away, its volume filled: from sshd's first word (two round trips after connecting) to the first batch running,"
	echo "# and from the last output safe at home to the release sent (aims: under 10 round trips, under 50 ms)"
	quiz_config $rtt
	burst_job >/dev/null
	for _ in 1 2 3; do burst_job >/dev/null; done
	# workers stand at ready_ms as seen from here; the batch that is sent then runs half a round trip later
	sqlite3 -separator ' ' "$BURST_STATE_DIR/ledger.db" "SELECT ready_ms - reached_ms - 2 * $rtt + $rtt / 2, release_ms - safe_ms
		FROM pod WHERE ready_ms > 0 AND safe_ms > 0 ORDER BY seq DESC LIMIT 6" >"$work/rows"
	local first last
	first=$(column "$work/rows" 1) last=$(column "$work/rows" 2)
	echo "to the first batch $first ms = $(ratio "$first" $rtt) round trips; last output safe to release $last ms"
}

# ---- (d) memory ----

peak_kb() { # peak_kb COMMAND...: of it and of what it waits for
	python3 -c 'import resource, subprocess, sys
status = subprocess.call(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=open("'"$work/err"'", "w"))
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss if status == 0 else sys.exit("bench: it failed, see " + sys.argv[1]))' "$@" || tail -n 3 "$work/err" >&2
}
part_memory() {
	local n rows=""
	echo "# peak memory of burst with 1, 10 and 50 pods"
	for n in 1 10 50; do
		cat >"$work/wide.cfg" <<-E
			provider = "local";
			pods = $n;
			caps = { max_cost = 100.0; max_duration = "10m"; };
			job = { name = "wide$n"; type = "command"; run = "sleep 3; echo \$BURST_INDEX >\$BURST_INDEX.txt"; outputs = ["*.txt"]; output = "wide$n"; };
			volume = { name = "wide"; size_gb = 1; create = true; };
			providers = { local = { capacity = 64; }; };
		E
		rows="$rows $n $(peak_kb "$burst" run "$work/wide.cfg")"
	done
	# shellcheck disable=SC2086
	set -- $rows
	echo "1 pod $2 kB, 10 pods $4 kB, 50 pods $6 kB: one more pod costs $((($6 - $2) / 49)) kB"
	echo "peer: one ssh client with an idle session $(ssh_kb) kB"
}
ssh_kb() {
	pod_rent "idle-$serial"
	pod_wait "idle-$serial"
	peak_kb ssh -F "$work/idle-$serial.ssh" pod true
	pod_release "idle-$serial"
}

# ---- (e) up-sync ----

# Every measure gets a volume or folder of its own: a file system that has just deleted thousands of files is slow to make new
# ones, and that would be measured.
make_tree() { # 10,000 files of 4 KiB, half of each text
	python3 -c 'import os, random, sys
random.seed(1)
for i in range(10000):
    d = sys.argv[1] + "/d%03d" % (i // 100)
    os.makedirs(d, exist_ok=True)
    with open("%s/f%05d" % (d, i), "wb") as f:
        f.write(random.randbytes(2048) + (b"some text " * 205)[:2048])' "$1"
}
change_tree() { # 20 files of it; each time others
	local i
	for i in $(seq 20); do echo "$serial $i" >>"$1/d$(printf %03d $((i * 4)))/f$(printf %05d $((i * 400 + serial % 100)))"; done
	serial=$((serial + 1))
}
sync_config() { # sync_config VOLUME CODE
	cat >"$work/sync.cfg" <<-E
		provider = "local";
		caps = { max_cost = 100.0; max_duration = "10m"; };
		job = { name = "sync"; type = "command"; run = "true"; no_outputs = true; output = "sync.out"; };
		code = { path = "$2"; };
		volume = { name = "$1"; size_gb = 5; create = true; };
		providers = { local = { capacity = 64; }; };
	E
}
burst_sync() { # burst_sync: prints "connect+sync sync" in ms
	"$burst" run "$work/sync.cfg" --force --json 2>"$work/err" >"$work/json" || cat "$work/err" >&2
	tail -n 1 "$work/json" | jq -r '.pods[0].phases | "\((.connect_s + .sync_s) * 1000) \(.sync_s * 1000)"'
}
rsync_to() { # rsync_to POD SOURCE DEST [ssh options]
	rsync -a -e "ssh -F $work/$1.ssh ${4:-}" "$2/" "pod:$3"
}
# sync_pairs N CODE PEER: burst and its peer in turn, so that both meet the same noise; each pair goes to $work/rows, as
# "burst burst-without-connecting peer" in ms. PEER is called with a name that is new each time.
sync_pairs() {
	local n=$1 code=$2 ours
	shift 2
	: >"$work/rows"
	for _ in $(seq "$n"); do
		[ "$sync_volume" = kept ] || sync_config "v$serial" "$code"
		[ "$sync_volume" = fresh ] || change_tree "$code"
		ours=$(burst_sync)
		[ "$sync_volume" = fresh ] || change_tree "$code"
		echo "$ours $(took_ms "$@" "$serial")" >>"$work/rows"
		serial=$((serial + 1))
	done
}
# The ratio peer / burst of each pair: median, then from the worst to the best.
say_pairs() { # say_pairs WHAT PEER [COLUMN of burst's time]
	awk -v c="${3:-1}" '$c > 0 {print $3 / $c}' "$work/rows" | sort -n >"$work/ratios"
	awk -v what="$1" -v peer="$2" -v one="$(column "$work/rows" "${3:-1}")" -v other="$(column "$work/rows" 3)" '{v[NR] = $1} END {
		if (!NR) { print what ": nothing measured"; exit }
		printf "%s: burst %.0f ms, %s %.0f ms: %.2f (%.2f to %.2f in %d pairs)\n", what, one, peer, other,
			NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2, v[1], v[NR], NR }' "$work/ratios"
}
tree_peer() { rsync_to "$pod" "$tree" "/workspace/tree$1-$rtt"; }
changed_peer() { rsync_to "$pod" "$tree" "/workspace/changed-$rtt"; }
master_peer() { rsync_to "$pod" "$tree" "/workspace/changed-$rtt" "-o ControlPath=$work/master"; }
big_peer() { rsync_to "$pod" "$big" "/workspace/big$1-$rtt"; }
scp_peer() { scp -q -F "$work/$pod.ssh" "$big/big" "pod:/workspace/copy$1-$rtt"; }
text_peer() { rsync_to "$pod" "$text" "/workspace/text$1-$rtt"; }
sync_tree() {
	local one all=$1
	sync_volume=fresh sync_pairs "$pairs" "$tree" tree_peer
	say_pairs "10,000 files of 4 KiB" "rsync -a"
	[ "$all" = all ] || return
	one=$(column "$work/rows" 1)
	if [ "$rtt" = 0 ]; then
		all=$(took_ms scp -q -r -F "$work/$pod.ssh" "$tree" "pod:/workspace/scp-$rtt")
	else # of 100 of them, times 100
		all=$(took_ms scp -q -r -F "$work/$pod.ssh" "$tree/d001" "pod:/workspace/scp-$rtt" | awk '{print $1 * 100}')
	fi
	echo "... scp -r ${all%.*} ms$([ "$rtt" = 0 ] || echo ' (100 times that of 100 of them)'): $(ratio "$all" "$one")"
}
sync_changed() {
	changed_peer >/dev/null
	sync_config "kept$serial" "$tree"
	burst_sync >/dev/null
	sync_volume=kept sync_pairs "$((pairs + 2))" "$tree" changed_peer
	say_pairs "20 of them changed" "rsync -a"
	ssh -F "$work/$pod.ssh" -o ControlMaster=yes -o ControlPath="$work/master" -o ControlPersist=60 -N -f pod
	sync_volume=kept sync_pairs "$((pairs + 2))" "$tree" master_peer
	ssh -F "$work/$pod.ssh" -o ControlPath="$work/master" -O exit pod 2>/dev/null
	say_pairs "... on a connection that stands" "rsync -a over a ControlMaster" 2
}
sync_big() {
	sync_volume=fresh sync_pairs "$pairs" "$big" big_peer
	say_pairs "a file of 128 MiB, random bytes" "rsync -a"
	[ "$1" = all ] || return
	sync_volume=fresh sync_pairs "$pairs" "$big" scp_peer
	say_pairs "..." scp
	sync_volume=fresh sync_pairs "$pairs" "$text" text_peer
	say_pairs "a file of 128 MiB, text" "rsync -a"
}
# SYNC_RTT="0 20 80", SYNC_WHAT="tree changed big", PAIRS=5: lines, kinds and repetitions; SYNC_ONLY=1: against rsync alone.
part_sync() {
	local rtt pod tree=$work/tree big=$work/big text=$work/text pairs=${PAIRS:-5} what
	make_tree "$tree"
	mkdir "$big" "$text"
	head -c $((128 << 20)) /dev/urandom >"$big/big"
	find /usr/lib/python3 -name '*.py' -exec cat {} + | head -c $((4 << 20)) >"$work/words"
	for _ in $(seq 32); do cat "$work/words"; done | head -c $((128 << 20)) >"$text/text"
	for rtt in ${SYNC_RTT:-0 20 80}; do
		pod=sync-$rtt
		line "$rtt"
		pod_rent $pod
		pod_wait $pod
		echo "# up-sync over a line of $rtt ms: whole connections; peer / burst, median of pairs (aims: tree and big file 1.5, change 1.9)"
		for what in ${SYNC_WHAT:-tree changed big}; do "sync_$what" "${SYNC_ONLY:-all}"; done
		pod_release $pod
	done
}

# ---- (f) a rented pod from create to gone ----

part_runpod() { (. tests/bench/runpod.sh && runpod_bench); }

# ---- (g) billed against the ideal, one pod and several ----

part_billed() { (. tests/bench/billed.sh && billed_bench); }

# ---- (h) batches of engines that batch ----

part_dispatch() { (. tests/bench/dispatch.sh && dispatch_bench); }

# ---- (i) plans against what runs took ----

part_learning() { (. tests/bench/learning.sh && learning_bench); }

# ---- (j) wide runs and long jobs ----

missed=0
part_load() { (. tests/bench/load.sh && load_bench) || missed=1; }

# ---- (l) batches of Chatterbox and Qwen3-TTS on the processor ----

part_voices() { python3 tests/bench/voices.py; python3 tests/bench/voices_qwen3.py; python3 tests/bench/voices_kokoro.py; }

# ---- (m) reading Chatterbox's weights when a worker starts ----

part_weights() { python3 tests/bench/weights.py; }

# ---- (m2) an environment on the volume against one on the pod's disk ----

part_environment() { python3 tests/bench/environment.py; }

# ---- (o) spread-out triggers that share pods ----

part_pooled() { (. tests/bench/pooled.sh && pooled_bench); }

# ---- (p) one pod of a Kubernetes, beside SkyPilot ----

part_kubernetes() { (. tests/bench/kubernetes.sh && kubernetes_bench); }

# ---- (n) what a commit waits for ----

hook_repo() { # hook_repo NAME: a repository with a job, and one commit
	mkdir -p "$work/$1"
	printf '%s\n' one two >"$work/$1/lines.txt"
	cat >"$work/$1/burst.cfg" <<-'E'
		provider = "local";
		job = { name = "hooked"; type = "tts"; engine = "espeak"; input = "lines.txt"; voice = "en"; };
	E
	git -C "$work/$1" init -q && git -C "$work/$1" add -A &&
		git -C "$work/$1" -c user.name=b -c user.email=b@b commit -qm first
}
hook_took() { # hook_took NAME: the hook alone, as git runs it
	(cd "$work/$1" && took_ms .git/hooks/post-commit)
}
commit_took() { # commit_took NAME: a commit that changes what the job reads
	echo "another line" >>"$work/$1/lines.txt"
	(cd "$work/$1" && took_ms git commit -qam another)
}
hook_is_quiet() { # what the last one left in the background must not slow the next one
	while pgrep -f "hook fire post-commit" >/dev/null; do read -rt 0.02 <> <(:) || :; done
}
empty_queue() { # waits until the queue's clients have ended: one whose ledger is removed retries without limit
	local id
	for id in $("$burst" queue ls --json | jq -r '.[].request'); do "$burst" queue rm "$id" >/dev/null 2>&1; done
	for _ in $(seq 300); do
		pgrep -f "queue run $work/" >/dev/null || return 0
		sleep 0.1
	done
	echo "a client of the queue does not end" >&2
}
part_hook() {
	echo "# what a commit waits for (aim: a hook that returns in under 50 ms)"
	export GIT_CONFIG_GLOBAL=$work/gitconfig
	git config --global user.email b@b && git config --global user.name b
	hook_repo plain && hook_repo empty && hook_repo ours
	printf '#!/bin/sh\nexit 0\n' >"$work/empty/.git/hooks/post-commit" && chmod +x "$work/empty/.git/hooks/post-commit"
	"$burst" hook install "$work/ours" --on post-commit --quiet 1h 2>/dev/null
	for _ in $(seq 31); do # in turn, so that all meet the same noise
		echo "$(hook_took empty) $(hook_took ours) $(hook_is_quiet)$(commit_took plain) $(commit_took empty) $(commit_took ours)"
		hook_is_quiet
	done >"$work/rows"
	local empty ours plain with_empty with_ours
	empty=$(column "$work/rows" 1) ours=$(column "$work/rows" 2)
	plain=$(column "$work/rows" 3) with_empty=$(column "$work/rows" 4) with_ours=$(column "$work/rows" 5)
	echo "an empty shell hook $empty ms; burst's $ours ms: $(ratio "$ours" "$empty") times that"
	echo "git commit without a hook $plain ms, with an empty one $with_empty ms, with burst's $with_ours ms: $(ratio "$with_ours" "$with_empty") times that"
	empty_queue
}

# ---- (l) a child process as the connection ----

# A login node: an sshd on the loopback, with `ssh -F $work/login.ssh login`.
login_node() {
	local port
	port=$(python3 -c 'import socket; s = socket.create_server(("127.0.0.1", 0)); print(s.getsockname()[1])')
	ssh-keygen -q -t ed25519 -N '' -f "$work/login.host" && ssh-keygen -q -t ed25519 -N '' -f "$work/login.key"
	echo "login $(cut -d' ' -f1,2 "$work/login.host.pub")" >"$work/login.known"
	cat >"$work/login.ssh" <<-E
		Host login
		HostName 127.0.0.1
		Port $port
		User $(id -un)
		HostKeyAlias login
		UserKnownHostsFile $work/login.known
		IdentityFile $work/login.key
		IdentitiesOnly yes
		BatchMode yes
		LogLevel ERROR
	E
	mkdir -p /run/sshd
	/usr/sbin/sshd -D -e -f /dev/null -o Port="$port" -o ListenAddress=127.0.0.1 -o HostKey="$work/login.host" -o UsePAM=no \
		-o AuthorizedKeysFile="$work/login.key.pub" -o StrictModes=no -o PidFile=none >"$work/login.log" 2>&1 &
	login=$!
}
bare_up() { ssh -F "$work/login.ssh" login "cat >$work/bare.$1" <"$big/big"; }
bare_down() { ssh -F "$work/login.ssh" login "cat '$big/big'" >"$work/bare.$1"; }
# dial_config PROVIDER NAME KEYS...: 64 MiB go up as code, and come down as the output
dial_config() {
	cat >"$work/sync.cfg" <<-E
		provider = "$1";
		caps = { max_cost = 100.0; max_duration = "10m"; };
		job = { name = "$2"; type = "command"; run = "cp big out.bin"; outputs = ["out.bin"]; output = "$2.out"; };
		code = { path = "$big"; };
		volume = { name = "$2"; size_gb = 5; create = true; };
		providers = { $1 = { capacity = 64; ${*:3} }; };
	E
}
moved_ms() { # what burst takes to sync the code, and to fetch it again
	"$burst" run "$work/sync.cfg" --force --json 2>"$work/err" >"$work/json" || cat "$work/err" >&2
	tail -n 1 "$work/json" | jq -r '.pods[0].phases | "\(.sync_s * 1000) \(.fetch_s * 1000)"'
}
part_dial() {
	echo "# 64 MiB through a child process: ssh to a login node, which passes on to the pod's sshd (aim: 2.5 times what ssh itself takes)"
	local i big=$work/code64 login
	mkdir "$big" && head -c 67108864 /dev/urandom >"$big/big"
	login_node
	sleep 1
	for i in $(seq "${PAIRS:-5}"); do
		dial_config local "tcp$i"
		moved_ms >"$work/tcp"
		dial_config local_play "dial$i" "carrier = [\"sh\", \"-c\", \"exec ssh -F $work/login.ssh -W \\\"\$1:\$2\\\" login\", \"sh\"];"
		echo "$(took_ms bare_up "$i") $(took_ms bare_down "$i") $(cat "$work/tcp") $(moved_ms)"
		rm -f "$work/bare.$i"
	done >"$work/rows"
	kill "$login"
	local up down dialled_up dialled_down
	up=$(column "$work/rows" 1) down=$(column "$work/rows" 2) dialled_up=$(column "$work/rows" 5) dialled_down=$(column "$work/rows" 6)
	echo "up: ssh alone $up ms, burst over TCP $(column "$work/rows" 3) ms, through ssh $dialled_up ms: $(ratio "$dialled_up" "$up") times ssh"
	echo "down: ssh alone $down ms, burst over TCP $(column "$work/rows" 4) ms, through ssh $dialled_down ms: $(ratio "$dialled_down" "$down") times ssh"
}

# ---- what `burst submit` takes ----

insert_a_row() { # one durable row by sqlite3, as a request is
	sqlite3 "$work/peer.db" "pragma synchronous = full; insert into request (text) values ('$serial')"
}
part_submit() {
	echo "# what a trigger waits for (aim: burst submit returns in under 50 ms, also where it starts the queue's client)"
	sqlite3 "$work/peer.db" "pragma journal_mode = wal; create table request (id integer primary key, text text)" >/dev/null
	hook_repo busy
	"$burst" submit "$work/busy" --quiet 1h 2>/dev/null
	for i in $(seq 31); do # in turn, so that all meet the same noise
		mkdir "$work/idle$i" && cp "$work/busy/burst.cfg" "$work/busy/lines.txt" "$work/idle$i"
		echo "$(took_ms insert_a_row) $(took_ms "$burst" submit "$work/busy" --quiet 1h) $(took_ms "$burst" submit "$work/idle$i" --quiet 1h)"
	done >"$work/rows"
	local peer busy idle
	peer=$(column "$work/rows" 1) busy=$(column "$work/rows" 2) idle=$(column "$work/rows" 3)
	echo "sqlite3 writes a row in $peer ms; burst submit takes $busy ms while the queue has a client: $(ratio "$busy" "$peer") times that;" \
		"$idle ms where it starts one: $(ratio "$idle" "$peer")"
	empty_queue
}

# ---- (k) the planner's choice ----

part_plan() {
	echo "# a choice among all offers, widths and batch sizes (aims: under 10 ms, within 1 % of brute force)"
	build/bench/plan
}

part_promises() {
	echo "# runs within the plan's 90 % in worlds that the planner does not know (aims: 85 to 95 %, ever narrower; medians off by at most 25 % before the first run, or what no planner can go below, and 10 % after three)"
	build/bench/promises
}

part_queue() {
	echo "# jobs that wait, as arithmetic: on pods of their own, with kept pods, and planned together (aims: both searches under 50 ms)"
	build/bench/queue
}

serial=1
sync_volume=fresh
pod_keys
echo "burst $("$burst" --version | cut -d' ' -f2), $(nproc) cores, $(uname -sr)"
if [ $# = 0 ]; then
	set -- command job start memory sync runpod hook submit plan promises queue
fi
for part in "$@"; do "part_$part"; done
exit $missed
