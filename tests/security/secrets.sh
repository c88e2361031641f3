#!/bin/bash
# secrets.sh - where keys must not be: on a command line, in the environment of a child that needs none, in a log, a trace, the
# ledger, a run's folder, an output, an error. Looked for by their values, while a whole render runs and afterwards.
. "$(dirname "$0")/../e2e/lib.sh"

# watching COMMAND...: what runs on this machine meanwhile is in watched/ (pods of the stand-ins included)
watching() {
	rm -rf watched
	mkdir watched
	python3 "$ROOT/tests/security/watch_proc.py" watched &
	local watcher=$!
	wait_for 10 "the watcher" [ -e watched/environs ]
	"$@"
	touch watched/stop
	wait $watcher || complain "the watcher failed"
	[ "$(cat watched/rounds)" -gt 20 ] || complain "only $(cat watched/rounds) looks at what runs"
}
# in_environ SECRETS-FILE REGEX: whose environment held one; a line "PID COMMAND" each, of those whose parents match
holders() { # holders SECRETS JQ-CONDITION
	jq -r --rawfile secrets "$1" "(\$secrets | split(\"\n\") | map(select(length > 0))) as \$s
		| select(any(.env[]; . as \$v | any(\$s[]; . as \$one | \$v | contains(\$one))))
		| select($2) | \"\(.pid) \(.cmdline)\"" watched/environs
}
no_holder() { # no_holder SECRETS JQ-CONDITION WHO
	local found
	found=$(holders "$1" "$2" | head -n 3)
	[ -z "$found" ] || complain "$3 is handed a key: $found"
}
render() { burst run --json --trace -v; }
# the client: what the shell started, and its timeout
of_client='any(.parents[]; . as $p | ($clients | index($p)) != null)'
children_of_the_client() { # the condition for holders: a descendant of the client that is no client
	jq -s '[.[] | select(.cmdline | test("^[^ ]*/burst run")) | .pid]' watched/environs >clients
	echo "($(cat clients)) as \$clients | $of_client and (.cmdline | test(\"^[^ ]*/burst run\") | not)"
}
job_of_all() { # two pods' worth of work with a token for the workers, code, a join with ffmpeg
	script_lines 12
	slow_worker SLOW=0.1
	JOB="$JOB"' env = ["HF_TOKEN"]; join = { gap = 0.1; loudness = -18; };'
	HF_TOKEN=hf_$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
	export HF_TOKEN
}
nowhere() { # what no_secrets_in looks for, and the job's token: in all that was watched, said or written
	no_secrets_in watched/cmdlines err.txt out.txt state out
	cp secrets account # the account's and the pods' own; the workers have none of them
	echo "$HF_TOKEN" >secrets
	untold watched/cmdlines err.txt out.txt state out
	grep -q "$HF_TOKEN" watched/environs || complain "the job's token reached no worker"
	no_holder account "$(children_of_the_client)" "a child of the client"
	no_holder secrets "$(children_of_the_client) and (.cmdline | test(\"ffmpeg\") | not)" "a child of the client"
}

# ---- whole renders ----
c_a_render_at_runpod() {
	job_of_all
	rp_config 'code = { path = "code"; };'
	watching render
	all_done 12 1
	rp_control requests | jq -c . >requests.json # the account's key stands there, as it was sent; nothing of the job's
	nowhere
	echo "$HF_TOKEN" >secrets
	untold requests.json
	# the switch's alone, and for its own pod: what else is asked for by it cloud_over tells of
	[ "$(asked getPod '.key == "pod" and .status == 200')" -gt 0 ] || complain "nothing was asked for by the pod's key"
	# within pods: only the first process, which was started with it, has the pod's key and its host key
	{
		rp_control state | jq -r '.pods[].key'
		rp_control requests | jq -r '.[] | .body | objects | .env.BURST_HOST_KEY_B64? // empty'
	} >pods_own
	no_holder pods_own '.cmdline | test("podbox|burst-start") | not' "a process in a pod"
	grep -q 'worker.sh' watched/cmdlines || complain "no worker was seen"
	has err.txt BURST_HARD_END
}
c_refused_keys_are_not_told() { # in what the error says
	rp_config
	export RUNPOD_API_KEY=rpa_NOBODYSKEY0123456789012345
	burst run --json --trace -v
	is "$STATUS" 3 "exit status"
	burst doctor --trace
	burst offers --trace
	RUNPOD_S3_SECRET_KEY=rps_nobodys_secret_0123456789 burst volume gc --trace
	printf '%s\n' rpa_NOBODYSKEY0123456789012345 rps_nobodys_secret_0123456789 >secrets
	untold err.txt out.txt state
	RUNPOD_API_KEY=$(cat "$RP_STATE/account.key")
	mkdir -p state && touch state/ledger.db
}
t_renders_at_runpod() {
	. "$ROOT/tests/cloud/runpod/client.sh"
	cases c_a_render_at_runpod c_refused_keys_are_not_told
}
c_a_render_at_modal() {
	job_of_all
	md_config 'code = { path = "code"; };'
	watching render
	all_done 12 1
	nowhere
	md_control state | jq -r '.secrets[].host_key // empty' >pods_own
	[ -s pods_own ] || complain "no host key to look for"
	no_holder pods_own '.cmdline | test("podbox|start.sh - the first process") | not' "a process in a sandbox"
	md_control requests >requests.json
	echo "$HF_TOKEN" >secrets
	untold requests.json
}
t_renders_at_modal() {
	. "$ROOT/tests/cloud/modal/client.sh"
	cases c_a_render_at_modal
}

# ---- children ----
KEYS='RUNPOD_API_KEY=rpa_FORNOBODYELSE0123456789 RUNPOD_S3_ACCESS_KEY=user_FORNOBODYELSE012345 RUNPOD_S3_SECRET_KEY=rps_FORNOBODYELSE0123456789
	MODAL_TOKEN_ID=ak-FORNOBODYELSE0123456789 MODAL_TOKEN_SECRET=as-FORNOBODYELSE0123456789'
stand_in_for() { # stand_in_for PROGRAM: notes its environment, then is the real one
	mkdir -p bin
	printf '#!/bin/sh\nenv >>"%s"\nexec %s "$@"\n' "$T/$1.env" "$(command -v "$1" || echo true)" >"bin/$1"
	chmod 755 "bin/$1"
}
keyless() { # keyless FILE: such a child ran, and had no key
	[ -s "$1" ] || { complain "$1: it was never started"; return; }
	hasnt "$1" FORNOBODYELSE
	has "$1" UNTOUCHED=yes
}
t_children_get_no_keys() { # pods on this machine, ffmpeg, ssh, a command that prints a key
	command -v ffmpeg >/dev/null || { skip "no ffmpeg"; return; }
	script_lines 4
	stand_in_for ffmpeg
	stand_in_for ssh
	JOB='join = { loudness = -18; };'
	config
	# shellcheck disable=SC2086,SC2163
	export UNTOUCHED=yes PATH=$T/bin:$PATH $KEYS
	watching render
	is "$STATUS" 0 "exit status ($(tail -n 2 err.txt))"
	keyless ffmpeg.env
	printf '%s\n' FORNOBODYELSE >keys
	no_holder keys "$(children_of_the_client)" "a child of the client"
	jq -r "$(children_of_the_client) | tostring" watched/environs | grep -q true || complain "no child was seen"
	! grep -rqa FORNOBODYELSE watched/cmdlines err.txt out.txt state out || complain "a key was told"
	mkdir -p "$XDG_CONFIG_HOME/burst"
	echo "providers = { runpod = { api_key_command = \"env >>'$T/command.env'; echo rpa_PRINTED0123456789\"; api_url = \"http://127.0.0.1:9\"; }; };" \
		>"$XDG_CONFIG_HOME/burst/burst.cfg"
	unset RUNPOD_API_KEY
	burst offers -p runpod --trace
	keyless command.env
	hasnt err.txt PRINTED
	rm "$XDG_CONFIG_HOME/burst/burst.cfg"
}
t_ssh_gets_no_keys() {
	script_lines 6
	slow_worker SLOW=1
	config 'code = { path = "code"; };'
	stand_in_for ssh
	# shellcheck disable=SC2086,SC2163
	export UNTOUCHED=yes PATH=$T/bin:$PATH $KEYS
	burst_bg run
	wait_for 30 "a pod at work" file_count out 1
	cp out.txt run.out
	"$BURST" ssh "$(pods_left | head -n 1)" true >ssh.txt 2>&1 </dev/null || complain "ssh: $(cat ssh.txt)"
	keyless ssh.env
	kill -INT "$PID"
	burst_wait
}
t_an_on_exit_command_is_the_users_own() { # it gets what the user's shell gives it
	script_lines 1
	config
	mkdir -p "$XDG_CONFIG_HOME/burst"
	echo "on_exit = \"env >'$T/exit.env'\";" >"$XDG_CONFIG_HOME/burst/burst.cfg"
	RUNPOD_API_KEY=rpa_FORNOBODYELSE0123456789 burst run
	is "$STATUS" 0 "exit status"
	has exit.env RUNPOD_API_KEY=
}

# ---- what job.env may name ----
t_values_of_job_env_are_secrets_whatever_they_are_called() { # where a pod says them: in its log and in errors
	local -x DATABASE=postgres://render:hunter2@db STAGE=blue
	mkdir code
	cat >code/says.sh <<-'E2'
		echo "$DATABASE at $STAGE"
		exit 1
	E2
	cat >burst.cfg <<-'E2'
		provider = "local";
		job = { name = "e2e"; type = "command"; run = "sh says.sh"; outputs = ["out/**"]; output = "out"; env = ["DATABASE", "STAGE"]; };
		code = { path = "code"; };
		providers = { local = { price_per_hour = 0.69; }; };
	E2
	burst run --json --trace -v
	[ "$STATUS" = 1 ] || complain "exit status $STATUS ($(tail -n 2 err.txt))"
	grep -q "\[secret\] at blue" out.txt err.txt state/runs/*/log || complain "the pod's words are not there: $(tail -n 5 err.txt)"
	"$BURST" logs "$(json .run)" >logs.txt 2>&1
	"$BURST" ledger "$(json .run)" --json >ledger.json 2>&1
	rm -rf state/local # what the pods themselves kept
	! grep -rlsF hunter2 out.txt err.txt logs.txt ledger.json state >found.txt || complain "told by $(tr '\n' ' ' <found.txt)"
}
t_an_accounts_key_does_not_travel() {
	local name
	script_lines 1
	for name in RUNPOD_API_KEY RUNPOD_S3_ACCESS_KEY RUNPOD_S3_SECRET_KEY MODAL_TOKEN_ID MODAL_TOKEN_SECRET; do
		JOB="env = [\"$name\"];" config
		burst run
		is "$STATUS" 2 "$name: exit status"
		has err.txt "job.env: $name is a key of your account"
		config "deliver = { run = \"true\"; env = [\"HOME\", \"$name\"]; };"
		burst run
		is "$STATUS" 2 "deliver, $name: exit status"
		has err.txt "deliver.env: $name is a key of your account"
	done
}
t_a_link_in_a_project_does_not_get_it_either() { # "texts" is full of links, of which one is to the client's own environment
	mkdir texts
	ln -s /proc/self/environ texts/a.txt
	config
	sed -i 's/script.jsonl/texts/' burst.cfg
	local -x RUNPOD_API_KEY=rpa_FORNOBODYELSE0123456789
	burst run --json -v
	is "$STATUS" 2 "exit status"
	has err.txt "a project may not send that to pods"
	! grep -rqs FORNOBODYELSE out state out.txt err.txt || complain "the key is in $(grep -rls FORNOBODYELSE out state out.txt err.txt | head -n 1)"
}

# ---- files of keys ----
t_files_that_others_can_read() { # are read, and told of
	script_lines 1
	config
	mkdir -p "$XDG_CONFIG_HOME/burst" "$HOME/.runpod"
	echo 'providers = { runpod = { api_key = "rpa_INAFILE0123456789"; api_url = "http://127.0.0.1:9"; }; };' >"$XDG_CONFIG_HOME/burst/burst.cfg"
	chmod 644 "$XDG_CONFIG_HOME/burst/burst.cfg"
	burst offers -p runpod
	has err.txt 'providers.runpod.api_key is a secret, and other users can read this file: chmod 600 ~/.config/burst/burst.cfg'
	hasnt err.txt INAFILE
	chmod 600 "$XDG_CONFIG_HOME/burst/burst.cfg"
	burst offers -p runpod
	hasnt err.txt 'other users can read'
	chmod 666 "$XDG_CONFIG_HOME/burst/burst.cfg"
	burst offers -p runpod
	is "$STATUS" 2 "exit status of a file that others can write"
	has err.txt 'other users can write it'
	echo 'providers = { runpod = { api_url = "http://127.0.0.1:9"; }; };' >"$XDG_CONFIG_HOME/burst/burst.cfg"
	chmod 644 "$XDG_CONFIG_HOME/burst/burst.cfg" # no key in it: nothing to tell
	echo 'api_key = "rpa_INAFILE0123456789"' >"$HOME/.runpod/config.toml"
	chmod 640 "$HOME/.runpod/config.toml"
	burst offers -p runpod
	is "$(grep -c 'other users can read' err.txt)" 1 "warnings"
	# shellcheck disable=SC2088
	has err.txt '~/.runpod/config.toml contains keys, and other users can read it: chmod 600 ~/.runpod/config.toml'
	chmod 600 "$HOME/.runpod/config.toml"
	burst offers -p runpod
	hasnt err.txt 'other users can read'
}

run_tests "$@"
