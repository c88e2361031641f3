#!/bin/bash
# quick.sh - runs without a burst.cfg: a text or a command on the command line.
. "$(dirname "$0")/lib.sh"

book() { # book NAME: two chapters of a paragraph each
	printf '# One\n\nThis is a small book. It is read aloud.\n\n# Two\n\nIt has two chapters.\n' >"$1"
}
config_is() { # config_is FILE: it holds these lines, without their indentation
	sed 's/^ *//' "$1" | cmp -s - expected || complain "$1: $(diff <(sed 's/^ *//' "$1") expected | head -n 3 | tr '\n' '|')"
}

t_a_text_is_spoken_without_a_config() {
	book book.md
	burst run book.md
	is "$STATUS" 0 "exit status ($(tail -n 2 err.txt))"
	has err.txt 'no burst.cfg needed; this one does the same (--save writes it)'
	has err.txt '    provider = ["local"];'
	is "$(wavs book-audio)" 4 "files of two headings and two paragraphs"
	[ -s book-audio/joined.wav ] && [ -s book-audio/joined.srt ] || complain "no joined track: $(ls book-audio)"
	[ ! -e burst.cfg ] || complain "a burst.cfg was written without being asked for"
	burst run book.md
	has err.txt "all 4 segments are already rendered: nothing rented"
	echo "One sentence." >one.txt
	burst run one.txt
	burst run one.txt
	has err.txt "the segment is already rendered: nothing rented"
	burst run one.txt --save
	burst plan
	has out.txt "the segment is already rendered: a run would rent nothing"
	rm burst.cfg
	printf 'id,text\na,One line.\nb,Another line.\n' >lines.csv
	mkdir sub
	cp lines.csv sub
	burst run --quiet sub/lines.csv
	is "$STATUS" 0 "exit status of a table in another folder ($(tail -n 2 err.txt))"
	is "$(wavs sub/lines-audio)" 2 "files beside that table"
	[ ! -e sub/lines-audio/joined.wav ] || complain "the lines of a table were joined"
	[ ! -s err.txt ] || complain "--quiet says: $(head -n 1 err.txt)"
}

t_a_command_runs_without_a_config() {
	echo "hello there" >in.txt
	burst run -- sh -c 'tr a-z A-Z <in.txt >"its name.txt"; echo seen'
	is "$STATUS" 0 "exit status ($(tail -n 2 err.txt))"
	is "$(cat 'out/its name.txt')" "HELLO THERE" "what the command made"
	has err.txt "| seen"
	[ ! -e out/in.txt ] || complain "a file that the command did not change came back"
	is "$("$BURST" ledger --json | jq -r '.[0].job')" sh "the job's name"
	burst run 'echo "$BURST_INDEX" >index.txt'
	is "$STATUS" 2 "a command without \"--\""
	rm -r out
	burst run -q -- 'echo "$BURST_INDEX" >index.txt; echo a b'
	is "$STATUS $(cat out/index.txt)" "0 0" "one word is a line for the shell"
	rm -r out
	burst run -q -- true
	is "$STATUS" 0 "a command that makes no file ($(tail -n 2 err.txt))"
}

t_saved_it_does_the_same() {
	book book.md
	burst run book.md --save --max-cost 0.50 --max-duration 10m
	is "$STATUS" 0 "exit status ($(tail -n 2 err.txt))"
	has err.txt "wrote $T/burst.cfg: \`burst run\` does the same from now on"
	cat >expected <<-'E'
		provider = ["local"];
		caps = {
		max_cost = 0.5;
		max_duration = "10m";
		};
		job = {
		name = "book";
		type = "tts";
		output = "book-audio";
		engine = "espeak";
		input = "book.md";
		join = {
		subtitles = true;
		};
		};
	E
	config_is burst.cfg
	burst run
	has err.txt "nothing rented"
	burst run book.md --save
	is "$STATUS" 2 "a second --save"
	has err.txt "burst.cfg already exists and was not changed"
	has err.txt "--save=NAME.cfg"
	burst plan --save=sum.cfg -- wc -l book.md
	is "$STATUS" 2 "exit status of a plan for a command that never ran"
	has err.txt "no estimate"
	cat >expected <<-'E'
		provider = ["local"];
		code = {
		path = ".";
		};
		job = {
		name = "wc";
		type = "command";
		output = "out";
		run = "wc -l book.md";
		outputs = ["**"];
		};
	E
	config_is sum.cfg
	is "$(ledger 'select count(*) from run')" 1 "runs after a plan"
}

t_the_users_file_names_the_provider() {
	book book.md
	mkdir -p "$XDG_CONFIG_HOME/burst"
	echo 'provider = ["modal", "local"]; gpu = "none"; caps = { max_cost = 3.0; };' >"$XDG_CONFIG_HOME/burst/burst.cfg"
	burst plan --list-prices book.md
	has err.txt 'provider = ["modal", "local"];'
	hasnt err.txt "max_cost"
	burst run book.md -p local --voice en-us
	is "$STATUS" 0 "exit status of a run at another provider ($(tail -n 2 err.txt))"
	has err.txt 'provider = ["local"];'
	has err.txt 'voice = "en-us";'
	burst run book.md -p local --engine test
	is "$STATUS" 2 "an engine without a worker"
	has err.txt 'engine "test" is unknown'
}

t_it_is_resumed_from_anywhere() {
	local run
	echo start >in.txt
	burst_bg run -- 'cat in.txt; sleep 60'
	wait_for 60 "the command to run" grep -q "| start" err.txt
	run=$(ledger 'select id from run')
	kill -9 "$PID"
	burst_wait
	mkdir -p "$T/elsewhere"
	cd "$T/elsewhere" || return
	"$BURST" resume "$run" >resume.txt 2>&1 </dev/null &
	local resumed=$!
	wait_for 60 "the run to go on" grep -q "$run: continuing (job \"cat\" in $T)" resume.txt
	wait_for 60 "a pod" test -n "$(pods_left)"
	kill "$resumed"
	wait "$resumed"
	cd "$T" || return
	burst cancel
	is "$STATUS" 0 "cancel without a burst.cfg in the folder ($(tail -n 2 err.txt))"
	has err.txt "run $run"
}

t_a_dry_run_by_either_name_rents_nothing() {
	local flag
	book book.md
	for flag in -n --dry-run --dryrun; do
		burst run $flag book.md
		is "$STATUS" 0 "exit status of run $flag ($(tail -n 2 err.txt))"
		has out.txt "4 segments"
	done
	is "$("$BURST" ledger --json | jq length)" 0 "runs that were begun"
}

t_what_cannot_be_a_job() {
	refused() { # refused TEXT WORD...
		local text=$1
		shift
		burst run "$@"
		is "$STATUS" 2 "exit status of run $*"
		has err.txt "$text"
	}
	book book.md
	refused "nowhere.md: No such file or directory" nowhere.md
	refused 'give a command after "--"' --
	refused 'give either "book.md" or, behind "--", a command' book.md -- true
	refused 'the command behind "--" is empty' -- ' '
	refused "--save is for a run without a burst.cfg" --save burst.cfg
	refused "--save=a/b.cfg: it is saved beside the text" --save=a/b.cfg book.md
	refused "--commit needs a burst.cfg that the commit holds" --commit HEAD book.md
	refused 'voice "nobody" is unknown to piper' book.md --voice nobody --engine piper
	cd "$HOME" || return
	refused "this one is your whole home" -- true
	cd / || return
	refused "this one is the whole machine" -- true
	is "$("$BURST" ledger --json | jq length)" 0 "runs that were begun"
}

run_tests "$@"
