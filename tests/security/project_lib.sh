# project_lib.sh - what the tests of untrusted projects share.
# shellcheck shell=bash

refused() { # refused WORDS WHAT: exit 2, one line that says so, nothing rented
	is "$STATUS" 2 "$2: exit status ($(tail -n 2 err.txt | tr '\n' '|'))"
	has err.txt "$1"
	is "$(grep -c '^burst: ' err.txt)" 1 "$2: lines of error"
	[ ! -e "$BURST_STATE_DIR/ledger.db" ] || is "$(ledger 'select count(*) from pod')" 0 "$2: pods"
}
clone() { # a home with things in it, and a repository below; we are in the repository
	mkdir -p "$HOME"/{.ssh,.config/burst,src/repo/.git/hooks,other}
	echo "a private key" >"$HOME/.ssh/id_rsa"
	cd "$HOME/src/repo" || return
	script_lines 2
}
tts() { # tts JOB-SETTINGS [SETTINGS]
	cat >burst.cfg <<-E2
		provider = "local";
		job = { name = "p"; type = "tts"; input = "script.jsonl"; output = "out"; $1 };
		${2:-}
	E2
	# the last one of a key counts here
	case $1 in *input*) sed -i 's/input = "script.jsonl"; //' burst.cfg ;; esac
	case $1 in *output*) sed -i 's/output = "out"; //' burst.cfg ;; esac
}
fine() { # fine WHAT ARGUMENT...
	local what=$1
	shift
	rm -rf out
	burst "$@"
	is "$STATUS" 0 "$what: exit status ($(tail -n 2 err.txt))"
}
