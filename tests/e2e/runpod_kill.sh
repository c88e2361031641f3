#!/bin/bash
# runpod_kill.sh - the client dies of SIGKILL at one of its ledger's writes, its requests or its orders to agents, while
# it has pods at RunPod: whoever comes next finishes the work, and `reap` leaves nothing.
#
# A spread sample of the points; KILL_POINTS=all: all of them (make soak). ONLY='net_after_12$' one of them again.
# shellcheck disable=SC2317 # called by kill.sh
. "$(dirname "$0")/lib.sh"
. "$ROOT/tests/cloud/runpod/client.sh"
. "$ROOT/tests/cloud/common/kill.sh"

vendor_config() { rp_config "$@"; }
pods_alive() { rp_pods; }
delayed_create() { rp_control fault "{\"when\":{\"op\":\"createPod\"},\"do\":{\"delay_ms\":$1}}" >/dev/null; }
create_has_begun() { rp_control state | jq -e '.faults[0].hits == 1'; }

t_killed_at_ledger_writes() { killed_at_ledger_writes; }
t_killed_at_requests() { SAMPLE=6 killed_at_requests net; }
t_killed_at_orders_to_agents() { SAMPLE=6 killed_at_orders_to_agents; }
t_killed_while_a_create_is_under_way() { killed_while_a_create_is_under_way; }

run_tests "$@"
