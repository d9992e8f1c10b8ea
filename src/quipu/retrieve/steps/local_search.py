"""Local search: the relations and passages around entities, as local search of Microsoft GraphRAG selects them."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from quipu.model.evidence import Hit, Scored
from quipu.model.graph import IncidentRelation
from quipu.ports.store import OccurrenceKind, ReadView, VectorSpace
from quipu.retrieve.steps.passages import MAX_CHUNKS_PER_ENTITY
from quipu.retrieve.steps.vector_search import Vector
from quipu.retrieve.strategy import Tools

MAX_RELATIONS_READ = 2_000  # those with the best connected ends first


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbourhood:
    """Entities, nearest to the question first, and the relations of these entities; `n_unread` more were not read."""

    entities: tuple[Scored, ...]
    relations: tuple[IncidentRelation, ...]
    n_unread: int


async def read_neighbourhood(entities: Sequence[Scored], view: ReadView) -> Neighbourhood:
    """Return entities with their relations."""
    keys = [entity.id for entity in entities]
    relations, n = await view.strongest_relations(keys, MAX_RELATIONS_READ) if keys else ([], 0)
    return Neighbourhood(entities=tuple(entities), relations=tuple(relations), n_unread=n - len(relations))


async def rank_passages(area: Neighbourhood, vector: Vector, view: ReadView, tools: Tools) -> tuple[Hit, ...]:
    """Return the passages that mention the entities, in the order of the entities.

    Passages of one entity are ordered by how many of its relations they state, then by their similarity to the
    question, whose vector is `vector`.
    """
    keys = [entity.id for entity in area.entities]
    chunks_by_key = await view.occurrences(OccurrenceKind.ENTITY, keys, MAX_CHUNKS_PER_ENTITY) if keys else {}
    chunks_by_relation = (
        await view.occurrences(OccurrenceKind.RELATION, [r.id for r in area.relations]) if area.relations else {}
    )
    n_stated = _count_stated_relations(area.relations, chunks_by_relation)
    mentioning = sorted({chunk for chunks in chunks_by_key.values() for chunk in chunks})
    cosines = await tools.vectors.similarities(view, VectorSpace.CHUNK, vector, mentioning)
    hits: dict[str, Hit] = {}
    for entity in area.entities:
        counts = n_stated[entity.id]
        chunks = chunks_by_key.get(entity.id, ())
        for chunk in sorted(chunks, key=lambda chunk: (-counts[chunk], -cosines.get(chunk, 0.0), chunk)):
            stated = f", states {counts[chunk]} of its relations" if counts[chunk] else ""
            hits.setdefault(chunk, Hit(id=chunk, score=entity.score, reason=f"mentions {entity.id}{stated}"))
    return tuple(hits.values())


def _count_stated_relations(
    relations: Sequence[IncidentRelation], chunks_by_relation: Mapping[str, Iterable[str]]
) -> Mapping[str, Counter[str]]:
    """Return, for each entity, how many of its relations each chunk states."""
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for relation in relations:
        for end in (relation.source, relation.target):
            counts[end].update(chunks_by_relation.get(relation.id, ()))
    return counts
