#!/usr/bin/env python3
"""test_weights.py - burst_weights.py against a server of its own: parts, broken connections, hashes, refusals, the token, the disk."""
import contextlib
import errno
import hashlib
import http.server
import io
import json
import os
import random
import sys
import tempfile
import threading
import unittest
import warnings
from unittest import mock

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "jobs", "workers"))

import burst_weights  # noqa: E402

BIG = random.Random(7).randbytes(3_500_000)
SMALL = b'{"a": 1}'


class Hub(http.server.BaseHTTPRequestHandler):
    """Serves files by path; `rules` of the server bend what it does."""

    def do_GET(self) -> None:
        rules, path = self.server.rules, self.path
        self.server.seen.append((path, self.headers.get("Range"), self.headers.get("Authorization")))
        if path in rules.get("status", {}):
            return self.send_error(rules["status"][path])
        if path in rules.get("redirect", {}):
            self.send_response(302)
            self.send_header("Location", rules["redirect"][path])
            self.send_header("X-Linked-Etag", f'"{rules.get("etag", "0" * 64)}"')
            self.send_header("Content-Length", "0")
            return self.end_headers()
        data = self.server.files.get(path)
        if data is None:
            return self.send_error(404)
        first, last = 0, len(data) - 1
        if self.headers.get("Range") and not rules.get("whole"):
            first, last = (int(n) for n in self.headers["Range"][len("bytes="):].split("-"))
            last = min(last, len(data) - 1)
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {first}-{last}/{len(data)}")
        else:
            self.send_response(200)
        self.send_header("Content-Length", str(last - first + 1))
        self.end_headers()
        body = data[first:last + 1]
        if rules.get("cuts", 0) > 0 and len(body) > 1000:
            rules["cuts"] -= 1
            body = body[:len(body) // 2 + 1]  # then the connection breaks
        self.wfile.write(body)
        self.close_connection = True

    def handle(self) -> None:
        with contextlib.suppress(OSError):  # the client has heard enough
            super().handle()

    def log_message(self, *words: object) -> None:
        pass


class Weights(unittest.TestCase):
    def setUp(self) -> None:
        self.hub, self.url = self.start()
        self.hub.files = {"/org/model/resolve/r1/big.bin": BIG, "/org/model/resolve/r1/sub/small.json": SMALL}
        self.folder = tempfile.mkdtemp()
        for name, value in (("PART_BYTES", 1_000_000), ("PIECE_BYTES", 100_000)):
            self.enterContext(mock.patch.object(burst_weights, name, value))
        self.enterContext(mock.patch("burst_weights.time.sleep"))
        self.enterContext(warnings.catch_warnings())
        warnings.simplefilter("ignore", ResourceWarning)  # of the server, whose stderr is that of the program here
        self.env = {"BURST_WEIGHTS_URL": self.url}

    def start(self) -> tuple:
        hub = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hub)
        hub.rules, hub.seen, hub.files = {}, [], {}
        thread = threading.Thread(target=hub.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        self.addCleanup(hub.server_close)
        self.addCleanup(hub.shutdown)
        return hub, f"http://127.0.0.1:{hub.server_address[1]}"

    def fetch(self, files: list) -> tuple:
        """Status, what it printed, what it complained of."""
        about = os.path.join(tempfile.mkdtemp(), "list.json")
        with open(about, "w", encoding="utf-8") as f:
            json.dump({"revision": "r1", "files": files}, f)
        out, err = io.StringIO(), io.StringIO()
        with mock.patch.dict(os.environ, self.env), mock.patch.object(sys, "argv", ["x", self.folder, about]), \
                contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = burst_weights.main()
        return status, out.getvalue(), err.getvalue()

    def one(self, name: str = "big.bin", data: bytes = BIG, **more: object) -> dict:
        return {"repository": "org/model", "revision": "r1", "file": name, "as": None, "sha256": hashlib.sha256(data).hexdigest(),
                "bytes": len(data), **more}

    def both(self) -> list:
        return [self.one(), self.one("sub/small.json", SMALL, sha256=None, bytes=0)]

    def left(self) -> list:
        return sorted(os.path.relpath(os.path.join(at, f), self.folder) for at, _, found in os.walk(self.folder) for f in found)

    def fails(self, files: list, words: str) -> None:
        status, _, err = self.fetch(files)
        self.assertEqual((status, err.count("\n")), (1, 1), err)
        self.assertIn(words, err)
        self.assertEqual(self.left(), [])

    def test_files_come_in_parts(self) -> None:
        status, out, err = self.fetch(self.both())
        self.assertEqual((status, err), (0, ""))
        with open(f"{self.folder}/big.bin", "rb") as f:
            self.assertEqual(f.read(), BIG)
        self.assertEqual(sorted(r for p, r, _ in self.hub.seen if p.endswith("big.bin")),
                         ["bytes=0-999999", "bytes=1000000-1999999", "bytes=2000000-2999999", "bytes=3000000-3499999"])
        with open(f"{self.folder}/weights.json", encoding="utf-8") as f:
            self.assertEqual(json.load(f), {"revision": "r1", "sha256": {"big.bin": hashlib.sha256(BIG).hexdigest(),
                                                                         "sub/small.json": hashlib.sha256(SMALL).hexdigest()}})
        self.assertIn("(as published)", out)
        self.assertIn("sub/small.json: 0.0 MB, sha256 " + hashlib.sha256(SMALL).hexdigest() + " (recorded; none is known)", out)

    def test_a_broken_part_goes_on_where_it_ended(self) -> None:
        self.hub.rules["cuts"] = 3
        self.assertEqual(self.fetch([self.one()])[0], 0)
        starts = sorted(int(r[len("bytes="):].split("-")[0]) for _, r, _ in self.hub.seen)
        self.assertEqual(len(starts), 7)
        self.assertEqual(len(set(starts)), 7)  # nothing was asked for twice

    def test_a_server_without_parts(self) -> None:
        self.hub.rules["whole"] = True
        self.assertEqual(self.fetch(self.both())[0], 0)

    def test_a_wrong_byte(self) -> None:
        self.hub.files["/org/model/resolve/r1/big.bin"] = BIG[:-1] + bytes([BIG[-1] ^ 1])
        self.fails([self.one()], "big.bin of org/model is not the file that was published: its sha256 is")

    def test_a_wrong_size_is_seen_at_once(self) -> None:
        self.hub.files["/org/model/resolve/r1/big.bin"] = BIG + b"x"
        self.fails([self.one()], "has 3500001 bytes on the server, and should have 3500000")
        self.assertEqual(len(self.hub.seen), 1)

    def test_what_the_hub_says_of_a_file_without_a_known_hash(self) -> None:
        store, address = self.start()
        store.files["/blob"] = BIG
        self.hub.rules["redirect"] = {"/org/model/resolve/r1/big.bin": f"{address}/blob"}
        self.fails([self.one(sha256=None)], "should be 0000")
        self.hub.rules["etag"] = hashlib.sha256(BIG).hexdigest()
        self.assertIn("(as its server says; none is known here)", self.fetch([self.one(sha256=None)])[1])

    def test_refusals(self) -> None:
        for code, words in ((401, "wants a token (401): put HF_TOKEN into your environment and into job.env"), (403, "wants a token (403)"),
                            (404, "has no big.bin at revision r1 (404)"), (503, "answers 503 for big.bin")):
            self.hub.rules["status"] = {"/org/model/resolve/r1/big.bin": code}
            self.fails([self.one()], words)
        self.env.update(HF_TOKEN="hf_secret", BURST_WEIGHTS_TRUSTED="1")
        self.hub.rules["status"] = {"/org/model/resolve/r1/big.bin": 403}
        status, _, err = self.fetch([self.one()])
        self.assertIn("refuses this HF_TOKEN (403): accept the terms of org/model", err)
        self.assertNotIn("hf_secret", err)

    def test_the_token_goes_to_one_host(self) -> None:
        store, address = self.start()
        store.files["/blob"] = BIG
        self.hub.rules.update(redirect={"/org/model/resolve/r1/big.bin": f"{address}/blob"}, etag=hashlib.sha256(BIG).hexdigest())
        self.env["HF_TOKEN"] = "hf_secret"
        self.assertEqual(self.fetch([self.one()])[0], 0)  # a mirror that a project names
        self.assertEqual({a for _, _, a in self.hub.seen + store.seen}, {None})
        self.env["BURST_WEIGHTS_TRUSTED"] = "1"
        self.assertEqual(self.fetch([self.one()])[0], 0)
        self.assertIn("Bearer hf_secret", {a for _, _, a in self.hub.seen})
        self.assertEqual({a for _, _, a in store.seen}, {None})

    def test_only_https(self) -> None:
        self.hub.rules["redirect"] = {"/org/model/resolve/r1/big.bin": "http://weights.example/blob?key=1"}
        self.fails([self.one()], "sends this pod to http://weights.example/blob, which is not https")
        self.env["BURST_WEIGHTS_URL"] = "http://weights.example"
        self.fails([self.one()], "weights_url http://weights.example: only https")

    def test_no_network(self) -> None:
        self.env["BURST_WEIGHTS_URL"] = "https://no-such-host.invalid"
        self.fails([self.one()], 'no network in this pod: no-such-host.invalid cannot be reached for weights; a local pod has one with '
                                 'providers.local.network = "host"')
        self.hub.shutdown()
        self.hub.server_close()
        self.env["BURST_WEIGHTS_URL"] = self.url
        self.fails([self.one()], "127.0.0.1 does not answer: big.bin of org/model cannot be fetched")

    def test_a_full_disk(self) -> None:
        with mock.patch("burst_weights.os.pwrite", side_effect=OSError(errno.ENOSPC, "No space left on device")):
            self.fails([self.one()], "the pod's disk is full: raise pod.disk_gb")
        self.fails([self.one(bytes=1 << 60)], "raise pod.disk_gb")
        self.assertEqual(len([p for p, _, _ in self.hub.seen]), len([p for p, r, _ in self.hub.seen if p.endswith("big.bin")]))


if __name__ == "__main__":
    unittest.main()
