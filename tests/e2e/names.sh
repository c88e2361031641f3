#!/bin/bash
# names.sh - ids on the command line: any part of a run's or a pod's id that is unique names it, in every command.
. "$(dirname "$0")/lib.sh"

t_a_part_of_an_id_is_enough() {
	local run pod
	slow_segments 60
	burst_bg run
	wait_for 60 "a file" file_count out 1
	run=$(ledger 'select id from run')
	pod=$(ledger 'select id from pod')
	is "${#run}" 6 "characters of a run's id"
	names() { # names WANT COMMAND...: it ends well, and speaks of this
		local want=$1
		shift
		burst "$@"
		is "$STATUS" 0 "exit status of $* ($(tail -n 1 err.txt))"
		grep -qF -- "$want" out.txt err.txt || complain "burst $*: it does not say \"$want\": $(head -n 2 out.txt err.txt | tr '\n' '|')"
	}
	names "$run" ledger "${run:1:4}"
	names "$run" ledger "$run"
	names "$run" ledger "${pod: -6}"
	names "code:" logs "${run:2}"
	names "code:" logs "${pod: -5}"
	names "hello" ssh "${pod: -7}" echo hello
	names "hello" ssh "$run" echo hello
	names "<html" report "${run:0:4}" -o -
	burst ssh zzz true
	is "$STATUS" 2 "exit status of ssh to no pod"
	has err.txt 'no pod "zzz" in this ledger'
	burst reap local
	is "$STATUS" 9 "reap of a pod whose client lives, by a part of its id"
	has err.txt "pod $pod was skipped"
	names "run $run" cancel "${pod: -4}"
	burst_wait
}

t_what_several_ids_have_is_told() {
	script_lines 1
	config
	burst run
	ledger "update run set id = 'k7x2fd'"
	mv "$BURST_STATE_DIR"/runs/* "$BURST_STATE_DIR/runs/k7x2fd"
	rm -r out
	burst run
	ledger "update run set id = 'k7zzzz' where id != 'k7x2fd'"
	burst logs k7
	is "$STATUS" 2 "exit status"
	has err.txt '"k7" may be run k7x2fd (e2e), run k7zzzz (e2e): give more of the id'
	burst logs 2f
	is "$STATUS" 0 "exit status of another part ($(tail -n 1 err.txt))"
}

t_ssh_forwards_ports_and_writes_an_entry() {
	local pod port
	slow_segments 60
	burst_bg run
	wait_for 60 "a file" file_count out 1
	pod=$(ledger 'select id from pod')
	port=$((20000 + RANDOM % 12000))
	timeout 60 "$BURST" ssh -L $port:$((port + 1)),$((port + 2)):$((port + 1)) "$pod" "echo from the pod >page; exec python3 -m http.server $((port + 1)) --bind 127.0.0.1" \
		>ssh.txt 2>&1 </dev/null &
	local ssh=$!
	wait_for 20 "the forwarded port" curl -fsS -o got http://127.0.0.1:$port/page
	is "$(cat got)" "from the pod" "what came through"
	curl -fsS -o got http://127.0.0.1:$((port + 2))/page
	is "$(cat got)" "from the pod" "what came through the second port"
	kill $ssh
	wait $ssh
	burst ssh -L nonsense "$pod" true
	is "$STATUS" 2 "a port that is none"
	has err.txt "ssh: -L nonsense: give a port"
	burst ssh -L 8080,99999 "$pod" true
	is "$STATUS" 2 "a list with a port that is none"
	has err.txt "ssh: -L 99999: give a port"
	mkdir -p dotfiles "$HOME/.ssh"
	cat >dotfiles/config <<-E
		Host other
		Host *
		    ForwardAgent yes
		    ForwardX11 yes
		    ForwardX11Trusted yes
		    Tunnel yes
		    GatewayPorts yes
		    PermitLocalCommand yes
		    LocalCommand touch $T/local-command
		    ControlMaster auto
		    ControlPath $T/%C
		    IdentitiesOnly no
		    IdentityAgent $T/agent
		    AddKeysToAgent yes
		    StrictHostKeyChecking no
		    UpdateHostKeys yes
		    VerifyHostKeyDNS yes
		    NoHostAuthenticationForLocalhost yes
		    CanonicalizeHostname yes
		    GlobalKnownHostsFile $T/known
		    PasswordAuthentication yes
		    PreferredAuthentications password,keyboard-interactive,publickey
		    HostKeyAlgorithms ssh-rsa
		    SetEnv SECRET=hunter2
		    SendEnv SECRET_*
		    IdentityFile $T/mine
		    CertificateFile $T/mine-cert.pub
		# the end
	E
	chmod 640 dotfiles/config
	ln dotfiles/config dotfiles/again
	[ "$(id -u)" != 0 ] || chown 12345:12345 dotfiles/config
	local before
	before=$(stat -c '%a %u %g %i %h' dotfiles/config)
	ln -s "$T/dotfiles/config" "$HOME/.ssh/config"
	burst ssh-config "${pod: -5}"
	is "$STATUS" 2 "without a yes"
	has err.txt "-y adds this line at its top"
	is "$(head -n 1 dotfiles/config)" "Host other" "the user's file, untouched"
	burst ssh-config -y "${pod: -5}"
	is "$STATUS" 0 "ssh-config ($(tail -n 1 err.txt))"
	is "$(cat out.txt)" "burst-$pod" "the host's name"
	is "$(tail -n 1 dotfiles/config)" "# the end" "what was there"
	is "$(stat -c '%a %u %g %i %h' dotfiles/config)" "$before" "its mode, owner, group, inode and links"
	is "$(ls -A dotfiles | tr '\n' ' ')" "again config " "files beside it"
	[ "$(id -u)" != 0 ] || chown 0:0 dotfiles/config # ssh refuses somebody else's
	local key value
	ssh -F "$HOME/.ssh/config" -G "burst-$pod" >settings.txt 2>ssh-err.txt || complain "ssh -G: $(cat ssh-err.txt)"
	while read -r key value; do
		is "$(sed -n "s/^$key //p" settings.txt)" "$value" "$key"
	done <<-'E'
		forwardagent no
		forwardx11 no
		forwardx11trusted no
		tunnel false
		gatewayports no
		permitlocalcommand no
		controlmaster false
		identitiesonly yes
		identityagent none
		addkeystoagent false
		stricthostkeychecking true
		updatehostkeys false
		verifyhostkeydns false
		nohostauthenticationforlocalhost no
		canonicalizehostname false
		globalknownhostsfile /dev/null
		passwordauthentication no
		preferredauthentications publickey
		hostkeyalgorithms ssh-ed25519
		setenv BURST_POD=1
	E
	# what ssh adds up is the user's in spite of ours, which the entry says; ours come first
	is "$(grep -c -e '^sendenv SECRET_\*$' -e "^certificatefile $T/mine-cert.pub$" -e "^identityfile $T/mine$" settings.txt)" 3 "what no entry can take back"
	is "$(sed -n 's/^identityfile //p' settings.txt | head -n 1)" "$(cd state && pwd)/runs/$(ledger 'select id from run')/$(ledger 'select attempt from pod limit 1').key" "the first key"
	has state/ssh_config "# ssh adds the SendEnv, IdentityFile, CertificateFile and forwards of your other entries"
	is "$(grep -c ^controlpath settings.txt)" 0 "a shared connection"
	is "$(grep -c Include dotfiles/config)" 1 "lines that include ours"
	burst ssh-config -y "$pod"
	is "$(grep -c Include dotfiles/config)" 1 "lines that include ours, the second time"
	is "$(ssh -F "$HOME/.ssh/config" -o BatchMode=yes "burst-$pod" echo hello 2>ssh-err.txt)" hello "ssh by that name ($(tail -n 1 ssh-err.txt))"
	[ ! -e local-command ] || complain "a LocalCommand ran"
	burst cancel
	burst_wait
}

t_files_of_a_volume() {
	config
	burst volume create v -y
	echo hello >in.txt
	burst volume put in.txt v:notes/
	is "$STATUS" 0 "put ($(tail -n 1 err.txt))"
	burst volume ls v:notes
	is "$STATUS" 0 "ls ($(tail -n 1 err.txt))"
	has out.txt in.txt
	burst volume ls notes
	has out.txt in.txt
	mkdir elsewhere && cd elsewhere || return
	burst volume get v:notes/in.txt
	is "$STATUS $(cat in.txt)" "0 hello" "get ($(tail -n 1 err.txt))"
	burst volume get v:notes/in.txt
	is "$STATUS" 2 "get over a file"
	has err.txt "in.txt already exists; nothing was changed"
	burst volume get v:notes/in.txt copy.txt
	is "$(cat copy.txt)" hello "under another name"
	while read -r words; do
		# shellcheck disable=SC2086 # words
		burst volume $words
		is "$STATUS" 2 "volume $words"
	done <<-E
		get v:notes/nothing
		get v:../in.txt
		get v:
		get notes/in.txt
		ls v:nothing
		ls v:
		ls w:notes
		put nothing.txt v:notes/
		rm v w
	E
	is "$("$BURST" volume ls 2>/dev/null | grep -c '^v ')" 1 "volumes, after all that"
	[ ! -e nothing ] && [ ! -e nothing.part ] || complain "a file that is not there left something"
}

run_tests "$@"
