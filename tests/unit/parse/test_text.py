"""Tests of the plain-text parser."""

import pytest

from quipu.model.document import ParsedDocument, SourceDocument
from quipu.parse.text import PlainTextParser


def read(text: str) -> ParsedDocument:
    return PlainTextParser().parse(SourceDocument(id="a", content=text.encode()))


def test_paragraphs_lie_between_blank_lines() -> None:
    parsed = read("  One\ntwo\n \t\n\n\nThree  \n")
    assert [parsed.text[block.start : block.end] for block in parsed.blocks] == ["One\ntwo", "Three"]
    assert {block.kind for block in parsed.blocks} == {"paragraph"}


def test_a_text_of_spaces_has_no_blocks() -> None:
    assert read(" \n\n \n").blocks == ()
    assert read("").blocks == ()


@pytest.mark.parametrize("text", ["The Road\n\nIt was long.", "\n\n  The Road\n \nIt was long."])
def test_a_short_first_line_that_stands_alone_is_the_title(text: str) -> None:
    assert read(text).title == "The Road"


@pytest.mark.parametrize(
    "text",
    [
        "The road is long.\n\nIt ends.",
        "这条路很长。\n\n完",
        "The Road\nIt was long.",
        "The Road",
        "The Road\n\n ",
        "x" * 101 + "\n\ny",
    ],
)
def test_another_first_line_is_no_title(text: str) -> None:
    assert read(text).title == ""


def test_an_underlined_first_line_is_the_title() -> None:
    assert read("road-work(1)\n============\n\nNAME\n----\n").title == "road-work(1)"
    assert read("*****\nRoads\n*****\nText.").title == "Roads"


def test_restructuredtext_in_a_text_file_is_read_as_such() -> None:
    markup = ".. _roads:\n\nRoads\n=====\n\nSee :doc:`/west` and :ref:`salt`.\n\n.. note::\n\n   They led west."
    assert read(markup).text == "Roads\n\nSee west and salt.\n\nNote: They led west."
    prose = "Roads\n=====\n\n.. and so on. Say :ref:`salt` for salt, or :doc:`west`."
    assert read(prose).text == prose


def test_asciidoc_in_a_text_file_is_read_as_such() -> None:
    page = "git-road(1)\n===========\n\n[verse]\n'git road'\n\n-a::\n\tAll.\n+\nSee linkgit:git-log[1].\n"
    assert [block.kind for block in read(page).blocks] == ["heading", "code", "paragraph", "paragraph"]
    assert read(page).text.endswith("-a\nAll.\n\nSee git-log(1).")
    diff = "[source]\n+\n+text\n"  # one sign is not enough
    assert read(diff).text == diff
