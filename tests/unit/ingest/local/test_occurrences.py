"""Prose: what of a chunk may hold names."""

import time

import pytest

from quipu.ingest.local.extraction import extract_chunk
from quipu.ingest.local.occurrences import BLANK, prose
from quipu.model.extraction import ChunkInput


def _left(text: str) -> str:
    """Return the words of the prose of `text`."""
    masked = prose(text)
    assert len(masked) == len(text)
    assert [i for i, c in enumerate(masked) if c == "\n"] == [i for i, c in enumerate(text) if c == "\n"]
    return " ".join(masked.replace(BLANK, " ").split())


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("Use Flask.\n```python\nclass Chat(Route):\n    pass\n```\nThen Celery.", "Use Flask. Then Celery."),
        ("An example::\n\n    from docx import Pt\n    Pt(12)\n\nMany Fonts.", "An example:: Many Fonts."),
        (".. code-block:: python\n\n    Calibri = 1\n\nThe end.", "The end."),
        (">>> font.name = 'Calibri'\nText of Pallas.", "Text of Pallas."),
        ("void Parse(Parser p);\nParse reads Text.", "Parse reads Text."),
        ("The class of 1995 met Anna (a friend).", "The class of 1995 met Anna (a friend)."),
    ],
)
def test_code_is_no_prose(text: str, left: str) -> None:
    assert _left(text) == left


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("See ![A View](img/Pane.png) and [Gephi](https://gephi.org/X).", "See and [Gephi] ."),
        ('<a href="Big">Boost</a> by <b>Beman</b>', "Boost by Beman"),
        ("Write to Anna@Example.org or www.Acme.com.", "Write to or ."),
        ("Read LICENSE_1_0.txt, ./Docs/Guide and /etc/Hosts.", "Read , and ."),
        ("Node.js, TCP/IP and Boost.Filesystem stay.", "Node.js, TCP/IP and Boost.Filesystem stay."),
        ("Call `StaticFiles` or `run --host HOST`.", "Call `StaticFiles` or ."),
        ("It is _JFrog Artifactory_ here.", "It is JFrog Artifactory here."),
        ("A --> B[Graph Tables]\nGraphs help.", "Graphs help."),
        ("Message Flashing\n----------------\nIt flashes.", "It flashes."),
    ],
)
def test_markup_addresses_files_and_diagrams_are_no_prose(text: str, left: str) -> None:
    assert _left(text) == left


@pytest.mark.parametrize(
    "text",
    [
        "Copyright (c) 2013 Acme Inc. All rights reserved.",
        "Permission is hereby granted, free of charge, to any Person.",
        "Release Date: 2007\n*** START OF THIS PROJECT GUTENBERG EBOOK A CHRISTMAS CAROL ***",
        "*** END OF THE PROJECT GUTENBERG EBOOK ***\n\nMichael Hart",
        "Home Tutorial Reference FAQ Releases Portability Design",
        "[Illustration: ON THE WINGS OF THE WIND]",
    ],
)
def test_licences_headers_and_navigation_are_no_prose(text: str) -> None:
    assert _left(text) == ""


def test_a_text_about_a_library_is_prose() -> None:
    text = "Project Gutenberg was founded by Michael Hart. The MIT License is short."

    assert prose(text) == text


@pytest.mark.parametrize(
    "piece", ["(x", "a.b/", "[A](", "<a ", "`", "{{", "::\n ", "=> ", "_", "A ", "@a.", "```\n", "://"]
)
def test_the_time_grows_with_the_length_whatever_the_text(piece: str) -> None:
    start = time.process_time()
    prose(piece * (40_000 // len(piece)))

    assert time.process_time() - start < 2


def test_a_description_is_a_sentence_and_never_code() -> None:
    text = "Starlette is a toolkit.\n\nRun it:\n\n```\nStarlette(routes=[Route()])\n```\n"

    (entity,) = extract_chunk(ChunkInput(text=text)).entities

    assert (entity.name, entity.description) == ("Starlette", "Starlette is a toolkit.")
