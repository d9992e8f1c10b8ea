"""Chunkers by name. To add one: write its file, then add it to the list below and to `TAKES` in model/chunking.py."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from quipu.errors import InvalidDocument
from quipu.ingest.chunkers import fixed, semantic, separator, structure
from quipu.ingest.chunkers.chunker import Chunker, ChunkSpan
from quipu.ingest.chunkers.manuscript import Count, Manuscript, manuscript_of, with_header
from quipu.ingest.chunkers.spans import fit, placed
from quipu.model.chunking import Chunking
from quipu.model.document import ParsedDocument

__all__ = ["CHUNKERS", "ChunkSpan", "Chunker", "chunk", "sentences", "with_header"]

MAX_CHUNKS = 200_000  # a document is published whole, so its chunks are held at once

CHUNKERS: Mapping[str, Chunker] = MappingProxyType(
    {module.CHUNKER.name: module.CHUNKER for module in (structure, fixed, separator, semantic)}
)


def chunk(
    parsed: ParsedDocument, chunking: Chunking, *, count: Count, similarities: Sequence[float] = ()
) -> list[ChunkSpan]:
    """Return the chunks of `parsed`, in order of start and of end: together they hold every visible character.

    (A separator belongs to no chunk, unless the pieces on both sides share one.) A chunk begins and ends with a visible
    character and has at most the tokens `chunking` allows, the header it repeats included; `count` counts the tokens of
    a text. Graphemes stay whole where they fit. `similarities` are those of the `sentences` of `parsed`.
    Raises InvalidDocument where there are more chunks than one document may have.
    """
    manuscript = _manuscript(parsed, chunking, count)
    cut = CHUNKERS[chunking.method].cut(manuscript, chunking, similarities)
    spans = [part for span in cut for part in fit(manuscript, *span)]
    if len(spans) > MAX_CHUNKS:
        raise InvalidDocument(
            f"The document has {len(spans):,} chunks, and may have {MAX_CHUNKS:,}.",
            remedy="Split it into several files, or cut it into larger chunks.",
        )
    return placed(spans, manuscript)


def sentences(parsed: ParsedDocument, chunking: Chunking) -> list[str]:
    """Return the sentences whose likeness decides where `parsed` is cut; none for a chunker that asks for none."""
    return semantic.sentences(parsed) if CHUNKERS[chunking.method].reads_vectors else []


def _manuscript(parsed: ParsedDocument, chunking: Chunking, count: Count) -> Manuscript:
    n_bytes = len(parsed.text.encode("utf-8", "surrogatepass"))
    max_tokens = chunking.max_tokens or CHUNKERS[chunking.method].auto_tokens(n_bytes)
    return manuscript_of(parsed, count, max_tokens)
