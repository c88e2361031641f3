#!/bin/bash
# report.sh - the HTML page of burst report: what is on it, that foreign text is no markup, and how a browser shows it.
. "$(dirname "$0")/lib.sh"

some_runs() {
	script_lines 30
	REHEARSE='gpu_prices = ["T4=0.59", "L4=0.80"];'
	config 'pods = 2; gpu = ["T4"];'
	burst run
	is "$STATUS" 0 "run ($(tail -n 2 err.txt))"
	rm -rf out
	burst run --pods 1 --gpu L4
	is "$STATUS" 0 "second run ($(tail -n 2 err.txt))"
}
drawn() { # drawn FILE: the page that its script draws, as FILE.drawn
	node "$ROOT/tests/e2e/dom.mjs" "$1" >"$1.drawn" 2>dom.err || complain "$1: $(grep -m 1 Error dom.err || tail -n 1 dom.err)"
}
is_sealed() { # is_sealed FILE [live]: it holds one script, with the nonce of its policy, and its data; it loads nothing
	python3 - "$@" <<-'E'
		import html.parser, re, sys
		class Page(html.parser.HTMLParser):
		    def __init__(self):
		        super().__init__()
		        self.tags, self.nonces, self.policy = {}, [], None
		    def handle_starttag(self, tag, attrs):
		        attrs = dict(attrs)
		        self.tags[tag] = self.tags.get(tag, 0) + 1
		        if tag == "script": self.nonces.append(attrs.pop("nonce", attrs.get("type")))
		        if attrs.get("http-equiv") == "Content-Security-Policy": self.policy = attrs["content"]
		        if any(k.startswith("on") or k == "src" or k == "href" and not v.startswith("data:") for k, v in attrs.items()):
		            sys.exit(f"it holds <{tag} {attrs}>")
		page = Page()
		page.feed(open(sys.argv[1], encoding="utf-8").read())
		want = {"html", "head", "meta", "link", "title", "style", "body", "main", "p", "b", "noscript", "script",
		        "section", "h2", "div", "table", "tr", "th", "td"}
		if set(page.tags) - want or page.tags["script"] != 2 or page.nonces[0] != "application/json": sys.exit(f"it holds {page.tags} {page.nonces}")
		policy = f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'nonce-{page.nonces[1]}'"
		if page.policy != (None if sys.argv[2:] == ["live"] else policy) or not re.fullmatch("[0-9a-f]{32}", page.nonces[1]):
		    sys.exit(f"its policy is {page.policy}")
	E
}
page_says() { # page_says FILE: the sections of what it draws and the parts of its charts, as a parser sees them; an error where it loads or runs anything
	drawn "$1"
	is_sealed "$@" && python3 - "$1.drawn" <<-'E'
		import html.parser, sys
		class Page(html.parser.HTMLParser):
		    void = {"meta", "link", "rect", "path", "polyline", "br"}
		    def __init__(self):
		        super().__init__()
		        self.open, self.ids, self.count = [], [], {}
		    def handle_starttag(self, tag, attrs):
		        attrs = dict(attrs)
		        self.count[tag] = self.count.get(tag, 0) + 1
		        if "id" in attrs: self.ids.append(attrs["id"])
		        if tag in ("script", "iframe", "img", "object", "form") or any(k.startswith("on") for k in attrs):
		            sys.exit(f"it holds <{tag} {attrs}>")
		        if any(k in ("src", "href") and not v.startswith("data:") for k, v in attrs.items()):
		            sys.exit(f"it loads {attrs}")
		        if tag not in self.void: self.open.append(tag)
		    def handle_startendtag(self, tag, attrs):
		        self.handle_starttag(tag, attrs)
		        if tag not in self.void: self.open.pop()
		    def handle_endtag(self, tag):
		        if not self.open or self.open.pop() != tag: sys.exit(f"</{tag}> closes what is not open")
		page = Page()
		page.feed(open(sys.argv[1], encoding="utf-8").read())
		if page.open: sys.exit(f"left open: {page.open}")
		print(" ".join(page.ids), page.count.get("rect", 0), page.count.get("circle", 0))
	E
}

t_what_is_on_it() {
	some_runs
	burst report
	is "$STATUS" 0 "report ($(tail -n 1 err.txt))"
	has err.txt "report.html: 2 runs"
	page_says report.html >said.txt 2>&1 || complain "report.html: $(cat said.txt)"
	for id in figures gantt used curve cheaper days kinds audio planned runs runs-table curve-chart planned-chart; do
		grep -qw "$id" said.txt || complain "no section $id: $(cat said.txt)"
	done
	has report.html.drawn "The tick marks 70% of the billed time"
	grep -q 'runs\?: [0-9]*% off on average' report.html.drawn || complain "planned against actual is missing"
	is "$(grep -c '<td>e2e</td>' report.html.drawn)" 2 "rows of runs"
	burst report "$("$BURST" ledger --json | jq -r '.[0].run')" -o one.html
	is "$STATUS" 0 "report of one run ($(tail -n 1 err.txt))"
	page_says one.html >said.txt 2>&1 || complain "one.html: $(cat said.txt)"
	grep -qw days said.txt && complain "the page of one run has days"
	burst report --json
	is "$STATUS" 0 "report --json ($(tail -n 1 err.txt))"
	schema report
	is "$(json '(.runs | length), .widths.provider, (.widths.measured | length), .now.runs' | tr '\n' ' ')" "2 local_play 1 [] " "the data"
	is "$(jq -c '.runs | map(.run)' out.txt)" "$(sed -n 's|.*id="data">\(.*\)</script>|\1|p' report.html | jq -c '.runs | map(.run)')" "the data of the page"
	burst report --since 1d -o -
	is "$STATUS" 0 "to stdout"
	is "$(head -c 15 out.txt)" "<!doctype html>" "stdout"
	burst report nosuchrun
	is "$STATUS" 2 "a run that is not there"
	burst report -o nosuchfolder/x.html
	[ "$STATUS" -ne 0 ] || complain "it wrote into a folder that is not there"
}

# The table of hours is on the page without its script: one of the two weeks' Wednesdays had a pod from 06:00 to 06:30 in Kolkata.
t_hours_of_the_week() {
	local monday
	export TZ=Asia/Kolkata
	script_lines 3
	config
	burst run
	is "$STATUS" 0 "run ($(tail -n 1 err.txt))"
	monday=$((($(date +%s) / 604800 * 7 + 4 - 14) * 86400 - 19800)) # a Monday at 00:00 there, 14 to 21 days ago
	ledger "update run set started_ms = ${monday}000; update pod set create_ms = ($monday + 2 * 86400 + 6 * 3600) * 1000, start_ms = 0, run_ms = 0,
		billed_ms = 1800000, released_ms = ($monday + 2 * 86400 + 6 * 3600 + 1800) * 1000, gone_ms = released_ms" || complain "the ledger"
	burst report --json
	is "$STATUS" 0 "report --json ($(tail -n 1 err.txt))"
	schema report
	is "$(json '.hours | .used_hours, .pod_hours, ([.by_hour[] | select(.used > 0)] | length), (.by_hour[2 * 24 + 6] | .day, .hour, .weeks_busy, (.used * .weeks))' | xargs)" \
		"0.5 0.5 1 Wed 6 1 0.5" "the hours"
	burst report
	has report.html "<th scope=\"row\">Wed</th>"
	has report.html "Wed 06:00: in 1 of "
	burst report "$("$BURST" ledger --json | jq -r '.[0].run')" -o one.html
	hasnt one.html "hours-table\">"
}

t_without_any_run() {
	burst report -o empty.html
	is "$STATUS" 0 "report of nothing ($(tail -n 1 err.txt))"
	drawn empty.html
	has empty.html.drawn "No run in this time."
}

t_hostile_names_are_text() {
	script_lines 3
	config
	burst run
	is "$STATUS" 0 "run ($(tail -n 1 err.txt))"
	ledger "update run set job = '</script><script>alert(1)</script>'; update pod set gpu = '<img src=x onerror=alert(1)>', id = '\"><svg onload=alert(2)>'" || complain "the ledger"
	burst report
	is "$STATUS" 0 "report ($(tail -n 1 err.txt))"
	page_says report.html >said.txt 2>&1 || complain "report.html: $(cat said.txt)"
	has report.html.drawn "&lt;script&gt;alert(1)&lt;/script&gt;"
	has report.html.drawn "&lt;img src=x"
}

t_in_a_browser() {
	local browser width
	browser=$(command -v chromium || command -v chromium-browser) || { skip "no chromium"; return; }
	some_runs
	burst report
	# no window is as narrow as a phone, so the page stands in a frame; without its own rule, that of the frame can look inside
	sed '/Content-Security-Policy/d' report.html >page.html
	for width in 360 800 1280; do
		echo "<!doctype html><title>?</title><body style=\"margin:0\"><iframe id=f src=page.html width=$width height=900></iframe><script>f.onload=()=>{
			const d=f.contentDocument;document.title=d.documentElement.scrollWidth+'/'+f.contentWindow.innerWidth+'/'+d.querySelectorAll('svg rect').length}</script>" >frame.html
		timeout 60 "$browser" --headless --no-sandbox --disable-gpu --allow-file-access-from-files --user-data-dir="$T/profile" --window-size=1400,1000 \
			--virtual-time-budget=5000 --enable-logging=stderr --dump-dom "file://$T/frame.html" >dom.txt 2>console.txt || { skip "chromium does not run here"; return; }
		IFS=/ read -r wide window bars < <(sed -n 's|.*<title>\([0-9/]*\)</title>.*|\1|p' dom.txt | head -n 1)
		is "$window" "$width" "the width of the frame"
		[ "${wide:-9999}" -le "$width" ] || complain "at $width pixels the page is $wide wide"
		[ "${bars:-0}" -gt 5 ] || complain "bars: $bars"
	done
	# as it is, with its own rule
	timeout 60 "$browser" --headless --no-sandbox --disable-gpu --user-data-dir="$T/profile" --enable-logging=stderr --dump-dom "file://$T/report.html" >dom.txt 2>console.txt
	! grep -q 'CONSOLE' console.txt || complain "console: $(grep CONSOLE console.txt | head -n 1)"
	timeout 60 "$browser" --headless --no-sandbox --disable-gpu --user-data-dir="$T/profile" --no-pdf-header-footer --print-to-pdf=paper.pdf "file://$T/report.html" >/dev/null 2>&1
	[ "$(head -c 5 paper.pdf 2>/dev/null)" = %PDF- ] || complain "it was not printed"
}

# shellcheck disable=SC2120
live() { # in the background; its address in $URL, its process in $LIVE
	"$BURST" report --live "$@" >url.txt 2>live.err &
	LIVE=$!
	wait_for 20 "the address" grep -q http url.txt
	URL=$(head -n 1 url.txt)
	PORT=$(echo "$URL" | sed 's|.*:\([0-9]*\)/.*|\1|')
}
live_ends() {
	kill -INT $LIVE
	STATUS=0
	wait $LIVE || STATUS=$?
	is "$STATUS" 0 "exit status of the server"
}

# A run goes on while the page is shown: it says how far it is, and what is on it changes.
t_live() {
	local n
	slow_segments 24
	live --since 1d
	shown() { curl -sf "$URL" >page.html && drawn page.html; }
	shown || complain "no page"
	has page.html.drawn "No active runs."
	burst_bg run
	wait_for 60 "a segment" file_count out 2
	shown || complain "no page of a run"
	has page.html.drawn "this machine"
	has page.html.drawn "of \$1.00"
	has page.html.drawn "<td>working</td>"
	page_counts() { shown && grep -q '<b>[1-9][0-9]*%</b>of billed time used' page.html.drawn; }
	wait_for 30 "a part of the billed time that is used" page_counts
	page_says page.html live >said.txt 2>&1 || complain "page.html: $(cat said.txt)"
	is "$(curl -sf "${URL}report.json" | jq -r '.now.runs[0].driven_by')" "this machine" "the data that the page fetches again"
	is "$(curl -s -o /dev/null -w '%{http_code}' "http://127.0.0.1:$PORT/")" 404 "without the secret"
	is "$(curl -s -o /dev/null -w '%{http_code}' -H 'Host: evil.example' "$URL")" 403 "by another name"
	is "$(curl -s -o /dev/null -w '%{http_code}' -X POST "$URL")" 405 "of a POST"
	! timeout 5 curl -s --interface lo -o /dev/null "http://[::1]:$PORT/" || complain "it listens elsewhere, too"
	# some who connect and say nothing, or never come to an end, keep nobody else waiting
	for n in $(seq 20); do
		(exec 9<>"/dev/tcp/127.0.0.1/$PORT" && printf 'GET /' >&9 && sleep 3) 2>/dev/null &
		echo $! >>guests
	done
	wait_for 20 "an answer beside them" curl -sf -o /dev/null --max-time 2 "$URL"
	head -c 100000 /dev/zero | timeout 5 curl -s -o /dev/null --data-binary @- "$URL"
	burst_wait
	is "$STATUS" 0 "exit status of the run"
	# shellcheck disable=SC2046
	kill $(cat guests) 2>/dev/null
	wait_for 20 "the page afterwards" shown
	has page.html.drawn "No active runs."
	has page.html.drawn "No pods are billing."
	live_ends
	"$BURST" report --live --port 70000 2>err.txt && complain "port 70000 was taken"
	has err.txt "--port"
}

# Clients that send or read a byte now and then, as many as they like, keep no browser waiting, and go at their deadlines.
t_live_beside_slow_clients() {
	some_runs
	live
	cat >slow.py <<-'E'
		import os, socket, sys, threading, time, urllib.request
		url, port = sys.argv[1], int(sys.argv[2])
		path = url.split(str(port), 1)[1]
		stop, ended, here = threading.Event(), [], threading.Semaphore(0)
		def dribble(n):
		    while not stop.is_set():  # one that is sent away comes again
		        began = time.monotonic()
		        try:
		            with socket.create_connection(("127.0.0.1", port), 10) as s:
		                here.release()
		                s.sendall(b"GET / HTTP/1.1\r\nX: ")
		                while not stop.wait(0.1):
		                    s.sendall(b"x")
		        except OSError:
		            ended.append(time.monotonic() - began)
		            stop.wait(0.05)
		def read_slowly(n):  # asks, then takes nothing
		    while not stop.is_set():
		        try:
		            with socket.socket() as s:
		                s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
		                s.connect(("127.0.0.1", port))
		                s.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
		                stop.wait(1)
		        except OSError:
		            pass
		threads = [threading.Thread(target=dribble, args=(n,)) for n in range(40)]
		threads += [threading.Thread(target=read_slowly, args=(n,)) for n in range(4)]
		for t in threads: t.start()
		for _ in range(40): here.acquire()
		got = 0
		for _ in range(50):
		    try:
		        got += b"</html>" in urllib.request.urlopen(url, timeout=10).read()
		    except OSError as e:
		        print("a page:", e, file=sys.stderr)
		for _ in range(100):  # the pages may have come before the first of them notices
		    if not ended: time.sleep(0.1)
		stop.set()
		for t in threads: t.join()
		print(got, "pages;", "sent away" if ended else "no dribbling client was sent away")
	E
	timeout 120 python3 slow.py "$URL" "$PORT" >slow.txt 2>slow.err
	is "$(cat slow.txt)" "50 pages; sent away" "beside 40 dribbling clients ($(tail -n 1 slow.err))"
	# one alone, which is in nobody's way, goes at its deadline as well
	is "$(python3 - "$PORT" 2>&1 <<-'E'
		import socket, sys, time
		began = time.monotonic()
		s = socket.create_connection(("127.0.0.1", int(sys.argv[1])), 10)
		try:
		    while time.monotonic() - began < 60:
		        s.sendall(b"x")
		        time.sleep(0.2)
		except OSError:
		    pass
		print("in time" if time.monotonic() - began < 40 else "never")
	E
	)" "in time" "the end of one that dribbles alone"
	live_ends
}
# CPU time that a process has used, in hundredths of a second
cpu_of() { sed 's/.*) //' "/proc/$1/stat" | awk '{ print $12 + $13 }'; }
# A connection for which the server has no file waits, and so does the server.
t_live_without_files() {
	local before used
	live
	prlimit --pid "$LIVE" --nofile=20: # room for some connections
	before=$(cpu_of "$LIVE")
	python3 - "$PORT" <<-'E'
		import socket, sys, time
		all = [socket.create_connection(("127.0.0.1", int(sys.argv[1]))) for _ in range(16)]
		time.sleep(2.5)
	E
	used=$(($(cpu_of "$LIVE") - before))
	[ $used -lt 10 ] || complain "the server spins: $used hundredths in 2.5 s"
	prlimit --pid "$LIVE" --nofile=1024:
	wait_for 20 "the page afterwards" curl -sf -o page.html "$URL"
	live_ends
}
# In a browser the script puts what is new in place, under the rule that the server gives.
t_live_in_a_browser() {
	local browser
	browser=$(command -v chromium || command -v chromium-browser) || { skip "no chromium"; return; }
	some_runs
	live
	timeout 60 "$browser" --headless --no-sandbox --disable-gpu --user-data-dir="$T/profile" --enable-logging=stderr --virtual-time-budget=9000 --dump-dom "$URL" \
		>dom.txt 2>console.txt || { skip "chromium does not run here"; live_ends; return; }
	! grep -q 'CONSOLE' console.txt || complain "console: $(grep CONSOLE console.txt | head -n 1)"
	has dom.txt '<h2>Now</h2>'
	local loaded made
	loaded=$(sed -n 's/.*data-loaded="\([0-9]*\)".*/\1/p' dom.txt)
	made=$(sed -n 's/.*data-made="\([0-9]*\)".*/\1/p' dom.txt)
	[ "${made:-0}" -gt "${loaded:-0}" ] || complain "loaded at $loaded, and still of $made"
	live_ends
	# nobody answers any more: the page says so
	live
	sed "s|location.href|'$URL'|" <(curl -sf "$URL") >page.html
	live_ends
	# a browser's virtual time runs ahead of its connections on a busy machine: six tries
	for _ in 1 2 3 4 5 6; do
		timeout 60 "$browser" --headless --no-sandbox --disable-gpu --user-data-dir="$T/profile" --virtual-time-budget=9000 --dump-dom "file://$T/page.html" >dom.txt 2>/dev/null
		grep -q '<p id="lost" data-loaded="[0-9]*"><b>The server has stopped' dom.txt && return
	done
	complain "it does not say that the server has stopped"
}

run_tests "$@"
