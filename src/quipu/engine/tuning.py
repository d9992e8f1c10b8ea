"""Tuning: suggests an ontology from a sample of documents or of the index; nothing is added."""

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
    sources: Iterable[FoundSource] | None, sizes: SampleSizes, components: Components, on_event: EventSink
) -> TuningResult:
    """Suggest an ontology for documents like these, or like the documents of the index, and show its effect.

    Raises InvalidInput if there is no text for a sample, and the errors of the first call of the model.
    """
    pool = await _sample_pool(sources, components, on_event)
    meter = components.models.meter.child(SUBJECT)
    components, on_event = components.metered_by(meter), meter.counting(on_event)
    models, config = components.models, components.ingest_config
    asks_model = isinstance(config.extractor, LlmExtractor) and models.llm(Role.EXTRACT) is not None
    sample = await asyncio.to_thread(choose_sample, pool.chunks, sizes.n_sample, sizes.n_compare if asks_model else 0)
    if not sample.learned:
        raise InvalidInput(
            "There is no text for a sample.", remedy="Name files or folders with text, or add documents first."
        )
    counts = await asyncio.to_thread(count_names, sample.counted)
    context = await _model_context(sample, components) if asks_model else TuningContext(ingest_config=config)
    task = TuningTask(sample=sample, counts=counts, context=context, origin=origin_of(sample, pool, sizes, context))
    result = await (_estimated(task) if sizes.dry_run else _tuned(task, components, on_event))
    return replace(
        result,
        n_unreadable=pool.n_unreadable,
        n_chunks=len(pool.chunks),
        sample=sample.summary(),
        type_counts=counts.types,
        glossary=counts.glossary,
    )


async def _sample_pool(
    sources: Iterable[FoundSource] | None, components: Components, on_event: EventSink
) -> SamplePool:
    """Return the chunks from which a sample is taken; they are cut without asking a remote embedder."""
    if sources is None:
        async with components.store.view() as view:
            return await pool_of_index(view, on_event)
    config = components.ingest_config
    if components.models.embedder_chain is not None:
        config = replace(config, embedder=UnaskedEmbedder(config.embedder, config.tokenizer))
    return await pool_of_sources(sources, config, on_event)


async def _model_context(sample: TuningSample, components: Components) -> TuningContext:
    """Return the context for tuning by a model, with the documents of the sample that the index has read."""
    ids = sorted({chunk.document_id for chunk in (*sample.learned, *sample.compared)})
    async with components.store.view() as view:
        documents = await view.documents(ids)
    extraction = components.models.reading
    readable = (DocumentStatus.READY, DocumentStatus.PARTIAL)
    return TuningContext(
        ingest_config=components.ingest_config,
        llm=components.models.llm(Role.EXTRACT),
        model=extraction.model,
        price=extraction.price,
        concurrency=extraction.concurrency,
        indexed=frozenset(document.id for document in documents if document.status in readable),
    )


async def _estimated(task: TuningTask) -> TuningResult:
    """Return what tuning would cost; no model is asked."""
    return TuningResult(
        file="",
        ontology=Ontology(),
        method=task.context.author,
        n_documents=task.origin.n_documents,
        cost=await estimate_tuning(task.sample, task.context),
        origin=task.origin,
    )


async def _tuned(task: TuningTask, components: Components, on_event: EventSink) -> TuningResult:
    """Check the model before it is asked, and return its suggestion with what it cost."""
    meter = components.models.meter
    notes = await components.models.check(meter) if task.context.llm else ()
    result = await tune_ontology(task, on_event)
    return replace(result, notes=(*notes, *result.notes), usage=meter.rows())
