#!/bin/bash
# demo.sh - the part of `make demo` behind the build: it renders, writes below build/ alone, and ends with commands that work.
. "$(dirname "$0")/lib.sh"

t_ends_with_commands_that_work() {
	mkdir -p tree/build
	cp -r "$ROOT/config" tree/
	ln -s "$BURST" tree/build/burst
	sh tree/config/examples/demo.sh espeak >said.txt 2>&1
	is "$?" 0 "exit status ($(tail -n 1 said.txt))"
	has said.txt "300 WAV files"
	is "$(wavs tree/build/demo)" 300 files
	is "$(ls tree)" "$(printf 'build\nconfig')" "what lies beside build"
	local count=0 line
	cd tree || return
	while read -r line; do
		case $line in
		sudo*) continue ;;
		esac
		count=$((count + 1))
		(eval "$line") >"$T/next.txt" 2>&1 </dev/null || complain "\"$line\": $(tail -n 1 "$T/next.txt")"
	done < <(sed -n '/^Next, /,$ s/^    //p' "$T/said.txt" | sed 's/   .*//')
	cd ..
	is "$count" 2 "commands that were tried"
	[ "$(wavs tree/hello/out)" -ge 1 ] || complain "the second command rendered nothing"
}

# After a build by root, or by somebody else.
t_says_whose_build_it_is() {
	[ "$(id -u)" = 0 ] || { skip "only root can be somebody else"; return; }
	mkdir -p tree/build
	cp -r "$ROOT/config" tree/
	chmod 711 "$WORK"
	chmod 755 . tree tree/build
	others_enter "$T/tree/build" || { skip "only root can reach $T"; return; }
	setpriv --reuid=65534 --regid=65534 --clear-groups sh tree/config/examples/demo.sh espeak >said.txt 2>&1
	is "$?" 1 "exit status"
	is "$(cat said.txt)" "burst: $T/tree/build belongs to root, so $(id -un 65534) cannot write the demo there: sudo rm -r $T/tree/build, then make demo again (only make deps and make install need root)" message
	is "$(ls tree/build)" "" "what was written"
}

run_tests "$@"
