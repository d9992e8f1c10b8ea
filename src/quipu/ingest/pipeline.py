"""The pipeline: claim → parse → chunk → extract → one Delta of facts. Kill it anywhere and run it again.

Replies are committed as they arrive, so that nothing paid for is asked twice; a document's facts are published whole,
so that no reader sees half of it. Where an extractor waits for a model, groups of documents overlap, so that it always
has chunks to read.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial

from quipu.errors import Busy, OverBudget, QuipuError, Refused, TooLong, Unavailable
from quipu.ingest.asking import Asked, ask
from quipu.ingest.crew import Crew
from quipu.ingest.facts import chunk_facts
from quipu.ingest.heartbeat import heartbeat
from quipu.ingest.likeness import similarities
from quipu.ingest.reading import Draft, ReadDocument, Recipe, content_hash, cut, draft
from quipu.model.delta import ChunkFacts, Delta, DocumentFacts, Job, JobFailure
from quipu.model.document import DocumentStatus, SourceDocument
from quipu.model.event import DocumentDone, EventSink, Progress
from quipu.model.graph import Chunk
from quipu.ports.ingest import ExtractionResult
from quipu.ports.providers import Embedder
from quipu.ports.store import Store

CLAIM = 64
BYTES_AT_ONCE = 2_000_000
BYTES_A_CHUNK = 5_000  # of 1,200 tokens, roughly: groups for an extractor that waits for a model are that much smaller


@dataclass(slots=True)
class Work:
    """What a run of the pipeline did; `status_by_document` holds the documents it brought to an end.

    `stopped` is why it ended before the queue did: a spent budget, a model that is gone. What was paid for is kept.
    `n_dropped` records of a model were left out, since text or ontology do not bear them out.
    """

    status_by_document: dict[str, DocumentStatus] = field(default_factory=dict)
    n_chunks: int = 0
    n_extracted: int = 0
    n_reused: int = 0
    n_dropped: int = 0
    n_removed: int = 0
    stopped: QuipuError | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reading:
    """A claimed document that could be read."""

    job: Job
    source: SourceDocument
    document: ReadDocument


_Failures = list[tuple[Job, JobFailure]]
_Drafted = tuple[Job, Draft]
_Compared = tuple[Job, Draft, Sequence[float]]


async def work_queue(store: Store, recipe: Recipe, work: Work, on_event: EventSink) -> None:
    """Work until nothing is queued, and add to `work`. A document that cannot be read fails alone, with the reason."""
    await store.release()  # what a run before this one could not give back, since the index was busy
    run = _Run(store, recipe, work, on_event)
    async with _leases(store), Crew(recipe.extractor.n_ahead) as crew:
        while work.stopped is None:
            if jobs := await store.claim(CLAIM):
                await run.take(jobs, crew)
            elif crew.is_idle:
                break
            else:
                await crew.all_done()


class _Run:
    """One run of the pipeline over a store."""

    def __init__(self, store: Store, recipe: Recipe, work: Work, on_event: EventSink) -> None:
        self._store, self._recipe, self._work, self._on_event = store, recipe, work, on_event
        self._n_asked = self._n_answered = 0

    async def take(self, jobs: Sequence[Job], crew: Crew) -> None:
        """Remove what is to be removed, read the rest group by group, and have the groups extracted."""
        await self._remove([job for job in jobs if job.source is None])
        waiting = deque(job for job in jobs if job.source is not None)
        while waiting and self._work.stopped is None:
            await crew.room()
            try:
                readings, failures = await _read_next(waiting, self._recipe)
            except (OverBudget, Unavailable) as error:  # of an embedder: what it was for goes back to the queue
                self._work.stopped = self._work.stopped or error
                return
            held = await self._store.advance([reading.job.id for reading in readings], DocumentStatus.EXTRACTING)
            readings = [reading for reading in readings if reading.job.id in held]
            n_chunks = sum(len(reading.document.chunks) for reading in readings)
            crew.start(partial(self._finish, readings, failures), n_chunks)

    async def _remove(self, jobs: Sequence[Job]) -> None:
        if jobs:
            await self._store.commit(Delta(remove_claimed=[job.id for job in jobs]))
            self._work.n_removed += len(jobs)
            for job in jobs:
                self._on_event(DocumentDone(document_id=job.document_id, status="removed"))

    async def _finish(self, readings: Sequence[_Reading], failures: _Failures, answered: Callable[[int], None]) -> None:
        """Bring a group from chunks to published facts; documents that a stop left unread go back to the queue."""
        jobs = {reading.source.id: reading.job.id for reading in readings}
        asked = Asked.of((chunk for reading in readings for chunk in reading.document.chunks), jobs)
        work = self._work

        def on_outcome(n_chunks: int, *, is_new: bool) -> None:
            answered(n_chunks)
            self._n_answered += is_new
            if is_new:
                self._on_event(Progress(stage="extract", done=self._n_answered, total=self._n_asked))

        work.n_reused += await asked.reuse(self._store, on_outcome)
        self._n_asked += len(asked.missing)
        stopped = await ask(asked, self._store, self._recipe.extractor, on_outcome)
        work.stopped = work.stopped or stopped
        work.n_extracted += asked.n_extracted
        work.n_reused += asked.n_equal
        work.n_dropped += asked.n_dropped
        done = [reading for reading in readings if asked.answers(reading.document.chunks)]
        facts = await asyncio.to_thread(_all_facts, done, asked.outcomes, self._recipe)
        committed = await self._store.commit(Delta(publish=facts, fail=[failure for _, failure in failures]))
        for document in facts:
            if document.id not in committed.superseded:
                work.n_chunks += len(document.chunks)
                is_partial = any(said.chunk.error for said in document.chunks)
                self._finished(document.id, DocumentStatus.PARTIAL if is_partial else DocumentStatus.READY)
        for job, failure in failures:
            self._finished(job.document_id, DocumentStatus.FAILED, failure.error)

    def _finished(self, document_id: str, status: DocumentStatus, error: str = "") -> None:
        self._work.status_by_document[document_id] = status
        self._on_event(DocumentDone(document_id=document_id, status=status, error=error))


async def _read_next(waiting: deque[Job], recipe: Recipe) -> tuple[list[_Reading], _Failures]:
    """Parse and cut; between the two, compare the sentences of documents that are cut where their subject changes.

    Raises Unavailable or OverBudget where none can be compared.
    """
    failures: _Failures = []
    drafts = await asyncio.to_thread(_parse_next, waiting, recipe, failures)
    compared = await _compare(drafts, recipe.embedder, failures)
    readings = await asyncio.to_thread(_cut_all, compared, recipe, failures)
    return readings, failures


def _parse_next(waiting: deque[Job], recipe: Recipe, failures: _Failures) -> list[_Drafted]:
    """Take jobs and parse them, until they come to a few megabytes: a packed file may hold far more than its size."""
    drafts: list[_Drafted] = []
    room = min(BYTES_AT_ONCE, recipe.extractor.n_ahead * BYTES_A_CHUNK or BYTES_AT_ONCE)
    while waiting and room > 0:
        job = waiting.popleft()
        if job.source is not None:
            room -= len(job.source.data)
            with _noted(job, "parser", failures):
                drafts.append((job, draft(job.source, recipe)))
                room -= max(0, len(drafts[-1][1].parsed.text) - len(job.source.data))
    return drafts


async def _compare(drafts: Sequence[_Drafted], embedder: Embedder, failures: _Failures) -> list[_Compared]:
    """Return the drafts with the likeness of their sentences: all in one go, or each alone where one is refused."""
    try:
        likeness = await similarities([each.sentences for _, each in drafts], embedder)
        return [(job, each, found) for (job, each), found in zip(drafts, likeness, strict=True)]
    except (OverBudget, Unavailable):
        raise
    except Exception as error:
        is_one_text = isinstance(error, Refused | TooLong) and len(drafts) > 1
        compared: list[_Compared] = []
        for job, each in drafts:
            if is_one_text or not each.sentences:
                compared += await _compare([(job, each)], embedder, failures)
                continue
            with _noted(job, "embedder", failures):
                raise error
        return compared


def _cut_all(drafts: Sequence[_Compared], recipe: Recipe, failures: _Failures) -> list[_Reading]:
    readings: list[_Reading] = []
    for job, each, likeness in drafts:
        with _noted(job, "chunker", failures):
            document = cut(each, likeness, recipe)
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


def _all_facts(
    readings: Sequence[_Reading], outcomes: Mapping[str, ExtractionResult], recipe: Recipe
) -> list[DocumentFacts]:
    return [_document_facts(reading, outcomes, recipe) for reading in readings]


def _document_facts(reading: _Reading, outcomes: Mapping[str, ExtractionResult], recipe: Recipe) -> DocumentFacts:
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


def _facts(chunk: Chunk, outcome: ExtractionResult) -> ChunkFacts:
    if outcome.extraction is None:
        return ChunkFacts(chunk=replace(chunk, error=outcome.error or "the extractor gave no reason"))
    return chunk_facts(replace(chunk, error=outcome.error), outcome.extraction)


@asynccontextmanager
async def _leases(store: Store) -> AsyncIterator[None]:
    """Keep the leases of claimed jobs while work goes on, and give back what is unfinished when it stops."""
    try:
        async with heartbeat(store):
            yield
    finally:
        with suppress(Busy):  # the next run, or another process once the lease has ended, takes them up
            await asyncio.shield(store.release())
