"""Chunks: where a document is cut, by rules that look only at the text around a cut, so that an edit moves few.

Places for a cut are the starts of sections, paragraphs, lines and sentences (and of words, in a sentence too long to
keep whole). They are tried in order: best level first, and within a level by a hash of the characters on either side.
A place becomes a cut where the gap between the cuts around it is over budget and it leaves enough text on both sides.

This is random sequential adsorption (A. Rényi, "On a one-dimensional problem concerning random space filling", 1958)
with a hash for the order of arrival. What becomes of a place depends on nearby places tried before it, through chains
so short that an edit is forgotten a chunk or two away; packing from left to right would move every cut that follows.
Gaps between half the budget and all of it have a mean of 0.67 of it (half of 1 / 0.7476, Rényi's constant).
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import pairwise
from zlib import crc32

from quipu.errors import InvalidInput
from quipu.model.document import Block, ParsedDocument
from quipu.text.graphemes import is_grapheme_boundary
from quipu.text.sentences import sentence_spans

Count = Callable[[str], int]

MAX_TOKENS = 1_200
MAX_TOKENS_OF_LARGE = 600
LARGE_BYTES = 100_000

# Levels of cuts, best first; 0, 1, 2 … are headings by the number of headings above them.
_PARAGRAPH, _LINE, _SENTENCE, _WORD, _AFTER_HEADING = range(100, 105)
# A cut leaves at least a half of the budget on either side, or, where a level has no place for that, a third.
_MARGINS = (2, 3)
_CONTEXT = 32  # characters on either side of a cut that decide its rank
_WORD_CONTEXT = 8
_MAX_GRAPHEME = 64  # characters; a longer one is cut like a word


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkSpan:
    """Characters [start, end) of a document's text, the headings all its text is under, and the page it begins on."""

    start: int
    end: int
    headings: tuple[str, ...] = ()
    page: int | None = None


def default_max_tokens(n_bytes: int) -> int:
    """Return the token budget of a chunk: smaller for documents over 100 kB, where passages must be found, not skimmed.

    A document that grows past that size is cut anew throughout, once.
    """
    return MAX_TOKENS if n_bytes <= LARGE_BYTES else MAX_TOKENS_OF_LARGE


def chunk(parsed: ParsedDocument, *, count: Count, max_tokens: int = MAX_TOKENS) -> list[ChunkSpan]:
    """Return the chunks of `parsed`, in order: together every visible character once, each at most `max_tokens`.

    Chunks begin and end with a visible character. A heading stays with what follows it, small neighbouring sections
    share a chunk, graphemes stay whole where they fit. `count` counts the tokens of a text.
    Raises InvalidInput where `max_tokens` is below 1.
    """
    if max_tokens < 1:
        raise InvalidInput(f"A chunk of at most {max_tokens} tokens cannot hold text.", remedy="Allow 1 or more.")
    blocks = parsed.blocks or (Block(start=0, end=len(parsed.text)),)
    starts = _cuts(_places(parsed.text, blocks, count, max_tokens), max_tokens)
    spans = [
        span
        for start, end in pairwise(starts)
        for span in _fit(parsed.text, *_strip(parsed.text, start, end), count=count, max_tokens=max_tokens)
    ]
    return _with_headings(spans, blocks)


@dataclass(frozen=True, slots=True)
class _Place:
    """A place where the text may be cut: before character `start`, which `n_before` tokens precede."""

    start: int
    level: int
    rank: bytes
    n_before: int


def _places(text: str, blocks: Sequence[Block], count: Count, max_tokens: int) -> list[_Place]:
    """Return every place where a cut is possible, in order; the first is the start of the text, the last its end."""
    places: list[_Place] = []
    n_before = 0
    starts = [(start, level) for start, level in _starts(text, blocks) if is_grapheme_boundary(text, start)]
    for (start, level), (end, _) in pairwise([*starts, (len(text), 0)]):
        pieces = [start, end]
        if count(text[start:end]) * _MARGINS[-1] > max_tokens:
            pieces = [start, *_word_cuts(text, start, end, max(1, max_tokens // (2 * _MARGINS[-1]))), end]
        for left, right in pairwise(pieces):
            places.append(_Place(left, level if left == start else _WORD, _rank(text, left), n_before))
            n_before += count(text[left:right])
    return [*places, _Place(len(text), 0, b"", n_before)]


def _starts(text: str, blocks: Sequence[Block]) -> Iterator[tuple[int, int]]:
    """Yield where a section, paragraph, line or sentence begins, and the level of a cut there."""
    follows_heading = False
    for index, block in enumerate(blocks):
        start = block.start if index else 0
        end = blocks[index + 1].start if index + 1 < len(blocks) else len(text)
        if follows_heading:
            yield start, _AFTER_HEADING
        else:
            yield start, len(block.headings) if block.kind == "heading" else _PARAGRAPH
        follows_heading = block.kind == "heading"
        if not follows_heading:
            yield from _starts_within(text[start:end], start, by_line=block.kind in ("table", "code"))


def _starts_within(body: str, offset: int, *, by_line: bool) -> Iterator[tuple[int, int]]:
    """Yield where the sentences (or lines) of a block begin, but the first, and the level of a cut there."""
    for (_, end), (start, _) in pairwise(_line_spans(body) if by_line else sentence_spans(body)):
        n_line_ends = body.count("\n", end, start)
        yield offset + start, (_SENTENCE, _LINE, _PARAGRAPH)[min(n_line_ends, 2)]


def _line_spans(body: str) -> list[tuple[int, int]]:
    spans = []
    start = 0
    for line in body.split("\n"):
        if line.strip():
            spans.append((start, start + len(line)))
        start += len(line) + 1
    return spans


def _word_cuts(text: str, start: int, end: int, max_size: int) -> Iterator[int]:
    """Yield cuts of a long sentence, at most `max_size` characters apart: before words, else between graphemes.

    Each is the least by hash within reach of the one before, so that after an edit they soon fall on the old ones.
    """
    while end - start > max_size:
        reach = range(start + max(1, max_size // 4), start + max_size + 1)
        beyond = range(reach.stop, min(end, start + _MAX_GRAPHEME) + 1)
        choices = (
            [index for index in reach if text[index - 1].isspace() and not text[index].isspace()]
            or [index for index in reach if is_grapheme_boundary(text, index)]
            or [next((index for index in beyond if is_grapheme_boundary(text, index)), reach[-1])]
        )
        start = min(choices, key=lambda index: crc32(_context(text, index, _WORD_CONTEXT)))
        if start < end:
            yield start


def _rank(text: str, index: int) -> bytes:
    return blake2b(_context(text, index, _CONTEXT), digest_size=8).digest()


def _context(text: str, index: int, size: int) -> bytes:
    return text[max(0, index - size) : index + size].encode("utf-8", "surrogatepass")


def _cuts(places: Sequence[_Place], max_tokens: int) -> list[int]:
    """Return where the chunks begin, and the end of the text."""
    by_level: dict[int, list[int]] = defaultdict(list)
    for index in range(1, len(places) - 1):
        by_level[places[index].level].append(index)
    taken = [0, len(places) - 1]
    for _, candidates in sorted(by_level.items()):
        candidates.sort(key=lambda index: (places[index].rank, index))
        for share in _MARGINS:
            for index in candidates:
                _take(taken, index, places, max_tokens, margin=-(-max_tokens // share))
    return [places[index].start for index in taken]


def _take(taken: list[int], index: int, places: Sequence[_Place], max_tokens: int, *, margin: int) -> None:
    """Add the place `index` to the sorted `taken` where the gap it lies in is over budget and has room for a cut."""
    slot = bisect_left(taken, index)
    if taken[slot] == index:
        return
    here = places[index].n_before
    n_left = here - places[taken[slot - 1]].n_before
    n_right = places[taken[slot]].n_before - here
    if n_left + n_right > max_tokens and min(n_left, n_right) >= margin:
        taken.insert(slot, index)


def _strip(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the span without the space at its ends; empty where there is nothing else."""
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return start, end


def _fit(text: str, start: int, end: int, *, count: Count, max_tokens: int) -> Iterator[tuple[int, int]]:
    """Yield the span, cut between graphemes where it is still over budget: tiny budgets and odd tokenizers only."""
    while start < end and count(text[start:end]) > max_tokens:
        sizes = range(1, end - start)
        size = max(1, bisect_right(sizes, max_tokens, key=lambda size: count(text[start : start + size])))
        cut = start + size
        while cut > start and not is_grapheme_boundary(text, cut):
            cut -= 1
        cut = cut if cut > start else start + size
        yield _strip(text, start, cut)
        start, _ = _strip(text, cut, end)
    if start < end:
        yield start, end


def _with_headings(spans: Sequence[tuple[int, int]], blocks: Sequence[Block]) -> list[ChunkSpan]:
    """Return the spans with the headings common to all text in each, and the page of the first block in each."""
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
        chunks.append(ChunkSpan(start=start, end=end, headings=_common_prefix(paths), page=inside[0].page))
    return chunks


def _common_prefix(paths: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """Return the longest path all of `paths` begin with: that of the least and the greatest."""
    least, greatest = min(paths), max(paths)
    depth = 0
    while depth < min(len(least), len(greatest)) and least[depth] == greatest[depth]:
        depth += 1
    return least[:depth]
