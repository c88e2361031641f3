#!/bin/bash
# boxes_systemd.sh - the program for hosts under a real systemd of the host's user: each pod is a control group, which ends with all
# in it and outlives the login that rented it.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/systemd_lib.sh"

HOST=$ROOT/build/kit/burst-host
# The script of a pod that leaves a process which neither is its descendant nor has its environment.
DAEMON='(setsid env -i sh -c "exec sleep 654321" &); while :; do sleep 1; done'

host() { "$HOST" "$1" "$T/host" 2>err.txt; } # host VERB: its request on stdin
lingers() {
	mount -t tmpfs none /var/lib/systemd && mkdir /var/lib/systemd/linger && : >"/var/lib/systemd/linger/$(id -un)"
}
rent() { # rent NAME ISOLATION SCRIPT
	jq -n --arg name "burst-$1" --arg isolation "$2" --arg script "$3" --argjson over $(($(date +%s) + 600)) '{name: $name, script: $script, env: {},
		conf: {is_host: true, isolation: $isolation, memory_gb: 2}, marker: {machine: "a", run: "r", attempt: $name, hard_end_s: $over}}' |
		host rent >rent.txt || complain "it is not rented: $(cat err.txt)"
}
release() { jq -n --arg id "local-$1" '{id: $id}' | host release >/dev/null || complain "it is not released: $(cat err.txt)"; }
daemons() { pgrep -f '^sleep 654321'; }
no_daemons() { ! daemons; }
unit() { systemctl --user show -P "$2" "burst-$1.scope"; } # unit NAME PROPERTY
unit_is() { [ "$(unit "$1" ActiveState)" = "$2" ]; }
pod_is() { [ "$(state "$1")" = "$2" ]; }
state() { host list <<<'{}' | jq -r ".pods[] | select(.id == \"local-$1\").state"; }

a_pod_is_a_group() { # a_pod_is_a_group ISOLATION
	lingers
	rent aa "$1" "$DAEMON"
	wait_for 10 "its daemon" daemons
	unit_is aa active || complain "no unit is active: $(unit aa ActiveState)"
	is "$(unit aa MemoryMax)" 2147483648 "the bound of its memory"
	[ "$(unit aa RuntimeMaxUSec)" != infinity ] || complain "systemd does not end it"
	is "$(jq -r .group host/local/pods/local-aa/pod.json)" "$(unit aa ControlGroup)" "the group in its record"
	grep -qx "$(daemons)" "/sys/fs/cgroup$(unit aa ControlGroup)/cgroup.procs" || complain "the daemon is not in the group"
	[ -z "$WHY" ] || return
	release aa
	no_daemons || complain "a process of the pod lives on"
	wait_for 10 "the unit to end" unit_is aa inactive
	is "$(state aa)" gone "the pod"
}
as_namespaces() { a_pod_is_a_group namespaces; }
as_a_process() { a_pod_is_a_group process; }
all_of_its_guards_are_killed() { # what it left is found by its group alone
	lingers
	rent aa process "$DAEMON"
	wait_for 10 "its daemon" daemons
	# shellcheck disable=SC2046 # stopped, and the script's guard first: the kernel wakes it when its parent dies
	set -- $(jq '.init.pid, .supervisor.pid' host/local/pods/local-aa/pod.json)
	kill -STOP "$1" "$2" && kill -KILL "$1" && kill -KILL "$2"
	daemons >/dev/null || complain "the daemon has ended by itself"
	state aa >/dev/null
	no_daemons || complain "a process of the pod lives on"
	is "$(state aa)" gone "the pod"
	wait_for 10 "the unit to end" unit_is aa inactive
}
its_login_is_ended() { # as logind does with KillUserProcesses=yes: it kills the group of the session
	lingers
	mkdir /sys/fs/cgroup/session
	(echo 0 >/sys/fs/cgroup/session/cgroup.procs && rent aa "$1" "$DAEMON" && [ -z "$WHY" ]) || complain "not rented"
	wait_for 10 "its daemon" daemons
	is "$(cat /sys/fs/cgroup/session/cgroup.procs)" "" "processes left in the session"
	pod_is aa running || complain "the pod does not run"
	release aa
	rmdir /sys/fs/cgroup/session
}
login_namespaces() { its_login_is_ended namespaces; }
login_process() { its_login_is_ended process; }
says() { # says TEXT: what doctor shows of this host
	host check <<<'{"conf": {"is_host": true, "isolation": "process"}}' | jq -r .text >said.txt
	has said.txt "$1"
}
what_doctor_says() {
	says 'warn: pods have no control group, so pod.memory_gb bounds nothing: the user'\''s systemd there ends with the last login: run "loginctl enable-linger" there'
	rent aa process 'while :; do sleep 1; done'
	is "$(jq -r .group host/local/pods/local-aa/pod.json)" "" "the group of a pod that would end with the login"
	release aa
	lingers
	says 'ok: each pod is a control group of the user'\''s systemd, which ends all of it, and '
	if grep -qw memory /sys/fs/cgroup/cgroup.controllers; then has said.txt 'pod.memory_gb bounds its memory'; else has said.txt 'does not bound its memory'; fi
	XDG_RUNTIME_DIR=$T says 'ok: pods have no control group, so pod.memory_gb bounds nothing: no systemd of this user runs there'
	printf '#!/bin/sh\necho "Failed to connect to bus: no medium" >&2\nexit 1\n' >systemd-run
	chmod 755 systemd-run
	PATH=$T:$PATH says 'warn: pods have no control group, so pod.memory_gb bounds nothing: systemd-run failed with exit status 1: Failed to connect to bus: no medium'
	hasnt said.txt KillUserProcesses
	printf '#!/bin/sh\ncase $* in *KillUserProcesses) echo "b true" ;; esac\n' >busctl
	chmod 755 busctl
	PATH=$T:$PATH says "warn: logind ends pods there a minute after the client's last command (KillUserProcesses=yes)"
	PATH=$T:$PATH rent bb process 'while :; do sleep 1; done' # does without
	wait_for 10 "a pod without a group" pod_is bb running
	release bb
}
it_cannot_start() { # systemd-run works when it is tried, and not for the pod
	lingers
	# shellcheck disable=SC2016
	printf '#!/bin/sh\ncase "$*" in *burst-try*) exec /usr/bin/systemd-run "$@" ;; esac\necho "Failed to start: sorry" >&2\nexit 1\n' >systemd-run
	chmod 755 systemd-run
	PATH=$T:$PATH
	jq -n '{name: "burst-aa", script: "sleep 9", env: {}, conf: {is_host: true}}' | host rent >rent.txt && complain "it is rented"
	has err.txt "the pod's supervisor did not start: Failed to start: sorry"
	is "$(ls host/local/pods)" "" "records"
}
on_host() { # on_host FUNCTION
	[ -s "$HOST" ] || { skip "no burst-host (build/kit/burst-host.log)"; return; }
	under_systemd "$1"
}
t_a_pod_in_namespaces() { on_host as_namespaces; }
t_a_pod_that_is_processes() { on_host as_a_process; }
t_all_of_its_guards_are_killed() { on_host all_of_its_guards_are_killed; }
t_the_login_ends_namespaces() { on_host login_namespaces; }
t_the_login_ends_processes() { on_host login_process; }
t_what_doctor_says() { on_host what_doctor_says; }
t_it_cannot_start() { on_host it_cannot_start; }

if [ -n "${INSIDE:-}" ]; then
	WHY=''
	inside "$INSIDE"
else
	run_tests "$@"
fi
