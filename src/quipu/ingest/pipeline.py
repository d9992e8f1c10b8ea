"""The pipeline of queued documents: claim → parse → chunk → extract → one Delta of facts → commit.

It can be killed at any point and run again. Extractor replies are committed as they arrive, so that no reply is paid
for twice. The facts of a document are committed together, so that no reader sees half a document. If the extractor
waits for a model, several groups of documents are processed at the same time, so that it always has chunks to read.
So they are where other processes read: this one then only commits what they return.
"""

import asyncio
import ctypes
import sys
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cache, partial

from quipu.errors import Busy, OverBudget, QuipuError, Refused, TooLong, Unavailable
from quipu.ingest.chunkers.semantic import sentence_similarities
from quipu.ingest.documents import (
    MAX_GROUP_BYTES,
    MAX_JOBS,
    ChunkedDocument,
    DocumentReader,
    DocumentReading,
    IngestConfig,
    ParsedSource,
    chunk_document,
    content_hash,
    describe_pictures,
    failure_of,
    parse_document,
)
from quipu.ingest.extraction import Extract, ExtractionBatch, chunk_facts, extract_missing
from quipu.ingest.spread import finished
from quipu.ingest.workers import WorkerPool, lease_heartbeat
from quipu.model.delta import ChunkFacts, Delta, DocumentFacts, Job, JobFailure
from quipu.model.document import DocumentStatus, SourceDocument
from quipu.model.event import DocumentDone, EventSink, Progress
from quipu.model.graph import Chunk
from quipu.ports.ingest import ON_PAGES, ExtractionResult
from quipu.ports.providers import Embedder
from quipu.ports.store import Store

_M_MMAP_THRESHOLD, _MAX_KEPT_BYTES = -3, 4 << 20  # an option of glibc's malloc, and its value
N_FREE_REPLIES = 64  # of an extractor that computes here, at most, that are committed with the facts made of them
CHUNK_BYTES = 5_000  # about 1,200 tokens; limits the size of a group if the extractor waits for a model


@dataclass(slots=True)
class PipelineResult:
    """What a run of the pipeline did; `status_by_document` holds the documents that it finished.

    `n_dropped` records of a model were left out, because the text or the ontology does not support them. `stopped` is
    why the run ended before the queue was empty: a spent budget, or a model that does not answer. Replies that were
    paid for are cached all the same.
    """

    status_by_document: dict[str, DocumentStatus] = field(default_factory=dict)
    n_chunks: int = 0
    n_extracted: int = 0
    n_reused: int = 0
    n_dropped: int = 0
    n_removed: int = 0
    stopped: QuipuError | None = None


_FailedJob = tuple[Job, DocumentReading]
_ParsedJob = tuple[Job, ParsedSource]
_ComparedJob = tuple[Job, ParsedSource, Sequence[float]]
_ChunkedJob = tuple[Job, ChunkedDocument]


async def process_queue(store: Store, config: IngestConfig, result: PipelineResult, on_event: EventSink) -> None:
    """Process queued documents until none is left, and add to `result`. A document that cannot be read fails alone."""
    _return_freed_blocks()
    await store.update_jobs(DocumentStatus.QUEUED)  # what an earlier run could not give back because the index was busy
    run = _PipelineRun(store, config, result, on_event)
    n_ahead = config.reader.n_ahead if config.reader else config.extractor.n_ahead
    async with _job_leases(store), WorkerPool(n_ahead) as pool:
        while result.stopped is None:
            await pool.wait_for_room()
            if jobs := await store.claim_jobs(min(MAX_JOBS, n_ahead or MAX_JOBS)):
                await run.process(jobs, pool)
            elif pool.is_idle:
                break
            else:
                await pool.wait_until_idle()


class _PipelineRun:
    """One run of the pipeline over a store."""

    def __init__(self, store: Store, config: IngestConfig, result: PipelineResult, on_event: EventSink) -> None:
        self._store, self._config, self._result, self._on_event = store, config, result, on_event
        self._n_inputs = self._n_outcomes = self._n_pictures = self._n_described = 0

    async def process(self, jobs: Sequence[Job], pool: WorkerPool) -> None:
        """Do the removals; parse and chunk the other documents group by group, and start the extraction of each."""
        await self._remove([job for job in jobs if job.source is None])
        waiting = deque(job for job in jobs if job.source is not None)
        while waiting and self._result.stopped is None:
            await pool.wait_for_room()
            if self._config.reader is not None:
                self._start_reading(self._config.reader, waiting, pool)
                continue
            try:
                chunked, failed = await self._parse_and_chunk_group(waiting)
            except (OverBudget, Unavailable) as error:  # of a model or a parser: the documents go back to the queue
                self._result.stopped = self._result.stopped or error
                return
            chunked = await self._still_claimed(chunked)
            n_chunks = sum(len(document.chunks) for _, document in chunked)
            pool.start(partial(self._extract_and_commit, chunked, failed, self._config.extractor.extract), n_chunks)

    async def _still_claimed(self, chunked: Sequence[_ChunkedJob]) -> list[_ChunkedJob]:
        """Return the documents whose job nobody has replaced, and say of them that they are being extracted."""
        if not self._config.extractor.n_ahead:  # it computes here, and the commit will find out what was replaced
            return list(chunked)
        job_ids = await self._store.update_jobs(DocumentStatus.EXTRACTING, [job.id for job, _ in chunked])
        return [(job, document) for job, document in chunked if job.id in job_ids]

    def _start_reading(self, reader: DocumentReader, waiting: deque[Job], pool: WorkerPool) -> None:
        """Take jobs up to a few megabytes and start their reading; a group of full size counts as many documents."""
        jobs: list[tuple[Job, SourceDocument]] = []
        n_bytes = 0
        while waiting and n_bytes < MAX_GROUP_BYTES:
            job = waiting.popleft()
            if job.source is not None:
                jobs.append((job, job.source))
                n_bytes += len(job.source.content)
        pool.start(partial(self._read_and_commit, reader, jobs), max(len(jobs), n_bytes * MAX_JOBS // MAX_GROUP_BYTES))

    async def _read_and_commit(
        self, reader: DocumentReader, jobs: Sequence[tuple[Job, SourceDocument]], _on_finished: Callable[[int], None]
    ) -> None:
        """Have documents read by other processes, and commit them. Those that nobody could read now stay queued."""
        readings = await asyncio.gather(*(reader.read(source) for _, source in jobs), return_exceptions=True)
        chunked: list[_ChunkedJob] = []
        failed: list[_FailedJob] = []
        outcomes: dict[str, ExtractionResult] = {}
        for (job, source), reading in zip(jobs, readings, strict=True):
            if isinstance(reading, OverBudget | Unavailable):
                self._result.stopped = self._result.stopped or reading
            elif isinstance(reading, BaseException):
                raise reading
            elif reading.document is None:
                failed.append((job, reading))
            else:
                chunked.append((job, replace(reading.document, source=source)))
                outcomes |= reading.outcomes
        extract = partial(finished, self._config.extractor.identity, outcomes)
        await self._extract_and_commit(await self._still_claimed(chunked), failed, extract, lambda _: None)

    async def _parse_and_chunk_group(self, waiting: deque[Job]) -> tuple[list[_ChunkedJob], list[_FailedJob]]:
        """Take jobs up to a few megabytes, parse their documents, ask about their pictures, and chunk.

        Sentences are compared where chunking needs it. Raises Unavailable or OverBudget if a model cannot be asked.
        """
        config = self._config
        parsed, unparsed = await asyncio.to_thread(_parse_group, waiting, config, self._page_reporter())
        described, undescribed = await self._describe_pictures(parsed)
        compared, uncompared = await _compare_sentences(described, config.embedder)
        chunked, unchunked = await asyncio.to_thread(_chunk_group, compared, config)
        return chunked, [*unparsed, *undescribed, *uncompared, *unchunked]

    async def _describe_pictures(self, parsed: Sequence[_ParsedJob]) -> tuple[list[_ParsedJob], list[_FailedJob]]:
        """Return the documents with what a model says of their pictures; all of them are asked about at once."""
        self._n_pictures += sum(len(document.pictures) for _, document in parsed)
        outcomes = await asyncio.gather(
            *(
                describe_pictures(document, self._config, partial(self._on_picture, job.document_id))
                for job, document in parsed
            ),
            return_exceptions=True,
        )
        described: list[_ParsedJob] = []
        failed: list[_FailedJob] = []
        for (job, _), outcome in zip(parsed, outcomes, strict=True):
            if isinstance(outcome, ParsedSource):
                described.append((job, outcome))
            elif isinstance(outcome, OverBudget | Unavailable) or not isinstance(outcome, Exception):
                raise outcome
            else:
                failed.append((job, failure_of(outcome, "model of pictures")))  # asked again, other than a parser
        return described, failed

    def _page_reporter(self) -> Callable[[str, int, int], None]:
        """Return what reports the pages of a document, from any thread, as an event on the thread of the engine."""
        loop = asyncio.get_running_loop()

        def report(document_id: str, n_done: int, n_total: int) -> None:
            event = Progress(stage="pages", n_done=n_done, n_total=n_total, detail=document_id, document_id=document_id)
            with suppress(RuntimeError):  # the work was cancelled, and its loop is closed
                loop.call_soon_threadsafe(self._on_event, event)

        return report

    def _on_picture(self, document_id: str) -> None:
        self._n_described += 1
        n_done, n_total = self._n_described, self._n_pictures
        self._on_event(Progress(stage="pictures", n_done=n_done, n_total=n_total, document_id=document_id))

    async def _remove(self, jobs: Sequence[Job]) -> None:
        if jobs:
            await self._store.commit(Delta(remove_claimed=[job.id for job in jobs]))
            self._result.n_removed += len(jobs)
            for job in jobs:
                self._on_event(DocumentDone(document_id=job.document_id, status="removed"))

    async def _extract_and_commit(
        self,
        chunked: Sequence[_ChunkedJob],
        failed: Sequence[_FailedJob],
        extract: Extract,
        on_finished: Callable[[int], None],
    ) -> None:
        """Extract a group and commit the facts of its documents; a document without all outcomes stays queued."""
        batch = await self._extract(chunked, extract, on_finished)
        complete = [
            (job, document)
            for job, document in chunked
            if all(chunk.input_hash in batch.outcomes for chunk in document.chunks)
        ]
        facts = await asyncio.to_thread(_all_document_facts, complete, batch.outcomes, self._config)
        failures = [JobFailure(job=job.id, error=reading.error, is_final=reading.is_final) for job, reading in failed]
        committed = await self._store.commit(Delta(publish=facts, fail=failures, replies=batch.uncommitted))
        for document_facts in facts:
            if document_facts.id not in committed.superseded:
                self._result.n_chunks += len(document_facts.chunks)
                is_partial = any(chunk.chunk.error for chunk in document_facts.chunks)
                self._report_done(document_facts.id, DocumentStatus.PARTIAL if is_partial else DocumentStatus.READY)
        for job, reading in failed:
            self._report_done(job.document_id, DocumentStatus.FAILED, reading.error)

    async def _extract(
        self, chunked: Sequence[_ChunkedJob], extract: Extract, on_finished: Callable[[int], None]
    ) -> ExtractionBatch:
        """Return the outcomes: from cached replies, else from the extractor. A stop leaves some out."""
        result = self._result
        job_by_document = {document.source.id: job.id for job, document in chunked}
        batch = ExtractionBatch.of((chunk for _, document in chunked for chunk in document.chunks), job_by_document)

        def on_outcome(n_chunks: int, document_id: str = "") -> None:
            on_finished(n_chunks)
            if document_id:
                self._n_outcomes += 1
                n_done, n_total = self._n_outcomes, self._n_inputs
                self._on_event(Progress(stage="extract", n_done=n_done, n_total=n_total, document_id=document_id))

        result.n_reused += await batch.reuse_replies(self._store, on_outcome)
        self._n_inputs += len(batch.missing)
        n_at_once = 1 if self._config.extractor.n_ahead else N_FREE_REPLIES
        stopped = await extract_missing(batch, self._store, extract, on_outcome, n_at_once=n_at_once)
        result.stopped = result.stopped or stopped
        result.n_extracted += batch.n_extracted
        result.n_reused += batch.n_equal
        result.n_dropped += batch.n_dropped
        return batch

    def _report_done(self, document_id: str, status: DocumentStatus, error: str = "") -> None:
        self._result.status_by_document[document_id] = status
        self._on_event(DocumentDone(document_id=document_id, status=status, error=error))


@cache
def _return_freed_blocks() -> None:
    """Have glibc return large blocks to the system when they are freed; it would keep up to 32 MB for each thread."""
    if sys.platform == "linux" and hasattr(library := ctypes.CDLL(None), "mallopt"):  # other C libraries have none
        library.mallopt(_M_MMAP_THRESHOLD, _MAX_KEPT_BYTES)


def _parse_group(
    waiting: deque[Job], config: IngestConfig, on_pages: Callable[[str, int, int], None]
) -> tuple[list[_ParsedJob], list[_FailedJob]]:
    """Take and parse jobs until their files or texts reach the size of a group: a packed file may hold much text.

    Where the extractor waits for a model, a small document counts as one chunk, because the documents of a group are
    ready together: a group of many would make the first of them wait for the last. Raises Unavailable if a server that
    parses cannot be reached.
    """
    parsed: list[_ParsedJob] = []
    failed: list[_FailedJob] = []
    n_bytes_left = min(MAX_GROUP_BYTES, config.extractor.n_ahead * CHUNK_BYTES or MAX_GROUP_BYTES)
    min_bytes = CHUNK_BYTES if config.extractor.n_ahead else 0
    while waiting and n_bytes_left > 0:
        job = waiting.popleft()
        if job.source is None:
            continue
        n_bytes_left -= max(min_bytes, len(job.source.content))
        ON_PAGES.set(partial(on_pages, job.document_id))  # this thread has a context of its own
        try:
            document = parse_document(job.source, config)
        except Unavailable:  # of a server that parses: the documents go back to the queue
            raise
        except Exception as error:
            failed.append((job, failure_of(error, "parser")))
        else:
            parsed.append((job, document))
            n_bytes_left -= max(0, len(document.parsed.text) - max(min_bytes, len(job.source.content)))
    return parsed, failed


async def _compare_sentences(
    parsed: Sequence[_ParsedJob], embedder: Embedder
) -> tuple[list[_ComparedJob], list[_FailedJob]]:
    """Return the documents with their sentence similarities, embedded together or, if one is refused, one by one."""
    sentences = [document.sentences for _, document in parsed]
    if not any(sentences):
        return [(job, document, ()) for job, document in parsed], []
    try:
        similarities = await sentence_similarities(sentences, embedder)
    except (OverBudget, Unavailable):
        raise
    except Exception as error:
        compared: list[_ComparedJob] = []
        failed: list[_FailedJob] = []
        is_one_text = isinstance(error, Refused | TooLong) and len(parsed) > 1
        for job, document in parsed:
            if is_one_text or not document.sentences:
                alone, failed_alone = await _compare_sentences([(job, document)], embedder)
                compared += alone
                failed += failed_alone
            else:
                failed.append((job, failure_of(error, "embedder")))
        return compared, failed
    return [(job, document, numbers) for (job, document), numbers in zip(parsed, similarities, strict=True)], []


def _chunk_group(compared: Sequence[_ComparedJob], config: IngestConfig) -> tuple[list[_ChunkedJob], list[_FailedJob]]:
    chunked: list[_ChunkedJob] = []
    failed: list[_FailedJob] = []
    for job, document, similarities in compared:
        try:
            chunked.append((job, chunk_document(document, similarities, config)))
        except Exception as error:
            failed.append((job, failure_of(error, "chunker")))
    return chunked, failed


def _all_document_facts(
    chunked: Sequence[_ChunkedJob], outcomes: Mapping[str, ExtractionResult], config: IngestConfig
) -> list[DocumentFacts]:
    return [
        DocumentFacts(
            id=document.source.id,
            title=document.parsed.title,
            content_hash=content_hash(document.source, config),
            chunks=tuple(_facts_of(chunk, outcomes[chunk.input_hash]) for chunk in document.chunks),
            source=document.source.source,
            media_type=document.source.media_type,
            metadata=document.parsed.metadata,
            job=job.id,
            text=document.parsed.text,
            original=document.source.content if config.keep_originals else None,
        )
        for job, document in chunked
    ]


def _facts_of(chunk: Chunk, outcome: ExtractionResult) -> ChunkFacts:
    if outcome.extraction is None:
        return ChunkFacts(chunk=replace(chunk, error=outcome.error or "the extractor gave no reason"))
    return chunk_facts(replace(chunk, error=outcome.error or chunk.error), outcome.extraction)


@asynccontextmanager
async def _job_leases(store: Store) -> AsyncIterator[None]:
    """Keep the leases of claimed jobs while the pipeline runs; give unfinished jobs back when it stops."""
    try:
        async with lease_heartbeat(store):
            yield
    finally:
        with suppress(Busy):  # the next run, or another process after the lease has ended, takes the jobs
            await asyncio.shield(store.update_jobs(DocumentStatus.QUEUED))
