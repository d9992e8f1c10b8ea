"""Tests of walks over entities and passages: what links weigh, and what is met most."""

import numpy as np
import pytest

from quipu.algo.pagerank import GraphBlock, WeightedGraph, personalised_pagerank
from quipu.algo.sparse_matrix import sparse_matrix
from quipu.ports.derivation_view import NodeKind
from quipu.ports.topology import Floats
from quipu.retrieve.steps.graph_walk import (
    MentionWeight,
    WalkWeights,
    build_walk_graph,
    rank_nodes,
    read_subgraph,
    round_scores,
    top_chunks,
    top_entities,
)
from tests.unit.retrieve.dense import Dense, dense, derive, world
from tests.unit.retrieve.fakes import Library


def weighed(found: Dense, weights: WalkWeights) -> Floats:
    """Return the links a walk should have, as a full matrix: entities by key, then chunks by id."""
    n = len(found.keys)
    full = np.zeros((n + len(found.chunks), n + len(found.chunks)))
    full[:n, :n] = weights.facts * found.mentions + weights.pairs * np.sign(found.mentions)
    full[:n, :n] += weights.synonyms * found.synonyms
    shares = found.appearances / np.maximum(found.appearances.sum(axis=0), 1)
    named = {MentionWeight.ONE: np.sign(found.appearances), MentionWeight.SHARE: shares}
    if weights.mentions is not None:
        full[:n, n:] = named[weights.mentions]
        full[n:, :n] = full[:n, n:].T
    return full


@pytest.mark.parametrize(
    "weights",
    [
        WalkWeights(pairs=1.0),
        WalkWeights(facts=2.0, synonyms=0.5),
        WalkWeights(facts=1.0, mentions=MentionWeight.ONE),
        WalkWeights(mentions=MentionWeight.SHARE),
        WalkWeights(facts=0.5, pairs=0.25, mentions=MentionWeight.ONE, synonyms=1.0),
    ],
)
async def test_links_weigh_what_was_asked_for(library: Library, weights: WalkWeights) -> None:
    await library.publish(*world(4))
    await derive(library)
    async with library.view() as view:
        found = await dense(view)
        topology = await library.tools.topology.open(view)
        entities = await view.numbers(NodeKind.ENTITY, found.keys)
        chunks = await view.numbers(NodeKind.CHUNK, found.chunks)
    walk = build_walk_graph(topology, weights)
    places = [entities[key] for key in found.keys]
    if walk.n_chunks:
        places += [walk.n_entities + chunks[chunk] for chunk in found.chunks]
    expected = weighed(found, weights)[: len(places), : len(places)]
    links = walk.neighbours(np.array(places))
    full = np.zeros((len(places), walk.n_nodes))
    np.add.at(full, (links.positions, links.columns), links.weights)
    assert np.allclose(full[:, places], expected)
    assert full.sum() == pytest.approx(expected.sum())
    assert np.allclose(walk.degrees[places], expected.sum(axis=1))


async def test_a_reset_of_any_mass_gives_shares() -> None:
    walk = WeightedGraph(blocks=[], n_entities=3)
    assert (await rank_nodes(walk, np.array([2.0, 0.0, 6.0]), 0.5)).tolist() == [0.25, 0.0, 0.75]
    assert (await rank_nodes(walk, np.zeros(3), 0.5)).tolist() == [0.0, 0.0, 0.0]


async def test_of_many_passages_the_near_ones_are_told_apart() -> None:
    n = 50_000  # entities, each named in one passage
    entities = np.arange(n)
    named = sparse_matrix(entities, entities, None, (n, n))
    walk = WeightedGraph(
        blocks=[GraphBlock(matrix=named, columns=n), GraphBlock(matrix=named, rows=n)], n_entities=n, n_chunks=n
    )
    near = np.ones(n)
    near[[7, 40_000, 3]] = [1.03, 1.02, 1.01]
    ranks = (await rank_nodes(walk, np.concatenate([np.zeros(n), near]), 0.5))[n:]
    assert np.argsort(-ranks, kind="stable")[:5].tolist() == [7, 40_000, 3, 0, 1]
    assert ranks[0] == ranks[1] == 1.333332e-05  # 2/3 of a share of 50,000.06


def test_what_sums_differ_by_is_rounded_away() -> None:
    one, other = round_scores(np.array([[0.1 + 0.2, 1e-5 + 2e-5], [0.3, 3e-5]]))
    assert one.tolist() == other.tolist() == [0.3, 3e-05]


@pytest.mark.parametrize(
    ("score", "expected"),
    [
        (2 / 3, 0.6666667),
        (0.0999999999, 0.1),
        (12.345678912, 12.34568),
        (123456789.7, 123456790.0),
        (1.23456789e-5, 1.234568e-05),
        (1.23456789e-9, 1.235e-09),
        (4e-13, 0.0),
        (0.0, 0.0),
        (1.0, 1.0),
    ],
)
def test_scores_are_short(score: float, expected: float) -> None:
    assert round_scores(np.array([score])).tolist() == [expected]


@pytest.mark.parametrize(("k", "expected"), [(0, 0), (1, 1), (3, 3), (9, 4)])
async def test_the_best_are_returned_equal_ones_by_id(travels: Library, k: int, expected: int) -> None:
    async with travels.view() as view:
        keys = ["dadu", "kublai khan", "marco polo", "venice"]
        numbers = await view.numbers(NodeKind.ENTITY, keys)
        scores = np.zeros(max(numbers.values()) + 3)
        scores[[numbers[key] for key in keys]] = [0.2, 0.2, 0.5, 0.2]
        found = await top_entities(scores, k, view)
        assert [each.id for each in found] == ["marco polo", "dadu", "kublai khan", "venice"][:expected]
        assert [each.score for each in found] == [0.5, 0.2, 0.2, 0.2][:expected]


async def test_numbers_of_nothing_are_left_out(travels: Library) -> None:
    async with travels.view() as view:
        assert len(await top_chunks(np.full(1_000, 0.1), 1_000, view)) == 4


async def test_a_walk_over_the_whole_graph_as_a_subgraph_converges_to_its_pagerank(library: Library) -> None:
    await library.publish(*world(4))
    await derive(library)
    async with library.view() as view:
        topology = await library.tools.topology.open(view)
    subgraph = read_subgraph(topology, np.arange(topology.n_chunks), np.arange(topology.n_entities))
    whole = build_walk_graph(topology, WalkWeights(facts=1.0, mentions=MentionWeight.ONE))
    reset = np.arange(1.0, whole.n_nodes + 1)
    walk = subgraph.walk(np.ones(len(subgraph.mention_rows)), reset, damping=0.5, n_steps=60)
    has_edges = whole.degrees > 0
    expected = personalised_pagerank(whole, reset / reset.sum(), damping=0.5)
    np.testing.assert_allclose(walk.ranks[has_edges], expected[has_edges], rtol=1e-5)


async def test_a_subgraph_holds_its_seeds_and_what_its_chunks_name(library: Library) -> None:
    await library.publish(*world(4))
    async with library.view() as view:
        topology = await library.tools.topology.open(view)
    chunks = np.array([topology.n_chunks - 1])
    named = topology.occurrences_by_chunk().neighbours(chunks).columns
    assert read_subgraph(topology, chunks, np.array([0])).entities.tolist() == sorted({0, *named.tolist()})
    none = np.empty(0, dtype=np.int64)
    assert read_subgraph(topology, none, np.array([0])).entities.tolist() == [0]
