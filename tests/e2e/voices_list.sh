#!/bin/bash
# voices_list.sh - `burst voices`: the list, and a sentence in each
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"

t_the_list() {
	burst voices kokoro --language ja
	is "$STATUS $(grep -c . out.txt)" "0 6" "Japanese voices of kokoro and the titles ($(cat out.txt))"
	burst voices kokoro --language en_gb --json
	is "$(jq -r '[.[] | .voice[0:1] + " " + .language] | unique | join(",")' out.txt)" "b en-GB" "British voices of kokoro"
	burst voices kokoro --json
	is "$(jq -r '[.[].language] | unique | join(" ")' out.txt)" "en-GB en-US es fr-FR hi it ja pt-BR zh" "languages of kokoro"
	burst voices qwen3 --json
	is "$(jq -r '.[] | select(.voice == "sohee") | "\(.language) \(.sex) \(.licence)"' out.txt)" "ko female Apache-2.0" "a voice of qwen3"
	burst voices piper --language pt_br --json
	is "$(jq -r '[.[].language] | unique | join(" ")' out.txt)" "pt-BR" "one region"
	burst voices piper --language de --json
	is "$(jq -r '.[] | select(.voice == "de_DE-pavoque-low") | .forbids' out.txt)" "commercial use" "what a licence forbids"
	is "$(jq '[.[] | select(.language != "de-DE")] | length' out.txt)" 0 "voices of other languages"
	burst voices
	is "$(awk 'NR > 1 && NF {print $1}' out.txt | sort -u | xargs)" "espeak kokoro piper qwen3 qwen3-1.7b" "engines with voices of their own"
	burst voices chatterbox
	has out.txt "speaks in the voice of a sample"
	burst voices kokor
	is "$STATUS $(cat err.txt)" '2 burst: no engine is called "kokor": did you mean "kokoro"?' "a slip"
	[ ! -e state ] || complain "the list opened the ledger"
	script_lines 1
	config
	burst voices --language eo
	is "$STATUS $(awk 'NR == 2 {print $1, $2}' out.txt)" "0 espeak eo" "the project's engine"
}

t_a_sentence_in_each() {
	burst voices espeak --language fr --sample
	is "$STATUS" 0 "exit status ($(tail -n 1 err.txt))"
	[ "$(wavs voices-espeak)" -ge 2 ] || complain "files: $(ls voices-espeak)"
	is "$(jq -r .text voices-espeak/manifest.jsonl | sort -u)" "Bonjour, voici comment je lis une histoire." "what it says"
	burst voices espeak --language fr --sample
	has err.txt "already rendered: nothing rented"
	burst voices espeak --sample </dev/null
	is "$STATUS" 2 "many voices, and nobody to ask"
	has err.txt "choose with --language"
	burst voices --sample
	is "$STATUS" 2 "of which engine?"
}

run_tests "$@"
