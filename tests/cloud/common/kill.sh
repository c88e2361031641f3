# kill.sh - for scripts that kill the client at its ledger's writes while it has pods at some vendor, after that vendor's client.sh:
# whoever comes next finishes the work, and `reap` leaves nothing. A spread sample of the points; KILL_POINTS=all: all of them.
#
# The vendor's script says: vendor_config TEXT (writes burst.cfg), pods_alive, all_paid_for, no_secrets_in, delayed_create MS
# (the next create is carried out so late) and create_has_begun (it has been sent); it calls killed_at_ledger_writes and
# killed_while_a_create_is_under_way.
# shellcheck shell=bash
# shellcheck disable=SC2317 # c_ functions are called by names put together
SAMPLE=8

two_pods() { # so slow that both find work
	slow_worker SLOW=1 MAX_BATCH=1
	vendor_config 'pods = 2; code = { path = "code"; };'
}
render() { # render [before|after N]: what changed the ledger is in points
	two_pods
	STATUS=0
	{ timeout -k 5 90 env LD_PRELOAD="$ROOT/build/e2e/killer.so" ASAN_OPTIONS="$ASAN_OPTIONS:verify_asan_link_order=0" \
		KILL_AT="${1:-before} ledger ${2:-0}" KILL_LOG=points "$BURST" run --json >out.txt 2>err.txt </dev/null || STATUS=$?; } 2>/dev/null
}
at_point() { # at_point before|after N
	render "$@"
	echo "$STATUS" >killed
	case $STATUS in
	137) ;;
	0) ;; # it was done by then: fewer writes this time
	*) complain "the first client: exit $STATUS ($(tail -n 2 err.txt | tr '\n' '|'))" ;;
	esac
	stamp >stamp.txt
	local safe second=run
	safe=$(safe_files | wc -l)
	[ $(($2 % 2)) = 0 ] || [ "$(in_ledger "select count(*) from run where status = 'running'")" != 1 ] || second=resume
	burst $second --json
	is "$STATUS" 0 "$second ($(tail -n 2 err.txt | tr '\n' '|'))"
	is "$(json .status)" "done" "status of $second"
	unchanged stamp.txt
	all_right 6
	[ "$(json .segments.rendered)" -le $((6 - safe)) ] || [ $second = resume ] ||
		complain "$second rendered $(json .segments.rendered), and $safe of 6 were safe"
	burst reap
	is "$STATUS" 0 "reap ($(tail -n 2 err.txt))"
	is "$(pods_alive)" "" "pods after reap"
	all_paid_for
	no_secrets_in err.txt out.txt state
}

points() { # "before N" for each write, and "after N" too for what makes it durable
	awk '{print "before", $1} $3 == "fdatasync" {print "after", $1}' "$1"
}
# A spread sample; without those between a create and the first listing that shows its pod: there the next client must wait a
# minute for a list that may lag.
sample() {
	local windows
	windows=$(cd c_count && sqlite3 -separator ' ' state/ledger.db "select create_ms, connected_ms + 300 from pod" | tr '\n' ' ')
	awk -v windows="$windows" 'BEGIN {n = split(windows, w, " ")}
		{for (i = 1; i < n; i += 2) if ($2 > w[i] && $2 < w[i + 1]) next; print}' c_count/points >quick_points
	points quick_points | awk -v n="$SAMPLE" '{all[NR] = $0} END {for (i = 0; i < n; i++) print all[int(NR * (i + 0.5) / n) + 1]}'
}
killed_at_ledger_writes() {
	cases c_count
	[ -s c_count/points ] || return
	local point names=()
	while read -r point; do
		eval "c_${point/ /_}() { at_point $point; }"
		names+=("c_${point/ /_}")
	done < <(if [ "${KILL_POINTS:-}" = all ]; then points c_count/points; else sample; fi)
	cases "${names[@]}"
	local killed
	killed=$(grep -lx 137 ./c_*/killed | wc -l)
	[ $((killed * 10)) -ge $(($(find . -name killed | wc -l) * 9)) ] || complain "only $killed of ${#names[@]} were killed"
	echo "    ${#names[@]} of $(points c_count/points | wc -l) points, $killed killed there"
}
c_count() {
	render
	all_done 6 2
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
	burst "$1" --json
	is "$STATUS" 0 "$1 ($(tail -n 2 err.txt | tr '\n' '|'))"
	all_right 6
	burst reap
	is "$STATUS" 0 "reap ($(tail -n 2 err.txt))"
	all_paid_for
}
there_is_one() { [ "$(pods_ever)" = 1 ]; }
