"""Reading one document: bytes → text → chunks, each with the hash of all its extractor will see."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from quipu.ingest.chunk import chunk as cut
from quipu.ingest.chunk import default_max_tokens
from quipu.model.document import ParsedDocument, SourceDocument
from quipu.model.extraction import ChunkInput
from quipu.model.graph import Chunk
from quipu.model.ids import chunk_id, digest, digest_bytes
from quipu.ports.extractor import Extractor
from quipu.ports.tokenizer import Tokenizer

READING = "reading/1"  # raised whenever parsers or chunker make something else of the same bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """How documents are read.

    `media_types` says which file suffixes are read, and as what; `max_tokens` None means the default for the
    document's size.
    """

    parse: Callable[[SourceDocument], ParsedDocument]
    media_types: Mapping[str, str]
    extractor: Extractor
    tokenizer: Tokenizer
    max_tokens: int | None = None

    @property
    def identity(self) -> str:
        """What, besides the document, decides the facts."""
        return digest(READING, self.extractor.identity, self.tokenizer.identity, str(self.max_tokens))


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadDocument:
    """A parsed document and its chunks in order."""

    parsed: ParsedDocument
    chunks: tuple[Chunk, ...]


def content_hash(source: SourceDocument, recipe: Recipe) -> str:
    """Return what identifies a document's content and how it is read: equal means there is nothing to do."""
    said = [f"{key}={value!r}" for key, value in sorted(source.metadata.items())]
    return digest(recipe.identity, digest_bytes(source.data), source.media_type, source.title, source.source, *said)


def read(source: SourceDocument, recipe: Recipe) -> ReadDocument:
    """Parse and cut a document. Raises InvalidDocument where it cannot be read."""
    parsed = recipe.parse(source)
    limit = recipe.max_tokens or default_max_tokens(len(parsed.text.encode("utf-8", "surrogatepass")))
    seen: Counter[str] = Counter()
    chunks: list[Chunk] = []
    for ordinal, span in enumerate(cut(parsed, count=recipe.tokenizer.count, max_tokens=limit)):
        text = parsed.text[span.start : span.end]
        text_hash = digest(text)
        entry = ChunkInput(text=text, title=parsed.title, headings=span.headings)
        chunks.append(
            Chunk(
                id=chunk_id(source.id, text_hash, seen[text_hash]),
                document_id=source.id,
                title=parsed.title,
                ordinal=ordinal,
                text=text,
                start=span.start,
                end=span.end,
                n_tokens=recipe.tokenizer.count(text),
                text_hash=text_hash,
                input_hash=entry.hash(recipe.extractor.identity),
                headings=span.headings,
                page=span.page,
            )
        )
        seen[text_hash] += 1
    return ReadDocument(parsed=parsed, chunks=tuple(chunks))


def extractor_input(chunk: Chunk) -> ChunkInput:
    """Return all an extractor may see of a chunk."""
    return ChunkInput(text=chunk.text, title=chunk.title, headings=chunk.headings)
