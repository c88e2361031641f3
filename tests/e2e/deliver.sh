#!/bin/bash
# deliver.sh - what follows a render on a pod without a GPU: it finds the outputs under their own names on the volume, its own
# outputs come home, it is done once, and again when it failed or something changed.
# shellcheck disable=SC2016
. "$(dirname "$0")/lib.sh"
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/deliver_lib.sh"

t_it_finds_what_was_rendered() {
	script_lines 8
	delivering 'ls \"$BURST_OUTPUTS\" | grep -c wav >count; (cd \"$BURST_OUTPUTS\" && cat *.wav | sha256sum) >sum; wc -l <\"$BURST_OUTPUTS/manifest.jsonl\" >lines' \
		'outputs = ["count", "sum", "lines"];'
	burst run --json
	is "$STATUS" 0 "exit status ($(tail -n 3 err.txt))"
	is "$(cat out/count)" 8 "files that it found"
	is "$(cat out/lines)" 8 "lines of the manifest"
	is "$(cat out/sum)" "$(cat out/*.wav | sha256sum)" "what they hold"
	is "$(json .deliver.status)" "done" "the delivery"
	is "$(json .status)" "done" "the run"
	is "$(json '.deliver.cost_usd > 0')" true "its cost"
	is "$(json '(.total.cost_usd - .cost_usd - .deliver.cost_usd | fabs) < 0.000002')" true "the cost in total"
	is "$(json '(.total.billed_seconds - .billed_seconds - .deliver.billed_seconds | fabs) < 0.002')" true "what was billed in total"
	schema run
	has err.txt "run $(json .run) with its stages: "
	local total
	total=$(json .total.cost_usd | awk '{ printf "%.4f", $1 }') # a half rounds as in the program
	"$BURST" ledger "$(json .run)" >ledger.txt
	grep -qE "^stage +deliver  run $(json .deliver.run)  done" ledger.txt || complain "the ledger names no delivery: $(cat ledger.txt)"
	grep -qE "^total .*, \\\$$total.* with its stage" ledger.txt || complain "the ledger has no total of $total: $(grep total ledger.txt)"
	"$BURST" report "$(json .run)" -o - >report.html 2>/dev/null
	has report.html "$(json .deliver.run)"
	is "$(runs)" 2 "runs in the ledger"
	is "$(find "$BURST_STATE_DIR/jobs" -mindepth 1 -not -name '*.lock' | wc -l)" 0 "what is left of it"
	# nothing changed: nothing is rendered, nothing delivered
	burst run --json
	is "$STATUS" 0 "exit status of the second run"
	is "$(json '.deliver')" null "a second delivery"
	is "$(runs)" 2 "runs in the ledger"
}
t_the_jobs_name_is_long_and_not_ascii() { # its delivery's name is cut, between two characters
	script_lines 2
	delivering 'echo x >count' 'outputs = ["count"];'
	sed -i 's/name = "e2e"/name = "aééééééééééééééééééééééééééééé"/' burst.cfg
	burst run --json
	is "$STATUS" 0 "exit status ($(tail -n 3 err.txt))"
	is "$(json .deliver.status)" "done" "the delivery"
	is "$(cat out/count)" x "what it brought"
}
t_it_fails_and_is_tried_again() {
	script_lines 4
	delivering 'test -e '"$T"'/now || { echo no room at the other end >&2; exit 7; }'
	local -x LOCAL_ISOLATION=process
	burst run --json
	is "$STATUS" 1 "exit status"
	is "$(wavs)" 4 "files at home all the same"
	is "$(json .status)" partial status
	has err.txt "all outputs fetched, but stage deliver failed (exit status 1): the command ended with exit code 7"
	has err.txt "no room at the other end"
	: >now
	burst run --json
	is "$STATUS" 0 "exit status of the second run ($(tail -n 3 err.txt))"
	is "$(json .segments.cached)" 4 "cached"
	is "$(json .deliver.status)" "done" "the delivery"
	has err.txt "already rendered: nothing rented"
}
t_it_comes_back_for_what_changed() {
	script_lines 4
	delivering 'ls \"$BURST_OUTPUTS\" | grep -c wav >count' 'outputs = ["count"];'
	burst run
	is "$(cat out/count)" 4 "files that it found"
	script_lines 6
	burst run -v
	is "$STATUS" 0 "exit status ($(tail -n 3 err.txt))"
	is "$(cat out/count)" 6 "files that it found then, from two runs"
}
t_what_is_not_on_the_volume_travels() {
	script_lines 4
	delivering '(cd \"$BURST_OUTPUTS\" && cat *.wav | sha256sum) >sum' 'outputs = ["sum"];'
	sed -i 's/^deliver/# deliver/' burst.cfg
	burst run
	rm -rf "$BURST_STATE_DIR"/ledger.db* # as on another machine: nobody knows where they were rendered
	sed -i 's/^# deliver/deliver/' burst.cfg
	burst run --allow-volume v
	is "$STATUS" 0 "exit status ($(tail -n 3 err.txt))"
	is "$(cat out/sum)" "$(cat out/*.wav | sha256sum)" "what they hold"
	has err.txt "all of them are uploaded with it"
}
t_it_has_the_code_and_the_outputs_of_a_command() {
	mkdir -p code/tools
	echo 'tr a-z A-Z' >code/tools/shout
	cat >burst.cfg <<-'E'
		provider = "local";
		pods = 2;
		volume = { name = "v"; size_gb = 1; create = true; };
		code = { path = "code"; };
		job = { name = "t"; type = "command"; run = "mkdir -p deep; echo part $BURST_INDEX >deep/$BURST_INDEX.txt"; outputs = ["deep/*"]; output = "out"; };
		deliver = { run = "cat \"$BURST_OUTPUTS\"/deep/*.txt | sh tools/shout >all.txt"; outputs = ["all.txt"]; };
	E
	burst run
	is "$STATUS" 0 "exit status ($(tail -n 3 err.txt))"
	is "$(tr '\n' ' ' <out/all.txt)" "PART 0 PART 1 " "what was delivered"
}
t_of_two_projects_each_gets_its_own() { # though they share a volume, and the other one rendered and delivered last
	local -x LOCAL_ISOLATION=process
	local p
	for p in a b; do
		mkdir -p $p/code
		echo "echo \"$p has \$(cat \"\$BURST_OUTPUTS\"/*.txt)\" >all" >$p/code/up.sh
		cat >$p/burst.cfg <<-E
			provider = "local";
			volume = { name = "v"; size_gb = 1; create = true; };
			code = { path = "code"; };
			job = { name = "t"; type = "command"; outputs = ["*.txt"]; output = "out";
				run = "echo rendered; until [ -e '$T/$p-may' ]; do sleep 0.1; done; echo what $p made >$p.txt"; };
			deliver = { run = "sh up.sh"; outputs = ["all"]; };
		E
	done
	: >b-may
	cd a || return
	burst_bg run --allow-volume v
	wait_for 60 "the render of a" grep -q "| rendered" err.txt
	cd ../b || return
	burst run --allow-volume v
	is "$STATUS" 0 "exit status of b ($(tail -n 3 err.txt))"
	: >../a-may
	cd ../a || return
	burst_wait
	cd ..
	is "$STATUS" 0 "exit status of a ($(tail -n 3 a/err.txt))"
	is "$(cat a/out/all b/out/all)" "a has what a made
b has what b made" "what was delivered"
}
t_it_has_the_code_without_a_render() { # as it is here by then: whoever mends it need not render again
	script_lines 3
	mkdir -p code/deep
	echo 'cat deep/words; cat gone 2>/dev/null; exit 7' >code/up.sh
	echo these >code/deep/words
	echo these >code/gone
	delivering 'sh up.sh >all || exit' 'outputs = ["all"];'
	echo 'code = { path = "code"; };' >>burst.cfg
	burst run
	is "$STATUS" 1 "exit status"
	has err.txt "the command ended with exit code 7"
	burst run
	has err.txt "the command ended with exit code 7"
	rm code/gone
	echo 'cat deep/words; cat gone 2>/dev/null; true' >code/up.sh
	burst run -v
	is "$STATUS" 0 "exit status ($(tail -n 3 err.txt))"
	has err.txt "already rendered: nothing rented"
	is "$(cat out/all)" these "what it delivered"
	# nothing is known of the volume: all of the code travels
	rm -rf "$BURST_STATE_DIR"/ledger.db*
	burst run --allow-volume v
	is "$STATUS" 0 "exit status of the last ($(tail -n 3 err.txt))"
	is "$(cat out/all)" these "what it delivered then"
}
deliver_all() { # with a script of the code
	script_lines 4
	mkdir -p code
	echo '(cd "$BURST_OUTPUTS" && cat *.wav | sha256sum) >sum' >code/up.sh
	config 'deliver = { run = "sh up.sh"; outputs = ["sum"]; };'
	echo 'code = { path = "code"; };' >>burst.cfg
	burst run
	is "$STATUS" 0 "exit status of the first run ($(tail -n 3 err.txt))"
}
t_what_is_gone_from_the_volume_travels() { # one's own gc is remembered; what others took is told by the pod, and goes with a second one
	deliver_all
	burst volume gc v --older-than 0s
	has out.txt "all outputs fetched"
	again gc
	has err.txt "files missing on the volume are uploaded with it"
	is "$(runs)" 4 "runs in the ledger"
	rm -rf "$BURST_STATE_DIR"/volumes/v/runs/*
	again "others took the files"
	has err.txt "1 of the needed files were removed from the volume: stage deliver again with copies from here"
	rm -rf "$BURST_STATE_DIR"/volumes/v/code out/sum
	sed -i 's/sh up.sh/sh up.sh; true/' burst.cfg # which renders nothing, and puts no code there again
	burst run
	is "$STATUS" 0 "exit status after others took the code ($(tail -n 3 err.txt))"
	has err.txt "already rendered: nothing rented"
	has err.txt "1 of the needed files were removed"
	is "$(cat out/sum)" "$(cat out/s*.wav | sha256sum)" "what was delivered after others took the code"
	burst volume rm -y v
	burst volume create v
	again "a new volume"
}
t_what_its_volume_lacks_is_no_success() { # of the delivery's own run, which is followed by one that brings it
	deliver_all
	rm -rf "$BURST_STATE_DIR"/volumes/v/runs/*
	again "others took the files"
	is "$(ledger "select status from run where job = 'e2e-deliver' order by seq" | tr '\n' ' ')" "done partial done " "deliveries"
	has err.txt "stage deliver did not run: 4 of the needed files are no longer on the volume"
	is "$(json '.deliver | "\(.billed_seconds * 1000 | round)"')" \
		"$(ledger "select sum(billed_ms) from (select * from run where job = 'e2e-deliver' order by seq desc limit 2)")" "what both of them were billed"
}
t_it_goes_where_its_volume_is() { # not to the first vendor, where another one would be made, or which cannot be asked
	script_lines 3
	delivering true
	sed -i 's/^provider = .*/provider = ["runpod", "local"];/' burst.cfg
	unset RUNPOD_API_KEY
	burst run
	is "$STATUS" 0 "exit status ($(tail -n 2 err.txt))"
	burst volume gc v --older-than 0s
	sed -i 's/run = "true"/run = "true; true"/' burst.cfg
	burst run
	is "$STATUS" 0 "exit status after gc ($(tail -n 2 err.txt))"
	is "$(ledger "select group_concat(provider) from pod where run in (select id from run where job = 'e2e-deliver')")" local,local "where"
	sed -i 's/"true; true"/"true; false"/' burst.cfg
	burst run
	is "$STATUS" 1 "exit status of one that fails"
	is "$(ledger "select group_concat(distinct provider) from pod")" local "who is asked"
	# the vendor that has it is not named any more: nothing goes there
	sed -i 's/^provider = .*/provider = "runpod";/' burst.cfg
	local pods
	pods=$(ledger 'select count(*) from pod')
	burst run
	[ "$STATUS" != 0 ] || complain "it was delivered by nobody"
	is "$(ledger 'select count(*) from pod')" "$pods" "pods, when its vendor is not named any more"
	hasnt err.txt "of local"
}
t_a_command_that_fails_brings_nothing_back_to_life() { # what an earlier one left behind stays former
	local -x LOCAL_ISOLATION=process
	command_of() {
		cat >burst.cfg <<-E
			provider = "local";
			volume = { name = "v"; size_gb = 1; create = true; };
			job = { name = "t"; type = "command"; run = "$1"; outputs = ["film", "cut"]; output = "out"; };
		E
		burst run
	}
	former() { jq -r 'select(.former) | .file' out/manifest.jsonl; }
	command_of "echo film >film; echo cut >cut"
	is "$STATUS $(former)" "0 " "exit status, and what is former ($(tail -n 3 err.txt))"
	command_of "echo film2 >film"
	is "$STATUS $(former)" "0 cut" "exit status, and what is former, of the second ($(tail -n 3 err.txt))"
	command_of "exit 3"
	is "$STATUS $(former)" "1 cut" "exit status, and what is former, of one that fails ($(tail -n 3 err.txt))"
}
t_a_file_of_ones_own_before_a_resume() { # is told of before anything is rented
	script_lines 300
	delivering 'echo delivered >all.txt' 'outputs = ["all.txt"];'
	burst_bg run
	wait_for 60 "a file" file_count out 1
	kill -KILL "$PID"
	burst_wait
	echo precious >out/all.txt
	burst resume
	is "$STATUS $(cat out/all.txt)" "2 precious" "exit status ($(tail -n 3 err.txt))"
	has err.txt "out/all.txt is there and was not made by this job"
	[ "$(ledger "select count(*) from segment where state = 1")" -lt 300 ] || complain "all was rendered first"
	burst resume --force
	is "$STATUS $(cat out/all.txt)" "0 delivered" "exit status of resume --force ($(tail -n 3 err.txt))"
}
t_it_keeps_within_what_is_left() { # of the caps; and what fills a volume delivers nothing
	script_lines 4
	delivering 'exit 7'
	sed -i 's/max_cost = 1.00/max_cost = 0.0095/' burst.cfg
	burst run --json
	is "$STATUS" 1 "exit status ($(tail -n 2 err.txt))"
	left=$(ledger "select max_cost_microusd / 1e6 from run where stage = 'deliver'")
	is "$(json ".cost_usd > 0.0001 and .cost_usd + $left < 0.009502")" true "cost $(json .cost_usd) and a delivery that may cost $left"
	burst volume warm v
	is "$STATUS" 0 "volume warm ($(tail -n 2 err.txt))"
	hasnt err.txt "stage deliver"
	is "$(runs)" 3 "runs: a render, its delivery, a warming"
	sed -i 's/max_cost = 0.0095/max_cost = 0.000001/' burst.cfg
	burst run --json
	is "$STATUS" 5 "exit status of a delivery that nothing is left for"
	is "$(ledger "select count(*) from pod where run = (select id from run order by seq desc limit 1)")" 0 "its pods"
}
t_it_keeps_to_the_other_caps() { # and to what is said of the volume, and of pods that are not proven
	script_lines 4
	REHEARSE='spot_price_per_hour = 0.20; preempt_after = "0s";'
	delivering 'exit 7'
	sed -i 's/max_duration/max_price_per_hour = 0.30; &/' burst.cfg
	cat >>burst.cfg <<-'E'
		spot = true;
		wait = "0s";
		pod = { allow_unproven_switch = true; cpu = 1; };
	E
	burst run --json
	is "$(wavs)" 4 "files at home"
	is "$STATUS" 5 "exit status ($(tail -n 3 err.txt))"
	is "$(ledger "select count(*) from pod where price_microusd_h > 300000")" 0 "pods that are dearer than the cap"
	is "$(ledger "select count(*) from pod where price_microusd_h = 200000")" 1 "pods that are not"
	has err.txt "caps.max_price_per_hour"
}
t_the_manifest_knows_both() { # what was rendered, in the script's order, and what was delivered
	printf '{"id":"%s","text":"This is said."}\n' z c m a >script.jsonl
	delivering 'echo one >all.txt; echo two >c.txt; [ ! -e '"$T"'/now ] || exit 7' 'outputs = ["*.txt"];'
	local -x LOCAL_ISOLATION=process
	local both=$'z.wav\tnull\nc.wav\tnull\nm.wav\tnull\na.wav\tnull\nall.txt\tnull\nc.txt\tnull'
	burst run
	is "$STATUS" 0 "exit status ($(tail -n 3 err.txt))"
	is "$(jq -r '[.file, (.former|tostring)] | @tsv' out/manifest.jsonl)" "$both" "the manifest"
	burst run
	is "$STATUS" 0 "exit status of a run that has nothing to do ($(tail -n 3 err.txt))"
	hasnt err.txt "stage deliver"
	is "$(jq -r '[.file, (.former|tostring)] | @tsv' out/manifest.jsonl)" "$both" "the manifest after it"
	: >now
	printf '{"id":"%s","text":"This is said."}\n' z b m a >script.jsonl
	burst run
	is "$STATUS" 1 "exit status of a delivery that fails"
	is "$(jq -r 'select(.former | not) | .file' out/manifest.jsonl | tr '\n' ' ')" "z.wav b.wav m.wav a.wav all.txt c.txt " "what is current after it: also what the command had finished"
	is "$(jq -r 'select(.former) | .file' out/manifest.jsonl | sort | tr '\n' ' ')" "c.wav " "what is former"
	rm now
	burst run
	is "$STATUS" 0 "exit status of the last run ($(tail -n 3 err.txt))"
	is "$(jq -r 'select(.former | not) | .file' out/manifest.jsonl | tr '\n' ' ')" "z.wav b.wav m.wav a.wav all.txt c.txt " "what is current then"
}
t_the_next_render_sends_what_changed() { # though the delivery was the last to put something on the volume
	deliver_all
	head -c 3000000 /dev/urandom >code/large
	sed -i 's/^deliver/# deliver/' burst.cfg
	script_lines 5
	burst run
	sed -i 's/^# deliver/deliver/' burst.cfg
	burst run
	is "$STATUS" 0 "exit status of the delivery ($(tail -n 3 err.txt))"
	echo more >code/small
	script_lines 6
	burst run -v
	is "$STATUS" 0 "exit status ($(tail -n 3 err.txt))"
	sent=$(sed -n 's/.*: code: \([0-9]*\) bytes$/\1/p' err.txt | head -n 1)
	[ "${sent:-3000000}" -lt 100000 ] || complain "a small file was added, and $sent bytes of code were sent"
}
t_a_file_of_ones_own_stays() { # that it would write over; what earlier runs made, and what joins them, is burst's
	script_lines 3
	JOB='join = { gap = 0.1; };' delivering 'ls \"$BURST_OUTPUTS\" | grep -c wav >all.txt; echo wrong >joined.wav' 'outputs = ["*.txt", "*.wav"];'
	mkdir out
	echo precious >out/all.txt
	for what in "run" "run -n" plan; do
		# shellcheck disable=SC2086
		burst $what
		is "$STATUS" 2 "exit status of $what"
		has err.txt "out/all.txt is there and was not made by this job; use --force"
	done
	is "$(cat out/all.txt)" precious "the file"
	is "$(runs)" 0 "runs"
	mv out/all.txt out/notes.md
	burst run
	is "$STATUS" 0 "exit status without it ($(tail -n 3 err.txt))"
	is "$(cat out/all.txt)" 3 "what was delivered"
	is "$(cat out/joined.wav)" wrong "what was delivered under burst's own name"
	script_lines 4
	burst run
	is "$STATUS" 0 "exit status with what the last one brought ($(tail -n 3 err.txt))"
	is "$(cat out/all.txt)" 4 "what was delivered then"
	echo left >out/.joined.loud.wav # by a joining that was killed
	echo precious >out/all.txt
	burst run
	is "$STATUS" 0 "exit status where nothing is to be delivered ($(tail -n 3 err.txt))"
	script_lines 5
	burst run
	is "$STATUS" 2 "exit status where what was delivered was changed"
	is "$(cat out/all.txt)" precious "the file"
	burst run --force
	is "$STATUS" 0 "exit status with --force ($(tail -n 3 err.txt))"
	is "$(cat out/all.txt)" 5 "what was delivered with --force"
	is "$(cat out/notes.md)" precious "the other file"
}
a_pod_is_rented() { [ "$(ledger 'select count(*) from pod' 2>/dev/null)" = 1 ]; }
t_a_file_that_came_meanwhile_stays() { # while it was rendered: all is home, and nothing delivered
	local -x LOCAL_ISOLATION=process
	script_lines 3
	delivering 'echo delivered >joined.wav' 'outputs = ["joined.wav"];' # nothing is joined: it is one's own
	burst_bg run
	wait_for 60 "a pod" a_pod_is_rented
	echo precious >out/joined.wav
	burst_wait
	is "$STATUS" 2 "exit status ($(tail -n 3 err.txt))"
	has err.txt "all outputs fetched, but stage deliver did not run (run \`burst resume\`): $T/out/joined.wav is there"
	is "$(runs) $(wavs)" "1 3" "runs, and files rendered"
	burst resume
	is "$STATUS" 2 "exit status of resume"
	is "$(cat out/joined.wav)" precious "the file"
	burst resume --force
	is "$STATUS" 0 "exit status of resume --force ($(tail -n 3 err.txt))"
	is "$(cat out/joined.wav)" delivered "what was delivered"
}
t_the_output_folder_is_swapped_while_it_delivers() { # files and manifest come into the folder that is held, not where a link leads
	local -x LOCAL_ISOLATION=process
	script_lines 2
	delivering 'echo begun; until [ -e '"$T"'/now ]; do sleep 0.1; done; echo delivered >all' 'outputs = ["all"];'
	burst_bg run
	wait_for 60 "the delivery" grep -q "| begun" err.txt
	mv out real
	mkdir other
	cp real/manifest.jsonl other/
	ln -s other out
	: >now
	burst_wait
	is "$STATUS" 0 "exit status ($(tail -n 3 err.txt))"
	is "$(cat real/all) $(jq -r 'select(.former | not) | .file' real/manifest.jsonl | tr '\n' ' ')" "delivered s001.wav s002.wav all " "what is in the folder"
	is "$(ls other) $(grep -c '"all"' other/manifest.jsonl)" "manifest.jsonl 0" "what is where the link leads"
}
t_refused() {
	script_lines 2
	config 'deliver = { run = "true"; outputs = ["../x"]; };'
	burst run
	is "$STATUS" 2 "with a pattern that leads outside"
	has err.txt 'burst.cfg:6: outputs: "../x" must be a path inside the tree'
	config 'deliver = { run = "true"; env = ["A B"]; };'
	burst run
	is "$STATUS" 2 "with a variable that is none"
	has err.txt "A B"
	config 'deliver = { on = "cpu"; };'
	burst run
	is "$STATUS" 2 "without a command"
	has err.txt 'deliver needs run = "...", the command that delivers'
	config 'deliver = { run = "true"; on = "gpu"; };'
	burst run
	is "$STATUS" 2 "on a GPU"
	config 'deliver = { run = "true"; };'
	sed -i '/^volume/d' burst.cfg
	burst run
	is "$STATUS" 2 "without a volume"
	has err.txt "deliver needs a volume"
	is "$(runs)" 0 "runs"
}

run_tests "$@"
