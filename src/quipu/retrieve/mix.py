"""mix: hybrid's graph evidence and the passages nearest to the question, the all-round default."""

from quipu.model.evidence import Evidence
from quipu.model.query import MixWeights, Query
from quipu.ports.store import ReadView
from quipu.retrieve.hybrid import both_sides
from quipu.retrieve.steps.found import Found, join
from quipu.retrieve.steps.passages import graph_passages, merged_passages
from quipu.retrieve.steps.search import nearest_passages
from quipu.retrieve.strategy import Strategy, Tools


async def retrieve(query: Query, view: ReadView, tools: Tools) -> Evidence:
    """Return both sides of the graph, with passages by vector, by entity and by relation in turn, or by weight.

    An arm of weight 0 is left out as if it had found nothing.
    """
    weights = query.mix_weights
    nearby, thematic, vector = await both_sides(query, view, tools)
    nearby, thematic = nearby if weights.entity else Found(), thematic if weights.relation else Found()
    by_entity, by_relation = await graph_passages(
        join(nearby, thematic), vector, query=query, view=view, tools=tools
    )  # whatever the weights, so that each arm is one ranking
    by_vector, seed = await nearest_passages(query, vector, view, tools)
    found = join(nearby, thematic, (weights.entity, weights.relation))
    chunks = merged_passages(
        query, [by_vector, by_entity, by_relation], (weights.vector, weights.entity, weights.relation)
    )
    found = found.and_seed(seed) if weights.vector else found
    return found.with_chunks(chunks).with_notes(_fusion(weights))


def _fusion(weights: MixWeights) -> tuple[str, ...]:
    """Say how the arms were joined, where not in turn."""
    if weights.entity == weights.relation == weights.vector:
        return ()
    arms = {"entities": weights.entity, "relations": weights.relation, "vectors": weights.vector}
    told = ", ".join(f"{arm} {weight:g}" for arm, weight in arms.items())
    return (f"arms joined by place / weight: {told}",)


STRATEGY = Strategy(
    name="mix",
    retrieve=retrieve,
    summary="hybrid, with the passages nearest to the question by vector",
    after="LightRAG (mix)",
    when="nothing is known about the question: the default",
    needs=("entity vectors", "relation vectors", "chunk vectors", "relations"),
    n_model_calls=1,
    wants_keywords=True,
)
