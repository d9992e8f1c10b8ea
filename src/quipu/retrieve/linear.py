"""linear: from the entities a question names, through sentences near it, to other entities; then PageRank.

Source: L. Zhuang et al., "LinearRAG: Linear Graph Retrieval Augmented Generation on Large-scale Corpora" (2025),
sections 3 and 4. The graph consists of entities, sentences and passages, made without a language model.

1. Seeds: the entities that the question names have activation 1 and tier 1.
2. Entity activation by semantic bridging: in each step every active entity selects its sentences nearest to the
   question. The activation of the entity times the cosine of the sentence is passed on to the other entities in the
   sentence. An entity keeps its highest activation, and the tier of the step in which it was first reached.
3. Global importance aggregation: personalised PageRank over entities and passages, with the activations as the reset of
   the entities, and for passages 0.05 · (1.5 · similarity + ln(1 + Σ activation / tier · ln(1 + mentions))).

Differences from the paper:
- The names that spaCy finds are searched by vector → entities of that name are taken; for an unknown name the nearest
  from `linear_min_activation` or `min_similarity`, if the derivation `names` exists, because a name is certain.
- In one step the activations that several sentences pass to an entity add up; between steps the highest counts → the
  highest counts in both, unless `linear_sums`, because a frequent entity would gain with each sentence.
- δ is 0.5, tuned for each set → `linear_min_activation`, because sentences and questions are less similar with Quipu's
  embedders.
- An entity selects 1 sentence, tuned for each set → `linear_sentences`, because one value serves all documents.
- All passages of an entity, and all active entities → `linear_passages`, the nearest to the question, and
  `linear_expanded` entities in a step, because the time must not grow with the index.
- 5 passages → `chunk_top_k` passages, because one limit makes strategies comparable.

Differences from the authors' code, which departs from the paper:
- All activations of an entity add up → the highest counts, because a seed reinforces itself otherwise.
- The first entity of a step that selects a sentence excludes the others → entities of one step may select the same one,
  because their order has no meaning.
- Mentions are counted as substrings → as words, because "US" is in "bus".
- Neighbouring passages are linked → they are not, because the paper does not link them.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from quipu.algo.similarity import largest_with_ties
from quipu.model.derivation import NAMES, SENTENCES
from quipu.model.evidence import Evidence, Hit, Scored, Seed
from quipu.model.graph import EntityMention
from quipu.model.ids import sentence_id
from quipu.model.query import Options, Query, option
from quipu.ports.derivation_view import NodeKind, Sentence
from quipu.ports.store import ReadView, VectorSpace
from quipu.ports.topology import Floats, Topology
from quipu.retrieve.steps.graph_walk import MentionWeight, WalkWeights, build_walk_graph, walk_to_passages
from quipu.retrieve.steps.seeds import Vector, embed, find_nearest_passages, link_names, score_all_passages
from quipu.retrieve.strategy import Strategy, Tools
from quipu.text.formatting import format_count
from quipu.text.names import capitalised_spans, count_occurrences, group_by_anchor, may_contain, name_forms
from quipu.text.words import split_words


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearOptions(Options):
    """The options of `linear`."""

    linear_min_activation: float = option(0.2, "Minimum activation (δ).", between=(0.0, 1.0), faithful=0.5)
    linear_sums: bool = option(False, "Add up the activations that an entity gets in one step.", faithful=True)
    linear_steps: int = option(2, "Steps from the named entities to others.", between=(0, 10))
    linear_sentences: int = option(3, "Sentences that an active entity selects.", between=(1, 100), faithful=1)
    linear_passages: int = option(20, "Passages read for an active entity.", between=(1, 10**6), faithful=10**6)
    linear_expanded: int = option(20, "Active entities that select sentences.", between=(1, 10**6), faithful=10**6)
    linear_passage_weight: float = option(0.05, "Weight of passages in the reset.", between=(0.0, 100.0))
    linear_similarity_weight: float = option(1.5, "Weight of similarity in it (λ).", between=(0.0, 100.0))
    linear_damping: float = option(0.5, "Probability that the walk goes on at each step.", between=(0.0, 0.99))


@dataclass(frozen=True, slots=True, kw_only=True)
class Activation:
    """The activation of an entity, from 0 to 1, and the step in which it was first reached: 1 for a seed."""

    score: float
    tier: int


async def retrieve(query: Query, view: ReadView, tools: Tools) -> Evidence:
    """Return the `chunk_top_k` passages with the highest PageRank, and the active entities."""
    seeds, vector, notes = await _find_seeds(query, view, tools)  # step 1
    if not seeds:
        chunks, seed = await find_nearest_passages(query, vector, view, tools)
        note = "the question contains no entity name: the passages nearest to it are used instead"
        return Evidence(chunks=chunks, seeds=(seed,), notes=(note, *notes))
    topology = await tools.topology.open(view)
    similarity = await score_all_passages(vector, topology, view, tools)
    options = query.options_of(LinearOptions)
    bridging = SemanticBridging(
        vector=vector, similarity=similarity, topology=topology, view=view, tools=tools, options=options
    )
    active = await bridging.activate({match.id: match.score for seed in seeds for match in seed.matches})  # step 2
    best = sorted(active.items(), key=lambda pair: (-pair[1].score, pair[0]))[: query.top_k]
    unread = f"not read, because these entities occur too often: {format_count(bridging.n_unread, 'neighbour')}"
    return Evidence(
        chunks=await _aggregate_importance(active, similarity, query=query, topology=topology, view=view),  # step 3
        entities=tuple(Hit(id=key, score=entity.score, reason=_entity_reason(entity)) for key, entity in best),
        seeds=seeds,
        notes=(*notes, *((unread,) if bridging.n_unread else ())),
    )


async def _find_seeds(query: Query, view: ReadView, tools: Tools) -> tuple[tuple[Seed, ...], Vector, tuple[str, ...]]:
    """Return the entities that the question names, its vector, and notes for the trace."""
    names = await link_names(query.text, view)
    unknown = [
        query.text[start:end]
        for start, end in capitalised_spans(query.text)
        if not any(name.start < end and start < name.end for name in names)
    ]
    has_name_vectors = NAMES in await view.derivations()
    vectors = await embed([query.text, *(unknown if has_name_vectors else ())], tools.embedder)
    seeds = [
        Seed(text=name.surface, kind="name", matches=tuple(Scored(id=key, score=1.0) for key in name.keys))
        for name in names
    ]
    notes: tuple[str, ...] = ()
    if unknown and has_name_vectors:
        rows = np.stack([vectors[surface] for surface in unknown])
        min_cosine = max(query.options_of(LinearOptions).linear_min_activation, query.min_similarity)
        nearest = await tools.vectors.nearest(view, VectorSpace.NAME, rows, k=1, min_score=min_cosine)
        seeds += [
            Seed(text=surface, kind="vector", matches=tuple(matches))
            for surface, matches in zip(unknown, nearest, strict=True)
            if matches
        ]
    elif unknown:
        notes = (f"unknown names ignored: {', '.join(unknown)}; run `quipu refresh {NAMES}` to match similar names",)
    return tuple(seeds), vectors[query.text], notes


@dataclass(slots=True, kw_only=True)
class SemanticBridging:
    """Spreads activation from entity to entity through the sentences nearest to one question.

    `similarity` is that of each passage to the question, [n_chunks]. `n_unread` counts passages that were not read and
    entities that were not expanded.
    """

    vector: Vector
    similarity: Floats
    topology: Topology
    view: ReadView
    tools: Tools
    options: LinearOptions
    n_unread: int = 0
    _used_sentences: set[str] = field(default_factory=set)

    async def activate(self, seeds: Mapping[str, float]) -> dict[str, Activation]:
        """Return every entity that reaches the minimum activation in these steps, with the seeds."""
        active = {key: Activation(score=score, tier=1) for key, score in seeds.items()}
        frontier = dict(seeds)
        for tier in range(2, self.options.linear_steps + 2):
            reached = await self._step(self._most_active(frontier))
            frontier = {key: score for key, score in reached.items() if key not in active or score > active[key].score}
            for key, score in frontier.items():
                active[key] = Activation(score=score, tier=active[key].tier if key in active else tier)
        return active

    def _most_active(self, frontier: Mapping[str, float]) -> dict[str, float]:
        ordered = sorted(frontier.items(), key=lambda pair: (-pair[1], pair[0]))
        n = self.options.linear_expanded
        self.n_unread += len(ordered[n:])
        return {key: score for key, score in ordered[:n] if score >= self.options.linear_min_activation}

    async def _step(self, frontier: Mapping[str, float]) -> dict[str, float]:
        """Return the activation that each entity receives from the frontier."""
        passages_by_key = await self._read_passages(list(frontier))
        sentences_by_key = {
            key: [sentence for passage in passages for sentence in passage.sentences_with(key)]
            for key, passages in passages_by_key.items()
        }
        ids = {_id_of(sentence) for sentences in sentences_by_key.values() for sentence in sentences}
        cosines: Mapping[str, float] = {}
        if unused := sorted(ids - self._used_sentences):
            cosines = await self.tools.vectors.similarities(self.view, VectorSpace.SENTENCE, self.vector, unused)
        is_sum, minimum = self.options.linear_sums, self.options.linear_min_activation
        reached: defaultdict[str, float] = defaultdict(float)
        for key, passages in passages_by_key.items():
            passage_by_chunk = {passage.chunk: passage for passage in passages}
            for cosine, sentence in _nearest_sentences(sentences_by_key[key], cosines)[: self.options.linear_sentences]:
                self._used_sentences.add(_id_of(sentence))
                score = round(frontier[key] * cosine, 6)
                if score >= (0.0 if is_sum else minimum):
                    for other in passage_by_chunk[sentence.chunk].entities_in(sentence):
                        if other != key:
                            reached[other] = reached[other] + score if is_sum else max(reached[other], score)
        return {key: round(score, 6) for key, score in reached.items() if score >= minimum}

    async def _read_passages(self, keys: Sequence[str]) -> dict[str, list["_AnnotatedPassage"]]:
        """Return the passages that mention each entity; of too many the nearest to the question."""
        n, number_by_key = self.options.linear_passages, await self.view.numbers(NodeKind.ENTITY, keys)
        mentions = self.topology.occurrences().neighbours(np.array(list(number_by_key.values()), dtype=np.int64))
        all_chunks = {key: mentions.columns[mentions.positions == row] for row, key in enumerate(number_by_key)}
        candidates = {key: chunks[largest_with_ties(self.similarity[chunks], n)] for key, chunks in all_chunks.items()}
        numbers = {number for chunks in candidates.values() for number in chunks.tolist()}
        ids = await self.view.ids(NodeKind.CHUNK, sorted(numbers))
        nearest: dict[str, list[int]] = {}
        for key, chunks in candidates.items():
            ordered = sorted((-float(self.similarity[number]), ids[number], number) for number in chunks.tolist())
            nearest[key] = [number for _, _, number in ordered[:n]]
            self.n_unread += len(all_chunks[key]) - len(nearest[key])
        passages = await self._annotate({number: ids[number] for chunks in nearest.values() for number in chunks})
        return {key: [passages[number] for number in chunks if number in passages] for key, chunks in nearest.items()}

    async def _annotate(self, id_by_number: Mapping[int, str]) -> dict[int, "_AnnotatedPassage"]:
        chunks = sorted(id_by_number.values())
        sentences, mentions = await self.view.sentences(chunks), await self.view.mentions(EntityMention, chunks)
        entities = self.topology.occurrences_by_chunk().neighbours(np.array(list(id_by_number), dtype=np.int64))
        key_by_number = await self.view.ids(NodeKind.ENTITY, np.unique(entities.columns).tolist())
        keys: defaultdict[int, list[str]] = defaultdict(list)
        for row, entity in zip(entities.positions.tolist(), entities.columns.tolist(), strict=True):
            if entity in key_by_number:
                keys[row].append(key_by_number[entity])
        return {
            number: _AnnotatedPassage(chunk, sentences[chunk], mentions.get(chunk, []), keys[row])
            for row, (number, chunk) in enumerate(id_by_number.items())
            if chunk in sentences
        }


@dataclass(frozen=True, slots=True)
class _AnnotatedPassage:
    """The sentences of a chunk, its entity mentions, and the keys of all entities that occur in it."""

    chunk: str
    sentences: Sequence[Sentence]
    mentions: Sequence[EntityMention]
    keys: Sequence[str]

    def sentences_with(self, key: str) -> list[Sentence]:
        """Return the sentences that contain the entity's name or a mention of it."""
        keys_by_anchor, forms = group_by_anchor([key]), name_forms(key)[:1]
        return [
            sentence
            for sentence in self.sentences
            if key in self._mentioned_in(sentence)
            or (may_contain(sentence.text, forms) and count_occurrences(split_words(sentence.text), keys_by_anchor))
        ]

    def entities_in(self, sentence: Sentence) -> list[str]:
        """Return the entities whose name or mention is in a sentence."""
        named = count_occurrences(split_words(sentence.text), group_by_anchor(self.keys))
        return sorted(self._mentioned_in(sentence) | named.keys())

    def _mentioned_in(self, sentence: Sentence) -> set[str]:
        return {m.key for m in self.mentions if sentence.start <= m.start < m.end <= sentence.end}


def _nearest_sentences(sentences: Sequence[Sentence], cosines: Mapping[str, float]) -> list[tuple[float, Sentence]]:
    """Return the sentences with their cosines to the question, nearest first, equal ones by id."""
    ranking = sorted(
        (-cosines[identifier], identifier, sentence.ordinal, sentence)
        for sentence in sentences
        if (identifier := _id_of(sentence)) in cosines
    )
    return [(-negative, sentence) for negative, _, _, sentence in ranking]


def _id_of(sentence: Sentence) -> str:
    return sentence_id(sentence.chunk, sentence.ordinal)


async def _aggregate_importance(
    active: Mapping[str, Activation], similarity: Floats, *, query: Query, topology: Topology, view: ReadView
) -> tuple[Hit, ...]:
    """Return the passages of the highest global importance: PageRank from active entities and all passages."""
    options = query.options_of(LinearOptions)
    graph = build_walk_graph(topology, WalkWeights(mentions=MentionWeight.SHARE))
    reset = np.zeros(graph.n_nodes)
    numbers = await view.numbers(NodeKind.ENTITY, sorted(active))
    for key, number in numbers.items():
        reset[number] = active[key].score
    mentions = topology.occurrences().neighbours(np.array(list(numbers.values()), dtype=np.int64))
    per_entity = np.array([active[key].score / active[key].tier for key in numbers])
    per_mention = per_entity[mentions.positions] * np.log1p(mentions.weights)
    bonus = np.bincount(mentions.columns, per_mention, minlength=topology.n_chunks)
    prior = options.linear_similarity_weight * similarity + np.log1p(bonus)
    reset[graph.n_entities :] = options.linear_passage_weight * prior
    return await walk_to_passages(graph, reset, options.linear_damping, k=query.chunk_top_k, view=view)


def _entity_reason(entity: Activation) -> str:
    if entity.tier == 1:
        return "named in the question"
    return f"reached in step {entity.tier - 1}, activation {entity.score:.3f}"


STRATEGY = Strategy(
    name="linear",
    retrieve=retrieve,
    options=(LinearOptions,),
    faithful={"chunk_top_k": 5, "min_similarity": -1.0},
    summary="from named entities through sentences near the question to others, then PageRank over passages",
    after="LinearRAG",
    when="the question names things and the answer takes several steps; no language model is needed at any time",
    needs=("chunk vectors", "topology", SENTENCES),
    better_with=(NAMES,),
)
