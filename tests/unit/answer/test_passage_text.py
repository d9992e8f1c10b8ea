"""Tests of passage text: a passage with the ends of its neighbours."""

from dataclasses import replace

from quipu.answer.passage_text import read_passage
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
