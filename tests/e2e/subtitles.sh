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

t_without_marked_words() { # as files of other workers are: the pauses decide; nine cues of ten are right
	local text cues late worst all=0 bad=0
	for text in en-1 de-2 fr-2 es-2; do
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
		awk -v w="$worst" 'BEGIN { exit !(w <= 1) }' || complain "$text: $SAID"
		all=$((all + cues)) bad=$((bad + late))
		rm -rf out
	done
	[ $((bad * 10)) -le "$all" ] || complain "$bad of $all cues are off"
}
bare_manifest() { # the manifest says of each file what it is now
	local file
	for file in out/*.wav; do
		case $file in out/joined*) continue ;; esac
		jq -c --arg f "$(basename "$file")" --arg s "$(sha256sum <"$file" | cut -d' ' -f1)" --argjson b "$(wc -c <"$file")" \
			'if .file == $f then .sha256 = $s | .bytes = $b else . end' out/manifest.jsonl >m && mv m out/manifest.jsonl
	done
}

run_tests "$@"
