"""Tests of pictures: their alternative text is in the text of every format, once, and decoration is left out."""

from email.message import EmailMessage
from io import BytesIO

import docx
import pptx
import pytest
from PIL import Image
from pptx.util import Inches

from quipu.ingest.local.occurrences import BLANK, prose
from quipu.parse.pictures import MAX_ALT, picture_text, replace_pictures
from tests.unit.parse.files import read, texts

ALT = "Map of the harbour with the customs house"
SHOWN = f"[Picture: {ALT}]"


def png() -> BytesIO:
    stream = BytesIO()
    Image.new("RGB", (40, 40), "navy").save(stream, "PNG")
    stream.seek(0)
    return stream


@pytest.mark.parametrize(
    ("alt", "text"),
    [
        (ALT, SHOWN),
        ("  Map of\nthe harbour ", "[Picture: Map of the harbour]"),
        ("Rolls-Royce", "[Picture: Rolls-Royce]"),
        ("港口地图", "[Picture: 港口地图]"),
        ("A clock on a wall\n\nDescription automatically generated", "[Picture: A clock on a wall]"),
        ("a" * (MAX_ALT + 1), f"[Picture: {'a' * MAX_ALT}…]"),
        ("", ""),
        ("3 + 4", ""),
        ("IMG_1234.png", ""),
        ("IMG_1234", ""),
        ("image1", ""),
        ("Picture 3", ""),
        ("Рисунок 2", ""),
        ("boost.png (6897 bytes)", ""),
        ("site-logo-small", ""),
    ],
)
def test_a_description_is_shown_and_a_name_of_a_file_or_no_description_is_not(alt: str, text: str) -> None:
    assert picture_text(alt) == text


def test_icons_and_badges_have_no_text() -> None:
    assert picture_text(ALT, width="16", height="16") == ""
    assert picture_text(ALT, src="https://img.shields.io/a.svg") == ""
    assert picture_text(ALT, width="80%", height="", src="map.png") == SHOWN


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        (f"See ![{ALT}](a_(b).png 'title').", f"See {SHOWN}."),
        (f"![{ALT}](data:image/png;base64,iVBORw0KGgo=)", SHOWN),
        (f"![{ALT}][map]", SHOWN),
        (f"[![{ALT}](a.png)](https://example.org)", SHOWN),
        (f'<img src="a.png" alt="{ALT}" width=400/>', SHOWN),
        ("<img src=a.png alt='Ventris &amp; Kober'>", "[Picture: Ventris & Kober]"),
        (f"![{ALT}](a.png) ![{ALT}](b.png)", f"{SHOWN} "),
        ("[![Build](https://img.shields.io/x)](y) ![](b.png)", " "),
        ("# ![The harbour](a.png) today", "# The harbour today"),
        (f"`![{ALT}](a.png)`", f"`![{ALT}](a.png)`"),
        (f"~~~\n![{ALT}](a.png)\n~~~\n![{ALT}](a.png)", f"~~~\n![{ALT}](a.png)\n~~~\n{SHOWN}"),
        ("Wow![1] <q>bold</q>", "Wow![1] <q>bold</q>"),
    ],
)
def test_pictures_of_markdown_are_replaced_outside_code(markup: str, text: str) -> None:
    assert replace_pictures(markup) == text
    assert read("a.md", f"{markup}\n\nEnd.".encode()).text == f"{text}\n\nEnd.".lstrip()


def test_pictures_of_a_page_stand_where_they_are_shown_and_a_caption_does_not_repeat_them() -> None:
    page = f"""<article><h1><img alt="Our logo">Glass</h1><p>See <img alt="{ALT}" src="a.png"> and
        <img alt="" src="b.png"><img alt="A rule" role="presentation">.</p><p><img alt="{ALT}"></p>
        <figure><div><img alt="Exports of glass by year"></div><figcaption>Figure 2: Exports of glass by year
        </figcaption></figure><a href="/"><img alt="Twitter feed">Our Twitter feed</a></article>"""
    assert texts(read("a.html", page.encode())) == [
        "Glass",
        f"See {SHOWN} and .",
        "Figure 2: Exports of glass by year",
        "Our Twitter feed",
    ]


def test_pictures_of_word_are_read_and_headings_go_without() -> None:
    document = docx.Document()
    heading = document.add_heading("Glass", 1)
    paragraph = document.add_paragraph("The quay:")
    for run in (heading.add_run(), paragraph.add_run(), document.add_paragraph().add_run()):
        run.add_picture(png())
    properties = list(document.element.iter("{*}docPr"))
    for element, alt in zip(properties, ("Logo of the firm", ALT, "Chart of exports"), strict=True):
        element.set("descr", alt)
    stream = BytesIO()
    document.save(stream)
    assert texts(read("a.docx", stream.getvalue())) == ["Glass", f"The quay: {SHOWN} ", "[Picture: Chart of exports]"]


def test_pictures_of_a_slide_are_read() -> None:
    presentation = pptx.Presentation()
    slide = presentation.slides.add_slide(presentation.slide_layouts[5])
    slide.shapes.title.text = "Glass"
    for alt in (ALT, "Picture 7"):
        picture = slide.shapes.add_picture(png(), Inches(1), Inches(2))
        picture._element.nvPicPr.cNvPr.set("descr", alt)
    stream = BytesIO()
    presentation.save(stream)
    assert texts(read("a.pptx", stream.getvalue())) == ["Glass", SHOWN]


def test_pictures_in_the_html_of_a_message_are_read_and_attached_ones_are_named() -> None:
    message = EmailMessage()
    message["Subject"] = "Glass"
    message.set_content(f'<p>Here it is: <img alt="{ALT}" src="cid:1"></p>', subtype="html")
    message.add_attachment(png().getvalue(), maintype="image", subtype="png", filename="harbour map.png")
    parsed = texts(read("a.eml", message.as_bytes()))
    assert f"Here it is: {SHOWN}" in parsed
    assert "Attachments: harbour map.png" in parsed


def test_what_a_picture_shows_is_prose_and_its_mark_is_not() -> None:
    assert prose(SHOWN).strip(f"{BLANK} ]") == ALT
