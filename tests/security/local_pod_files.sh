#!/bin/bash
# local_pod_files.sh - what a hostile job in a pod on this machine leaves behind on the disk, and what the volume keeps.
. "$(dirname "$0")/../e2e/lib.sh"
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/local_pod_lib.sh"

c_other_users() { # workers may run as another user of the pod: it can enter the volume, and what is the pod's root's is not its own
	[ "$1" = root ] || { echo >>"$T/none"; return; }
	cat >attack.sh <<-'E2'
		other() { setpriv --reuid=61001 --regid=61001 --clear-groups "$@"; }
		other ls -d /workspace/runs >/dev/null && echo entered
		other touch /workspace/made 2>/dev/null && echo made
		other cat /proc/1/environ >/dev/null 2>&1 && echo "read: done" || echo "read: refused"
	E2
	attacked_by "$1"
	grep -qx entered out/report || complain "the volume is closed to other users of the pod ($(tr '\n' '|' <out/report))"
	! grep -qx made out/report || complain "any user of the pod writes to the volume's top folder"
	grep -qx 'read: refused' out/report || complain "any user of the pod reads the environment of its first process"
}
t_the_pods_other_users_are_apart() {
	[ "$(id -u)" = 0 ] || { skip "not root: the pod has one user"; return; }
	each_user c_other_users
}

# ---- what it leaves on its volume ----
c_files() {
	cat >attack.sh <<-'E2'
		cd /workspace
		mkdir -p left/closed && cp /bin/cat left/setuid && chmod 6777 left/setuid
		ln -s /etc/passwd left/link
		echo x >left/closed/file
		chown 1000:1000 left/closed 2>/dev/null
		chmod 000 left/closed
		echo fine: refused
	E2
	attacked_by "$1"
	local left=$BURST_STATE_DIR/volumes/v/left owner=$USER_ID
	[ "$1" = user ] && [ "$(id -u)" != 0 ] && owner=$(id -u)
	if [ "$1" = root ]; then
		[ "$(stat -c %u "$left/setuid")" -ge 1000 ] || complain "root: a setuid program of root's lies on the volume"
	else
		is "$(stat -c %u "$left/setuid")" "$owner" "user: owner of what it left"
	fi
	as "$1" timeout 30 "$BURST" volume rm v -y >"$T/out.txt" 2>"$T/err.txt" </dev/null || complain "$1: volume rm: $(tail -n 1 "$T/err.txt")"
	[ ! -e "$BURST_STATE_DIR/volumes/v" ] && [ -z "$(ls -A "$BURST_STATE_DIR/volumes")" ] || complain "$1: the volume is still there"
}
t_what_it_leaves_is_nobodys_and_goes() { each_user c_files; }

# folders nested deeper than descriptors, stacks or paths reach, and folders in each other that are closed
c_deep() {
	cat >deep.py <<-'E2'
		import os
		for top, levels in ("/tmp", 3000), ("/workspace", 20000):
		    os.chdir(top)
		    for i in range(levels):
		        os.mkdir("d")
		        os.chdir("d")
		    os.chdir(top)
		    os.makedirs("c/" * 40)
		    for depth in range(40, 0, -1):
		        os.chmod("c/" * depth, 0)
		print("made")
	E2
	echo 'python3 deep.py' >attack.sh
	(ulimit -n 1024 && attacked_by "$1")
	is "$(cat out/report)" made "$1: report"
	as "$1" timeout 60 "$BURST" volume ls >"$T/out.txt" 2>"$T/err.txt" </dev/null || complain "$1: volume ls: $(tail -n 1 "$T/err.txt")"
	as "$1" timeout 60 "$BURST" volume rm v -y >"$T/out.txt" 2>"$T/err.txt" </dev/null || complain "$1: volume rm: $(tail -n 1 "$T/err.txt")"
	[ -z "$(ls -A "$BURST_STATE_DIR/volumes")" ] || complain "$1: the volume is still there"
}
t_what_it_leaves_may_be_deep_and_closed() { each_user c_deep; }

c_older() {
	local volume=$BURST_STATE_DIR/volumes/v killed=$BURST_STATE_DIR/local/probe-99999
	as "$1" mkdir -p "$killed/disk/work/work" # what a client left that was killed while it tried what works here
	as "$1" chmod 000 "$killed/disk/work/work"
	as "$1" touch -d '2 minutes ago' "$killed"
	as "$1" mkdir -p -m 700 "$volume/runs/old" "$volume/other"
	as "$1" sh -c "echo before >'$volume/runs/old/file'; chmod 600 '$volume/runs/old/file'"
	as "$1" ln -s "$T/outside" "$volume/other/link"
	cat >attack.sh <<-'E2'
		cat /workspace/runs/old/file
		echo after >>/workspace/runs/old/file && rm -r /workspace/other && echo changed
		ls -ldn /workspace /workspace/runs/old/file | awk '{ print "owner: " $3 }'
	E2
	echo outside >"$T/outside"
	local before
	before=$(stat -c '%u %g' "$T/outside")
	attacked_by "$1"
	grep -qx before out/report && grep -qx changed out/report || complain "$1: an older volume cannot be used: $(tr '\n' '|' <out/report)"
	is "$(stat -c '%u %g' "$T/outside")" "$before" "$1: what a link leads to"
	is "$(cat "$volume/runs/old/file")" "$(printf 'before\nafter')" "$1: its file"
}
t_volumes_of_older_versions_stay_usable() { each_user c_older; }

t_a_pod_lives_where_overlays_do_not() { # the state folder lies on an overlay, which is no place for another one's files
	[ "$(id -u)" = 0 ] && unshare -m true 2>/dev/null || { skip "not root"; return; }
	contained root || { skip "no containment here"; return; }
	local -x LOCAL_ISOLATION=namespaces
	mkdir -p lower upper work project
	cat >on_overlay <<-E2
		#!/bin/sh
		mkdir -p '$T/state' && mount -t overlay none -o 'lowerdir=$T/lower,upperdir=$T/upper,workdir=$T/work' '$T/state' || exit 90
		cd project && timeout -k 5 60 '$BURST' run
		status=\$?
		until [ -z "\$(ls '$T/state/local/pods')" ]; do sleep 0.1; done
		exit \$status
	E2
	echo 'echo lives; echo x >/tmp/x && cat /tmp/x; grep -c overlay /proc/self/mounts' >project/attack.sh
	cat >project/burst.cfg <<-E2
		provider = "local";
		job = { name = "x"; type = "command"; run = "sh attack.sh >report"; outputs = ["report"]; output = "out"; };
		code = { path = "."; };
	E2
	STATUS=0
	unshare -m sh on_overlay >out.txt 2>err.txt </dev/null || STATUS=$?
	is "$STATUS" 0 "exit status ($(tail -n 2 err.txt))"
	is "$(head -n 2 project/out/report | tr '\n' ' ')" "lives x " "its report"
}

run_tests "$@"
