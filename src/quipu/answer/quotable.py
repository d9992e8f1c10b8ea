"""Quotable: the sentences of the packed passages, with what each is about."""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from quipu.answer.pack import Passage
from quipu.model.fold import most_common_type
from quipu.model.graph import Chunk, EntityMention
from quipu.text.content_terms import content_terms, content_terms_of
from quipu.text.names import anchor, count_occurrences, entity_key, name_forms
from quipu.text.sentences import sentence_spans
from quipu.text.words import Words, split_words

MIN_QUOTE_WORDS = 20  # a shorter sentence is quoted with the next of its line: "Awesome!" says nothing alone

_HEADING = re.compile(r"#{1,6}\s")
# A line that says nothing itself: a fence of code (with its language), a rule, or the line below a table's head.
_FURNITURE = re.compile(r"\s*+(?:(?:`{3,}|~{3,})[^`]*|[-=+|:*_\s]{3,})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Quotable:
    """Characters [start, end) of a passage's text: a sentence, or a few short ones of one line.

    `terms` are its content words, `about` adds those of its title and headings: the subject of a page is understood in
    each of its sentences. `names` are the keys of entities named in it, `subject` the key of its title.
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
class KnownNames:
    """The entities the passages mention: their keys by the first words of the name, and the type of each."""

    keys_by_anchor: Mapping[str, Sequence[str]]
    type_by_key: Mapping[str, str]

    def within(self, words: Words) -> frozenset[str]:
        """Return the keys of the entities these words name."""
        return frozenset(count_occurrences(words, self.keys_by_anchor))


def known_names(mentions: Iterable[EntityMention]) -> KnownNames:
    """Return the names among `mentions`, each with the type most of them give."""
    types: dict[str, Counter[str]] = {}
    for mention in mentions:
        types.setdefault(mention.key, Counter())[mention.type] += 1
    keys_by_anchor: dict[str, list[str]] = {}
    for key in sorted(types):
        if forms := name_forms(key):
            keys_by_anchor.setdefault(anchor(forms), []).append(key)
    return KnownNames(
        keys_by_anchor=keys_by_anchor, type_by_key={key: most_common_type(counts) for key, counts in types.items()}
    )


def quotables(passages: Iterable[Passage], names: KnownNames) -> list[Quotable]:
    """Return everything quotable, in the order of the passages and of their text."""
    return [quotable for passage in passages for quotable in _of_passage(passage, names)]


def _of_passage(passage: Passage, names: KnownNames) -> list[Quotable]:
    chunk = passage.chunk
    topic = frozenset(term for text in (chunk.title, *chunk.headings, chunk.header) for term in content_terms_of(text))
    subject = entity_key(chunk.title.partition(" (")[0])
    found = []
    for span in _spans(chunk):
        terms = frozenset(content_terms(span.words))
        found.append(
            Quotable(
                passage=passage,
                start=span.start,
                end=span.end,
                terms=terms,
                about=terms | topic,
                names=names.within(span.words),
                subject=subject,
            )
        )
    return found


@dataclass(frozen=True, slots=True)
class _Span:
    start: int
    end: int
    first: int
    words: Words


def _spans(chunk: Chunk) -> list[_Span]:
    """Return the sentences of a chunk without its headings, each short one joined to those after it on its line."""
    words = split_words(chunk.text)
    starts = words.starts
    headings = {chunk.title, *chunk.headings}
    spans: list[_Span] = []
    for start, end in _said(chunk.text):
        first, last = bisect_left(starts, start), bisect_left(starts, end)
        if first == last or _HEADING.match(chunk.text, start) or chunk.text[start:end] in headings:
            continue
        if spans and _is_short(spans[-1]) and "\n" not in chunk.text[spans[-1].end : start]:
            begun = spans.pop()
            spans.append(_Span(begun.start, end, begun.first, words[begun.first : last]))
        else:
            spans.append(_Span(start, end, first, words[first:last]))
    return spans


def _said(text: str) -> Iterator[tuple[int, int]]:
    """Yield the [start, end) of each sentence; a line that is only a fence or a rule ends one and stands in none."""
    for start, end in sentence_spans(text):
        begun = at = start
        for line in text[start:end].split("\n"):
            if _FURNITURE.fullmatch(line):
                yield from _trimmed(text, begun, at)
                begun = at + len(line)
            at += len(line) + 1
        yield from _trimmed(text, begun, end)


def _trimmed(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    piece = text[start:end]
    if said := piece.strip():
        first = start + piece.index(said)
        yield first, first + len(said)


def _is_short(span: _Span) -> bool:
    return len(span.words) < MIN_QUOTE_WORDS
