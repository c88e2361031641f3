#!/bin/bash
# boxes.sh - pods on own boxes, which OpenSSH's client reaches: real sshds on loopback, ordinary users.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/boxes_lib.sh"

t_a_run() {
	boxes b1 || return
	script_lines 12
	box_config 'pods = 1;'
	burst run
	is $STATUS 0 "exit status ($(tail -n 3 err.txt))"
	all_right 12
	is "$(ledger 'select count(*) from pod where id like "b1:%" and state = "gone"')" 1 "pods"
	boxes_gone
}

t_without_hosts() { # other commands do not miss them
	script_lines 3
	config
	burst reap
	is $STATUS 0 "reap ($(tail -n 1 err.txt))"
	burst offers -p ssh
	is $STATUS 3 "offers"
	has err.txt 'providers.ssh.hosts names no host: list your machines in your own burst.cfg'
}
t_it_conforms() { # to a login shell that talks, too
	printf '#!/bin/sh\necho "Welcome to the lab"; echo "{\\"bytes\\": 1}"; echo "no news" >&2\nexec /bin/sh "$@"\n' >shell
	chmod 755 shell
	BOX_SHELL=$T/shell boxes b1 || return
	gpus b1 "NVIDIA GeForce RTX 4090" "NVIDIA GeForce RTX 4090" "NVIDIA L40S" "NVIDIA L40S"
	box_config
	mkdir -p "$BURST_STATE_DIR"
	BURST=$BURST timeout 120 "$ROOT/build/e2e/conform" ssh >said.txt 2>&1 || complain "conform: $(grep -m 2 -v '^\[' said.txt | tr '\n' ' ')"
	boxes_gone
}
# The job of the first page in small: two pods on two hosts, each with one slot.
t_two_boxes() {
	boxes b1 b2 || return
	slow_segments 16
	box_config 'pods = 2; code = { path = "code"; };'
	burst run
	is $STATUS 0 "exit status ($(tail -n 3 err.txt))"
	all_right 16
	is "$(ledger 'select group_concat(region) from (select distinct region from pod where state = "gone" order by region)')" b1,b2 "hosts"
	boxes_gone
}
t_the_quiz() {
	boxes b1 b2 || return
	script_lines 300
	box_config 'pods = 2;'
	burst run --json
	is $STATUS 0 "exit status ($(tail -n 3 err.txt))"
	all_right 300
	is "$(json '.segments.rendered') $(json '.pods | length')" "300 2" "segments and pods"
	boxes_gone
}

# ---- the connection ----

t_a_login_shell_that_talks_and_is_slow() { # also fetches and uploads: they carry bytes, not lines
	cat >shell <<-'E'
		#!/bin/sh
		echo "Welcome to the lab"; echo "{\"error\": 1}"; echo "no news" >&2
		sleep 2
		exec /bin/sh "$@"
	E
	chmod 755 shell
	BOX_SHELL=$T/shell boxes b1 || return
	allow_volumes v
	script_lines 4
	box_config 'pods = 1; volume = { name = "v"; size_gb = 1; create = true; };'
	sed -i '$a volumes = ["v"];' "$XDG_CONFIG_HOME/burst/burst.cfg"
	burst run
	is $STATUS 0 "exit status ($(tail -n 3 err.txt))"
	all_right 4
	boxes_gone
}
t_a_jump_host() {
	boxes b1 b2 || return
	printf 'Host b2\n    ProxyJump b1\n' >>bed/ssh_config
	script_lines 4
	HOSTS='"b2"' box_config 'pods = 1;' # b1 only carries the connection
	burst run
	is $STATUS 0 "exit status ($(tail -n 3 err.txt))"
	all_right 4
	grep -q 'Accepted publickey for b1' bed/b1.log || complain "the jump host was not used"
	boxes_gone
}
t_a_connection_that_is_open_already() { # it has taken a second factor: nothing else lets one in
	boxes b1 || return
	cat >>bed/ssh_config <<-E
		    ControlMaster auto
		    ControlPath $T/bed/mine-%n
	E
	script_lines 3
	box_config 'pods = 1;'
	ssh -f -N -o ControlPersist=yes b1 >/dev/null 2>&1 || complain "no connection to be used"
	cp bed/ssh_config bed/ssh_config.first
	sed -i 's|IdentityFile .*|IdentityFile /dev/null|' bed/ssh_config
	burst run
	is $STATUS 0 "exit status ($(tail -n 3 err.txt))"
	all_right 3
	[ ! -e "$BURST_STATE_DIR/ssh-b1" ] || complain "a second connection was made"
	is "$(grep -c 'Accepted publickey' bed/b1.log)" 1 "logins"
	ssh -O exit b1 2>/dev/null
	rm -r out
	refused_for 3 'b1: .*Permission denied.*no password or code' # once it is closed
	cp bed/ssh_config.first bed/ssh_config
	boxes_gone
}
t_few_sessions_in_a_connection() { # what exceeds them logs in anew
	SSHD='MaxSessions 2' boxes b1 || return
	slow_segments 12
	SSH='slots = 3;' box_config 'pods = 3; code = { path = "code"; };'
	burst run
	is $STATUS 0 "exit status ($(tail -n 3 err.txt))"
	all_right 12
	boxes_gone
}
t_a_state_folder_too_long_for_a_socket() { # each command logs in by itself
	boxes b1 || return
	BURST_STATE_DIR=$T/state/$(printf 'x%.0s' {1..80})
	script_lines 3
	box_config 'pods = 1;'
	burst run
	is $STATUS 0 "exit status ($(tail -n 3 err.txt))"
	all_right 3
	boxes_gone
}
refused_for() { # refused_for STATUS PATTERN: a run ends at once, and says why
	burst run
	is $STATUS "$1" "exit status ($(tail -n 2 err.txt))"
	grep -q "$2" err.txt || complain "the reason is not named: $(tail -n 3 err.txt)"
}
t_hosts_that_cannot_be_used() {
	boxes b1 || return
	script_lines 3
	HOSTS='"nowhere.invalid"' box_config 'wait = "2s";'
	refused_for 6 'nowhere.invalid: .*Could not resolve hostname.*is its name right'
	ssh-keygen -q -t ed25519 -N '' -f bed/other
	cp bed/known_hosts bed/known_right
	sed -i "s|ssh-ed25519 .*|$(cut -d' ' -f1,2 bed/other.pub)|" bed/known_hosts
	box_config
	refused_for 3 'b1: .*another key than before'
	: >bed/known_hosts
	refused_for 3 'b1: .*Host key verification failed.*once by hand'
	cp bed/known_right bed/known_hosts
	sed -i 's|IdentityFile .*|IdentityFile /dev/null|' bed/ssh_config
	refused_for 3 'b1: .*Permission denied.*no password or code'
	for bad in '"b1", "B1"' '"-oProxyCommand=x"' '"me@"' '"b1:0"' '"a b"' '""'; do
		HOSTS=$bad box_config
		refused_for 2 'providers.ssh.hosts'
	done
	HOSTS='"b1"' SSH='watts = 450;' box_config
	sed -i 's/price_per_hour = 0.30;//' "$XDG_CONFIG_HOME/burst/burst.cfg"
	refused_for 2 'watts (or host_watts) and price_per_kwh make a price together'
	HOSTS='"b1"' SSH='host_prices = ["b2=0.10"];' box_config
	refused_for 2 'ssh.host_prices: "b2=0.10": providers.ssh.hosts names no host "b2"'
	HOSTS='"b1"' SSH='host_prices = ["b1=cheap"];' box_config
	refused_for 2 'ssh.host_prices: "b1=cheap" is not like "box1=0.30"'
	echo 'providers = { ssh = { hosts = ["b1"]; }; };' >>burst.cfg # a project's file names no host
	refused_for 2 'providers.ssh.hosts.*own'
	boxes_gone
}
t_one_host_is_down() { # the other one does the work, and the run ends well
	boxes b1 b2 || return
	script_lines 6
	box_config 'pods = 1;'
	box_down b1
	burst offers
	has out.txt b2
	grep -q 'b1: .*Connection refused' out.txt err.txt || complain "the host that is down is not named: $(cat out.txt err.txt)"
	burst run
	is $STATUS 0 "exit status ($(tail -n 3 err.txt))"
	all_right 6
	burst reap
	grep -q 'b1: .*Connection refused' out.txt err.txt || complain "reap takes it for empty: $(cat out.txt err.txt)"
	box_up b1
	boxes_gone
}

t_a_cut_upload_leaves_no_file() { # the end of a connection looks like the end of the file
	local host=$ROOT/build/kit/burst-host
	echo '{"name":"v","create":true}' | "$host" volume "$T/host" >/dev/null
	head -c 100 /dev/zero | "$host" stage "$T/host" v f 0 200 >out.txt 2>err.txt && complain "it is taken for whole"
	has err.txt "the input ended after 100 of 200 bytes"
	is "$(ls -A host/volumes/v)" "" "files on the volume"
	head -c 200 /dev/zero | "$host" stage "$T/host" v f 0 200 >out.txt || complain "a whole file is refused"
	is "$(wc -c <host/volumes/v/f)" 200 "its bytes"
}

t_a_pod_that_ignores_its_hard_end() { # its supervisor ends it five minutes later
	local host=$ROOT/build/kit/burst-host end=$(($(date +%s) - 296))
	echo '{"name":"burst-aa","script":"while :; do sleep 1; done","env":{},"conf":{"isolation":"auto"},"marker":{"machine":"a","run":"r","attempt":"aa","hard_end_s":'"$end"'}}' |
		"$host" rent "$T/state" >out.txt 2>err.txt || complain "it is not rented: $(cat err.txt)"
	[ "$("$host" list "$T/state" <<<'{}' | jq -r '.pods[0].state')" != gone ] || complain "it ended at once"
	wait_for 20 "the pod to be ended" ended_pod
}
ended_pod() { [ "$("$ROOT/build/kit/burst-host" list "$T/state" <<<'{}' | jq -r '.pods[0].state')" = gone ]; }

# ---- GPUs ----

t_no_two_pods_share_a_gpu() { # not of two clients, nor with a program that is no pod
	boxes b1 || return
	gpus b1 "NVIDIA GeForce RTX 4090" "NVIDIA GeForce RTX 4090" "NVIDIA GeForce RTX 4090"
	echo "GPU-$$-b1-1, 4711" >bed/b1.apps
	slow_worker
	JOB="worker = \"echo \\\"\$CUDA_VISIBLE_DEVICES\\\" >>$T/box/b1/seen; SLOW=0.5 MAX_BATCH=1 sh \\\"\$BURST_CODE/worker.sh\\\"\"; check = { enabled = false; };"
	script_lines 24
	SSH='isolation = "process";' box_config 'gpu = ["RTX 4090"]; pods = 2; code = { path = "code"; };'
	burst offers
	has out.txt "RTX 4090  24 GB  b1"
	burst run
	is $STATUS 0 "exit status ($(tail -n 3 err.txt))"
	is "$(sort -u box/b1/seen | tr '\n' ' ')" "GPU-$$-b1-0 GPU-$$-b1-2 " "GPUs of the pods"
	boxes_gone
}
t_two_users_of_one_machine() { # see the same GPU, and one of them gets it
	boxes b1 b2 || return
	gpus b1 "NVIDIA GeForce RTX 4090"
	gpus b2 "NVIDIA GeForce RTX 4090"
	cp bed/b1.cards bed/b2.cards
	slow_segments 12
	box_config 'gpu = ["RTX 4090"]; pods = 2; wait = "3s"; code = { path = "code"; };'
	burst_bg run
	wait_for 30 "a file" file_count out 1
	is "$(cat box/*/.local/share/burst/local/pods/*/pod.json | wc -l)" 1 "pods with the GPU"
	burst_wait
	is $STATUS 0 "exit status ($(tail -n 3 err.txt))"
	all_right 12
	boxes_gone
}
t_all_gpus_are_taken() {
	boxes b1 || return
	gpus b1 "NVIDIA GeForce RTX 4090"
	slow_segments 40 # of another user of the host, with a home and a state of its own
	box_config 'gpu = ["RTX 4090"]; code = { path = "code"; }; wait = "2s";'
	burst_bg run
	wait_for 30 "a file" file_count out 1
	cp -r . ../other && cd ../other || return
	rm -rf out state
	BURST_STATE_DIR=$PWD/state burst run
	is $STATUS 4 "exit status of the second client ($(tail -n 2 err.txt))"
	BURST_STATE_DIR=$PWD/state ssh -o ControlPath="$PWD/state/ssh-b1" -O exit b1 2>/dev/null
	cd "$T" || return
	rm -rf ../other
	kill -INT "$PID"
	burst_wait
	is $STATUS 130 "exit status of the first"
	sed -i 's/RTX 4090/H100/' burst.cfg
	refused_for 4 'H100\|no capacity'
	boxes_gone
}

# ---- what a host may lack ----

t_plain_processes() {
	boxes b1 || return
	slow_segments 8
	SSH='isolation = "process";' box_config 'pods = 1; code = { path = "code"; };'
	burst run
	is $STATUS 0 "exit status ($(tail -n 3 err.txt))"
	all_right 8
	boxes_gone
}
# The supervisor is started again by a systemd-run that only notes its words: what it has open, such as locks of GPUs, goes along.
t_the_supervisor_is_started_by_systemd() {
	boxes b1 || return
	gpus b1 "NVIDIA L40S"
	in_boxes sh -c "mount -t tmpfs none /var/lib/systemd && mkdir /var/lib/systemd/linger && : >/var/lib/systemd/linger/b1 &&
		mount -t tmpfs none /sys/fs/cgroup && : >/sys/fs/cgroup/cgroup.controllers" || { skip "nothing can be mounted there"; boxes_gone; return; }
	mkdir -p box/b1/run/systemd
	: >box/b1/run/systemd/private
	# shellcheck disable=SC2016
	printf '#!/bin/sh\necho "$*" >>"$HOME/groups"\nwhile [ "$1" != -- ]; do shift; done\nshift\nexec "$@"\n' >box/b1/bin/systemd-run
	chmod 755 box/b1/bin/systemd-run
	sed -i "s|SetEnv PATH|SetEnv XDG_RUNTIME_DIR=$T/box/b1/run PATH|" bed/b1.sshd
	box_down b1
	box_up b1
	slow_segments 12
	box_config 'gpu = ["L40S"]; pods = 1; code = { path = "code"; }; pod = { memory_gb = 3; };'
	burst_bg run
	wait_for 30 "a file" file_count out 1
	burst offers
	hasnt out.txt L40S
	burst_wait
	is $STATUS 0 "exit status ($(tail -n 3 err.txt))"
	all_right 12
	grep -q -- '--user --scope .*--unit=burst-[0-9a-f]*.scope -p MemoryMax=3G .*-p RuntimeMaxSec=[0-9]*s -- .*/host-[0-9a-f]* supervise ' box/b1/groups ||
		complain "systemd-run was told: $(tail -n 2 box/b1/groups)"
	boxes_gone
}
t_doctor_knows_each_host() {
	boxes b1 b2 || return
	gpus b1 "NVIDIA L40S"
	SSH='watts = 450; price_per_kwh = 0.30; hardware_cost = 1800.0; hours_of_life = 6000; host_prices = ["b2=0.31"];' box_config
	sed -i 's/price_per_hour = 0.30;//' "$XDG_CONFIG_HOME/burst/burst.cfg"
	script_lines 3
	box_down b2
	burst doctor
	for line in 'ok .*ssh: b1: GPU NVIDIA L40S, 24 GB, free' 'ok .*ssh: b1: Linux .* x86_64' 'ok .*ssh: b1: [0-9]* MB free in' \
		'ok .*ssh: b1: pods are ' 'bad .*ssh: b2: .*Connection refused' 'ok .*ssh: b1: a pod costs $0.4350/h' 'ok .*ssh: b2: a pod costs $0.3100/h'; do
		grep -q "$line" out.txt || complain "doctor does not say \"$line\": $(grep ssh: out.txt | head -n 12 | tr '\n' '|')"
	done
	box_up b2
	boxes_gone
}
t_no_price() { # is said, and not taken for one of nothing
	boxes b1 || return
	script_lines 3
	box_config
	sed -i 's/price_per_hour = 0.30;//' "$XDG_CONFIG_HOME/burst/burst.cfg"
	for command in offers doctor run; do
		burst $command
		grep -q 'no price given, so caps on cost do not count these pods' out.txt err.txt || complain "$command does not say so: $(tail -n 4 out.txt err.txt)"
	done
	grep -qE '^b1:.* no price$' out.txt err.txt || complain "the table of its pods: $(grep '^b1:' out.txt err.txt)"
	boxes_gone
}
t_each_host_has_its_price() { # the cheapest is used first; one without a price is named
	boxes b1 b2 b3 || return
	script_lines 3
	SSH='host_prices = ["b2=0.10"]; host_watts = ["b3=500"]; price_per_kwh = 0.40;' box_config 'pods = 1;'
	burst offers
	is "$(sed -n 's/^ssh .* \(b[123]\) .*\(0[.][0-9]*\).*/\1 \2/p' out.txt | tr '\n' ' ')" "b2 0.1000 b3 0.2000 b1 0.3000 " "offers ($(tail -n 4 out.txt))"
	burst plan
	grep -q 'b2' out.txt || complain "the plan does not choose b2: $(head -n 12 out.txt)"
	burst run
	is $STATUS 0 "exit status ($(tail -n 3 err.txt))"
	is "$(ledger 'select region, price_microusd_h from pod')" "b2|100000" "host and price of the pod"
	sed -i 's/price_per_hour = 0.30;//' "$XDG_CONFIG_HOME/burst/burst.cfg"
	for command in offers doctor; do
		burst $command
		grep -qE '(b1: no price given|no price given for b1), so caps on cost do not count these pods' out.txt err.txt || complain "$command does not name b1: $(tail -n 4 out.txt err.txt)"
		! grep -qE '(b[23]: no price|no price.*b[23])' out.txt err.txt || complain "$command names another host"
	done
	boxes_gone
}
t_a_home_that_is_not_writable() { # volume_dir can be elsewhere, and is all that is needed
	boxes b1 || return
	script_lines 3
	chown root box/b1 && chmod 755 box/b1
	box_config 'wait = "2s";'
	refused_for 6 'b1: providers.ssh.volume_dir must be a folder there .* you may write to: .*Permission denied'
	is "$(grep -c 'volume_dir' err.txt)" "$(grep -c 'volume_dir.*Permission denied' err.txt)" "lines that say so"
	mkdir "spare room"
	chown "$(box_id b1)" "spare room"
	SSH="volume_dir = \"$T/spare room\";" box_config 'pods = 1;'
	burst run
	is $STATUS 0 "exit status elsewhere ($(tail -n 3 err.txt))"
	all_right 3
	is "$(ls -A box/b1)" bin "what is in the home"
	boxes_gone
}
t_a_home_without_locks() { # NFS without its lock daemon: flock fails with ENOLCK
	[ "$(uname -m)" = x86_64 ] || { skip "the filter is for x86_64"; return; }
	cat >shell <<-'E'
		#!/usr/bin/env python3
		# A login shell below which flock(2) (73 on x86_64) answers ENOLCK (37), by a filter of system calls.
		import ctypes, os, struct, sys
		code = [(0x20, 0, 0, 0), (0x15, 0, 1, 73), (0x06, 0, 0, 0x50000 | 37), (0x06, 0, 0, 0x7fff0000)]
		text = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in code))
		filter = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(code), ctypes.addressof(text)))
		libc = ctypes.CDLL(None)
		if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, filter, 0, 0):
		    sys.exit("no filter")
		os.execv("/bin/sh", ["sh"] + sys.argv[1:])
	E
	chmod 755 shell
	BOX_SHELL=$T/shell boxes b1 || return
	script_lines 3
	box_config 'wait = "2s";'
	refused_for 1 'b1: .*/local/lock: lock: No locks available: this folder must be on a file system with locks'
	burst doctor
	grep -q 'bad .*ssh: b1: .*No locks available' out.txt || complain "doctor does not say so: $(grep ssh: out.txt | tail -n 3)"
	boxes_gone
}
t_another_kind_of_machine() { # by what its uname says
	local other=$ROOT/build/kit/burst-host-aarch64
	[ -e "$other" ] || { skip "aarch64 is not the other kind here"; return; }
	boxes b1 || return
	printf '#!/bin/sh\n[ "$1" != -m ] && exec /bin/uname "$@"\necho aarch64\n' >box/b1/bin/uname
	chmod 755 box/b1/bin/uname
	script_lines 3
	box_config 'wait = "2s";'
	if [ -s "$other" ]; then
		refused_for 6 'b1: .*' # this machine cannot execute it
		cmp "$other" box/b1/.local/share/burst/host-* || complain "it is not what was installed"
	else
		refused_for 6 'b1: is "Linux aarch64", and this burst was built without its program for such hosts: build it where'
	fi
	boxes_gone
}
t_the_program_for_the_other_kind() { # in an emulator
	local host=$ROOT/build/kit/burst-host-aarch64 qemu
	[ -s "$host" ] || { skip "not built: no static libraries or no compiler for aarch64"; return; }
	qemu=$(command -v qemu-aarch64-static qemu-aarch64) || { skip "no qemu-user-static"; return; }
	other() { timeout 60 "$qemu" "$host" "$@"; }
	echo '{"name":"v","create":true}' | other volume "$T/host" >/dev/null || complain "no volume"
	echo words | other stage "$T/host" v f >/dev/null || complain "a file is refused"
	is "$(other fetch "$T/host" v f 0 2>/dev/null)" words "the file"
	echo '{"name":"burst-aa","script":"echo here","env":{},"conf":{"isolation":"process"},"marker":{"machine":"a","run":"r","attempt":"aa"}}' |
		other rent "$T/host" >out.txt 2>err.txt || complain "it is not rented: $(cat err.txt)"
	wait_for 20 "the pod to end itself" other_says gone # the emulator hides when its processes began: they cannot be told apart
	echo '{"id":"local-aa"}' | other logs "$T/host" | jq -r .text >said.txt
	has said.txt here
}
other_says() { [ "$(other list "$T/host" <<<'{}' | jq -r '.pods[0].state')" = "$1" ]; }
t_a_full_disk() {
	boxes b1 || return
	in_boxes mount -t tmpfs -o "size=256k,uid=$(box_id b1),mode=755" none "box/b1"
	script_lines 3
	box_config 'wait = "2s";'
	refused_for 6 'b1: providers.ssh.volume_dir must be a folder there with room .*No space left'
	in_boxes umount box/b1
	boxes_gone
}

run_tests "$@"
