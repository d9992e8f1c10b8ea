"""Passages: the chunks that entities and relations come from, nearest to the question first."""

from collections.abc import Iterable, Mapping, Sequence
from heapq import nsmallest

from quipu.algo.ranking import round_robin
from quipu.model.evidence import Hit
from quipu.model.query import Query
from quipu.ports.store import ReadView, VectorSpace
from quipu.retrieve.steps.found import Found
from quipu.retrieve.steps.search import Vector
from quipu.retrieve.strategy import Tools

# LightRAG keeps at most so many sources of an entity; a name in every chunk would otherwise score the whole index.
MAX_CHUNKS_PER_ENTITY = 200


async def graph_passages(
    found: Found, vector: Vector, *, query: Query, view: ReadView, tools: Tools
) -> list[list[Hit]]:
    """Return two rankings of chunks: those that name the first `top_k` entities, those that state the first relations.

    Of all chunks of n entities the `related_chunks * n / 2` nearest to the question are kept, of relations likewise
    (LightRAG's VECTOR method). LightRAG takes the entities and relations left after the token budget; packing comes
    later here, so the first `top_k` stand in for them. LightRAG also denies the relations every chunk an entity has:
    that puts worse chunks second (recall at 5 fell by 3 to 14 points on four sets), and merging drops doubles anyway.
    """
    keys = [hit.id for hit in found.entities[: query.top_k]]
    relations = [hit.id for hit in found.relations[: query.top_k]]
    named = await view.chunks_of_entities(keys, MAX_CHUNKS_PER_ENTITY)
    naming = _first_owner((key, named.get(key, ())) for key in keys)
    stated = await view.chunks_of_relations(relations)
    stating = _first_owner((relation, stated.get(relation, ())) for relation in relations)
    cosines = await tools.vectors.similarities(view, VectorSpace.CHUNK, vector, sorted(naming.keys() | stating.keys()))
    # Of rankings taken in turn nothing below place `chunk_top_k` comes among the first `chunk_top_k`.
    n_naming, n_stating = (
        min(query.related_chunks * len(owners) // 2, query.chunk_top_k) for owners in (keys, relations)
    )
    return [_nearest(naming, "names", cosines, n_naming), _nearest(stating, "states", cosines, n_stating)]


def merged_passages(query: Query, rankings: Sequence[Sequence[Hit]], weights: Sequence[float] = ()) -> tuple[Hit, ...]:
    """Return the first `chunk_top_k` chunks of the rankings taken in turn, of some more often by their `weights`."""
    return tuple(round_robin(rankings, lambda hit: hit.id, weights)[: query.chunk_top_k])


def _first_owner(chunks_by_owner: Iterable[tuple[str, Iterable[str]]]) -> dict[str, str]:
    owner: dict[str, str] = {}
    for key, chunks in chunks_by_owner:
        for chunk in chunks:
            owner.setdefault(chunk, key)
    return owner


def _nearest(owner: Mapping[str, str], verb: str, cosines: Mapping[str, float], n: int) -> list[Hit]:
    """Return the first n chunks by cosine, equal ones by id; one that has no vector yet counts as unrelated."""
    return [
        Hit(id=chunk, score=-distance, reason=f"{verb} {owner[chunk]}; cosine {-distance:.3f} to the question")
        for distance, chunk in nsmallest(n, ((-cosines.get(chunk, 0.0), chunk) for chunk in owner))
    ]
