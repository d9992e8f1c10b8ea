"""Estimation: what an add would cost, from typical figures, from what this index has spent, or from a new sample."""

import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from quipu.engine.components import Components, Models
from quipu.ingest.documents import IngestConfig
from quipu.ingest.estimate import (
    DocumentSurvey,
    MeasuredUsage,
    UndescribedPictures,
    estimate_cost,
    estimate_embedded_tokens,
    sample_chunks,
    survey_documents,
)
from quipu.ingest.extraction import ExtractionBatch, extract_missing
from quipu.ingest.sources import FoundSource
from quipu.model.chat import Role
from quipu.model.chunking import Chunking
from quipu.model.event import EventSink, Progress
from quipu.model.graph import Chunk
from quipu.model.usage import Estimate, Range, Stage, total
from quipu.ports.providers import Embedder, Tokenizer
from quipu.ports.store import Store
from quipu.text.formatting import format_count

MAX_DOCUMENTS = 100  # of those read before, from which an estimate is made


async def estimate_add(
    sources: Iterable[FoundSource],
    n_sample: int,
    *,
    components: Components,
    on_event: EventSink,
    chunking: Chunking | None = None,
    reread: bool = False,
) -> Estimate:
    """Return what adding `sources` would cost. Replies about the sample are cached; nothing else is changed.

    Without a sample nothing is paid for. Documents that would be cut by the vectors of a remote embedder are then cut
    without vectors, and only the tokens that would be sent are counted.
    """
    store, models, chain = components.store, components.models, components.models.embedder_chain
    ingest_config = components.ingest_config.with_chunking(chunking)
    unasked = UnaskedEmbedder(ingest_config.embedder, ingest_config.tokenizer) if chain else None
    free_config = replace(ingest_config, embedder=unasked) if unasked and not n_sample else ingest_config
    free_config, undescribed = _without_descriptions(free_config, models)
    to_read = await survey_documents(sources, store, free_config, on_event, reread=reread)
    reading, measured, embedded_tokens = models.reading, None, estimate_embedded_tokens(to_read)
    chunks: list[Chunk] = []
    errors: dict[str, str] = {}
    if reading.model and to_read.unread:
        chunks = sample_chunks(to_read, n_sample)
        if chunks:
            await models.check(models.meter)
            measured, errors = await _read_sample(chunks, store, ingest_config, models, on_event)
            to_read = _without(to_read, [chunk for chunk in chunks if chunk.input_hash not in errors])
        else:
            measured = await _measured_before(store)
    price, concurrency = reading.price, reading.concurrency
    result = replace(
        estimate_cost(
            to_read, ingest_config, model=reading.model, price=price, concurrency=concurrency, measured=measured
        ),
        n_sampled=len(chunks),
        n_sample_failed=len(errors),
        sample_error=next(iter(errors.values()), ""),
    )
    if rows := models.meter.rows():
        result = replace(result, sample_calls=total(rows).n_calls, sample_cost=total(rows).cost)
    if undescribed:
        pricing = models.chains[Role.VISION].pricing
        result = undescribed.added_to(result, pricing.model, pricing.price)
    if chain is None or unasked is None:
        return result
    embedded_tokens = embedded_tokens.plus(Range(low=unasked.n_tokens, likely=unasked.n_tokens, high=unasked.n_tokens))
    cost = embedded_tokens.times(chain.pricing.price.input) if chain.pricing.price else None
    return replace(result, embedder=chain.pricing.model, embedded_tokens=embedded_tokens, embedding_cost=cost)


def _without_descriptions(config: IngestConfig, models: Models) -> tuple[IngestConfig, UndescribedPictures | None]:
    """Return a configuration that describes pictures by saved replies alone, and what counts the others."""
    if config.pictures is None:
        return config, None
    undescribed = UndescribedPictures(config.pictures.llm.identity, config.tokenizer)
    saved = models.chains[Role.VISION].saved_or(undescribed)
    return replace(config, pictures=replace(config.pictures, llm=saved)), undescribed


class UnaskedEmbedder:
    """Stands in for a remote embedder and returns zero vectors; `n_tokens` counts the tokens that were not sent."""

    def __init__(self, embedder: Embedder, tokenizer: Tokenizer) -> None:
        self.n_tokens = 0
        self.identity = embedder.identity
        self.dimension = 1
        self._tokenizer = tokenizer

    async def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return zeros, [n, 1]: all neighbouring sentences then look alike, and a text is cut by size alone."""
        self.n_tokens += sum(map(self._tokenizer.count, texts))
        return np.zeros((len(texts), self.dimension), np.float32)

    async def embed_queries(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return zeros, as `embed` does."""
        return await self.embed(texts)


async def _read_sample(
    chunks: Sequence[Chunk], store: Store, ingest_config: IngestConfig, models: Models, on_event: EventSink
) -> tuple[MeasuredUsage, dict[str, str]]:
    """Read chunks; return the cost, and the errors of failed chunks by the hash of their input."""
    start, n_done = time.perf_counter(), 0

    def on_outcome(n_chunks: int, document_id: str = "") -> None:
        nonlocal n_done
        n_done += 1
        on_event(Progress(stage="sample", n_done=n_done, n_total=len(chunks), document_id=document_id))

    requests = ExtractionBatch.of(chunks)
    requests.is_sample = True
    stopped = await extract_missing(requests, store, ingest_config.extractor.extract, on_outcome)
    if stopped is not None:
        raise stopped
    seconds = time.perf_counter() - start
    rows = [row for row in models.meter.rows() if row.stage is Stage.EXTRACT and row.subject]
    n_calls = sum(row.n_calls for row in rows)
    n_parallel = min(models.reading.concurrency, len(chunks))
    measured = MeasuredUsage(
        rows=rows,
        size_by_subject=_sizes(chunks),
        seconds_a_call=seconds * n_parallel / n_calls if n_calls else None,
        basis=f"a sample of {format_count(len(chunks), 'chunk')}, just read",
    )
    errors = {input_hash: outcome.error for input_hash, outcome in requests.outcomes.items() if outcome.error}
    return measured, errors


async def _measured_before(store: Store) -> MeasuredUsage | None:
    """Return what reading documents of the index cost; None where no model has read any."""
    rows = [row for row in await store.usage() if row.stage is Stage.EXTRACT and row.subject]
    subjects = list(dict.fromkeys(row.subject for row in reversed(rows)))[:MAX_DOCUMENTS]
    chunks: list[Chunk] = []
    async with store.view() as view:
        for document in await view.documents(subjects):
            chunks += await view.chunks(document_id=document.id)
    if not chunks:
        return None
    basis = f"what reading {format_count(len(chunks), 'chunk')} of this index cost"
    return MeasuredUsage(rows=rows, size_by_subject=_sizes(chunks), seconds_a_call=None, basis=basis)


def _sizes(chunks: Iterable[Chunk]) -> dict[str, tuple[int, int]]:
    """Return the number of chunks and of their tokens, by document."""
    n_chunks: Counter[str] = Counter()
    n_tokens: Counter[str] = Counter()
    for chunk in chunks:
        n_chunks[chunk.document_id] += 1
        n_tokens[chunk.document_id] += chunk.n_tokens
    return {document: (n_chunks[document], n_tokens[document]) for document in n_chunks}


def _without(to_read: DocumentSurvey, chunks: Sequence[Chunk]) -> DocumentSurvey:
    for chunk in chunks:
        to_read.unread.pop(chunk.input_hash, None)
    return to_read
