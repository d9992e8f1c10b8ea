"""path: short ways from what a question names to what may answer it, and the passages along the best of them.

Source: Y. Fan et al., "MiniRAG" (2025), sections 3.2 and 3.3. A model tells what the question names and of which types
its answer may be; without one, known names and the question's words do. Paths of up to two links from entities named
alike are worth ω_p = s(start) · (1 + α + ε): α candidates for the answer are on them, ε relations near the question.
What is on a path shares its worth among its passages; the authors drop some of a hub's, by the spelling of what is
said of it. Not copied from their code: types that are never found, the last path of a start deciding for all,
relations told by their direction, every path of a hub.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from quipu.algo.two_hop_paths import PathGraph, TwoHopPaths, best_paths, pair_codes
from quipu.model.derivation import NAMES
from quipu.model.evidence import Evidence, Hit, Scored, Seed
from quipu.model.ids import relation_ends
from quipu.model.query import Query
from quipu.ports.derivation_view import EntityTypes, NodeKind
from quipu.ports.store import ReadView, VectorSpace
from quipu.ports.topology import EdgeWeight, Topology
from quipu.retrieve.steps.along import best_ways, look_along
from quipu.retrieve.steps.search import Vector, embed, nearest, nearest_passages
from quipu.retrieve.steps.terms import find_terms
from quipu.retrieve.steps.walk import top_chunks
from quipu.retrieve.strategy import Strategy, Tools
from quipu.text.formatting import format_count
from quipu.text.names import entity_key

N_PATHS = 30
MAX_LINKS = 32  # followed from one entity
BOOST = 10.0  # of a passage that is among the nearest to the question too


@dataclass(frozen=True, slots=True, kw_only=True)
class _Aim:
    """Where paths start, each as much alike to a name, which types answers have, and relations near the question.

    `kinds` are the types of all entities.
    """

    starts: Mapping[str, float]
    types: Sequence[str]
    relations: Sequence[Scored]
    kinds: EntityTypes


async def retrieve(query: Query, view: ReadView, tools: Tools) -> Evidence:
    """Return the `chunk_top_k` passages along the best paths, with the entities and relations on these."""
    kinds = await view.entity_types()
    terms = await find_terms(query, kinds.types, view, tools.model)
    vectors = await embed([query.text, *terms.names], tools.embedder)
    vector = vectors[query.text]
    seeds = await _named_alike({name: vectors[name] for name in terms.names}, query, view, tools)
    n_relations = query.top_k * len(terms.names)
    relations = await nearest(VectorSpace.RELATION, vector, query=query, k=n_relations, view=view, tools=tools)
    topology = await tools.topology.open(view)
    aim = _Aim(starts=_starts(seeds), types=terms.types, relations=relations, kinds=kinds)
    paths = await _paths(aim, topology, view)
    dense, seed = await nearest_passages(query, vector, view, tools)
    if not len(paths.nodes):
        note = "nothing there is named alike: the nearest passages stand in"
        return Evidence(chunks=dense, seeds=(seed,), notes=(*terms.notes, note))
    along = await look_along(paths, topology, view)
    boosted = await view.numbers(NodeKind.CHUNK, [hit.id for hit in dense])
    along.chunks[list(boosted.values())] *= BOOST
    chunks = await top_chunks(along.chunks, query.chunk_top_k, view)
    cut = (
        (f"truncated: only {MAX_LINKS} links each were followed of {format_count(paths.n_hubs, 'hub')}",)
        if paths.n_hubs
        else ()
    )
    ways = await best_ways([each.id for each in chunks], along, topology, view)
    return Evidence(
        chunks=tuple(_passage(each, ways, is_near=each.id in boosted) for each in chunks),
        entities=_hits(along.entities, query.top_k),
        relations=_hits(along.relations, query.top_k),
        seeds=(*seeds, seed),
        notes=(*terms.notes, *cut),
    )


async def _named_alike(names: Mapping[str, Vector], query: Query, view: ReadView, tools: Tools) -> tuple[Seed, ...]:
    """Return, for each name, the entities of that name or alias, and the `top_k` whose names are alike."""
    known = await view.keys_by_name([entity_key(name) for name in names])
    queries = np.stack(list(names.values()))
    near = await tools.vectors.nearest(view, VectorSpace.NAME, queries, k=query.top_k, min_score=query.min_similarity)
    seeds: list[Seed] = []
    for name, alike in zip(names, near, strict=True):
        exact = [Scored(id=key, score=1.0) for key in known.get(entity_key(name), ())]
        rest = [each for each in alike if each.id not in {e.id for e in exact}]
        seeds.append(Seed(text=name, kind="vector", matches=(*exact, *rest)))
    return tuple(seeds)


def _starts(seeds: Sequence[Seed]) -> dict[str, float]:
    """Return each entity that is named alike, with the best of its scores."""
    starts: dict[str, float] = {}
    for found in (each for seed in seeds for each in seed.matches):
        starts[found.id] = max(found.score, starts.get(found.id, 0.0))
    return starts


async def _paths(aim: _Aim, topology: Topology, view: ReadView) -> TwoHopPaths:
    """Return the best paths from the starts, over the pairs of related entities."""
    n = topology.n_entities
    order, is_answer = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=bool)
    order[aim.kinds.numbers] = np.arange(len(aim.kinds.numbers))
    answers = [place for place, kind in enumerate(aim.kinds.types) if kind in aim.types]
    is_answer[aim.kinds.numbers[np.isin(aim.kinds.codes, answers)]] = True
    ends = [relation_ends(each.id) for each in aim.relations]
    number_by_key = await view.numbers(NodeKind.ENTITY, sorted({*aim.starts, *(key for pair in ends for key in pair)}))
    starts = {number_by_key[key]: score for key, score in aim.starts.items() if key in number_by_key}
    pairs = [(number_by_key[a], number_by_key[b]) for a, b in ends if a in number_by_key and b in number_by_key]
    near = [pair for pair in pairs if any(number in starts or is_answer[number] for number in pair)]
    one, other = np.array(near, dtype=np.int64).reshape(-1, 2).T
    marked = np.unique(pair_codes(one, other, n))
    ground = PathGraph(
        relations=topology.relations(EdgeWeight.WEIGHT), order=order, is_answer=is_answer, relevant_pairs=marked
    )
    numbers = np.array(list(starts), dtype=np.int64)
    worth = np.array(list(starts.values()))
    return await asyncio.to_thread(best_paths, numbers, worth, ground, n=N_PATHS, max_edges=MAX_LINKS)


def _passage(found: Scored, ways: Mapping[str, str], *, is_near: bool) -> Hit:
    along = f"along {ways[found.id]}" if ways.get(found.id) else "states a relation of a path"
    return Hit(id=found.id, score=found.score, reason=f"{along}, and near the question" if is_near else along)


def _hits(worth: Mapping[str, float], k: int) -> tuple[Hit, ...]:
    best = sorted((-round(score, 6), identifier) for identifier, score in worth.items())[:k]
    return tuple(
        Hit(id=identifier, score=-score, reason=f"paths worth {-score:.3f} pass") for score, identifier in best
    )


STRATEGY = Strategy(
    name="path",
    retrieve=retrieve,
    summary="short ways from what the question names to what may answer it, and passages along them",
    after="MiniRAG",
    when="the question asks for a person, place or time one or two relations away from what it names",
    needs=(NAMES, "relation vectors", "chunk vectors", "relations", "topology"),
    n_model_calls=1,
)
