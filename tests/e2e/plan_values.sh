#!/bin/bash
# plan_values.sh - plans whose time and cost were computed by hand, to the cent. Each segment has 80 characters; past pods took a known
# time to come up, so nothing is a guess.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/plan_lib.sh"

# planned WHAT POD SECONDS DOLLARS [FLAGS]: the choice among offers.json
planned() {
	# shellcheck disable=SC2086
	burst plan --offers offers.json --json ${5:-}
	is "$STATUS $(json .verdict)" "0 found" "$1 ($(tail -n 1 err.txt))"
	is "$(json '.pick | "\(.pods) x \(.gpu)\(if .spot then " spot" else "" end) at \(.provider)"')" "$2" "$1: pods"
	is "$(json '.pick.makespan_p50_s * 10 | round / 10') s" "$3 s" "$1: time"
	is "$(json '.pick.cost_usd * 10000 | round / 10000')" "$4" "$1: dollars"
}
batches() { # batches PROVIDER MOST ESTIMATE
	ENGINE='own' JOB="worker = \"true\"; vram_gb = 8; max_batch = $2; estimate = { $3 };"
	config
	sed -i "s/^provider = .*/provider = \"$1\"/; /^volume/d" burst.cfg
}
ON_4090='gpu = "RTX 4090"; once = 0.4; longest = 0.01; each = 0.001;'

# The first three segments are three batches, too: 14 + 15 x 3.75 + 0.1 s on a T4, whose 71 billed seconds cost $0.63 an hour. Where a
# batch had room for them, it would be two batches less: 62.9 s, $0.0112.
t_first_segments_of_an_engine_without_batches() {
	cold_starts modal 14
	batches modal 1 'gpu = "L4"; longest = 0.05;'
	jq -s . <(offer modal T4 0.63 '.vram_gb = 16 | .region = ""') <(offer modal "H200" 4.10 '.vram_gb = 141 | .region = ""') \
		<(offer modal B200 5.70 '.vram_gb = 180 | .region = ""') >offers.json
	equal_lines 15
	planned "15 segments" "1 x T4 at modal" 70.4 0.0124
	equal_lines 90
	planned "90 segments" "1 x H200 at modal" 36.6 0.0421
	equal_lines 900
	planned "900 segments" "1 x B200 at modal" 149.1 0.2375
}
# 40 s, then 3 segments in 1.44 s, then 63 batches of 1.2 s + 0.08 s for each of 1997 segments, and 0.1 s: 276.9 s. A spot pod at half the
# price loses 0.3 s to interruptions, one in eight hours.
t_spot_pods_are_planned_if_they_are_wanted() {
	cold_starts runpod 40
	batches runpod 32 "$ON_4090"
	jq -s . <(offer runpod "RTX 4090" 0.50) <(offer runpod "RTX 4090" 0.25 '.spot = true') >offers.json
	equal_lines 2000
	planned "not wanted" "1 x RTX 4090 at runpod" 276.9 0.0386
	has err.txt "1 offer is left out: a spot pod, and spot is false (--spot)"
	planned "wanted" "1 x RTX 4090 spot at runpod" 277.2 0.0193 --spot
}
# 14 batches, of which the first has 3 segments; 400 segments: what cards with other bandwidths and matmul speeds make of that.
t_a_named_card_is_planned() {
	cold_starts runpod 35
	batches runpod 32 "$ON_4090"
	jq -s . <(offer runpod "RTX 3090" 0.31) <(offer runpod "RTX 4090" 0.52) <(offer runpod L40S 0.93 '.vram_gb = 48') >offers.json
	equal_lines 400
	planned "any card" "1 x RTX 3090 at runpod" 127.1 0.011
	planned "the flag" "1 x L40S at runpod" 68.4 0.0178 "--gpu L40S"
	echo 'gpu = ["L40S"];' >>burst.cfg
	planned "the config" "1 x L40S at runpod" 68.4 0.0178
	jq 'map(if .gpu == "RTX 3090" then .stock = "none" else . end)' offers.json >some.json
	mv some.json offers.json
	sed -i '$d' burst.cfg
	planned "the cheapest is sold out" "1 x RTX 4090 at runpod" 83.9 0.0123
}
# An engine computes on one card: (24 x 0.93 - 1 - 12) / 0.5 = 18 segments a batch, whatever a second card has.
t_two_cards_are_no_larger_card() {
	cold_starts runpod 35
	jq -s . <(offer runpod "RTX 4090" 0.52 '.gpus = 2') <(offer runpod "RTX 4090" 0.52) >offers.json
	equal_lines 400
	batches runpod 32 "$ON_4090 vram_base = 12; vram_each = 0.5;"
	for gpu in RTX4090 RTX4090:2; do
		burst plan --offers offers.json --explain --gpu $gpu
		has out.txt "largest batch: 18 "
	done
	batches runpod 32 "$ON_4090 vram_base = 30; vram_each = 0.5;"
	burst plan --offers offers.json --gpu RTX4090:2
	is "$STATUS" 4 "30 GiB on two cards of 24 GB"
	has err.txt "the job needs 30.5 GiB for one segment, and the most that can be used is 21.3 GiB (RTX 4090:2 at runpod): 9.2 GiB are missing"
}
# 20,800 characters are 0.0666 GB of sound; 101 billed seconds cost $0.0194.
t_egress_of_saved_offers() {
	local way
	cold_starts local_play 67.5
	REHEARSE='gpu_prices = ["RTX 4090=0.69"]; egress_price = 0.09;' batches local_play 32 "$ON_4090"
	equal_lines 260
	burst offers --json
	cp out.txt offers.json
	planned "saved offers" "1 x RTX 4090 at local_play" 100.4 0.0253
	for way in "" "--offers offers.json"; do
		# shellcheck disable=SC2086
		burst plan --explain $way
		has out.txt 'egress: $0.0060 a run (0.0666 GB at $0.09 a GB (config))'
		grep -qE "^plan: 1 pod .*: about 1m40s, \\\$0\.0253" out.txt || complain "plan $way: $(grep ^plan: out.txt)"
	done
}
# A volume stays in its region, and so do the pods that use it.
t_saved_offers_where_the_volume_is() {
	cold_starts runpod 40
	batches runpod 32 "$ON_4090"
	jq -s . <(offer runpod "RTX 4090" 0.50 '.region = "EU-RO-1"') <(offer runpod "RTX 3090" 0.10 '.region = "US-TX-3"') >offers.json
	equal_lines 500
	echo 'volume = { name = "cache"; };' >>burst.cfg
	burst plan --offers offers.json --json
	is "$(json .pick.gpu)" "RTX 3090" "with a volume that no ledger knows"
	ledger "insert into volume (provider, id, name, region, size_gb, price_microusd_month, seen_ms) values
		('modal', 'vo-1', 'cache', '', 10, 0, 1), ('runpod', 'other', 'others', 'US-TX-3', 10, 0, 1),
		('runpod', 'v1', 'cache', 'EU-RO-1', 10, 700000, 1)"
	burst plan --offers offers.json --json
	is "$(json .pick.gpu)" "RTX 4090" "where the volume is"
	has err.txt '1 offer is left out: not where volume "cache" is: EU-RO-1'
	ledger "update volume set region = 'CA-MTL-1' where id = 'v1'"
	burst plan --offers offers.json
	is "$STATUS" 4 "none where the volume is"
	has err.txt '2 offers are left out: not where volume "cache" is: CA-MTL-1'
}

# 1,200 items of 1 s, each by itself, on pods that take 90 s: 150 pods render 8 each, and 98.3 s of each, 99 billed ones, cost $2.97.
# A time of 7 s would take 172 pods.
t_a_budget_alone_ends_the_width() {
	cold_starts modal 90
	batches modal 1 'gpu = "RTX 4090"; each = 0.0125;'
	jq -s . <(offer modal "RTX 4090" 0.72) >offers.json
	equal_lines 1200
	planned 'the fastest for $3' "150 x RTX 4090 at modal" 98.1 2.97 "--goal time --max-cost 3.00"
	burst plan --offers offers.json --goal time --max-cost 3.00
	hasnt out.txt "without that limit"
	(ulimit -n 500 && burst plan --offers offers.json --goal time --max-cost 3.00)
	grep -qE '^pods: the open files of this process allow [0-9]+ \(`ulimit -n`\); without that limit 150: 1m38s, \$2\.97' out.txt ||
		complain "a limit of files: $(grep ^pods: out.txt)"
	# two items each on 600 pods; one each would take 1,200
	planned "for any money" "600 x RTX 4090 at modal" 92.1 11.16 "--goal time --max-cost 30.00"
	burst plan --offers offers.json --goal time --max-cost 30.00
	has out.txt 'pods: a run has 1000 at most; without that limit 1200: 1m31s, $22.08'
}
# The same at a provider that takes 54 creates a minute. A second minute's pods would be up after the first 54 have done 1,200 s of work. 53
# pods take as many rounds as 54. Of 12,000 s they find some: by then 54 pods have done 3,240 s, and by the third minute 9,720, by the fourth all.
# Of 160 pods 54 come at once, 54 after a minute, 52 after two: 59.25 s on average; each renders 75 of 12,000 items.
t_creates_a_minute_end_the_width() {
	cold_starts runpod 90
	batches runpod 1 'gpu = "RTX 4090"; each = 0.0125;'
	jq -s . <(offer runpod "RTX 4090" 0.72) >offers.json
	equal_lines 1200
	planned "a minute's pods" "53 x RTX 4090 at runpod" 113.1 1.1978 "--goal time --max-cost 30.00"
	burst plan --offers offers.json --goal time --max-cost 30.00
	has out.txt 'pods: runpod takes 54 creates a minute, and later pods would find no work; without that limit 600: 1m32s, $11.16'
	burst plan --offers offers.json --goal time --max-cost 30.00 --pods 100
	has out.txt 'plan: 54 pods of RTX 4090 at runpod'
	hasnt out.txt 'would still boot'
	equal_lines 12000
	planned "three minutes' pods" "160 x RTX 4090 at runpod" 224.4 5.312 "--goal time --max-cost 5.40"
	burst plan --offers offers.json --goal time --max-cost 5.40
	has out.txt 'pods: runpod takes 54 creates a minute'
}
# 1,200 s of work in items of 4 s. Pods that all work at once end after their cold start and their share; the speed is a guess, which leaves
# less time for it. Until the first item is checked each pod bills 90 + 4 + 0.3 s, so 95, or more where it comes up late.
t_pods_of_a_tight_deadline_work_at_once() {
	local pods
	cold_starts runpod 90
	batches runpod 1 'gpu = "RTX 4090"; each = 0.05;'
	jq -s . <(offer runpod "RTX 4090" 0.72) >offers.json
	equal_lines 300
	burst plan --offers offers.json --json --deadline 300s
	pods=$(json .pick.pods)
	is "$(json '.verdict, (.pick.makespan_p50_s * 10 | round)' | xargs)" \
		"found $(awk -v n="$pods" 'BEGIN { k = int(300 / n); k += k * n < 300; print 900 + 40 * k + 1 }')" "$pods pods"
	burst plan --offers offers.json --deadline 300s
	# cold starts of three pods may be twice as long for the slowest of the next ten
	grep -q "first segments: $pods pods work while these are checked; bad ones stop the run, which has then cost at most " out.txt || complain "no word of it"
	sed -n 's/.*cost at most \$\([0-9.]*\) (nine times in ten)/\1/p' out.txt | awk -v n="$pods" \
		'{ each = $1 / n / 0.72 * 3600; exit !(each >= 94.9 && each < 190) }' || complain "at risk: $(grep 'first segments' out.txt)"
	burst plan --offers offers.json
	hasnt out.txt "first segments:"
}
# A cap on time holds the median: what one run in ten takes may exceed it, and the plan stays as it is.
t_max_duration_is_held_by_the_median() {
	local p50 p90 pods
	plan_within() { # plan_within TIME [FLAG...]
		sed -i "s/max_duration = \"[^\"]*\"/max_duration = \"$1\"/" burst.cfg
		burst plan --offers offers.json "${@:2}"
	}
	cold_starts runpod 90
	jq -s . <(offer runpod "RTX 4090" 0.72) >offers.json
	equal_lines 300
	batches runpod 1 'gpu = "RTX 4090"; each = 0.05;'
	plan_within 10h --json
	p50=$(json '.pick.makespan_p50_s | ceil') p90=$(json '.pick.makespan_p90_s | floor') pods=$(json .pick.pods)
	is "$pods" 1 "pods of the cheapest plan"
	[ $((p90 - p50)) -ge 60 ] || complain "the prior promises too much: $p50 to $p90 s"
	plan_within $(((p50 + p90) / 2))s --json
	is "$(json '.verdict, .pick.pods, (.pick.makespan_p50_s | ceil), (.pick.makespan_p90_s | floor)' | xargs)" "found 1 $p50 $p90" "the plan with the cap"
	plan_within $(((p50 + p90) / 2))s
	grep -qE "max_duration: nine runs in ten take at most [0-9hms]+; one that takes more than [0-9hms]+ ends there, and .burst resume. continues it" out.txt || complain "no word: $(grep max_duration out.txt)"
	plan_within $((p90 + 60))s
	hasnt out.txt "max_duration:"
	plan_within $((p50 / 2))s --json # below the median it needs more pods
	[ "$(json .pick.pods)" -gt 1 ] || complain "pods within half the time: $(json .pick.pods)"
}
# One text of 240 characters takes 24 s after a cold start of 10 s, whatever the other 8 of 3 s take.
t_one_long_segment_bounds_the_time() {
	cold_starts runpod 10
	batches runpod 1 'gpu = "RTX 4090"; each = 0.1;'
	jq -s . <(offer runpod "RTX 4090" 0.72) >offers.json
	{
		for i in 1 2 3 4 5 6 7 8; do printf '{"id":"s%d","text":"%030d"}\n' "$i" "$i"; done
		printf '{"id":"long","text":"%0240d"}\n' 1
	} >script.jsonl
	planned "four pods" "4 x RTX 4090 at runpod" 34.1 0.0184 "--pods 4 --goal time"
	burst plan --offers offers.json --pods 4 --goal time
	has out.txt 'limit: one long segment, which no two workers can share: split it, or use fewer pods'
	burst plan --offers offers.json
	hasnt out.txt 'limit: one long'
	burst plan --offers offers.json --deadline 33s
	is "$STATUS" 5 "a deadline that no schedule keeps"
}

t_questions_with_answers_by_brute_force() {
	cold_starts runpod 41
	cold_starts modal 13
	python3 "$ROOT/tests/e2e/plan_ask.py" "$BURST" >answers.txt 2>&1
	echo "    $(tail -n 1 answers.txt)"
	is "$(tail -n 1 answers.txt | awk '{ print $1 == $3 }')" 1 "answers ($(head -n 3 answers.txt | tr '\n' '|'))"
}

run_tests "$@"
