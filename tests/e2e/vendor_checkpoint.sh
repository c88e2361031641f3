#!/bin/bash
# vendor_checkpoint.sh - a command of ten steps at VENDOR (modal, runpod or vast), on pods that are taken back at some moment: with a warning
# and without, with a volume and without.
# shellcheck disable=SC2317 # c_ functions are called by names put together
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/checkpoint_lib.sh"
# shellcheck source=/dev/null
. "$ROOT/tests/cloud/$VENDOR/client.sh"

steps_config() {
	ten_steps
	vendor_config 'code = { path = "code"; }; pods = 1;'
	sed -i "s/^job = .*/job = { name = \"t\"; output = \"out\"; $(sed 's/[&/\]/\\&/g' <<<"$STEPS") };/" burst.cfg
}
no_volume() { sed -i '/^volume = /d' burst.cfg; }
taken_back() { # JSON: the pod that works now
	local id
	id=$(pods_alive | cut -d' ' -f1 | head -n 1)
	[ -n "$id" ] || { complain "no pod to take back"; return 1; }
	strike "$id" "$1" >/dev/null
}
steps_on_pods_taken_back() { # JSON
	LIMIT=300 burst_bg run -v
	reclaimed 2 6 -- taken_back "$1"
	burst_wait
	all_steps_once
	has err.txt "continues from its checkpoint"
}
case $VENDOR in
runpod) WITH_NOTICE='{"preempt":"EXITED"}' AT_ONCE_BLOW='{"preempt":"TERMINATED"}' ;;
vast) WITH_NOTICE='{"outbid":true}' AT_ONCE_BLOW='{"destroy":true}' ;;
modal) WITH_NOTICE='{"end":"TERMINATED"}' AT_ONCE_BLOW='{"end":"TERMINATED","hard":true}' ;;
esac
c_notice_and_volume() { steps_config; steps_on_pods_taken_back "$WITH_NOTICE"; }
c_notice_without_volume() { steps_config; no_volume; steps_on_pods_taken_back "$WITH_NOTICE"; }
c_at_once_with_volume() { steps_config; steps_on_pods_taken_back "$AT_ONCE_BLOW"; }
c_at_once_without_volume() { steps_config; no_volume; steps_on_pods_taken_back "$AT_ONCE_BLOW"; }
with_volumes() { [ -n "${NO_VOLUMES:-}" ] || echo c_notice_and_volume c_at_once_with_volume; }
# shellcheck disable=SC2046
t_pods_are_taken_back() { AT_ONCE=2 cases $(with_volumes) c_notice_without_volume c_at_once_without_volume; }

run_tests "$@"
