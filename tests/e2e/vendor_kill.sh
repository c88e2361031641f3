#!/bin/bash
# vendor_kill.sh - the client dies of SIGKILL at one of its ledger's writes, its requests or its orders to agents, while
# it has pods at VENDOR (modal, runpod, vast or kubernetes): whoever comes next finishes the work, and `reap` leaves nothing.
#
# A spread sample of the points; KILL_POINTS=all: all of them (make soak). ONLY='net_after_12$' one of them again.
. "$(dirname "$0")/lib.sh"
# shellcheck source=/dev/null
. "$ROOT/tests/cloud/$VENDOR/client.sh"
. "$ROOT/tests/cloud/common/kill.sh"

t_killed_at_ledger_writes() { killed_at_ledger_writes; }
t_killed_at_requests() { SAMPLE=6 killed_at_requests "${REQUESTS:-net}"; }
t_killed_at_orders_to_agents() { SAMPLE=6 killed_at_orders_to_agents; }
t_killed_while_a_create_is_under_way() { killed_while_a_create_is_under_way; }

run_tests "$@"
