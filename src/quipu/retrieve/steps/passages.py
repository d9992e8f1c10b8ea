"""Passages: the chunks that entities and relations come from, nearest to the question first."""

from collections.abc import Iterable, Mapping, Sequence

from quipu.algo.fusion import round_robin
from quipu.model.evidence import Hit
from quipu.model.query import Query
from quipu.ports.store import ReadView, Space
from quipu.retrieve.steps.found import Found
from quipu.retrieve.steps.search import Vector
from quipu.retrieve.strategy import Tools

# LightRAG keeps at most so many sources of an entity; a name in every chunk would otherwise score the whole index.
MAX_CHUNKS_PER_ENTITY = 200


async def graph_passages(
    found: Found, vector: Vector, *, query: Query, view: ReadView, tools: Tools
) -> list[list[Hit]]:
    """Return two rankings of chunks: those of the first `top_k` entities, then others that state the first relations.

    Of all chunks of n entities the `related_chunks * n / 2` nearest to the question are kept, of relations likewise
    (LightRAG's VECTOR method). LightRAG takes the entities and relations left after the token budget; packing comes
    later here, so the first `top_k` stand in for them.
    """
    entities, relations = found.entities[: query.top_k], found.relations[: query.top_k]
    owner = await _chunks_of_entities([hit.id for hit in entities], view)
    by_entity = await _pick(owner, "names", vector, n=query.related_chunks * len(entities) // 2, view=view, tools=tools)
    taken = {hit.id for hit in by_entity}
    stated = await view.chunks_of_relations([hit.id for hit in relations])
    owner = _first_owner((hit.id, stated.get(hit.id, ())) for hit in relations)
    owner = {chunk: relation for chunk, relation in owner.items() if chunk not in taken}
    n = query.related_chunks * len(relations) // 2
    by_relation = await _pick(owner, "states", vector, n=n, view=view, tools=tools)
    return [by_entity, by_relation]


def merged_passages(query: Query, rankings: Sequence[Sequence[Hit]]) -> tuple[Hit, ...]:
    """Return the first `chunk_top_k` chunks of the rankings taken in turn."""
    return tuple(round_robin(rankings, lambda hit: hit.id)[: query.chunk_top_k])


async def _chunks_of_entities(keys: Sequence[str], view: ReadView) -> dict[str, str]:
    counts = await view.chunks_of_entities(keys)
    return _first_owner((key, _most_frequent(counts.get(key, {}))) for key in keys)


def _most_frequent(count_by_chunk: Mapping[str, int]) -> list[str]:
    return sorted(count_by_chunk, key=lambda chunk: (-count_by_chunk[chunk], chunk))[:MAX_CHUNKS_PER_ENTITY]


def _first_owner(chunks_by_owner: Iterable[tuple[str, Sequence[str]]]) -> dict[str, str]:
    owner: dict[str, str] = {}
    for key, chunks in chunks_by_owner:
        for chunk in chunks:
            owner.setdefault(chunk, key)
    return owner


async def _pick(
    owner: Mapping[str, str], verb: str, vector: Vector, *, n: int, view: ReadView, tools: Tools
) -> list[Hit]:
    """Return the n candidates nearest to `vector`, equal ones by id; a chunk not embedded yet counts as unrelated."""
    cosines = await tools.vectors.similarities(view, Space.CHUNK, vector, sorted(owner))
    ranked = sorted(owner, key=lambda chunk: (-cosines.get(chunk, 0.0), chunk))[:n]
    return [
        Hit(
            id=chunk,
            score=cosines.get(chunk, 0.0),
            reason=f"{verb} {owner[chunk]}; cosine {cosines.get(chunk, 0.0):.3f} to the question",
        )
        for chunk in ranked
    ]
