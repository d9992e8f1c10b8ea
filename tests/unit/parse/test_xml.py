"""Tests of reading XML within limits."""

import tracemalloc
from io import BytesIO

import pytest

from quipu.errors import InvalidDocument
from quipu.parse import xml
from quipu.parse.xml import attribute, child, descendants, local, parse_tree, stream_elements


def test_names_and_attributes_are_found_in_any_namespace() -> None:
    root = parse_tree(b'<a:r xmlns:a="urn:a"><a:b a:id="1" id="2"/><b x="3"/></a:r>', "x")
    first, second = descendants(root, "b")
    assert (local(first), attribute(first, "id"), attribute(second, "x"), attribute(second, "y")) == ("b", "2", "3", "")
    assert child(root, "b") is first
    assert child(root, "b", "c") is None


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_a_document_type_is_refused_in_any_encoding(encoding: str) -> None:
    text = f'<?xml version="1.0" encoding="{encoding}"?>{" " * 70_000}<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>'
    with pytest.raises(InvalidDocument, match="document type"):
        parse_tree(text.encode(encoding), "x")


def test_an_encoding_no_office_program_writes_is_refused() -> None:
    with pytest.raises(InvalidDocument, match="unknown encoding"):
        parse_tree(b'<?xml version="1.0" encoding="cp037"?><a/>', "x")


@pytest.mark.parametrize("data", [b"", b"<a>", b"<a></b>", b"\xff\xfe<", b"text"])
def test_what_is_not_whole_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidDocument, match="is damaged"):
        parse_tree(data, "x")


def test_elements_and_attributes_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(xml, "MAX_NODES", 10)
    assert len(parse_tree(b"<a>" + b"<b/>" * 9 + b"</a>", "x")) == 9
    for data in (b"<a>" + b"<b/>" * 10 + b"</a>", b"<a>" + b'<b c="" d=""/>' * 4 + b"</a>"):
        with pytest.raises(InvalidDocument, match="more than 10 XML elements and attributes"):
            parse_tree(data, "x")
        with pytest.raises(InvalidDocument, match="more than 10"):
            list(stream_elements(BytesIO(data), "a", "x"))


def test_one_endless_tag_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(xml, "MAX_TAG_BYTES", 100_000)
    with pytest.raises(InvalidDocument, match="longer than 100,000 bytes"):
        parse_tree(b"<a " + b" ".join(b'b%d=""' % number for number in range(40_000)) + b"/>", "x")


def test_streamed_elements_are_whole_and_forgotten() -> None:
    rows = b"<sheet><data>" + b"<row><c><v>1</v></c></row><other><x/></other>" * 20_000 + b"</data></sheet>"
    tracemalloc.start()
    try:
        n_cells = sum(len(list(descendants(row, "v"))) for row in stream_elements(BytesIO(rows), "row", "x"))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert n_cells == 20_000
    assert peak < 5_000_000


def test_streamed_elements_nest_only_so_deep() -> None:
    with pytest.raises(InvalidDocument, match="nest more than"):
        list(stream_elements(BytesIO(b"<a>" * 1_000), "row", "x"))


def test_any_number_of_elements_is_streamed_where_each_is_within_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(xml, "MAX_NODES", 4)
    rows = b"<s>" + b"<row><c/></row>" * 9 + b"</s>"
    assert len(list(xml.stream_elements(BytesIO(rows), "row", "a.xlsx"))) == 9
