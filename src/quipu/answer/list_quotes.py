"""List quotes: the list in the passages that a question asks for, shown with what introduces it and with short items.

A list is a run of items, the first column of a table, or the headings below one heading.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from quipu.answer.passage_text import PassageText, Span, sentence_bounds
from quipu.answer.question_kind import QuestionPart
from quipu.answer.sentence_scores import ScoredSentence, ScoreWeights, WordFinder
from quipu.answer.text_blocks import BlockKind, TextBlock

MIN_ITEMS = 3
MAX_LIST_CHARS = 700
MIN_ITEM_CHARS = 40
MAX_LEAD_CHARS = 250  # of the last sentences before a list
LEAD_CREDIT, HEADING_CREDIT, TITLE_CREDIT, ITEM_CREDIT = 1.0, 0.8, 0.4, 0.3
MIN_SHARE = 0.4  # of the question's words in what introduces a list: below that the list is about something else


@dataclass(frozen=True, slots=True, kw_only=True)
class ListQuote:
    """A list in a passage: the spans of its introduction and of its items, each cut to a length."""

    passage: PassageText
    spans: tuple[Span, ...]
    share: float


def best_list(
    part: QuestionPart, passages: Sequence[PassageText], best: ScoredSentence, weights: ScoreWeights
) -> ListQuote | None:
    """Return the list whose introduction holds most of the question's words; None where none holds enough of them."""
    finder = WordFinder(part)
    if not finder.terms:
        return None
    lists = [
        (_share(finder, passage, lead, items) + weights.rank * passage.score, passage, lead, items)
        for passage in passages
        for lead, items in _lists(passage)
    ]
    if not lists:
        return None
    score, passage, lead, items = max(lists, key=lambda ranked: round(ranked[0], 6))
    share = score - weights.rank * passage.score
    if share < MIN_SHARE or score < 0.8 * best.score:
        return None
    return ListQuote(passage=passage, spans=tuple(_spans(passage, lead, items)), share=share)


def _lists(passage: PassageText) -> Iterator[tuple[int, list[int]]]:
    """Yield each list of a passage: the index of the block that introduces it (-1: none), and those of its items."""
    blocks = passage.blocks
    inside = [index for index, block in enumerate(blocks) if passage.first <= block.start < passage.last]
    run: list[int] = []
    for index in inside:
        block = blocks[index]
        if run and block.kind is BlockKind.ITEM and block.indent == blocks[run[0]].indent:
            run.append(index)
        elif run and (block.indent > blocks[run[0]].indent or block.kind is BlockKind.NOISE):
            continue
        else:
            if len(run) >= MIN_ITEMS:
                yield _introduction(blocks, run[0]), run
            run = [index] if block.kind is BlockKind.ITEM else []
    if len(run) >= MIN_ITEMS:
        yield _introduction(blocks, run[0]), run
    headings = [index for index in inside if blocks[index].kind is BlockKind.HEADING]
    for place, heading in enumerate(headings):
        level = _level(passage.text, blocks[heading])
        below: list[int] = []
        for other in headings[place + 1 :]:
            if _level(passage.text, blocks[other]) <= level:
                break
            below.append(other)
        top = min((_level(passage.text, blocks[other]) for other in below), default=0)
        children = [other for other in below if _level(passage.text, blocks[other]) == top]
        if len(children) >= MIN_ITEMS:
            yield heading, children


def _introduction(blocks: Sequence[TextBlock], entry: int) -> int:
    before = entry - 1
    while before >= 0 and blocks[before].kind is BlockKind.NOISE:
        before -= 1
    return before


def _level(text: str, heading: TextBlock) -> int:
    """Return the level of a heading by its markup, 1 for the highest."""
    line = text[heading.start : heading.end]
    if line.startswith("#"):
        return len(line) - len(line.lstrip("#"))
    return 1 + "=-~^\"'`".find(line[-1]) if "\n" in line else 9


def _share(finder: WordFinder, passage: PassageText, lead: int, items: Sequence[int]) -> float:
    """Return the share of the question's words in what introduces a list, in part also of those in its items."""
    blocks, text = passage.blocks, passage.text
    heading = blocks[items[0]].heading if lead < 0 or blocks[lead].kind is not BlockKind.HEADING else lead
    chunk = passage.chunk
    places = [
        (" ".join(text[blocks[entry].start : blocks[entry].end] for entry in items), ITEM_CREDIT),
        (f"{chunk.title} {chunk.document_id}", TITLE_CREDIT),
        (" ".join(chunk.headings), HEADING_CREDIT / 2),
        (text[blocks[heading].start : blocks[heading].end] if heading >= 0 else "", HEADING_CREDIT),
        (text[blocks[lead].start : blocks[lead].end] if lead >= 0 else "", LEAD_CREDIT),
    ]
    credit_by_term: dict[str, float] = {}
    for content, credit in places:
        for term in finder.terms_in(content):
            credit_by_term[term] = max(credit, credit_by_term.get(term, 0.0))
    return math.fsum(credit_by_term.values()) / len(finder.terms)  # the same in any order


def _spans(passage: PassageText, lead: int, items: Sequence[int]) -> Iterator[Span]:
    """Yield the introduction of a list and its items, cut so that all of them fit as far as possible."""
    blocks, text = passage.blocks, passage.text
    room = MAX_LIST_CHARS
    if lead >= 0:
        bounds = list(sentence_bounds(text, blocks[lead]))
        end = bounds[-1][1]
        start = next((first for first, _ in bounds if end - first <= MAX_LEAD_CHARS), bounds[-1][0])
        room -= end - start
        yield start, end
    n_chars = max(MIN_ITEM_CHARS, room // len(items))
    for entry in items:
        start, end = blocks[entry].start, blocks[entry].end
        if end - start > n_chars:
            cut = text.rfind(" ", start + n_chars // 2, start + n_chars)
            end = cut if cut > 0 else start + n_chars
        if (room := room - (end - start)) < 0:
            return
        yield start, end
