#!/bin/bash
# local_pod.sh - a hostile job in a pod on this machine, started by root and by an ordinary user: what it reads, changes and
# reaches outside of its pod. Each attack writes what came of it into a file of the job's; the machine is looked at as well.
. "$(dirname "$0")/../e2e/lib.sh"
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/local_pod_lib.sh"

# attempt NAME COMMAND: a line of attack.sh that reports "NAME: done" if the command succeeds, else "NAME: refused"
attempt() {
	# shellcheck disable=SC2016
	printf 'if (%s) 2>why; then echo "%s: done"; else echo "%s: refused ($(head -c 200 why | tr "\\n" " "))"; fi\n' "$2" "$1" "$1" >>attack.sh
}
all_refused() { # all_refused WHO: every attempt was made, and none succeeded
	local name
	name=$(grep ': done' out/report | head -n 3 | tr '\n' ' ')
	[ -z "$name" ] || complain "$1: the job could: $name"
	is "$(grep -c ': refused' out/report)" "$(grep -c '^if ' attack.sh)" "$1: attempts in the report"
}

# ---- the machine's kernel ----
c_settings() {
	: >attack.sh
	local name
	for name in kernel/core_pattern kernel/modprobe kernel/hostname vm/overcommit_memory kernel/panic fs/suid_dumpable kernel/sysrq \
		kernel/yama/ptrace_scope net/ipv4/ip_forward; do
		[ ! -e "/proc/sys/$name" ] || attempt "sys/$name" "cat /proc/sys/$name >was && cat was >/proc/sys/$name"
	done
	attempt core_pattern_by_hand 'echo "|/tmp/pwn" >/proc/sys/kernel/core_pattern'
	attempt sysrq 'echo h >/proc/sysrq-trigger'
	[ ! -e /proc/irq/default_smp_affinity ] || attempt irq 'cat /proc/irq/default_smp_affinity >was && cat was >/proc/irq/default_smp_affinity'
	attempt remount 'mount -o remount,rw /proc/sys || mount -o remount,rw,bind /proc/sys'
	attempt uncover 'umount /proc/sys || umount -l /proc/sys'
	attempt proc_again 'mkdir -p p && mount -t proc proc p && echo x >p/sys/kernel/core_pattern'
	attempt sysfs 'mkdir -p s && mount -t sysfs sysfs s'
	attempt cgroup 'mkdir -p c && mount -t cgroup -o memory none c || mount -t cgroup2 none c'
	attempt release_agent 'find / -name release_agent 2>/dev/null | grep -q .'
	attempt uevent_helper 'echo /tmp/pwn >/sys/kernel/uevent_helper'
	local before
	before=$(cat /proc/sys/kernel/core_pattern)
	attacked_by "$1"
	all_refused "$1"
	is "$(cat /proc/sys/kernel/core_pattern)" "$before" "$1: core_pattern of this machine"
}
t_it_changes_no_setting_of_the_machine() { each_user c_settings; }

c_secrets() {
	local path
	: >attack.sh
	mkdir -p "$HOME/.ssh"
	echo "PRIVATE of $1" >"$HOME/.ssh/id_rsa"
	for path in /etc/shadow /etc/gshadow /etc/shadow- /etc/ssh/ssh_host_ed25519_key /etc/ssh/ssh_host_rsa_key /etc/machine-id /etc/fstab /etc/sudoers \
		/etc/pip.conf /etc/environment /root/.ssh/id_rsa "$HOME/.ssh/id_rsa" "$BURST_STATE_DIR/ledger.db" /var/run/docker.sock /run/docker.sock \
		/run/dbus/system_bus_socket /run/user /boot /srv /media "/proc/1/root$HOME" "/proc/self/root$HOME" "/proc/self/cwd/$HOME"; do
		attempt "$path" "test -e '$path'"
	done
	for path in /proc/kcore /proc/kallsyms /proc/keys /proc/key-users /proc/timer_list /proc/sched_debug /proc/vmallocinfo /proc/kmsg \
		/proc/cmdline /proc/swaps /proc/config.gz; do
		attempt "$path" "test \"\$(timeout 5 head -c 10 $path | wc -c)\" != 0"
	done
	attempt dmesg 'dmesg'
	attempt firmware 'ls /sys/firmware | grep -q .'
	attempt accounts "grep -qvE '^(root|pod|sshd|nobody|burst-[a-z]+):' /etc/passwd"
	attacked_by "$1"
	all_refused "$1"
}
t_it_reads_no_secret_of_the_machine() { each_user c_secrets; }

# ---- keys, namespaces, devices, the kernel's young code: by their numbers, whatever tools there are ----
calls() {
	cat >calls.py <<-'E2'
		import ctypes, errno, fcntl, os, platform, pty, socket, sys, termios
		libc = ctypes.CDLL(None, use_errno=True)
		arm = platform.machine() == "aarch64"
		def call(name, x86, generic, *args):
		    """Reports whether the kernel let it: an error that only a running call can give counts as done."""
		    ctypes.set_errno(0)
		    got = libc.syscall(generic if arm else x86, *args)
		    code = ctypes.get_errno()
		    refused = got < 0 and code in (errno.EPERM, errno.ENOSYS, errno.EACCES, errno.EAFNOSUPPORT, errno.EPROTONOSUPPORT)
		    print("%s: %s (%d %s)" % (name, "refused" if refused else "done", got, errno.errorcode.get(code, code)))
		zero = ctypes.create_string_buffer(256)
		call("keyctl describe session", 250, 219, 6, -3, zero, 256)
		call("keyctl search user", 250, 219, 10, -4, b"user", b"burst-test", 0)
		call("keyctl read", 250, 219, 11, -5, zero, 256)
		call("add_key", 248, 217, b"user", b"x", b"y", 1, -2)
		call("request_key", 249, 218, b"user", b"burst-test", 0, -2)
		call("unshare user", 272, 97, 0x10000000)
		call("unshare mount", 272, 97, 0x00020000)
		call("unshare time", 272, 97, 0x80)
		call("setns", 308, 268, os.open("/proc/self/ns/mnt", os.O_RDONLY), 0)
		call("clone user", 56, 220, 0x10000000 | 17, 0, 0, 0, 0)
		call("clone mount", 56, 220, 0x00020000 | 17, 0, 0, 0, 0)
		call("clone3", 435, 435, zero, 88)
		call("mount", 165, 40, b"x", b"/mnt", b"tmpfs", 0, None)
		call("umount", 166, 39, b"/proc/sys", 2)
		call("pivot_root", 155, 41, b".", b".")
		call("open_tree", 428, 428, -100, b"/", 1)
		call("move_mount", 429, 429, -100, b"/", -100, b"/mnt", 0)
		call("fsopen", 430, 430, b"tmpfs", 0)
		call("mount_setattr", 442, 442, -100, b"/usr", 0, zero, 32)
		call("statmount", 457, 457, zero, zero, 256, 0)
		call("listmount", 458, 458, zero, zero, 4, 0)
		call("bpf", 321, 280, 0, zero, 72)
		call("perf_event_open", 298, 241, zero, 0, -1, -1, 0)
		call("userfaultfd", 323, 282, 0)
		call("io_uring_setup", 425, 425, 1, zero)
		call("kexec_load", 246, 104, 0, 0, None, 0)
		call("init_module", 175, 105, zero, 1, b"")
		call("finit_module", 313, 273, 0, b"", 0)
		call("delete_module", 176, 106, b"x", 0)
		call("open_by_handle_at", 304, 265, 3, zero, 0)
		call("name_to_handle_at", 303, 264, -100, b"/", zero, zero, 0)
		call("syslog", 103, 116, 3, zero, 256)
		call("reboot", 169, 142, 0xfee1dead, 672274793, 0, None)
		call("swapon", 167, 224, b"/tmp/x", 0)
		call("settimeofday", 164, 170, zero, None)
		call("sethostname", 170, 161, b"x", 1)
		call("acct", 163, 89, None)
		call("quotactl", 179, 60, 0, b"/", 0, zero)
		call("fanotify_init", 300, 262, 0, 0)
		call("pidfd_getfd", 438, 438, 3, 0, 0)
		call("personality", 135, 92, 0x0040000 | 0x0100000)
		if not arm:
		    call("iopl", 172, 0, 3)
		for name, family, kind, protocol in (("packet", 17, 3, 0), ("vsock", 40, 1, 0), ("alg", 38, 5, 0), ("audit", 16, 3, 9),
		                                     ("uevent", 16, 3, 15), ("netfilter", 16, 3, 12), ("bluetooth", 31, 3, 0), ("high bits", 40 | 1 << 40, 1, 0)):
		    call("socket " + name, 41, 198, ctypes.c_uint64(family), kind, protocol)
		call("socket raw", 41, 198, 2, 3, 1)
		master, slave = pty.openpty()
		call("TIOCSTI", 16, 29, slave, 0x5412, b"x")
		call("TIOCSTI high", 16, 29, slave, ctypes.c_uint64(0x5412 | 1 << 32), b"x")
		call("TIOCLINUX", 16, 29, slave, 0x541c, b"\x06")
	E2
}
c_calls() {
	calls
	echo 'python3 calls.py' >attack.sh
	attacked_by "$1"
	local bad
	bad=$(grep -vE ': refused' out/report | head -n 5 | tr '\n' ' ')
	[ -z "$bad" ] || complain "$1: the kernel let it: $bad"
	[ "$(grep -c ': refused' out/report)" -ge 40 ] || complain "$1: only $(wc -l <out/report) calls were tried"
}
t_it_makes_no_call_that_reaches_past_its_pod() {
	command -v python3 >/dev/null || { skip "no python3"; return; }
	each_user c_calls
}

c_devices() {
	cat >attack.sh <<-'E2'
		find /dev -type b -o -type c | sort | sed 's/^/node: /'
		for one in $(find /dev -type b; ls /dev | grep -E '^(mem|kmem|port|sd|vd|nvme|loop|dm|kvm|fuse|net|vsock|vhost|kmsg|snapshot|tty[0-9]|console|dri|snd|input|hidraw)'); do
			echo "device: done $one"
		done
		echo "device: refused"
	E2
	attempt block 'mknod disk b 254 0'
	attempt memory 'mknod memory c 1 1'
	attempt kmsg 'mknod kmsg c 1 11'
	attempt overwrite 'rm -f /dev/null && mknod /dev/null c 1 1'
	attempt terminal ': </dev/tty'
	attacked_by "$1"
	! grep -E '^device: done|: done' out/report || complain "$1: $(grep -m 1 done out/report)"
	is "$(grep '^node: ' out/report | grep -vE '^node: /dev/(null|zero|full|random|urandom|tty|pts/.*)$')" '' "$1: devices"
	is "$(grep -c ': refused' out/report)" 6 "$1: attempts in the report"
}
t_it_has_no_device_of_the_machine() { each_user c_devices; }

# with_gpu COMMAND...: where /dev has a GPU (which is /dev/zero)
cat >"$WORK/with_gpu" <<-'E2'
	#!/bin/sh
	mkdir -p "$0.dev" && mount -t tmpfs -o mode=755 none "$0.dev" && cd "$0.dev" && mkdir pts shm || exit 90
	for node in null:3 zero:5 full:7 random:8 urandom:9 nvidia0:5 nvidiactl:5; do mknod -m 666 "${node%:*}" c 1 "${node#*:}"; done
	mknod -m 666 tty c 5 0
	chown root:video nvidia0 && chmod 660 nvidia0 # as Debian's driver packages have it
	mkdir nvidia-caps && mknod -m 400 nvidia-caps/nvidia-cap1 c 1 5
	mount --move "$0.dev" /dev && cd "$OLDPWD" && exec "$@"
E2
chmod 755 "$WORK/with_gpu"
c_gpu() {
	[ "$1" = root ] || return
	: >attack.sh
	echo 'test "$(head -c 3 /dev/nvidia0 | wc -c)" = 3 && echo gpu; test -r /dev/nvidia-caps/nvidia-cap1 && stat -c "%u %a" /dev/nvidia0; ls /dev | grep -c nvidia; ls /sys/bus | grep -q . && echo buses' >>attack.sh
	attempt firmware 'ls /sys/firmware /sys/fs /sys/kernel/debug /sys/kernel/security /sys/kernel/tracing 2>/dev/null | grep -v : | grep -q .'
	attempt write "for f in \$(find /sys -type f -perm -u+w 2>/dev/null | head -n 300); do (: >\$f) 2>/dev/null && exit 0; done; false"
	attempt make 'mkdir /sys/x || mkdir /sys/fs/x || mkdir /sys/fs/cgroup/x'
	local LOCAL='gpu = "L4";' BEFORE="unshare -m $WORK/with_gpu"
	attacked_by "$1"
	all_refused "$1"
	is "$(grep -v refused out/report | tr '\n' ' ')" "gpu 0 660 3 buses " "$1: what it sees of the GPU"
}
t_a_gpu_brings_nothing_else_along() {
	[ "$(id -u)" = 0 ] || { skip "not root"; return; }
	unshare -m true 2>/dev/null || { skip "no mount namespace"; return; }
	each_user c_gpu
}

# ---- paths and processes ----
c_paths() {
	cat >attack.sh <<-'E2'
		cat /proc/self/mountinfo /proc/self/mounts | sed 's/^/mount: /'
		for pid in $(ls /proc | grep -E '^[0-9]+$'); do
			for what in cwd root exe; do echo "link: $(readlink /proc/$pid/$what)"; done
			for fd in /proc/$pid/fd/*; do echo "fd: $(readlink "$fd")"; done
			tr '\0' '\n' </proc/$pid/environ | sed 's/^/env: /'
			tr '\0' ' ' </proc/$pid/cmdline | sed 's/^/cmd: /; s/$/\n/'
			cat /proc/$pid/maps /proc/$pid/cgroup /proc/$pid/mountstats 2>/dev/null | sed 's/^/map: /'
		done 2>/dev/null
		hostname | sed 's/^/host: /'
	E2
	exec 9<"$T/secret"
	attacked_by "$1"
	exec 9<&-
	# the folder of the volume is the one place that bears its own path
	local bad
	bad=$(sed "s#$BURST_STATE_DIR/volumes/v ##" out/report | grep -F -e "$T" -e "$HOME" | head -n 3 | tr '\n' ' ')
	[ -z "$bad" ] || complain "$1: the pod learns where it is: $bad"
	! grep -q '^fd: .*secret' out/report || complain "$1: the pod inherits a descriptor"
	! grep -qx "host: $(hostname)" out/report || complain "$1: the pod knows this machine's name"
	is "$(grep -c 'mount: .* /workspace ' out/report)" 2 "$1: mounts of the volume"
}
t_it_learns_no_path_of_the_machine() {
	echo secret >secret
	each_user c_paths
}

c_processes() {
	local outside before
	# shellcheck disable=SC2016
	as "$1" sh -c 'echo $$ >"$0" && exec sleep 1234.5' "$T/$1/pid" >/dev/null 2>&1 &
	wait_for 10 "$1: a process outside" [ -s "$T/$1/pid" ]
	outside=$(cat "$T/$1/pid")
	before=$(cut -d' ' -f22 "/proc/$outside/stat")
	: >attack.sh
	attempt seen "for one in /proc/[0-9]*/cmdline; do tr '\\0' ' ' <\$one; echo; done | grep -q '^sleep 1234'"
	echo "kill -9 $outside" >>attack.sh
	attempt hosts_first "! tr '\\0' ' ' </proc/1/cmdline | grep -q burst-start"
	# shellcheck disable=SC2016
	echo 'echo "pids: $(ls /proc | grep -cE "^[0-9]+$")"' >>attack.sh
	attacked_by "$1"
	all_refused "$1"
	is "$(cut -d' ' -f22 "/proc/$outside/stat" 2>/dev/null)" "$before" "$1: a process outside"
	[ "$(sed -n 's/^pids: //p' out/report)" -lt 25 ] || complain "$1: it sees processes outside: $(grep pids out/report)"
	kill "$outside" 2>/dev/null
	wait "$outside" 2>/dev/null
}
t_it_sees_and_signals_no_process_outside() { each_user c_processes; }

c_rights() {
	cat >attack.sh <<-'E2'
		grep -E '^(CapEff|CapBnd|NoNewPrivs|Seccomp):' /proc/self/status | tr -d '\t' | sed 's/^/right: /'
		awk '{ print "map: " $2 }' /proc/self/uid_map
		cp /bin/cat ./mine && chmod 6755 ./mine
	E2
	attempt su 'su -c true nobody </dev/null || su -c true </dev/null' # root inside may: it is nobody outside
	attempt write_usr 'touch /usr/x || touch /usr/bin/sh || touch /opt/x'
	attempt remount_usr 'mount -o remount,rw /usr || mount -o remount,bind,rw /usr'
	attempt chroot_escape 'mkdir -p hole && chroot hole /bin/true'
	attempt host_files_through_proc 'echo x >/proc/1/root/etc/../usr/x'
	attacked_by "$1"
	! grep -E '^(write_usr|remount_usr|chroot_escape|host_files_through_proc): done' out/report || complain "$1: $(grep -m 1 ': done' out/report)"
	grep -q 'right: NoNewPrivs:1' out/report || complain "$1: programs may gain rights"
	grep -q 'right: Seccomp:2' out/report || complain "$1: no filter of system calls"
	if [ "$1" = root ]; then
		grep -q 'right: CapBnd:00000000000405fb' out/report || complain "root: capabilities: $(grep CapBnd out/report)"
		[ "$(sed -n 's/^map: //p' out/report | head -n 1)" -ge 1000 ] || complain "root: the pod's root is this machine's: $(grep map: out/report)"
	else
		grep -q 'right: CapEff:0000000000000000' out/report || complain "user: capabilities: $(grep CapEff out/report)"
	fi
}
t_it_has_few_rights() { each_user c_rights; }

# ---- the machine's network, if the user's file gives it ----
c_sockets() {
	cat >server.py <<-'E2'
		import os, socket, sys
		hidden = socket.socket(socket.AF_UNIX)
		hidden.bind("\0burst-test-" + sys.argv[1])
		hidden.listen()
		named = socket.socket(socket.AF_UNIX)
		named.bind(sys.argv[2])
		os.chmod(sys.argv[2], 0o777)
		named.listen()
		print("ready", flush=True)
		sys.stdin.read()
	E2
	cat >client.py <<-'E2'
		import socket, sys
		for name in ("\0burst-test-" + sys.argv[1], sys.argv[2]):
		    try:
		        socket.socket(socket.AF_UNIX).connect(name)
		        print("socket: done", repr(name))
		    except OSError as e:
		        print("socket: refused", e)
	E2
	local tag=$$-$1 fifo=$T/fifo-$1 says=$T/says-$1 LOCAL_NETWORK=host
	mkfifo "$fifo" "$says"
	python3 server.py "$tag" "$T/socket-$1" <"$fifo" >"$says" &
	exec 8>"$fifo"
	read -r _ <"$says"
	echo "python3 client.py $tag '$T/socket-$1'; test -s /etc/resolv.conf && echo resolver" >attack.sh
	export LOCAL_NETWORK
	attacked_by "$1"
	export -n LOCAL_NETWORK
	exec 8>&-
	wait
	[ ! -s /etc/resolv.conf ] || grep -q resolver out/report || complain "$1: no resolver"
	if as "$1" "$BURST" local-cloud check "$T/check-$1" <<<'{"conf":{"shared_network":true}}' | grep -q 'abstract sockets'; then
		is "$(grep -c 'socket: refused' out/report)" 1 "$1: named sockets that it cannot reach"
		return # said by doctor
	fi
	is "$(grep -c 'socket: refused' out/report)" 2 "$1: sockets that it cannot reach ($(tr '\n' '|' <out/report))"
}
t_it_reaches_no_socket_of_other_programs() {
	command -v python3 >/dev/null || { skip "no python3"; return; }
	each_user c_sockets
}

# ---- where it cannot be contained ----
t_root_without_other_users_runs_no_pod() {
	[ "$(id -u)" = 0 ] || { skip "not root"; return; }
	unshare -U true 2>/dev/null || { skip "no user namespaces"; return; }
	local -x LOCAL_ISOLATION=
	unshare -Ur "$BURST" local-cloud check "$T/state" <<<'{}' >out.txt 2>err.txt
	has out.txt 'bad: pods cannot have namespaces of their own here (root has no other users to run pods as'
	setpriv --inh-caps=-setuid --bounding-set=-setuid "$BURST" local-cloud check "$T/state" <<<'{}' >out.txt 2>err.txt
	has out.txt 'bad: pods cannot have namespaces of their own here'
	! "$BURST" local-cloud check "$T/state" <<<'{}' | grep -q 'bad: pods' || complain "without a reason"
}

run_tests "$@"
