#!/bin/bash
# modal_machine.sh - the machine that runs burst fails while it has pods at Modal: its disk, its ledger, its clock, its sleep.
#
# A spread sample of the calls that meet a full disk; FULL_POINTS=all: all of them (make soak).
# shellcheck disable=SC2317,SC2034 # called by machine.sh
. "$(dirname "$0")/lib.sh"
. "$ROOT/tests/cloud/modal/client.sh"
. "$ROOT/tests/cloud/common/machine.sh"

VENDOR=modal
vendor_config() { md_config "$@"; }
pods_alive() { md_sandboxes; }
ids_ever() { md_control state | jq -r '.sandboxes[].id'; }

t_disk_is_full_at_one_call() { disk_is_full_at_one_call; }
t_the_ledger_fails() { the_ledger_fails; }
t_it_sleeps() { cases c_stopped_past_the_lease; }
t_its_clock_is_wrong() { its_clock_is_wrong; }

run_tests "$@"
