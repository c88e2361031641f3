#!/usr/bin/env python3
"""Compares what burst reads in Markdown with what cmark-gfm, GitHub's parser, finds there.

markdown.py PRINTER FILE...            each file
markdown.py PRINTER --random N [SEED]  N documents made of fragments
"""
import html.parser
import json
import random
import re
import subprocess
import sys
import tempfile
import unicodedata
import xml.etree.ElementTree as ET

NS = "{http://commonmark.org/xml/1.0}"
WITHIN_TEXT = set("a abbr acronym b bdi bdo big cite code data del dfn em font i img ins kbd label mark q ruby s samp "
                  "small span strike strong sub sup time tt u var wbr".split())
UNSPOKEN = set("head pre script style svg template textarea".split())


class Html(html.parser.HTMLParser):
    """The text of a piece of HTML: a newline between blocks."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.text, self.images, self.code, self.inside = "", 0, 0, None

    def handle_starttag(self, tag, attrs):
        self.images += tag == "img" and not self.inside
        self.code += tag == "pre" and not self.inside
        if not self.inside:
            self.text += "" if tag in WITHIN_TEXT else " " if tag == "br" else "\n"
            self.inside = tag if tag in UNSPOKEN else None

    def handle_endtag(self, tag):
        if self.inside == tag:
            self.inside = None
        if not self.inside and tag not in WITHIN_TEXT:
            self.text += "\n"

    def handle_data(self, data):
        if not self.inside:
            self.text += re.sub(r"\s", " ", data)


def read_html(text):
    reader = Html()
    reader.feed(text)
    reader.close()
    return reader


def normalise(text):
    text = re.sub(r"[\s\u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+", " ", text)
    return "".join(c for c in text if unicodedata.category(c) not in ("Cc", "Cf") or c == "\u200d").strip(" ")


def has_words(text):
    return any(c.isalnum() or c in "%&+=@$#" or unicodedata.category(c) in ("Sm", "Sc", "So", "Sk") and ord(c) > 0xa1 for c in text)


class Oracle:
    """The items of a document as cmark-gfm's tree has them."""

    def __init__(self, path):
        with open(path, "rb") as f:
            text = re.sub(rb"\A(---|\+\+\+)\n(?!\n).*?\n\1\n", b"", f.read(), flags=re.S)  # front matter
        extensions = [word for name in ("table", "strikethrough", "tasklist", "footnotes") for word in ("-e", name)]
        out = subprocess.run(["cmark-gfm", "-t", "xml", *extensions], input=text, check=True, capture_output=True).stdout
        self.items, self.code, self.images, self.notes = [], 0, 0, 0
        # it has no name for the nodes of footnotes
        out = out.replace(b"<<unknown>", b"<footnote").replace(b"</<unknown>", b"</footnote")
        self.block(ET.fromstring(re.sub(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]", b" ", out)))

    def add(self, node, text, heading=False):
        text = normalise(text)
        if heading:
            text = re.sub(r" \{[#.][^{}]*\}$", "", text)
        if has_words(text):
            self.items.append((heading, text))

    def inline(self, node):
        text = ""
        for child in node:
            tag = child.tag.removeprefix(NS)
            if tag in ("text", "code"):
                text += child.text or ""
            elif tag in ("softbreak", "linebreak"):
                text += " "
            elif tag == "html_inline":
                piece = read_html(child.text or "")
                self.images += piece.images
                text += piece.text
            elif tag == "image":
                self.images += sum(1 for _ in child.iter(NS + "image"))
            elif tag != "footnote":
                text += self.inline(child)
        return text

    def block(self, node):
        tag = node.tag.removeprefix(NS)
        if tag in ("paragraph", "heading"):
            self.add(node, self.inline(node), tag == "heading")
        elif tag == "code_block":
            self.code += 1
        elif tag == "footnote":
            self.notes += 1
        elif tag == "html_block":
            piece = read_html(node.text or "")
            self.code += piece.code
            self.images += piece.images
            for line in piece.text.split("\n"):
                self.add(node, line)
        elif tag in ("table_row", "table_header"):
            cells = [normalise(self.inline(cell)) for cell in node]
            self.add(node, ", ".join(cell for cell in cells if cell))
        else:
            for child in node:
                self.block(child)


def read(printer, path):
    out = subprocess.run([printer, path], check=True, capture_output=True, text=True).stdout
    lines = [json.loads(line) for line in out.splitlines()]
    return [(item["heading"], item["text"]) for item in lines[:-1]], lines[-1]


def told(oracle):
    parts = [(oracle.code, "code block"), (oracle.images, "image"), (oracle.notes, "footnote")]
    return ", ".join(f"{n} {what}{'' if n == 1 else 's'}" for n, what in parts if n)


def compare(printer, path):
    """None, or how they differ."""
    got, end = read(printer, path)
    oracle = Oracle(path)
    if end["complaint"]:
        return f"refused: {end['complaint']}"
    if got != oracle.items:
        at = next((i for i, (a, b) in enumerate(zip(got, oracle.items)) if a != b), min(len(got), len(oracle.items)))
        return f"item {at + 1}: burst reads {got[at:at + 1]}, cmark-gfm {oracle.items[at:at + 1]}"
    if re.sub(r"(, )?\d+ silent lines?", "", end["silent"]) != told(oracle):
        return f"not spoken: burst counts \"{end['silent']}\", cmark-gfm \"{told(oracle)}\""
    return None


# ---- documents made of fragments ----

WORDS = "The old house by the river had been empty since 1912 when its owner a miller left for town".split()
SPANS = ["*{}*", "**{}**", "_{}_", "__{}__", "~~{}~~", "`{}`", "``{}``", "[{}](http://x.y/z)", "[{}][ref]", "[{}](<a b> \"t\")", "![{}](p.png)",
         "![a *b* {}][ref]", "<b>{}</b>", "<!-- {} -->", "\\*{}\\*", "{}[^1]", "{}[^two]", "&auml;{}", "&#8212;{}", "{}&amp;c", "[{}]", "({})", "*{}",
         "{}**", "_{}", "{}_x", "{}<br>", "\"{}\"", "{}&nope;", "<http://a.b/{}>", "{}  ", "{}\\", "***{}***", "**a *{}* b**", "`{}", "[a [{}](u)](v)",
         "![{}](<u>)", "\\[^1]{}", "`[^1]{}`", "<img src='x' alt=\"{}\">", "2*3*{}", "a_b_{}", "~{}~", "{}\\&amp;"]
LINES = ["# {}", "## {} ##", "###### {}", "#{}", "- {}", "* {}", "+ {}", "1. {}", "7) {}", "1912. {}", "> {}", "> > {}", ">{}", "  - {}", "    - {}",
         "   {}", "    {}", "\t{}", "- [ ] {}", "- [x] {}", "{}", "{}", "{}", "- > {}", "> - {}", "> # {}", "- # {}"]
BLOCKS = ["```\n{}\n```", "~~~ c\n# {}\n~~~", "````\n```\n{}\n````", "{}\n===", "{}\n---", "---", "***", "<div>\n{}\n</div>", "<!-- {}\n\n{} -->",
          "<p align=\"center\">{}<br>{}</p>", "| {} | {} |\n|---|:-:|\n| {} | {} |\n| {} |", "a | {}\n- | -\n{} | `x` | c", "[^1]: {}", "[^two]: {}\n\n    {}",
          "[ref]: http://r.s \"{}\"", "> ```\n> {}\n> ```", "- a\n\n  {}\n\n  - {}", "1. {}\n2. {}\n   ```\n   {}\n   ```", "<pre>\n{}\n\n{}\n</pre>",
          "<details><summary>{}</summary>\n\n{}\n\n</details>", "    {}\n\n    {}", "<script>\n{}\n</script>", "\\# {}", "&#35; {}", "* * *", "- - {}", "-\n  {}"]


def words(rng):
    return " ".join(rng.choice(WORDS) for _ in range(rng.randint(1, 4)))


def phrase(rng):
    parts = [rng.choice(SPANS).format(words(rng)) if rng.random() < 0.3 else words(rng) for _ in range(rng.randint(1, 4))]
    return rng.choice([" ", " ", " ", ""]).join(parts)


def document(rng):
    out = [words(rng)]  # a rule at the top may begin front matter
    for _ in range(rng.randint(1, 8)):
        pattern = rng.choice(LINES if rng.random() < 0.6 else BLOCKS)
        out.append(re.sub(r"\{\}", lambda _: phrase(rng) if pattern in LINES else words(rng), pattern))
        # Where md4c differs from GitHub: HTML, tables, notes and definitions of links end with a blank line.
        if rng.random() < 0.6 or re.match(r"<|\||a \||\[", out[-1]):
            out.append("")
    # each note and reference once, and each is named, as in a text that somebody has finished
    kept, seen = [], set()
    for line in "\n".join(out).split("\n"):
        name = re.match(r"\[(\^1|\^two|ref)\]:", line)
        if name and name[1] in seen:
            line = words(rng)
        if name:
            seen.add(name[1])
        kept.append(line)
    kept += ["", "The end[^1] of it[^two]."]
    kept += [line for name, line in (("^1", "\n[^1]: A note."), ("^two", "\n[^two]: Another."), ("ref", "\n[ref]: u")) if name not in seen]
    return "\n".join(kept) + "\n"


def read_random(printer, count, first):
    differ = 0
    with tempfile.NamedTemporaryFile("w", suffix=".md") as f:
        for seed in range(first, first + count):
            text = document(random.Random(seed))
            f.seek(0)
            f.truncate()
            f.write(text)
            f.flush()
            why = compare(printer, f.name)
            differ += why is not None
            if why:
                print(f"---- document {seed}: {why}\n{text}")
    print(f"{count} documents, {differ} differ")
    return differ * 100 <= count  # each of the two parsers has mistakes of its own


def main():
    printer, *rest = sys.argv[1:]
    if rest[0] == "--random":
        return read_random(printer, int(rest[1]), int(rest[2]) if len(rest) > 2 else 0)
    differ = {path: compare(printer, path) for path in rest}
    for path, why in differ.items():
        print(f"{path}: {why or 'the same'}")
    return not any(differ.values())


sys.exit(0 if main() else 1)
