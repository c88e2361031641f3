#!/usr/bin/env python3
"""strings.py - lists the texts that burst shows to people, as "FILE: TEXT" lines, and checks their words.

A text is a string literal of two words or more in C or Python; adjacent literals are one text. In a shell script or the
Makefile it is what echo, printf and the like print. SQL, scripts in literals, HTML and the formats of vendors are left
out. `make strings` writes the list to tests/strings.txt, so that a review sees each
change of a message. `make lint` fails if that file is stale, or if a text has a word that the glossary forbids."""

import ast
import os
import re
import sys

import tree

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LIST = "tests/strings.txt"
FOLDERS = ["cmd", "config", "jobs", "orchestrator", "providers"]
# These hold programs in other languages, not texts.
NO_TEXTS = {"orchestrator/plan/cost.c", "orchestrator/base/gpus.c"}

C_TOKEN = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|[A-Za-z_]\w*|\s+|.', re.S)
MACRO = re.compile(r"[A-Z][A-Z0-9]*_?[A-Za-z0-9_]*$")
SHELL_PRINTS = re.compile(r'''(?:\b(?:echo|printf|say|die|fail)\s+|\breason=)("(?:\\.|[^"\\])*"|'[^']*')''')
TWO_WORDS = re.compile(r"[A-Za-z]{2,}[`\"',:;.)]{0,3} (?:\S* )?[`\"'(\\]{0,3}[A-Za-z]{2,}")
CODE = re.compile(
    r"^\s*(SELECT|INSERT|UPDATE [a-z_]+ SET|DELETE FROM|CREATE (TABLE|INDEX|TRIGGER)|ALTER|PRAGMA|BEGIN|WITH [a-z]+ AS|REPLACE INTO)\b"
    r"|\b(SELECT|FROM [a-z_]+ (WHERE|ORDER)|WHERE [a-z_.]+ ?(=|IS|IN)|ORDER BY|VALUES ?\(|GROUP BY|ON CONFLICT)"
    r"|^</?[a-z!?]|</[a-z]+>|^[A-Za-z-]+: [a-z]+/|Content-Type|Content-Security|^HTTP/1|^#!|\bconst [a-z]+=|^\.[A-Z]{2} |&& |;;")


def c_texts(source):
    """Yields the literals of a C source, adjacent ones joined; a macro between them stands in braces."""
    parts, macros = [], []
    for match in C_TOKEN.finditer(source):
        token = match[0]
        if token.isspace() or token.startswith(("/*", "//")):
            continue
        if token[0] == '"':
            parts += macros + [token[1:-1]]
            macros = []
        elif MACRO.match(token) and (parts or macros):
            macros.append("{" + token + "}")
        elif parts:
            yield "".join(parts + (macros if len(macros) == 1 and token in ",;)" else []))
            parts, macros = [], []
        else:
            macros = []


def is_docstring(node, parent):
    return isinstance(parent, ast.Expr) and isinstance(node.value, str)


def python_texts(source):
    tree = ast.parse(source)
    parents = {child: parent for parent in ast.walk(tree) for child in ast.iter_child_nodes(parent)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(part.value if isinstance(part, ast.Constant) else "{" + ast.unparse(part.value) + "}"
                          for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            parent = parents[node]
            if not isinstance(parent, (ast.JoinedStr, ast.Expr)):
                yield node.value.replace("\n", "\\n")


def shell_texts(source):
    """Yields what a script's lines print, quoted; comments are skipped."""
    for line in source.splitlines():
        if not line.lstrip(" \t@").startswith("#"):
            for match in SHELL_PRINTS.finditer(line):
                yield match[1][1:-1]


READERS = {".c": c_texts, ".h": c_texts, ".py": python_texts, ".sh": shell_texts, "Makefile": shell_texts}


def sources():
    return [path for path in tree.files("Makefile", *FOLDERS) if path.endswith(tuple(READERS)) and path not in NO_TEXTS]


def all_texts():
    """All literals with their file, code left out."""
    for path in sources():
        with open(os.path.join(ROOT, path), encoding="utf-8") as f:
            source = f.read()
        reader = next(READERS[end] for end in READERS if path.endswith(end))
        for text in reader(source):
            if not CODE.search(text):
                yield path, text


def listed():
    return "".join(sorted({f"{path}: {text}\n" for path, text in all_texts() if TWO_WORDS.search(text)}))


# ---- words that the glossary forbids, and what stands for them ----

FORBIDDEN = [
    (r"\b(is|be|was) had\b", "available"),
    (r"\blets? go\b", "release"),
    (r"\b(gives?|given) back\b|\bgives? (its|each|the) pods? back", "release, released"),
    (r"(?<!\$)\bhome\b(?! folder)", "fetched"),
    (r"\b([Nn]obody|[Ss]omebody|[Ww]hoever)\b", "name the actor"),
    (r"\bsays? no more\b|\bwithout (a word|words)\b|\bno word of\b", "no message"),
    (r"\bis told\b|\bcannot be told\b", "name who reports it"),
    (r"\b(its|this run's|by their) marks?\b", "marker"),
    (r"\bdear(er|est)?\b", "expensive"),
    (r"\bgo(es|ing)? on (with|without|from|at)\b", "continue"),
    (r"\bit wants\b|\bwants an? (value|number|text|group|list)\b", "needs, must be"),
    (r"\bis there already\b", "already exists"),
    (r"\bis no (pod|file|folder|text|name|list|time|address|key|event|field|amount)\b", "is not a"),
    (r"\bfor ever\b|\bwithout end\b", "until removed, without limit"),
    (r"\bcan travel\b|\bcannot travel\b|\bdoes not travel\b", "is sent"),
    (r"\bwhen (left out|not said)\b", "default"),
    (r"\b(come|came|comes) up\b", "boot"),
    (r"\bshould we vanish\b|\bof ours\b", "name the actor"),
    (r"\bnothing of it\b|\bbills any more\b", "all pods released"),
    (r"^\.\.\. [a-z]", "a full sentence"),
]
# The name of an example's channel; the folder of a user.
ALLOWED = ["a-name-nobody-guesses", "your whole home"]


def forbidden():
    """Yields a complaint for each text with a forbidden word."""
    for path, text in sorted(set(all_texts())):
        for allowed in ALLOWED:
            text = text.replace(allowed, "")
        for pattern, better in FORBIDDEN:
            found = re.search(pattern, text) if TWO_WORDS.search(text) else None
            if found:
                yield f'{path}: "{found[0]}" in "{text[:80]}": write instead: {better}'


def findings():
    """What is wrong with the texts, one line each."""
    with open(os.path.join(ROOT, LIST), encoding="utf-8") as f:
        if f.read() != listed():
            yield f"{LIST} is stale: run make strings, and review the change"
    yield from forbidden()


def main():
    with open(os.path.join(ROOT, LIST), "w", encoding="utf-8") as f:
        f.write(listed())
    print(f"wrote {LIST}")


if __name__ == "__main__":
    sys.exit(main())
