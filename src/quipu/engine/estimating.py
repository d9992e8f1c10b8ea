"""Estimating: what adding would cost, by typical figures, by what this index has spent, or by a sample read now."""

import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from quipu.engine.models import Models, spent_between
from quipu.ingest.asking import Asked, ask
from quipu.ingest.estimate import Measured, Survey, estimate, sample, survey
from quipu.ingest.reading import Recipe
from quipu.ingest.sources import FoundSource
from quipu.model.estimate import Estimate
from quipu.model.event import Progress
from quipu.model.graph import Chunk
from quipu.model.usage import Stage, total
from quipu.ports.sink import Sink
from quipu.ports.store import Store

MAX_DOCUMENTS = 100  # of those read before, that an estimate looks at


async def estimate_adding(
    sources: Iterable[FoundSource], n_sample: int, *, store: Store, recipe: Recipe, models: Models, on_event: Sink
) -> Estimate:
    """Return what adding `sources` would take. Of a sample the replies are kept; nothing else is changed."""
    found = await survey(sources, store, recipe, on_event)
    reading = models.reading
    measured = None
    n_calls = cost = 0
    if reading.model and found.unread:
        chunks = sample(found, n_sample)
        if chunks:
            await models.check()
            measured = await _sampled(chunks, store, recipe, models, on_event)
            spent = total(measured.rows) if measured.rows else None
            n_calls, cost = (spent.n_calls, spent.cost) if spent else (0, 0)
            found = _without(found, chunks)
        else:
            measured = await _remembered(store)
    told = estimate(
        found, recipe, model=reading.model, price=reading.price, concurrency=reading.concurrency, measured=measured
    )
    return replace(told, sample_calls=n_calls, sample_cost=cost)


async def _sampled(chunks: Sequence[Chunk], store: Store, recipe: Recipe, models: Models, on_event: Sink) -> Measured:
    """Read some chunks and return what that took."""
    before, begun, done = await store.usage(), time.perf_counter(), 0

    def on_outcome(n_chunks: int, *, is_new: bool) -> None:
        nonlocal done
        done += 1
        on_event(Progress(stage="sample", done=done, total=len(chunks)))

    stopped = await ask(Asked.of(chunks), store, recipe.extractor, on_outcome)
    if stopped is not None:
        raise stopped
    seconds = time.perf_counter() - begun
    rows = [row for row in spent_between(before, await store.usage()) if row.stage is Stage.EXTRACT]
    n_calls = sum(row.n_calls for row in rows)
    at_once = min(models.reading.concurrency, len(chunks))
    return Measured(
        rows=rows,
        size_by_subject=_sizes(chunks),
        seconds_a_call=seconds * at_once / n_calls if n_calls else None,
        basis=f"a sample of {len(chunks):,} chunks, just read",
    )


async def _remembered(store: Store) -> Measured | None:
    """Return what reading documents of the index took; None where no model has read any."""
    rows = [row for row in await store.usage() if row.stage is Stage.EXTRACT and row.subject]
    subjects = list(dict.fromkeys(row.subject for row in reversed(rows)))[:MAX_DOCUMENTS]
    chunks: list[Chunk] = []
    async with store.view() as view:
        for document in await view.documents(subjects):
            chunks += await view.document_chunks(document.id)
    if not chunks:
        return None
    basis = f"what reading {len(chunks):,} chunks of this index took"
    return Measured(rows=rows, size_by_subject=_sizes(chunks), seconds_a_call=None, basis=basis)


def _sizes(chunks: Iterable[Chunk]) -> dict[str, tuple[int, int]]:
    n_chunks: Counter[str] = Counter()
    n_tokens: Counter[str] = Counter()
    for chunk in chunks:
        n_chunks[chunk.document_id] += 1
        n_tokens[chunk.document_id] += chunk.n_tokens
    return {document: (n_chunks[document], n_tokens[document]) for document in n_chunks}


def _without(found: Survey, chunks: Sequence[Chunk]) -> Survey:
    for chunk in chunks:
        found.unread.pop(chunk.input_hash, None)
    return found
