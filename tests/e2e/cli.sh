#!/bin/sh
# cli.sh - the command line itself: help, man page, completion, odd standard files, an empty ledger. Nothing is rented.
# Usage: cli.sh [path of burst]
set -eu

burst=$(realpath "${1:-build/burst}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
unset XDG_CONFIG_HOME XDG_STATE_HOME BURST_STATE_DIR NO_COLOR
export HOME="$work/home"
mkdir home
failed=0

fail() {
	echo "cli: FAILED: $*" >&2
	failed=1
}

# expect STATUS NAME COMMAND...: runs it, keeps its output in ./out and ./err
expect() {
	want=$1 name=$2
	shift 2
	got=0
	"$@" >out 2>err </dev/null || got=$?
	[ "$got" = "$want" ] || fail "$name: exit status $got, want $want: $(head -3 err)"
}

says() { # says FILE NAME TEXT
	grep -qF -- "$3" "$1" || fail "$2: \"$3\" is not in: $(head -5 "$1")"
}

silent() { # silent FILE NAME
	[ ! -s "$1" ] || fail "$2: it says: $(head -3 "$1")"
}

# ---- help ----
expect 0 "burst alone" "$burst"
says out "burst alone" "usage: burst COMMAND"
cp out help
expect 0 "--help" "$burst" --help
cmp -s out help || fail "--help is not the help"
expect 0 "--version" "$burst" --version
grep -q '^burst [0-9]' out || fail "--version: $(cat out)"
awk 'length($0) > 80 { exit 1 }' help || fail "help is wider than 80 columns"
for command in $("$burst" words help "" | sed 1d | cut -f 1); do
	expect 0 "help $command" "$burst" help "$command"
	says out "help $command" "usage: burst $command"
	awk 'length($0) > 80 { exit 1 }' out || fail "help $command is wider than 80 columns"
	cp out one
	expect 0 "$command -h" "$burst" "$command" -h
	cmp -s out one || fail "$command -h is not its help"
	says help "help" "  $command "
done

# ---- mistakes ----
expect 2 "unknown command" "$burst" pz
says err "unknown command" 'burst: unknown command "pz", did you mean "ps"?'
silent out "unknown command"
while read -r word meant; do
	expect 2 "$word" "$burst" "$word"
	says err "$word" "burst: unknown command \"$word\": "
	says err "$word" "\`burst $meant\`"
	[ "$(wc -l <err)" = 1 ] || fail "$word: an error is one line"
done <<'END'
list ps
stop cancel [RUN]
down cancel [RUN]
up run
launch run
exec ssh POD COMMAND
END
expect 0 "version" "$burst" version
grep -q '^burst [0-9]' out || fail "version: $(cat out)"
expect 0 "status" "$burst" status
expect 2 "unknown flag" "$burst" ledger --mots 3
says err "unknown flag" "did you mean --most?"
expect 2 "unknown flag first" "$burst" --nonsense
expect 2 "escapes in a flag" "$burst" ledger "--$(printf '\033[31m')"
grep -q "$(printf '\033')" err && fail "escapes reach the terminal"
expect 2 "no such run" "$burst" logs r1
says err "no such run" 'no run "r1"'
expect 2 "no such shell" "$burst" completion tcsh
[ "$(wc -l <err)" = 1 ] || fail "an error is one line"

# ---- man page and completion, checked by whoever is here ----
expect 0 "man page" "$burst" help --man
cp out burst.1
says burst.1 "man page" '.TH BURST 1'
for command in $("$burst" words help "" | sed 1d | cut -f 1); do
	tr -d '\\' <burst.1 | grep -q "^\.SS $command" || fail "man page: $command is missing"
done
expect 0 "man page of the config" "$burst" help burst.cfg --man
cp out burst.cfg.5
says burst.cfg.5 "man page of the config" '.TH BURST.CFG 5'
for key in caps.max_cost job.engine job.outputs providers.modal.app; do
	grep -qxF ".B $key" burst.cfg.5 || fail "man page of the config: $key is missing"
done
for page in burst.1 burst.cfg.5; do
	if command -v groff >/dev/null; then
		groff -man -Tascii -P-cbou -ww $page >page 2>warnings || fail "groff $page"
		silent warnings "groff $page"
		grep -q '^EXAMPLES' page || fail "$page: examples are missing"
		grep -q '^SEE ALSO' page || fail "$page: SEE ALSO is missing"
	else
		echo "cli: no groff here: $page was not formatted" >&2
	fi
	# a page has no date: what it says goes with a version
	if command -v mandoc >/dev/null; then
		mandoc -Tlint -W warning $page >said 2>&1 || : # its status tells of the date, too
		sed '/missing date/d' said >warnings
		silent warnings "mandoc $page"
	fi
done
grep -q 'EXIT STATUS' burst.1 || fail "man page: exit statuses are missing"
expect 0 "keys as text" "$burst" help burst.cfg
says out "keys as text" "caps.max_cost"
expect 2 "Markdown of no page" "$burst" help run --markdown
for shell in bash zsh fish; do
	expect 0 "completion $shell" "$burst" completion $shell
	if command -v $shell >/dev/null; then
		$shell -n out 2>err || fail "completion $shell: $(head -3 err)"
	else
		echo "cli: no $shell here: its completion was not checked" >&2
	fi
done
mkdir bin && ln -s "$burst" bin/burst
if command -v bash >/dev/null; then
	"$burst" completion bash >bash-completion
	cat >ask.bash <<'END'
source ./bash-completion
ask() { COMP_WORDS=("$@"); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); COMPREPLY=(); _burst; printf '%s\n' "${COMPREPLY[@]}"; }
PATH=$1:$PATH
ask burst le; ask burst ledger --mo; ask burst completion z; ask burst -q hel; ask burst help compl
ask burst volume r; ask burst plan bi; ask burst plan -p local my.; ask burst submit --qu
END
	touch my.cfg my.c
	bash ask.bash "$work/bin" >out 2>err || fail "asking bash"
	printf 'ledger\n--most\nzsh\nhelp\ncompletion\nrm\nbin\nmy.cfg\n--quiet\n' | cmp -s - out || fail "bash completes: $(tr '\n' ' ' <out)"
fi
if command -v fish >/dev/null; then
	"$burst" completion fish >completion.fish
	cat >ask.fish <<'END'
source completion.fish
for line in 'burst le' 'burst ledger --mo' 'burst completion z' 'burst -q hel' 'burst help compl' 'burst run --provider l'
	complete -C $line | cut -f 1
end
complete -C 'burst submit --qu' | grep -c 'start when no other request comes'
END
	PATH=$work/bin:$PATH fish ask.fish >out 2>err || fail "asking fish: $(cat err)"
	printf 'ledger\n--most\nzsh\nhelp\ncompletion\nlocal\n1\n' | cmp -s - out || fail "fish completes: $(tr '\n' ' ' <out)"
fi
if command -v zsh >/dev/null; then # which completes at a terminal alone; ^T shows the line that has come of it
	mkdir functions && "$burst" completion zsh >functions/_burst
	cat >ask.zsh <<'END'
zmodload zsh/zpty
zpty -b z zsh -f -i
zpty -w z 'fpath=($PWD/functions $fpath); autoload -Uz compinit; compinit -u -D; PS1=; setopt noautomenu nobeep
show() { print -r -- "<$BUFFER>"; BUFFER= }; zle -N show; bindkey "^T" show; bindkey "^I" complete-word; print -r -- "<"ready">"'
zpty -r z said '*<ready>*' || exit 1
for line in 'burst le' 'burst ledger --mo' 'burst completion z' 'burst -q hel' 'burst help compl' 'burst run --provider l' 'burst ledger -q --mo' 'burst submit my' 'burst submit --qu'; do
	zpty -w -n z "$line"$'\t\C-t'
	zpty -r z said '*<*>*' || exit 1
	print -r -- "${${said##*<}%%>*}"
done
END
	PATH=$work/bin:$PATH timeout 60 zsh -f ask.zsh >out 2>err || fail "asking zsh: $(cat err)"
	printf 'burst %s\n' 'ledger ' 'ledger --most ' 'completion zsh ' '-q help ' 'help completion ' 'run --provider local ' 'ledger -q --most ' \
		'submit my.cfg ' 'submit --quiet ' | cmp -s - out || fail "zsh completes: $(tr '\n' '|' <out)"
fi

# ---- an empty ledger ----
expect 0 "ps" "$burst" ps
silent out "ps"
says err "ps" "no pods or volumes are billing according to this ledger"
expect 0 "ps -q" "$burst" ps -q
silent err "ps -q"
expect 0 "ps --json" "$burst" ps --json
[ "$(cat out)" = "[]" ] || fail "ps --json: $(cat out)"
expect 0 "ledger" "$burst" ledger
silent out "ledger"
expect 0 "ledger --json" "$burst" --json ledger
[ "$(cat out)" = "[]" ] || fail "ledger --json: $(cat out)"
[ "$(stat -c %a home/.local/state/burst 2>/dev/null || stat -f %Lp home/.local/state/burst)" = 700 ] || fail "the state folder is not private"
[ "$(stat -c %a home/.local/state/burst/ledger.db 2>/dev/null || stat -f %Lp home/.local/state/burst/ledger.db)" = 600 ] || fail "the ledger is not private"

# ---- odd surroundings ----
expect 0 "closed standard files" sh -c "exec '$burst' ps <&- >&- 2>&-"
expect 2 "closed stderr" sh -c "'$burst' nonsense <&- 2>&-"
expect 0 "nearly no environment" env -i PATH="$PATH" HOME="$HOME" "$burst" ps
if [ -w /dev/full ]; then
	expect 1 "full output" sh -c "exec '$burst' help >/dev/full"
	says err "full output" "cannot write the output"
fi
expect 0 "a reader that goes away" sh -c "'$burst' help --man | true"
expect 1 "no folder for the state" env BURST_STATE_DIR=/dev/null/x "$burst" ps
chmod 777 home/.local/state/burst
expect 1 "a state folder for all" "$burst" ps
says err "a state folder for all" "other users can write there"
chmod 700 home/.local/state/burst

# ---- init ----
expect 0 "init" "$burst" init -y new
[ -s new/burst.cfg ] && [ -s new/script.jsonl ] || fail "init wrote nothing"
cp new/burst.cfg before
expect 2 "init again" "$burst" init -y new
cmp -s before new/burst.cfg || fail "init changed a file"
says err "init again" "already exists; nothing was changed"
expect 2 "init of an unknown type" "$burst" init --type nonsense other

[ "$failed" = 0 ] && echo "cli: all good"
exit "$failed"
