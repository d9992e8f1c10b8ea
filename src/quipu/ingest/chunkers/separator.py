"""separator: cuts wherever a given text occurs, for example between the minutes of two meetings.

Without a token limit, each piece between two separators is a chunk. With a token limit, small neighbouring pieces share
a chunk and long pieces are cut further, both as in `structure`, with the separator as the best place for a cut.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import pairwise

from quipu.ingest.chunkers.chunker import ChunkableText, Chunker, Span, strip_span
from quipu.ingest.chunkers.structure import (
    MARGINS,
    add_cuts_to_budget,
    by_rank,
    cut_by_level,
    cut_points_of,
    segment_starts,
)
from quipu.model.chunking import MAX_CHUNK_TOKENS, SEPARATOR, Chunking

_SEPARATOR_LEVEL = -1  # better than any heading


def cut(document: ChunkableText, chunking: Chunking, _similarities: Sequence[float]) -> list[Span]:
    """Return the pieces or, with a token limit, runs of pieces and parts of pieces. A piece that fits is never cut."""
    pieces = _pieces(document.text, chunking.separator or "")
    if not pieces:
        return []
    points = cut_points_of(document, _starts(document, pieces))
    at_separator = [index for index, point in enumerate(points[:-1]) if point.level == _SEPARATOR_LEVEL]
    if chunking.max_tokens is None:
        cuts = [*at_separator, len(points) - 1]
    else:
        ranked = by_rank(at_separator[1:], points)
        cuts = add_cuts_to_budget([0, len(points) - 1], ranked, points, document.max_tokens, margins=(*MARGINS, 0))
    cuts = cut_by_level(cuts, points, document.max_tokens)
    starts = [points[index].start for index in cuts]
    return [_trimmed(start, end, pieces) for start, end in pairwise(starts)]


def _pieces(text: str, separator: str) -> list[Span]:
    """Return the stripped spans between separators that hold a visible character."""
    spans = []
    start = 0
    while start < len(text):
        end = text.find(separator, start)
        end = end if end >= 0 else len(text)
        span = strip_span(text, start, end)
        if span[0] < span[1]:
            spans.append(span)
        start = end + len(separator)
    return spans


def _starts(document: ChunkableText, pieces: Sequence[Span]) -> list[tuple[int, int]]:
    """Return (start, level) of every piece and of the sections, paragraphs, lines and sentences within the pieces."""
    level_by_start = {}
    for start, level in segment_starts(document.text, document.blocks):
        index = bisect_right(pieces, start, key=lambda piece: piece[0]) - 1
        if index >= 0 and start < pieces[index][1]:
            level_by_start[start] = level
    return sorted((level_by_start | dict.fromkeys((start for start, _ in pieces), _SEPARATOR_LEVEL)).items())


def _trimmed(start: int, end: int, pieces: Sequence[Span]) -> Span:
    """Return the span without the text between pieces at its ends; an empty span if it holds no part of a piece."""
    first = bisect_right(pieces, start, key=lambda piece: piece[1])
    last = bisect_left(pieces, end, key=lambda piece: piece[0]) - 1
    if first > last:
        return start, start
    return max(start, pieces[first][0]), min(end, pieces[last][1])


CHUNKER = Chunker(
    name=SEPARATOR,
    cut=cut,
    auto_tokens=lambda _n_bytes: MAX_CHUNK_TOKENS,
    summary="at a given text, alone or with a token limit that joins small pieces and cuts long ones",
    after="the common practice",
    when="a mark in the text separates the topics",
)
