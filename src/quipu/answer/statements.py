"""Statements: the sentences of an answer that claim something, each with the numbers it cites."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from quipu.text.content_terms import content_terms_of
from quipu.text.sentences import sentence_spans

MIN_TERMS = 2  # fewer claim nothing: "Yes.", "In short:"

_MARK = re.compile(r"\[(\d{1,9})\]")  # a longer number is none
_MARKS_BEHIND = re.compile(r"(?:[^\S\n]*\[\d+\])+[.,;:]?")
_HEADING = re.compile(r"#{1,6}\s|\*\*[^*\n]+\*\*:?$")
_LIST_MARKER = re.compile(r"(?:[-*+•]|\d{1,3}[.)]|[>|#]+)\s+")
_NO_CLAIM = (":", "：", "?", "？")


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """Characters [start, end) of an answer: what they claim, without marks, and the numbers of the passages cited."""

    start: int
    end: int
    words: str
    numbers: tuple[int, ...]


def claims(text: str) -> list[Claim]:
    """Return what `text` claims, in order. Headings, questions and what leads up to a list claim
    nothing unless they cite.

    A mark behind a full stop belongs to the sentence before it. A sentence without a mark has those of the next that
    has one on its line, as the last sentence of a paragraph often cites for all of it.
    """
    spans = list(_sentences(text))
    numbers = [_numbers(text[start:end]) for start, end in spans]
    for place in reversed(range(len(spans) - 1)):
        if not numbers[place] and "\n" not in text[spans[place][1] : spans[place + 1][0]]:
            numbers[place] = numbers[place + 1]
    found = [
        Claim(start=start, end=end, words=_words(text[start:end]), numbers=cited)
        for (start, end), cited in zip(spans, numbers, strict=True)
    ]
    return [claim for claim in found if _claims(claim, text)]


def _sentences(text: str) -> Iterator[tuple[int, int]]:
    """Yield the sentences of a text, each with the marks behind it."""
    taken = 0
    for start, end in sentence_spans(text):
        first = max(start, taken)
        while first < end and text[first].isspace():
            first += 1
        if first < end:
            marks = _MARKS_BEHIND.match(text, end)
            taken = marks.end() if marks else end
            yield first, taken


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(dict.fromkeys(int(match[1]) for match in _MARK.finditer(text)))


def _words(text: str) -> str:
    bare = _MARK.sub("", text)
    marker = _LIST_MARKER.match(bare)
    return bare[marker.end() if marker else 0 :].strip()


def _claims(claim: Claim, text: str) -> bool:
    said = text[claim.start : claim.end]
    if _MARK.search(said):
        return True
    if _HEADING.match(said) or claim.words.rstrip("*_ ").endswith(_NO_CLAIM):
        return False
    return len(set(content_terms_of(claim.words))) >= MIN_TERMS
