"""Tests of pictures that a model describes: they are collected from every format, and described at their place."""

import base64
from collections.abc import Mapping
from pathlib import Path

import pypdfium2
import pytest
from PIL import Image

from quipu.model.document import ParsedDocument, Picture, SourceDocument
from quipu.parse import MEDIA_TYPE_BY_SUFFIX, parse
from quipu.parse.pdf_pictures import PictureRenderer
from quipu.parse.pictures import MAX_PICTURES, IllustratedParser, PageReading, image_of
from tests.unit.parse.files import texts
from tests.unit.parse.images import book, message, pdf, png, slides, word_file

CHART, MAP = png("chart"), png("map", colour=10)


def collected(
    name: str, content: bytes, pages: PageReading = PageReading.NEVER
) -> tuple[ParsedDocument, tuple[Picture, ...]]:
    return IllustratedParser(parse, pages).collect(source(name, content))


def described(
    name: str, content: bytes, descriptions: Mapping[str, str], pages: PageReading = PageReading.NEVER
) -> ParsedDocument:
    return IllustratedParser(parse, pages).describe(source(name, content), descriptions)


def source(name: str, content: bytes) -> SourceDocument:
    return SourceDocument(id=name, source=name, content=content, media_type=MEDIA_TYPE_BY_SUFFIX[Path(name).suffix])


def data_url(content: bytes) -> str:
    return f"data:image/png;base64,{base64.b64encode(content).decode()}"


FILES = {
    "a.docx": word_file(["Before the chart.", CHART, "Between.", MAP, "After the map."]),
    "a.pptx": slides(CHART, MAP),
    "a.epub": book("<p>Before.</p><img src='../img/1.png'/><p>Between.</p><img src='../img/2.png'/>", CHART, MAP),
    "a.eml": message("Before the chart.", CHART, MAP),
    "a.html": f'<p>Before.</p><img src="{data_url(CHART)}"><p>Between.</p><img alt src="{data_url(MAP)}">'.encode(),
    "a.md": f"Before.\n\n![]({data_url(CHART)})\n\nBetween.\n\n![]({data_url(MAP)})\n".encode(),
}


@pytest.mark.parametrize("name", FILES)
def test_pictures_of_every_format_are_collected_in_order_and_described_in_place(name: str) -> None:
    _, pictures = collected(name, FILES[name])
    assert [picture.image.content for picture in pictures] == [CHART, MAP]
    assert [(picture.image.width, picture.image.height) for picture in pictures] == [(120, 80)] * 2
    parsed = described(name, FILES[name], {pictures[0].key: "A chart of yields.", pictures[1].key: "A map of roads."})
    assert "⟦" not in parsed.text
    shown = [text.strip() for text in texts(parsed)]
    assert "[Picture: A chart of yields.]" in shown
    assert shown.index("[Picture: A chart of yields.]") < shown.index("[Picture: A map of roads.]")


@pytest.mark.parametrize("name", FILES)
def test_without_a_model_nothing_changes(name: str) -> None:
    parsed, _ = collected(name, FILES[name])
    assert "⟦picture" in parsed.text
    plain = parse(source(name, FILES[name]))
    assert "⟦" not in plain.text
    assert "Picture:" not in plain.text
    assert described(name, FILES[name], {}).text == plain.text


def test_the_alternative_text_comes_before_the_description() -> None:
    content = word_file(["Text.", CHART], ["Yields by year"])
    _, (picture,) = collected("a.docx", content)
    assert picture.alt == "Yields by year"
    assert (
        "[Picture: Yields by year. It shows 1947.]"
        in described("a.docx", content, {picture.key: "It shows 1947."}).text
    )
    assert "[Picture: Yields by year]" in described("a.docx", content, {picture.key: ""}).text


def test_the_model_sees_the_text_around_a_picture_without_marks() -> None:
    _, pictures = collected("a.docx", FILES["a.docx"])
    assert (pictures[0].before.strip(), pictures[1].after.strip()) == ("Before the chart.", "After the map.")
    assert "⟦" not in pictures[0].after


def test_the_same_picture_twice_is_asked_about_once_and_shown_twice() -> None:
    content = word_file(["One.", CHART, "Two.", CHART])
    _, pictures = collected("a.docx", content)
    assert len(pictures) == 1
    assert described("a.docx", content, {pictures[0].key: "A chart."}).text.count("[Picture: A chart.]") == 2


def test_symbols_broken_files_and_other_formats_are_left_out() -> None:
    emf = b"\x01\x00\x00\x00" + bytes(100)
    assert image_of(png(size=(49, 200))) is None
    assert image_of(b"\x89PNG\r\n\x1a\n" + b"broken") is None
    assert image_of(b"") is None
    assert image_of(emf) is None
    assert image_of(png(size=(50, 50))) is not None


def test_a_document_full_of_pictures_is_bounded() -> None:
    pictures = [png(f"n{number}") for number in range(MAX_PICTURES + 3)]
    _, found = collected("a.eml", message("Text.", *pictures))
    assert len(found) == MAX_PICTURES


def test_pictures_of_a_pdf_stand_below_the_line_above_them() -> None:
    content = pdf(
        [
            [(700, "The first paragraph."), (550, Image.new("L", (300, 150), 40)), (500, "The second paragraph.")],
            [(700, "The third paragraph.")],
        ]
    )
    parsed, (picture,) = collected("a.pdf", content)
    assert picture.image.media_type == "image/png"
    assert (picture.image.width, picture.image.height) == (400, 200)  # 200 by 100 points at 144 dpi
    parsed = described("a.pdf", content, {picture.key: "Grey."})
    assert texts(parsed) == [
        "The first paragraph.",
        "[Picture: Grey.]",
        "The second paragraph.",
        "The third paragraph.",
    ]
    assert [block.page for block in parsed.blocks] == [1, 1, 1, 2]


def test_pictures_that_are_too_many_for_a_page_are_counted() -> None:
    images = [(110.0 * n, Image.new("L", (300, 150), 5 * n)) for n in range(23)]
    content = pdf([[(2_600, "Text of a page."), *images], [(700, "The last page.")]], page_height=2_700)
    parsed, pictures = collected("a.pdf", content)
    assert (len(pictures), parsed.metadata["pictures_left_out"]) == (20, "3")
    assert described("a.pdf", content, {pictures[0].key: "Grey."}).metadata["pictures_left_out"] == "3"


def test_whole_pages_that_are_too_large_together_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quipu.parse.pdf_pictures._MAX_PICTURE_BYTES", 100)
    renderer = PictureRenderer("all")
    document = pypdfium2.PdfDocument(pdf([[(700, "One.")], [(700, "Two.")], [(700, "Three.")]]))
    for index, page in enumerate(document):
        renderer.add(page, index, [], is_scan=False)
    assert (list(renderer.whole), renderer.n_left_out) == ([0], 2)


def test_parts_of_one_picture_are_one_picture_and_symbols_are_none() -> None:
    halves = [(600, Image.new("L", (300, 150), 40)), (500, Image.new("L", (300, 150), 80))]
    _, pictures = collected("a.pdf", pdf([[(750, "Text of a page."), *halves]]))
    assert [(picture.image.width, picture.image.height) for picture in pictures] == [(400, 400)]


SCANNED = pdf([[(100, Image.new("L", (400, 200), 0))], [(700, "A page with a text of its own, of some words.")]])


@pytest.mark.parametrize(("pages", "n"), [(PageReading.NEVER, 0), (PageReading.ALL, 2)])
def test_whole_pages_are_read_where_the_setting_says_so(pages: PageReading, n: int) -> None:
    _, pictures = collected("a.pdf", SCANNED, pages)
    assert sum(picture.is_page for picture in pictures) == n


def test_a_page_that_a_model_reads_is_markdown() -> None:
    _, pictures = collected("a.pdf", SCANNED, PageReading.ALL)
    page = "# Ledger\n\n| Year | Crates |\n|---|---|\n| 1947 | 1,204 |\n\nThe end."
    parsed = described("a.pdf", SCANNED, {pictures[0].key: page}, PageReading.ALL)
    assert [(block.kind, block.page) for block in parsed.blocks] == [
        ("heading", 1),
        ("table", 1),
        ("paragraph", 1),
        ("paragraph", 2),
    ]
    assert parsed.metadata["pages_by_model"] == "1"


def test_a_model_that_says_something_else_than_the_page_is_not_believed() -> None:
    words = [f"word{number}" for number in range(40)]
    content = pdf([[(700, " ".join(words[:20])), (680, " ".join(words[20:]))]])
    _, (picture,) = collected("a.pdf", content, PageReading.ALL)
    assert "invented" not in described("a.pdf", content, {picture.key: "An invented text."}, PageReading.ALL).text
    right = " ".join(words).replace("word7 ", "")
    assert described("a.pdf", content, {picture.key: right}, PageReading.ALL).text == right


def test_a_picture_with_a_very_long_alternative_text_is_described() -> None:
    content = word_file([CHART], ["word " * 2_000])
    _, (picture,) = collected("a.docx", content)
    assert "A chart of yields.]" in described("a.docx", content, {picture.key: "A chart of yields."}).text


def test_pictures_after_one_that_is_too_much_for_a_document_are_collected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quipu.parse.pictures.MAX_ALL_BYTES", len(CHART) + len(MAP))
    large = png("chart " * 200, colour=3)
    content = word_file([CHART, large, MAP])
    parsed, pictures = collected("a.docx", content)
    assert [picture.image.content for picture in pictures] == [CHART, MAP]
    assert parsed.metadata["pictures_left_out"] == "1"
    assert described("a.docx", content, {pictures[1].key: "A map."}).metadata["pictures_left_out"] == "1"
