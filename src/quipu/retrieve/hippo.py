"""hippo: facts near the question, filtered for relevance, and PageRank from their entities to passages.

Source: B. J. Gutiérrez et al., "From RAG to Memory: Non-Parametric Continual Learning for Large Language Models"
(HippoRAG 2, 2025), sections 3.2 to 3.4.

1. Query to triple: the facts nearest to the question are found by vector; their cosines are scaled to 0 … 1 (min-max).
2. Recognition memory: a language model keeps the relevant ones of the nearest five.
3. Reset probabilities. Phrase nodes: each end of a fact gets the mean score of its facts times its node specificity,
   which is 1 / the number of passages that mention it; the best five are seeds. Passage nodes: every passage is a seed
   too, with 0.05 times its cosine to the question, scaled to 0 … 1 over all passages (min-max).
4. Personalised PageRank over entities and passages ranks the passages. Edges are facts, mentions, and synonyms.

Differences from the paper and its code:
- A fact is one triple → a relation with all of its descriptions, because the index has one relation for a pair.
- Scores are scaled over all facts → over the nearest `hippo_scaled_facts`, and none is below `MIN_FACT_SCORE`, because
  only a few are used, and a seed of 0 is none.
- No minimum cosine → `min_similarity`, because a far fact is no evidence.
- A fact that the model selects is found by similar spelling → by its number, because any reply is similar to some fact.
- Without a filter, the nearest five facts → without a model, the nearest facts about what the question names, `N_FACTS`
  at most, because most others are about something else.
- A triple adds 2 to the edge of its ends, 1 for each direction → each mention of a relation adds `hippo_fact_weight`,
  because an edge has no direction.
- A synonym edge replaces the facts of a pair, with twice its cosine → it adds `hippo_synonym_weight` times the cosine
  to them, if the derivation `synonyms` exists, because the facts would be lost.
- 5 passages are read → `chunk_top_k` passages, because one limit makes strategies comparable.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from quipu.algo.similarity import min_max_scaled
from quipu.model.chat import ChatRequest, ReplyLifetime, Role
from quipu.model.derivation import SYNONYMS
from quipu.model.evidence import Evidence, Hit, Scored, Seed
from quipu.model.ids import relation_ends
from quipu.model.query import Options, Query, option
from quipu.ports.derivation_view import NodeKind
from quipu.ports.store import ReadView, VectorSpace
from quipu.ports.topology import Topology
from quipu.prompts import question as prompt
from quipu.retrieve.steps.graph_walk import (
    MentionWeight,
    WalkWeights,
    build_walk_graph,
    missing_synonyms_note,
    walk_to_passages,
)
from quipu.retrieve.steps.model_replies import read_numbers
from quipu.retrieve.steps.seeds import Vector, embed, find_nearest_passages, link_names, score_all_passages
from quipu.retrieve.strategy import Model, Strategy, Tools

N_FACTS = 5  # facts that the recognition memory sees, or keeps without a model
N_PHRASES = 5
MIN_FACT_SCORE = 0.01  # the farthest fact would otherwise score 0
ALL_FACTS = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class HippoOptions(Options):
    """The options of `hippo`."""

    hippo_scaled_facts: int = option(
        40, "Nearest facts over which scores are scaled.", between=(N_FACTS, ALL_FACTS), faithful=ALL_FACTS
    )
    hippo_fact_weight: float = option(1.0, "Weight of each mention of a relation.", between=(0.0, 100.0), faithful=2.0)
    hippo_synonym_weight: float = option(1.0, "Weight of synonyms, times cosine.", between=(0.0, 100.0), faithful=2.0)
    hippo_passage_weight: float = option(0.05, "Weight of passages in the reset.", between=(0.0, 100.0))
    hippo_damping: float = option(0.5, "Probability that the walk goes on at each step.", between=(0.0, 0.99))

    def weights(self) -> WalkWeights:
        """Return the weights of the edges of the walk."""
        return WalkWeights(facts=self.hippo_fact_weight, mentions=MentionWeight.ONE, synonyms=self.hippo_synonym_weight)


FilteredFacts = tuple[list[Scored], tuple[str, ...]]  # relevant facts, and notes for the trace


async def retrieve(query: Query, view: ReadView, tools: Tools) -> Evidence:
    """Return the `chunk_top_k` passages with the highest PageRank, the relevant facts, and their best ends."""
    vector = (await embed([query.text], tools.embedder))[query.text]
    near_facts = await _query_to_triples(vector, query, view, tools)  # step 1
    facts, notes = await filter_facts(near_facts, query, view, tools.model)  # step 2
    if not facts:
        chunks, seed = await find_nearest_passages(query, vector, view, tools)
        note = "no fact is relevant: the passages nearest to the question are used instead"
        return Evidence(chunks=chunks, seeds=(seed,), notes=(*notes, note))
    topology = await tools.topology.open(view)
    phrases = await _weigh_phrase_nodes(facts, topology, view)  # step 3
    return Evidence(
        chunks=await _rank_passages(phrases, vector, query=query, topology=topology, view=view, tools=tools),
        entities=tuple(Hit(id=k, score=w, reason="an end of a fact, by its rarity") for k, w in phrases.items()),
        relations=tuple(Hit(id=f.id, score=f.score, reason=f"a fact near the question, {f.score:.3f}") for f in facts),
        seeds=(Seed(text=query.text, kind="vector", matches=tuple(facts)),),
        notes=(*notes, *await missing_synonyms_note(view)),
    )


async def _query_to_triples(vector: Vector, query: Query, view: ReadView, tools: Tools) -> list[Scored]:
    """Return the facts nearest to the question, scored from 0 (the farthest) to 1 (query to triple)."""
    k = query.options_of(HippoOptions).hippo_scaled_facts
    (nearest,) = await tools.vectors.nearest(view, VectorSpace.RELATION, vector[np.newaxis, :], k=k)
    scores = min_max_scaled(np.array([fact.score for fact in nearest])).round(6).clip(MIN_FACT_SCORE).tolist()
    return [
        Scored(id=fact.id, score=score)
        for fact, score in zip(nearest, scores, strict=True)
        if fact.score >= query.min_similarity
    ]


async def filter_facts(facts: Sequence[Scored], query: Query, view: ReadView, model: Model | None) -> FilteredFacts:
    """Return the relevant facts, at most `N_FACTS`, in their order, and notes for the trace (recognition memory)."""
    if not facts:
        return [], ()
    if model is None:
        return await _filter_by_names(facts, query, view, "no language model")
    candidates = facts[:N_FACTS]
    relations = await view.relations([fact.id for fact in candidates])
    lines = [(f"{r.source_name} – {r.target_name}", r.description or ", ".join(r.keywords)) for r in relations]
    request = ChatRequest(
        messages=prompt.render_facts(query.text, lines, query.prompts),
        role=Role.KEYWORDS,
        max_output_tokens=prompt.MAX_OUTPUT_TOKENS,
        schema=prompt.FACTS_SCHEMA,
        lifetime=ReplyLifetime.REVISION,
        subject=query.text,
    )
    (reply,) = await model.ask([request])
    numbers = read_numbers(reply, "relevant", len(lines))
    if numbers is None:
        return await _filter_by_names(facts, query, view, "the model did not say which facts are relevant")
    relevant = {relations[number - 1].id for number in numbers}
    note = f"the model kept {len(relevant)} of {len(candidates)} facts"
    return [fact for fact in candidates if fact.id in relevant], (note,)


async def _filter_by_names(facts: Sequence[Scored], query: Query, view: ReadView, why: str) -> FilteredFacts:
    """Return the nearest facts about what the question names; if there are none, the nearest facts."""
    named = {key for name in await link_names(query.text, view) for key in name.keys}
    relevant = [fact for fact in facts if named.intersection(relation_ends(fact.id))][:N_FACTS]
    if relevant:
        return relevant, (f"{why}: the nearest facts about what the question names are used",)
    note = f"{why}, and no near fact is about what the question names: the nearest facts are used"
    return list(facts[:N_FACTS]), (note,)


async def _weigh_phrase_nodes(facts: Sequence[Scored], topology: Topology, view: ReadView) -> dict[str, float]:
    """Return the best ends of the facts, best first, with their weights: mean fact score times node specificity."""
    scores: defaultdict[str, list[float]] = defaultdict(list)
    for fact in facts:
        for key in relation_ends(fact.id):
            scores[key].append(fact.score)
    n_passages = await _count_passages(sorted(scores), topology, view)
    weights = {key: sum(scores[key]) / len(scores[key]) / max(n_passages.get(key, 1), 1) for key in scores}
    best = sorted(weights, key=lambda key: (-round(weights[key], 9), key))[:N_PHRASES]
    return {key: weights[key] for key in best}


async def _count_passages(keys: Sequence[str], topology: Topology, view: ReadView) -> dict[str, int]:
    numbers = await view.numbers(NodeKind.ENTITY, keys)
    mentions = topology.occurrences().neighbours(np.array(list(numbers.values()), dtype=np.int64))
    return dict(zip(numbers, np.bincount(mentions.positions, minlength=len(numbers)).tolist(), strict=True))


async def _rank_passages(
    phrases: Mapping[str, float], vector: Vector, *, query: Query, topology: Topology, view: ReadView, tools: Tools
) -> tuple[Hit, ...]:
    """Return the passages with the highest PageRank, for reset probabilities of phrase and passage nodes."""
    options = query.options_of(HippoOptions)
    graph = build_walk_graph(topology, options.weights())
    reset = np.zeros(graph.n_nodes)  # step 3
    for key, number in (await view.numbers(NodeKind.ENTITY, list(phrases))).items():
        reset[number] = phrases[key]
    reset[graph.n_entities :] = options.hippo_passage_weight * await score_all_passages(vector, topology, view, tools)
    return await walk_to_passages(graph, reset, options.hippo_damping, k=query.chunk_top_k, view=view)  # step 4


STRATEGY = Strategy(
    name="hippo",
    retrieve=retrieve,
    options=(HippoOptions,),
    faithful={"chunk_top_k": 5, "min_similarity": -1.0},
    summary="facts near the question, and PageRank from their entities over entities and passages",
    after="HippoRAG 2",
    when="the answer takes several steps from passage to passage, and some of them are stated as relations",
    needs=("relation vectors", "chunk vectors", "relations", "topology"),
    better_with=(SYNONYMS,),
    n_model_calls=1,
)
