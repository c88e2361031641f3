#!/bin/bash
# plan_same.sh - one answer everywhere: random offers and wishes, by a seed. A plan with saved offers is the plan that the same offers give
# when their providers are asked, and what a run then rents. Offers are those of a RunPod of our own and of pods on this machine.
#
# plan_same.sh [ROUNDS [SEED]] [t_NAME...]
. "$(dirname "$0")/lib.sh"
AT_ONCE=${AT_ONCE:-6}
# shellcheck source-path=SCRIPTDIR
. "$ROOT/tests/cloud/runpod/wide.sh"
ROUNDS=${ROUNDS:-24} SEED=1
case ${1:-} in
'' | [tc]_*) ;;
*)
	ROUNDS=$1 SEED=${2:-1}
	shift $(($# > 1 ? 2 : 1))
	;;
esac

cloud() { # pods that are no containers: what they do is no matter here
	local why
	why=$(wide_can) || { skip "$why"; return 1; }
	LIGHT_RENDER_MS=5 rp_start --light || return 1
	rp_control settings '{"quotas":{"minute":6000,"hour":60000,"day":600000},"balance":1000000,"spend_limit":100000}' >/dev/null
}
same() { python3 "$ROOT/tests/e2e/plan_same.py" "$@"; }
tell() { WHY=${WHY:-"seed $SEED_NOW ($(tr '\n' ' ' <"$T/wish")): $*"}; }

# save_offers: every offer there is, in offers.json
save_offers() {
	local flags
	cd all || return
	for flags in "" "--spot -p runpod" ${PAIRS:+"--gpu $PAIRS"} ${PAIRS:+"--spot -p runpod --gpu $PAIRS"}; do
		# shellcheck disable=SC2086 # words
		IFS=' ' burst offers --json $flags
		[ "$STATUS" = 0 ] || [[ "$flags" = *--gpu* ]] || tell "offers $flags ($(tail -n 1 err.txt))"
		cat out.txt
	done | jq -s 'add | unique' >../offers.json
	cd .. || return
}
# same_no SAVED OTHER: two exit statuses are one answer. Providers that are asked may find a mistake in a wish. While something is sold out
# that may cost less than caps.max_price_per_hour, a run waits for it, and then has found nothing.
same_no() {
	[ "$1" = "$2" ] || [ "$1/$2" = 4/2 ] || [ "$1/$2" = 5/2 ] || { [ "$1/$2" = 5/4 ] && grep -q "every offer is above caps.max_price_per_hour" saved.err; }
}
one_answer() { # one_answer SEED
	local order differs='' flags planned
	SEED_NOW=$1
	rehearse
	mkdir -p code
	cp "$ROOT/tests/workers/worker.sh" code/
	same draw "$1"
	PAIRS=$(cat pairs)
	while read -r order; do rp_control stock "$order" >/dev/null; done <stock.jsonl
	mapfile -t flags <wish
	save_offers
	same bad >bad.sql
	ledger "$(cat bad.sql)"
	burst plan --offers offers.json --json "${flags[@]}"
	planned=$STATUS
	cp out.txt saved.json
	cp err.txt saved.err
	burst plan --json "${flags[@]}"
	cp out.txt live.json
	cp err.txt live.err
	same_no "$planned" "$STATUS" || tell "plan: exit $planned with saved offers ($(tail -n 1 saved.err)), $STATUS with live ones ($(tail -n 1 err.txt))"
	[ -n "$WHY" ] || differs=$(same differ saved.json live.json | tr '\n' ';')
	[ -z "$differs" ] || tell "saved and live: $differs"
	burst run --json "${flags[@]}"
	cp err.txt run.err
	sqlite3 -json "$BURST_STATE_DIR/ledger.db" "select p.*, r.planned_ms, r.planned_microusd, c.pods, c.batch, c.pods_open from pod p
		join run r on r.id = p.run left join choice c on c.run = r.id order by p.seq" >rows.json
	if [ "$planned" != 0 ]; then
		same_no "$planned" "$STATUS" || tell "exit $planned of the plan ($(tail -n 1 saved.err)), $STATUS of the run ($(tail -n 1 run.err))"
		[ ! -s rows.json ] || tell "the plan says no ($(tail -n 1 saved.err)), and the run rents"
		return
	fi
	differs=$(same rented saved.json rows.json | tr '\n' ';')
	[ -z "$differs" ] || tell "planned and rented: $differs (exit $STATUS, $(tail -n 1 run.err))"
}
t_saved_offers_live_ones_and_the_run() {
	local seed names=() name
	for seed in $(seq "$SEED" $((SEED + ROUNDS - 1))); do
		eval "c_$seed() { one_answer $seed; }"
		names+=("c_$seed")
		begin_case "c_$seed"
	done
	cases_over "${names[@]}"
	for name in "${names[@]}"; do
		[ ! -e "$name/why" ] || echo "    $(cat "$name/why")"
	done
	echo "    $ROUNDS rounds, seeds $SEED to $((SEED + ROUNDS - 1)): plans that were made: $(cat c_*/saved.json | jq -r '.verdict + (if .error then " (" + .error.code + ")" else "" end)' | sort | uniq -c | awk '{n = $1; $1 = ""; printf "%s%d%s", sep, n, $0; sep = ", "}')"
}

run_tests "$@"
