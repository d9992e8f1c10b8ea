"""Dual-level graph search: entities by low-level keywords, relations by high-level keywords.

Source: Z. Guo et al., "LightRAG: Simple and Fast Retrieval-Augmented Generation" (2024), section 3.2.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Self

from quipu.algo.similarity import round_robin
from quipu.model.evidence import Evidence, Hit, Seed
from quipu.model.ids import relation_ends
from quipu.model.query import Options, Query, option
from quipu.ports.store import ReadView, VectorSpace
from quipu.retrieve.steps.seeds import (
    LowLevelKeywords,
    Vector,
    embed,
    find_low_level_keywords,
    find_nearest,
    join_high_level_keywords,
)
from quipu.retrieve.strategy import Tools
from quipu.text.formatting import format_count


@dataclass(frozen=True, slots=True, kw_only=True)
class LowLevelOptions(Options):
    """The options of low-level retrieval. A budget of 8,000 tokens holds fewer than 400 relations of 40 entities."""

    relations_per_entity: int = option(
        10, "Relations read for an entity, on average.", between=(0, 100_000), faithful=100_000
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphHits:
    """What a search of the graph found: entities and relations, best first, its seeds, and notes for the trace."""

    entities: tuple[Hit, ...] = ()
    relations: tuple[Hit, ...] = ()
    seeds: tuple[Seed, ...] = ()
    notes: tuple[str, ...] = ()

    def with_seed(self, seed: Seed) -> Self:
        """Return a copy with one more seed."""
        return replace(self, seeds=(*self.seeds, seed))

    def with_chunks(self, chunks: Iterable[Hit]) -> Evidence:
        """Return the evidence made of these hits and `chunks`."""
        return Evidence(
            chunks=tuple(chunks),
            entities=self.entities,
            relations=self.relations,
            seeds=self.seeds,
            notes=self.notes,
        )


async def search_entities(
    keywords: LowLevelKeywords, vector: Vector, *, query: Query, view: ReadView, tools: Tools
) -> GraphHits:
    """Return the entities of the low-level keywords and their relations (low-level retrieval).

    First come the entities that the keywords name, then those nearest to `vector`, the embedding of the keywords;
    `top_k` in all.
    """
    nearest = await find_nearest(VectorSpace.ENTITY, vector, query=query, k=query.top_k, view=view, tools=tools)
    hits: dict[str, Hit] = {}
    for seed in keywords.names:
        for match in seed.matches:
            hits.setdefault(match.id, Hit(id=match.id, score=1.0, reason=f"named in the question: '{seed.text}'"))
    for scored in nearest:
        reason = f"cosine {scored.score:.3f} to '{keywords.text}'"
        hits.setdefault(scored.id, Hit(id=scored.id, score=scored.score, reason=reason))
    entities = tuple(hits.values())[: query.top_k]
    limit = query.options_of(LowLevelOptions).relations_per_entity * query.top_k
    relations, n_omitted = await _relations_of(entities, limit=limit, view=view)
    omission = f"not read: {format_count(n_omitted, 'more relation')} of these entities"
    return GraphHits(
        entities=entities,
        relations=relations,
        seeds=(*keywords.names, Seed(text=keywords.text, kind="vector", matches=nearest)),
        notes=keywords.notes + ((omission,) if n_omitted else ()),
    )


async def search_relations(themes: str, vector: Vector, *, query: Query, view: ReadView, tools: Tools) -> GraphHits:
    """Return the `top_k` relations nearest to the high-level keywords, and their ends (high-level retrieval).

    `vector` is the embedding of `themes`. The ends come in the order in which they first appear.
    """
    nearest = await find_nearest(VectorSpace.RELATION, vector, query=query, k=query.top_k, view=view, tools=tools)
    entities: dict[str, Hit] = {}
    for scored in nearest:
        for key in relation_ends(scored.id):
            entities.setdefault(key, Hit(id=key, score=scored.score, reason=f"an end of {scored.id}"))
    relations = (Hit(id=s.id, score=s.score, reason=f"cosine {s.score:.3f} to the question's themes") for s in nearest)
    return GraphHits(
        entities=tuple(entities.values()),
        relations=tuple(relations),
        seeds=(Seed(text=themes, kind="vector", matches=nearest),),
        notes=() if nearest else ("no relation is near to the question's themes",),
    )


async def search_both_levels(query: Query, view: ReadView, tools: Tools) -> tuple[GraphHits, GraphHits, Vector]:
    """Return the results of both levels, low first, and the vector of the question; one call of the embedder."""
    keywords, themes = await find_low_level_keywords(query, view), join_high_level_keywords(query)
    vectors = await embed([query.text, keywords.text, themes], tools.embedder)
    low = await search_entities(keywords, vectors[keywords.text], query=query, view=view, tools=tools)
    high = await search_relations(themes, vectors[themes], query=query, view=view, tools=tools)
    return low, high, vectors[query.text]


def merge_levels(low: GraphHits, high: GraphHits, weights: Sequence[float] = ()) -> GraphHits:
    """Return both results merged in turns, `low` first, without duplicates. `weights` as in `round_robin`."""
    return GraphHits(
        entities=tuple(round_robin([low.entities, high.entities], lambda hit: hit.id, weights)),
        relations=tuple(round_robin([low.relations, high.relations], lambda hit: hit.id, weights)),
        seeds=low.seeds + high.seeds,
        notes=low.notes + high.notes,
    )


async def _relations_of(entities: Sequence[Hit], *, limit: int, view: ReadView) -> tuple[tuple[Hit, ...], int]:
    """Return the relations of `entities`, best connected ends first, and how many more there are."""
    relations, n_relations = await view.strongest_relations([hit.id for hit in entities], limit)
    keys = {hit.id for hit in entities}
    hits = tuple(
        Hit(
            id=relation.id,
            score=float(relation.degree_sum),
            reason=f"relation of {relation.source_name if relation.source in keys else relation.target_name}; "
            f"its ends have {relation.degree_sum} relations, weight {relation.weight:g}",
        )
        for relation in relations
    )
    return hits, n_relations - len(hits)
