"""Tests of signatures: files with a wrong suffix, with a password, or of an old format."""

import pytest

from quipu.errors import InvalidDocument
from quipu.parse.formats import FORMATS, detect_file_type
from tests.unit.parse.files import pdf, prose, read, zipped

OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600)


def ole(stream: str) -> bytes:
    return OLE + stream.encode("utf-16-le")


PDF = pdf([prose("Text.")])


@pytest.mark.parametrize(
    ("name", "data", "says", "remedy"),
    [
        ("a.docx", PDF, "it holds a PDF document", r"Rename it to end in \.pdf"),
        ("a.csv", PDF, "it holds a PDF document", r"\.pdf"),
        ("a.txt", zipped({"word/document.xml": "<a/>"}), "it holds a Word document", r"\.docx"),
        ("a.pdf", zipped({"xl/workbook.xml": "<a/>"}), "it holds an Excel workbook", r"\.xlsx"),
        ("a.docx", zipped({"ppt/presentation.xml": "<a/>"}), "it holds a PowerPoint", r"\.pptx"),
        ("a.pdf", b"<html><body>Not found</body></html>", "it holds an HTML page", r"\.html"),
        ("a.pdf", b"\x89PNG\r\n\x1a\n", "it holds a PNG image", "Convert"),
        ("a.docx", b"{\\rtf1 text}", "it holds a Rich Text document", r"\.docx"),
        ("a.docx", zipped({"mimetype": "application/vnd.oasis.opendocument.text"}, 0), "OpenDocument", r"\.docx"),
        ("a.docx", ole("WordDocument"), r"old format \(\.doc\)", r"Save it as \.docx"),
        ("a.docx", b"plain text", "its first bytes are different", "give it the right suffix"),
        ("a.docx", b"PK\x03\x04 cut short", "archive is not complete", "again"),
        ("a.doc", ole("WordDocument"), r"old Word format \(\.doc\)", r"Save it as \.docx.*soffice"),
        ("a.xls", ole("Workbook"), r"old Excel format \(\.xls\)", r"\.xlsx"),
        ("a.ppt", b"anything", r"old PowerPoint format \(\.ppt\)", r"\.pptx"),
        ("a.doc", ole("EncryptedPackage"), "protected by a password", r"\.docx"),
    ],
)
def test_the_refusal_says_what_the_file_is_and_what_to_do(name: str, data: bytes, says: str, remedy: str) -> None:
    with pytest.raises(InvalidDocument, match=says) as caught:
        read(name, data)
    assert caught.match(remedy)


@pytest.mark.parametrize("name", ["a.docx", "a.pptx", "a.xlsx"])
def test_a_password_is_named(name: str) -> None:
    with pytest.raises(InvalidDocument, match="is protected by a password"):
        read(name, ole("EncryptedPackage"))


def test_text_that_begins_like_another_kind_is_text() -> None:
    assert read("a.txt", b"GIF89a is how a picture begins.").text
    assert read("a.md", b"<html> is how a page begins.").text


def test_every_format_with_a_signature_can_have_it() -> None:
    kinds = {"a PDF document", "a Word document", "a PowerPoint presentation", "an Excel workbook", "an EPUB book"}
    kinds |= {"a gzip archive", "a Rich Text document", "an OpenDocument file"}
    assert {each.signature for each in FORMATS} == {"", *kinds}
    assert detect_file_type(zipped({"META-INF/container.xml": "<a/>"})) == "an EPUB book"
