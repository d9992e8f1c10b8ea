"""Activation: from entities by the sentences they stand in, if these are near the question, to other entities."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from quipu.algo.similarity import largest_with_ties
from quipu.model.graph import EntityMention
from quipu.model.ids import sentence_id
from quipu.ports.derivation_view import NodeKind, Sentence
from quipu.ports.store import ReadView, VectorSpace
from quipu.ports.topology import Floats, Topology
from quipu.retrieve.steps.search import Vector
from quipu.retrieve.strategy import Tools
from quipu.text.names import anchor, count_occurrences, name_forms
from quipu.text.words import split_words

MAX_CHUNKS = 20  # of an entity whose sentences are looked at, the nearest to the question: a hub stands in thousands
MAX_FRONTIER = 20  # entities gone on from at once, the most active


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """How far activity spreads: to entities as active as `least`, by `n_sentences` of each, in `n_steps`."""

    least: float
    n_sentences: int
    n_steps: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Active:
    """How active an entity is, from 0 to 1, and the step it was first reached in: 1 for one the question names."""

    score: float
    tier: int


@dataclass(slots=True, kw_only=True)
class Spread:
    """One question's way from sentence to sentence. `prior` is the nearness of each chunk, [n_chunks]."""

    vector: Vector
    prior: Floats
    topology: Topology
    view: ReadView
    tools: Tools
    n_unread: int = 0  # chunks of hubs that were not looked at, and entities that were not gone on from
    _used: set[str] = field(default_factory=set)  # sentences of earlier steps

    async def from_seeds(self, seeds: Mapping[str, float], reach: Reach) -> dict[str, Active]:
        """Return every entity that is reached: as active as the best way to it, and at least `reach.least`.

        The activity of an entity times the cosine of a sentence with the question is that of the others in it.
        """
        active = {key: Active(score=score, tier=1) for key, score in seeds.items()}
        frontier = dict(seeds)
        for tier in range(2, reach.n_steps + 2):
            found = await self._step(self._first(frontier), reach)
            frontier = {key: score for key, score in found.items() if key not in active or score > active[key].score}
            for key, score in frontier.items():
                active[key] = Active(score=score, tier=active[key].tier if key in active else tier)
        return active

    def _first(self, frontier: Mapping[str, float]) -> dict[str, float]:
        ordered = sorted(frontier.items(), key=lambda item: (-item[1], item[0]))
        self.n_unread += len(ordered[MAX_FRONTIER:])
        return dict(ordered[:MAX_FRONTIER])

    async def _step(self, frontier: Mapping[str, float], reach: Reach) -> dict[str, float]:
        going = {key: score for key, score in frontier.items() if score >= reach.least}
        texts = await self._texts_of(list(going))
        held = {key: [each for text in read for each in text.naming(key)] for key, read in texts.items()}
        ids = sorted({sentence_id(s.chunk, s.ordinal) for each in held.values() for s in each} - self._used)
        cosines = (
            await self.tools.vectors.similarities(self.view, VectorSpace.SENTENCE, self.vector, ids) if ids else {}
        )
        found: defaultdict[str, float] = defaultdict(float)
        for key, read in texts.items():
            text_by_chunk = {text.chunk: text for text in read}
            for cosine, sentence in _nearest(held[key], cosines, reach.n_sentences):
                self._used.add(sentence_id(sentence.chunk, sentence.ordinal))
                score = round(going[key] * cosine, 6)
                if score >= reach.least:
                    for other in text_by_chunk[sentence.chunk].named_in(sentence):
                        if other != key:
                            found[other] = max(found[other], score)
        return found

    async def _texts_of(self, keys: Sequence[str]) -> dict[str, list["_Text"]]:
        """Return the texts of the chunks each entity stands in, of many the nearest to the question."""
        number_by_key = await self.view.numbers(NodeKind.ENTITY, keys)
        numbers = np.array(list(number_by_key.values()), dtype=np.int64)
        standing = self.topology.occurrences().neighbours(numbers)
        chunks = {key: standing.columns[standing.positions == place] for place, key in enumerate(number_by_key)}
        best = {key: each[largest_with_ties(self.prior[each], MAX_CHUNKS)] for key, each in chunks.items()}
        ids = await self.view.ids(
            NodeKind.CHUNK, sorted({number for each in best.values() for number in each.tolist()})
        )
        nearest: dict[str, list[int]] = {}
        for key, each in best.items():
            ordered = sorted((-float(self.prior[number]), ids[number], number) for number in each.tolist())
            nearest[key] = [number for _, _, number in ordered[:MAX_CHUNKS]]
            self.n_unread += len(chunks[key]) - len(nearest[key])
        texts = await self._read({number: ids[number] for each in nearest.values() for number in each})
        return {key: [texts[number] for number in each if number in texts] for key, each in nearest.items()}

    async def _read(self, id_by_number: Mapping[int, str]) -> dict[int, "_Text"]:
        chunks = sorted(id_by_number.values())
        sentences, mentions = await self.view.sentences(chunks), await self.view.entity_mentions(chunks)
        numbers = np.array(list(id_by_number), dtype=np.int64)
        named = self.topology.occurrences_by_chunk().neighbours(numbers)
        key_by_number = await self.view.ids(NodeKind.ENTITY, np.unique(named.columns).tolist())
        keys: defaultdict[int, list[str]] = defaultdict(list)
        for place, entity in zip(named.positions.tolist(), named.columns.tolist(), strict=True):
            if entity in key_by_number:
                keys[place].append(key_by_number[entity])
        return {
            number: _Text(chunk, sentences[chunk], mentions.get(chunk, []), keys[place])
            for place, (number, chunk) in enumerate(id_by_number.items())
            if chunk in sentences
        }


@dataclass(frozen=True, slots=True)
class _Text:
    """The sentences of a chunk, what it says about entities, and the keys of those that stand in it."""

    chunk: str
    sentences: Sequence[Sentence]
    mentions: Sequence[EntityMention]
    keys: Sequence[str]

    def naming(self, key: str) -> list[Sentence]:
        """Return the sentences that name an entity: by the word, or where a mention of it was found."""
        by_anchor, first = _by_anchor([key]), name_forms(key)[:1]
        return [
            s for s in self.sentences if self._mentions(s, key) or (_may_name(s.text, first) and _names(s, by_anchor))
        ]

    def named_in(self, sentence: Sentence) -> list[str]:
        """Return the entities a sentence names."""
        mentioned = {each.key for each in self.mentions if sentence.start <= each.start < each.end <= sentence.end}
        return sorted(mentioned | _names(sentence, _by_anchor(self.keys)).keys())

    def _mentions(self, sentence: Sentence, key: str) -> bool:
        return any(m.key == key and sentence.start <= m.start < m.end <= sentence.end for m in self.mentions)


def _by_anchor(keys: Sequence[str]) -> dict[str, list[str]]:
    found: defaultdict[str, list[str]] = defaultdict(list)
    for key in keys:
        found[anchor(name_forms(key))].append(key)
    return found


def _names(sentence: Sentence, by_anchor: Mapping[str, Sequence[str]]) -> dict[str, int]:
    return count_occurrences(split_words(sentence.text), by_anchor)


def _may_name(text: str, first: Sequence[str]) -> bool:
    """Say quickly whether a sentence may hold a name; where its words are spelt otherwise than it, they are split."""
    return not text.isascii() or "'" in text or all(form in text.lower() for form in first)


def _nearest(sentences: Sequence[Sentence], cosines: Mapping[str, float], n: int) -> list[tuple[float, Sentence]]:
    """Return the n sentences nearest to the question, equally near ones by id."""
    known = [(sentence_id(each.chunk, each.ordinal), each) for each in sentences]
    found = sorted(
        (-cosines[identifier], identifier, each.ordinal, each) for identifier, each in known if identifier in cosines
    )
    return [(-distance, each) for distance, _, _, each in found[:n]]
