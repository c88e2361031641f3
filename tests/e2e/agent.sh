#!/bin/sh
# The agent alone, without sshd: `burst-agent attach` driven through pipes in a folder of its own. AGENT=path (default:
# the one under build/kit). SEPARATE=no: workers cannot be another user. Each test prints one line; the first failure shows what the agent had said.
#
# shellcheck disable=SC2016,SC2009,SC2013,SC2015,SC2086 # pod-side $ stays; paths of our own making have no blanks

here=$(cd "$(dirname "$0")/../.." && pwd)
AGENT=${AGENT:-$here/build/kit/burst-agent}
WORKER=$here/tests/workers/worker.sh
top=$(mktemp -d "${TMPDIR:-/tmp}/burst-agent-test.XXXXXX")
fails=0 n=0
export BURST_RUN=r1 BURST_ATTEMPT=aaaabbbbccccdddd

cleanup() {
	for pid in $(cat "$top"/*/pids 2>/dev/null); do
		kill -9 "$pid" 2>/dev/null
	done
	umount -l "$top"/*/full 2>/dev/null
	rm -rf "$top"
}
trap cleanup EXIT
trap 'exit 130' INT TERM
trap 'exit 141' PIPE

# A fresh pod: its own home and volume.
pod() {
	n=$((n + 1))
	dir=$top/$n
	mkdir -p "$dir/home" "$dir/volume"
	[ "$SEPARATE" = no ] || chmod 755 "$top" "$dir" "$dir/home" "$dir/volume"
	export BURST_HOME=$dir/home BURST_VOLUME=$dir/volume
	P=$dir/volume/runs/r1/$BURST_ATTEMPT
	printf "BURST_RUN='r1'\nBURST_ATTEMPT='%s'\nBURST_VOLUME='%s'\nBURST_HARD_END='%s'\nBURST_FIRST_LEASE_END='%s'\nPATH='%s'\nQUOTED='it'\\\\''s'\nRUNPOD_API_KEY='secret-key'\nBURST_HIDE='RUNPOD_API_KEY'\n" \
		$BURST_ATTEMPT "$BURST_VOLUME" $(($(date +%s) + 3600)) $(($(date +%s) + 600)) "$PATH" >"$BURST_HOME/env"
	chmod 600 "$BURST_HOME/env"
}

# attach FROM: what it says goes to $said; fd 3 is where we speak.
attach() {
	said=$dir/said
	mkfifo "$dir/ask"
	"$AGENT" attach <"$dir/ask" >"$said" 2>"$dir/stderr" &
	client=$!
	echo $client >>"$dir/pids"
	exec 3>"$dir/ask"
	rm "$dir/ask"
	tell "{\"op\":\"attach\",\"from\":$1}"
	expect '"ev":"hello"'
}

# The id of a folder as a tree (orchestrator/sync/tree.c).
tree_id() { # FOLDER
	(cd "$1" && {
		echo 'burst-tree 1'
		find . -mindepth 1 -printf '%P\n' | LC_ALL=C sort | while IFS= read -r path; do
			if [ -L "$path" ]; then
				printf 'l %s\t%s\n' "$path" "$(readlink "$path")"
			elif [ -d "$path" ]; then
				echo "d $path"
			elif [ -x "$path" ]; then
				echo "x $(sha256sum <"$path" | cut -c1-64) $path"
			else
				echo "f $(sha256sum <"$path" | cut -c1-64) $path"
			fi
		done
	} | sha256sum | cut -c1-64)
}

# Puts a folder onto the volume, below code/ or kit/; its id in $tree.
put_tree() { # code|kit FOLDER
	tree=$(tree_id "$2")
	tar -C "$2" -cf - . | "$AGENT" tree --dir "$1" --id "$tree" >"$dir/tree.said" 2>&1 || fail "tree: $(cat "$dir/tree.said")"
}

tell() {
	printf '%s\n' "$1" >&3
}

detach() {
	exec 3>&-
	wait $client 2>/dev/null
}

serve_pid() {
	for p in /proc/[0-9]*; do
		[ "$(readlink "$p/cwd" 2>/dev/null)" = "$BURST_HOME" ] &&
			tr '\0' ' ' <"$p/cmdline" 2>/dev/null | grep -q '^burst-agent serve' && echo "${p#/proc/}"
	done
}

leave() {
	tell '{"op":"end","reason":"test"}'
	for _ in $(seq 100); do
		[ -e "$BURST_HOME/end" ] && break
		sleep 0.05
	done
	detach
	for pid in $(serve_pid); do
		kill "$pid" 2>/dev/null
		for _ in $(seq 200); do # what it has open is in use until then
			kill -0 "$pid" 2>/dev/null || break
			sleep 0.05
		done
	done
}

fail() {
	fails=$((fails + 1))
	echo "not ok: $name: $1"
	echo "---- said:"
	tail -n 40 "$said"
	cat "$dir/stderr" "$BURST_HOME/agent.log" 2>/dev/null | tail -n 20
	return 1
}

# expect REGEX [TIMES]: waits (bounded) until the agent has said it so often.
expect() {
	for _ in $(seq 400); do
		[ "$(grep -cE -- "$1" "$said" 2>/dev/null)" -ge "${2:-1}" ] && return 0
		sleep 0.05
	done
	fail "never said: $1"
}

refuse() { # never said so far
	grep -qE -- "$1" "$said" && fail "said: $1"
}

equal() { # WHAT GOT WANT
	[ "$2" = "$3" ] || fail "$1: got '$2', want '$3'"
}

count() {
	grep -cE -- "$1" "$said"
}

segments() { # ID...
	list=
	for id; do
		list="$list,{\"id\":\"$id\",\"file\":\"$id.wav\",\"text\":\"say $id\"}"
	done
	echo "${list#,}"
}

batch() { # ID SEGMENT...
	b=$1
	shift
	tell "{\"op\":\"batch\",\"id\":\"$b\",\"estimate_s\":0.1,\"segments\":[$(segments "$@")]}"
}

start() { # WORKERS ENV HANG
	tell "{\"op\":\"start\",\"workers\":$1,\"worker\":\"exec $WORKER\",\"env\":{$2},\"hang_s\":${3:-60}}"
}

test_renders() {
	start 2 '"CHATTY":"1"'
	expect '"ev":"worker".*"state":"ready","engine":"test"' 2
	batch b1 q1 q2 q3
	batch b2 q4
	expect '"ev":"batch","id":"b1","state":"done"'
	expect '"ev":"batch","id":"b2","state":"done"'
	equal 'segments' "$(count '"ev":"segment".*"ok":true.*"bytes":1644.*"seconds":0.1,"rate":8000')" 4
	hash=$(sha256sum "$P/q1.wav" | cut -d' ' -f1)
	expect "\"id\":\"q1\",\"batch\":\"b1\",\"try\":1,\"ok\":true,\"file\":\"q1.wav\",\"path\":\"runs/r1/$BURST_ATTEMPT/q1.wav\",\"bytes\":1644,\"sha256\":\"$hash\""
	expect '"ev":"log","w":[01],"line":"now q2"'
	expect '"ev":"log","w":[01],"line":"err q4"'
	expect '"ev":"idle"'
}

# ... of which one is longer than a line may be
test_progress_bars_before_its_words() {
	start 1 '"BAR":"30000"'
	batch b1 q1 q2
	expect '"ev":"batch","id":"b1","state":"done"'
	equal 'segments' "$(count '"ev":"segment".*"ok":true')" 2
	equal 'crashes' "$(count '"state":"retry"')" 0
}

test_keeps_the_lease() {
	tell '{"op":"renew","lease_s":100}'
	expect '"ev":"lease","left_s":(100|99)'
	read -r who wall up <"$BURST_HOME/lease"
	equal attempt "$who" "$BURST_ATTEMPT"
	[ $((wall - $(date +%s))) -le 100 ] || fail "wall clock of the lease"
	read -r now _ </proc/uptime
	[ $((up - ${now%.*})) -le 101 ] || fail "uptime of the lease"
	tell '{"op":"renew","lease_s":100000}'
	expect '"ev":"lease","left_s":3[56][0-9][0-9]'
}

# The lease of an earlier life: its uptime may have begun anew, its wall clock may have been set.
test_lease_of_an_earlier_life() {
	for lease in "100 4000000" "4000 100"; do
		detach
		for pid in $(serve_pid); do kill "$pid"; done
		pod
		read -r now _ </proc/uptime
		echo "$BURST_ATTEMPT $(($(date +%s) + ${lease% *})) $((${now%.*} + ${lease#* }))" >"$BURST_HOME/lease"
		attach 0
		expect '"ev":"hello".*"lease_left_s":(100|9[0-9]|[78][0-9]),'
	done
}

test_environment_of_workers() {
	mkdir -p "$dir/kit" "$dir/code"
	echo kit >"$dir/kit/k"
	echo code >"$dir/code/c"
	put_tree kit "$dir/kit"
	kit=$tree
	put_tree code "$dir/code"
	code=$tree
	tell '{"op":"setup","hash":"e","script":"echo made >\"$BURST_ENV/e\""}'
	expect '"ev":"setup","ok":true.*"tree":"'
	env=$(sed -n 's/.*"ev":"setup".*"tree":"\([0-9a-f]*\)".*/\1/p' "$said")
	tell '{"op":"start","workers":1,"worker":"echo env $QUOTED $MINE/$BURST_WORKER/$BURST_ENV/$RUNPOD_API_KEY/; cat $BURST_KIT/k $BURST_CODE/c c $BURST_ENV/e; echo x >$BURST_OUT/x && echo written; sleep 100","kit":"kit/'$kit'","code":"code/'$code'","env_hash":"e","env_tree":"'$env'","env":{"MINE":"a b"}}'
	expect "\"line\":\"env it's a b/0/$BURST_VOLUME/env/e//\""
	expect '"line":"kit"'
	expect '"line":"code"' 2
	expect '"line":"made"'
	expect '"line":"written"'
}

# What was made with one Python is of no use to another.
test_an_environment_is_of_one_python() {
	tell '{"op":"setup","hash":"e","script":"echo made >$BURST_ENV/e"}'
	expect '"ev":"setup","ok":true.*"tree":".*"python":"'
	env=$(sed -n 's/.*"ev":"setup".*"tree":"\([0-9a-f]*\)".*/\1/p' "$said")
	python=$(sed -n 's/.*"ev":"setup".*"python":"\([^"]*\)".*/\1/p' "$said")
	tell '{"op":"start","workers":1,"worker":"echo wrong; sleep 100","env_hash":"e","env_tree":"'$env'","env_python":"python2.7"}'
	expect '"ev":"start","ok":false,"lacks":"env","error":"was made with python2.7, and this image has '
	tell '{"op":"start","workers":1,"worker":"echo right; sleep 100","env_hash":"e","env_tree":"'$env'","env_python":"'$python'"}'
	expect '"line":"right"'
	refuse '"line":"wrong"'
}

# Another pod on the volume has put its own where ours was: nothing of it runs, and what is bad goes from under its name.
test_planted_code_does_not_run() {
	for planted in 'echo evil >c' 'echo evil >>c; touch -r .burst-tree c' 'rm c; ln -s ../../../evil c' 'chmod 755 d; mv d c' \
		'rm .burst-tree' 'sed -i s/f/x/ .burst-tree' 'rm -r f; echo x >f' 'rm -r f; ln -s ../../home f' 'rm c; mkfifo c'; do
		rm -rf "$dir/code" "$BURST_VOLUME/code"
		mkdir -p "$dir/code/f"
		echo 'echo good' >"$dir/code/c"
		echo 'echo evil' >"$dir/code/d"
		echo far >"$dir/code/f/far"
		echo evil >"$BURST_VOLUME/evil"
		put_tree code "$dir/code"
		before=$(count '"ev":"start"')
		(cd "$BURST_VOLUME/code/$tree" && eval "$planted")
		tell '{"op":"start","workers":1,"worker":"cat c f/far; echo it ran; sleep 100","code":"code/'$tree'"}'
		expect '"ev":"start","ok":false,"lacks":"code","error":"is (missing|not what was put there)"' $((before + 1))
		equal "what is left of code where $planted" "$(ls "$BURST_VOLUME/code")" ''
	done
	refuse 'evil|it ran'
	put_tree code "$dir/code"
	echo more >"$BURST_VOLUME/code/$tree/beside" # no part of the tree: it does not come along
	tell '{"op":"start","workers":1,"worker":"sh c; ls; sleep 100","code":"code/'$tree'"}'
	expect '"line":"good"'
	refuse '"line":"beside"'
}

# ... nor does what changes after it was checked: it is a copy that runs.
test_code_that_changes_later_does_not_run() {
	mkdir -p "$dir/code"
	echo 'echo good; sleep 0.2' >"$dir/code/c"
	put_tree code "$dir/code"
	tell '{"op":"start","workers":1,"command":true,"code":"code/'$tree'"}'
	expect '"ev":"worker".*"state":"ready"'
	echo 'echo evil' >"$BURST_VOLUME/code/$tree/c"
	tell '{"op":"batch","id":"b1","segments":[{"id":"c1","run":"sh c"}]}'
	expect '"id":"c1".*"ok":true'
	expect '"line":"good"'
	refuse evil
}

test_planted_environment_is_not_used() {
	tell '{"op":"setup","hash":"e","script":"mkdir -p $BURST_ENV/lib/more; echo good >$BURST_ENV/lib/m; ln -s /bin/sh $BURST_ENV/sh; echo x >$BURST_ENV/x; chmod 755 $BURST_ENV/x"}'
	expect '"ev":"setup","ok":true.*"tree":"'
	env=$(sed -n 's/.*"ev":"setup".*"tree":"\([0-9a-f]*\)".*/\1/p' "$said")
	start='{"op":"start","workers":1,"worker":"cat $BURST_ENV/lib/m; echo it ran; sleep 100","env_hash":"e","env_tree":"'$env'"}'
	tell "$start"
	expect '"line":"it ran"'
	cp -a "$BURST_VOLUME/env/e" "$dir/e"
	times=0
	for planted in 'echo evil >lib/m' 'echo evil >lib/sitecustomize.py' 'rm sh; ln -s /bin/evil sh' 'echo evil >lib/more/x.pth' \
		'rm -r lib/more' 'rm x' 'rm .burst-tree' 'echo evil >m; rm lib/m; ln -s ../m lib/m' 'mkdir evil' 'echo >>.burst-tree'; do
		(cd "$BURST_VOLUME/env/e" && eval "$planted")
		times=$((times + 1))
		tell "$start"
		expect '"ev":"start","ok":false,"lacks":"env","error":"is (missing|not what was put there)"' $times
		rm -rf "$BURST_VOLUME/env/e"
		cp -a "$dir/e" "$BURST_VOLUME/env/e"
	done
	tell '{"op":"start","workers":1,"worker":"echo it ran","env_hash":"e"}' # nobody knows what it should be
	expect '"ev":"start","ok":false,"lacks":"env"' $((times + 1))
	refuse '"line":"evil"'
	equal 'how often it ran' "$(count '"line":"it ran"')" 1
	tell "$start"
	expect '"line":"it ran"' 2
}

# What an install leaves to be kept is found by the next one, which says what it must be; what was planted there is not.
test_packages_that_are_kept() {
	tell '{"op":"install","script":"[ -d \"$BURST_KEPT\" ] && exit 9; mkdir \"$BURST_KEEP/r\"; echo deb >\"$BURST_KEEP/r/a.deb\""}'
	expect '"ev":"install","ok":true.*"kept":"'
	kept=$(sed -n 's/.*"ev":"install".*"kept":"\([0-9a-f]*\)".*/\1/p' "$said")
	tell '{"op":"install","kept":"'$kept'","script":"cat \"$BURST_KEPT/r/a.deb\""}'
	expect '"ev":"log","id":"install","line":"deb"'
	expect '"ev":"install","ok":true' 2
	equal 'kept only once' "$(ls "$BURST_VOLUME/debs")" "$kept"
	echo evil >"$BURST_VOLUME/debs/$kept/r/a.deb"
	tell '{"op":"install","kept":"'$kept'","script":"echo there: $(ls \"$BURST_KEPT\" 2>/dev/null)"}'
	expect '"line":"there:'
	refuse 'evil|there: r'
	expect '"ev":"install","ok":true' 3
}

# Workers are not root, and what is the pod's own is not theirs: neither its environment nor its files nor its processes.
test_workers_are_another_user() {
	grep -q '"separate":true' "$said" || { echo "skipped: no other users here"; return 0; }
	echo "api_key" >"$BURST_HOME/api.auth"
	chmod 600 "$BURST_HOME/api.auth"
	serve=$(serve_pid)
	cat >"$dir/probe.sh" <<-E
		echo "i am \$(id -u) \$(id -g) \$(id -G) at home in \$HOME"
		for f in "$BURST_HOME/api.auth" "$BURST_HOME/env" /proc/$serve/environ /proc/$serve/mem; do
			cat "\$f" >/dev/null 2>&1 && echo "it reads \$f"
		done
		for f in "$BURST_HOME/lease" "$BURST_HOME/end" "$BURST_HOME/switch" "$BURST_HOME/burst-agent" "$BURST_VOLUME/x" "$P/x" \
			"\$BURST_CODE/x" "$BURST_HOME/work/x" "$BURST_HOME/tree/x"; do
			(echo x >>"\$f") 2>/dev/null && echo "it writes \$f"
		done
		(echo x >>"\$BURST_CODE/c") 2>/dev/null && echo "it changes the code"
		kill -0 $serve 2>/dev/null && echo "it kills the agent"
		kill -0 1 2>/dev/null && echo "it kills the first process"
		perl -MIO::Socket::UNIX -e 'exit !IO::Socket::UNIX->new(Peer => "$BURST_HOME/agent.sock")' && echo "it speaks for the client"
		grep -q '^NoNewPrivs:.*1' /proc/self/status || echo "it may become root again"
		echo x >/dev/stdout && : >"\$BURST_OUT/x" && : >"\$HOME/x" && : >/tmp/burst-probe.\$\$ && echo "it can work" && rm /tmp/burst-probe.\$\$
	E
	mkdir "$dir/code"
	cp "$dir/probe.sh" "$dir/code/c"
	put_tree code "$dir/code"
	tell '{"op":"start","workers":1,"worker":"sh $BURST_CODE/c; sleep 100","code":"code/'$tree'"}'
	expect "\"line\":\"i am 61001 61001 61001 at home in $BURST_HOME/work/home\""
	expect '"line":"it can work"'
	tell '{"op":"start","workers":1,"command":true,"code":"code/'$tree'"}'
	tell '{"op":"batch","id":"b1","segments":[{"id":"c1","run":"sh c; rm c && : >new && echo it is its own copy"}]}'
	expect '"id":"c1","line":"i am 61001'
	expect '"line":"it is its own copy"'
	expect '"id":"c1".*"ok":true'
	tell '{"op":"setup","hash":"e","script":"id -u; : >$BURST_ENV/x"}'
	expect '"id":"setup","line":"61002"'
	expect '"ev":"setup","ok":true'
	equal 'whose it is on the volume' "$(stat -c %u "$BURST_VOLUME/env/e/x")" 0
	refuse 'it (reads|writes|changes|kills|speaks|may)'
	tell '{"op":"start","workers":1,"root":true,"worker":"id -u; sleep 100"}'
	expect '"line":"0"'
	tell '{"op":"setup","hash":"e3","env":{"A_TOKEN":"t0ken","BURST_ENV":"/elsewhere"},"script":"echo has $A_TOKEN; : >$BURST_ENV/y"}'
	expect '"id":"setup","line":"has t0ken"'
	expect '"ev":"setup","ok":true' 2
	tell '{"op":"setup","hash":"e2","root":true,"script":"echo root $(id -u)"}'
	expect '"line":"root 0"'
}

# Some volumes can be written to by every user of a pod.
test_workers_write_to_no_volume() {
	grep -q '"separate":true' "$said" || { echo "skipped: no other users here"; return 0; }
	leave
	for pid in $(serve_pid); do kill "$pid"; done
	pod
	mkdir "$BURST_VOLUME/env"
	chmod 777 "$BURST_VOLUME"
	attach 0
	tell '{"op":"start","workers":1,"worker":"mkdir $BURST_VOLUME/debs; mv $BURST_VOLUME/env $BURST_VOLUME/old; ls $BURST_VOLUME/env && echo it was there; sleep 100"}'
	expect '"line":"it was there"'
	equal 'the volume' "$(ls "$BURST_VOLUME" | tr '\n' ' ')" 'env runs '
}

# A setup could name a file of the agent's so, where a kernel lets it, and read it on the volume.
test_links_of_a_setup_bring_nothing_of_the_pods() {
	grep -q '"separate":true' "$said" || { echo "skipped: no other users here"; return 0; }
	echo "api_key" >"$BURST_HOME/api.auth"
	chmod 600 "$BURST_HOME/api.auth"
	tell '{"op":"setup","hash":"e","script":": >$BURST_ENV/ready; until [ -e $BURST_ENV/hard ]; do sleep 0.05; done"}'
	for _ in $(seq 200); do
		[ -e "$BURST_HOME/work/env/ready" ] && break
		sleep 0.05
	done
	ln "$BURST_HOME/api.auth" "$BURST_HOME/work/env/hard"
	expect '"ev":"setup","ok":false.*"error":"the result cannot be kept: Operation not permitted"'
	equal 'of the key' "$(grep -r api_key "$BURST_VOLUME" | head -n 1)" ''
}

# A link where a worker's file should be, of either kind, brings nothing that is not the worker's.
test_links_bring_nothing_of_the_pods() {
	grep -q '"separate":true' "$said" || { echo "skipped: no other users here"; return 0; }
	echo "api_key" >"$BURST_HOME/api.auth"
	tell '{"op":"start","workers":1,"command":true,"outputs":["*.txt","d/*"],"stream":true}'
	mkdir -p "$BURST_HOME/work/kept"
	# as a kernel lets a worker where fs.protected_hardlinks is off
	tell '{"op":"batch","id":"b1","segments":[{"id":"c1","run":"ln -s '"$BURST_HOME"'/api.auth s.txt; ln -s '"$BURST_HOME"' d; : >ready; until [ -e hard.txt ]; do sleep 0.05; done; echo good >good.txt"}]}'
	for _ in $(seq 200); do
		[ -e "$BURST_HOME/work/segment.c1/ready" ] && break
		sleep 0.05
	done
	ln "$BURST_HOME/api.auth" "$BURST_HOME/work/segment.c1/hard.txt"
	expect '"ev":"segment","id":"c1".*"ok":false.*"error":"output hard.txt could not be kept: Operation not permitted"'
	equal 'what came' "$(find "$P/out" -type f | sort)" "$P/out/c1/good.txt"
	equal 'of the key' "$(grep -r api_key "$BURST_VOLUME" | head -n 1)" ''
	cat >"$dir/worker.sh" <<-'E'
		echo '{"hello":1,"protocol":1,"engine":"t","version":"1","max_batch":8}'
		read -r batch
		until [ -e "$BURST_OUT/q1.wav" ]; do sleep 0.05; done
		echo '{"segment":"q1","ok":true,"file":"q1.wav"}'
		ln -s "$BURST_HOME" "$BURST_OUT/up"
		echo '{"segment":"q2","ok":true,"file":"up/api.auth"}'
		echo '{"batch":"b2","done":true}'
		read -r batch
	E
	tell "{\"op\":\"start\",\"workers\":1,\"worker\":\"exec sh $dir/worker.sh\"}"
	batch b2 q1 q2
	expect '"id":"b2","state":"started"'
	ln "$BURST_HOME/api.auth" "$BURST_HOME/work/out/q1.wav"
	expect '"id":"q1".*"ok":false,"reason":"mismatch"'
	expect '"id":"q2".*"ok":false,"reason":"mismatch"'
	equal 'of the key' "$(grep -r api_key "$BURST_VOLUME" | head -n 1)" ''
}

# Where the machine does not let the agent be several users, workers are what it is, and it says so.
test_workers_that_are_the_same_user() {
	tell '{"op":"end","reason":"test"}'
	detach
	for pid in $(serve_pid); do kill "$pid"; done
	for _ in $(seq 200); do
		[ -z "$(serve_pid)" ] && break
		sleep 0.05
	done
	pod
	chmod 700 "$dir"
	attach 0
	expect '"ev":"hello".*"separate":false'
	tell '{"op":"start","workers":1,"worker":"echo i am $(id -u); echo x >$BURST_OUT/x && echo it can work; sleep 100"}'
	expect "\"line\":\"i am $(id -u)\""
	expect '"line":"it can work"'
}

# What waits long hears that the agent lives.
test_says_that_it_is_alive() {
	tell '{"op":"setup","hash":"e","script":"until [ -e \"$BURST_HOME/../go\" ]; do sleep 0.1; done"}'
	expect '"ev":"alive","doing":"setup"' 2
	: >"$dir/go"
	expect '"ev":"setup","ok":true'
	expect '"ev":"alive","doing":"wait"'
}

test_reconnects_with_what_is_missing() {
	start 1 ''
	batch b1 q1 q2
	expect '"id":"b1","state":"done"'
	expect '"ev":"idle"'
	detach
	cp "$said" "$dir/first"
	equal 'all numbers' "$(grep -o '^{"n":[0-9]*' "$said" | cut -d: -f2 | tr '\n' ' ')" "$(seq "$(grep -c '^{"n"' "$said")" | tr '\n' ' ')"
	attach 3
	last=$(grep -c '^{"n"' "$dir/first")
	expect "^{\"n\":$last,"
	equal 'events after 3' "$(grep '^{"n"' "$said" | cat)" "$(grep '^{"n"' "$dir/first" | tail -n +4)"
	equal 'the file' "$(cat "$P/events.jsonl")" "$(grep '^{"n"' "$dir/first")"
	equal 'hello first' "$(head -n 1 "$said" | grep -c '"ev":"hello"')" 1
	batch b2 q3
	expect '"id":"b2","state":"done"'
}

test_second_attach_ends_the_first() {
	first=$client
	exec 4>&3
	attach 0
	for _ in $(seq 100); do
		kill -0 "$first" 2>/dev/null || break
		sleep 0.05
	done
	kill -0 "$first" 2>/dev/null && fail 'the first client is still there'
	exec 4>&-
	tell '{"op":"note","text":"hello \u00e9\n\"x\""}'
	expect '"ev":"log","id":"note","line":"hello é\\u000a\\"x\\""'
}

test_crash_once_is_tried_again_whole() {
	start 1 '"ONCE_CRASH_ON":"q2"'
	batch b1 q1 q2 q3
	expect '"id":"b1","state":"done"'
	equal retries "$(count '"id":"b1","state":"retry".*"reason":"crash"')" 1
	equal 'done once each' "$(count '"ev":"segment".*"ok":true')" 3
	expect '"id":"q2","batch":"b1","try":2,"ok":true'
	expect '"id":"q1","batch":"b1","try":1,"ok":true'
	expect '"state":"exited","code":3'
}

test_poison_is_found() {
	start 1 '"CRASH_ON":"q3"'
	batch b1 q1 q2 q3 q4 q5 q6 q7 q8
	batch b2 q9
	expect '"id":"b2","state":"done"'
	expect '"id":"b1","state":"done"'
	equal good "$(count '"ev":"segment".*"ok":true')" 8
	expect '"id":"q3","batch":"b1","try":[0-9],"ok":false,"reason":"poison"'
	refuse '"ev":"fatal"'
}

test_poison_first_of_a_true_batch() {
	start 1 '"CRASH_ON":"q1"'
	batch b1 q1 q2 q3 q4 q5 q6 q7 q8
	expect '"id":"b1","state":"done"'
	equal good "$(count '"ev":"segment".*"ok":true')" 7
	expect '"id":"q1".*"reason":"poison"'
}

test_two_poisons_alone() {
	start 1 '"KILL_ON":"q1"'
	batch b1 q1
	expect '"id":"b1","state":"retry".*"reason":"oom"'
	expect '"id":"q1".*"ok":false,"reason":"poison"'
	expect '"id":"b1","state":"done"'
}

test_hang_is_ended() {
	start 1 '"ONCE_HANG_ON":"q1"' 1
	batch b1 q1 q2
	expect '"id":"b1","state":"retry".*"reason":"hang"'
	expect '"id":"b1","state":"done"'
	equal good "$(count '"ev":"segment".*"ok":true')" 2
}

test_hang_outside_of_its_group() {
	cat >"$dir/worker.py" <<-'E'
		import os, time
		print('{"hello":1,"protocol":1,"engine":"t","version":"1","max_batch":8}', flush=True)
		input()
		child = os.fork()
		os.setpgid(child or 0, child or 0)
		if child:
		    os.setpgid(0, child)
		time.sleep(1000)
	E
	tell "{\"op\":\"start\",\"workers\":1,\"worker\":\"exec python3 $dir/worker.py\",\"hang_s\":1}"
	batch b1 q1
	expect '"ev":"worker","w":0,"state":"exited","code":137,"error":"hang"'
	expect '"id":"b1","state":"retry".*"reason":"hang"'
}

# WORKERS: each is followed by a tracer, which never looks at what becomes of it. Killed, it stays, as one that a driver holds.
# Fails where nothing may trace here.
start_undead() {
	echo "BURST_KILL_WAIT_S='1'" >>"$BURST_HOME/env"
	detach
	for pid in $(serve_pid); do kill "$pid"; done
	for _ in $(seq 200); do
		[ -z "$(serve_pid)" ] && break
		sleep 0.05
	done
	attach 0
	cat >"$dir/worker.py" <<-'E'
		import ctypes, os, sys, time
		libc = ctypes.CDLL(None, use_errno=True)
		def undead():
		    ready, told = os.pipe()
		    me, child = os.getpid(), os.fork()
		    if child == 0:
		        os.setpgid(0, 0)
		        os.read(ready, 1)
		        traces = libc.ptrace(0x4206, me, None, None) == 0
		        print('undead' if traces else 'nothing may trace here', file=sys.stderr, flush=True)
		        time.sleep(1000)
		    libc.prctl(0x59616D61, child, 0, 0, 0)
		    os.write(told, b'x')
		    time.sleep(1000)
		if len(sys.argv) > 1:
		    undead()
		print('{"hello":1,"protocol":1,"engine":"t","version":"1","max_batch":8}', flush=True)
		input()
		undead()
	E
	tell "{\"op\":\"start\",\"workers\":$1,\"worker\":\"exec python3 $dir/worker.py\",\"hang_s\":1}"
}

test_worker_that_does_not_die() {
	start_undead 2
	batch b1 q1
	expect '"line":"(undead|nothing may trace here)"'
	grep -q '"line":"nothing may' "$said" && { echo "skipped: nothing may trace here"; return 0; }
	expect '"ev":"worker","w":.,"state":"failed","error":"it was killed and does not end"'
	refuse '"ev":"fatal"'
	expect '"id":"b1","state":"started"' 2 # by the other one
	expect '"ev":"worker","w":.,"state":"failed","error":"it was killed and does not end"' 2
	expect '"ev":"fatal","error":"no worker can be kept running: it was killed and does not end"'
	refuse '"ev":"segment"'
}

test_worker_that_does_not_die_detached() {
	start_undead 1
	batch b1 q1
	tell '{"op":"handover","lease_s":20}'
	expect '"line":"(undead|nothing may trace here)"'
	grep -q '"line":"nothing may' "$said" && { echo "skipped: nothing may trace here"; return 0; }
	detach
	for _ in $(seq 400); do
		[ -e "$BURST_HOME/end" ] && break
		sleep 0.05
	done
	grep -q 'does not end' "$BURST_HOME/end" || fail 'it holds its pod'
	attach 0
}

test_command_that_does_not_die() {
	start_undead 0
	tell '{"op":"start","workers":1,"command":true,"hang_s":1}'
	tell "{\"op\":\"batch\",\"id\":\"b1\",\"segments\":[{\"id\":\"c1\",\"run\":\"exec python3 $dir/worker.py command\"},{\"id\":\"c2\",\"run\":\"exit 5\"}]}"
	expect '"line":"(undead|nothing may trace here)"'
	grep -q '"line":"nothing may' "$said" && { echo "skipped: nothing may trace here"; return 0; }
	expect '"id":"c1".*"code":137.*"error":"it was silent for too long and was ended"'
	expect '"id":"c2".*"code":5'
	expect '"ev":"idle"'
}

test_setup_that_does_not_die() {
	start_undead 0
	tell "{\"op\":\"setup\",\"hash\":\"h1\",\"script\":\"exec python3 $dir/worker.py setup\",\"timeout_s\":3}"
	expect '"line":"(undead|nothing may trace here)"'
	grep -q '"line":"nothing may' "$said" && { echo "skipped: nothing may trace here"; return 0; }
	expect '"ev":"setup","ok":false.*"error":"it took too long; '
}

test_out_of_memory_halves() {
	start 1 '"OOM_OVER":"2"'
	batch b1 q1 q2 q3 q4 q5 q6 q7 q8
	expect '"id":"b1","state":"done"'
	equal good "$(count '"ev":"segment".*"ok":true')" 8
	equal ooms "$(count '"reason":"oom"')" 2
	equal 'no restart' "$(count '"state":"ready"')" 1
	batch b2 r1 r2 r3 r4
	expect '"id":"b2","state":"done"'
	equal 'learned' "$(count '"id":"b2","state":"retry"')" 0
}

start_continuous() { # ENV [HANG]
	tell "{\"op\":\"start\",\"workers\":1,\"worker\":\"exec python3 $here/tests/workers/continuous.py\",\"env\":{\"EACH\":\"0.005\",\"LIMIT\":\"4\"${1:+,$1}},\"hang_s\":${2:-60}}"
	expect '"state":"ready"'
}
most_in_flight() { # of all segments that were begun
	sed -n 's/.*"line":"begin [^ ]* \([0-9]*\) .*/\1/p' "$said" | sort -n | tail -n 1
}

# Three batches of three with a worker that takes four: a batch begins before the one before it is over.
test_continuous_is_refilled() {
	start_continuous
	expect '"state":"ready","engine":"continuous".*"max_batch":4,"batching":"continuous"'
	batch b1 q1 q2 q3
	batch b2 q4 q5 q6
	batch b3 q7 q8 q9
	expect '"ev":"batch","id":"b3","state":"done"'
	equal segments "$(count '"ev":"segment".*"ok":true')" 9
	equal 'in flight' "$(most_in_flight)" 4
	equal 'begun once each' "$(count '"state":"started"')" 3
	equal retries "$(count '"state":"retry"')" 0
	# what is said of each: its start, its segments, its end
	for b in b1 b2 b3; do
		equal "events of $b" "$(grep -oE "\"id\":\"$b\",\"state\":\"[a-z]*|\"batch\":\"$b\"" "$said" | sed 's/"$//; s/.*"//' | tr '\n' ' ')" \
			"started $b $b $b done "
	done
	second=$(grep -n '"id":"b2","state":"started"' "$said" | head -n 1 | cut -d: -f1)
	first=$(grep -n '"id":"b1","state":"done"' "$said" | head -n 1 | cut -d: -f1)
	[ "$second" -lt "$first" ] || fail "b2 has waited for the end of b1"
	# each ms of the worker belongs to one batch: together they are not longer than the whole
	equal 'shares of the time' "$(sed -n 's/.*"t":\([0-9]*\),.*"state":"started".*/s \1/p; s/.*"t":\([0-9]*\),.*"state":"done","busy_ms":\([0-9]*\).*/d \1 \2/p' "$said" |
		awk '$1 == "s" && !from {from = $2} $1 == "d" {to = $2; sum += $3} END {all = to - from; print (sum > all * 0.8 && sum <= all + 5) ? "fine" : sum " of " all}')" fine
}

test_continuous_asks_for_odd_numbers() {
	start_continuous '"SAYS":"{\"take\":0}|{\"take\":999999999999}"'
	batch b1 q1 q2 q3 q4 q5 q6 q7 q8 q9
	expect '"id":"b1","state":"done"'
	equal 'in flight' "$(most_in_flight)" 4
	equal segments "$(count '"ev":"segment".*"ok":true')" 9
}

test_continuous_asks_for_less_than_nothing() {
	start_continuous '"SAYS":"{\"take\":-1}"'
	expect '"state":"exited"'
	batch b1 q1
	expect '"state":"failed","error":"it ended 5 times without a finished segment'
	expect '"ev":"fatal"'
}

# Of protocol 1, or of an engine that is not continuous: such a line is log, and the worker has one batch at a time.
test_take_of_others_is_log() {
	start_continuous '"PROTOCOL":"1","SAYS":"{\"take\":3}"'
	expect '"max_batch":4,"batching":"none"'
	expect '"ev":"log","w":0,"line":"{."take.":3}"'
	refuse '"state":"exited"'
}

test_continuous_crash_loses_nothing() {
	start_continuous '"ONCE_CRASH_ON":"q6"'
	batch b1 q1 q2 q3
	batch b2 q4 q5 q6
	batch b3 q7 q8 q9
	expect '"id":"b1","state":"done"' && expect '"id":"b2","state":"done"' && expect '"id":"b3","state":"done"'
	equal 'done once each' "$(grep '"ev":"segment".*"ok":true' "$said" | grep -o '"id":"q[0-9]*"' | sort -u | wc -l) $(count '"ev":"segment".*"ok":true')" "9 9"
	refuse '"ok":false'
}

# Whoever was in flight with the culprit is innocent.
test_continuous_poison_is_found() {
	start_continuous '"CRASH_ON":"q5"'
	batch b1 q1 q2 q3
	batch b2 q4 q5 q6
	batch b3 q7 q8 q9
	expect '"id":"b1","state":"done"' && expect '"id":"b2","state":"done"' && expect '"id":"b3","state":"done"'
	equal good "$(count '"ev":"segment".*"ok":true')" 8
	expect '"id":"q5","batch":"b2","try":[0-9],"ok":false,"reason":"poison"'
	equal bad "$(count '"ok":false')" 1
	refuse '"ev":"fatal"'
}

test_continuous_hang_is_ended() {
	start_continuous '"HANG_ON":"q2"' 1
	batch b1 q1 q2 q3
	expect '"id":"b1","state":"retry".*"reason":"hang"'
	expect '"id":"b1","state":"done"'
	equal good "$(count '"ev":"segment".*"ok":true')" 2
	expect '"id":"q2".*"reason":"poison"'
}

test_continuous_out_of_memory_takes_fewer() {
	start_continuous '"OOM_OVER":"2"'
	batch b1 q1 q2 q3
	batch b2 q4 q5 q6
	expect '"id":"b1","state":"done"' && expect '"id":"b2","state":"done"'
	equal good "$(count '"ev":"segment".*"ok":true')" 6
	equal 'no restart' "$(count '"state":"ready"')" 1
	batch b3 r1 r2 r3 r4
	expect '"id":"b3","state":"done"'
	equal learned "$(count '"id":"b3","state":"retry"')" 0
}

# The log alone tells what was finished, and who is away misses nothing.
test_continuous_reconnects() {
	start_continuous '"EACH":"0.05"'
	batch b1 q1 q2 q3
	batch b2 q4 q5 q6
	expect '"id":"q1".*"ok":true'
	detach
	attach 0
	expect '"ev":"hello".*"running":\[.*"q6".*\]'
	expect '"id":"b1","state":"done"' && expect '"id":"b2","state":"done"'
	equal good "$(count '"ev":"segment".*"ok":true')" 6
	equal 'numbered once' "$(grep -o '"n":[0-9]*' "$said" | sort | uniq -d | wc -l)" 0
}

test_continuous_drains_and_is_revoked() {
	start_continuous '"EACH":"0.05"'
	batch b1 q1 q2 q3 q4 q5 q6
	batch b2 r1
	expect '"ev":"batch","id":"b1","state":"started"'
	tell '{"op":"drain"}'
	tell '{"op":"revoke","all":true}'
	expect '"ev":"revoked","ids":\["b2"\]'
	expect '"ev":"drained"'
	equal 'what was in flight is finished' "$(count '"ev":"segment".*"ok":true')" 4
}

test_garbage() {
	start 1 '"GARBAGE_ON":"q1"'
	batch b1 q1 q2
	expect '"id":"b1","state":"retry".*"reason":"garbage"'
	expect '"id":"b1","state":"done"'
	expect '"id":"q2","batch":"b1".*"ok":true'
	expect '"id":"q1".*"reason":"poison"'
}

test_endless_line() {
	start 1 '"HUGE_ON":"q1"'
	batch b1 q1
	expect '"id":"b1","state":"retry".*"reason":"garbage"'
	expect '"id":"q1".*"reason":"poison"'
}

test_what_is_not_there() {
	start 1 '"MISSING_ON":"q1","LINK_ON":"q2","ESCAPE_ON":"q3","REFUSE_ON":"q4","FORGET_ON":"q5"'
	batch b1 q1 q2 q3 q4 q5 q6
	expect '"id":"b1","state":"done"'
	expect '"id":"q1".*"ok":false,"reason":"missing"'
	expect '"id":"q2".*"ok":false,"reason":"mismatch"'
	expect '"id":"q3".*"ok":false,"reason":"mismatch"'
	expect '"id":"q4".*"ok":false,"reason":"worker","error":"cannot say that"'
	expect '"id":"q5".*"ok":false,"reason":"missing"'
	equal good "$(count '"ev":"segment".*"ok":true')" 1
}

test_bad_hello_is_final() {
	start 2 '"BAD_HELLO":"1"'
	expect '"state":"failed","error":"no voice today"' 2
	expect '"ev":"fatal"'
	equal 'no restart' "$(count '"state":"ready"')" 0
}

test_worker_that_always_dies() {
	tell '{"op":"start","workers":1,"worker":"echo no such thing >&2; exit 4"}'
	expect '"state":"failed","error":"it ended 5 times without a finished segment: no such thing"'
	expect '"ev":"fatal"'
	equal starts "$(count '"state":"exited","code":4,"error":"no such thing"')" 5
}

test_no_hello() {
	start 1 '"SILENT":"1"' 1
	batch b1 q1
	tell '{"op":"stop"}'
	expect '"ev":"stopped"'
	equal left "$(ps -e -o args= | grep -c "[w]orker.sh.*$dir")" 0
}

test_revoke_and_drain() {
	start 1 '"SLOW":"0.3"'
	batch b1 q1 q2
	batch b2 q3
	batch b3 q4
	expect '"id":"b1","state":"started"'
	tell '{"op":"revoke","ids":["b1","b3","nothing"]}'
	expect '"ev":"revoked","ids":\["b3"\]'
	tell '{"op":"drain"}'
	expect '"ev":"drained"'
	expect '"id":"b1","state":"done"'
	refuse '"id":"b2","state":"started"'
}

test_handover_ends_by_itself() {
	start 2 ''
	batch b1 q1 q2
	batch b2 q3
	tell '{"op":"handover","lease_s":20}'
	expect '"ev":"mode","mode":"detached"'
	detach
	for _ in $(seq 200); do
		[ -e "$BURST_HOME/end" ] && break
		sleep 0.05
	done
	equal 'end' "$(cat "$BURST_HOME/end")" 'all work is done'
	equal 'events' "$(grep -c '"ev":"segment".*"ok":true' "$P/events.jsonl")" 3
	grep -q "^$BURST_ATTEMPT " "$BURST_HOME/lease" || fail 'no lease was written'
	attach 0
	expect '"ev":"hello".*"mode":"detached"'
	expect '"id":"b2","state":"done"'
}

test_takeover() {
	start 1 '"SLOW":"0.5"'
	batch b1 q1
	tell '{"op":"handover","lease_s":20}'
	tell '{"op":"takeover"}'
	expect '"ev":"mode","mode":"attached"'
	expect '"id":"b1","state":"done"'
	expect '"ev":"idle"'
	[ -e "$BURST_HOME/end" ] && fail 'it ended although it was taken over'
}

test_setup_once() {
	tell '{"op":"setup","hash":"h1","script":"echo making; echo x >\"$BURST_ENV/made\"; echo \"$BURST_ENV_FINAL\" >\"$BURST_ENV/where\"","timeout_s":20}'
	tell '{"op":"install","script":"echo into the container"}'
	expect '"ev":"setup","ok":true,"skipped":false'
	env=$(sed -n 's/.*"ev":"setup".*"tree":"\([0-9a-f]*\)".*/\1/p' "$said")
	equal 'its id' "$env" "$(rm -rf "$dir/env"; cp -a "$BURST_VOLUME/env/h1" "$dir/env"; rm "$dir/env/.burst-tree"; tree_id "$dir/env")"
	tell '{"op":"start","workers":1,"worker":"cat $BURST_ENV/made $BURST_ENV/where; sleep 50","env_hash":"h1","env_tree":"'$env'"}'
	expect '"ev":"install","ok":true'
	expect '"ev":"log","id":"setup","line":"making"'
	expect '"ev":"log","w":0,"line":"x"'
	expect "\"line\":\"$BURST_VOLUME/env/h1\""
	tell '{"op":"setup","hash":"h1","script":"exit 1"}'
	expect '"ev":"setup","ok":true,"skipped":true'
	tell '{"op":"setup","hash":"h2","script":"echo this is why >&2; exit 3"}'
	expect '"ev":"setup","ok":false,"skipped":false,"ms":[0-9]*,"error":"this is why'
	equal 'nothing half made' "$(find "$BURST_VOLUME/env" -mindepth 1 -maxdepth 1 | wc -l)" 1
	tell '{"op":"install","script":"sleep 100","timeout_s":1}'
	expect '"ev":"install","ok":false,"skipped":false.*too long'
}

# What failed is forgotten once it has succeeded, and nothing else makes up for it.
test_install_waits_for_the_start_scripts() {
	mkdir "$BURST_HOME/installing"
	tell '{"op":"install","script":"[ ! -e \"$BURST_HOME/installing\" ]"}'
	for _ in $(seq 200); do
		[ -e "$BURST_HOME/install.sh" ] && break
		sleep 0.05
	done
	sleep 0.5
	rmdir "$BURST_HOME/installing"
	expect '"ev":"install","ok":true'
}

test_install_again() {
	tell '{"op":"install","script":"exit 1"}'
	tell '{"op":"install","script":"true"}'
	start 1 ''
	expect '"ev":"install","ok":false'
	expect '"ev":"install","ok":true'
	expect '"ev":"worker".*"state":"ready"'
	tell '{"op":"install","script":"exit 1"}'
	tell '{"op":"setup","hash":"h1","script":"true"}'
	start 1 ''
	expect '"ev":"setup","ok":true'
	expect '"state":"failed","error":"what it needs could not be set up"'
}

test_setup_again() {
	tell '{"op":"setup","hash":"h1","script":"exit 1"}'
	tell '{"op":"setup","hash":"h1","script":"true"}'
	start 1 ''
	expect '"ev":"worker".*"state":"ready"'
	tell '{"op":"setup","hash":"h2","script":"exit 1"}'
	tell '{"op":"install","script":"true"}'
	start 1 ''
	expect '"ev":"install","ok":true'
	expect '"state":"failed","error":"what it needs could not be set up"'
}

test_command() {
	mkdir -p "$dir/code/out"
	echo data >"$dir/code/in.txt"
	echo old >"$dir/code/out/old.mp4"
	put_tree code "$dir/code"
	tell '{"op":"start","workers":1,"command":true,"code":"code/'$tree'","outputs":["out/**.mp4","top-*.txt"]}'
	expect '"state":"ready","engine":"command"'
	tell '{"op":"batch","id":"b1","segments":[{"id":"c1","run":"cat in.txt; echo $BURST_INDEX of $BURST_COUNT; mkdir -p out/deep/er; echo film >out/deep/er/a.mp4; echo t >top-1.txt; echo no >other.txt; ln -s /etc/passwd out/evil.mp4; echo changed >>in.txt","index":2,"count":5}]}'
	expect '"ev":"segment","id":"c1","batch":"b1","try":1,"ok":true,"code":0,"ms":[0-9]*,"outputs":2'
	expect '"ev":"log","id":"c1","line":"data"'
	expect '"ev":"log","id":"c1","line":"2 of 5"'
	hash=$(echo film | sha256sum | cut -d' ' -f1)
	expect "\"ev\":\"output\",\"id\":\"c1\",\"name\":\"out/deep/er/a.mp4\",\"path\":\"runs/r1/$BURST_ATTEMPT/out/c1/out/deep/er/a.mp4\",\"bytes\":5,\"sha256\":\"$hash\""
	equal 'code untouched' "$(cat "$BURST_VOLUME/code/$tree/in.txt" "$BURST_HOME"/tree/*/"$tree/in.txt" | tr '\n' ' ')" 'data data '
	equal 'log kept' "$(cat "$P/c1.log")" "$(printf 'data\n2 of 5')"
	equal 'outputs' "$(count '"ev":"output"')" 2
	tell '{"op":"batch","id":"b2","segments":[{"id":"c2","run":"echo part >out/p.mp4; echo why; exit 7"}]}'
	expect '"id":"c2".*"ok":false,"code":7.*"outputs":1.*"reason":"worker","error":"exit status 7: why"'
	expect '"id":"b2","state":"done"'
	for _ in $(seq 100); do
		ls -d "$BURST_HOME"/work/segment.c2* >/dev/null 2>&1 || break
		sleep 0.05
	done
	ls -d "$BURST_HOME"/work/segment.c2* 2>/dev/null && fail 'the private copy is still there'
}

# hold_up COMMAND: who opens the first file of the code is held up until COMMAND was run there. Fails where that cannot be.
hold_up() {
	mkdir -p "$dir/code"
	for i in $(seq 20); do echo "$i" >"$dir/code/f$i"; done
	put_tree code "$dir/code"
	mv "$BURST_VOLUME/code/$tree/.burst-tree" "$dir/listing" # not the one that is opened first
	(cd "$BURST_VOLUME/code/$tree" && python3 "$here/tests/e2e/hold_up.py" . "$1") >"$dir/holds" 2>"$dir/holder" &
	holder=$!
	echo $holder >>"$dir/pids"
	for _ in $(seq 400); do
		grep -qs held "$dir/holds" && mv "$dir/listing" "$BURST_VOLUME/code/$tree/.burst-tree" && return
		kill -0 $holder 2>/dev/null || break
		sleep 0.05
	done
	wait $holder
	equal 'who holds it up' "$?" 77
	echo "skipped: no leases here"
	return 1
}

# Files went while the code was copied from the volume: no command runs on a part of it.
test_code_that_changes_under_a_copy() {
	hold_up 'for f in f*; do [ $f = $HELD ] || rm $f; done' || return 0
	tell '{"op":"start","workers":1,"command":true,"code":"code/'$tree'"}'
	expect '"ev":"start","ok":false,"lacks":"code","error":"is not what was put there"'
	wait $holder
	equal 'who held it up' "$?" 0
	put_tree code "$dir/code"
	tell '{"op":"start","workers":1,"command":true,"code":"code/'$tree'"}'
	tell '{"op":"batch","id":"b1","segments":[{"id":"c1","run":"cat f* | wc -l"}]}'
	expect '"id":"c1".*"ok":true'
	expect '"id":"c1","line":"20"'
}

# It was renamed while it was copied, and is whole.
test_code_that_goes_under_a_copy() {
	hold_up 'mv "$PWD" ../gone' || return 0
	tell '{"op":"start","workers":1,"command":true,"code":"code/'$tree'"}'
	tell '{"op":"batch","id":"b1","segments":[{"id":"c1","run":"cat f* | wc -l"}]}'
	expect '"id":"c1","line":"20"'
	wait $holder
	equal 'who held it up' "$?" 0
}

# Whoever hears that a command has failed may send it again at once: its old folder, which takes a while to go, is not in the way.
test_command_leaves_its_place() {
	tell '{"op":"start","workers":1,"command":true}'
	tell '{"op":"batch","id":"b1","segments":[{"id":"c1","run":"i=0; while [ $i -lt 20000 ]; do : >f$i; i=$((i+1)); done; exit 3"}]}'
	expect '"id":"c1".*"ok":false,"code":3'
	[ -e "$BURST_HOME/work/segment.c1" ] && fail 'the old folder is still there'
}

test_command_streams() {
	tell '{"op":"start","workers":1,"command":true,"outputs":["out/*.mp4"],"stream":true}'
	tell '{"op":"batch","id":"b1","segments":[{"id":"c1","run":"mkdir out; sleep 0.3; echo a >out/a.tmp; mv out/a.tmp out/a.mp4; echo grows >out/b.mp4; until [ -e go ]; do sleep 0.05; done; echo more >>out/b.mp4"}]}'
	expect '"ev":"output","id":"c1","name":"out/a.mp4"'
	refuse '"name":"out/b.mp4"'
	: >"$BURST_HOME/work/segment.c1/go"
	expect '"ev":"output","id":"c1","name":"out/b.mp4".*"bytes":11'
	expect '"id":"c1".*"ok":true.*"outputs":2'
}

# A folder now, a file before: what cannot be kept is no success of the command.
test_output_lost() {
	tell '{"op":"start","workers":1,"command":true,"root":true,"outputs":["r/*.txt","good.txt","gone/*"]}'
	tell '{"op":"batch","id":"b1","segments":[{"id":"c1","run":"o=$BURST_VOLUME/runs/$BURST_RUN/$BURST_ATTEMPT/out/$BURST_SEGMENT; mkdir -p $o; echo x >$o/r; mkdir r; echo y >r/a.txt; echo z >good.txt"}]}'
	expect '"ev":"segment","id":"c1".*"ok":false,"code":0,.*"outputs":1,.*"reason":"missing","error":"output r/a.txt could not be kept: [^"]'
	equal outputs "$(count '"ev":"output"')" 1
	expect '"ev":"output","id":"c1","name":"good.txt"'
	equal 'half files' "$(find "$P" -name '*.part')" ''
	tell '{"op":"batch","id":"b2","segments":[{"id":"c2","run":"o=$BURST_VOLUME/runs/$BURST_RUN/$BURST_ATTEMPT/out/$BURST_SEGMENT; mkdir -p $o; echo x >$o/r; mkdir r; echo y >r/a.txt; exit 4"}]}'
	expect '"ev":"segment","id":"c2".*"ok":false,"code":4,.*"outputs":0,.*"reason":"worker","error":"exit status 4"'
}

# With `stream` it may be lost while the command runs: the look at its exit takes it once more. One that the command has taken
# away again is not lost.
test_output_lost_in_the_stream() {
	tell '{"op":"start","workers":1,"command":true,"root":true,"outputs":["r/*.txt"],"stream":true}'
	tell '{"op":"batch","id":"b1","segments":[{"id":"c1","run":"o=$BURST_VOLUME/runs/$BURST_RUN/$BURST_ATTEMPT/out/$BURST_SEGMENT; mkdir -p $o r; echo x >$o/r; until [ -e go ]; do for f in a b; do echo $f >r/$f.tmp; mv r/$f.tmp r/$f.txt; done; sleep 0.1; done; rm r/b.txt $o/r"}]}'
	expect 'output r/a.txt could not be kept'
	expect 'output r/b.txt could not be kept'
	refuse '"ev":"output"'
	: >"$BURST_HOME/work/segment.c1/go"
	expect '"ev":"segment","id":"c1".*"ok":true,.*"outputs":1,'
	equal outputs "$(count '"ev":"output","id":"c1","name":"r/a.txt"')" 1
}

# A file larger than a file may be, on a volume that has room: it is lost, the agent lives, and no half of it stays.
test_output_too_large() {
	detach
	for pid in $(serve_pid); do kill "$pid"; done
	pod
	limit_was=$(ulimit -f)
	# shellcheck disable=SC3045 # every sh that we know can set the soft one alone
	ulimit -S -f 400
	attach 0
	# shellcheck disable=SC3045
	ulimit -S -f "$limit_was"
	tell '{"op":"start","workers":1,"command":true,"outputs":["*.bin"]}'
	tell '{"op":"batch","id":"b1","segments":[{"id":"c1","run":"ulimit -S -f unlimited; head -c 300000 /dev/zero >big.bin"}]}'
	expect '"ev":"segment","id":"c1".*"ok":false,"code":0,.*"outputs":0,.*"reason":"missing","error":"output big.bin could not be kept: File too large"'
	refuse '"ev":"fatal"'
	equal 'half files' "$(find "$P" -name '*.part')" ''
}

test_command_leaves_nothing_behind() {
	tell '{"op":"start","workers":1,"command":true}'
	tell '{"op":"batch","id":"b1","segments":[{"id":"c1","run":"sleep 4321 & echo gone"}]}'
	expect '"id":"c1".*"ok":true'
	# one that left its group, and a child of it that left that one
	tell '{"op":"batch","id":"b2","segments":[{"id":"c2","run":"setsid sh -c \"setsid sleep 4322 & exec sleep 4324\" & sleep 4323"}]}'
	expect '"id":"b2","state":"started"'
	for _ in $(seq 100); do
		[ "$(pgrep -fc '^sleep 432[234]')" = 3 ] && break
		sleep 0.05
	done
	tell '{"op":"stop"}'
	expect '"ev":"stopped"'
	for _ in $(seq 100); do
		pgrep -f 'sleep 432[1234]' >/dev/null || break
		sleep 0.05
	done
	pgrep -f 'sleep 432[1234]' >/dev/null && fail 'processes are left'
}

test_log_flood() {
	tell '{"op":"start","workers":1,"command":true}'
	tell '{"op":"batch","id":"b1","segments":[{"id":"c1","run":"yes 0123456789012345678901234567890123456789 | head -c 30000000; echo; echo the end; sleep 1.2; echo after"}]}'
	expect '"id":"c1".*"ok":true'
	expect 'lines were not kept'
	[ "$(wc -c <"$P/events.jsonl")" -lt 600000 ] || fail 'the flood was kept'
	[ "$(wc -c <"$P/c1.log")" -gt 29000000 ] || fail 'the log file is cut'
}

test_agent_killed_comes_back() {
	start 1 '"SLOW":"5"'
	batch b1 q1
	expect '"id":"b1","state":"started"'
	kill -9 "$(serve_pid)"
	wait $client
	before=$(grep -c . "$P/events.jsonl")
	printf '{"n":torn' >>"$P/events.jsonl"
	attach "$before"
	start 1 ''
	batch b1 q1
	expect "^{\"n\":$((before + 1)),"
	expect '"id":"b1","state":"done"'
	equal 'no torn line' "$(grep -c torn "$P/events.jsonl")" 0
}

test_bad_lines() {
	tell 'what'
	expect '"ev":"error","error":"not a line of JSON"'
	tell '{"op":"dance"}'
	expect '"ev":"error","error":"no such operation"'
	tell '{"op":"batch","id":"../x","segments":[]}'
	expect '"error":"a batch without'
	tell '{"op":"renew","lease_s":"soon"}'
	expect '"ev":"lease"'
}

test_switch_is_told() {
	expect '"ev":"hello".*"switch":""'
	echo 'ok exit' >"$BURST_HOME/switch"
	expect '"ev":"switch","switch":"ok exit"'
}

test_no_volume() {
	detach
	for pid in $(serve_pid); do kill "$pid"; done
	pod
	rmdir "$BURST_VOLUME"
	: >"$BURST_VOLUME"
	attach 0
	expect '"ev":"fatal"'
	batch b1 q1
	expect '"ev":"error"'
}

# A fresh pod whose volume is of one megabyte (or MEGABYTES), at $full; fails where none can be made.
pod_with_little_room() {
	[ "$(id -u)" = 0 ] && mkdir -p "$dir/full" && mount -t tmpfs -o "size=${1:-1}m" none "$dir/full" 2>/dev/null || return
	detach
	for pid in $(serve_pid); do kill "$pid"; done
	full=$dir/full
	pod
	BURST_VOLUME=$full
	sed "s|^BURST_VOLUME=.*|BURST_VOLUME='$full'|" "$BURST_HOME/env" >"$dir/env" && mv "$dir/env" "$BURST_HOME/env"
	attach 0
}

leave_little_room() {
	leave
	umount "$full"
	attach 0
}

test_volume_full() {
	pod_with_little_room || return 0
	tell '{"op":"start","workers":1,"command":true,"outputs":["*.bin"]}'
	tell '{"op":"batch","id":"b1","segments":[{"id":"c1","run":"head -c 3000000 /dev/zero >big.bin"}]}'
	expect '"ev":"fatal","error":".*(full|written)'
	refuse '"ok":false'
	leave_little_room
}

# What fails then is no fault of the segments: another pod may have room for them.
test_volume_fills_up_under_a_worker() {
	pod_with_little_room || return 0
	cat >"$dir/worker.sh" <<-'E'
		echo '{"hello":1,"protocol":1,"engine":"t","version":"1","max_batch":8}'
		read -r batch
		cat /dev/zero >"$BURST_VOLUME/fill" 2>/dev/null
		no='"ok":false,"error":"No space left on device"'
		printf '{"segment":"%s",'"$no"'}\n' q1 q2 q3
		echo '{"batch":"b1","done":true}'
		read -r batch
	E
	tell "{\"op\":\"start\",\"workers\":1,\"root\":true,\"worker\":\"exec sh $dir/worker.sh\"}"
	batch b1 q1 q2 q3 q4
	expect '"ev":"fatal","error":"the volume is full'
	tell '{"op":"note","text":"after it"}'
	expect '"after it"'
	refuse '"ev":"segment"'
	leave_little_room
}

# ... also of one that takes away what it could not write whole, so that there is room again for what is small.
untidy_worker() { # WORDS [BYTES that it keeps of the first segment]
	cat >"$dir/worker.sh" <<-E
		echo '{"hello":1,"protocol":1,"engine":"t","version":"1","max_batch":1}'
		read -r batch
		if [ -n "$2" ]; then
			head -c "$2" /dev/zero >"\$BURST_OUT/q1.wav"
			echo '{"segment":"q1","ok":true,"file":"q1.wav"}'
			echo '{"batch":"b1","done":true}'
			read -r batch
		fi
		cat /dev/zero >"\$BURST_VOLUME/q2.wav.tmp" 2>/dev/null
		rm "\$BURST_VOLUME/q2.wav.tmp"
		echo '{"segment":"q2","ok":false,"error":"$1"}'
		echo '{"batch":"b2","done":true}'
		read -r batch
	E
	tell "{\"op\":\"start\",\"workers\":1,\"root\":true,\"worker\":\"exec sh $dir/worker.sh\"}"
}

test_volume_fills_up_and_is_tidied() {
	pod_with_little_room || return 0
	untidy_worker 'it could not be written'
	batch b2 q2
	expect '"ev":"fatal","error":"the volume is full'
	leave_little_room
	pod_with_little_room 16
	untidy_worker 'q2.wav.tmp: No space left on device'
	batch b2 q2
	expect '"ev":"fatal","error":"the volume is full'
	leave_little_room
	pod_with_little_room 16
	untidy_worker 'it could not be written' 9000000 # there is room for 7 MB more
	batch b1 q1
	expect '"id":"q1".*"ok":true'
	batch b2 q2
	expect '"ev":"fatal","error":"the volume is full'
	refuse '"ok":false'
	leave_little_room
}

test_a_segment_that_cannot_be_had_is_no_fault_of_the_volume() {
	pod_with_little_room 16 || return 0
	untidy_worker 'it cannot say that'
	batch b2 q2
	expect '"id":"q2".*"ok":false,"reason":"worker","error":"it cannot say that"'
	expect '"id":"b2","state":"done"'
	refuse '"ev":"fatal"'
	leave_little_room
}

# Each of many that fail is no reason to write a large file: whoever renews the lease is waiting meanwhile.
test_many_fail_at_once() {
	cat >"$dir/worker.py" <<-'E'
		import json
		print('{"hello":1,"protocol":1,"engine":"t","version":"1","max_batch":1000}', flush=True)
		batch = json.loads(input())
		for s in batch["segments"]:
		    print(json.dumps({"segment": s["id"], "ok": False, "error": "s.tmp: No space left on device"}))
		print(json.dumps({"batch": batch["batch"], "done": True}), flush=True)
		input()
	E
	tell "{\"op\":\"start\",\"workers\":1,\"worker\":\"exec python3 $dir/worker.py\"}"
	expect '"state":"ready"'
	batch b1 $(seq -f 's%.0f' 800)
	renewed=0
	until grep -q '"id":"b1","state":"done"' "$said"; do
		tell '{"op":"renew","lease_s":100}'
		renewed=$((renewed + 1))
		expect '"ev":"lease"' $renewed || break
	done
	equal 'segments' "$(count '"reason":"worker","error":"s.tmp: No space')" 800
	refuse '"ev":"fatal"'
}

# ... but one that fills up after that is noticed.
test_volume_fills_up_later() {
	pod_with_little_room 100 || return 0
	cat >"$dir/worker.sh" <<-'E'
		echo '{"hello":1,"protocol":1,"engine":"t","version":"1","max_batch":1000}'
		read -r batch
		for i in $(seq 400); do
			echo '{"segment":"q'$i'","ok":false,"error":"q.tmp: No space left on device"}'
			[ $i != 1 ] || until [ -e "$0.go" ]; do sleep 0.1; done
			[ -e "$BURST_VOLUME/fill" ] || cat /dev/zero >"$BURST_VOLUME/fill" 2>/dev/null
			sleep 0.1
		done
	E
	tell "{\"op\":\"start\",\"workers\":1,\"root\":true,\"worker\":\"exec sh $dir/worker.sh\"}"
	batch b1 $(seq -f 'q%.0f' 400)
	expect '"id":"q1".*"ok":false'
	refuse '"ev":"fatal"'
	: >"$dir/worker.sh.go"
	# whichever meets it first: the look for room, or the line that says which segment failed
	expect '"ev":"fatal","error":"(the volume is full|the event log cannot be written: No space)'
	leave_little_room
}

test_volume_fills_up_under_a_command() {
	pod_with_little_room || return 0
	tell '{"op":"start","workers":1,"command":true,"root":true}'
	tell '{"op":"batch","id":"b1","segments":[{"id":"c1","run":"cat /dev/zero >$BURST_VOLUME/fill 2>/dev/null"}]}'
	expect '"ev":"fatal","error":"the volume is full'
	tell '{"op":"note","text":"after it"}'
	expect '"after it"'
	refuse '"ev":"segment"'
	leave_little_room
}

# ---- environments on the pod's disk ----

# A fresh pod that keeps environments at $disk, the same for all; with a folder it has that volume.
disk_pod() { # [VOLUME]
	[ -z "$(serve_pid)" ] || leave
	BURST_ATTEMPT=$(printf 'aaaabbbbcccc%04d' "$n") # each has events of its own
	pod
	disk=$top/disk-$name
	[ -z "$1" ] || BURST_VOLUME=$1
	sed "s|^BURST_VOLUME=.*|BURST_VOLUME='$BURST_VOLUME'|" "$BURST_HOME/env" >"$dir/env" && mv "$dir/env" "$BURST_HOME/env"
	echo "BURST_ENV_DISK='$disk'" >>"$BURST_HOME/env"
	attach 0
}

# A setup whose result has a name of its own; its id in $env. What it prints there is its final name.
set_up() { # NAME [MORE]
	tell '{"op":"setup","hash":"'$1'","script":"cd $BURST_ENV; mkdir -p lib/more; for i in $(seq 200); do echo $i >lib/f$i; done; echo good >lib/m; echo \"#!$BURST_ENV_FINAL/lib/sh\" >script; ln -s /bin/sh lib/sh; echo exit 7 >>script; chmod 755 script; '"$2"'"}'
	expect '"ev":"setup","ok":true.*"tree":"' || return
	env=$(sed -n 's/.*"ev":"setup".*"tree":"\([0-9a-f]*\)".*/\1/p' "$said")
}

# What the worker finds: where it is, whether its own path in it leads to it, and what is in it.
use() { # NAME [TIMES]: workers are started anew, since the words of each start differ
	tell '{"op":"start","workers":1,"hang_s":6'${2:-1}',"worker":"cat $BURST_ENV/lib/m $BURST_ENV/lib/f200; $BURST_ENV/script; echo at $BURST_ENV $?; echo '\''{\"hello\":1,\"protocol\":1,\"engine\":\"t\",\"version\":\"1\"}'\''; sleep 100","env_hash":"'$1'","env_tree":"'$env'"}'
	expect "\"line\":\"at $disk/$1 7\"" $2
	expect '"ev":"worker".*"state":"ready"' $2
	equal 'what is in it' "$(count '"line":"good"') $(count '"line":"200"')" "${2:-1} ${2:-1}"
}

test_environment_from_its_archive() {
	disk_pod
	set_up e
	use e
	expect '"ev":"log","line":"unpacked the environment: [0-9]* MB in [0-9.]* s"'
	expect '"ev":"worker".*"phases":\{"unpack_s":[0-9.]*,"unpack_bytes":[1-9][0-9]*\}'
	[ -d "$disk/e" ] && [ ! -L "$disk/e" ] && [ -s "$BURST_VOLUME/env/e/.burst-archive" ] || fail 'no archive was unpacked'
	# it stays for a second start
	touch "$disk/e/seen"
	use e 2
	[ -e "$disk/e/seen" ] || fail 'it was unpacked again'
	# the files of the folder are not needed by a later pod
	disk_pod "$BURST_VOLUME"
	echo evil >"$BURST_VOLUME/env/e/lib/m"
	use e
	[ -e "$disk/e/seen" ] && fail 'what an earlier agent unpacked was used'
	refuse evil
	# a pod that knows of no such disk compares it where it lies
	volume=$BURST_VOLUME
	leave
	pod
	BURST_VOLUME=$volume
	sed "s|^BURST_VOLUME=.*|BURST_VOLUME='$volume'|" "$BURST_HOME/env" >"$dir/env" && mv "$dir/env" "$BURST_HOME/env"
	attach 0
	tell '{"op":"start","workers":1,"worker":"sleep 100","env_hash":"e","env_tree":"'$env'"}'
	expect '"ev":"start","ok":false,"lacks":"env","error":"is not what was put there"'
	rm -rf "$disk"
}

# Each of these costs time and a line of the log, and no run.
test_environment_without_its_archive() {
	disk_pod
	set_up e
	volume=$BURST_VOLUME
	cp "$volume/env/e/.burst-archive" "$top/archive"
	while read -r broken why; do
		disk_pod "$volume"
		(cd "$volume/env/e" && rm -f .burst-archive && cp "$top/archive" .burst-archive && eval "$(echo "$broken" | tr _ ' ')")
		use e || return
		expect "\"ev\":\"log\",\"line\":\"the environment is used from the volume, which may take longer: $why\""
		refuse '"unpack_s"'
		equal 'where it is' "$(readlink "$disk/e")" "$volume/env/e"
		equal 'what is left' "$(ls -A "$disk")" e
		use e 2 # in place, once more
	done <<-'E'
		rm_.burst-archive it has no archive
		echo_>>.burst-archive its archive is not what was put there
		printf_x_|_dd_of=.burst-archive_bs=1_conv=notrunc_seek=$(($(stat_-c_%s_.burst-archive)_-_100))_2>/dev/null its archive is not what was put there
		truncate_-s_-1_.burst-archive its archive is not what was put there
		:_>.burst-archive its archive is not what was put there
	E
	# and where the folder is of no use either, the volume lacks it
	disk_pod "$volume"
	rm "$volume/env/e/.burst-archive"
	echo evil >"$volume/env/e/lib/m"
	tell '{"op":"start","workers":1,"worker":"sleep 100","env_hash":"e","env_tree":"'$env'"}'
	expect '"ev":"start","ok":false,"lacks":"env","error":"is not what was put there"'
	rm -rf "$disk"
}

test_environment_for_which_the_disk_is_too_small() {
	disk_pod
	set_up e 'head -c 3000000 /dev/zero >lib/large'
	volume=$BURST_VOLUME
	# shellcheck disable=SC3045 # all shells here know -S
	limit=$(ulimit -f) && ulimit -S -f 4000 # 2 MB: a write fails in the midst of it
	disk_pod "$volume"
	# shellcheck disable=SC3045
	ulimit -S -f "$limit"
	use e
	expect '"line":"the environment is used from the volume, which may take longer: File too large"'
	equal 'what is left' "$(ls -A "$disk")" e
	[ "$(id -u)" = 0 ] && disk=$top/disk-$name && umount "$disk" 2>/dev/null
	leave
	rm -rf "$disk"
	mkdir -p "$disk"
	if [ "$(id -u)" = 0 ] && mount -t tmpfs -o size=1m none "$disk" 2>/dev/null; then
		chmod 755 "$disk"
		attach 0
		disk_pod "$volume"
		use e
		expect '"line":"the environment is used from the volume.*the pod.s disk: it is in memory, or programs cannot run there"'
		leave
		umount "$disk"
	fi
	attach 0
	rm -rf "$disk"
}

# An agent that is killed while it writes an archive, and one while it unpacks it, leave nothing that the next takes for whole.
kill_serve() { # PID: looking for it would take too long
	kill -9 "$1"
	detach
	for _ in $(seq 200); do # its children end with it
		[ -z "$(serve_pid)" ] && return
		sleep 0.05
	done
	fail 'something of the agent goes on'
}

test_environment_of_an_agent_that_was_killed() {
	disk_pod
	volume=$BURST_VOLUME
	serve=$(serve_pid)
	tell '{"op":"setup","hash":"e","script":"cd $BURST_ENV; for i in 1 2 3 4 5 6 7 8; do head -c 30000000 /dev/urandom >large$i; done"}'
	until set -- "$volume"/env/.kept.*/.burst-archive && [ -e "$1" ]; do
		grep -q '"ev":"setup"' "$said" && break
	done
	kill_serve "$serve"
	[ -e "$volume/env/e" ] && fail 'it came too late'
	[ -e "$1" ] || fail 'no archive was begun'
	disk_pod "$volume"
	serve=$(serve_pid)
	set_up e 'for i in 1 2 3 4 5 6 7 8; do head -c 30000000 /dev/zero >large$i; done'
	tell '{"op":"start","workers":1,"worker":"sleep 100","env_hash":"e","env_tree":"'$env'"}'
	until set -- "$disk"/.e.* && [ -e "$1" ]; do
		grep -q 'unpacked the env' "$said" && break
	done
	kill_serve "$serve"
	[ -e "$disk/e" ] && fail 'it came too late'
	[ -e "$1" ] || fail 'nothing was half unpacked'
	attach 0 # in the same pod
	use e
	equal 'what is left' "$(ls -A "$disk")" e
	[ -L "$disk/e" ] && fail 'it was not unpacked'
	rm -rf "$disk"
}

# Two pods make the same environment at once: each its own.
test_environment_made_by_two_pods() {
	disk_pod
	volume=$BURST_VOLUME first=$dir
	exec 4>&3
	first_client=$client first_said=$said
	pod
	sed "s|^BURST_VOLUME=.*|BURST_VOLUME='$volume'|" "$BURST_HOME/env" >"$dir/env" && mv "$dir/env" "$BURST_HOME/env"
	echo "BURST_ENV_DISK='$disk-2'" >>"$BURST_HOME/env"
	BURST_VOLUME=$volume
	attach 0
	script='cd $BURST_ENV; for i in $(seq 300); do head -c 30000 /dev/urandom >f$i; done; echo good >lib'
	printf '{"op":"setup","hash":"key-a","script":"%s"}\n' "$script" >&4
	tell '{"op":"setup","hash":"key-b","script":"'"$script"'"}'
	expect '"ev":"setup","ok":true'
	second=$(sed -n 's/.*"ev":"setup".*"tree":"\([0-9a-f]*\)".*/\1/p' "$said")
	said=$first_said
	expect '"ev":"setup","ok":true'
	env=$(sed -n 's/.*"ev":"setup".*"tree":"\([0-9a-f]*\)".*/\1/p' "$said")
	said=$dir/said
	# each uses the other's
	printf '{"op":"start","workers":1,"worker":"echo has $(cat $BURST_ENV/lib); sleep 100","env_hash":"key-b","env_tree":"%s"}\n' "$second" >&4
	tell '{"op":"start","workers":1,"worker":"echo has $(cat $BURST_ENV/lib); sleep 100","env_hash":"key-a","env_tree":"'$env'"}'
	expect '"line":"has good"'
	expect '"line":"unpacked the environment'
	leave
	dir=$first BURST_HOME=$first/home said=$first_said client=$first_client
	exec 3>&4 4>&-
	expect '"line":"has good"'
	expect '"line":"unpacked the environment'
	equal 'what is on the volume' "$(ls -A "$volume/env" | tr '\n' ' ')" 'key-a key-b '
	rm -rf "$disk" "$disk-2"
}

# Handed to another run: its folder, its events from 1 on, the same process of the worker.
test_another_run_takes_the_pod() {
	start 1 '"CHATTY":"1"'
	expect '"ev":"worker".*"state":"ready"'
	batch b1 q1
	expect '"ev":"batch","id":"b1","state":"done"'
	pid=$(pgrep -f "$WORKER" -P "$(serve_pid)")
	exec 3>&-
	mkfifo "$dir/ask2"
	"$AGENT" attach <"$dir/ask2" >"$dir/said2" 2>>"$dir/stderr" &
	client=$!
	exec 3>"$dir/ask2"
	said=$dir/said2
	tell '{"op":"attach","from":0,"run":"r2"}'
	expect '"ev":"hello".*"run":"r2".*"next":1,.*"workers":1,'
	start 1 '"CHATTY":"1"'
	expect '"n":1,.*"ev":"worker","w":0,"state":"ready","engine":"test".*"load_ms":0'
	batch b1 q1
	expect '"ev":"batch","id":"b1","state":"done"'
	expect "\"path\":\"runs/r2/$BURST_ATTEMPT/q1.wav\""
	equal 'the worker' "$(pgrep -f "$WORKER" -P "$(serve_pid)")" "$pid"
	[ -e "$dir/volume/runs/r2/$BURST_ATTEMPT/events.jsonl" ] || fail 'no log of the second run'
	equal 'events of the first run' "$(grep -c '"ev":"segment"' "$P/events.jsonl")" 1
	# another environment: another worker
	start 1 '"CHATTY":"2"'
	expect '"ev":"worker".*"state":"ready"' 2
	[ "$(pgrep -f "$WORKER" -P "$(serve_pid)")" != "$pid" ] || fail 'a worker with another environment was kept'
}

# ... that had not finished: nothing of the first run comes to the second.
test_another_run_takes_a_pod_at_work() {
	start 1 '"SLOW":"5"'
	expect '"ev":"worker".*"state":"ready"'
	batch b1 q1 q2
	expect '"ev":"batch","id":"b1","state":"started"'
	exec 3>&-
	mkfifo "$dir/ask2"
	"$AGENT" attach <"$dir/ask2" >"$dir/said2" 2>>"$dir/stderr" &
	client=$!
	exec 3>"$dir/ask2"
	said=$dir/said2
	tell '{"op":"attach","from":0,"run":"r2"}'
	expect '"ev":"hello".*"run":"r2".*"next":1,.*"workers":0,.*"running":\[\]'
	start 1
	batch b2 q9
	expect '"ev":"batch","id":"b2","state":"done"'
	refuse '"id":"q[12]"'
}

run() {
	name=$1
	[ -n "$ONLY" ] && [ "$ONLY" != "$name" ] && return
	failed_before=$fails
	BURST_ATTEMPT=aaaabbbbccccdddd
	pod
	attach 0
	"test_$name"
	leave
	for _ in $(seq 100); do
		[ -z "$(serve_pid)" ] && break
		sleep 0.05
	done
	grep -hE 'Sanitizer|runtime error' "$BURST_HOME/agent.log" "$dir/stderr" 2>/dev/null && fail 'a sanitizer speaks'
	[ "$fails" = "$failed_before" ] && echo "ok: $name"
}

for t in $(sed -n 's/^test_\([a-z_]*\)() {.*/\1/p' "$0"); do
	run "$t"
done
[ $fails = 0 ]
