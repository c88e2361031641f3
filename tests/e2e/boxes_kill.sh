#!/bin/bash
# boxes_kill.sh - the client dies of SIGKILL while it has two pods on an own box: at one of its ledger's writes, its ssh commands
# (which rent, list, carry, release), or its orders to agents. Whoever comes next finishes the work, and `reap` leaves nothing.
#
# A spread sample of the points; KILL_POINTS=all: all of them (make soak). ONLY='order_after_12$' one of them again.
# shellcheck disable=SC2317 # called by kill.sh and client.sh
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/boxes_lib.sh"
. "$ROOT/tests/cloud/common/client.sh"
. "$ROOT/tests/cloud/common/kill.sh"
AT_ONCE=4 # each has an sshd of its own, and many logins

cloud() {
	make -s -C "$ROOT" e2e-tools || complain "killer.so cannot be built"
	chmod 711 "${T%/*}"
	boxes b1
}
cloud_over() {
	[ -z "${BOX_SPACE:-}" ] || boxes_gone
}
vendor_config() { SSH='slots = 2;' box_config "volume = { name = \"v\"; size_gb = 1; create = true; }; pod = { $POD };" "$@"; }
store() { echo "box/b1/.local/share/burst/local"; }
pods_alive() { ls "$(store)/pods" 2>/dev/null; }
pods_ever() { in_ledger "select count(distinct id) from pod where id != ''"; }
all_paid_for() {
	paid_for < <(cat "$(store)"/ended/*.json | jq -r '"b1:\(.id | ltrimstr("local-")) \(.ended_ms - .created_ms)"')
}
no_secrets_in() { ! grep -rqa "PRIVATE KEY" state || complain "a private key is left in $(grep -rla "PRIVATE KEY" state | head -n 1)"; }

t_killed_at_ledger_writes() { NO_LAG=1 SAMPLE=4 killed_at_ledger_writes; }
t_killed_at_commands() { NO_LAG=1 SAMPLE=6 killed_at_requests order; }
t_killed_at_orders_to_agents() { NO_LAG=1 SAMPLE=4 killed_at_orders_to_agents; }

run_tests "$@"
