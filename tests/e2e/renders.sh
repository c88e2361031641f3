#!/bin/bash
# renders.sh - outputs by what they are: edited scripts, the render cache, folders of the version before, deaths in the middle.
. "$(dirname "$0")/lib.sh"

lines() { # lines WORD...: a script of one line each
	printf '%s.\n' "$@" >script.txt
}
txt_config() {
	JOB="$* " config 'pods = 1;'
	sed -i 's/script\.jsonl/script.txt/' burst.cfg
}
twenty() {
	txt_config 'min_chars = 0;'
	seq -f 'Line number %g of the script' 1 20 | sed 's/$/./' >script.txt
	with_cache
}
other_project() { # with a volume of its own
	mkdir other
	cp script.txt other
	sed 's/name = "v"/name = "w"/; s/name = "e2e"/name = "other"/' burst.cfg >other/burst.cfg
}
with_cache() { export BURST_CACHE_DIR=$T/cache; }
without_cache() { export BURST_CACHE_DIR=; }
rendered() { # rendered N REUSED WHAT: the next run does just that; and the plan before it says so
	burst plan --json
	is "$STATUS $(json '[.to_render, .changes.reused] | @tsv')" "0 $1	$2" "plan of $3"
	schema plan
	burst run --json
	is "$STATUS" 0 "exit status of $3 ($(tail -n 1 err.txt))"
	is "$(json '[.segments.rendered, .segments.cached] | @tsv')" "$1	$2" "$3"
	as_the_script_says
}
# Each file is the manifest's, and each text its own: two texts have two hashes in these tests, and a text always the same.
as_the_script_says() {
	jq -r 'select(.former | not) | .text' out/manifest.jsonl | diff -q - script.txt >/dev/null || complain "the manifest is not the script's: $(head -n 3 out/manifest.jsonl)"
	jq -r '.sha256 + "  out/" + .file' out/manifest.jsonl | sha256sum -c --quiet >/dev/null 2>&1 || complain "a file differs from the manifest"
	jq -r '[.text, .sha256] | @tsv' out/manifest.jsonl | sort -u >>heard
	is "$(sort -u heard | cut -f1 | uniq -d)" "" "a text with two sounds"
	is "$(find out -name '.burst*')" "" "what is left of moving"
}

edits() { # the counts of the issue, with whatever cache there is
	burst run
	is "$STATUS" 0 "the first run"
	sed -i '1i One line on top of it.' script.txt
	rendered 1 20 "one line on top of 20"
	sed -i 7d script.txt
	rendered 0 20 "one line deleted"
	has err.txt "1 old output without a segment: 021.wav (see \`burst run --prune\`)"
	tac script.txt >reversed && mv reversed script.txt
	rendered 0 20 "all in reverse order"
	shuf --random-source=<(yes) script.txt >mixed && mv mixed script.txt
	rendered 0 20 "in any order"
	sed -i '5s/.*/Quite another text./' script.txt
	burst plan
	has out.txt "+0 ~1 -0 =19 (new, changed, gone, reused)"
	rendered 1 19 "one text changed"
	sed -i 's/name = "e2e"/name = "another"/' burst.cfg
	rendered 0 20 "another name of the job"
	cd .. && mv "$T" "$T-moved" && mkdir "$T" && mv "$T-moved"/* "$T-moved"/.[!.]* "$T" 2>/dev/null
	cd "$T" || return
	rendered 0 20 "the same in another folder"
	burst run --prune
	is "$STATUS $(ls out | wc -l)" "0 21" "after --prune: 20 files and the manifest"
	has err.txt "removed 1 old output without a segment: 021.wav"
}
t_edits_render_what_is_new() { twenty; edits; }
t_edits_without_the_cache() { twenty; without_cache; edits; }

t_ids_of_ones_own() {
	with_cache
	script_lines 6
	config 'pods = 1;'
	burst run
	sed -i 's/"s003"/"new-name"/; s/line number 5/line number five/' script.jsonl
	sed -i 1d script.jsonl
	burst plan
	has out.txt "5 segments, 1 to render"
	has out.txt "+0 ~1 -1 =4 (new, changed, gone, reused)"
	has out.txt "2 old outputs without a segment: \`burst run --prune\` removes them"
	cp out/s003.wav before.wav
	burst run --json
	is "$STATUS $(json '[.segments.rendered, .segments.cached] | @tsv')" "0 1	4" "rendered, cached"
	cmp -s before.wav out/new-name.wav || complain "new-name.wav is another file"
	echo mine >out/mine.txt
	echo mine >out/s999.wav
	sed -i 's/"s002"/"again"/' script.jsonl
	echo edited >>out/s001.wav # no segment's, and no longer ours
	burst run --prune
	is "$STATUS" 0 "exit status"
	is "$(cd out && echo *)" "again.wav manifest.jsonl mine.txt new-name.wav s001.wav s004.wav s005.wav s006.wav s999.wav" "files"
}

t_lines_that_are_there_twice() {
	txt_config 'min_chars = 0;'
	with_cache
	lines Yes No Yes Maybe
	burst run
	lines Maybe Yes Yes No Yes
	rendered 1 4 "one Yes more"
	lines Yes Yes Yes
	rendered 0 3 "three of them"
}

t_moved_files_are_delivered() { # the volume has them under the names that they were rendered with
	script_lines 4
	config 'pods = 1; deliver = { run = "(cd \"$BURST_OUTPUTS\" && cat *.wav | sha256sum) >sum"; outputs = ["sum"]; };'
	burst run
	is "$STATUS $(cat out/sum)" "0 $(cat out/*.wav | sha256sum)" "the first delivery"
	jq -c '.id = "n" + .id' script.jsonl | tac >other && mv other script.jsonl
	sed -i 's/"ns004"/"s001"/; s/"ns001"/"s004"/' script.jsonl
	burst run --json
	is "$STATUS $(json '[.segments.rendered, .deliver.status] | @tsv')" "0 0	done" "the second ($(tail -n 1 err.txt))"
	is "$(cat out/sum)" "$(cat out/ns002.wav out/ns003.wav out/s001.wav out/s004.wav | sha256sum)" "what it found"
	is "$(jq -r 'select(.file == "s004.wav").rendered_as' out/manifest.jsonl)" s001.wav "its name on the volume"
	is "$(jq -r 'select(.former | not).file' out/manifest.jsonl | grep -c wav)" 4 "files of the manifest"
}

# ---- the cache ----
t_projects_share_the_cache() {
	twenty
	burst run
	is "$STATUS $(find cache -type f | wc -l) $(stat -c %a cache/renders)" "0 20 700" "status, files of the cache, mode"
	is "$(find cache -type f ! -perm 600 | wc -l)" 0 "files that others may read"
	burst cache ls --json
	is "$STATUS $(json '[.files, .limit_bytes] | @tsv')" "0 20	2000000000" "burst cache ls"
	burst doctor
	has out.txt "render cache in $T/cache/renders: "
	other_project
	cd other || return
	burst plan
	has out.txt "+0 ~0 -0 =20 (new, changed, gone, reused); 20 from the render cache"
	rendered 0 20 "another project with the same text"
	is "$(jq -r .provider out/manifest.jsonl | sort -u)" cache "provider of the manifest"
	for f in out/*.wav; do is "$(stat -c %h "$f")" 1 "links of $f"; done
	rm out/003.wav
	rendered 0 20 "a file that was removed"
	rm out/003.wav
	burst run --anew --json
	is "$STATUS $(json '[.segments.rendered, .segments.cached] | @tsv')" "0 20	0" "--anew"
	sed -i 's/voice = "en"/voice = "de"/' burst.cfg
	burst plan
	has out.txt "20 segments, 20 to render"
	burst cache clear
	is "$STATUS $(find "$T/cache" -type f | wc -l)" "0 0" "after burst cache clear"
	has err.txt "render cache: removed 20 files"
	cd ..
}

t_workers_of_ones_own_share_nothing() {
	with_cache
	script_lines 2
	ENGINE=mine JOB="worker = \"python3 \$BURST_CODE/w.py\"; check = { enabled = false; };" config 'code = { path = "."; };'
	cp "$ROOT/tests/workers/fast.py" w.py
	burst run
	is "$STATUS $(wavs)" "0 2" "status, files ($(tail -n 1 err.txt))"
	[ ! -e cache ] || complain "its renders are in the cache"
}

t_damaged_entries_are_rendered_again() {
	twenty
	burst run
	local one
	one=$(find cache -type f | head -n 1)
	printf x | dd of="$one" bs=1 seek=300 conv=notrunc status=none
	rm -r out
	burst run --json
	is "$STATUS $(json '[.segments.rendered, .segments.cached] | @tsv')" "0 1	19" "rendered, cached"
	is "$(grep -c "damaged file" err.txt)" 1 "how often it is said"
	has err.txt "1 damaged file removed and not used"
	is "$(find cache -type f | wc -l)" 20 "files of the cache"
}

t_the_cache_is_full() {
	mkdir -p home/.config/burst
	echo 'render_cache_mb = 1;' >home/.config/burst/burst.cfg
	twenty
	burst run
	is "$STATUS" 0 "exit status"
	hasnt err.txt "render cache"
	sed -i 's/Line/Another line/' script.txt
	burst run
	burst cache ls --json
	is "$(json '.bytes <= 1000000 and .files > 2')" true "within its limit ($(json -c .))"
	rm -r out
	burst run
	is "$STATUS $(wavs)" "0 20" "status, files"
	echo 'render_cache_mb = 0;' >home/.config/burst/burst.cfg
	rm -r cache out
	burst run
	is "$STATUS" 0 "without one"
	[ ! -e cache ] || complain "there is a cache"
	echo 'render_cache_mb = 1;' >>burst.cfg
	burst plan
	is "$STATUS" 2 "a project that sets it"
}

t_trouble_with_the_cache_is_no_failure() {
	twenty
	echo file >cache
	burst run
	is "$STATUS $(grep -c 'renders of this run are not kept there' err.txt)" "0 1" "a file in its place: status, notes"
	rm -r out cache
	make -s -C "$ROOT" e2e-tools || { complain "failer.so cannot be built"; return; }
	local error
	for error in ENOSPC EROFS EIO; do
		rm -rf out cache
		mkdir -p cache/renders && chmod 700 cache/renders
		STATUS=0
		timeout -k 5 90 env LD_PRELOAD="$ROOT/build/e2e/failer.so" ASAN_OPTIONS="$ASAN_OPTIONS:verify_asan_link_order=0" \
			FAIL_AT="on 7 $error" FAIL_UNDER="$T/cache" "$BURST" run >out.txt 2>err.txt </dev/null || STATUS=$?
		is "$STATUS $(wavs)" "0 20" "$error: status, files"
		is "$(grep -c 'renders of this run are not kept there' err.txt)" 1 "$error: notes"
		as_the_script_says
	done
}

t_the_disk_is_full_while_files_move() { # copies that cannot be made are rendered; nothing else is lost
	twenty
	burst run
	rm -r out
	make -s -C "$ROOT" e2e-tools || { complain "failer.so cannot be built"; return; }
	timeout -k 5 90 env LD_PRELOAD="$ROOT/build/e2e/failer.so" ASAN_OPTIONS="$ASAN_OPTIONS:verify_asan_link_order=0" \
		FAIL_AT="once 9 ENOSPC" FAIL_UNDER="$T/out" "$BURST" run --json >out.txt 2>err.txt </dev/null
	is "$? $(json '[.segments.rendered, .segments.cached] | @tsv')" "0 1	19" "rendered, cached"
	has err.txt "renders that are there cannot all be copied, so they are rendered again"
	as_the_script_says
}

t_two_runs_at_once() {
	twenty
	other_project
	(cd other && LIMIT=120 burst run && echo "$STATUS" >status) &
	local theirs=$!
	burst run
	is "$STATUS" 0 "one"
	wait "$theirs"
	is "$(cat other/status)" 0 "the other"
	as_the_script_says
	cat heard >other/heard
	(cd other && WHY='' && as_the_script_says && echo "$WHY" >why)
	is "$(cat other/why)" "" "the other's files"
	is "$(find cache -type f | wc -l)" 20 "files of the cache"
	# and both use it at once
	rm -r out other/out
	(cd other && LIMIT=120 burst run --json && json .segments.cached >cached) &
	theirs=$!
	burst run --json
	wait "$theirs"
	is "$(json .segments.cached) $(cat other/cached)" "20 20" "cached of both"
}

# ---- killed in the middle ----
killed() { # killed before|after CALL N: dies there, or is done before
	STATUS=0
	timeout -k 5 90 env LD_PRELOAD="$ROOT/build/e2e/killer.so" ASAN_OPTIONS="$ASAN_OPTIONS:verify_asan_link_order=0" \
		KILL_AT="$1 $2 $3" "$BURST" run --json >out.txt 2>err.txt </dev/null || STATUS=$?
}
all_in_a_line() { # each file has a line with its hash
	local f
	for f in out/*.wav out/.burst-moving-*; do
		[ -e "$f" ] || continue
		jq -e --arg f "${f#out/}" --arg h "$(sha256sum <"$f" | cut -d' ' -f1)" -n 'any(inputs; .file == $f and .sha256 == $h)' out/manifest.jsonl >/dev/null ||
			complain "$f has no line in the manifest"
	done
}
t_killed_while_files_move() { # each edit from the same folder, killed around each rename: the run that follows renders nothing
	make -s -C "$ROOT" e2e-tools || { complain "killer.so cannot be built"; return; }
	txt_config 'min_chars = 0;'
	lines One Two Three Four Five
	burst run
	cp -a out home-folder
	as_the_script_says
	local when n edit died=0
	for edit in "Five Four Three Two One" "Two Three Four Five One" "Two One Four Three"; do
		for when in before after; do
			for n in 1 2 3 4 5 6 7 8; do
				rm -rf out && cp -a home-folder out
				# shellcheck disable=SC2086
				lines $edit
				killed $when rename $n
				[ "$STATUS" != 137 ] || died=$((died + 1))
				all_in_a_line
				burst run --json
				is "$STATUS $(json .segments.rendered)" "0 0" "$edit: after death $when rename $n"
				as_the_script_says
				[ -z "$WHY" ] || return
			done
		done
	done
	[ $died -ge 20 ] || complain "it died only $died times"
}
t_killed_while_the_shift_is_rendered() { # one line on top, killed anywhere: never more than that one line is rendered
	make -s -C "$ROOT" e2e-tools || { complain "killer.so cannot be built"; return; }
	txt_config 'min_chars = 0;'
	lines One Two Three Four Five
	burst run
	cp -a out home-folder
	as_the_script_says
	local n again=0
	for n in 1 2 3 5 6 7; do
		rm -rf out && cp -a home-folder out
		lines Zero One Two Three Four Five
		killed before rename $n
		is "$STATUS" 137 "killed before rename $n"
		all_in_a_line
		burst run --json
		is "$STATUS" 0 "exit status after rename $n ($(tail -n 1 err.txt))"
		again=$(json .segments.rendered)
		[ "$again" -le 1 ] || complain "rename $n: $again rendered"
		as_the_script_says
		[ -z "$WHY" ] || break
	done
	nothing_left
}

t_anew_goes_on_after_a_crash() { # what was there before is not taken for the run's own
	make -s -C "$ROOT" e2e-tools || { complain "killer.so cannot be built"; return; }
	twenty
	burst run
	STATUS=0
	timeout -k 5 90 env LD_PRELOAD="$ROOT/build/e2e/killer.so" ASAN_OPTIONS="$ASAN_OPTIONS:verify_asan_link_order=0" \
		KILL_AT="after rename 9" BURST_CACHE_DIR= "$BURST" run --anew >out.txt 2>err.txt </dev/null || STATUS=$?
	is "$STATUS" 137 "killed"
	local safe
	safe=$(ledger "select count(*) from segment s join run r on s.run = r.id where s.state = 1 and r.status = 'running'")
	burst resume --json
	is "$STATUS $(json '[.segments.rendered, .segments.cached] | @tsv')" "0 20	0" "rendered, cached (of $safe that were safe)"
	as_the_script_says
}

run_tests "$@"
