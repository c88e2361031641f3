# kubernetes_lib.sh - what the scripts about pods at the stand-in for a Kubernetes cluster share.
# shellcheck shell=bash
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source-path=SCRIPTDIR
. "$ROOT/tests/cloud/kubernetes/client.sh"

no_volume() { sed -i '/^volume/d' burst.cfg; }
rendered() { # rendered SEGMENTS [CONFIG...]: in the background, half a second each
	script_lines "$1"
	shift
	slow_worker SLOW=0.5 MAX_BATCH=2
	kb_config 'pods = 1; code = { path = "code"; };' "$@"
	no_volume
	burst_bg run --json
}
is_working() { file_count out 1; }
pod_name() { kb_pods | cut -d' ' -f1 | head -n 1; }
fails() { # fails STATUS WORDS [POD STATES]: and nothing was computed
	is "$STATUS" "$1" "exit status ($(tail -n 1 err.txt))"
	grep -qE -- "$2" err.txt || complain "it does not say \"$2\": $(tail -n 2 err.txt | tr '\n' '|')"
	is "$(wavs)" 0 files
}
fault() { kb_fault "{\"when\":{\"op\":\"$1\"},\"times\":${3:-1},\"do\":$2}"; }

one_pod() {
	script_lines 4
	kb_config 'pods = 1;'
	no_volume
	burst run --json
	all_done 4 1
}
killed() {
	kill -9 "$PID"
	burst_wait 2>/dev/null
}
pod_is() { [ "$(kb_control state | jq -r ".pods[0].$1")" = "$2" ]; }
