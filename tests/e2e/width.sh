#!/bin/bash
# width.sh - how many pods a run rents, of which card and with which batches, and what it changes as it goes.
. "$(dirname "$0")/lib.sh"

# Pods that take a while to come up, so that width has a price.
slow_pods() {
	REHEARSE='boot_delay = "1500ms";'
}
create_calls() { ledger "select count(*) from pod where create_ms > 0"; }

t_nobody_hurries_one_pod() {
	slow_pods
	script_lines 60
	config
	burst run
	is "$STATUS" 0 "run ($(tail -n 2 err.txt))"
	has err.txt "plan: 1 pod of no GPU at local_play: about "
	has err.txt "(batch times: prior, never measured here)"
	is "$(create_calls)" 1 "pods rented"
	grep -qE '^planned [0-9.]+s, \$[0-9.]+; was [0-9.]+s, \$[0-9.]+ \([-+][0-9]+% time, [-+][0-9]+% cost\)$' err.txt || complain "no comparison: $(grep planned err.txt)"
	is "$(ledger "select planned_ms > 0 and planned_microusd > 0 from run")" 1 "the plan in the ledger"
}

# Free pods share the processors of this machine, so more of them finish nothing sooner.
t_no_more_free_pods_than_processors() {
	script_lines 600
	ENGINE=espeak JOB='' REHEARSE='' config 'goal = "time";'
	burst plan --json
	[ "$(json .pick.pods)" -gt "$(nproc)" ] || complain "priced pods stand for machines of their own: $(json .pick.pods)"
	sed -i 's/price_per_hour = 0.69/price_per_hour = 0.00/' burst.cfg
	burst plan --json
	is "$STATUS $(json '.pick.pods')" "0 $(nproc)" "free pods of this machine"
}

t_a_deadline_buys_width() {
	slow_pods
	script_lines 40
	slow_worker SLOW=0.2 MAX_BATCH=1
	JOB+=' max_batch = 1;'
	config 'code = { path = "code"; };'
	burst plan
	is "$STATUS" 2 "a plan without an estimate"
	has err.txt 'no estimate: the speed of engine "test" is not known'
	burst run -o first
	is "$STATUS" 0 "first run ($(tail -n 1 err.txt))"
	hasnt err.txt "plan: "
	is "$(ledger "select count(*) > 0 from batch")" 1 "batches in the ledger"
	# some 8 s of work on one pod, as measured
	burst plan --json --deadline 60s
	schema plan
	is "$(json '.pick | "\(.pods) \(.speed_source)"')" "1 measured" "the plan when there is time"
	burst plan --json --deadline 9s
	is "$(json .verdict)" found "a plan for a deadline"
	[ "$(json .pick.pods)" -ge 2 ] || complain "it takes $(json .pick.pods) pods for 9 s"
	burst run --deadline 9s
	is "$STATUS" 0 "a run for a deadline ($(tail -n 1 err.txt))"
	[ "$(ledger "select count(*) from pod where run = (select id from run order by seq desc limit 1) and create_ms > 0")" -ge 2 ] ||
		complain "the run for a deadline rented one pod"
}

# A worker as fast as code/slow says, in seconds for each segment. The ledger's key of its speed stays the same.
paced_job() { # paced_job SEGMENTS
	local i
	slow_pods
	for i in $(seq "$1"); do
		printf '{"id":"s%03d","text":"Lines of one length take one time: %03d."}\n' "$i" "$i"
	done >script.jsonl
	slow_worker 'SLOW=$(cat \"$BURST_CODE/slow\") MAX_BATCH=1'
	JOB+=' max_batch = 1;'
	REHEARSE="$REHEARSE ${CARDS:-}"
	config 'code = { path = "code"; };' "${@:2}"
	echo 0.05 >code/slow
	burst run -o first
	is "$STATUS" 0 "the run that measures ($(tail -n 1 err.txt))"
}
pods_of_newest() { ledger "select count(*) from pod where run = (select id from run order by seq desc limit 1) and create_ms > 0"; }

t_slower_than_planned_rents_more() {
	paced_job 26
	echo 0.7 >code/slow
	burst run --deadline 17s
	is "$STATUS" 0 "a run that is slower than planned ($(tail -n 1 err.txt))"
	has err.txt "plan: 1 pod of "
	has err.txt "slower than planned: "
	has err.txt " more pod: the rest takes about "
	has err.txt "planned again: slower than planned: "
	[ "$(pods_of_newest)" -ge 2 ] || complain "it did not rent more pods"
	is "$(ledger "select replans between 1 and 2 and replanned like 'slower than planned: %' from run order by seq desc limit 1")" 1 "the ledger"
	is "$(ledger "select replans || replanned from run order by seq limit 1")" 0 "the run that went as planned"
	burst logs
	has out.txt "slower than planned: "
	burst ledger "$(ledger "select id from run order by seq desc limit 1")"
	has out.txt "planned again: slower than planned: "
}

t_a_deadline_out_of_reach_ends_the_run() {
	paced_job 30 'pods = 1;'
	echo 4 >code/slow
	burst run --deadline 20s
	is "$STATUS" 5 "a run that cannot keep its deadline ($(tail -n 1 err.txt))"
	has err.txt "the deadline cannot be met: the rest takes "
	has err.txt 'burst resume '
	file_count out 3 || complain "$(find out -name '*.wav' | wc -l) files are kept"
	is "$(pods_of_newest)" 1 "pods"
	echo 0.05 >code/slow
	burst resume
	is "$STATUS" 0 "resume ($(tail -n 1 err.txt))"
	file_count out 30 || complain "$(find out -name '*.wav' | wc -l) of 30 files"
}

# The L4 costs more an hour and is said to compute faster: worth its price only where the work is long beside a cold start.
t_slower_than_planned_takes_another_card() {
	local CARDS='gpu_prices = ["T4=0.70", "L4=0.80"];'
	paced_job 32 'gpu = ["T4"];'
	config 'code = { path = "code"; };'
	echo 1.6 >code/slow
	burst run
	is "$STATUS" 0 "a run that is slower than planned ($(tail -n 1 err.txt))"
	has err.txt "slower than planned: "
	has err.txt "continuing with 1 pod of L4: "
	is "$(ledger "select group_concat(gpu_offered, ' ') from (select * from pod where run = (select id from run order by seq desc limit 1) order by create_ms)")" "T4 L4" "the cards"
	is "$(ledger "select count(distinct p.gpu_offered) from batch b join pod p on p.attempt = b.attempt where b.run = (select id from run order by seq desc limit 1)")" 2 "cards that rendered"
}

# ---- gpu and pods: "auto" is what an absent key is; what is named is kept, and a clearly better choice is named beside it ----
t_auto_is_the_planners_choice() {
	local kind absent
	script_lines 30
	ENGINE='own' JOB='worker = "true"; vram_gb = 8; estimate = { gpu = "RTX 4090"; once = 0.5; longest = 0.02; each = 0.0008; };'
	REHEARSE='gpu_prices = ["T4=0.59", "L4=0.80", "H100 SXM=3.95"];'
	config
	burst plan --json
	is "$STATUS" 0 "absent: exit status ($(tail -n 1 err.txt))"
	absent=$(json '[.pick, .front, .better] | @json')
	is "$(json .better)" null "a better one than the planner's own"
	for kind in 'gpu = "auto"; pods = "auto";' 'gpu = ["auto"];' 'pods = "auto";'; do
		config "$kind"
		burst plan --json
		is "$(json '[.pick, .front, .better] | @json')" "$absent" "$kind"
	done
	config 'gpu = "H100"; pods = 8;'
	burst plan --json --gpu auto --pods=auto
	is "$(json '[.pick, .front, .better] | @json')" "$absent" "flags over the file"
	mkdir -p home/.config/burst
	echo 'pods = 8; gpu = ["H100"];' >home/.config/burst/burst.cfg
	config 'gpu = "auto"; pods = "auto";'
	burst plan --json
	is "$(json '[.pick, .front, .better] | @json')" "$absent" "over one's own file"
	# a run, too: by one pod, where goal = "cost" takes no more
	rm home/.config/burst/burst.cfg
	ENGINE=espeak JOB='' REHEARSE='' config 'gpu = "auto"; pods = "auto";'
	burst run --json
	is "$STATUS $(json '.pods | length')" "0 1" "a run ($(tail -n 1 err.txt))"
	burst init -y --full new
	is "$(grep -c '^pods = "auto";' new/burst.cfg)" 1 "what init writes"
	grep -q '^# gpu = "auto"; .*burst chooses' new/burst.cfg || complain "what init says of gpu: $(grep gpu new/burst.cfg | head -n 1)"
}

# An engine that renders a batch at once: 0.98 s for each, and 0.02 s more for each segment.
padded_job() { # padded_job SEGMENTS
	script_lines "$1"
	mkdir -p code
	cp "$ROOT/tests/workers/"{padded,answers}.py code/
	ENGINE='padded'
	JOB='worker = "ONCE=0.978 EACH=0.0217 EQUAL=1 MAX_BATCH=80 python3 \"$BURST_CODE/padded.py\""; check = { enabled = false; };'
}
computed_beside() { # computed_beside OPTIMUM PERCENT: of the newest run
	local ms
	ms=$(ledger "select compute_ms from run order by seq desc limit 1")
	[ "$ms" -le $(($1 * $2 / 100)) ] || complain "$ms ms of computing, where $1 ms would do ($(ledger "select group_concat(segments, ' ') from batch"))"
}
t_full_batches_for_padded_engines() {
	padded_job 60
	config 'code = { path = "code"; };'
	burst run
	is "$STATUS" 0 "60 segments ($(tail -n 2 err.txt))"
	computed_beside 2280 150 # the canary, and one batch
	is "$(ledger "select group_concat(segments, ' ') from batch")" "3 57" "batches of 60"
	padded_job 300
	config 'code = { path = "code"; };'
	burst run -o more
	is "$STATUS" 0 "300 segments ($(tail -n 2 err.txt))"
	computed_beside 10422 115
	is "$(ledger "select group_concat(segments, ' ') from batch where run = (select id from run order by seq desc limit 1)")" "3 75 74 74 74" "batches of 300"
	burst ledger "$(ledger "select id from run order by seq desc limit 1")"
	grep -qE '^used [0-9]+%, seats [0-9]+%: batches of 60 segments on average, where 80 fit; ' out.txt || complain "no seats: $(tail -n 3 out.txt)"
	# the user's own word is a cap
	JOB="$JOB max_batch = 10;"
	config 'code = { path = "code"; };'
	burst plan
	burst run -o capped
	is "$(ledger "select max(segments) from batch where run = (select id from run order by seq desc limit 1)")" 10 "the largest batch with max_batch = 10"
}

# A worker that says what took how long before its hello: the ledger keeps it, and the next plan shows each.
t_the_parts_of_a_load_are_told_apart() {
	script_lines 6
	mkdir -p code
	cp "$ROOT/tests/workers/"{padded,answers}.py code/
	printf 'export LOAD=3 PHASES='"'"'%s'"'"'\n' '{"import_s":0.5,"read_s":2.25,"nap_s":9,"build_s":-1,"probe_s":"x"}' >code/settings
	ENGINE='padded'
	JOB='worker = ". \"$BURST_CODE/settings\"; exec python3 \"$BURST_CODE/padded.py\""; check = { enabled = false; };'
	config 'code = { path = "code"; }; pods = 1;'
	burst run --json
	is "$STATUS" 0 "exit status ($(tail -n 2 err.txt))"
	schema run
	is "$(json '.pods[0].load_phases | tojson')" '{"unpack_s":0,"import_s":0.5,"read_s":2.25,"build_s":0,"warm_up_s":0,"probe_s":0,"unpack_bytes":0}' "what its worker said"
	is "$(json '.pods[0] | .phases.load_s >= 2.75')" true "all of it is part of the load"
	is "$(json '.pods[0].phases | keys | length')" 10 "the fixed phases"
	is "$(ledger 'select import_ms, read_ms, build_ms from pod')" '500|2250|0' "the ledger's row"
	burst ledger "$(ledger 'select id from run')"
	has out.txt 'import 0.5s, read 2.2s'
	script_lines 12 # with six that are new
	burst plan --explain
	is "$STATUS" 0 "the plan ($(tail -n 2 err.txt))"
	has out.txt '  read: 2.2s, 90th percentile '
	printf 'export LOAD=0\n' >code/settings
	burst run --json
	is "$(json '.pods[0].load_phases')" null "a worker that says nothing"
}

# What the engine is known to take decides which cards fit, and how large a batch may be.
t_memory_decides_on_cards() {
	script_lines 60
	ENGINE='own'
	JOB='worker = "true"; max_batch = 80; estimate = { gpu = "RTX 4090"; once = 0.5; longest = 0.02; each = 0.0008; vram_base = 16.95; vram_each = 0.11; };'
	REHEARSE='gpu_prices = ["T4=0.59", "RTX 4090=0.59", "H100 SXM=3.95"];'
	config
	burst plan --explain
	is "$STATUS" 0 "plan ($(tail -n 1 err.txt))"
	hasnt out.txt "local_play  T4"
	has out.txt "does not fit: T4 at local_play: 17.06 GiB for a segment, 13.88 of 16 GB can be used"
	has out.txt "largest batch: 39 (memory: 16.95 GiB and 0.11 GiB a segment, of 21.32 GiB)"
	has out.txt "(prior: job.estimate)"
	burst plan --explain --gpu "H100 SXM"
	has out.txt "largest batch: 80 "
	has out.txt "(prior: job.estimate, computed from RTX 4090)"
	burst plan --json
	schema plan
	is "$(json '[.pick.gpu, .pick.pods] | @csv')" '"RTX 4090",1' "the pick"
	is "$(json '.cards_left_out | map([.provider, .gpu, .vram_gb, .why] | @csv) | join(" ")')" \
		'"local_play","T4",16,"17.06 GiB for a segment, 13.88 of 16 GB can be used"' "cards left out"
	# two workers on a card have the weights twice
	JOB="$JOB workers = 2;"
	config
	burst plan --json
	is "$(json .pick.gpu)" "H100 SXM" "the pick for two workers"
	config 'gpu = ["T4"];'
	burst plan
	[ "$STATUS" -ne 0 ] || complain "a T4 for 34 GiB"
	REHEARSE='gpu_prices = ["T9=1"];'
	config
	burst plan
	is "$STATUS" 2 "a card that nobody knows"
	has err.txt 'gpu_prices: "T9=1" must be a GPU that burst knows'
}

run_tests "$@"
