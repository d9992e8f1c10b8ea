"""Tests of the PPTX parser, on files python-pptx writes."""

from io import BytesIO

import pptx
import pytest
from pptx.presentation import Presentation
from pptx.util import Inches

from quipu.errors import InvalidDocument
from quipu.model.document import ParsedDocument
from tests.unit.parse.files import read, text_of, texts

TITLE_AND_CONTENT, TITLE_ONLY, BLANK = 1, 5, 6


def saved(presentation: Presentation) -> ParsedDocument:
    stream = BytesIO()
    presentation.save(stream)
    return read("a.pptx", stream.getvalue())


def test_a_slide_is_a_page_under_its_title() -> None:
    deck = pptx.Presentation()
    for title, body in (("Quipus", "Cords\nKnots"), ("Roads", "They led west.")):
        slide = deck.slides.add_slide(deck.slide_layouts[TITLE_AND_CONTENT])
        slide.shapes.title.text = title
        slide.placeholders[1].text = body
    parsed = saved(deck)
    assert [(block.page, block.kind, block.headings, text_of(parsed, block)) for block in parsed.blocks] == [
        (1, "heading", (), "Quipus"),
        (1, "list", ("Quipus",), "- Cords\n- Knots"),
        (2, "heading", (), "Roads"),
        (2, "paragraph", ("Roads",), "They led west."),
    ]
    assert parsed.title == "Quipus"
    assert parsed.text.count("\f") == 1


def test_levels_of_bullets_are_indented() -> None:
    deck = pptx.Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[TITLE_AND_CONTENT])
    frame = slide.placeholders[1].text_frame
    frame.text = "cords"
    below = frame.add_paragraph()
    below.text, below.level = "pendants", 1
    assert texts(saved(deck)) == ["- cords\n  - pendants"]


def test_tables_boxes_in_groups_and_notes_are_read() -> None:
    deck = pptx.Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[BLANK])
    table = slide.shapes.add_table(2, 2, 0, 0, Inches(4), Inches(1)).table
    for row, column, text in ((0, 0, "Name"), (0, 1, "Year"), (1, 0, "Kober"), (1, 1, "1906")):
        table.cell(row, column).text = text
    box = slide.shapes.add_group_shape().shapes.add_textbox(0, 0, Inches(1), Inches(1))
    box.text_frame.text = "In a group."
    slide.notes_slide.notes_text_frame.text = "Say this."
    parsed = saved(deck)
    assert texts(parsed) == ["Name | Year\nKober | 1906", "In a group.", "Notes: Say this."]
    assert parsed.blocks[0].header == "Name | Year"


def test_a_slide_without_a_title_is_not_under_the_one_before() -> None:
    deck = pptx.Presentation()
    first = deck.slides.add_slide(deck.slide_layouts[TITLE_ONLY])
    first.shapes.title.text = "Quipus"
    second = deck.slides.add_slide(deck.slide_layouts[BLANK])
    second.shapes.add_textbox(0, 0, Inches(1), Inches(1)).text_frame.text = "Alone."
    assert saved(deck).blocks[-1].headings == ()


def test_a_presentation_without_text_is_refused() -> None:
    deck = pptx.Presentation()
    deck.slides.add_slide(deck.slide_layouts[BLANK])
    with pytest.raises(InvalidDocument, match="nothing to index"):
        saved(deck)
