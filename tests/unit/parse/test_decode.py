"""Tests of decoding: encodings, refusals, and one normal form of text."""

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quipu.errors import InvalidDocument
from quipu.model.document import SourceDocument
from quipu.parse.decode import decode, in_utf8, is_text, normalise

TEXT = "Ünï 東京 Москва"


def source(data: bytes, media_type: str = "text/plain") -> SourceDocument:
    return SourceDocument(id="a", content=data, source="notes/a.txt", media_type=media_type)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_a_byte_order_mark_says_the_encoding(encoding: str) -> None:
    assert decode(source(TEXT.encode(encoding))) == TEXT


@pytest.mark.parametrize(
    ("mark", "encoding"), [(b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"), (b"\0\0\xfe\xff", "utf-32-be")]
)
def test_both_byte_orders_are_read(mark: bytes, encoding: str) -> None:
    assert decode(source(mark + TEXT.encode(encoding))) == TEXT


def test_bytes_that_break_their_mark_are_refused() -> None:
    with pytest.raises(InvalidDocument, match=r"notes/a\.txt is marked as utf-16-le .* byte 4"):
        decode(source(b"\xff\xfea\0b"))


def test_binary_data_is_refused_with_the_place() -> None:
    with pytest.raises(InvalidDocument, match="NUL at byte 3") as caught:
        decode(source(b"PNG\0\xff"))
    assert caught.value.remedy


def test_bytes_in_no_known_encoding_are_refused_with_place_and_remedy() -> None:
    with pytest.raises(InvalidDocument, match=r"not UTF-8 text \(byte 3, 0xe9\)") as caught:
        decode(source(b"caf\xe9 noir"))
    assert "--meta encoding=windows-1251" in caught.value.remedy


def test_text_is_handed_on_in_utf8_with_the_encoding_that_was_assumed() -> None:
    text = "Лошадь стояла у ворот, и никто её не замечал."
    in_koi, assumed = in_utf8(source(text.encode("koi8-r")))
    assert (in_koi.content.decode(), assumed) == (text, "koi8-r")
    same = source(text.encode())
    assert in_utf8(same) == (same, "")


def test_an_encoding_that_is_declared_or_named_is_not_assumed() -> None:
    page = source('<meta charset="windows-1251"><p>Москва</p>'.encode("cp1251"), "text/html")
    assert in_utf8(page) == (page, "")
    koi = source("Москва".encode("koi8-r"), "text/plain; charset=koi8-r")
    assert in_utf8(koi) == (koi, "")
    named = replace(source("ньютон".encode("cp1251")), metadata={"encoding": "windows-1251"})
    assert in_utf8(named) == (replace(named, content="ньютон".encode()), "")


@pytest.mark.parametrize("name", ["gb18030", "klingon"])
def test_bytes_that_contradict_their_named_encoding_are_refused(name: str) -> None:
    with pytest.raises(InvalidDocument, match=f"not text in the encoding '{name}'") as caught:
        in_utf8(replace(source(b"caf\xe9 \xff noir"), metadata={"encoding": name}))
    assert "windows-1251" in caught.value.remedy


def test_a_few_invalid_bytes_do_not_make_a_text_unreadable() -> None:
    text = "Лошадь стояла у ворот, и никто её не замечал. " * 50
    read, assumed = in_utf8(source(text.encode() + b"\xff"))
    assert (read.content.decode(), assumed) == (text + "\ufffd", "utf-8")
    _, assumed = in_utf8(source(text.encode()[:200] + b"\xff" * 30))
    assert assumed != "utf-8"


@pytest.mark.parametrize(
    "head", [b"plain", "тест".encode()[:-1], "тест, и ещё один тест".encode("cp1251"), b"\xff\xfea\0"]
)
def test_the_first_bytes_of_a_text_are_recognised(head: bytes) -> None:
    assert is_text(head)


@pytest.mark.parametrize("head", [b"a\0b", b"\x01\x02\x03abc", random.Random(1).randbytes(9_000).replace(b"\0", b"")])
def test_the_first_bytes_of_other_files_are_recognised(head: bytes) -> None:
    assert not is_text(head)


def test_a_declared_charset_is_used_only_where_utf8_fails() -> None:
    assert decode(source("Москва".encode("cp1251")), declared="windows-1251") == "Москва"
    assert decode(source("Москва".encode()), declared="windows-1251") == "Москва"
    assert decode(source(b"caf\xe9"), declared="ISO-8859-1") == "café"
    assert decode(source("東京".encode("cp932")), declared="Shift_JIS") == "東京"


def test_the_charset_of_the_media_type_comes_first() -> None:
    assert decode(source("Москва".encode("koi8-r"), 'text/html; charset="KOI8-R"'), declared="cp1251") == "Москва"


@pytest.mark.parametrize("declared", ["rot13", "punycode", "unicode_escape", "undefined", "x" * 50, "windows-1259", ""])
def test_an_unknown_charset_is_not_tried(declared: str) -> None:
    with pytest.raises(InvalidDocument, match="not UTF-8 text"):
        decode(source(b"caf\xe9"), declared=declared)


def test_line_ends_become_one_and_control_characters_go() -> None:
    assert normalise("a\r\nb\rc\x0cd\u2028e\x85f") == "a\nb\nc\nd\ne\nf"
    assert normalise("a\x00b\x07c\td\x1b[0m\ufeff") == "abc\td[0m"


def test_text_is_in_nfc() -> None:
    assert normalise("e\u0301") == "é"


@given(st.binary(max_size=300))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        text = decode(source(data))
    except InvalidDocument as error:
        assert error.remedy
    else:
        assert normalise(text) == text
        text.encode("utf-8")
