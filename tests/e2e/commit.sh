#!/bin/bash
# commit.sh - `burst run --commit`: what git has, not what lies in the working tree.
. "$(dirname "$0")/lib.sh"

# A repository with a job in the folder sub and its text in the folder shared.
repository() {
	export GIT_CONFIG_GLOBAL=$T/gitconfig GIT_CONFIG_NOSYSTEM=1
	git config --global user.email t@t && git config --global user.name t && git config --global init.defaultBranch main
	git config --global protocol.file.allow always && git config --global advice.detachedHead false
	mkdir -p repo/sub repo/shared
	cd repo || return
	git init -q .
	config
	sed 's|script.jsonl|../shared/lines.txt|' burst.cfg >sub/burst.cfg
	rm burst.cfg
	printf 'one line\ntwo lines\n' >shared/lines.txt
	echo out >sub/.gitignore
	git add -A && git commit -qm first
	cd ..
}
texts() { # what was rendered, as the manifest says
	jq -rs 'sort_by(.id) | map(.text) | join("|")' "${1:-repo/sub/out}/manifest.jsonl"
}
trees_left() {
	find home/.cache/burst/trees -mindepth 1 2>/dev/null | head -n 3
}

t_the_committed_text() {
	repository
	printf '#!/bin/sh\ntouch "%s/hook-ran"\n' "$T" >repo/.git/hooks/post-checkout
	chmod +x repo/.git/hooks/post-checkout
	echo "words that nobody has committed" >>repo/shared/lines.txt
	rm repo/sub/burst.cfg # what is committed is there all the same
	burst run repo/sub --commit HEAD
	is "$STATUS" 0 "exit status ($(tail -n 1 err.txt))"
	is "$(texts)" "one line|two lines" "what was rendered"
	is "$(jq -r .commit repo/sub/out/manifest.jsonl | sort -u)" "$(git -C repo rev-parse HEAD)" "the commit in the manifest"
	is "$(git -C repo status --porcelain | tr '\n' ';')" " M shared/lines.txt; D sub/burst.cfg;" "the working tree"
	[ ! -e hook-ran ] || complain "the user's post-checkout hook ran"
	is "$(trees_left)" "" "what is left of the copy"
	is "$(find repo/.git -name 'sharedindex*' -o -name '*.lock')" "" "what was written into the repository"
	# the same job: another commit, by another name of its folder
	git -C repo checkout -q -- . && echo three >repo/shared/lines.txt && git -C repo commit -qam second
	cd repo/sub || return
	burst run --commit main~1 --json
	cd ../..
	is "$(jq -r .segments.cached repo/sub/out.txt)" 2 "cached of the first commit"
}

t_what_else_a_job_reads() {
	repository
	cd repo || return
	mkdir real
	printf 'behind a link\n' >real/text.txt
	ln -s ../real/text.txt shared/link.txt
	ln -s real folder
	printf 'kept out of archives $Format:%%h$\n' >shared/ignored.txt
	printf 'ignored.txt export-ignore\nignored.txt export-subst\n' >shared/.gitattributes
	git add -A && git commit -qm more
	cd ..
	local input want
	while IFS='=' read -r input want; do
		sed -i "s|input = \"[^\"]*\"|input = \"../$input\"|; s|output = \"[^\"]*\"|output = \"out-$want\"|" repo/sub/burst.cfg
		git -C repo commit -qam "$input"
		rm -rf repo/shared repo/real
		burst run repo/sub --commit HEAD
		is "$STATUS" 0 "$input: exit status ($(tail -n 1 err.txt))"
		is "$(texts "repo/sub/out-$want" | cut -c-10)" "$(head -n 1 <<<"${want//-/ }" | cut -c-10)" "$input"
		git -C repo checkout -q -- .
	done <<-E
		shared/link.txt=behind-a-link
		folder/text.txt=behind-a-link2
		shared/ignored.txt=kept-out-of
	E
	has repo/sub/out-kept-out-of/manifest.jsonl '$Format:%h$' # as it was committed
}

t_what_a_commit_lacks() {
	repository
	git init -q other && cp repo/shared/lines.txt other && git -C other add -A && git -C other commit -qm its
	cd repo || return
	git submodule --quiet add "$T/other" lib 2>/dev/null
	printf 'version https://git-lfs.github.com/spec/v1\noid sha256:%064d\nsize 12345\n' 7 >shared/lines.txt
	sed -i 's|output = "out";|output = "out"; lexicon = "../lib/lines.txt";|' sub/burst.cfg
	git add -A && git commit -qm lacking
	cd ..
	burst run repo/sub --commit HEAD
	is "$STATUS" 2 "exit status"
	has err.txt "lib is a submodule: its files are not in the commit"
	has err.txt "1 file of Git LFS is not here (shared/lines.txt)"
}

t_no_such_commit() {
	repository
	burst run repo/sub --commit nowhere
	is "$STATUS" 2 "a commit that is not there"
	has err.txt 'this repository has no commit "nowhere"'
	burst run repo/sub --commit -x
	is "$STATUS" 2 "a flag for a commit"
	burst run repo/elsewhere/burst.cfg --commit HEAD
	has err.txt "has no elsewhere/burst.cfg"
	mkdir plain && cp repo/sub/burst.cfg plain
	burst run plain --commit HEAD
	is "$STATUS" 2 "no repository"
	has err.txt "is not in a git repository"
	mkdir empty && ln -s "$(command -v timeout)" empty/timeout
	PATH=$T/empty burst run repo/sub --commit HEAD
	is "$STATUS" 1 "no git"
	has err.txt "the program git is not in PATH"
	is "$(wc -l <err.txt)" 1 "lines of it"
}

# What reads and writes outside of the project is refused as ever.
t_a_commit_is_no_more_trusted() {
	repository
	mkdir outside && echo secret >outside/text.txt
	sed -i "s|input = \"[^\"]*\"|input = \"../../outside/text.txt\"|" repo/sub/burst.cfg
	git -C repo commit -qam outside
	burst run repo/sub --commit HEAD
	is "$STATUS" 2 "a path out of the project"
	has err.txt "lies outside of the project"
	ln -s "$T/outside/text.txt" repo/shared/link.txt
	sed -i "s|input = \"[^\"]*\"|input = \"../shared/link.txt\"|" repo/sub/burst.cfg
	git -C repo add -A && git -C repo commit -qm link
	burst run repo/sub --commit HEAD
	is "$STATUS" 2 "a link out of the project"
	has err.txt "lies outside of the project"
}

t_a_dead_run_leaves_no_copy() {
	REHEARSE='boot_delay = "0s";' repository
	LIMIT=60 REHEARSE='boot_delay = "20s";' config
	sed 's|script.jsonl|../shared/lines.txt|' burst.cfg >repo/sub/burst.cfg
	git -C repo commit -qam slow
	burst_bg run repo/sub --commit HEAD
	wait_for 20 "a pod" grep -q "booting" err.txt
	kill -9 "$PID"
	burst_wait
	[ -n "$(trees_left)" ] || complain "the killed client took its copy with it"
	burst reap -y
	burst run repo/sub --commit HEAD~1
	is "$STATUS" 0 "exit status of the next run ($(tail -n 1 err.txt))"
	is "$(trees_left)" "" "copies left"
}

run_tests "$@"
