"""The pipeline: claim → parse → chunk → extract → one Delta of facts. Kill it anywhere and run it again.

Replies are committed as they arrive, so that nothing paid for is asked twice; a document's facts are published whole,
so that no reader sees half of it.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field, replace

from quipu.errors import Busy, Corrupt, QuipuError
from quipu.ingest.facts import chunk_facts
from quipu.ingest.keeper import ReplyKeeper
from quipu.ingest.likeness import similarities
from quipu.ingest.reading import Draft, ReadDocument, Recipe, content_hash, cut, draft, extractor_input
from quipu.ingest.reply import from_payload, to_payload
from quipu.model.delta import ChunkFacts, Delta, DocumentFacts, Job, JobFailure, Reply
from quipu.model.document import SourceDocument, Status
from quipu.model.event import DocumentDone, Progress
from quipu.model.extraction import Extraction
from quipu.model.graph import Chunk
from quipu.ports.extractor import Extracted
from quipu.ports.sink import Sink
from quipu.ports.store import Store

CLAIM = 64
BYTES_AT_ONCE = 2_000_000


@dataclass(slots=True)
class Work:
    """What a run of the pipeline did; `status_by_document` holds the documents it brought to an end."""

    status_by_document: dict[str, Status] = field(default_factory=dict)
    n_chunks: int = 0
    n_extracted: int = 0
    n_reused: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reading:
    """A claimed document that could be read."""

    job: Job
    source: SourceDocument
    document: ReadDocument


_Failures = list[tuple[Job, JobFailure]]


async def work_queue(store: Store, recipe: Recipe, work: Work, on_event: Sink) -> None:
    """Work until nothing is queued, and add to `work`. A document that cannot be read fails alone, with the reason."""
    async with _heartbeat(store):
        while jobs := await store.claim(CLAIM):
            await _remove([job for job in jobs if job.source is None], store, on_event)
            waiting = deque(job for job in jobs if job.source is not None)
            while waiting:
                await _read_some(waiting, store, recipe, work, on_event)


async def _remove(jobs: Sequence[Job], store: Store, on_event: Sink) -> None:
    if jobs:
        await store.commit(Delta(remove_claimed=[job.id for job in jobs]))
        for job in jobs:
            on_event(DocumentDone(document_id=job.document_id, status="removed"))


async def _read_some(waiting: deque[Job], store: Store, recipe: Recipe, work: Work, on_event: Sink) -> None:
    """Bring the next few documents from bytes to published facts."""
    readings, failures = await _read_next(waiting, recipe)
    await store.advance([reading.job.id for reading in readings], Status.EXTRACTING)
    extractions = await _extract(readings, store, recipe, work, on_event)
    facts = [_document_facts(reading, extractions, recipe) for reading in readings]
    committed = await store.commit(Delta(publish=facts, fail=[failure for _, failure in failures]))
    work.n_chunks += sum(len(document.chunks) for document in facts)
    for document in facts:
        if document.id not in committed.superseded:
            is_partial = any(said.chunk.error for said in document.chunks)
            _finished(document.id, Status.PARTIAL if is_partial else Status.READY, work, on_event)
    for job, failure in failures:
        _finished(job.document_id, Status.FAILED, work, on_event, failure.error)


def _finished(document_id: str, status: Status, work: Work, on_event: Sink, error: str = "") -> None:
    work.status_by_document[document_id] = status
    on_event(DocumentDone(document_id=document_id, status=status, error=error))


async def _read_next(waiting: deque[Job], recipe: Recipe) -> tuple[list[_Reading], _Failures]:
    """Parse and cut; between the two, compare the sentences of documents that are cut where their subject changes."""
    failures: _Failures = []
    drafts = await asyncio.to_thread(_parse_next, waiting, recipe, failures)
    likeness = await similarities([each.sentences for _, each in drafts], recipe.embedder)
    readings = await asyncio.to_thread(_cut_all, drafts, likeness, recipe, failures)
    return readings, failures


def _parse_next(waiting: deque[Job], recipe: Recipe, failures: _Failures) -> list[tuple[Job, Draft]]:
    """Take jobs and parse them, until they come to a few megabytes: a packed file may hold far more than its size."""
    drafts: list[tuple[Job, Draft]] = []
    room = BYTES_AT_ONCE
    while waiting and room > 0:
        job = waiting.popleft()
        if job.source is not None:
            room -= len(job.source.data)
            with _noted(job, "parser", failures):
                drafts.append((job, draft(job.source, recipe)))
                room -= max(0, len(drafts[-1][1].parsed.text) - len(job.source.data))
    return drafts


def _cut_all(
    drafts: Sequence[tuple[Job, Draft]],
    likeness: Sequence[Sequence[float]],
    recipe: Recipe,
    failures: _Failures,
) -> list[_Reading]:
    readings: list[_Reading] = []
    for (job, each), likeness_of_each in zip(drafts, likeness, strict=True):
        with _noted(job, "chunker", failures):
            document = cut(each, likeness_of_each, recipe)
            readings.append(_Reading(job=job, source=each.source, document=document))
    return readings


@contextmanager
def _noted(job: Job, what: str, failures: _Failures) -> Iterator[None]:
    """Note the failure of one document and go on: a parser's own fault must not stop the others."""
    try:
        yield
    except QuipuError as error:
        failures.append((job, JobFailure(job=job.id, error=str(error))))
    except MemoryError:
        reason = "There is not enough memory to read it. Free some, or split it into several files."
        failures.append((job, JobFailure(job=job.id, error=reason)))
    except Exception as error:
        reason = f"The {what} failed: {type(error).__name__}: {error}. Leave the document out, and please report it."
        failures.append((job, JobFailure(job=job.id, error=reason)))


async def _extract(
    readings: Sequence[_Reading], store: Store, recipe: Recipe, work: Work, on_event: Sink
) -> dict[str, Extracted]:
    """Return the outcome for every chunk's input, from kept replies or the extractor, by input hash."""
    asked_by: dict[str, list[Chunk]] = {}
    for reading in readings:
        for chunk in reading.document.chunks:
            asked_by.setdefault(chunk.input_hash, []).append(chunk)
    kept = await store.replies(list(asked_by))
    outcomes: dict[str, Extracted] = {}
    for input_hash, payload in kept.items():
        with suppress(Corrupt):  # a damaged reply is asked for again
            outcomes[input_hash] = Extracted(index=0, extraction=from_payload(payload))
    missing = [h for h in asked_by if h not in outcomes]
    work.n_reused += sum(len(chunks) for chunks in asked_by.values()) - len(missing)
    error = "The extractor gave no answer for this chunk."
    async with ReplyKeeper(store) as keeper:
        done = 0
        try:
            async for outcome in recipe.extractor.extract([extractor_input(asked_by[h][0]) for h in missing]):
                input_hash = missing[outcome.index]
                outcomes[input_hash] = outcome
                if outcome.extraction is not None:
                    keeper.put(_replies(input_hash, outcome.extraction, asked_by[input_hash]))
                    work.n_extracted += 1
                done += 1
                on_event(Progress(stage="extract", done=work.n_chunks + done, total=work.n_chunks + len(missing)))
        except QuipuError:
            raise
        except Exception as failure:  # an extractor's own fault must not stop what it has answered
            error = f"The extractor failed: {type(failure).__name__}: {failure}"
    unanswered = Extracted(index=0, extraction=None, error=error)
    return {input_hash: outcomes.get(input_hash, unanswered) for input_hash in asked_by}


def _replies(input_hash: str, extraction: Extraction, chunks: Sequence[Chunk]) -> Iterator[Reply]:
    payload = to_payload(extraction)
    for chunk in chunks:
        yield Reply(input_hash=input_hash, document_id=chunk.document_id, payload=payload)


def _document_facts(reading: _Reading, outcomes: Mapping[str, Extracted], recipe: Recipe) -> DocumentFacts:
    parsed, source = reading.document.parsed, reading.source
    return DocumentFacts(
        id=source.id,
        title=parsed.title,
        content_hash=content_hash(source, recipe),
        chunks=tuple(_facts(chunk, outcomes[chunk.input_hash]) for chunk in reading.document.chunks),
        source=source.source,
        media_type=source.media_type,
        metadata=parsed.metadata,
        job=reading.job.id,
    )


def _facts(chunk: Chunk, outcome: Extracted) -> ChunkFacts:
    if outcome.extraction is None:
        return ChunkFacts(chunk=replace(chunk, error=outcome.error or "the extractor gave no reason"))
    return chunk_facts(chunk, outcome.extraction)


@asynccontextmanager
async def _heartbeat(store: Store) -> AsyncIterator[None]:
    """Renew the leases of claimed jobs while work goes on, and give back what is unfinished when it stops."""

    async def beat() -> None:
        while True:
            await asyncio.sleep(store.lease_s / 3)
            with suppress(Busy):  # the next beat comes before the lease ends
                await store.renew()

    task = asyncio.create_task(beat())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait({task})
        await asyncio.shield(store.release())
