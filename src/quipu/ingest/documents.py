"""Documents: how one is read (IngestConfig), whether it has changed (ChangeStatus), its text and chunks; and the queue.

New and changed documents are queued for the pipeline, unchanged ones are skipped, and documents are removed.
"""

import asyncio
import logging
import math
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from typing import Protocol

from quipu.errors import InvalidDocument, InvalidInput, QuipuError
from quipu.ingest.chunkers import CHUNKERS, chunk_spans, sentences_to_compare, with_header
from quipu.ingest.chunkers.semantic import sentence_similarities
from quipu.ingest.pictures import PictureReader
from quipu.ingest.sources import MAX_BYTES, FoundSource, SkippedFiles, UnreadableSource, checked_id, checked_metadata
from quipu.model.chunking import Chunking, ChunkingRule
from quipu.model.delta import Delta
from quipu.model.document import (
    Document,
    DocumentStatus,
    ParsedDocument,
    Picture,
    SourceDocument,
    is_same_content,
    is_same_extraction,
    join_content_hash,
)
from quipu.model.event import EventSink, Progress
from quipu.model.extraction import ChunkInput
from quipu.model.graph import Chunk
from quipu.model.ids import chunk_id, digest, digest_bytes
from quipu.ports.ingest import ExtractionResult, Extractor, FileTypes
from quipu.ports.providers import Embedder, Tokenizer
from quipu.ports.store import Store
from quipu.text.unicode import find_text_with_surrogate

READING = "reading/12"  # raise it whenever parsers or chunkers give another result for the same bytes
MAX_JOBS = 64  # claimed at a time; where a model reads, what it can read at a time, so that workers share a short queue
MAX_GROUP_BYTES = 2_000_000  # of the documents that are processed together
REMOVE_BATCH = 64  # documents in one commit

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentReading:
    """What reading one document gave, on whichever machine: its chunks and the outcome of each extractor input.

    `document` holds neither the bytes nor the blocks, which nobody needs afterwards. `outcomes` are by input hash.
    `document` is None where the document cannot be read: `error` says why, and `is_final` that it never can be, as it
    is.
    """

    document: "ChunkedDocument | None" = None
    outcomes: Mapping[str, ExtractionResult] = field(default_factory=dict)
    error: str = ""
    is_final: bool = False


class DocumentReader(Protocol):
    """Reads documents in other processes, which may be on other machines, without anything that costs money."""

    @property
    def n_ahead(self) -> int:
        """How many documents should be in progress at any time."""

    async def check(self) -> None:
        """Raise Unavailable or InvalidInput, with the remedy, if documents cannot be read with this configuration."""

    async def read(self, source: SourceDocument) -> DocumentReading:
        """Return what `ingest.spread.read_completely` returns. Raises Unavailable if no document can be read now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestConfig:
    """How documents are parsed, chunked and extracted.

    A document uses its own chunking if it has one, else the chunking of the first of `rules` that matches its id, else
    `chunking`. `embedder` embeds sentences for the chunking method that compares them. `parser_settings` says for some
    media types with which settings they are parsed. With a `reader`, documents are read by other processes, and
    `extractor` only names what they extract with. `pictures` asks a model about pictures; None: nobody does.
    """

    parse: Callable[[SourceDocument], ParsedDocument]
    file_types: FileTypes
    extractor: Extractor
    tokenizer: Tokenizer
    embedder: Embedder
    chunking: Chunking = field(default_factory=Chunking)
    rules: tuple[ChunkingRule, ...] = ()
    keep_originals: bool = True
    parser_settings: Mapping[str, str] = field(default_factory=dict)
    reader: DocumentReader | None = None
    pictures: PictureReader | None = None

    def with_chunking(self, chunking: Chunking | None) -> "IngestConfig":
        """Return the configuration of one call: a `chunking` given there replaces the setting and all rules."""
        return self if chunking is None else replace(self, chunking=chunking, rules=())

    def chunking_of(self, source: SourceDocument) -> Chunking:
        """Return how to chunk a document."""
        matching = (rule.chunking for rule in self.rules if rule.applies_to(source.id))
        return source.chunking or next(matching, self.chunking)


class ChangeStatus(Enum):
    """What must be done with a document that is added, given what the index holds."""

    CHANGED = auto()  # new, changed, or incomplete: it must be read
    UNCHANGED = auto()
    READ_OTHERWISE = auto()  # unchanged, but read by another extractor or with other settings


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedSource:
    """A parsed document that is not yet chunked; `sentences` are those to compare first, if its chunking needs that.

    A model is to be asked about its `pictures`. Once it was, `error` says which of them have no description.
    """

    source: SourceDocument
    parsed: ParsedDocument
    chunking: Chunking
    sentences: Sequence[str]
    pictures: tuple[Picture, ...] = ()
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkedDocument:
    """A parsed document and its chunks in order."""

    source: SourceDocument
    parsed: ParsedDocument
    chunks: tuple[Chunk, ...]


async def indexed_documents(sources: Sequence[SourceDocument], store: Store) -> dict[str, Document]:
    """Return what the index holds of these documents, by id; new documents are missing."""
    async with store.view() as view:
        return {document.id: document for document in await view.documents([source.id for source in sources])}


def change_status(indexed: Document | None, source: SourceDocument, config: IngestConfig) -> ChangeStatus:
    """Compare a document with what the index holds of it.

    A document that was read only in part is read again, but only by the extractor that read it. So is one whose text,
    or whose file where files are to be kept, the index does not hold: an earlier version did not keep them.
    """
    if indexed is None or indexed.status not in (DocumentStatus.READY, DocumentStatus.PARTIAL):
        return ChangeStatus.CHANGED
    old_hash, new_hash = indexed.content_hash, content_hash(source, config)
    if is_same_extraction(old_hash, new_hash) or old_hash == _hash_without_reader(source, config):
        is_complete = indexed.text_hash and (indexed.original_hash or not config.keep_originals)
        is_unchanged = is_complete and indexed.status is DocumentStatus.READY
        return ChangeStatus.UNCHANGED if is_unchanged else ChangeStatus.CHANGED
    return ChangeStatus.READ_OTHERWISE if is_same_content(old_hash, new_hash) else ChangeStatus.CHANGED


def content_hash(source: SourceDocument, config: IngestConfig) -> str:
    """Return the hash of a document's content and of how it is read; see model.content_hash."""
    content = _content_digest(source, config, digest(READING, config.tokenizer.identity))
    return join_content_hash(content, config.extractor.identity, config.extractor.description)


def reading_identity(config: IngestConfig) -> str:
    """Return a digest of everything but its content that the hash of a document depends on."""
    rules = [f"{rule!r}" for rule in config.rules]
    rules += [f"{media_type}: {settings}" for media_type, settings in sorted(config.parser_settings.items())]
    return digest(str(READING), config.tokenizer.identity, config.embedder.identity, repr(config.chunking), *rules)


def failure_of(error: Exception, component: str) -> DocumentReading:
    """Return that a document failed and why. A fault of a component fails one document and must not stop the others."""
    if isinstance(error, QuipuError):
        message = str(error)
    elif isinstance(error, MemoryError):
        message = "There is not enough memory to read it. Free some memory, or split it into several files."
    else:
        message = (
            f"The {component} failed: {type(error).__name__}: {error}. Leave the document out, and please report it."
        )
    return DocumentReading(error=message, is_final=component == "parser" and isinstance(error, InvalidDocument))


async def read_document(source: SourceDocument, config: IngestConfig) -> ChunkedDocument:
    """Parse and chunk one document. Raises InvalidDocument if it cannot be read, and the errors of the models."""
    parsed_source = await asyncio.to_thread(parse_document, source, config)
    parsed_source = await describe_pictures(parsed_source, config, lambda: None)
    similarities: Sequence[float] = ()
    if parsed_source.sentences:
        (similarities,) = await sentence_similarities([parsed_source.sentences], config.embedder)
    return await asyncio.to_thread(chunk_document, parsed_source, similarities, config)


def parse_document(source: SourceDocument, config: IngestConfig) -> ParsedSource:
    """Parse a document, and collect its pictures if a model reads them. Raises InvalidDocument if it cannot be read."""
    if config.pictures is None:
        return _parsed_source(source, config.parse(source), config)
    parsed, pictures = config.pictures.parser.collect(source)
    return replace(_parsed_source(source, parsed, config), pictures=pictures)


async def describe_pictures(
    parsed_source: ParsedSource, config: IngestConfig, on_reply: Callable[[], None]
) -> ParsedSource:
    """Return the document with what a model says of its pictures. Raises Unavailable and OverBudget as the model does.

    Raises InvalidDocument if it has no other text and the model finds none.
    """
    source, reader = parsed_source.source, config.pictures
    if reader is None or not parsed_source.pictures:
        return parsed_source
    replies = await reader.read(parsed_source.pictures, source.id, parsed_source.parsed.title, on_reply)
    try:
        parsed = await asyncio.to_thread(reader.parser.describe, source, replies.descriptions)
    except InvalidDocument:
        if replies.error:  # this is why it holds no text
            raise InvalidDocument(replies.error, remedy="") from None
        raise
    return replace(_parsed_source(source, parsed, config), error=replies.error)


def _parsed_source(source: SourceDocument, parsed: ParsedDocument, config: IngestConfig) -> ParsedSource:
    chunking = config.chunking_of(source)
    return ParsedSource(
        source=source, parsed=parsed, chunking=chunking, sentences=sentences_to_compare(parsed, chunking)
    )


def chunk_document(parsed_source: ParsedSource, similarities: Sequence[float], config: IngestConfig) -> ChunkedDocument:
    """Cut a parsed document into chunks; `similarities` are the sentence similarities of its `sentences`."""
    source, parsed, count = parsed_source.source, parsed_source.parsed, config.tokenizer.count
    n_by_text_hash: Counter[str] = Counter()
    chunks: list[Chunk] = []
    spans = chunk_spans(parsed, parsed_source.chunking, count=count, similarities=similarities)
    for ordinal, span in enumerate(spans):
        text = parsed.text[span.start : span.end]
        text_hash = digest(text)
        chunk_input = ChunkInput(text=text, title=parsed.title, headings=span.headings, header=span.header)
        chunks.append(
            Chunk(
                id=chunk_id(source.id, text_hash, n_by_text_hash[text_hash]),
                document_id=source.id,
                title=parsed.title,
                ordinal=ordinal,
                text=text,
                start=span.start,
                end=span.end,
                n_tokens=count(with_header(span.header, text)),
                text_hash=text_hash,
                input_hash=chunk_input.hash(config.extractor.identity),
                headings=span.headings,
                page=span.page,
                header=span.header,
                error="" if chunks else parsed_source.error,  # one chunk tells it for the document
            )
        )
        n_by_text_hash[text_hash] += 1
    return ChunkedDocument(source=source, parsed=parsed, chunks=tuple(chunks))


def extractor_input(chunk: Chunk, documents: tuple[str, ...] = ()) -> ChunkInput:
    """Return what an extractor receives of a chunk; `documents` are the ids of the documents that it is for."""
    return ChunkInput(
        text=chunk.text, title=chunk.title, headings=chunk.headings, header=chunk.header, documents=documents
    )


def _hash_without_reader(source: SourceDocument, config: IngestConfig) -> str:
    """Return the content hash of the same document in an index made before hashes named the reader."""
    return _content_digest(source, config, digest(READING, config.extractor.identity, config.tokenizer.identity))


def _content_digest(source: SourceDocument, config: IngestConfig, reading: str) -> str:
    metadata = [f"{key}={value!r}" for key, value in sorted(source.metadata.items())]
    if parser_settings := config.parser_settings.get(source.media_type):
        metadata.append(parser_settings)
    chunking = config.chunking_of(source)
    embedder = config.embedder.identity if CHUNKERS[chunking.method].reads_vectors else ""
    reading = digest(reading, chunking.to_json(), embedder)
    return digest(reading, digest_bytes(source.content), source.media_type, source.title, source.source, *metadata)


@dataclass(slots=True)
class EnqueueResult:
    """What happened to the documents that were added, by id.

    `n_by_other_reader` counts the `unchanged` documents that were read by another extractor or with other settings.
    The key describes that reader.
    """

    added: list[str] = field(default_factory=list)
    updated: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    n_by_other_reader: Counter[str] = field(default_factory=Counter)
    unreadable: list[UnreadableSource] = field(default_factory=list)
    skipped: SkippedFiles | None = None


async def no_preparation() -> None:
    """Do nothing."""


async def enqueue_documents(
    sources: Iterable[FoundSource],
    store: Store,
    config: IngestConfig,
    on_event: EventSink,
    prepare: Callable[[], Awaitable[None]] = no_preparation,
    *,
    reread: bool = False,
) -> EnqueueResult:
    """Queue new and changed documents durably, a few megabytes per commit.

    Unchanged documents are skipped, also those that another extractor or other settings have read, unless `reread`.
    The chunking of each document is decided here and queued with it, so that whoever resumes the work uses the same.
    `prepare` is awaited before the first documents are queued; it is not called if nothing is queued. Raises
    InvalidInput for a document that could not be stored.
    """
    result = EnqueueResult()
    batches = _batches(sources, result)
    while batch := await asyncio.to_thread(next, batches, None):
        source_by_id = {source.id: source for source in batch}
        indexed_by_id = await indexed_documents(list(source_by_id.values()), store)
        queued: list[SourceDocument] = []
        for source in source_by_id.values():
            indexed = indexed_by_id.get(source.id)
            status = change_status(indexed, source, config)
            if indexed and status is ChangeStatus.READ_OTHERWISE and not reread:
                result.n_by_other_reader[indexed.extractor] += 1
                result.unchanged.append(source.id)
            elif status is ChangeStatus.UNCHANGED:
                result.unchanged.append(source.id)
            else:
                queued.append(replace(source, chunking=config.chunking_of(source)))
                (result.updated if indexed and indexed.version else result.added).append(source.id)
        if queued:
            await prepare()
            await store.commit(Delta(enqueue=queued))
        n_read = len(result.added) + len(result.updated) + len(result.unchanged)
        on_event(Progress(stage="read", n_done=n_read, n_total=n_read))
    return result


def _batches(sources: Iterable[FoundSource], result: EnqueueResult) -> Iterator[list[SourceDocument]]:
    """Yield documents, a few megabytes at a time; note unreadable sources and skipped files in `result`."""
    batch: list[SourceDocument] = []
    n_bytes = 0
    for source in sources:
        if isinstance(source, UnreadableSource):
            result.unreadable.append(source)
            continue
        if isinstance(source, SkippedFiles):
            result.skipped = source
            continue
        _check(source)
        batch.append(source)
        n_bytes += len(source.content)
        if n_bytes >= MAX_GROUP_BYTES or len(batch) == MAX_JOBS:
            yield batch
            batch, n_bytes = [], 0
    if batch:
        yield batch


def _check(source: SourceDocument) -> None:
    """Raise InvalidInput for a document that could not be named, stored or filtered later."""
    document_id = checked_id(source.id)
    checked_metadata(source.metadata)
    if text := find_text_with_surrogate([document_id, source.title, source.source, source.metadata]):
        raise InvalidInput(
            f"{text[:80]!r}, of the document {document_id[:80]!r}, holds a lone surrogate.",
            remedy="Decode it from its bytes again, with errors='replace'.",
        )
    if len(source.content) > MAX_BYTES:
        raise InvalidInput(f"The document {document_id!r} holds more than {MAX_BYTES:,} bytes.", remedy="Split it.")
    for key, value in source.metadata.items():
        has_nul = any("\0" in str(text) for text in (key, *(value if isinstance(value, tuple) else (value,))))
        if not key.strip() or has_nul or (isinstance(value, float) and not math.isfinite(value)):
            raise InvalidInput(
                f"The metadata {key!r} = {value!r} of {document_id!r} cannot be compared.",
                remedy="Give every field a name, only finite numbers, and texts without NUL.",
            )


async def remove_documents(ids: Sequence[str], store: Store, on_event: EventSink) -> None:
    """Remove documents, many in one commit; `resume` completes a removal that was interrupted."""
    if ids:
        await store.commit(Delta(enqueue_removal=ids))
    for start in range(0, len(ids), REMOVE_BATCH):
        await store.commit(Delta(remove=ids[start : start + REMOVE_BATCH]))
        on_event(Progress(stage="remove", n_done=min(start + REMOVE_BATCH, len(ids)), n_total=len(ids)))
    _log.info("removed %d documents", len(ids))
