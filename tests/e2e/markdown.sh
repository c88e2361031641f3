#!/bin/bash
# markdown.sh - what burst reads in Markdown against what cmark-gfm, GitHub's own parser, reads there.
. "$(dirname "$0")/lib.sh"

agrees() { # agrees ARGUMENT...: of markdown.py
	command -v cmark-gfm >/dev/null || { skip "cmark-gfm is not installed"; return; }
	python3 "$ROOT/tests/e2e/markdown.py" "$ROOT/build/e2e/script_print" "$@" >differ.txt || complain "they differ: $(tail -n 40 differ.txt)"
}

t_documents_are_read_as_github_reads_them() {
	agrees "$ROOT/tests/e2e/book.md" "$ROOT"/*.md "$ROOT"/*/*.md "$ROOT/config/examples/book/lighthouse.md"
}
t_random_documents_are_read_as_github_reads_them() {
	agrees --random 400
	is "$(tail -n 1 differ.txt | cut -d' ' -f1)" 400 documents
}

run_tests "$@"
