#!/bin/bash
# runpod_machine.sh - the machine that runs burst fails while it has pods at RunPod: its disk, its ledger, its clock, its sleep.
#
# A spread sample of the calls that meet a full disk; FULL_POINTS=all: all of them (make soak).
# shellcheck disable=SC2317,SC2034 # called by machine.sh
. "$(dirname "$0")/lib.sh"
. "$ROOT/tests/cloud/runpod/client.sh"
. "$ROOT/tests/cloud/common/machine.sh"

VENDOR=runpod
vendor_config() { rp_config "$@"; }
pods_alive() { rp_pods; }
ids_ever() { rp_control state | jq -r '.pods[].id'; }

t_disk_is_full_at_one_call() { disk_is_full_at_one_call; }
t_the_ledger_fails() { the_ledger_fails; }
t_it_sleeps() { cases c_stopped_past_the_lease; }
t_its_clock_is_wrong() { its_clock_is_wrong; }

run_tests "$@"
