"""mix: the graph evidence of `hybrid` and the passages of `naive`, merged in turns or by weight. The default.

Source: query mode "mix" of LightRAG's code, built on Z. Guo et al., "LightRAG: Simple and Fast Retrieval-Augmented
Generation" (2024), section 3.2.

Entities and relations are found as in `hybrid`. Three rankings of passages are merged in turns: the nearest to the
question, those that mention the entities, and those that state the relations.

Differences from the paper:
- Those of `local` and of `global`.
- The three rankings can be weighted with `mix_weights`: the passage at rank r of a ranking with weight w gets the
  position r / w. Equal weights merge in turns, as LightRAG does; a ranking with weight 0 is left out.
"""

from quipu.model.evidence import Evidence
from quipu.model.query import MixWeights, Query
from quipu.ports.store import ReadView
from quipu.retrieve.steps.dual_level import GraphHits, merge_levels, search_both_levels
from quipu.retrieve.steps.passages import merge_passages, rank_source_passages
from quipu.retrieve.steps.vector_search import find_nearest_passages
from quipu.retrieve.strategy import Strategy, Tools


async def retrieve(query: Query, view: ReadView, tools: Tools) -> Evidence:
    """Return the entities and relations of both levels, and the merged passages."""
    weights = query.mix_weights
    low, high, vector = await search_both_levels(query, view, tools)
    low, high = low if weights.entity else GraphHits(), high if weights.relation else GraphHits()
    in_turns = merge_levels(low, high)  # passages are ranked before weighting, so that each ranking stays the same
    by_entity, by_relation = await rank_source_passages(
        in_turns.entities, in_turns.relations, vector, query=query, view=view, tools=tools
    )
    by_vector, seed = await find_nearest_passages(query, vector, view, tools)
    graph = merge_levels(low, high, (weights.entity, weights.relation))
    chunks = merge_passages(
        query, [by_vector, by_entity, by_relation], (weights.vector, weights.entity, weights.relation)
    )
    graph = graph.with_seed(seed) if weights.vector else graph
    return graph.with_chunks(chunks).with_notes(_weights_note(weights))


def _weights_note(weights: MixWeights) -> tuple[str, ...]:
    """Return a note that states the weights, if they differ."""
    if weights.entity == weights.relation == weights.vector:
        return ()
    weight_by_ranking = {"entities": weights.entity, "relations": weights.relation, "vectors": weights.vector}
    listing = ", ".join(f"{ranking} {weight:g}" for ranking, weight in weight_by_ranking.items())
    return (f"rankings merged by rank / weight: {listing}",)


STRATEGY = Strategy(
    name="mix",
    retrieve=retrieve,
    summary="hybrid, and the passages nearest to the question by vector",
    after="LightRAG (mix)",
    when="nothing is known about the question: the default",
    needs=("entity vectors", "relation vectors", "chunk vectors", "relations"),
    n_model_calls=1,
    wants_keywords=True,
)
