#!/bin/bash
# vendor_machine.sh - the machine that runs burst fails while it has pods at VENDOR (modal, runpod or vast): its disk, its ledger, its
# clock, its sleep.
#
# A sample of the calls that meet a full disk, and of what a ledger can suffer; FULL_POINTS=100: 100 calls, and all of that (make soak).
. "$(dirname "$0")/lib.sh"
# shellcheck source=/dev/null
. "$ROOT/tests/cloud/$VENDOR/client.sh"
. "$ROOT/tests/cloud/common/machine.sh"

# what local_machine.sh does not show: pods elsewhere are found and given back as well
some_ledger_cases() {
	if [ -n "${FULL_POINTS:-}" ]; then
		ledger_cases
	else
		echo c_ledger_locked_for_good c_ledger_is_removed c_ledger_spoilt_and_killed \
			c_ledger_locked_and_killed c_ledger_read_only_and_killed
	fi
}
# shellcheck disable=SC2046
t_the_machine_fails() { cases c_stopped_past_the_lease $(some_ledger_cases); }
t_its_disk_is_full() { its_disk_is_full; }
t_its_clock_is_wrong() { its_clock_is_wrong; } # c_handed_over_a_day_ahead and others

run_tests "$@"
