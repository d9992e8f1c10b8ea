"""Tuning: a sample of documents, or of the index, is handed to what makes suggestions of it; nothing is added."""

import asyncio
from collections.abc import Iterable
from dataclasses import replace

from quipu.engine.components import Components
from quipu.engine.estimation import UnaskedEmbedder
from quipu.errors import InvalidInput
from quipu.ingest.llm import LlmExtractor
from quipu.ingest.sources import FoundSource
from quipu.ingest.tuning.costing import cost_of
from quipu.ingest.tuning.counting import count
from quipu.ingest.tuning.means import Means
from quipu.ingest.tuning.origin import origin_of
from quipu.ingest.tuning.sampling import Pool, Sample, Sizes, choose, pool_of_index, pool_of_sources
from quipu.ingest.tuning.working import Work, work_out
from quipu.model.chat import Role
from quipu.model.document import DocumentStatus
from quipu.model.event import EventSink
from quipu.model.extraction import Ontology
from quipu.model.tuning import TuningResult

__all__ = ["Sizes", "tune"]

SUBJECT = "tuning"  # under which its cost is counted


async def tune(
    sources: Iterable[FoundSource] | None, wanted: Sizes, parts: Components, on_event: EventSink
) -> TuningResult:
    """Return how documents like these, or like those of the index, should be read, and what that would change.

    Raises InvalidInput where there is nothing to take a sample of, and what the model's first call raises.
    """
    pool = await _pool(sources, parts, on_event)
    parts = parts.metered_by(parts.models.meter.child(SUBJECT))
    asks_model = isinstance(parts.ingest_config.extractor, LlmExtractor) and parts.models.llm(Role.EXTRACT) is not None
    sample = await asyncio.to_thread(choose, pool.chunks, wanted.n_sample, wanted.n_compare if asks_model else 0)
    if not sample.read:
        raise InvalidInput(
            "There is no text to take a sample of.", remedy="Name files or folders with text, or add documents first."
        )
    counted = await asyncio.to_thread(count, sample.counted)
    means = await _means(sample, parts) if asks_model else Means(ingest_config=parts.ingest_config)
    work = Work(sample=sample, counted=counted, means=means, origin=origin_of(sample, pool, wanted, means))
    report = await (_costed if wanted.dry_run else _worked_out)(work, parts, on_event)
    return replace(
        report,
        n_unreadable=pool.n_unreadable,
        n_chunks=len(pool.chunks),
        sample=sample.listed(),
        type_counts=counted.types,
        glossary=counted.glossary,
    )


async def _pool(sources: Iterable[FoundSource] | None, parts: Components, on_event: EventSink) -> Pool:
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


async def _means(sample: Sample, parts: Components) -> Means:
    """Return what a model works with."""
    ids = sorted({chunk.document_id for chunk in (*sample.read, *sample.compared)})
    async with parts.store.view() as view:
        found = await view.documents(ids)
    reading = parts.models.reading
    return Means(
        ingest_config=parts.ingest_config,
        llm=parts.models.llm(Role.EXTRACT),
        model=reading.model,
        price=reading.price,
        concurrency=reading.concurrency,
        live=frozenset(each.id for each in found if each.status in (DocumentStatus.READY, DocumentStatus.PARTIAL)),
    )


async def _costed(work: Work, _parts: Components, _on_event: EventSink) -> TuningResult:
    cost = await cost_of(work.sample, work.means)
    return TuningResult(
        file="",
        ontology=Ontology(),
        method=work.means.by,
        n_documents=work.origin.n_documents,
        cost=cost,
        origin=work.origin,
    )


async def _worked_out(work: Work, parts: Components, on_event: EventSink) -> TuningResult:
    """Ask whether the model is there before anything is asked of it, and count what it takes."""
    meter = parts.models.meter
    notes = await parts.models.check(meter) if work.means.llm else ()
    report = await work_out(work, on_event)
    return replace(report, notes=(*notes, *report.notes), usage=meter.rows())
