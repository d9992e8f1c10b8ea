"""hybrid: local and global in turn, entity-led and relation-led evidence side by side."""

from quipu.model.evidence import Evidence
from quipu.model.query import Query
from quipu.ports.store import ReadView
from quipu.retrieve.global_ import around_relations
from quipu.retrieve.local import around_entities
from quipu.retrieve.steps.found import Found, join
from quipu.retrieve.steps.keywords import high_level, low_level
from quipu.retrieve.steps.passages import graph_passages, merged_passages
from quipu.retrieve.steps.search import Vector, embed
from quipu.retrieve.strategy import Strategy, Tools


async def retrieve(query: Query, view: ReadView, tools: Tools) -> Evidence:
    """Return both sides of the graph and their passages."""
    nearby, thematic, vector = await both_sides(query, view, tools)
    found = join(nearby, thematic)
    rankings = await graph_passages(found, vector, query=query, view=view, tools=tools)
    return found.with_chunks(merged_passages(query, rankings))


async def both_sides(query: Query, view: ReadView, tools: Tools) -> tuple[Found, Found, Vector]:
    """Return what local and what global find, and the vector of the question; one call of the embedder."""
    keywords, themes = await low_level(query, view), high_level(query)
    vectors = await embed([query.text, keywords.text, themes], tools.embedder)
    nearby = await around_entities(keywords, vectors[keywords.text], query=query, view=view, tools=tools)
    thematic = await around_relations(themes, vectors[themes], query=query, view=view, tools=tools)
    return nearby, thematic, vectors[query.text]


STRATEGY = Strategy(
    name="hybrid",
    retrieve=retrieve,
    summary="local and global in turn",
    after="LightRAG (hybrid)",
    when="the question names things and asks how they hang together",
    needs=("entity vectors", "relation vectors", "chunk vectors", "relations"),
    n_model_calls=1,
    wants_keywords=True,
)
