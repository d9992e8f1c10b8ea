"""community_local: the entities nearest to a question, and around them reports, relations and passages, each its share.

Source: local search of Microsoft GraphRAG. Of the budget 15 % are for the reports on the communities most of the
entities are in, 35 % for entities with their relations and the claims about them, and passages have the rest.
"""

from collections.abc import Sequence

from quipu.algo.ranking import n_fitting
from quipu.model.cluster import ClusterReport, report_text
from quipu.model.evidence import Evidence, Hit, Seed
from quipu.model.query import Query
from quipu.ports.providers import Tokenizer
from quipu.ports.store import ReadView, VectorSpace
from quipu.retrieve.steps.brought import those_that_fit
from quipu.retrieve.steps.search import embed, nearest
from quipu.retrieve.steps.surroundings import Around, passages_of, read_around, reports_of
from quipu.retrieve.strategy import Strategy, Tools
from quipu.text.formatting import format_count

MAX_ENTITIES = 10  # Microsoft searches twice as many, to cut them back, and then does not
REPORT_SHARE, GRAPH_SHARE = 0.15, 0.35


async def retrieve(query: Query, view: ReadView, tools: Tools) -> Evidence:
    """Return the entities nearest to the question with what is around them."""
    vectors = await embed([query.text], tools.embedder)
    k = min(query.top_k, MAX_ENTITIES)
    near = await nearest(VectorSpace.ENTITY, vectors[query.text], query=query, k=k, view=view, tools=tools)
    around = await read_around(near, view)
    found = await reports_of([entity.id for entity in near], query.community_level, view)
    brought = await those_that_fit(
        around, int(GRAPH_SHARE * query.budget.total), question=query.text, view=view, tokenizer=tools.tokenizer
    )
    passages = await passages_of(around, vectors[query.text], view, tools)
    return Evidence(
        chunks=passages[: query.chunk_top_k],
        entities=brought.entities,
        relations=brought.relations,
        claims=brought.claims,
        reports=_reports(found, int(REPORT_SHARE * query.budget.total), tools.tokenizer),
        seeds=(Seed(text=query.text, kind="vector", matches=near),),
        notes=(*_notes(around, found), *brought.notes),
    )


def _reports(found: Sequence[tuple[ClusterReport, int]], n_tokens: int, tokenizer: Tokenizer) -> tuple[Hit, ...]:
    n_fit = n_fitting((tokenizer.count(report_text(report)) for report, _ in found), n_tokens)
    return tuple(
        Hit(id=report.cluster, score=float(n), reason=f"on the community of {n} of the entities")
        for report, n in found[:n_fit]
    )


def _notes(around: Around, found: Sequence[tuple[ClusterReport, int]]) -> list[str]:
    notes = [f"left out: {format_count(around.n_more, 'more relation')} of these entities"] if around.n_more else []
    if around.entities and not found:
        notes.append("the communities of these entities have no report that may be shown")
    return notes if around.entities else ["no entity is near to the question"]


STRATEGY = Strategy(
    name="community_local",
    retrieve=retrieve,
    summary="entities nearest to the question, the reports on their communities, their relations, claims and passages",
    after="Microsoft GraphRAG (local search)",
    when="the question is about some things and what surrounds them",
    needs=("entity vectors", "relations", "communities", "reports"),
)
