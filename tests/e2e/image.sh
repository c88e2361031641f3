#!/bin/bash
# image.sh - images in which pods find their environment: the Dockerfile as BuildKit's parser reads it, its steps carried out in the root
# of a bare Debian, and pods of the RunPod stand-in whose root that is.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"
# shellcheck source-path=SCRIPTDIR
. "$ROOT/tests/cloud/runpod/client.sh"

parser() { # or the test is skipped
	[ -e "$ROOT/build/dockerfile/.complete" ] || { skip "the parser of Dockerfiles is not there: make dockerfile-parser"; return 1; }
}
dockerfile() { python3 "$ROOT/tests/e2e/dockerfile.py" "$@"; }
told() { jq -r "$1" told.json; }
printed() { # printed [FLAGS]: Dockerfile, and told.json what the parser makes of it
	burst image "$@"
	is "$STATUS" 0 "exit status of image $* ($(tail -n 1 err.txt))"
	cp out.txt Dockerfile
	dockerfile read Dockerfile >told.json 2>parser.txt || complain "the parser: $(tail -n 1 parser.txt)"
}

t_a_dockerfile_is_printed() {
	parser || return
	script_lines 1
	ENGINE=kokoro JOB='env = ["HF_TOKEN"];' config 'pod = { image = "ghcr.io/me/torch:2.8"; };'
	sed -i 's/voice = "en"/voice = "af_heart"/' burst.cfg
	printed
	is "$(told .from)" ghcr.io/me/torch:2.8 "what it builds on"
	is "$(told '.commands | join(" ")')" "FROM USER RUN COPY RUN LABEL LABEL" "its steps"
	is "$(told '.scripts["/usr/local/lib/burst/packages"]')" "$(told '.labels["burst.environment.packages"]')" "the key of its packages"
	has Dockerfile 'kokoro==0.9.4 --hash=sha256:'
	has Dockerfile 'python3 python3-venv'
	hasnt Dockerfile kokoro-v1_0.pth
	is "$(told '.secrets | join(" ")')" HF_TOKEN "secrets of the build"
	has err.txt 'the image will have no weights'
	packages=$(told '.labels["burst.environment.packages"]')
	printed --with-weights --from debian:12
	is "$(told .from)" debian:12 "what it builds on with --from"
	is "$(told '.labels["burst.environment.packages"]')" "$packages" "the key of its packages, with weights"
	is "$(told '.scripts["/usr/local/lib/burst/weights"]')" "$(told '.labels["burst.environment.weights"]')" "the key of all of it"
	has Dockerfile 496dba118d1a58f5f3db2efc88dbdc216e0483fc89fe6e47ee1f2c53f18ad1e4
	hasnt err.txt 'no weights'
}
# What a project's file says stays where it belongs: in no step, no label, no further line.
t_a_dockerfile_holds_what_a_project_says() {
	parser || return
	script_lines 1
	ENGINE='x\nRUN touch /pwned' JOB='worker = "true"; setup = "cat <<E\nEND_OF_SCRIPT\nRUN touch /pwned\nE\n";' config
	burst image
	is "$STATUS" 2 "exit status where no image is named"
	has err.txt 'no provider of this config names an image to build on'
	printed --from debian:12
	is "$(told '.commands | join(" ")')" "FROM USER RUN COPY RUN LABEL LABEL" "its steps"
	is "$(told '.scripts["/usr/local/lib/burst/setup"]')" "$(told '.labels["burst.environment.setup"]')" "the key of its set-up"
	is "$(told '.labels["burst.engine"]')" null "a label of its engine"
	burst image --from 'debian:12 AS x'
	is "$STATUS" 2 "exit status for what is no image"
	has err.txt '--from: "debian:12 AS x" is not an image name'
}

built_root() { # ./cache/root: the steps of ./Dockerfile in a bare Debian, with the packages of piper from a folder of its own
	local why from=${RP_IMAGE_CACHE:-$ROOT/build/minimal}
	[ -e "$ROOT/build/piper/wheels/.made-for" ] || { skip "the packages of piper are not there: make piper-wheels"; return 1; }
	why=$("$ROOT/tests/cloud/minimal_root.sh" "$from" 2>&1) || { skip "$why"; return 1; }
	mkdir cache
	cp -a "$from/root" "$from/mirror" cache/
	echo 'deb http://deb.debian.org/debian bookworm main' >cache/root/etc/apt/sources.list
	cp /etc/resolv.conf cache/root/etc/resolv.conf
	cp -r "$ROOT/build/piper/wheels" cache/root/wheels
	dockerfile run Dockerfile cache/root PIP_NO_INDEX=1 PIP_FIND_LINKS=/wheels >built.txt 2>&1 && return
	grep -q 'burst: ' built.txt || { skip "Debian's packages cannot be had: $(tail -n 1 built.txt)"; return 1; }
	complain "the image cannot be built: $(tail -n 3 built.txt | tr '\n' '|')"
	return 1
}
rendered() { # rendered WORDS...: anew, with these words said
	local words
	rm -rf out
	LIMIT=300 burst run --json
	is "$STATUS" 0 "exit status ($(tail -n 3 err.txt | tr '\n' '|'))"
	all_right 2
	cat "$BURST_STATE_DIR/runs/$(json .run)/log" >log.txt
	for words; do grep -qF -- "$words" err.txt log.txt || complain "it is not said that $words"; done
}
set_ups() { ledger "select count(*) from pod where setup_ms > 0"; }
t_pods_of_a_prebuilt_image_set_nothing_up() {
	parser || return
	cloud || return
	printf '%s\n' '{"id":"s001","text":"This is the first of two sentences."}' '{"id":"s002","text":"And this is the second one."}' >script.jsonl
	ENGINE=piper GPUS='"none"' IMAGE=me/voices:1 JOB='env = ["PIP_NO_INDEX", "PIP_FIND_LINKS"];' rp_config 'pods = 1;'
	sed -i 's/voice = "en"/voice = "en_US-joe-medium"/' burst.cfg
	printed --with-weights --from debian:bookworm
	built_root || { rp_stop; return; }
	rp_stop
	export RP_IMAGE_CACHE=$T/cache PIP_NO_INDEX=1 PIP_FIND_LINKS=/wheels
	cloud || return
	rp_control settings '{"images":{"me/voices:1":"minimal"}}' >/dev/null
	rendered "its image has the job's environment: no set-up"
	is "$(set_ups)" 0 "pods that set something up"
	rendered "its image has the job's environment: no set-up" # told before hello, by what was seen
	is "$(set_ups)" 0 "pods that set something up, in the second run"

	# the next image of that name has the packages alone
	rm -rf "cache/root/usr/local/lib/burst/env/$(told '.labels["burst.environment.weights"]')"
	rendered "its image has the job's packages, without its weights" "its image: env is missing in this image"
	is "$(set_ups)" 1 "pods that made a voice"
	has log.txt '| the packages are those of the image'
	rendered
	is "$(set_ups)" 1 "pods that set something up once the volume has it"

	# and the next one nothing: what the volume has leads nowhere
	rm -rf cache/root/usr/local/lib/burst
	rendered "env needs packages that this image lacks"
	is "$(set_ups)" 2 "pods that set all of it up"
	cloud_over
}

run_tests "$@"
