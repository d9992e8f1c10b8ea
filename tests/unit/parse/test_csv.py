"""Tests of the CSV parser."""

import tracemalloc

import pytest

from quipu.errors import InvalidDocument
from tests.unit.parse.files import read, texts


def test_rows_are_lines_of_one_table_with_its_header() -> None:
    parsed = read("a.csv", b'Name,Born,Note\nKober,1906,"a, ""b""\nc"\n\nVentris,1922,\n')
    assert texts(parsed) == ['Name | Born | Note\nKober | 1906 | a, "b" c\nVentris | 1922']
    assert (parsed.blocks[0].kind, parsed.blocks[0].header) == ("table", "Name | Born | Note")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", "a;b\nc;1,5"),
        ("a.csv", "a\tb\nc\t1,5"),
        ("a.csv", 'a|b\n"c"|"1,5"'),
        ("a.csv", "sep=;\na;b\nc;1,5"),
        ("a.tsv", "a\tb\nc\t1,5"),
        ("a.csv", "a,b\r\nc,'1;5'".replace("'1;5'", '"1,5"')),
    ],
)
def test_the_delimiter_is_found(name: str, text: str) -> None:
    assert texts(read(name, text.encode())) == ["a | b\nc | 1,5"]


@pytest.mark.parametrize("first", ["1906,Kober", "Name,Name", "Kober,", "Kober,1906-12-01", "a@b.org,x"])
def test_a_first_row_of_values_is_no_header(first: str) -> None:
    assert read("a.csv", f"{first}\nVentris,x\n".encode()).blocks[0].header == ""


def test_the_corner_of_a_header_may_be_empty() -> None:
    assert read("a.csv", b",Jan,Feb\nRoads,1,2\n").blocks[0].header == " | Jan | Feb".strip("\n")


def test_a_quotation_mark_that_never_closes_is_refused() -> None:
    with pytest.raises(InvalidDocument, match=r"a\.csv cannot be read as a table: .* at line") as caught:
        read("a.csv", b'a,b\n"c' + b"\nx,y" * 50_000)
    assert "quotation mark" in caught.value.remedy


def test_memory_follows_the_size_of_the_file_not_the_number_of_rows() -> None:
    data = b"a,b\n" + b"1,2\n" * 200_000
    tracemalloc.start()
    try:
        parsed = read("a.csv", data)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert parsed.text.count("\n") == 200_000
    assert peak < 8 * len(data)


def test_an_encoding_that_is_not_unicode_is_recognised() -> None:
    parsed = read("a.csv", "имя;год\nКнорозов;1922".encode("cp1251"))
    assert "Кнорозов" in parsed.text
    assert parsed.metadata["assumed_encoding"] == "windows-1251"
