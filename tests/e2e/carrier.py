#!/usr/bin/env python3
"""carrier.py RULE... HOST PORT - stdin and stdout become a connection to HOST:PORT, as `kubectl exec`, `srun` or `ssh -W` make
one, and as badly as the rules say. "up" is towards the pod, "down" away from it.

    noise:TEXT      TEXT and a newline come down before the first byte of the pod
    words:TEXT      TEXT and a newline go to stderr at the end
    split           bytes pass one by one for the first 20,000 of each direction, then in odd pieces
    merge           what arrives within 50 ms passes as one piece
    stall:DIR:N     after N bytes nothing passes any more, and nobody is told
    cut:DIR:N       after N bytes both sides end, with exit code 0
    refuse          it ends at once, with exit code 1
    linger          it ignores SIGTERM and the end of its stdin
    log:FILE        a line for each start: its process id
    times:N:RULE    the rule holds for the first N starts alone (needs log:FILE before it)
"""
import os
import random
import select
import signal
import socket
import sys
import time

PIECE = 64 << 10


class Way:
    def __init__(self, source, target, rules, name):
        self.source, self.target, self.name, self.passed, self.ended = source, target, name, 0, False
        self.rules = rules
        self.limits = [(r[0], int(r[2])) for r in rules if r[0] in ("stall", "cut") and r[1] == name]

    def pieces(self, data):
        if not any(r[0] == "split" for r in self.rules):
            return [data]
        out = []
        while data:
            size = 1 if self.passed + sum(map(len, out)) < 20000 else random.randint(1, 5000)
            out.append(data[:size])
            data = data[size:]
        return out

    def carry(self):
        """Passes on what is there. False: this direction has ended, or a limit was reached."""
        if any(r[0] == "merge" for r in self.rules):
            time.sleep(0.05)
        data = os.read(self.source, PIECE)
        if not data:
            self.ended = True
            return True
        for what, limit in self.limits:
            if self.passed + len(data) >= limit:
                write_all(self.target, data[: max(limit - self.passed, 0)])
                if what == "cut":
                    return False
                while True:  # stall
                    signal.pause()
        for piece in self.pieces(data):
            write_all(self.target, piece)
            self.passed += len(piece)
        return True


def write_all(fd, data):
    while data:
        data = data[os.write(fd, data):]


def main():
    *words, host, port = sys.argv[1:]
    rules, starts = [], 0
    for word in words:
        rule = word.split(":", 1 if word.startswith(("noise", "words", "log")) else -1)
        if rule[0] == "log":
            with open(rule[1], "a+") as log:
                log.seek(0)
                starts = len(log.readlines())
                log.write(f"{os.getpid()}\n")
        elif rule[0] == "times":
            if starts < int(rule[1]):
                rules.append(rule[2:])
        else:
            rules.append(rule)
    said = [r[1] for r in rules if r[0] == "words"]
    code = run(rules, host, int(port))
    for text in said:
        print(text, file=sys.stderr)
    sys.stderr.flush()
    os._exit(code)


def run(rules, host, port):
    if any(r[0] == "refuse" for r in rules):
        return 1
    linger = any(r[0] == "linger" for r in rules)
    if linger:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    for rule in rules:
        if rule[0] == "noise":
            write_all(1, rule[1].encode() + b"\n")
    try:
        pod = socket.create_connection((host, port), 10)
    except OSError as why:
        print(f"carrier: {host}:{port}: {why}", file=sys.stderr)
        return 1
    ways = [Way(0, pod.fileno(), rules, "up"), Way(pod.fileno(), 1, rules, "down")]
    while not any(w.ended for w in ways):
        for fd in select.select([w.source for w in ways], [], [])[0]:
            try:
                if not next(w for w in ways if w.source == fd).carry():
                    return 0
            except OSError:
                return 1
    while linger:
        signal.pause()
    return 0


main()
