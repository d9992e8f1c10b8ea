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


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("Guide\n=====\n\nInstall\n-------\nRun it.", ("Guide", "Install")),
        ("*****\nGuide\n*****\n\nSetup:\n~~~~~~\n\nRun it.", ("Guide", "Setup")),
        ("One\n---\n\nText.\n\nTwo\n---\n\nRun it.", ("Two",)),
        ("1. Server\n\nText.\n\n1.2 How to\nstart it\n\nRun it.", ("1. Server", "1.2 How to start it")),
        ("(2) Tests\n\n    Run it.", ("(2) Tests",)),
        ("IV. Writing\n\nRun it.", ("IV. Writing",)),
        ("INSTALLATION\n\nRun it.", ("INSTALLATION",)),
        ("NAME\n       run - starts it\n\nOPTIONS\n       -v says more", ("OPTIONS",)),
        ("CHAPTER I.\n\nTHE ROAD\n\nIt was long.", ("CHAPTER I.", "THE ROAD")),
        ("STAVE ONE\n\nTHE ROAD\n\nIt was long.", ("STAVE ONE", "THE ROAD")),
        ("ЧАСТЬ ЧЕТВЁРТАЯ\n\nДорога была длинной.", ("ЧАСТЬ ЧЕТВЁРТАЯ",)),
        ("Глава 3\n\nДорога была длинной.", ("Глава 3",)),
        ("第七回：八卦炉中逃大圣\n\n话表。", ("第七回：八卦炉中逃大圣",)),
        ("Why is it slow?\n\n\tIt is old.", ("Why is it slow?",)),
        ("Q: It does not start.\n   What now?\n\nA: Run it.", ("It does not start. What now?",)),
    ],
)
def test_headings_stand_out_by_their_form(text: str, path: tuple[str, ...]) -> None:
    assert read(text).blocks[-1].headings == path


@pytest.mark.parametrize(
    "text",
    [
        "1. Open the lid\n\n2. Take it out\n\nThat is all.",  # a list
        "1. Open the lid.\n\nThat is all.",
        "3.5 kg are enough\n\nThat is all.",
        "6.4 Limitations ........ 22\n\nThat is all.",
        '"WHO IS IT"\n\nSaid he.',
        "NAME    SIZE\n\none     1",
        "FOO=BAR\n\nThat is all.",
        "Who is it?\n\nSaid he.",
        "Name   Size\n-----------\none    1",
        "One line\nTwo lines\n---------\nThat is all.",
        "THE END",
        "Q:\n\nThat is all.",
        "-----\n\nThat is all.",
    ],
)
def test_other_lines_are_no_headings(text: str) -> None:
    assert {block.kind for block in read(text).blocks} == {"paragraph"}


def test_the_text_below_a_heading_is_a_paragraph_of_its_own() -> None:
    text = "Guide\n=====\n\nInstall\n-------\n  Run it.\n\n\nThen\nwait."
    document = read(text)
    assert document.text == text
    assert [(block.kind, text[block.start : block.end]) for block in document.blocks] == [
        ("heading", "Guide\n====="),
        ("heading", "Install\n-------"),
        ("paragraph", "Run it."),
        ("paragraph", "Then\nwait."),
    ]


def test_markdown_in_a_text_file_is_read_as_such() -> None:
    document = read("# Guide\n\nSee [the manual](https://example.org/manual).\n\n## Install\n\nRun `make`.\n")
    assert document.title == "Guide"
    assert [block.kind for block in document.blocks] == ["heading", "paragraph", "heading", "paragraph"]
    document = read("See [the manual](https://example.org/manual).\n\n```\nmake\n```\n")
    assert [block.kind for block in document.blocks] == ["paragraph", "code"]
