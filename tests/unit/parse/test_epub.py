"""Tests of the EPUB parser."""

import pytest

from quipu.errors import InvalidDocument
from tests.unit.parse.files import read, text_of, texts, zipped

CONTAINER = '<container><rootfiles><rootfile full-path="OPS/book.opf"/></rootfiles></container>'
CHAPTERS = {
    "OPS/one.xhtml": "<html><body><h1>Cords</h1><p>A main cord.</p><h2>Knots</h2><p>Long ones.</p></body></html>",
    "OPS/the two.xhtml": "<html><body><p>Roads led west.</p></body></html>",
}
BOOK = """<package xmlns="http://www.idpf.org/2007/opf" xmlns:dc="http://purl.org/dc/elements/1.1/"><metadata>
<dc:title>On Quipus</dc:title><dc:creator>A. Kober</dc:creator><dc:language>en</dc:language><dc:date>1948</dc:date>
</metadata>
<manifest><item id="n" href="nav.xhtml" media-type="application/xhtml+xml" properties="nav"/>
<item id="a" href="one.xhtml" media-type="application/xhtml+xml"/><item id="p" href="p.svg" media-type="image/svg+xml"/>
<item id="b" href="the%20two.xhtml" media-type="application/xhtml+xml"/></manifest>
<spine><itemref idref="n"/><itemref idref="b"/><itemref idref="p"/><itemref idref="a"/><itemref idref="b"/></spine>
</package>"""


def book(**changed: str) -> bytes:
    parts = {
        "mimetype": "application/epub+zip",
        "META-INF/container.xml": CONTAINER,
        "OPS/book.opf": BOOK,
        "OPS/nav.xhtml": "<p>Contents</p>",
        **CHAPTERS,
    }
    return zipped({**parts, **changed})


def test_chapters_are_read_in_the_order_of_the_spine_with_their_headings() -> None:
    parsed = read("a.epub", book())
    assert [(block.kind, block.headings, text_of(parsed, block)) for block in parsed.blocks] == [
        ("paragraph", (), "Roads led west."),
        ("heading", (), "Cords"),
        ("paragraph", ("Cords",), "A main cord."),
        ("heading", ("Cords",), "Knots"),
        ("paragraph", ("Cords", "Knots"), "Long ones."),
    ]


def test_the_books_title_and_author_are_kept() -> None:
    parsed = read("a.epub", book())
    assert (parsed.title, parsed.metadata) == ("On Quipus", {"author": "A. Kober", "language": "en", "date": "1948"})


def test_a_protected_book_is_refused_and_one_with_protected_fonts_is_not() -> None:
    encryption = '<encryption><EncryptedData><EncryptionMethod Algorithm="{}"/></EncryptedData></encryption>'
    fonts = encryption.format("http://www.idpf.org/2008/embedding")
    assert texts(read("a.epub", book(**{"META-INF/encryption.xml": fonts})))
    text = encryption.format("http://www.w3.org/2001/04/xmlenc#aes128-cbc")
    with pytest.raises(InvalidDocument, match="protected"):
        read("a.epub", book(**{"META-INF/encryption.xml": text}))


def test_a_missing_chapter_is_named() -> None:
    with pytest.raises(InvalidDocument, match=r"OPS/gone\.xhtml is missing"):
        read("a.epub", book(**{"OPS/book.opf": BOOK.replace('"one.xhtml"', '"gone.xhtml"')}))


def test_entities_in_the_list_of_chapters_are_refused() -> None:
    with pytest.raises(InvalidDocument, match="document type"):
        read("a.epub", book(**{"OPS/book.opf": '<!DOCTYPE p [<!ENTITY a "x">]>' + BOOK}))
