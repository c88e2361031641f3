# shellcheck shell=bash
# stop.sh - for scripts that begin others beside each other: who stops one stops all that it began, though what runs under a limit has
# a process group of its own.
descendants() { # of PID, the deepest first
	local p
	for p in $(pgrep -P "$1"); do
		descendants "$p"
		echo "$p"
	done
}
stopped() {
	trap '' INT TERM
	# shellcheck disable=SC2046
	kill $(descendants $$) 2>/dev/null
	echo "stopped" >&2
	exit 130
}
trap stopped INT TERM
