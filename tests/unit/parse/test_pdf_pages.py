"""Tests of pages of PDFs as pictures: where a quote stands, on pages with text and on scans, and what is refused."""

import struct
from collections.abc import Sequence
from io import BytesIO

import pypdfium2
import pytest
from PIL import Image

from quipu.errors import InvalidDocument
from quipu.model.document import QuotePlace, SourceDocument
from quipu.parse.pdf import show_page
from tests.unit.parse import images
from tests.unit.parse.files import HEIGHT, WIDTH, At, PageItem, pdf, prose
from tests.unit.parse.scans import lines_of_part, needs_languages, scan, scanned_pdf

LINES = ("The caravan leaves Samarkand in spring, when the wells", "are full, and comes back before the snow.")
NEAR = 0.02  # of the width or height of a page


def _source(content: bytes) -> SourceDocument:
    return SourceDocument(id="a.pdf", content=content, media_type="application/pdf")


def _place(pages: Sequence[Sequence[PageItem]], page: int, quote: str) -> QuotePlace:
    return show_page(_source(pdf(pages)), page, quote).place


def test_the_lines_of_a_quote_have_a_box_each() -> None:
    place = _place(
        [[At(72, 700, "Another page.")], [*prose(*LINES), *prose("Something else.", top=600)]], 2, " ".join(LINES)
    )
    assert (place.page, place.n_pages, place.width, place.height) == (2, 2, WIDTH, HEIGHT)
    assert len(place.boxes) == 2
    for (left, top, right, bottom), baseline in zip(place.boxes, (700, 686), strict=True):
        assert left == pytest.approx(72 / WIDTH, abs=NEAR)
        assert 0.3 < right - left < 0.6
        assert top < 1 - baseline / HEIGHT < bottom
        assert bottom - top == pytest.approx(14 / HEIGHT, abs=0.5 * NEAR)


def test_a_part_of_a_line_has_a_box_of_its_width() -> None:
    whole, part = (_place([prose(*LINES)], 1, quote).boxes for quote in (LINES[0], "leaves Samarkand in spring"))
    assert len(part) == 1
    assert whole[0][0] + NEAR < part[0][0] < part[0][2] < whole[0][2] - NEAR


def test_a_quote_is_found_without_the_lines_between_its_parts() -> None:
    """A running header between two columns, and a hyphen at the end of a line, are not in the text of the index."""
    lines = prose("The caravan leaves Samar-", "kand in spring.", "HISTORY OF TRADE 17", "Then it comes back.")
    boxes = _place([lines], 1, "The caravan leaves Samarkand in spring. Then it comes back.").boxes
    assert len(boxes) == 3
    assert all(bottom < 1 - 672 / HEIGHT or top > 1 - 672 / HEIGHT for _, top, _, bottom in boxes)


def test_what_is_not_on_the_page_has_no_box() -> None:
    assert _place([prose(*LINES)], 1, "Camels carry salt.").boxes == ()
    assert _place([prose(*LINES)], 1, "").boxes == ()
    assert _place([prose(*LINES)], 1, "\0 " * 5_000 + "…").boxes == ()


def test_a_page_that_is_turned_or_cropped_shows_the_box_where_the_text_is() -> None:
    document = pypdfium2.PdfDocument(pdf([prose(*LINES)]))
    document[0].set_rotation(90)
    document[0].set_cropbox(0, 200, WIDTH, HEIGHT)
    content = _saved(document)
    place = show_page(_source(content), 1, LINES[0]).place
    assert (place.width, place.height) == (HEIGHT - 200, WIDTH)
    [(left, top, right, bottom)] = place.boxes
    assert right - left < 0.05 < bottom - top  # the line goes down the page
    assert left < (700 - 200) / (HEIGHT - 200) < right
    assert top == pytest.approx(72 / WIDTH, abs=NEAR)


def _saved(document: pypdfium2.PdfDocument) -> bytes:
    stream = BytesIO()
    document.save(stream)
    return stream.getvalue()


def test_the_quote_is_yellow_in_the_picture() -> None:
    content = pdf([prose(*LINES)])
    plain, marked = (show_page(_source(content), 1, quote).png for quote in ("", LINES[0]))
    for png in (plain, marked):
        assert png.startswith(b"\x89PNG\r\n")
        assert max(struct.unpack(">II", png[16:24])) == 1_568
    assert plain != marked


def test_what_is_said_of_a_picture_has_the_box_of_the_picture() -> None:
    content = images.pdf([[(700, "The first paragraph."), (550, Image.new("L", (300, 150), 40))]])
    [(left, top, right, bottom)] = show_page(_source(content), 1, "[Picture: A grey area.]").place.boxes
    assert (left, right) == pytest.approx((60 / 595, 260 / 595), abs=NEAR)
    assert (top, bottom) == pytest.approx((1 - 650 / 842, 1 - 550 / 842), abs=NEAR)
    assert show_page(_source(content), 1, "A grey area.").place.boxes == ()


@needs_languages("eng")
def test_on_a_scan_the_box_covers_the_recognised_line() -> None:
    line = lines_of_part("eng", 0)[1]
    place = show_page(_source(scanned_pdf([scan("eng")])), 1, line).place
    assert place.boxes
    left, top, right, bottom = place.boxes[0]
    size = 11 / 72  # inches; the picture is 8.27 by 3 inches, its text begins at 0.9 by 0.9
    assert left == pytest.approx(0.9 / 8.27, abs=NEAR)
    assert top - NEAR < (0.9 + 1.5 * size) / 3.0 < (0.9 + 2.5 * size) / 3.0 < bottom + 2 * NEAR
    assert right > 0.5


@needs_languages("eng")
def test_a_scan_that_is_turned_has_no_boxes() -> None:
    picture = show_page(_source(scanned_pdf([scan("eng", degrees=90)])), 1, lines_of_part("eng", 0)[1])
    assert picture.place.boxes == ()
    assert picture.png


@pytest.mark.parametrize("page", [0, 3, -1])
def test_a_page_that_does_not_exist_is_named(page: int) -> None:
    with pytest.raises(InvalidDocument, match=f"has no page {page}") as caught:
        show_page(_source(pdf([prose("a"), prose("b")])), page, "a")
    assert "1 to 2" in caught.value.remedy


def test_a_damaged_file_is_refused() -> None:
    with pytest.raises(InvalidDocument):
        show_page(_source(b"%PDF-1.4 nothing"), 1, "a")
