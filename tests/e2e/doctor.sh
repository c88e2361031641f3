#!/bin/bash
# doctor.sh - `burst doctor` says what would stop a run; help, engines and completion say what there is.
. "$(dirname "$0")/lib.sh"

t_doctor() {
	config
	burst doctor
	is "$STATUS" 1 "exit status without the script"
	has out.txt "job.input: script.jsonl: No such file"
	script_lines 2
	burst doctor
	is "$STATUS" 0 "doctor ($(grep bad out.txt))"
	has out.txt 'job "e2e": 2 segments'
	has out.txt "ledger in"
	has out.txt 'a neural voice needs no GPU and no account: job.engine = "piper"'
	sed -i 's/engine = "espeak"/engine = "piper"/; s/voice = "en"; //' burst.cfg
	burst doctor
	! grep -q 'a neural voice needs' out.txt || complain "doctor recommends what the job has"
	printf 'provider = "local";\n' >burst.cfg
	burst doctor
	has out.txt 'a neural voice needs no GPU and no account: job.engine = "piper"'
}

t_the_page_lists_the_engines() { # as `burst engines` does: a page must not promise another licence
	local count=0 row
	sed -n '/^## Voices$/,/^## [^V]/p' "$ROOT/jobs/README.md" >voices.md
	burst engines --json
	while read -r row; do
		count=$((count + 1))
		has voices.md "$row"
	done < <(jq -r '.[] | "| `\(.engine)` | \(.code_licence) / \(.weights_licence) | \(.languages) | \(.clones_from // "-") | \(.ran) |"' out.txt)
	is "$count" "$(grep -c '^| `' voices.md)" "engines in the table of jobs/README.md"
	[ "$count" -ge 5 ] || complain "only $count engines"
}

t_doctor_fails_when_a_run_would() {
	local -x LOCAL_ISOLATION=namespaces
	config
	script_lines 2
	STATUS=0
	unshare -m true 2>/dev/null || { skip "not root"; return; }
	mkdir -p state
	unshare -m sh -c "mount -t tmpfs -o size=1m,mode=700 none '$T/state' && exec '$BURST' doctor" >out.txt 2>err.txt </dev/null || STATUS=$?
	is "$STATUS" 1 "exit status without room"
	grep -q "^bad  .*MB free; burst rents nothing that it cannot record" out.txt || complain "$(cat out.txt err.txt)"
	STATUS=0
	unshare -m sh -c "mount --bind /dev/null /usr/sbin/sshd && exec '$BURST' doctor" >out.txt 2>err.txt </dev/null || STATUS=$?
	is "$STATUS" 1 "exit status without sshd"
	has out.txt "no sshd for local pods: install openssh-server"
	STATUS=0
	unshare -m sh -c "mount -t tmpfs none /proc && exec '$ROOT/build/burst' doctor" >out.txt 2>err.txt </dev/null || STATUS=$?
	is "$STATUS" 1 "exit status without /proc"
	has out.txt "/proc is not mounted here"
	script_lines 2
	STATUS=0
	unshare -m sh -c "mount -t tmpfs none /proc && exec timeout 30 '$ROOT/build/burst' run" >out.txt 2>err.txt </dev/null || STATUS=$?
	[ "$STATUS" != 0 ] && [ "$STATUS" != 124 ] && [ "$STATUS" != 9 ] || complain "a run without /proc: exit status $STATUS"
	has err.txt "/proc is not mounted here"
	burst doctor
	is "$STATUS" 0 "exit status when all is well ($(grep ^bad out.txt))"
}

told_by_both() { # told_by_both STATUS WORDS: `run` ends so, and `doctor` says beforehand that it would
	burst doctor
	is "$STATUS" 1 "doctor, where run says $2 ($(grep ^bad out.txt))"
	grep -q "^bad  .*$2" out.txt || complain "doctor does not say \"$2\": $(cat out.txt)"
	[ ! -d out ] || complain "doctor made the output folder"
	burst run
	is "$STATUS" "$1" "run, where doctor says $2 ($(tail -n 1 err.txt))"
	rm -rf out
}

t_doctor_knows_what_stops_a_run() {
	script_lines 2
	config 'wait = "2s";'
	sed -i 's/max_duration/max_price_per_hour = 0.60; max_duration/' burst.cfg
	told_by_both 5 'the cheapest offer for this job is \$0.6900 an hour, above caps.max_price_per_hour'
	sed -i 's/max_price_per_hour = 0.60/max_price_per_hour = 0.69/' burst.cfg
	burst doctor
	is "$STATUS" 0 "doctor with the very price ($(grep ^bad out.txt))"
	has out.txt "local: 1 offer for this job"
	[ ! -e out ] || complain "doctor made the output folder"
	config 'deliver = { on = "cpu"; };'
	told_by_both 2 'deliver needs run'
	config 'pods = 100;'
	printf '#!/bin/sh\nulimit -n 128\nexec "%s" "$@"\n' "$BURST" >few && chmod 755 few
	CLIENT=$T/few
	told_by_both 2 'are too many'
	CLIENT=''
	config
	touch out
	told_by_both 2 'output'
	mkdir out
	echo mine >out/s001.wav
	burst doctor
	is "$STATUS" 1 "doctor with a foreign file"
	has out.txt "was not made by this job"
	rm -r out
	burst doctor
	is "$STATUS" 0 "doctor when all is well ($(grep ^bad out.txt))"
}

# Local pods see this machine's files and cannot install what it lacks.
t_a_package_that_local_pods_lack() {
	mkdir bin
	printf '#!/bin/sh\nexit 1\n' >bin/python3
	chmod 755 bin/python3
	echo hello >script.txt
	cat >burst.cfg <<-'E'
		provider = ["local"];
		job = { type = "tts"; engine = "piper"; input = "script.txt"; output = "out"; };
	E
	local command
	for command in run plan; do
		LOCAL_ISOLATION=namespaces PATH=$T/bin:$PATH burst $command
		is "$STATUS" 2 "exit status of $command"
		has err.txt 'burst.cfg:2: engine piper needs packages that this machine, where local pods run, lacks: '
		has err.txt 'apt-get install python3 python3-venv'
	done
	is "$(ledger 'select count(*) from pod')" 0 "pods"
	printf '#!/bin/sh\ntouch %s/asked\n' "$T" >bin/sh # no shell is needed for that
	cp bin/sh bin/espeak-ng
	chmod 755 bin/*
	sed -i 's/piper/espeak/' burst.cfg
	LOCAL_ISOLATION=namespaces PATH=$T/bin:$PATH burst plan
	is "$STATUS" 0 "a package that is there ($(tail -n 1 err.txt))"
	[ ! -e asked ] || complain "a check starts a shell, or a program where a file says enough"
	sed -i 's/espeak/piper/' burst.cfg
	LOCAL_ISOLATION=namespaces PATH=$T/bin:$PATH burst doctor
	is "$STATUS" 1 "exit status of doctor"
	has out.txt 'engine piper needs packages'
}

t_completion_and_help() {
	local shell
	for shell in bash zsh fish; do
		burst completion $shell
		is "$STATUS" 0 "completion $shell"
		has out.txt "burst words"
	done
	burst words fet
	has out.txt "fetch	fetch what a run's pods left"
	burst help fetch
	has out.txt "usage: burst fetch RUN"
}

offers() { # offers WORD...: what bash completes behind `burst`
	PATH=$(dirname "$BURST"):$PATH bash -c 'source <(burst completion bash)
		COMP_WORDS=(burst "$@") COMP_CWORD=$# COMPREPLY=(); _burst; echo "${COMPREPLY[*]}"' - "$@"
}
t_completion_offers_what_there_is() {
	script_lines 1
	config
	burst run
	is "$STATUS" 0 "run ($(tail -n 1 err.txt))"
	RUN=$(ledger "select id from run")
	is "$(offers volume rm '')" v "volumes to remove"
	is "$(offers logs '')" "$RUN" "runs with a log"
	is "$(offers attach '')" "" "runs to attach to, when none lives"
	ledger "update run set status = 'running'"
	is "$(offers attach '') $(offers cancel '')" "$RUN $RUN" "living runs"
	burst submit --quiet 1h
	is "$(offers queue rm '')" "$(ledger "select id from request")" "requests to remove"
	burst queue rm "$(ledger "select id from request")"
	ledger "update run set status = 'done'"
	wait_for 10 "the queue's client to end" eval '! pgrep -f -- "queue run $T/" >/dev/null'
}

run_tests "$@"
