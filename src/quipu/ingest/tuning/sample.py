"""Sample: chunks of the user's documents to suggest an ontology from, and the context in which they are read."""

import asyncio
import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, TypeVar

from quipu.errors import InvalidDocument, InvalidInput
from quipu.ingest.documents import IngestConfig, read_document
from quipu.ingest.llm import ExtractionOptions, LlmExtractor
from quipu.ingest.sources import FoundSource, UnreadableSource
from quipu.model.document import Document, DocumentStatus, SourceDocument
from quipu.model.event import EventSink, Progress
from quipu.model.graph import Chunk
from quipu.model.ids import digest, digest_bytes
from quipu.model.tuning import SampledChunk, TuningOrigin
from quipu.model.usage import Price
from quipu.ports.providers import LLM
from quipu.ports.store import ReadView
from quipu.text.words import content_terms_of

MAX_DOCUMENTS = 200  # that are read, however many there are
MAX_COUNTED = 100  # chunks in which rules count names
SHORT_TOKENS = 40  # a shorter chunk says little and is sampled last
MAX_SIMILARITY = 0.5  # Jaccard index of the terms of two chunks, from which only one of them is sampled
LOCAL_RULES = "local rules"
_DIGEST_DIGITS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleSizes:
    """How many chunks to learn from, and how many others to compare readings of; `dry_run` only estimates the cost."""

    n_sample: int = 12
    n_compare: int = 2
    dry_run: bool = False

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> "SampleSizes":
        """Return the sizes in these options. Raises InvalidInput for an unknown option or a size out of range."""
        try:
            sizes = cls(**options)
        except TypeError as error:
            raise InvalidInput(f"Unknown option ({error}).", remedy=f"There are: {', '.join(cls.__slots__)}.") from None
        if sizes.n_sample < 1 or sizes.n_compare < 0:
            raise InvalidInput(
                f"n_sample = {sizes.n_sample} and n_compare = {sizes.n_compare} cannot be used.",
                remedy="Take a sample of at least one chunk, and compare on none or more.",
            )
        return sizes


@dataclass(slots=True)
class SamplePool:
    """The chunks to choose from, of at most `MAX_DOCUMENTS` of `n_documents` documents.

    `revision` is the revision of the index if they come from the index, None if they come from files.
    """

    chunks: list[Chunk]
    n_documents: int = 0
    n_unreadable: int = 0
    revision: int | None = None


@dataclass(frozen=True, slots=True)
class TuningSample:
    """Chunks to learn from, others to compare readings of, and chunks in which rules count names (any of all)."""

    learned: tuple[Chunk, ...]
    compared: tuple[Chunk, ...]
    counted: tuple[Chunk, ...]

    def summary(self) -> tuple[SampledChunk, ...]:
        """Return the chunks to learn from, then those to compare, as they are listed in the result."""
        return (
            *(_sampled_chunk(chunk) for chunk in self.learned),
            *(_sampled_chunk(chunk, is_compared=True) for chunk in self.compared),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TuningContext:
    """How documents are read now, and the model that makes suggestions; without a model, rules count names.

    `model` is the name of the model, which answers up to `concurrency` calls at a time. `indexed` are the documents of
    the sample that are in the index: replies about them are removed with them.
    """

    ingest_config: IngestConfig
    llm: LLM | None = None
    model: str = ""
    price: Price | None = None
    concurrency: int = 1
    indexed: frozenset[str] = frozenset()

    @property
    def extractor(self) -> LlmExtractor | None:
        """The extractor that reads chunks with the model; None without a model."""
        extractor = self.ingest_config.extractor
        return extractor if self.llm is not None and isinstance(extractor, LlmExtractor) else None

    @property
    def options(self) -> ExtractionOptions:
        """The extraction options in use, or the defaults without a model."""
        return self.extractor.options if self.extractor else ExtractionOptions()

    @property
    def author(self) -> str:
        """Who makes the suggestion: the language model, or local rules."""
        return f"the language model {self.model or self.llm.identity}" if self.llm else LOCAL_RULES

    def reply_documents(self, chunk: Chunk) -> tuple[str, ...]:
        """Return the documents that a cached reply about the chunk belongs to; none if it is not in the index.

        `purge` removes replies that belong to no document.
        """
        return (chunk.document_id,) if chunk.document_id in self.indexed else ()


async def pool_of_sources(sources: Iterable[FoundSource], config: IngestConfig, on_event: EventSink) -> SamplePool:
    """Read and chunk documents as adding would; of very many documents, those with the lowest content digests."""
    documents, n_documents, n_unreadable = await asyncio.to_thread(_lowest_sources, sources)
    pool = SamplePool([], n_documents, n_unreadable)
    for n_done, source in enumerate(documents, 1):
        try:
            pool.chunks += (await read_document(source, replace(config, pictures=None))).chunks
        except InvalidDocument:
            pool.n_unreadable += 1
        on_event(Progress(stage="read", n_done=n_done, n_total=len(documents)))
    return pool


async def pool_of_index(view: ReadView, on_event: EventSink) -> SamplePool:
    """Return chunks of the documents in the index; of very many documents, those with the lowest content hashes."""
    ready = [
        document
        for document in await view.documents()
        if document.status in (DocumentStatus.READY, DocumentStatus.PARTIAL)
    ]
    documents = _lowest(ready, _document_digest)
    pool = SamplePool([], len(ready), revision=view.revision)
    for n_done, document in enumerate(documents, 1):
        pool.chunks += await view.chunks(document_id=document.id)
        on_event(Progress(stage="read", n_done=n_done, n_total=len(documents)))
    return pool


def choose_sample(chunks: Sequence[Chunk], n_learned: int, n_compared: int) -> TuningSample:
    """Return a sample; of few chunks, at most a quarter is kept for comparison. Equal chunks give equal samples."""
    chosen = list(islice(_dissimilar(in_sampling_order(chunks)), n_learned + n_compared))
    counted = tuple(islice(in_sampling_order(chunks), MAX_COUNTED))
    n_reserved = min(n_compared, max(len(chosen) - n_learned, len(chosen) // 4))
    n_used = len(chosen) - n_reserved
    return TuningSample(tuple(chosen[:n_used]), tuple(chosen[n_used:]), counted)


def in_sampling_order(chunks: Sequence[Chunk]) -> Iterator[Chunk]:
    """Yield all chunks: one of each document in turn, ordered by digests of their content; short chunks last."""
    for is_short in (False, True):
        chunks_by_document: dict[str, list[tuple[str, Chunk]]] = {}
        for chunk in chunks:
            if (chunk.n_tokens < SHORT_TOKENS) == is_short:
                chunks_by_document.setdefault(chunk.document_id, []).append((digest("sample", chunk.text_hash), chunk))
        queues = [sorted(queue, key=_digest_and_id) for queue in chunks_by_document.values()]
        queues.sort(key=lambda queue: _digest_and_id(queue[0]))
        for index in range(max(map(len, queues), default=0)):
            yield from (queue[index][1] for queue in queues if index < len(queue))


def origin_of(sample: TuningSample, pool: SamplePool, sizes: SampleSizes, context: TuningContext) -> TuningOrigin:
    """Return what a suggestion is made from, for comparison with an index and its settings."""
    contents = (_chunk_digest(chunk) for chunk in (*sample.learned, *sample.compared, *sample.counted))
    config = context.ingest_config
    chunking = (*(f"{rule.match}: {rule.chunking.to_json()}" for rule in config.rules), config.chunking.to_json())
    return TuningOrigin(
        revision=pool.revision,
        n_documents=pool.n_documents,
        sample=digest("sample", str(len(sample.learned)), str(len(sample.compared)), *contents)[:_DIGEST_DIGITS],
        settings=(
            ("sample", str(sizes.n_sample)),
            ("compare", str(sizes.n_compare)),
            *_extraction_settings(context),
            ("chunking", "; ".join(chunking)),
        ),
    )


def _sampled_chunk(chunk: Chunk, *, is_compared: bool = False) -> SampledChunk:
    return SampledChunk(
        chunk_id=chunk.id,
        document_id=chunk.document_id,
        title=chunk.title,
        n_tokens=chunk.n_tokens,
        is_compared=is_compared,
    )


def _dissimilar(chunks: Iterator[Chunk]) -> Iterator[Chunk]:
    """Yield the chunks that are not nearly the same as an earlier one."""
    earlier: list[frozenset[str]] = []
    for chunk in chunks:
        terms = frozenset(content_terms_of(chunk.text))
        if terms and not any(len(terms & other) / len(terms | other) >= MAX_SIMILARITY for other in earlier):
            earlier.append(terms)
            yield chunk


def _digest_and_id(entry: tuple[str, Chunk]) -> tuple[str, str]:
    return entry[0], entry[1].id


def _lowest_sources(sources: Iterable[FoundSource]) -> tuple[list[SourceDocument], int, int]:
    """Return the documents to read, how many documents there are, and how many files cannot be read."""
    n_documents = n_unreadable = 0

    def documents() -> Iterator[SourceDocument]:
        nonlocal n_documents, n_unreadable
        for source in sources:
            n_unreadable += isinstance(source, UnreadableSource)
            if isinstance(source, SourceDocument):
                n_documents += 1
                yield source

    lowest = _lowest(documents(), lambda source: (digest_bytes(source.content), source.id))
    return lowest, n_documents, n_unreadable


def _document_digest(document: Document) -> tuple[str, str]:
    return document.content_hash, document.id


T = TypeVar("T")


def _lowest(documents: Iterable[T], key: Callable[[T], tuple[str, str]]) -> list[T]:
    return heapq.nsmallest(MAX_DOCUMENTS, documents, key=key)


def _chunk_digest(chunk: Chunk) -> str:
    """Return a digest of everything that is read of a chunk, which is more than its text."""
    return digest(chunk.document_id, chunk.text_hash, chunk.title, chunk.header, *chunk.headings)


def _extraction_settings(context: TuningContext) -> tuple[tuple[str, str], ...]:
    """Return the extractor's identity and the settings of a user that it depends on."""
    identity = ("extractor", context.ingest_config.extractor.identity)
    if context.extractor is None:
        return (identity,)
    options = context.options
    ontology = options.ontology
    return (
        identity,
        ("extraction_format", options.format),
        ("max_gleaning", str(options.max_gleaning)),
        ("always_glean", str(options.always_glean).lower()),
        ("claims", str(options.with_claims).lower()),
        ("language", options.language or "language of the text"),
        (
            "ontology",
            f"{len(ontology.types)} types, {len(ontology.relations)} relations, {len(ontology.glossary)} terms",
        ),
        ("ontology_mode", "strict" if ontology.is_strict else "soft"),
    )
