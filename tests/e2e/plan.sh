#!/bin/bash
# plan.sh - what burst decides before it rents, and how it says so.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/plan_lib.sh"

t_impossible_wishes_rent_nothing() {
	local now
	script_lines 20
	config
	while IFS='|' read -r flags status words; do
		# shellcheck disable=SC2086
		burst run $flags
		is "$STATUS" "$status" "run $flags"
		has err.txt "$words"
	done <<-'E'
		--deadline 1s|5|no plan finishes by then in nine runs of ten
		--deadline soon|2|it must be a duration ("20m") or a time of day ("07:00")
		--deadline 24:61|2|it must be a duration
		--goal speed|2|it must be "cost", "time" or "balanced"
		--goal balanced|2|needs value_of_time
	E
	is "$("$BURST" ledger --json)" "[]" "runs"
	# a time of day is one that comes
	now=$(date -d '+2 hours' +%H:%M)
	burst plan --deadline "$now"
	is "$STATUS" 0 "a time of day ($(tail -n 1 err.txt))"
	has out.txt "plan: 1 pod"
}
t_a_cap_for_fewer_pods_is_told_before_renting() { # and plan and run agree about a cap that pays for none
	script_lines 40
	config 'pods = 4;'
	burst run --max-cost 0.06
	is "$STATUS" 0 "exit status ($(tail -n 2 err.txt))"
	is "$(grep -nE 'caps.max_cost = \$0.06.* pays for 1 of 4 pods at a time|booting|renting' err.txt | head -n 1 | grep -c 'pays for 1')" 1 \
		"a line before anything is rented ($(head -n 3 err.txt | tr '\n' '|'))"
	is "$(ledger 'select count(*) from pod')" 1 pods
	burst run --anew --force --max-cost 1
	hasnt err.txt "pods at a time"
	LOCAL='price_per_hour = 5.0;'
	config 'pods = 1;'
	sed -i 's/price_per_hour = 0.69;//' burst.cfg
	rm -rf out
	burst plan --max-cost 0.014
	is "$STATUS" 5 "plan with a cap that pays for no pod ($(tail -n 2 err.txt | tr '\n' '|'))"
	local said
	said=$(grep 'does not pay for one pod' err.txt)
	burst run --anew --force --max-cost 0.014
	is "$STATUS" 5 "run with that cap"
	is "$(grep 'does not pay for one pod' err.txt)" "$said" "what both say"
	is "$(ledger 'select count(*) from run')" 2 "runs that began"
	burst plan --max-cost 0.05
	is "$STATUS" 0 "plan with a cap that pays for one ($(tail -n 2 err.txt | tr '\n' '|'))"
}

t_a_clearly_better_choice_is_named() {
	local line gpus
	script_lines 60
	ENGINE='own' JOB='worker = "true"; vram_gb = 8; estimate = { gpu = "RTX 4090"; once = 2; longest = 0.02; each = 0.004; };'
	REHEARSE='gpu_prices = ["L4=0.80", "H100 SXM=3.95"];'
	config 'gpu = "H100 SXM";'
	burst plan --json
	schema plan
	is "$(json '.better | "\(.gpu) \(.provider) \(.pods)"')" "L4 local_play 1" "the better choice"
	is "$(json '.better.cost_usd <= 0.8 * .pick.cost_usd')" true "a fifth cheaper"
	line=$(json .better.text)
	grep -qE '^1 pod of H100 SXM at local_play costs \$[0-9.]+; 1 pod of L4 at local_play would cost \$[0-9.]+ and take [0-9.ms]+ longer$' <<<"$line" ||
		complain "its words: $line"
	burst plan
	has out.txt "better: $line"
	# of several cards the first one is planned, as it is what a run rents
	for gpus in 'H100 SXM,L4' 'L4,H100 SXM'; do
		burst plan --json --gpu "$gpus"
		is "$(json .pick.gpu)" "${gpus%,*}" "the plan of $gpus"
	done
	# what is best as it is needs no word, and a deadline is kept: one pod of the cheaper card would miss it
	burst plan --json --gpu L4
	is "$(json .better)" null "for the cheapest card"
	burst plan --json --deadline "$(json '.pick.makespan_p90_s * 0.95 | floor')s"
	is "$(json '"\(.verdict) \(.pick.gpu): \(.better.pods) \(.better.gpu)"')" "found H100 SXM: 2 L4" "in time"
	# a run says so once, and keeps what it was told
	ENGINE=espeak JOB='' REHEARSE='boot_delay = "500ms"; gpu_prices = ["L4=8.00", "H100 SXM=39.5"];'
	config 'gpu = ["H100"];'
	burst run --json
	is "$STATUS $(json '.pods[0].gpu')" "0 H100 SXM" "a run ($(tail -n 1 err.txt))"
	is "$(grep -cE '^better: 1 pod of H100 SXM at local_play costs .*; 1 pod of .* would cost .* and take ' err.txt)" 1 "what it says ($(grep better err.txt))"
	rm -rf out
	burst run --quiet
	hasnt err.txt "better:"
}

# ---- what cannot be planned: one clear line, for a run and a plan, with and without --json, and nothing is rented ----
# WHO: both, plan, or run; KIND: what burst.cfg is made from: quick (espeak), own (an engine nobody knows), gpu (that engine on cards),
# chatterbox. WORDS: parts of the one line, with ";" between. PAST stands for a time of day an hour ago.
bad_plans() {
	cat <<-'E'
		both|quick||--goal speed|2|--goal: goal = "speed": it must be "cost", "time" or "balanced"
		both|quick|goal = "speed";||2|burst.cfg:6: goal = "speed": it must be
		both|quick||--goal balanced|2|goal = "balanced" needs value_of_time
		both|quick|deadline = "soon";||2|burst.cfg:6: deadline = "soon": it must be a duration ("20m") or a time of day ("07:00")
		both|quick||--deadline 0s|2|--deadline: deadline = "0s": it must be longer than 0
		both|quick||--deadline -5m|2|--deadline: deadline = "-5m": it must be
		both|quick||--deadline PAST|5|--deadline: deadline = "PAST": that was ; ago; give a later time;nothing was rented
		both|quick|deadline = "PAST";||5|burst.cfg:6: deadline = "PAST": that was
		both|quick||--deadline 1s|5|no plan finishes by then in nine runs of ten; booting a pod alone takes ;(no GPU at local: prior);the fastest plan takes;nothing was rented
		both|own||--deadline 1s|5|no plan finishes by then in nine runs of ten; booting a pod alone takes
		both|quick||--max-cost 0.00001|5|caps.max_cost = $0.000010 is spent before a pod is ready: booting takes;(no GPU at local, $0.6900 an hour: prior); raise it
		both|own||--max-cost 0.00001|5|caps.max_cost = $0.000010 is spent before a pod is ready
		both|quick|pod = { cpu = 1; }; caps = { max_cost = 1.00; max_price_per_hour = 0.10; };||5|burst.cfg:6: ;caps.max_price_per_hour;$0.6900 an hour
		both|gpu|||2|burst.cfg:4: the job needs a GPU with 100 GB of memory, and the largest of gpu_prices has 24 GB
		both|chatterbox|||2|the job needs a GPU with 8 GB of memory, and pods on this machine have no GPU;; chatterbox needs 3.7 GiB for one segment
		plan|chatterbox||--offers small.json -p runpod|4|no offer has enough GPU memory: the job needs 8 GB, and the most that is offered is 6 GB (RTX 3050 at runpod): 2 GB are missing
		plan|own|||2|no estimate: the speed of engine "test" is not known on any of these offers yet; `burst calibrate` measures it, and so does `burst run`
		plan|quick||--offers none.json|4|no provider offers what the job needs now
		plan|quick||--offers absent.json|2|--offers: absent.json: No such file or directory
		plan|quick||--list-prices -p runpod --gpu RTX-4091|2|gpu = "RTX-4091": none of these offers has it, and no card has this name, did you mean "RTX 4090"?
		plan|quick||--list-prices -p runpod --gpu L40S:0|2|--gpu: gpu = "L40S:0": it must be a GPU, or a GPU and how many of 1 to 64
	E
}
bad_plan() { # bad_plan COMMAND KIND LINE FLAGS STATUS WORDS
	local words command=$1 what="$1 $2 $3 $4" ENGINE=espeak JOB='' REHEARSE=''
	case $2 in
	own) ENGINE='test' JOB='worker = "true"; check = { enabled = false; };' ;;
	gpu) ENGINE='test' JOB='worker = "true"; vram_gb = 100;' REHEARSE='gpu_prices = ["T4=0.59", "L4=0.80"];' ;;
	chatterbox) ENGINE=chatterbox ;;
	esac
	config "$3"
	[ "$2" != chatterbox ] || sed -i 's/voice = "en"; //' burst.cfg
	case $3 in *caps*) sed -i 3d burst.cfg && sed -i '2a\\' burst.cfg ;; esac
	# shellcheck disable=SC2086 # words
	burst $command $4
	is "$STATUS" "$5" "$what: exit status ($(tail -n 2 err.txt))"
	is "$(grep -c '^burst: ' err.txt)" 1 "$what: lines ($(tr '\n' '|' <err.txt))"
	IFS=';' read -ra words <<<"$6"
	for words in "${words[@]}"; do has err.txt "$words"; done
	words=$(sed -n 's/^burst: //p' err.txt)
	# shellcheck disable=SC2086
	burst $command --json $4
	is "$STATUS" "$5" "$what --json: exit status"
	is "$(grep -c '^{' out.txt)" 1 "$what: objects"
	schema "$command"
	is "$(json '.errors | length')" 1 "$what: errors"
	is "$(json '.error.message == .errors[0].message')" true "$what: its error"
	case $5$2 in 5quick | 5own) ;; *) is "$(json .error.message)" "$words" "$what: the object's words" ;; esac
}
t_what_cannot_be_planned_is_told_in_one_line() {
	local who kind line flags status words command past
	past=$(date -d '1 hour ago' +%H:%M)
	"$BURST" ledger >/dev/null
	script_lines 3
	echo '[{"provider":"runpod","id":"a","gpu":"RTX 3050","gpus":1,"vram_gb":6,"region":"EU","spot":false,"price_usd_hour":0.16},
	  {"provider":"runpod","id":"b","gpu":"GTX 1650","gpus":1,"vram_gb":4,"region":"EU","spot":false,"price_usd_hour":0.09}]' >small.json
	echo '[]' >none.json
	while IFS='|' read -r who kind line flags status words; do
		for command in run plan; do
			[ "$who" = both ] || [ "$who" = $command ] || continue
			bad_plan "$command" "$kind" "${line//PAST/$past}" "${flags//PAST/$past}" "$status" "${words//PAST/$past}"
		done
	done < <(bad_plans)
	is "$("$BURST" ledger --json)" "[]" "runs"
	is "$(ledger "select count(*) from pod")" 0 "pods"
	# a run measures what a plan does not know, and is refused for no deadline that a pod can keep
	slow_worker
	config 'code = { path = "code"; };'
	ENGINE='' JOB=''
	burst run -n
	is "$STATUS" 0 "run -n ($(tail -n 1 err.txt))"
	has out.txt "3 segments, 3 to render; no estimate yet: the run measures it"
	burst run --deadline 10m
	is "$STATUS" 0 "a run without an estimate ($(tail -n 2 err.txt))"
	is "$(wavs)" 3 "files"
}

# The whole page of a plan, as it was looked at: the quiz, an engine that renders a batch at once, five cards at this machine.
# UPDATE=1 writes it anew.
t_the_quiz_on_five_cards() {
	local golden=$ROOT/tests/e2e/plan_quiz.txt
	cp "$ROOT/config/examples/quiz/quiz.jsonl" script.jsonl
	ENGINE='own'
	JOB='worker = "true"; max_batch = 80; estimate = { gpu = "RTX 4090"; once = 0.5; longest = 0.02; each = 0.0008; vram_base = 14.9; vram_each = 0.11; };'
	REHEARSE='capacity = 64; gpu_prices = ["T4=0.59", "L4=0.80", "RTX 4090=0.69", "A100 80GB SXM=1.79", "H100 SXM=3.95"];'
	config 'volume = { name = ""; };'
	sed -i '/^volume = { name = "v"/d' burst.cfg
	burst plan --explain --what-if
	is "$STATUS" 0 "plan ($(tail -n 1 err.txt))"
	sed 's/[0-9]\{4\}-[0-9][0-9]-[0-9][0-9]/DAY/' out.txt >plan.txt
	[ -z "${UPDATE:-}" ] || cp plan.txt "$golden"
	cmp -s plan.txt "$golden" || complain "it differs from tests/e2e/plan_quiz.txt: $(diff plan.txt "$golden" | head -n 4 | tr '\n' '|')"
	# charts fit a terminal
	is "$(grep '#' out.txt | awk 'length > 80' | wc -l)" 0 "bars that are too long"
}

t_sources_are_whole_sentences() {
	script_lines 30
	ENGINE=chatterbox-turbo
	config
	sed -i 's/voice = "en"; //; s/provider = "local"/provider = "runpod"/' burst.cfg
	burst plan --list-prices --explain
	is "$STATUS" 0 "plan ($(tail -n 1 err.txt))"
	has out.txt "(prior: computed from the models' shapes, 2026-11; memory as published for vLLM; never run on a GPU, computed from RTX 3090)"
}
t_list_prices() {
	script_lines 30
	config
	sed -i '/provider = "local"/d' burst.cfg # no wish for a provider
	burst plan --list-prices --explain
	is "$STATUS" 0 "plan ($(tail -n 1 err.txt))"
	has out.txt "(list prices, RunPod between 2025-07 and 2026-11, Modal in 2026-09)"
	has out.txt "RTX A5000 at runpod"
	burst plan --list-prices --json --gpu T4
	schema plan
	# the card, four cores and 16 GB, in a sandbox of Modal's
	is "$(json '[.pick.provider, .pick.price_usd_hour] | @csv')" '"modal",1.67' "the T4 that is listed"
	burst plan --list-prices --budget 0.001
	has out.txt "no plan costs at most"
	# only providers of the config
	burst plan --list-prices --json -p runpod --gpu L40S
	is "$(json '[.pick.provider, .pick.price_usd_hour, .pick.gpus] | @csv')" '"runpod",0.86,1' "one L40S at runpod"
	burst plan --list-prices --json -p runpod --gpu L40S:2
	is "$(json '[.pick.provider, .pick.price_usd_hour, .pick.gpus] | @csv')" '"runpod",1.72,2' "two L40S"
	schema plan
	burst plan --list-prices -p runpod --gpu L40S:2
	has out.txt "plan: 1 pod of L40S:2 at runpod: "
	has out.txt "cards: a pod has and bills 2, and the plan counts the time of one"
	burst plan --list-prices -p runpod
	hasnt out.txt " at modal"
	burst plan --list-prices -p local
	is "$STATUS" 4 "a provider without list prices"
	sed -i 's/providers = {/providers = { runpod = { cloud = "COMMUNITY"; };/' burst.cfg
	sed -i '/^volume/d' burst.cfg
	burst plan --list-prices --json -p runpod --gpu L40S
	is "$(json .pick.price_usd_hour)" 0.79 "of the other cloud"
}

t_offline_with_saved_offers() {
	script_lines 30
	config
	cat >offers.json <<-'E'
		[{"provider":"runpod","id":"a","gpu":"RTX A5000","gpus":1,"vram_gb":24,"region":"EU","spot":false,"price_usd_hour":0.16},
		 {"provider":"runpod","id":"b","gpu":"RTX 4090","gpus":1,"vram_gb":24,"region":"EU","spot":false,"price_usd_hour":0.34},
		 {"provider":"modal","id":"c","gpu":"T4","gpus":1,"vram_gb":16,"region":"","spot":false,"price_usd_hour":1.59}]
	E
	sed -i '/provider = "local"/d' burst.cfg # no wish for a provider
	burst plan --offers offers.json --explain --what-if
	is "$STATUS" 0 "plan ($(tail -n 1 err.txt))"
	has out.txt "RTX A5000 at runpod"
	has out.txt "cost per segment by GPU"
	has out.txt "(prior: espeak-ng on one core, 2026-11)"
	has out.txt "(offers saved on $(date -u +%Y-%m-%d))"
	has out.txt "x10"
	burst plan --offers offers.json --json
	schema plan
	is "$(json '.front[0].gpu')" "RTX A5000" "the cheapest"
	burst plan --offers offers.json --json --goal time
	is "$(json '.pick.provider')" modal "the fastest to come up"
	burst offers --json
	cp out.txt own.json
	burst plan --offers own.json
	is "$STATUS" 0 "with what burst offers has said ($(tail -n 1 err.txt))"
	echo '{"not":"a list"}' >offers.json
	burst plan --offers offers.json
	is "$STATUS" 2 "no list"
	echo '[{"provider":"runpod","gpu":"T4"}]' >offers.json
	burst plan --offers offers.json
	is "$STATUS" 2 "no price"
	has err.txt "offer 1: provider, gpu or price_usd_hour is missing or wrong"
}

# ---- a plan uses what a run would rent ----

# Each offer but the first is one that a run would not rent for the reason on the line, which the plan names; it is cheaper, so that a plan
# which takes all offers takes it. NOTE "-": it is not left out, but planned with when the flags ask for it.
narrowing() {
	cat <<-'E'
		RTX 4090|RTX 3090|.spot = true||1 offer is left out: a spot pod, and spot is false (--spot)
		RTX 3090|RTX 3090|.spot = true|--spot|-
		RTX 4090|RTX 3090|.stock = "none"||1 offer is left out: out of stock
		RTX 4090|RTX 3090|.|--gpu RTX4090|1 offer is left out: not of a GPU, or a number of them, that gpu asks for
		RTX 4090|RTX 3090|.gpus = 2||1 offer is left out: not of a GPU, or a number of them, that gpu asks for
		RTX 3090|RTX 3090|.gpus = 2|--gpu RTX3090:2|-
		RTX 4090|RTX 3090|.provider = "modal"||1 offer is left out: at a provider that is not in provider
		RTX 3090|RTX 3090|.provider = "modal"|-p modal|-
		RTX 4090|RTX 3090|.id = "COMMUNITY/EU/1/x"||1 offer is left out: not in the cloud or data centers of providers.runpod
		RTX 4090|RTX 3090|.avoided = {"until": "2099-01-01T00:00:00Z"}||1 offer is left out: avoided, since its last pod was bad
		RTX 3090|RTX 3090|.avoided = {"until": "2020-01-01T00:00:00Z"}||-
		RTX 4090|Foo 9000|.||left out: Foo 9000 at runpod: speed unknown: burst does not know this card; --gpu NAME rents it all the same
		RTX 4090|Foo 9000|.|--gpu RTX4090,Foo9000|not planned with: Foo 9000 at runpod: speed unknown
	E
}
t_a_plan_uses_what_a_run_would_rent() {
	local right other change flags note
	script_lines 500
	own_engine
	config
	sed -i 's/provider = "local"/provider = "runpod"/; /^volume/d; s/"10m"/"1h"/' burst.cfg
	while IFS='|' read -r right other change flags note; do
		jq -s . <(offer runpod "RTX 4090" 0.50) <(offer runpod "$other" 0.10 "$change") >offers.json
		# shellcheck disable=SC2086
		burst plan --offers offers.json $flags
		is "$STATUS" 0 "$other, $change, $flags ($(tail -n 1 err.txt))"
		[ "$note" = - ] || cat out.txt err.txt | grep -qF -- "$note" || complain "$other, $change: no word of it: $(cat err.txt)"
		# shellcheck disable=SC2086
		burst plan --offers offers.json --json $flags
		schema plan
		is "$(json .pick.gpu)" "$right" "planned for $other, $change, $flags"
	done < <(narrowing)
	# avoided offers are better than none
	jq -s . <(offer runpod "RTX 3090" 0.10 '.avoided = {"until": "2099-01-01T00:00:00Z"}') >offers.json
	burst plan --offers offers.json --json
	is "$(json .pick.gpu)" "RTX 3090" "the only one"
	# a cap on the price refuses, as it does when providers are asked
	sed -i 's/caps = {/caps = { max_price_per_hour = 0.05;/' burst.cfg
	burst plan --offers offers.json
	is "$STATUS" 5 "a cap below all"
	has err.txt 'every offer is above caps.max_price_per_hour: the cheapest costs $0.1000 an hour (RTX 3090 at runpod)'
	sed -i 's/max_price_per_hour = 0.05;//' burst.cfg
	# at no provider of the config
	jq -s . <(offer modal L4 0.50) >offers.json
	burst plan --offers offers.json
	is "$STATUS" 4 "offers of others"
	has err.txt 'none of these offers is at a provider of this job; name another one, as in -p modal'
}
t_a_card_that_nobody_knows() {
	script_lines 50
	own_engine
	config
	sed -i 's/provider = "local"/provider = "runpod"/; /^volume/d' burst.cfg
	jq -s . <(offer runpod "Foo 9000" 0.10) >offers.json
	burst plan --offers offers.json
	is "$STATUS" 4 "only an unknown card"
	has err.txt 'no card on offer can run the job: Foo 9000 at runpod: speed unknown: burst does not know this card; --gpu NAME rents it all the same'
	burst plan --offers offers.json --gpu "Foo 9000"
	is "$STATUS" 2 "it is named"
	has err.txt 'no estimate: the speed of engine "own" is not known on Foo 9000 at runpod yet'
	# times that hold for all cards hold for it, too
	own_engine 'once = 1; each = 0.0018;'
	config
	sed -i 's/provider = "local"/provider = "runpod"/; /^volume/d' burst.cfg
	burst plan --offers offers.json --json
	is "$(json .pick.gpu)" "Foo 9000" "with times of no card"
	# the reference itself must be known
	own_engine 'gpu = "RTX 409"; each = 0.0018;'
	config
	for command in plan run; do
		burst $command
		is "$STATUS" 2 "$command: an unknown reference"
		has err.txt 'burst.cfg:4: job.estimate.gpu: "RTX 409" is unknown, did you mean "RTX 4090"?'
	done
}
t_a_card_without_bf16() {
	local command
	script_lines 50
	ENGINE=qwen3
	REHEARSE='gpu_prices = ["T4=0.10", "L4=0.80"];'
	config
	sed -i 's/voice = "en"; //; /^volume/d' burst.cfg
	burst plan --json
	is "$(json '[.pick.gpu, (.cards_left_out[] | "\(.gpu): \(.why)")] | join("; ")')" "L4; T4: it has no BF16, in which the engine computes" "the plan"
	burst plan
	has out.txt 'left out: T4 at local_play: it has no BF16, in which the engine computes'
	for command in plan run; do
		burst $command --gpu T4
		is "$STATUS" 4 "$command: T4 alone"
		has err.txt 'no card on offer can run the job: T4 at local_play: it has no BF16, in which the engine computes; name other GPUs in gpu'
	done
	is "$("$BURST" ledger --json)" "[]" "runs"
	# an engine that needs none takes it
	ENGINE=kokoro
	config
	sed -i 's/voice = "en"; //; /^volume/d' burst.cfg
	burst plan --json --gpu T4
	is "$(json .pick.gpu)" T4 "without that need"
}
t_what_a_card_must_have() { # in plans, runs, `burst offers` and doctor
	local command
	script_lines 50
	REHEARSE='gpu_prices = ["T4=0.10", "A100 40GB=0.20", "L4=0.80"];'
	VRAM=8 own_engine
	JOB="$JOB needs = [\"bf16\", \"nvenc\"];"
	config
	sed -i 's/voice = "en"; //; /^volume/d' burst.cfg
	burst plan --json
	is "$(json .pick.gpu)" L4 "the cheapest card with both"
	has err.txt '2 offers are left out: without what job.needs names'
	burst offers
	is "$(grep -c local_play out.txt) $(grep -c 'L4 ' out.txt)" "1 1" "offers"
	has err.txt '2 offers are left out: without what job.needs names'
	burst doctor -p local_play
	has out.txt '1 offer for this job, first L4'
	# a run, too, rents nothing else: the job fails on the card that the plan has
	LIMIT=60 burst run --json
	is "$(ledger "select group_concat(distinct gpu_offered) from pod")" L4 "cards rented"
	has err.txt '2 offers are left out: without what job.needs names'
	# the version of CUDA: asked of providers that have a filter for it; here nobody says
	sed -i 's/needs = \[.*\];/needs = ["cuda >= 12.8"];/' burst.cfg
	burst plan --json
	is "$(json .pick.gpu)" T4 "the cheapest card"
	has err.txt "job.needs: local_play: its hosts' version of CUDA is unknown; its offers stay, whether or not they support CUDA 12.8"
	# saved offers: one with too little memory
	sed -i 's/needs = \[.*\];/needs = ["vram >= 24", "compute >= 8.0"];/; s/"local_play"/"runpod"/; s/^providers.*//' burst.cfg
	{ offer runpod 'RTX 4090' 0.34; offer runpod 'RTX A4000' 0.17 '.vram_gb = 16'; offer runpod 'V100 32GB' 0.15 '.vram_gb = 32'; } | jq -s . >offers.json
	burst plan --offers offers.json --json
	is "$(json .pick.gpu)" "RTX 4090" "of saved offers"
	has err.txt '2 offers are left out: without what job.needs names'
	# a named card that lacks it, and words that are no needs
	for command in plan run; do
		burst $command --gpu T4
		is "$STATUS" 2 "$command: a named card"
		has err.txt 'gpu = "T4": it lacks compute capability, and job.needs names that; leave it out'
	done
	sed -i 's/needs = \[.*\];/needs = ["cuda 12"];/' burst.cfg
	burst plan
	is "$STATUS" 2 "no such need"
	has err.txt 'burst.cfg:3: job.needs: "cuda 12" is none of "gpu", "nvenc", "bf16", "compute >= 8.9", "vram >= 24", "cuda >= 12.8"'
}
t_the_engines_other_model() {
	local cost
	script_lines 200
	cat >burst.cfg <<-'E'
		provider = ["runpod"];
		job = { type = "tts"; engine = "qwen3"; input = "script.jsonl"; output = "out"; };
	E
	# 8 GB hold the small model alone: 93 % of them less 1 GiB are 6.44 GiB, the large one takes 6.5 + 0.12
	{ offer runpod 'RTX 3070' 0.10 '.vram_gb = 8'; offer runpod 'RTX 4090' 0.41; } | jq -s . >offers.json
	burst plan --offers offers.json --engine qwen3-1.7b --json
	cost=$(json .pick.cost_usd)
	is "$(json '.variant | "\(.engine) \(.gpu)"')" "qwen3 RTX 3070" "the smaller model"
	burst plan --offers offers.json --json
	is "$(json '.pick.gpu, .variant.engine, .variant.gpu, .variant.fits, .variant.cost_usd')" "$(printf '%s\n' 'RTX 3070' qwen3-1.7b 'RTX 4090' true "$cost")" "the larger model: as a plan for it"
	cost=$(json '((.variant.cost_usd / .pick.cost_usd - 1) * 100) | round')
	burst plan --offers offers.json
	tr '\n' ' ' <out.txt | tr -s ' ' >line.txt
	has line.txt 'other model: engine = "qwen3-1.7b" (larger: 1.7B parameters instead of 0.6B) fits RTX 4090 at runpod, costs $'
	has line.txt "($cost%) more and takes "
	has line.txt 'it does not fit RTX 3070 at runpod'
	offer runpod 'RTX 3070' 0.10 '.vram_gb = 8' | jq -s . >offers.json
	burst plan --offers offers.json
	tr '\n' ' ' <out.txt | tr -s ' ' >line.txt
	has line.txt '(larger: 1.7B parameters instead of 0.6B) fits no card on offer: it needs 6.6 GiB for one segment'
	# no word of a model that refuses this job, nor of one that is partly rendered, nor of an engine with one model
	sed -i 's/"qwen3"/"chatterbox"; options = ["cfg_weight=0.3"]/' burst.cfg
	offer runpod 'RTX 4090' 0.41 | jq -s . >offers.json
	burst plan --offers offers.json --json
	is "$STATUS $(json .variant)" "0 null" "an option that the other model does not know ($(tail -n 1 err.txt))"
	sed -i 's/ options = .*3"\];//; s/"chatterbox"/"kokoro"/' burst.cfg
	burst plan --offers offers.json --json
	is "$STATUS $(json .variant)" "0 null" "an engine with one model ($(tail -n 1 err.txt))"
}
t_slices_of_a_card() { # MIG: each with its own memory and bandwidth
	local slow
	equal_lines 200
	own_engine 'gpu = "H100 SXM"; once = 0; longest = 0.01; each = 0;'
	JOB="$JOB max_batch = 1;"
	config
	sed -i 's/voice = "en"; //; /^volume/d; s/"local"/"runpod"/; s/^providers.*//' burst.cfg
	offer runpod 'H100 MIG 1g.10gb' 0.40 '.vram_gb = 10' | jq -s . >offers.json
	burst plan --offers offers.json --json
	is "$STATUS $(json .pick.gpu)" "0 H100 MIG 1g.10gb" "a slice ($(tail -n 1 err.txt))"
	slow=$(json .pick.work_s)
	offer runpod 'H100 SXM' 0.40 '.vram_gb = 80' | jq -s . >offers.json
	burst plan --offers offers.json --json
	# 200 x 80 characters x 0.01 s; a slice of one eighth of the bandwidth takes eight times as long
	is "$(jq -n "$(json .pick.work_s) | round") $(jq -n "$slow / $(json .pick.work_s) * 10 | round")" "160 80" "work of the card, times as long on the slice"
	VRAM=15 own_engine
	config
	sed -i 's/voice = "en"; //; /^volume/d; s/"local"/"runpod"/; s/^providers.*//' burst.cfg
	offer runpod 'H100 MIG 1g.10gb' 0.40 '.vram_gb = 0' | jq -s . >offers.json
	burst plan --offers offers.json
	is "$STATUS" 4 "too small for the job"
}
t_wishes_that_a_plan_does_not_follow() {
	local alone two
	script_lines 500
	REHEARSE='gpu_prices = ["RTX 4090=0.34"];'
	own_engine
	config
	burst plan --json
	is "$STATUS" 0 "a plan ($(tail -n 1 err.txt))"
	alone=$(json .pick.work_s)
	# two workers may take turns on their card: no plan promises that they do not
	WORKERS='workers = 2;' own_engine
	config
	burst plan --json
	two=$(json .pick.work_s)
	is "$(jq -n "$two >= $alone")" true "work of two workers ($two s; of one: $alone s)"
	burst plan
	has out.txt 'workers: 2 share a card, which no run has measured: the work takes between '
	own_engine
	config
	burst plan --value-of-time 20
	is "$STATUS" 2 "a value of time without its goal"
	has err.txt '--value-of-time: value_of_time counts with goal = "balanced" alone: name that goal, or leave it out'
	burst plan --value-of-time 20 --goal balanced
	hasnt out.txt 'value_of_time'
	burst plan --pods 64
	has out.txt 'of 64, since another would still boot when the work is done; --goal time rents all at once'
	burst plan --pods 64 --goal time
	hasnt out.txt 'pods: '
	has out.txt 'plan: 64 pods'
	# 16 GB are what the card is sold with
	REHEARSE='gpu_prices = ["RTX A4000=0.17"];'
	VRAM=15 own_engine
	config
	burst plan
	has out.txt 'memory: 15 GB are compared with what cards are sold with; of the 16 GB of RTX A4000 a program can use 13.88 GiB'
	# a run says so, too
	ENGINE=espeak JOB='' REHEARSE=''
	script_lines 2
	config 'value_of_time = 20.0;'
	burst run --goal time
	is "$STATUS" 2 "a value of time in the project's file, without its goal"
	has err.txt 'value_of_time counts with goal = "balanced" alone: name that goal, or leave it out'
	config
	mkdir -p "$XDG_CONFIG_HOME/burst"
	echo 'value_of_time = 20.0;' >>"$XDG_CONFIG_HOME/burst/burst.cfg" # for all jobs
	burst run
	is "$STATUS" 0 "a run ($(tail -n 1 err.txt))"
	has err.txt 'value_of_time: $20.00 an hour counts for nothing'
}

t_nothing_fits() {
	script_lines 3
	ENGINE='chatterbox'
	config 'gpu = ["T4"];'
	sed -i 's/voice = "en"; //' burst.cfg
	echo '[{"provider":"runpod","id":"a","gpu":"RTX 3050","gpus":1,"vram_gb":4,"region":"EU","spot":false,"price_usd_hour":0.16}]' >offers.json
	burst plan --offers offers.json -p runpod --gpu 'RTX 3050'
	is "$STATUS" 4 "a card that is too small"
	has err.txt "the job needs 8 GB"
}

# Cards that the config names are known by their labels: no provider is asked, nor a key needed.
t_cards_that_are_too_small_are_told() {
	local command
	script_lines 3
	ENGINE=qwen3-1.7b
	config 'gpu = ["RTX 3070", "RTX 3070:1"];'
	sed -i 's/voice = "en"; //; s/provider = "local"/provider = "runpod"/' burst.cfg
	for command in run plan 'run -n'; do
		# shellcheck disable=SC2086 # words
		burst $command
		is "$STATUS" 2 "$command: exit status ($(tail -n 2 err.txt))"
		has err.txt 'burst.cfg:6: the job needs a card with 12 GB of memory, and RTX 3070 has 8 GB, RTX 3070 has 8 GB; qwen3-1.7b needs 6.6 GiB for one segment'
	done
	sed -i 's/"RTX 3070:1"/"RTX 3070:2"/' burst.cfg
	burst plan
	hasnt err.txt 'the job needs a card'
	sed -i 's/qwen3-1.7b"/qwen3"; workers = 4/; s/"RTX 3070:2"/"Abacus 9"/' burst.cfg
	burst plan
	hasnt err.txt 'the job needs a card'
	sed -i 's/, "Abacus 9"//' burst.cfg
	burst plan
	has err.txt 'the job needs a card with 21 GB of memory, and RTX 3070 has 8 GB; 4 workers of qwen3 need 18.5 GiB for one segment each'
}

# A GPU that waits for downloads bills for nothing; a volume can be filled by a pod without one.
t_downloads_of_a_gpu_pod_are_told() {
	script_lines 60
	ENGINE=chatterbox
	REHEARSE='gpu_prices = ["RTX 4090=0.69"];'
	config
	burst plan
	is "$STATUS" 2 "a voice without a folder of samples"
	is "$(grep -c en.wav err.txt)" 1 "lines about it ($(cat err.txt))"
	sed -i '/voice *=/s/voice *= *"en";//' burst.cfg
	burst plan
	is "$STATUS" 0 "plan ($(tail -n 1 err.txt))"
	has out.txt 'set-up: a pod without a GPU fetches about '
	has out.txt 'MB to volume v before GPUs are rented'
	sed -i 's/output = "out";/output = "out"; setup = "true";/' burst.cfg # one's own may compile for the card
	burst plan
	has out.txt 'MB to volume v and bills 3m50s, $0.0441, meanwhile; `burst volume warm v` does it on a pod without a GPU'
	sed -i 's/setup = "true";/setup = "true"; setup_needs_gpu = false;/' burst.cfg
	burst plan
	has out.txt 'set-up: a pod without a GPU fetches about '
	sed -i '/^volume/d' burst.cfg
	burst plan
	has out.txt 'set-up: each GPU pod fetches about '
	has out.txt 'meanwhile; later runs find it there if the config names a volume'
	ENGINE=espeak
	config
	burst plan
	is "$STATUS" 0 "plan for espeak"
	hasnt out.txt 'set-up:'
}

# 31 s of a pod at $3 an hour: 21 s of life, half of which pays for no pod, so that no share is kept for a second one. A second less pays
# for none that could end itself in time.
t_plan_and_run_have_one_answer_to_a_small_cap() {
	local cap
	script_lines 8
	for cap in 0.0259 0.0166; do
		rm -rf out
		config 'pods = "auto"; deadline = "10m";'
		sed -i "s/max_cost = 1.00/max_cost = $cap/; s/price_per_hour = 0.69/price_per_hour = 3.00/" burst.cfg
		burst plan
		planned=$STATUS
		burst run
		is "$STATUS" "$planned" "run with max_cost = $cap ($(tail -n 1 err.txt))"
		[ "$cap" = 0.0166 ] || is "$planned" 0 "plan with max_cost = $cap"
	done
	is "$planned" 5 "plan with max_cost = $cap"
	# what a cap of the day leaves counts in both
	rm -rf out
	config 'pods = "auto"; deadline = "10m";'
	sed -i 's/max_cost = 1.00/max_cost = 0.03; per_day = 0.0167/; s/price_per_hour = 0.69/price_per_hour = 3.00/' burst.cfg
	burst plan
	is "$STATUS" 5 "plan with what is left of the day ($(tail -n 1 err.txt))"
	burst run
	is "$STATUS" 5 "run with what is left of the day ($(tail -n 1 err.txt))"
}
# What a run costs beside the price of its pods, and that a pod which was taken is remembered.
t_costs_beside_the_pods() {
	script_lines 20
	REHEARSE='spot_price_per_hour = 0.30; egress_price = 1000.0; preempt_after = "4s";'
	slow_worker SLOW=0.3 MAX_BATCH=1
	JOB+=' max_batch = 1; estimate = { each = 0.006; };'
	config 'spot = true; pods = 1; code = { path = "code"; };'
	burst plan --explain
	has out.txt "interruptions: every 8h00m (a guess until the first pods ran)"
	has out.txt "a run (0.0"
	burst run
	is "$STATUS" 0 "run ($(tail -n 2 err.txt))"
	[ "$(ledger "select count(*) from pod where preempted and spot")" -ge 1 ] || complain "no pod is noted as taken"
	rm -rf out
	burst plan --explain
	has out.txt "(measured: "
	has out.txt "of these pods taken in "
	# some seconds of life, divided by the pods that were taken: no hour
	grep -q 'interruptions: every [0-9.]*s (measured: ' out.txt || complain "how often: $(grep interruptions out.txt)"
	tr -s ' \n' ' ' <out.txt | grep -q '; at 90% between ' || complain "no limits: $(grep -A1 interruptions out.txt)"
	burst breakeven --spot
	tr -s ' \n' ' ' <out.txt | grep -q 'of these pods taken in' || complain "not of the ledger: $(cat out.txt)"
	# the month of a volume is shared by the runs of 30 days
	echo '[{"provider":"runpod","id":"b","gpu":"none","gpus":0,"vram_gb":0,"region":"EU","spot":false,"price_usd_hour":0.69}]' >offers.json
	sed -i 's/size_gb = 1/size_gb = 20/' burst.cfg
	burst plan --offers offers.json -p runpod
	has out.txt "volume v, \$1.40 a month (list price, 2026-08) over 2 runs in 30 days"
}

# A set-up of 3m50s by the prior, $0.0441 at this price, against $1.40 a month.
t_does_the_volume_pay() {
	script_lines 20
	JOB='setup = "true"; setup_needs_gpu = false;'
	config 'pods = 1;'
	sed -i 's/size_gb = 1/size_gb = 20/' burst.cfg
	echo '[{"provider":"runpod","id":"b","gpu":"none","gpus":0,"vram_gb":0,"region":"EU","spot":false,"price_usd_hour":0.69}]' >offers.json
	burst plan --offers offers.json -p runpod
	has out.txt "volume: saves 3m50s of billed time a run, \$0.0441 (partly a guess until it is measured): pays for its \$1.40 a month from 32 runs a month on"
	burst plan --offers offers.json -p runpod --json
	schema plan
	is "$(json '.volume_pays | [.pays_from_runs, .measured, (.saves_s | round)] | tostring')" "[32,false,230]" "the same as JSON"
	sed -i 's/setup = "true"; setup_needs_gpu = false;//' burst.cfg
	burst plan --offers offers.json -p runpod
	has out.txt "volume: saves no billed time (partly a guess until it is measured), for \$1.40 a month"
	sed -i '/^volume/d' burst.cfg
	burst plan --offers offers.json -p runpod
	hasnt out.txt "volume:"
}

t_gpus_and_what_fits() {
	burst gpus --fits 7B:fp16
	is "$STATUS" 0 gpus
	has out.txt "7B:fp16 needs about 16.95 GiB"
	is "$(grep -c '^L4 .* yes$' out.txt)" 1 "a 7B model in fp16 fits an L4"
	is "$(grep -c '^T4 .* no$' out.txt)" 1 "it does not fit a T4"
	while read -r fits need; do
		burst gpus --fits "$fits"
		has out.txt "$fits needs about $need GiB"
	done <<-'E'
		7B:int4 4.2375
		7B:int8 8.475
		7B:fp32 33.9
		350M 0.8475
	E
	burst gpus --market runpod-community --by bandwidth-per-dollar --json
	is "$(jq -r '[.[] | select(.gpu == ("RTX A5000", "RTX 4090", "RTX 5090", "H100 SXM")) | "\(.gpu) \(.bandwidth_gb_s / .list_price_usd_hour | round)"] | join(", ")' out.txt)" \
		"RTX A5000 4800, RTX 4090 2965, RTX 5090 2597, H100 SXM 1245" "bandwidth per dollar"
	for flags in "--fits 7" "--fits 7B:fp12" "--fits many" "--by luck" "--market moon"; do
		# shellcheck disable=SC2086
		burst gpus $flags
		is "$STATUS" 2 "gpus $flags"
	done
}

t_breakeven() {
	burst breakeven
	is "$STATUS" 2 "without a run"
	has err.txt "give --price USD (per hour) and --chars-per-hour N"
	burst breakeven --price 0.22 --chars-per-hour 1480800 --reserved 40%
	is "$STATUS" 0 "figures given ($(tail -n 1 err.txt))"
	has out.txt "a million characters: \$0.149"
	has out.txt "above 60% of all hours"
	burst breakeven --price 4 --chars-per-hour 1000000 --own 18750+2000/y
	has out.txt "above 23.5% of all hours"
	burst breakeven --price 0.22 --chars-per-hour 57840 --api polly-standard
	has out.txt "95% used"
	# rented set-ups against an API of $4 a million characters: from which use on, and what a million costs
	while read -r price chars usd use; do
		burst breakeven --price "$price" --chars-per-hour "$chars" --api polly-standard
		has out.txt "a million characters: \$$usd"
		has out.txt "$use used"
	done <<-'E'
		0.22 1480800 0.149 3.7%
		0.43 1480800 0.290 7.3%
		0.69 1056100 0.653 16%
		0.69 1662100 0.415 10%
		0.22 57840 3.80 95%
		0.59 2160000 0.273 6.8%
	E
	# a card of one's own at several prices of renting
	while read -r price use; do
		burst breakeven --price "$price" --chars-per-hour 1000000 --own 18750+2000/y
		has out.txt "above $use% of all hours"
	done <<-'E'
		4 23.5
		2.50 37.7
		1.79 52.6
		1.39 67.8
		1.19 79.1
	E
	# what is given as nothing is not left out; the purchase price alone has no running cost
	burst breakeven --price 0.69 --chars-per-hour 1000000 --own 2100 --repairs 0 --resale 0
	has out.txt "owning for \$2100 and \$0 a year: cheaper than renting above 11.6% of all hours"
	has out.txt "left out: its running cost, power (--watts, --price-per-kwh), your time, the room, power while it is idle"
	# (2100 - 500 + 3 x (180 + 150)) / (3 x 8760 x (0.69 - 0.35 x 0.30)); each cost alone; power dearer than renting
	while IFS=$'\t' read -r flags words left_out; do
		# shellcheck disable=SC2086
		burst breakeven --price 0.69 --chars-per-hour 1000000 --own 2100+180/y $flags
		is "$STATUS" 0 "breakeven $flags ($(tail -n 1 err.txt))"
		has out.txt "$words"
		has out.txt "left out:$left_out your time, the room, power while it is idle"
	done <<-'E'
		--watts 350 --price-per-kwh 0.30 --repairs 150 --resale 500	owning for $2100 and $180 a year, $150 a year for repairs, $500 back at the end, $0.105 of power for each hour used: cheaper than renting above 16.8% of all hours
		--watts 350 --price-per-kwh 0.30	above 17.2% of all hours	 repairs (--repairs), its resale (--resale),
		--repairs 150	above 17.0% of all hours	 power beyond the running cost (--watts, --price-per-kwh), its resale (--resale),
		--resale 500	above 11.8% of all hours	 power beyond the running cost (--watts, --price-per-kwh), repairs (--repairs),
		--watts 2300 --price-per-kwh 0.30	never cheaper than renting at this price	 repairs (--repairs), its resale (--resale),
	E
	# 20 h, interrupted 2.5 times, 20 min lost; then each interruption costs a cold start, too
	while read -r cold savings; do
		burst breakeven --price 1 --chars-per-hour 1000000 --spot --work 20h --interrupted 8h --checkpoint 16m --cold "$cold"
		is "$STATUS" 0 "spot ($(tail -n 1 err.txt))"
		has out.txt "$savings"
	done <<-'E'
		0s 60% off saves 59.3%, 70% off saves 69.5%, 90% off saves 89.8%
		90s 60% off saves 59.2%, 70% off saves 69.4%, 90% off saves 89.8%
		15m 60% off saves 58.1%, 70% off saves 68.6%, 90% off saves 89.5%
	E
	burst breakeven --price 4 --chars-per-hour 1000000 --api polly-standard
	has out.txt "100% used"
	has out.txt "both cost the same"
	for flags in "--duty 60" "--duty 60%" "--duty 0.6"; do
		# shellcheck disable=SC2086
		burst breakeven --price 0.22 --chars-per-hour 1480800 $flags
		has out.txt "60% of billed time used"
	done
	burst breakeven --price 0.22 --chars-per-hour 1480800 --reserved 0.4
	has out.txt "reserving at 40% off"
	burst breakeven --price 1 --chars-per-hour 1000000 --api mine=2.5
	has out.txt "40% used"
	has out.txt "as given"
	script_lines 40
	config
	burst run
	burst breakeven --spot
	has out.txt "(a guess until the first pods ran)"
	burst breakeven
	is "$STATUS" 0 "from the ledger ($(tail -n 1 err.txt))"
	grep -q 'renting: \$0.6[89][0-9]* an hour, .* in this ledger)' out.txt || complain "what it took from the ledger: $(head -n 1 out.txt)"
	for flags in "--api nobody" "--api mine=much" "--spot --work soon" "--own much" "--own 1+2/year" "--price 1 --chars-per-hour 1 --own 9+1/y --watts 300" "--price 1 --chars-per-hour 1 --own 9+1/y --resale 9" "--price 1 --chars-per-hour 1 --resale 9" "--price 1 --chars-per-hour 1 --own 9+1/y --repairs -1" "--own 0+2000/y" "--api =3" "--api mine=0" "--reserved 140%" "--reserved nan" "--reserved 100" "--price 0" "--price 1 --chars-per-hour 1 --duty 150" "--price 1 --chars-per-hour 1 --duty 101%" "--price 1 --chars-per-hour 1 --duty 0"; do
		# shellcheck disable=SC2086
		burst breakeven $flags
		is "$STATUS" 2 "breakeven $flags"
	done
}

# One pod ran from 10:00 to 11:00 UTC on 20 of the last 30 days, and a second one beside it for half of that time.
t_breakeven_by_hours_in_use() {
	local day
	burst breakeven --price 4 --chars-per-hour 1000000 --own 18750+2000/y
	has out.txt "pods ran 0 h in 0 days: too little to tell whether owning pays (14 days are needed)"
	script_lines 3
	config
	burst run
	is "$STATUS" 0 "run ($(tail -n 1 err.txt))"
	pods_ran() { # pods_ran NAME AGE_MS DURATION_MS: as if one of the run's pods had run then
		ledger "create temp table t as select * from pod order by seq limit 1; update t set seq = null, attempt = '$1', id = '$1',
			create_ms = (select max(started_ms) from run) - $2, start_ms = 0, run_ms = 0, billed_ms = $3, released_ms = 1 + create_ms + $3, gone_ms = released_ms;
			insert into pod select * from t; drop table t" || complain "the ledger"
	}
	ledger "create temp table r as select * from run; update r set seq = null, id = 'first', started_ms = started_ms - 2592000000 + 60000;
		insert into run select * from r; drop table r" || complain "the first run"
	for day in $(seq 1 20); do
		pods_ran "a$day" $((day * 86400000)) 3600000
		pods_ran "b$day" $((day * 86400000)) 1800000
	done
	burst breakeven --price 4 --chars-per-hour 1000000 --own 18750+2000/y --reserved 98%
	is "$STATUS" 0 "hours in use ($(tail -n 1 err.txt))"
	# weeks of 7, 7, 6 and 0 h and a little: deviation 3.37, so 2.8 % and 2.353 x 3.37 / 2 / 168
	has out.txt "pods ran 20 h (30.0 pod hours) in 30 days, 2.8% of all hours (90% interval 0.42% to 5.1%): owning pays from 23.5%: no"
	has out.txt "reserving pays from 2.0%: not clear yet"
	burst breakeven --price 4 --chars-per-hour 1000000 --own 18750+2000/y --duty 40%
	hasnt out.txt "pods ran"
}

# Each look notes prices; after ten days in which 02:00 cost a fifth less, plan and offers say so.
t_cheaper_hours() {
	local now day looks='' last=0 at
	export TZ=UTC
	script_lines 10
	config 'pods = 1;'
	burst run
	is "$STATUS" 0 "run ($(tail -n 1 err.txt))"
	burst offers
	burst offers --history
	is "$STATUS" 0 "history ($(tail -n 1 err.txt))"
	is "$(awk '/^local/ { print $(NF - 4), $(NF - 3), $(NF - 2), $(NF - 1), $NF }' out.txt)" '$0.6900 $0.6900 $0.6900 1 -' "one look, however often"
	burst plan
	is "$STATUS" 0 "plan ($(tail -n 1 err.txt))"
	hasnt out.txt "usually"
	now=$(date +%s)
	for day in $(seq 10 -1 1); do
		at=$((now / 86400 * 1440 - day * 1440 + 130))
		looks="$looks$((at - last))=552000 720=690000 "
		last=$((at + 720))
	done
	ledger "update fact set value = '$looks' where name like 'prices:local:%'" || complain "the ledger"
	script_lines 40
	burst plan
	has out.txt "no GPU at local: from 02:00 to 03:00 usually 20% cheaper than at other hours (10 of 10 days)"
	burst plan --json
	schema plan
	is "$(json '.cheaper_hours | [.from_hour, .to_hour, .days, .days_cheaper, (.saving * 100 | round)] | tostring')" "[2,3,10,10,20]" "the same as JSON"
	burst offers --history
	has out.txt "02:00 to 03:00, 20% (10 of 10 days)"
	burst offers --history --json
	is "$STATUS" 2 "both"
}

t_size() {
	burst size --rate 1/s --service 10s --price 0.69
	is "$STATUS" 0 "a pool ($(tail -n 1 err.txt))"
	is "$(awk '/<$/ { print $1, $2, $3, $4, $5, $6, $7, $8, $9 }' out.txt)" "15 66.7% 10.20% 204ms 0.0s 1.4s 4.6s 10.35 2.8750" "the size by the square-root rule"
	grep -qE '^ *11 +90\.9% +68\.21% +6\.8s ' out.txt || complain "11 pods: $(grep -E '^ *11 ' out.txt)"
	burst size --rate 1/s --service 10s --wait p99=1s --gpu "RTX 5090"
	has out.txt "18 pods: the fewest with which 99% of the requests wait at most 1 s"
	has out.txt "RTX 5090, list price of runpod-community"
	burst size --rate 1000/s --service 1s
	has out.txt "3600000 requests an hour of 1 s keep 1000 pods busy"
	burst size --rate 3600/h --service 10s --wait mean=1s --json
	schema size
	is "$(jq -r '.load, .pods, (.sizes[] | select(.pods == 13) | .used * 1000 | round), .sizes[0].usd_hour' out.txt | xargs)" "10 13 769 null" "as JSON"
	for flags in "" "--rate 1/s" "--rate much --service 1s" "--rate 1/s --service 0s" "--rate 1/s --service 1s --wait p95" "--rate 1/y --service 1s" \
		"--rate 1e3/s --service 1s" "--rate 0/s --service 1s" "--rate 1/s --service 1s --wait p100=1s" "--rate 1/s --service 1s --wait mean=0s" \
		"--rate 1/s --service 1s --day-curve 0" "--rate 1/s --service 1s --day-curve 150" "--rate 1/s --service 1s --day-curve much" "--rate 1/s --service 1s --day-curve 50%,24" \
		"--rate 1/s --service 1s --day-curve 50%,-1" "--rate 1/s --service 1s --day-curve 50%," "--rate 1/s --service 1s --day-curve 1,2,3" \
		"--rate 1/s --service 1s --day-curve 0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0" "--rate 90000/s --service 1s --day-curve 50%" \
		"--rate 1/s --service 1s --gpu nothing" "--rate 1000000/s --service 1h"; do
		# shellcheck disable=SC2086
		burst size $flags
		is "$STATUS" 2 "size $flags"
	done
}

# One request a second of 10 s each keeps 10 pods busy: 15 pods do, used for two thirds. By day and night a fixed pool is
# used for less than half of its time.
t_size_from_ledger() {
	local day
	burst size --from-ledger
	is "$STATUS" 2 "no job"
	has err.txt "no burst.cfg in this folder: give --job NAME"
	script_lines 3
	config
	burst run
	is "$STATUS" 0 "run ($(tail -n 1 err.txt))"
	burst size --from-ledger
	is "$STATUS" 2 "one run"
	has err.txt "has 1 run that computed, in 0.0 days: 10 in 14 days are needed: give --rate and --service"
	# each day of three weeks at this hour, one of 100 s
	for day in $(seq 0 21); do
		ledger "create temp table r as select * from run order by seq limit 1; update r set seq = null, id = 'day$day', started_ms = started_ms - $day * 86400000 - 5000,
			compute_ms = 100000, rendered = 4; insert into run select * from r; drop table r" || complain "day $day"
	done
	ledger "delete from run where id not like 'day%'; update pod set run = 'day0'" || complain "the first run"
	burst size --from-ledger --wait p99=10s
	is "$STATUS" 0 "sizes ($(tail -n 1 err.txt))"
	has out.txt "21 runs in the last 3 weeks: 7 runs a week (90% interval 7 to 7)"
	has out.txt "each run computed for 100 s on a pod (90% interval 100 to 100)"
	has out.txt "keep 0.001157 pods busy on average"
	has out.txt "for the 90% interval of the load: 2 to 2 pods"
	has out.txt "2 pods at the peak: the fewest with which 99% of the requests wait at most 10 s"
	hasnt out.txt "days of the week differ"
	has out.txt "cold start: a further pod works after"
	burst size --from-ledger --per segment --rate 1/min --price 2 --json
	schema size
	burst size --from-ledger --per week
	is "$STATUS" 2 "requests by the week"
	burst size --rate 1/s --service 1s --job quiz
	is "$STATUS" 2 "a job without --from-ledger"
}
t_size_by_day() {
	burst size --rate 1/s --service 10s --price 0.5 --day-curve 50%
	is "$STATUS" 0 "a curve ($(tail -n 1 err.txt))"
	has out.txt "keep 10 pods busy on average, 5 from 02:00 and 15 from 14:00 on"
	is "$(awk '/<$/ { print $1, $2 }' out.txt)" "21 71.4%" "the size at the peak"
	has out.txt "21 pods at the peak: about one request in ten waits"
	has out.txt "that many all day: 47.6% used, \$252.00 a day"
	has out.txt "a pool that follows the curve (9 to 21 pods, 15.0 on average): 66.7% used, \$180.00 a day"
	has out.txt "hour by hour: 10 9 9 9 10 11 12 13 15 17 18 19 20 21 21 21 20 19 18 17 15 13 12 11"
	# 18 h of rate 2 and 6 h of rate 10: loads of 5 and 25, for which 9 and 33 pods do
	burst size --rate 1/s --service 10s --day-curve 2,2,2,2,2,2,2,2,2,10,10,10,10,10,10,2,2,2,2,2,2,2,2,2 --json
	schema size
	is "$(json '.load, .pods, .day.peak_hour, .day.mean_pods, (.day.used * 1000 | round), .day.hours[8].pods, .day.hours[9].load' | xargs)" "10 33 9 15 303 9 25" "as JSON"
	burst size --rate 1/s --service 10s --day-curve 0.5,20 --wait p99=1s
	has out.txt "and 15 from 20:00 on"
	has out.txt "pods at the peak: the fewest with which 99% of the requests wait at most 1 s"
}

run_tests "$@"
