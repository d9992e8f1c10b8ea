"""Tests of the XLSX parser, on files openpyxl writes and on what it cannot write."""

from collections.abc import Iterable, Sequence
from datetime import date, datetime, time
from io import BytesIO
from zipfile import ZipFile

import openpyxl
import pytest

from quipu.errors import InvalidDocument
from quipu.model.document import ParsedDocument
from quipu.parse import xlsx
from tests.unit.parse.files import read, text_of, texts, zipped

NAMESPACE = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
PEOPLE: Sequence[Sequence[object]] = (("Name", "Born"), ("Kober", 1906), ("Ventris", 1922))


def bytes_of(book: openpyxl.Workbook) -> bytes:
    stream = BytesIO()
    book.save(stream)
    return stream.getvalue()


def saved(rows: Iterable[Sequence[object]], formats: dict[str, str] | None = None) -> ParsedDocument:
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    for cell, number_format in (formats or {}).items():
        book.active[cell].number_format = number_format
    return read("a.xlsx", bytes_of(book))


def test_a_sheet_is_a_heading_over_a_table_with_its_header() -> None:
    book = openpyxl.Workbook()
    book.active.title = "People"
    for row in PEOPLE:
        book.active.append(row)
    book.create_sheet("Roads").append(["Silk Road", "West"])
    parsed = read("a.xlsx", bytes_of(book))
    assert [(block.kind, block.headings, block.header, text_of(parsed, block)) for block in parsed.blocks] == [
        ("heading", (), "", "People"),
        ("table", ("People",), "Name | Born", "Name | Born\nKober | 1906\nVentris | 1922"),
        ("heading", (), "", "Roads"),
        ("table", ("Roads",), "", "Silk Road | West"),
    ]


def test_values_read_as_they_are_meant() -> None:
    row = [1.0, 0.1 + 0.2, True, date(1948, 5, 16), datetime(1948, 5, 16, 9, 30), time(9, 30), 0.07, -3.5, 1e20]
    parsed = saved([row, ["x"]], {"G1": "0.0%"})
    assert parsed.text.splitlines()[2] == (
        "1 | 0.3 | true | 1948-05-16 | 1948-05-16 09:30:00 | 09:30:00 | 7% | -3.5 | 1e+20"
    )


def test_a_number_format_with_letters_in_quotes_is_no_date() -> None:
    parsed = saved([[1500, 41000], ["x", "y"]], {"A1": '0 "days"', "B1": 'd" of "mmm'})
    assert parsed.text.splitlines()[2] == "1500 | 2012-04-01"


def test_a_title_above_the_table_is_text_and_an_indented_table_starts_at_its_first_column() -> None:
    parsed = saved([["Scholars of Linear B"], [], *([None, *row] for row in PEOPLE)])
    assert texts(parsed)[1:] == ["Scholars of Linear B", "Name | Born\nKober | 1906\nVentris | 1922"]
    assert [block.kind for block in parsed.blocks] == ["heading", "paragraph", "table"]


def test_a_table_goes_on_over_empty_rows_until_another_header() -> None:
    more: list[Sequence[object]] = [
        [],
        ["Bennett", 1918],
        [],
        ["City", "Country"],
        ["Austin", "United States"],
        ["Crete", "Greece"],
    ]
    parsed = saved([*PEOPLE, *more])
    assert [block.header for block in parsed.blocks] == ["", "Name | Born", "City | Country"]
    assert texts(parsed)[1].endswith("Bennett | 1918")


def test_hidden_sheets_are_left_out_and_a_workbook_of_nothing_is_refused() -> None:
    book = openpyxl.Workbook()
    hidden = book.create_sheet("Hidden")
    hidden.append(["secret", "list"])
    hidden.sheet_state = "hidden"
    with pytest.raises(InvalidDocument, match="nothing to index"):
        read("a.xlsx", bytes_of(book))


def raw(sheet: str, strings: str = "") -> ParsedDocument:
    """Return a workbook of one sheet read, its rows and the strings they share written as XML."""
    with ZipFile(BytesIO(bytes_of(openpyxl.Workbook()))) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    relations = parts["xl/_rels/workbook.xml.rels"].decode()
    shared = '<Relationship Id="x" Type="http://a/relationships/sharedStrings" Target="sharedStrings.xml"/></'
    made = {
        "xl/worksheets/sheet1.xml": f"<worksheet {NAMESPACE}><sheetData>{sheet}</sheetData></worksheet>",
        "xl/sharedStrings.xml": f"<sst {NAMESPACE}>{strings}</sst>",
        "xl/_rels/workbook.xml.rels": relations.replace("</", shared),
    }
    return read("a.xlsx", zipped({**parts, **made}))


def test_formulas_give_the_value_last_calculated() -> None:
    sheet = (
        '<row r="1"><c r="A1"><f>1+1</f><v>2</v></c><c r="C1" t="str"><f>x</f><v>text</v></c></row>'
        '<row><c t="inlineStr"><is><r><t>in</t></r><r><t>line</t></r><rPh><t>no</t></rPh></is></c>'
        '<c t="e"><v>#N/A</v></c></row>'
    )
    assert raw(sheet).text.splitlines()[2:] == ["2 |  | text", "inline | #N/A"]


def test_shared_strings_are_read_without_how_to_pronounce_them() -> None:
    sheet = '<row><c t="s"><v>1</v></c><c t="s"><v>0</v></c><c t="s"><v>9</v></c><c t="s"><v>-1</v></c></row>'
    strings = "<si><t>one</t></si><si><r><t>東</t></r><r><t>京</t></r><rPh><t>トウキョウ</t></rPh></si>"
    assert raw(sheet, strings).text.splitlines()[2] == "東京 | one"


def test_more_shared_strings_than_the_limit_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(xlsx, "MAX_SHARED_STRINGS", 3)
    with pytest.raises(InvalidDocument, match="share more than 3 strings"):
        raw("<row/>", "<si><t>a</t></si>" * 4)


def test_a_row_number_beyond_any_sheet_costs_nothing() -> None:
    row = '<row r="999999999999"><c r="A1"><v>1</v></c><c r="B1"><v>2</v></c></row>'
    assert raw(row).text.splitlines()[2:] == ["1 | 2"]


def test_a_cell_far_to_the_right_does_not_make_a_line_of_gaps() -> None:
    book = openpyxl.Workbook()
    book.active["XFD1"] = "far"
    book.active["A2"], book.active["B2"] = "near", "by"
    assert "far\nnear | by" in read("a.xlsx", bytes_of(book)).text.replace("\n\n", "\n")
