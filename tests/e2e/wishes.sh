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
situation() { # the files that the page names, and an empty ledger
	printed wishes >exercises.cfg
	local i
	for i in $(seq 400); do
		printf 'Exercise %03d. Read this sentence aloud, then say in your own words what it is about.\n' "$i"
	done >lines.txt
	cat >cut.cfg <<-'E'
		provider = ["runpod"];
		job = { name = "cut"; type = "command"; run = "python3 cut.py"; outputs = ["*.mp4"]; output = "out"; needs = ["nvenc"]; };
	E
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
	[ "$count" -ge 17 ] || complain "only $count wishes"
}

run_tests "$@"
