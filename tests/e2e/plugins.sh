#!/bin/bash
# plugins.sh - providers outside the tree: BURST_PROVIDER_PATH. The local provider's translator, under another name, is compiled
# with nothing but the headers that are installed, and has real pods behind it.
. "$(dirname "$0")/lib.sh"

headers() { make -s -C "$ROOT" install-headers DESTDIR="$T/root" PREFIX=/usr || complain "no headers"; }
object() { # object FILE SOURCE...: a shared object
	local to=$1
	shift
	# shellcheck disable=SC2046
	cc -std=gnu17 -D_GNU_SOURCE -O1 -fPIC -shared -I root/usr/include/burst -I "$ROOT/providers/local" -I . \
		$(pkg-config --cflags jansson) -o "$to" "$@" >cc.txt 2>&1 || complain "$to does not compile: $(head -n 3 cc.txt)"
}
OTHERS=(providers/child.c providers/wire.c providers/wired.c) # what local.c needs
twin() { # twin FILE: the local provider, called "twin"
	local name
	mkdir -p src providers
	# the base of its kind, and nothing else of the tree
	cp "$ROOT"/providers/{child,wire,wired}.[ch] providers/
	for name in local.c local.h; do
		sed -e 's/"local"/"twin"/g; s/\bprovider_local\b/burst_provider/g' -e "s|\"providers/local/|\"$ROOT/providers/local/|" \
			"$ROOT/providers/local/$name" >"src/$name"
	done
	object "$1" src/local.c "${OTHERS[@]}"
}
twin_config() {
	script_lines 4
	config
	sed -i 's/provider = "local"/provider = "twin"/; s/providers = { local/providers = { twin/' burst.cfg
}

t_a_vendor_of_ones_own() {
	headers
	mkdir plugins
	twin plugins/twin.so
	twin_config
	burst doctor
	has err.txt 'burst.cfg:5: unknown provider "twin" (known: local, runpod, modal, slurm, ssh, kubernetes, vast; BURST_PROVIDER_PATH adds others)'
	export BURST_PROVIDER_PATH=$T/plugins
	burst run
	is "$STATUS" 0 "exit status ($(tail -n 2 err.txt | tr '\n' '|'))"
	hasnt err.txt BURST_PROVIDER_PATH
	is "$(wavs)" 4 files
	is "$("$BURST" ledger "$("$BURST" ledger --json | jq -r '.[0].run')" --json | jq -r '[.pods[].provider] | unique | join(",")')" twin "whose pods they were"
	is "$("$BURST" offers --json | jq -r '[.[].provider] | unique | join(",")')" twin offers
	is "$("$BURST" words run -p '' | cut -f 1 | tr '\n' ' ')" "words local runpod modal slurm ssh kubernetes vast twin " "what completion offers"
	burst doctor
	is "$STATUS" 0 "doctor ($(tail -n 2 err.txt))"
	has out.txt "twin: 0 pods with burst's marker now"
	unset BURST_PROVIDER_PATH
}
t_spot_pods_that_were_not_wanted() { # a vendor offers them all the same: neither a plan nor a run takes them
	headers
	twin twin.so
	sed -i 's/offer->pods_max = /offer->spot = true; &/' src/local.c
	object twin.so src/local.c "${OTHERS[@]}"
	twin_config
	echo 'wait = "0s";' >>burst.cfg
	export BURST_PROVIDER_PATH=$T/twin.so
	burst plan
	is "$STATUS" 4 "plan ($(tail -n 1 err.txt))"
	has err.txt '1 offer is left out: a spot pod, and spot is false (--spot)'
	burst run
	is "$STATUS" 4 "run ($(tail -n 1 err.txt))"
	is "$(ledger "select count(*) from pod")" 0 pods
	unset BURST_PROVIDER_PATH
}
t_its_pods_are_reaped() {
	headers
	twin twin.so
	twin_config
	slow='sleep 30'
	sed -i "s/type = \"tts\"; engine = \"espeak\"; input = \"script.jsonl\"; voice = \"en\";/type = \"command\"; no_outputs = true; run = \"$slow\";/" burst.cfg
	export BURST_PROVIDER_PATH=$T/twin.so
	burst_bg run
	wait_for 60 "a pod" some_pod
	kill -9 "$PID"
	burst_wait 2>/dev/null
	unset BURST_PROVIDER_PATH
	burst reap
	is "$STATUS" 9 "reap without the object"
	has err.txt 'unknown provider "twin" (BURST_PROVIDER_PATH can name more)'
	export BURST_PROVIDER_PATH=$T/twin.so
	burst reap
	is "$STATUS" 0 "reap ($(tail -n 2 err.txt))"
	is "$(pods_left)" "" "pods after reap"
	unset BURST_PROVIDER_PATH
}
some_pod() { [ -n "$(pods_left)" ] && [ "$(ledger "select count(*) from pod where id != ''")" = 1 ]; }

printed() { # printed NAME: the block of a page under <!-- test: NAME -->
	python3 "$ROOT/tests/e2e/pages.py" named "$1"
}
acme_command() { # the command of the page's vendor, whose pods are local ones
	mkdir -p bin
	cat >bin/acme <<-E
		#!/usr/bin/env python3
		import json, subprocess, sys
		def local(verb, **request):
		    ran = subprocess.run(["$BURST", "local-cloud", verb, "$T/state"], input=json.dumps(request), capture_output=True, text=True)
		    if ran.returncode:
		        error = json.loads(ran.stderr.splitlines()[-1])["error"]
		        sys.exit("acme: no such pod" if error["kind"] == "not_found" else "acme: " + error["message"])
		    return json.loads(ran.stdout)
		def pods(answer):
		    states = {"creating": "starting", "running": "up", "gone": "ended"}
		    for pod in answer["pods"]:
		        marker = pod["marker"]
		        pod |= {"card": pod["gpu"], "state": states.get(pod["state"], pod["state"]), "ssh": {k: pod[k] for k in ("host", "port", "user")},
		                "labels": {**marker, "hard_end": marker["hard_end_s"]}}
		    print(json.dumps({"pods": answer["pods"]}))
		verb = sys.argv[1]
		if verb == "cards":
		    print(json.dumps({"cards": [{"name": "L40S"}, {"name": "T4"}]}))
		elif verb == "create":
		    order = json.load(sys.stdin)
		    labels = order["labels"]
		    marker = {**labels, "hard_end_s": labels["hard_end"]}
		    pods(local("rent", name=order["name"], gpu=order["card"], marker=marker, script=order["script"], env=order["env"], volume="", mount="/workspace",
		               conf={"gpu": "L40S", "isolation": "auto"}))
		elif verb == "list":
		    pods(local("list"))
		elif verb == "show":
		    pods(local("inspect", id=sys.argv[2]))
		elif verb == "delete":
		    local("release", id=sys.argv[2])
	E
	chmod +x bin/acme
}
t_a_provider_made_as_the_page_says() { # it is compiled as a plug-in here, so that no other build of burst is needed
	headers
	mkdir -p tree/providers/acme
	ln -s "$ROOT"/providers/child.[ch] tree/providers/
	cp "$ROOT/providers/local/end.sh" tree/providers/acme/
	printed provider >tree/providers/acme/acme.c || complain "providers/README.md has no recipe"
	# shellcheck disable=SC2046
	cc -std=gnu17 -D_GNU_SOURCE -Wall -Wextra -Werror -Wno-missing-field-initializers -O1 -fPIC -shared -I root/usr/include/burst -I tree \
		-Dprovider_acme=burst_provider $(pkg-config --cflags jansson) -Wa,-Itree -o acme.so tree/providers/acme/acme.c tree/providers/child.c >cc.txt 2>&1 ||
		complain "it does not compile: $(head -n 3 cc.txt)"
	mkdir -p own/burst state
	echo 'providers = { acme = { prices = ["L40S=1.10"]; }; };' >own/burst/burst.cfg
	acme_command
	export BURST XDG_CONFIG_HOME=$T/own BURST_STATE_DIR=$T/state BURST_PROVIDER_PATH=$T/acme.so PATH=$T/bin:$PATH
	timeout 120 "$ROOT/build/e2e/conform" acme >said.txt 2>&1 || complain "conform: $(grep -m 2 -v '^\[' said.txt | tr '\n' ' ')"
	script_lines 4
	config 'gpu = ["L40S"];'
	sed -i 's/provider = "local"/provider = "acme"/; /^providers = /d; /^volume = /d' burst.cfg
	burst run
	is $STATUS 0 "exit status ($(tail -n 3 err.txt))"
	all_right 4
	is "$(ledger 'select provider || gpu || price_microusd_h from pod')" "acmeL40S1100000" "its pod"
}

refused() { # refused OBJECT WORDS: it is named, and a run goes on without it
	BURST_PROVIDER_PATH=$1 "$BURST" plan >out.txt 2>err.txt </dev/null || complain "with $1: $(tail -n 1 err.txt)"
	has err.txt "BURST_PROVIDER_PATH: $1: $2; continuing without it"
	is "$(grep -c BURST_PROVIDER_PATH err.txt)" 1 "lines about $1"
}
t_what_cannot_be_used() {
	headers
	script_lines 2
	config
	twin twin.so
	local abi
	abi=$(sed -n 's,^#define PROVIDER_ABI \([0-9]*\)u$,\1,p' "$ROOT/orchestrator/provider.h")
	echo 'int nothing;' >none.c
	object none.so none.c
	sed 's/\.abi = PROVIDER_ABI/.abi = PROVIDER_ABI + 1/' src/local.c >src/newer.c
	object newer.so src/newer.c "${OTHERS[@]}"
	sed 's/\.name = LOCAL_NAME/.name = "local"/' src/local.c >src/again.c
	object again.so src/again.c "${OTHERS[@]}"
	sed 's/\.name = LOCAL_NAME/.name = "Twin; rm"/' src/local.c >src/odd.c
	object odd.so src/odd.c "${OTHERS[@]}"
	sed '/\.op_free = /d' src/local.c >src/less.c
	object less.so src/less.c "${OTHERS[@]}"
	echo "no object" >text.so
	cp twin.so open.so
	chmod 666 open.so
	refused "$T/none.so" "contains no provider (no symbol burst_provider)"
	refused "$T/newer.so" "made for version $((abi + 1)) of the provider contract, this burst has $abi: build it again"
	refused "$T/again.so" 'provider "local" already exists'
	refused "$T/odd.so" "its name may have only a-z, 0-9 and _, at most 23"
	refused "$T/less.so" 'provider "twin" lacks options or a function that the contract requires'
	refused "$T/open.so" "other users can change it (it must belong to you or root, and be writable only by its owner)"
	refused "$T/text.so" "file too short"
	refused "$T/away.so" "No such file or directory"
	refused "twin.so" "not an absolute path"
	refused /dev/null "other users can change it (it must belong to you or root, and be writable only by its owner)"
	mkdir many
	for i in 1 2 3 4 5 6 7 8 9; do
		sed "s/\.name = LOCAL_NAME/.name = \"twin$i\"/" src/local.c >src/n.c
		object many/$i.so src/n.c "${OTHERS[@]}"
	done
	BURST_PROVIDER_PATH=$T/many:$T/away.so burst plan
	is "$STATUS" 0 "a plan with nine ($(tail -n 1 err.txt))"
	has err.txt "$T/many/9.so: more than 8"
	has err.txt "$T/away.so: No such file"
	is "$(BURST_PROVIDER_PATH=$T/many "$BURST" words run -p '' | wc -l)" 16 "providers"
}
# What the program shows to such objects must not stand in for what a library calls by the same name.
t_no_library_calls_ours() {
	local program=$ROOT/build/burst
	RUNPOD_API_KEY=x RUNPOD_API_URL=http://127.0.0.1:1 LD_BIND_NOW=1 LD_DEBUG=bindings LD_DEBUG_OUTPUT=$T/bindings "$program" doctor -p runpod >out.txt 2>err.txt </dev/null
	cat bindings.* >all
	grep -q "libcurl[^ ]* \[0\] to " all || complain "nothing is known of libcurl: $(head -n 3 all)"
	# the versioned ones are copies that the linker made of glibc's own data
	is "$(grep -F " to $program [0]: normal symbol" all | grep -vF "binding file $program " | grep -v '\[GLIBC_' | sed 's/.*binding file/from/' | head -n 3)" "" \
		"names that libraries find in burst"
}

run_tests "$@"
