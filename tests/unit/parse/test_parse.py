"""Tests of parse(): what all formats share."""

import itertools
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quipu.errors import InvalidDocument
from quipu.model.document import Metadata, ParsedDocument, SourceDocument
from quipu.parse import MEDIA_TYPE_BY_SUFFIX, PARSERS, parse, parser_for

MEDIA_TYPES = sorted(PARSERS)
PIECES = re.findall(
    r"\S+",
    "<div> <p> </p> </div> <ul> <ol> <li> </ul> <table> <tr> <td> </td> </table> <h1> </h1> <h2> <pre> </pre> <br> <b> "
    "<header> <article> <form> <caption> <select> <math> &#0; &eacute; <!-- --> <a> </a> <script> </script> "
    "--- # ## - > | ``` 1. a: [x]: é . ! 。",
)


def source(text: str, media_type: str = "text/plain", name: str = "", title: str = "") -> SourceDocument:
    return SourceDocument(id="id", content=text.encode(), source=name, media_type=media_type, title=title)


def assert_sound(parsed: ParsedDocument) -> None:
    """Blocks are in order, within the text, and hold all that is visible in it."""
    edges = [0, *itertools.chain.from_iterable((block.start, block.end) for block in parsed.blocks), len(parsed.text)]
    gaps = zip(edges[::2], edges[1::2], strict=True)
    assert edges == sorted(edges)
    assert not "".join(parsed.text[start:end] for start, end in gaps).strip()


@pytest.mark.parametrize("media_type", MEDIA_TYPES)
@settings(deadline=None)
@given(data=st.binary(max_size=400))
def test_any_bytes_are_read_or_refused(media_type: str, data: bytes) -> None:
    try:
        assert_sound(parse(SourceDocument(id="id", content=data, media_type=media_type)))
    except InvalidDocument as error:
        assert error.remedy


@pytest.mark.parametrize("media_type", MEDIA_TYPES)
@settings(deadline=None)
@given(pieces=st.lists(st.sampled_from([*PIECES, "word", "\n", "\n\n", " "]), max_size=60))
def test_any_markup_is_read_or_refused(media_type: str, pieces: list[str]) -> None:
    try:
        assert_sound(parse(source("".join(pieces), media_type)))
    except InvalidDocument as error:
        assert error.remedy


@pytest.mark.parametrize("media_type", MEDIA_TYPES)
@pytest.mark.parametrize(
    "piece", ["<div>", "<b>", "<ul><li>", "<table><tr><td>", "> ", "- ", "[", "**", "<h1><div>", "`"]
)
def test_deep_nesting_is_read_or_refused(media_type: str, piece: str) -> None:
    try:
        assert_sound(parse(source(piece * 2_000 + "x", media_type)))
    except InvalidDocument as error:
        assert error.remedy


@pytest.mark.parametrize("media_type", MEDIA_TYPES)
@pytest.mark.parametrize("text", ["", " \n\t ", "\ufeff\n"])
def test_a_document_without_text_is_refused(media_type: str, text: str) -> None:
    with pytest.raises(InvalidDocument, match="nothing to index") as caught:
        parse(source(text, media_type, name="a.x"))
    assert caught.value.remedy


def test_a_page_without_readable_text_is_refused() -> None:
    with pytest.raises(InvalidDocument, match="nothing to index"):
        parse(source("<script>x</script>", "text/html"))


def test_an_unknown_media_type_is_refused_with_those_that_are_read() -> None:
    with pytest.raises(InvalidDocument, match="image/tiff") as caught:
        parser_for("image/tiff")
    assert "text/markdown" in caught.value.remedy


def test_parameters_and_case_of_the_media_type_do_not_matter() -> None:
    assert parser_for("Text/HTML; charset=utf-8") is parser_for("text/html")


def test_every_suffix_has_a_parser() -> None:
    assert all(parser_for(media_type) for media_type in MEDIA_TYPE_BY_SUFFIX.values())


def test_the_title_given_wins_then_the_documents_own_then_the_name_of_the_file() -> None:
    text = "The Road\n\nIt was long."
    assert parse(source(text, name="a.txt", title="Given")).title == "Given"
    assert parse(source(text, name="a.txt")).title == "The Road"
    assert parse(source("It was long.", name="roads/the_long-road.txt")).title == "the long road"
    assert parse(source("It was long.")).title == ""


def test_metadata_given_wins_over_the_documents_own() -> None:
    given_metadata: Metadata = {"year": 1902, "region": "Asia"}
    document = SourceDocument(
        id="id", content=b"---\nyear: 1901\nlang: en\n---\ntext", media_type="text/markdown", metadata=given_metadata
    )
    assert parse(document).metadata == {"year": 1902, "region": "Asia", "lang": "en"}


def test_a_heading_of_a_page_is_text_and_a_title_is_cut() -> None:
    long = "Heading Word " * 50
    parsed = parse(
        SourceDocument(id="d", content=f"# {long}\n\nBody.".encode(), media_type="text/markdown", source="h.md")
    )
    assert parsed.title == "h"
    assert all(not block.headings for block in parsed.blocks)
    named = parse(SourceDocument(id="d", content=b"Body.", title=long))
    assert len(named.title) <= 300
    assert named.title.endswith("…")


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("Roads ¶", "Roads"),
        ("# Roads", "Roads"),
        ("== Roads ==", "Roads"),
        ("C #", "C"),
        ("Untitled", "b"),
        ("2024", "b"),
        ("(anonymous)", "b"),
        ("Skip to content", "b"),
        ("100 roads", "100 roads"),
        ("F#", "F#"),
    ],
)
def test_the_title_is_a_title_without_marks(title: str, expected: str) -> None:
    assert parse(source(f"<title>{title}</title><p>Text.", "text/html", "a/b.html")).title == expected


def test_a_document_with_a_number_for_a_name_is_called_by_its_first_line() -> None:
    text = "\n\nIt was a long road, and nobody knew who had built it. " + "It went on. " * 20
    assert parse(source(text, name="0017.txt")).title.startswith("It was a long road, and nobody knew")
    assert len(parse(source(text, name="0017.txt")).title) <= 81
    assert parse(source("1 2 3", name="0017.txt")).title == "0017"
