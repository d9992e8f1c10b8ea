"""Reading one document: bytes → text → chunks, each with the hash of all its extractor will see."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from quipu.ingest.chunkers import CHUNKERS, chunk, sentences, with_header
from quipu.model.chunking import Chunking, ChunkingRule
from quipu.model.document import ParsedDocument, SourceDocument
from quipu.model.extraction import ChunkInput
from quipu.model.graph import Chunk
from quipu.model.ids import chunk_id, digest, digest_bytes
from quipu.ports.embedder import Embedder
from quipu.ports.extractor import Extractor
from quipu.ports.tokenizer import Tokenizer

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

    @property
    def identity(self) -> str:
        """What, besides the document and its chunking, decides the facts."""
        return digest(READING, self.extractor.identity, self.tokenizer.identity)

    def with_chunking(self, chunking: Chunking | None) -> "Recipe":
        """Return the recipe of one call: where that says how to cut, it says so for all its documents."""
        return self if chunking is None else replace(self, chunking=chunking, rules=())


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
    """Return what identifies a document's content and how it is read: equal means there is nothing to do."""
    said = [f"{key}={value!r}" for key, value in sorted(source.metadata.items())]
    chunking = chunking_of(source, recipe)
    reader = recipe.embedder.identity if CHUNKERS[chunking.method].reads_vectors else ""
    how = digest(recipe.identity, chunking.to_json(), reader)
    return digest(how, digest_bytes(source.data), source.media_type, source.title, source.source, *said)


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
