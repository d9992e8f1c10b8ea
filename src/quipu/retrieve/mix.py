"""mix: hybrid's graph evidence and the passages nearest to the question, the all-round default."""

from quipu.model.evidence import Evidence
from quipu.model.query import Query
from quipu.ports.store import ReadView
from quipu.retrieve.hybrid import both_sides
from quipu.retrieve.steps.passages import graph_passages, merged_passages
from quipu.retrieve.steps.search import nearest_passages
from quipu.retrieve.strategy import Strategy, Tools


async def retrieve(query: Query, view: ReadView, tools: Tools) -> Evidence:
    """Return both sides of the graph, with passages by vector, by entity and by relation in turn."""
    found, vector = await both_sides(query, view, tools)
    by_vector, seed = await nearest_passages(query, vector, view, tools)
    rankings = await graph_passages(found, vector, query=query, view=view, tools=tools)
    return found.and_seed(seed).with_chunks(merged_passages(query, [by_vector, *rankings]))


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
