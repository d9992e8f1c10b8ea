"""Tests of the parser of OpenDocument text."""

import pytest

from quipu.model.document import ParsedDocument
from tests.unit.parse.files import read, texts, zipped

_MIMETYPE = "application/vnd.oasis.opendocument.text"


def odt(body: str) -> ParsedDocument:
    text = f"<o:body><o:text>{body}</o:text></o:body>"
    content = f'<o:document-content xmlns:o="urn:o" xmlns:t="urn:t" xmlns:d="urn:d" xmlns:b="urn:b">{text}'
    return read("a.odt", zipped({"mimetype": _MIMETYPE, "content.xml": f"{content}</o:document-content>"}))


def cell(text: str, attributes: str = "") -> str:
    return f"<b:table-cell{attributes}><t:p>{text}</t:p></b:table-cell>"


def test_headings_make_the_path_and_a_footnote_follows_its_paragraph() -> None:
    parsed = odt("<t:h>Roads</t:h><t:p>To Rome.<t:note><t:note-body><t:p>Old.</t:p></t:note-body></t:note></t:p>")
    assert texts(parsed) == ["Roads", "To Rome.", "Old."]
    assert parsed.blocks[1].headings == ("Roads",)


@pytest.mark.parametrize("depth", [1, 2, 100])
def test_the_text_of_a_box_in_a_box_occurs_once(depth: int) -> None:
    boxes = "<t:p><d:frame><d:text-box>" * depth + "<t:p>Rome</t:p>" + "</d:text-box></d:frame></t:p>" * depth
    assert texts(odt(f"<t:p>To</t:p>{boxes}")) == ["To", "Rome"]


def test_repeated_cells_hold_their_columns_even_where_they_are_empty() -> None:
    repeated = ' b:number-columns-repeated="{}"'
    row = cell("a") + cell("", repeated.format(2)) + cell("b", repeated.format(2)) + cell("", repeated.format(9_999))
    assert texts(odt(f"<b:table><b:table-row>{row}</b:table-row></b:table>")) == ["a |  |  | b | b"]


def test_a_table_in_a_cell_is_text_of_the_cell() -> None:
    inner = f"<b:table><b:table-row>{cell('in')}</b:table-row></b:table>"
    outer = f"<b:table-cell><t:p>out</t:p>{inner}</b:table-cell>"
    assert texts(odt(f"<b:table><b:table-row>{outer}</b:table-row></b:table>")) == ["out in"]
