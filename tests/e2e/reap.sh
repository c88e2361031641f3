#!/bin/bash
# reap.sh - `burst reap` releases what no client wants any more, and leaves the rest.
. "$(dirname "$0")/lib.sh"

a_pod() { pods_left | head -n 1; }

t_reap_a_strangers_pod() {
	living_run
	local pod
	pod=$(a_pod)
	kill_it
	mv state/ledger.db their-ledger
	rm -f state/ledger.db-wal state/ledger.db-shm
	burst reap
	is "$STATUS" 0 "reap ($(tail -n 1 err.txt))"
	has out.txt "skipped (burst reap $pod --force releases it)"
	[ -n "$(pods_left)" ] || complain "a stranger's pod was ended"
	for pod in $(pods_left); do
		burst reap "$pod" --force
		is "$STATUS" 0 "reap --force ($(tail -n 1 err.txt))"
		has out.txt "pod $pod of local: gone (as requested)"
	done
	burst reap "$pod" --force
	is "$STATUS" 9 "reap of one that is nowhere, and that this ledger never knew"
	has err.txt "pod $pod: not among burst's pods at local"
	burst ssh "$pod"
	is "$STATUS" 2 "ssh to one that nobody knows"
	is "$(cat err.txt)" "burst: no pod \"$pod\" in this ledger; \`burst ps\` lists them" words
}

t_reap_tells_of_the_pod() { # that was named
	living_run
	local pod
	pod=$(a_pod)
	kill_it
	burst reap "$pod"
	is "$STATUS" 0 "reap ($(tail -n 1 err.txt))"
	has err.txt "run $RUN: all pods released"
	has out.txt "pod $pod of local: gone (seen at "
}

t_reap_a_pod_past_its_hard_end() {
	# a pod of another machine, whose own switch does not work, 400 s past its hard end; and one that is not
	config
	local pod now
	now=$(date +%s)
	for pod in 1 2; do
		jq -n --argjson over $((now - (pod == 1 ? 400 : 200))) --arg name "burst-$pod" '{conf: {price: 690000}, name: $name,
			script: "exec sleep 300", volume: "", env: {BURST_SSH_PORT: "22", BURST_HOME: "/run/burst"},
			marker: {machine: "00000000000000aa", run: "r1", attempt: $name, hard_end_s: $over}}' |
			"$BURST" local-cloud rent "$BURST_STATE_DIR" >"rent$pod.txt" 2>&1 || complain "rent: $(cat "rent$pod.txt")"
	done
	burst reap
	is "$STATUS" 0 "reap ($(tail -n 1 err.txt))"
	has out.txt "pod $(jq -r '.pods[0].id' rent1.txt) of local: gone (past its hard end)"
	has out.txt "skipped (burst reap"
	is "$(pods_left)" "$(jq -r '.pods[0].id' rent2.txt)" "who is left"
	burst reap "$(pods_left)" --force
	is "$STATUS" 0 "reap --force"
}

strangers_pod() { # strangers_pod RUN ATTEMPT MACHINE: a pod that no row names; its id in $ID
	jq -n --arg run "$1" --arg attempt "$2" --arg machine "$3" --argjson over $(($(date +%s) + 600)) '{conf: {price: 690000},
		name: "burst-\(if $attempt == "" then "0" else $attempt end)", script: "exec sleep 300", volume: "", env: {BURST_SSH_PORT: "22", BURST_HOME: "/run/burst"},
		marker: {machine: $machine, run: $run, attempt: $attempt, hard_end_s: $over}}' |
		"$BURST" local-cloud rent "$BURST_STATE_DIR" >rent.txt 2>&1 || complain "rent: $(cat rent.txt)"
	ID=$(jq -r '.pods[0].id' rent.txt)
}

t_reap_what_an_ended_run_left() { # a second pod of one create, in no list before the run had ended
	local machine
	script_lines 2
	config
	burst run
	is "$STATUS" 0 "run"
	RUN=$("$BURST" ledger --json | jq -r '.[0].run')
	machine=$(ledger "select value from fact where name = 'machine'")
	strangers_pod "$RUN" aaaaaaaaaaaaaaaa 00000000000000aa
	local theirs=$ID
	strangers_pod "$RUN" bbbbbbbbbbbbbbbb "$machine"
	burst reap
	is "$STATUS" 0 "reap ($(tail -n 1 err.txt))"
	has out.txt "pod $ID of local: gone (its run has ended)"
	is "$(pods_left)" "$theirs" "who is left"
	burst reap "$theirs" --force
	is "$STATUS" 0 "reap --force"
}

billed_for_two_seconds() { # the only pod, since its create call
	[ "$(($(date +%s%3N) - $(ledger "select max(create_ms) from pod")))" -ge 2100 ]
}

t_reap_what_was_taken_for_unmade() { # its create was answered by nobody, and lists missed it: it billed until it was reaped
	living_run
	local pod
	pod=$(a_pod)
	kill_it
	ledger "update run set status = 'interrupted'"
	ledger "update pod set id = '', state = 'failed', release_ms = 0, released_ms = create_ms + 1 where id = '$pod'"
	wait_for 20 "two billed seconds" billed_for_two_seconds
	burst reap
	is "$STATUS" 0 "reap ($(tail -n 1 err.txt))"
	is "$(ledger "select state, billed_ms >= 2000 and released_ms - create_ms >= 2000 and cost_microusd > 0 from pod where id = '$pod'")" "gone|1" \
		"what its row says: $(ledger "select state, billed_ms, released_ms - create_ms, cost_microusd from pod where id = '$pod'")"
	is "$(ledger "select run.billed_ms = sum(pod.billed_ms) and run.cost_microusd = sum(pod.cost_microusd) from run, pod where pod.run = run.id and run.status = 'interrupted'")" 1 \
		"what its run's row says: $(ledger "select billed_ms, cost_microusd from run")"
}

t_reap_a_pod_that_nobody_knows() { # whoever names a pod is told of that one
	script_lines 2
	config
	burst run
	burst reap nosuchpod --force
	is "$STATUS" 9 "a pod that is nowhere"
	has err.txt "pod nosuchpod: not among burst's pods at local"
	has err.txt "misspelled"
	burst reap "$(ledger 'select id from pod')" --force
	is "$STATUS" 0 "one that the ledger knows is gone ($(tail -n 1 err.txt))"
	has out.txt ": gone"
}

t_reap_of_an_empty_name() { # `burst reap "$POD" --force` with POD unset: it is no pod's name, least of all of those that lost their mark
	local command words
	script_lines 2
	config
	strangers_pod r1 "" ""
	[ -n "$(pods_left)" ] || complain "there is no pod"
	for command in 'reap|--force' 'reap|-p|local|--force' 'reap|' cancel resume attach logs fetch ledger ssh 'volume|rm|-y'; do
		IFS='|' read -ra words <<<"$command"
		burst "${words[@]}" ""
		is "$STATUS" 2 "$command of nothing"
		has err.txt "empty argument"
	done
	burst reap --force
	is "$STATUS" 2 "reap --force without a name ($(cat err.txt))"
	has err.txt "needs a POD"
	is "$(pods_left)" "$ID" "who is left"
	burst reap "$ID" --force
	is "$STATUS" 0 "by its id"
}

t_reap_leaves_the_one_that_is_named() { # somebody else's, and it was not to be forced: it goes on billing, and that is no success
	config
	strangers_pod r1 aaaaaaaaaaaaaaaa 00000000000000aa
	local first=$ID
	burst reap
	is "$STATUS" 0 "reap of all that is to be reaped"
	burst reap "$first"
	is "$STATUS" 9 "reap without --force"
	has err.txt "pod $first was skipped and may still be billing; release it with: burst reap $first --force"
	is "$(pods_left)" "$first" "who is left"
	burst reap "$first" --force
	is "$STATUS" 0 "reap --force"
}

t_reap_without_one_of_two_accounts() { # what can be given back is; what cannot be asked for is named
	living_run
	kill_it
	ledger "create temp table t as select * from pod limit 1;
		update t set seq = null, attempt = 'cccccccccccccccc', id = 'rp1', provider = 'runpod', account = 'x';
		insert into pod select * from t"
	unset RUNPOD_API_KEY
	burst reap
	is "$STATUS" 9 "exit status ($(tail -n 3 err.txt | tr '\n' '|'))"
	is "$(pods_left)" "" "pods here"
	has err.txt "pod rp1 of runpod may still be billing; release it with: burst reap rp1 --force"
	is "$("$BURST" ledger "$RUN" --json | jq -r .status)" unreleased "the run"
	burst attach "$RUN"
	is "$STATUS" 9 "attach to it"
}

not_looked_at() { # not_looked_at WHAT WHY: reap had an account there that it could not open
	burst reap
	is "$STATUS" 3 "$1 ($(tail -n 2 err.txt | tr '\n' '|'))"
	has err.txt "runpod was not checked: "
	has err.txt "$2"
	hasnt err.txt "no pods of burst are left"
	burst reap -p runpod
	is "$STATUS" 3 "$1, asked for by name"
	burst reap -p local,runpod
	is "$STATUS" 3 "$1, one of two that are asked for"
	has err.txt "runpod was not checked: "
}

t_reap_names_what_it_could_not_ask() { # "nothing is left" is no answer for a provider that was not asked
	unset RUNPOD_API_KEY
	echo 'provider = ["runpod", "local"];' >burst.cfg
	burst reap
	is "$STATUS" 3 "the project names it ($(cat err.txt))"
	has err.txt "runpod was not checked: runpod: no api_key: set RUNPOD_API_KEY"
	hasnt err.txt "no pods of burst are left"
	echo 'provider = [' >burst.cfg # a broken one does not stop what releases pods
	burst reap
	is "$STATUS" 0 "a broken config ($(cat err.txt))"
	hasnt err.txt runpod
	rm burst.cfg
	mkdir -p "$XDG_CONFIG_HOME/burst"
	echo 'provider = ["runpod"];' >"$XDG_CONFIG_HOME/burst/burst.cfg"
	burst reap
	is "$STATUS" 3 "one's own file names it ($(cat err.txt))"
	echo 'provider = ["runpod"]; lease = "5s"; providers = { runpod = { api_key = "open"; }; };' >"$XDG_CONFIG_HOME/burst/burst.cfg"
	chmod 644 "$XDG_CONFIG_HOME/burst/burst.cfg"
	echo 'job = { name = "x"; };' >burst.cfg
	RUNPOD_API_URL=http://127.0.0.1:9 burst reap
	is "$(grep -c 'is a secret, and other users can read this file' err.txt) $(grep -c 'burst.cfg:1: lease' err.txt)" "1 1" \
		"warnings of one's own file ($(cat err.txt))"
	rm burst.cfg "$XDG_CONFIG_HOME/burst/burst.cfg"
	script_lines 2
	config
	burst run
	is "$STATUS" 0 "run ($(tail -n 2 err.txt))"
	ledger "update pod set provider = 'runpod'"
	burst reap
	is "$STATUS" 0 "only the ledger knows it ($(cat err.txt))"
	has err.txt "warning: runpod was not checked: runpod: no api_key"
	burst doctor
	has out.txt "runpod: not asked, because \`provider\` does not name it"
}
t_reap_without_the_key_of_an_account() { # a password store that is locked, at night: that is not "nothing is left"
	local user=$XDG_CONFIG_HOME/burst/burst.cfg
	unset RUNPOD_API_KEY
	burst reap
	is "$STATUS" 0 "no account at all ($(cat err.txt))"
	has err.txt "no pods of burst are left at local"
	burst reap -p runpod
	is "$STATUS" 3 "no account, asked for by name"
	mkdir -p "${user%/*}" "$HOME/.runpod"
	echo 'providers = { runpod = { api_key_command = "exit 2"; }; };' >"$user"
	not_looked_at "a command that fails" "/.config/burst/burst.cfg:1: api_key_command: the command failed with exit status 2"
	echo 'providers = { runpod = { api_key_command = "true"; }; };' >"$user"
	not_looked_at "a command that prints nothing" "/.config/burst/burst.cfg:1: api_key_command: the command's output is not a key: it is empty"
	rm "$user"
	export RUNPOD_API_KEY='a b'
	not_looked_at "a key that is none" "RUNPOD_API_KEY: api_key: it contains a blank or a control character"
	unset RUNPOD_API_KEY
	printf '[default\napi_key = "x"\n' >"$HOME/.runpod/config.toml"
	not_looked_at "a file that cannot be read" "/.runpod/config.toml:1: a table's name must end with ]"
	# pods of this machine's own are given back all the same; one that may be there is named
	strangers_pod r1 aaaaaaaaaaaaaaaa 00000000000000aa
	burst reap "$ID" --force
	is "$STATUS" 0 "a pod of another account, by its name ($(tail -n 2 err.txt))"
	has err.txt "runpod was not checked: "
	rm "$HOME/.runpod/config.toml"
	script_lines 2
	config
	burst run
	is "$STATUS" 0 "run ($(tail -n 2 err.txt))"
	ledger "create temp table t as select * from pod limit 1;
		update t set seq = null, attempt = 'cccccccccccccccc', id = 'rp1', provider = 'runpod', account = 'x', state = 'live', gone_ms = 0,
			hard_end_s = unixepoch() + 3600;
		insert into pod select * from t;
		update run set status = 'running', detached = 1"
	export RUNPOD_API_KEY='a b'
	burst reap
	is "$STATUS" 9 "with a pod there ($(tail -n 2 err.txt | tr '\n' '|'))"
	has err.txt "pod rp1 of runpod may still be billing"
	unset RUNPOD_API_KEY
	burst reap
	is "$STATUS" 9 "the same without a key ($(tail -n 2 err.txt | tr '\n' '|'))"
}

t_reap_whatever_ones_file_says_of_renting() { # a vendor whose object is not loaded, as from cron; a value that is out of its range
	living_run
	kill_it
	mkdir -p home/.config/burst
	echo 'provider = ["mine"]; providers = { mine = { key = 1; }; }; lease = "5s"; pots = 2;' >home/.config/burst/burst.cfg
	burst reap
	is "$STATUS" 0 "reap ($(tail -n 3 err.txt | tr '\n' '|'))"
	is "$(pods_left)" "" "pods"
	has err.txt 'provider "mine"'
	has err.txt 'unknown key "pots", did you mean "pods"?; continuing without it'
	has err.txt 'lease is out of range'
	burst cancel "$RUN"
	is "$STATUS" 0 "cancel ($(tail -n 3 err.txt | tr '\n' '|'))"
	burst run
	is "$STATUS" 2 "but a run: exit status"
	burst reap -p mine
	is "$STATUS" 2 "and a flag: exit status"
}

run_tests "$@"
