"""Chunkers by name. To add one: write its file, then add it to the list below and to `TAKES` in model/chunking.py."""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType

from quipu.errors import InvalidDocument
from quipu.ingest.chunkers import fixed, semantic, separator, structure
from quipu.ingest.chunkers.chunker import ChunkableText, Chunker, ChunkSpan, CountTokens, Span, strip_span, with_header
from quipu.model.chunking import Chunking
from quipu.model.document import Block, ParsedDocument
from quipu.text.unicode import is_grapheme_boundary

__all__ = ["CHUNKERS", "ChunkSpan", "Chunker", "chunk_spans", "sentences_to_compare", "with_header"]

MAX_CHUNKS = 200_000  # a document is committed as a whole, so all its chunks are in memory at once

CHUNKERS: Mapping[str, Chunker] = MappingProxyType(
    {module.CHUNKER.name: module.CHUNKER for module in (structure, fixed, separator, semantic)}
)


def chunk_spans(
    parsed: ParsedDocument, chunking: Chunking, *, count: CountTokens, similarities: Sequence[float] = ()
) -> list[ChunkSpan]:
    """Return the chunks of `parsed`, ordered by start and by end. Together they hold every visible character.

    (A separator belongs to no chunk, unless the pieces on both sides share one.) A chunk begins and ends with a visible
    character. It has at most the tokens that `chunking` allows, including the table header that it repeats. `count`
    counts the tokens of a text. Graphemes stay whole where they fit. `similarities` are the sentence similarities of
    `sentences_to_compare(parsed, chunking)`. Raises InvalidDocument for more than `MAX_CHUNKS` chunks.
    """
    n_bytes = len(parsed.text.encode("utf-8", "surrogatepass"))
    chunker = CHUNKERS[chunking.method]
    document = ChunkableText.of(parsed, count, chunking.max_tokens or chunker.auto_tokens(n_bytes))
    spans = [part for span in chunker.cut(document, chunking, similarities) for part in _within_budget(document, *span)]
    if len(spans) > MAX_CHUNKS:
        raise InvalidDocument(
            f"The document has {len(spans):,} chunks; the limit is {MAX_CHUNKS:,}.",
            remedy="Split it into several files, or cut it into larger chunks.",
        )
    return list(_with_context(spans, document))


def sentences_to_compare(parsed: ParsedDocument, chunking: Chunking) -> list[str]:
    """Return the sentences whose similarity decides where `parsed` is cut; none if the method compares no sentences."""
    return semantic.sentences(parsed) if CHUNKERS[chunking.method].reads_vectors else []


def _within_budget(document: ChunkableText, start: int, end: int) -> Iterator[Span]:
    """Yield the stripped span, cut between graphemes if it is over budget (only tiny budgets and odd tokenizers)."""
    start, end = strip_span(document.text, start, end)
    while start < end and document.n_tokens(start, end) > document.max_tokens:
        ends = range(start + 1, end)
        cut = furthest = start + max(1, bisect_right(ends, document.max_tokens, key=partial(document.n_tokens, start)))
        while cut > start and not is_grapheme_boundary(document.text, cut):
            cut -= 1
        cut = cut if cut > start else furthest
        yield strip_span(document.text, start, cut)
        start, _ = strip_span(document.text, cut, end)
    if start < end:
        yield start, end


def _with_context(spans: Sequence[Span], document: ChunkableText) -> Iterator[ChunkSpan]:
    """Yield each span with the headings above all of its text, the page where it begins and the header it repeats."""
    blocks = document.blocks
    first = 0
    for start, end in spans:
        while first + 1 < len(blocks) and blocks[first + 1].start <= start:
            first += 1
        last = first
        while last < len(blocks) and blocks[last].start < end:
            last += 1
        inside = blocks[first:last]
        paths = [block.headings for block in inside if block.kind != "heading"] or [inside[0].headings]
        yield ChunkSpan(
            start=start,
            end=end,
            headings=_common_prefix(paths),
            page=_page_at(start, inside[0], document.text),
            header=document.header_at(start),
        )


def _page_at(start: int, block: Block, text: str) -> int | None:
    """Return the page of a position in a block; every form feed in the block begins another page."""
    return None if block.page is None else block.page + text.count("\f", block.start, start)


def _common_prefix(paths: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """Return the longest path that all `paths` begin with: the common prefix of the lowest and the highest path."""
    lowest, highest = min(paths), max(paths)
    depth = 0
    while depth < min(len(lowest), len(highest)) and lowest[depth] == highest[depth]:
        depth += 1
    return lowest[:depth]
