#!/bin/bash
# listen.sh - `burst listen`: a line of the job, a text, and what it must not touch
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"

t_a_line_of_the_job() {
	script_lines 5
	config
	burst listen s003
	is "$STATUS" 0 "exit status ($(tail -n 1 err.txt))"
	local file
	file=$(tail -n 1 out.txt)
	is "$(basename "$file")" "s003.wav" "its file"
	[ -s "$file" ] || complain "there is no sound: $file"
	[ ! -e out ] || complain "the output folder changed: $(ls out)"
	is "$(ledger 'select type, total from run')" "listen|1" "what the ledger says"
	burst run
	is "$STATUS $(wavs)" "0 5" "a run afterwards"
	burst listen
	is "$STATUS $(tail -n 1 out.txt)" "0 $T/out/s001.wav" "the first line, which is rendered"
	is "$(ledger 'select count(*) from run')" 2 "runs: what is there is not rendered again"
	burst listen s002 --voice de
	is "$STATUS $(ledger 'select count(*) from run')" "0 3" "in another voice"
	burst resume
	has err.txt "$(ledger "select id from run where type = 'tts'")" "resume means the run, not what was listened to"
}

t_a_text() {
	config
	script_lines 1
	burst listen Hello there, -o said.wav
	is "$STATUS $(cat out.txt)" "0 said.wav" "a text in several words ($(tail -n 1 err.txt))"
	config 'deadline = "50ms";'
	burst plan
	is "$STATUS" 5 "the job misses its deadline ($(tail -n 1 err.txt))"
	burst listen again
	is "$STATUS" 0 "a deadline of the whole job ($(tail -n 1 err.txt))"
	burst listen again -o said.wav
	is "$STATUS" 2 "a file that exists"
	has err.txt "-o: said.wav exists, and listen overwrites nothing"
	burst listen "$(printf 'One more sentence for a long text. %.0s' {1..30})"
	is "$STATUS" 0 "a text that is cut ($(tail -n 1 err.txt))"
	[ "$(wc -l <out.txt)" -ge 3 ] || complain "pieces: $(cat out.txt)"
	burst listen Hello --voice nobody
	is "$STATUS" 2 "no such voice"
	has err.txt 'voice "nobody" is unknown to espeak'
	burst listen "..."
	is "$STATUS" 2 "nothing to say"
	is "$(wc -l <err.txt)" 1 "lines about it ($(cat err.txt))"
}

t_without_a_config() {
	mkdir empty && cd empty || return
	burst listen "Guten Morgen." --voice de
	is "$STATUS" 0 "exit status ($(tail -n 1 err.txt))"
	[ -s "$(tail -n 1 out.txt)" ] || complain "no sound: $(cat out.txt)"
	is "$(find . -type f ! -name out.txt ! -name err.txt | wc -l)" 0 "files left in the folder"
	burst listen
	is "$STATUS" 2 "neither a config nor a text"
}

t_it_is_played() { # by the first program that exists, at a terminal alone
	command -v script >/dev/null || { skip "no script(1)"; return; }
	script_lines 1
	config
	mkdir bin
	printf '#!/bin/sh\necho "$@" >"%s/played.txt"\n' "$T" >bin/ffplay
	chmod 755 bin/ffplay
	PATH=$T/bin:$PATH burst listen
	[ ! -e played.txt ] || complain "it plays into a pipe"
	PATH=$T/bin:$PATH script -qec "$BURST listen" /dev/null >said.txt
	has played.txt "-nodisp -autoexit -loglevel error"
	has played.txt "/s001.wav"
}

run_tests "$@"
