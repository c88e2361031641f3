# lib.sh - a Kubernetes of one's own for a test: `. tests/cloud/kubernetes/lib.sh` after tests/e2e/lib.sh.
#
#   kb_start [options of server.js]   starts one in $T/cloud; sets KUBECONFIG, KUBERNETES_CONTEXT for burst
#   kb_stop                           ends it and complains of whatever is left; call it at the end of each test
#   kb_control PATH [BODY]            the control: POST with a body, else GET; prints the answer
#   kb_fault RULE                     kb_fault '{"when":{"op":"create pods"},"do":{"status":500}}'
#   bed_can                           whether a real Kubernetes (bed.sh) can run here; else it prints why not
#   kb_pods                           a line "NAME PHASE" for each pod that is there
# shellcheck shell=bash
KB_HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source-path=SCRIPTDIR
. "$KB_HERE/../common/lib.sh"
KB_PID=

kb_can() { # kubectl from 1.30 on carries an exec over WebSocket
	local minor
	cloud_can || return
	command -v kubectl >/dev/null || { echo "no kubectl"; return 1; }
	minor=$(kubectl version --client -o json 2>/dev/null | jq -r '.clientVersion.minor')
	[ "${minor//[^0-9]/}" -ge 30 ] 2>/dev/null || { echo "kubectl 1.30 or newer is needed, here is 1.${minor:-?}"; return 1; }
}

# Where the programs of a real Kubernetes are. bed_programs.sh made them.
BED=${BURST_KUBERNETES_BED:-$ROOT/build/kubernetes-bed}
bed_can() {
	local name
	kb_can || return
	[ -x "$BED/bin/kubelet" ] && [ -e "$BED/images/debian.tar" ] || { echo "no real Kubernetes: make kubernetes-bed (13 minutes), or BURST_KUBERNETES_BED=FOLDER"; return 1; }
	for name in containerd runc openssl; do
		PATH=$PATH:/usr/sbin command -v $name >/dev/null || { echo "no $name (a Debian package)"; return 1; }
	done
	[ -x /usr/lib/cni/ptp ] || { echo "no network plug-ins (Debian package containernetworking-plugins)"; return 1; }
	! [ -e /sys/fs/cgroup/burst-bed ] && ! [ -e /sys/fs/cgroup/memory/burst-bed ] || { echo "another one runs here"; return 1; }
}

kb_start() {
	KB_STATE=$T/cloud
	mkdir -p "$KB_STATE"
	coproc KB_SERVER { exec node "$KB_HERE/server.js" --state "$KB_STATE" --podbox "$PODBOX" --tied "$@" 2>"$KB_STATE/stderr"; }
	KB_PID=$KB_SERVER_PID
	read -rt 20 KB_URL <&"${KB_SERVER[0]}" || {
		complain "the stand-in did not start: $(tail -n 3 "$KB_STATE/stderr")"
		return 1
	}
	export KUBECONFIG=$KB_STATE/kubeconfig KUBERNETES_CONTEXT=bed
}
kb_stop() { # what is left is a complaint
	[ -n "$KB_PID" ] || return 0
	# shellcheck disable=SC2046
	cloud_end "$KB_PID" "$KB_STATE" $(kb_control state | jq -r '.pods[].pid | select(. > 0)')
	KB_PID=
}
kb_control() { # PATH [BODY]
	curl -qsS --max-time 30 ${2+--data-binary "$2"} "$KB_URL/_control/$1"
}
kb_fault() { kb_control fault "$1" >/dev/null; }
kb_pods() { kb_control state | jq -r '.pods[] | select(.here) | "\(.name) \(.phase)"'; }
kb_invariants() {
	local broken
	broken=$(kb_control invariants | jq -r '.broken[]')
	[ -z "$broken" ] || complain "$broken"
}
