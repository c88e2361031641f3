#!/bin/bash
# vendor_faults.sh - what VENDOR (modal, runpod or vast) does to its clients: each fault of the stand-in, and what must come of it.
# tests/cloud/VENDOR/faults*.sh have the cases of one vendor alone.
# shellcheck disable=SC2317 # c_ functions are called by names put together
. "$(dirname "$0")/lib.sh"
# shellcheck source=/dev/null
. "$ROOT/tests/cloud/$VENDOR/client.sh"
for script in "$ROOT/tests/cloud/$VENDOR"/faults*.sh; do
	# shellcheck source=/dev/null
	. "$script"
done

fault() { # fault NAME [TIMES]: of the vendor's table; -1: for ever
	local what=${FAULTS[$1]} name members
	case $what in
	'{'*) add_rule "${what/\{/\{\"times\":${2:-1},}" ;;
	*)
		read -r name members <<<"$what"
		add_fault "$name" "${members:+$members,}\"times\":${2:-1}"
		;;
	esac
}
gpus_used() { json '[.pods[] | select(.id != "") | .gpu] | join(",")'; }
slowly() { # slowly N [CONFIG...]: N segments of half a second each
	script_lines "$1"
	shift
	slow_worker SLOW=0.5 MAX_BATCH=2
	vendor_config 'code = { path = "code"; };' "$@"
}
has_ended() { ! running_as "$PID"; }

# ---- creates ----

# Nobody knows what became of it: it is looked for, and no second one is asked for meanwhile.
adopted() {
	all_done 6 1
	is "$(asked "$CREATE")" 1 creates
	has err.txt "looking for the pod, and for a second one, until "
}
c_create_says_an_error_and_made_it() {
	fault "create says an error and made it"
	render
	adopted
}
c_create_is_cut_and_made_it() {
	fault "create is cut and made it"
	render
	adopted
}
c_create_is_answered_by_half() {
	fault "create is answered by half"
	render
	adopted
}
c_create_hangs() { # and made it: a list shows it before the answer comes
	fault "create hangs"
	render
	all_done 6 1
	is "$(asked "$CREATE")" 1 creates
	has err.txt "has not answered its create for"
	[ "$(json '.billed_seconds | floor')" -lt $((HANGS_S - 5)) ] || complain "billed for $(json .billed_seconds) s"
}
c_sold_out_twice() {
	fault "sold out" 2
	render
	all_done 6 1
	is "$(asked "$CREATE")" 3 creates
}
c_sold_out_for_ever() {
	fault "sold out" -1
	render 'wait = "6s";'
	in_vain 4 0
	is "$(json .error.code)" no_capacity code
	[ "$(asked "$CREATE")" -le 5 ] || complain "$(asked "$CREATE") creates in 6 s"
}
c_one_gpu_is_closed_to_us() {
	fault "one GPU is closed" -1
	render
	all_done 6 1
	is "$(gpus_used)" "$NEXT_GPU" "where it went"
}
c_wrong_key() {
	wrong_key
	render
	in_vain 3 0
	is "$(json .error.code)" credentials code
}

# ---- pods that do not come up, and lists ----

# A pod that is given up counts once, another does the work.
another_did() { # another_did [WORDS]
	all_done 6 2
	[ -z "${1:-}" ] || has err.txt "$1"
}
c_somebody_elses_host_key() {
	fault "wrong host key"
	render
	another_did "host key"
}
c_host_keys_that_are_never_ours() { # something stands between: no pod after the second, and no talk of capacity
	fault "wrong host key" -1
	render 'wait = "10m";'
	in_vain 6 2
	is "$(json .error.code)" untrusted code
	has err.txt "2 pods in a row could not be trusted: pod "
	has err.txt "the host key is not the one that burst made for it"
	hasnt err.txt "no capacity"
}

# ---- replies of extreme sizes, counts and floods: none ends the process ----

c_extreme_reply_to_a_create() {
	extreme "$CREATE" "$EXTREME_HEAD"
	render
	adopted
}
c_extreme_replies_to_each_kind_of_request() {
	local rule op name skip
	for rule in $EXTREMES; do
		IFS=: read -r op name skip <<<"$rule"
		extreme "$op" "$name" "${skip:-0}"
	done
	LIMIT=240 render # an end whose reply cannot be taken is proven by a minute of lists
	all_done 6 1
}
c_extreme_replies_and_nothing_else() {
	extreme '.*' "$EXTREME_HEAD" 0 -1
	render 'wait = "5s";'
	in_vain 6 0
	hasnt err.txt "no capacity"
}
c_extreme_sshd() {
	fault "extreme sshd"
	render 'boot_limit = "20s";'
	another_did
}
c_no_gpu_in_it() {
	fault "no GPU"
	slow_worker
	ENGINE=chatterbox
	JOB='worker = "sh \"$BURST_CODE/worker.sh\""; vram_gb = 8;'
	vendor_config 'code = { path = "code"; };'
	burst run --json
	is "$STATUS" 1 "exit status ($(tail -n 1 err.txt))"
	has err.txt "no GPU"
	is "$(pods_ever)" 1 "pods that ever were"
	is_avoided
}
c_listed_late() {
	fault "listed late"
	render
	all_done 6 1
}
c_never_listed() { # it is looked up by its id
	fault "never listed" -1
	render 'boot_limit = "30s";'
	all_done 6 1
	looked_up_by_its_id
}
c_fields_that_nobody_knows() {
	fault "unknown fields" -1
	render
	all_done 6 1
}

# ---- at work, and the end ----

c_line_drops_in_a_transfer() {
	fault "line drops"
	render
	all_done 6 1
}
c_taken_back_in_a_batch() {
	fault "taken back"
	slowly 20
	burst run --json
	all_done 20 2
	says_it_was_taken_back
}
c_outlives_its_release() { # it runs and bills for 14 s more: that is said while it does, counted, and spent
	fault "outlives its end"
	render
	all_done 6 1
	schema run
	grep -qE 'pod [^ ]+: released at [0-9:]{8} UTC, still running at [0-9:]{8} UTC: it may still bill' err.txt || complain "not said while it runs"
	is "$(json '.pods[0] | .released and .accepted_at < .still_running_at')" true "two times"
	cp out.txt run.json
	jq -en --argjson cost "$(json .cost_usd)" --argjson bill "$(meter)" '$cost >= $bill - 0.000001' >/dev/null ||
		complain "it costs $(json .cost_usd), the vendor's meter says $(meter)"
	burst ledger --by day --json
	is "$(json '.[0].cost_usd')" "$(jq .cost_usd run.json)" "what caps.per_day counts"
	burst ledger "$(jq -r .run run.json)"
	grep -qE 'released at .*, still running at .*: counted until' out.txt || complain "not in the ledger"
}
c_end_fails_at_first() {
	fault "end fails" "$END_FAILS"
	render
	all_done 6 1
}

# Each waits at most for what must be waited for: the slowest come first.
# shellcheck disable=SC2046,SC2086 # words
t_every_fault() { cases $FIRST $(declare -F | sed -n 's/^declare -f \(c_.*\)/\1/p' | grep -vxF "$(printf '%s\n' $FIRST)"); }

run_tests "$@"
