"""local: the entities a question names or resembles, their relations, and the passages that name them."""

from collections.abc import Sequence

from quipu.model.evidence import Evidence, Hit, Seed
from quipu.model.query import Query
from quipu.ports.store import ReadView, VectorSpace
from quipu.retrieve.steps.found import Found
from quipu.retrieve.steps.keywords import LowLevel, low_level
from quipu.retrieve.steps.passages import graph_passages, merged_passages
from quipu.retrieve.steps.search import Vector, embed, nearest
from quipu.retrieve.strategy import Strategy, Tools
from quipu.text.formatting import format_count

MAX_RELATIONS_PER_ENTITY = 10  # on average; a budget of 8,000 tokens holds fewer than 400 relations


async def retrieve(query: Query, view: ReadView, tools: Tools) -> Evidence:
    """Return what lies around the entities of the question, and the passages they stand in."""
    keywords = await low_level(query, view)
    vectors = await embed([query.text, keywords.text], tools.embedder)
    found = await around_entities(keywords, vectors[keywords.text], query=query, view=view, tools=tools)
    rankings = await graph_passages(found, vectors[query.text], query=query, view=view, tools=tools)
    return found.with_chunks(merged_passages(query, rankings))


async def around_entities(keywords: LowLevel, vector: Vector, *, query: Query, view: ReadView, tools: Tools) -> Found:
    """Return the entities named, then those nearest to the keywords, `top_k` in all, and the relations they have."""
    near = await nearest(VectorSpace.ENTITY, vector, query=query, k=query.top_k, view=view, tools=tools)
    hits: dict[str, Hit] = {}
    for seed in keywords.names:
        for named in seed.matches:
            hits.setdefault(named.id, Hit(id=named.id, score=1.0, reason=f"named in the question: '{seed.text}'"))
    for scored in near:
        reason = f"cosine {scored.score:.3f} to '{keywords.text}'"
        hits.setdefault(scored.id, Hit(id=scored.id, score=scored.score, reason=reason))
    entities = tuple(hits.values())[: query.top_k]
    relations, n_more = await _relations_of(entities, limit=MAX_RELATIONS_PER_ENTITY * query.top_k, view=view)
    return Found(
        entities=entities,
        relations=relations,
        seeds=(*keywords.names, Seed(text=keywords.text, kind="vector", matches=near)),
        notes=keywords.notes
        + ((f"left out: {format_count(n_more, 'more relation')} of these entities",) if n_more else ()),
    )


async def _relations_of(entities: Sequence[Hit], *, limit: int, view: ReadView) -> tuple[tuple[Hit, ...], int]:
    """Return the relations of `entities`, those between the best connected ends first, and how many are left out."""
    relations, n = await view.strongest_relations([hit.id for hit in entities], limit)
    found = {hit.id for hit in entities}
    hits = tuple(
        Hit(
            id=r.id,
            score=float(r.degree_sum),
            reason=f"relation of {r.source_name if r.source in found else r.target_name}; "
            f"its ends have {r.degree_sum} relations, weight {r.weight:g}",
        )
        for r in relations
    )
    return hits, n - len(hits)


STRATEGY = Strategy(
    name="local",
    retrieve=retrieve,
    summary="entities of the question, their relations, and passages that name them",
    after="LightRAG (local)",
    when="the question names the things it is about",
    needs=("entity vectors", "chunk vectors", "relations"),
    n_model_calls=1,
    wants_keywords=True,
)
