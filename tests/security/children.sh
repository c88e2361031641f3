#!/bin/bash
# children.sh - what the programs that burst starts inherit from it: their own three descriptors, default signals, nothing else.
. "$(dirname "$0")/../e2e/lib.sh"

# inherits FILE: writes what a program finds: descriptors above 2, ignored and blocked signals 
inherits() {
	cat <<-E2
		for fd in /proc/\$\$/fd/*; do case \$fd in */[012]) ;; *) ls -l \$fd >>"$1.fds" 2>/dev/null ;; esac; done
		while read -r what mask; do case \$what in SigIgn: | SigBlk:) echo \$what \$mask ;; esac; done </proc/\$\$/status >"$1.signals"
	E2
}
inherited_nothing() { # inherited_nothing FILE WHO [MASK]: of the signals that are looked at; all
	[ -e "$1.signals" ] || { complain "$2 was not started"; return; }
	is "$(grep -vE -- "-> ($T/|/dev/tty|/proc/[0-9]*/fd\$)" "$1.fds" | sed 's/.* -> //' | tr '\n' ' ')" "" "$2: descriptors"
	local what mask libc=$((3 << 31)) # signals 32 and 33 are the C library's own: no program can set them
	while read -r what mask; do is "$((0x$mask & ${3:-~0} & ~libc))" 0 "$2: $what $mask"; done <"$1.signals"
}
fake() { # fake NAME: a program in front of the real one
	local real
	real=$(command -v "$1") || real=/bin/false
	mkdir -p bin
	{ echo '#!/bin/dash'; inherits "$T/$1"; echo "exec $real \"\$@\""; } >"bin/$1"
	chmod 755 "bin/$1"
}
t_children_inherit_three_descriptors_and_no_signals() {
	script_lines 2
	fake ffmpeg
	fake ssh
	mkdir -p home/.config/burst
	inherits "$T/on_exit" >on_exit.sh
	inherits "$T/key" >key.sh
	echo 'echo key' >>key.sh
	cat >home/.config/burst/burst.cfg <<-E2
		on_exit = "dash $T/on_exit.sh";
		providers = { runpod = { api_key_command = "dash $T/key.sh"; }; };
	E2
	JOB='join = { gap = 0.1; loudness = -18; };'
	config
	PATH=$T/bin:$PATH burst run
	is "$STATUS" 0 "exit status ($(tail -n 2 err.txt))"
	RUNPOD_API_URL=http://127.0.0.1:9 burst offers -p runpod
	inherited_nothing on_exit on_exit
	inherited_nothing key api_key_command
	inherited_nothing ffmpeg ffmpeg
}
t_ssh_inherits_nothing() {
	script_lines 20
	fake ssh
	slow_worker SLOW=0.5
	config 'code = { path = "code"; };'
	burst_bg run
	wait_for 40 "a file" file_count out 1
	PATH=$T/bin:$PATH "$BURST" ssh "$(pods_left | head -n 1)" echo reached >ssh.txt 2>&1 </dev/null
	is "$(cat ssh.txt)" reached "what it prints"
	kill "$PID"
	burst_wait
	inherited_nothing ssh ssh 0x1000 # SIGPIPE: what else its user ignores is for ssh to know
}

run_tests "$@"
