"""community_local: the entities nearest to a question, and around them reports, relations and passages, each its share.

Source: local search of Microsoft GraphRAG. Of the budget 15 % are for the reports on the communities most of the
entities are in, 35 % for entities and relations, and passages have the rest. Claims, which Microsoft packs beside
relations, are left to the passages that make them.
"""

from collections.abc import Sequence

from quipu.algo.budget import n_fitting
from quipu.model.cluster import ClusterReport, report_text
from quipu.model.evidence import Evidence, Hit, Seed
from quipu.model.graph import IncidentRelation, entity_text, relation_text
from quipu.model.query import Query
from quipu.ports.store import ReadView, Space
from quipu.ports.tokenizer import Tokenizer
from quipu.retrieve.steps.search import embed, near_hits, nearest
from quipu.retrieve.steps.surroundings import Around, passages_of, read_around, relations_of, reports_of
from quipu.retrieve.strategy import Strategy, Tools

MAX_ENTITIES = 10  # Microsoft searches twice as many, to cut them back, and then does not
REPORT_SHARE, GRAPH_SHARE = 0.15, 0.35


async def retrieve(query: Query, view: ReadView, tools: Tools) -> Evidence:
    """Return the entities nearest to the question with what is around them."""
    vectors = await embed([query.text], tools.embedder)
    k = min(query.top_k, MAX_ENTITIES)
    near = await nearest(Space.ENTITY, vectors[query.text], query=query, k=k, view=view, tools=tools)
    around = await read_around(near, view)
    found = await reports_of([entity.id for entity in near], query.community_level, view)
    entities, relations = await _that_fit(around, int(GRAPH_SHARE * query.budget.total), view, tools.tokenizer)
    passages = await passages_of(around, view)
    return Evidence(
        chunks=passages[: query.chunk_top_k],
        entities=entities,
        relations=relations,
        reports=_reports(found, int(REPORT_SHARE * query.budget.total), tools.tokenizer),
        seeds=(Seed(text=query.text, kind="vector", found=near),),
        notes=tuple(_notes(around, found)),
    )


async def _that_fit(
    around: Around, n_tokens: int, view: ReadView, tokenizer: Tokenizer
) -> tuple[tuple[Hit, ...], tuple[Hit, ...]]:
    """Return as many of the entities, from the first on, as fit together with all relations these bring."""
    keys = [entity.id for entity in around.entities]
    by_number = [relations_of(keys[:n], around.incident) for n in range(1, len(keys) + 1)]
    wanted = sorted({relation.id for relations in by_number for relation in relations})
    described = {
        r.id: relation_text(r.keywords, r.source, r.target, r.description) for r in await view.relations(wanted)
    }
    cost = {identifier: tokenizer.count(text) for identifier, text in described.items()}
    texts = {each.key: entity_text(each.name, each.description) for each in await view.entities(keys)}
    spent, n_fit = 0, 0
    for n, (key, relations) in enumerate(zip(keys, by_number, strict=True), 1):
        spent += tokenizer.count(texts.get(key, ""))
        if spent + sum(cost.get(relation.id, 0) for relation in relations) > n_tokens:
            break
        n_fit = n
    kept = by_number[n_fit - 1] if n_fit else []
    return near_hits(around.entities[:n_fit]), tuple(_relation_hit(r, keys[:n_fit]) for r in kept)


def _relation_hit(relation: IncidentRelation, keys: Sequence[str]) -> Hit:
    is_within = relation.source in keys and relation.target in keys
    where = "between two of the entities" if is_within else "leads out of the entities"
    reason = f"{where}; its ends have {relation.degree_sum} relations"
    return Hit(id=relation.id, score=float(relation.degree_sum), reason=reason)


def _reports(found: Sequence[tuple[ClusterReport, int]], n_tokens: int, tokenizer: Tokenizer) -> tuple[Hit, ...]:
    n_fit = n_fitting((tokenizer.count(report_text(report)) for report, _ in found), n_tokens)
    return tuple(
        Hit(id=report.cluster, score=float(n), reason=f"on the community of {n} of the entities")
        for report, n in found[:n_fit]
    )


def _notes(around: Around, found: Sequence[tuple[ClusterReport, int]]) -> list[str]:
    notes = [f"{around.n_more:,} more relations touch these entities"] if around.n_more else []
    if around.entities and not found:
        notes.append("the communities of these entities have no report that may be shown")
    return notes if around.entities else ["no entity is near to the question"]


STRATEGY = Strategy(
    name="community_local",
    retrieve=retrieve,
    summary="entities nearest to the question, the reports on their communities, their relations and passages",
    after="Microsoft GraphRAG (local search)",
    when="the question is about some things and what surrounds them",
    needs=("entity vectors", "relations", "communities", "reports"),
)
