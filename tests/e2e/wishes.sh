#!/bin/bash
# wishes.sh - the wishes in orchestrator/plan/README.md get the answers that the page prints.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/plan_lib.sh"

wishes() { # each row of the table as WISH<tab>COMMAND<tab>ANSWER
	sed -n '/^## Wishes/,/^## [^W]/p' "$ROOT/orchestrator/plan/README.md" | grep '^| [A-Z0-9].* | `burst ' | sed 's/^| //; s/ |$//; s/ | /\t/g'
}
printed() { # printed NAME: that block of the pages
	python3 "$ROOT/tests/e2e/pages.py" named "$1"
}
situation() { # the files that the page names, and a ledger with one command
	printed wishes >exercises.cfg
	local i
	for i in $(seq 400); do
		printf 'Exercise %03d. Read this sentence aloud, then say in your own words what it is about.\n' "$i"
	done >lines.txt
	cat >cut.cfg <<-'E'
		provider = ["runpod"];
		job = { name = "cut"; type = "command"; run = "python3 cut.py"; outputs = ["*.mp4"]; output = "out"; needs = ["nvenc"]; };
	E
	cat >index.cfg <<-'E'
		provider = ["local"];
		job = { name = "index"; type = "command"; run = "echo x >index.txt"; outputs = ["index.txt"]; output = "indexed"; size = "lines of lines.txt"; };
	E
	burst run index.cfg
	is "$STATUS" 0 "the command runs ($(tail -n 1 err.txt))"
	# as if it had run over 10, 20 and 40 lines: 2.5, 3 and 4 s
	ledger "update speed set n = 3, longest = 70, sum = 70, longest2 = 2100, longest_sum = 2100, sum2 = 2100, t = 9.5,
		longest_t = 245, sum_t = 245, batches = 3"
	{ offer runpod 'A100 40GB' 0.19 '.vram_gb = 40'; offer runpod 'RTX 4090' 0.41; offer runpod 'RTX 4090' 0.21 '.spot = true'; } | jq -s . >offers.json
}
answered() { # answered WISH COMMAND ANSWER
	local want=0 part
	[[ $3 =~ ^exit\ ([0-9]) ]] && want=${BASH_REMATCH[1]}
	eval "burst ${2#burst }"
	is "$STATUS" "$want" "\"$1\": exit status ($(tail -n 1 err.txt))"
	tr '\n' ' ' <out.txt >said.txt
	cat err.txt >>said.txt
	while read -r part; do
		grep -qF -- "$part" said.txt || complain "\"$1\": burst does not say \"$part\": $(grep -h '^plan:\|^burst:' out.txt err.txt | tail -n 2 | tr '\n' '|')"
	done < <(grep -o '`[^`]*`' <<<"$3" | tr -d '`')
	grep -q '`' <<<"$3" || complain "\"$1\": the page gives no answer"
}
t_the_page_answers_them() {
	local wish command answer count=0
	situation
	while IFS=$'\t' read -r wish command answer; do
		answered "$wish" "${command//\`/}" "$answer"
		count=$((count + 1))
	done < <(wishes)
	[ "$count" -ge 20 ] || complain "only $count wishes"
}

run_tests "$@"
