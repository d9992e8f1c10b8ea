"""Tests of archives and their limits."""

import pytest

from quipu.errors import InvalidDocument
from quipu.model.document import SourceDocument
from quipu.parse import archive as archive_module
from quipu.parse.archive import ZipArchive
from tests.unit.parse.files import zipped


def archive(data: bytes) -> ZipArchive:
    return ZipArchive(SourceDocument(id="a", source="a.docx", content=data))


def test_parts_are_found_whatever_the_case_of_their_names() -> None:
    opened = archive(zipped({"Word/Document.xml": b"<a/>"}))
    assert "word/document.xml" in opened
    assert opened.read("word/document.XML") == b"<a/>"


def test_a_bomb_is_refused_by_its_directory() -> None:
    with pytest.raises(InvalidDocument, match=r"unpacks .* like a file made to exhaust memory") as caught:
        archive(zipped({"a": b"\0" * 20_000_000}))
    assert caught.value.remedy


def test_a_directory_that_understates_a_part_does_not_bring_out_more() -> None:
    data = zipped({"a": b"x" * 100_000})
    lie = (1_000).to_bytes(4, "little")
    truth = (100_000).to_bytes(4, "little")
    with pytest.raises(InvalidDocument, match="cannot be unpacked"):
        archive(data.replace(truth, lie)).read("a")


@pytest.mark.parametrize(
    ("limit", "what"),
    [("MAX_PART_BYTES", "1,000 bytes"), ("MAX_UNPACKED_BYTES", "1,000 bytes"), ("MAX_ENTRIES", "parts")],
)
def test_what_is_over_a_limit_is_refused(monkeypatch: pytest.MonkeyPatch, limit: str, what: str) -> None:
    monkeypatch.setattr(archive_module, limit, 1_000)
    with pytest.raises(InvalidDocument, match=what):
        archive(zipped({str(number): bytes(range(256)) * 5 for number in range(1_001)})).read("0")


def test_a_damaged_part_is_named() -> None:
    data = bytearray(zipped({"a": bytes(range(256)) * 100}))
    data[60] ^= 0xFF
    with pytest.raises(InvalidDocument, match="its part a cannot be unpacked"):
        archive(bytes(data)).read("a")


def test_an_archive_cut_short_is_refused() -> None:
    with pytest.raises(InvalidDocument, match="archive is not complete"):
        archive(zipped({"a": b"x"})[:-30])


def test_a_missing_part_is_named() -> None:
    with pytest.raises(InvalidDocument, match="its part b is missing"):
        archive(zipped({"a": b"x"})).read("b")
