#!/bin/bash
# pages.sh - what README.md and the other pages print works as printed: commands, flags, configs, targets of the Makefile.
#
# The comment above a block says how it is tested (pages.py reads it):
#   <!-- test: run NAME -->      runs each line; blocks of one NAME share a folder, in the order of the pages
#   <!-- test: in-tree -->       runs at the top of the source tree; in-run: in the folder of a job that was rendered
#   <!-- test: parse NAME -->    cannot run here (an account, a network, a terminal): only commands and flags are checked
#   <!-- test: config NAME -->   a whole burst.cfg: `burst plan` accepts it
#   <!-- test: part NAME -->     keys that go into a burst.cfg
#   <!-- test: own NAME -->      keys that go into the user's own file
# Any other NAME is a block that another script takes (unwatched.sh).
. "$(dirname "$0")/lib.sh"

pages() {
	python3 "$ROOT/tests/e2e/pages.py" "$@"
}
blocks() { # blocks KIND: "FILE PAGE:LINE NAME" of each block of that kind
	mkdir -p blocks
	pages blocks blocks | awk -v kind="$1" '$4 == kind { name = $5; for (i = 6; i <= NF; i++) name = name "-" $i; print "blocks/" $1, $2, name }'
}
with_burst() { # the program under the name that the pages use
	mkdir -p "$T/bin"
	ln -sf "$BURST" "$T/bin/burst"
	PATH=$T/bin:$PATH
}
inputs() { # what configs of the pages name as input
	script_lines 3
	printf '# A chapter\n\nOne sentence. Another one.\n' | tee book.md >script.md
	cp script.jsonl quiz.jsonl
	printf 'One line.\nAnother line.\n' | tee notes.txt >lines.txt
	printf 'Thoth\ttote\n' >words.tsv
	printf 'key,Front,Back,speed,emotion\nx,One,eins,160,glad\n' >cards.csv
	mkdir -p voices
}

t_each_block_says_how_it_is_tested() {
	local count=0 _ where language test
	mkdir blocks
	while read -r _ where language test; do
		case $language:$test in
		sh:- | cfg:-) complain "$where: a block of $language without <!-- test: ... --> above it" ;;
		none:*) complain "$where: a block without a language (text, sh, cfg, c ...)" ;;
		esac
		case ${test%% *} in
		- | run | in-run | in-tree | parse | config | part | own) ;;
		*) grep -qE "printed $test\\b" "$ROOT"/tests/e2e/*.sh || complain "$where: no script tests \"$test\"" ;;
		esac
		count=$((count + 1))
	done < <(pages blocks blocks)
	[ "$count" -ge 15 ] || complain "only $count blocks"
}

t_commands_and_flags_exist() {
	local count=0 where line
	while IFS=$'\t' read -r where line; do
		case $line in
		"burst help "* | "burst COMMAND"* | "burst --version" | "burst --help") continue ;;
		burst*) ;;
		*) continue ;;
		esac
		line=$(sed 's/ -- .*//; s/[|>&;].*//; s/\.\.\.//g; s/[][]//g' <<<"${line#burst }")
		count=$((count + 1))
		# shellcheck disable=SC2086
		eval "set -- $(sed 's/[$()<>{}*]/\\&/g' <<<"$line")"
		"$BURST" "$@" --help >help.txt 2>&1 </dev/null || complain "$where: burst $line: $(tail -n 1 help.txt)"
	done < <(pages commands)
	[ "$count" -ge 60 ] || complain "only $count commands"
}

t_the_page_has_each_command() {
	local word
	for word in $("$BURST" words help "" | tail -n +2 | cut -f1); do
		sed -n '2,/^## /p' "$ROOT/cmd/README.md" | grep -qE "^\|.*\`${word}[\` ]" || complain "cmd/README.md lacks the command $word"
	done
}

t_targets_exist() {
	local where line word count=0
	while IFS=$'\t' read -r where line; do
		for word in $line; do
			case $word in
			make | -* | *=* | '"'* | *'"') continue ;;
			esac
			count=$((count + 1))
			grep -qE "^([^#:]* )?$word( [^:]*)?:([^=]|\$)" "$ROOT/Makefile" || complain "$where: make $word: the Makefile has no such target"
		done
	done < <(pages commands | grep $'\tmake '; sed -n 's/^##   \(make [a-z0-9_.-]*\).*/Makefile\t\1/p' "$ROOT/Makefile")
	[ "$count" -ge 35 ] || complain "only $count targets"
}

t_blocks_run() {
	local file where name dir count=0
	with_burst
	export XDG_CONFIG_HOME=$T/own HOME=$T/home
	mkdir -p home
	while read -r file where name; do
		dir=$T/run/$name
		[ -d "$dir" ] || { mkdir -p "$dir" && (cd "$dir" && case $name in first-sound) ;; epub) python3 "$ROOT/tests/e2e/epub.py" book.epub ;; *) inputs && config ;; esac); }
		(cd "$dir" && timeout 120 bash -eu "$T/$file") >run.txt 2>&1 </dev/null || complain "$where: $(tail -n 2 run.txt | tr '\n' '|')"
		count=$((count + 1))
	done < <(blocks run)
	[ "$count" -ge 1 ] || complain "no block was run"
	[ -s run/first-sound/hello-audio/joined.wav ] || complain "the first sound is missing"
	[ "$(ffprobe -v error -show_entries format_tags=title -of default=nw=1:nk=1 run/epub/book-audio/joined.m4b)" = "The Small Book" ] ||
		complain "the audiobook is missing, or has no title"
	[ -s run/first-sound/burst.cfg ] || complain "the config of the first sound is missing"
}

t_what_newcomers_read_runs() { # blocks in-tree at the top of the source tree, blocks in-run in the folder of a job that was rendered
	local kind file where line count=0
	with_burst
	mkdir run && cd run || return
	config
	script_lines 2
	burst run
	export PATH=$T/bin:$PATH
	for kind in in-tree in-run; do
		cd "$T" || return
		while read -r file where _; do
			count=$((count + 1))
			[ $kind = in-tree ] && cd "$ROOT" || cd "$T/run" || return
			timeout 120 bash -eu -o pipefail "$T/$file" >"$T/said.txt" 2>&1 </dev/null || complain "$where: $(tail -n 2 "$T/said.txt" | tr '\n' '|')"
			cd "$T" || return
		done < <(blocks $kind)
	done
	[ "$count" -ge 6 ] || complain "only $count blocks"
}

plan_accepts() { # plan_accepts WHERE: the burst.cfg of this folder
	local flags=
	! grep -qE '^provider *= *.*(runpod|modal)' burst.cfg || flags=--list-prices
	# shellcheck disable=SC2086
	timeout 60 "$BURST" plan $flags >plan.txt 2>&1 </dev/null || grep -q 'no estimate: the speed of this command' plan.txt ||
		complain "$1: $(grep '^burst:' plan.txt | head -n 2 | tr '\n' '|')"
	grep -qE 'segment|no estimate' plan.txt || complain "$1: no plan: $(tail -n 1 plan.txt)"
}
base_config() { # keys of a part come behind
	grep -q '^provider *=' "$1" || echo 'provider = ["local"];'
	grep -q '^job *=' "$1" || echo 'job = { name = "page"; type = "tts"; engine = "espeak"; input = "script.jsonl"; output = "out"; };'
	grep -q '^caps *=' "$1" || echo 'caps = { max_cost = 1.00; max_duration = "5m"; };'
}
t_configs_are_accepted() {
	local file where name count=0 kind
	rehearse
	for kind in config part; do
		while read -r file where name; do
			mkdir -p "configs/$count"
			cd "configs/$count" || return
			inputs
			{ [ $kind = config ] || base_config "$T/$file"; cat "$T/$file"; } >burst.cfg
			plan_accepts "$where"
			cd "$T" || return
			count=$((count + 1))
		done < <(blocks $kind)
	done
	[ "$count" -ge 2 ] || complain "only $count configs"
}
expects() { # expects WORDS: README has this plan's time and cost, "3 min 51 s and $0.04"
	local said time cost
	"$BURST" plan --list-prices >plan.txt 2>&1 </dev/null
	said=$(sed -n 's/^plan: .*: about \([0-9ms]*\), \(\$[0-9.]*\)$/\1 \2/p' plan.txt)
	time=$(sed 's/m0*/ min /; s/s$/ s/' <<<"${said% *}")
	cost=$(printf '$%.2f' "${said#* \$}")
	tr '\n' ' ' <"$ROOT/README.md" | grep -qF "$time and $cost for $1" || complain "README does not say \"$time and $cost for $1\" ($said)"
}
t_readme_has_the_figures_of_its_plan() { # by priors and list prices; a prior that changes changes README
	pages named "config cloud" >burst.cfg
	cp "$ROOT/config/examples/book/lighthouse.md" one.md
	cp one.md book.md
	expects "the shipped example"
	for _ in $(seq 180); do cat one.md; done >book.md
	expects "a book of 400,000 characters"
}

examples_of() { # examples_of PAGE: each example of a man page, in examples/N
	mkdir -p examples
	"$BURST" help $1 --man | awk '/^\.nf$/ { on = 1; n++; next } /^\.fi$/ { on = 0 } on { gsub(/\\-/, "-"); print >"examples/" n }'
}
t_examples_of_the_manual_work() {
	local file line count=0
	export XDG_CONFIG_HOME=$T/own HOME=$T/home
	mkdir -p own/burst home
	inputs
	examples_of burst.cfg
	for file in examples/*; do
		if grep -q '^job *=' "$file"; then
			rm -f own/burst/burst.cfg
			cp "$file" burst.cfg
		else
			base_config /dev/null >burst.cfg
			cp "$file" own/burst/burst.cfg
		fi
		plan_accepts "burst.cfg(5), example ${file#*/}"
		count=$((count + 1))
	done
	[ "$count" -ge 2 ] || complain "only $count examples of burst.cfg(5)"
	rm -r examples
	examples_of ""
	count=0
	while read -r _ line; do
		count=$((count + 1))
		# shellcheck disable=SC2086
		"$BURST" $line --help >help.txt 2>&1 </dev/null || complain "burst(1): burst $line: $(tail -n 1 help.txt)"
	done < <(cat examples/*)
	[ "$count" -ge 9 ] || complain "only $count commands in burst(1)"
}

t_keys_of_ones_own_file_are_accepted() {
	local file where name
	export XDG_CONFIG_HOME=$T/own HOME=$T/home
	mkdir -p own/burst home
	inputs
	: | base_config /dev/null >burst.cfg
	while read -r file where name; do
		cp "$file" own/burst/burst.cfg
		plan_accepts "$where"
	done < <(blocks own)
}

t_the_tables_of_keys_are_fresh() {
	"$BURST" help burst.cfg --markdown >want.md
	sed -n '/^<!-- keys: /,/^<!-- end of the keys/ { /^<!--/!p }' "$ROOT/config/README.md" >got.md
	cmp -s got.md want.md || complain "config/README.md is older than the key tables: run \`make pages\` ($(diff got.md want.md | grep '^[<>]' | head -n 2 | tr '\n' '|'))"
	[ "$(grep -c '^| `' got.md)" -ge 100 ] || complain "only $(grep -c '^| `' got.md) keys"
}

t_the_manual_is_installed() {
	make -s -C "$ROOT" install-docs BUILD="$(dirname "$BURST")" DESTDIR="$T/root" PREFIX=/usr >make.txt 2>&1 || complain "make: $(tail -n 1 make.txt)"
	find root -type f | sed 's|^root/usr/share/||' | sort >files.txt
	for file in man/man1/burst.1 man/man5/burst.cfg.5 doc/burst/PROTOCOL.md doc/burst/examples/quiz/burst.cfg doc/burst/examples/quiz/quiz.jsonl; do
		grep -qxF "$file" files.txt || complain "$file is not installed"
	done
	if command -v man >/dev/null; then
		for page in root/usr/share/man/man1/burst.1 root/usr/share/man/man5/burst.cfg.5; do
			LC_ALL=C MANWIDTH=80 man -l --warnings $page >page.txt 2>warnings.txt || complain "man -l $page: exit $?"
			is "$(cat warnings.txt)" "" "warnings of $page"
		done
		has page.txt "caps.max_cost"
	fi
	make -s -C "$ROOT" uninstall BUILD="$(dirname "$BURST")" DESTDIR="$T/root" PREFIX=/usr >make.txt 2>&1 || complain "uninstall: $(tail -n 1 make.txt)"
	is "$(find root -type f)" "" "files that make uninstall leaves"
}

run_tests "$@"
