"""Tests of passage text: a passage with the ends of its neighbours."""

from dataclasses import replace

import pytest

from quipu.answer.passage_text import is_entry, read_passage
from quipu.model.graph import Chunk
from tests.unit.answer.fakes import chunk

DOCUMENT = "Salt is heavy. Camels carry it. Horses do not. Donkeys carry little. The way is long."


def _cut(start: int, end: int, ordinal: int) -> Chunk:
    text = DOCUMENT[start:end]
    return replace(chunk("Salt", text), id=f"c{ordinal}", ordinal=ordinal, start=start, end=end)


def test_text_that_two_chunks_share_is_cited_once() -> None:
    before, middle, after = _cut(0, 31, 0), _cut(15, 68, 1), _cut(47, len(DOCUMENT), 2)
    near = {(piece.document_id, piece.ordinal): piece for piece in (before, after)}
    passage = read_passage(middle, 1.0, near)
    assert passage.text == DOCUMENT
    citations = list(passage.citations([(0, len(DOCUMENT))], 1, ""))
    assert [(citation.chunk_id, citation.quote) for citation in citations] == [
        ("c0", "Salt is heavy."),
        ("c1", "Camels carry it. Horses do not. Donkeys carry little."),
        ("c2", "The way is long."),
    ]
    assert all(DOCUMENT[citation.start : citation.end] == citation.quote for citation in citations)


@pytest.mark.parametrize(
    "text",
    [
        "Groups:\n\n   adm\n      reads logs\n\n   gdm\n      logs in\n\n   sudo\n      runs commands",
        "Groups:\n\nadm\n   reads logs\n\ngdm\n   logs in\n\nsudo\n   runs commands",
        "Groups:\n\n\n\ngdm",
    ],
)
def test_a_passage_keeps_the_indentation_of_its_first_line(text: str) -> None:
    place = text.index("gdm")
    before = replace(chunk("Groups", text[:place].rstrip()), start=0, end=len(text[:place].rstrip()))
    after = replace(chunk("Groups", text[place:]), ordinal=1, start=place, end=len(text))
    assert read_passage(after, 1.0, {("Groups.md", 0): before}).text == text


@pytest.mark.parametrize(
    ("paragraph", "is_below_term"),
    [
        ("-a, --all\nShow everything.", True),
        ("mask UNIT...\nMask a unit.", True),
        ("名称\n文件的名称。", True),
        ("The caravan leaves in spring, when the\nwells are full.", False),
        ("It is late.\nThe caravan leaves.", False),
        ("--all", False),
        (f"{'A long line of a list of terms ' * 3}\nShow everything.", False),
    ],
)
def test_an_entry_is_an_explanation_below_its_term(paragraph: str, is_below_term: bool) -> None:
    assert is_entry(paragraph) is is_below_term
