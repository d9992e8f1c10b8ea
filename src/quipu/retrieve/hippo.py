"""hippo: facts near the question, those a model finds of use, and a walk from what these name to passages.

Source: B. J. Gutiérrez et al., "From RAG to Memory" (HippoRAG 2, 2025), sections 3.2 to 3.4. A relation with all that
is said of it stands for the triples between its ends. The paper scales the scores of facts by those of all facts, here
by those of the nearest `top_k`. Every passage is a node: it is linked to the entities that stand in it, and the walk
starts again at it too, if rarely, so that a question without facts still finds passages. Synonyms are walked over where
they are kept. Not copied: weights of synonyms in the place of those of facts, facts told by their spelling.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from quipu.algo.similarity import minmax
from quipu.model.chat import ChatRequest, Lifetime, Role
from quipu.model.evidence import Evidence, Hit, Scored, Seed
from quipu.model.ids import relation_ends
from quipu.model.query import Query
from quipu.ports.store import ReadView, Space
from quipu.ports.topology import Topology
from quipu.prompts import fact_filter
from quipu.retrieve.steps.prior import passage_prior
from quipu.retrieve.steps.said import read_numbers
from quipu.retrieve.steps.search import Vector, embed, nearest, nearest_passages
from quipu.retrieve.steps.walk import Naming, Weights, ranked, top_chunks, walk_over
from quipu.retrieve.strategy import Strategy, Tools

N_FACTS = 5
N_PHRASES = 5
LEAST_FACT = 0.01  # of the score of a fact that is kept: the farthest would count for nothing
PASSAGE_WEIGHT = 0.05
DAMPING = 0.5
WEIGHTS = Weights(facts=1.0, naming=Naming.ONE, synonyms=1.0)


async def retrieve(query: Query, view: ReadView, tools: Tools) -> Evidence:
    """Return the `chunk_top_k` passages a walk from the facts' phrases is at most often, with these and the facts."""
    vector = (await embed([query.text], tools.embedder))[query.text]
    near = await nearest(Space.RELATION, vector, query=query, k=query.top_k, view=view, tools=tools)
    facts, notes = await _recognised(_facts(near), query, view, tools)
    if not facts:
        return await _dense(query, vector, (*notes, "no fact is of use: the nearest passages stand in"), view, tools)
    topology = await tools.topology.of(view)
    phrases = await _phrases(facts, topology, view)
    chunks = await _walked(phrases, vector, query=query, topology=topology, view=view, tools=tools)
    named = ", ".join(phrases)
    return Evidence(
        chunks=tuple(Hit(id=s.id, score=s.score, reason=f"a walk from {named} is here, {s.score:.4f}") for s in chunks),
        entities=tuple(Hit(id=k, score=w, reason="an end of a fact, by its rarity") for k, w in phrases.items()),
        relations=tuple(Hit(id=f.id, score=f.score, reason=f"a fact near the question, {f.score:.3f}") for f in facts),
        seeds=(Seed(text=query.text, kind="vector", found=tuple(facts)),),
        notes=notes,
    )


def _facts(near: Sequence[Scored]) -> list[Scored]:
    """Return the nearest facts, scored from 0, the farthest of all that are near, to 1."""
    scores = minmax(np.array([each.score for each in near]))[:N_FACTS].round(6).clip(LEAST_FACT)
    return [Scored(id=each.id, score=score) for each, score in zip(near, scores.tolist(), strict=False)]


async def _recognised(
    facts: list[Scored], query: Query, view: ReadView, tools: Tools
) -> tuple[list[Scored], tuple[str, ...]]:
    """Return the facts a model finds of use (recognition memory); all of them where there is none to ask."""
    if tools.model is None or not facts:
        return facts, ("no language model: every fact near the question counts",) if facts else ()
    relations = await view.relations([fact.id for fact in facts])
    items = [(f"{r.source_name} – {r.target_name}", r.description or ", ".join(r.keywords)) for r in relations]
    request = ChatRequest(
        messages=fact_filter.render(query.text, items),
        role=Role.KEYWORDS,
        max_output_tokens=fact_filter.MAX_OUTPUT_TOKENS,
        schema=fact_filter.SCHEMA,
        lifetime=Lifetime.REVISION,
        subject=query.text,
    )
    (reply,) = await tools.model.ask([request])
    numbers = read_numbers(reply, "relevant", len(items))
    if numbers is None:
        return facts, ("the model did not say which facts are of use: every one near the question counts",)
    kept = {relations[number - 1].id for number in numbers}
    return [fact for fact in facts if fact.id in kept], (f"facts of use, says the model: {len(kept)} of {len(facts)}",)


async def _phrases(facts: Sequence[Scored], topology: Topology, view: ReadView) -> dict[str, float]:
    """Return the weights of the best ends of facts, best first: the mean of fact score / passages that name the end."""
    scores: defaultdict[str, list[float]] = defaultdict(list)
    for fact in facts:
        for key in relation_ends(fact.id):
            scores[key].append(fact.score)
    n_chunks = await _n_chunks(sorted(scores), topology, view)
    weights = {key: sum(scores[key]) / len(scores[key]) / max(n_chunks.get(key, 1), 1) for key in scores}
    best = sorted(weights, key=lambda key: (-round(weights[key], 9), key))[:N_PHRASES]
    return {key: weights[key] for key in best}


async def _n_chunks(keys: Sequence[str], topology: Topology, view: ReadView) -> dict[str, int]:
    numbers = await view.entity_numbers(keys)
    of = topology.appearances().of(np.array(list(numbers.values()), dtype=np.int64)).of
    return dict(zip(numbers, np.bincount(of, minlength=len(numbers)).tolist(), strict=True))


async def _walked(
    phrases: Mapping[str, float], vector: Vector, *, query: Query, topology: Topology, view: ReadView, tools: Tools
) -> tuple[Scored, ...]:
    """Return the chunks a walk is at most often that starts again at phrases and, in proportion, at every passage."""
    walk = walk_over(topology, WEIGHTS)
    reset = np.zeros(walk.n_nodes)
    for key, number in (await view.entity_numbers(list(phrases))).items():
        reset[number] = phrases[key]
    reset[walk.n_entities :] = PASSAGE_WEIGHT * await passage_prior(vector, topology, view, tools)
    return await top_chunks(ranked(walk, reset, DAMPING)[walk.n_entities :], query.chunk_top_k, view)


async def _dense(query: Query, vector: Vector, notes: tuple[str, ...], view: ReadView, tools: Tools) -> Evidence:
    chunks, seed = await nearest_passages(query, vector, view, tools)
    return Evidence(chunks=chunks, seeds=(seed,), notes=notes)


STRATEGY = Strategy(
    name="hippo",
    retrieve=retrieve,
    summary="facts near the question, and a walk from what they name over entities and passages",
    after="HippoRAG 2",
    when="the answer takes several steps from passage to passage, and some of them are stated as relations",
    needs=("relation vectors", "chunk vectors", "relations", "topology"),
    n_model_calls=1,
)
