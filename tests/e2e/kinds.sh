#!/bin/bash
# kinds.sh - an argument or an input that is something else than burst takes it for: one line says what it is and what to do.
. "$(dirname "$0")/lib.sh"

one_line() { # one_line WORDS... : exit 2, one line with all of them, none about a config's syntax
	is "$STATUS" 2 "$1: exit status ($(tail -n 1 err.txt))"
	local word
	for word; do has err.txt "$word"; done
	is "$(wc -l <err.txt)" 1 "$1: lines of error"
	hasnt err.txt "syntax error"
	hasnt err.txt "no job"
}
files() { # one of each kind
	python3 - <<-'E2'
		import gzip, zipfile, io
		def put(name, data): open(name, "wb").write(data if isinstance(data, bytes) else data.encode())
		with zipfile.ZipFile("book.epub", "w") as z:
		    z.writestr("mimetype", "application/epub+zip"); z.writestr("a.xhtml", "<p>a</p>")
		with zipfile.ZipFile("named.bin", "w") as z:
		    z.writestr("mimetype", "application/epub+zip"); z.writestr("a.xhtml", "<p>a</p>")
		for name in ("a.docx", "a.xlsx", "a.zip", "a.odt"):
		    with zipfile.ZipFile(name, "w") as z: z.writestr("x.xml", "<x/>")
		put("a.pdf", b"%PDF-1.4\n\xe2\xe3\xcf\xd3\n")
		put("page.html", "<p>Hello there</p>\n")
		put("page.htm", "<!DOCTYPE html>\n<html></html>\n")
		put("s.srt", "1\n00:00:01,000 --> 00:00:03,000\nHello there.\n")
		put("s.vtt", "WEBVTT\n\n00:01.000 --> 00:02.000\nHello\n")
		put("script.json", '[{"id":"a","text":"hi there"}]')
		put("noext", "Hello there my friend\n")
		put("note.log", "Hello there my friend\n")
		for name in ("a.azw3", "a.mobi"): put(name, bytes(60) + b"BOOKMOBI" + bytes(40))
		put("note", "Note: Hello there\n")
		put("a.gz", gzip.compress(b"x"))
		put("a.wav", b"RIFF\x24\0\0\0WAVEfmt ")
		put("a.mp3", b"ID3\3\0\0\0")
		put("a.m4b", b"\0\0\0\x20ftypM4B \0\0\0\0")
		put("a.png", b"\x89PNG\r\n\x1a\n")
		put("a.mp4", b"\0\0\0\x20ftypisom")
		put("prog", b"\x7fELF\2\1\1")
		put("odd", bytes(range(200)))
		put("a.rtf", "{\\rtf1 hello}")
		put("my book.pdf", b"%PDF-1.4\n")
		put("empty.epub", b"")
	E2
}

t_arguments() {
	files
	local file words
	while IFS='|' read -r file words; do
		for command in run plan; do
			burst "$command" "$file"
			one_line "$file is $words" "not a burst.cfg"
		done
		burst submit "$file" # with its whole path
		one_line "/$file is ${words%%:*}" "not a burst.cfg"
	done <<-'E2'
		a.pdf|a PDF, not a burst.cfg: `pdftotext a.pdf a.txt` makes a text of it
		my book.pdf|a PDF, not a burst.cfg: `pdftotext 'my book.pdf' 'my book.txt'` makes a text of it
		script.json|JSON, not a burst.cfg: write an object on each line of a .jsonl file
		note.log|plain text, not a burst.cfg: to be spoken it needs a name that ends in .txt
		a.azw3|a Kindle book, not a burst.cfg: `ebook-convert a.azw3 a.epub` makes an EPUB of it
		a.mobi|a Kindle book, not a burst.cfg: `ebook-convert a.mobi a.epub` makes an EPUB of it
		a.docx|a document of a word processor, not a burst.cfg: `pandoc -t gfm -o a.md a.docx` makes a text of it
		a.odt|a document of a word processor
		a.rtf|a document of a word processor
		a.xlsx|a spreadsheet
		a.zip|an archive
		a.gz|an archive
		a.wav|sound
		a.mp3|sound
		a.m4b|sound
		a.png|a picture
		a.mp4|a video
		prog|a program
		odd|not text
	E2
	mkfifo pipe
	for file in pipe /dev/null; do
		burst run "$file"
		one_line "a text is read from a file, or from standard input: \`burst run - <text.txt\`"
	done
	mkdir empty
	burst run empty
	one_line "empty has no burst.cfg: \`burst init empty\` writes one; or name a text in it"
	# a config is one, whatever its name
	config 'pods = 1;' && script_lines 1
	{ echo '# a comment'; echo '/* another */'; cat burst.cfg; } >job.settings
	burst run job.settings
	is "$STATUS" 0 "a config of another name ($(tail -n 1 err.txt))"
	echo 'job = {' >broken.cfg
	burst run broken.cfg
	is "$STATUS" 2 "a broken config"
	has err.txt "broken.cfg:"
	has err.txt "syntax error"
}

t_texts_are_told_by_their_content() {
	files
	mkdir -p texts/.hidden && echo "Two of ten." >texts/2.txt && printf '# Ten\n\nThe last.\n' >texts/10.md
	echo '{"id":"a","text":"Hello there."}' >lines
	local file want
	while read -r file want; do
		burst run --dry-run "$file"
		is "$STATUS" 0 "$file: exit status ($(tail -n 1 err.txt))"
		has out.txt "$want segment"
		has err.txt "input = \"${file%/}\";"
	done <<-'E2'
		noext 1
		note 1
		page.html 1
		s.srt 1
		s.vtt 1
		lines 1
		texts 3
		texts/ 3
	E2
	burst run lines
	is "$(ls lines-audio/*.wav)" lines-audio/a.wav "files of JSON lines without an ending"
	(cd texts && exec "$BURST" run -q .) >out.txt 2>err.txt </dev/null
	is "$?" 0 "the folder itself ($(tail -n 1 err.txt))"
	is "$(jq -r .chapter texts-audio/manifest.jsonl | tr '\n' ' ')" "2 Ten Ten " "chapters in the order of the names"
}

t_standard_input() {
	local file
	for file in - /dev/stdin; do
		echo "Hello there." | "$BURST" run -q "$file" >out.txt 2>err.txt
		is "$?" 0 "$file: exit status ($(tail -n 1 err.txt))"
	done
	is "$(ls stdin-*.txt)" stdin-480f193e.txt "the kept text"
	[ -s stdin-audio/joined.wav ] || complain "no joined track"
	printf '1\n00:00:01,000 --> 00:00:02,000\nHello there.\n' | "$BURST" run -d -q - >out.txt 2>err.txt
	is "$?" 0 "in the background ($(tail -n 1 err.txt))"
	burst attach
	is "$(ls stdin-*.srt | wc -l)" 1 "the kept subtitles"
	burst run -q - </dev/null
	is "$STATUS" 2 "nothing"
	has err.txt "stdin is empty"
}

t_inputs() {
	files
	local file words
	while IFS='|' read -r file words; do
		INPUT=$file config 'pods = 1;'
		burst run
		one_line "$file is $words"
	done <<-'E2'
		a.pdf|a PDF: `pdftotext a.pdf a.txt` makes a text of it
		script.json|JSON
		note.log|plain text: to be spoken it needs a name that ends in .txt
		a.xlsx|a spreadsheet
		a.wav|sound
		empty.epub|empty
	E2
	for file in book.epub named.bin; do
		INPUT=$file config 'pods = 1;'
		burst run
		one_line "$file: it has no META-INF/container.xml, so it is no EPUB book"
	done
	cp a.pdf pdf.md && cp a.xlsx table.csv
	for file in pdf.md table.csv; do
		INPUT=$file config 'pods = 1;'
		burst run
		one_line "$file is a"
		burst run "$file"
		is "$STATUS" 2 "$file: exit status"
		has <(tail -n 1 err.txt) "$file is a"
	done
	# text that begins like something else is text where its name says so
	for words in 'THE NEW WAVE' 'ID3 tags' '<p>in angle brackets' 'BZh' '[a remark]' '%1'; do
		echo "$words" >said.txt
		INPUT=said.txt config 'pods = 1;'
		burst run --dry-run
		is "$STATUS" 0 "$words ($(tail -n 1 err.txt))"
	done
}

t_unknown_words() {
	echo hello >hello.md
	local words want
	while IFS='|' read -r words want; do
		# shellcheck disable=SC2086
		burst $words
		is "$STATUS" 2 "$words: exit status"
		has err.txt "$want"
	done <<-'E2'
		hello.md|it is a file: `burst run hello.md` renders it
		login|RUNPOD_API_KEY
		delete|`burst cancel [RUN]` releases a run's pods
		rm|`burst volume rm` removes a volume
		help piper|it is an engine: `burst engines` describes it
		piper|engine = "piper" in burst.cfg chooses it
	E2
}

run_tests "$@"
