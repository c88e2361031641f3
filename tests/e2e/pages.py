#!/usr/bin/env python3
"""pages.py COMMAND - what the pages (README.md and the like) hold that can be tested.

blocks DIR    writes each fenced block of a page to DIR/N and prints "N PAGE:LINE LANGUAGE TEST", where TEST is what the comment
              <!-- test: ... --> above the block says, or "-"
named NAME    prints the block whose TEST is NAME
commands      prints "PAGE:LINE<tab>COMMAND" for each `burst ...` and `make ...`, in blocks of shell and in running text
"""

import glob
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FENCE = re.compile(r"^\s*```(\w*)\s*$")
MARK = re.compile(r"^\s*<!-- test: (.*) -->\s*$")
INLINE = re.compile(r"`((?:burst|make) [^`]+)`")


def pages():
    """README.md first, then the others; those of test data are no pages."""
    found = ["README.md", *sorted(glob.glob("*/README.md", root_dir=ROOT)), *sorted(glob.glob("*/*/README.md", root_dir=ROOT)),
             "jobs/PROTOCOL.md", "tests/DEBUGGING.md", ".github/CONTRIBUTING.md", ".github/SECURITY.md"]
    return [p for p in found if os.path.exists(os.path.join(ROOT, p))]


def lines_of(page):
    with open(os.path.join(ROOT, page), encoding="utf-8") as f:
        return f.read().split("\n")


def blocks(page):
    """(line number, language, test, lines) of each block."""
    language = test = None
    start, body = 0, []
    mark = "-"
    for number, line in enumerate(lines_of(page), 1):
        fence = FENCE.match(line)
        if language is not None:
            if fence:
                yield start, language, test, body
                language, mark = None, "-"
            else:
                body.append(line)
        elif fence:
            language, test, start, body = fence[1] or "none", mark, number, []
        elif MARK.match(line):
            mark = MARK.match(line)[1]
        elif line.strip():
            mark = "-"
    if language is not None:
        sys.exit(f"{page}:{start}: a block without an end")


def shell_lines(body):
    """Commands of a block of shell: comments and prompts cut off, && and | split."""
    for offset, line in enumerate(body, 1):
        line = re.sub(r"(^|\s)#.*", "", line.strip())
        for part in re.split(r"&&|\|\||[|;]", line):
            words = part.split()
            while words and re.match(r"[A-Z_]+=|sudo$", words[0]):
                words = words[1:]
            if words and words[0] in ("burst", "make"):
                yield offset, " ".join(words)


def commands(page):
    inside = set()
    for start, language, _, body in blocks(page):
        inside.update(range(start, start + len(body) + 2))
        if language == "sh":
            for offset, command in shell_lines(body):
                yield start + offset, command
    text, starts, size = [], [], 0
    for number, line in enumerate(lines_of(page), 1):
        if number not in inside:
            starts.append((size, number))
            text.append(line)
            size += len(line) + 1
    joined = "\n".join(text)
    for found in INLINE.finditer(joined):
        line = max(number for at, number in starts if at <= found.start())
        yield line, " ".join(found[1].split())


def main():
    if sys.argv[1:2] == ["blocks"]:
        count = 0
        for page in pages():
            for start, language, test, body in blocks(page):
                count += 1
                with open(os.path.join(sys.argv[2], str(count)), "w", encoding="utf-8") as f:
                    f.write("\n".join(body) + "\n")
                print(f"{count} {page}:{start} {language} {test}")
    elif sys.argv[1:2] == ["named"]:
        found = [body for page in pages() for _, _, test, body in blocks(page) if test == sys.argv[2]]
        if len(found) != 1:
            sys.exit(f"{len(found)} blocks are named {sys.argv[2]}")
        print("\n".join(found[0]))
    elif sys.argv[1:2] == ["commands"]:
        for page in pages():
            for line, command in commands(page):
                print(f"{page}:{line}\t{command}")
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
