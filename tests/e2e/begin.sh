#!/bin/bash
# begin.sh - what `burst` does before it rents: init, dry runs, plans, offers.
. "$(dirname "$0")/lib.sh"

t_init_runs_as_is() {
	burst init -y
	is "$STATUS" 0 init
	burst run
	is "$STATUS" 0 "run ($(tail -n 2 err.txt))"
	is "$(wavs)" 3 files
	[ "$(wc -l <burst.cfg)" -le 15 ] || complain "burst.cfg has $(wc -l <burst.cfg) lines"
	burst init -y
	is "$STATUS" 2 "init again"
	has err.txt "already exists; nothing was changed"
}

t_init_names_providers() { # and what each of them needs before the first run
	burst init -y -p ssh,kubernetes,vast,runpod,modal,slurm,local
	is "$STATUS" 0 init
	has burst.cfg 'provider = ["ssh", "kubernetes", "vast", "runpod", "modal", "slurm", "local"];'
	for one in ssh kubernetes vast runpod modal slurm; do has err.txt "$one: "; done
	hasnt err.txt 'local: '
	sed -n 's/.*own file needs[^:]*: //p' err.txt >own.txt
	is "$(wc -l <own.txt)" 3 "lines for one's own file"
	mkdir -p "$XDG_CONFIG_HOME/burst"
	while read -r line; do # each is accepted as it stands
		echo "$line" >"$XDG_CONFIG_HOME/burst/burst.cfg"
		sed -i 's/^provider = .*/provider = ["local"];/' burst.cfg
		burst plan
		is "$STATUS" 0 "plan with $line ($(tail -n 1 err.txt))"
	done <own.txt
	rm burst.cfg "$XDG_CONFIG_HOME/burst/burst.cfg"
	burst init -y -p ssh,runpdo
	is "$STATUS" 2 "an unknown provider"
	has err.txt '--provider: unknown provider "runpdo"'
	[ ! -e burst.cfg ] || complain "a file was written"
}
t_init_says_what_to_do_next() {
	burst init -y "a book"
	is "$STATUS" 0 init
	has err.txt "next: cd 'a book', then \`burst plan\` shows what a run would rent and cost, \`burst run\` renders into out"
	hasnt err.txt gitignore
	git init -q repo
	burst init -y repo
	has err.txt "keep the output out of git: echo out/ >>repo/.gitignore"
	rm repo/burst.cfg
	echo out/ >repo/.gitignore
	burst init -y repo
	hasnt err.txt "keep the output"
	burst init -y --full full
	grep -q '^# keep_on_failure = ' full/burst.cfg || complain "--full leaves out a key"
	cd full || return
	burst plan
	is "$STATUS" 0 "plan of the full one ($(tail -n 1 err.txt))"
}

# Git reads each ignore file to its end: what has none must not hold up a first step.
t_init_beside_what_cannot_be_read() {
	local what began
	for what in 'mkfifo .gitignore' 'ln -s /dev/zero .gitignore' 'mkfifo .git/info/exclude' 'truncate -s 1G .gitignore' \
		'mkfifo script.jsonl pipe'; do
		rm -rf repo
		git init -q repo
		(cd repo && mkdir -p .git/info && rm -f .git/info/exclude && $what) || return
		began=$SECONDS
		LIMIT=30 burst init -y repo
		is "$STATUS" 0 "init beside: $what ($(tail -n 1 err.txt))"
		[ $((SECONDS - began)) -le 4 ] || complain "$what: init took $((SECONDS - began)) s"
		has repo/burst.cfg job
	done
}

t_init_of_a_command_runs_as_is() {
	burst init -t command
	is "$STATUS" 0 init
	burst run
	is "$STATUS" 0 "run ($(tail -n 2 err.txt))"
	is "$(cat out/hello-0.txt)" "pod 0 of 1" "what came home"
	[ "$(wc -l <burst.cfg)" -le 15 ] || complain "burst.cfg has $(wc -l <burst.cfg) lines"
	sed -i 's/^pods = [^;]*;/pods = 2;/' burst.cfg
	burst run --force
	is "$STATUS" 0 "on two pods ($(tail -n 2 err.txt))"
	is "$(cat out/hello-?.txt | tr '\n' ,)" "pod 0 of 2,pod 1 of 2," "what came home then"
}

t_yes_is_taken_everywhere() { # and says nothing where nothing is asked
	local command
	script_lines 2
	config
	for command in run plan offers ps ledger reap doctor "volume ls" help "completion bash" "init new"; do
		# shellcheck disable=SC2086 # words
		burst $command -y
		is "$STATUS" 0 "$command -y ($(tail -n 1 err.txt))"
	done
	for command in attach resume cancel logs fetch; do
		burst $command --yes nosuchrun
		hasnt err.txt "unknown flag"
	done
}

t_dry_run_and_plan() {
	script_lines 3
	config
	for how in "run --dry-run" plan; do
		# shellcheck disable=SC2086
		burst $how
		is "$STATUS" 0 "$how ($(tail -n 2 err.txt))"
		has out.txt "3 segments, 3 to render"
		is "$("$BURST" ledger --json)" "[]" "runs after $how"
		[ ! -e out ] || complain "$how made the output folder"
	done
	touch out
	burst plan
	is "$STATUS" 2 "plan of a job whose output is no folder"
	has err.txt "output $T/out: "
}

t_a_run_beside_a_plan() { # which waits for a vendor: it keeps nobody from rendering, cron least of all
	local how user=$XDG_CONFIG_HOME/burst/burst.cfg planning
	script_lines 2
	config
	sed -i 's/^provider = .*/provider = ["local", "runpod"];/' burst.cfg
	mkdir -p "${user%/*}"
	echo "providers = { runpod = { api_key_command = \"touch '$T/asked'; until [ -e '$T/go' ]; do sleep 0.1; done; exit 1\"; }; };" >"$user"
	unset RUNPOD_API_KEY
	for how in "run --dry-run" plan; do
		rm -rf asked go out
		# shellcheck disable=SC2086
		timeout -k 5 60 "$BURST" $how >plan.txt 2>plan-err.txt </dev/null &
		planning=$!
		wait_for 20 "$how to ask a vendor" test -e asked
		burst run -p local
		is "$STATUS" 0 "run beside $how ($(tail -n 1 err.txt))"
		is "$(wavs)" 2 "its files"
		touch go
		STATUS=0
		wait $planning || STATUS=$?
		is "$STATUS" 0 "$how ($(tail -n 1 plan-err.txt))"
	done
}

t_a_plan_beside_a_run() {
	local how holder
	script_lines 100
	slow_worker SLOW=0.5 MAX_BATCH=1
	JOB+=' estimate = { once = 0.5; };'
	config 'code = { path = "code"; };'
	burst_bg run
	wait_for 40 "some files" file_count out 2
	for how in "run --dry-run" plan; do
		STATUS=0
		# shellcheck disable=SC2086
		"$BURST" $how >plan.txt 2>plan-err.txt </dev/null || STATUS=$?
		is "$STATUS" 0 "$how beside a living run ($(tail -n 1 plan-err.txt))"
		has plan.txt "100 segments, "
	done
	running_as "$PID" || complain "the run is over already"
	kill -INT "$PID"
	burst_wait
	is "$STATUS" 130 "the run"
	# a file that came home after the plan had read the manifest
	echo mine >out/s099.wav
	flock out sleep 60 &
	holder=$!
	wait_for 20 "the folder's lock" eval '! flock -n out true'
	burst plan
	is "$STATUS" 0 "plan beside a run that wrote a file meanwhile ($(tail -n 1 err.txt))"
	kill "$(pgrep -P $holder)"
	wait $holder 2>/dev/null
	burst plan
	is "$STATUS" 2 "plan with a foreign file"
	has err.txt "out/s099.wav is there and was not made by this job"
}

t_a_detached_run_that_never_began_has_an_object() {
	local id
	config
	burst run -d --json
	is "$STATUS" 2 "without its script"
	schema run
	is "$(json '"\(.status) \(.error.code)"')" "failed config" "its object"
	script_lines 2
	burst run
	burst run -d --json
	is "$STATUS" 0 "nothing left to render ($(tail -n 1 err.txt))"
	schema run
	is "$(json '"\(.status) \(.segments.cached)"')" "done 2" "its object"
	# and one that began prints its id, and keeps nobody waiting who reads it
	script_lines 60
	slow_worker SLOW=0.5 MAX_BATCH=1
	config 'code = { path = "code"; };'
	id=$(timeout 90 "$BURST" run -d -o more 2>err.txt </dev/null) || complain "run -d: $(tail -n 1 err.txt)"
	is "$("$BURST" ledger "$id" --json | jq -r .status)" running "what it did meanwhile"
	burst cancel "$id"
	is "$STATUS" 0 "cancel ($(tail -n 1 err.txt))"
}

t_a_plan_has_no_object() {
	script_lines 3
	config
	burst run -n --json
	is "$STATUS" 2 "run -n --json"
	is "$(wc -l <out.txt)" 1 "lines on stdout"
	schema run
	is "$(json .error.code)" usage "its error"
}

t_offers() {
	config
	burst offers --json
	is "$STATUS" 0 "exit status ($(tail -n 2 err.txt))"
	schema offers
	is "$(jq -r '.[0].provider' out.txt)" local provider
	is "$(jq -r '.[0].price_usd_hour' out.txt)" 0.69 price
}

run_tests "$@"
