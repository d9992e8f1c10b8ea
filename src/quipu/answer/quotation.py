"""Quotation: the blocks of the passages that answer a question, as a person would read them to be sure.

For each part of a question the best sentence is chosen, and then a second one elsewhere; up to four where the question
has one part and they are about as good as the first.
Each grows to a block of readable size: the rest of its paragraph, what introduces it, what follows it. A table row
brings its header, a heading what stands under it. A question for a list gets the list.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from quipu.answer.list_quotes import best_list
from quipu.answer.passage_text import (
    PassageText,
    Span,
    is_entry,
    open_fence,
    prose_share,
    sentence_bounds,
)
from quipu.answer.question_kind import AnalysedQuestion, QuestionKind, QuestionPart
from quipu.answer.sentence_scores import (
    WEIGHTS,
    HeldWords,
    ScoredSentence,
    ScoreWeights,
    WordFinder,
    bm25,
    held_words,
    score_sentences,
    trust_in,
)
from quipu.answer.tables import rule_below
from quipu.answer.text_blocks import BlockKind, TextBlock, block_below, ends_sentence

MIN_LEAD_CHARS, MAX_LEAD_CHARS = 80, 200  # of the heading above a long quote, and of what introduces a block
MAX_HEADER_CHARS = 600  # of the row that names the columns of a table: without it a row says nothing
MAX_CODE_CHARS = 1_000  # of an example: a part of it does not run
MAX_CANDIDATES = 40
ROW_SHARE = 0.75  # of the question's words: a table row that holds fewer, with its header, is shown with others

_SUBJECT_END = re.compile(r"\s*(?:\band\b|\bи\b|与|和|[(（:：,，《«—–])|\s-\s")  # of what a title names first


@dataclass(frozen=True, slots=True, kw_only=True)
class QuoteLimits:
    """How much is quoted: `n_quotes` for each part, of about `n_chars` each, and never more than `total` together.

    A further quote is left out where its score is below `min_score_ratio` of the first. A question of one part gets up
    to `n_close_quotes`, where these score at least `close_ratio` of the first. For a list a quote has about
    `n_list_chars`.
    """

    n_chars: int = 350
    n_list_chars: int = 600
    n_quotes: int = 2
    total: int = 1_500
    min_score_ratio: float = 0.6
    n_close_quotes: int = 4
    close_ratio: float = 0.95


LIMITS = QuoteLimits()


@dataclass(frozen=True, slots=True, kw_only=True)
class Quote:
    """Characters of a passage that are quoted, in order, and the best sentence among them (`mark`).

    Between two spans text is left out. `header` is the header of the table if it stands in an earlier chunk. `held` are
    the words of the question that it holds.
    """

    passage: PassageText
    spans: tuple[Span, ...]
    mark: Span
    score: float
    header: str = ""
    held: HeldWords = field(default_factory=HeldWords)

    @property
    def text(self) -> str:
        """The quoted text, a line for each span."""
        pieces = [self.header] if self.header else []
        pieces += [self.passage.text[start:end] for start, end in self.spans]
        return "\n".join(pieces)

    def shown_pieces(self) -> Iterator[tuple[str, int]]:
        """Yield the pieces of the quote as it is shown, each with its place in the passage, -1 for what is added.

        Added are line breaks, an ellipsis where a sentence, paragraphs or items are left out, the fence of code that is
        cut, and the rule below the header of a table, so that Markdown shows a table.
        """
        if self.header:
            yield f"{self.header}\n{rule_below(self.header)}\n", -1
        text, blocks = self.passage.text, self.passage.blocks
        for index, (start, end) in enumerate(self.spans):
            if index:
                yield "\n…\n" if self._is_gap(self.spans[index - 1], start) else "\n", -1
            if index == 1 and self.row and not self.header:
                yield f"{rule_below(text[slice(*self.spans[0])])}\n", -1
            if opening := open_fence(text, blocks, start):
                yield f"{opening}\n", -1
            yield text[start:end], start
            if opening := open_fence(text, blocks, end):
                yield opening[:3] if text[end - 1] == "\n" else f"\n{opening[:3]}", -1
            elif self._ends_in_sentence(end):
                yield "…" if text[end - 1].isspace() else " …", -1

    def _is_gap(self, before: Span, start: int) -> bool:
        """Return whether items or paragraphs are left out between two spans of one kind."""
        first, second = self._block_at(before[0]), self._block_at(start)
        return (
            first is not None
            and second is not None
            and first.kind is second.kind
            and first.kind in (BlockKind.ITEM, BlockKind.PARAGRAPH)
            and before[1] >= first.end
            and bool(self.passage.text[before[1] : start].strip())
        )

    def _ends_in_sentence(self, end: int) -> bool:
        block = self._block_at(end - 1)
        is_text = block is not None and block.kind in (BlockKind.ITEM, BlockKind.PARAGRAPH)
        return is_text and block is not None and end < block.end and not ends_sentence(self.passage.text[:end])

    def _block_at(self, place: int) -> TextBlock | None:
        return next((block for block in self.passage.blocks if block.start <= place < block.end), None)

    @property
    def row(self) -> str:
        """The table row that holds the best sentence; "" if it is in no table."""
        block = self._block_at(self.mark[0])
        return self.passage.text[block.start : block.end] if block and block.kind is BlockKind.ROW else ""

    @property
    def ends_in_table(self) -> bool:
        """Whether the last quoted line is a row of a table: what follows it there would be a cell of it."""
        last = self._block_at(self.spans[-1][1] - 1)
        return last is not None and last.kind is BlockKind.ROW

    @property
    def has_code(self) -> bool:
        """Whether it shows code."""
        return self._n_blocks(BlockKind.CODE) > 0

    @property
    def n_items(self) -> int:
        """The number of list items and table rows that it shows."""
        return self._n_blocks(BlockKind.ITEM, BlockKind.ROW)

    def _n_blocks(self, *kinds: BlockKind) -> int:
        blocks = [block for block in self.passage.blocks if block.kind in kinds]
        return sum(any(start < block.end and block.start < end for start, end in self.spans) for block in blocks)

    def overlaps(self, other: "Quote") -> bool:
        """Return whether another quote shows the same text, or text of the same place of the document."""
        if self.text in other.text or other.text in self.text:
            return True
        if self.row and self.spans[0] == self.mark and self.passage.text[slice(*self.mark)] in other.text:
            return True  # the first rows of a table, of which the other shows one that fits better
        if self.passage.chunk.document_id != other.passage.chunk.document_id:
            return False
        own, theirs = self._places(), other._places()
        return any(start < their_end and their_start < end for start, end in own for their_start, their_end in theirs)

    def _places(self) -> list[Span]:
        """Return the spans as places in the document; of several, those from the best sentence on."""
        offset = self.passage.chunk.start - self.passage.first
        spans = [span for span in self.spans if span[1] > self.mark[0]] or list(self.spans)
        return [(start + offset, end + offset) for start, end in spans]


def choose_quotes(
    question: AnalysedQuestion,
    passages_by_part: Sequence[Sequence[PassageText]],
    weights: ScoreWeights = WEIGHTS,
    limits: QuoteLimits = LIMITS,
    subject: str = "",
) -> list[Quote]:
    """Return the quotes that answer a question, those of its first part first; no two show the same text.

    `subject` is the name that the question is about, if it has just one.
    """
    parts = list(zip(question.parts, passages_by_part, strict=True))
    if len(parts) > 1:
        n_quotes = 1 if len(parts) > 2 else limits.n_quotes
        limits = replace(limits, n_quotes=n_quotes, n_close_quotes=n_quotes)
    ranked = [
        (rank, place, quote)
        for place, (part, passages) in enumerate(parts)
        for rank, quote in enumerate(_quotes_of_part(part, question, passages, weights, limits))
    ]
    quotes: dict[tuple[int, int], Quote] = {}
    for rank, place, quote in sorted(ranked, key=lambda entry: entry[:2]):  # the best of each part before a second one
        is_new = not any(quote.overlaps(other) for other in quotes.values())
        if is_new and sum(len(other.text) for other in (*quotes.values(), quote)) <= limits.total:
            quotes[place, rank] = _with_words(quote, parts[place][0], subject, question.text)
    return [quotes[key] for key in sorted(quotes)]


def _with_words(quote: Quote, part: QuestionPart, subject: str, question: str) -> Quote:
    """Return a quote with the words of its part of the question that it holds."""
    chunk = quote.passage.chunk
    text, title = " ".join((quote.text, *chunk.headings)), f"{chunk.title} {chunk.document_id}"
    return replace(quote, held=held_words(part, text, title, subject, question))


def _quotes_of_part(
    part: QuestionPart,
    question: AnalysedQuestion,
    passages: Sequence[PassageText],
    weights: ScoreWeights,
    limits: QuoteLimits,
) -> list[Quote]:
    """Return the quotes for one part, best first."""
    kind = question.kind
    ranked = score_sentences(part, kind, passages, weights)[:MAX_CANDIDATES]
    quotes: list[Quote] = []
    n_chars = limits.n_list_chars if kind is QuestionKind.LIST else limits.n_chars
    wants_code = kind is QuestionKind.HOW_TO
    grown = [grow_quote(passages[sentence.place], sentence, n_chars, wants_code=wants_code) for sentence in ranked]
    blocks = [quote for quote in grown if quote]
    candidates = _ranked_by_words(part.words if len(question.parts) > 1 else question.text, blocks, weights, n_chars)
    if kind is QuestionKind.LIST and ranked and (listed := best_list(part, passages, ranked[0], weights)):
        quotes.append(Quote(passage=listed.passage, spans=listed.spans, mark=listed.spans[0], score=ranked[0].score))
    while candidates and len(quotes) < limits.n_close_quotes:
        quote = candidates.pop(0)
        ratio = limits.min_score_ratio if len(quotes) < limits.n_quotes else limits.close_ratio
        if quotes and quote.score < ratio * quotes[0].score:
            break
        if not any(quote.overlaps(other) or _is_weaker_row(quote, other, part) for other in quotes):
            quotes.append(quote)
            if len(quotes) == 1:
                candidates = _with_second_steps(candidates, quote, part, kind, weights)
    return quotes


def _is_weaker_row(quote: Quote, other: Quote, part: QuestionPart) -> bool:
    """Return whether a quote is a table row that says less about a question than another row of the document.

    Words of the header do not count: every row has them.
    """
    rows = [row for row in (quote.row, other.row) if row]
    if len(rows) < 2 or quote.passage.chunk.document_id != other.passage.chunk.document_id:
        return False
    own, theirs = map(WordFinder(part).terms_in, rows)
    return own < theirs


def _ranked_by_words(text: str, quotes: Sequence[Quote], weights: ScoreWeights, n_chars: int) -> list[Quote]:
    """Return quotes, best first. BM25 of the whole quote, over the best BM25, and its share of prose add to its score.

    A row of a table is no prose, and loses nothing by that.
    """
    finder = WordFinder(QuestionPart(words=text))
    by_words = [bm25(finder, f"{quote.passage.name} {quote.text}", n_chars) for quote in quotes]
    best = max(by_words, default=0.0) or 1.0
    prose = [1.0 if quote.row else prose_share(quote.text) for quote in quotes]
    scored = []
    for quote, words, share in zip(quotes, by_words, prose, strict=True):
        gain = weights.quote * words / best + weights.prose * share
        scored.append(replace(quote, score=quote.score + gain * trust_in(quote.passage, text, weights)))
    return sorted(scored, key=lambda quote: -round(quote.score, 6))  # stable: equal ones as their sentences are


def _with_second_steps(
    candidates: Sequence[Quote], first: Quote, part: QuestionPart, kind: QuestionKind, weights: ScoreWeights
) -> list[Quote]:
    """Return quotes ranked again, for what the first one leaves open.

    Those about something that the first one names are the second step of a question, so they score more, and words of
    the question that the first one lacks count again. So do those with code where a how-to has no code yet.
    """
    finder = WordFinder(part)
    missing = frozenset(finder.terms) - finder.terms_in(first.text)
    first_text, words = first.text.casefold(), part.words.casefold()
    lacks_code = kind is QuestionKind.HOW_TO and not first.has_code
    raised = []
    for quote in candidates:
        chunk = quote.passage.chunk
        subject = _SUBJECT_END.split(chunk.title, maxsplit=1)[0].strip().casefold()
        is_named = len(subject) > 1 and subject in first_text and subject not in words
        is_bridge = is_named and chunk.document_id != first.passage.chunk.document_id
        n_steps = 1 + len(finder.terms_in(quote.passage.text[slice(*quote.mark)]) & missing) if is_bridge else 0
        added = weights.bridge * n_steps + weights.code * (lacks_code and quote.has_code)
        raised.append(replace(quote, score=quote.score + added))
    return sorted(raised, key=lambda quote: -round(quote.score, 6))


def grow_quote(
    passage: PassageText, sentence: ScoredSentence, n_chars: int, *, wants_code: bool = False
) -> Quote | None:
    """Return a sentence with what a person reads around it, about `n_chars` long; None for a bare heading.

    With `wants_code` the code below a paragraph is shown as well.
    """
    block, header = passage.blocks[sentence.block], ""
    if block.kind is BlockKind.ROW:
        room = 2 * n_chars // 3 if sentence.share < ROW_SHARE else 0
        spans = [*_leads(passage, sentence.block, n_chars), *passage.rows_around(sentence.block, n_chars, room)]
        if passage.chunk.header and spans[0][0] <= passage.first:  # the table begins in an earlier chunk
            spans, header = spans[1:] or spans, passage.chunk.header
    else:
        start, end = _grown(passage, sentence, n_chars, wants_code)
        if block.kind is BlockKind.HEADING and end <= block.end:
            return None
        leads = _leads(passage, sentence.block, max(n_chars - (end - start), MIN_LEAD_CHARS))
        spans = [*(lead for lead in leads if lead[1] <= start), (start, end)]
    mark = (sentence.start, sentence.end)
    return Quote(passage=passage, spans=tuple(spans), mark=mark, score=sentence.score, header=header)


def _leads(passage: PassageText, index: int, room: int) -> Iterator[Span]:
    """Yield the heading above a block and what introduces it, as far as there is room for them."""
    block = passage.blocks[index]
    above = [block.heading] if block.kind is not BlockKind.ROW else []
    leads = []
    while block.lead >= 0:
        leads.append(block.lead)
        block = passage.blocks[block.lead]
    for place in (*above, *reversed(leads)):
        if place >= 0:
            is_header = passage.blocks[place].kind is BlockKind.ROW
            start, end = _last_sentence(passage.text, passage.blocks[place])
            if end - start <= (MAX_HEADER_CHARS if is_header else min(room, MAX_LEAD_CHARS)):
                room -= end - start
                yield start, end


def _last_sentence(text: str, block: TextBlock) -> Span:
    """Return the whole of a short block, else its last sentence: "The options are:"."""
    if block.end - block.start <= MAX_LEAD_CHARS or block.kind is BlockKind.ROW:
        return block.start, block.end
    return list(sentence_bounds(text, block))[-1]


def _grown(passage: PassageText, sentence: ScoredSentence, n_chars: int, wants_code: bool) -> Span:
    """Return the span around a sentence: its block as far as it fits, then whole blocks after it, then before it.

    What a line announces ("Run:") follows it in any case, if only in part. Code is cut only if it is long. A block that
    ends within another third of the length is shown to its end.
    """
    blocks, block, text = passage.blocks, passage.blocks[sentence.block], passage.text
    bounds = list(sentence_bounds(text, block))
    place = next(index for index, (start, _) in enumerate(bounds) if start == sentence.start)
    if block.kind is BlockKind.CODE:
        n_chars = max(n_chars, min(block.end - block.start, MAX_CODE_CHARS))
    first, last = _widened(bounds, place, n_chars)
    start, end = bounds[first][0], bounds[last][1]
    below, above = sentence.block, sentence.block
    while end == blocks[below].end and (following := block_below(blocks, below, sentence.block)):
        if blocks[following].end - start <= n_chars:
            below, end = following, blocks[following].end
            continue
        lowest = next(block for block in reversed(blocks[: below + 1]) if block.kind is not BlockKind.NOISE)
        is_announced = lowest.kind is BlockKind.HEADING or text[start : lowest.end].endswith((":", "："))
        is_code = blocks[following].kind is BlockKind.CODE
        if is_announced or (wants_code and is_code):
            below, limit = following, max(start + n_chars, end + (MAX_CODE_CHARS if is_code else MAX_LEAD_CHARS))
            sentence_ends = [sentence_end for _, sentence_end in sentence_bounds(text, blocks[following])]
            end = max([place for place in sentence_ends if place <= limit], default=sentence_ends[0])
        break
    is_below_term = block.kind is BlockKind.PARAGRAPH and is_entry(text[block.start : block.end])
    while not is_below_term and start == blocks[above].start and above and blocks[above].kind is not BlockKind.HEADING:
        if end - blocks[above - 1].start > n_chars or blocks[above - 1].kind is BlockKind.LICENCE:
            break
        above, start = above - 1, blocks[above - 1].start
    while below > sentence.block and _opens_what_follows(blocks, below):
        below, end = below - 1, blocks[below - 1].end
    while above < sentence.block and blocks[above].kind is BlockKind.NOISE:
        above, start = above + 1, blocks[above + 1].start
    ends = (block.end for block in blocks[below:] if block.start < end < block.end <= start + n_chars + n_chars // 3)
    return start, next(ends, end)


def _opens_what_follows(blocks: Sequence[TextBlock], last: int) -> bool:
    """Return whether the last block of a quote says nothing alone: noise, a heading, or the first row of a table."""
    kind = blocks[last].kind
    above = (block.kind for block in reversed(blocks[:last]) if block.kind is not BlockKind.NOISE)
    is_first_row = kind is BlockKind.ROW and next(above, None) is not BlockKind.ROW
    return kind in (BlockKind.NOISE, BlockKind.HEADING) or (is_first_row and last + 1 < len(blocks))


def _widened(bounds: Sequence[Span], place: int, n_chars: int) -> tuple[int, int]:
    """Return the first and last sentence of those around one that fit together, in turns after and before it."""
    first = last = place
    while True:
        n_sentences = last - first
        if last + 1 < len(bounds) and bounds[last + 1][1] - bounds[first][0] <= n_chars:
            last += 1
        if first > 0 and bounds[last][1] - bounds[first - 1][0] <= n_chars:
            first -= 1
        if last - first == n_sentences:
            return first, last
