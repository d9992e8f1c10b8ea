"""Counting: what rules find in a sample, where no model is asked: types, frequent names, what documents speak of."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from quipu.ingest.documents import extractor_input
from quipu.ingest.local.extraction import extract_chunk
from quipu.model.extraction import GlossaryTerm, TypeRule
from quipu.model.graph import OTHER_TYPE, Chunk
from quipu.model.tuning import TypeCount
from quipu.text.content_terms import STOP_WORDS, stem
from quipu.text.names import entity_key
from quipu.text.unicode import is_unspaced
from quipu.text.words import split_words

MAX_SUCH_AS = 3  # names given for a type
MAX_TERMS = 12  # of the glossary
LEAST_CHUNKS = 2  # that have a name of the glossary
MAX_TITLES, MAX_SUBJECTS = 4, 8  # of the domain
MAX_TITLE = 60  # characters
LEAST_LETTERS = 4  # of a telling word


@dataclass(frozen=True, slots=True)
class Counted:
    """What a sample holds, by rules."""

    domain: str
    types: tuple[TypeCount, ...]
    glossary: tuple[GlossaryTerm, ...]

    def rules(self, known: Iterable[TypeRule]) -> tuple[TypeRule, ...]:
        """Return the types that were found, the most frequent first, as they are described now."""
        described = {rule.name: rule for rule in known}
        return tuple(described.get(each.name, TypeRule(name=each.name)) for each in self.types)


def count(chunks: Sequence[Chunk]) -> Counted:
    """Return what the rules of the local extractor find in the chunks, all of them together."""
    n_by_type: Counter[str] = Counter()
    names: defaultdict[str, _Name] = defaultdict(_Name)
    for chunk in chunks:
        found = extract_chunk(extractor_input(chunk))
        for entity in found.entities:
            n_by_type[entity.type] += 1
            names[entity_key(entity.name)].add(entity.name, entity.type)
        for alias in found.aliases:
            names[entity_key(alias.name)].aliases[alias.alias] += 1
    del n_by_type[OTHER_TYPE]
    ranked = sorted(names.items(), key=lambda each: (-each[1].n, each[0]))
    return Counted(
        domain=_domain(chunks, [name for _, name in ranked]),
        types=tuple(
            TypeCount(name=kind, n=n, examples=_such_as(kind, [name for _, name in ranked]))
            for kind, n in sorted(n_by_type.items(), key=lambda each: (-each[1], each[0]))
        ),
        glossary=tuple(name.term() for _, name in ranked if name.n >= LEAST_CHUNKS)[:MAX_TERMS],
    )


class _Name:
    """A name, as often as chunks have it."""

    def __init__(self) -> None:
        self.surfaces: Counter[str] = Counter()
        self.types: Counter[str] = Counter()
        self.aliases: Counter[str] = Counter()

    def add(self, surface: str, kind: str) -> None:
        self.surfaces[surface] += 1
        self.types[kind] += kind != OTHER_TYPE

    @property
    def n(self) -> int:
        return self.surfaces.total()

    @property
    def shown(self) -> str:
        return _first(self.surfaces)

    @property
    def kind(self) -> str:
        return _first(self.types) if self.types.total() else ""

    def term(self) -> GlossaryTerm:
        aliases = tuple(sorted(alias for alias in self.aliases if alias not in self.surfaces))
        return GlossaryTerm(name=self.shown, type=self.kind, aliases=aliases)


def _first(counts: Counter[str]) -> str:
    """Return the most frequent, "" of none; of several the first by alphabet."""
    return min(counts, key=lambda each: (-counts[each], each), default="")


def _such_as(kind: str, names: Sequence[_Name]) -> tuple[str, ...]:
    return tuple(name.shown for name in names if name.kind == kind)[:MAX_SUCH_AS]


def _domain(chunks: Sequence[Chunk], names: Sequence[_Name]) -> str:
    """Return a draft: titles, and what the texts speak of again and again."""
    titles = list(dict.fromkeys(title for chunk in chunks if (title := " ".join(chunk.title.split()))))
    listed = ", ".join(f"“{title[:MAX_TITLE]}”" for title in titles[:MAX_TITLES])
    more = f" and {len(titles) - MAX_TITLES:,} more" if len(titles) > MAX_TITLES else ""
    frequent = [name.shown for name in names if name.n >= LEAST_CHUNKS and name.shown not in titles]
    subjects = list(dict.fromkeys((*_telling(chunks), *frequent)))[:MAX_SUBJECTS]
    parts = [f"Documents such as {listed}{more}."] if listed else []
    return " ".join([*parts, *([f"They often speak of {', '.join(subjects)}."] if subjects else [])])


def _telling(chunks: Sequence[Chunk]) -> list[str]:
    """Return words by frequency times rarity over chunks (tf-idf), half as many as subjects are told."""
    n_by_term: Counter[str] = Counter()
    n_chunks: Counter[str] = Counter()
    surfaces: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for chunk in chunks:
        words = split_words(chunk.text)
        of_chunk = Counter[str]()
        for form, kind in zip(words.forms, words.kinds, strict=True):
            if not kind and len(form) >= LEAST_LETTERS and form not in STOP_WORDS and not is_unspaced(form):
                of_chunk[stem(form)] += 1
                surfaces[stem(form)][form] += 1
        n_by_term += of_chunk
        n_chunks.update(of_chunk.keys())
    scores = {
        term: round(n * math.log(1 + len(chunks) / n_chunks[term]), 6)
        for term, n in n_by_term.items()
        if n_chunks[term] >= LEAST_CHUNKS
    }
    ranked = sorted(scores, key=lambda term: (-scores[term], term))
    return [_first(surfaces[term]) for term in ranked[: MAX_SUBJECTS // 2]]
