"""Tests of the parser of gzip files."""

import gzip

import pytest

from quipu.errors import InvalidDocument
from quipu.model.document import SourceDocument
from quipu.parse import FILE_TYPES
from quipu.parse.archive import PARSER
from tests.unit.parse.files import read, texts


def test_the_file_inside_is_read_by_its_own_name() -> None:
    page = read("docs/road_map.html.gz", gzip.compress(b"<p>To <b>Rome</b>."))
    assert (page.text, page.title) == ("To Rome.", "road map")
    assert texts(read("FAQ.gz", gzip.compress(b"One.\n\nTwo."))) == ["One.", "Two."]
    assert read("a.txt.gz", gzip.compress("Лошадь стояла у ворот, никто её не видел.".encode("koi8-r"))).metadata == {
        "assumed_encoding": "koi8-r"
    }


@pytest.mark.parametrize("source", ["", "/", "."])
def test_a_source_without_a_file_name_is_read(source: str) -> None:
    document = SourceDocument(id="a", source=source, content=gzip.compress(b"One."), media_type="application/gzip")
    assert PARSER.parse(document).text == "One."


def test_several_members_are_one_file() -> None:
    assert read("a.txt.gz", gzip.compress(b"One. ") + gzip.compress(b"Two.")).text == "One. Two."


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (gzip.compress(b"One." * 99)[:-20], "too early"),
        (gzip.compress(b"One. Two.")[:-8] + b"\xff" * 8, "cannot be unpacked"),
        (gzip.compress(b"\x7fELF\0\0"), "no parser reads"),
        (gzip.compress(gzip.compress(b"One.")), "no parser reads"),
        (b"One.", "not a gzip archive"),
    ],
    ids=["cut off", "wrong checksum", "a program", "packed twice", "not packed"],
)
def test_what_cannot_be_unpacked_or_read_is_refused(content: bytes, reason: str) -> None:
    with pytest.raises(InvalidDocument, match=reason) as caught:
        read("a.gz", content)
    assert caught.value.remedy


def test_a_bomb_is_refused_before_it_is_unpacked() -> None:
    with pytest.raises(InvalidDocument, match="unpacks to more than"):
        read("a.txt.gz", gzip.compress(b"a" * 60_000_000))


def test_a_packed_file_is_looked_into_before_it_is_added() -> None:
    assert FILE_TYPES.sniff("FAQ.gz", gzip.compress(b"One.")) == "application/gzip"
    assert FILE_TYPES.sniff("a.md.gz", gzip.compress(b"One.")) == "application/gzip"
    assert FILE_TYPES.sniff("a.tar.gz", gzip.compress(b"a" + b"\0" * 600)) == ""
    assert FILE_TYPES.sniff("README", b"One.") == "text/plain"
    assert FILE_TYPES.sniff("page", b"<!DOCTYPE html><p>One.") == "text/html"
    assert FILE_TYPES.sniff("id_rsa", b"-----BEGIN OPENSSH PRIVATE KEY-----\n") == ""
    assert FILE_TYPES.sniff("Makefile", b"all:\n\tcc a.c\n") == "text/x-source"


def test_a_hundred_thousand_members_are_read_at_once() -> None:
    assert len(read("a.txt.gz", gzip.compress(b"a") * 100_000).text) == 100_000
