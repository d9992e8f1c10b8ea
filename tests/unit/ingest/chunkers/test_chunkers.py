"""Tests of all chunkers: their names, their budgets, and that equal texts are cut equally."""

from typing import get_args

import pytest

from quipu.errors import InvalidDocument
from quipu.ingest import chunkers
from quipu.ingest.chunkers import CHUNKERS, chunk_spans, sentences_to_compare, structure
from quipu.model.chunking import TAKES, Chunking
from quipu.settings.tables import ChunkerName
from tests.unit.ingest.chunkers.texts import Writer, count, parsed

SEPARATORS = {"separator": "\n\n"}


def test_every_chunker_has_its_place_in_the_model_and_the_settings() -> None:
    assert tuple(CHUNKERS) == tuple(TAKES) == get_args(ChunkerName)
    assert all(chunker.summary and chunker.after and chunker.when for chunker in CHUNKERS.values())


@pytest.mark.parametrize("name", CHUNKERS)
def test_the_spans_of_every_chunker_are_the_same_each_time_and_within_an_automatic_budget(name: str) -> None:
    writer = Writer(11)
    document = parsed("\n\n".join(writer.paragraph() for _ in range(60)))
    chunking = Chunking(method=name, separator=SEPARATORS.get(name))
    alike = [0.5 + 0.4 * (-1) ** number for number in range(max(0, len(sentences_to_compare(document, chunking)) - 1))]
    spans = chunk_spans(document, chunking, count=count, similarities=alike)
    assert spans == chunk_spans(document, chunking, count=count, similarities=alike)
    assert len(spans) > 1
    assert all(count(document.text[span.start : span.end]) <= 1_200 for span in spans)


def test_a_document_of_more_places_or_chunks_than_are_held_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    document = parsed("One. Two. Three. Four.")
    monkeypatch.setattr(structure, "MAX_CUT_POINTS", 3)
    with pytest.raises(InvalidDocument, match="more than 3 sentences and lines"):
        chunk_spans(document, Chunking(), count=count)
    monkeypatch.setattr(chunkers, "MAX_CHUNKS", 1)
    with pytest.raises(InvalidDocument, match="has 4 chunks; the limit is 1") as caught:
        chunk_spans(document, Chunking(method="fixed", max_tokens=1, overlap=0), count=lambda text: len(text.split()))
    assert caught.value.remedy
