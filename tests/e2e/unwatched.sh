#!/bin/bash
# unwatched.sh - cron, systemd and git hook exactly as the pages print them, with nobody watching.
. "$(dirname "$0")/lib.sh"

printed() { # printed NAME: the block of a page under <!-- test: NAME -->
	python3 "$ROOT/tests/e2e/pages.py" named "$1"
}
cron_line() { # as cron runs it, with the program where it is here
	printed cron | sed "s/^[^ ]* [^ ]* [^ ]* [^ ]* [^ ]* //; s|/usr/local/bin/burst|$BURST|"
}
quiz_folder() {
	mkdir -p home/quiz bin
	ln -s "$BURST" bin/burst
	cd home/quiz || return
	script_lines 4
	config
	cd ../..
}

t_cron_line() {
	quiz_folder
	line=$(cron_line)
	has <(printed cron) "burst run"
	env -i PATH=/usr/bin:/bin HOME="$T/home" BURST_STATE_DIR="$BURST_STATE_DIR" LOCAL_ISOLATION="${LOCAL_ISOLATION:-}" LOGNAME=x SHELL=/bin/sh \
		timeout 90 sh -c "$line" </dev/null >cron.out 2>&1
	is "$?" 0 "exit status"
	is "$(wavs home/quiz/out)" 4 "files ($(tail -n 2 home/quiz/burst.log))"
	is "$(cat cron.out)" "" "what cron would mail"
	hasnt home/quiz/burst.log "$(printf '\033')"
}

t_cron_line_says_what_failed() {
	quiz_folder
	rm home/quiz/script.jsonl
	line=$(cron_line)
	env -i PATH=/usr/bin:/bin HOME="$T/home" BURST_STATE_DIR="$BURST_STATE_DIR" LOCAL_ISOLATION="${LOCAL_ISOLATION:-}" timeout 90 sh -c "$line" </dev/null >/dev/null 2>&1
	has home/quiz/burst.log "burst: exit 2"
	has home/quiz/burst.log "script.jsonl"
}

t_systemd_service() {
	quiz_folder
	printed service >burst.service
	printed timer >burst.timer
	if command -v systemd-analyze >/dev/null; then
		sed "s|/usr/local/bin/burst|$BURST|" burst.service >check.service
		systemd-analyze verify --user ./check.service >verify.txt 2>&1 || skip "systemd-analyze cannot run here"
		SKIP=''
	fi
	command=$(sed -n 's/^ExecStart=//p' burst.service | sed "s|/usr/local/bin/burst|$BURST|")
	dir=$(sed -n 's/^WorkingDirectory=//p' burst.service | sed "s|%h|$T/home|")
	has burst.timer "OnCalendar="
	# shellcheck disable=SC2086
	(cd "$dir" && env -i PATH=/usr/bin:/bin HOME="$T/home" BURST_STATE_DIR="$BURST_STATE_DIR" LOCAL_ISOLATION="${LOCAL_ISOLATION:-}" timeout 90 $command </dev/null) >svc.txt 2>&1
	is "$?" 0 "exit status ($(tail -n 2 svc.txt))"
	is "$(wavs home/quiz/out)" 4 files
}

t_git_hook() {
	quiz_folder
	cd home/quiz || return
	export GIT_CONFIG_GLOBAL=/dev/null
	git init -q . && git config user.email t@t && git config user.name t
	printf 'out\n*.txt\n' >.gitignore
	has <(printed hook) "burst hook install"
	PATH="$T/bin:$PATH" sh -c "$(printed hook | sed 's/ *#.*//') --quiet 0" 2>err.txt || complain "install: $(tail -n 1 err.txt)"
	git add -A
	local before=${EPOCHREALTIME/./}
	git commit -qm "a new line" || complain "the commit failed"
	local took=$(((${EPOCHREALTIME/./} - before) / 1000))
	[ $took -lt 1500 ] || complain "the commit took $took ms"
	wait_for 60 "the files" file_count out 4
	wait_for 30 "the render's end" no_request_waits
	is "$(ledger 'select status from run')" "done" "how the run ended"
	cd ../..
}

no_request_waits() { [ "$(ledger "select count(*) from request where state = 'done'")" = 1 ]; }

t_closed_standard_files() {
	script_lines 2
	config
	timeout 60 "$BURST" run <&- >&- 2>&-
	is "$?" 0 "exit status"
	is "$(wavs)" 2 files
}

t_state_is_private() {
	script_lines 2
	config
	umask 000
	burst run
	umask 022
	is "$STATUS" 0 "exit status"
	is "$(stat -c %a state)" 700 "state folder"
	is "$(find state -maxdepth 1 -name 'ledger.db*' -perm /077 | wc -l)" 0 "ledger files others may read"
	is "$(find state/runs -type f -perm /077 | wc -l)" 0 "files of the run others may read"
	is "$(find state/runs -name '*.key' | wc -l)" 0 "keys left"
}

run_tests "$@"
