#!/bin/bash
# travel.sh - which files of a project go to the pods, and what is said of them.
. "$(dirname "$0")/lib.sh"

own_git() {
	export GIT_CONFIG_GLOBAL=$T/gitconfig GIT_CONFIG_NOSYSTEM=1
	git config --global user.email t@t && git config --global user.name t && git config --global init.defaultBranch main
}

# A job in a folder of a repository: what git ignores there stays here.
t_a_folder_of_a_repository() {
	own_git
	mkdir -p repo/proj/data && cd repo || return
	git init -q .
	printf 'data/\n.env\n*.ckpt\n' >.gitignore
	echo excl >>.git/info/exclude
	git config --global core.excludesFile "$T/users" && echo '*.swp' >"$T/users"
	cd proj || return
	echo 'print(1)' >main.py
	touch .env data/big excl w.ckpt main.swp
	printf '*.txt\n' >.gitignore
	burst run -- 'find . -type f ! -name list.of | LC_ALL=C sort | tr "\n" " " >list.of'
	is "$STATUS" 0 "exit status ($(tail -n 1 err.txt))"
	is "$(cat out/list.of)" "./.gitignore ./main.py " "what arrived"
	# .burstignore alone counts where there is one
	rm -r out && printf '*.txt\nmain.swp\nout\n' >.burstignore
	burst run --anew -- 'find . -type f ! -name list.of | LC_ALL=C sort | tr "\n" " " >list.of'
	is "$(cat out/list.of)" "./.burstignore ./.env ./.gitignore ./data/big ./excl ./main.py ./w.ckpt " "with a .burstignore"
}

# A home folder that is a repository of settings ignores all but these.
t_a_repository_of_the_home_folder() {
	own_git
	git -C "$HOME" init -q . && echo '*' >"$HOME/.gitignore"
	mkdir -p "$HOME/proj" && cd "$HOME/proj" || return
	echo 'print(1)' >main.py
	burst run -- 'ls >list.of'
	is "$STATUS" 0 "exit status ($(tail -n 1 err.txt))"
	has out/list.of main.py
}

t_what_travels_is_told_once() {
	mkdir proj && cd proj || return
	head -c 3000000 /dev/zero >weights.bin
	mkdir -p keys .ssh
	touch .env .env.example a.py keys/server.pem keys/id_ed25519 keys/id_ed25519.pub Credentials.json tokenizer.json .netrc
	local what="code: 10 files, 3.0 MB of $T/proj travel to the pods; the largest: weights.bin (3.0 MB)" secrets
	printf 'provider = "local";\njob = { name = "p"; type = "command"; run = "true > o; sleep 0"; outputs = ["o"]; output = "out"; };\ncode = { path = "."; };\n' >burst.cfg
	printf 'out.txt\nerr.txt\nburst.cfg\n.gitignore\n' >.gitignore
	burst plan
	has err.txt "$what"
	secrets=".env, .netrc, Credentials.json, keys/id_ed25519, keys/server.pem look"
	has err.txt "warning: code: $secrets like secrets and travel to the pods"
	burst plan
	has err.txt "$what" # a plan tells it each time
	burst run
	is "$STATUS" 0 "exit status ($(tail -n 1 err.txt))"
	has err.txt "$what"
	has err.txt "$secrets"
	touch b.py
	burst run --anew
	is "$STATUS" 0 "the second run: exit status ($(tail -n 1 err.txt))"
	hasnt err.txt "travel to the pods"
	touch server.KEY && for i in 1 2; do touch "$i.pem"; done
	burst run --dry-run
	has err.txt "1.pem, 2.pem, Credentials.json and 3 more look like secrets"
}

# Nothing is rented for a folder that cannot be read.
t_odd_files_are_found_before_renting() {
	mkdir proj && cd proj || return
	printf 'provider = "local";\njob = { name = "p"; type = "command"; run = "true > o"; outputs = ["o"]; output = "out"; };\ncode = { path = "."; };\n' >burst.cfg
	local file how
	for file in .burstignore .gitignore; do
		for how in "mkfifo $file" "ln -s burst.cfg $file" "mkdir $file"; do
			rm -rf .burstignore .gitignore && $how
			burst run
			is "$STATUS" 2 "$how: exit status ($(tail -n 1 err.txt))"
			has err.txt "$file: is "
			is "$(ledger 'select count(*) from pod' 2>/dev/null || echo 0)" 0 "$how: pods"
			burst plan
			is "$STATUS" 2 "$how: plan"
		done
	done
}

run_tests "$@"
