#!/bin/sh
# end.sh - a pod of Kubernetes ends with its first process: its Pod is never restarted. Precedes jobs/agent/start.sh.
# The keys are not in the Pod's specification, which others in the namespace may read. burst brings them by `kubectl exec` as the
# file `keys`, renamed into place when it is whole. A pod to which nobody brings them ends when its first lease would.

await_keys() {
	trap 'exit 0' INT TERM
	mkdir -p "$BURST_HOME" && chmod 700 "$BURST_HOME" || exit 1
	# the container's first start, from which start.sh counts as well
	[ -s "$BURST_HOME/born" ] || date +%s >"$BURST_HOME/born"
	read -r keys_until <"$BURST_HOME/born"
	keys_until=$((keys_until + ${BURST_FIRST_LEASE_S:-600}))
	[ "$keys_until" -le "${BURST_HARD_END:-0}" ] || keys_until=$BURST_HARD_END
	until [ -e "$BURST_HOME/keys" ]; do
		[ "$(date +%s)" -lt "$keys_until" ] || exit 0
		sleep 0.2 2>/dev/null || sleep 1
	done
	# shellcheck source=/dev/null
	. "$BURST_HOME/keys"
	: >"$BURST_HOME/keyed" # for burst, which asks
	rm -f "$BURST_HOME/keys"
}
[ "$BURST_KEYS" != exec ] || await_keys
unset BURST_KEYS

vendor_switch() {
	report_switch 'ok exit'
}
