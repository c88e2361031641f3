"""burst_weights.py FOLDER LIST - fetches an engine's weights into FOLDER while its environment is made.

LIST is a JSON file: {"revision": R, "files": [{"repository", "revision", "file", "as", "sha256", "bytes"}, ...]}. Files come from the
hub that publishes them, or from a mirror ($BURST_WEIGHTS_URL) with the hub's paths: REPOSITORY/resolve/REVISION/FILE. Threads fetch
several files, and several parts of a large one, at once. A part whose connection breaks resumes where it stopped. A file is hashed
while it arrives and renamed into place if its hash matches. A file without a published hash is pinned by its revision only: its hash
is compared with the server's, recorded and printed. FOLDER/weights.json lists the files for the worker.

Needs only the standard library. A failure prints one line on stderr, "burst: ...", and exits 1.
"""
from __future__ import annotations

import errno
import hashlib
import http.client
import json
import os
import queue
import shutil
import socket
import ssl
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from typing import Any, Callable, Optional

HUB = "https://huggingface.co"
PART_BYTES = 32 << 20
PIECE_BYTES = 1 << 20
CONNECTIONS = 8
TRIES = 6  # consecutive tries of one part that receive no byte
SILENT_S = 30
SAY_EVERY_S = 15
LOOPBACK = ("127.0.0.1", "localhost", "::1")


class Failed(Exception):
    """Carries the line for the user."""


def mega(count: int) -> str:
    return f"{count / 1e6:.1f} MB"


def host_of(url: str) -> str:
    return urllib.parse.urlsplit(url).hostname or url


def is_safe(url: str) -> bool:
    at = urllib.parse.urlsplit(url)
    return at.scheme == "https" or (at.scheme == "http" and at.hostname in LOOPBACK)


class Redirects(urllib.request.HTTPRedirectHandler):
    """The hub redirects to a storage server. Only the hub's reply describes the file."""

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        if not is_safe(newurl):
            raise Failed(f"{host_of(req.full_url)} sends this pod to {newurl.split('?')[0]}, which is not https")
        new = super().redirect_request(req, fp, code, msg, headers, newurl)
        new.published = getattr(req, "published", None) or headers.get("X-Linked-Etag")
        return new

    def http_response(self, request: Any, response: Any) -> Any:
        response.published = getattr(request, "published", None) or response.headers.get("X-Linked-Etag")
        return response

    https_response = http_response


def published_hash(reply: Any) -> Optional[str]:
    """The hub's hash of a large file."""
    tag = (getattr(reply, "published", None) or "").strip('"').lower()
    return tag if len(tag) == 64 and all(c in "0123456789abcdef" for c in tag) else None


def certificates() -> ssl.SSLContext:
    """The image's certificates, else pip's."""
    context = ssl.create_default_context()
    if not context.cert_store_stats()["x509_ca"]:
        try:
            from pip._vendor import certifi
            context.load_verify_locations(certifi.where())
        except (ImportError, OSError):
            pass
    return context


class Server:
    """The hub or the mirror. Gets the token, but a redirect's target never does. A mirror gets it only if the user's own config names it."""

    def __init__(self, mirror: str, token: str, mirror_gets_token: bool) -> None:
        self.root = (mirror or HUB).rstrip("/")
        self.token = token if token and (not mirror or mirror_gets_token) else ""
        if not is_safe(self.root):
            raise Failed(f"weights_url {self.root}: only https (http on this machine)")
        self.opener = urllib.request.build_opener(urllib.request.HTTPSHandler(context=certificates()), Redirects())

    def open(self, path: str, first: int, last: int) -> Any:
        request = urllib.request.Request(f"{self.root}/{urllib.parse.quote(path)}", headers={"User-Agent": "burst", "Accept-Encoding": "identity"})
        request.add_header("Range", f"bytes={first}-{last}")
        if self.token:
            request.add_unredirected_header("Authorization", f"Bearer {self.token}")
        return self.opener.open(request, timeout=SILENT_S)


class File:
    def __init__(self, folder: str, about: dict[str, Any]) -> None:
        self.repository, self.revision, self.name = about["repository"], about["revision"], about["file"]
        self.path = f"{self.repository}/resolve/{self.revision}/{self.name}"
        self.called = about.get("as") or self.name
        self.wanted, self.bytes = about.get("sha256"), about.get("bytes") or 0
        self.final = os.path.join(folder, self.called)
        self.part = self.final + ".part"
        self.published: Optional[str] = None
        self.known = False  # set by the first reply
        self.lock, self.hash, self.hashed = threading.Lock(), hashlib.sha256(), 0
        self.done: dict[int, int] = {}  # finished parts: first byte -> byte after the last
        os.makedirs(os.path.dirname(self.final), exist_ok=True)
        self.fd = os.open(self.part, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o644)

    def learn(self, published: Optional[str], total: int) -> None:
        """Records what the first reply reports of the file."""
        self.published = published
        if self.bytes and total != self.bytes:
            raise Failed(f"{self.name} of {self.repository} at {self.revision} has {total} bytes on the server, and should have {self.bytes}")
        self.bytes, self.known = total, True

    def part_done(self, first: int, after: int) -> bool:
        """Returns True once the file is complete."""
        with self.lock:
            self.done[first] = after
            while self.hashed in self.done:
                end = self.done.pop(self.hashed)
                while self.hashed < end:
                    piece = os.pread(self.fd, min(PIECE_BYTES, end - self.hashed), self.hashed)
                    self.hash.update(piece)
                    self.hashed += len(piece)
            return self.hashed == self.bytes

    def finish(self) -> str:
        found, wanted = self.hash.hexdigest(), self.wanted or self.published
        os.close(self.fd)
        if wanted and found != wanted:
            os.unlink(self.part)
            raise Failed(f"{self.name} of {self.repository} is not the file that was published: its sha256 is {found[:16]}..., and should be {wanted[:16]}...; "
                         "run it again, or name another server in weights_url")
        os.rename(self.part, self.final)
        how = "as published" if self.wanted else "as its server says; none is known here" if self.published else "recorded; none is known"
        print(f"weights: {self.called}: {mega(self.bytes)}, sha256 {found} ({how})", flush=True)
        return found


def explain_status(error: urllib.error.HTTPError, server: Server, file: File) -> str:
    at = f"{host_of(server.root)}/{file.repository}"
    if error.code in (401, 403) and server.token:
        return f"{at} refuses this HF_TOKEN ({error.code}): accept the terms of {file.repository} on its page, with the account of the token"
    if error.code in (401, 403):
        return f"{at} wants a token ({error.code}): put HF_TOKEN into your environment and into job.env"
    if error.code == 404:
        return f"{at} has no {file.name} at revision {file.revision} (404)"
    return f"{at} answers {error.code} for {file.name}"


def explain(error: Exception, server: Server, file: File) -> str:
    reason = getattr(error, "reason", error)
    if isinstance(reason, ssl.SSLCertVerificationError):
        return f"the certificate of {host_of(server.root)} is not trusted in this pod: {reason.verify_message}"
    if isinstance(reason, socket.gaierror) or getattr(reason, "errno", None) in (errno.ENETUNREACH, errno.EHOSTUNREACH):
        return (f"no network in this pod: {host_of(server.root)} cannot be reached for weights; a local pod has one with "
                'providers.local.network = "host" in your own burst.cfg')
    if isinstance(reason, (ConnectionRefusedError, TimeoutError, socket.timeout)):
        return f"{host_of(server.root)} does not answer: {file.name} of {file.repository} cannot be fetched"
    return f"{file.name} of {file.repository} cannot be fetched from {host_of(server.root)}: {reason or type(error).__name__}"


def will_pass(error: Exception) -> bool:
    if isinstance(error, urllib.error.HTTPError):
        return error.code in (408, 429) or error.code >= 500
    reason = getattr(error, "reason", error)
    if isinstance(reason, ssl.SSLCertVerificationError):
        return False
    return getattr(reason, "errno", None) not in (errno.ENETUNREACH, errno.EHOSTUNREACH)


class Fetch:
    def __init__(self, server: Server, files: list[File]) -> None:
        self.server, self.files = server, files
        self.todo: queue.Queue[Optional[tuple[File, int, int]]] = queue.Queue()
        self.failed: Optional[Exception] = None
        self.hashes: dict[str, str] = {}
        self.left, self.lock, self.came, self.said = len(files), threading.Lock(), 0, time.monotonic()

    def run(self) -> dict[str, str]:
        for file in self.files:
            self.todo.put((file, 0, PART_BYTES))
        threads = [threading.Thread(target=self.work, daemon=True) for _ in range(CONNECTIONS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if self.failed:
            raise self.failed
        return {file.called: self.hashes[file.called] for file in self.files}

    def work(self) -> None:
        while True:
            part = self.todo.get()
            if part is None:
                return
            try:
                self.fetch_part(*part)
            except Exception as error:  # of any type: main() reports it
                self.end(error)

    def end(self, error: Optional[Exception] = None) -> None:
        self.failed = self.failed or error
        for _ in range(CONNECTIONS):
            self.todo.put(None)

    def fetch_part(self, file: File, first: int, after: int) -> None:
        at, tries = first, 0
        while at < after and not self.failed:
            before = at
            try:
                at, after = self.receive(file, at, after)
                continue
            except (OSError, http.client.HTTPException) as error:
                if getattr(error, "errno", None) == errno.ENOSPC:
                    raise
                if isinstance(error, urllib.error.HTTPError):
                    error.close()
                at = getattr(error, "reached", at)
                tries = 1 if at > before else tries + 1
                if tries >= TRIES or not will_pass(error):
                    why = explain_status(error, self.server, file) if isinstance(error, urllib.error.HTTPError) else explain(error, self.server, file)
                    raise Failed(why) from error
            time.sleep(min(0.2 * 2 ** tries, 10))
        if not self.failed and file.part_done(first, after):
            self.file_done(file)

    def receive(self, file: File, at: int, after: int) -> tuple[int, int]:
        """Receives one reply, from byte `at` on. Returns how far it came, and the end of the part, which the file's first reply may change."""
        with self.server.open(file.path, at, after - 1) as reply:
            if not file.known:
                after = self.first_answer(file, reply, after)
            if reply.status == 200 and at:
                raise Failed(f"{host_of(self.server.root)} cannot send parts of a file, and its connection broke at {mega(at)} of {file.name}")
            while at < after and not self.failed:
                try:
                    piece = reply.read(min(PIECE_BYTES, after - at))
                    if not piece:
                        raise http.client.IncompleteRead(b"")
                except (OSError, http.client.HTTPException) as error:
                    error.reached = at
                    raise
                self.write(file, piece, at)
                at += len(piece)
        return at, after

    def first_answer(self, file: File, reply: Any, after: int) -> int:
        total = int(reply.headers["Content-Range"].rsplit("/", 1)[1]) if reply.status == 206 else int(reply.headers["Content-Length"] or 0)
        file.learn(published_hash(reply), total)
        if reply.status == 200:
            return total
        for first in range(after, total, PART_BYTES):
            self.todo.put((file, first, min(first + PART_BYTES, total)))
        return min(after, total)

    def write(self, file: File, piece: bytes, at: int) -> None:
        while piece:
            wrote = os.pwrite(file.fd, piece, at)
            piece, at = piece[wrote:], at + wrote
            self.came += wrote
        now = time.monotonic()
        if now - self.said > SAY_EVERY_S:
            self.said = now
            print(f"weights: {mega(self.came)} of {mega(sum(f.bytes for f in self.files))}", flush=True)

    def file_done(self, file: File) -> None:
        self.hashes[file.called] = file.finish()
        with self.lock:
            self.left -= 1
            over = not self.left
        if over:
            self.end()


def check_room(folder: str, files: list[File]) -> None:
    needed, free = sum(file.bytes for file in files), shutil.disk_usage(folder).free
    if needed > free:
        raise Failed(f"the pod's disk has {mega(free)} free and the weights need {mega(needed)}: raise pod.disk_gb")


def fetch(folder: str, about: dict[str, Any], server: Callable[[], Server]) -> None:
    os.makedirs(folder, exist_ok=True)
    files = [File(folder, f) for f in about["files"]]
    try:
        check_room(folder, files)
        hashes = Fetch(server(), files).run()
    finally:
        for file in files:
            if os.path.exists(file.part):
                os.unlink(file.part)
    with open(os.path.join(folder, "weights.json"), "w", encoding="utf-8") as f:
        json.dump({"revision": about["revision"], "sha256": hashes}, f, indent=1, sort_keys=True)


def main() -> int:
    folder = sys.argv[1]
    with open(sys.argv[2], encoding="utf-8") as f:
        about = json.load(f)
    env = os.environ
    try:
        fetch(folder, about, lambda: Server(env.get("BURST_WEIGHTS_URL", ""), env.get("HF_TOKEN", ""), env.get("BURST_WEIGHTS_TRUSTED") == "1"))
    except Failed as error:
        print(f"burst: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        print("burst: the pod's disk is full: raise pod.disk_gb", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
