"""Spans: what is done to the spans of every chunker: trimmed, held to the budget, given their place in the document."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import partial

from quipu.ingest.chunkers.chunker import ChunkSpan
from quipu.ingest.chunkers.manuscript import Manuscript
from quipu.model.document import Block
from quipu.text.unicode import is_grapheme_boundary


def strip(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the span without the space at its ends; empty where there is nothing else."""
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return start, end


def fit(manuscript: Manuscript, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the trimmed span, cut between graphemes where it is over budget: tiny budgets and odd tokenizers only."""
    text = manuscript.text
    start, end = strip(text, start, end)
    while start < end and manuscript.n_tokens(start, end) > manuscript.max_tokens:
        ends = range(start + 1, end)
        cut = furthest = start + max(
            1, bisect_right(ends, manuscript.max_tokens, key=partial(manuscript.n_tokens, start))
        )
        while cut > start and not is_grapheme_boundary(text, cut):
            cut -= 1
        cut = cut if cut > start else furthest
        yield strip(text, start, cut)
        start, _ = strip(text, cut, end)
    if start < end:
        yield start, end


def _page_at(start: int, block: Block, text: str) -> int | None:
    """Return the page of a place in a block, which may go on over the end of its page: a form feed for each."""
    return None if block.page is None else block.page + text.count("\f", block.start, start)


def placed(spans: Sequence[tuple[int, int]], manuscript: Manuscript) -> list[ChunkSpan]:
    """Return the spans with the headings common to all text in each, the page each begins on, the header it repeats."""
    blocks = manuscript.blocks
    chunks = []
    first = 0
    for start, end in spans:
        while first + 1 < len(blocks) and blocks[first + 1].start <= start:
            first += 1
        last = first
        while last < len(blocks) and blocks[last].start < end:
            last += 1
        inside = blocks[first:last]
        paths = [block.headings for block in inside if block.kind != "heading"] or [inside[0].headings]
        chunks.append(
            ChunkSpan(
                start=start,
                end=end,
                headings=_common_prefix(paths),
                page=_page_at(start, inside[0], manuscript.text),
                header=manuscript.header_at(start),
            )
        )
    return chunks


def _common_prefix(paths: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """Return the longest path all of `paths` begin with: that of the least and the greatest."""
    least, greatest = min(paths), max(paths)
    depth = 0
    while depth < min(len(least), len(greatest)) and least[depth] == greatest[depth]:
        depth += 1
    return least[:depth]
