# pods.sh - pods of the local provider for the peers of the benchmark: the same sandbox, start script and sshd that `burst`
# gets, driven by hand with ssh, scp and rsync. Sourced; needs $burst, $work and BURST_STATE_DIR.
# shellcheck shell=bash disable=SC2034,SC2154

kit_print=$PWD/build/e2e/kit_print
local_cloud() { # local_cloud VERB: request on stdin, answer on stdout
	"$burst" local-cloud "$1" "$BURST_STATE_DIR"
}
# line MS: whatever runs from here on reaches its pods over a line with this round trip; 0: directly
line() {
	local port
	[ -z "${line_pid:-}" ] || kill "$line_pid"
	line_pid=''
	unset LD_PRELOAD DETOUR
	[ "$1" != 0 ] || return 0
	rm -f "$work/line.sock" "$work/line.says"
	mkfifo "$work/line.says"
	build/e2e/relay "$work/line.sock" "$work/line.log" "*.*=delay:$(($1 / 2))" >"$work/line.says" &
	line_pid=$!
	read -r port <"$work/line.says"
	export LD_PRELOAD=$PWD/build/e2e/detour.so DETOUR="$work/line.sock $port"
}
pod_keys() { # once for all of them
	ssh-keygen -q -t ed25519 -N '' -C client -f "$work/client"
	ssh-keygen -q -t ed25519 -N '' -C host -f "$work/host"
	echo "pods $(cut -d' ' -f1,2 "$work/host.pub")" >"$work/known_hosts"
	{ cat providers/local/end.sh; "$kit_print" script; } >"$work/start.sh"
	echo '{"name":"peers","create":true}' | local_cloud volume >/dev/null
}
pod_rent() { # pod_rent NAME: its files are $work/NAME.*; comes back when it is asked for, not when it is up
	local now
	now=$(date +%s)
	jq -n --rawfile script "$work/start.sh" --arg name "$1" --arg host "$(base64 -w0 "$work/host")" \
		--arg client "$(cat "$work/client.pub")" --arg first $((now + 1800)) '{
		conf: {isolation: "auto", capacity: 1000}, name: ("burst-" + $name), script: $script,
		volume: "peers", mount: "/workspace",
		marker: {machine: "bench", run: "bench", attempt: $name, hard_end_s: ($first | tonumber)},
		env: {BURST_RUN: "bench", BURST_ATTEMPT: $name, BURST_MACHINE: "bench", BURST_HARD_END: $first,
			BURST_FIRST_LEASE_END: $first, BURST_LEASE_S: "1800", BURST_HOST_KEY_B64: $host, BURST_AUTHORIZED_KEY: $client,
			BURST_SSH_PORT: "22", BURST_VOLUME: "/workspace", BURST_HOME: "/run/burst"}}' |
		local_cloud rent | jq -r '.pods[0].id' >"$work/$1.id"
}
pod_wait() { # until its sshd lets us in
	local tries=0 id port
	id=$(cat "$work/$1.id")
	while true; do
		tries=$((tries + 1))
		[ "$tries" -lt 100 ] || { echo "bench: pod $1 does not come up" >&2; return 1; }
		port=$(jq -n --arg id "$id" '{id: $id}' | local_cloud inspect | jq -r '.pods[0].port')
		cat >"$work/$1.ssh" <<-E
			Host pod
				HostName 127.0.0.1
				Port ${port/#0/1}
				User $(id -un)
				IdentityFile $work/client
				UserKnownHostsFile $work/known_hosts
				HostKeyAlias pods
				IdentitiesOnly yes
				StrictHostKeyChecking yes
				LogLevel ERROR
		E
		ssh -F "$work/$1.ssh" pod true 2>/dev/null && return
		sleep 0.05
	done
}
pod_release() {
	jq -n --arg id "$(cat "$work/$1.id")" '{id: $id}' | local_cloud release >/dev/null
}
