#!/usr/bin/python3
"""light.py - very many pods in one process, for measuring a wide client: each has a real SSH server with its own port, host key
and authorized key, and behind it the agent's side of jobs/agent/CONTROL.md, which "renders" by waiting and hands out WAV files.
There is no container, no start script, no volume: what those do is tested on real pods.

Lines of JSON on stdin:
  {"op":"start","id":ID,"env":{..}}   answered by {"event":"ready","id":ID,"port":N}; the environment is the start script's
  {"op":"end","id":ID}                the port is closed, its connections are cut
  {"op":"stats"}                      answered by {"event":"stats","pods":{ATTEMPT:{..}},..}
Ends with its stdin. LIGHT_RENDER_MS (100): how long a segment takes; LIGHT_WORKERS (1)."""

import array
import asyncio
import base64
import hashlib
import json
import logging
import os
import resource
import struct
import sys
import time

import asyncssh

RENDER_MS = float(os.environ.get("LIGHT_RENDER_MS", "100"))
RATE = 8000
sounds = {}


def sound(text):
    """A hum as long as somebody would take to say it; the same for all texts of one length."""
    tenths = max(4, int(len(text) * 0.07 * 10))
    if tenths not in sounds:
        n = tenths * RATE // 10
        samples = array.array("h", ((i * 7919 % 2003) * 8 - 8000 for i in range(n))).tobytes()
        wav = (b"RIFF" + struct.pack("<I", 36 + len(samples)) + b"WAVEfmt " +
               struct.pack("<IHHIIHH", 16, 1, 1, RATE, RATE * 2, 2, 16) + b"data" + struct.pack("<I", len(samples)) + samples)
        sounds[tenths] = (wav, hashlib.sha256(wav).hexdigest(), tenths / 10)
    return sounds[tenths]


class Pod:
    def __init__(self, env):
        self.env = env
        self.attempt = env.get("BURST_ATTEMPT", "?")
        self.began = time.time()
        self.began_clock = time.monotonic()
        self.events = []
        self.files = {}
        self.out = None  # the attached connection's stdout
        self.queue = asyncio.Queue()
        self.known = set()
        self.taken_back = set()
        self.tasks = []
        self.workers = 0
        self.running = []
        self.batches = self.segments = self.attached = self.renewals = 0
        self.server = None
        self.connections = set()

    def t(self):
        return int((time.monotonic() - self.began_clock) * 1000)

    def say(self, line):
        if self.out:
            try:
                self.out.write((json.dumps(line) + "\n").encode())
            except (OSError, asyncssh.Error):
                self.out = None

    def event(self, **fields):
        line = {"n": len(self.events) + 1, "t": self.t(), **fields}
        self.events.append(line)
        self.say(line)

    # ---- what it is told ----

    def hello(self):
        return {"ev": "hello", "run": self.env.get("BURST_RUN"),
                "began_s": int(self.began), "t": self.t(), "next": len(self.events) + 1, "switch": "ok http 204 light",
                "lease_left_s": 600, "gpus": [{"name": "NVIDIA light"}],
                "zstd": False, "mode": "attached", "workers": self.workers, "running": self.running}

    def obey(self, line):
        op = line.get("op")
        if op == "attach":
            self.attached += 1
            self.say(self.hello())
            for event in self.events[int(line.get("from", 0)):]:
                self.say(event)
        elif op == "renew":
            self.renewals += 1
            self.say({"ev": "lease", "left_s": line["lease_s"]})
        elif op in ("setup", "install"):
            self.event(ev=op, ok=True, skipped=True, ms=0)
        elif op == "start":
            self.start(int(line.get("workers", 1)))
        elif op == "batch":
            if line["id"] not in self.known:
                self.known.add(line["id"])
                self.queue.put_nowait(line)
        elif op == "revoke":
            ids = [b["id"] for b in list(self.queue._queue)]
            self.taken_back.update(ids)
            self.event(ev="revoked", ids=ids)
        elif op == "sync":
            self.event(ev="synced", turn=line["turn"], ok=False)

    def start(self, workers):
        for task in self.tasks:
            task.cancel()
        self.workers = workers
        self.tasks = [asyncio.create_task(self.work(w)) for w in range(workers)]
        for w in range(workers):
            self.event(ev="worker", w=w, state="ready", engine="light", version="1", sample_rate=RATE, max_batch=16, load_ms=1)

    async def work(self, w):
        while True:
            batch = await self.queue.get()
            if batch["id"] in self.taken_back:
                continue
            self.batches += 1
            self.event(ev="batch", id=batch["id"], state="started", w=w, segments=len(batch["segments"]))
            began = self.t()
            for task in batch["segments"]:
                self.running.append(task["id"])
                await asyncio.sleep(RENDER_MS / 1000)
                self.running.remove(task["id"])
                wav, sha256, seconds = sound(task["text"])
                path = f"runs/{self.env.get('BURST_RUN')}/{self.attempt}/{task['file']}"
                self.files[path] = wav
                self.segments += 1
                self.event(ev="segment", id=task["id"], batch=batch["id"], **{"try": 1}, ok=True, file=task["file"], path=path,
                           bytes=len(wav), sha256=sha256, seconds=seconds, rate=RATE, ms=int(RENDER_MS))
            self.event(ev="batch", id=batch["id"], state="done", busy_ms=self.t() - began)

    # ---- its channels ----

    async def serve(self, process):
        command = process.command or ""
        try:
            if "exec \"$agent\" attach" in command:
                await self.control(process)
            elif command.endswith("burst-agent\" send"):
                await self.send(process)
            else:  # "tree": it is there already
                process.exit(98 if " tree " in command else 1)
        except (OSError, asyncssh.Error, asyncio.IncompleteReadError):
            pass

    async def control(self, process):
        process.stdout.write(b"BURST have\n")
        self.out = process.stdout
        async for line in process.stdin:
            self.obey(json.loads(line))
        if self.out is process.stdout:
            self.out = None
        process.exit(0)

    async def send(self, process):
        async for line in process.stdin:
            want = json.loads(line)
            data = self.files.get(want["path"])
            if data is None:
                process.stdout.write((json.dumps({"path": want["path"], "error": "no such file"}) + "\n").encode())
                continue
            data = data[want["offset"]:]
            process.stdout.write((json.dumps({"path": want["path"], "offset": want["offset"], "bytes": len(data)}) + "\n").encode())
            process.stdout.write(data)
            await process.stdout.drain()
        process.exit(0)

    async def listen(self):
        pod = self

        class Server(asyncssh.SSHServer):
            def connection_made(self, conn):
                self.conn = conn
                pod.connections.add(conn)

            def connection_lost(self, exc):
                pod.connections.discard(self.conn)

        key = asyncssh.import_private_key(base64.b64decode(self.env["BURST_HOST_KEY_B64"]))
        self.server = await asyncssh.create_server(
            Server, "127.0.0.1", 0, server_host_keys=[key], process_factory=self.serve, encoding=None,
            authorized_client_keys=asyncssh.import_authorized_keys(self.env["BURST_AUTHORIZED_KEY"]),
            login_timeout=120, compression_algs=["none"], backlog=8)
        return self.server.sockets[0].getsockname()[1]

    def end(self):
        for task in self.tasks:
            task.cancel()
        if self.server:
            self.server.close()
        for conn in list(self.connections):
            conn.abort()


pods = {}
most = {"connections": 0}


def tell(line):
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def stats():
    live = [p for p in pods.values() if p.connections]
    return {"event": "stats", "connected": len(live), "cpu_s": sum(os.times()[:2]),
            "pods": {p.attempt: {"events": len(p.events), "batches": p.batches, "segments": p.segments, "attached": p.attached,
                                 "renewals": p.renewals, "connected": bool(p.connections)} for p in pods.values()}}


async def obey(line):
    op = line["op"]
    if op == "start":
        pod = pods[line["id"]] = Pod(line["env"])
        tell({"event": "ready", "id": line["id"], "port": await pod.listen()})
    elif op == "end" and line["id"] in pods:
        pods[line["id"]].end()
    elif op == "stats":
        tell(stats())


async def main():
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    logging.getLogger("asyncssh").setLevel(logging.CRITICAL)
    reader = asyncio.StreamReader(limit=1 << 20)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while True:
        line = await reader.readline()
        if not line:
            os._exit(0)
        await obey(json.loads(line))


asyncio.run(main())
