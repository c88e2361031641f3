#!/bin/bash
# tables.sh - what spreadsheets export, and who speaks: rows and columns, speakers, ids with folders.
. "$(dirname "$0")/lib.sh"

refused() { # refused TEXT: `burst run` ends so, and says so
	burst run
	is "$STATUS" 2 "exit status ($(tail -n 2 err.txt))"
	has err.txt "$1"
}

said() { # said WANT [DIR]: who says what in the manifest
	is "$(jq -r '"\(.id) \(.voice)\(if .speaker then "/" + .speaker else "" end): \(.text)"' "${2:-out}/manifest.jsonl")" "$1" "what is said"
}

t_rows_of_spreadsheets() {
	printf 'id,text,voice\n1,Hello there my friend,\n,,\n,,\n' >empty-rows.csv
	printf 'id,text,voice,note\n1,Hello there my friend\n2,Hallo mein Freund,de\n' >short-rows.csv
	burst run empty-rows.csv
	is "$STATUS" 0 "run of empty rows ($(tail -n 2 err.txt))"
	said '1 en: Hello there my friend' empty-rows-audio
	burst run short-rows.csv
	is "$STATUS" 0 "run of short rows ($(tail -n 2 err.txt))"
	said '1 en: Hello there my friend
2 de: Hallo mein Freund' short-rows-audio
}

t_speakers_of_a_text_and_a_table() {
	printf 'Alice: Hello Bob, how are you today?\nBob: I am fine, thank you.\n' >play.txt
	printf 'id,speaker,text\n1,alice,Hello Bob how are you today\n2,bob,I am fine thank you\n' >speakers.csv
	INPUT=play.txt config
	burst plan
	is "$STATUS" 0 "plan ($(tail -n 2 err.txt))"
	has err.txt '2 of 2 texts begin like a speaker'
	JOB='speakers = ["Alice=en-us", "Bob=en-gb+m3"];' INPUT=play.txt config
	burst run
	is "$STATUS" 0 "run of labels ($(tail -n 2 err.txt))"
	said '001 en-us/Alice: Hello Bob, how are you today?
002 en-gb+m3/Bob: I am fine, thank you.'
	INPUT=speakers.csv config
	refused 'speakers.csv:2: speaker "alice" has no voice: set job.speakers = ["NAME=VOICE", ...]'
	JOB='speakers = ["Alice=en-us"];' INPUT=speakers.csv config
	refused 'speakers.csv:3: speaker "bob" has no voice'
	JOB='speakers = ["Alice=nobody"];' INPUT=speakers.csv config
	refused 'burst.cfg:4: voice "nobody" is unknown to espeak'
	rm -rf out
	JOB='columns = { keep = ["speaker"]; };' INPUT=speakers.csv config
	burst run
	is "$STATUS" 0 "run without speakers ($(tail -n 2 err.txt))"
	said '1 en/alice: Hello Bob how are you today
2 en/bob: I am fine thank you'
}

t_two_speakers_in_a_cell() {
	printf 'Nummer;Satz\nq1;"Alice: Hello Bob, how are you today?\nBob: I am fine, thank you."\nq2;Bye.\n' >cells.csv
	JOB='speakers = ["Alice=en-us", "Bob=en-gb+m3"];' INPUT=cells.csv config
	burst run
	is "$STATUS" 0 "run of cells ($(tail -n 2 err.txt))"
	said 'q1-1 en-us/Alice: Hello Bob, how are you today?
q1-2 en-gb+m3/Bob: I am fine, thank you.
q2 en: Bye.'
}

t_columns_that_would_change_the_sound() {
	printf 'sentence,speed\nHello there my friend,160\n' >cards.csv
	INPUT=cards.csv config
	refused 'cards.csv:1: "speed" changes nothing: to pass it to the engine, name it in job.columns'
	JOB='columns = { options = ["speed"]; };' INPUT=cards.csv config
	burst run
	is "$STATUS" 0 "run ($(tail -n 2 err.txt))"
	said '001 en: Hello there my friend'
	JOB='columns = { options = ["speed"]; };' INPUT=cards.csv config
	sed -i 's/160/fast/' cards.csv
	refused 'cards.csv:2: options: speed is "fast"; espeak needs'
}

t_ids_in_folders() { # finished files, reuse, join, prune, `fetch` and a stage take them like other files
	printf 'id,text\nch1/line 1,Hello there one\nch1/line 2,Hello there two\nch2/line 1,And now a third line\n' >s.csv
	JOB='join = { subtitles = true; }; then = ( { name = "list"; outputs = ["list.txt"]; run = "cd \"$BURST_INPUTS\" && find . -name \"*.wav\" | sort >\"$OLDPWD/list.txt\""; } );' INPUT=s.csv config
	burst run
	is "$STATUS" 0 "run ($(tail -n 2 err.txt))"
	is "$(cd out && find . -name '*.wav' | sort | tr '\n' ,)" './ch1/line 1.wav,./ch1/line 2.wav,./ch2/line 1.wav,./joined.wav,' "files"
	is "$(cat out/list.txt)" "$(printf './ch1/line 1.wav\n./ch1/line 2.wav\n./ch2/line 1.wav')" "files that a stage sees"
	INPUT=s.csv config
	burst run
	has err.txt 'all 3 segments are already rendered'
	rm -r out/ch1
	burst run --json
	is "$(json '[.segments.rendered, .segments.cached] | @csv')" 2,1 "after a folder is lost"
	printf 'id,text\nch3/a,Hello there two\nch1/line 1,And now a third line\n' >s.csv
	burst run --prune --json
	is "$(json '[.segments.rendered, .segments.cached] | @csv')" 0,2 "after lines have moved"
	is "$(cd out && find . -name '*.wav' | sort | tr '\n' ,)" './ch1/line 1.wav,./ch3/a.wav,./joined.wav,' "files after --prune"
	printf 'id,text\nx/y,A line that is new\n' >s.csv
	burst run -d
	is "$STATUS" 0 "detached run ($(tail -n 2 err.txt))"
	burst attach
	is "$STATUS" 0 "attach ($(tail -n 2 err.txt))"
	[ -s out/x/y.wav ] || complain "out/x/y.wav is missing"
	printf 'id,text\njoined.wav/y,A line\n' >s.csv
	refused 's.csv:2: id "joined.wav/y" cannot name a file: a folder in it ends in .wav'
}

t_a_language_that_the_voice_does_not_speak() {
	printf 'Der alte Mann stieg die Treppe hinauf, und oben war die Lampe kalt.\nEs war nicht leicht, aber er ist mit dem Hund auf dem Turm.\n' >german.txt
	INPUT=german.txt config
	burst plan
	is "$STATUS" 0 "plan ($(tail -n 2 err.txt))"
	has err.txt 'voice en speaks "en", and its texts read like German ("de"): choose another voice, or set job.language = "en" if they are'
	JOB='language = "en";' INPUT=german.txt config
	burst plan
	hasnt err.txt 'read like'
	JOB='language = "fr";' INPUT=german.txt config
	burst run
	is "$STATUS" 0 "run ($(tail -n 2 err.txt))"
	has err.txt 'voice en speaks "en", and its texts are "fr" by job.language'
}

run_tests "$@"
