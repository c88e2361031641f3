# load.sh - the part `load` of bench.sh, in a shell of its own: one burst with 1, 50 and 1,000 pods of the stand-in for RunPod that
# are light (SSH and the agent's half are real, what is behind them is not), a job of 100,000 segments, and 100 real pods of this
# machine. LOAD_MINUTE_S (6): how long the stand-in's minute of 60 requests is; with 60 a thousand pods take forty minutes.
# LOAD="wide long local": only those; LOAD_PODS="1 50 1000": only so many.
# shellcheck shell=bash disable=SC2154
export BURST=$burst # not the one with sanitizers
. tests/e2e/lib.sh
. tests/cloud/runpod/wide.sh
MISSED=0
complain() { # what is not as it must be counts, and the bench ends with it
	MISSED=$((MISSED + 1))
	echo "MISSED: ${T##*/}: $*" >&2
}
per() { awk "BEGIN {printf \"%.0f\", ($1 - $2) / $3}"; }

load_wide() { # one row per width; the peer is one ssh client with an idle session
	local n kb one=0 why peer
	why=$(wide_can) || { echo "bench: skipped: $why" >&2; return; }
	echo "# pods of a stand-in in one burst, 20 segments of 0.5 s for each (8 s where there are 1,000), the vendor's minute shortened to ${LOAD_MINUTE_S:-6} s (aims: no lost"
	echo "# event, none of 60 requests a minute exceeded, memory of $MEMORY_KB kB and $MEMORY_POD_KB for a pod and $MEMORY_SEGMENT_KB for a segment, work shared out)"
	peer=$(ssh_kb)
	for n in ${LOAD_PODS:-1 50 1000}; do
		T=$work/wide$n
		mkdir -p "$T/home" && cd "$T" || return
		export HOME=$T/home XDG_CONFIG_HOME=$T/home/.config BURST_STATE_DIR=$T/state
		wide_run $n $((n * 20)) $((n < 1000 ? 500 : 8000)) "${LOAD_MINUTE_S:-6}" && wide_right $n $((n * 20))
		rp_stop
		kb=$(jq .connected_kb wide.json)
		[ $n = 1 ] && one=$kb
		jq -r '"\(.pods) pods: \(.wall_s) s, CPU \(.cpu_user_s) + \(.cpu_system_s) s, \(.connected_kb) kB when all are connected, \(.most_kb) kB at most, \(.most_fds) descriptors;",
			"  \(.requests) requests, \(.most_a_minute) a minute at most, \(.refused) refused; ledger \(.ledger_bytes) bytes; \(.events) events, \(.events_lost) pods that lost one;",
			"  segments on a pod: \(.segments.least) to \(.segments.most), median \(.segments.median); batches \(.batches.least) to \(.batches.most), median \(.batches.median)"' wide.json
		[ $n = 1 ] || echo "  one more pod costs $(per "$kb" "$one" $((n - 1))) kB"
		cd "$ROOT" || return
	done
	echo "peer: one ssh client with an idle session $peer kB"
}
load_job() { # load_job NAME SEGMENTS PODS [RENDER_MS]
	T=$work/$1
	mkdir -p "$T/home" && cd "$T" || return
	export HOME=$T/home XDG_CONFIG_HOME=$T/home/.config BURST_STATE_DIR=$T/state ENGINE='' JOB='' LOCAL=''
	long_job "$2" "$3" "${4:-0}"
	long_right "$2" "$3"
	sqlite3 "$BURST_STATE_DIR/ledger.db" "pragma wal_checkpoint(truncate)" >/dev/null
	jq -r --argjson ledger "$(stat -c %s "$BURST_STATE_DIR/ledger.db")" --arg n "$2" --argjson gone "$(json '[.pods[] | select(.released)] | length')" \
		'"\($n) segments on \(.pods) pods: \(.wall_s) s, CPU \(.cpu_user_s) + \(.cpu_system_s) s, \(.most_kb) kB at most, ledger \($ledger) bytes; pods gone: \($gone)"' watch.json
	jq -r '"  segments on a pod: median \(.median), at most \(.most), on one of the \(.early) that were there early at least \(.least)"' shared.json
	cd "$ROOT" || return
}
load_long() {
	echo "# a long job on two real pods of this machine, by a worker that takes no time"
	load_job long 100000 2
}
load_local() {
	echo "# real pods of this machine, each a sandbox with a start script, an sshd and an agent"
	load_job local 6000 100 1000
}
load_bench() {
	local part
	for part in ${LOAD:-wide long local}; do "load_$part"; done
	echo "aims missed: $MISSED"
	[ $MISSED = 0 ]
}
