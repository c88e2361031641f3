#!/bin/bash
# vendor_random.sh [SECONDS [SEED]] - rounds of burst against VENDOR (modal, runpod or vast) for about so long, several at once: each draws,
# by a seed of its own, a small job, faults, blows at the pods while they work, and how its clients die. After every client and every
# round the invariants are held against what the stand-in knows.
#
# A round that fails prints its seed; `VENDOR=modal vendor_random.sh 0 SEED` plays it again. VERBOSE=1: how each went;
# AT_ONCE=rounds at once. tests/cloud/VENDOR/random.sh has what can go wrong there.
[ "${VENDOR:-}" != modal ] || DURATION_S=30 # its rounds are shorter
. "$(dirname "$0")/../cloud/common/random.sh"
. "$(dirname "$0")/lib.sh"
# shellcheck source=/dev/null
. "$ROOT/tests/cloud/$VENDOR/client.sh"
# shellcheck source=/dev/null
. "$ROOT/tests/cloud/$VENDOR/random.sh"

t_random_faults() { random_faults; }
run_tests "${ARGS[@]}"
