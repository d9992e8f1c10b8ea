"""Sampling: chunks of the user's documents, spread over them, chosen by their content and unlike each other."""

import asyncio
import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeVar

from quipu.errors import InvalidDocument, InvalidInput
from quipu.ingest.chunkers.semantic import sentence_similarities
from quipu.ingest.documents import IngestConfig, chunk_document, parse_document
from quipu.ingest.sources import FoundSource, UnreadableSource
from quipu.model.document import Document, DocumentStatus, SourceDocument
from quipu.model.event import EventSink, Progress
from quipu.model.graph import Chunk
from quipu.model.ids import digest, digest_bytes
from quipu.model.tuning import SampledChunk
from quipu.ports.store import ReadView
from quipu.text.content_terms import content_terms_of

T = TypeVar("T")

MAX_DOCUMENTS = 200  # that are read, of however many there are
MAX_COUNTED = 100  # chunks that rules count in
SHORT = 40  # tokens: a chunk below says little, and is taken last
ALIKE = 0.5  # Jaccard index of the terms of two chunks from which on one of them is enough


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How many chunks to learn from, and how many others to compare on; `dry_run` only asks what it would cost."""

    n_sample: int = 12
    n_compare: int = 2
    dry_run: bool = False

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> "Sizes":
        """Return what was asked for. Raises InvalidInput for an option there is none of, or a size out of range."""
        try:
            made = cls(**options)
        except TypeError as error:
            raise InvalidInput(f"Unknown option ({error}).", remedy=f"There are: {', '.join(cls.__slots__)}.") from None
        if made.n_sample < 1 or made.n_compare < 0:
            raise InvalidInput(
                f"n_sample = {made.n_sample} and n_compare = {made.n_compare} cannot be.",
                remedy="Take a sample of at least one chunk, and compare on none or more.",
            )
        return made


@dataclass(slots=True)
class Pool:
    """The chunks a sample is taken from, of at most MAX_DOCUMENTS of the documents there are.

    `revision` is that of the index they are of, None where they are of documents that were named.
    """

    chunks: list[Chunk]
    n_documents: int = 0
    n_unreadable: int = 0
    revision: int | None = None


@dataclass(frozen=True, slots=True)
class Sample:
    """Chunks to learn from, others to compare readings of, and those rules count in, which may be any."""

    read: tuple[Chunk, ...]
    compared: tuple[Chunk, ...]
    counted: tuple[Chunk, ...]

    def listed(self) -> tuple[SampledChunk, ...]:
        """Return those that are learnt from or compared as they are reported."""
        return (*(_sampled(each) for each in self.read), *(_sampled(each, True) for each in self.compared))


async def pool_of_sources(sources: Iterable[FoundSource], ingest_config: IngestConfig, on_event: EventSink) -> Pool:
    """Read and cut documents as adding would, where there are very many those with the lowest digest of content."""
    found, n_documents, n_unreadable = await asyncio.to_thread(_few, sources)
    pool = Pool([], n_documents, n_unreadable)
    for done, source in enumerate(found, 1):
        try:
            drafted = await asyncio.to_thread(parse_document, source, ingest_config)
        except InvalidDocument:
            pool.n_unreadable += 1
        else:
            (likeness,) = await sentence_similarities([drafted.sentences], ingest_config.embedder)
            pool.chunks += (await asyncio.to_thread(chunk_document, drafted, likeness, ingest_config)).chunks
        on_event(Progress(stage="read", n_done=done, n_total=len(found)))
    return pool


async def pool_of_index(view: ReadView, on_event: EventSink) -> Pool:
    """Return chunks of what is in the index."""
    documents = [
        each for each in await view.documents() if each.status in (DocumentStatus.READY, DocumentStatus.PARTIAL)
    ]
    found = _lowest(documents, _document_digest)
    pool = Pool([], len(documents), revision=view.revision)
    for done, document in enumerate(found, 1):
        pool.chunks += await view.document_chunks(document.id)
        on_event(Progress(stage="read", n_done=done, n_total=len(found)))
    return pool


def choose(chunks: Sequence[Chunk], n_read: int, n_compared: int) -> Sample:
    """Return a sample: of few chunks at most a quarter is kept apart to compare. The same chunks give the same."""
    found = list(islice(_unlike(spread(chunks)), n_read + n_compared))
    counted = tuple(islice(spread(chunks), MAX_COUNTED))
    n_apart = min(n_compared, max(len(found) - n_read, len(found) // 4))
    n = len(found) - n_apart
    return Sample(tuple(found[:n]), tuple(found[n:]), counted)


def spread(chunks: Sequence[Chunk]) -> Iterator[Chunk]:
    """Yield all chunks, of each document one in turn, in an order of their own content; short ones come last."""
    by_document: dict[str, list[tuple[str, Chunk]]] = {}
    for is_short in (False, True):
        by_document.clear()
        for chunk in chunks:
            if (chunk.n_tokens < SHORT) == is_short:
                by_document.setdefault(chunk.document_id, []).append((digest("sample", chunk.text_hash), chunk))
        queues = [sorted(queue, key=lambda each: (each[0], each[1].id)) for queue in by_document.values()]
        queues.sort(key=lambda queue: (queue[0][0], queue[0][1].id))
        for turn in range(max(map(len, queues), default=0)):
            yield from (queue[turn][1] for queue in queues if turn < len(queue))


def _sampled(chunk: Chunk, is_compared: bool = False) -> SampledChunk:
    return SampledChunk(
        chunk_id=chunk.id,
        document_id=chunk.document_id,
        title=chunk.title,
        n_tokens=chunk.n_tokens,
        is_compared=is_compared,
    )


def _unlike(chunks: Iterator[Chunk]) -> Iterator[Chunk]:
    """Leave out what is nearly the same as a chunk before it."""
    seen: list[frozenset[str]] = []
    for chunk in chunks:
        terms = frozenset(content_terms_of(chunk.text))
        if terms and not any(_jaccard(terms, other) >= ALIKE for other in seen):
            seen.append(terms)
            yield chunk


def _jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / len(one | other)


def _few(sources: Iterable[FoundSource]) -> tuple[list[SourceDocument], int, int]:
    """Return some documents, how many there are, and how many files cannot be read."""
    n_documents = n_unreadable = 0

    def documents() -> Iterator[SourceDocument]:
        nonlocal n_documents, n_unreadable
        for source in sources:
            n_unreadable += isinstance(source, UnreadableSource)
            if isinstance(source, SourceDocument):
                n_documents += 1
                yield source

    found = _lowest(documents(), lambda source: (digest_bytes(source.data), source.id))
    return found, n_documents, n_unreadable


def _document_digest(document: Document) -> tuple[str, str]:
    return document.content_hash, document.id


def _lowest(items: Iterable[T], key: Callable[[T], tuple[str, str]]) -> list[T]:
    return heapq.nsmallest(MAX_DOCUMENTS, items, key=key)
