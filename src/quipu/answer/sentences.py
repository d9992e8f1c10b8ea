"""Sentences: the quotable sentences of packed passages, and the weighted words of a question they are compared with."""

import math
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from quipu.answer.context import Passage
from quipu.model.fold import most_common_type
from quipu.model.graph import OTHER_TYPE, UNKNOWN_TYPE, Chunk, EntityMention
from quipu.text.content_terms import content_terms, content_terms_of
from quipu.text.names import anchor, count_occurrences, entity_key, name_forms
from quipu.text.questions import AnswerType, expected_answer_type, offers_answer
from quipu.text.sentences import sentence_spans
from quipu.text.words import Words, split_words

MIN_QUOTE_WORDS = 20  # a shorter sentence is quoted with the next of its line: "Awesome!" says nothing alone

_HEADING = re.compile(r"#{1,6}\s")
# A line that says nothing itself: a fence of code (with its language), a rule, or the line below a table's head.
_MARKUP_LINE = re.compile(r"\s*+(?:(?:`{3,}|~{3,})[^`]*|[-=+|:*_\s]{3,})")
_ENTITY_TYPE_BY_ANSWER_TYPE = {AnswerType.PERSON: "Person", AnswerType.PLACE: "Location"}
_UNTYPED = frozenset({OTHER_TYPE, UNKNOWN_TYPE})


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotableSentence:
    """Characters [start, end) of a passage's text: a sentence, or a few short ones of one line.

    `terms` are its content words. `about` adds the content words of title and headings, since each sentence of a page
    is also about its subject. `names` are the keys of entities it names, `subject` is the key of the title.
    """

    passage: Passage
    start: int
    end: int
    terms: frozenset[str]
    about: frozenset[str]
    names: frozenset[str]
    subject: str

    @property
    def text(self) -> str:
        """The words, exactly as in the document."""
        return self.passage.chunk.text[self.start : self.end]


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityNames:
    """The entities that passages mention: their keys by the anchor of the name, and the type of each key."""

    keys_by_anchor: Mapping[str, Sequence[str]]
    type_by_key: Mapping[str, str]

    @classmethod
    def of(cls, mentions: Iterable[EntityMention]) -> "EntityNames":
        """Return the names in mentions, each with its most common type."""
        types: dict[str, Counter[str]] = {}
        for mention in mentions:
            types.setdefault(mention.key, Counter())[mention.type] += 1
        keys_by_anchor: dict[str, list[str]] = {}
        for key in sorted(types):
            if forms := name_forms(key):
                keys_by_anchor.setdefault(anchor(forms), []).append(key)
        return cls(
            keys_by_anchor=keys_by_anchor,
            type_by_key={key: most_common_type(counts) for key, counts in types.items()},
        )

    def within(self, words: Words) -> frozenset[str]:
        """Return the keys of the entities that these words name."""
        return frozenset(count_occurrences(words, self.keys_by_anchor))


NO_NAMES = EntityNames.of(())


def quotable_sentences(passages: Iterable[Passage], names: EntityNames) -> list[QuotableSentence]:
    """Return all quotable sentences, in the order of the passages and of their text."""
    return [sentence for passage in passages for sentence in _sentences_of_passage(passage, names)]


def _sentences_of_passage(passage: Passage, names: EntityNames) -> Iterator[QuotableSentence]:
    chunk = passage.chunk
    topic = frozenset(term for text in (chunk.title, *chunk.headings, chunk.header) for term in content_terms_of(text))
    subject = entity_key(chunk.title.partition(" (")[0])
    for span in _spans(chunk):
        terms = frozenset(content_terms(span.words))
        yield QuotableSentence(
            passage=passage,
            start=span.start,
            end=span.end,
            terms=terms,
            about=terms | topic,
            names=names.within(span.words),
            subject=subject,
        )


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
        if spans and _is_short(spans[-1]) and "\n" not in chunk.text[spans[-1].end : start]:
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


def _is_short(span: _SentenceSpan) -> bool:
    return len(span.words) < MIN_QUOTE_WORDS


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightedQuestion:
    """A question with the weight of each of its content words, in order, and the kind of answer it expects.

    `forms` are the words of the question in all their forms, `names` the entities that the passages mention.
    """

    text: str
    weights: Mapping[str, float]
    answer_type: AnswerType
    forms: frozenset[str]
    names: EntityNames

    @classmethod
    def of(cls, text: str, candidates: Sequence[QuotableSentence], names: EntityNames) -> "WeightedQuestion":
        """Return the question with each word weighted by its IDF among the n candidates: ln(1 + n / (1 + df)).

        The candidates were found for this question: a word that all of them hold says little about where the answer is,
        and a word that none of them holds weighs most.
        """
        words = split_words(text)
        df = Counter(term for candidate in candidates for term in candidate.about)
        return cls(
            text=text,
            weights={term: math.log1p(len(candidates) / (1 + df[term])) for term in content_terms(words)},
            answer_type=expected_answer_type(text),
            forms=frozenset(words.forms),
            names=names,
        )

    def share(self, terms: Container[str], *, unless: Container[str] = ()) -> float:
        """Return the share of the total weight that belongs to words in `terms` and not in `unless`, 0 to 1."""
        total = sum(self.weights.values())
        matching = sum(weight for term, weight in self.weights.items() if term in terms and term not in unless)
        return matching / total if total else 0.0

    def is_offered_by(self, sentence: QuotableSentence) -> bool:
        """Return whether a sentence holds an answer of the expected kind that the question does not name itself.

        An entity of unknown type counts as one of the expected kind.
        """
        if self.answer_type not in (AnswerType.PERSON, AnswerType.PLACE, AnswerType.NAME):
            return offers_answer(self.answer_type, sentence.text, self.text)
        return any(self._has_expected_type(key) and not self.is_named(key) for key in sentence.names)

    def is_named(self, key: str) -> bool:
        """Return whether every word of an entity's name occurs in the question."""
        return self.forms.issuperset(name_forms(key))

    def _has_expected_type(self, key: str) -> bool:
        expected = _ENTITY_TYPE_BY_ANSWER_TYPE.get(self.answer_type)
        entity_type = self.names.type_by_key.get(key, UNKNOWN_TYPE)
        return expected is None or entity_type == expected or entity_type in _UNTYPED
