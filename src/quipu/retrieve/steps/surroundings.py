"""Surroundings: reports, relations and passages around entities, as local search of Microsoft GraphRAG takes them."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from quipu.model.cluster import Cluster, ClusterReport
from quipu.model.evidence import Hit, Scored
from quipu.model.graph import IncidentRelation
from quipu.ports.store import ReadView, VectorSpace
from quipu.retrieve.steps.communities import branches
from quipu.retrieve.steps.passages import MAX_CHUNKS_PER_ENTITY
from quipu.retrieve.steps.search import Vector
from quipu.retrieve.strategy import Tools

OUTGOING = 10  # relations kept for each entity that lead to what is not among the entities
MAX_INCIDENT = 2_000  # relations looked at, those between the best connected first


@dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    """Entities, nearest first, and the relations that touch them; `n_more` were not looked at."""

    entities: tuple[Scored, ...]
    incident: tuple[IncidentRelation, ...]
    n_more: int


async def read_around(entities: Sequence[Scored], view: ReadView) -> Around:
    """Return entities with the relations that touch them."""
    keys = [entity.id for entity in entities]
    relations, n = await view.strongest_relations(keys, MAX_INCIDENT) if keys else ([], 0)
    return Around(entities=tuple(entities), incident=tuple(relations), n_more=n - len(relations))


def relations_of(keys: Sequence[str], incident: Sequence[IncidentRelation]) -> list[IncidentRelation]:
    """Return the relations among `keys`, then those that lead out of them, `OUTGOING` for each.

    First come, of those within, the ones between the best connected ends; of those without, the ones to what the most
    of the entities are related to.
    """
    chosen = frozenset(keys)
    within = [r for r in incident if r.source in chosen and r.target in chosen]
    without = [r for r in incident if (r.source in chosen) != (r.target in chosen)]
    outer = {r.id: r.target if r.source in chosen else r.source for r in without}
    n_links = Counter(outer.values())  # pairs are related once, so these are as many entities
    within.sort(key=lambda r: (-r.degree_sum, r.id))
    without.sort(key=lambda r: (-n_links[outer[r.id]], -r.degree_sum, r.id))
    return within + without[: OUTGOING * len(chosen)]


async def passages_of(around: Around, vector: Vector, view: ReadView, tools: Tools) -> tuple[Hit, ...]:
    """Return the passages that name the entities: of the first entity first, those that state most of its relations.

    Of those that state as many the nearest to the question, whose vector is `vector`, comes first.
    """
    keys = [entity.id for entity in around.entities]
    chunks = await view.chunks_of_entities(keys, MAX_CHUNKS_PER_ENTITY) if keys else {}
    stated = await view.chunks_of_relations([r.id for r in around.incident]) if around.incident else {}
    n_stated = _count_stated(around.incident, stated)
    named = sorted({chunk for each in chunks.values() for chunk in each})
    near = await tools.vectors.similarities(view, VectorSpace.CHUNK, vector, named)
    hits: dict[str, Hit] = {}
    for entity in around.entities:
        counts = n_stated[entity.id]
        for chunk in sorted(chunks.get(entity.id, ()), key=lambda each: (-counts[each], -near.get(each, 0.0), each)):
            stated_of = f", states {counts[chunk]} of its relations" if counts[chunk] else ""
            reason = f"names {entity.id}{stated_of}"
            hits.setdefault(chunk, Hit(id=chunk, score=entity.score, reason=reason))
    return tuple(hits.values())


def _count_stated(
    incident: Sequence[IncidentRelation], stated: Mapping[str, Sequence[str]]
) -> Mapping[str, Counter[str]]:
    """Return, for each entity, how many of its relations each chunk states."""
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for relation in incident:
        for end in (relation.source, relation.target):
            counts[end].update(stated.get(relation.id, ()))
    return counts


async def reports_of(keys: Sequence[str], level: int, view: ReadView) -> list[tuple[ClusterReport, int]]:
    """Return the reports on the communities of entities, each with how many of the entities are in it, most first.

    The community of an entity is the finest no finer than `level`; where its report may not be shown, the next finer
    stands in. Equal ones are ordered by rating, then by id.
    """
    candidates = {key: tuple(_candidates(branch, level)) for key, branch in (await branches(keys, view)).items()}
    ids = sorted({cluster for each in candidates.values() for cluster in each})
    reports = {report.cluster: report for report in await view.cluster_reports(ids)} if ids else {}
    own = (next((cluster for cluster in each if cluster in reports), "") for each in candidates.values())
    n_entities = Counter(cluster for cluster in own if cluster)
    ranked = sorted(n_entities, key=lambda cluster: (-n_entities[cluster], -reports[cluster].rating, cluster))
    return [(reports[cluster], n_entities[cluster]) for cluster in ranked]


def _candidates(branch: Sequence[Cluster], level: int) -> Iterator[str]:
    """Yield the finest cluster of a branch, coarsest first, that is no finer than `level`, then the finer ones."""
    start = max((place for place, cluster in enumerate(branch) if cluster.level <= level), default=0)
    yield from (cluster.id for cluster in branch[start:])
