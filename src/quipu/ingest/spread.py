"""Spread reading: one pure function from a source to its facts, run anywhere; the pipeline takes what it returned."""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace

from quipu.errors import OverBudget, QuipuError, Unavailable
from quipu.ingest.chunkers.semantic import sentence_similarities
from quipu.ingest.documents import (
    ChunkedDocument,
    DocumentReading,
    IngestConfig,
    chunk_document,
    extractor_input,
    failure_of,
    parse_document,
)
from quipu.model.document import SourceDocument
from quipu.model.extraction import ChunkInput
from quipu.ports.ingest import ExtractionResult, Extractor


async def read_completely(source: SourceDocument, config: IngestConfig) -> DocumentReading:
    """Parse, chunk and extract one document; the result depends on the arguments alone.

    A document that cannot be read is a result, with the message that the pipeline would give. Raises Unavailable if
    no document can be read now.
    """
    component = "parser"
    try:
        parsed = await asyncio.to_thread(parse_document, source, config)
        component = "embedder"
        similarities: Sequence[float] = ()
        if parsed.sentences:
            (similarities,) = await sentence_similarities([parsed.sentences], config.embedder)
        component = "chunker"
        document = await asyncio.to_thread(chunk_document, parsed, similarities, config)
    except (OverBudget, Unavailable):
        raise
    except Exception as error:
        return failure_of(error, component)
    outcomes = await _extract(document, config.extractor)
    slim = replace(document, source=replace(source, content=b""), parsed=replace(document.parsed, blocks=()))
    return DocumentReading(document=slim, outcomes=outcomes)


async def _extract(document: ChunkedDocument, extractor: Extractor) -> dict[str, ExtractionResult]:
    """Return the outcomes by input hash. If the extractor fails, the rest get that fault as their error."""
    input_by_hash = {chunk.input_hash: extractor_input(chunk, (document.source.id,)) for chunk in document.chunks}
    hashes, outcomes = list(input_by_hash), dict[str, ExtractionResult]()
    try:
        async with aclosing(extractor.extract(list(input_by_hash.values()))) as results:
            async for result in results:
                outcomes[hashes[result.index]] = replace(result, index=0)
    except QuipuError:
        raise
    except Exception as failure:
        fault = f"The extractor failed: {type(failure).__name__}: {failure}"
        rest = [input_hash for input_hash in hashes if input_hash not in outcomes]
        outcomes |= dict.fromkeys(rest, ExtractionResult(index=0, extraction=None, error=fault))
    return outcomes


async def finished(
    identity: str, outcomes: Mapping[str, ExtractionResult], inputs: Sequence[ChunkInput]
) -> AsyncGenerator[ExtractionResult, None]:
    """Yield the outcomes that are there already, by the hash of their input, as the extractor `identity` would."""
    for index, chunk in enumerate(inputs):
        if outcome := outcomes.get(chunk.hash(identity)):
            yield replace(outcome, index=index)
