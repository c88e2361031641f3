#!/bin/bash
# outputs.sh - what a command has finished is a result, whatever becomes of the command, its pod or this client.
. "$(dirname "$0")/lib.sh"

# makes STREAM [CONFIG...]: a command that finishes four files, is writing a fifth, and then does what END says. Keys of the local
# provider in LOCAL, caps in COST and DURATION, what comes first in BEGIN.
makes() {
	local stream=$1
	shift
	mkdir -p code
	cat >code/go.sh <<-E
		${BEGIN:-:}
		mkdir -p out/sub
		for i in 1 2; do echo \$i >out/tmp; mv out/tmp out/ok\$i.wav; done
		echo 3 >out/closed.wav
		echo 4 >out/sub/deep.wav
		exec 7>out/open.wav
		echo half >&7
		echo ready
		${END:-exec sleep 600}
	E
	rehearse
	cat >burst.cfg <<-E
		provider = "local_play";
		pods = 1;
		code = { path = "code"; };
		caps = { max_cost = ${COST:-1.00}; max_duration = "${DURATION:-10m}"; };
		providers = { local_play = { price_per_hour = 3.60; storage = true; ${REHEARSE:-} }; };
		job = { name = "o"; type = "command"; stream = $stream; outputs = ["out/**.wav"]; output = "res"; run = "sh go.sh"; };
		$*
	E
}
VOLUME='volume = { name = "v"; size_gb = 1; create = true; };'
FOUR="out/closed.wav out/ok1.wav out/ok2.wav out/sub/deep.wav"
four_are_here() { # four_are_here WHAT [NAMES]: under their final names, in the manifest, and nothing else
	is "$(cd res && find out -type f | sort | tr '\n' ' ')" "${2:-$FOUR} " "$1: files"
	is "$(jq -r .file res/manifest.jsonl | sort -u | tr '\n' ' ')" "${2:-$FOUR} " "$1: in the manifest"
	jq -r '.sha256 + "  res/" + .file' res/manifest.jsonl | sort -u | sha256sum -c --quiet >/dev/null 2>&1 ||
		complain "$1: a file is not what the manifest says"
	is "$(cat res/out/ok1.wav res/out/closed.wav res/out/sub/deep.wav | tr '\n' ' ')" "1 3 4 " "$1: what they hold"
}
is_ready() { grep -q '| ready' err.txt; }

t_of_a_command_that_fails() { # by its own word, by a signal, and as a shell reports one; its last file closes with it
	local stream
	for stream in true false; do
		rm -rf res
		END='sleep 1; exit 3' makes $stream
		burst run --json
		is "$STATUS" 1 "stream $stream: exit status"
		four_are_here "stream $stream" "out/closed.wav out/ok1.wav out/ok2.wav out/open.wav out/sub/deep.wav"
		is "$(json '"\(.status) \(.segments.failed) \(.error.message)"')" "failed 1 the command ended with exit code 3" "stream $stream: what it says"
		rm -rf res
		END='sleep 1; kill -9 $$' makes $stream
		burst run --json
		is "$STATUS" 1 "stream $stream, killed: exit status"
		four_are_here "stream $stream, killed"
		has err.txt "output out/open.wav: may not be finished, and is not kept" # its shell says that it was killed
	done
}

interrupted() { # interrupted STATUS WHAT COMMAND...: when it is ready
	burst_bg run --json
	wait_for 40 "the command to work" is_ready
	eval "$3"
	burst_wait
	is "$STATUS" "$1" "$2: exit status ($(tail -n 2 err.txt))"
	four_are_here "$2"
	is "$(json '[.pods[].released] | all')" true "$2: all released"
	[ "$(json .wasted_seconds | cut -d. -f1)" -ge 0 ] || complain "$2: wasted $(json .wasted_seconds)"
}
t_of_a_run_that_is_interrupted() { # once, twice, and by another command
	local stream
	for stream in true false; do
		makes $stream
		interrupted 130 "Ctrl-C, stream $stream" 'kill -INT "$PID"'
		is "$(json '"\(.status) \(.segments.failed)"')" "interrupted 0" "Ctrl-C, stream $stream: what it says"
		rm -rf res
	done
	makes true
	burst_bg run
	wait_for 40 "a file" test -e res/out/ok2.wav
	kill -INT "$PID"
	kill -INT "$PID"
	burst_wait
	is "$STATUS $(cat res/out/ok2.wav)" "130 2" "twice: exit status, and what was here before"
	is "$(find res -name '*.part')" "" "twice: half files"
	rm -rf res
	makes false
	interrupted 143 "cancel" '"$BURST" cancel "$(ledger "select id from run order by seq desc limit 1")" >cancel.txt 2>&1'
}

t_at_a_cap() { # of time and of money
	local stream
	for stream in true false; do
		rm -rf res
		DURATION=14s makes $stream
		burst run --json
		is "$STATUS" 5 "max_duration, stream $stream: exit status ($(tail -n 2 err.txt))"
		four_are_here "max_duration, stream $stream"
		is "$(json .status)" capped "max_duration, stream $stream: status"
		rm -rf res
		COST=0.03 makes $stream
		burst run --json
		is "$STATUS" 5 "max_cost, stream $stream: exit status ($(tail -n 2 err.txt))"
		four_are_here "max_cost, stream $stream"
		[ "$(json '.cost_usd * 1000 | floor')" -le 30 ] || complain "max_cost: it cost $(json .cost_usd)"
	done
}

names() { # files in the manifest that are there, but for those of the last attempt
	jq -r .file res/manifest.jsonl | sort -u | grep -v last | while read -r file; do [ ! -e "res/$file" ] || printf '%s ' "$file"; done
}
# The vendor takes pods back. Each attempt finds on the volume how many there were before it.
counts='n=$BURST_VOLUME/n; echo x >>$n; n=$(wc -l <$n)'
t_of_a_pod_that_is_reclaimed() { # kept, and joined by those of the next attempt, which makes the rest alone or all anew
	local stream
	for stream in true false; do
		rm -rf res state/volumes
		BEGIN="$counts; [ \$n = 1 ] || { mkdir out; echo 5 >out/last.wav; exit 0; }" REHEARSE='preempt = "all"; preempt_after = "4s";' \
			makes $stream "$VOLUME pod = { worker_root = true; };"
		burst run --json
		is "$STATUS" 0 "stream $stream: exit status ($(tail -n 2 err.txt))"
		is "$(json '.pods | length')" 2 "stream $stream: pods"
		# a pod that dies without a word has reported what was renamed, if that is streamed
		is "$(names)" "$([ $stream = false ] || echo "out/ok1.wav out/ok2.wav ")" "stream $stream: of the first pod"
		[ "$(json '.wasted_seconds | floor')" -ge 1 ] || complain "stream $stream: wasted $(json .wasted_seconds)"
		hasnt err.txt "use fewer pods"
	done
	rm -rf res state/volumes
	BEGIN="$counts; [ \$n = 1 ] || { mkdir out; echo anew >out/ok2.wav; exit 0; }" REHEARSE='preempt = "all"; preempt_after = "4s";' \
		makes true "$VOLUME pod = { worker_root = true; };"
	burst run
	is "$STATUS" 0 "made anew: exit status ($(tail -n 2 err.txt))"
	is "$(cat res/out/ok2.wav)" anew "made anew: the later one"
	is "$(sha256sum <res/out/ok2.wav | cut -c1-64)" "$(jq -r 'select(.file == "out/ok2.wav") | .sha256' res/manifest.jsonl)" "made anew: its hash"
}

t_of_pods_that_are_all_reclaimed() { # without a volume, too, as far as they were fetched
	REHEARSE='preempt = "all"; preempt_after = "4s";' makes true
	burst run --json
	is "$STATUS" 1 "exit status ($(tail -n 2 err.txt))"
	[ -e res/out/ok1.wav ] && [ -e res/out/ok2.wav ] || complain "files: $(find res -type f)"
	is "$(find res -name '*.part')" "" "half files"
}

t_killed_client() { # what it had fetched stays; another client of the run, or `burst fetch`, has the rest
	makes true "$VOLUME"
	burst_bg run
	wait_for 40 "a file" test -e res/out/ok2.wav
	kill_it
	is "$(cat res/out/ok2.wav)" 2 "what the dead client had named"
	burst_bg resume --json
	wait_for 40 "the run to go on" is_ready
	kill -INT "$PID"
	burst_wait
	is "$STATUS" 130 "resumed: exit status ($(tail -n 2 err.txt))"
	four_are_here "resumed"
	rm -r res
	burst_bg run
	wait_for 40 "the command to work" is_ready
	kill_it
	burst reap
	is "$STATUS" 0 "reap: exit status"
	local id
	id=$(ledger 'select id from run order by seq desc limit 1')
	rm -rf res
	burst fetch "$id"
	is "$STATUS" 0 "fetch: exit status ($(tail -n 2 err.txt))"
	[ -e res/out/ok1.wav ] && [ -e res/out/ok2.wav ] || complain "fetch: files: $(find res -type f) ($(tail -n 3 err.txt))"
	is "$("$BURST" fetch "$id" 2>&1 | grep -c ': 0 files fetched')" 1 "fetch again"
	echo mine >res/out/ok1.wav
	burst fetch "$id"
	is "$STATUS $(cat res/out/ok1.wav)" "1 mine" "over a changed file: exit status"
	has err.txt "out/ok1.wav: is there, and was not made by run $id: move it away first"
}

t_no_room_here() { # they stay on the volume, which is said, and `burst fetch` brings them
	make -s -C "$ROOT" e2e-tools || { complain "failer.so cannot be built"; return; }
	END='exit 0' makes true "$VOLUME"
	timeout -k 5 90 env LD_PRELOAD="$ROOT/build/e2e/failer.so" ASAN_OPTIONS="$ASAN_OPTIONS:verify_asan_link_order=0" \
		FAIL_AT="on 1 ENOSPC" FAIL_UNDER="$T/res/out" "$BURST" run >out.txt 2>err.txt </dev/null
	is "$?" 1 "exit status ($(tail -n 2 err.txt))"
	has err.txt "5 finished files (out/ok1.wav, ...) are only on volume v: \`burst fetch $(ledger 'select id from run')\` brings them"
	burst fetch "$(ledger 'select id from run')"
	four_are_here "fetched" "out/closed.wav out/ok1.wav out/ok2.wav out/open.wav out/sub/deep.wav"
}

t_detached() { # the pods go on alone; at their hard end, what is finished is on the volume
	DURATION=20s makes false "$VOLUME"
	burst run -d
	is "$STATUS" 0 "handed over: exit status ($(tail -n 2 err.txt))"
	wait_for 60 "the pods to end" no_pods
	burst attach
	is "$STATUS" 5 "attach: exit status ($(tail -n 2 err.txt))"
	four_are_here "attached"
}

run_tests "$@"
