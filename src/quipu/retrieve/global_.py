"""global: the relations a question is about, the entities at their ends, and the passages that state them."""

from quipu.model.evidence import Evidence, Hit, Seed
from quipu.model.ids import relation_ends
from quipu.model.query import Query
from quipu.ports.store import ReadView, VectorSpace
from quipu.retrieve.steps.found import Found
from quipu.retrieve.steps.keywords import high_level
from quipu.retrieve.steps.passages import graph_passages, merged_passages
from quipu.retrieve.steps.search import Vector, embed, nearest
from quipu.retrieve.strategy import Strategy, Tools


async def retrieve(query: Query, view: ReadView, tools: Tools) -> Evidence:
    """Return the relations nearest to the question's themes, with their ends and passages."""
    themes = high_level(query)
    vectors = await embed([query.text, themes], tools.embedder)
    found = await around_relations(themes, vectors[themes], query=query, view=view, tools=tools)
    rankings = await graph_passages(found, vectors[query.text], query=query, view=view, tools=tools)
    return found.with_chunks(merged_passages(query, rankings))


async def around_relations(themes: str, vector: Vector, *, query: Query, view: ReadView, tools: Tools) -> Found:
    """Return the `top_k` relations nearest to the themes, and their ends in the order they first appear."""
    near = await nearest(VectorSpace.RELATION, vector, query=query, k=query.top_k, view=view, tools=tools)
    entities: dict[str, Hit] = {}
    for scored in near:
        for key in relation_ends(scored.id):
            entities.setdefault(key, Hit(id=key, score=scored.score, reason=f"an end of {scored.id}"))
    relations = (Hit(id=s.id, score=s.score, reason=f"cosine {s.score:.3f} to the question's themes") for s in near)
    return Found(
        entities=tuple(entities.values()),
        relations=tuple(relations),
        seeds=(Seed(text=themes, kind="vector", matches=near),),
        notes=() if near else ("no relation is near to the question's themes",),
    )


STRATEGY = Strategy(
    name="global",
    retrieve=retrieve,
    summary="relations nearest to the question, the entities they join, and passages that state them",
    after="LightRAG (global)",
    when="the question asks about a theme or a kind of connection and names nothing",
    needs=("relation vectors", "chunk vectors", "relations"),
    n_model_calls=1,
    wants_keywords=True,
)
