#!/bin/bash
# runpod_random.sh [SECONDS [SEED]] - rounds of burst against RunPod for about so long, several at once: each draws, by a seed of its
# own, a small job, faults of the API, of the pods and of the storage, blows at the pods while they work, and how its clients
# die. After every client and every round the invariants are held against what the stand-in knows.
#
# A round that fails prints its seed; `runpod_random.sh 0 SEED` plays it again. VERBOSE=1: how each went; AT_ONCE=rounds at once.
# shellcheck disable=SC2317 # c_ functions are called by names put together
DURATION_S=60 SEED=1
case ${1:-} in
'' | t_*) ;;
*[!0-9]*) echo "runpod_random: want SECONDS SEED, not \"$*\"" >&2; exit 2 ;;
*)
	DURATION_S=$1 SEED=${2:-1}
	shift $(($# > 1 ? 2 : 1))
	;;
esac
AT_ONCE=${AT_ONCE:-20}
. "$(dirname "$0")/lib.sh"
. "$ROOT/tests/cloud/runpod/client.sh"

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
	rp_fault "$1" "${2:+$2,}\"skip\":$((skip / 2 * (D + 1))),\"times\":$((D + 1))"
	plan "  $1 ${2:-} from $((skip / 2 * (D + 1))) on, $((D + 1)) times"
}
rule() { # rule OP DO
	draw 3
	rp_control fault "{\"when\":{\"op\":\"$1\"},\"skip\":$D,\"times\":2,\"do\":$2}" >/dev/null
	plan "  $1 $2 from $D on, twice"
}
quotas_of_the_fault() { rp_control settings '{"quotas":{"minute":60,"hour":3000,"day":50000}}' >/dev/null; }
an_api_fault() {
	draw 22
	case $D in
	0) fault F1 ;;
	1) fault F2 ;;
	2) rule createPod '{"cut":60}' ;;
	3) fault F3 ;;
	4 | 5) fault F5 ;;
	6) fault F6 '"op":"createPod|deletePod|listPods"'; quotas_of_the_fault ;;
	7) fault F8 "\"when\":{\"gpu\":\"$RTX4090\"}" ;;
	8 | 9) fault F16 ;;
	10) fault F16 '"way":"lingers","ms":7000' ;;
	11) fault F16 '"way":"appears","ms":9000' ;;
	12 | 13) fault F17 ;;
	14) fault F18 ;;
	15) fault F21 ;;
	16) fault F21 '"way":"invalid"' ;;
	17) fault F21 '"way":"html","op":"listGpus|listPods|listVolumes"' ;;
	18) fault F27 ;;
	19) one_of '' '"cursor":"",'; fault F29 "$D\"op\":\"listPods\"" ;;
	20) rule '.*' '{"delay_ms":2500}' ;;
	21) rule 'listPods|deletePod|createPod' '{"status":503,"detail":"upstream"}' ;;
	esac
}
# The list lags so long that a second pod of one create could not be known: either the one or the other.
a_lagging_list() { if one_in 2; then fault F28; else fault F3 '"list":true,"ms":9000'; fi; }
a_pod_fault() {
	draw 14
	case $D in
	0) one_of PROVISIONING STARTING; rule createPod "{\"pod\":{\"stuck\":\"$D\"}}" ;;
	1) fault F10 ;;
	2) one_of reset silent; fault F11 "\"door\":\"$D\"" ;;
	3) fault F12 ;;
	4 | 5) draw 100000; fault F13 "\"bytes\":$((20000 + D)),\"drops\":2" ;;
	6) fault F14 ;;
	7 | 8) draw 6; fault F15 "\"ms\":$((1500 + D * 1500))" ;;
	9) draw 6; fault F15 "\"ms\":$((1500 + D * 1500)),\"to\":\"TERMINATED\"" ;;
	10) fault F19 '"ms":5000' ;;
	11) one_of 0.7 9.5; fault F22 "\"cost\":$D" ;;
	12) one_of ro full; fault F26 "\"how\":\"$D\"" ;;
	13) fault F20 '"multiline":true,"cut":4'; fault F14 ;;
	esac
}
a_storage_fault() {
	draw 4
	case $D in
	0) fault F23 ;;
	1) fault F23 '"way":"loop"' ;;
	2) fault F23 '"way":"full"' ;;
	3)
		rp_control settings '{"s3_clock_ms":7200000}' >/dev/null
		plan "  F24: the storage's clock is off"
		;;
	esac
}
a_refusal() {
	if one_in 2; then fault F7; else rule 'listGpus|listVolumes|createPod' '{"status":403,"detail":"access denied"}'; fi
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
		for id in $(rp_pods | cut -d' ' -f1); do rp_control "pods/$id" "$blow" >/dev/null; done
	done < <(printf '%s\n' "$@" | sort -n)
}
draw_blows() { # in BLOWS
	local at
	BLOWS=()
	while one_in 3; do
		draw 9000
		at=$D
		one_of '{"drop_ssh":true}' '{"drop_ssh":true}' '{"kill":9}' '{"move_port":true}' '{"preempt":"EXITED"}' '{"preempt":"TERMINATED"}' \
			'{"locked":true}'
		BLOWS+=("$at $D")
		plan "  to all pods after $at ms: $D"
	done
}

# ---- one client ----

# Runs it in the background and lets it live, or ends it after a time; what it says is kept as err.N, out.N.
client() { # client N COMMAND...
	local n=$1 end='' at=0 began
	shift
	draw 8
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
			kill "-$end" "$PID"
			[ "$end" = KILL ] || end='' # and then it may take its time
		fi
		read -rt 0.05 <> <(:) || :
	done
	burst_wait 2>/dev/null
	plan "    exit $STATUS: $(tail -n 1 err.txt)"
	cp err.txt "err.$n"
	cp out.txt "out.$n"
	[ "$STATUS" != 137 ] || [ "$end" = KILL ] || complain "it died of SIGKILL by itself"
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
	0/done | 1/partial | 1/failed | [346]/failed | [346]/partial | 5/capped | 9/unreleased | 143/interrupted) ;;
	*) complain "exit $STATUS says it is $status ($(tail -n 2 err.txt | tr '\n' '|'))" ;;
	esac
	if [ "$STATUS" != 9 ]; then
		is "$released" true "all released, at exit $STATUS"
		is "$(rp_pods)" "" "pods that live after exit $STATUS"
	else
		rp_pods | while read -r id _ name; do
			json '.pods[] | select(.released | not) | .id, .name' | grep -qxF -e "$id" -e "$name" || echo "$id"
		done >unsaid
		is "$(cat unsaid)" "" "pods that live and that exit 9 says nothing of"
	fi
	is "$(json '[.pods[] | select(.billed_seconds < .compute_seconds) | .id] | join(" ")')" "" "pods that computed longer than they were paid for"
	[ "$STATUS" != 0 ] || all_right "$1"
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
	LIMIT=240
	script_lines "$segments"
	rp_slow_worker "SLOW=$slow" "MAX_BATCH=$batch"
	how='lease = "10m";'
	! one_in 3 || how='lease = "20s";'
	! one_in 4 || how="$how spot = true;"
	rp_config "pods = $pods; wait = \"20s\"; boot_limit = \"6s\"; code = { path = \"code\"; }; $how"
	plan "seed $1: $segments segments of $slow s by $batch on $pods pods, $how"
	an_api_fault
	! one_in 2 || an_api_fault
	! one_in 6 || a_lagging_list
	! one_in 2 || a_pod_fault
	! one_in 6 || a_storage_fault
	! one_in 9 || a_refusal
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
	wait $blower
	round_over "$segments"
}
# With nothing in its way any more everything comes to a good end.
round_over() { # round_over SEGMENTS
	curl -qsS -X DELETE "$RUNPOD_API_URL/_control/faults" >/dev/null
	rp_control settings '{"s3_clock_ms":0}' >/dev/null
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

t_random_faults() {
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
			echo "    again: tests/e2e/runpod_random.sh 0 ${name#c_}   ($(cat "$name/why"))"
			WHY="$WHY again: tests/e2e/runpod_random.sh 0 ${name#c_};"
		}
	done
	echo "    ${#names[@]} rounds, seeds $SEED to $((seed - 1)): $(cat c_*/cloud/requests.jsonl | grep -cE '"op":"(createPod|graphql:podRent)') creates, clients' ends: $(
		sed -n 's/^    exit \([0-9]*\):.*/\1/p' c_*/plan | sort -n | uniq -c | awk '{printf "%s%s x %s", sep, $2, $1; sep = ", "}')"
}

run_tests "$@"
