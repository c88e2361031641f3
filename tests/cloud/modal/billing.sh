# billing.sh - what tests/e2e/vendor_billing.sh needs of Modal: what Modal bills, which GPU it really gave, how its sandboxes end.
# shellcheck shell=bash
# shellcheck disable=SC2034,SC2317 # used and called by vendor_billing.sh
rendered() { # one run on one pod; its id in $RUN, its sandbox's in $ID
	slow_worker
	md_config 'code = { path = "code"; };'
	burst run --json
	is "$STATUS" 0 "run ($(tail -n 2 err.txt | tr '\n' '|'))"
	RUN=$(json .run)
	ID=$(json '.pods[-1].id')
	# on a busy machine a container starts late: here it is billed from its create
	[ -n "${STARTS_LATE:-}" ] || md_control sandboxes/"$ID" "{\"shift_s\":[$(md_get "$ID" '(.created_ms - .started_ms) / 1000'),0]}" >/dev/null
}
as_billed() { # what burst made of it is what the vendor knows it to be
	about "$(json '.[0].billed_vendor_s')" "$(md_get "$ID" '(.ended_ms - .started_ms) / 1000')" 0.002 "seconds"
	about "$(json '.[0].cost_vendor_usd')" "$(md_get "$ID" .usd)" 0.000003 "dollars"
	is "$(json '.[0].billed_vendor_is')" reported "whose seconds"
	is "$(ledger "select billed_vendor_ms, cost_vendor_microusd, vendor_reported, vendor_asked_ms > gone_ms from pod")" \
		"$(json '"\(.[0].billed_vendor_s * 1000 | round)|\(.[0].cost_vendor_usd * 1e6 | round)|1|1"')" "the ledger"
}

# ---- the bill ----

c_counted() {
	rendered
	reconciled 0 agrees "^agrees\$"
	as_billed
	is "$(ledger 'select gpu_offered from pod')" L40S "the GPU that was asked for"
	burst ledger --reconcile
	is "$STATUS" 0 "for people"
	has out.txt reported
	burst ledger "$RUN" --json
	schema run
	is "$(json '.pods[0] | .billed_vendor_s > 0 and .cost_vendor_usd > 0')" true "it stands beside our count"
}
c_from_its_start() {
	md_fault late_schedule '"ms":12000'
	STARTS_LATE=yes
	rendered
	reconciled 0 differs "^the vendor bills [0-9.]+s less than burst counted\$"
	as_billed
	is "$(json '.[0].billed_seconds - .[0].billed_vendor_s > 10')" true "the queue is not billed"
}
c_seconds_alone() { # where Modal does not count one sandbox's use
	md_control settings '{"billing":{"usage":false}}' >/dev/null
	rendered
	is "$(json '.pods[0] | .billed_vendor_s > 0')" true "seconds at the end of the run"
	reconciled 0 agrees "^agrees\$"
	is "$(json '.[0] | "\(.cost_vendor_usd) \(.difference_usd) \(.billed_vendor_is)"')" "null null reported" "no dollars"
	burst ledger --reconcile
	grep -qE "$ID .* reported +- +- *$" out.txt || complain "the table says $(grep "$ID " out.txt | head -n 1)"
}
c_rates_of_ones_own() {
	md_control settings '{"rates":{"CPU":0.36,"Memory":0.036}}' >/dev/null
	MODAL='app = "own";'
	mkdir -p home/.config/burst
	echo 'providers = { modal = { gpu_prices = ["L40S=3.60"]; core_price = 0.72; }; };' >home/.config/burst/burst.cfg
	rendered
	reconciled 0 agrees "^agrees\$"
	# 4 cores and 16 GB by default
	is "$(json '.[0].price_usd_hour')" "$(jq -n '3.60 + 4 * 0.72 + 16 * 0.036')" "its price"
	about "$(json '.[0].cost_vendor_usd')" "$(jq -n "$(json '.[0].billed_vendor_s') * $(json '.[0].price_usd_hour') / 3600")" 0.00002 "dollars at those prices"
}
c_more_than_was_asked_for() { # Modal bills what is used: it cannot use more
	rendered
	md_control sandboxes/"$ID" '{"quirks":{"used_gib":1000}}' >/dev/null
	reconciled 0 agrees "^agrees\$"
	as_billed
	is "$(json '.[0].cost_beside_usd // 0')" 0 "beside its price"
}
c_rates_have_changed() { # that is no fault of the bill
	rendered
	md_control settings '{"rates":{"CPU":7.2,"Memory":0.72}}' >/dev/null
	reconciled 0 agrees "^agrees\$"
	as_billed
	is "$(json '.[0].cost_beside_usd > 0')" true "beside"
}
c_a_better_gpu() { # at the price of the one that was asked for
	md_fault other_gpu
	rendered
	is "$(json '.pods[0].gpu')" "H200 SXM" "the GPU that it had"
	is "$(ledger 'select gpu, gpu_offered from pod')" "H200 SXM|L40S" "the ledger"
	reconciled 0 agrees "^agrees\$"
	as_billed
}

# ---- how they end ----

CAUTION="Modal may reclaim a sandbox with a GPU at any time"
slowly() { # a run that has work for some seconds
	slow_worker SLOW=0.5
	md_config 'code = { path = "code"; };'
	script_lines 20
	burst run --json
}
c_preempted() {
	md_fault preempted '"ms":6000'
	slowly
	all_done 20 2
	has err.txt "the vendor reclaimed it (preempted); its unfinished segments go to other pods"
	is "$(grep -c "$CAUTION" err.txt)" 1 "how often the caution is said"
	is "$(ledger "select count(*) from pod where error = 'the vendor reclaimed it (preempted)'")" 1 "the ledger"
	reconciled 0 agrees '^agrees'
}
c_ended_by_itself() { # a word of its own for each
	local how=$1 words=$2
	slow_worker SLOW=0.5
	md_config 'code = { path = "code"; };'
	script_lines 20
	"$BURST" run --json >out.txt 2>err.txt </dev/null &
	local pid=$!
	wait_for 40 "its first file" file_count out 1
	md_control sandboxes/"$(md_sandboxes | cut -d' ' -f1 | head -n 1)" "{\"end\":\"$how\",\"hard\":true}" >/dev/null
	wait "$pid"
	STATUS=$?
	all_done 20 2
	has err.txt "$words; its unfinished segments go to other pods"
	hasnt err.txt preempted
}
c_evicted() { c_ended_by_itself MEMORY_MANAGER_EVICTION "it used more memory than it has: raise pod.memory_gb"; }
c_timeout() { c_ended_by_itself TIMEOUT "its lifetime ended"; }
c_idle() { c_ended_by_itself IDLE_TIMEOUT "it was idle too long"; }
c_modals_own_failure() { c_ended_by_itself INTERNAL_FAILURE "Modal's own failure"; }
c_init_failure() { # wrong once, wrong twice, and that is enough
	md_fault init_failure '"times":-1'
	md_config 'wait = "5m";'
	burst run --json
	in_vain 2 2
	has err.txt "it could not be set up: failed to mount the image"
	has err.txt "2 pods in a row could not start"
	has err.txt "check pod.image"
	burst ledger --reconcile --json
	is "$STATUS $(json '[.[] | .billed_vendor_s, .cost_vendor_usd] | add')" "0 0" "what it cost"
}
c_init_failure_once() {
	md_fault init_failure
	rendered
	all_done 6 2
}

# ---- both vendors side by side ----

t_offers_of_two_vendors() {
	cloud || return
	# shellcheck source-path=SCRIPTDIR
	. "$ROOT/tests/cloud/runpod/lib.sh"
	rp_start 2>start.err || return
	script_lines 3
	md_config
	sed -i 's/^provider = .*/provider = ["modal", "runpod"];/; s/^gpu = .*/gpu = ["L4", "L40S", "RTX 4090"];/' burst.cfg
	burst offers --json
	is "$STATUS" 0 "exit status ($(tail -n 2 err.txt | tr '\n' '|'))"
	schema offers
	is "$(json '[.[].provider] | unique | join(" ")')" "modal runpod" "vendors"
	is "$(json '[.[].price_usd_hour] | . == sort')" true "by price"
	is "$(json '[.[] | select(.provider == "modal") | .with] | unique | join("|")')" "4 cores, 16 GB" "with a sandbox"
	is "$(grep -c "$CAUTION" err.txt)" 1 "how often the caution is said"
	"$BURST" offers -p modal --gpu none >/dev/null 2>err2.txt || complain "offers without a GPU: $(cat err2.txt)"
	hasnt err2.txt "$CAUTION"
	local small
	small=$(json '[.[] | select(.provider == "modal" and .gpu == "L4")][0].price_usd_hour')
	burst offers
	has out.txt WITH
	has out.txt "4 cores, 16 GB"
	has out.txt "cores, memory"
	# plan has them as they would be taken: one vendor after the other
	burst plan
	is "$(grep -oE '^(modal|runpod)' out.txt | uniq | tr '\n' ' ')" "modal runpod " "the order of plan"
	is "$(grep -oE '^modal +L40?S?' out.txt | tr -s ' ' | tr '\n' '|')" "modal L4|modal L40S|" "... and its GPUs"
	# what the job needs is in the price, and what is too small is not shown
	sed -i 's/^pod = .*/pod = { cpu = 8; memory_gb = 32; };/' burst.cfg
	burst offers --json
	about "$(json '[.[] | select(.provider == "modal" and .gpu == "L4")][0].price_usd_hour')" \
		"$(jq -n "$small + 4 * 0.15 + 16 * 0.03")" 0.2 "the price of a larger sandbox"
	is "$(json '[.[] | select(.provider == "modal") | .with] | unique | join("|")')" "8 cores, 32 GB" "with it"
	sed -i 's/voice = "en";/voice = "en"; vram_gb = 30;/' burst.cfg
	burst offers --json
	is "$(json '[.[].gpu] | unique | join(" ")')" L40S "GPUs with 30 GB"
	rp_stop
	cloud_over
}

# ---- what vendor_billing.sh wants to know ----

ITS_OWN_BILLS="c_counted c_from_its_start c_seconds_alone c_rates_of_ones_own c_more_than_was_asked_for
	c_rates_have_changed c_a_better_gpu"
ONE_POD= # some cases have two
TOO_LONG='^billed for 10m[0-9]+s at \$[0-9.]+ per hour, but from create to gone the pod lived '
billed_longer() { # billed_longer SECONDS: than it lived
	md_control sandboxes/"$ID" "{\"shift_s\":[0,$1]}" >/dev/null
}
still_too_much() { :; }
WRONG_KEY=MODAL_TOKEN_SECRET=as-WRONG
other_keys() {
	MODAL_SERVER_URL=http://127.0.0.1:9 burst ledger --reconcile --json
	is "$STATUS" 6 "no network"
	reconciled 0 agrees '^agrees'
}
# A sandbox that runs at once is seen at once, and the end that Modal reports ends the run.
c_no_seconds_are_lost() {
	local late
	rendered
	late=$(($(ledger 'select running_ms from pod') - $(md_get "$ID" .started_ms | cut -d. -f1)))
	[ "$late" -lt 2000 ] || complain "it ran for $late ms until it was seen"
	is "$(json '.pods[0].phases.release_s < 4')" true "from its release to the proof: $(json '.pods[0].phases.release_s') s"
}

t_no_seconds_are_lost() { cases c_no_seconds_are_lost; }
t_how_they_end() { cases c_preempted c_evicted c_timeout c_idle c_modals_own_failure c_init_failure c_init_failure_once; }
