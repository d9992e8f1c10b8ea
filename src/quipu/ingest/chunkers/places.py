"""Places: where a text may be cut, and how good each place is: the starts of sections, paragraphs, lines, sentences."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import islice, pairwise
from zlib import crc32

from quipu.errors import InvalidDocument
from quipu.ingest.chunkers.manuscript import Manuscript, with_header
from quipu.model.document import Block
from quipu.text.sentences import sentence_spans
from quipu.text.unicode import is_grapheme_boundary

# Levels, best first; 0, 1, 2 … are headings by the number of headings above them.
PARAGRAPH, LINE, SENTENCE, WORD, AFTER_HEADING = range(100, 105)
MAX_PLACES = 2_000_000  # about 300 bytes each
_CONTEXT = 32  # characters on either side of a cut that decide its rank
_WORD_CONTEXT = 8
_MAX_GRAPHEME = 64  # characters; a longer one is cut like a word
_LONG_SHARE = 3  # a sentence over this part of the budget may be cut between its words


@dataclass(frozen=True, slots=True)
class Place:
    """A place where the text may be cut: before character `start`, which `n_before` tokens precede.

    `n_header` are the tokens of the header that a chunk beginning here repeats.
    """

    start: int
    level: int
    rank: bytes
    n_before: int
    n_header: int


def places_of(manuscript: Manuscript, starts: Sequence[tuple[int, int]] | None = None) -> list[Place]:
    """Return every place where a cut is possible, in order; the first is the start of the text, the last its end.

    `starts` are where a piece begins and its level, by default those of `starts_of`.
    """
    text, count = manuscript.text, manuscript.count
    places: list[Place] = []
    n_before = 0
    starts = starts_of(text, manuscript.blocks) if starts is None else starts
    for (start, level), (end, _) in pairwise([*starts, (len(text), 0)]):
        pieces = [start, end]
        if count(text[start:end]) * _LONG_SHARE > manuscript.max_tokens:
            pieces = [start, *_word_cuts(text, start, end, max(1, manuscript.max_tokens // (2 * _LONG_SHARE))), end]
        for left, right in pairwise(pieces):
            header = manuscript.header_at(left)
            n_header = count(with_header(header, "")) if header else 0
            places.append(Place(left, level if left == start else WORD, _rank(text, left), n_before, n_header))
            n_before += count(text[left:right])
    return [*places, Place(len(text), 0, b"", n_before, 0)]


def starts_of(text: str, blocks: Sequence[Block]) -> list[tuple[int, int]]:
    """Return where a section, paragraph, line or sentence begins, and the level of a cut there; the first is 0.

    Raises InvalidDocument for more of them than memory is kept for.
    """
    starts = list(islice(_starts(text, blocks), MAX_PLACES + 1))
    if len(starts) > MAX_PLACES:
        raise InvalidDocument(
            f"The document has more than {MAX_PLACES:,} sentences and lines.", remedy="Split it into several files."
        )
    return [(start, level) for start, level in starts if is_grapheme_boundary(text, start)]


def _starts(text: str, blocks: Sequence[Block]) -> Iterator[tuple[int, int]]:
    """Yield where a section, paragraph, line or sentence begins, and the level of a cut there."""
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
            for place, level in _starts_within(text[start:end], start, by_line=block.kind in ("table", "code")):
                yield place, AFTER_HEADING if block.header and place <= below_header else level


def _starts_within(body: str, offset: int, *, by_line: bool) -> Iterator[tuple[int, int]]:
    """Yield where the sentences (or lines) of a block begin, but the first, and the level of a cut there."""
    for (_, end), (start, _) in pairwise(_line_spans(body) if by_line else sentence_spans(body)):
        n_line_ends = body.count("\n", end, start)
        yield offset + start, (SENTENCE, LINE, PARAGRAPH)[min(n_line_ends, 2)]


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
