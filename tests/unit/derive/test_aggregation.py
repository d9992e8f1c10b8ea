"""Tests of the aggregation of a hierarchy, against plain loops over everything."""

from collections import defaultdict

import numpy as np
import pytest

from quipu.derive.aggregation import (
    MAX_CHUNKS,
    MAX_TOP_ENTITIES,
    Aggregation,
    EntityGraph,
    MentionCounts,
    WeightedRelations,
)


def _graph(n: int, n_relations: int, seed: int = 0) -> EntityGraph:
    chance = np.random.default_rng(seed)
    ends = np.sort(chance.integers(0, n, (n_relations, 2)), axis=1)
    ends = np.unique(ends[ends[:, 0] < ends[:, 1]], axis=0)
    vectors = chance.normal(size=(n, 12)) + 2 * chance.normal(size=(12, 12))[chance.integers(0, 12, n)]
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    seen = np.unique(chance.integers(0, (n, 60), (n * 4, 2)), axis=0)
    return EntityGraph(
        revision=1,
        keys=tuple(f"entity {i:04}" for i in range(n)),
        vectors=vectors.astype(np.float16),
        degrees=np.bincount(ends.ravel(), minlength=n).astype(np.int64),
        relations=WeightedRelations(
            first=ends[:, 0], second=ends[:, 1], weights=chance.integers(1, 4, len(ends)) * 500
        ),
        mentions=MentionCounts(
            entities=seen[:, 0],
            chunks=seen[:, 1],
            counts=chance.integers(1, 4, len(seen)),
            ids=tuple(f"chunk {i:02}" for i in range(60)),
        ),
    )


def _chain(aggregation: Aggregation, node: int) -> list[int]:
    parent = int(aggregation.layers.parents[node])
    return [node, *(_chain(aggregation, parent) if parent >= 0 else ())]


@pytest.fixture(scope="module")
def aggregation() -> Aggregation:
    """Five hundred entities and two thousand relations."""
    return Aggregation(_graph(500, 2_000))


def test_tops_and_chunks_are_those_of_all_that_is_in_an_aggregate(aggregation: Aggregation) -> None:
    graph = aggregation.graph
    inside: dict[int, list[int]] = defaultdict(list)
    for entity in range(500):
        for node in _chain(aggregation, entity)[1:]:
            inside[node].append(entity)
    assert sorted(inside) == list(aggregation.aggregates)
    for node, entities in inside.items():
        ranked = sorted(entities, key=lambda each: (-graph.degrees[each], each))
        assert aggregation.top_entities[node] == ranked[:MAX_TOP_ENTITIES]
        counts: dict[int, int] = defaultdict(int)
        seen = graph.mentions
        for entity, chunk, n in zip(seen.entities.tolist(), seen.chunks.tolist(), seen.counts.tolist(), strict=True):
            if entity in entities:
                counts[chunk] += n
        assert aggregation.chunks[node] == sorted(counts, key=lambda each: (-counts[each], each))[:MAX_CHUNKS]


def test_relations_are_of_the_lowest_aggregate_that_holds_both_ends(aggregation: Aggregation) -> None:
    pairs = aggregation.graph.relations
    expected: dict[int, list[int]] = defaultdict(list)
    for row, (one, other) in enumerate(zip(pairs.first.tolist(), pairs.second.tolist(), strict=True)):
        above = _chain(aggregation, other)
        expected[next(node for node in _chain(aggregation, one) if node in above)].append(row)
    for node, rows in expected.items():
        ranked = sorted(rows, key=lambda row: (-pairs.weights[row], pairs.first[row], pairs.second[row]))
        assert aggregation.relations[node] == ranked[:64]
    assert aggregation.relations.keys() == expected.keys()


def test_crossings_are_all_pairs_that_stand_side_by_side_and_are_related(aggregation: Aggregation) -> None:
    """The pair loop of the original: for every two aggregates of a layer, all relations are looked through."""
    pairs, levels, ids = aggregation.graph.relations, aggregation.layers.levels, aggregation.ids
    expected: dict[tuple[str, str], tuple[int, int, int]] = {}
    for level in range(1, int(levels.max()) + 1):
        at = [
            max((n for n in _chain(aggregation, e) if levels[n] <= level), key=lambda n: levels[n]) for e in range(500)
        ]
        for row in range(len(pairs.first)):
            one, other = at[int(pairs.first[row])], at[int(pairs.second[row])]
            if one == other or min(one, other) < 500 or max(levels[one], levels[other]) < level:
                continue
            ends = min(ids[one], ids[other]), max(ids[one], ids[other])
            _, n, weight = expected.get(ends, (0, 0, 0))
            expected[ends] = level, n + 1, weight + int(pairs.weights[row])
    found = list(aggregation.inter_cluster_relations())
    assert {(ids[c.source], ids[c.target]): (c.level, c.n, c.weight) for c in found} == expected
    assert len(found) == len(expected) > 20
    for crossing in found:
        weights = pairs.weights[crossing.strongest]
        assert len(weights) == min(crossing.n, 64)
        assert (np.diff(weights) <= 0).all()


def test_each_relation_is_looked_at_once_in_each_layer() -> None:
    """Twice the relations take twice the work: the original looks through all of them for every pair of aggregates."""
    for n_relations in (1_000, 2_000, 4_000):
        aggregation = Aggregation(_graph(400, n_relations))
        n_looked_at = sum(crossing.n for crossing in aggregation.inter_cluster_relations())
        assert n_looked_at <= len(aggregation.graph.relations.first) * int(aggregation.layers.levels.max())


def test_ids_are_of_what_is_inside_and_of_nothing_else() -> None:
    graph = _graph(500, 2_000)
    first, again = Aggregation(graph), Aggregation(_graph(500, 4_000))
    assert len(set(first.ids)) == len(first.ids)
    same_vectors = EntityGraph(
        revision=9,
        keys=graph.keys,
        vectors=graph.vectors,
        degrees=again.graph.degrees,
        relations=again.graph.relations,
        mentions=graph.mentions,
    )
    assert Aggregation(same_vectors).ids == first.ids


def test_an_empty_graph_has_an_empty_outline() -> None:
    aggregation = Aggregation(_nothing())
    assert (
        list(aggregation.aggregates),
        list(aggregation.inter_cluster_relations()),
        aggregation.top_entities,
        aggregation.chunks,
        aggregation.relations,
    ) == (
        [],
        [],
        {},
        {},
        {},
    )


def _nothing() -> EntityGraph:
    empty = np.empty(0, dtype=np.int64)
    return EntityGraph(
        revision=1,
        keys=(),
        vectors=np.empty((0, 4), dtype=np.float16),
        degrees=empty,
        relations=WeightedRelations(first=empty, second=empty, weights=empty),
        mentions=MentionCounts(entities=empty, chunks=empty, counts=empty, ids=()),
    )
