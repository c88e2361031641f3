# kubernetes.sh - the part `kubernetes` of bench.sh, in a shell of its own: the same job on one pod of a real Kubernetes
# (tests/cloud/kubernetes/bed.sh), by burst and by SkyPilot in turn. Same cluster, image, code and command. ROUNDS=3, FILES=24.
#
# The peer has every advantage: its API server runs, its image is on the node and holds all that it would install
# (tests/bench/skypilot.sh), nothing is pulled, and both have done the job once before it is measured. Its user types
# `sky launch`, `rsync`, `sky down`; burst's types `burst run`. Pods without a GPU: SkyPilot's list of GPUs is on the internet.
# shellcheck shell=bash disable=SC2154
. tests/e2e/lib.sh
. tests/cloud/kubernetes/lib.sh
complain() { echo "bench: $*" >&2; }
PEER=$ROOT/build/bench-peers/skypilot
bed=$work/bed
files=${FILES:-24}
here=$work/kubernetes

# ---- the job: a file each quarter of a second, of 200 kB, whose first line is when it was there; 200 files of code, 10 MB ----

the_job() { # FOLDER
	mkdir -p "$1"
	(cd "$1" && head -c $((200 * 51200)) /dev/urandom | split -b 51200 -a 3 - code-)
	cat >"$1/job.sh" <<-E
		mkdir -p out
		for i in \$(seq $files); do
			sleep 0.25
			{ date +%s%6N; head -c 200000 code-aaa code-aab code-aac code-aad; } >out/\$i.tmp
			mv out/\$i.tmp out/\$i.wav
		done
	E
}
burst_job_of() { # FOLDER OUT
	mkdir -p "$HOME/.config/burst"
	echo 'providers = { kubernetes = { prices = ["none=0.05"]; }; };' >"$HOME/.config/burst/burst.cfg"
	cat >"$here/burst.cfg" <<-E
		provider = "kubernetes"; gpu = ["none"]; pods = 1;
		caps = { max_cost = 1.00; max_duration = "10m"; };
		pod = { image = "bed.test/skypilot:1"; cpu = 1; memory_gb = 1; };
		job = { name = "bench"; type = "command"; run = "sh job.sh"; outputs = ["out/*.wav"]; stream = true; output = "$2"; };
		code = { path = "$1"; };
	E
}
sky_job_of() { # FOLDER
	cat >"$here/task.yaml" <<-E
		resources:
		  infra: kubernetes
		  cpus: 1
		  memory: 1
		  image_id: docker:bed.test/skypilot:1
		workdir: $1
		run: sh job.sh
	E
}

# ---- by each of them, until its user has all files and the pod is gone ----

sky() { # with a home, a port and a mark of its own
	env -u XDG_CONFIG_HOME HOME="$here/home" BENCH_CLIENT=skypilot SKYPILOT_DISABLE_USAGE_COLLECTION=1 SKYPILOT_API_SERVER_LOCAL_PORT=17452 \
		PATH="$PEER/venv/bin:$PEER/tools/bin:$PEER/tools/usr/bin:$PATH" "$@"
}
by_skypilot() { # OUT
	sky sky launch -y -c "bench$serial" "$here/task.yaml" >"$here/log" 2>&1 || return
	# its ssh config says ~, which ssh takes for the home in the list of users
	sed "s#~/#$here/home/#g" "$here/home/.sky/generated/ssh/bench$serial" >"$here/ssh"
	mkdir "${1%/out}"
	sky rsync -a -e "ssh -F $here/ssh" "bench$serial:sky_workdir/out/" "$1/" >>"$here/log" 2>&1 || return
	sky sky down -y "bench$serial" >>"$here/log" 2>&1
}
by_burst() { # OUT: the folder below which it keeps theirs, out/
	BENCH_CLIENT=burst "$burst" run "$here/burst.cfg" -o "${1%/out}" --json 2>"$here/log" >"$here/json"
}
# A row: when the first file was on the pod, when it was at home, when all were, when the pod was gone, when the last command had
# come back, all in ms from the first command on; with MARK, the client's memory at most, and before the first command, in kB.
row_of() { # WHO [MARK]
	local began ended watcher out=$here/got/out first every gone peak idle on_pod
	rm -rf "$here/got"
	tests/bench/kubernetes_watch.py "$bed" "$out" "$files" ${2+"$2"} >"$here/watched" &
	watcher=$!
	sleep 1
	began=$(now_us)
	"by_$1" "$out" || { complain "$1 failed: $(tail -n 3 "$here/log" | tr '\n' '|')"; kill $watcher; return 1; }
	ended=$(now_us)
	for _ in $(seq 600); do
		[ "$(KUBECONFIG=$bed/admin.kubeconfig kubectl get pods -o name | wc -l)" != 0 ] || break
		sleep 0.1
	done
	sleep 0.5
	kill $watcher
	wait $watcher
	read -r first every gone peak idle <"$here/watched"
	[ "$every" != 0 ] || { complain "$1 brought $(wavs "$out") of $files files"; return 1; }
	on_pod=$(head -qn 1 "$out"/*.wav | sort -n | head -n 1)
	echo "$(((on_pod - began) / 1000)) $(((first - began) / 1000)) $(((every - began) / 1000)) $(((gone - began) / 1000)) $(((ended - began) / 1000))${2+ $peak $idle}"
	serial=$((serial + 1))
}

say_row() { # WHO ROWS COMMANDS
	echo "$1: first file on the pod $(seconds "$(column "$2" 1)") s, at home $(seconds "$(column "$2" 2)") s; all $files at home $(seconds "$(column "$2" 3)") s;" \
		"pod gone $(seconds "$(column "$2" 4)") s; last command back $(seconds "$(column "$2" 5)") s; $3"
}
times_as_long() { # WHAT COLUMN: the peer's / burst's, of medians, and from the least to the largest of a round
	local least most
	read -r least most < <(paste -d ' ' "$here/burst.rows" "$here/skypilot.rows" | awk -v c="$2" '{print $(c + 5) / $c}' | sort -n | sed -n '1p;$p' | tr '\n' ' ')
	printf '%s %s (%.2f to %.2f)' "$1" "$(ratio "$(column "$here/skypilot.rows" "$2")" "$(column "$here/burst.rows" "$2")")" "$least" "$most"
}

kubernetes_over() {
	[ ! -d "$here/home" ] || sky sky api stop >/dev/null 2>&1
	[ ! -d "$bed" ] || bash tests/cloud/kubernetes/bed.sh down "$bed" "$BED"
	cleanup_all
}
kubernetes_bench() {
	local why who ours theirs
	why=$(bed_can) || { echo "# Kubernetes: left out: $why"; return; }
	[ "$(id -u)" = 0 ] || { echo "# Kubernetes: left out: it needs root"; return; }
	bash tests/bench/skypilot.sh "$PEER" "$BED" || { echo "# Kubernetes: left out: SkyPilot could not be installed from PyPI and Debian's packages"; return; }
	trap kubernetes_over EXIT
	trap 'exit 130' INT TERM
	mkdir -p "$here/home/.sky"
	bash tests/cloud/kubernetes/bed.sh up "$bed" "$BED" || return
	ctr -a "$bed/containerd.sock" -n k8s.io images import "$PEER/image.tar" >/dev/null || return
	export KUBECONFIG=$bed/admin.kubeconfig KUBERNETES_CONTEXT=bed
	cp -r "$PEER/wheels" "$here/home/.sky/"
	# without this it asks a registry for its image at each start of a pod
	echo '{kubernetes: {pod_config: {spec: {containers: [{imagePullPolicy: IfNotPresent}]}}}}' >"$here/home/.sky/config.yaml"
	{ sky sky api start && sky sky check kubernetes; } >"$here/log" 2>&1 || { complain "SkyPilot does not start: $(tail -n 3 "$here/log" | tr '\n' '|')"; return; }
	the_job "$here/code"
	burst_job_of "$here/code" "$here/got"
	sky_job_of "$here/code"
	echo "# one job on one pod of a real Kubernetes, $files files of 200 kB in $(awk "BEGIN {print $files / 4}") s, 10 MB of code, by burst and by SkyPilot in turn;" \
		"load $(cut -d' ' -f1-3 /proc/loadavg). Medians of ${ROUNDS:-3}"
	sky sky --version | tail -n 1
	kubectl version 2>/dev/null | tr '\n' ' '
	echo
	for who in burst skypilot; do row_of $who BENCH_CLIENT=$who >"$here/$who.memory" || return; done
	for _ in $(seq "${ROUNDS:-3}"); do
		for who in burst skypilot; do row_of $who >>"$here/$who.rows" || return; done
	done
	say_row burst "$here/burst.rows" "1 command"
	say_row SkyPilot "$here/skypilot.rows" "3 commands (sky launch, rsync, sky down)"
	echo "SkyPilot / burst: $(times_as_long "first file on the pod" 1), $(times_as_long "at home" 2), $(times_as_long "all at home" 3)," \
		"$(times_as_long "pod gone" 4), $(times_as_long "last command back" 5)"
	ours=$(column "$here/burst.memory" 6) theirs=$(column "$here/skypilot.memory" 6)
	echo "all processes of the client (PSS), the first time: burst $((ours / 1000)) MB; SkyPilot $((theirs / 1000)) MB, of which its API server held" \
		"$(($(column "$here/skypilot.memory" 7) / 1000)) MB before: $(ratio "$theirs" "$ours") times as much"
	echo "load after: $(cut -d' ' -f1-3 /proc/loadavg)"
}
