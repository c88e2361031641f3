#!/bin/bash
# local_machine.sh - the machine that runs burst fails while it has pods of the local provider: its disk, its ledger.
#
# A spread sample of the calls that meet a full disk; FULL_POINTS=all: all of them (make soak).
# shellcheck disable=SC2317,SC2034 # called by machine.sh
. "$(dirname "$0")/lib.sh"
. "$ROOT/tests/cloud/common/client.sh"
. "$ROOT/tests/cloud/common/machine.sh"

VENDOR=local
vendor_config() { config "$@"; }
pods_alive() { pods_left; }
pods_ever() { ids_ever | wc -l; }
ids_ever() { "$BURST" local-cloud list "$BURST_STATE_DIR" <<<'{}' 2>/dev/null | jq -r '.pods[]?.id'; }
cloud() { make -s -C "$ROOT" e2e-tools || complain "failer.so cannot be built"; }
cloud_over() { nothing_left; }

# shellcheck disable=SC2046
t_the_machine_fails() { cases $(ledger_cases); } # c_ledger_is_replaced, c_ledger_locked_for_good and others
t_its_disk_is_full() { SAMPLE=6 its_disk_is_full; }

run_tests "$@"
