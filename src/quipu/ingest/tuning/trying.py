"""Trying: texts of the sample are read as now and as tuned, for examples and to show what changes."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import replace

from quipu.errors import OverBudget, Unavailable
from quipu.ingest.documents import extractor_input
from quipu.ingest.llm import LlmExtractor
from quipu.ingest.tuning.difference import compared
from quipu.ingest.tuning.means import Means
from quipu.ingest.tuning.passages import MAX_EXAMPLES, example_of, short_texts
from quipu.model.extraction import ChunkInput, ExtractionExample, Ontology
from quipu.model.graph import Chunk
from quipu.model.tuning import ExtractionComparison
from quipu.ports.ingest import ExtractionResult


class Trial:
    """Reads with a model until the budget is spent or the model is gone; `stopped` then says why."""

    def __init__(self, reader: LlmExtractor, means: Means, on_read: Callable[[], None]) -> None:
        self._reader, self._means, self._on_read = reader, means, on_read
        self.notes: list[str] = []
        self.stopped = ""

    async def examples(self, chunks: Sequence[Chunk], ontology: Ontology) -> list[ExtractionExample]:
        """Have short texts of the chunks read as tuned; what is borne out by them becomes examples."""
        texts = await asyncio.to_thread(short_texts, chunks, MAX_EXAMPLES)
        inputs = [ChunkInput(text=each.text, documents=self._means.documents(each.chunk)) for each in texts]
        examples: list[ExtractionExample] = []
        outcomes = await self._read(inputs, self._reader.with_ontology(ontology))
        for place, each in enumerate(texts):
            outcome = outcomes.get(place)
            if outcome is None or outcome.extraction is None:
                continue
            if example := example_of(each.text, outcome.extraction):
                examples.append(example)
            else:
                self.notes.append(f"A text of {each.chunk.document_id} was no example: too little is borne out by it.")
        return examples

    async def compare(self, chunks: Sequence[Chunk], ontology: Ontology) -> list[ExtractionComparison]:
        """Read chunks that were not used otherwise as now and as tuned."""
        inputs = [replace(extractor_input(each), documents=self._means.documents(each)) for each in chunks]
        before = await self._read(inputs, self._reader)
        after = await self._read(inputs, self._reader.with_ontology(ontology))
        return [
            compared(chunk, before[place], after[place])
            for place, chunk in enumerate(chunks)
            if place in before and place in after
        ]

    async def _read(self, inputs: Sequence[ChunkInput], reader: LlmExtractor) -> dict[int, ExtractionResult]:
        """Return the outcomes by place, those there are before it is stopped."""
        found: dict[int, ExtractionResult] = {}
        if self.stopped:
            return found
        try:
            async with aclosing(reader.extract(inputs)) as outcomes:
                async for outcome in outcomes:
                    found[outcome.index] = outcome
                    self._on_read()
        except (OverBudget, Unavailable) as error:
            self.stopped = str(error)
        return found
