#!/bin/bash
# structure.sh - what lies between two texts reaches the track: pauses, scenes, chapters, the layout of a .txt.
. "$(dirname "$0")/lib.sh"
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/input_lib.sh"

silences() { # the silences within out/joined.wav, in tenths of a second
	ffmpeg -nostdin -i out/joined.wav -af silencedetect=n=-45dB:d=0.3 -f null - 2>&1 |
		sed -n 's/.*silence_duration: //p' | awk '{ printf "%d ", $1 * 10 + 0.5 }'
}
texts() { jq -r .text out/manifest.jsonl; }

t_pauses_follow_the_text() {
	command -v ffmpeg >/dev/null || { skip "ffmpeg is not installed"; return; }
	printf '%s\n\n' '# One' 'It woke up when the rain began to fall on the roof.' '***' 'Next morning the sun was shining again.' \
		'"Today?"' '"No."' '# Two' 'The second chapter begins right here.' >book.md
	JOB='join = { pauses = { scene = 3.0; }; };' INPUT=book.md
	config
	burst run
	is "$STATUS" 0 "run ($(tail -n 1 err.txt))"
	# heading, scene, paragraph, paragraph, chapter, heading
	is "$(silences)" "12 30 7 7 25 12 " "silences"
	is "$(texts | sed -n 4,5p)" '"Today?"
"No."' "two short paragraphs"
	sed -i 's/scene = 3.0; };/scene = 1.5; paragraph = 0.4; }; gap = 1.0; }; check = { trim = true;/' burst.cfg
	burst run
	is "$(silences)" "12 15 4 4 25 12 " "silences with other pauses ($(tail -n 1 err.txt))"
}
t_scene_breaks_and_lines_without_words() {
	printf '%s\n\n' 'The door closed.' '***' 'Morning came.' '* * *' 'She left.' --- 'The end was near.' ⁂ 'Today?' ... 'No.' >novel.txt
	JOB='join = { gap = 0.4; };' INPUT=novel.txt
	config
	burst plan
	has out.txt "read as 6 paragraphs, 4 scene breaks"
	has out.txt "not spoken: 1 "
	burst run
	is "$STATUS" 0 "run ($(tail -n 1 err.txt))"
	is "$(texts | tr '\n' '|')" 'The door closed.|Morning came.|She left.|The end was near.|Today?|No.|' "what is spoken"
	cat >vn.jsonl <<-'J'
		{"id":"l1","text":"Are you there?"}
		{"id":"l2","text":"..."}
		{"id":"l3","text":"[pause 2s]"}
		{"id":"l4","text":"I see you now."}
	J
	INPUT=vn.jsonl
	rm -rf out
	config
	burst run
	is "$STATUS" 0 "run of rows ($(tail -n 1 err.txt))"
	is "$(jq -r .id out/manifest.jsonl | tr '\n' ,)" "l1,l4," "rows that are spoken"
}
t_pauses_as_other_programs_write_them() {
	local tag tags='[pause:2s];[PAUSE 1s];[pause: 500ms];[pause=1s];{pause:1s};(pause);[pause];[long pause];[break 500ms];<break time="500ms"/>;<break strength="strong"/>;[[slnc 500]];<#1.5#>'
	JOB='join = { gap = 0.4; };' INPUT=p.txt
	config
	for tag in '[pause:1500]' '<break time="soon"/>' '{break=x}' '[pause 90s]'; do
		printf 'Fine.\n\nBefore it %s after it.\n' "$tag" >p.txt
		refused 2 "p.txt:3: \"$tag\" is not a pause"
	done
	while read -r -d ';' tag; do printf 'Before it %s after it.\n\n' "$tag"; done <<<"$tags;" >p.txt
	burst run
	is "$STATUS" 0 "run ($(tail -n 1 err.txt))"
	is "$(texts | grep -cx "Before it"),$(texts | grep -cx "after it.")" 13,13 "texts without tags"
}
t_chapters_of_plain_text() {
	command -v ffprobe >/dev/null || { skip "ffprobe is not installed"; return; }
	printf '%s\n\n' '# Chapter 1' 'This is the text of part one.' 'KAPITEL ZWEI' 'This is the text of part two.' >book.txt
	JOB='join = { formats = ["m4b", "mp3", "opus", "flac"]; };' INPUT=book.txt
	config
	burst plan
	has out.txt "read as 2 chapters, 2 paragraphs"
	burst run
	is "$STATUS" 0 "run ($(tail -n 1 err.txt))"
	is "$(texts | head -n 1)" "Chapter 1" "a heading without its mark"
	local want got format
	# the second heading begins where chapters.txt says, to 10 ms in every format
	want=$(awk -F= '/^TIMEBASE/ { split($2, of, "/") } /^START/ && $2 { printf "%d", $2 / of[2] * 100 + 0.5 }' out/chapters.txt)
	for format in m4b mp3 opus flac; do
		got=$(ffprobe -v error -show_chapters -of json "out/joined.$format" | jq -r '.chapters[1] | "\(.start_time) \(.tags.title)"')
		is "${got#* }" "KAPITEL ZWEI" "title in $format"
		awk -v a="${got% *}" -v b="$want" 'BEGIN { d = a * 100 - b; exit !(d <= 1 && d >= -1) }' || complain "$format: chapter at ${got% *} s, not at $want hundredths"
	done
}
t_a_file_for_each_chapter() {
	command -v ffprobe >/dev/null || { skip "ffprobe is not installed"; return; }
	printf '%s\n\n' '# Chapter 1' 'This is the text of part one.' '# Chapter 2' 'This is the text of part two.' >book.txt
	JOB='join = { files = "chapter"; subtitles = true; formats = ["m4b", "mp3"]; };' INPUT=book.txt
	config
	burst run
	is "$STATUS" 0 "run ($(tail -n 1 err.txt))"
	is "$(cd out && echo chapter-*)" "chapter-01 Chapter 1.m4b chapter-01 Chapter 1.mp3 chapter-01 Chapter 1.srt chapter-01 Chapter 1.vtt chapter-02 Chapter 2.m4b chapter-02 Chapter 2.mp3 chapter-02 Chapter 2.srt chapter-02 Chapter 2.vtt" "files"
	is "$(ffprobe -v error -show_entries format_tags=title,track -of csv=p=0 "out/chapter-02 Chapter 2.mp3")" "Chapter 2,2/2" "tags"
	local parts whole
	parts=$(for f in out/chapter-0*.m4b; do ffprobe -v error -show_entries format=duration -of csv=p=0 "$f"; done | awk '{ s += $1 } END { print s + 2.5 }')
	whole=$(ffprobe -v error -show_entries format=duration -of csv=p=0 out/joined.m4b)
	awk -v a="$parts" -v b="$whole" 'BEGIN { d = a - b; exit !(d < 0.4 && d > -0.4) }' || complain "chapters and the pause between last $parts s, the track $whole s"
	printf '%s\n\n' '# Chapter 1' 'This is the text of part one.' '# The End?' 'This is the text of part two.' >book.txt
	JOB='join = { name = "{title}"; files = "chapter"; formats = ["mp3"]; }; book = { title = "A: Book"; };' INPUT=book.txt
	config
	burst run
	is "$STATUS" 0 "run with other names ($(tail -n 1 err.txt))"
	is "$(cd out && printf '%s,' [!0-9]*)" "A - Book.mp3,A - Book.wav,chapter-01 Chapter 1.mp3,chapter-02 The End.mp3,chapters.txt,manifest.jsonl," "files with other names"
	has err.txt "removed 12 files of an earlier track: "
	JOB='join = { name = "my/book"; };'
	config
	burst plan
	is "$STATUS" 2 "a name that is none"
	has err.txt 'burst.cfg:4: join.name "my/book" cannot name the track: it is not a regular file name'
	while IFS='|' read -r keys why; do
		JOB="join = { $keys };"
		config
		burst plan
		is "$STATUS" 2 "with $keys"
		has err.txt "burst.cfg:4: $why"
	done <<'EOF'
formats = ["m4b", "opus"]; sample_rate = 44100;|join.sample_rate: opus has 8000, 12000, 16000, 24000 or 48000 samples a second, not 44100
formats = ["flac"]; bitrate = "64k";|join.bitrate: flac has no bit rate
formats = ["mp3"]; bitrate = "70k";|join.bitrate: mp3 has 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256 or 320 kbit/s, not 70
formats = ["mp3"]; bitrate = "192k"; sample_rate = 24000;|join.bitrate: mp3 of 24000 samples a second has at most 160 kbit/s
formats = ["opus"]; bitrate = "600k";|join.bitrate: opus has 8 to 256 kbit/s, not 600
formats = ["m4b"]; bitrate = "fast";|join.bitrate must be like "64k"
formats = ["m4b"]; channels = 3;|
channels = 1;|join.channels is for join.formats, and there are none: the WAV file stays as the segments are
EOF
	JOB='join = { formats = ["m4b", "mp3", "opus", "flac"]; bitrate = "32k"; channels = 2; sample_rate = 24000; };'
	config
	burst run
	is "$STATUS" 0 "run in another form ($(tail -n 1 err.txt))"
	for format in m4b mp3 flac opus; do # Opus always says 48000
		is "$(ffprobe -v error -show_entries stream=sample_rate,channels -of csv=p=0 "out/joined.$format" | head -n 1)" "$([ $format = opus ] && echo 48000 || echo 24000),2" "form of the $format"
	done
	is "$(ffprobe -v error -show_entries stream=bit_rate -of csv=p=0 out/joined.mp3)" 32000 "bit rate of the mp3"
	JOB='join = { files = "scene"; };'
	config
	burst plan
	is "$STATUS" 2 "an unknown value"
	has err.txt 'burst.cfg:4: join.files must be "track" or "chapter"'
}
t_how_a_txt_was_cut_is_told() {
	printf '%s\n' 'It was a dark and stormy night and' 'the rain fell in torrents except at' 'occasional intervals when it was' 'checked by a violent gust.' >s.txt
	JOB='join = { gap = 0.4; };' INPUT=s.txt
	config
	burst plan
	has out.txt "read as 1 paragraph; 3 wrapped lines joined (job.input_mode)"
	burst plan --json
	schema plan
	is "$(json .read_as)" "read as 1 paragraph; 3 wrapped lines joined (job.input_mode)" "read_as"
	printf '%s\n' 'Host: Welcome to the show.' 'Guest: Thanks for having me.' '' 'Host: Next topic now please.' 'Guest: Sure thing.' >s.txt
	burst plan
	has out.txt "read as 4 lines in 2 paragraphs"
	mkdir parts
	for name in 1 10 2; do echo "This is chapter number $name." >"parts/Chapter $name.txt"; done
	INPUT=parts
	config
	burst plan
	has out.txt "files in this order: Chapter 1.txt, Chapter 2.txt, Chapter 10.txt"
}

run_tests "$@"
