#!/bin/bash
# modal_kill.sh - the client dies of SIGKILL at one of its ledger's writes, its requests or its orders to agents, while
# it has sandboxes at Modal: whoever comes next finishes the work, and `reap` leaves nothing.
#
# A spread sample of the points; KILL_POINTS=all: all of them (make soak). ONLY='net_after_12$' one of them again.
# shellcheck disable=SC2317 # called by kill.sh
. "$(dirname "$0")/lib.sh"
. "$ROOT/tests/cloud/modal/client.sh"
. "$ROOT/tests/cloud/common/kill.sh"

vendor_config() { md_config "$@"; }
pods_alive() { md_sandboxes; }
delayed_create() { md_control fault "{\"when\":{\"op\":\"SandboxCreate\"},\"do\":{\"delay_ms\":$1}}" >/dev/null; }
create_has_begun() { md_control state | jq -e '.faults[0].hits == 1'; }

t_killed_at_ledger_writes() { killed_at_ledger_writes; }
t_killed_at_requests() { SAMPLE=6 killed_at_requests net; }
t_killed_at_orders_to_agents() { SAMPLE=6 killed_at_orders_to_agents; }
t_killed_while_a_create_is_under_way() { killed_while_a_create_is_under_way; }

run_tests "$@"
