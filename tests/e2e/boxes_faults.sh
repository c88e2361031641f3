#!/bin/bash
# boxes_faults.sh - own boxes that vanish, restart and are full, clients that die, and pods that are burst elsewhere when all boxes
# are busy.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/boxes_lib.sh"
. "$ROOT/tests/cloud/runpod/client.sh"

long_run() { # long_run SEGMENTS [CONFIG...]: on b1, in the background, with some files
	slow_segments "$1"
	shift
	box_config 'pods = 1; code = { path = "code"; };' "$@"
	burst_bg run
	wait_for 30 "a file" file_count out 1
}
t_a_host_vanishes_and_comes_back() { # the same pod goes on: nothing is rendered again
	boxes b1 || return
	long_run 24
	box_down b1
	wait_for 30 "the loss to be noticed" grep -qi 'reconnect\|lost\|connection' err.txt
	box_up b1
	burst_wait
	is $STATUS 0 "exit status ($(tail -n 3 err.txt))"
	all_right 24
	is "$(ledger 'select count(*) from pod')" 1 "pods"
	boxes_gone
}
t_a_host_that_stays_away() { # its pod is not taken for gone, and ends itself
	boxes b1 || return
	long_run 400 'lease = "10s";'
	box_down b1
	kill_it
	wait_for 20 "the pod to end itself" no_box_pods
	burst_bg reap
	wait_for 20 "reap to miss the host" grep -q 'not released yet.*b1: .*Connection refused' err.txt
	[ -z "$(cat out.txt)" ] || complain "it is called gone: $(cat out.txt)"
	box_up b1
	burst_wait
	is $STATUS 0 "reap when it is back ($(tail -n 3 err.txt))"
	boxes_gone
}
t_a_killed_client_is_resumed() {
	boxes b1 || return
	long_run 24
	kill_it
	burst resume
	is $STATUS 0 "exit status ($(tail -n 3 err.txt))"
	all_right 24
	is "$(ledger 'select count(*) from pod')" 1 "pods"
	boxes_gone
}
# The connection of the first create is cut after so many bytes of what it sends (up) or of its answer (down).
cut_create() { # cut_create up|down BYTES
	boxes b1 || return
	cat >bin/ssh <<-E
		#!/bin/bash
		ssh() { /usr/bin/ssh -F "$T/bed/ssh_config" "\$@"; }
		case \$* in *" 'rent' "*) echo >>"$T/rents" ;; *) ssh "\$@"; exit ;; esac
		[ "\$(wc -l <"$T/rents")" = 1 ] || { ssh "\$@"; exit; }
		if [ $1 = up ]; then head -c $2 | ssh "\$@" >/dev/null 2>&1; else ssh "\$@" | head -c $2; fi
		echo "client_loop: send disconnect: Broken pipe" >&2
		exit 255
	E
	script_lines 3
	box_config 'pods = 1;'
	burst run
	is $STATUS 0 "exit status ($(tail -n 3 err.txt))"
	all_right 3
	has err.txt "ssh: the reply to a create was lost; sending it again: "
	is "$(wc -l <rents)" 2 "creates"
	is "$(ledger 'select group_concat(state) from pod')" gone "pods in the ledger"
	is "$(find box/b1/.local/share/burst/local/ended -name '*.json' | wc -l)" 1 "pods that ever were"
	boxes_gone
}
t_a_create_cut_before_its_first_byte() { cut_create up 0; }
t_a_create_cut_in_the_middle() { cut_create up 3000; }
t_a_create_without_an_answer() { cut_create down 0; }
t_a_create_whose_answer_is_cut() { cut_create down 70; }
has_come_to() { # has_come_to intent|TEXT: the run has noted a pod in its ledger, or said so
	case $1 in
	intent) [ "$(ledger "select count(*) from pod where state not in ('gone', 'failed')" 2>/dev/null)" -gt 0 ] ;;
	*) grep -q "$1" err.txt ;;
	esac
}
t_a_killed_client_is_reaped() { # killed at several moments of a rent
	boxes b1 || return
	slow_segments 40
	box_config 'pods = 1; code = { path = "code"; };'
	local at
	for at in intent 'booting\|connecting\|working' working; do # a quick box boots unseen
		burst_bg run
		wait_for 30 "\"$at\"" has_come_to "$at"
		kill_it
		burst reap
		is $STATUS 0 "reap after a kill at \"$at\" ($(tail -n 3 err.txt))"
		no_box_pods || complain "a pod is left after a kill at \"$at\""
		rm -rf out
	done
	boxes_gone
}
t_a_detached_run() { # the pod ends itself when its work is done; its files are fetched from the host's volume, without a pod
	boxes b1 || return
	slow_segments 8
	box_config 'pods = 1; code = { path = "code"; }; volume = { name = "v"; size_gb = 1; create = true; };'
	burst run -d
	is $STATUS 0 "exit status of run -d ($(tail -n 3 err.txt))"
	wait_for 40 "the pod to end itself" no_box_pods
	burst attach
	is $STATUS 0 "exit status of attach ($(tail -n 3 err.txt))"
	all_right 8
	boxes_gone
}
t_a_shell_on_a_pod() {
	boxes b1 || return
	local pod
	long_run 60
	pod=$(ledger 'select id from pod')
	is "$("$BURST" ssh "$pod" 'echo "100% $((6 * 7))"' </dev/null 2>&1)" "100% 42" "what ssh sees"
	"$BURST" ssh "$pod" 'exit 5' </dev/null
	is $? 5 "its exit code"
	is "$(head -c 3000000 /dev/zero | "$BURST" ssh "$pod" 'wc -c')" 3000000 "bytes to it"
	kill -INT "$PID"
	burst_wait
	is $STATUS 130 "exit status ($(tail -n 2 err.txt))"
	boxes_gone
}
t_a_host_restarts() { # all of its processes are gone, and it has another boot id
	boxes b1 || return
	long_run 400 'wait = "5s";'
	echo 00000000-0000-4000-8000-000000000000 >boot_id
	chmod 644 boot_id
	in_boxes mount --bind boot_id /proc/sys/kernel/random/boot_id
	box_down b1
	# shellcheck disable=SC2046
	kill -KILL $(box_processes)
	box_up b1
	kill -INT "$PID"
	burst_wait
	is $STATUS 130 "exit status ($(tail -n 3 err.txt))"
	in_boxes umount /proc/sys/kernel/random/boot_id
	boxes_gone
}
is_at() { # is_at booting|working|fetching: how far a run's pod has come
	case $1 in
	booting) ls box/b1/.local/share/burst/local/pods/*/pod.json ;;
	working) [ "$(ledger "select count(*) from pod where ready_ms > 0 and state not in ('gone', 'failed')" 2>/dev/null)" -gt 0 ] ;;
	fetching) file_count out 2 ;;
	esac
}
# goes_on_after COMMAND...: what happens to the host while its only pod is at each of these; the run rents another one and ends well
goes_on_after() {
	boxes b1 || return
	slow_segments 8
	box_config 'pods = 1; wait = "30s"; code = { path = "code"; }; volume = { name = "v"; size_gb = 1; create = true; };'
	sed -i '$a volumes = ["v"];' "$XDG_CONFIG_HOME/burst/burst.cfg"
	local at
	for at in booting working fetching; do
		rm -rf out
		burst_bg run
		wait_for 30 "\"$at\"" is_at "$at" || return
		"$@" || return
		burst_wait
		is $STATUS 0 "exit status after \"$at\" ($(tail -n 3 err.txt))"
		all_right 8
		is "$(ledger "select count(*) from pod where state != 'gone'")" 0 "pods that are not gone by the ledger after \"$at\""
		no_box_pods || complain "a pod is left after \"$at\""
		is "$(find box/b1/.local/share/burst/volumes -name '*.tmp*' -o -name '.*.part' | head -n 3)" "" "halves of files on the volume after \"$at\""
	done
	boxes_gone
}
kill_supervisor() { # it, and not the process that guards the pod's script where there are no namespaces
	local pid
	pid=$(jq .supervisor.pid box/b1/.local/share/burst/local/pods/*/pod.json)
	kill -KILL "$pid" || complain "no supervisor"
}
t_a_supervisor_is_killed() { goes_on_after kill_supervisor; }
t_a_supervisor_of_processes_is_killed() { SSH='isolation = "process";' goes_on_after kill_supervisor; }
reboot() { # all of its processes are gone, and it has another boot id
	head -c 16 /dev/urandom | od -An -tx1 | tr -d ' \n' | sed -E 's/(.{8})(.{4})(.{4})(.{4})/\1-\2-\3-\4-/' >boot_id.new
	chmod 644 boot_id.new
	in_boxes sh -c 'cat boot_id.new >boot_id && { [ -e bound ] || { : >bound && mount --bind boot_id /proc/sys/kernel/random/boot_id; }; }'
	box_down b1
	wait_for 10 "its processes to end" all_killed
	box_up b1
}
all_killed() {
	# shellcheck disable=SC2046
	! kill -KILL $(box_processes) 2>/dev/null
}
t_a_host_reboots() { goes_on_after reboot; }
t_a_volume_fills_up() {
	boxes b1 || return
	mkdir small
	chmod 755 small
	in_boxes mount -t tmpfs -o "size=1m,uid=$(box_id b1),mode=755" none small
	script_lines 40
	SSH="volume_dir = \"$T/small\";" box_config 'wait = "3s"; volume = { name = "v"; size_gb = 1; create = true; };'
	burst run
	[ $STATUS != 0 ] || complain "it ended well"
	grep -qi 'no space left\|full\|room' err.txt || complain "the reason is not named: $(tail -n 4 err.txt)"
	burst reap
	no_box_pods || complain "a pod is left"
	find small -mindepth 1 -delete 2>/dev/null
	in_boxes umount small
	boxes_gone
}
# The room that the host's user has is used up while a pod works: what is finished is kept, and the next run renders the rest.
t_room_is_used_up_at_work() {
	boxes b1 || return
	in_boxes mount -t tmpfs -o "size=8m,uid=$(box_id b1),mode=755" none box/b1
	slow_segments 40
	box_config 'pods = 1; wait = "3s"; code = { path = "code"; }; volume = { name = "v"; size_gb = 1; create = true; };'
	sed -i '$a volumes = ["v"];' "$XDG_CONFIG_HOME/burst/burst.cfg"
	burst_bg run
	wait_for 30 "some files" file_count out 4
	in_boxes sh -c "cat /dev/zero >$T/box/b1/ballast" 2>/dev/null
	stamp >stamp.txt
	burst_wait
	is $STATUS 6 "exit status ($(tail -n 3 err.txt))"
	has err.txt ": the volume is full or cannot be written"
	tail -n 1 err.txt | grep -q 'b1: .*No space left on device' || complain "the last line does not name the reason: $(tail -n 1 err.txt)"
	cp err.txt first.txt
	no_box_pods || complain "a pod is left"
	in_boxes rm "$T/box/b1/ballast"
	burst run
	is $STATUS 0 "exit status of the next run ($(tail -n 3 err.txt))"
	unchanged stamp.txt
	all_right 40
	in_boxes find "$T/box/b1" -xdev -path '*/pods/*' >left.txt
	is "$(cat left.txt)" "" "records that are left"
	in_boxes umount box/b1
	boxes_gone
}
t_one_host_is_full() { # the other one does the work
	boxes b1 b2 || return
	in_boxes mount -t tmpfs -o "size=1400k,uid=$(box_id b1),mode=755" none box/b1
	slow_segments 8
	box_config 'pods = 1; wait = "20s"; code = { path = "code"; };'
	burst offers # installs the program
	in_boxes sh -c "head -c 2000000 /dev/zero >$T/box/b1/ballast" 2>/dev/null
	burst run
	is $STATUS 0 "exit status ($(tail -n 3 err.txt))"
	all_right 8
	grep -q 'b1: .*No space left' err.txt || complain "the full host is not named: $(head -n 8 err.txt)"
	is "$(ledger 'select group_concat(distinct region) from pod where ready_ms > 0')" b2 "hosts that worked"
	in_boxes umount box/b1
	boxes_gone
}
t_clocks_differ() {
	boxes b1 || return
	false_clock || return
	script_lines 3
	box_config 'wait = "2s";'
	printf '#!/bin/sh\nexec faketime -f +3h "%s" "$@"\n' "$BURST" >client
	chmod 755 client
	CLIENT=$T/client burst run
	[ $STATUS != 0 ] || complain "it ended well"
	grep -q 'b1: .*the clock of this host is 3h.* behind yours' err.txt || complain "not named: $(tail -n 3 err.txt)"
	boxes_gone
}
t_files_on_a_volume_without_a_pod() {
	boxes b1 || return
	script_lines 6
	box_config 'pods = 1; volume = { name = "v"; size_gb = 1; create = true; };'
	burst run
	is $STATUS 0 "exit status ($(tail -n 3 err.txt))"
	[ -d box/b1/.local/share/burst/volumes/v ] || complain "no volume on the host"
	burst volume ls
	has out.txt "b1:v"
	burst volume gc -y
	is $STATUS 0 "volume gc ($(tail -n 3 err.txt))"
	burst volume rm -y b1:v
	is $STATUS 0 "volume rm ($(tail -n 3 err.txt))"
	[ ! -d box/b1/.local/share/burst/volumes/v ] || complain "the volume is still there"
	boxes_gone
}
t_own_boxes_first_then_the_cloud() { # within one cap: the box has one GPU, the rest is burst
	local why
	why=$(rp_can) || { skip "$why"; return; }
	boxes b1 || return
	rp_start || return
	gpus b1 "NVIDIA GeForce RTX 4090"
	slow_segments 40
	PROVIDER='["ssh", "runpod"]' box_config 'gpu = ["RTX 4090"]; pods = 2; code = { path = "code"; }; pod = { image = "host/tts:1"; };'
	burst plan
	has out.txt ssh
	burst run
	is $STATUS 0 "exit status ($(tail -n 3 err.txt))"
	all_right 40
	is "$(ledger 'select group_concat(provider) from (select provider from pod where state = "gone" order by provider)')" runpod,ssh "pods"
	rp_stop
	boxes_gone
}

run_tests "$@"
