#!/bin/bash
# epub.sh - a book becomes an audiobook with chapters, names and a cover.
. "$(dirname "$0")/lib.sh"

tag() { # tag FILE NAME: of the file, or for Ogg of its sound
	ffprobe -v error -show_entries "format_tags=$2:stream_tags=$2" -of default=nw=1:nk=1 "out/joined.$1" | head -n 1
}
cover_of() { # cover_of FILE: its type
	ffprobe -v error -select_streams v -show_entries stream=codec_name -of default=nw=1:nk=1 "out/joined.$1"
}

t_a_book_with_names_and_cover() {
	local kind
	command -v ffprobe >/dev/null || { skip "ffprobe is not installed"; return; }
	python3 "$ROOT/tests/e2e/epub.py" book.epub
	JOB='join = { formats = ["m4b", "mp3", "opus", "flac"]; }; book = { narrator = "Joe; #1"; };' INPUT=book.epub
	config
	burst run
	is "$STATUS" 0 "run ($(tail -n 1 err.txt))"
	has err.txt "not spoken: 1 footnote, 1 list of links, 1 page number"
	is "$(jq -r '"\(.chapter): \(.text)"' out/manifest.jsonl | tr '\n' '|')" \
		"First things: First things|First things: It began at cafés.|Last things: Last things|Last things: It ended soon.|" "what is spoken"
	for kind in m4b mp3 opus flac; do
		is "$(tag $kind title)" "The Small Book" "title of the $kind"
		is "$(tag $kind album)" "The Small Book" "album of the $kind"
		is "$(tag $kind artist)" "Anna Author" "author of the $kind"
		is "$(tag $kind composer)" "Joe; #1" "narrator of the $kind"
		is "$(tag $kind date)" 2019 "year of the $kind"
		is "$(tag $kind language)" eng "language of the $kind"
		is "$(cover_of $kind)" png "cover of the $kind"
	done
	is "$(ffprobe -v error -show_chapters -of json out/joined.m4b | jq -r '[.chapters[].tags.title] | join("|")')" "First things|Last things" "chapters"
}

reads_along() { # makes out/joined.epub of a small book
	printf -- '---\ntitle: "A: <Small> Book & more"\nauthor: Ann Author\nlang: en-GB\ndate: 2024\ncover: cover.png\n---\n\nBefore the first chapter.\n\n# The Storm\n\nIt was a dark & stormy night.\n\nThe rain fell in torrents.\n\n* * *\n\nAfter the scene.\n\n# The End?\n\nAll is well.\n' >book.md
	python3 "$ROOT/tests/e2e/epub.py" other.epub && python3 -m zipfile -e other.epub other && mv other/OEBPS/cover.png .
	JOB='join = { formats = ["epub"]; }; book = { narrator = "Joe"; };' INPUT=book.md
	config
	burst run
	is "$STATUS" 0 "run ($(tail -n 1 err.txt))"
}
unzip_text() { python3 -c 'import sys, zipfile; print(zipfile.ZipFile(sys.argv[1]).read(sys.argv[2]).decode())' "$1" "$2"; }
t_a_book_that_is_read_along() {
	command -v ffmpeg >/dev/null || { skip "ffmpeg is not installed"; return; }
	reads_along
	has err.txt "joined.epub: its text is marked while it is heard"
	is "$(python3 -c 'import zipfile; z = zipfile.ZipFile("out/joined.epub"); i = z.infolist()[0]; print(i.filename, i.compress_type, len(i.extra), z.testzip())')" "mimetype 0 0 None" "the first member"
	cp out/joined.epub back.epub # our own reader finds the same book in it
	mv out first
	JOB='join = { formats = ["m4b"]; };' INPUT=back.epub
	config
	burst run
	is "$STATUS" 0 "run of the book itself ($(tail -n 1 err.txt))"
	is "$(jq -r '"\(.chapter // "-"): \(.text)"' out/manifest.jsonl | tr '\n' '|')" "A: <Small> Book & more: Before the first chapter.|The Storm: The Storm|The Storm: It was a dark & stormy night.|The Storm: The rain fell in torrents.|The Storm: After the scene.|The End?: The End?|The End?: All is well.|" "what it says"
	is "$(tag m4b title)|$(tag m4b artist)|$(tag m4b date)|$(tag m4b language)|$(cover_of m4b)" "A: <Small> Book & more|Ann Author|2024|eng|png" "its names and cover"
	awk -v a="$(ffprobe -v error -show_entries format=duration -of csv=p=0 first/joined.wav)" -v b="$(unzip_text back.epub EPUB/package.opf | sed -n 's/.*"media:duration">\([0-9.]*\)s.*/\1/p')" \
		'BEGIN { exit !(a - b < 0.01 && b - a < 0.01) }' || complain "the track has another length than the book"
}
t_epubcheck_finds_nothing() {
	local jar=/usr/share/java/epubcheck.jar # Debian's command is the jar itself, which not every system starts
	command -v ffmpeg >/dev/null || { skip "ffmpeg is not installed"; return; }
	{ [ -e "$jar" ] && command -v java >/dev/null; } || { skip "epubcheck is not installed"; return; }
	reads_along
	java -jar "$jar" --failonwarnings out/joined.epub >check.txt 2>&1 || complain "epubcheck: $(grep -E 'ERROR|WARNING|FATAL' check.txt | head -n 3 | tr '\n' '|')"
	has check.txt "No errors or warnings detected."
}

t_front_matter_and_config() {
	command -v ffprobe >/dev/null || { skip "ffprobe is not installed"; return; }
	ffmpeg -v error -f lavfi -i color=red:s=40x60 -frames:v 1 pic.jpg
	printf -- '---\ntitle: "My Title"\nauthor: [Ann, "Ben B."]\ndate: 1897-05-26\nlang: de-AT\ncover: pic.jpg\n---\n\n# Part 1\n\nThis is the text.\n' >book.md
	JOB='join = { formats = ["m4b"]; };' INPUT=book.md
	config
	burst run
	is "$STATUS" 0 "run ($(tail -n 1 err.txt))"
	is "$(tag m4b title)|$(tag m4b artist)|$(tag m4b date)|$(tag m4b language)" "My Title|Ann, Ben B.|1897|deu" "names of the front matter"
	is "$(cover_of m4b | tail -n 1)" mjpeg "cover of the front matter"
	JOB='join = { formats = ["m4b"]; }; book = { title = "Other"; year = 2001; cover = "two.txt"; };'
	config
	echo "no picture" >two.txt
	burst run
	is "$STATUS" 2 "a cover that is none"
	has err.txt "two.txt is neither a JPEG nor a PNG file"
	sed -i 's/two.txt/pic.jpg/' burst.cfg
	burst run
	is "$(tag m4b title)|$(tag m4b artist)|$(tag m4b date)" "Other|Ann, Ben B.|2001" "names of the config"
	sed -i 's/^cover: .*/cover: ..\/pic.jpg/' book.md
	sed -i 's/cover = "pic.jpg";//' burst.cfg
	burst run
	is "$STATUS" 0 "a cover outside ($(tail -n 1 err.txt))"
	has err.txt "it must lie in the folder of the script"
	printf '# Part 1\n\nThis is the text.\n' >book.md
	JOB='join = { formats = ["m4b"]; };' INPUT=book.md
	config
	burst run
	is "$(tag m4b title)" e2e "without a title, the job's name"
}

t_books_that_cannot_be_read() {
	local err
	python3 - <<-'E2'
		import zipfile
		def book(path, files):
		    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as z:
		        for name, data in files.items(): z.writestr(name, data)
		container = "<container><rootfiles><rootfile full-path='b.opf'/></rootfiles></container>"
		book("drm.epub", {"mimetype": "application/epub+zip", "META-INF/container.xml": container, "META-INF/encryption.xml":
		    "<encryption><EncryptedData><EncryptionMethod Algorithm='http://www.w3.org/2001/04/xmlenc#aes256-cbc'/></EncryptedData></encryption>"})
		book("bomb.epub", {"mimetype": "application/epub+zip", "META-INF/container.xml": container, "b.opf": " " * (1 << 26)})
		open("cut.epub", "wb").write(open("drm.epub", "rb").read()[:-30])
	E2
	while IFS='|' read -r file err; do
		burst run "$file"
		is "$STATUS" 2 "$file"
		has err.txt "$file: $err"
		is "$(grep -c '^burst:' err.txt)" 1 "$file: lines of error"
	done <<-'E2'
		drm.epub|this book is encrypted (DRM) and cannot be read: get it without copy protection
		bomb.epub|b.opf is unpacked larger than 
		cut.epub|the zip file is damaged
	E2
}

t_a_large_book_is_planned_in_little_memory() {
	[ -x /usr/bin/time ] || { skip "time is not installed"; return; }
	python3 "$ROOT/tests/e2e/epub.py" book.epub 50000
	INPUT=book.epub
	config
	/usr/bin/time -f '%M' -o memory.txt "$BURST" plan >out.txt 2>err.txt </dev/null || complain "plan: $(tail -n 1 err.txt)"
	has out.txt "50004 segments"
	[ "$(tail -n 1 memory.txt)" -lt 150000 ] || complain "it took $(tail -n 1 memory.txt) KiB"
}

run_tests "$@"
