"""Tests of reading a document by one pure function: what it returns, and what the pipeline makes of it."""

from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace

import pytest

from quipu.errors import Unavailable
from quipu.ingest.local import LocalExtractor
from quipu.ingest.spread import finished, read_completely
from quipu.model.document import ParsedDocument, SourceDocument
from quipu.model.extraction import ChunkInput
from quipu.ports.ingest import ExtractionResult
from tests.laws.world import INGEST_CONFIG, chunk_texts, document

SOURCE = document("polo.md", 3)


async def test_a_reading_has_the_chunks_and_an_outcome_for_each_but_not_the_bytes() -> None:
    reading = await read_completely(SOURCE, INGEST_CONFIG)
    assert reading == await read_completely(SOURCE, INGEST_CONFIG)
    assert reading.document is not None
    assert [chunk.text for chunk in reading.document.chunks] == chunk_texts(SOURCE)
    assert {chunk.input_hash for chunk in reading.document.chunks} == set(reading.outcomes)
    assert (reading.document.source.content, reading.document.parsed.blocks) == (b"", ())


async def test_a_damaged_document_is_a_result_that_is_final() -> None:
    damaged = SourceDocument(id="a.pdf", content=b"%PDF-1.7 and no more", media_type="application/pdf")
    reading = await read_completely(damaged, INGEST_CONFIG)
    assert reading.document is None and reading.is_final and reading.error


async def test_a_fault_of_the_parser_fails_the_document_but_not_for_ever() -> None:
    def parse(_source: SourceDocument) -> ParsedDocument:
        raise ZeroDivisionError("by nothing")

    reading = await read_completely(SOURCE, replace(INGEST_CONFIG, parse=parse))
    assert reading.error.startswith("The parser failed: ZeroDivisionError: by nothing.") and not reading.is_final


async def test_what_nothing_can_be_read_with_is_raised() -> None:
    def parse(_source: SourceDocument) -> ParsedDocument:
        raise Unavailable("There is no parser.")

    with pytest.raises(Unavailable):
        await read_completely(SOURCE, replace(INGEST_CONFIG, parse=parse))


class FailingExtractor(LocalExtractor):
    """Reads the first chunk, then fails."""

    async def extract(self, inputs: Sequence[ChunkInput]) -> AsyncGenerator[ExtractionResult, None]:
        """Yield one outcome."""
        async for result in super().extract(inputs[:1]):
            yield result
        raise ZeroDivisionError("by nothing")


async def test_a_fault_of_the_extractor_leaves_what_was_read_before() -> None:
    reading = await read_completely(SOURCE, replace(INGEST_CONFIG, extractor=FailingExtractor()))
    outcomes = list(reading.outcomes.values())
    assert outcomes[0].extraction and not outcomes[0].error
    assert len(outcomes) > 1
    assert {outcome.error for outcome in outcomes[1:]} == {"The extractor failed: ZeroDivisionError: by nothing"}


async def test_finished_outcomes_are_yielded_for_the_inputs_that_have_one() -> None:
    known, unknown = ChunkInput(text="Marco Polo met Kublai Khan.", title=""), ChunkInput(text="Nobody.", title="")
    outcome = ExtractionResult(index=0, extraction=None, error="why")
    results = finished("local/5", {known.hash("local/5"): outcome}, [unknown, known])
    assert [result async for result in results] == [replace(outcome, index=1)]
