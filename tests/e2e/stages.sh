#!/bin/bash
# stages.sh - job.then: commands after a render, each on pods of its own, which work on what the steps before them made; one
# cap, one entry in the ledger, and a resume that repeats only what is missing.
# shellcheck disable=SC2016
. "$(dirname "$0")/lib.sh"

runs() { ledger "select count(*) from run ${1:-}"; }
stages() { ledger "select group_concat(stage || ' ' || status, ', ') from (select * from run where stage <> '' order by seq)"; }
# speech, then two stages: the first works on two pods, the second on what the first made. FIRST and SECOND add to their commands.
config_stages() {
	JOB="then = (
		{ name = \"video\"; pods = 2; outputs = [\"*.mp4\"];
			run = \"${FIRST:-true}; ls \$BURST_INPUTS | grep -c wav >film-\$BURST_INDEX.mp4; echo \$BURST_INDEX of \$BURST_COUNT >>film-\$BURST_INDEX.mp4\"; },
		{ name = \"upload\"; inputs = [\"*.mp4\"]; outputs = [\"up.txt\"];
			run = \"${SECOND:-true}; (cd \$BURST_INPUTS && ls && cat *.mp4) >up.txt\"; } );" config
}
uploaded="film-0.mp4
film-1.mp4
manifest.jsonl
3
0 of 2
3
1 of 2"

t_each_works_on_what_the_one_before_made() {
	script_lines 3
	config_stages
	burst plan --json
	is "$STATUS $(json '[.stages[] | "\(.name) \(.pods) \(.price_usd_hour) \(.cost_usd)"] | join(", ")')" "0 video 2 0.69 null, upload 1 0.69 null" "the plan ($(tail -n 3 err.txt))"
	schema plan
	burst run --json
	is "$STATUS $(json .status)" "0 done" "the run ($(tail -n 3 err.txt))"
	is "$(json '[.stages[] | .name + " " + .status] | join(", ")')" "video done, upload done" "its stages"
	schema run
	is "$(cat out/up.txt)" "$uploaded" "what the second one got"
	is "$(stages)" "video done, upload done" "runs of the stages"
	is "$(ledger "select count(distinct part_of) from run where stage <> ''") $(ledger "select part_of from run where stage = 'video'")" "1 $(json .run)" "what they are parts of"
	is "$(ledger "select count(*) from pod where run = (select id from run where stage = 'video')")" 2 "pods of the first"
	is "$(json '(.total.cost_usd - .cost_usd - (.stages | map(.cost_usd) | add) | fabs) < 0.000002')" true "the cost in total"
	"$BURST" ledger "$(json .run)" >ledger.txt
	is "$(grep -c '^stage ' ledger.txt)" 2 "rows of stages in the ledger's entry"
	grep -q '^total .* with its stages' ledger.txt || complain "no total: $(cat ledger.txt)"
	is "$(jq -r 'select(.former | not) | .file' out/manifest.jsonl | tr '\n' ' ')" "s001.wav s002.wav s003.wav film-0.mp4 film-1.mp4 up.txt " "the manifest"
	burst run --json
	is "$STATUS $(json '[.stages[] | .name + " " + .status] | join(", ")')" "0 video cached, upload cached" "the second run"
	is "$(runs)" 3 "runs in the ledger"
	burst plan
	has out.txt 'then video: 2 pods of no GPU at local, $0.6900 an hour each: about '
	has out.txt "(as run $(ledger "select id from run where stage = 'video'") took on $(date -u +%Y-)"
	# what is gone is made again, and so is what works on it, where it differs
	rm out/film-1.mp4
	burst run --json
	is "$STATUS $(json '[.stages[] | .name + " " + .status] | join(", ")')" "0 video done, upload cached" "the run after a film was removed ($(tail -n 2 err.txt))"
}
t_without_a_volume() { # what was fetched is sent to the pods
	script_lines 3
	config_stages
	sed -i '/^volume/d' burst.cfg
	burst run --json
	is "$STATUS" 0 "exit status ($(tail -n 3 err.txt))"
	is "$(cat out/up.txt)" "$uploaded" "what the second one got"
	has err.txt "stage upload: 2 files, on 1 pod without a GPU"
}
t_one_that_fails_is_repeated_alone() {
	local -x LOCAL_ISOLATION=process
	script_lines 3
	SECOND="[ -e $T/now ] || { echo no room at the other end >&2; exit 7; }" config_stages
	burst run --json
	is "$STATUS $(json .status)" "1 partial" "exit status and status"
	is "$(json '[.stages[] | .name + " " + .status] | join(", ")')" "video done, upload failed" "the stages"
	is "$(json '.stages[1].error.message')" "the command ended with exit code 7" "why"
	has err.txt "all outputs fetched, but stage upload failed (exit status 1): the command ended with exit code 7"
	: >now
	burst resume --json
	is "$STATUS $(json .status)" "0 done" "resume ($(tail -n 3 err.txt))"
	is "$(stages)" "video done, upload failed, upload done" "runs of the stages"
	is "$(cat out/up.txt)" "$uploaded" "what it got"
	is "$(ledger "select count(distinct part_of) from run where stage <> ''")" 1 "entries of the ledger"
}
in_stage() { # in_stage VIDEO_OR_UPLOAD: begun, and not ended
	[ "$(ledger "select status from run where stage = '$1' order by seq desc limit 1")" = running ] && grep -q "| begun $1" err.txt
}
t_ctrl_c_in_each_stage() { # one release, and a resume that repeats this stage alone
	local -x LOCAL_ISOLATION=process
	script_lines 3
	FIRST="echo begun video; [ -e $T/first ] || sleep 100" SECOND="echo begun upload; [ -e $T/second ] || sleep 100" config_stages
	burst_bg run --json
	wait_for 60 "the first stage" in_stage video
	kill -INT "$PID"
	burst_wait
	is "$STATUS $(json .status) $(json '[.stages[] | .name + " " + .status] | join(", ")')" "130 interrupted video interrupted" "in the first ($(tail -n 2 err.txt))"
	: >first
	burst_bg resume --json
	wait_for 60 "the second stage" in_stage upload
	kill -INT "$PID"
	burst_wait
	is "$STATUS $(json .status) $(json '[.stages[] | .name + " " + .status] | join(", ")')" "130 interrupted video done, upload interrupted" "in the second ($(tail -n 2 err.txt))"
	is "$(ledger "select count(*) from pod where state <> 'gone'")" 0 "pods"
	: >second
	burst resume --json
	is "$STATUS $(json '[.stages[] | .name + " " + .status] | join(", ")')" "0 video cached, upload done" "resume ($(tail -n 2 err.txt))"
	is "$(cat out/up.txt)" "$uploaded" "what the second one got"
	is "$(runs "where stage = ''")" 1 "entries of the ledger"
}
t_killed_in_the_second_stage() { # its pod is released by whoever resumes, and it begins again
	local -x LOCAL_ISOLATION=process
	script_lines 3
	SECOND="echo begun upload; [ -e $T/now ] || sleep 100" config_stages
	burst_bg run --json
	wait_for 60 "the second stage" in_stage upload
	kill -KILL "$PID"
	burst_wait
	: >now
	burst resume --json
	is "$STATUS $(json '[.stages[] | .name + " " + .status] | join(", ")')" "0 video cached, upload done" "resume ($(tail -n 2 err.txt))"
	is "$(stages)" "video done, upload interrupted, upload done" "runs of the stages"
}
t_the_cap_ends_the_second_stage() { # what the steps before it cost counts; all that they made is here
	local -x LOCAL_ISOLATION=process
	script_lines 3
	LOCAL='price_per_hour = 36.0;' SECOND="sleep 100" config_stages
	sed -i 's/price_per_hour = 0.69; //; s/max_cost = 1.00/max_cost = 0.40/' burst.cfg
	burst run --json
	is "$STATUS $(json .status)" "5 partial" "exit status ($(tail -n 3 err.txt))"
	is "$(json '[.stages[] | .name + " " + .status] | join(", ")')" "video done, upload capped" "the stages"
	is "$(json '.total.cost_usd <= 0.40')" true "cost in all: $(json .total.cost_usd)"
	is "$(cat out/film-0.mp4)" "3
0 of 2" "what the first one made"
	has err.txt "all outputs fetched, but stage upload failed (exit status 5)"
	sed -i 's/sleep 100/true/' burst.cfg
	burst resume --max-cost 2 --json
	is "$STATUS $(json '[.stages[] | .name + " " + .status] | join(", ")')" "0 video cached, upload done" "resume with a higher cap ($(tail -n 2 err.txt))"
}
t_the_pod_of_a_stage() { # a GPU that encodes video for one, none for the other; the joined track only for who asks for it
	script_lines 2
	REHEARSE='gpu_prices = ["L4=0.80", "H100 SXM=4.00"];' JOB='join = { gap = 0.1; };
		then = ( { name = "video"; inputs = ["joined.wav"]; pod = { needs = ["nvenc"]; }; run = "ls $BURST_INPUTS >got"; outputs = ["got"]; },
			{ name = "upload"; from = ["video"]; run = "ls $BURST_INPUTS >up"; outputs = ["up"]; } );' config
	burst run
	is "$STATUS" 0 "exit status ($(tail -n 3 err.txt))"
	is "$(tr '\n' ' ' <out/got) - $(tr '\n' ' ' <out/up)" "joined.wav manifest.jsonl  - got manifest.jsonl " "what they got"
	is "$(ledger "select gpu_offered from pod join run on run.id = pod.run where run.stage = 'video'")" L4 "the GPU of the first"
	is "$(ledger "select gpus from choice join run on run.id = choice.run where run.stage = 'upload'")" none "what the second one asks for"
	has err.txt "stage video: 1 file, on 1 pod with a GPU"
}
t_deliver_is_the_last_one() {
	script_lines 2
	JOB='then = { name = "sum"; run = "ls $BURST_INPUTS | grep -c wav >sum"; outputs = ["sum"]; };' \
		config 'deliver = { run = "cat $BURST_OUTPUTS/sum >delivered"; outputs = ["delivered"]; };'
	burst run --json
	is "$STATUS $(cat out/delivered)" "0 2" "exit status, and what was delivered ($(tail -n 3 err.txt))"
	is "$(json '[.stages[] | .name] | join(" ")') $(json .deliver.status)" "sum deliver done" "the stages"
}
t_after_a_command() { # whose outputs it gets
	cat >burst.cfg <<-'E'
		provider = "local";
		job = { name = "t"; type = "command"; pods = 2; run = "mkdir -p deep; echo part $BURST_INDEX >deep/$BURST_INDEX.txt"; outputs = ["deep/*"]; output = "out";
			then = { name = "all"; inputs = ["deep/*.txt"]; run = "cat $BURST_INPUTS/deep/*.txt >all.txt"; outputs = ["all.txt"]; }; };
	E
	sed -i 's/ pods = 2;//; 1a pods = 2;' burst.cfg
	burst run
	is "$STATUS $(tr '\n' ' ' <out/all.txt)" "0 part 0 part 1 " "exit status, and what it made ($(tail -n 3 err.txt))"
}
refused() { # refused 'STAGES' MESSAGE
	JOB="then = ( $1 );" config
	[ "${VOLUME:-yes}" = yes ] || sed -i '/^volume/d' burst.cfg
	burst run
	is "$STATUS" 2 "exit status of \"$2\" ($(tail -n 2 err.txt))"
	has err.txt "burst.cfg:$2"
}
t_mistakes_are_told_before_renting() {
	local a='name = "a"; run = "true";' b='name = "b"; run = "true"; outputs = ["b"];'
	script_lines 2
	refused "{ run = \"true\"; }" '4: job.then: a stage needs a name, like name = "video"'
	refused "{ name = \"a/b\"; run = \"true\"; }" '4: job.then: name = "a/b": use letters'
	refused "{ $a }, { $a }" '4: job.then: two stages have the name "a"'
	refused "{ name = \"render\"; run = \"true\"; }" '4: job.then: "render" is the name of a step of every job'
	refused "{ name = \"a\"; }" '4: job.then: stage "a" needs run = "...", its command'
	refused "{ $a from = [\"b\"]; },
		{ $b from = [\"a\"]; }" '4: job.then: stages "a" and "b" wait for each other'"'"'s files'
	refused "{ $a from = [\"b\"]; },
		{ $b }" '4: job.then: stage "a" works on files of "b", which comes later: stages run in their order here'
	refused "{ $a from = [\"a\"]; }" '4: job.then: stage "a" cannot work on its own files'
	refused "{ $a from = [\"vidoe\"]; }" '4: job.then: stage "a": no stage is called "vidoe"'
	refused "{ $b },
		{ $a inputs = [\"s001.wav\", \"b\", \"*.mp4\"]; }" '5: job.then: stage "a": no earlier step makes "*.mp4"; its outputs must name it'
	refused "{ $b }, { $a from = [\"render\"]; inputs = [\"b\"]; }" '4: job.then: stage "a": no earlier step makes "b"'
	refused "{ $a pods = 0; }" '4: pods of stage "a" is out of range: it must be 1 to 1000'
	refused "{ $a pod = { needs = [\"nvdec\"]; }; }" '4: job.then: stage "a": pod.needs: "nvdec" is none of "gpu", "nvenc", "bf16", "compute >= 8.9", "vram >= 24", "cuda >= 12.8"'
	refused "{ $a pod = { needs = [\"nvenc\"]; gpu = [\"H100\"]; }; }" '4: job.then: stage "a": pod.needs: H100 SXM lacks NVENC, and pod.gpu names it'
	refused "{ $a outputs = [\"../x\"]; }" '4: outputs: "../x" must be a path inside the tree'
	VOLUME=no refused "{ $a }" '3: job.then: stage "a" has no outputs, and there is no volume'
	is "$(runs)" 0 "runs"
}
t_a_file_of_ones_own_stays() {
	script_lines 2
	config_stages
	mkdir out
	echo precious >out/up.txt
	burst run
	is "$STATUS $(cat out/up.txt) $(runs)" "2 precious 0" "exit status, the file, runs"
	has err.txt "out/up.txt is there and was not made by this job; use --force"
}

run_tests "$@"
