"""ppr: a walk over relations from what the question names and resembles; where it is most often decides the rest.

Source: Fast GraphRAG (Circlemind, 2024). Each name of the question leads to one entity, the question and its themes to
twenty; all that one text leads to weighs 1, and an entity what it weighs most for one text. Personalised PageRank from
there ranks entities; a relation ranks by its two ends, a passage by the relations it states. Not copied: an entity
without relations says nothing of its passages, and nothing is found where no rank is high. Synonyms are walked over
where they are kept.
"""

from collections.abc import Sequence

import numpy as np

from quipu.model.derivation import SYNONYMS
from quipu.model.evidence import Evidence, Hit, Scored, Seed
from quipu.model.query import Query
from quipu.ports.derivation_view import NodeKind
from quipu.ports.store import ReadView, VectorSpace
from quipu.ports.topology import Floats, Topology
from quipu.retrieve.steps.keywords import low_level
from quipu.retrieve.steps.search import Vector, embed, nearest_passages
from quipu.retrieve.steps.spreading import spread_to_chunks, spread_to_relations
from quipu.retrieve.steps.walk import Weights, ranked, top_entities, walk_over, without_synonyms
from quipu.retrieve.strategy import Strategy, Tools
from quipu.text.names import entity_key

DAMPING = 0.85
LEAST_NAMED, LEAST_NEAR = 0.4, 0.0  # cosines
N_NEAR = 20
LEAST_RANK = 0.005
MAX_ENTITIES, MAX_RELATIONS = 128, 64
WEIGHTS = Weights(pairs=1.0, synonyms=1.0)


async def retrieve(query: Query, view: ReadView, tools: Tools) -> Evidence:
    """Return the entities, relations and passages that rank highest; the nearest passages where nothing is named."""
    named = await low_level(query, view)
    asked = query.low_level_keywords or query.model_keywords.low_level
    known = await view.keys_by_name(sorted({key for key in map(entity_key, asked) if key}))
    unknown = [name for name in asked if not known.get(entity_key(name))]
    themes = query.high_level_keywords or query.model_keywords.high_level
    near = [*themes, query.text]
    vectors = await embed([*unknown, *near], tools.embedder)
    least_named, k = max(LEAST_NAMED, query.min_similarity), min(query.top_k, N_NEAR)
    by_name = await _nearest([(name, vectors[name]) for name in unknown], 1, least_named, view, tools)
    by_theme = await _nearest([(text, vectors[text]) for text in near], k, LEAST_NEAR, view, tools)
    seeds, notes = (*named.names, *by_name, *by_theme), named.notes if named.names else ()
    if tools.model is None and not (asked or themes):
        notes += ("no language model: the words of the question tell what it names and is about",)
    topology = await tools.topology.open(view)
    reset = await _reset(seeds, topology, view)
    if not reset.any():
        chunks, seed = await nearest_passages(query, vectors[query.text], view, tools)
        note = "no entity is named or near: the passages nearest to the question stand in"
        return Evidence(chunks=chunks, seeds=(seed,), notes=(*notes, note))
    ranks = await ranked(walk_over(topology, WEIGHTS), reset, DAMPING)
    if (highest := float(ranks.max())) < LEAST_RANK:
        notes += (f"the walk is nowhere often, at most {highest:.4g}: the entities it meets most count",)
    is_often = ranks >= LEAST_RANK if highest >= LEAST_RANK else ranks > 0
    entities = await top_entities(np.where(is_often, ranks, 0.0), MAX_ENTITIES, view)
    relations, isolated = await spread_to_relations(entities, ranks, MAX_RELATIONS, topology=topology, view=view)
    return Evidence(
        chunks=await spread_to_chunks(relations, isolated, query.chunk_top_k, view),
        entities=tuple(_hit(entity, seeds) for entity in entities),
        relations=relations,
        seeds=seeds,
        notes=(*notes, *await without_synonyms(view)),
    )


async def _nearest(
    texts: Sequence[tuple[str, Vector]], k: int, least: float, view: ReadView, tools: Tools
) -> tuple[Seed, ...]:
    """Return the entities nearest to each text."""
    if not texts:
        return ()
    rows = np.stack([vector for _, vector in texts])
    found = await tools.vectors.nearest(view, VectorSpace.ENTITY, rows, k=k, min_score=least)
    return tuple(Seed(text=text, kind="vector", matches=near) for (text, _), near in zip(texts, found, strict=True))


async def _reset(seeds: Sequence[Seed], topology: Topology, view: ReadView) -> Floats:
    """Return how often the walk starts at each entity, [n_entities]: its largest share of what one text leads to."""
    numbers = await view.numbers(NodeKind.ENTITY, sorted({scored.id for seed in seeds for scored in seed.matches}))
    reset = np.zeros(topology.n_entities)
    for seed in seeds:
        weights = {scored.id: (1 + scored.score) / 2 for scored in seed.matches}
        total = sum(weights.values())
        for key, weight in weights.items():
            reset[numbers[key]] = max(reset[numbers[key]], weight / total)
    return reset


def _hit(entity: Scored, seeds: Sequence[Seed]) -> Hit:
    started = [seed.text for seed in seeds if any(found.id == entity.id for found in seed.matches)]
    whence = f"a walk that starts here, by '{started[0]}'" if started else "a walk from the seeds"
    return Hit(id=entity.id, score=entity.score, reason=f"{whence}, is here {entity.score:.4g} of the time")


STRATEGY = Strategy(
    name="ppr",
    retrieve=retrieve,
    summary="a walk over relations from what the question names, and the passages that state what it meets",
    after="Fast GraphRAG",
    when="the answer lies some relations away from what the question names",
    needs=("entity vectors", "relations", "topology"),
    better_with=(SYNONYMS,),
    n_model_calls=1,
    wants_keywords=True,
)
