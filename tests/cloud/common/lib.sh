# lib.sh - what the stand-ins' own lib.sh have in common.
# shellcheck shell=bash
PODBOX=${PODBOX:-$ROOT/build/tests/podbox}

cloud_can() { # may this machine have such pods? says why not; a script asks once
	[ ! -e "$WORK/cloud_can" ] || return 0
	command -v node >/dev/null || { echo "no node (Debian package nodejs)"; return 1; }
	[ "$(node -p 'process.versions.node.split(".")[0] >= 18')" = true ] 2>/dev/null || { echo "node 18 or newer is needed, here is $(node --version 2>&1 | tail -n 1)"; return 1; }
	[ -n "${CHECKING:-}" ] || make -s -C "$ROOT" BUILD=build podbox >/dev/null || { echo "podbox does not build"; return 1; }
	[ "$(id -u)" = 0 ] || { echo "pods of this kind need root"; return 1; }
	[ -x /usr/sbin/sshd ] || { echo "no sshd (Debian package openssh-server)"; return 1; }
	: >"$WORK/cloud_can"
}

# Every process in the network of one of our pods, whoever its parent is by now.
cloud_processes_of() { # NETNS...
	local ns
	for ns; do
		ns=${ns//[^0-9]/}
		[ -z "$ns" ] || find /proc -maxdepth 3 -path '/proc/[0-9]*/ns/net' -lname "*:?${ns}?" 2>/dev/null
	done
}
cloud_nothing_left() { # STATE NETNS...
	local state=$1
	shift
	[ -z "$(cloud_processes_of "$@")" ] && ! pgrep -f -- "$state" >/dev/null
}

# Ends the server; what is left of it or of its pods is a complaint.
cloud_end() { # SERVER-PID STATE POD-PID...
	local server=$1 state=$2 pid nets=()
	shift 2
	for pid; do nets+=("$(readlink "/proc/$pid/ns/net")"); done
	kill "$server" 2>/dev/null
	wait "$server" 2>/dev/null
	wait_for 10 "the stand-in's pods to end ($(cloud_processes_of "${nets[@]}" | head -n 3 | tr '\n' ' '))" cloud_nothing_left "$state" "${nets[@]}"
	! grep -qF "$state" /proc/mounts || complain "the stand-in leaves mounts: $(grep -F "$state" /proc/mounts | head -n 2)"
	[ ! -s "$state/stderr" ] || complain "the stand-in says: $(head -n 3 "$state/stderr" | tr '\n' '|')"
}
