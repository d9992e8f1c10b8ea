"""hippo: facts near the question, those that are of use to it, and a walk from what these name to passages.

Source: B. J. Gutiérrez et al., "From RAG to Memory" (HippoRAG 2, 2025), sections 3.2 to 3.4. A relation with all that
is said of it stands for the triples between its ends. Of the nearest five a model says which are of use; without one
the first five of the nearest 40 that tell of something the question names are. The paper scales the scores of facts by
those of all facts, here by those of the nearest 40. Every passage is a node: it is linked to the entities that stand in
it, and the walk starts again at it too, if rarely, so that a question without facts still finds passages. Synonyms are
walked over where they are kept. Not copied: weights of synonyms in the place of those of facts, facts told by their
spelling.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from quipu.algo.ranking import min_max_scaled
from quipu.model.derivation import SYNONYMS
from quipu.model.evidence import Evidence, Hit, Scored, Seed
from quipu.model.ids import relation_ends
from quipu.model.query import Query
from quipu.ports.derivation_view import NodeKind
from quipu.ports.store import ReadView, VectorSpace
from quipu.ports.topology import Topology
from quipu.retrieve.steps.prior import passage_prior
from quipu.retrieve.steps.recognition import recognise
from quipu.retrieve.steps.search import Vector, embed, nearest_passages
from quipu.retrieve.steps.tracing import Trail, ways_to
from quipu.retrieve.steps.walk import Naming, Weights, ranked, top_chunks, walk_over, without_synonyms
from quipu.retrieve.strategy import Strategy, Tools

N_NEAR = 40  # facts that are searched for; a score is told between the first and the last of them
N_PHRASES = 5
LEAST_FACT = 0.01  # of the score of a fact that is kept: the farthest would count for nothing
PASSAGE_WEIGHT = 0.05
DAMPING = 0.5
WEIGHTS = Weights(facts=1.0, naming=Naming.ONE, synonyms=1.0)


async def retrieve(query: Query, view: ReadView, tools: Tools) -> Evidence:
    """Return the `chunk_top_k` passages a walk from the facts' phrases is at most often, with these and the facts."""
    vector = (await embed([query.text], tools.embedder))[query.text]
    (near,) = await tools.vectors.nearest(view, VectorSpace.RELATION, vector[np.newaxis, :], k=N_NEAR)
    facts, notes = await recognise(_facts(near, query.min_similarity), query, view, tools.model)
    if not facts:
        return await _dense(query, vector, (*notes, "no fact is of use: the nearest passages stand in"), view, tools)
    topology = await tools.topology.open(view)
    phrases = await _phrases(facts, topology, view)
    return Evidence(
        chunks=await _walked(phrases, vector, query=query, topology=topology, view=view, tools=tools),
        entities=tuple(Hit(id=k, score=w, reason="an end of a fact, by its rarity") for k, w in phrases.items()),
        relations=tuple(Hit(id=f.id, score=f.score, reason=f"a fact near the question, {f.score:.3f}") for f in facts),
        seeds=(Seed(text=query.text, kind="vector", matches=tuple(facts)),),
        notes=(*notes, *await without_synonyms(view)),
    )


def _facts(near: Sequence[Scored], least: float) -> list[Scored]:
    """Return the nearest facts of a cosine of at least `least`, scored from 0, the farthest of all near, to 1."""
    scores = min_max_scaled(np.array([each.score for each in near])).round(6).clip(LEAST_FACT).tolist()
    return [Scored(id=n.id, score=score) for n, score in zip(near, scores, strict=True) if n.score >= least]


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
    numbers = await view.numbers(NodeKind.ENTITY, keys)
    of = topology.occurrences().neighbours(np.array(list(numbers.values()), dtype=np.int64)).positions
    return dict(zip(numbers, np.bincount(of, minlength=len(numbers)).tolist(), strict=True))


async def _walked(
    phrases: Mapping[str, float], vector: Vector, *, query: Query, topology: Topology, view: ReadView, tools: Tools
) -> tuple[Hit, ...]:
    """Return the chunks a walk is at most often that starts again at phrases and, in proportion, at every passage."""
    walk = walk_over(topology, WEIGHTS)
    reset = np.zeros(walk.n_nodes)
    for key, number in (await view.numbers(NodeKind.ENTITY, list(phrases))).items():
        reset[number] = phrases[key]
    reset[walk.n_entities :] = PASSAGE_WEIGHT * await passage_prior(vector, topology, view, tools)
    ranks = await ranked(walk, reset, DAMPING)
    found = await top_chunks(ranks[walk.n_entities :], query.chunk_top_k, view)
    ways = await ways_to(found, Trail(walk=walk, reset=reset, ranks=ranks, damping=DAMPING), view)
    return tuple(Hit(id=s.id, score=s.score, reason=f"the walk is here, {s.score:.4g}, {ways[s.id]}") for s in found)


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
    better_with=(SYNONYMS,),
    n_model_calls=1,
)
