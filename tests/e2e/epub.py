#!/usr/bin/env python3
"""epub.py FILE [PARAGRAPHS] - writes a small EPUB 3 book with a cover, two chapters and a footnote; with PARAGRAPHS a
third chapter of that many paragraphs."""
import sys
import zipfile
import zlib


def png(width: int, height: int) -> bytes:
    """A red picture."""
    def chunk(kind: bytes, data: bytes) -> bytes:
        return len(data).to_bytes(4, "big") + kind + data + zlib.crc32(kind + data).to_bytes(4, "big")

    row = b"\0" + b"\xc0\x20\x20" * width
    head = width.to_bytes(4, "big") + height.to_bytes(4, "big") + b"\x08\x02\0\0\0"
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(row * height)) + chunk(b"IEND", b"")


CONTAINER = """<?xml version="1.0"?><container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>
<rootfile full-path="OEBPS/content.opf" media-type="application/oebps-package+xml"/></rootfiles></container>"""
PACKAGE = """<?xml version="1.0" encoding="UTF-8"?>
<package xmlns="http://www.idpf.org/2007/opf" version="3.0"><metadata xmlns:dc="http://purl.org/dc/elements/1.1/">
<dc:title>The Small Book</dc:title><dc:creator>Anna Author</dc:creator><dc:language>en</dc:language><dc:date>2019-05-01</dc:date></metadata>
<manifest><item id="nav" href="nav.xhtml" media-type="application/xhtml+xml" properties="nav"/>
<item id="cover" href="cover.png" media-type="image/png" properties="cover-image"/>
<item id="one" href="one.xhtml" media-type="application/xhtml+xml"/><item id="two" href="two.xhtml" media-type="application/xhtml+xml"/>
<item id="three" href="three.xhtml" media-type="application/xhtml+xml"/></manifest>
<spine><itemref idref="nav"/><itemref idref="two"/><itemref idref="one"/>%s</spine></package>"""
PAGE = """<?xml version="1.0" encoding="utf-8"?><!DOCTYPE html><html xmlns="http://www.w3.org/1999/xhtml"
xmlns:epub="http://www.idpf.org/2007/ops"><head><title>x</title></head><body>%s</body></html>"""
NAV = PAGE % """<nav epub:type="toc"><ol><li><a href="two.xhtml">First things</a></li><li><a href="one.xhtml#last">Last things</a></li>
</ol></nav>"""
TWO = PAGE % """<h1>First things</h1><p>It began at caf\u00e9s<a epub:type="noteref" href="#n">1</a>.</p>
<span epub:type="pagebreak" title="2"/><aside epub:type="footnote" id="n"><p>Not read.</p></aside>"""
ONE = PAGE % """<h1 id="last">Last things</h1><p>It ended&nbsp;soon.</p>"""


def main() -> None:
    paragraphs = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    three = "".join(f"<p>This is paragraph {i} of a long book, in which nothing happens, and then {i * 7919 % 10007} "
                    f"more things do not happen either.</p>\n" for i in range(paragraphs))
    with zipfile.ZipFile(sys.argv[1], "w", zipfile.ZIP_DEFLATED) as book:
        book.writestr(zipfile.ZipInfo("mimetype"), "application/epub+zip")
        book.writestr("META-INF/container.xml", CONTAINER)
        book.writestr("OEBPS/content.opf", PACKAGE % ('<itemref idref="three"/>' if paragraphs else ""))
        book.writestr("OEBPS/nav.xhtml", NAV)
        book.writestr("OEBPS/one.xhtml", ONE)
        book.writestr("OEBPS/two.xhtml", TWO)
        book.writestr("OEBPS/three.xhtml", PAGE % three)
        book.writestr("OEBPS/cover.png", png(60, 90))


main()
