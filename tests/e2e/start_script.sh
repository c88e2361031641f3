#!/bin/sh
# The start script under dash, busybox ash and bash: its lease, its hard end, its sshd.
#
# shellcheck disable=SC2013,SC2046,SC2016,SC2015,SC2086,SC2154
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/start_script_lib.sh"

# Waits until the script is gone, at most SECONDS; prints how long it took in whole seconds.
gone_within() {
	since=$(date +%s)
	for _ in $(seq $(($1 * 10))); do
		alive || break
		sleep 0.1
	done
	alive && fail "still there after $1 s"
	took=$(($(date +%s) - since))
}

login() {
	ssh -F none -i "$top/user" -p $port -o BatchMode=yes -o IdentitiesOnly=yes -o ConnectTimeout=3 -o LogLevel=ERROR \
		-o UserKnownHostsFile="$dir/known" -o StrictHostKeyChecking=yes "$@" 127.0.0.1 "${ssh_command:-true}"
}

finish() {
	echo test >"$dir/home/end"
	gone_within 10
}

# ---- the tests

test_sessions() {
	mkdir -p "$top/volume with a blank"
	pod local 60 60 LANG=C IMAGE_WORD="it's a \"word\"" TWO="a
FAKE=b" BURST_VOLUME="$top/volume with a blank"
	echo "[127.0.0.1]:$port $(cut -d' ' -f1,2 "$top/host.pub")" >"$dir/known"
	until_true login
	ssh_command='echo "$BURST_HOME:$BURST_VOLUME"'
	check 'folders in a session' "$(login)" "$dir/home:$top/volume with a blank"
	ssh_command='echo "$RUNPOD_API_KEY$BURST_HOST_KEY_B64$LANG"'
	check 'nothing else in a session' "$(login)" ''
	ssh_command=true
	login -o PubkeyAuthentication=no 2>/dev/null && fail 'a login without a key'
	ssh-keygen -q -t ed25519 -N '' -f "$dir/stranger"
	ssh -F none -i "$dir/stranger" -p $port -o BatchMode=yes -o IdentitiesOnly=yes -o UserKnownHostsFile="$dir/known" \
		127.0.0.1 true 2>/dev/null && fail 'a stranger may come in'
	check 'switch' "$(cat "$dir/home/switch")" 'ok exit'
	check 'env is private' "$(stat -c %a "$dir/home/env" "$dir/home" | tr '\n' ' ')" '600 700 '
	check 'env' "$(env -i sh -c '. "$1"; echo "$IMAGE_WORD|$TWO|$BURST_RUN|$RUNPOD_API_KEY$BURST_HOST_KEY_B64$BURST_AUTHORIZED_KEY"' - "$dir/home/env")" \
		"it's a \"word\"|a
FAKE=b|r1|"
	check 'no line of a value taken for a name' "$(grep -c "^FAKE='" "$dir/home/env")" 0
	first_sshd=$(cat "$dir/home/sshd.pid")
	kill "$first_sshd"
	until_true login
	kill -HUP $pid
	login || fail 'it does not survive signals'
	alive || fail 'it does not survive signals'
	second_sshd=$(cat "$dir/home/sshd.pid")
	[ "$first_sshd" != "$second_sshd" ] || fail 'the same sshd'
	finish
	[ "$took" -le 3 ] || fail "slow to end: $took"
	until_true sh -c "! kill -0 $second_sshd"
}

# Where a child brings the connection, sshd serves it on its stdin and stdout, and listens nowhere.
test_dialled() {
	pod local 60 60 BURST_REACH=dial
	echo "pod $(cut -d' ' -f1,2 "$top/host.pub")" >"$dir/known"
	until_true [ -e "$dir/home/connect" ]
	ssh_command='echo "$BURST_HOME"; exit 5'
	check 'through a child' "$(login -o HostKeyAlias=pod -o ProxyCommand="sh '$dir/home/connect'"; echo $?)" "$dir/home
5"
	[ ! -e "$dir/home/sshd.pid" ] || fail 'an sshd listens'
	finish
}

# Without an agent that takes the request there is nothing to wait for; one that says it has left ends the pod at once.
test_asked_to_end() {
	pod local 60 60
	until_true [ -e "$dir/home/switch" ]
	kill -TERM $pid
	gone_within 8
	[ "$took" -ge 1 ] && [ "$took" -le 5 ] || fail "ended after $took s"
	grep -q 'asked to end' "$dir/home/start.log" || fail reason
	pod local 60 60
	until_true [ -e "$dir/home/switch" ]
	kill -TERM $pid
	until_true [ -e "$dir/home/leaving" ]
	rm "$dir/home/leaving"
	sleep 4
	alive || fail 'it does not wait for the agent'
	echo >"$dir/home/left"
	gone_within 3
}

test_lease_over() {
	pod local 2 60
	gone_within 10
	[ "$took" -ge 1 ] && [ "$took" -le 4 ] || fail "ended after $took s"
	grep -q 'lease expired' "$dir/home/start.log" || fail reason
}

# LATE_START_S counts from the first start, and adds no more than one lease (10 s).
test_first_lease_of_a_late_start() {
	for case in '1 4 3 7' '6 4 5 9' '-1 4 0 2' '1 60 9 14'; do
		set -- $case
		pod local $1 60 BURST_LATE_START_S=$2
		gone_within 20
		[ "$took" -ge $3 ] && [ "$took" -le $4 ] || fail "first lease of $1 s, late start $2 s: ended after $took s"
	done
	pod local 1 60 BURST_LATE_START_S=4
	gone_within 20
	mkdir -p "$top/$((n + 1))/home"
	cp "$dir/home/born" "$top/$((n + 1))/home/"
	pod local -1 60 BURST_LATE_START_S=8 BURST_FIRST_LEASE_END=$(($(date +%s) - 5))
	gone_within 20
	[ "$took" -le 6 ] || fail "a container that began anew had another $took s"
}

test_hard_end() {
	pod local 60 2
	gone_within 10
	[ "$took" -ge 1 ] && [ "$took" -le 4 ] || fail "ended after $took s"
	grep -q 'the hard end' "$dir/home/start.log" || fail reason
}

# RUN_S counts from the first start, and moves neither end to a later time.
test_run_time_counts_from_the_start() {
	for case in '60 60 2 60' '60 3 60 60' '60 60 60 3' '-1 60 60 3'; do # FIRST HARD-END RUN_S FIRST_LEASE_S
		set -- $case
		pod local $1 $2 BURST_RUN_S=$3 BURST_FIRST_LEASE_S=$4
		gone_within 20
		[ "$took" -ge 1 ] && [ "$took" -le 6 ] || fail "$case: ended after $took s"
	done
}

test_a_restart_gets_no_new_run_time() {
	pod local 60 60 BURST_RUN_S=12 BURST_FIRST_LEASE_S=60
	until_true test -s "$dir/home/born"
	kill -9 $pid
	for born in "$(($(cat "$dir/home/born") - 11))" "$(($(date +%s) + 99))" none; do
		mkdir -p "$top/$((n + 1))/home"
		echo "$born" >"$top/$((n + 1))/home/born"
		run=2
		[ "$born" -gt "$(date +%s)" ] 2>/dev/null || [ "$born" = none ] || run=12
		pod local 60 60 BURST_RUN_S=$run BURST_FIRST_LEASE_S=60
		gone_within 20
		[ "$took" -le 5 ] || fail "born $born: had another $took s"
		grep -q 'hard end reached' "$dir/home/start.log" || fail "born $born: reason"
	done
}

# The agent never renews a lease beyond the end that it reads there.
test_the_saved_ends_count_from_the_start() {
	pod local 60 600 BURST_RUN_S=300 BURST_FIRST_LEASE_S=20 'PATH=/usr/bin:/bin'
	until_true test -e "$dir/home/switch"
	grep -q "^BURST_FIRST_LEASE_END='$(($(cat "$dir/home/born") + 20))'" "$dir/home/env" || fail 'first lease'
	grep -q "^BURST_HARD_END='$(($(cat "$dir/home/born") + 300))'" "$dir/home/env" || fail 'hard end'
	grep -qx "PATH='/usr/bin:/bin'" "$dir/home/env" || fail 'PATH of the workers'
}

up_in() { # SECONDS
	read -r up _ </proc/uptime
	echo $((${up%.*} + $1))
}

test_lease_renewed() {
	pod local 6 60 # long enough for a busy machine to get there
	until_true test -e "$dir/home/switch"
	echo "att1 $(($(date +%s) + 10)) $(up_in 10)" >"$dir/home/lease"
	gone_within 17
	[ "$took" -ge 8 ] && [ "$took" -le 12 ] || fail "ended after $took s"
}

test_lease_not_for_us() {
	for text in "att2 9999999999 9999999999" "att1 9999999999" "att1 x y" "att1 9999999999 99999999999999999999" \
		"att1 9999999999 9999999999 more" ""; do
		pod local 2 60
		printf '%s\n' "$text" >"$dir/home/lease"
		gone_within 10
		[ "$took" -le 4 ] || fail "'$text' was taken for a lease"
	done
}

test_lease_never_past_the_hard_end() {
	pod local 60 2
	echo "att1 9999999999 9999999999" >"$dir/home/lease"
	gone_within 10
}

test_no_limits_no_life() {
	pod local 60 60 BURST_HARD_END= BURST_FIRST_LEASE_END=soon
	gone_within 10
	[ "$took" -le 3 ] || fail "lived $took s"
}

test_uptime_counts() {
	echo '1000.00 1.0' >"$top/uptime"
	pod local 30 60 BURST_UPTIME_FILE="$top/uptime"
	until_true test -e "$dir/home/switch"
	echo "att1 1 1040" >"$dir/home/lease" # the wall clock of it is long over: it does not count
	sleep 2
	alive || fail 'the wall clock ended a lease that uptime holds'
	echo '1041.00 1.0' >"$top/uptime"
	gone_within 10
	echo '1000.00 1.0' >"$top/uptime"
	pod local 600 30 BURST_UPTIME_FILE="$top/uptime"
	until_true test -e "$dir/home/switch"
	echo '1031.00 1.0' >"$top/uptime"
	gone_within 10
	grep -q 'hard end reached (uptime)' "$dir/home/start.log" || fail reason
	pod local 2 60 BURST_UPTIME_FILE=/nowhere
	gone_within 10
	grep -q 'wall clock' "$dir/home/start.log" || fail 'reason without uptime'
}

# pod_with_lease SECONDS UPTIME FIRST-LEASE: starts with a lease of its own there, as after an end of its container or its host.
pod_with_lease() {
	mkdir -p "$top/$((n + 1))/home"
	wall=$(($(date +%s) + $1))
	echo "att1 $wall $2" >"$top/$((n + 1))/home/lease"
	pod local $3 60
}

not_before() { # EPOCH: a second is lost to rounding
	[ "$(date +%s)" -ge $(($1 - 1)) ] || fail "ended $(($1 - $(date +%s))) s too early"
}

test_lease_of_an_earlier_life() {
	pod_with_lease 4 "$(up_in 4000000)" -1 # of an uptime that has begun anew; the first lease is long over
	gone_within 20
	not_before $wall
	grep -q 'lease expired$' "$dir/home/start.log" || fail reason
	pod_with_lease -3 "$(up_in 4000000)" 50
	gone_within 20
	pod_with_lease 4000 "$(up_in 3)" 50 # the wall clock was set back
	gone_within 20
	pod_with_lease 4 "$(up_in 4000000)" -1
	until_true test -e "$dir/home/switch"
	wall=$(($(date +%s) + 6))
	echo "att1 $wall $(up_in 6)" >"$dir/home/lease"
	gone_within 20
	not_before $wall
}

# As process 1 of a namespace nothing inside can end it, and its end ends all.
test_first_process() {
	unshare -pf --mount-proc true 2>/dev/null || { echo "skipped: no pid namespaces here"; return 0; }
	plain=$shell
	case $shell in
	busybox) set -- busybox ash ;;
	*) set -- "$shell" ;;
	esac
	shell="exec unshare -pf --mount-proc --kill-child $*"
	printf '#!/bin/sh\n%s "$@"\n' "$shell" >"$top/as-first"
	chmod 755 "$top/as-first"
	shell=$top/as-first
	pod local 60 60
	shell=$plain
	echo "[127.0.0.1]:$port $(cut -d' ' -f1,2 "$top/host.pub")" >"$dir/known"
	until_true login
	ssh_command='kill -9 1; kill 1; for p in /proc/[0-9]*; do case $(tr "\0" " " <$p/cmdline) in *agent/star[t].sh*) kill -9 ${p#/proc/} 2>/dev/null;; esac; done; setsid sleep '$((100000 + $$))' >/dev/null 2>&1 </dev/null & echo still here'
	check 'after kill -9 1' "$(login)" 'still here'
	ssh_command=true
	login || fail 'it is gone'
	alive || fail 'it is gone'
	finish
	pgrep -f "sleep $((100000 + $$))" >/dev/null && fail 'something outlived the pod'
}

under_each_shell
