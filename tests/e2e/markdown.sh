#!/bin/bash
# markdown.sh - what burst reads in Markdown against what cmark-gfm, GitHub's own parser, reads there.
. "$(dirname "$0")/lib.sh"

agrees() { # agrees ARGUMENT...: of markdown.py
	command -v cmark-gfm >/dev/null || { skip "cmark-gfm is not installed"; return; }
	python3 "$ROOT/tests/e2e/markdown.py" "$ROOT/build/e2e/script_print" "$@" >differ.txt || complain "they differ: $(tail -n 40 differ.txt)"
}

t_documents_are_read_as_github_reads_them() {
	agrees "$ROOT/tests/e2e/book.md" "$ROOT"/*.md "$ROOT"/*/*.md "$ROOT/config/examples/book/lighthouse.md"
}
t_random_documents_are_read_as_github_reads_them() {
	agrees --random 400
	is "$(tail -n 1 differ.txt | cut -d' ' -f1)" 400 documents
}

chapters() { # chapters FILE: begin and title of each, as ffprobe reads them
	ffprobe -v error -show_chapters -of json "$1" | jq -r '.chapters[] | "\(.start_time | tonumber | . * 10 | floor) \(.tags.title)"'
}

t_a_book_with_chapters() {
	command -v ffprobe >/dev/null || { skip "ffprobe is not installed"; return; }
	cp "$ROOT/tests/e2e/book.md" .
	JOB='join = { subtitles = true; formats = ["m4b", "mp3"]; };' INPUT=book.md
	config
	burst plan
	is "$STATUS" 0 "plan ($(tail -n 1 err.txt))"
	has out.txt "not spoken: 2 code blocks, 1 image, 3 footnotes"
	burst plan --json
	schema plan
	is "$(json .left_out)" "not spoken: 2 code blocks, 1 image, 3 footnotes" "what the plan leaves out"
	burst run
	is "$STATUS" 0 "run ($(tail -n 1 err.txt))"
	has err.txt "not spoken: 2 code blocks, 1 image, 3 footnotes"
	chapters out/joined.m4b >m4b.txt
	chapters out/joined.mp3 >mp3.txt
	is "$(cut -d' ' -f2- m4b.txt)" "$(grep -h -A1 '^title=' out/chapters.txt | sed -n 's/^title=//p')" "titles in the m4b"
	is "$(wc -l <m4b.txt)" 4 "chapters"
	is "$(cat mp3.txt)" "$(cat m4b.txt)" "chapters of the mp3"
	# each begins where its heading is seen
	local title seen
	while read -r _ title; do
		seen=$(grep -B2 -xF "$title" out/joined.srt | sed -n 's/ --> .*//p')
		is "$(grep -F " $title" m4b.txt | cut -d' ' -f1)" "$(echo "$seen" | awk -F'[:,]' '{ print int(($1 * 3600 + $2 * 60 + $3 + $4 / 1000) * 10) }')" "where \"$title\" begins"
	done <m4b.txt
	is "$(awk 'length > 42 && !/-->/' out/joined.srt)" "" "lines of more than 42 characters"
}
t_chapter_files_in_their_natural_order() { # 2 before 10, whatever the case, the leading zeros and the umlauts
	mkdir parts
	local name
	for name in "Chapter 10" "chapter 2" "Chapter 01" "Zugabe" "Übung 9" "Uebung 1" "Chapter"; do
		echo "This is one." >"parts/$name.txt"
	done
	JOB='join = { gap = 0.1; };' INPUT=parts
	config
	burst run
	is "$STATUS" 0 "run ($(tail -n 1 err.txt))"
	is "$(sed -n 's/^title=//p' out/chapters.txt)" "$(printf '%s\n' Chapter "Chapter 01" "chapter 2" "Chapter 10" "Übung 9" "Uebung 1" Zugabe)" "chapters"
	is "$(jq -r .id out/manifest.jsonl | head -n 4 | tr '\n' ,)" "Chapter,Chapter 01,chapter 2,Chapter 10," "manifest"
}
# What the end of the job will lack is known before anything is rented: a plan and a run say so.
t_what_the_end_will_lack_is_told_first() {
	local command
	mkdir bin
	ln -s /usr/bin/* /bin/* bin/ 2>/dev/null
	rm -f bin/ff*
	echo "One line." >script.md
	JOB='join = { loudness = -18; formats = ["m4b", "flac"]; };' INPUT=script.md
	config
	PATH=$PWD/bin burst plan
	has err.txt 'ffmpeg is not installed on this machine: joined.m4b, joined.flac will not be made, and the loudness of the track stays as it is; install it before the run ends'
	has err.txt 'joined.m4b will have no chapters: the script has no headings'
	sed -i 's/loudness = -18; //; s/"m4b", //' burst.cfg
	command -v ffmpeg >/dev/null && { burst plan; hasnt err.txt warning; }
	# two voices that piper does not speak in one job
	ENGINE=piper JOB='' INPUT=script.jsonl
	printf '%s\n' '{"id": "a", "text": "One.", "voice": "en_US-danny-low"}' '{"id": "b", "text": "Two.", "voice": "en_US-joe-medium"}' >script.jsonl
	config
	sed -i 's/voice = "en"; //' burst.cfg
	burst plan
	has err.txt 'voice en_US-danny-low has 16000 samples a second and en_US-joe-medium has 22050: piper refuses to speak both in one job; make a job of each'
	sed -i 's/-low/-medium/' script.jsonl
	burst plan
	hasnt err.txt 'samples a second'
	ENGINE=espeak JOB='join = { formats = ["flac"]; };' INPUT=script.md
	config
	# some 28 hours, mostly pauses
	for _ in $(seq 1650); do printf 'One line.\n\n[pause 60s]\n\n'; done >script.md
	for command in plan 'run -n'; do
		# shellcheck disable=SC2086
		burst $command
		is "$STATUS" 0 "$command"
		has err.txt 'joined.wav will have about 4.4'
		has err.txt ' GB: above 4.29 GB it is written as RF64'
	done
}
t_a_chapter_for_each_file() {
	command -v ffprobe >/dev/null || { skip "ffprobe is not installed"; return; }
	mkdir parts
	echo "It began on a Monday." >"parts/1 - The beginning.txt"
	echo "It ended on a Tuesday." >"parts/2 - The end.txt"
	JOB='join = { formats = ["m4b"]; };' INPUT=parts
	config
	burst run
	is "$STATUS" 0 "run ($(tail -n 1 err.txt))"
	is "$(chapters out/joined.m4b | cut -d' ' -f2-)" "$(printf '1 - The beginning\n2 - The end')" chapters
}

t_what_is_no_speech_is_left_out_and_told() {
	cat >post.md <<-'E'
		import Tabs from '@theme/Tabs';

		# Post

		> [!NOTE]
		> Mind the gap here.

		{{< youtube abc123 >}}

		The energy is $E = mc^2$ and costs $5 or $6 in all, ==really== :smile:.

		1. Admit the problem
		2. Ask for help from [[Wiki Link|a friend]]
	E
	JOB='list_numbers = true; min_chars = 0;' INPUT=post.md
	config
	burst plan
	has out.txt 'not spoken: 1 formula, 1 shortcode, 1 block mark, 1 import, 1 emoji code'
	burst run
	is "$STATUS" 0 "run ($(tail -n 2 err.txt))"
	has err.txt 'not spoken: 1 formula, 1 shortcode, 1 block mark, 1 import, 1 emoji code'
	is "$(jq -r .text out/manifest.jsonl)" "Post
Mind the gap here.
The energy is and costs \$5 or \$6 in all, really .
1. Admit the problem
2. Ask for help from a friend" "texts"
}

run_tests "$@"
