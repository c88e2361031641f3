# kill.sh - for scripts that kill the client while it has pods at some vendor, after that vendor's client.sh: before and after each
# write of its ledger; before each request to the vendor, when all of it has been sent, and when its reply has come; before and
# after each order to an agent. Whoever comes next, `run` or `resume` in turn, finishes the work, renders nothing that was safe,
# and `reap` leaves nothing. A spread sample of the points; KILL_POINTS=all: all of them; SECOND=resume: each meets the other.
#
# The vendor's script says: vendor_config TEXT (writes burst.cfg), pods_alive, all_paid_for, no_secrets_in; for the second of these
# also delayed_create MS (the next create is carried out so late) and create_has_begun (it has been sent). It calls
# killed_at_ledger_writes, killed_at_requests net|order (killer.c), killed_at_orders_to_agents and
# killed_while_a_create_is_under_way.
# shellcheck shell=bash
# shellcheck disable=SC2317 # c_ functions are called by names put together
SAMPLE=${SAMPLE:-8}

two_pods() { # so slow that both find work; they note on the volume what they begin, which is not theirs to write
	# shellcheck disable=SC2034
	POD='worker_root = true;'
	slow_worker SLOW=3 MAX_BATCH=1 RENDERED=rendered
	vendor_config 'pods = 2; code = { path = "code"; };'
}
render() { # render ledger|net|order|agent [before|during|after N]: what was counted is in points
	two_pods
	STATUS=0
	{ timeout -k 5 180 env LD_PRELOAD="$ROOT/build/e2e/killer.so" ASAN_OPTIONS="$ASAN_OPTIONS:verify_asan_link_order=0" \
		KILL_AT="${2:-before} $1 ${3:-0}" KILL_LOG=points "$BURST" run --json >out.txt 2>err.txt </dev/null || STATUS=$?; } 2>/dev/null
}
rendered_after() { # rendered_after UPTIME: the ids of what any worker has begun since then, by what lies on volumes and in pods
	find . -path ./home -prune -o -type f -name 'rendered.*' -exec cat {} + | awk -v since="$1" '$2 > since {print $1}' | sort -u
}
at_point() { # at_point run|resume ledger|net|order|agent before|during|after N
	local dead second=$1 LIMIT=240 # a minute of it may be for a list that lags
	render "$2" "$3" "$4"
	read -r dead _ </proc/uptime
	echo "$STATUS" >killed
	echo "$second" >second
	case $STATUS in
	137) ;;
	0) ;; # it was done by then: fewer of them this time
	*) complain "the first client: exit $STATUS ($(tail -n 2 err.txt | tr '\n' '|'))" ;;
	esac
	stamp >stamp.txt
	safe_is_whole
	in_ledger "select id from segment where state = 1" | sort >safe.txt
	[ "$(in_ledger "select count(*) from run where status = 'running'")" = 1 ] || second=run
	burst "$second" --json
	is "$STATUS" 0 "$second ($(tail -n 2 err.txt | tr '\n' '|'))"
	is "$(json .status)" "done" "status of $second"
	unchanged stamp.txt
	all_right 6
	is "$(rendered_after "$dead" | comm -12 safe.txt - | tr '\n' ' ')" "" "rendered again by $second, though safe"
	# where pods have no volume, their notes go with them
	[ -n "${NO_VOLUMES:-}" ] || is "$(rendered_after 0 | wc -l)" 6 "segments that some worker says it has rendered"
	burst reap
	is "$STATUS" 0 "reap ($(tail -n 2 err.txt))"
	is "$(pods_alive)" "" "pods after reap"
	all_paid_for
	no_secrets_in err.txt out.txt state
	is "$(find state/runs -name '*.key' -o -name '*.host')" "" "keys of pods that are gone"
}

# "ledger before N" for each write, and "ledger after N" too for what makes it durable; "net before N", "net during N" and
# "net after N" for each request; "agent before N" and "agent after N" for each order, in turn which of them is first.
points() { # points KIND FILE
	if [ "$1" = ledger ]; then
		awk '{print "ledger before", $1} $3 == "fdatasync" {print "ledger after", $1}' "$2"
	elif [ "$1" = agent ]; then
		awk '{odd = $1 % 2; print "agent", odd ? "before" : "after", $1; print "agent", odd ? "after" : "before", $1}' "$2"
	else
		awk -v kind="$1" '{print kind, "before", $1; print kind, "during", $1; print kind, "after", $1}' "$2"
	fi
}
# A spread sample; without those between a create and the first listing that shows its pod: there the next client must wait a
# minute for a list that may lag (NO_LAG: where it does not); with them where that leaves few.
sample() { # sample KIND
	local windows
	windows=$(cd "c_count_$1" && sqlite3 -separator ' ' state/ledger.db "select create_ms - 200, connected_ms + 300 from pod" | tr '\n' ' ')
	[ -z "${NO_LAG:-}" ] || windows=''
	awk -v windows="$windows" 'BEGIN {n = split(windows, w, " ")}
		{for (i = 1; i < n; i += 2) if ($2 > w[i] && $2 < w[i + 1]) next; print}' "c_count_$1/points" >quick_points
	[ $(($(wc -l <quick_points) * 2)) -ge "$(wc -l <"c_count_$1/points")" ] || cp "c_count_$1/points" quick_points
	points "$1" quick_points | awk -v n="$SAMPLE" '{all[NR] = $0} END {for (i = 0; i < n && i < NR; i++) print all[int(NR * (i + 0.5) / n) + 1]}'
}
killed_at() { # killed_at ledger|net|order|agent
	ONLY='' cases "c_count_$1"
	[ ! -e "c_count_$1/skipped" ] || return
	[ -s "c_count_$1/points" ] || { complain "no such point was counted: $1"; return; }
	local kind moment n second=${SECOND:-run} names=() again=() total killed tries=0 tried_again=0
	while read -r kind moment n; do # their odd number of kinds lets each meet both
		eval "c_${kind}_${moment}_$n() { at_point $second $kind $moment $n; }"
		names+=("c_${kind}_${moment}_$n")
		if [ "$second" = run ]; then second=resume; else second=run; fi
	done < <(if [ "${KILL_POINTS:-}" = all ]; then points "$1" "c_count_$1/points"; else sample "$1"; fi)
	cases "${names[@]}"
	total=$(find . -name killed | wc -l)
	come_again "$1" 0 "${names[@]}"
	while [ ${#again[@]} != 0 ] && { [ $tries = 0 ] || { too_few_killed && [ $tries -lt 5 ]; }; }; do
		ONLY='' cases "${again[@]}"
		tries=$((tries + 1)) tried_again=$((tried_again + ${#again[@]}))
		come_again "$1" $tries "${again[@]}"
	done
	! too_few_killed || complain "only $killed of $total were killed"
	echo "    ${#names[@]} of $(points "$1" "c_count_$1/points" | wc -l) points, $killed killed there (tried again: $tried_again), $(cat "c_count_$1/pods") pods"
}
too_few_killed() { # of $total; how many were: into $killed
	killed=$(find . -name killed -exec grep -lx 137 {} + | wc -l)
	[ $(((total - killed) * 10)) -gt "$total" ] && [ "$killed" -lt $((total - 1)) ]
}
# A run that was done before its point had fewer of them than the one that was counted: one more dies as far into its own, or a
# tenth sooner for each that was tried in vain, since how many looks there are depends on the machine.
come_again() { # come_again KIND TRIED NAME...: into $again
	local kind=$1 tried=$2 name moment n had count
	count=$(wc -l <"c_count_$kind/points")
	shift 2
	again=()
	for name; do
		[ "$(cat "$name/killed" 2>/dev/null)" = 0 ] || continue
		n=${name##*_} moment=${name%_*} moment=${moment##*_}
		had=$(wc -l <"$name/points")
		n=$((n * had * (10 - tried) / count / 10))
		eval "c_again${tried}_${name#c_}() { at_point $(cat "$name/second") $kind $moment $((n > 1 ? n : 1)); }"
		again+=("c_again${tried}_${name#c_}")
	done
}
killed_at_ledger_writes() { killed_at ledger; }
killed_at_requests() { killed_at "$1"; }
killed_at_orders_to_agents() { killed_at agent; }
c_count_ledger() { counted ledger; }
c_count_net() { counted net; }
c_count_order() { counted order; }
c_count_agent() { counted agent; }
counted() {
	render "$1"
	all_done 6
	pods_ever >pods # on a machine under load one may have done all before the second was worth it
	all_paid_for
}

# The pod of a create that was under way when the client died comes up with nobody there.
killed_while_a_create_is_under_way() { cases c_create_then_run c_create_then_resume; }
c_create_then_run() { dies_creating run; }
c_create_then_resume() { dies_creating resume; }
dies_creating() { # dies_creating run|resume
	delayed_create 2500
	two_pods
	burst_bg run
	wait_for 20 "the intent" intent_is_known
	wait_for 20 "the request" create_has_begun # others may come before it
	kill -9 "$PID"
	burst_wait 2>/dev/null
	intent_is_known || complain "it knew its pod when it died"
	wait_for 20 "its pod" there_is_one
	LIMIT=200 burst "$1" --json
	is "$STATUS" 0 "$1 ($(tail -n 2 err.txt | tr '\n' '|'))"
	all_right 6
	burst reap
	is "$STATUS" 0 "reap ($(tail -n 2 err.txt))"
	all_paid_for
}
there_is_one() { [ "$(pods_ever)" = 1 ]; }
