#!/bin/sh
# agent_setups.sh - set-ups, packages and environments are made once, kept, and made again when they are incomplete.
# shellcheck disable=SC2016,SC2013,SC2015,SC2086,SC2154 # pod-side $ stays; paths of our own making have no blanks
. "$(dirname "$0")/agent_lib.sh"

# What was made with one Python is of no use to another.
test_an_environment_is_of_one_python() {
	tell '{"op":"setup","hash":"e","script":"echo made >$BURST_ENV/e"}'
	expect '"ev":"setup","ok":true.*"tree":".*"python":"'
	env=$(sed -n 's/.*"ev":"setup".*"tree":"\([0-9a-f]*\)".*/\1/p' "$said")
	python=$(sed -n 's/.*"ev":"setup".*"python":"\([^"]*\)".*/\1/p' "$said")
	tell '{"op":"start","workers":1,"worker":"echo wrong; sleep 100","env_hash":"e","env_tree":"'$env'","env_python":"python2.7"}'
	expect '"ev":"start","ok":false,"lacks":"env","error":"was made with python2.7, and this image has '
	tell '{"op":"start","workers":1,"worker":"echo right; sleep 100","env_hash":"e","env_tree":"'$env'","env_python":"'$python'"}'
	expect '"line":"right"'
	refuse '"line":"wrong"'
}

# What an install leaves to be kept is found by the next one, which says what it must be; what was planted there is not.
test_packages_that_are_kept() {
	tell '{"op":"install","script":"[ -d \"$BURST_KEPT\" ] && exit 9; mkdir \"$BURST_KEEP/r\"; echo deb >\"$BURST_KEEP/r/a.deb\""}'
	expect '"ev":"install","ok":true.*"kept":"'
	kept=$(sed -n 's/.*"ev":"install".*"kept":"\([0-9a-f]*\)".*/\1/p' "$said")
	tell '{"op":"install","kept":"'$kept'","script":"cat \"$BURST_KEPT/r/a.deb\""}'
	expect '"ev":"log","id":"install","line":"deb"'
	expect '"ev":"install","ok":true' 2
	equal 'kept only once' "$(ls "$BURST_VOLUME/debs")" "$kept"
	echo evil >"$BURST_VOLUME/debs/$kept/r/a.deb"
	tell '{"op":"install","kept":"'$kept'","script":"echo there: $(ls \"$BURST_KEPT\" 2>/dev/null)"}'
	expect '"line":"there:'
	refuse 'evil|there: r'
	expect '"ev":"install","ok":true' 3
}

test_setup_that_does_not_die() {
	start_undead 0
	tell "{\"op\":\"setup\",\"hash\":\"h1\",\"script\":\"exec python3 $dir/worker.py setup\",\"timeout_s\":3}"
	expect '"line":"(undead|nothing may trace here)"'
	grep -q '"line":"nothing may' "$said" && { echo "skipped: nothing may trace here"; return 0; }
	expect '"ev":"setup","ok":false.*"error":"it took too long; '
}

test_setup_once() {
	tell '{"op":"setup","hash":"h1","script":"echo making; echo x >\"$BURST_ENV/made\"; echo \"$BURST_ENV_FINAL\" >\"$BURST_ENV/where\"","timeout_s":20}'
	tell '{"op":"install","script":"echo into the container"}'
	expect '"ev":"setup","ok":true,"skipped":false'
	env=$(sed -n 's/.*"ev":"setup".*"tree":"\([0-9a-f]*\)".*/\1/p' "$said")
	equal 'its id' "$env" "$(rm -rf "$dir/env"; cp -a "$BURST_VOLUME/env/h1" "$dir/env"; rm "$dir/env/.burst-tree"; tree_id "$dir/env")"
	tell '{"op":"start","workers":1,"worker":"cat $BURST_ENV/made $BURST_ENV/where; sleep 50","env_hash":"h1","env_tree":"'$env'"}'
	expect '"ev":"install","ok":true'
	expect '"ev":"log","id":"setup","line":"making"'
	expect '"ev":"log","w":0,"line":"x"'
	expect "\"line\":\"$BURST_VOLUME/env/h1\""
	tell '{"op":"setup","hash":"h1","script":"exit 1"}'
	expect '"ev":"setup","ok":true,"skipped":true'
	tell '{"op":"setup","hash":"h2","script":"echo this is why >&2; exit 3"}'
	expect '"ev":"setup","ok":false,"skipped":false,"ms":[0-9]*,"error":"this is why'
	equal 'nothing half made' "$(find "$BURST_VOLUME/env" -mindepth 1 -maxdepth 1 | wc -l)" 1
	tell '{"op":"install","script":"sleep 100","timeout_s":1}'
	expect '"ev":"install","ok":false,"skipped":false.*too long'
}

# What failed is forgotten once it has succeeded, and nothing else makes up for it.
test_install_waits_for_the_start_scripts() {
	mkdir "$BURST_HOME/installing"
	tell '{"op":"install","script":"[ ! -e \"$BURST_HOME/installing\" ]"}'
	for _ in $(seq 200); do
		[ -e "$BURST_HOME/install.sh" ] && break
		sleep 0.05
	done
	sleep 0.5
	rmdir "$BURST_HOME/installing"
	expect '"ev":"install","ok":true'
}

test_install_again() {
	tell '{"op":"install","script":"exit 1"}'
	tell '{"op":"install","script":"true"}'
	start 1 ''
	expect '"ev":"install","ok":false'
	expect '"ev":"install","ok":true'
	expect '"ev":"worker".*"state":"ready"'
	tell '{"op":"install","script":"exit 1"}'
	tell '{"op":"setup","hash":"h1","script":"true"}'
	start 1 ''
	expect '"ev":"setup","ok":true'
	expect '"state":"failed","error":"what it needs could not be set up"'
}

test_setup_again() {
	tell '{"op":"setup","hash":"h1","script":"exit 1"}'
	tell '{"op":"setup","hash":"h1","script":"true"}'
	start 1 ''
	expect '"ev":"worker".*"state":"ready"'
	tell '{"op":"setup","hash":"h2","script":"exit 1"}'
	tell '{"op":"install","script":"true"}'
	start 1 ''
	expect '"ev":"install","ok":true'
	expect '"state":"failed","error":"what it needs could not be set up"'
}

# hold_up COMMAND: who opens the first file of the code is held up until COMMAND was run there. Fails where that cannot be.
hold_up() {
	mkdir -p "$dir/code"
	for i in $(seq 20); do echo "$i" >"$dir/code/f$i"; done
	put_tree code "$dir/code"
	mv "$BURST_VOLUME/code/$tree/.burst-tree" "$dir/listing" # not the one that is opened first
	(cd "$BURST_VOLUME/code/$tree" && python3 "$here/tests/e2e/hold_up.py" . "$1") >"$dir/holds" 2>"$dir/holder" &
	holder=$!
	echo $holder >>"$dir/pids"
	for _ in $(seq 400); do
		grep -qs held "$dir/holds" && mv "$dir/listing" "$BURST_VOLUME/code/$tree/.burst-tree" && return
		kill -0 $holder 2>/dev/null || break
		sleep 0.05
	done
	wait $holder
	equal 'who holds it up' "$?" 77
	echo "skipped: no leases here"
	return 1
}

# Files went while the code was copied from the volume: no command runs on a part of it.
test_code_that_changes_under_a_copy() {
	hold_up 'for f in f*; do [ $f = $HELD ] || rm $f; done' || return 0
	tell '{"op":"start","workers":1,"command":true,"code":"code/'$tree'"}'
	expect '"ev":"start","ok":false,"lacks":"code","error":"is not what was put there"'
	wait $holder
	equal 'who held it up' "$?" 0
	put_tree code "$dir/code"
	tell '{"op":"start","workers":1,"command":true,"code":"code/'$tree'"}'
	tell '{"op":"batch","id":"b1","segments":[{"id":"c1","run":"cat f* | wc -l"}]}'
	expect '"id":"c1".*"ok":true'
	expect '"id":"c1","line":"20"'
}

# It was renamed while it was copied, and is whole.
test_code_that_goes_under_a_copy() {
	hold_up 'mv "$PWD" ../gone' || return 0
	tell '{"op":"start","workers":1,"command":true,"code":"code/'$tree'"}'
	tell '{"op":"batch","id":"b1","segments":[{"id":"c1","run":"cat f* | wc -l"}]}'
	expect '"id":"c1","line":"20"'
	wait $holder
	equal 'who held it up' "$?" 0
}

# A fresh pod that keeps environments at $disk, the same for all; with a folder it has that volume.
disk_pod() { # [VOLUME]
	[ -z "$(serve_pid)" ] || leave
	BURST_ATTEMPT=$(printf 'aaaabbbbcccc%04d' "$n") # each has events of its own
	pod
	disk=$top/disk-$name
	[ -z "$1" ] || BURST_VOLUME=$1
	sed "s|^BURST_VOLUME=.*|BURST_VOLUME='$BURST_VOLUME'|" "$BURST_HOME/env" >"$dir/env" && mv "$dir/env" "$BURST_HOME/env"
	echo "BURST_ENV_DISK='$disk'" >>"$BURST_HOME/env"
	attach 0
}

# A setup whose result has a name of its own; its id in $env. What it prints there is its final name.
set_up() { # NAME [MORE]
	tell '{"op":"setup","hash":"'$1'","script":"cd $BURST_ENV; mkdir -p lib/more; for i in $(seq 200); do echo $i >lib/f$i; done; echo good >lib/m; echo \"#!$BURST_ENV_FINAL/lib/sh\" >script; ln -s /bin/sh lib/sh; echo exit 7 >>script; chmod 755 script; '"$2"'"}'
	expect '"ev":"setup","ok":true.*"tree":"' || return
	env=$(sed -n 's/.*"ev":"setup".*"tree":"\([0-9a-f]*\)".*/\1/p' "$said")
}

# What the worker finds: where it is, whether its own path in it leads to it, and what is in it.
use() { # NAME [TIMES]: workers are started anew, since the words of each start differ
	tell '{"op":"start","workers":1,"hang_s":6'${2:-1}',"worker":"cat $BURST_ENV/lib/m $BURST_ENV/lib/f200; $BURST_ENV/script; echo at $BURST_ENV $?; echo '\''{\"hello\":1,\"protocol\":1,\"engine\":\"t\",\"version\":\"1\"}'\''; sleep 100","env_hash":"'$1'","env_tree":"'$env'"}'
	expect "\"line\":\"at $disk/$1 7\"" $2
	expect '"ev":"worker".*"state":"ready"' $2
	equal 'what is in it' "$(count '"line":"good"') $(count '"line":"200"')" "${2:-1} ${2:-1}"
}

test_environment_from_its_archive() {
	disk_pod
	set_up e
	use e
	expect '"ev":"log","line":"unpacked the environment: [0-9]* MB in [0-9.]* s"'
	expect '"ev":"worker".*"phases":\{"unpack_s":[0-9.]*,"unpack_bytes":[1-9][0-9]*\}'
	[ -d "$disk/e" ] && [ ! -L "$disk/e" ] && [ -s "$BURST_VOLUME/env/e/.burst-archive" ] || fail 'no archive was unpacked'
	# it stays for a second start
	touch "$disk/e/seen"
	use e 2
	[ -e "$disk/e/seen" ] || fail 'it was unpacked again'
	# the files of the folder are not needed by a later pod
	disk_pod "$BURST_VOLUME"
	echo evil >"$BURST_VOLUME/env/e/lib/m"
	use e
	[ -e "$disk/e/seen" ] && fail 'what an earlier agent unpacked was used'
	refuse evil
	# a pod that knows of no such disk compares it where it lies
	volume=$BURST_VOLUME
	leave
	pod
	BURST_VOLUME=$volume
	sed "s|^BURST_VOLUME=.*|BURST_VOLUME='$volume'|" "$BURST_HOME/env" >"$dir/env" && mv "$dir/env" "$BURST_HOME/env"
	attach 0
	tell '{"op":"start","workers":1,"worker":"sleep 100","env_hash":"e","env_tree":"'$env'"}'
	expect '"ev":"start","ok":false,"lacks":"env","error":"is not what was put there"'
	rm -rf "$disk"
}

# Each of these costs time and a line of the log, and no run.
test_environment_without_its_archive() {
	disk_pod
	set_up e
	volume=$BURST_VOLUME
	cp "$volume/env/e/.burst-archive" "$top/archive"
	while read -r broken why; do
		disk_pod "$volume"
		(cd "$volume/env/e" && rm -f .burst-archive && cp "$top/archive" .burst-archive && eval "$(echo "$broken" | tr _ ' ')")
		use e || return
		expect "\"ev\":\"log\",\"line\":\"the environment is used from the volume, which may take longer: $why\""
		refuse '"unpack_s"'
		equal 'where it is' "$(readlink "$disk/e")" "$volume/env/e"
		equal 'what is left' "$(ls -A "$disk")" e
		use e 2 # in place, once more
	done <<-'E'
		rm_.burst-archive it has no archive
		echo_>>.burst-archive its archive is not what was put there
		printf_x_|_dd_of=.burst-archive_bs=1_conv=notrunc_seek=$(($(stat_-c_%s_.burst-archive)_-_100))_2>/dev/null its archive is not what was put there
		truncate_-s_-1_.burst-archive its archive is not what was put there
		:_>.burst-archive its archive is not what was put there
	E
	# and where the folder is of no use either, the volume lacks it
	disk_pod "$volume"
	rm "$volume/env/e/.burst-archive"
	echo evil >"$volume/env/e/lib/m"
	tell '{"op":"start","workers":1,"worker":"sleep 100","env_hash":"e","env_tree":"'$env'"}'
	expect '"ev":"start","ok":false,"lacks":"env","error":"is not what was put there"'
	rm -rf "$disk"
}

test_environment_for_which_the_disk_is_too_small() {
	disk_pod
	set_up e 'head -c 3000000 /dev/zero >lib/large'
	volume=$BURST_VOLUME
	# shellcheck disable=SC3045 # all shells here know -S
	limit=$(ulimit -f) && ulimit -S -f 4000 # 2 MB: a write fails in the midst of it
	disk_pod "$volume"
	# shellcheck disable=SC3045
	ulimit -S -f "$limit"
	use e
	expect '"line":"the environment is used from the volume, which may take longer: File too large"'
	equal 'what is left' "$(ls -A "$disk")" e
	[ "$(id -u)" = 0 ] && disk=$top/disk-$name && umount "$disk" 2>/dev/null
	leave
	rm -rf "$disk"
	mkdir -p "$disk"
	if [ "$(id -u)" = 0 ] && mount -t tmpfs -o size=1m none "$disk" 2>/dev/null; then
		chmod 755 "$disk"
		attach 0
		disk_pod "$volume"
		use e
		expect '"line":"the environment is used from the volume.*the pod.s disk: it is in memory, or programs cannot run there"'
		leave
		umount "$disk"
	fi
	attach 0
	rm -rf "$disk"
}

# An agent that is killed while it writes an archive, and one while it unpacks it, leave nothing that the next takes for whole.
kill_serve() { # PID: looking for it would take too long
	kill -9 "$1"
	detach
	for _ in $(seq 200); do # its children end with it
		[ -z "$(serve_pid)" ] && return
		sleep 0.05
	done
	fail 'something of the agent goes on'
}

test_environment_of_an_agent_that_was_killed() {
	disk_pod
	volume=$BURST_VOLUME
	serve=$(serve_pid)
	tell '{"op":"setup","hash":"e","script":"cd $BURST_ENV; for i in 1 2 3 4 5 6 7 8; do head -c 30000000 /dev/urandom >large$i; done"}'
	until set -- "$volume"/env/.kept.*/.burst-archive && [ -e "$1" ]; do
		grep -q '"ev":"setup"' "$said" && break
	done
	kill_serve "$serve"
	[ -e "$volume/env/e" ] && fail 'it came too late'
	[ -e "$1" ] || fail 'no archive was begun'
	disk_pod "$volume"
	serve=$(serve_pid)
	set_up e 'for i in 1 2 3 4 5 6 7 8; do head -c 30000000 /dev/zero >large$i; done'
	tell '{"op":"start","workers":1,"worker":"sleep 100","env_hash":"e","env_tree":"'$env'"}'
	until set -- "$disk"/.e.* && [ -e "$1" ]; do
		grep -q 'unpacked the env' "$said" && break
	done
	kill_serve "$serve"
	[ -e "$disk/e" ] && fail 'it came too late'
	[ -e "$1" ] || fail 'nothing was half unpacked'
	attach 0 # in the same pod
	use e
	equal 'what is left' "$(ls -A "$disk")" e
	[ -L "$disk/e" ] && fail 'it was not unpacked'
	rm -rf "$disk"
}

# Two pods make the same environment at once: each its own.
test_environment_made_by_two_pods() {
	disk_pod
	volume=$BURST_VOLUME first=$dir
	exec 4>&3
	first_client=$client first_said=$said
	pod
	sed "s|^BURST_VOLUME=.*|BURST_VOLUME='$volume'|" "$BURST_HOME/env" >"$dir/env" && mv "$dir/env" "$BURST_HOME/env"
	echo "BURST_ENV_DISK='$disk-2'" >>"$BURST_HOME/env"
	BURST_VOLUME=$volume
	attach 0
	script='cd $BURST_ENV; for i in $(seq 300); do head -c 30000 /dev/urandom >f$i; done; echo good >lib'
	printf '{"op":"setup","hash":"key-a","script":"%s"}\n' "$script" >&4
	tell '{"op":"setup","hash":"key-b","script":"'"$script"'"}'
	expect '"ev":"setup","ok":true'
	second=$(sed -n 's/.*"ev":"setup".*"tree":"\([0-9a-f]*\)".*/\1/p' "$said")
	said=$first_said
	expect '"ev":"setup","ok":true'
	env=$(sed -n 's/.*"ev":"setup".*"tree":"\([0-9a-f]*\)".*/\1/p' "$said")
	said=$dir/said
	# each uses the other's
	printf '{"op":"start","workers":1,"worker":"echo has $(cat $BURST_ENV/lib); sleep 100","env_hash":"key-b","env_tree":"%s"}\n' "$second" >&4
	tell '{"op":"start","workers":1,"worker":"echo has $(cat $BURST_ENV/lib); sleep 100","env_hash":"key-a","env_tree":"'$env'"}'
	expect '"line":"has good"'
	expect '"line":"unpacked the environment'
	leave
	dir=$first BURST_HOME=$first/home said=$first_said client=$first_client
	exec 3>&4 4>&-
	expect '"line":"has good"'
	expect '"line":"unpacked the environment'
	equal 'what is on the volume' "$(ls -A "$volume/env" | tr '\n' ' ')" 'key-a key-b '
	rm -rf "$disk" "$disk-2"
}

run_tests
