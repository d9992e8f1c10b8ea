"""Estimating: what adding would cost, by typical figures, by what this index has spent, or by a sample read now."""

import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TypedDict

import numpy as np
import numpy.typing as npt

from quipu.engine.components import Components, Models
from quipu.ingest.documents import IngestConfig
from quipu.ingest.estimate import (
    DocumentSurvey,
    MeasuredUsage,
    estimate_cost,
    estimate_embedded_tokens,
    sample_chunks,
    survey_documents,
)
from quipu.ingest.extraction import ExtractionBatch, extract_missing
from quipu.ingest.sources import FoundSource
from quipu.model.chunking import Chunking
from quipu.model.event import EventSink, Progress
from quipu.model.graph import Chunk
from quipu.model.usage import Estimate, Range, Stage, total
from quipu.ports.providers import Embedder, Tokenizer
from quipu.ports.store import Store
from quipu.text.formatting import format_count

MAX_DOCUMENTS = 100  # of those read before, that an estimate looks at


class HowRead(TypedDict, total=False):
    """How documents are to be read, where a call says so: as `add` has it."""

    chunking: Chunking | None
    reread: bool


async def estimate_adding(
    sources: Iterable[FoundSource],
    n_sample: int,
    *,
    parts: Components,
    on_event: EventSink,
    chunking: Chunking | None = None,
    reread: bool = False,
) -> Estimate:
    """Return what adding `sources` would take. Of a sample the replies are kept; nothing else is changed.

    Without a sample nothing is paid for: documents that are cut by the vectors of a service are cut without.
    """
    store, models, chain = parts.store, parts.models, parts.models.embedder_chain
    ingest_config = parts.ingest_config.with_chunking(chunking)
    unasked = UnaskedEmbedder(ingest_config.embedder, ingest_config.tokenizer) if chain else None
    without = replace(ingest_config, embedder=unasked) if unasked and not n_sample else ingest_config
    found = await survey_documents(sources, store, without, on_event, reread=reread)
    reading, measured, embedded = models.reading, None, estimate_embedded_tokens(found)
    chunks: list[Chunk] = []
    errors: dict[str, str] = {}
    if reading.model and found.unread:
        chunks = sample_chunks(found, n_sample)
        if chunks:
            await models.check(models.meter)
            measured, errors = await _sampled(chunks, store, ingest_config, models, on_event)
            found = _without(found, [each for each in chunks if each.input_hash not in errors])
        else:
            measured = await _remembered(store)
    told = estimate_cost(
        found,
        ingest_config,
        model=reading.model,
        price=reading.price,
        concurrency=reading.concurrency,
        measured=measured,
    )
    if rows := models.meter.rows():
        told = replace(told, sample_calls=total(rows).n_calls, sample_cost=total(rows).cost)
    told = replace(
        told, n_sampled=len(chunks), n_sample_failed=len(errors), sample_error=next(iter(errors.values()), "")
    )
    if chain is None or unasked is None:
        return told
    compared = unasked.n_tokens
    embedded = embedded.plus(Range(low=compared, likely=compared, high=compared))
    price = chain.pricing.price
    cost = embedded.times(price.input) if price else None
    return replace(told, embedder=chain.pricing.model, embedded_tokens=embedded, embedding_cost=cost)


class UnaskedEmbedder:
    """Stands in for an embedder that has to be paid for: no text has a vector. `n_tokens` would have been sent."""

    def __init__(self, embedder: Embedder, tokenizer: Tokenizer) -> None:
        self.n_tokens = 0
        self.identity = embedder.identity
        self.dimension = 1
        self._tokenizer = tokenizer

    async def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return zeros: neighbouring sentences count as alike, and size decides where a text is cut."""
        self.n_tokens += sum(map(self._tokenizer.count, texts))
        return np.zeros((len(texts), self.dimension), np.float32)

    async def embed_queries(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return the same."""
        return await self.embed(texts)


async def _sampled(
    chunks: Sequence[Chunk], store: Store, ingest_config: IngestConfig, models: Models, on_event: EventSink
) -> tuple[MeasuredUsage, dict[str, str]]:
    """Read some chunks; return what that took, and why some could not be read, by the hash of their input."""
    begun, done = time.perf_counter(), 0

    def on_outcome(n_chunks: int, *, is_new: bool) -> None:
        nonlocal done
        done += 1
        on_event(Progress(stage="sample", done=done, total=len(chunks)))

    asked = ExtractionBatch.of(chunks)
    asked.is_sample = True
    stopped = await extract_missing(asked, store, ingest_config.extractor, on_outcome)
    if stopped is not None:
        raise stopped
    seconds = time.perf_counter() - begun
    rows = [row for row in models.meter.rows() if row.stage is Stage.EXTRACT and row.subject]
    n_calls = sum(row.n_calls for row in rows)
    at_once = min(models.reading.concurrency, len(chunks))
    measured = MeasuredUsage(
        rows=rows,
        size_by_subject=_sizes(chunks),
        seconds_a_call=seconds * at_once / n_calls if n_calls else None,
        basis=f"a sample of {format_count(len(chunks), 'chunk')}, just read",
    )
    return measured, {input_hash: each.error for input_hash, each in asked.outcomes.items() if each.error}


async def _remembered(store: Store) -> MeasuredUsage | None:
    """Return what reading documents of the index took; None where no model has read any."""
    rows = [row for row in await store.usage() if row.stage is Stage.EXTRACT and row.subject]
    subjects = list(dict.fromkeys(row.subject for row in reversed(rows)))[:MAX_DOCUMENTS]
    chunks: list[Chunk] = []
    async with store.view() as view:
        for document in await view.documents(subjects):
            chunks += await view.document_chunks(document.id)
    if not chunks:
        return None
    basis = f"what reading {format_count(len(chunks), 'chunk')} of this index took"
    return MeasuredUsage(rows=rows, size_by_subject=_sizes(chunks), seconds_a_call=None, basis=basis)


def _sizes(chunks: Iterable[Chunk]) -> dict[str, tuple[int, int]]:
    n_chunks: Counter[str] = Counter()
    n_tokens: Counter[str] = Counter()
    for chunk in chunks:
        n_chunks[chunk.document_id] += 1
        n_tokens[chunk.document_id] += chunk.n_tokens
    return {document: (n_chunks[document], n_tokens[document]) for document in n_chunks}


def _without(found: DocumentSurvey, chunks: Sequence[Chunk]) -> DocumentSurvey:
    for chunk in chunks:
        found.unread.pop(chunk.input_hash, None)
    return found
