"""The local extractor: reads chunks by rules, without a model and without network."""

import asyncio
from collections.abc import AsyncGenerator, Sequence

from quipu.model.extraction import ChunkInput, Extraction
from quipu.ports.ingest import ExtractionResult

BATCH = 16


class LocalExtractor:
    """Reads chunks by rules alone: capitals, quotation marks, brackets, and the common words of three languages."""

    identity = "local/5"
    description = "local rules, no language model"
    n_ahead = 0

    def n_tokens_sent(self, chunk: ChunkInput) -> int:
        """Return 0, because no model is called."""
        return 0

    async def check(self) -> None:
        """Return without error, because the rules depend on nothing."""

    async def extract(self, inputs: Sequence[ChunkInput]) -> AsyncGenerator[ExtractionResult, None]:
        """Yield the extraction of each input in order; the rules fail for no text."""
        for start in range(0, len(inputs), BATCH):
            batch = inputs[start : start + BATCH]
            extractions = await asyncio.to_thread(_extract_batch, batch)
            for offset, extraction in enumerate(extractions):
                yield ExtractionResult(index=start + offset, extraction=extraction)


def _extract_batch(chunks: Sequence[ChunkInput]) -> list[Extraction]:
    from quipu.ingest.local.extraction import extract_chunk

    return [extract_chunk(chunk) for chunk in chunks]
