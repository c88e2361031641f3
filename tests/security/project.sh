#!/bin/bash
# project.sh - a cloned repository's burst.cfg, and what lies beside it, are not trusted: they run nothing here, lead no key
# astray, read nothing of their user's and write nothing outside of the project.
#
# shellcheck disable=SC2088 # a tilde is burst's to expand here
. "$(dirname "$0")/../e2e/lib.sh"
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/project_lib.sh"

t_it_runs_nothing_here() {
	clone
	local key
	for key in 'on_exit = "touch ran";' 'providers = { runpod = { api_key_command = "touch ran"; }; };' \
		'providers = { runpod = { s3_secret_key_command = "touch ran"; }; };' 'providers = { modal = { token_id_command = "touch ran"; }; };' \
		'providers = { modal = { token_secret_command = "touch ran"; }; };' 'providers = { runpod = { api_url = "http://127.0.0.1:1"; }; };' \
		'providers = { runpod = { s3_url = "http://127.0.0.1:1"; }; };' 'providers = { modal = { server_url = "http://127.0.0.1:1"; }; };' \
		'providers = { modal = { registry_secrets = ["x=y"]; }; };' 'providers = { runpod = { registry = "x=y"; }; };' 'providers = { runpod = { api_key = "k"; }; };' \
		'providers = { local = { isolation = "process"; }; };' 'providers = { local = { isolation = "auto"; }; };' \
		'providers = { local = { network = "host"; }; };'; do
		tts '' "$key"
		burst run
		refused 'a project must not run commands here, redirect keys or grant itself access' "$key"
		[ ! -e ran ] || complain "$key: it ran"
	done
	cp err.txt "$T"
}
without_namespaces() { # runs burst where no pod can have a namespace of its own
	STATUS=0
	timeout -k 5 90 setpriv --inh-caps=-sys_admin --bounding-set=-sys_admin "$BURST" "$@" >out.txt 2>err.txt </dev/null || STATUS=$?
}
t_its_commands_run_in_namespaces_or_not_at_all() {
	clone
	local -x LOCAL_ISOLATION=
	local steal="cat $HOME/.ssh/id_rsa >stolen; touch $HOME/ran; echo done >fine"
	cat >burst.cfg <<-E2
		provider = "local";
		job = { name = "p"; type = "command"; run = "$steal"; outputs = ["stolen", "fine"]; output = "out"; };
	E2
	if "$BURST" local-cloud check "$T" <<<'{}' | grep -q 'ok: pods are namespaces'; then
		burst run
		is "$STATUS" 0 "in a namespace: exit status ($(tail -n 2 err.txt))"
		is "$(cat out/fine)" "done" "its output"
		[ ! -s out/stolen ] || complain "it read a key: $(cat out/stolen)"
		wait_for 20 "its pod to be gone" no_pods
		rm -rf out "$BURST_STATE_DIR"
	fi
	[ "$(id -u)" = 0 ] || { cd "$T" || return; skip "not root: namespaces cannot be taken away"; return; }
	without_namespaces run
	refused 'with isolation = "process" among providers.local of your own burst.cfg' "without namespaces"
	[ ! -e out/fine ] || complain "it ran"
	without_namespaces plan
	[ "$STATUS" = 2 ] || complain "plan: exit status $STATUS ($(tail -n 2 err.txt))"
	without_namespaces doctor
	is "$STATUS" 1 "doctor: exit status"
	has out.txt 'bad  local: pods cannot have namespaces of their own here'
	[ ! -e "$HOME/ran" ] || complain "it ran here"
	# one's own word
	echo 'providers = { local = { isolation = "process"; }; };' >"$HOME/.config/burst/burst.cfg"
	without_namespaces run
	is "$STATUS" 0 "with the user's word: exit status ($(tail -n 2 err.txt))"
	is "$(cat out/fine)" "done" "its output"
	cp err.txt "$T"
	cd "$T" || return
}
t_it_reads_nothing_of_its_users() {
	clone
	local path
	ln -s "$HOME/.ssh" keys
	ln -s / disk
	ln -s "$HOME/.ssh/id_rsa" lines.txt
	for path in / // /. "$HOME" "~" ../.. ../../.. "$HOME/.ssh" '~/.ssh' ../../.ssh keys keys/../.ssh disk /etc /proc/self /root/../etc ./../../.config \
		/run /var /var/log /home /home/somebody /root /opt /srv /tmp "$T" '~/bin' ../../other ../other /usr/share "$BURST_STATE_DIR" "$BURST_STATE_DIR/runs"; do
		tts '' "code = { path = \"$path\"; };"
		burst run --quiet
		refused "a project may not send that to pods" "code.path $path"
	done
	for path in '~/.ssh/id_rsa' lines.txt ../../.ssh/id_rsa keys/id_rsa /etc/passwd /proc/self/environ; do
		tts "input = \"$path\";"
		burst run
		refused "a project may not send that to pods" "job.input $path"
	done
	# elsewhere
	cp script.jsonl ../../other/lines.jsonl
	tts 'input = "../../other/lines.jsonl";'
	burst run -y
	refused "job.input lies outside of the project ($HOME/other/lines.jsonl): a project may not send that to pods unless you allow it" "beside it"
	has err.txt "--allow-path $HOME/other"
	burst run --allow-path ../../other
	is "$STATUS" 0 "allowed by a flag: exit status ($(tail -n 2 err.txt))"
	rm -r out
	burst run
	is "$STATUS" 2 "which holds for one run: exit status"
	echo 'allow_paths = ["~/nothing", "~/other"];' >"$HOME/.config/burst/burst.cfg"
	burst run
	is "$STATUS" 0 "allowed by one's own file: exit status ($(tail -n 2 err.txt))"
	cp err.txt "$T"
	cd "$T" || return
}
t_what_is_allowed_is_no_more_than_said() {
	clone
	local path
	mkdir -p ../../data/.hidden ../../data/sub
	cp script.jsonl ../../data/sub
	cp script.jsonl ../../data/.hidden
	tts 'input = "../../data/sub/script.jsonl";' 'allow_paths = ["/"];'
	burst run
	is "$STATUS" 2 "a project that allows itself: exit status"
	has err.txt "allow_paths is allowed only in your own"
	has err.txt "job.input lies outside of the project" # it helps nothing: both are told
	[ ! -e "$BURST_STATE_DIR/ledger.db" ] || is "$(ledger 'select count(*) from pod')" 0 "a project that allows itself: pods"
	tts 'input = "../../data/sub/script.jsonl";'
	for path in / // "$HOME" '~' "$HOME/src/../" "$HOME/.." data ../data ''; do
		echo "allow_paths = [\"$path\"];" >"$HOME/.config/burst/burst.cfg"
		burst run
		is "$STATUS" 2 "allow_paths = $path: exit status"
		has err.txt "allow_paths: "
	done
	# what the project made of the name that is typed
	rm "$HOME/.config/burst/burst.cfg"
	mkdir -p "$HOME/.mail/sub"
	cp script.jsonl "$HOME/.mail/sub"
	ln -s ../../.mail data
	for path in data ./data "$PWD/data" data/sub data/../data; do
		tts 'input = "data/sub/script.jsonl";'
		burst run --allow-path "$path"
		refused "leads out of the project" "--allow-path $path"
	done
	rm data
	echo 'allow_paths = ["~/data"];' >"$HOME/.config/burst/burst.cfg"
	tts 'input = "../../data/.hidden/script.jsonl";'
	burst run
	refused "is hidden in your home folder" "hidden below what is allowed"
	echo 'allow_paths = ["~/data/.hidden"];' >"$HOME/.config/burst/burst.cfg"
	burst run
	is "$STATUS" 0 "the hidden folder by its name: exit status ($(tail -n 2 err.txt))"
	wait_for 20 "its pod to be gone" no_pods
	rm -rf "$BURST_STATE_DIR" out
	# keys and burst's own folders are never allowed
	mkdir -p "$HOME/.aws" "$BURST_STATE_DIR"
	echo "a secret" >"$HOME/.aws/credentials"
	for path in "$HOME/.ssh" "$HOME/.aws" "$HOME/.config/burst" "$BURST_STATE_DIR"; do
		echo "allow_paths = [\"$path\"];" >"$HOME/.config/burst/burst.cfg"
		tts '' "code = { path = \"$path\"; };"
		burst run
		refused "holds keys" "code.path $path"
		tts "input = \"$path/x\";"
		burst run
		refused "holds keys" "job.input $path"
		tts "output = \"$path/x\";"
		burst run
		refused "holds keys" "job.output $path"
	done
	cp err.txt "$T"
	cd "$T" || return
}
t_a_project_in_a_hidden_folder() { # its siblings are not its own
	clone
	local from
	for from in .local/share/quiz .config/quiz; do
		mkdir -p "$HOME/$from" "$HOME/.local/share/mail" "$HOME/.config/gh" "$HOME/.config/.git"
		echo "token" >"$HOME/.config/gh/hosts.yml"
		cp script.jsonl "$HOME/$from"
		cd "$HOME/$from" || return
		for path in ../mail ../gh .. ../.. ../../.. ../gh/hosts.yml ../burst ~/.local/share/mail ~/.config/gh; do
			tts '' "code = { path = \"$path\"; };"
			burst run -q
			refused "a project may not send that to pods" "from $from: $path"
		done
		tts '' 'code = { path = "."; };'
		burst run
		is "$STATUS" 0 "in $from: exit status ($(tail -n 2 err.txt))"
		wait_for 20 "its pod to be gone" no_pods
		rm -rf "$BURST_STATE_DIR"
	done
	cp err.txt "$T"
	cd "$T" || return
}
t_keys_and_burst_itself_stay_behind() { # wherever they lie in what is synced, and whoever says so
	clone
	mkdir -p conf/burst .modal state/deep voices
	echo 'providers = { runpod = { api_key = "rpa_STAYBEHIND"; }; };' >conf/burst/burst.cfg
	chmod 600 conf/burst/burst.cfg
	echo 'rpa_STAYBEHIND' >.modal/keys.toml
	mkdir own
	ln -s "$PWD/own/netrc" "$HOME/.netrc"
	echo 'rpa_STAYBEHIND' >own/netrc
	echo 'rpa_STAYBEHIND' >state/deep/file
	ln -s ../conf/burst voices/link
	chmod 700 state
	cat >burst.cfg <<-'E2'
		provider = "local";
		job = { name = "p"; type = "command"; run = "grep -rl --exclude=burst.cfg STAYBEHIND . >found; find . >list; echo done >fine"; outputs = ["found", "list", "fine"]; output = "out"; };
		code = { path = "."; };
	E2
	XDG_CONFIG_HOME=$PWD/conf BURST_STATE_DIR=$PWD/state MODAL_CONFIG_PATH=$PWD/.modal/keys.toml burst run -v
	is "$STATUS" 0 "exit status ($(tail -n 2 err.txt))"
	is "$(cat out/fine)" "done" "its output"
	is "$(cat out/found)" "" "what the pod had of keys and state"
	grep -q 'script.jsonl' out/list || complain "the pod had no code: $(head -n 3 out/list)"
	has err.txt "conf/burst skipped (keys, or files of burst itself)"
	has err.txt "code: 4 skipped: keys, or files of burst itself"
	sed -i 's/path = "."/path = "conf\/burst"/' burst.cfg
	XDG_CONFIG_HOME=$PWD/conf BURST_STATE_DIR=$PWD/state burst run
	has err.txt "holds keys"
	sed -i 's/path = "conf.burst"/path = "voices\/link"/' burst.cfg
	XDG_CONFIG_HOME=$PWD/conf BURST_STATE_DIR=$PWD/state burst run
	has err.txt "holds keys"
	BURST_STATE_DIR=$PWD/state nothing_left
	cp err.txt "$T"
	cd "$T" || return
}
t_it_reads_nothing_through_links_in_its_folders() {
	clone
	local path
	mkdir texts voices
	ln -s "$HOME/.ssh" keys
	ln -s keys/id_rsa again
	tts 'input = "texts";'
	for path in /proc/self/environ /proc/self/fd/0 /etc/passwd /dev/zero ../../../.ssh/id_rsa "$HOME/.ssh/id_rsa" ../keys/id_rsa ../again; do
		ln -sfn "$path" texts/a.txt
		burst run
		refused "a project may not send that to pods" "a text that is a link to $path"
		has err.txt "burst.cfg:2: job.input "
	done
	ln -sfn nowhere texts/a.txt
	burst run
	refused "texts/a.txt: No such file" "a link to nothing"
	rm texts/a.txt
	mkfifo texts/a.txt
	burst run
	refused "texts/a.txt: is not a regular file" "a pipe"
	rm texts/a.txt
	tts 'engine = "own"; worker = "true"; voices = "voices"; voice = "v";'
	for path in ../../../.ssh/id_rsa ../keys/id_rsa ../again /proc/self/environ; do
		ln -sfn "$path" voices/v.wav
		burst run
		refused "a project may not send that to pods" "a voice that is a link to $path"
		has err.txt "burst.cfg:2: job.voices "
	done
	# inside: nothing to say; elsewhere: told, and done
	echo "A line of the project." >lines
	echo "Another line." >../../other/b.txt
	ln -s ../lines texts/a.txt
	tts 'input = "texts";'
	burst run
	is "$STATUS" 0 "a link within the project: exit status ($(tail -n 2 err.txt))"
	ln -s ../../../other/b.txt texts/b.txt
	wait_for 20 "its pod to be gone" no_pods
	rm -rf "$BURST_STATE_DIR"
	burst run
	refused "job.input lies outside of the project ($HOME/other/b.txt)" "a link to what lies beside the project"
	burst run --allow-path ~/other
	is "$STATUS" 0 "allowed by a flag: exit status ($(tail -n 2 err.txt))"
	is "$(wavs)" 2 files
	cp err.txt "$T"
	cd "$T" || return
}
t_it_writes_nothing_outside() {
	clone
	local path
	ln -s "$HOME" dir
	ln -s ../../.ssh out
	tts ''
	burst run
	refused "job.output holds keys, or files of burst itself ($HOME/.ssh)" "a link called out, the default"
	for path in / "$HOME" '~' ../.. dir out out/x '~/.config/autostart' ../../.bashrc.d .git .git/hooks sub/../.git/hooks .GIT/hooks /etc/cron.d /usr/local/bin /var/spool/cron /proc/self \
		'~/bin' /home/somebody/x /run/x /tmp/x /var/tmp ../other "$BURST_STATE_DIR/x" '~/.config/burst'; do
		tts "output = \"$path\";"
		burst run
		refused "a project may not write there" "job.output $path"
	done
	is "$(find "$HOME/.ssh" .git -type f | wc -l)" 1 "files in hidden places"
	tts 'output = "/etc/burst-test";'
	burst run -o fine
	is "$STATUS" 0 "named by a flag instead: exit status ($(tail -n 2 err.txt))"
	is "$(wavs fine)" 2 files
	tts 'output = "../../other";'
	burst run --allow-path ../../other
	is "$STATUS" 0 "beside the project, which a flag allows: exit status"
	cp err.txt "$T"
	cd "$T" || return
}
t_a_resumed_run_writes_nothing_outside() { # its output folder may be another one by then, and its config say so
	clone
	local how
	tts 'engine = "own"; worker = "false";'
	burst run
	[ "$STATUS" != 0 ] || complain "the run went well"
	rm -rf out
	for how in ../../.ssh ../../other /etc; do
		ln -sfn "$how" out
		for command in resume "fetch $(ledger 'select id from run')"; do
			# shellcheck disable=SC2086
			burst $command
			is "$STATUS" 2 "$command, out leads to $how: exit status ($(tail -n 2 err.txt))"
			has err.txt "a project may not write there"
		done
		sed -i "s/output = \"out\"/output = \"else\"/" burst.cfg
		burst resume
		is "$STATUS" 2 "out leads to $how, and the config names another: exit status"
		has err.txt "a project may not write there"
		sed -i "s/output = \"else\"/output = \"out\"/" burst.cfg
	done
	is "$(find "$HOME/.ssh" ../../other -type f | wc -l)" 1 "files outside"
	# what the run was told by a flag holds on
	burst run -o ../../other
	burst resume
	hasnt err.txt "may not"
	cp err.txt "$T"
	cd "$T" || return
}
t_a_resumed_run_brings_nothing_to_a_pod_of_bursts_own() { # which may have this machine's network; its config may be another one by then
	living_run
	kill_it
	local setup
	for setup in 0123456789abcdef+ +; do
		ledger "update pod set setup = '$setup' where gone_ms = 0"
		burst resume "$RUN"
		is "$STATUS" 2 "$setup: exit status ($(tail -n 1 err.txt))"
		has err.txt "the job's set-up changed since run $RUN began"
		is "$(grep -c '^burst: ' err.txt)" 1 "$setup: lines of error"
	done
	ledger "update pod set setup = '0123456789abcdef' where gone_ms = 0" # the project's own, mended
	burst_bg resume "$RUN"
	wait_for 40 "a resumed run" file_count out 100
	kill -INT "$PID"
	burst_wait
	burst cancel "$RUN"
	is "$(ledger 'select count(*) from pod where gone_ms = 0')" 0 "pods left ($(tail -n 1 err.txt))"
}
t_a_whole_repository_is_the_project() { # its burst.cfg may lie in a folder of it
	clone
	mkdir -p jobs/quiz
	mv script.jsonl jobs/quiz
	printf '%s\n' out.txt err.txt >.gitignore # of this test
	cp .gitignore ../../
	cd jobs/quiz || return
	tts 'output = "../../out";' 'code = { path = "../.."; };'
	burst run
	is "$STATUS" 0 "exit status ($(tail -n 2 err.txt))"
	cp err.txt "$T"
	cd "$T" || return
}
t_paths_through_folders_that_are_not_there_yet() { # ".." behind a missing folder, and links to one: they lead out once it is made
	clone
	ln -s ../../other evil
	ln -s .git g
	ln -s made/../../../other later
	ln -s "$HOME/other/new" dangling
	mkdir -p .git/hooks
	echo secret >"$HOME/other/secret.txt"
	local path
	for path in made/../evil made/../g/hooks x/y/../../evil/z later later/z dangling made/../later; do
		cat >burst.cfg <<-E2
			provider = "local";
			job = { name = "p"; type = "command"; run = "echo evil >planted"; outputs = ["planted"]; output = "$path"; };
		E2
		burst run
		refused "a project may not write there" "job.output $path"
	done
	for path in made/../evil later made/../g; do
		cat >burst.cfg <<-E2
			provider = "local";
			job = { name = "p"; type = "command"; run = "cat secret.txt >report"; outputs = ["report"]; output = "made/out"; };
			code = { path = "$path"; };
		E2
		burst run
		refused "a project may not send that to pods" "code.path $path"
	done
	tts 'input = "made/../evil/secret.txt"; output = "made/out";'
	burst run
	refused "a project may not send that to pods" "job.input"
	is "$(ls -A "$HOME/other" .git/hooks)" "$(printf '.git/hooks:\n\n%s:\nsecret.txt' "$HOME/other")" "what was written"
	cp err.txt "$T"
	cd "$T" || return
}

t_its_own_users_file_may() {
	clone
	tts 'output = "../../.hidden";'
	cp burst.cfg "$HOME/.config/burst/burst.cfg"
	cp script.jsonl "$HOME/.config/burst/"
	burst run "$HOME/.config/burst/burst.cfg"
	is "$STATUS" 0 "exit status ($(tail -n 2 err.txt))"
	# a link that one has made oneself
	mkdir "$HOME/.config/burst/texts"
	echo "A line of my own." >"$HOME/.ssh/line"
	ln -s "$HOME/.ssh/line" "$HOME/.config/burst/texts/a.txt"
	tts 'input = "texts";'
	cp burst.cfg "$HOME/.config/burst/burst.cfg"
	burst run "$HOME/.config/burst/burst.cfg"
	is "$STATUS" 0 "a text that is a link: exit status ($(tail -n 2 err.txt))"
	cp err.txt "$T"
	cd "$T" || return
}
t_outputs_stay_out_of_gits_folder() { # what lies there is run by git, and no clone brings it along
	clone
	local name
	for name in .git/hooks/post-checkout .GIT/config .git./x 'sub/.git/hooks/*' git~1/hooks/x; do
		cat >burst.cfg <<-E2
			provider = "local";
			job = { name = "p"; type = "command"; run = "true"; outputs = ["$name"]; output = "."; };
		E2
		burst run
		refused "nothing is written into git's own folder" "$name"
	done
	# a pattern that says nothing of it
	cat >burst.cfg <<-'E2'
		provider = "local";
		job = { name = "p"; type = "command"; run = "mkdir -p .git/hooks sub; echo evil | tee .git/hooks/post-checkout >sub/fine"; outputs = ["**"]; output = "."; };
	E2
	burst run
	[ "$STATUS" != 0 ] || complain "exit status 0"
	[ ! -e .git/hooks/post-checkout ] || complain "it wrote a hook"
	cp err.txt "$T"
	cd "$T" || return
}

t_gits_folder_stays_behind() { # it holds the passwords of remotes
	clone
	local path
	mkdir -p .git/texts sub/.git
	echo 'url = https://user:token@host/x' | tee .git/config .git/texts/a.txt >.git/notes.txt
	ln -s .git/notes.txt lines.txt
	ln -s .git folder
	for path in .git .git/texts folder sub/.git sub/../.git/ .git/../.git; do
		tts '' "code = { path = \"$path\"; };"
		burst run
		refused "is git's own folder" "code.path $path"
	done
	for path in .git/notes.txt .git/texts folder/texts lines.txt; do
		tts "input = \"$path\";"
		burst run
		refused "is git's own folder" "job.input $path"
	done
	tts 'voices = ".git/texts";'
	burst run
	refused "is git's own folder" "job.voices"
	tts 'input = ".git/notes.txt";'
	burst run --allow-path .git
	is "$STATUS" 0 "allowed by a flag: exit status ($(tail -n 2 err.txt))"
	# what goes along with the code
	cat >burst.cfg <<-'E2'
		provider = "local";
		job = { name = "p"; type = "command"; run = "find . -name '*.git*' >report; cat lines.txt folder/config >>report; exit 0"; outputs = ["report"]; output = "out2"; };
		code = { path = "."; };
	E2
	burst run
	is "$STATUS" 0 "code: exit status ($(tail -n 2 err.txt))"
	is "$(cat out2/report)" "" "what travels of git's"
	cp err.txt "$T"
	cd "$T" || return
}

run_tests "$@"
