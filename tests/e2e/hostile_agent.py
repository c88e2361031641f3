"""hostile_agent.py - what answers in place of a pod's agent in hostile.sh: sshd's forced command, once for each channel. It
speaks enough of CONTROL.md to be believed, and lies as CASE says. Case `honest` tells no lie at all."""
import hashlib
import json
import os
import select
import sys
import time

CASE = os.environ["CASE"]
STATE = os.environ["CASE_STATE"]  # a folder that outlives a channel
COMMAND = os.environ.get("SSH_ORIGINAL_COMMAND", "")
out = sys.stdout.buffer
ESC = "\033[31mred\033]0;title\007\u009b2J\u202ereversed"
WAV = (b"RIFF" + (1636).to_bytes(4, "little") + b"WAVEfmt " + (16).to_bytes(4, "little") + b"\1\0\1\0" +
       (8000).to_bytes(4, "little") + (16000).to_bytes(4, "little") + b"\2\0\x10\0data" + (1600).to_bytes(4, "little") +
       bytes(1600))


def put(data):
    out.write(data)
    out.flush()


def say(**line):
    put(json.dumps(line).encode() + b"\n")


def flood(piece):
    """Until the other side has had enough."""
    try:
        while True:
            put(piece)
    except OSError:
        sys.exit(0)


# ---- files ----

def send():
    if CASE == "ends_once_of_forty" and not os.path.exists(STATE + "/ended"):
        open(STATE + "/ended", "w").close()
        for _ in range(16):  # as many as are asked for at once; the others wait
            sys.stdin.readline()
        sys.exit(0)
    if CASE == "stalls_once" and not os.path.exists(STATE + "/stalled"):
        open(STATE + "/stalled", "w").close()
        sys.stdin.read()  # until nobody wants it any more
    for request in sys.stdin:
        if CASE == "stalls":
            continue
        ask = json.loads(request)
        body, offset = WAV, ask["offset"]
        rest = body[offset:]
        head = {"path": ask["path"], "offset": offset, "bytes": len(rest)}
        if CASE == "other_bytes":
            rest = bytes(len(rest))
        elif CASE == "fewer_bytes":
            rest = rest[:100]
            put(json.dumps(head).encode() + b"\n" + rest)
            sys.exit(0)
        elif CASE == "more_bytes":
            rest = rest + b"more" * 5000
        elif CASE == "other_size":
            head["bytes"] = 10 << 30
        elif CASE == "negative_size":
            head["bytes"] = -1
        elif CASE == "other_offset":
            head["offset"] = (1 << 63) - 1
        elif CASE == "grows":
            head["bytes"] += 10000
            rest += bytes(10000)
        elif CASE == "error_and_bytes":
            head["error"] = "x" * 100000
        elif CASE == "endless_head":
            flood(b"x" * 65536)
        elif CASE == "endless_file":
            put(json.dumps(head).encode() + b"\n" + rest)
            flood(b"\0" * 65536)
        elif CASE == "one_fails_one_is_slow" and not os.path.exists(STATE + "/failed"):
            open(STATE + "/failed", "w").close()
            say(path=ask["path"], error="Stale file handle")
            continue
        elif CASE == "one_fails_one_is_slow" and not os.path.exists(STATE + "/slow"):
            open(STATE + "/slow", "w").close()
            put(json.dumps(head).encode() + b"\n" + rest[:len(rest) // 2])
            time.sleep(4)
            put(rest[len(rest) // 2:])
            continue
        elif CASE == "no_file":
            say(path=ask["path"], error=ESC)
            continue
        elif CASE == "silent_end":
            sys.exit(0)
        put(json.dumps(head).encode() + b"\n" + rest)


# ---- events ----

number = 0


def event(ev, **more):
    global number
    number += 1
    say(n=number, t=number * 10, ev=ev, **more)


def hello():
    more = {}
    if CASE == "strange_hello":
        more = {"next": -(1 << 63), "gpus": [{"name": ESC * 50, "memory_mb": -1}] * 50, "workers": 0, "t": 1 << 62,
                "began_s": -5, "cpus": "many", "memory_mb": None}
    if CASE == "hello_of_the_future":
        more = {"next": (1 << 63) - 1}
    say(**{**dict(ev="hello", agent="0.1.0", protocol=1, run="r", attempt="a", began_s=1, t=0, next=1, switch="ok exit",
                  lease_left_s=600, cpus=1, memory_mb=100, gpus=[], zstd=False, free_bytes=1 << 30, mode="attached",
                  workers=0, running=[]), **more})
    if CASE == "binary":
        put(b"{" + bytes(range(256)) * 100 + b"\n")
    elif CASE == "endless_line":
        flood(b"{" + b"a" * 65536)
    elif CASE == "endless_noise":
        flood(b"noise\n" * 10000)
    elif CASE == "deep_json":
        put(b'{"ev":' * 100000 + b"1" + b"}" * 100000 + b"\n")
    elif CASE == "deep_list":
        put(b'{"ev":' + b"[" * 400000 + b"\n")
    elif CASE == "endless_log":
        flood((json.dumps({"ev": "log", "line": "y" * 3000}) + "\n").encode() * 20)
    elif CASE == "endless_events":
        flood(b"".join(json.dumps({"ev": ev, "id": "x", "w": 0, "state": "started", "t": 1}).encode() + b"\n"
                       for ev in ("batch", "segment", "worker", "lease", "nonsense")) * 1000)
    elif CASE == "endless_stderr":
        while True:
            try:
                os.write(2, b"z" * 65536)
            except OSError:
                sys.exit(0)


def report(batch, seg):
    good = dict(id=seg["id"], batch=batch, ok=True, file=seg.get("file", ""), path="runs/r/a/" + seg.get("file", ""),
                bytes=len(WAV), sha256=hashlib.sha256(WAV).hexdigest(), seconds=0.1, rate=8000, ms=5)
    good["try"] = 1
    bad = {
        "path_up": {"path": "../../../../etc/passwd"},
        "path_absolute": {"path": "/etc/passwd"},
        "path_control": {"path": "runs/" + ESC},
        "path_long": {"path": "a/" * 3000},
        "path_nul": {"path": "runs/r\0/x"},
        "no_path": {"path": None},
        "huge": {"bytes": 10 << 30},
        "largest": {"bytes": (1 << 63) - 1},
        "negative": {"bytes": -5},
        "not_a_number": {"bytes": "NaN"},
        "beyond": {"bytes": 1e300},
        "hash_short": {"sha256": "abc"},
        "hash_path": {"sha256": "../" * 21 + "x"},
    }.get(CASE, {})
    if CASE == "strange_ids":
        for name in ("nobody", "../../x", "", ESC, 7, None, "s" * 100000):
            event("segment", **{**good, "id": name})
        event("segment", **{**good, "batch": ESC * 9})
        event("segment", **good)
        event("batch", id="0-0", state="done", busy_ms=1)
        event("batch", id=ESC, state="retry", reason=ESC)
        event("revoked", ids=["x", 5, None, batch + "9", "4294967296"])
    if CASE == "strange_numbers":
        for n in (-(1 << 63), (1 << 63) - 1):
            event("segment", **{**good, "id": "nobody", "ms": n})
            for k in ("t", "ms", "seconds", "rate", "try"):
                say(**{**dict(ev="segment", **good), k: n})
            say(ev="batch", id=batch, state="started", t=n, w=n, segments=n)
            say(ev="worker", w=n, state="ready", max_batch=n, sample_rate=n, load_ms=n, phases={"import_s": n, "read_s": -n, "build_s": str(n)})
        say(ev="batch", id="%s" % batch, state="done", t=-(1 << 63), busy_ms=-1)
        put(b'{"ev":"segment","id":"' + seg["id"].encode() + b'","ok":true,"ms":1e308,"t":-1e308,"bytes":1e308}\n')
    if CASE == "escapes":
        event("log", line=ESC, w=0)
        event("worker", w=0, state="exited", code=-1, error=ESC)
        event("worker", w=0, state="ready", engine=ESC, version=ESC, gpu=ESC, max_batch=8)
        event("batch", id=ESC, state="retry", reason=ESC, w=0)
    if CASE == "escapes_failed":
        event("segment", id=seg["id"], batch=batch, ok=False, reason=ESC, error=ESC)
        return
    if CASE == "overflow":  # no number of JSON's that fits
        put(b'{"ev":"segment","id":"' + seg["id"].encode() + b'","ok":true,"bytes":9223372036854775808}\n')
    event("segment", **{**good, **bad})


def output(batch, seg):
    name = {"name_up": "../../evil.txt", "name_absolute": os.path.join(STATE, "evil.txt"), "name_control": "out/" + ESC,
            "name_through_link": "link/evil.txt", "name_part": "out/a.txt.part", "name_dot": "out/./a.txt",
            "name_empty": "", "name_none": None, "name_git": "out/.git/hooks/x",
            "name_git_case": ".GIT/config", "name_manifest": "manifest.jsonl", "name_manifest_case": "MANIFEST.jsonl",
            "name_unmatched": "notes.md", "name_newline": "out/a\nb.txt", "name_300": "out/" + "n" * 300 + ".txt",
            "name_bidi": "out/\u202etxt.exe", "name_backslash": "out\\..\\..\\evil.txt", "name_manifest_folder": "manifest.jsonl/x.txt", "name_manifest_temp": "manifest.jsonl.tmp-1"}.get(CASE, "out/a.txt")
    save = {"save_hash": {"sha256": "../" * 21 + "x"}, "save_negative": {"bytes": -5}, "save_number": {"number": "../1"},
            "save_nobody": {"id": "../../x"}, "save_huge": {"bytes": 1 << 62}, "save_other_bytes": {"sha256": "0" * 64},
            "save_words": {"error": ESC, "words": ESC * 200}}.get(CASE)
    if save:
        for _ in range(200 if CASE == "save_words" else 1):
            event("checkpoint", **{**dict(id=seg["id"], number=1, bytes=len(WAV), sha256=hashlib.sha256(WAV).hexdigest(), ms=1,
                                          durable=True), **save})
    event("output", id=seg["id"], name=name, path="runs/r/a/out/" + seg["id"] + "/a.txt",
          bytes=(1 << 63) - 1 if CASE == "output_largest" else len(WAV), sha256=hashlib.sha256(WAV).hexdigest())
    below = {"name_below_file": "out/a.txt/evil.txt", "name_above_file": "out"}.get(CASE)
    if below:
        event("output", id=seg["id"], name=below, path="runs/r/a/b.txt", bytes=len(WAV), sha256=hashlib.sha256(WAV).hexdigest())
    if CASE == "replaces":
        for i in range(100000):
            event("output", id=seg["id"], name="out/a.txt", path="runs/r/a/%d" % i, bytes=len(WAV), sha256="%064x" % i)
        event("output", id=seg["id"], name="out/a.txt", path="runs/r/a/a.txt", bytes=len(WAV), sha256=hashlib.sha256(WAV).hexdigest())
    if CASE == "many_names":
        for i in range(100000):
            name = "out/%06d" % i + ("/" + "n" * 240) * 4 + ".txt"
            event("output", id=seg["id"], name=name, path="runs/r/" + name[:1000], bytes=1, sha256="0" * 64)
    if CASE == "one_fails_one_is_slow":
        open(STATE + "/runs", "a").write("run\n")
        event("output", id=seg["id"], name="out/b.txt", path="runs/r/a/b.txt", bytes=len(WAV),
              sha256=hashlib.sha256(WAV).hexdigest())
    for i in range(40 if CASE in ("ends_once_of_forty", "stalls") else 0):
        event("output", id=seg["id"], name="out/%d.txt" % i, path="runs/r/a/%d.txt" % i, bytes=len(WAV),
              sha256=hashlib.sha256(WAV).hexdigest())
    event("segment", id=seg["id"], batch=batch, ok=True, code=0, ms=5, outputs=1)


def serve():
    put(b"BURST have\n")
    for line in sys.stdin:
        ask = json.loads(line)
        op = ask["op"]
        if op == "attach":
            hello()
        elif CASE == "only_hello" or (CASE == "only_leases" and op == "batch"):
            continue
        elif op in ("setup", "install"):
            event(op, ok=True, skipped=False, ms=1)
        elif op == "start":
            event("worker", w=0, state="ready", engine="test", version="1", sample_rate=8000, max_batch=8, load_ms=1)
        elif op == "batch":
            if CASE == "returns_batches":
                event("revoked", ids=[ask["id"]])
                continue
            event("batch", id=ask["id"], state="started", w=0, segments=len(ask["segments"]))
            for seg in ask["segments"]:
                (output if "run" in seg else report)(ask["id"], seg)
            event("batch", id=ask["id"], state="done", busy_ms=5)
        elif op == "renew":
            say(ev="lease", left_s=ask["lease_s"])


if " send" in COMMAND:
    send()
elif "burst-agent\" tree" in COMMAND or " tree --dir" in COMMAND:
    if CASE == "no_tree":  # takes nothing, until nobody listens any more
        ear = select.poll()
        ear.register(1, 0)
        ear.poll()
        sys.exit(0)
    while sys.stdin.buffer.read(65536):
        pass
    print('{"tree":"x","files":1}')
else:
    serve()
