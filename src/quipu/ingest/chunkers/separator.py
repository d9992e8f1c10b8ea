"""separator: cuts wherever a given text stands, as between the minutes of two meetings.

Alone, each piece is a chunk. With a token limit, small neighbouring pieces share a chunk and long ones are cut further,
both as `structure` would, with the separator as the best place of all.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import pairwise

from quipu.ingest.chunkers.chunker import Chunker
from quipu.ingest.chunkers.cuts import MARGINS, by_rank, cut_by_level, cut_in_order
from quipu.ingest.chunkers.manuscript import Manuscript
from quipu.ingest.chunkers.places import places_of, starts_of
from quipu.ingest.chunkers.spans import strip
from quipu.model.chunking import MAX_CHUNK_TOKENS, SEPARATOR, Chunking

_SEPARATOR = -1  # level of a cut at the separator: better than any heading


def cut(manuscript: Manuscript, chunking: Chunking, _similarities: Sequence[float]) -> list[tuple[int, int]]:
    """Return the pieces, or, with a limit, runs of pieces and parts of pieces; a piece that fits is never cut."""
    pieces = _pieces(manuscript.text, chunking.separator or "")
    if not pieces:
        return []
    places = places_of(manuscript, _starts(manuscript, pieces))
    at_separator = [index for index, place in enumerate(places[:-1]) if place.level == _SEPARATOR]
    if chunking.max_tokens is None:
        taken = [*at_separator, len(places) - 1]
    else:
        taken = [0, len(places) - 1]
        ranked = by_rank(at_separator[1:], places)
        cut_in_order(taken, ranked, places, manuscript.max_tokens, margins=(*MARGINS, 0))
    cut_by_level(taken, places, manuscript.max_tokens)
    starts = [places[index].start for index in taken]
    return [_trimmed(start, end, pieces) for start, end in pairwise(starts)]


def _pieces(text: str, separator: str) -> list[tuple[int, int]]:
    """Return the spans between separators in which something is visible, trimmed."""
    spans = []
    start = 0
    while start < len(text):
        end = text.find(separator, start)
        end = end if end >= 0 else len(text)
        span = strip(text, start, end)
        if span[0] < span[1]:
            spans.append(span)
        start = end + len(separator)
    return spans


def _starts(manuscript: Manuscript, pieces: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the starts of the pieces and, with their own levels, of sections to sentences within them."""
    level_by_start = {}
    for start, level in starts_of(manuscript.text, manuscript.blocks):
        index = bisect_right(pieces, start, key=lambda piece: piece[0]) - 1
        if index >= 0 and start < pieces[index][1]:
            level_by_start[start] = level
    return sorted((level_by_start | dict.fromkeys((start for start, _ in pieces), _SEPARATOR)).items())


def _trimmed(start: int, end: int, pieces: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """Return the span without what lies between pieces at its ends; one with nothing else becomes empty."""
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
    when="a mark in the text says where a new matter begins",
)
