"""community_local: the entities nearest to a question, and the reports, relations, claims and passages around them.

Source: local search of Microsoft GraphRAG, the code that belongs to D. Edge et al., "From Local to Global: A Graph RAG
Approach to Query-Focused Summarization" (2024). The paper itself describes only global search.

1. Seeds: the 10 entities nearest to the question.
2. Reports: those on the communities of most seeds, for 15 % of the context budget.
3. Graph: entity by entity, its description, the relations and the claims of the entities, for 35 % of the budget.
   Relations between seeds come first, then relations to the neighbours that most seeds share.
4. Passages: those that mention the seeds, for the rest of the budget.

Differences from the source:
- Leiden finds the communities → rules that look at neighbours only, because equal documents then have equal ones.
- 20 entities, searched in order to keep 10 and not cut → `community_entities`, because ten is what the option of the
  source says.
- No minimum cosine → `min_similarity`, because a far entity is no evidence.
- An entity counts for the reports on each of its levels → for one, the finest within `community_level`, unless
  `community_all_levels`, because coarser ones repeat it.
- 15 % of 12,000 tokens for reports, 50 % for passages, the rest for the graph → `REPORT_SHARE` and, for the graph,
  `GRAPH_SHARE` of `total_tokens`, because passages get whatever is left.
- All claims in any order → `community_claims` of an entity, the most useful for the question first, because they would
  fill the budget.
- All relations and passages of the entities → `MAX_RELATIONS_READ` relations, and `MAX_CHUNKS_PER_ENTITY` passages of
  an entity, because the time must not grow with the index.
- As many passages as fit → at most `chunk_top_k`, and equal ones by similarity to the question, because one limit makes
  strategies comparable.
"""

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from quipu.algo.similarity import n_fitting
from quipu.model.cluster import ClusterReport, report_text
from quipu.model.evidence import Evidence, Hit, Scored, Seed
from quipu.model.graph import Claim, IncidentRelation, claim_text, entity_text, relation_text
from quipu.model.query import Options, Query, option
from quipu.ports.providers import Tokenizer
from quipu.ports.store import ReadView, VectorSpace
from quipu.retrieve.steps.local_search import Neighbourhood, rank_passages, read_neighbourhood, reports_of
from quipu.retrieve.steps.seeds import embed, find_nearest, hits_by_cosine
from quipu.retrieve.strategy import Strategy, Tools
from quipu.text.formatting import format_count
from quipu.text.words import content_terms_of

REPORT_SHARE, GRAPH_SHARE = 0.15, 0.35
OUTER_RELATIONS = 10  # for each entity, to entities that are not seeds
MAX_CLAIMS = 20  # used for each entity
MAX_CLAIMS_READ = 200  # for each entity, the first by chunk


@dataclass(frozen=True, slots=True, kw_only=True)
class CommunityLocalOptions(Options):
    """The options of `community_local`."""

    community_entities: int = option(10, "Entities that the search starts from.", between=(1, 1_000), faithful=20)
    community_all_levels: bool = option(False, "Count an entity for a report on each of its levels.", faithful=True)
    community_claims: int = option(
        MAX_CLAIMS, "Claims used for each entity.", between=(0, MAX_CLAIMS_READ), faithful=MAX_CLAIMS_READ
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedClaim:
    """A claim, and how many words of the question it contains, not counting the name of its subject."""

    claim: Claim
    n_shared_words: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityClaims:
    """The claims used for each entity, the most useful first; the `truncated` entities have more."""

    by_key: Mapping[str, Sequence[RankedClaim]]
    truncated: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphContext:
    """The entities that fit a token budget, nearest first, with their relations and claims, and notes on the rest."""

    entities: tuple[Hit, ...] = ()
    relations: tuple[Hit, ...] = ()
    claims: tuple[Hit, ...] = ()
    notes: tuple[str, ...] = ()


async def retrieve(query: Query, view: ReadView, tools: Tools) -> Evidence:
    """Return the entities nearest to the question, and what surrounds them."""
    vector = (await embed([query.text], tools.embedder))[query.text]
    options = query.options_of(CommunityLocalOptions)
    k = min(query.top_k, options.community_entities)
    seeds = await find_nearest(VectorSpace.ENTITY, vector, query=query, k=k, view=view, tools=tools)  # step 1
    area = await read_neighbourhood(seeds, view)
    keys, all_levels = [seed.id for seed in seeds], options.community_all_levels
    reports = await reports_of(keys, query.community_level, view, all_levels=all_levels)  # step 2
    n_tokens, max_claims = int(GRAPH_SHARE * query.budget.total), options.community_claims
    graph = await fit_entities(  # step 3
        area, n_tokens, question=query.text, view=view, tokenizer=tools.tokenizer, max_claims=max_claims
    )
    passages = await rank_passages(area, vector, view, tools)  # step 4
    return Evidence(
        chunks=passages[: query.chunk_top_k],
        entities=graph.entities,
        relations=graph.relations,
        claims=graph.claims,
        reports=_fit_reports(reports, int(REPORT_SHARE * query.budget.total), tools.tokenizer),
        seeds=(Seed(text=query.text, kind="vector", matches=seeds),),
        notes=(*_notes(area, has_reports=bool(reports)), *graph.notes),
    )


def _fit_reports(reports: Sequence[tuple[ClusterReport, int]], n_tokens: int, tokenizer: Tokenizer) -> tuple[Hit, ...]:
    n_fit = n_fitting((tokenizer.count(report_text(report)) for report, _ in reports), n_tokens)
    return tuple(
        Hit(id=report.cluster, score=float(n), reason=f"on the community of {n} of the entities")
        for report, n in reports[:n_fit]
    )


async def fit_entities(
    area: Neighbourhood, n_tokens: int, *, question: str, view: ReadView, tokenizer: Tokenizer, max_claims: int
) -> GraphContext:
    """Return as many entities, counted from the first, as fit `n_tokens` with their relations and claims.

    Adding an entity changes which relations are selected, so the relations are selected again for each number of
    entities.
    """
    keys = [entity.id for entity in area.entities]
    claims = await select_claims(keys, question, view, max_claims)
    relations_by_n = [_select_relations(keys[:n], area.relations) for n in range(len(keys) + 1)]
    relation_costs = await _relation_costs(relations_by_n, view, tokenizer)
    text_by_key = {e.key: entity_text(e.name, e.description) for e in await view.entities(keys)}
    n_used, n_fit = 0, 0
    for n, key in enumerate(keys, 1):
        texts = [text_by_key.get(key, ""), *(claim_text(ranked.claim) for ranked in claims.by_key[key])]
        n_used += sum(map(tokenizer.count, texts))
        if n_used + sum(relation_costs.get(relation.id, 0) for relation in relations_by_n[n]) > n_tokens:
            break
        n_fit = n
    fitting = area.entities[:n_fit]
    return GraphContext(
        entities=hits_by_cosine(fitting),
        relations=tuple(_relation_hit(relation, keys[:n_fit]) for relation in relations_by_n[n_fit]),
        claims=tuple(_claim_hit(ranked, entity) for entity in fitting for ranked in claims.by_key[entity.id]),
        notes=tuple(_fit_notes(keys, n_fit, claims.truncated, max_claims)),
    )


def _select_relations(keys: Sequence[str], relations: Sequence[IncidentRelation]) -> list[IncidentRelation]:
    """Return the relations between `keys`, then `OUTER_RELATIONS` for each key to other entities.

    Relations between keys are ordered by the degrees of their ends. The others are ordered by how many keys are related
    to the same outer entity, then by degrees.
    """
    chosen = frozenset(keys)
    inner = [r for r in relations if r.source in chosen and r.target in chosen]
    outer = [r for r in relations if (r.source in chosen) != (r.target in chosen)]
    neighbour = {r.id: r.target if r.source in chosen else r.source for r in outer}
    n_links = Counter(neighbour.values())  # a pair has one relation, so this counts keys
    inner.sort(key=lambda r: (-r.degree_sum, r.id))
    outer.sort(key=lambda r: (-n_links[neighbour[r.id]], -r.degree_sum, r.id))
    return inner + outer[: OUTER_RELATIONS * len(chosen)]


async def _relation_costs(
    selections: Sequence[Sequence[IncidentRelation]], view: ReadView, tokenizer: Tokenizer
) -> Mapping[str, int]:
    ids = sorted({relation.id for relations in selections for relation in relations})
    return {
        relation.id: tokenizer.count(
            relation_text(relation.keywords, relation.source, relation.target, relation.description)
        )
        for relation in await view.relations(ids)
    }


async def select_claims(keys: Sequence[str], question: str, view: ReadView, max_claims: int) -> EntityClaims:
    """Return the claims about each entity that are most useful for a question, at most `max_claims` each."""
    claims_by_key: dict[str, list[Claim]] = {}
    for claim in await view.claims(subjects=keys, k=MAX_CLAIMS_READ) if keys else ():
        claims_by_key.setdefault(claim.subject, []).append(claim)
    words = frozenset(content_terms_of(question))
    ranked = await asyncio.to_thread(lambda: {key: rank_claims(claims, words) for key, claims in claims_by_key.items()})
    return EntityClaims(
        by_key={key: ranked.get(key, [])[:max_claims] for key in keys},
        truncated=frozenset(key for key, claims in claims_by_key.items() if len(claims) > max_claims),
    )


def rank_claims(claims: Sequence[Claim], question_words: frozenset[str]) -> list[RankedClaim]:
    """Return the claims about one entity, the most useful for a question first.

    Claims that share more words with the question come first, then those stated in more chunks, then by chunk and
    position. Repetitions of a claim in the same words come after all others.
    """
    positions_by_wording: dict[tuple[str, ...], list[tuple[str, int]]] = {}
    for claim in claims:
        positions_by_wording.setdefault(_wording(claim), []).append(_position(claim))
    subject_names = {claim.subject_name for claim in claims}  # every claim contains it, so it distinguishes none
    words = question_words.difference(*map(content_terms_of, subject_names))
    ranked = [
        RankedClaim(claim=claim, n_shared_words=len(words.intersection(content_terms_of(claim_text(claim)))))
        for claim in claims
    ]

    def order(entry: RankedClaim) -> tuple[bool, int, int, tuple[str, int]]:
        position, positions = _position(entry.claim), positions_by_wording[_wording(entry.claim)]
        return position != min(positions), -entry.n_shared_words, -len(positions), position

    return sorted(ranked, key=order)


def _position(claim: Claim) -> tuple[str, int]:
    return claim.chunk_id, int(claim.id.rpartition(":")[2])


def _wording(claim: Claim) -> tuple[str, ...]:
    texts = (claim.type, claim.status, claim.dates, claim.description)
    return (claim.object, *(" ".join(text.casefold().split()) for text in texts))


def _relation_hit(relation: IncidentRelation, keys: Sequence[str]) -> Hit:
    is_inner = relation.source in keys and relation.target in keys
    kind = "between two of the entities" if is_inner else "to an entity that is not among them"
    reason = f"{kind}; its ends have {relation.degree_sum} relations"
    return Hit(id=relation.id, score=float(relation.degree_sum), reason=reason)


def _claim_hit(ranked: RankedClaim, entity: Scored) -> Hit:
    n = ranked.n_shared_words
    shared = f", contains {format_count(n, 'word')} of the question" if n else ""
    return Hit(id=ranked.claim.id, score=entity.score, reason=f"is about {entity.id}{shared}")


def _fit_notes(keys: Sequence[str], n_fit: int, truncated: frozenset[str], max_claims: int) -> Iterator[str]:
    if n_fit < len(keys):
        yield f"{n_fit} of {format_count(len(keys), 'entity')} fit the budget, with their relations and claims"
    if names := [key for key in keys[:n_fit] if key in truncated]:
        yield f"only {max_claims} claims each are used about {', '.join(names)}"


def _notes(area: Neighbourhood, *, has_reports: bool) -> Iterator[str]:
    if not area.entities:
        yield "no entity is near to the question"
        return
    if area.n_unread:
        yield f"not read: {format_count(area.n_unread, 'more relation')} of these entities"
    if not has_reports:
        yield "the communities of these entities have no available report"


STRATEGY = Strategy(
    name="community_local",
    retrieve=retrieve,
    options=(CommunityLocalOptions,),
    faithful={
        "chunk_top_k": 1_000,
        "min_similarity": -1.0,
        "entity_tokens": 4_200,
        "relation_tokens": 4_200,
        "report_tokens": 1_800,
        "total_tokens": 12_000,
    },
    summary="entities nearest to the question, the reports on their communities, their relations, claims and passages",
    after="Microsoft GraphRAG (local search)",
    when="the question is about some things and what surrounds them",
    needs=("entity vectors", "relations", "communities", "reports"),
)
