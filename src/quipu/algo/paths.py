"""Paths: the ways of up to two links from some entities, and the best of them.

Source: Y. Fan et al., "MiniRAG" (2025), section 3.3: a path is worth the likeness of its start to a name of the
question, times one more than the candidates for an answer it passes and the relations near the question it takes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np
import numpy.typing as npt

from quipu.algo.gathering import places
from quipu.ports.topology import AdjacencyMatrix, Floats, Ints

NOTHING = -1
LONELY_SHARE = 0.2  # of the starts without any link, the best are kept
_DECIMALS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """What paths run over: entities by number, [n] each.

    `order` is the place of an entity among all by name, `is_answer` says that it may be one; `marked` are the codes
    (`pair_codes`) of the pairs whose relation is near the question, rising.
    """

    links: AdjacencyMatrix
    order: Ints
    is_answer: npt.NDArray[np.bool_]
    marked: Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class Paths:
    """Paths, the best first: `nodes` [m, 3] (`NOTHING` behind the end of one), `scores` [m].

    `n_hubs` entities have more links than were followed.
    """

    nodes: Ints
    scores: Floats
    n_hubs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Steps:
    """Links followed from entities: `of` places among these, `to`, their weights and what they are worth."""

    of: Ints
    to: Ints
    weights: Floats
    gains: Ints
    n_links: Ints  # of each entity, those not followed too
    n_followed: Ints


def best_paths(starts: Ints, worth: Floats, ground: Ground, *, n: int, max_links: int) -> Paths:
    """Return the n best paths from `starts`, distinct, each worth `worth`; no link is taken twice.

    A path has two links; one where its end has no other link; none where its start has no link, of which the best fifth
    are kept. Of an entity with more than `max_links` links those are followed that are worth most, the heaviest of
    equal ones, then the first by name. Equal paths are ordered in the same way: by weight, then by name.
    """
    first = _steps(starts, ground, max_links)
    middles, middle = np.unique(first.to, return_inverse=True)
    second = _steps(middles, ground, max_links)
    begin = np.cumsum(second.n_followed) - second.n_followed
    from_first = np.repeat(np.arange(len(first.to)), second.n_followed[middle])
    at = places(begin[middle], second.n_followed[middle])
    onward = second.to[at] != starts[first.of[from_first]]
    from_first, at = from_first[onward], at[onward]
    ends = np.flatnonzero(second.n_links[middle] == 1)
    alone = _lonely(starts, worth, first.n_links, ground.order)
    nodes = np.full((len(at) + len(ends) + len(alone), 3), NOTHING, dtype=np.int64)
    nodes[:, 0] = np.concatenate([starts[first.of[from_first]], starts[first.of[ends]], starts[alone]])
    nodes[: len(at) + len(ends), 1] = np.concatenate([first.to[from_first], first.to[ends]])
    nodes[: len(at), 2] = second.to[at]
    gains = np.zeros(len(nodes), dtype=np.int64)
    gains[: len(at) + len(ends)] = np.concatenate([first.gains[from_first] + second.gains[at], first.gains[ends]])
    weights = np.zeros(len(nodes))
    weights[: len(at) + len(ends)] = np.concatenate(
        [first.weights[from_first] + second.weights[at], first.weights[ends]]
    )
    value = np.concatenate([worth[first.of[from_first]], worth[first.of[ends]], worth[alone]])
    scores = (value * (1 + gains + ground.is_answer[nodes[:, 0]])).round(_DECIMALS)
    behind = [np.where(column == NOTHING, NOTHING, ground.order[column]) for column in nodes.T]
    best = _first(n, [-scores, -weights.round(_DECIMALS), *behind])
    n_hubs = int((first.n_followed < first.n_links).sum() + (second.n_followed < second.n_links).sum())
    return Paths(nodes=nodes[best], scores=scores[best].astype(np.float64), n_hubs=n_hubs)


def pair_codes(one: Ints, other: Ints, n: int) -> Ints:
    """Return a number for each unordered pair of entities, of which there are `n`."""
    return np.minimum(one, other) * n + np.maximum(one, other)


def _steps(entities: Ints, ground: Ground, max_links: int) -> _Steps:
    """Return the links of entities that are followed, entity by entity."""
    found = ground.links.of(entities)
    gains = ground.is_answer[found.to].astype(np.int64)
    gains += _among(pair_codes(entities[found.of], found.to, len(ground.order)), ground.marked)
    n_links = np.bincount(found.of, minlength=len(entities))
    kept = np.lexsort((ground.order[found.to], -found.weights, -gains, found.of))
    rank = np.arange(len(kept)) - np.repeat(np.cumsum(n_links) - n_links, n_links)
    kept = kept[rank < max_links]
    return _Steps(
        of=found.of[kept],
        to=found.to[kept],
        weights=found.weights[kept],
        gains=gains[kept],
        n_links=n_links,
        n_followed=np.minimum(n_links, max_links),
    )


def _lonely(starts: Ints, worth: Floats, n_links: Ints, order: Ints) -> Ints:
    """Return the places of the best of the starts without links."""
    lonely = np.flatnonzero(n_links == 0)
    best = np.lexsort((order[starts[lonely]], -worth[lonely]))
    return lonely[best[: ceil(LONELY_SHARE * len(lonely))]]


def _among(wanted: Ints, rising: Ints) -> npt.NDArray[np.bool_]:
    if not len(rising):
        return np.zeros(len(wanted), dtype=bool)
    is_here: npt.NDArray[np.bool_] = rising.take(np.searchsorted(rising, wanted), mode="clip") == wanted
    return is_here


def _first(n: int, keys: Sequence[npt.NDArray[np.int64] | Floats]) -> Ints:
    """Return the places of the n least by the first key, equal ones by the next; sorts only what it returns."""
    taken: list[Ints] = []
    group, left = np.arange(len(keys[0])), n
    for key in keys:
        if len(group) <= left:
            break
        values = key[group]
        cut = np.partition(values, left - 1)[left - 1]
        taken.append(group[values < cut])
        left -= len(taken[-1])
        group = group[values == cut]
    best = np.concatenate([*taken, group[:left]])
    return best[np.lexsort([key[best] for key in reversed(keys)])]
