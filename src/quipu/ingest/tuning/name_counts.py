"""Name counts: what rules find in a sample without a model: entity types, frequent names and subjects of the texts."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from quipu.ingest.documents import extractor_input
from quipu.ingest.local.extraction import extract_chunk
from quipu.model.extraction import GlossaryTerm, TypeRule
from quipu.model.graph import OTHER_TYPE, Chunk
from quipu.model.tuning import TypeCount
from quipu.text.names import entity_key
from quipu.text.unicode import is_unspaced
from quipu.text.words import STOP_WORDS, split_words, stem

MAX_SUCH_AS = 3  # example names of a type
MAX_TERMS = 12  # of the glossary
MIN_CHUNKS = 2  # that contain a name of the glossary
MAX_TITLES, MAX_SUBJECTS = 4, 8  # of the domain
MAX_TITLE_LENGTH = 60  # characters
MIN_WORD_LENGTH = 4  # of a characteristic word


@dataclass(frozen=True, slots=True)
class NameCounts:
    """What rules find in a sample: a draft of the domain, entity types with counts, and frequent names."""

    domain: str
    types: tuple[TypeCount, ...]
    glossary: tuple[GlossaryTerm, ...]

    def type_rules(self, current: Iterable[TypeRule]) -> tuple[TypeRule, ...]:
        """Return the types that were found, the most frequent first, with their `current` descriptions."""
        rule_by_name = {rule.name: rule for rule in current}
        return tuple(rule_by_name.get(count.name, TypeRule(name=count.name)) for count in self.types)


def count_names(chunks: Sequence[Chunk]) -> NameCounts:
    """Return what the rules of the local extractor find in all the chunks together."""
    n_by_type: Counter[str] = Counter()
    name_by_key: defaultdict[str, _NameCount] = defaultdict(_NameCount)
    for chunk in chunks:
        extraction = extract_chunk(extractor_input(chunk))
        for entity in extraction.entities:
            n_by_type[entity.type] += 1
            name_by_key[entity_key(entity.name)].add(entity.name, entity.type)
        for alias in extraction.aliases:
            name_by_key[entity_key(alias.name)].aliases[alias.alias] += 1
    del n_by_type[OTHER_TYPE]
    ranked = [name for _, name in sorted(name_by_key.items(), key=lambda entry: (-entry[1].n, entry[0]))]
    return NameCounts(
        domain=_draft_domain(chunks, ranked),
        types=tuple(
            TypeCount(
                name=type_, n=n, examples=tuple(name.surface for name in ranked if name.type == type_)[:MAX_SUCH_AS]
            )
            for type_, n in sorted(n_by_type.items(), key=lambda entry: (-entry[1], entry[0]))
        ),
        glossary=tuple(name.term() for name in ranked if name.n >= MIN_CHUNKS)[:MAX_TERMS],
    )


class _NameCount:
    """How many chunks contain a name: by surface form, by type, and with which aliases."""

    def __init__(self) -> None:
        self.surfaces: Counter[str] = Counter()
        self.types: Counter[str] = Counter()
        self.aliases: Counter[str] = Counter()

    def add(self, surface: str, type_: str) -> None:
        self.surfaces[surface] += 1
        self.types[type_] += type_ != OTHER_TYPE

    @property
    def n(self) -> int:
        return self.surfaces.total()

    @property
    def surface(self) -> str:
        return _most_frequent(self.surfaces)

    @property
    def type(self) -> str:
        return _most_frequent(self.types) if self.types.total() else ""

    def term(self) -> GlossaryTerm:
        aliases = tuple(sorted(alias for alias in self.aliases if alias not in self.surfaces))
        return GlossaryTerm(name=self.surface, type=self.type, aliases=aliases)


def _most_frequent(counts: Counter[str]) -> str:
    """Return the most frequent text, the first by alphabet among several; "" if there is none."""
    return min(counts, key=lambda text: (-counts[text], text), default="")


def _draft_domain(chunks: Sequence[Chunk], names: Sequence[_NameCount]) -> str:
    """Return a draft of the domain: titles of the documents, and frequent subjects of the texts."""
    titles = list(dict.fromkeys(title for chunk in chunks if (title := " ".join(chunk.title.split()))))
    listed = ", ".join(f"“{title[:MAX_TITLE_LENGTH]}”" for title in titles[:MAX_TITLES])
    more = f" and {len(titles) - MAX_TITLES:,} more" if len(titles) > MAX_TITLES else ""
    frequent = [name.surface for name in names if name.n >= MIN_CHUNKS and name.surface not in titles]
    subjects = list(dict.fromkeys((*_characteristic_words(chunks), *frequent)))[:MAX_SUBJECTS]
    parts = [f"Documents such as {listed}{more}."] if listed else []
    return " ".join([*parts, *([f"They often speak of {', '.join(subjects)}."] if subjects else [])])


def _characteristic_words(chunks: Sequence[Chunk]) -> list[str]:
    """Return the words with the highest tf-idf over the chunks, at most half of `MAX_SUBJECTS`."""
    n_by_term: Counter[str] = Counter()
    n_chunks: Counter[str] = Counter()
    surfaces: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for chunk in chunks:
        words = split_words(chunk.text)
        n_in_chunk = Counter[str]()
        for form, kind in zip(words.forms, words.kinds, strict=True):
            if not kind and len(form) >= MIN_WORD_LENGTH and form not in STOP_WORDS and not is_unspaced(form):
                n_in_chunk[stem(form)] += 1
                surfaces[stem(form)][form] += 1
        n_by_term += n_in_chunk
        n_chunks.update(n_in_chunk.keys())
    scores = {
        term: round(n * math.log(1 + len(chunks) / n_chunks[term]), 6)
        for term, n in n_by_term.items()
        if n_chunks[term] >= MIN_CHUNKS
    }
    ranked = sorted(scores, key=lambda term: (-scores[term], term))
    return [_most_frequent(surfaces[term]) for term in ranked[: MAX_SUBJECTS // 2]]
