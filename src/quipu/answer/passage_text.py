"""Passage text: a passage with the ends of its neighbours in the document, in blocks, as quotes are taken from it.

A chunk may end in the middle of a list, or between a heading and what stands under it. So quotes may begin in the chunk
before and end in the chunk after. Every character still has its place in the document.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

from quipu.answer.text_blocks import FENCE, MAX_TERM_CHARS, BlockKind, TextBlock, ends_sentence, read_blocks
from quipu.model.answer import Citation
from quipu.model.graph import Chunk
from quipu.text.sentences import record_questions, sentence_spans
from quipu.text.unicode import is_unspaced
from quipu.text.words import STOP_WORDS

MAX_SENTENCE_CHARS = 280  # a longer sentence is scored in pieces
_PIECE = re.compile(r".{1,240}(?:[\s,;，；、。|]|$)|.{1,240}", re.DOTALL)

PROSE_STOP_SHARE = 0.25  # of the words of a text that is all sentences
_CJK_PUNCTUATION = "，。；？！"  # sentences have it, lists of names do not
FUNCTION_CHARACTERS = re.compile("[的了是在和与有被于这那几谁吗呢哪何么多少怎样为用把将就也都从到对又会能]")
_WORD = re.compile(r"[^\W\d_]+")
MAX_NEIGHBOUR_CHARS = 600  # of each neighbour: more than a quote has

Place = tuple[str, int]  # a document's id and the ordinal of a chunk in it
Span = tuple[int, int]  # [start, end)


@dataclass(frozen=True, slots=True, kw_only=True)
class NearestQuestion:
    """The question of a record that is nearest to the one asked: the chunk that answers it, and its position there.

    `margin` is by how much its cosine exceeds that of every other question. A cosine alone says little: between short
    questions in Russian or Chinese it is always high.
    """

    chunk: str
    ordinal: int
    margin: float

    def start_in(self, chunk: Chunk) -> int:
        """Return where the question begins in the text of its chunk; the end of the text if it is not there."""
        starts = [start for start, _ in record_questions(chunk.text, chunk.header)]
        return starts[self.ordinal] if self.ordinal < len(starts) else len(chunk.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class PassageText:
    """A passage, the text around it, and its blocks.

    Sentences that begin in [first, last) belong to the passage itself: only they are chosen, the text around completes
    quotes. `pieces` are the chunks of which the text consists and where each begins. `score` is the passage's share of
    the best passage's score. `record` is where the question that is nearest to the one asked begins, if the text holds
    it and its answer, and by how much it is nearer than any other question of a record.
    """

    chunk: Chunk
    text: str
    first: int
    last: int
    blocks: Sequence[TextBlock]
    pieces: tuple[tuple[int, Chunk], ...]
    score: float = 1.0
    record: tuple[int, float] | None = None

    @property
    def offset(self) -> int:
        """Where the text begins in its document."""
        return self.chunk.start - self.first

    @property
    def name(self) -> str:
        """The words in the id of its document, a path without its suffix."""
        return re.sub(r"[/_.-]+", " ", self.chunk.document_id.rsplit(".", 1)[0])

    def headings(self) -> list[tuple[int, str]]:
        """Return the index of each block that is a heading, and what it says."""
        headings = [(index, block) for index, block in enumerate(self.blocks) if block.kind is BlockKind.HEADING]
        return [(index, self.text[block.start : block.end].split("\n")[0].strip("# =")) for index, block in headings]

    def below(self, heading: str) -> "PassageText":
        """Return the passage with just the blocks of the section of a heading; with all if it has no such heading."""
        headings = self.headings()
        begin = next((index for index, name in headings if name == heading), None)
        if begin is None:
            return self
        n_marks = self._n_marks(begin)
        end = next((index for index, _ in headings if index > begin and self._n_marks(index) <= n_marks), None)
        return replace(self, blocks=self.blocks[begin:end])

    def _n_marks(self, index: int) -> int:
        """Return with how many marks a heading begins: 2 for "## Install", 0 for one of plain text."""
        line = self.text[self.blocks[index].start : self.blocks[index].end].lstrip()
        return len(line) - len(line.lstrip("#="))

    def record_margin(self, place: int) -> float:
        """Return the margin of `record` if the block at a character is part of it, else 0."""
        if self.record is None:
            return 0.0
        start, margin = self.record
        block = next((block for block in self.blocks if block.start <= place < block.end), None)
        headings = [self.blocks[block.heading]] if block is not None and block.heading >= 0 else []
        return margin if any(part.start <= start < part.end for part in (block, *headings) if part) else 0.0

    def rows_around(self, index: int, n_chars: int, room: int) -> list[Span]:
        """Return a row with the rows below and then above it that fit in `room` characters.

        A header, which says nothing alone, gets the rows below it that fit in `n_chars`.
        """
        blocks, lead = self.blocks, self.blocks[index].lead
        header = index if lead < 0 else lead
        rows = [(block.start, block.end) for block in blocks if block.kind is BlockKind.ROW and block.lead == header]
        row = (blocks[index].start, blocks[index].end)
        if lead < 0:
            return [row, *(below for below in rows if below[1] - row[0] <= n_chars)]
        first = last = rows.index(row)
        while last + 1 < len(rows) and rows[last + 1][1] - rows[first][0] <= room:
            last += 1
        while first > 0 and rows[last][1] - rows[first - 1][0] <= room:
            first -= 1
        return rows[first : last + 1]

    def citations(self, spans: Sequence[Span], number: int, source: str) -> Iterator[Citation]:
        """Yield a citation for each span; a span across two chunks gives one for each.

        Text that the passage shares with a neighbour is cited from the passage.
        """
        for start, end in spans:
            reached = 0  # text that two pieces share is the first one's
            for piece_start, chunk in self.pieces:
                low, high = self._own_part(piece_start, chunk)
                low, reached = max(low, reached), max(high, reached)
                quote_start, quote_end = max(start, low), min(end, high)
                if quote := self.text[quote_start:quote_end].strip():
                    quote_start = self.text.index(quote, quote_start)
                    yield _citation(chunk, quote_start - piece_start, quote, number, source)

    def _own_part(self, piece_start: int, chunk: Chunk) -> Span:
        """Return the characters that a piece alone stands for."""
        piece_end = piece_start + len(chunk.text)
        if piece_start < self.first:
            return piece_start, min(piece_end, self.first)
        return piece_start if piece_start == self.first else max(piece_start, self.last), piece_end


def _citation(chunk: Chunk, start: int, quote: str, number: int, source: str) -> Citation:
    page = None if chunk.page is None else chunk.page + chunk.text.count("\f", 0, start)
    return Citation(
        number=number,
        document_id=chunk.document_id,
        title=chunk.title,
        chunk_id=chunk.id,
        start=chunk.start + start,
        end=chunk.start + start + len(quote),
        quote=quote,
        page=page,
        headings=chunk.headings,
        source=source,
    )


def read_passage(
    chunk: Chunk, score: float, chunk_by_place: Mapping[Place, Chunk], nearest: NearestQuestion | None = None
) -> PassageText:
    """Return a chunk with the ends of its neighbours; `chunk_by_place` holds them where they were read."""
    text, first, pieces = chunk.text, 0, [(0, chunk)]
    if before := chunk_by_place.get((chunk.document_id, chunk.ordinal - 1)):
        end = len(before.text) + min(0, chunk.start - before.end)
        start = max(0, end - MAX_NEIGHBOUR_CHARS)
        start = 0 if start == 0 else before.text.find("\n", start, end) + 1 or start
        tail = before.text[start:end] + _gap(before, chunk)
        text, first = tail + text, len(tail)
        pieces = [(-start, before), (first, chunk)]
    if after := chunk_by_place.get((chunk.document_id, chunk.ordinal + 1)):
        gap = _gap(chunk, after)
        overlap = max(0, chunk.end - after.start)
        pieces.append((len(text) + len(gap) - overlap, after))
        text += gap + after.text[overlap : overlap + MAX_NEIGHBOUR_CHARS]
    return PassageText(
        chunk=chunk,
        text=text,
        first=first,
        last=first + len(chunk.text),
        blocks=read_blocks(text),
        pieces=tuple(pieces),
        score=score,
        record=(first + nearest.start_in(chunk), nearest.margin) if nearest and nearest.chunk == chunk.id else None,
    )


def join_chunks(chunks: Sequence[Chunk]) -> PassageText:
    """Return consecutive chunks of a document as one text; at least one."""
    text, pieces = chunks[0].text, [(0, chunks[0])]
    for before, after in pairwise(chunks):
        gap, overlap = _gap(before, after), max(0, before.end - after.start)
        pieces.append((len(text) + len(gap) - overlap, after))
        text += gap + after.text[overlap:]
    n_first = len(chunks[0].text)
    return PassageText(
        chunk=chunks[0], text=text, first=0, last=n_first, blocks=read_blocks(text), pieces=tuple(pieces)
    )


def _gap(before: Chunk, after: Chunk) -> str:
    """Return what stands between two chunks: only space, of which the number of characters is known.

    In a table it is the end of a row, and perhaps of pages. Where all later lines are indented, so is the first.
    """
    n_characters = after.start - before.end
    if n_characters > 0 and after.header:
        return "\n" + "\f" * (n_characters - 1)
    if n_characters < 2:
        return " " * n_characters
    indents = [len(line) - len(line.lstrip()) for line in after.text.split("\n")[1:] if line.strip()]
    indent = min(indents, default=0)
    return "\n" * (n_characters - indent) + " " * indent if indent < n_characters else "\n" * n_characters


def is_entry(content: str) -> bool:
    """Return whether a paragraph is an explanation below a line with its term, and so about nothing above it."""
    term, _, explanation = content.partition("\n")
    begins = bool(explanation) and not explanation.lstrip()[:1].islower()  # else a sentence goes on in the next line
    return begins and len(term) <= MAX_TERM_CHARS and not ends_sentence(term.removesuffix("..."))


def open_fence(text: str, blocks: Sequence[TextBlock], place: int) -> str:
    """Return the line that opens the fenced code in which a character stands; "" if it is in none, or at its end.

    Of code that begins in an earlier chunk, only the closing fence is in the text: a block of noise.
    """
    for block in blocks:
        fence = FENCE.match(text, block.start, block.end)
        if fence is None or block.end < place:
            continue
        if block.kind is BlockKind.NOISE and not fence[2]:
            return fence[1] if place <= block.start else ""
        is_closed = place == block.end and text[: block.end].endswith(fence[1])
        return fence[0].strip() if block.start < place and not is_closed else ""
    return ""


def prose_share(text: str) -> float:
    """Return how much a text reads like sentences, from 0 to 1: by its share of stop words.

    Indexes, lists of links, names and program code have hardly any. In unspaced scripts punctuation counts, too.
    """
    words = _WORD.findall(text)
    if text.isascii():
        n_stop = sum(map(STOP_WORDS.__contains__, map(str.lower, words)))
        return min(1.0, n_stop / (PROSE_STOP_SHARE * max(1, len(words))))
    n_words, n_stop = 0, 2 * sum(map(text.count, _CJK_PUNCTUATION))
    for word in words:
        if is_unspaced(word[0]):
            n_words += len(word)
            n_stop += 2 * len(FUNCTION_CHARACTERS.findall(word))  # a word has about two characters
        else:
            n_words += 1
            n_stop += word.casefold() in STOP_WORDS
    return min(1.0, n_stop / (PROSE_STOP_SHARE * max(1, n_words)))


def sentence_bounds(text: str, block: TextBlock) -> Iterator[Span]:
    """Yield the [start, end) of the sentences of a block; a row is one sentence, a very long sentence is several."""
    content = text[block.start : block.end]
    if block.kind in (BlockKind.ROW, BlockKind.HEADING):
        yield block.start, block.end
        return
    spans = _line_spans(content) if block.kind is BlockKind.CODE else _prose_spans(content)
    for start, end in spans:
        if end - start <= MAX_SENTENCE_CHARS:
            yield block.start + start, block.start + end
        else:
            for piece in _PIECE.finditer(content, start, end):
                yield block.start + piece.start(), block.start + piece.end()


@lru_cache(maxsize=4_096)  # a paragraph is looked at several times for a question
def _prose_spans(content: str) -> tuple[Span, ...]:
    return tuple(sentence_spans(content))


def _line_spans(content: str) -> Sequence[Span]:
    """Return code in spans of whole lines of about a sentence's length."""
    spans, start, position = [], 0, 0
    for line in content.splitlines(keepends=True):
        if position > start and position + len(line) - start > MAX_SENTENCE_CHARS:
            spans.append((start, position))
            start = position
        position += len(line)
    return [*spans, (start, position)]
