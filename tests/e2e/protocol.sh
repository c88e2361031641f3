#!/bin/bash
# protocol.sh - what jobs/PROTOCOL.md lists is run: its workers under the real agent, its lines read as JSON.
. "$(dirname "$0")/lib.sh"

PAGE=$ROOT/jobs/PROTOCOL.md

listing() { # listing WORDS: the Python block of the page with these words
	python3 - "$PAGE" "$1" <<-'E'
		import re, sys
		found = [b for b in re.findall(r"^```python\n(.*?)^```", open(sys.argv[1]).read(), re.M | re.S) if sys.argv[2] in b]
		assert len(found) == 1, f"{len(found)} listings with {sys.argv[2]!r}"
		print(found[0], end="")
	E
}
worker_line() { # worker_line WORDS: the page's setting for burst.cfg with these words, quoted as there
	sed -n 's/^.*\(worker = "[^"]*"\).*$/\1/p' "$PAGE" | grep -F -- "$1"
}
renders() { # renders SETTING [MORE of the job]: with what is in code/
	script_lines 9
	ENGINE=mine
	JOB="$1; vram_gb = 0; check = { enabled = false; }; ${2:-}"
	config 'code = { path = "code"; }; pods = 1;'
	burst run
	is "$STATUS" 0 "exit status ($(tail -n 3 err.txt | tr '\n' '|'))"
	all_right 9
}

t_a_worker_in_a_few_lines() {
	mkdir -p code by_hand
	listing 'engine="silence"' >code/worker.py || complain "no listing"
	# the line that the page has the reader paste
	sed -n 's/^`\({"batch":"b1".*}\)`\. In burst\.cfg.*/\1/p' "$PAGE" | BURST_OUT=by_hand python3 code/worker.py >said.txt
	is "$(jq -r 'keys[0]' said.txt | tr '\n' ' ')" "engine file batch " "what it says by hand"
	[ -s by_hand/a.wav ] || complain "by hand it writes no file"
	renders "$(worker_line worker.py | head -n 1)"
}
t_a_continuous_worker() {
	mkdir -p code
	{
		listing 'engine="silence"' | sed '/^say(hello/,$d'
		cat <<-'E'
			def write_wav(name, samples):
			    path = os.path.join(os.environ["BURST_OUT"], name)
			    with wave.open(path + ".tmp", "wb") as f:
			        f.setnchannels(1), f.setsampwidth(2), f.setframerate(24000)
			        f.writeframes(samples)
			    os.rename(path + ".tmp", path)

			class Engine:
			    active = []
			    def add(self, task):
			        self.active.append(task)
			    def step(self):
			        return [(self.active.pop(0), bytes(4800))]

			engine = Engine()
		E
		listing 'batching="continuous"'
	} >code/worker.py
	renders "$(worker_line worker.py | head -n 1)"
	is "$(ledger "select distinct batching from batch")" continuous "its batching"
}
t_an_engine_for_the_harness() {
	mkdir -p code/my_tts-1.2.3.dist-info
	printf 'Metadata-Version: 2.1\nName: my-tts\nVersion: 1.2.3\n' >code/my_tts-1.2.3.dist-info/METADATA
	{
		cat <<-'E'
			class Model:
			    def tokens(self, texts):
			        return [len(text) for text in texts]
			    def sound(self, tokens):
			        return [[0.25, -0.25] * (1000 * n) for n in tokens]

		E
		listing 'class Mine(Engine)' | sed 's/self.sample_rate = \.\.\., /self.sample_rate = Model(), /'
	} >code/my_engine.py
	grep -q '= Model(), 24000' code/my_engine.py || complain "the listing has no model to fill in"
	renders "$(worker_line my_engine.py | sed 's|"python3|"PYTHONPATH=$BURST_CODE python3|')" 'options = ["speed=1.5"];'
	PYTHONPATH=code BURST_OUT=$T HOME=$T PYTHONDONTWRITEBYTECODE=1 python3 "$ROOT/jobs/workers/burst_worker.py" code/my_engine.py </dev/null >said.txt
	is "$(head -n 1 said.txt | jq -r '.versions["my-tts"]')" 1.2.3 "its package's version in hello"
}
t_its_lines_are_json() { # all but those that leave something out
	python3 - "$PAGE" 2>bad.txt <<-'E' || complain "$(tail -n 1 bad.txt)"
		import json, re, sys
		lines = re.findall(r"`(\{\"[^`]*\})`", open(sys.argv[1]).read()) + re.findall(r"^    (\{\".*\})$", open(sys.argv[1]).read(), re.M)
		whole = [line for line in lines if "..." not in line.replace('"..."', "") and "TASK" not in line]
		assert len(whole) > 10, f"{len(whole)} lines"
		for line in whole:
		    try:
		        json.loads(line)
		    except ValueError as error:
		        sys.exit(f"{line}: {error}")
	E
}

run_tests "$@"
