#!/bin/bash
# project_files.sh - however odd a project's files are, the answer is one line, soon; and none is trusted for where it lies.
#
# shellcheck disable=SC2088 # a tilde is burst's to expand here
. "$(dirname "$0")/../e2e/lib.sh"
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/project_lib.sh"

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
	rm -f code/.*ignore
	cp err.txt "$T"
	cd "$T" || return
}

t_all_that_it_names_is_a_plain_file() { # or a link within the project
	clone
	mkdir code pipes
	echo hello >code/a
	echo 'SECRET-LINE-[' >"$HOME/hidden"
	local what job rest how
	while IFS='|' read -r what job rest; do
		for how in pipe device link unreadable; do
			tts "$job" "$rest"
			rm -rf odd out
			case $how in
			pipe) mkfifo odd ;;
			device) ln -s /dev/zero odd ;;
			link) ln -s "$HOME/hidden" odd ;;
			unreadable) mkdir odd && chmod 0 odd ;;
			esac
			[ "$what $how" != "code unreadable" ] || continue # an empty folder
			LIMIT=20 burst run
			[ "$STATUS" = 2 ] || complain "$what, $how: exit status $STATUS ($(tail -n 1 err.txt))"
			grep -qE "odd|outside of the project" err.txt || complain "$what, $how: which file? $(tail -n 1 err.txt)"
			hasnt err.txt SECRET-LINE
			is "$(grep -c '^burst: ' err.txt)" 1 "$what, $how: lines of error ($(tail -n 1 err.txt))"
		done
	done <<-'E2'
		input|input = "odd";|
		voice|engine = "chatterbox"; voice = "odd";|
		lexicon|lexicon = "odd";|
		code||code = { path = "odd"; };
	E2
	rm -rf odd out
	tts ''
	burst run
	is "$STATUS" 0 "a first run ($(tail -n 1 err.txt))"
	rm out/manifest.jsonl
	mkfifo out/manifest.jsonl
	LIMIT=20 burst run
	[ "$STATUS" != 0 ] && [ "$STATUS" -lt 124 ] || complain "manifest: exit status $STATUS"
	has err.txt "manifest.jsonl"
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
