#!/bin/bash
# git.sh - a project's git folders: burst runs no program that one of them names, and reads no other repository.
# shellcheck disable=SC2016 # what other shells expand
. "$(dirname "$0")/../e2e/lib.sh"

own_git() { # the user's own config
	export GIT_CONFIG_GLOBAL=$T/gitconfig GIT_CONFIG_NOSYSTEM=1
	git config --global user.email t@t && git config --global user.name t && git config --global init.defaultBranch main
	git config --global protocol.file.allow always && git config --global advice.detachedHead false
	printf '#!/bin/sh\necho "$0 $*" >>"%s/ran"\ncat\n' "$T" >"$T/trap"
	chmod +x "$T/trap"
}
repository() { # repository NAME: one commit, with a job in its folder sub
	git init -q "$1" && mkdir -p "$1/sub"
	(
		cd "$1/sub" || exit
		config
		sed -i 's|script.jsonl|lines.txt|; /^volume/d' burst.cfg
		printf 'one line\n' >lines.txt
	)
	git -C "$1" add -A && git -C "$1" commit -qm first
}
arm() { # arm GITFOLDER: each setting and hook by which git runs a program
	local hook
	cat >>"$1/config" <<-E2
		[core]
			fsmonitor = $T/trap fsmonitor
			sshCommand = $T/trap ssh
			pager = $T/trap pager
			editor = $T/trap editor
			askPass = $T/trap
			gitProxy = $T/trap
			alternateRefsCommand = $T/trap refs
			hooksPath = hooks
		[credential]
			helper = $T/trap helper
		[diff]
			external = $T/trap diff
		[diff "x"]
			command = $T/trap diff
			textconv = $T/trap textconv
		[merge "x"]
			driver = $T/trap merge
		[filter "x"]
			clean = $T/trap clean
			smudge = $T/trap smudge
		[gpg]
			program = $T/trap
		[log]
			showSignature = true
		[alias]
			rev-parse = !$T/trap alias
			checkout = !$T/trap alias
		[pager]
			ls-tree = $T/trap pager
			rev-parse = $T/trap pager
		[interactive]
			diffFilter = $T/trap
		[trace2]
			normalTarget = $T/traced
		[hook "x"]
			event = post-checkout
			event = reference-transaction
			command = $T/trap hook
		[protocol]
			allow = always
	E2
	mkdir -p "$1/hooks" "$1/info"
	for hook in post-checkout post-index-change reference-transaction post-commit pre-auto-gc fsmonitor-watchman; do
		printf '#!/bin/sh\necho "%s $*" >>"%s/ran"\n' "$hook" "$T" >"$1/hooks/$hook"
		chmod +x "$1/hooks/$hook"
	done
	echo '* diff=x merge=x' >"$1/info/attributes"
}
nothing_ran() {
	[ ! -e "$T/ran" ] || complain "$1: a program of the repository ran: $(tr '\n' '|' <"$T/ran")"
	rm -f "$T/ran"
}
refuses() { # refuses WORDS WHAT: exit 2, one line that says so
	is "$STATUS" 2 "$2: exit status ($(tail -n 2 err.txt | tr '\n' '|'))"
	has err.txt "$1"
	is "$(grep -c '^burst: ' err.txt)" 1 "$2: lines of error"
}
each_command() { # each_command JOB-FOLDER WHAT: every command that looks into git, there
	local here=$PWD command
	for command in 'plan --commit HEAD' 'run --commit HEAD' 'submit --commit HEAD --quiet 1h' 'hook install --quiet 1h' 'hook status' 'hook remove' 'plan' 'init other -y'; do
		cd "$1" || return
		# shellcheck disable=SC2086
		burst $command
		is "$STATUS" 0 "$2: $command ($(tail -n 1 err.txt))"
		rm -rf other
		nothing_ran "$2: $command"
		cd "$here" || return
	done
	for command in $(ledger "select id from request where state = 'pending'"); do "$BURST" queue rm "$command" >/dev/null 2>&1; done
	wait_for 30 "the runner's end" no_runner
}
no_runner() { ! pgrep -f "queue run $T" >/dev/null; }

# A folder of a clone needs no .git to be a repository: HEAD, objects and refs are files like others.
t_a_folder_of_the_clone_is_a_bare_repository() {
	own_git
	repository origin
	mkdir -p origin/sub/objects/info origin/sub/refs/heads
	touch origin/sub/objects/info/kept origin/sub/refs/heads/kept
	echo 'ref: refs/heads/main' >origin/sub/HEAD
	printf '[core]\n\trepositoryformatversion = 0\n\tbare = true\n' >origin/sub/config
	arm origin/sub
	sed -i 's/bare = true/bare = false\n\tworktree = ./' origin/sub/config
	rm -f "$T/ran"
	git -C origin add -A && git -C origin commit -qm 'a trap'
	git clone -q "$T/origin" clone
	rm -f "$T/ran"
	[ -e clone/sub/HEAD ] && [ -e clone/sub/objects ] || complain "the clone lacks the trap"
	(cd clone/sub && git status >/dev/null 2>&1)
	[ -e "$T/ran" ] || complain "the trap does not work: git itself runs nothing"
	rm -f "$T/ran"
	burst init clone/sub/deeper -y
	is "$STATUS" 0 "init ($(tail -n 1 err.txt))"
	nothing_ran init
	rm -r clone/sub/deeper
	local command
	for command in 'plan --commit HEAD' 'run --commit HEAD' 'submit --commit HEAD --quiet 1h'; do
		# shellcheck disable=SC2086
		(cd clone/sub && burst $command; echo "$STATUS" >status)
		is "$(cat clone/sub/status)" 0 "$command ($(tail -n 1 clone/sub/err.txt))"
		nothing_ran "$command"
	done
	is "$(jq -r .text clone/sub/out/manifest.jsonl)" "one line" "what was rendered"
	"$BURST" queue rm "$(ledger "select id from request where state = 'pending'")" >/dev/null 2>&1
	wait_for 30 "the runner's end" no_runner
}

# A folder that was copied, not cloned, brings its .git along.
t_a_copied_project_brings_its_config_and_hooks() {
	own_git
	repository project
	arm project/.git
	rm -rf project/.git/hooks/burst
	sed -i '/hooksPath/d' project/.git/config
	each_command "$T/project/sub" "a copied project"
}

# Worktrees and submodules keep git's folder elsewhere, and name each other.
t_worktrees_and_submodules() {
	own_git
	repository main
	git -C main worktree add -q ../tree -b side
	repository lib
	git -C main submodule --quiet add "$T/lib" lib && git -C main commit -qm lib
	arm main/.git
	arm main/.git/modules/lib
	sed -i '/hooksPath/d' main/.git/config main/.git/modules/lib/config
	rm -f ran
	each_command "$T/tree/sub" "a worktree"
	each_command "$T/main/lib/sub" "a submodule"
}

# .git may be made to lead into another repository of the user, whose commits would travel.
t_a_git_file_or_link_that_leads_elsewhere() {
	own_git
	repository private
	mkdir project && config && sed 's|script.jsonl|lines.txt|' burst.cfg >project/burst.cfg
	local how words
	while IFS='|' read -r how words; do
		rm -rf project/.git
		(cd project && eval "$how")
		burst plan project --commit HEAD
		refuses "$words" "$how"
		burst plan project/sub/burst.cfg --commit HEAD
		refuses "$words" "$how, its sub"
		burst run project --dry-run --list-prices
		hasnt err.txt "private/sub"
	done <<-'E2'
		echo "gitdir: ../private/.git" >.git|does not name this folder
		ln -s ../private/.git .git|does not name this folder
		git init -q . && echo ../../private/.git >.git/commondir|takes its commits from another repository
		mkdir -p ../private/.git/worktrees; mkdir -p d && printf '%s/.git\n' "$PWD" >d/gitdir && echo ../../private/.git >d/commondir && echo ref: refs/heads/main >d/HEAD && echo "gitdir: d" >.git|does not name this folder
		git init -q . && rm -r .git/objects && ln -s ../../private/.git/objects .git/objects && cp ../private/.git/refs/heads/main .git/refs/heads|borrows commits from another one
		git init -q . && echo ../../../private/.git/objects >.git/objects/info/alternates && cp ../private/.git/refs/heads/main .git/refs/heads|borrows commits from another one
		git init -q . && rm -r .git/objects/pack && ln -s ../../../private/.git/objects/pack .git/objects/pack && cp ../private/.git/refs/heads/main .git/refs/heads|borrows commits from another one
		echo "gitdir: ../nowhere" >.git|leads to
		echo nonsense >.git|is not a file of git
		mkfifo .git|is not in a git repository
		git init -q . && rm .git/config && mkfifo .git/config|.git/config is not a plain file
		git init -q . && mkfifo .git/index|.git/index is not a plain file
		git init -q . && mkfifo .git/packed-refs|.git/packed-refs is not a plain file
		git init -q . && mkfifo .git/shallow|.git/shallow is not a plain file
		git init -q . && mkfifo ".git/$(git symbolic-ref HEAD)"|is not a plain file
	E2
	# core.worktree names another folder: it is not followed
	rm -rf project/.git
	git -C project init -q && git -C project add burst.cfg && echo mine >project/lines.txt && git -C project add -A && git -C project commit -qm one
	git -C project config core.worktree "$T/private"
	burst run project --commit HEAD
	is "$STATUS" 0 "core.worktree ($(tail -n 1 err.txt))"
	is "$(jq -r .text project/out/manifest.jsonl)" mine "what was rendered"
	[ ! -e private/out ] || complain "outputs in another repository"
}

# The name of a commit stands for its content.
t_replaced_objects_and_grafts() {
	own_git
	repository project
	local first
	first=$(git -C project rev-parse HEAD:sub/lines.txt)
	git -C project replace "$first" "$(echo 'another line' | git -C project hash-object -w --stdin)"
	git -C project rev-parse HEAD >project/.git/info/grafts
	burst run project/sub --commit HEAD
	is "$STATUS" 0 "exit status ($(tail -n 1 err.txt))"
	is "$(jq -r .text project/sub/out/manifest.jsonl)" "one line" "what was rendered"
}

# git fetches what a partial clone lacks by the program that its remote names.
t_a_partial_clone_fetches_nothing() {
	own_git
	repository origin
	git -C origin config uploadpack.allowFilter true
	echo 'a second line' >>origin/sub/lines.txt && git -C origin commit -qam second
	git clone -q --filter=blob:none "file://$T/origin" clone
	burst run clone/sub --commit HEAD
	is "$STATUS" 0 "what is here ($(tail -n 1 err.txt))"
	local url
	for url in "ext::$T/trap %S" "file://$T/origin" "ssh://host/x" "trap::x"; do
		git -C clone config remote.origin.url "$url"
		git -C clone config remote.origin.uploadpack "$T/trap"
		git -C clone config core.sshCommand "$T/trap"
		git -C clone config protocol.ext.allow always
		burst run clone/sub --commit HEAD~ --anew
		refuses "a partial clone, and burst fetches nothing" "$url"
		nothing_ran "$url"
	done
}

# The user's own filters run; those that only the repository names do not, and are not left out in silence.
t_filters() {
	own_git
	repository project
	printf '#!/bin/sh\nsed s/one/filtered/\n' >filter && chmod +x filter
	echo 'lines.txt filter=mine' >project/sub/.gitattributes && git -C project add -A && git -C project commit -qm attributes
	git config --global filter.mine.smudge "$T/filter" && git config --global filter.mine.clean cat
	burst run project/sub --commit HEAD
	is "$STATUS" 0 "one's own ($(tail -n 1 err.txt))"
	is "$(jq -r .text project/sub/out/manifest.jsonl)" "filtered line" "one's own filter"
	git -C project config filter.mine.smudge "$T/trap" # the user's stands
	burst run project/sub --commit HEAD --anew
	is "$(jq -r .text project/sub/out/manifest.jsonl)" "filtered line" "one's own beside another"
	nothing_ran "beside one's own"
	git config --global --remove-section filter.mine
	burst run project/sub --commit HEAD --anew
	refuses "smudge filter mine failed: only" "the repository's"
	has err.txt "git config --global"
	nothing_ran "the repository's"
	git -C project config filter.mine.process "$T/trap"
	burst run project/sub --commit HEAD --anew
	refuses "smudge filter mine failed: only" "a process of the repository"
	nothing_ran "a process of the repository"
	git -C project config --unset filter.mine.process
	git -C project config filter.mine.smudge cat # changes nothing
	git -C project config filter.mine.required true
	burst run project/sub --commit HEAD --anew
	is "$STATUS" 0 "cat ($(tail -n 1 err.txt))"
	is "$(jq -r .text project/sub/out/manifest.jsonl)" "one line" "cat"
}

# Git LFS: from the user's own config, with the files that are here, without a download.
t_lfs_takes_what_is_here() {
	own_git
	repository project
	mkdir bin && cat >bin/git-lfs <<-'E2'
		#!/bin/sh
		# what a filter of Git LFS does: the pointer stays where its file is not here
		[ "$(git config lfs.url)$GIT_LFS_SKIP_DOWNLOAD_ERRORS" = none1 ] || echo "downloads" >>"$T/ran"
		pointer=$(cat)
		store=$(git config --path lfs.storage)
		id=${pointer##*sha256:} && id=${id%% *}
		if [ -e "$store/objects/$id" ]; then cat "$store/objects/$id"; else printf '%s\n' "$pointer"; fi
	E2
	chmod +x bin/git-lfs
	export PATH=$T/bin:$PATH T
	git config --global filter.lfs.smudge "git-lfs smudge -- %f" && git config --global filter.lfs.required true && git config --global filter.lfs.clean cat
	printf 'version https://git-lfs.github.com/spec/v1 oid sha256:%064d size 8\n' 7 >project/sub/lines.txt
	echo 'lines.txt filter=lfs' >project/sub/.gitattributes && git -C project add -A && git -C project commit -qm pointer
	mkdir -p project/.git/lfs/objects && echo "the file" >"project/.git/lfs/objects/$(printf '%064d' 7)"
	burst run project/sub --commit HEAD
	is "$STATUS" 0 "exit status ($(tail -n 1 err.txt))"
	is "$(jq -r .text project/sub/out/manifest.jsonl)" "the file" "what was rendered"
	nothing_ran "Git LFS"
}

# A hooks folder outside is the user's own to name.
t_hooks_are_written_into_the_repository_alone() {
	own_git
	repository project
	mkdir elsewhere
	git -C project config core.hooksPath "$T/elsewhere"
	burst hook install project/sub
	refuses "core.hooksPath in $T/project/.git/config leads out of the repository" "a folder outside"
	is "$(ls elsewhere)" "" "what was written there"
	git -C project config --unset core.hooksPath
	mv project/.git/hooks hooks && ln -s ../../elsewhere project/.git/hooks
	burst hook install project/sub
	refuses "project/.git/hooks leads out of the repository" "a link to a folder outside"
	is "$(ls elsewhere)" "" "what was written through the link"
	rm project/.git/hooks && mv hooks project/.git/hooks
	git config --global core.hooksPath "$T/elsewhere"
	burst hook install project/sub --quiet 1h
	is "$STATUS" 0 "one's own config ($(tail -n 1 err.txt))"
	[ -x elsewhere/post-commit ] || complain "no hook"
}

# As git has it (safe.directory).
t_a_repository_of_somebody_else() {
	[ "$(id -u)" = 0 ] || { skip "needs root"; return; }
	own_git
	repository project
	arm project/.git
	chown -R 12345 project/.git
	burst plan project/sub --commit HEAD
	refuses "belongs to another user (12345)" "its folder"
	nothing_ran "of somebody else"
}

run_tests "$@"
