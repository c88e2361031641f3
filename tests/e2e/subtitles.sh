#!/bin/bash
# subtitles.sh - subtitles hold against what espeak-ng itself says of its words (subtitles.py), for the texts of tests/texts.
. "$(dirname "$0")/lib.sh"

speak() { # speak TEXT VOICE: tests/texts/TEXT.txt into ./out
	command -v espeak-ng >/dev/null || { skip "no espeak-ng"; return 1; }
	cp "$ROOT/tests/texts/$1.txt" text.txt
	INPUT=text.txt JOB="voice = \"$2\"; join = { subtitles = true; };" config
	sed -i 's/voice = "en"; output/output/' burst.cfg
	burst run
	is "$STATUS" 0 "exit status of $1 ($(tail -n 2 err.txt))"
}
holds() { # holds VOICE: every cue is right; the line of subtitles.py, in $SAID
	SAID=$(timeout 60 python3 "$ROOT/tests/e2e/subtitles.py" out "$1" 2>&1 | tail -n 1)
}

texts_of() { # texts_of LANGUAGE VOICE: no cue starts more than 0.15 s from its first word, ends within a phrase, or overlaps
	local text cues
	for text in "$ROOT/tests/texts/$1"-*.txt; do
		text=$(basename "$text" .txt)
		speak "$text" "$2" || return
		holds "$2"
		read -r _ cues _ <<<"$SAID"
		[[ $SAID =~ ^"cues $cues late 0 worst 0.0"[0-9]" median 0.00 inside 0 overlap 0"$ ]] || complain "$text: $SAID"
		rm -rf out
	done
}
t_english() { texts_of en en; }
t_german() { texts_of de de; }
t_french() { texts_of fr fr; }
t_spanish() { texts_of es es; }
t_italian() { texts_of it it; }
t_chinese() { texts_of zh cmn; }
t_japanese() { texts_of ja ja; }
t_thai() { texts_of th th; }

t_without_marked_words() { # as files of other workers are: the pauses decide; 95 cues of 100 are right
	local text cues late worst all=0 bad=0
	for text in en-1 en-2 de-1 de-2 fr-1 fr-2 es-2 it-1; do
		speak "$text" "${text%-*}" || return
		# each file anew, without what stands behind its samples; the join of the next run reads them
		python3 - out/*.wav <<-'P'
			import sys, wave
			for name in sys.argv[1:]:
			    with wave.open(name) as f:
			        how, data = f.getparams(), f.readframes(f.getnframes())
			    with wave.open(name, "wb") as f:
			        f.setparams(how)
			        f.writeframes(data)
		P
		bare_manifest
		rm -f out/joined.*
		burst run
		is "$STATUS" 0 "exit status of the second run of $text ($(tail -n 2 err.txt))"
		has err.txt "nothing rented"
		holds "${text%-*}"
		read -r _ cues _ late _ worst _ _ _ <<<"$SAID"
		[[ $SAID == *" inside 0 overlap 0" ]] || complain "$text: $SAID"
		awk -v w="$worst" 'BEGIN { exit !(w <= 0.4) }' || complain "$text: $SAID"
		all=$((all + cues)) bad=$((bad + late))
		rm -rf out
	done
	[ $((bad * 20)) -le "$all" ] || complain "$bad of $all cues are off"
}
bare_manifest() { # the manifest says of each file what it is now
	local file
	for file in out/*.wav; do
		case $file in out/joined*) continue ;; esac
		jq -c --arg f "$(basename "$file")" --arg s "$(sha256sum <"$file" | cut -d' ' -f1)" --argjson b "$(wc -c <"$file")" \
			'if .file == $f then .sha256 = $s | .bytes = $b else . end' out/manifest.jsonl >m && mv m out/manifest.jsonl
	done
}

t_cues_are_spoken_in_their_time() {
	cat >film.srt <<-'S'
		1
		00:00:01,000 --> 00:00:03,000
		Hello there, my friend.

		2
		00:00:04,000 --> 00:00:05,600
		It was a bright cold day in April.

		3
		00:00:06,500 --> 00:00:07,500
		And the clocks were striking thirteen, which nobody had expected at all in that year.

		4
		00:00:08,000 --> 00:00:09,000
		Yes.

		5
		00:00:20,000 --> 00:00:22,000
		The end.
	S
	INPUT=film.srt JOB='fit = true; join = { words = true; };' config
	burst plan
	is "$STATUS" 0 "plan ($(tail -n 2 err.txt))"
	has err.txt '1 cue may end after its time, by an estimate: 003 by'
	burst run
	is "$STATUS" 0 "run ($(tail -n 2 err.txt))"
	has err.txt '2 of 5 cues end after their time: 003.wav by'
	# the first word of each cue, to a tenth of a second; the fourth is late, and nothing is cut
	is "$(jq -r '[group_by(.segment)[] | .[0].start * 10 | round / 10] | del(.[3]) | join(" ")' out/joined.words.json)" \
		"1 4 6.5 20" "when cues begin"
	is "$(jq '[group_by(.segment)[] | [.[0].start, .[-1].end]] | .[3][0] > .[2][1] - 0.05 and .[3][0] < .[2][1] + 0.5' out/joined.words.json)" true \
		"the fourth cue follows the third at once"
	is "$(ffprobe -v error -show_entries format=duration -of csv=p=0 out/joined.wav | cut -c1-2)" 20 "seconds of the track"
	INPUT=text.txt JOB='fit = true;' config
	echo "Hello." >text.txt
	burst run
	is "$STATUS" 2 "run of a text"
	has err.txt 'fit: the input has no times to fit: only .srt and .vtt have them'
	INPUT=film.srt JOB='fit = true;' config
	burst listen "Any words." -o any.wav
	is "$STATUS" 0 "listen ($(tail -n 2 err.txt))"
}

run_tests "$@"
