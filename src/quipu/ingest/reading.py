"""Reading one document: bytes → text → chunks, each with the hash of all its extractor will see."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, auto

from quipu.ingest.chunkers import CHUNKERS, chunk, sentences, with_header
from quipu.model.chunking import Chunking, ChunkingRule
from quipu.model.document import (
    Document,
    DocumentStatus,
    ParsedDocument,
    SourceDocument,
    is_same_content,
    is_same_extraction,
    join_content_hash,
)
from quipu.model.extraction import ChunkInput
from quipu.model.graph import Chunk
from quipu.model.ids import chunk_id, digest, digest_bytes
from quipu.ports.ingest import Extractor
from quipu.ports.providers import Embedder, Tokenizer

READING = "reading/2"  # raised whenever parsers or chunkers make something else of the same bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """How documents are read.

    `media_types` says which file suffixes are read, and as what. A document is cut as it asks to be, else by the first
    of `rules` that matches its id, else by `chunking`. `embedder` reads sentences for the chunker that compares them.
    """

    parse: Callable[[SourceDocument], ParsedDocument]
    media_types: Mapping[str, str]
    extractor: Extractor
    tokenizer: Tokenizer
    embedder: Embedder
    chunking: Chunking = field(default_factory=Chunking)
    rules: tuple[ChunkingRule, ...] = ()

    def with_chunking(self, chunking: Chunking | None) -> "Recipe":
        """Return the recipe of one call: where that says how to cut, it says so for all its documents."""
        return self if chunking is None else replace(self, chunking=chunking, rules=())


class Standing(Enum):
    """How a document that is handed in stands in the index."""

    TO_READ = auto()
    READ = auto()
    READ_OTHERWISE = auto()  # the same, but read by another, or as other settings had it


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A parsed document, how it is to be cut, and the sentences to compare before that can be done."""

    source: SourceDocument
    parsed: ParsedDocument
    chunking: Chunking
    sentences: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadDocument:
    """A parsed document and its chunks in order."""

    parsed: ParsedDocument
    chunks: tuple[Chunk, ...]


def chunking_of(source: SourceDocument, recipe: Recipe) -> Chunking:
    """Return how a document is to be cut."""
    matching = (rule.chunking for rule in recipe.rules if rule.applies_to(source.id))
    return source.chunking or next(matching, recipe.chunking)


def content_hash(source: SourceDocument, recipe: Recipe) -> str:
    """Return what identifies a document's content and how it is read; see model.content_hash."""
    content = _digest(source, recipe, digest(READING, recipe.tokenizer.identity))
    return join_content_hash(content, recipe.extractor.identity, recipe.extractor.description)


def standing(before: Document | None, source: SourceDocument, recipe: Recipe) -> Standing:
    """Return how a document stands, given what the index knows of it.

    What was read in part is tried again by who read it, and by nobody else.
    """
    if before is None or before.status not in (DocumentStatus.READY, DocumentStatus.PARTIAL):
        return Standing.TO_READ
    now, then = content_hash(source, recipe), before.content_hash
    if is_same_extraction(then, now) or then == _unnamed_hash(source, recipe):
        return Standing.READ if before.status is DocumentStatus.READY else Standing.TO_READ
    return Standing.READ_OTHERWISE if is_same_content(then, now) else Standing.TO_READ


def _unnamed_hash(source: SourceDocument, recipe: Recipe) -> str:
    """Return the hash that indexes made before have of the same."""
    return _digest(source, recipe, digest(READING, recipe.extractor.identity, recipe.tokenizer.identity))


def _digest(source: SourceDocument, recipe: Recipe, how: str) -> str:
    said = [f"{key}={value!r}" for key, value in sorted(source.metadata.items())]
    chunking = chunking_of(source, recipe)
    embedder = recipe.embedder.identity if CHUNKERS[chunking.method].reads_vectors else ""
    cut_how = digest(how, chunking.to_json(), embedder)
    return digest(cut_how, digest_bytes(source.data), source.media_type, source.title, source.source, *said)


def draft(source: SourceDocument, recipe: Recipe) -> Draft:
    """Parse a document. Raises InvalidDocument where it cannot be read."""
    parsed = recipe.parse(source)
    chunking = chunking_of(source, recipe)
    return Draft(source=source, parsed=parsed, chunking=chunking, sentences=sentences(parsed, chunking))


def cut(draft: Draft, similarities: Sequence[float], recipe: Recipe) -> ReadDocument:
    """Cut a parsed document; `similarities` are those of its sentences."""
    parsed, count = draft.parsed, recipe.tokenizer.count
    seen: Counter[str] = Counter()
    chunks: list[Chunk] = []
    for ordinal, span in enumerate(chunk(parsed, draft.chunking, count=count, similarities=similarities)):
        text = parsed.text[span.start : span.end]
        text_hash = digest(text)
        entry = ChunkInput(text=text, title=parsed.title, headings=span.headings, header=span.header)
        chunks.append(
            Chunk(
                id=chunk_id(draft.source.id, text_hash, seen[text_hash]),
                document_id=draft.source.id,
                title=parsed.title,
                ordinal=ordinal,
                text=text,
                start=span.start,
                end=span.end,
                n_tokens=count(with_header(span.header, text)),
                text_hash=text_hash,
                input_hash=entry.hash(recipe.extractor.identity),
                headings=span.headings,
                page=span.page,
                header=span.header,
            )
        )
        seen[text_hash] += 1
    return ReadDocument(parsed=parsed, chunks=tuple(chunks))


def extractor_input(chunk: Chunk) -> ChunkInput:
    """Return all an extractor may see of a chunk."""
    return ChunkInput(text=chunk.text, title=chunk.title, headings=chunk.headings, header=chunk.header)
