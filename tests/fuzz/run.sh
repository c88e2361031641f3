#!/bin/bash
# run.sh SECONDS [NAME...] - each fuzzer of build/fuzz (or those named: "toml agent") for so long, $(nproc) at a time. They begin
# with the seeds that are written here, with those of tests/fuzz/seeds/NAME (replies as the unit tests have them), and with what
# earlier runs found (build/fuzz/corpus/NAME); tests/fuzz/NAME.dict has words to try. A line for each: how fast, how much it
# reached. Status 1 when one found something; the bytes that do it are then in build/fuzz/found/.
# run.sh replay [NAME...] - searches nothing: each reader (build/asan/replay/fuzz_NAME) reads its seeds once. REPLAYED="build/fuzz/corpus":
# and what lies in REPLAYED/NAME.
#
# Who reads what comes from elsewhere, and which fuzzer feeds it:
#   what a pod says: the agent's lines, files, ends (engine/link, podlink, prepare, fetch_channel, outfiles, upsync; core/)   pod
#   the names and bytes of files that come home (sync/receive)                                                      receive, pod
#   a pod's event log on its volume (engine/vendor)                                                                  pod
#   tar streams, JSON, batches of lines, WAV headers, lanes, requests, nvidia-smi's lines (jobs/agent)               agent
#   patterns of outputs (base/pattern, base/glob), git's rules (sync/ignore)                   match
#   batches of lines (jobs/workers/espeak_batch.c)                                                                  speaker
#   a tree as text: of a volume, of an earlier run (sync/tree_text)                                                  tree
#   RunPod's replies: REST, GraphQL, logs, S3 with its XML, bills, dates, rate limits (providers/runpod)             runpod
#   Vast.ai's: offers, instances in pages, logs, charges, refusals (providers/vast)                                  vast
#   Modal's: messages, streams, catalog, tokens, bills, volumes (providers/modal)                                    modal
#   gRPC: frames, trailers, status details (net/grpc)                                                                grpc
#   HTTP: heads, bodies, chunks, trailers, frames of HTTP/2, through libcurl (net/http*.c)                           http
#   SSH: the handshake, through libssh2; each result that libssh2 may give afterwards (net/ssh*.c)                   ssh
#   commands of vendors (providers/{slurm,kubernetes,ssh})                                                           command
#   the local vendor's answers and its pods' records (providers/local)                                               local
#   headers, dates, Retry-After, RateLimit, traces of bodies and URLs (provider.c, engine/limit, net/http_trace)     text
#   durations, money, numbers, names of GPUs and voices, paths, base64, JSON, what is shown (base/, config/value)    text
#   burst.cfg (config/)                                                                                              config
#   credential files (config/toml)                                                                                   toml
#   image progress in a pod's log (engine/pull)                                                                      pull
#   scripts: text, JSON lines, CSV, TSV, Markdown, and their splitting (jobs/tts)                                    input
#   books, HTML pages, subtitles, HTML in other texts (jobs/tts: epub, zip, html, subtitles_in)                      epub
#   manifests of earlier runs, WAV files that came (jobs/manifest, jobs/tts/wav)                                     input
#   the ledger: any rows, changed bytes (store/, engine/past, what shows them in cmd/)                               ledger
set -u
cd "$(dirname "$0")/../.." || exit
seconds=${1:-10}
shift
case $seconds in replay) ;; '' | *[!0-9]* | 0) echo "fuzz: FUZZ_SECONDS must be a whole number above 0, not \"$seconds\"" >&2; exit 2 ;; esac
out=build/fuzz
export ASAN_OPTIONS=${ASAN_OPTIONS:-}:exitcode=99 UBSAN_OPTIONS=${UBSAN_OPTIONS:-}:print_stacktrace=1

# ---- seeds ----
# seed NAME KIND: stdin becomes a seed whose first byte, when KIND is a number, chooses the reader
seed() {
	local file
	file=$(mktemp "$out/seeds/$1/XXXXXXXX")
	if [ -n "${2:-}" ]; then printf "\\$(printf '%03o' "$2")" >"$file"; else : >"$file"; fi
	cat >>"$file"
}
wav() { # wav [KIND BYTES BITS]: a header of 44 bytes and a little sound, of one channel; KIND 1: whole numbers, 3: fractions
	printf 'RIFF\x64\0\0\0WAVEfmt \x10\0\0\0'
	printf "\\x0${1:-1}\\0\\x01\\0\\x22\\x56\\0\\0\\x44\\xac\\0\\0\\x0${2:-2}\\0\\x${3:-10}\\0"
	printf 'data\x40\0\0\0'
	head -c 64 Makefile
}
seeds_agent() {
	printf '{"a":[1,-2.5e3,true,null,"\\u00e9\\n\\ud83d\\ude00"],"b":{"c":""}}' | seed agent 0
	printf 'A=1\nB=two words\n*/x/**\nout/a/x/b.wav' | seed agent 1
	wav | seed agent 2
	mkdir -p "$out/seeds/tree" && (cd "$out/seeds/tree" && echo one >a && ln -sf a b && mkdir -p d && echo two >d/c &&
		tar -cf - --format=ustar --owner=0 --group=0 a b d) | seed agent 3
	rm -rf "$out/seeds/tree"
	local hello='{"hello":1,"protocol":1,"engine":"e","version":"1","sample_rate":22050,"gpu":true,"max_batch":2}'
	printf '%s\n' "${hello/'l":1'/'l":2,"batching":"continuous"'}" '{"segment":"q2","ok":true,"file":"q2.wav"}' '{"take":1}' \
		'!{"op":"batch","id":"c","segments":[{"id":"q4"},{"id":"q5"}]}' '{"take":0}' '{"take":99}' '{"oom":true}' '{"take":-1}' \
		'{"segment":"q1","ok":true,"file":"q1.wav"}' '{"batch":"b","done":false}' '{"segment":"q4","ok":false}' '{"batch":"c","done":true}' |
		seed agent 4
	printf '%s\n' "$hello" '{"segment":"q1","ok":true,"file":"q1.wav","seconds":1.5,"rate":32,"ms":5}' 'noise' \
		'{"segment":"q2","ok":true,"file":"d/q2.wav","bytes":108}' '{"batch":"b","done":true}' '{"segment":"q3","ok":false,"error":"no"}' \
		'{"batch":"b","done":true}' | seed agent 4
	printf '%s\n' "$hello" '{"oom":true,"error":"x"}' '{"segment":"q1","ok":true,"file":"../q1.wav"}' '{"batch":"b","done":false,"error":"y"}' \
		'{"segment":"q2","ok":true,"file":"link.wav"}' '{"batch":"b","done":true}' '{"oom":true}' '{"oom":true}' '{"oom":true}' | seed agent 4
	printf '%s\n' "$hello" '!{"op":"batch","id":"c","estimate_s":2,"segments":[{"id":"q4","file":"q3.txt"},{"id":"q5"}]}' \
		'{"segment":"q1","ok":true,"file":"none.wav"}' '!{"op":"revoke"}' '{"batch":"b","done":true}' '!{"op":"handover","lease_s":60}' \
		'{"segment":"q3","ok":true,"file":"q1.wav","sha256":"'"$(printf '%064d' 0)"'"}' '!{"op":"takeover"}' '!{"op":"revoke"}' \
		'{"batch":"b","done":true}' | seed agent 4
	printf '%s\n' '{"error":"no model"}' '{"hello":1,"protocol":9}' | seed agent 4
	printf 'NVIDIA GeForce RTX 4090\nTesla "T4"\n97, 2000\n3, 1\n' | seed agent 5
	printf '\0\044\0\0\0\0\0\0\0\0\0\0\0\2ab\0\0\0\0\0\0\0\2\0\0\0\1d\0\0\0\0\0\0\0\3\0\0\0\0\0\0\0\0\0\0\0\1\0\0\0\1c' | seed agent 6
	printf '{"path":"runs/r1/a/q1.wav","offset":0,"length":-1}\n{"path":"."}\n{}\n' | seed agent 7
}
seeds_config() {
	local f
	for f in config/examples/*/burst.cfg; do seed config <"$f"; done
	printf '%s\n' 'provider = ["runpod", "modal"]; gpu = ["L40S:2", "none"]; pods = 3; spot = true; on_exit = "x"; volume = { name = "v"; size_gb = 20; };' \
		'caps = { max_cost = 2.5; max_price_per_hour = 1; max_duration = "2h"; }; pod = { cpu = 2; image = "a/b:1"; };' \
		'job = { type = "tts"; name = "n"; engine = "espeak"; input = "a.txt"; voice = "en"; check = { tries = 2; silence = 1.5; }; join = { gap = 1; loudness = -18.5; }; };' \
		'providers = { runpod = { cloud = "ANY"; datacenters = ["EU-RO-1"]; bid = 0.3; api_url = "https://x"; }; modal = { app = "b"; gpu_prices = ["L40S=1"]; }; };' | seed config
	printf '%s\n' 'job = { type = "command"; run = "make"; outputs = ["*.o"]; env = ["A=1"]; hang = "3m"; };' | seed config
}
seeds_epub() {
	local package='<package><metadata><title>T &amp; U</title><creator>A</creator><date>1897-05-26</date><meta name="cover" content="p"/></metadata><manifest><item id="n" href="nav.xhtml" properties="nav" media-type="application/xhtml+xml"/><item id="t" href="toc.ncx" media-type="application/x-dtbncx+xml"/><item id="a" href="x/../a.xhtml" media-type="application/xhtml+xml"/><item id="p" href="c.png" media-type="image/png"/></manifest><spine><itemref idref="a"/><itemref idref="n" linear="no"/></spine></package>'
	local nav='<html><nav epub:type="toc"><ol><li><a href="a.xhtml">One</a></li><li><a href="a.xhtml#b%20">Two&#160;</a></li></ol></nav></html>'
	local ncx='<!DOCTYPE ncx [<!ENTITY a "b">]><ncx><navMap><navPoint><navLabel><text>N&a;</text></navLabel><content src="a.xhtml#b"/></navPoint></navMap></ncx>'
	local page='<html><head><title>t</title></head><body><h1>One</h1><p>Text<sup><a href="#n">1</a></sup> &eacute;<br/><span epub:type="pagebreak"/></p><ul><li>a<li>b</ul><table><tr><td>c<td>d</table><hr><pre>x</pre><a id="b "/>End.<aside class="footnote">n</aside><div class="endnotes"><li>m</div></body></html>'
	local drm='<encryption><EncryptedData><EncryptionMethod Algorithm="http://www.idpf.org/2008/embedding"/></EncryptedData></encryption>'
	printf '\377\377%s\377%s\377\377%s\377\211PNG....' "$package" "$nav" "$page" | seed epub 1
	printf '\377%s\377%s\377\377%s\377%s' "$drm" "$package" "$ncx" "$page" | seed epub 1
	python3 tests/e2e/epub.py "$out/seeds/epub.tmp" && seed epub 0 <"$out/seeds/epub.tmp"
	rm -f "$out/seeds/epub.tmp"
	printf '%s' "$page" | seed epub 2
	printf '1\n00:00:01,000 --> 00:00:02,500\n<i>Hello</i> &amp;\n\nWEBVTT\n\nNOTE x\n\n00:03.5 --> 00:04.0 align:start\n<v R>there {\\an8}.\n' | seed epub 3
	printf 'Tom &amp; <b>J</b>&#39;s a < b <br/> <break time="1s"/> <name> &foo;' | seed epub 4
	# with numbers of lists (32), and with a speaker (64)
	printf '<ol reversed type=a><li value=3>x<ol start=-2><li>y</ol><li>z</ol>' | seed epub 32
	printf '<p>A: One<br>A: Two</p>' | seed epub 67
	printf 'A: <b>One</b> &amp;\nA: Two<br>three' | seed epub 64
	printf '1\n00:00:01,000 --> 00:00:02,500\nA: One\nA: Two\n' | seed epub 68
}
seeds_grpc() {
	local policy='\x08\x08\x12\x04slow\x1a\x33\x0a\x2atype.modal.com/modal.client.RPCRetryPolicy\x12\x05\x0d\0\0\0\x3f'
	printf '\x01\x02\xff\0\0\0\0\x03abc\0\0\0\0\0\0\0\0\0\x02de' | seed grpc 0
	printf '\0\xff\xff\0\0\0\0\x03abc' | seed grpc 0
	printf 'HTTP/2 200\r\ncontent-type: application/grpc\r\ngrpc-status: 5\r\ngrpc-message: no%%20such%%C3%%BC' | seed grpc 1
	printf 'HTTP/2 200\r\ngrpc-status: 8\r\ngrpc-status-details-bin: %s' "$(printf "$policy" | base64 -w 0)" | seed grpc 1
	printf "$policy" | seed grpc 2
}
# What calls ask for is in the first byte (enum flavour of fuzz_http.c); the second is the size of the pieces.
seeds_http() {
	local ok='HTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 2026 08:49:37 GMT\r\nContent-Length: 5\r\n\r\nhello'
	local chunks='HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\n\r\n3\r\nabc\r\n0a;x=y\r\n0123456789\r\n0\r\nX: y\r\n\r\n'
	local flavour
	for flavour in '\0' '\1' '\2' '\6' '\020' '\040' '\100' '\200' '\202'; do
		printf "$flavour\1$ok" | seed http
		printf "$flavour\377$chunks" | seed http
	done
	printf '\6\1HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 5-9/10\r\nContent-Length: 5\r\n\r\nworld' | seed http
	printf '\0\1HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n%b' "$ok" | seed http
	printf '\0\1HTTP/1.1 302 Found\r\nLocation: file:///etc/passwd\r\nContent-Length: 0\r\n\r\n' | seed http
	printf '\0\1HTTP/1.1 429 \033[2J\r\nRetry-After: 99999999999\r\nRateLimit: "minute";r=0;t=44\r\n\r\n' | seed http
	printf '\0\1HTTP/0.9\r\n' | seed http
	printf '\0\1not HTTP' | seed http
	printf '\0\1HTTP/200 OK\r\nContent-Length: 2\r\n\r\nok' | seed http
	{ printf '\0\377HTTP/1.1 200 OK\r\nX: '; head -c 120000 /dev/zero | tr '\0' x; printf '\r\n\r\n'; } | seed http
	# HTTP/2: SETTINGS, its acknowledgement, a head with :status 200 and an end, then GOAWAY
	local settings='\0\0\0\4\0\0\0\0\0' ack='\0\0\0\4\1\0\0\0\0'
	printf '\10\1%b%b\0\0\1\1\5\0\0\0\1\x88\0\0\x08\7\0\0\0\0\0\0\0\0\1\0\0\0\0' "$settings" "$ack" | seed http
	printf '\11\377%b%b\0\0\1\1\4\0\0\0\1\x88\0\0\5\0\0\0\0\0\1hello\0\0\4\3\0\0\0\0\1\0\0\0\2' "$settings" "$ack" | seed http
}
seeds_input() {
	local words='One line. And\n\nanother, of a second paragraph!\n'
	printf "$words" | seed input 0
	printf "$words" | seed input 1
	head -n 3 config/examples/quiz/quiz.jsonl | seed input 2
	printf 'id,text,voice\nq1,"Hello, ""you""",en\nq2,Bye,de\n' | seed input 3
	printf 'id\ttext\nq1\tHello\n' | seed input 4
	printf '{"id":"q","text":"A: One\\nA: Two"}\n' | seed input 128 # with a speaker
	seed input 5 <config/examples/book/lighthouse.md
	seed input 5 <tests/e2e/book.md # footnotes, tables, HTML, lists within lists
	printf '{"id":"q1","text":"Hello","file":"q1.wav","sha256":"%064d","bytes":44,"seconds":1.0,"sample_rate":22050,"key":"%064d","provider":"local","gpu":"L4","batch":"f-0","attempt":"a","tries":2,"suspect":true,"reason":"odd"}\n' 0 1 |
		seed input 6
	wav | seed input 7
	{ # two marked words
		wav | sed 's/RIFF\x64/RIFF\xec/'
		printf 'cue \x34\0\0\0\x02\0\0\0\x01\0\0\0\x02\0\0\0data\0\0\0\0\0\0\0\0\x02\0\0\0\x02\0\0\0\x09\0\0\0data\0\0\0\0\0\0\0\0\x09\0\0\0'
		printf 'LIST\x44\0\0\0adtlltxt\x14\0\0\0\x01\0\0\0\x05\0\0\0rgn \0\0\0\0\0\0\0\0labl\x06\0\0\0\x01\0\0\0W\0labl\x08\0\0\0\x02\0\0\0\xc3\xa9.\0'
	} | seed input 7
	wav 3 4 20 | seed input 7
	wav 3 8 40 | seed input 7
	wav 1 4 20 | seed input 7
	printf 'out/**/[a-c]*.mp?out/x/a1.mp4' | seed input 8
}
seeds_ledger() {
	# rows as they would be; with texts, numbers, fractions, bytes and nothing where others belong; a file with changed bytes
	printf '\0%b%b%b%b%b' "\\0$(printf '\\0%.0s' {1..23})" "\\1$(printf '\\0%.0s' {1..45})" "\\2$(printf '\\0%.0s' {1..13})" \
		"\\3$(printf '\\0%.0s' {1..8})" "\\4$(printf '\\0%.0s' {1..2})" | seed ledger
	printf '\0%b%b' "\\0\\0\\2\\010a\\033[2J\\377\\342$(printf '\\0%.0s' {1..9})\\1\\177\\377\\377\\377\\377\\377\\377\\377\\1\\200\\0\\0\\0\\0\\0\\0\\0$(printf '\\0%.0s' {1..12})" \
		"\\1\\2\\2ab\\0\\0\\3\\2\\0a\\4\\177\\360\\0\\0\\0\\0\\0\\0\\5$(printf '\\0%.0s' {1..40})" | seed ledger
	printf '\1\020\0\377\0\144\5' | seed ledger
	printf '\1\020\140\117\225\177\021\074\0\0\1\020\117\0\140\021\0\074\225\177\377\144\140\0\5' | seed ledger # a version below nothing
}
seeds_command() {
	local s='\037' name=burst-0011223344556677 marker=burst1.aa.r1.0011223344556677.1800000000
	local job="20${s}$name${s}RUNNING${s}None${s}1795852906${s}1795852908${s}1795852999${s}n1${s}main${s}gres:gpu:l40s:1${s}me${s}/x/pods/$marker${s}$marker\\n"
	local part="main*${s}gpu:l40s:4(S:0-1),gpu:2${s}mix${s}10:00:00${s}up${s}64000\\n"
	local weights="=flags${s}SMALL_RELATIVE_TO_TIME,MAX_TRES\\n=weights${s}main${s}DefMemPerCPU=4000${s}CPU=1.5,Mem=0.25G,GRES/gpu=10.0,GRES/gpu:l40s=2\\n"
	local ended="sacct${s}91${s}${job/RUNNING/CANCELLED by 1000}"
	# shellcheck disable=SC2059 # their escapes are meant
	{
		printf "\\1\\0$part" | seed command 0
		printf "\\1\\0$part$weights" | seed command 0
		printf '\003\0cache\nother\n' | seed command 0
		printf "\\5\\0$job" | seed command 0
		printf "\\7\\0$job" | seed command 0
		printf '\010\0taken\n' | seed command 0
		printf "\\6\\0$ended" | seed command 0
		printf "\\11\\0${job}${ended/gres:gpu:l40s:1/billing=11,cpu=1,gres\/gpu:l40s=1}" | seed command 0
		printf '\015\0burst: fetched 0' | seed command 0
		printf "\\16\\0folder${s}5${s}1${s}1795852906${s}runs\\n" | seed command 0
		printf '\006\001slurm_load_jobs error: Invalid job id specified\n' | seed command 0
		printf '\005\0{"items":[{"metadata":{"name":"burst-0011223344556677","creationTimestamp":"2026-11-28T00:00:00Z","labels":{"burst.dev/machine":"aa","burst.dev/run":"r1","burst.dev/attempt":"0011223344556677"},"annotations":{"burst.dev/hard-end":"1800000000"}},"status":{"phase":"Running","conditions":[{"type":"PodScheduled","status":"True","lastTransitionTime":"2026-11-28T00:00:01Z"}],"containerStatuses":[{"state":{"running":{}}}]}}]}' | seed command 1
		printf '\001\0{"items":[{"metadata":{"labels":{"nvidia.com/gpu.product":"NVIDIA-L40S"}},"status":{"allocatable":{"nvidia.com/gpu":"2"}}}]}' | seed command 1
		printf '\007\001Error from server (NotFound): pods "x" not found' | seed command 1
		printf '\007\0Welcome\nburst-host: absent Linux x86_64\n\x1eburst-host: kept\n\x1e{"pods":[]}' | seed command 2
		printf '\001\0{"left":1,"sandbox_works":true,"gpus":[{"uuid":"GPU-1","name":"NVIDIA L40S","mib":46068,"free":true}]}' | seed command 2
		printf '\010\001{"error":{"kind":"not_found","message":"no such pod"}}' | seed command 2
	}
}
seeds_local() {
	local pod='{"id":"local-1","name":"burst-a","marker":{"machine":"m","run":"r","attempt":"a","hard_end_s":9},"state":"running","host":"127.0.0.1","port":22,"user":"u","gpu":"none","region":"here","spot":false,"price":690000,"detail":"","created_ms":5,"started_ms":6,"ended_ms":0,"volume":"v","namespaces":true,"supervisor":{"pid":5,"start":6,"boot":"b"},"init":{"pid":7,"start":8,"boot":"b"}}'
	printf '\0{"text":"ok: namespaces\\nwarn: x"}' | seed local 0
	printf '\0{"offers":[{"id":"local","gpu":"L4","region":"here","gpus":1,"vram_gb":24,"spot":true,"price":5,"stock":"high"}]}' | seed local 1
	printf '\0{"volumes":[{"name":"cache","used_bytes":5,"size_gb":1}]}' | seed local 2
	printf '\0{"pods":[%s]}' "$pod" | seed local 5
	printf '\0{"pods":[%s]}' "$pod" | seed local 6
	printf '\0{"pods":[%s,%s]}' "$pod" "${pod//local-1/local-2}" | seed local 7
	printf '\1{"error":{"kind":"not found","message":"no such pod"}}' | seed local 8
	printf '\1{"error":{"kind":"not found","message":"no such pod"}}' | seed local 6
	printf '\211' | seed local 5
	printf '\0{"billed_ms":5,"cost":6}' | seed local 9
	printf '\0{"entries":[{"name":"a","folder":true,"bytes":1,"files":2,"changed_s":3}]}' | seed local 14
	printf '\0%s' "$pod" | seed local 18
}
seeds_speaker() {
	printf '{"batch":"b1","segments":[{"id":"q1","file":"q1.wav","text":"a \\"b\\" \\u00e9\\ud83d\\ude00","voice":"en","options":{"speed":175,"gap":"5"}},{"id":"q2"}]}\n' | seed speaker
	printf '{"id":"q1","text":"t","x":[1,{"a":"]}"}],"file":null,"voice":"de+f3"}' | seed speaker
}
seeds_ssh() {
	local lists='' i
	for i in curve25519-sha256 ssh-ed25519 aes128-ctr aes128-ctr hmac-sha2-256 hmac-sha2-256 none none '' ''; do
		lists+=$(printf '\\0\\0\\0\\x%02x%s' ${#i} "$i")
	done
	# the handshake: words before the version, a version, methods (20, 16 bytes, ten lists), padding
	printf '\0\377hello\r\nSSH-2.0-x\r\n\0\0\0\xa4\x06\x14%b%b\0\0\0\0\0%b' 0123456789abcdef "$lists" '\0\0\0\0\0\0\0\0\0' | seed ssh
	printf '\0\3SSH-1.5-x\n' | seed ssh
	printf '\0\377SSH-2.0-x\r\n\377\377\377\377\377' | seed ssh
	printf '\0\377GET / HTTP/1.1\r\n' | seed ssh
	{ printf '\0\377'; head -c 300000 /dev/zero; } | seed ssh
	# one that is up, runs a command, reads, writes and ends; with waits, refusals and an owner that acts
	printf '\1\1%b%b' '\0\1\1\2\0\1' "$(printf '\\0\\%o' {3..120})" | seed ssh
	printf '\1\0%b%b' '\0\1\1\2\0\1' "$(printf '\\%o\\2\\240' {1..150})" | seed ssh
	printf '\1\1%b%b' '\310\0\1\1\2\0\1' "$(printf '\\%o\\17\\37' {140..255})" | seed ssh
}
seeds_match() {
	printf '%s\n%s' 'out/**/*.mp[0-9]' 'out/a/b/x.mp4' | seed match 0
	printf '%s\n%s' '**/?[!a-c]*\*[]\]x]' 'd/e/ädxx*]' | seed match 0
	printf '%s\n%s' '0a*b**c/**/?d' 'axxb/yc/d/ed' | seed match 1
	printf '%s\n%s' '1a/**/b*/**' 'a/x/bc/d' | seed match 1
	printf 'a/b.o\n# no\n*.o\n!b.o\n/a/**\n[[:alpha:]]*/\n\\!x\\ \nd/**/e  \n' | seed match 2
}
seeds_modal() {
	local token='\0\3\0\x0a\1t'
	# a sandbox is rented
	printf '\5\2'"$token"'\0\6\0\x0a\4ap-1\0\7\0\x12\5\x12\3\x0a\x012\0\x0a\0\x0a\4im-1\x12\2\x08\1\0\6\0\x0a\4st-1\0\6\0\x0a\4sb-1' | seed modal
	# an image is built, and one is looked for
	printf '\x11\2'"$token"'\0\6\0\x0a\4ap-1\0\7\0\x12\5\x12\3\x0a\x012\0\6\0\x0a\4im-1\0\x0e\0\0\0\0\x0a\x12\4\x0a\2hi\x0a\2\x08\1' | seed modal
	printf '\5\x12\0\6\0\x0a\4st-1\xaf\0\0\xaf\0\0\0\x0a\0\x0a\4im-1\x12\2\x08\1\0\6\0\x0a\4st-1\0\6\0\x0a\4sb-1' | seed modal
	# an image of one's own: the password of its registry, packages, an agent; and one with what is known of it
	printf '\x11\200'"$token"'\0\6\0\x0a\4ap-1\0\x0b\0\x12\x09\x12\7\x0a\0052025a\0\6\0\x0a\4st-1\0\6\0\x0a\4im-1\0\x0e\0\0\0\0\x0a\x12\4\x0a\2hi\x0a\2\x08\1' | seed modal
	printf '\x11\220\0\0\0\0\6\0\x0a\4im-1\0\x0e\0\0\0\0\x0a\x12\4\x0a\2hi\x0a\2\x08\1' | seed modal
	# a token that is over already, again and again; one that says when it will be
	local over='\0\x15\0\x0a\x13a.eyJleHAiOjE3MH0.b' later='\0\x1e\0\x0a\x1ca.eyJleHAiOjQwMDAwMDAwMDB9.b'
	printf '\7\0'"$over$over$over$over$over"'\0\0\0\0\0\0' | seed modal
	printf '\7\0'"$later"'\0\0\0\0\0\0' | seed modal
	printf '\7\0'"$later"'\260\0\0'"$over"'\0\0\0' | seed modal
	# what nobody has, alone and beside others
	printf '\1\301'"$token"'\0\x12\0\x0a\x10\x0a\x08gpu_l40s\x12\0042.00' | seed modal
	printf '\1\140'"$token"'\0\x12\0\x0a\x10\x0a\x08cpu_core\x12\0042.00' | seed modal
	# one is listed, runs and has an address
	printf '\7\0'"$token"'\0\x69\0\x0a\x67\x0a\4sb-1\x19\0\0\0\0\0\0\x59\x40\x32\x12\x0a\x0dburst-machine\x12\1m\x32\x0e\x0a\x09burst-run\x12\1r\x32\x12\x0a\x0dburst-attempt\x12\1a\x32\x13\x0a\x0eburst-hard-end\x12\0019\x22\x09\x11\0\0\0\0\0\0\x59\x40\0\0\0\0\x0b\0\x12\x09\x1a\1h\x20\x16\x28\x16' | seed modal
	printf '\x0d\0'"$token"'\0\x0d\0\x0a\x09https://a\x10\x09' | seed modal
	printf '\1\1'"$token"'\0\x12\0\x0a\x10\x0a\x08gpu_l40s\x12\0042.00' | seed modal
	# a file is put on a volume: two blocks are missing, one address is over, then all is there
	printf '\x0c\1'"$token"'\0\x1c\0\x0a\x0b\x1a\x09https://a\x0a\x0d\x10\1\x1a\x09https://b\0\1\0z\2\1\0z\0\x0f\0\x0a\x0d\x10\1\x1a\x09https://c\0\1\0z\0\0\0' | seed modal
	# a folder is listed, measured, removed; volumes are listed
	printf '\x0e\0'"$token"'\0\x0f\0\0\0\0\x0b\x0a\x09\x0a\3a/b\x10\1\x20\7' | seed modal
	printf '\x10\0'"$token"'\0\x0f\0\0\0\0\x0b\x0a\x09\x0a\3a/b\x10\1\x20\7' | seed modal
	printf '\x0f\0'"$token"'\0\x0f\0\0\0\0\x0b\x0a\x09\x0a\3a/b\x10\1\x20\7\0\0\0' | seed modal
	printf '\3\0'"$token"'\0\x0f\0\x0a\x0d\x0a\1v\x12\4vo-1\x22\2\x08\2\0\x0f\0\0\0\0\x0b\x0a\x09\x0a\3a/b\x10\1\x20\7' | seed modal
}
# One reply: its status is the one at this place of fuzz_runpod.c's list, 0: 200.
reply() {
	printf "\\$(printf '%03o' "$1")\\$(printf '%03o' $((${#2} & 255)))\\$(printf '%03o' $((${#2} >> 8)))"
	printf '%s' "$2"
}
seeds_vast() { # statuses are those of fuzz_vast.c: 0 is 200, 3 is 400, 11 is 429
	local one='{"id":30000001,"actual_status":"running","intended_status":"running","cur_state":"running","label":"burst-00000000000000f1/00000000000000aa/r/1800000000","gpu_name":"A100 SXM4","gpu_ram":81920,"is_bid":true,"dph_total":0.4,"start_date":1795216200.5,"public_ipaddr":"203.0.113.9","ports":{"22/tcp":[{"HostPort":"43210"}]},"extra_env":[["BURST_MARKER","burst-00000000000000f1/00000000000000aa/r/1800000000"]]}'
	local offers='{"offers":[{"id":7000001,"gpu_name":"RTX 4090","gpu_ram":24564,"num_gpus":1,"dph_base":0.4,"min_bid":0.2,"storage_cost":0.18,"inet_up_cost":0.01,"geolocation":"Somewhere, SE","cpu_cores_effective":16,"cpu_ram":64000,"rentable":true,"end_date":1900000000.5}]}'
	local flavour
	for flavour in '\0' '\01' '\03' '\013' '\025'; do { printf "$flavour"; reply 0 "$offers"; reply 0 "$offers"; } | seed vast 1; done
	{ printf '\0'; reply 0 '{"success":true,"new_contract":30000001}'; } | seed vast 5
	{ printf '\02'; reply 3 '{"success":false,"error":"invalid_price","msg":"low","new_contract":30000009}'; reply 0 '{"success":true}'; } | seed vast 5
	{ printf '\0'; reply 11 'API requests too frequent: endpoint threshold=4.5'; } | seed vast 5
	{ printf '\0'; reply 0 "{\"instances\":$one}"; } | seed vast 6
	{ printf '\0'; reply 0 "{\"success\":true,\"instances\":[$one],\"total_instances\":2,\"next_token\":\"a\"}"; reply 0 "{\"instances\":[$one],\"total_instances\":2}"; } | seed vast 7
	{ printf '\0'; reply 0 '{"success":true}'; } | seed vast 8
	{ printf '\04'; reply 0 '{"results":[{"source":"instance-30000001","amount":0.25,"items":[{"type":"bwd","amount":0.04}]}],"next_token":null}'; } | seed vast 9
	{ printf '\0'; reply 0 '{"id":1,"balance":0,"credit":25.5}'; } | seed vast 10
	{ printf '\0'; reply 0 "{\"instances\":{\"status_msg\":\"manifest unknown\"}}"; reply 0 '{"result_url":"https://s3.example/x"}'; reply 5 x; reply 0 'a line'; } | seed vast 11
}
seeds_runpod() {
	local dc='"dataCenters":[{"id":"EU-RO-1","availability":"LOW"},{"id":"US-KS-2","availability":"HIGH"},{"id":"US-TX-3","availability":"NONE"}]'
	local gpus cpus floors none
	gpus='{"gpus":[{"id":"NVIDIA L40S","name":"L40S","manufacturer":"NVIDIA","memory":48,"price":{"secure":0.86,"community":0.7},"maxCount":{"secure":8},"availability":"HIGH",'$dc'},{"id":"NVIDIA GeForce RTX 4090","name":"RTX 4090","memory":24,"price":{"secure":0.69,"community":0.34},"availability":"LOW",'$dc'}]}'
	cpus='{"cpus":[{"id":"cpu3c","vcpu":{"min":2,"max":32},"ramGbPerVcpu":2.5,"price":{"securePerVcpu":0.04},"availability":"HIGH",'$dc'},{"id":"cpu3m","vcpu":{"min":2,"max":8},"ramGbPerVcpu":16,"price":{"securePerVcpu":0.06},"availability":"MEDIUM"}]}'
	floors='{"data":{"gpuTypes":[{"id":"NVIDIA L40S","lowestPrice":{"minimumBidPrice":0.3,"uninterruptablePrice":0.86,"stockStatus":"Low"}},{"id":"NVIDIA GeForce RTX 4090","lowestPrice":{"minimumBidPrice":0.1,"stockStatus":"High"}}]}}'
	none=${gpus//'"HIGH"'/'"NONE"'} none=${none//'"LOW"'/'"NONE"'}
	# offers: what replies say of them, by what is asked for (the bits of fuzz_runpod.c: 1 wishes, 2 spot, 4 large, 8 one of them,
	# 16 beside a volume, 32 a choosy config, 64 much memory)
	local flavour
	for flavour in '\011' '\015' '\031' '\051' '\111'; do { printf "$flavour"; reply 0 "$cpus"; } | seed runpod 1; done
	for flavour in '\013' '\0' '\020' '\040' '\060' '\113' '\133'; do
		{ printf "$flavour"; reply 0 "$gpus"; reply 0 "$floors"; reply 0 "$gpus"; reply 0 "$floors"; } | seed runpod 1
		{ printf "$flavour"; reply 0 "$none"; reply 0 "$floors"; reply 0 "$none"; reply 0 "$floors"; } | seed runpod 1
	done
	for flavour in '\1' '\21' '\41' '\61' '\101'; do
		{ printf "$flavour"; reply 0 "$gpus"; reply 0 "$gpus"; reply 0 "$none"; reply 0 "$gpus"; reply 0 "$cpus"; } | seed runpod 1
		{ printf "$flavour"; reply 0 "$none"; reply 0 "$none"; reply 0 "$none"; reply 0 "$none"; reply 0 "${cpus//'"max":'/'"max":-'}"; } | seed runpod 1
		{ printf "$flavour"; reply 0 "${gpus//L40S/L40}"; reply 0 "${gpus//4090/4091}"; reply 0 "$none"; reply 13 ''; reply 0 "$cpus"; } | seed runpod 1
	done
	{ printf '\013'; reply 0 "${gpus//L40S/L40}"; reply 0 "$floors"; reply 0 "${gpus//L40S/L40}"; reply 0 "$floors"; } | seed runpod 1
	{ printf '\113'; reply 0 "${gpus//48/24}"; reply 0 "$floors"; reply 0 "${gpus//48/24}"; reply 0 "$floors"; } | seed runpod 1
	{ printf '\0'; reply 0 "${gpus//NVIDIA/AMD}"; reply 0 "${gpus//'"price"'/'"cost"'}"; } | seed runpod 1
	# a bid, a filter and a credential in what is asked of a create
	{ printf '\046'; reply 1 '{"id":"pod1","name":"burst-a","desiredStatus":"RUNNING","costPerHr":0.2}'; } | seed runpod 5
}
# A pod of the given flavour; its lines as fuzz_pod.c says
pod_hello='{"ev":"hello","agent":"0","protocol":1,"began_s":1790000000,"t":1,"next":1,"switch":"ok exit","gpus":[{"name":"L4"}],"zstd":false,"workers":0,"running":[]}'
pod_ready='{"n":1,"t":5,"ev":"worker","w":0,"state":"ready","engine":"e","version":"1","max_batch":4,"gpu":"L4"}'
pod_segment() { # pod_segment NUMBER ID FILE
	printf '{"n":%d,"t":%d,"ev":"segment","id":"%s","batch":"f-0","try":1,"ok":true,"file":"%s","path":"runs/r1/a/%s","bytes":16,"sha256":"\001","seconds":0.5,"rate":8000,"ms":3}\n' \
		"$1" "$((1$1))" "$2" "$3" "$3"
}
seeds_pod() {
	local files words='\u001b[2J\u009b31m\u202e'
	files=$(pod_segment 11 q4 q4.wav; pod_segment 12 q3 d/q3.wav; pod_segment 13 q2 q2.wav; pod_segment 14 q1 q1.wav)
	# all is rendered and comes home; two pods; with a connection that breaks on the way; what is set up first
	printf '\0\0B\n%s\n%s\n{"n":2,"t":9,"ev":"batch","id":"f-0","state":"started","w":0,"segments":2}\n%s\nT1\ng\ng\ng\ng\nT2\n{"n":30,"t":99,"ev":"batch","id":"f-0","state":"done","busy_ms":9}\n{"n":31,"t":99,"ev":"batch","id":"f-1","state":"done","busy_ms":9}\nT4\n' \
		"$pod_hello" "$pod_ready" "$files" | seed pod
	printf '\10\3B\n%s\n%s\n2\nT3\nB\n%s\n%s\nT1\n1\n%s\ng\ng\n2\n%s\ng\ng\nT5\n' "$pod_hello" "$pod_ready" "$pod_hello" "$pod_ready" "$files" "$files" | seed pod
	printf '\200\1e some words\nchello from a shell\nb\n%s\n%s\n%s\ng\nf{"path":"x","off\nL\nT3\nB\n{"ev":"hello","switch":"unproven http 200","workers":1,"running":["q1","q2"],"next":13,"t":50}\n%s\ng\ng\ng\nK3\nT4\nB\n%s\n' \
		"$pod_hello" "$pod_ready" "$files" "$files" "$pod_hello" | seed pod
	printf '\140\0B\n%s\nX0\n{"n":1,"t":3,"ev":"setup","ok":true,"ms":5}\n{"n":2,"t":4,"ev":"install","ok":true}\n{"n":3,"t":5,"ev":"start","ok":false}\n{"n":4,"t":5,"ev":"worker","w":0,"state":"exited","code":1,"error":"gone"}\n{"n":5,"t":5,"ev":"worker","w":1,"state":"failed","error":"no"}\n%s\n%s\ng\ng\ng\ng\nT3\n' \
		"$pod_hello" "$pod_ready" "$files" | seed pod
	# a file that is announced otherwise than it comes, one that is not there, one that is cut
	printf '\0\0B\n%s\n%s\n%s\nF{"path":"x","error":"no such file"}\nF{"path":"x","offset":0,"bytes":10}\nT3\nF{"path":"x","offset":0,"bytes":16}\nfsixteen of thesE\nF{"offset":0,"bytes":16}\nfsixt\nk\nT3\ng\nk256\ng\n' \
		"$pod_hello" "$pod_ready" "$files" | seed pod
	# other bytes than were announced; words that would drive a terminal
	printf '\0\0B\n%s\n%s\n%s\nT1\nF{"path":"x","offset":0,"bytes":16}\nfsixteen of thesE\nT3\ng\ng\n' "$pod_hello" "$pod_ready" "$files" | seed pod
	printf '\0\0e\033[2J\nB\n%s\n%s\n{"ev":"worker","w":0,"state":"exited","code":1,"error":"%s"}\n{"ev":"log","line":"%s"}\n{"ev":"batch","id":"%s","state":"retry","reason":"%s"}\n{"ev":"segment","id":"q1","ok":false,"reason":"%s","error":"%s"}\nT1\n{"ev":"fatal","error":"%s"}\n' \
		"${pod_hello/L4/$words}" "$pod_ready" "$words" "$words" "$words" "$words" "$words" "$words" "$words" | seed pod
	# a command: outputs as they come, one name twice, a code, words
	printf '\3\0B\n%s\n{"n":1,"t":5,"ev":"worker","w":0,"state":"ready"}\n{"n":2,"t":6,"ev":"log","id":"q1","line":"some words"}\n{"n":3,"t":7,"ev":"output","id":"q1","name":"out/a.txt","path":"runs/r1/a/out/q1/a.txt","bytes":16,"sha256":"\001"}\ng\n{"n":4,"t":8,"ev":"output","id":"q2","name":"out/a.txt","path":"runs/x","bytes":16,"sha256":"\001"}\n{"n":5,"t":9,"ev":"segment","id":"q1","ok":true,"code":0,"ms":5,"outputs":1}\n{"n":6,"t":9,"ev":"segment","id":"q3","ok":false,"reason":"worker","code":3,"error":"no"}\n{"n":7,"t":9,"ev":"output","id":"q4","name":"out/b","path":"runs/y","bytes":16,"sha256":"\001"}\n{"n":8,"t":9,"ev":"segment","id":"q4","ok":true,"code":0}\ng\nT3\n' "$pod_hello" | seed pod
	# it is taken away, and its volume tells what it had finished
	printf '\4\0%s\nE{"n":31,"t":99,"ev":"fatal","error":"x"}\nB\n%s\n%s\nV\nL\nT5\n' "$(sed 's/^/E/' <<<"$files")" "$pod_hello" "$pod_ready" | seed pod
	# ... the same once it is durable, nothing having come home
	printf '\4\0%s\nB\n%s\n%s\n%s\n{"n":40,"t":200,"ev":"batch","id":"f-0","state":"done"}\n{"n":41,"t":200,"ev":"batch","id":"f-1","state":"done"}\n{"n":42,"t":201,"ev":"synced","turn":1,"ok":true}\nT4\n{"n":43,"t":202,"ev":"synced","turn":2,"ok":false}\nT4\n' \
		"$(sed 's/^/E/' <<<"$files")" "$pod_hello" "$pod_ready" "$(sed 's/"bytes":16/"bytes":9000000/' <<<"$files")" | seed pod
	# what it lacks is packed and sent, and not taken
	printf '\40\0B\n%s\n{"n":1,"t":3,"ev":"start","ok":false}\nW\nT1\nW\nwno room\nT1\nX1\nT5\nB\n%s\nW\nX0\n' "$pod_hello" "$pod_hello" | seed pod
	# the vendor lists another's pods, one too many, a twin; says odd things of one; does not answer
	printf '\0\0B\n%s\nP{"run":"r9","attempt":"b","machine":"m","hard_end":"99","state":2}\nT4\nP{"attempt":"c","machine":"m","hard_end":"99999999999999","state":2,"created":1700000000,"price":9,"gpu":"L4","region":"here"}\nT4\nP{"of":0,"state":2,"detail":"\\u001b[2J"}\nT4\n%s\n%s\ng\ng\ng\ng\nT4\n' \
		"$pod_hello" "$pod_ready" "$files" | seed pod
	printf '\10\0S{"state":3,"detail":"stopped"}\nT4\nR1\nS{"state":4,"detail":"no d\\u001b[2Jriver"}\nT4\nR0\nS{"state":5,"end":6,"detail":"no image"}\nT5\nB\n%s\nr0\nT4\nS{"state":5,"preempted":true}\nT4\nR3\nr1\nT5\nS{"state":2,"price":9000000,"port":22}\nT4\nB\n%s\n%s\n%s\ng\ng\nT5\n' \
		"$pod_hello" "$pod_hello" "$pod_ready" "$files" | seed pod
	# handed over; what else it may say
	printf '\24\0B\n%s\n%s\n{"n":2,"t":6,"ev":"mode","mode":"detached"}\n%s\n{"n":20,"t":7,"ev":"synced","turn":1,"ok":true}\n{"n":21,"t":7,"ev":"revoked","ids":["f-1","f-2"]}\n{"ev":"switch","switch":"bad http 403"}\n{"n":22,"t":8,"ev":"batch","id":"f-1","state":"retry","reason":"oom"}\n{"ev":"usage","gpu":5}\n{"n":23,"t":9,"ev":"segment","id":"q1","ok":false,"reason":"poison","error":"x"}\n{"n":24,"t":9,"ev":"segment","id":"q2","ok":false,"reason":"mismatch","error":"x"}\n{"n":25,"t":9,"ev":"fatal","error":"full"}\nU\nT6\n' \
		"$pod_hello" "$pod_ready" "$files" | seed pod
}
seeds_pull() {
	printf 'pulling image a/b:1\npulling: 41.7 %%\n' | seed pull
	printf '3f4a: Downloading [==>  ]  10MB/40MB\n3f4a: Pull complete\n77aa: Extracting [>  ] 30kB/60MiB\nimage a/b:1 pulled\n' | seed pull
}
seeds_receive() {
	printf '\0b/c.wav\na\144a\144f\0' | seed receive
	printf '\53a\na\12r\62d\1a\377f\0k\0' | seed receive
	printf '\11l/x\na\377f\0' | seed receive
	printf '\6a\nx\5f\0d\0a\377f\0k\0' | seed receive
	printf '\20../e\n' | seed receive
	printf '\20b\na\310f\0k\0' | seed receive
	printf '\0q\nr\144r\0r\62r\226f\0d\1' | seed receive
}
seeds_text() {
	printf '1.5h' | seed text 0
	printf '%s' "\$12.345678" | seed text 1
	printf 'Sun, 06 Nov 1994 08:49:37 GMT' | seed text 2
	printf 'HTTP/2 429\r\nDate: Sun, 06 Nov 2026 08:49:37 GMT\r\nAge: 30\r\nRateLimit-Policy: "minute";q=60;w=60, "hour";q=3000;w=3600\r\nRateLimit: "minute";r=12;t=44, "hour";r=0;t=1812\r\n' | seed text 3
	printf '0 1790000001000 minute 60 60000 12 1790000044000 hour 3000 3600000 0 1790000044000' | seed text 4
	printf 'NVIDIA GeForce RTX 4090:2' | seed text 5
	printf 'de+f3' | seed text 6
	printf 'a/\303\244/b.c' | seed text 7
	printf 'a\033[31m\xe2\x80\xae\xff' | seed text 8
	printf '{"env":{"A":"hunter2hunter2"},"api_key":"x","a":[1,{"token":"t"}]}' | seed text 9
	printf 'https://a/b?key=x&token=hunter2hunter2' | seed text 9
	printf '12, b ,c' | seed text 10
	printf 'YWJj' | seed text 11
	printf '{"a":3.0,"b":[true,null,"\\u00e9"]}' | seed text 12
	{ printf '{"a":['; head -c 600000 /dev/zero | tr '\0' '0' | sed 's/0/0,/g'; printf '0]}'; } | seed text 12
}
seeds_toml() {
	printf '# a comment\n[default]\ntoken_id = "ak-1"\ntoken_secret = '"'"'as-2'"'"' # x\nactive = true\n[a.b]\nkey = "\\u00e9"\n' | seed toml
	printf 'apikey = "k"\n' | seed toml
	printf '%063d' 0 | seed toml
}
seeds_tree() {
	printf 'burst-tree 1 5 3 %064d\nf a 5 644 %064d\nd d\nl l a\n' 0 0 | seed tree
	printf 'burst-tree 1 0 0 %064d\n' 0 | seed tree
}

# ---- running ----
write_seeds() { # write_seeds NAME
	rm -rf "${out:?}/seeds/$1"
	mkdir -p "$out/seeds/$1"
	if declare -F "seeds_$1" >/dev/null; then "seeds_$1"; fi
	if [ -d "tests/fuzz/seeds/$1" ]; then cp -r "tests/fuzz/seeds/$1/." "$out/seeds/$1/"; fi
}
replay() { # replay NAME: one line to stdout
	local inputs=("$out/seeds/$1")
	write_seeds "$1"
	if [ -n "${REPLAYED:-}" ] && [ -d "$REPLAYED/$1" ]; then inputs+=("$REPLAYED/$1"); fi
	if timeout -k 10 300 "build/asan/replay/fuzz_$1" "${inputs[@]}" >"$out/$1.replay.log" 2>&1 </dev/null; then
		echo "ok fuzz/$1 ($(sed -n 's/^replay: //p' "$out/$1.replay.log"))"
	else
		grep -m 3 -E 'replay: |ERROR: |runtime error|Assertion' "$out/$1.replay.log" | cat
		echo "FAILED fuzz/$1: see $out/$1.replay.log"
		failed=1
	fi
}
fuzz() { # fuzz NAME: its log in build/fuzz/NAME.log, its status in NAME.status
	local name=$1
	write_seeds "$name"
	mkdir -p "$out/corpus/$name" "$out/found"
	local words=()
	if [ -e "tests/fuzz/$name.dict" ]; then words=("-dict=tests/fuzz/$name.dict"); fi
	timeout -k 10 $((seconds + 120)) "$out/fuzz_$name" -max_total_time="$seconds" -timeout=60 -rss_limit_mb=2048 \
		"${words[@]}" -print_final_stats=1 -artifact_prefix="$out/found/$name-" "$out/corpus/$name" "$out/seeds/$name" \
		>"$out/$name.log" 2>&1 </dev/null
	echo $? >"$out/$name.status"
}
stat_of() { sed -n "s/^stat::$2: *//p" "$out/$1.log" | tail -n 1; }
tell() {
	local name=$1 status rate reached bytes
	status=$(cat "$out/$name.status")
	rate=$(stat_of "$name" average_exec_per_sec)
	reached=$(sed -n 's/.* cov: \([0-9]*\) .*/\1/p' "$out/$name.log" | tail -n 1)
	printf 'fuzz: %-12s %9s executions %8s/s %6s edges' "$name" "$(stat_of "$name" number_of_executed_units)" "$rate" "$reached"
	if [ "$status" = 0 ]; then echo; return; fi
	bytes=$(sed -n 's/.*Test unit written to //p' "$out/$name.log" | tail -n 1)
	printf '  FAILED\n'
	grep -m 1 -E 'ERROR: |runtime error|Assertion|deadly signal|cannot|No such' "$out/$name.log" || tail -n 1 "$out/$name.log"
	echo "fuzz: $name: again with: $out/fuzz_$name ${bytes:-(no bytes were kept)}   (all it said: $out/$name.log)"
	failed=1
}

failed=0 names=("$@")
if [ ${#names[@]} = 0 ]; then
	for source in tests/fuzz/fuzz_*.c; do name=${source##*/fuzz_}; names+=("${name%.c}"); done
fi
if [ "$seconds" = replay ]; then
	for name in "${names[@]}"; do replay "$name"; done
	exit $failed
fi
for name in "${names[@]}"; do
	[ -x "$out/fuzz_$name" ] || { echo "fuzz: no such fuzzer: $name (tests/fuzz/fuzz_$name.c)" >&2; exit 2; }
done
for name in "${names[@]}"; do
	while [ "$(jobs -rp | wc -l)" -ge "$(nproc)" ]; do wait -n; done
	fuzz "$name" &
done
wait
for name in "${names[@]}"; do tell "$name"; done
exit $failed
