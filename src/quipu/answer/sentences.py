"""Sentences: the sentences of passages that a statement of a model may cite, and its weighted words."""

import math
import re
from bisect import bisect_left
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from quipu.answer.context import Passage
from quipu.model.graph import Chunk
from quipu.text.sentences import sentence_spans
from quipu.text.words import Words, content_terms, content_terms_of, split_words

MIN_QUOTE_WORDS = 20  # a shorter sentence is quoted with the next of its line: "Awesome!" says nothing alone

_HEADING = re.compile(r"#{1,6}\s")
# A line that says nothing itself: a fence of code (with its language), a rule, or the line below a table's head.
_MARKUP_LINE = re.compile(r"\s*+(?:(?:`{3,}|~{3,})[^`]*|[-=+|:*_\s]{3,})")


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotableSentence:
    """Characters [start, end) of a passage's text: a sentence, or a few short ones of one line.

    `terms` are its content words. `about` adds the content words of title and headings, since each sentence of a page
    is also about its subject.
    """

    passage: Passage
    start: int
    end: int
    terms: frozenset[str]
    about: frozenset[str]

    @property
    def text(self) -> str:
        """The words, exactly as in the document."""
        return self.passage.chunk.text[self.start : self.end]


def quotable_sentences(passages: Iterable[Passage]) -> list[QuotableSentence]:
    """Return all quotable sentences, in the order of the passages and of their text."""
    return [sentence for passage in passages for sentence in _sentences_of_passage(passage)]


def _sentences_of_passage(passage: Passage) -> Iterator[QuotableSentence]:
    chunk = passage.chunk
    topic = frozenset(term for text in (chunk.title, *chunk.headings, chunk.header) for term in content_terms_of(text))
    for span in _spans(chunk):
        terms = frozenset(content_terms(span.words))
        yield QuotableSentence(passage=passage, start=span.start, end=span.end, terms=terms, about=terms | topic)


@dataclass(frozen=True, slots=True)
class _SentenceSpan:
    """Characters [start, end), the index of the first word in the chunk, and the words."""

    start: int
    end: int
    first: int
    words: Words


def _spans(chunk: Chunk) -> list[_SentenceSpan]:
    """Return the sentences of a chunk without its headings, each short one joined to those after it on its line."""
    words = split_words(chunk.text)
    starts = words.starts
    headings = {chunk.title, *chunk.headings}
    spans: list[_SentenceSpan] = []
    for start, end in _sentence_bounds(chunk.text):
        first, last = bisect_left(starts, start), bisect_left(starts, end)
        if first == last or _HEADING.match(chunk.text, start) or chunk.text[start:end] in headings:
            continue
        if spans and len(spans[-1].words) < MIN_QUOTE_WORDS and "\n" not in chunk.text[spans[-1].end : start]:
            short = spans.pop()
            spans.append(_SentenceSpan(short.start, end, short.first, words[short.first : last]))
        else:
            spans.append(_SentenceSpan(start, end, first, words[first:last]))
    return spans


def _sentence_bounds(text: str) -> Iterator[tuple[int, int]]:
    """Yield the [start, end) of each sentence. A line of markup alone ends a sentence and belongs to none."""
    for start, end in sentence_spans(text):
        part_start = line_start = start
        for line in text[start:end].split("\n"):
            if _MARKUP_LINE.fullmatch(line):
                yield from _trimmed(text, part_start, line_start)
                part_start = line_start + len(line)
            line_start += len(line) + 1
        yield from _trimmed(text, part_start, end)


def _trimmed(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the bounds without the space around the text, nothing where there is only space."""
    piece = text[start:end]
    if trimmed := piece.strip():
        first = start + piece.index(trimmed)
        yield first, first + len(trimmed)


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightedStatement:
    """A statement with the weight of each of its content words, in order, and their sum."""

    weights: Mapping[str, float]
    total: float

    @classmethod
    def of(cls, text: str, candidates: Sequence[QuotableSentence]) -> "WeightedStatement":
        """Return the statement with each word weighted by its IDF among the n candidates: ln(1 + n / (1 + df)).

        A word that all candidates hold says little about which of them is cited, and a word that none of them holds
        weighs most.
        """
        df = {term: sum(term in candidate.about for candidate in candidates) for term in content_terms_of(text)}
        weights = {term: math.log1p(len(candidates) / (1 + n_candidates)) for term, n_candidates in df.items()}
        return cls(weights=weights, total=sum(weights.values()))

    def share(self, terms: Container[str], *, unless: Container[str] = ()) -> float:
        """Return the share of the total weight that belongs to words in `terms` and not in `unless`, 0 to 1."""
        matching = sum(weight for term, weight in self.weights.items() if term in terms and term not in unless)
        return matching / self.total if self.total else 0.0
