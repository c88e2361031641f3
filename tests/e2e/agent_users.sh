#!/bin/sh
# agent_users.sh - what the code of a job may reach on the pod: workers are another user, planted code and links lead nowhere.
# shellcheck disable=SC2016,SC2013,SC2015,SC2086,SC2154 # pod-side $ stays; paths of our own making have no blanks
. "$(dirname "$0")/agent_lib.sh"

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

run_tests
