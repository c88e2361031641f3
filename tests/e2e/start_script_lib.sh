# start_script_lib.sh - what the tests of the start script share: it runs under dash, busybox ash and bash (SHELLS), with leases of
# seconds and a real sshd. ONLY=name: one test.
#
# shellcheck shell=sh
# shellcheck disable=SC2013,SC2046,SC2016,SC2015,SC2086,SC2154

here=$(cd "$(dirname "$0")/../.." && pwd)
SCRIPT=$here/jobs/agent/start.sh
top=$(mktemp -d "${TMPDIR:-/tmp}/burst-start-test.XXXXXX")
fails=0 n=0

cleanup() {
	for pid in $(cat "$top"/pids 2>/dev/null); do
		kill -9 "$pid" 2>/dev/null
	done
	# and what they began, however lately
	for p in $(grep -lsF "$top/" /proc/[0-9]*/environ /proc/[0-9]*/cmdline); do
		p=${p#/proc/}
		[ "${p%%/*}" = $$ ] || kill -9 "${p%%/*}" 2>/dev/null
	done
	umount -l "$top/small" 2>/dev/null
	rm -rf "$top"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

fail() {
	fails=$((fails + 1))
	echo "not ok: $shell: $name: $1"
	tail -n 15 "$dir/home/start.log" "$dir/home/sshd.log" 2>/dev/null
	return 1
}

check() { # WHAT GOT WANT
	[ "$2" = "$3" ] || fail "$1: got '$2', want '$3'"
}

ssh-keygen -q -t ed25519 -N '' -C host -f "$top/host"
ssh-keygen -q -t ed25519 -N '' -C user -f "$top/user"

free_port() {
	perl -MIO::Socket::INET -e 'print IO::Socket::INET->new(Listen => 1, LocalAddr => "127.0.0.1")->sockport'
}

# pod VENDOR FIRST-LEASE HARD-END [NAME=VALUE...]: seconds from now. Starts the script as $pid.
pod() {
	n=$((n + 1))
	dir=$top/$n
	mkdir -p "$dir/home" "$dir/volume"
	now=$(date +%s)
	port=$(free_port)
	vendor=$1 first=$(($2 < 0 ? 0 : now + $2)) hard=$((now + $3))
	shift 3
	common=
	case $vendor in
	runpod | vast) common=$here/providers/http.sh ;;
	esac
	# shellcheck disable=SC2086 # none, or one path
	cat $common "$here/providers/$vendor/end.sh" "$SCRIPT" >"$dir/start.sh"
	case $shell in
	busybox) set -- "$@" busybox ash "$dir/start.sh" ;;
	*) set -- "$@" $shell "$dir/start.sh" ;;
	esac
	[ $vendor = local ] || set -- BURST_CONTAINER=1 "$@"
	env -i PATH="${POD_PATH:-$PATH}" HOME="$HOME" BURST_RUN=r1 BURST_ATTEMPT=att1 BURST_MACHINE=m \
		BURST_HARD_END=$hard BURST_FIRST_LEASE_END=$first BURST_LEASE_S=10 BURST_SSH_PORT=$port \
		BURST_HOST_KEY_B64="$(base64 -w0 "$top/host")" BURST_AUTHORIZED_KEY="$(cat "$top/user.pub")" \
		BURST_VOLUME="$dir/volume" BURST_HOME="$dir/home" "$@" >"$dir/out" 2>&1 &
	pid=$!
	echo $pid >>"$top/pids"
}

alive() {
	kill -0 $pid 2>/dev/null && [ "$(cut -d' ' -f3 /proc/$pid/stat 2>/dev/null)" != Z ]
}

until_true() { # COMMAND...: at most 30 s
	for _ in $(seq 300); do
		"$@" 2>/dev/null && return 0
		sleep 0.1
	done
	fail "never: $*"
}

under_each_shell() { # the tests of the script that calls this
	for shell in ${SHELLS:-dash busybox bash}; do
		command -v $shell >/dev/null || { echo "skipped: no $shell here"; continue; }
		for name in $(sed -n 's/^test_\([a-z_]*\)() {$/\1/p' "$0"); do
			[ -z "$ONLY" ] || [ "$ONLY" = "$name" ] || continue
			before=$fails ssh_command=true
			"test_$name"
			[ $fails = $before ] && echo "ok: $shell: $name"
		done
	done
	[ $fails = 0 ]
}
