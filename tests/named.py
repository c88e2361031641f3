#!/usr/bin/env python3
"""named.py [PAGE...] - each file, function, struct and constant that a page names in backticks exists in the tree. lint.py calls
faults(). As a program it prints the faults of the given pages, or of all pages, and exits with 1 if there are some."""

import fnmatch
import functools
import os
import re
import sys

import tree

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SOURCE = (".c", ".h", ".sh", ".py", ".js", "Makefile")
ENDINGS = r"\.(?:c|h|sh|py|sql|js|md|txt|proto|syms|cfg|svg|json)"
PLACEHOLDER = re.compile(r"(?:^|[/_])(?:NAME|FILE|X|acme)(?:\.|/)|(?:^|/)[A-Z]+(?:/|$)")
TOP_LEVEL = ("cmd", "config", "jobs", "orchestrator", "providers", "tests")
PLACED = re.compile(r"`(\w+)\(\)`,?\s+(?:\(|in\s+|of\s+)`([a-z_][\w./]*\.[ch])`")
FENCED = re.compile(r"^```.*?^```", re.M | re.S)


@functools.cache
def known_files():
    return tree.files()


@functools.cache
def folders():
    return {name[:i] for name in known_files() for i, letter in enumerate(name) if letter == "/"}


@functools.cache
def sources():
    """The text of all sources, without comments of C: a comment may still speak of what is gone."""
    texts = []
    for name in known_files():
        path = os.path.join(ROOT, name)
        if name.endswith(SOURCE) and os.path.isfile(path):
            with open(path, encoding="utf-8", errors="replace") as f:
                text = f.read()
            texts.append(re.sub(r"/\*.*?\*/", "", text, flags=re.S) if name.endswith((".c", ".h")) else text)
    return "\n".join(texts)


@functools.cache
def words():
    return set(re.findall(r"\w+", sources()))


def matches(pattern):
    """Whether a file of the tree, or a folder if the pattern ends in "/", has this path; * stands for a part of a name."""
    if any(fnmatch.fnmatchcase(name, pattern.rstrip("/")) for name in folders()):
        return True
    return not pattern.endswith("/") and any(fnmatch.fnmatchcase(name, pattern) and name.count("/") == pattern.count("/") for name in known_files())


def places(page):
    """Paths of a page start at the root, at the page's folder, in orchestrator/ or in tests/."""
    return ("", os.path.dirname(page), "orchestrator", "tests")


def file_exists(page, name):
    return any(matches(os.path.normpath(os.path.join(place, name)) + "/" * name.endswith("/")) for place in places(page))


def is_somewhere(name):
    return any(fnmatch.fnmatchcase(os.path.basename(known), name) for known in known_files())


def misplaced(page, text):
    """Yields each bare name of a source that neither the page's folder has, nor one that was named before it, in the paragraph
    or the list."""
    for part in re.split(r"\n\n", text):
        at = None
        for name in re.findall(r"`([^`\n]+)`", part):
            if "/" in name and is_file(page, name) and file_exists(page, name):
                at = next(os.path.normpath(os.path.join(place, name)) for place in places(page)
                          if matches(os.path.normpath(os.path.join(place, name))))
                at = at if at in folders() else os.path.dirname(at)
            elif at and is_file(page, name) and is_somewhere(name) and not matches(f"{at}/{name}") and not file_exists(page, name):
                yield name, at


def is_file(page, name):
    """Whether a text is meant as a path of the tree: by its first folder, or by the ending of a source."""
    if not re.fullmatch(r"\.{0,2}[a-z_][A-Za-z0-9_./*-]*", name) or PLACEHOLDER.search(name):
        return False
    first, slash, rest = name.partition("/")
    if not slash:
        return re.search(r"\.(c|h|py|js)$", name) is not None
    if first in TOP_LEVEL and rest:
        return not re.search(r"/[tc]_", name) # a test: lint.py looks for those
    return any(os.path.join(place, first) in folders() for place in places(page)) and \
        (re.search(ENDINGS + "$", name) is not None or (name.endswith("/") and rest != ""))


def fault(page, name):
    """What is wrong with a text in backticks; None if nothing is, or if it names nothing of the tree."""
    if re.fullmatch(r"\w+\(\)", name):
        if not re.search(rf"\b{name[:-2]}\(", sources()):
            return f"the function {name}"
    elif re.fullmatch(r"struct \w+", name):
        if not re.search(rf"\b{name} \{{", sources()):
            return f"the {name}"
    elif re.fullmatch(r"[A-Z]+_[A-Z0-9_]+", name):
        # a provider's key may come from PROVIDER_KEY, which no source spells out; "mine" is the example of a plug-in
        provider, _, key = name.lower().partition("_")
        known = provider == "mine" or (f"providers/{provider}" in folders() and key in words())
        if name not in words() and not known:
            return f"the constant or variable {name}"
    elif is_file(page, name) and not file_exists(page, name) and ("/" in name or not is_somewhere(name)):
        return f"the {'folder' if name.endswith('/') else 'file'} {name}"
    return None


def faults(page, text):
    text = FENCED.sub("", text)
    for name in sorted(set(re.findall(r"`([^`\n]+)`", text))):
        what = fault(page, name)
        if what:
            yield f"{page} names {what}, which does not exist"
    for name, folder in misplaced(page, text):
        yield f"{page} names the file {name} behind one of {folder}, which does not have it"
    for function, file in PLACED.findall(text):
        at = next((path for path in (os.path.join(ROOT, place, file) for place in places(page)) if os.path.isfile(path)), None)
        if at and not re.search(rf"\b{function}\(", open(at, encoding="utf-8").read()):
            yield f"{page} looks for {function}() in {file}, which does not have it"


def main():
    found = 0
    for page in sys.argv[1:] or [name for name in known_files() if name.endswith(".md")]:
        with open(os.path.join(ROOT, page), encoding="utf-8") as f:
            for text in faults(page, f.read()):
                print(text)
                found = 1
    return found


if __name__ == "__main__":
    sys.exit(main())
