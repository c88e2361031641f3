#!/bin/bash
# project.sh - a cloned repository's burst.cfg, and what lies beside it, are not trusted: they run nothing here, lead no key
# astray, read nothing of their user's and write nothing outside of the project; and however odd they are, the answer is one
# line, soon.
#
# shellcheck disable=SC2088 # a tilde is burst's to expand here
. "$(dirname "$0")/../e2e/lib.sh"

refused() { # refused WORDS WHAT: exit 2, one line that says so, nothing rented
	is "$STATUS" 2 "$2: exit status ($(tail -n 2 err.txt | tr '\n' '|'))"
	has err.txt "$1"
	is "$(grep -c '^burst: ' err.txt)" 1 "$2: lines of error"
	[ ! -e "$BURST_STATE_DIR/ledger.db" ] || is "$(ledger 'select count(*) from pod')" 0 "$2: pods"
}
clone() { # a home with things in it, and a repository below; we are in the repository
	mkdir -p "$HOME"/{.ssh,.config/burst,src/repo/.git/hooks,other}
	echo "a private key" >"$HOME/.ssh/id_rsa"
	cd "$HOME/src/repo" || return
	script_lines 2
}
tts() { # tts JOB-SETTINGS [SETTINGS]
	cat >burst.cfg <<-E2
		provider = "local";
		job = { name = "p"; type = "tts"; input = "script.jsonl"; output = "out"; $1 };
		${2:-}
	E2
	# the last one of a key counts here
	case $1 in *input*) sed -i 's/input = "script.jsonl"; //' burst.cfg ;; esac
	case $1 in *output*) sed -i 's/output = "out"; //' burst.cfg ;; esac
}

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
t_its_ignore_files_and_input_are_plain_files() { # nothing waits for a writer, nor shows what a link leads to
	local name
	clone
	mkdir code
	echo hello >code/a
	echo 'SECRET-LINE-[' >"$HOME/hidden"
	tts 'input = "script.jsonl";'
	echo 'code = { path = "code"; };' >>burst.cfg
	for name in .burstignore .gitignore; do
		rm -f code/.*ignore
		ln -s "$HOME/hidden" "code/$name"
		LIMIT=20 burst run -v
		[ "$STATUS" != 0 ] && [ "$STATUS" -lt 124 ] || complain "$name, a link: exit status $STATUS"
		has err.txt "$name: is a link"
		hasnt err.txt SECRET-LINE
		rm -f "code/$name"
		mkfifo "code/$name"
		LIMIT=20 burst run
		[ "$STATUS" != 0 ] && [ "$STATUS" -lt 124 ] || complain "$name, a pipe: exit status $STATUS"
		has err.txt "$name: is not a regular file"
	done
	rm -f code/.*ignore script.jsonl
	mkfifo script.jsonl
	LIMIT=20 burst run
	is "$STATUS" 2 "an input that is a pipe: exit status"
	has err.txt "script.jsonl: is not a regular file"
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

# ---- whose volume is it ----
two_projects() { # a and b, each a repository that names volume "tts"; a has made it, and we are in b
	local p
	mkdir -p "$HOME/.config/burst"
	for p in a b; do
		mkdir -p "$HOME/src/$p/.git"
		cd "$HOME/src/$p" || return
		script_lines 1
		cat >burst.cfg <<-E2
			provider = "local";
			volume = { name = "tts"; create = true; };
			job = { name = "job"; type = "tts"; input = "script.jsonl"; output = "out"; };
		E2
	done
	cd ../a || return
	burst run
	is "$STATUS" 0 "a makes its volume: exit status ($(tail -n 2 err.txt))"
	rm -rf out
	burst run -y
	is "$STATUS" 0 "and uses it again: exit status ($(tail -n 2 err.txt))"
	cd ../b || return
}
foreign() { # foreign COMMAND...: refused for the volume, with what to type
	local pods
	pods=$(ledger 'select count(*) from pod')
	[ "$1" = resume ] || [ -n "${KEEP_OUT:-}" ] || rm -rf out
	burst "$@"
	is "$STATUS" 2 "$*: exit status ($(tail -n 2 err.txt | tr '\n' '|'))"
	has err.txt 'volume "tts" of local does not belong to this project'
	has err.txt "\`burst $1 --allow-volume tts\`"
	has err.txt 'volumes = ["tts"]'
	is "$(grep -c '^burst: ' err.txt)" 1 "$*: lines of error"
	is "$(ledger 'select count(*) from pod')" "$pods" "$*: pods"
}
fine() { # fine WHAT ARGUMENT...
	local what=$1
	shift
	rm -rf out
	burst "$@"
	is "$STATUS" 0 "$what: exit status ($(tail -n 2 err.txt))"
}
on_a_terminal() { # on_a_terminal ANSWER COMMAND...: what it shows in err.txt
	python3 - "$@" >err.txt 2>&1 <<-'E2'
		import os, pty, sys
		answer, argv = sys.argv[1], sys.argv[2:]
		pid, fd = pty.fork()
		if pid == 0:
		    os.execv(argv[0], argv)
		said = b""
		while True:
		    try:
		        more = os.read(fd, 4096)
		    except OSError:
		        break
		    if not more:
		        break
		    said += more
		    if said.endswith(b"[y/N] "):
		        os.write(fd, answer.encode() + b"\n")
		sys.stdout.buffer.write(said)
		sys.stdout.flush()
		os._exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
	E2
	STATUS=$?
}
t_a_volume_is_its_projects() {
	two_projects
	foreign run
	foreign run -y
	foreign run --force --quiet
	foreign run -d
	sed -i 's/create = true/create = false/' burst.cfg
	foreign run
	sed -i 's/create = false/create = true/; s/"job"/"other"/' burst.cfg
	foreign run
	burst plan
	is "$STATUS" 0 "plan: exit status ($(tail -n 2 err.txt))"
	has err.txt 'volume "tts" of local does not belong to this project'
	burst run -n
	is "$STATUS" 0 "run -n: exit status ($(tail -n 2 err.txt))"
	has err.txt 'volume "tts" of local does not belong to this project'
	burst doctor
	is "$STATUS" 1 "doctor: exit status"
	has out.txt 'volume "tts" of local does not belong to this project'
	foreign run
	# what allows it
	fine "a flag" run --allow-volume x,tts
	foreign run --force
	echo 'volumes = ["tts"];' >"$HOME/.config/burst/burst.cfg"
	fine "one's own file" run
	rm "$HOME/.config/burst/burst.cfg"
	foreign run --force
	sed -i '1i volumes = ["tts"];' burst.cfg
	burst run
	is "$STATUS" 2 "a project's own word: exit status"
	has err.txt "volumes is allowed only in your own"
	sed -i 1d burst.cfg
	rm -rf out
	on_a_terminal n "$BURST" run --force
	is "$STATUS" 2 "no on a terminal: exit status ($(tail -n 2 err.txt))"
	on_a_terminal y "$BURST" run --force -y
	is "$STATUS" 2 "-y on a terminal is not asked: exit status ($(tail -n 2 err.txt))"
	on_a_terminal y "$BURST" run --force
	is "$STATUS" 0 "yes on a terminal: exit status ($(tail -n 2 err.txt))"
	fine "which holds on" run
	sed -i 's/name = "other"/name = "third"/' burst.cfg
	fine "for the project's other jobs too" run
	cp err.txt "$T"
	cd "$T" || return
}
t_a_volume_that_is_typed() { # what one has made or filled by hand, where the project is, is its own
	two_projects
	burst volume create mine
	is "$STATUS" 0 "volume create: exit status ($(tail -n 2 err.txt))"
	sed -i 's/name = "tts"/name = "mine"/' burst.cfg
	fine "its own" run
	burst volume create tts
	sed -i 's/name = "mine"/name = "tts"/' burst.cfg
	foreign run --force
	burst volume warm tts
	is "$STATUS" 0 "volume warm: exit status ($(tail -n 2 err.txt))"
	fine "after it was filled" run
	# one that was removed and made anew is another one
	burst volume rm mine -y
	is "$STATUS" 0 "volume rm: exit status ($(tail -n 2 err.txt))"
	cd ../a || return
	sed -i 's/name = "tts"/name = "mine"/' burst.cfg
	fine "made by another project" run
	cd ../b || return
	sed -i 's/name = "tts"/name = "mine"/' burst.cfg
	rm -rf out
	burst run
	is "$STATUS" 2 "no longer its own: exit status"
	has err.txt 'volume "mine" of local does not belong to this project'
	cp err.txt "$T"
	cd "$T" || return
}
t_a_volume_of_before() { # runs of before the rule: what they used is theirs
	two_projects
	fine "allowed" run --allow-volume tts
	ledger "delete from fact where name like 'volume%'"
	fine "by the ledger's pods" run
	mkdir -p ../c/.git
	cp burst.cfg script.jsonl ../c
	cd ../c || return
	foreign run
	cp err.txt "$T"
	cd "$T" || return
}
t_a_resumed_run_takes_no_other_volume() { # its config may have changed since
	two_projects
	sed -i 's/"tts"; create/"own"; create/' burst.cfg
	sed -i 's/engine = "espeak"; //; s/job = {/job = { engine = "own"; worker = "false";/' burst.cfg
	burst run
	[ "$STATUS" != 0 ] || complain "the run went well"
	sed -i 's/"own"; create/"tts"; create/' burst.cfg
	foreign resume
	# what was allowed when it began is allowed still
	allow_volumes tts
	burst run
	rm "$HOME/.config/burst/burst.cfg"
	burst resume
	[ "$STATUS" = 1 ] || complain "a run that began with it: exit status $STATUS ($(tail -n 1 err.txt))"
	foreign run
	cp err.txt "$T"
	cd "$T" || return
}
t_a_delivery_takes_no_other_volume() {
	two_projects
	sed -i 's/"tts"; create/"own"; create/' burst.cfg
	fine "its own" run
	sed -i 's/"own"; create/"tts"; create/' burst.cfg
	echo 'deliver = { run = "ls -R \"$BURST_VOLUME\""; };' >>burst.cfg
	foreign run
	cp err.txt "$T"
	cd "$T" || return
}
t_a_large_volume_needs_a_yes() { # it bills for ever, whatever the caps
	two_projects
	sed -i 's/name = "tts"; create = true;/name = "big"; create = true; size_gb = 4000;/' burst.cfg
	local how
	for how in run "run -y" "run --allow-volume big" "volume create big" "volume create big -y" "run --max-volume-gb 3999"; do
		# shellcheck disable=SC2086
		burst $how
		is "$STATUS" 2 "$how: exit status ($(tail -n 2 err.txt))"
		has err.txt "4000 GB is more than the"
		has err.txt "--max-volume-gb 4000"
	done
	is "$(find "$BURST_STATE_DIR/volumes" -name 'big*' | wc -l)" 0 "volumes"
	sed -i '1i max_volume_gb = 5000;' burst.cfg
	burst run
	has err.txt "max_volume_gb is allowed only in your own"
	sed -i 1d burst.cfg
	on_a_terminal n "$BURST" run
	is "$STATUS" 2 "no on a terminal: exit status"
	on_a_terminal y "$BURST" run
	is "$STATUS" 0 "yes on a terminal: exit status ($(tail -n 2 err.txt))"
	fine "which is there now" run
	burst volume rm big -y
	rm -rf out
	burst run
	is "$STATUS" 2 "made anew: exit status ($(tail -n 2 err.txt))"
	fine "a flag that says how large" run --max-volume-gb 4000
	burst volume rm big -y
	echo 'max_volume_gb = 4000;' >"$HOME/.config/burst/burst.cfg"
	fine "one's own file" run
	cp err.txt "$T"
	cd "$T" || return
}

# ---- whose file is it ----
t_no_file_is_trusted_for_where_it_lies() { # what burst writes below its state folder is for people to read
	clone
	local how
	mkdir -p "$BURST_STATE_DIR/jobs/0123456789abcdef01234567/.deliver/code"
	tts '' "on_exit = \"touch '$T/ran'\";"
	mv burst.cfg evil.cfg
	for how in jobs/0123456789abcdef01234567.cfg jobs/0123456789abcdef01234567/.deliver/code/burst.cfg jobs/x.cfg; do
		cp evil.cfg script.jsonl "$BURST_STATE_DIR/${how%/*}"
		cp evil.cfg "$BURST_STATE_DIR/$how"
		burst run "$BURST_STATE_DIR/$how"
		refused "is in burst's own folder" "$how, by its name"
		ln -sfn "$BURST_STATE_DIR/$how" burst.cfg
		burst run
		refused "is a link to" "$how, by a link"
	done
	rm burst.cfg
	# with a state folder that the project brought along
	mkdir -p state/jobs
	cp evil.cfg script.jsonl state/jobs
	BURST_STATE_DIR=state burst run state/jobs/evil.cfg
	refused 'a project must not' "a relative state folder"
	BURST_STATE_DIR=$PWD/state burst run state/jobs/evil.cfg
	refused "is in burst's own folder" "a state folder in the project"
	[ ! -e "$T/ran" ] || complain "it ran"
	cp err.txt "$T"
	cd "$T" || return
}
t_relative_folders_of_ones_own() { # XDG: a relative one counts as unset
	clone
	tts '' "on_exit = \"touch '$T/ran'\";"
	mkdir -p conf/burst
	cp burst.cfg conf/burst/burst.cfg
	tts ''
	XDG_CONFIG_HOME=conf burst run
	is "$STATUS" 0 "a relative XDG_CONFIG_HOME: exit status ($(tail -n 2 err.txt))"
	[ ! -e "$T/ran" ] || complain "it ran"
	rm -rf out
	env -u BURST_STATE_DIR XDG_STATE_HOME=xdg timeout 60 "$BURST" run >out.txt 2>err.txt </dev/null || complain "a relative XDG_STATE_HOME: $(tail -n 1 err.txt)"
	[ ! -e xdg ] || complain "state in a relative XDG_STATE_HOME"
	[ -e "$HOME/.local/state/burst/ledger.db" ] || complain "no state at home"
	for value in . ./state state/; do
		BURST_STATE_DIR=$value burst ps
		is "$STATUS" 2 "BURST_STATE_DIR=$value: exit status"
		has err.txt "it must be an absolute path"
	done
	cp err.txt "$T"
	cd "$T" || return
}
t_links_to_a_file() { # a project's may lead to another one of the project; one's own to anywhere
	clone
	mkdir -p common sub ../../dotfiles
	tts ''
	mv burst.cfg common/burst.cfg
	cp script.jsonl common
	ln -s ../common/burst.cfg sub/burst.cfg
	burst run sub
	is "$STATUS" 0 "a link within the repository: exit status ($(tail -n 2 err.txt))"
	wait_for 20 "its pod to be gone" no_pods
	rm -rf "$BURST_STATE_DIR"
	cp common/burst.cfg script.jsonl ../../other
	ln -sfn ../../../other/burst.cfg sub/burst.cfg
	burst run sub
	refused "is a link to $HOME/other/burst.cfg, out of the project" "a link out of it"
	ln -sfn "$HOME/.config/burst/burst.cfg" sub/burst.cfg
	cp common/burst.cfg "$HOME/.config/burst/burst.cfg"
	burst run sub
	refused "out of the project" "a link to one's own file"
	burst run /proc/self/fd/3 3<common/burst.cfg
	refused "out of the project" "a link of the kernel's"
	echo "on_exit = \"touch '$T/ran'\";" >../../dotfiles/burst.cfg
	chmod 600 ../../dotfiles/burst.cfg
	ln -sfn ../../dotfiles/burst.cfg "$HOME/.config/burst/burst.cfg"
	rm -rf common/out
	burst run common
	is "$STATUS" 0 "one's own file is a link: exit status ($(tail -n 2 err.txt))"
	[ -e "$T/ran" ] || complain "one's own file was not read"
	cp err.txt "$T"
	cd "$T" || return
}
t_somebody_elses_file() { # as git has it: whoever may change a project's files decides what it spends and which variables travel
	clone
	[ "$(id -u)" = 0 ] || { cd "$T" || return; skip "not root: no file of somebody else's can be made"; return; }
	tts ''
	chown 12345 burst.cfg
	burst run
	refused "belongs to another user (12345)" "a file of somebody else's"
	SUDO_UID=12345 burst run
	is "$STATUS" 0 "by sudo, of the one who called it: exit status ($(tail -n 2 err.txt))"
	rm -rf out
	burst run --allow-path .
	is "$STATUS" 0 "in a folder that the user allows: exit status ($(tail -n 2 err.txt))"
	cp err.txt "$T"
	cd "$T" || return
}

# ---- files that are no settings ----
t_includes_show_nothing_of_other_files() {
	clone
	echo 'root:$6$topsecret:1::::' >"$HOME/.ssh/shadow"
	local line
	for line in "@include \"$HOME/.ssh/shadow\"" "  @include \"$HOME/.ssh/shadow\"" "$(printf '\t@include "%s"' "$HOME/.ssh/shadow")" \
		"x = 1; @include \"$HOME/.ssh/shadow\""; do
		tts '' "$line"
		burst run -v --trace
		is "$STATUS" 2 "$line: exit status"
		hasnt err.txt topsecret
	done
	rm burst.cfg
	ln -s "$HOME/.ssh/shadow" burst.cfg
	burst run
	is "$STATUS" 2 "a link to another file: exit status"
	hasnt err.txt topsecret
	echo 'apikey = "topsecret' >"$HOME/.ssh/shadow"
	burst run -v --trace
	is "$STATUS" 2 "a link to a file of keys: exit status"
	hasnt err.txt topsecret
	printf 'pods = "topsecret";\n' >"$HOME/.ssh/shadow"
	burst run -v --trace
	is "$STATUS" 2 "a link to a file that reads like settings: exit status"
	hasnt err.txt topsecret
	cp err.txt "$T"
	cd "$T" || return
}
soon() { # soon WHAT: refused, in no time and with no memory to speak of
	local began=$SECONDS
	burst run
	is "$STATUS" 2 "$1: exit status ($(tail -n 1 err.txt | head -c 300))"
	[ $((SECONDS - began)) -lt 30 ] || complain "$1: it took $((SECONDS - began)) s"
	[ "$(wc -c <err.txt)" -lt 2000 ] || complain "$1: $(wc -c <err.txt) bytes of words"
	is "$(grep -c '^burst: ' err.txt)" 1 "$1: lines of error"
}
t_odd_files_are_refused_soon() {
	clone
	head -c 100000000 /dev/zero | tr '\0' '\n' >burst.cfg
	soon "100 MB"
	: >burst.cfg
	truncate -s 20G burst.cfg
	soon "a hole of 20 GB"
	python3 -c 'print("code = " + "{ a = " * 100000 + "1;" + " };" * 100000)' >burst.cfg
	soon "groups in groups"
	python3 -c 'print("gpu = " + "(" * 300000 + ")" * 300000 + ";")' >burst.cfg
	soon "lists in lists"
	python3 -c 'print("pods = " + "9" * 500000 + ";")' >burst.cfg
	soon "a long number"
	tts '' 'pods = 99999999999999999999L;'
	soon "a number that does not fit"
	tts '' 'caps = { max_cost = 1e308; };'
	soon "more money than there is"
	python3 -c 'print("/* " + "x" * 900000)' >burst.cfg
	soon "a comment without end"
	head -c 500000 /dev/urandom >burst.cfg
	soon "noise"
	rm burst.cfg
	mkfifo burst.cfg
	soon "a pipe"
	rm burst.cfg
	ln -s /dev/zero burst.cfg
	soon "a link to a device"
	cp err.txt "$T"
	cd "$T" || return
}
t_burstignore_bombs() { # rules that a matcher could choke on, and names for them
	clone
	mkdir -p code
	(cd code && for i in $(seq 60); do : >"$(printf 'a%.0s' $(seq 200))$i"; done)
	python3 - >code/.burstignore <<-'E2'
		for i in range(2000):
		    print("*a" * 60 + "b")
		    print("**/" * 40 + "[!a-" + "a" * 100 + "]")
	E2
	tts '' 'code = { path = "code"; };'
	LIMIT=60
	burst run
	is "$STATUS" 0 "exit status ($(tail -n 2 err.txt))"
	head -c 3000000 /dev/zero | tr '\0' '*' >code/.burstignore
	burst run --force
	[ "$STATUS" = 0 ] || [ "$STATUS" = 2 ] || complain "3 MB of stars: exit status $STATUS"
	cp err.txt "$T"
	cd "$T" || return
}

run_tests "$@"
