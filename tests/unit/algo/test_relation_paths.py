"""Tests of paths against their definition, walk by walk."""

from itertools import pairwise
from random import Random

import numpy as np
import pytest

from quipu.algo import relation_paths
from quipu.algo.relation_paths import NO_NODE, PathGraph, RelationPaths, best_paths, count_near, pair_codes
from quipu.algo.sparse_matrix import sparse_matrix

_N = 14


def _ground(
    links: dict[tuple[int, int], float], answers: set[int], marked: set[tuple[int, int]], weight: int = 1
) -> PathGraph:
    """Return the ground; entities are ordered by name backwards, so that numbers do not help."""
    both = [*links, *((b, a) for a, b in links)]
    rows, columns = np.array(both, dtype=np.int64).reshape(-1, 2).T
    weights = np.array([*links.values(), *links.values()])
    one, other = np.array(sorted(marked), dtype=np.int64).reshape(-1, 2).T
    return PathGraph(
        relations=sparse_matrix(rows, columns, weights, (_N, _N)),
        order=np.arange(_N)[::-1].copy(),
        is_answer=np.isin(np.arange(_N), sorted(answers)),
        key_relations=np.unique(pair_codes(one, other, _N)),
        key_weights=np.full(len(marked), weight),
    )


def _walks(
    starts: dict[int, float], links: dict[tuple[int, int], float], max_links: int, ground: PathGraph, length: int
) -> list[tuple[int, ...]]:
    """Return every path: no link twice; shorter where the end leads nowhere else; the best fifth of the lonely."""
    near: dict[int, list[int]] = {node: [] for node in range(_N)}
    for a, b in links:
        near[a].append(b)
        near[b].append(a)

    def followed(node: int) -> list[int]:
        def rank(to: int) -> tuple[float, float, int]:
            pair = (min(node, to), max(node, to))
            gain = int(ground.is_answer[to]) + _worth(pair, ground)
            return -gain, -links[pair], int(ground.order[to])

        return sorted(near[node], key=rank)[:max_links]

    def extended(path: tuple[int, ...]) -> list[tuple[int, ...]]:
        used = {frozenset(pair) for pair in pairwise(path)}
        unused = [to for to in near[path[-1]] if frozenset((path[-1], to)) not in used]
        if len(path) == length + 1 or not unused:
            return [path]
        return [longer for to in followed(path[-1]) if to in unused for longer in extended((*path, to))]

    found = [path for start in starts for path in extended((start,)) if len(path) > 1]
    lonely = sorted((node for node in starts if not near[node]), key=lambda n: (-starts[n], ground.order[n]))
    return found + [(node,) for node in lonely[: -(-len(lonely) // 5)]]


def _worth(pair: tuple[int, int], ground: PathGraph) -> int:
    return int(ground.key_weights[0]) if pair[0] * _N + pair[1] in ground.key_relations else 0


def _expected(
    starts: dict[int, float], links: dict[tuple[int, int], float], ground: PathGraph, max_links: int, length: int
) -> list[tuple[tuple[int, ...], float]]:
    scored = []
    for path in _walks(starts, links, max_links, ground, length):
        pairs = [(min(pair), max(pair)) for pair in pairwise(path)]
        answers = sum(bool(ground.is_answer[node]) for node in path)
        near = sum(_worth(pair, ground) for pair in pairs)
        score = round(starts[path[0]] * (1 + answers + near), 6)
        weight = round(sum(links[pair] for pair in pairs), 6)
        names = [*(int(ground.order[node]) for node in path), *[NO_NODE] * (length + 1 - len(path))]
        scored.append(((-score, -weight, *names), path, score))
    return [(path, score) for _, path, score in sorted(scored)]


def _listed(paths: RelationPaths) -> list[tuple[tuple[int, ...], float]]:
    return [
        (tuple(node for node in nodes if node != NO_NODE), score)
        for nodes, score in zip(paths.nodes.tolist(), paths.scores.tolist(), strict=True)
    ]


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("max_links", [2, 4, 100])
@pytest.mark.parametrize(("length", "weight", "block"), [(2, 1, 10**6), (1, 3, 5), (3, 1, 7), (4, 2, 10**6)])
def test_paths_are_those_of_the_definition_in_order(
    seed: int, max_links: int, length: int, weight: int, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relation_paths, "BLOCK_SIZE", block)
    chance = Random(seed)
    nodes = list(range(_N - 2))  # the last two have no link
    pairs = {tuple(sorted(chance.sample(nodes, 2))) for _ in range(chance.randint(4, 24))}
    links = {(a, b): float(chance.randint(1, 3)) for a, b in sorted(pairs)}
    starts = {node: round(chance.choice([0.2, 0.5, 0.9]), 6) for node in chance.sample(range(_N), 5)}
    answers = set(chance.sample(range(_N), 3))
    marked = set(chance.sample(sorted(links), 2))
    ground = _ground(links, answers, marked, weight)
    expected = _expected(starts, links, ground, max_links, length)
    numbers, worth = np.array(list(starts), dtype=np.int64), np.array(list(starts.values()))
    for n in (1, 5, 1_000):
        found = best_paths(numbers, worth, ground, n=n, max_edges=max_links, length=length)
        assert _listed(found) == expected[:n]


def test_a_relation_counts_whichever_way_it_is_taken() -> None:
    ground = _ground({(0, 1): 1.0, (1, 2): 1.0}, set(), {(0, 1)})
    there = best_paths(np.array([0]), np.array([0.5]), ground, n=9, max_edges=9)
    back = best_paths(np.array([2]), np.array([0.5]), ground, n=9, max_edges=9)
    assert _listed(there) == [((0, 1, 2), 1.0)]
    assert _listed(back) == [((2, 1, 0), 1.0)]


def test_the_best_are_extended_where_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relation_paths, "MAX_UNFINISHED", 2)
    ground = _ground({(0, 1): 1.0, (0, 2): 2.0, (0, 3): 3.0, (1, 4): 1.0, (2, 5): 1.0, (3, 6): 1.0}, {4}, {(0, 1)})
    found = best_paths(np.array([0]), np.array([1.0]), ground, n=9, max_edges=9)
    assert [path for path, _ in _listed(found)] == [(0, 1, 4), (0, 3, 6)]  # worth 2 after one link, then the heaviest
    assert found.n_dropped == 1


@pytest.mark.parametrize(("n_hops", "expected"), [(0, [2, 0]), (1, [3, 2]), (2, [3, 2]), (3, [3, 4]), (4, [4, 4])])
def test_a_key_relation_weighs_as_many_candidates_as_are_within_some_hops(n_hops: int, expected: list[int]) -> None:
    """The chain 0 - 1 - 2 - 3 - 4 - 5: 0 is a start and an answer candidate, 2 and 5 are answer candidates."""
    ground = _ground({(n, n + 1): 1.0 for n in range(5)}, {0, 2, 5}, set())
    candidates = np.zeros(_N, dtype=np.int64)
    candidates[[0, 2, 5]] = [2, 1, 1]
    assert count_near([(0, 1), (3, 4)], candidates, ground.relations, n_hops).tolist() == expected


def test_hubs_are_cut_and_counted() -> None:
    links = {(0, n): 1.0 for n in range(1, 10)}
    ground = _ground(links, {5}, {(0, 7)})
    found = best_paths(np.array([0]), np.array([1.0]), ground, n=9, max_edges=3)
    assert found.n_hubs == 1
    assert [path for path, _ in _listed(found)] == [(0, 7), (0, 5), (0, 9)]  # worth most, then first by name
    assert best_paths(np.array([3]), np.array([1.0]), ground, n=9, max_edges=3).n_hubs == 1  # the hub is in the middle


def test_nothing_to_start_from() -> None:
    ground = _ground({(0, 1): 1.0}, set(), set())
    assert _listed(best_paths(np.empty(0, np.int64), np.empty(0), ground, n=5, max_edges=5)) == []
