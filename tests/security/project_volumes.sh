#!/bin/bash
# project_volumes.sh - a project uses volumes that it made or that its user allowed, and no others.
#
# shellcheck disable=SC2088 # a tilde is burst's to expand here
. "$(dirname "$0")/../e2e/lib.sh"
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/project_lib.sh"

# ---- whose volume is it ----
two_projects() { # a and b, each a repository that names volume "tts"; a has made it, and we are in b
	local p
	mkdir -p "$HOME/.config/burst"
	for p in a b; do
		mkdir -p "$HOME/src/$p/.git"
		cd "$HOME/src/$p" || return
		script_lines 1
		cat >burst.cfg <<-E2
			provider = "local";
			volume = { name = "tts"; create = true; };
			job = { name = "job"; type = "tts"; input = "script.jsonl"; output = "out"; };
		E2
	done
	cd ../a || return
	burst run
	is "$STATUS" 0 "a makes its volume: exit status ($(tail -n 2 err.txt))"
	rm -rf out
	burst run -y
	is "$STATUS" 0 "and uses it again: exit status ($(tail -n 2 err.txt))"
	cd ../b || return
}
foreign() { # foreign COMMAND...: refused for the volume, with what to type
	local pods
	pods=$(ledger 'select count(*) from pod')
	[ "$1" = resume ] || [ -n "${KEEP_OUT:-}" ] || rm -rf out
	burst "$@"
	is "$STATUS" 2 "$*: exit status ($(tail -n 2 err.txt | tr '\n' '|'))"
	has err.txt 'volume "tts" of local does not belong to this project'
	has err.txt "\`burst $1 --allow-volume tts\`"
	has err.txt 'volumes = ["tts"]'
	is "$(grep -c '^burst: ' err.txt)" 1 "$*: lines of error"
	is "$(ledger 'select count(*) from pod')" "$pods" "$*: pods"
}
on_a_terminal() { # on_a_terminal ANSWER COMMAND...: what it shows in err.txt
	python3 - "$@" >err.txt 2>&1 <<-'E2'
		import os, pty, sys
		answer, argv = sys.argv[1], sys.argv[2:]
		pid, fd = pty.fork()
		if pid == 0:
		    os.execv(argv[0], argv)
		said = b""
		while True:
		    try:
		        more = os.read(fd, 4096)
		    except OSError:
		        break
		    if not more:
		        break
		    said += more
		    if said.endswith(b"[y/N] "):
		        os.write(fd, answer.encode() + b"\n")
		sys.stdout.buffer.write(said)
		sys.stdout.flush()
		os._exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
	E2
	STATUS=$?
}
t_a_volume_is_its_projects() {
	two_projects
	foreign run
	foreign run -y
	foreign run --force --quiet
	foreign run -d
	sed -i 's/create = true/create = false/' burst.cfg
	foreign run
	sed -i 's/create = false/create = true/; s/"job"/"other"/' burst.cfg
	foreign run
	burst plan
	is "$STATUS" 0 "plan: exit status ($(tail -n 2 err.txt))"
	has err.txt 'volume "tts" of local does not belong to this project'
	burst run -n
	is "$STATUS" 0 "run -n: exit status ($(tail -n 2 err.txt))"
	has err.txt 'volume "tts" of local does not belong to this project'
	burst doctor
	is "$STATUS" 1 "doctor: exit status"
	has out.txt 'volume "tts" of local does not belong to this project'
	foreign run
	# what allows it
	fine "a flag" run --allow-volume x,tts
	foreign run --force
	echo 'volumes = ["tts"];' >"$HOME/.config/burst/burst.cfg"
	fine "one's own file" run
	rm "$HOME/.config/burst/burst.cfg"
	foreign run --force
	sed -i '1i volumes = ["tts"];' burst.cfg
	burst run
	is "$STATUS" 2 "a project's own word: exit status"
	has err.txt "volumes is allowed only in your own"
	sed -i 1d burst.cfg
	rm -rf out
	on_a_terminal n "$BURST" run --force
	is "$STATUS" 2 "no on a terminal: exit status ($(tail -n 2 err.txt))"
	on_a_terminal y "$BURST" run --force -y
	is "$STATUS" 2 "-y on a terminal is not asked: exit status ($(tail -n 2 err.txt))"
	on_a_terminal y "$BURST" run --force
	is "$STATUS" 0 "yes on a terminal: exit status ($(tail -n 2 err.txt))"
	fine "which holds on" run
	sed -i 's/name = "other"/name = "third"/' burst.cfg
	fine "for the project's other jobs too" run
	cp err.txt "$T"
	cd "$T" || return
}
t_a_volume_that_is_typed() { # what one has made or filled by hand, where the project is, is its own
	two_projects
	burst volume create mine
	is "$STATUS" 0 "volume create: exit status ($(tail -n 2 err.txt))"
	sed -i 's/name = "tts"/name = "mine"/' burst.cfg
	fine "its own" run
	burst volume create tts
	sed -i 's/name = "mine"/name = "tts"/' burst.cfg
	foreign run --force
	burst volume warm tts
	is "$STATUS" 0 "volume warm: exit status ($(tail -n 2 err.txt))"
	fine "after it was filled" run
	# one that was removed and made anew is another one
	burst volume rm mine -y
	is "$STATUS" 0 "volume rm: exit status ($(tail -n 2 err.txt))"
	cd ../a || return
	sed -i 's/name = "tts"/name = "mine"/' burst.cfg
	fine "made by another project" run
	cd ../b || return
	sed -i 's/name = "tts"/name = "mine"/' burst.cfg
	rm -rf out
	burst run
	is "$STATUS" 2 "no longer its own: exit status"
	has err.txt 'volume "mine" of local does not belong to this project'
	cp err.txt "$T"
	cd "$T" || return
}
t_a_resumed_run_takes_no_other_volume() { # its config may have changed since
	two_projects
	sed -i 's/"tts"; create/"own"; create/' burst.cfg
	sed -i 's/engine = "espeak"; //; s/job = {/job = { engine = "own"; worker = "false";/' burst.cfg
	burst run
	[ "$STATUS" != 0 ] || complain "the run went well"
	sed -i 's/"own"; create/"tts"; create/' burst.cfg
	foreign resume
	# what was allowed when it began is allowed still
	allow_volumes tts
	burst run
	rm "$HOME/.config/burst/burst.cfg"
	burst resume
	[ "$STATUS" = 1 ] || complain "a run that began with it: exit status $STATUS ($(tail -n 1 err.txt))"
	foreign run
	cp err.txt "$T"
	cd "$T" || return
}
t_a_delivery_takes_no_other_volume() {
	two_projects
	sed -i 's/"tts"; create/"own"; create/' burst.cfg
	fine "its own" run
	sed -i 's/"own"; create/"tts"; create/' burst.cfg
	echo 'deliver = { run = "ls -R \"$BURST_VOLUME\""; };' >>burst.cfg
	foreign run
	cp err.txt "$T"
	cd "$T" || return
}
t_a_large_volume_needs_a_yes() { # it bills for ever, whatever the caps
	two_projects
	sed -i 's/name = "tts"; create = true;/name = "big"; create = true; size_gb = 4000;/' burst.cfg
	local how
	for how in run "run -y" "run --allow-volume big" "volume create big" "volume create big -y" "run --max-volume-gb 3999"; do
		# shellcheck disable=SC2086
		burst $how
		is "$STATUS" 2 "$how: exit status ($(tail -n 2 err.txt))"
		has err.txt "4000 GB is more than the"
		has err.txt "--max-volume-gb 4000"
	done
	is "$(find "$BURST_STATE_DIR/volumes" -name 'big*' | wc -l)" 0 "volumes"
	sed -i '1i max_volume_gb = 5000;' burst.cfg
	burst run
	has err.txt "max_volume_gb is allowed only in your own"
	sed -i 1d burst.cfg
	on_a_terminal n "$BURST" run
	is "$STATUS" 2 "no on a terminal: exit status"
	on_a_terminal y "$BURST" run
	is "$STATUS" 0 "yes on a terminal: exit status ($(tail -n 2 err.txt))"
	fine "which is there now" run
	burst volume rm big -y
	rm -rf out
	burst run
	is "$STATUS" 2 "made anew: exit status ($(tail -n 2 err.txt))"
	fine "a flag that says how large" run --max-volume-gb 4000
	burst volume rm big -y
	echo 'max_volume_gb = 4000;' >"$HOME/.config/burst/burst.cfg"
	fine "one's own file" run
	cp err.txt "$T"
	cd "$T" || return
}

run_tests "$@"
