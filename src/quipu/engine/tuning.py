"""Tuning: a sample of documents, or of the index, is handed to what makes suggestions of it; nothing is added."""

import asyncio
from collections.abc import Iterable
from dataclasses import replace

from quipu.engine.components import Components
from quipu.engine.estimation import UnaskedEmbedder
from quipu.errors import InvalidInput
from quipu.ingest.llm import LlmExtractor
from quipu.ingest.sources import FoundSource
from quipu.ingest.tuning.name_counts import count_names
from quipu.ingest.tuning.sample import (
    SamplePool,
    SampleSizes,
    TuningContext,
    TuningSample,
    choose_sample,
    origin_of,
    pool_of_index,
    pool_of_sources,
)
from quipu.ingest.tuning.tuner import TuningTask, estimate_tuning, tune_ontology
from quipu.model.chat import Role
from quipu.model.document import DocumentStatus
from quipu.model.event import EventSink
from quipu.model.extraction import Ontology
from quipu.model.tuning import TuningResult

__all__ = ["SampleSizes", "tune"]

SUBJECT = "tuning"  # under which its cost is counted


async def tune(
    sources: Iterable[FoundSource] | None, sizes: SampleSizes, parts: Components, on_event: EventSink
) -> TuningResult:
    """Return how documents like these, or like those of the index, should be read, and what that would change.

    Raises InvalidInput where there is nothing to take a sample of, and what the model's first call raises.
    """
    pool = await _pool(sources, parts, on_event)
    parts = parts.metered_by(parts.models.meter.child(SUBJECT))
    asks_model = isinstance(parts.ingest_config.extractor, LlmExtractor) and parts.models.llm(Role.EXTRACT) is not None
    sample = await asyncio.to_thread(choose_sample, pool.chunks, sizes.n_sample, sizes.n_compare if asks_model else 0)
    if not sample.learned:
        raise InvalidInput(
            "There is no text to take a sample of.", remedy="Name files or folders with text, or add documents first."
        )
    counts = await asyncio.to_thread(count_names, sample.counted)
    context = await _context(sample, parts) if asks_model else TuningContext(ingest_config=parts.ingest_config)
    task = TuningTask(sample=sample, counts=counts, context=context, origin=origin_of(sample, pool, sizes, context))
    report = await (_costed if sizes.dry_run else _worked_out)(task, parts, on_event)
    return replace(
        report,
        n_unreadable=pool.n_unreadable,
        n_chunks=len(pool.chunks),
        sample=sample.summary(),
        type_counts=counts.types,
        glossary=counts.glossary,
    )


async def _pool(sources: Iterable[FoundSource] | None, parts: Components, on_event: EventSink) -> SamplePool:
    """Return what there is to take a sample of; a service that compares sentences is not asked for it."""
    if sources is None:
        async with parts.store.view() as view:
            return await pool_of_index(view, on_event)
    ingest_config = parts.ingest_config
    if parts.models.embedder_chain is not None:
        ingest_config = replace(
            ingest_config, embedder=UnaskedEmbedder(ingest_config.embedder, ingest_config.tokenizer)
        )
    return await pool_of_sources(sources, ingest_config, on_event)


async def _context(sample: TuningSample, parts: Components) -> TuningContext:
    """Return what a model works with."""
    ids = sorted({chunk.document_id for chunk in (*sample.learned, *sample.compared)})
    async with parts.store.view() as view:
        found = await view.documents(ids)
    reading = parts.models.reading
    return TuningContext(
        ingest_config=parts.ingest_config,
        llm=parts.models.llm(Role.EXTRACT),
        model=reading.model,
        price=reading.price,
        concurrency=reading.concurrency,
        indexed=frozenset(each.id for each in found if each.status in (DocumentStatus.READY, DocumentStatus.PARTIAL)),
    )


async def _costed(task: TuningTask, _parts: Components, _on_event: EventSink) -> TuningResult:
    cost = await estimate_tuning(task.sample, task.context)
    return TuningResult(
        file="",
        ontology=Ontology(),
        method=task.context.author,
        n_documents=task.origin.n_documents,
        cost=cost,
        origin=task.origin,
    )


async def _worked_out(task: TuningTask, parts: Components, on_event: EventSink) -> TuningResult:
    """Ask whether the model is there before anything is asked of it, and count what it takes."""
    meter = parts.models.meter
    notes = await parts.models.check(meter) if task.context.llm else ()
    report = await tune_ontology(task, on_event)
    return replace(report, notes=(*notes, *report.notes), usage=meter.rows())
