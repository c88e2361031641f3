#!/bin/bash
# local_kill.sh - the client dies of SIGKILL at one of its ledger's writes, its orders to agents, or its orders to the local
# provider, each a process of its own: whoever comes next finishes the work, and `reap` leaves nothing. (client.sh does that at its files.)
#
# A spread sample of the points; KILL_POINTS=all: all of them (make soak). ONLY='order_after_12$' one of them again.
# shellcheck disable=SC2317 # called by kill.sh and client.sh
. "$(dirname "$0")/lib.sh"
. "$ROOT/tests/cloud/common/client.sh"
. "$ROOT/tests/cloud/common/kill.sh"

vendor_config() { config "$@"; }
pods_alive() { pods_left; }
pods_ever() { in_ledger "select count(distinct id) from pod where id != ''"; }
all_paid_for() {
	is "$(in_ledger "select group_concat(id) from pod where compute_ms > billed_ms")" "" "pods that computed longer than they were paid for"
}
no_secrets_in() { ! grep -rqa "PRIVATE KEY" state || complain "a private key is left in $(grep -rla "PRIVATE KEY" state | head -n 1)"; }
cloud() { make -s -C "$ROOT" e2e-tools || complain "killer.so cannot be built"; }
cloud_over() { nothing_left; }

t_killed_at_ledger_writes() { NO_LAG=1 killed_at_ledger_writes; }
t_killed_at_orders() { SAMPLE=6 NO_LAG=1 killed_at_requests order; }
t_killed_at_orders_to_agents() { SAMPLE=6 NO_LAG=1 killed_at_orders_to_agents; }

run_tests "$@"
