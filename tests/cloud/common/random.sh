# random.sh - rounds of burst against some vendor's stand-in for about so long, several at once: each draws, by a seed of its
# own, a small job, faults of the API, of the pods and of the storage, blows at the pods while they work, and how its clients
# die. After every client and every round the invariants are held against what the stand-in knows.
#
# To be read by a vendor's own script before its client.sh, with that script's arguments ([SECONDS [SEED]] [t_NAME...], what is left
# of them is in ARGS). The script says:
#   add_fault NAME [MEMBERS], add_rule JSON       order one, as the stand-in's control has it
#   clear_faults                                  none from now on
#   unheard MS                                    what was first told so lately may be unknown: its client was killed
#   what_goes_wrong, BLOWS_KNOWN                  the draws of a round, and what may befall a pod, as JSON for its control
#   vendor_config TEXT, pods_alive, strike POD JSON, all_paid_for, no_secrets_in
#   creates_ever                                  how many creates there were in all rounds
#   NOW_AND_THEN='KEY = VALUE;'                    in one of four configs; OTHER_END=EXIT/STATUS   also right for a client
#   judge_too                                     what else must be so after each client, which may have $pods
#   ENDS_OF=8                                     of so many clients four are ended by a signal
# shellcheck shell=bash
# shellcheck disable=SC2317 # c_ functions are called by names put together
DURATION_S=${DURATION_S:-60} SEED=1 LONG=
case ${1:-} in
'' | [tc]_*) ;;
*[!0-9]*) echo "$(basename "$0" .sh): want SECONDS SEED, not \"$*\"" >&2; exit 2 ;;
*)
	DURATION_S=$1 SEED=${2:-1} LONG=yes
	shift $(($# > 1 ? 2 : 1))
	;;
esac
ARGS=("$@")
AT_ONCE=${AT_ONCE:-20}

# ---- by the seed ----

STATE=0 D=
draw() { # draw N: one of 0..N-1 in $D
	STATE=$(((STATE * 6364136223846793005 + 1442695040888963407) & 0x7fffffffffffffff))
	D=$(((STATE >> 33) % $1))
}
one_of() { # one_of WORD...: in $D
	draw $#
	shift "$D"
	D=$1
}
one_in() { # one_in N: true so often
	draw "$1"
	[ "$D" = 0 ]
}
plan() { echo "$*" >>plan; }

# ---- what goes wrong ----

fault() { # fault NAME [MEMBERS]: for some of the requests it is about
	draw 3
	local skip=$D
	draw 3
	add_fault "$1" "${2:+$2,}\"skip\":$((skip / 2 * (D + 1))),\"times\":$((D + 1))"
	plan "  $1 ${2:-} from $((skip / 2 * (D + 1))) on, $((D + 1)) times"
}
rule() { # rule OP DO
	draw 3
	add_rule "{\"when\":{\"op\":\"$1\"},\"skip\":$D,\"times\":2,\"do\":$2}"
	plan "  $1 $2 from $D on, twice"
}

# While they work: every pod that lives gets the blow.
blows() { # blows "MS JSON"...: after so long each; ends with the round
	local at blow id began=${EPOCHREALTIME/./}
	[ $# -gt 0 ] || return
	while read -r at blow; do
		until [ $(((${EPOCHREALTIME/./} - began) / 1000)) -ge "$at" ]; do
			read -rt 0.1 <> <(:) || :
			[ -e going ] || return
		done
		for id in $(pods_alive | cut -d' ' -f1); do strike "$id" "$blow" >/dev/null; done
	done < <(printf '%s\n' "$@" | sort -n)
}
draw_blows() { # in BLOWS
	local at
	BLOWS=()
	while one_in 3; do
		draw 9000
		at=$D
		one_of "${BLOWS_KNOWN[@]}"
		BLOWS+=("$at $D")
		plan "  to all pods after $at ms: $D"
	done
}

# ---- one client ----

# Runs it in the background and lets it live, or ends it after a time; what it says is kept as err.N, out.N.
client() { # client N COMMAND...
	local n=$1 end='' at=0 began killed=0
	shift
	draw "${ENDS_OF:-8}"
	case $D in
	0 | 1 | 2) end=KILL ;;
	3) end=TERM ;;
	esac
	draw 7000 # mostly late: whoever comes after an early death must wait a minute for a list that may lag
	at=$D
	one_in 4 || at=$((at + 3000))
	plan "  $*${end:+ until SIG$end after $at ms}"
	burst_bg "$@"
	began=${EPOCHREALTIME/./}
	while [ -n "$PID" ] && running_as "$PID"; do
		if [ -n "$end" ] && [ $(((${EPOCHREALTIME/./} - began) / 1000)) -ge "$at" ]; then
			kill "-$end" "$PID" 2>/dev/null
			[ $killed != 0 ] || killed=${EPOCHREALTIME/./}
			[ "$end" = KILL ] || end='' # and then it may take its time
		fi
		read -rt 0.05 <> <(:) || :
	done
	burst_wait 2>/dev/null
	plan "    exit $STATUS: $(tail -n 1 err.txt)"
	cp err.txt "err.$n"
	cp out.txt "out.$n"
	[ "$STATUS" = 137 ] || return 0
	[ "$end" = KILL ] || complain "it died of SIGKILL by itself"
	unheard $((1000 + (${EPOCHREALTIME/./} - killed) / 1000)) # a list may come in as it dies
}
# Its exit status says what is so.
judge() { # judge SEGMENTS
	local status released
	case $STATUS in
	137) return ;;
	124) complain "it did not come to an end"; return ;;
	esac
	is "$(tail -n 1 out.txt | jq -r .schema 2>&1)" 1 "the JSON of exit $STATUS ($(tail -n 2 err.txt | tr '\n' '|'))"
	status=$(json .status) released=$(json '[.pods[].released] | all')
	case $STATUS/$status in
	0/done | 1/partial | 1/failed | [346]/failed | [346]/partial | 5/capped | 9/unreleased | 143/interrupted | "${OTHER_END:-}") ;;
	*) complain "exit $STATUS says it is $status ($(tail -n 2 err.txt | tr '\n' '|'))" ;;
	esac
	if [ "$STATUS" != 9 ]; then
		is "$released" true "all released, at exit $STATUS"
		is "$(pods_alive)" "" "pods that live after exit $STATUS"
	else
		pods_alive | while read -r id _ name; do
			json '.pods[] | select(.released | not) | .id, .name' | grep -qxF -e "$id" -e "$name" || echo "$id"
		done >unsaid
		is "$(cat unsaid)" "" "pods that live and that exit 9 says nothing of"
	fi
	is "$(json '[.pods[] | select(.billed_seconds < .compute_seconds) | .id] | join(" ")')" "" "pods that computed longer than they were paid for"
	[ "$STATUS" != 0 ] || all_right "$1"
	! declare -F judge_too >/dev/null || judge_too
}

# ---- one round ----

time_is_up() { [ "$DURATION_S" != 0 ] && [ "$EPOCHSECONDS" -ge "$TIME_UP" ]; }

round() { # round SEED
	local segments slow batch pods n=0 how
	STATE=$1
	for n in 1 2 3 4; do draw 2; done
	draw 12; segments=$((D + 3))
	one_of 0.1 0.3 0.6; slow=$D
	draw 4; batch=$((D + 1))
	draw 3; pods=$((D + 1))
	LIMIT=400 # so many pods may end of a lease of 20 s, one after another, before it is given up
	script_lines "$segments"
	slow_worker "SLOW=$slow" "MAX_BATCH=$batch"
	how='lease = "10m";'
	! one_in 3 || how='lease = "20s";'
	! one_in 4 || how="$how ${NOW_AND_THEN:-}"
	vendor_config "pods = $pods; wait = \"${WAIT:-20s}\"; boot_limit = \"${BOOT_LIMIT:-6s}\"; code = { path = \"code\"; }; $how"
	plan "seed $1: $segments segments of $slow s by $batch on $pods pods, $how"
	what_goes_wrong
	draw_blows
	: >going
	blows "${BLOWS[@]}" &
	local blower=$!
	n=0 STATUS=1
	while [ "$STATUS" != 0 ] && [ $n -lt 3 ] && { [ $n = 0 ] || ! time_is_up; }; do
		how=run
		[ "$n" = 0 ] || ! one_in 2 || [ "$(in_ledger "select count(*) from run where status = 'running'")" != 1 ] || how=resume
		one_of --trace -v
		client $n "$how" --json "$D"
		judge "$segments"
		[ ! -e stamp.txt ] || unchanged stamp.txt
		stamp >stamp.txt
		n=$((n + 1))
	done
	rm going
	wait $blower 2>/dev/null
	round_over "$segments"
}
# With nothing in its way any more everything comes to a good end.
round_over() { # round_over SEGMENTS
	clear_faults
	if [ "$STATUS" != 0 ]; then
		burst run --json
		plan "  run, with no faults: exit $STATUS: $(tail -n 1 err.txt)"
		cp err.txt err.last
		is "$STATUS" 0 "with no faults ($(tail -n 2 err.txt | tr '\n' '|'))"
		judge "$1"
		unchanged stamp.txt
	fi
	burst reap
	is "$STATUS" 0 "reap ($(tail -n 2 err.txt))"
	is "$(in_ledger "select count(*) from pod where state not in ('gone', 'failed')")" 0 "pods that the ledger holds for open"
	all_paid_for
	no_secrets_in err* out* state
}

random_faults() {
	# the last ones may have to wait a minute for a list that may lag
	local last_s=$((DURATION_S > 60 ? DURATION_S - 45 : DURATION_S / 4))
	local until=$((SECONDS + last_s)) seed=$SEED names=() name
	TIME_UP=$((EPOCHSECONDS + last_s + 10))
	while :; do
		eval "c_$seed() { round $seed; }"
		names+=("c_$seed")
		begin_case "c_$seed"
		seed=$((seed + 1))
		[ $SECONDS -lt $until ] || break
	done
	cases_over "${names[@]}"
	for name in "${names[@]}"; do
		[ ! -e "$name/why" ] || {
			cat "$name/plan"
			echo "    again: VENDOR=$VENDOR tests/e2e/$(basename "$0") 0 ${name#c_}   ($(cat "$name/why"))"
			WHY="$WHY again: VENDOR=$VENDOR tests/e2e/$(basename "$0") 0 ${name#c_};"
		}
	done
	echo "    ${#names[@]} rounds, seeds $SEED to $((seed - 1)): $(creates_ever) creates, clients' ends: $(
		sed -n 's/^    exit \([0-9]*\):.*/\1/p' c_*/plan | sort -n | uniq -c | awk '{printf "%s%s x %s", sep, $2, $1; sep = ", "}')"
}
