#!/bin/bash
# hostile.sh - a pod that has been taken over: its keys are right, and what answers instead of its agent lies. The client stays
# within its folder, its memory and its time, lets such a pod go and has the work done elsewhere.
. "$(dirname "$0")/lib.sh"

MEMORY_KB=900000 # with the sanitizers' own; an endless stream brings gigabytes

# The first pod is taken over: what it is asked is answered by hostile_agent.py behind an sshd with the pod's own keys.
take_over() { # take_over CASE
	local as=''
	mkdir -p taken
	if [ "$(id -u)" = 0 ]; then
		mkdir -p /run/sshd
	else # its user is called pod, whom this machine does not know
		echo "pod:x:$(id -u):$(id -g)::$T/taken:/bin/sh" >taken/passwd
		as="unshare -Um --map-current-user --keep-caps sh -c 'mount --bind $T/taken/passwd /etc/passwd && exec \"\$@\"' sh"
	fi
	cat >taken/agent <<-E
		#!/bin/sh
		CASE=$1 CASE_STATE=$T/taken exec python3 "$ROOT/tests/e2e/hostile_agent.py"
	E
	cat >taken/answer <<-E
		below() { for p in "\$@"; do echo \$p; below \$(pgrep -P \$p); done; }
		for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
			[ -s "$T/taken/keys" ] && break
			for p in \$(below \$(pgrep -f "$T/state")); do
				home=/proc/\$p/root/run/burst
				cp "\$home/host_key" "$T/taken/key" && cp "\$home/authorized_keys" "$T/taken/keys" && break
			done
			sleep 0.1
		done 2>/dev/null
		chmod 600 "$T/taken/key"
		exec $as /usr/sbin/sshd -i -e -f /dev/null -o HostKey="$T/taken/key" -o AuthorizedKeysFile="$T/taken/keys" \\
			-o StrictModes=no -o UsePAM=no -o PidFile=none -o ForceCommand="$T/taken/agent" -o MaxSessions=100 2>>"$T/taken/log"
	E
	chmod 755 taken/agent
	through "1.*=run:$T/taken/answer"
	# how much memory it took, at most
	sed -i 's/^exec /exec python3 "$0.py" /' client
	cat >client.py <<-E
		import resource, signal, subprocess, sys
		for s in signal.SIGTERM, signal.SIGINT:
		    signal.signal(s, lambda n, f: child.send_signal(n))
		child = subprocess.Popen(sys.argv[1:])
		code = child.wait()
		open("memory_kb", "w").write(str(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss))
		sys.exit(code if code >= 0 else 128 - code)
	E
}
hostile_job() { # two offers, so that there is a next one
	REHEARSE='spot_price_per_hour = 0.30;'
	script_lines 6
	slow_worker
	config 'code = { path = "code"; }; pods = 1; spot = true;'
}
within_bounds() {
	[ "$(cat memory_kb)" -lt $MEMORY_KB ] || complain "$1: it took $(cat memory_kb) kB of memory"
	[ -z "$(find . -path ./state -prune -o \( -name '*evil*' -o -name '*.part' \) -print)" ] || complain "$1: a file came where it must not"
	"$BURST" logs "$(json .run)" >logs.txt 2>&1
	"$BURST" ps --all >ps.txt 2>&1
	! LC_ALL=C grep -l "$(printf '\033\|\007\|\302\233\|\342\200\256')" err.txt out.txt logs.txt ps.txt state/runs/*/log >found.txt ||
		complain "$1: the pod's text can drive the terminal: $(cat found.txt)"
}
seen_through() { # seen_through CASE [WORDS]: the pod is let go and the next one does the work
	rm -rf out state taken
	take_over "$1"
	LIMIT=60
	burst run --json
	within_bounds "$1"
	is "$STATUS" 0 "$1: exit status ($(tail -n 2 err.txt))"
	is "$(json '.pods | length')" 2 "$1: pods"
	is "$(json '[.pods[].released] | all')" true "$1: released"
	is "$(wavs)" 6 "$1: files"
	is "$(jq -r .provider,.attempt out/manifest.jsonl | grep -c local)" 6 "$1: lines"
	# what came whole before the first lie is verified and stays
	[ "$(ledger "select count(distinct attempt) from segment where state = 1")" -le "${WHOSE:-1}" ] ||
		complain "$1: files of the pod that lies were taken"
	[ -z "${2:-}" ] || has err.txt "$2"
	nothing_left
}
each_seen_through() {
	local one
	hostile_job
	for one in "$@"; do [ -n "$WHY" ] || seen_through "$one"; done
}
t_honest() { # the stand-in for an agent is believed as long as it tells no lie
	hostile_job
	take_over honest
	burst run --json
	within_bounds honest
	is "$STATUS" 0 "exit status ($(tail -n 2 err.txt))"
	is "$(json '.pods | length')" 1 pods
	is "$(wavs)" 6 files
	[ -z "$(find state/volumes -name events.jsonl)" ] || complain "it was the pod's own agent that answered"
}
t_what_is_no_json() { each_seen_through binary endless_line endless_noise deep_json deep_list; }
t_floods() { each_seen_through endless_log endless_stderr endless_events; }
t_paths() { each_seen_through path_up path_absolute path_control path_long path_nul no_path; }
t_sizes_and_hashes() { each_seen_through huge largest negative not_a_number beyond overflow hash_short hash_path; }
t_files() {
	each_seen_through other_bytes fewer_bytes other_size other_offset negative_size grows error_and_bytes endless_head no_file silent_end
	WHOSE=2 each_seen_through more_bytes endless_file
}
honest_all_the_same() { # honest_all_the_same CASE: what makes no sense is passed over, and the pod's work is taken
	rm -rf out state taken
	take_over "$1"
	LIMIT=60
	burst run --json -v
	within_bounds "$1"
	is "$STATUS" 0 "$1: exit status ($(tail -n 2 err.txt))"
	is "$(json '.pods | length')" 1 "$1: pods"
	is "$(wavs)" 6 "$1: files"
	is "$(json '[.pods[].phases[], .compute_seconds, .wasted_seconds, .billed_seconds, .cost_usd] | all(. >= 0)')" true "$1: figures"
	nothing_left
}
t_strange_words_and_numbers() {
	hostile_job
	for one in escapes strange_ids strange_hello; do honest_all_the_same "$one"; done
}
t_numbers_beyond_all_bounds() { # whatever comes of it: bounds are kept, nothing is left
	hostile_job
	take_over strange_numbers
	LIMIT=60
	burst run --json
	within_bounds strange_numbers
	[ "$STATUS" = 0 ] || [ "$STATUS" = 1 ] || [ "$STATUS" = 6 ] || complain "exit status $STATUS ($(tail -n 2 err.txt))"
	is "$(json '[.pods[].released] | all')" true "released"
}
t_failures_with_escapes() {
	hostile_job
	take_over escapes_failed
	burst run --json
	within_bounds escapes_failed
	is "$STATUS" 1 "exit status"
}
t_a_hello_that_never_catches_up() {
	hostile_job
	echo 'boot_limit = "5s";' >>burst.cfg
	seen_through hello_of_the_future "it did not boot"
}

t_batches_returned() { # unasked, one after another: it would bill up to the cap
	hostile_job
	seen_through returns_batches "it returns every batch unrendered"
}

quiet_pod() { # quiet_pod CASE WORDS: it bills, its connection stands, and nothing comes of it
	hostile_job
	JOB="$JOB hang = \"1s\";"
	config 'code = { path = "code"; }; pods = 1; spot = true; lease = "10s";'
	seen_through "$1" "$2"
}
t_an_agent_that_says_hello_and_nothing_more() { quiet_pod only_hello "its agent has not answered for"; }
t_an_agent_that_begins_no_batch() { quiet_pod only_leases "no sign of its work for"; }
t_a_pod_that_takes_no_code() { quiet_pod no_tree "code: no progress for"; }

# ---- names of outputs, which a command chooses ----
command_job() { # command_job [PATTERN]
	mkdir -p outside out
	ln -sfn ../outside out/link
	rehearse
	cat >burst.cfg <<-E2
		provider = "local_play";
		spot = true;
		job = { name = "cmd"; type = "command"; run = "mkdir -p out && echo x >out/a.txt"; outputs = ["${1:-out/**.txt}"]; output = "out"; };
		volume = { name = "v"; size_gb = 1; create = true; };
		providers = { local_play = { spot_price_per_hour = 0.30; price_per_hour = 0.69; }; };
	E2
}
bad_name() { # bad_name CASE
	rm -rf out state taken outside
	command_job '**' # whatever it is called, it is wanted
	take_over "$1"
	burst run --json --force
	within_bounds "$1"
	[ "$STATUS" != 0 ] || complain "$1: exit status 0"
	[ -z "$(find outside out -type f -not -path out/manifest.jsonl)" ] || complain "$1: a file came: $(find outside out -type f)"
	[ ! -d out/manifest.jsonl ] || complain "$1: a folder stands where the manifest belongs"
	is "$(json '[.pods[].released] | all')" true "$1: released"
	nothing_left
}
t_names() {
	local one
	for one in name_up name_absolute name_control name_through_link name_part name_dot name_empty name_none \
		name_newline name_300 name_bidi name_backslash name_git name_git_case name_manifest name_manifest_case name_manifest_temp name_manifest_folder; do
		[ -n "$WHY" ] || bad_name "$one"
	done
}
t_names_that_nobody_asked_for() { # nobody's file is replaced by what no pattern of outputs says
	command_job
	echo mine >out/notes.md
	take_over name_unmatched
	burst run --json
	within_bounds name_unmatched
	is "$STATUS" 0 "exit status ($(tail -n 2 err.txt))"
	is "$(cat out/notes.md)" mine "the user's own file"
	is "$(cat out/out/a.txt)" x "the output, of the next pod"
	is "$(json '.pods | length')" 2 pods
	has err.txt "reports a file that was not requested (notes.md)"
	! grep -q notes.md out/manifest.jsonl || complain "it stands in the manifest"
}
another_does() { # another_does CASE WORDS: the pod is let go at once, and the next one runs the command
	rm -rf out state taken
	command_job '**'
	take_over "$1"
	burst run --json --force
	within_bounds "$1"
	is "$STATUS" 0 "$1: exit status ($(tail -n 2 err.txt))"
	is "$(cat out/out/a.txt)" x "$1: the output, of the next pod"
	is "$(json '.pods | length')" 2 "$1: pods"
	is "$(json '[.pods[].released] | all')" true "$1: released"
	has err.txt "$2"
	nothing_left
}
t_outputs_that_cannot_be() { # a run goes on with another pod
	another_does output_largest "a file of 9223372036854775807 bytes, more than it can have (out/a.txt)"
	another_does name_below_file "a file below another one, or where a folder is (out/a.txt/evil.txt)"
	another_does name_above_file "a file below another one, or where a folder is (out)"
}
t_saves_that_cannot_be() { # what a pod says of its checkpoint: refused with the pod, or told in a line while the command goes on
	local one
	for one in save_hash save_negative save_number; do
		another_does $one "it reports a checkpoint that cannot be one"
	done
	for one in save_nobody save_huge save_other_bytes save_words; do
		rm -rf out state taken
		command_job '**'
		sed -i '/volume = /d' burst.cfg
		take_over $one
		burst run --json --force
		within_bounds $one
		is "$STATUS" 0 "$one: exit status ($(tail -n 2 err.txt))"
		is "$(json '.pods | length')" 1 "$one: pods"
		[ -z "$(find state/runs -path '*/checkpoint/*' -type f)" ] || complain "$one: something is kept: $(find state/runs -path '*/checkpoint/*')"
		[ "$(grep -c 'checkpoint' err.txt)" -le 20 ] || complain "$one: $(grep -c checkpoint err.txt) lines"
		nothing_left
	done
}
t_names_without_end() { # what a pod may name is bounded in bytes
	another_does many_names "the names of its outputs take more than 67 MB"
	case $BURST in
	*/asan/*) ;; # it keeps what was freed
	*) [ "$(cat memory_kb)" -lt 260000 ] || complain "it took $(cat memory_kb) kB of memory" ;;
	esac
}
t_an_output_that_is_replaced_without_end() { # by files that are not what was announced: a few lines tell of them, the last one is good
	command_job
	take_over replaces
	burst run --json --force
	within_bounds replaces
	is "$STATUS" 0 "exit status ($(tail -n 2 err.txt))"
	is "$(json '.pods | length')" 1 pods
	is "$(head -c 4 out/out/a.txt)" RIFF "the file"
	[ "$(grep -c 'is not what it announced' err.txt)" -le 10 ] || complain "$(grep -c 'is not what it announced' err.txt) lines"
}
t_an_output_where_a_folder_is() { # in the output folder, from before: the job's own affair, and no other pod would help
	command_job '**'
	mkdir -p out/out/a.txt/kept
	burst run --json --force
	is "$STATUS" 1 "exit status ($(tail -n 2 err.txt))"
	is "$(json '.pods | length')" 1 pods
	has err.txt "out/out/a.txt: cannot be put there: Is a directory"
	[ -d out/out/a.txt/kept ] || complain "the folder is gone"
}
t_honest_output() {
	command_job
	take_over honest
	burst run --json --force
	is "$STATUS" 0 "exit status ($(tail -n 2 err.txt))"
	is "$(head -c 4 out/out/a.txt)" RIFF "the file"
	within_bounds honest
}
t_the_channel_ends_while_many_files_wait() { # only the channel: all is asked for again on the next one, nobody is to blame
	command_job
	take_over ends_once_of_forty
	burst run --json --force
	within_bounds ends_once_of_forty
	is "$STATUS" 0 "exit status ($(tail -n 2 err.txt))"
	is "$(find out/out -name '*.txt' | wc -l)" 41 files
	is "$(json '.pods | length')" 1 pods
	[ -e taken/ended ] || complain "the channel never ended"
}

t_a_channel_that_falls_silent() { # only the channel, while all else of the pod lives: a quarter of the lease, then it is asked anew
	hostile_job
	echo 'lease = "10s";' >>burst.cfg
	take_over stalls_once
	burst run --json
	within_bounds stalls_once
	is "$STATUS" 0 "exit status ($(tail -n 2 err.txt))"
	is "$(wavs)" 6 files
	is "$(json '.pods | length')" 1 pods
	[ -e taken/stalled ] || complain "it never fell silent"
}
t_files_that_never_come() { # its lease is renewed all the while: nothing but the files says that it will never be done
	command_job
	echo 'lease = "10s";' >>burst.cfg
	take_over stalls
	burst run --json --force
	within_bounds stalls
	is "$STATUS" 0 "exit status ($(tail -n 2 err.txt))"
	is "$(cat out/out/a.txt)" x "the file"
	is "$(json '.pods | length')" 2 pods
	is "$(json '[.pods[].released] | all')" true "released"
	has err.txt "its files cannot be fetched: no data for 2.5s, repeatedly"
	nothing_left
}

t_an_output_that_fails_beside_one_that_is_slow() { # the command is run again, once; what was still on its way is in nobody's way
	command_job
	take_over one_fails_one_is_slow
	burst run --json --force -v
	within_bounds one_fails_one_is_slow
	is "$STATUS" 0 "exit status ($(tail -n 2 err.txt))"
	is "$(wc -l <taken/runs)" 2 "runs of the command"
	is "$(json '.pods | length')" 1 pods
	is "$(find out/out -name '?.txt' -size +1k | wc -l)" 2 files
	hasnt err.txt "received already"
}

# The engine with two pods and a command each, as tests/fuzz/fuzz_pod.c plays them: the first letter is the kind of run.
t_outputs_of_another_pod() { # one that names another one's segment takes none of its outputs away
	local replay=$ROOT/build/replay/fuzz_pod who
	[ -x "$replay" ] || make -s -C "$ROOT" build/replay/fuzz_pod || { complain "the replay cannot be built"; return; }
	output() { printf '{"n":3,"ev":"output","id":"q4","name":"%s","path":"runs/r1/%s","bytes":16,"sha256":"\001"}\n' "$1" "$1"; }
	{
		printf '\013\000'
		for who in 1 2; do
			printf '%s\nB\n' "$who"
			echo '{"ev":"hello","agent":"x","protocol":1,"run":"r1","attempt":"a","began_s":1,"t":5,"next":1,"switch":"ok exit","lease_left_s":600,"cpus":2,"memory_mb":1000,"gpus":[],"zstd":false,"free_bytes":100000000,"mode":"attached","workers":0,"running":[]}'
			echo '{"n":1,"ev":"worker","w":0,"state":"ready","engine":"command","version":"1","sample_rate":0,"max_batch":1,"gpu":false,"load_ms":0}'
			echo '{"n":2,"ev":"worker","w":1,"state":"ready","engine":"command","version":"1","sample_rate":0,"max_batch":1,"gpu":false,"load_ms":0}'
		done
		printf 'T3\n1\n'
		output out/honest.txt
		echo 2
		output out/other.txt
		printf '1\n{"n":4,"ev":"segment","id":"q4","batch":"f-0","try":1,"ok":true,"code":0,"ms":5,"outputs":1}\ng\n'
	} >said
	FUZZ_SAYS=1 "$replay" said >out.txt 2>err.txt || complain "exit status $?"
	has err.txt '"id":"q4","file":"","attempt":0' # it went to the first pod,
	[ "$(grep -n '"id":"q4"' err.txt | head -n 1 | cut -d: -f1)" -lt "$(grep -n '"id":"q3"' err.txt | head -n 1 | cut -d: -f1)" ] || complain "q4 is not the first pod's"
	has err.txt 'send: {"path":"runs/r1/out/honest.txt"'
	hasnt err.txt 'send: {"path":"runs/r1/out/other.txt"'
}

# ---- what lies on the volume ----
t_a_tampered_agent_is_not_run() { # only a copy with the right hash is, and it is mended
	script_lines 3
	config
	burst run
	is "$STATUS" 0 "the first run"
	local kept
	kept=$(echo state/volumes/v/agent/*)
	cp "$kept" good
	printf '#!/bin/sh\ntouch "$BURST_VOLUME/was-run"\n' >evil
	head -c "$(stat -c %s good)" /dev/zero | tr '\0' '#' >>evil
	head -c "$(stat -c %s good)" evil >"$kept"
	rm -rf out
	burst run
	is "$STATUS" 0 "the second run ($(tail -n 2 err.txt))"
	[ ! -e state/volumes/v/was-run ] || complain "it was run"
	wait_for 5 "the copy on the volume to be mended" cmp good "$kept"
}
# Another project's pods write to the volume too: what they put where our code, our environment and our worker files lie never
# runs, and what is lacking then is put there again.
t_planted_files_do_not_run() {
	mkdir code
	echo 'echo good >o.txt; cat "$BURST_ENV/m" >>o.txt' >code/go.sh
	cat >burst.cfg <<-'E'
		provider = "local"; code = { path = "code"; };
		volume = { name = "v"; size_gb = 1; create = true; };
		job = { name = "t"; type = "command"; run = "sh go.sh"; setup = "echo made >$BURST_ENV/m"; outputs = ["o.txt"]; output = "out"; };
	E
	burst run
	is "$STATUS $(cat out/o.txt | tr '\n' ' ')" "0 good made " "the first run"
	local volume=state/volumes/v
	echo 'echo evil >o.txt' | tee $volume/code/*/go.sh >/dev/null
	burst run --force
	is "$STATUS $(cat out/o.txt | tr '\n' ' ')" "0 good made " "with planted code ($(tail -n 2 err.txt | tr '\n' '|'))"
	is "$(cat $volume/code/*/go.sh)" "$(cat code/go.sh)" "the code on the volume"
	echo evil | tee $volume/env/*/m >/dev/null
	burst run --force
	is "$STATUS $(cat out/o.txt | tr '\n' ' ')" "0 good made " "with a planted environment ($(tail -n 2 err.txt | tr '\n' '|'))"
	# containers do not need the folder while its archive is whole
	find $volume/env -name .burst-archive -exec sed -i 's/made/evil/' {} +
	burst run --force
	is "$STATUS $(cat out/o.txt | tr '\n' ' ')" "0 good made " "with a planted archive ($(tail -n 2 err.txt | tr '\n' '|'))"
	is "$(ls $volume/env | wc -l)" 2 "environments: a new one was made"
	burst run --force
	is "$STATUS $(ls $volume/env | wc -l)" "0 2" "which is used again"
	rm -rf $volume/code/* $volume/env/*
	burst run --force
	is "$STATUS $(cat out/o.txt | tr '\n' ' ')" "0 good made " "with nothing there ($(tail -n 2 err.txt | tr '\n' '|'))"
	# what lay there before anything of ours did
	mkdir -p $volume/planted
	for d in code env; do mv "$(ls -d $volume/$d/* | tail -n 1)" $volume/planted/; done
	rm -rf $volume/code/* $volume/env/* state/ledger.db*
	mv $volume/planted/* $volume/env/
	for d in $volume/env/*; do echo evil >"$d/m"; done
	burst run --force --allow-volume v
	is "$STATUS $(cat out/o.txt | tr '\n' ' ')" "0 good made " "without a ledger ($(tail -n 2 err.txt | tr '\n' '|'))"
}
t_a_planted_worker_does_not_run() {
	script_lines 3
	config
	burst run
	is "$STATUS" 0 "the first run"
	printf '#!/bin/sh\necho evil >"$BURST_OUT/evil"\nexit 1\n' | tee state/volumes/v/kit/*/espeak-worker >/dev/null
	rm -rf out
	burst run -v
	is "$STATUS $(wavs)" "0 3" "with a planted worker ($(tail -n 2 err.txt | tr '\n' '|'))"
	has err.txt "its volume: kit is not what was put there: storing it again"
}
# Two projects, one volume: neither takes the other's environment for its own, though both are set up by the same words.
t_each_project_has_an_environment_of_its_own() {
	local project
	allow_volumes v
	for project in a b; do
		mkdir $project
		cat >$project/burst.cfg <<-'E'
			provider = "local";
			volume = { name = "v"; size_gb = 1; create = true; };
			job = { name = "t"; type = "command"; run = "cat $BURST_ENV/m >o.txt"; setup = "pwd >/dev/null; echo made >$BURST_ENV/m";
				outputs = ["o.txt"]; output = "out"; };
		E
		(cd $project && "$BURST" run >out.txt 2>err.txt) || complain "$project: $(tail -n 2 $project/err.txt)"
		is "$(cat $project/out/o.txt)" made "its environment"
	done
	is "$(ls state/volumes/v/env | wc -l)" 2 environments
}

run_tests "$@"
