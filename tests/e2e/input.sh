#!/bin/bash
# input.sh - mistakes in configs and scripts: each has its message, its exit status, and leaves nothing behind.
. "$(dirname "$0")/lib.sh"
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/input_lib.sh"

t_unknown_key() {
	script_lines 2
	config 'spott = true;'
	refused 2 'burst.cfg:6: unknown key "spott", did you mean "spot"?'
	JOB='inptu = "x";'
	config
	refused 2 'burst.cfg:4: unknown key "job.inptu", did you mean "input"?'
	JOB='' LOCAL='capactiy = 1;'
	config
	refused 2 'burst.cfg:5: unknown key "providers.local.capactiy", did you mean "capacity"?'
}

t_mistyped_key() {
	script_lines 2
	config 'pods = "two";'
	refused 2 'burst.cfg:6: pods must be a whole number'
	config 'pods = 0;'
	refused 2 'burst.cfg:6: pods is out of range: it must be 1 to 1000'
	config 'wait = 10;'
	refused 2 'burst.cfg:6: wait must be a duration in quotes'
	config 'provider = "runpdo";'
	refused 2 'burst.cfg:6'
}

t_missing_key() {
	script_lines 2
	echo 'provider = "local"; job = { type = "tts"; };' >burst.cfg
	refused 2 'burst.cfg:1: job.input is missing'
	echo 'provider = "local"; job = { name = "x"; };' >burst.cfg
	refused 2 'burst.cfg:1: job.type is missing: it must be "tts" or "command"'
	echo 'provider = "local";' >burst.cfg
	refused 2 job
	rm burst.cfg
	refused 2 burst.cfg
}

# ---- each wrong input is found before anything is rented ----
# KIND says where TEXT goes: top (a line of burst.cfg), job, local (into that group), volume and command (instead of that group),
# script (a line of script.jsonl), flags (of `burst run`). WORDS: parts of what it says, with ";" between.
wrong_inputs() {
	cat <<-'E'
		top|spott = true;|2|burst.cfg:6: unknown key "spott", did you mean "spot"?
		top|pods = "two";|2|burst.cfg:6: pods must be a whole number, like 2, or "auto"; found the string "two"
		top|pods = 0;|2|burst.cfg:6: pods is out of range: it must be 1 to 1000
		top|wait = 10;|2|burst.cfg:6: wait must be a duration in quotes, like "10m"; found the number 10
		top|lease = "1s";|2|burst.cfg:6: lease is out of range
		top|code = { path = "nowhere"; };|2|burst.cfg:6: code.path: ;/nowhere: No such file or directory
		top|code = { path = "script.jsonl"; };|2|burst.cfg:6: code.path: ;script.jsonl is not a folder
		top|pod = { memory_gb = 0; };|2|burst.cfg:6: pod.memory_gb is out of range
		top|deliver = { on = "gpu"; };|2|burst.cfg:6: deliver needs run
		volume|{ name = "my volume"; create = true; }|2|burst.cfg:2: volume.name: "my volume" is not a valid volume name
		volume|{ name = "../v"; create = true; }|2|burst.cfg:2: volume.name: "../v" is not a valid volume name
		volume|{ name = "my volume"; }|2|a volume's name may have only letters, digits
		volume|{ name = "v"; size_gb = 0; create = true; }|2|burst.cfg:2: volume.size_gb is out of range
		job|options = ["speed=fast"];|2|burst.cfg:4: options: speed is "fast"; espeak needs a whole number from 80 to 900
		job|options = ["speed=10"];|2|burst.cfg:4: options: speed is 10; espeak needs a whole number from 80 to 900
		job|options = ["sped=160"];|2|burst.cfg:4: options: espeak has no option "sped"; did you mean "speed"?
		job|options = ["speed"];|2|burst.cfg:4: options: "speed" must be written as in "speed=160"
		job|workers = 0;|2|burst.cfg:4: job.workers is out of range: it must be 1 to 256
		job|join = { loudness = 3; };|2|burst.cfg:4: job.join.loudness is out of range: it must be -70 to -5
		job|input_mode = "words";|2|burst.cfg:4: input_mode must be
		job|env = ["A=1"];|2|burst.cfg:4: job.env: "A=1" is not the name of a variable
		script|{"text":"One.","options":{"speed":"fast"}}|2|script.jsonl:3: options: speed is "fast"; espeak needs
		script|{"text":"One.","options":{"pitch":120}}|2|script.jsonl:3: options: pitch is 120; espeak needs a whole number from 0 to 99
		script|{"text":"One.","options":{"sped":3}}|2|script.jsonl:3: options: espeak has no option "sped"; did you mean "speed"?
		script|{"text":"One.","options":["speed"]}|2|script.jsonl:3: "options" must be an object
		command|run = "true";|2|burst.cfg:4: job.outputs is missing: everything that the command writes would be lost with its pod
		command|run = "true"; outputs = [];|2|burst.cfg:4: job.outputs is empty
		command|run = "true"; outputs = [""];|2|burst.cfg:4: job.outputs: entry 1 is empty
		command|run = " "; outputs = ["x"];|2|burst.cfg:4: job.run is empty
		command|run = "true"; outputs = ["x"]; no_outputs = true;|2|burst.cfg:4: job.no_outputs is true, but
		top|gpu = ["RTX 4090", "H100"];|2|burst.cfg:6: gpu = ["RTX 4090", "H100"]: pods on this machine have no GPU: name the GPU in providers.local.gpu
		top|spot = true;|2|burst.cfg:6: spot = true: this machine has no spot pods
		top|pod = { memory_gb = 60000; };|2|burst.cfg:6: pod.memory_gb = 60000: this machine has
		top|pod = { cpu = 1000; };|2|burst.cfg:6: pod.cpu = 1000: this machine has
		job|vram_gb = 24;|2|burst.cfg:4: the job needs a GPU with 24 GB of memory, and pods on this machine have no GPU: see providers.local.gpu
		local|capactiy = 1;|2|burst.cfg:5: unknown key "providers.local.capactiy", did you mean "capacity"?
		local|isolation = "none";|2|burst.cfg:5: providers.local.isolation is allowed only in your own
		local|capacity = -1; isolation = "auto";|2|burst.cfg:5: capacity must not;burst.cfg:5: providers.local.isolation is allowed only
		top|gpu = "none"; spot = true; pod = { cpu = 1000; memory_gb = 60000; };|2|burst.cfg:6: spot = true;burst.cfg:6: pod.cpu = 1000;burst.cfg:6: pod.memory_gb = 60000
		top|pods = "many";|2|burst.cfg:6: pods must be a whole number, like 2, or "auto"; found the string "many"
		top|gpu = ["auto", "none"];|2|burst.cfg:6: gpu: "auto" cannot be combined
		flags|--gpu auto,none|2|--gpu: "auto" cannot be combined
		top|goal = "speed";|2|burst.cfg:6: goal = "speed": it must be
		top|goal = "balanced"; deadline = "soon";|2|burst.cfg:6: goal = "balanced" needs value_of_time;burst.cfg:6: deadline = "soon": it must be a duration
		top|deadline = "0s";|2|burst.cfg:6: deadline = "0s": it must be longer than 0
		flags|--pods 1001|2|--pods
		flags|--gpu H100 --goal speed --max-cost 0|2|--gpu: gpu = ["H100"];--goal: goal = "speed";caps.max_cost is out of range
		flags|--max-cost 0|2|caps.max_cost is out of range
	E
}
wrong_input() { # wrong_input KIND TEXT STATUS WORDS
	local words flags='' JOB='' LOCAL='' what="$1 $2"
	script_lines 2
	case $1 in
	top) config "$2" ;;
	job) JOB=$2 config ;;
	local) LOCAL=$2 config ;;
	script) config && echo "$2" >>script.jsonl ;;
	flags) config && flags=$2 ;;
	volume) config && sed -i "2s|.*|volume = $2;|" burst.cfg ;;
	command) config && sed -i "4s|.*|job = { name = \"e2e\"; type = \"command\"; output = \"out\"; $2 };|" burst.cfg ;;
	*) complain "$1: no such kind of row" ;;
	esac
	# shellcheck disable=SC2086 # words
	burst run --json $flags
	is "$STATUS" "$3" "$what: exit status ($(tail -n 2 err.txt))"
	IFS=';' read -ra words <<<"$4"
	for words in "${words[@]}"; do has err.txt "$words"; done
	is "$(ledger "select count(*) from pod" 2>/dev/null)" "${NO_PODS}" "$what: pods"
	last_json "$what"
}
t_wrong_input_is_found_before_renting() {
	local kind text status words
	"$BURST" ledger >/dev/null
	NO_PODS=0
	while IFS='|' read -r kind text status words; do
		wrong_input "$kind" "$text" "$status" "$words"
	done < <(wrong_inputs)
}
t_wishes_that_a_local_pod_only_plays() { # what its own keys say is given, and a run goes well
	script_lines 2
	REHEARSE='gpu = "RTX 4090"; spot_price_per_hour = 0.20;' config 'gpu = ["H100", "RTX 4090"]; spot = true; pod = { memory_gb = 1; cpu = 1; };'
	burst run --json
	is "$STATUS" 0 "exit status ($(tail -n 2 err.txt))"
	is "$(json '.pods[0] | [.gpu, .spot] | @csv')" '"RTX 4090",true' "its pod"
	all_right 2
	burst doctor
	is "$STATUS" 0 "doctor's exit status ($(grep bad out.txt))"
	sed -i 's/gpu = "RTX 4090"; spot/spot/' burst.cfg
	burst doctor
	is "$STATUS" 1 "doctor's exit status"
	has out.txt 'bad  local_play: gpu = ["H100", "RTX 4090"]: pods on this machine have no GPU'
}
t_all_mistakes_are_told_at_once() { # and once, whatever follows from one of them
	local JOB='inptu = "x"; options = ["speed=fast"]; workers = 0;' LOCAL='capacity = "3";'
	script_lines 2
	config 'spott = true; pods = 0;'
	sed -i '4s/input = "script.jsonl"; //' burst.cfg
	burst run --json
	is "$STATUS" 2 "exit status"
	is "$(wc -l <err.txt)" 6 "lines ($(tr '\n' '|' <err.txt))"
	has err.txt 'burst.cfg:4: unknown key "job.inptu", did you mean "input"?'
	has err.txt 'burst.cfg:4: options: speed is "fast"'
	has err.txt 'burst.cfg:4: job.workers is out of range'
	has err.txt 'burst.cfg:5: providers.local.capacity must be a whole number'
	has err.txt 'burst.cfg:6: unknown key "spott"'
	has err.txt 'burst.cfg:6: pods is out of range'
	is "$(json '.errors | length')" 6 "errors of the object"
	last_json "six mistakes"
	# of the script and of what else the job names, too
	JOB='' LOCAL='' config 'code = { path = "nowhere"; };'
	printf '{"id":"a","text":""}\n{"id":"b","text":"One."}\n{"id":"c","text":"Two.","options":{"speed":1}}\n' >script.jsonl
	burst run
	is "$STATUS" 2 "exit status"
	is "$(cut -d: -f2,3 err.txt | tr -d ' ' | tr '\n' ,)" "burst.cfg:6,script.jsonl:1,script.jsonl:3," "mistakes"
	burst doctor
	is "$STATUS" 1 "doctor's exit status"
	has out.txt "bad  burst.cfg:6: code.path"
	has out.txt "bad  script.jsonl:3: options: speed is 1"
}
t_ten_mistakes_of_all_stages() { # of values, the engine, files, the script, a provider and its wishes: ten lines, and nothing was done
	local JOB='options = ["speed=fast"]; join = { loudness = 3; };' REHEARSE='preempt = "never"; capacity = -1;' LOCAL='' lines command
	mkdir project && cd project || return
	printf '{"id":"a","text":""}\n{"id":"b","text":"One.","options":{"speed":1}}\n' >script.jsonl
	config 'spott = true;
code = { path = "nowhere"; };
goal = "speed";
pods = 0;'
	lines=$(cat <<-'E'
		burst.cfg:4: job.join.loudness is out of range: it must be -70 to -5
		burst.cfg:4: options: speed is "fast"; espeak needs a whole number from 80 to 900
		burst.cfg:5: capacity must not be negative
		burst.cfg:5: preempt = "never": must be "spot" or "all"
		burst.cfg:6: unknown key "spott", did you mean "spot"?
		burst.cfg:7: code.path: $PWD/nowhere: No such file or directory
		burst.cfg:8: goal = "speed": it must be "cost", "time" or "balanced"
		burst.cfg:9: pods is out of range: it must be 1 to 1000
		script.jsonl:1: the text is empty
		script.jsonl:2: options: speed is 1; espeak needs a whole number from 80 to 900
	E
	)
	lines=${lines//'$PWD'/$PWD}
	for command in run "run --json" "run -d" plan doctor; do
		# shellcheck disable=SC2086 # words
		burst $command
		is "$STATUS" 2 "$command: exit status"
		is "$(sed 's/^burst: //' err.txt | sort)" "$lines" "what $command says"
	done
	burst run --json
	is "$(json '[.errors[].message] | sort | join("\n")')" "$lines" "errors of the object"
	is "$(json .error.message)" "$(json '.errors[0].message')" "its error is the first one"
	last_json "ten mistakes"
	is "$(ls)" "$(printf '%s\n' burst.cfg err.txt last.json out.txt schema.txt script.jsonl)" "files"
	is "$("$BURST" ledger --json)" "[]" "runs"
	is "$(ls "$BURST_STATE_DIR/volumes" 2>/dev/null)" "" "volumes"
	# what needs the values to be right is told with what else is wrong
	rm -f out.txt err.txt last.json schema.txt
	JOB='' REHEARSE='' config 'gpu = "H100"; spot = true;
pod = { cpu = 1000; memory_gb = 60000; };
code = { path = "nowhere"; };'
	sed -i '4s/script.jsonl/no.jsonl/; 4s/voice = "en"/voice = "klingon"/' burst.cfg
	burst run
	is "$STATUS" 2 "exit status"
	is "$(wc -l <err.txt)" 7 "lines ($(tr '\n' '|' <err.txt))"
	for lines in 'burst.cfg:4: ' 'no.jsonl: No such file' 'burst.cfg:6: gpu = ["H100"]' 'burst.cfg:6: spot = true' 'burst.cfg:7: pod.cpu = 1000' \
		'burst.cfg:7: pod.memory_gb = 60000' 'burst.cfg:8: code.path'; do
		has err.txt "$lines"
	done
	cd ..
}

# What a repository brings along: refused with file and line, and the command in it did not run. The same command in the
# user's own file does run, or this would prove nothing.
cloned() { # cloned KEY-LINE: a clone of a project whose burst.cfg has this line
	rm -rf clone origin
	git init -q origin
	(cd origin && script_lines 2 && config "$1" && git add . && git -c user.name=x -c user.email=x@x commit -qm x)
	git clone -q origin clone
}
stands_refused() { # stands_refused WHAT: the run in the clone is refused with the line, rents nothing, ran nothing
	(cd clone && timeout 60 "$BURST" run >../out.txt 2>../err.txt </dev/null)
	is "$?" 2 "exit status for $1"
	grep -qE "^burst: burst.cfg:6: ($1 is allowed only in your own |unknown key \"$1\")" err.txt || complain "$1: $(head -n 2 err.txt)"
	[ ! -e "$T/pwned" ] || complain "the project's $1 ran a command here"
}
t_project_may_not_lead_keys_astray() {
	local name key
	mkdir -p home/.config/burst
	echo "on_exit = \"touch $T/pwned\";" >home/.config/burst/burst.cfg
	cloned ''
	(cd clone && timeout 60 "$BURST" run >../out.txt 2>../err.txt </dev/null) || complain "the user's own: $(tail -n 1 err.txt)"
	[ -e pwned ] || complain "a command of the user's own file did not run"
	rm -f pwned home/.config/burst/burst.cfg
	cloned "on_exit = \"touch $T/pwned\";"
	stands_refused on_exit
	has err.txt "a project must not run commands here, redirect keys or grant itself access"
	cloned "plugins = [\"$T/evil.so\"];"
	stands_refused plugins
	for name in $("$BURST" words run -p "" | sed 1d | cut -f 1); do
		[ "$name" != local ] || continue
		for key in api_key_command api_url api_key server_url s3_url; do
			cloned "providers = { $name = { $key = \"touch $T/pwned\"; }; };"
			sed -i '/providers = { local/d; s/^provider = .*/provider = "'"$name"'";\n/' clone/burst.cfg
			stands_refused "providers.$name.$key"
		done
	done
	is "$("$BURST" ledger --json | jq length)" 1 "runs: only the user's own"
}

t_missing_input() {
	config
	refused 2 script.jsonl 'No such file'
	mkdir script.jsonl
	refused 2 script.jsonl
}

t_bad_segment_lines() {
	config
	printf '{"id":"a","text":"One."}\n{"id":"a","text":"Two."}\n' >script.jsonl
	refused 2 'script.jsonl:2' '"a"'
	printf '{"id":"a","text":"One."}\n{"id":"../a","text":"Two."}\n' >script.jsonl
	refused 2 'script.jsonl:2'
	printf '{"id":"a","text":""}\n' >script.jsonl
	refused 2 'script.jsonl:1' 'empty'
	printf '{"id":"a","text":"One."}\n{"id":"b","text":"T\377wo."}\n' >script.jsonl
	refused 2 'script.jsonl:2' 'UTF-8'
	printf '{"id":"a","text":"One.","voice":"klingon"}\n' >script.jsonl
	refused 2 'script.jsonl:1' 'klingon'
	printf '{"id":"a","text":"One."\n' >script.jsonl
	refused 2 'script.jsonl:1'
	printf '\n' >script.jsonl
	refused 2 'script.jsonl'
	printf '{"id":"a","text":"A guest from Москва."}\n{"id":"b","text":"Добрый вечер, John."}\n' >script.jsonl
	ENGINE=chatterbox
	config
	sed -i 's/ voice = "en";//' burst.cfg
	refused 2 'script.jsonl:2' 'is written in Cyrillic letters, which no language of chatterbox has'
}

t_one_job_runs_once() {
	script_lines 600
	config
	burst_bg run
	wait_for 40 "a file" file_count out 1
	cp out.txt first-out.txt
	STATUS=0
	"$BURST" run --json >out2.txt 2>err2.txt </dev/null || STATUS=$?
	is "$STATUS" 7 "the same job again"
	has err2.txt 'job "e2e" is already running'
	sed 's/name = "e2e"/name = "other"/' burst.cfg >other.cfg
	STATUS=0
	"$BURST" run other.cfg --json >out3.txt 2>err3.txt </dev/null || STATUS=$?
	is "$STATUS" 7 "another job into the same folder"
	has err3.txt "output $T/out: another run is writing there"
	for f in out2.txt out3.txt; do
		is "$(grep -c '^{' $f)" 1 "objects in $f"
		schema run $f
	done
	kill -TERM "$PID"
	burst_wait
	is "$STATUS" 143 "the first"
}

t_json_whatever_the_exit() {
	script_lines 3
	config
	burst run --json
	is "$STATUS" 0 done
	last_json 0
	burst run --json
	last_json "0, cached"
	config 'caps = 1;'
	burst run --json
	is "$STATUS" 2 "bad config"
	last_json 2
	script_lines 4
	LOCAL='capacity = 0;'
	config 'wait = "2s";'
	burst run --json
	is "$STATUS" 4 "no capacity ($(tail -n 1 err.txt))"
	last_json 4
	LOCAL=''
	config
	rm -rf out
	JOB='worker = "exit 3";'
	config
	burst run --json
	is "$STATUS" 1 "a worker that ends ($(tail -n 1 err.txt))"
	last_json 1
}

t_price_above_the_cap() {
	script_lines 2
	config
	sed -i 's/max_cost = 1.00;/max_cost = 1.00; max_price_per_hour = 0.10;/' burst.cfg
	LIMIT=30 burst run --json # not ten minutes: it is no shortage
	is "$STATUS" 5 "exit status ($(tail -n 1 err.txt))"
	has err.txt 'burst.cfg:3: caps.max_price_per_hour is $0.1000, but the cheapest matching pod costs $0.6900 an hour (local): raise the cap'
	last_json 5
	is "$(json .cost_usd)" 0 cost
	is "$(json .status)" capped status
	burst plan
	has err.txt 'every offer is above caps.max_price_per_hour: the cheapest costs $0.6900 an hour'
	burst doctor
	is "$STATUS" 1 "doctor's exit status"
	# one that is below is rented all the same
	rehearse
	sed -i 's/local/local_play/; s/price_per_hour = 0.69;/price_per_hour = 0.69; spot_price_per_hour = 0.05;/; 1s/^/spot = true; /' burst.cfg
	burst run --json
	is "$STATUS" 0 "a cheaper one: exit status ($(tail -n 1 err.txt))"
}

slow_job() { # a second for each line
	slow_worker SLOW=1
	config 'code = { path = "code"; };'
}
t_cost_cap_is_kept() {
	script_lines 90
	slow_job
	sed -i 's/max_cost = 1.00/max_cost = 0.20/; s/price_per_hour = 0.69/price_per_hour = 20.0/' burst.cfg
	burst run --json
	is "$STATUS" 5 "exit status ($(tail -n 1 err.txt))"
	is "$(json .status)" capped status
	is "$(json '.cost_usd > 0 and .cost_usd <= 0.20')" true "spending below the cap ($(json .cost_usd))"
	is "$(json '[.pods[].released] | all')" true "all released"
	[ "$(wavs)" -ge 1 ] || complain "nothing was rendered"
	last_json 5
}

t_a_small_cap_is_not_shared_out() { # of four pods none would live for long enough to render anything
	script_lines 12
	REHEARSE='boot_delay = "3s";' slow_job
	sed -i 's/max_cost = 1.00/max_cost = 0.06/; s/price_per_hour = 0.69/price_per_hour = 3.6/; s/^volume/pods = 4; &/' burst.cfg
	burst run --json
	is "$STATUS" 0 "exit status ($(tail -n 1 err.txt))"
	is "$(wavs)" 12 files
	is "$(json '.cost_usd <= 0.06')" true "spending below the cap ($(json .cost_usd))"
	is "$(json '.pods | length')" 1 pods
}

t_duration_cap_is_kept() {
	script_lines 60
	slow_job
	sed -i 's/max_duration = "10m"/max_duration = "12s"/' burst.cfg
	local began=$SECONDS
	burst run --json
	is "$STATUS" 5 "exit status ($(tail -n 1 err.txt))"
	is "$(json .status)" capped status
	[ $((SECONDS - began)) -le 14 ] || complain "it took $((SECONDS - began)) s"
	last_json 5
}

t_a_machine_without_libcurl() { # nothing is begun, and it is said which package is missing
	script_lines 3
	config
	sed 's/libcurl\.so\.4/libcurl.so.X/' "$BURST" >without
	chmod 755 without
	BURST=$PWD/without burst run
	is "$STATUS" 1 "exit status"
	grep -q 'libcurl\.so\.X cannot be loaded.*apt install libcurl4' err.txt || complain "said: $(tail -n 2 err.txt)"
	burst ps --json
	is "$(jq length out.txt)" 0 "runs that were begun"
}

run_tests "$@"
