#!/bin/bash
# books.sh - small books in several languages go through plan and run, and what comes out fits together: chapters, pauses, names,
# subtitles, times of words. Their inputs are as others write them: Project Gutenberg, calibre, spreadsheets, chats, screenplays.
. "$(dirname "$0")/lib.sh"

texts() { jq -r .text out/manifest.jsonl; }

# ---- ten books ----

book() { # book LANGUAGE TEXT TEXT HEADING HEADING: book.md of two texts (three paragraphs at most of each), and its borders in $BORDERS
	local text
	{
		printf -- '---\ntitle: "Book %s"\nauthor: Ann Author\nlang: %s\n---\n\n' "$2" "$1"
		for text in "$2" "$3"; do
			printf '# %s\n\n' "$([ "$text" = "$2" ] && echo "$4" || echo "$5")"
			# the first paragraph is a scene of its own
			awk -v RS= 'NR == 2 { print "* * *\n" } NR < 4 { print $0 "\n" }' "$ROOT/tests/texts/$text.txt"
		done
	} >book.md
	BORDERS=$(for text in "$2" "$3"; do awk -v RS= 'NR == 1 { printf "h" } NR == 2 { printf "s" } NR == 3 { printf "p" }' "$ROOT/tests/texts/$text.txt"; echo c; done |
		tr -d '\n' | sed 's/c$//')
}
t_ten_books_in_six_languages() {
	command -v ffprobe >/dev/null || { skip "ffprobe is not installed"; return; }
	local language voice one two first second
	while read -r language voice one two first second; do
		book "$language" "$one" "$two" "${first//_/ }" "${second//_/ }"
		JOB='join = { formats = ["m4b"]; subtitles = true; words = true; };' INPUT=book.md config
		sed -i "s/voice = \"en\"/voice = \"$voice\"/" burst.cfg
		burst plan
		is "$STATUS" 0 "plan of $one ($(tail -n 1 err.txt))"
		has out.txt "read as 2 chapters"
		burst run
		is "$STATUS" 0 "run of $one ($(tail -n 1 err.txt))"
		is "$(python3 "$ROOT/tests/e2e/books.py" out "$BORDERS" 2>&1 | head -n 3)" "" "$one"
		is "$(ffprobe -v error -show_entries format_tags=title,artist -of csv=p=0 out/joined.m4b)" "Book $one,Ann Author" "names of $one"
		rm -rf out
	done <<-'B'
		en en-us en-1 en-2 The_Harbour The_Oven
		en en-gb en-3 en-1 One Two
		de de de-1 de-2 Die_Mühle Das_Tal
		de de de-3 de-1 Eins Zwei
		de de de-2 de-3 Vorher Nachher
		fr fr fr-1 fr-2 Le_phare La_soupe
		fr fr fr-2 fr-1 Un Deux
		es es es-1 es-2 El_tren La_carta
		it it it-1 it-1 La_casa Il_mare
		zh cmn zh-1 zh-1 老人 小狗
	B
}

# ---- as others write them ----

t_a_text_of_project_gutenberg() {
	cat >book.txt <<-'E'
		The Project Gutenberg eBook of The Ferry

		Title: The Ferry

		Author: Ada Lane

		*** START OF THE PROJECT GUTENBERG EBOOK THE FERRY ***

		Produced by A Reader

		CONTENTS

		  I. The Rope
		  II. The Far Bank


		I.

		The Rope


		The rope was _old_,[1] and the ferryman would not have it
		changed. He said that it knew the way.

		       *       *       *       *       *

		It broke in May.

		[1] It had been made in 1841.


		II.

		The Far Bank


		Nobody crosses there now.

		*** END OF THE PROJECT GUTENBERG EBOOK THE FERRY ***

		Updated editions will replace the previous one.
	E
	JOB='join = { formats = ["m4b"]; };' INPUT=book.txt config
	burst plan
	has out.txt "not spoken: 1 footnote, 1 licence of Project Gutenberg, 1 table of contents"
	burst run
	is "$STATUS" 0 "run ($(tail -n 1 err.txt))"
	is "$(texts)" "I. The Rope
The rope was old, and the ferryman would not have it changed. He said that it knew the way.
It broke in May.
II. The Far Bank
Nobody crosses there now." "what is spoken"
	command -v ffprobe >/dev/null || return
	is "$(ffprobe -v error -show_entries format_tags=title,artist -of csv=p=0 out/joined.m4b)" "The Ferry,Ada Lane" "names"
	is "$(ffprobe -v error -show_chapters -of json out/joined.m4b | jq -r '[.chapters[].tags.title] | join("|")')" "I. The Rope|II. The Far Bank" "chapters"
}
t_chats_and_screenplays_have_speakers() {
	printf '%s\n' '[03/05/2024, 14:02:11] Anna: Are you on the train?' '[03/05/2024, 14:02:40] Ben: Yes.' 'It left at two.' \
		'[03/05/2024, 14:03:06] Ben: <Media omitted>' >chat.txt
	JOB='speakers = ["Anna=en-us", "Ben=en-gb"];'
	INPUT=chat.txt config
	burst run
	is "$STATUS" 0 "run of a chat ($(tail -n 1 err.txt))"
	is "$(jq -r '"\(.voice) \(.text)"' out/manifest.jsonl)" "en-us Are you on the train?
en-gb Yes. It left at two." "the chat"
	rm -rf out
	printf '%s\n' 'INT. SHED - DAY' '' '        ANNA' '    (quietly)' '  Is it' '  raining?' '' '        BEN (O.S.)' '  It was.' >play.txt
	INPUT=play.txt config
	burst run
	is "$STATUS" 0 "run of a screenplay ($(tail -n 1 err.txt))"
	is "$(jq -r '"\(.voice) \(.text)"' out/manifest.jsonl)" "en INT. SHED - DAY
en-us Is it raining?
en-gb It was." "the screenplay"
}
t_tables_as_spreadsheets_save_them() {
	local file
	printf '\357\273\277sep=;\r\nid;text;voice;\r\na;Hello there;;\r\n;;;\r\n' >sep.csv
	printf 'id\ttext\r\na\tHello there\r\n\t\r\n' | iconv -t UTF-16LE | (printf '\377\376'; cat) >unicode.tsv
	printf 'ID , Text,,\n a,"Hello there",,\n,,,\n' >cells.csv
	for file in sep.csv unicode.tsv cells.csv; do
		INPUT=$file config
		burst run
		is "$STATUS" 0 "run of $file ($(tail -n 1 err.txt))"
		is "$(texts)" "Hello there" "$file"
		rm -rf out
	done
	printf 'id,text\na,caf\351\n' >latin.csv
	INPUT=latin.csv config
	burst run
	is "$STATUS" 2 "Windows-1252"
	has err.txt "latin.csv:2: this is not UTF-8: save it as UTF-8, or, if it is Windows-1252, \`iconv -f WINDOWS-1252 -t UTF-8 'latin.csv' >utf8.csv\`"
	eval "$(sed -n 's/.*`\(iconv .*\)`.*/\1/p' err.txt)"
	INPUT=utf8.csv config
	burst run
	is "$(texts)" "café" "what the command makes"
}
t_html_in_other_texts() {
	printf '%s\n' 'He &amp; she<br>came <b>home</b>&nbsp;late, and 3 < 4.' >e.txt
	echo '{"id":"a","text":"Salt &amp; bread<br/>and <i>milk</i>, says <name>."}' >e.jsonl
	INPUT=e.txt config
	burst run
	is "$(texts)" 'He & she came home late, and 3 < 4.' "a text ($(tail -n 1 err.txt))"
	has err.txt "HTML tags"
	rm -rf out
	INPUT=e.jsonl config
	burst run
	is "$(texts)" 'Salt & bread and milk, says <name>.' "JSON lines ($(tail -n 1 err.txt))"
}
t_ordinals_and_abbreviations_end_nothing() { # neither a piece nor a cue, though the text is cut
	printf '%s' 'Die alte Brücke am Fluss, die von den Leuten im Dorf nur der Bogen genannt wird, stammt aus dem 18. Jahrhundert und wurde seit dem 12. März ' \
		'1903 dreimal neu gebaut, zuletzt von Hrn. Dr. Weber, der ca. 40 Helfer hatte. Am 7. Juni kamen sie an, usw. bis zum Herbst. Wer sie heute sehen ' \
		'will, geht von der Hauptstr. aus über die Wiese, vgl. Abb. 3 im Anhang, und hält sich am Ende links.' >b.txt
	JOB='join = { subtitles = true; };' INPUT=b.txt config
	sed -i 's/voice = "en"/voice = "de"/' burst.cfg
	burst run
	is "$STATUS" 0 "run ($(tail -n 1 err.txt))"
	[ "$(texts | wc -l)" -ge 2 ] || complain "the text was not cut"
	texts >ends.txt
	awk -v RS= -F'\n' '{ print $NF }' out/joined.srt >>ends.txt
	! grep -qE ' (18|12|7|Hrn|Dr|ca|usw|vgl|Abb)\.$' ends.txt || complain "it ends with $(grep -E ' (18|12|7|Hrn|Dr|ca|usw|vgl|Abb)\.$' ends.txt | head -n 1)"
}
t_subtitles_of_other_programs() {
	printf 'WEBVTT\n\nSTYLE\n::cue { color: red }\n\n00:01.000 --> 00:02.000\n<v Mary>Hello <c.x>there</c>.</v>\n\n00:03.000 --> 00:04.000\n[door creaks]\n\n00:05.000 --> 00:06.000\n<v Tom>Who?</v>\n' >a.vtt
	JOB='speakers = ["Mary=en-us", "Tom=en-gb"];' INPUT=a.vtt config
	burst run
	is "$STATUS" 0 "run of WebVTT ($(tail -n 1 err.txt))"
	is "$(jq -r '"\(.voice) \(.text)"' out/manifest.jsonl)" "en-us Hello there.
en-gb Who?" "WebVTT"
	printf '[ti:Song]\n[00:12.00]The river goes\n[00:17.20][00:40.00]by my door\n' >a.lrc
	burst run a.lrc
	is "$STATUS" 0 "run of lyrics ($(tail -n 1 err.txt))"
	is "$(jq -r .text a-audio/manifest.jsonl)" "The river goes
by my door" "lyrics"
}

# ---- more than 4 GiB ----

t_a_track_of_more_than_4_gib() {
	local room
	room=$(df --output=avail -B1G . | tail -n 1)
	[ "$room" -ge 12 ] || { skip "12 GB of disk are needed, $room are free"; return; }
	[ -n "${CHECKING:-}" ] && case $BURST in */asan/*) skip "the sanitizers take too long for 28 hours of sound"; return ;; esac
	for _ in $(seq 1640); do printf 'One.\n\n[pause 60s]\n\n'; done >long.md
	echo 'The end.' >>long.md
	JOB='join = { subtitles = true; words = true; };' INPUT=long.md config
	burst plan
	has err.txt ' GB: above 4.29 GB it is written as RF64'
	LIMIT=400 burst run
	is "$STATUS" 0 "run ($(tail -n 2 err.txt | tr '\n' '|'))"
	is "$(head -c 4 out/joined.wav)" RF64 "kind of the track"
	[ "$(stat -c %s out/joined.wav)" -gt 4294967295 ] || complain "it has $(stat -c %s out/joined.wav) bytes"
	is "$(tail -n 2 out/joined.srt | head -n 1)" "The end." "the last cue"
	command -v ffprobe >/dev/null || return
	# the last cue lies where the track ends, as another program reads it
	local seconds
	seconds=$(ffprobe -v error -show_entries format=duration -of csv=p=0 out/joined.wav)
	tail -n 3 out/joined.srt | sed -n 's/.* --> //p' | awk -F'[:,]' -v s="$seconds" '{ d = $1 * 3600 + $2 * 60 + $3 + $4 / 1000 - s; exit !(d < 0.6 && d > -1) }' ||
		complain "the last cue ends at $(tail -n 3 out/joined.srt | sed -n 's/.* --> //p'), the track at $seconds"
	rm -f out/joined.wav
}

run_tests "$@"
