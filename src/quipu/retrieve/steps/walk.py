"""Walk: a random walk over entities and passages, and what it finds most often."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from quipu.algo.pagerank import GraphBlock, WeightedGraph, personalised_pagerank
from quipu.model.derivation import SYNONYMS
from quipu.model.evidence import Scored
from quipu.ports.derivation_view import NodeKind
from quipu.ports.store import ReadView
from quipu.ports.topology import EdgeWeight, Floats, Ints, Topology

N_DIGITS = 7  # of a score: sums of floats differ below these with the order of their terms
MAX_DECIMALS = 12  # what is less is noise
_POWERS = np.array([float(f"1e{n}") for n in range(MAX_DECIMALS + 1)])


class Naming(StrEnum):
    """What the link between an entity and a passage that names it weighs."""

    ONE = "one"  # 1, however often it is named (HippoRAG)
    SHARE = "share"  # the entity's share of all the names in the passage (LinearRAG)


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """What links weigh in a walk over entities and passages; 0 or None leaves a kind out.

    A related pair weighs `pairs`, and `facts` for each mention of the relation; synonyms weigh `synonyms` times their
    cosine.
    """

    facts: float = 0.0
    pairs: float = 0.0
    naming: Naming | None = None
    synonyms: float = 0.0


def walk_over(topology: Topology, weights: Weights) -> WeightedGraph:
    """Return the graph of entities and chunks whose links weigh what `weights` says; without chunks if none count."""
    first_chunk = topology.n_entities
    blocks: list[GraphBlock] = []
    if weights.facts:
        blocks.append(GraphBlock(matrix=topology.relations(EdgeWeight.MENTIONS), weight=weights.facts))
    if weights.pairs:
        blocks.append(GraphBlock(matrix=topology.relations(EdgeWeight.ONE), weight=weights.pairs))
    if weights.synonyms:
        blocks.append(GraphBlock(matrix=topology.synonyms(), weight=weights.synonyms))
    if weights.naming is not None:
        blocks += _namings(topology, weights.naming, first_chunk)
    n_chunks = topology.n_chunks if weights.naming is not None else 0
    return WeightedGraph(blocks=blocks, n_entities=first_chunk, n_chunks=n_chunks)


async def ranked(walk: WeightedGraph, reset: Floats, damping: float) -> Floats:
    """Return the PageRank of each node, [n_nodes], for a reset [n_nodes] of any mass; zeros where it has none.

    Another thread does it: in a large graph it takes long.
    """
    total = float(reset.sum())
    if not total:
        return np.zeros(len(reset))
    return await asyncio.to_thread(lambda: rounded(personalised_pagerank(walk, reset / total, damping=damping)))


def rounded(scores: Floats) -> Floats:
    """Return scores of any shape, at least 0, as the nearest decimals of `N_DIGITS` digits.

    Of many shares each is small, so that a fixed number of decimals would make them all equal.
    """
    n_before = np.floor(np.log10(np.maximum(scores, 1 / _POWERS[-1]))) + 1
    power = _POWERS.take((N_DIGITS - n_before).astype(np.int64), mode="clip")
    nearest: Floats = np.rint(scores * power) / power
    return nearest


async def without_synonyms(view: ReadView) -> tuple[str, ...]:
    """Return what the trace should say of a walk over synonyms where these have not been made."""
    if SYNONYMS in await view.derivations():
        return ()
    return (f"names spelt otherwise are not taken together: that is made by `quipu refresh {SYNONYMS}`",)


async def top_chunks(scores: Floats, k: int, view: ReadView) -> tuple[Scored, ...]:
    """Return the k chunks with the highest scores above 0 ([n_chunks]), best first, equal ones by id."""
    numbers = _top(scores, k)
    return _ordered(await view.ids(NodeKind.CHUNK, numbers.tolist()), scores, k)


async def top_entities(scores: Floats, k: int, view: ReadView) -> tuple[Scored, ...]:
    """Return the k entities with the highest scores above 0 ([n_entities]), best first, equal ones by key."""
    numbers = _top(scores, k)
    return _ordered(await view.ids(NodeKind.ENTITY, numbers.tolist()), scores, k)


def _top(scores: Floats, k: int) -> Ints:
    """Return the places of the k highest scores above 0, with all that equal the last."""
    filled = np.flatnonzero(scores > 0)
    if k <= 0 or len(filled) <= k:
        return filled[: max(k, 0)]
    found = scores[filled]
    least = np.partition(found, len(found) - k)[len(found) - k]
    return np.flatnonzero(scores >= max(least, np.finfo(float).tiny))


def _ordered(ids: Mapping[int, str], scores: Floats, k: int) -> tuple[Scored, ...]:
    found = sorted((-float(scores[number]), i) for number, i in ids.items())
    return tuple(Scored(id=i, score=-score) for score, i in found[:k])


def _namings(topology: Topology, naming: Naming, first_chunk: int) -> list[GraphBlock]:
    named, naming_links = topology.occurrences(), topology.occurrences_by_chunk()
    share: Floats | None = None
    if naming is Naming.ONE:
        named, naming_links = named.unweighted(), naming_links.unweighted()
    if naming is Naming.SHARE:
        sums = naming_links.row_sums()
        share = np.divide(1.0, sums, out=np.zeros(len(sums)), where=sums > 0)
    return [
        GraphBlock(matrix=named, columns=first_chunk, column_scale=share),
        GraphBlock(matrix=naming_links, rows=first_chunk, row_scale=share),
    ]
