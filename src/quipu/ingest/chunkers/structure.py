"""structure: cuts along sections, paragraphs and sentences, at places that depend only on the text around them.

Cut points are tried in order: the best level first (sections, paragraphs, lines, sentences, words), and within a level
in the order of a hash of the characters on both sides. A cut point becomes a cut if the gap between the cuts around it
is over budget and the cut leaves enough text on both sides.

The algorithm is random sequential adsorption (A. Rényi, "On a one-dimensional problem concerning random space filling",
1958); the hash gives the order of arrival. Whether a point becomes a cut depends only on nearby points that were tried
earlier, through short chains. So an edit changes only one or two chunks after it, whereas packing from left to right
would move every later cut. Gaps between half the budget and the whole budget have a mean of 0.67 of the budget
(half of 1 / 0.7476, Rényi's constant).
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import islice, pairwise
from zlib import crc32

from quipu.errors import InvalidDocument
from quipu.ingest.chunkers.chunker import ChunkableText, Chunker, Span, tokens_for_size, with_header
from quipu.model.chunking import STRUCTURE, Chunking
from quipu.model.document import Block
from quipu.text.sentences import sentence_spans
from quipu.text.unicode import is_grapheme_boundary

# Levels of cut points, best first. Levels 0, 1, 2 … are headings, by the number of headings above them.
PARAGRAPH, LINE, SENTENCE, WORD, AFTER_HEADING = range(100, 105)
MAX_CUT_POINTS = 2_000_000  # about 300 bytes each
# A cut leaves at least a half of the budget on both sides or, where a level has no such point, a third.
MARGINS = (2, 3)
_CONTEXT = 32  # characters on both sides of a cut that decide its rank
_WORD_CONTEXT = 8
_MAX_GRAPHEME = 64  # characters; a longer grapheme is cut like a word
_LONG_SHARE = 3  # a sentence longer than 1/3 of the budget may be cut between its words


@dataclass(frozen=True, slots=True)
class CutPoint:
    """A position where the text may be cut: before character `start`, which `n_before` tokens precede.

    `n_header` is the number of tokens of the table header that a chunk beginning here repeats.
    """

    start: int
    level: int
    rank: bytes
    n_before: int
    n_header: int


def cut(document: ChunkableText, _chunking: Chunking, _similarities: Sequence[float]) -> list[Span]:
    """Return a partition of the text. A heading stays with the text after it; small neighbouring sections join."""
    points = cut_points_of(document)
    cuts = cut_by_level([0, len(points) - 1], points, document.max_tokens)
    return list(pairwise(points[index].start for index in cuts))


def cut_points_of(document: ChunkableText, starts: Sequence[tuple[int, int]] | None = None) -> list[CutPoint]:
    """Return every possible cut in order; the first is the start of the text, the last its end.

    `starts` are (start, level) of the segments between which to cut, by default the `segment_starts` of the text.
    """
    count = document.count
    points: list[CutPoint] = []
    n_before = 0
    starts = segment_starts(document.text, document.blocks) if starts is None else starts
    for (start, level), (end, _) in pairwise([*starts, (len(document.text), 0)]):
        pieces = [start, end]
        if count(document.text[start:end]) * _LONG_SHARE > document.max_tokens:
            pieces = [
                start,
                *_word_cuts(document.text, start, end, max(1, document.max_tokens // (2 * _LONG_SHARE))),
                end,
            ]
        for piece_start, piece_end in pairwise(pieces):
            header = document.header_at(piece_start)
            n_header = count(with_header(header, "")) if header else 0
            point_level = level if piece_start == start else WORD
            rank = blake2b(_context(document.text, piece_start, _CONTEXT), digest_size=8).digest()
            points.append(CutPoint(piece_start, point_level, rank, n_before, n_header))
            n_before += count(document.text[piece_start:piece_end])
    return [*points, CutPoint(len(document.text), 0, b"", n_before, 0)]


def segment_starts(text: str, blocks: Sequence[Block]) -> list[tuple[int, int]]:
    """Return where each section, paragraph, line and sentence begins, and the level of a cut there; the first is 0.

    Raises InvalidDocument for more than `MAX_CUT_POINTS` of them.
    """
    starts = list(islice(_segment_starts(text, blocks), MAX_CUT_POINTS + 1))
    if len(starts) > MAX_CUT_POINTS:
        raise InvalidDocument(
            f"The document has more than {MAX_CUT_POINTS:,} sentences and lines.", remedy="Split it into several files."
        )
    return [(start, level) for start, level in starts if is_grapheme_boundary(text, start)]


def cut_by_level(cuts: Sequence[int], points: Sequence[CutPoint], max_tokens: int) -> list[int]:
    """Return `cuts` (sorted indexes of points) with cuts of every level added, best level first, in order of rank."""
    indexes_by_level: dict[int, list[int]] = defaultdict(list)
    for index in range(1, len(points) - 1):
        indexes_by_level[points[index].level].append(index)
    for _, candidates in sorted(indexes_by_level.items()):
        cuts = add_cuts_to_budget(cuts, by_rank(candidates, points), points, max_tokens)
    return list(cuts)


def by_rank(candidates: Iterable[int], points: Sequence[CutPoint]) -> list[int]:
    """Return ascending candidates in an order that depends only on the text around each; equal ones stay in order."""
    return sorted(candidates, key=lambda index: points[index].rank)


def add_cuts_to_budget(
    cuts: Sequence[int],
    candidates: Sequence[int],
    points: Sequence[CutPoint],
    max_tokens: int,
    *,
    margins: Sequence[int] = MARGINS,
) -> list[int]:
    """Return `cuts` and each candidate whose gap is over budget, if it leaves 1/margin of the budget on both sides.

    The margins are tried one after another; a margin of 0 requires no text on either side.
    """
    for margin in margins:
        min_tokens = -(-max_tokens // margin) if margin else 0
        cuts = add_cuts(cuts, candidates, points, min_tokens=min_tokens, over_tokens=max_tokens)
    return list(cuts)


def add_cuts(
    cuts: Sequence[int], candidates: Iterable[int], points: Sequence[CutPoint], *, min_tokens: int, over_tokens: int
) -> list[int]:
    """Return `cuts` and each candidate, in order, whose gap has more than `over_tokens` tokens.

    A candidate that would leave fewer than `min_tokens` tokens on one side is not added.
    """
    cuts = list(cuts)
    for index in candidates:
        slot = bisect_left(cuts, index)
        if cuts[slot] == index:
            continue
        before, point, after = points[cuts[slot - 1]], points[index], points[cuts[slot]]
        n_before = point.n_before - before.n_before + before.n_header
        n_after = after.n_before - point.n_before
        if n_before + n_after > over_tokens and min(n_before, n_after) >= min_tokens:
            cuts.insert(slot, index)
    return cuts


def _segment_starts(text: str, blocks: Sequence[Block]) -> Iterator[tuple[int, int]]:
    """Yield where each section, paragraph, line and sentence begins, and the level of a cut there."""
    follows_heading = False
    for index, block in enumerate(blocks):
        start = block.start if index else 0
        end = blocks[index + 1].start if index + 1 < len(blocks) else len(text)
        if follows_heading:
            yield start, AFTER_HEADING
        else:
            yield start, len(block.headings) if block.kind == "heading" else PARAGRAPH
        follows_heading = block.kind == "heading"
        if not follows_heading:
            below_header = block.start + len(block.header) + 1
            by_line = block.kind in ("table", "code")
            for segment_start, level in _starts_within(text[start:end], start, by_line=by_line):
                yield segment_start, AFTER_HEADING if block.header and segment_start <= below_header else level


def _starts_within(body: str, offset: int, *, by_line: bool) -> Iterator[tuple[int, int]]:
    """Yield where the sentences (or lines) of a block begin, except the first, and the level of a cut there."""
    for (_, end), (start, _) in pairwise(_line_spans(body) if by_line else sentence_spans(body)):
        n_line_ends = body.count("\n", end, start)
        yield offset + start, (SENTENCE, LINE, PARAGRAPH)[min(n_line_ends, 2)]


def _line_spans(body: str) -> list[Span]:
    spans = []
    start = 0
    for line in body.split("\n"):
        if line.strip():
            spans.append((start, start + len(line)))
        start += len(line) + 1
    return spans


def _word_cuts(text: str, start: int, end: int, max_size: int) -> Iterator[int]:
    """Yield cuts of a long sentence, at most `max_size` characters apart: before words, else between graphemes.

    Each cut has the lowest hash within reach of the cut before it. So cuts after an edit soon match the old cuts again.
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


def _context(text: str, index: int, size: int) -> bytes:
    return text[max(0, index - size) : index + size].encode("utf-8", "surrogatepass")


CHUNKER = Chunker(
    name=STRUCTURE,
    cut=cut,
    auto_tokens=tokens_for_size,
    summary="along sections, paragraphs and sentences, at places chosen by the text around them",
    after="random sequential adsorption (Rényi 1958)",
    when="always, unless another method fits better: an edit changes only the chunks near it",
)
