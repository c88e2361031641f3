# boxes_lib.sh - own boxes on this machine: each is an ordinary user with a home of its own and a real sshd on loopback. They live
# in a mount namespace with a password file of their own, so that this machine's accounts stay as they are.
# shellcheck shell=bash

# boxes NAME...: starts one sshd for each, and an ssh client that knows them by these names. What sshd is to do beside that is in
# SSHD ("MaxSessions 3"), what else a box needs in BOX_SETUP, a function that runs as root in the namespace with the name as $1.
boxes() {
	[ "$(id -u)" = 0 ] || { skip "only root can make users"; return 1; }
	[ -x /usr/sbin/sshd ] && command -v ssh >/dev/null || { skip "no OpenSSH"; return 1; }
	unshare -m true 2>/dev/null || { skip "no mount namespaces"; return 1; }
	[ -s "$ROOT/build/kit/burst-host" ] || { skip "no burst-host (build/kit/burst-host.log)"; return 1; }
	chmod 711 "$WORK" "$T"
	others_enter "$T" || { skip "other users cannot enter the test's folder here"; return 1; }
	mkdir -p bed bin run_sshd
	cp /etc/passwd passwd
	cp /etc/group group
	ssh-keygen -q -t ed25519 -N '' -f bed/client_key
	printf '#!/bin/sh\nexec /usr/bin/ssh -F "%s/bed/ssh_config" "$@"\n' "$T" >bin/ssh
	chmod 755 bin bin/ssh
	export PATH=$T/bin:$PATH
	cat >bed/ssh_config <<-E
		Host *
		    UserKnownHostsFile $T/bed/known_hosts
		    GlobalKnownHostsFile /dev/null
		    IdentityFile $T/bed/client_key
		    IdentitiesOnly yes
	E
	local name
	BOXES=$*
	for name; do box_files "$name"; done
	for name; do box_up "$name" || return 1; done
}
box_id() { # box_id NAME: its user id, which no other test has
	echo $((300000 + $(printf %s "$T/$1" | cksum | cut -d' ' -f1) % 1000000000))
}
box_files() { # what a box has before its sshd runs
	local name=$1 port
	mkdir -p "box/$name/bin"
	chmod 711 box
	echo "$name:*:$(box_id "$name"):$(box_id "$name")::$T/box/$name:${BOX_SHELL:-/bin/sh}" >>passwd
	echo "$name:*:$(box_id "$name"):" >>group
	chown -R "$(box_id "$name"):$(box_id "$name")" "box/$name"
	ssh-keygen -q -t ed25519 -N '' -f "bed/$name.host_key"
	port=$(free_port)
	echo "$port" >"bed/$name.port"
	echo "[127.0.0.1]:$port $(cut -d' ' -f1,2 "bed/$name.host_key.pub")" >>bed/known_hosts
	cat >>bed/ssh_config <<-E
		Host $name
		    HostName 127.0.0.1
		    Port $port
		    User $name
	E
	cat >"bed/$name.sshd" <<-E
		Port $port
		ListenAddress 127.0.0.1
		HostKey $T/bed/$name.host_key
		AuthorizedKeysFile $T/bed/client_key.pub
		StrictModes no
		UsePAM no
		PidFile none
		PrintMotd no
		AllowUsers $name
		SetEnv PATH=$T/box/$name/bin:/usr/local/bin:/usr/bin:/bin
		${SSHD:-}
	E
}
free_port() {
	python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}
# Its namespace is that of a process that lives until box_gone; a box that comes back gets into the same one.
box_up() { # box_up NAME: starts its sshd
	local name=$1
	if [ -z "${BOX_SPACE:-}" ]; then
		unshare -m sh -c 'mount --make-rprivate / && mount --bind passwd /etc/passwd && mount --bind group /etc/group &&
			mkdir -p /run/sshd && touch bed/space && exec sleep 600' &
		BOX_SPACE=$!
		wait_for 10 "the namespace" test -e bed/space || return 1
	fi
	in_boxes sh -c 'exec "$@" >/dev/null 2>&1' sh /usr/sbin/sshd -D -E "$T/bed/$name.log" -f "$T/bed/$name.sshd" &
	echo $! >"bed/$name.pid"
	wait_for 10 "the sshd of $name ($(tail -n 1 "bed/$name.log" 2>/dev/null))" answers "$(cat "bed/$name.port")"
}
in_boxes() { nsenter -t "$BOX_SPACE" -m --wd="$T" "$@"; }
answers() { (: <"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }
box_down() { # box_down NAME: its sshd and all its connections end; its pods live on
	local p
	p=$(cat "bed/$1.pid")
	# shellcheck disable=SC2046
	kill -KILL $(sshd_tree "$p") $(pgrep -x sshd -U "$(box_id "$1")") 2>/dev/null
	wait "$p" 2>/dev/null
}
sshd_tree() { # an sshd, and those of its descendants that are sshd
	local p
	echo "$1"
	for p in $(pgrep -x sshd -P "$1"); do sshd_tree "$p"; done
}
# boxes_gone: all is as if there had never been a box. A test calls it last.
boxes_gone() {
	local name
	wait_for 20 "pods of the boxes to be gone" no_box_pods
	for name in $BOXES; do
		ssh -o ControlPath="$BURST_STATE_DIR/ssh-$name" -O exit "$name" 2>/dev/null
		box_down "$name"
	done
	wait_for 10 "processes of the boxes to end" no_box_processes || WHY="left: $(box_processes | xargs -r ps -o user,pid,args -p | tail -n 3)"
	for name in $BOXES; do
		[ -z "$(find "box/$name" -path "*/pods/*" 2>/dev/null)" ] || complain "records of pods are left: $(find "box/$name" -path "*/pods/*" | head -n 3)"
	done
	[ -z "$(find /tmp -maxdepth 1 -name "burst-gpu-GPU-$$-*")" ] || complain "locks of GPUs are left"
	kill "$BOX_SPACE"
	wait "$BOX_SPACE" 2>/dev/null
	BOX_SPACE=
}
box_processes() {
	local name
	for name in $BOXES; do pgrep -U "$(box_id "$name")"; done
}
no_box_processes() { [ -z "$(box_processes)" ]; }
no_box_pods() {
	local name
	for name in $BOXES; do
		[ -z "$(ls "box/$name/.local/share/burst/local/pods" 2>/dev/null)" ] || return 1
	done
}
# gpus NAME MODEL...: the box has these cards, by an nvidia-smi of its own; bed/NAME.apps is what computes on them (UUID, PID).
gpus() {
	local name=$1 n=0
	shift
	: >"bed/$name.apps"
	for model; do
		printf 'GPU-%s-%s-%s, %s, 24564\n' "$$" "$name" "$n" "$model"
		n=$((n + 1))
	done >"bed/$name.cards"
	cat >"box/$name/bin/nvidia-smi" <<-E
		#!/bin/sh
		case \$1 in *compute-apps*) cat "$T/bed/$name.apps" ;; *) cat "$T/bed/$name.cards" ;; esac
	E
	chmod 755 "box/$name/bin/nvidia-smi"
}
# box_config [TOP-LEVEL KEYS]: burst.cfg for these boxes; SSH="..." adds keys of one's own file.
box_config() {
	local name list=
	for name in $BOXES; do list="$list${list:+, }\"$name\""; done
	mkdir -p "$XDG_CONFIG_HOME/burst"
	echo "providers = { ssh = { hosts = [${HOSTS:-$list}]; price_per_hour = 0.30; ${SSH:-} }; };" >"$XDG_CONFIG_HOME/burst/burst.cfg"
	cat >burst.cfg <<-E
		provider = ${PROVIDER:-"\"ssh\""};
		caps = { max_cost = 1.00; max_duration = "10m"; };
		job = { name = "e2e"; type = "tts"; engine = "${ENGINE:-espeak}"; input = "script.jsonl"; voice = "en"; output = "out"; ${JOB:-} };
		$*
	E
}
