# queue_lib.sh - what the tests of the queue share.
# shellcheck shell=bash

requests() { ledger "select count(*) from request where $1" 2>/dev/null; }
are() { [ "$(requests "$1")" = "$2" ]; } # are WHERE N
all_ended() { are "state in ('pending','running')" 0; }
waits_for_the_queue() { wait_for 60 "the queue to be empty" all_ended; }
runs() { ledger "select count(*) from run" 2>/dev/null; }
rendered() { ledger "select coalesce(sum(rendered), 0) from run" 2>/dev/null; }
no_runner() { ! pgrep -f -- "queue run $T/" >/dev/null; }
# Each request is bound to one run that is done, or found all there; and each segment was rendered once.
all_bound() { # all_bound SEGMENTS [killed]: a file that came home as its client was killed counts as cached when that run goes on
	is "$(requests "state != 'done' and state != 'removed'")" 0 "requests that are not done ($(ledger 'select state, error from request' | tr '\n' ';'))"
	is "$(ledger "select count(*) from request where run != '' and run not in (select id from run where status = 'done')")" 0 "bound to no good run"
	is "$(ledger "select count(*) from request q join run r on r.id = q.run where r.started_ms < q.created_ms")" 0 "runs that began before their request"
	[ -n "${2:-}" ] && [ "$(rendered)" -le "$1" ] || is "$(rendered)" "$1" "segments rendered"
	all_right "$1"
}
no_client_of_a_run() { [ -z "$(client_of_the_run)" ] || ! running_as "$(client_of_the_run)"; }
client_of_the_run() { sed -n 's/^process //p' "$BURST_STATE_DIR"/runs/*/lock 2>/dev/null | tail -n 1; }
kill_the_client_at() { # kill_the_client_at WHAT COMMAND...
	local what=$1
	shift
	wait_for 40 "$what" "$@"
	kill -9 "$(client_of_the_run)" || complain "there was no client"
}

# Every write of the ledger that a submit or a runner makes is where it dies once.
killed() { # killed before|after N COMMAND...: at the ledger's N-th write; 137, or 0 where there were fewer
	STATUS=0
	{ timeout -k 5 90 env LD_PRELOAD="$ROOT/build/e2e/killer.so" ASAN_OPTIONS="$ASAN_OPTIONS:verify_asan_link_order=0" \
		KILL_AT="$1 ledger $2" KILL_LOG=points "$BURST" "${@:3}" >out.txt 2>err.txt </dev/null || STATUS=$?; } 2>/dev/null
	[ "$STATUS" = 137 ] || [ "$STATUS" = 0 ] || complain "killed $1 $2: exit $STATUS ($(tail -n 2 err.txt | tr '\n' '|'))"
}
