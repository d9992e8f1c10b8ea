"""Tests of walks over entities and passages: what links weigh, and what is met most."""

import numpy as np
import pytest

from quipu.algo.walk import Walk
from quipu.ports.topology import Floats
from quipu.retrieve.steps.walk import Naming, Weights, ranked, top_chunks, top_entities, walk_over
from tests.unit.retrieve.dense import Dense, dense, derive, world
from tests.unit.retrieve.fakes import Library


def weighed(found: Dense, weights: Weights) -> Floats:
    """Return the links a walk should have, as a full matrix: entities by key, then chunks by id."""
    n = len(found.keys)
    full = np.zeros((n + len(found.chunks), n + len(found.chunks)))
    full[:n, :n] = weights.facts * found.mentions + weights.pairs * np.sign(found.mentions)
    full[:n, :n] += weights.synonyms * found.synonyms
    shares = found.appearances / np.maximum(found.appearances.sum(axis=0), 1)
    named = {Naming.ONE: np.sign(found.appearances), Naming.SHARE: shares}
    if weights.naming is not None:
        full[:n, n:] = named[weights.naming]
        full[n:, :n] = full[:n, n:].T
    return full


@pytest.mark.parametrize(
    "weights",
    [
        Weights(pairs=1.0),
        Weights(facts=2.0, synonyms=0.5),
        Weights(facts=1.0, naming=Naming.ONE),
        Weights(naming=Naming.SHARE),
        Weights(facts=0.5, pairs=0.25, naming=Naming.ONE, synonyms=1.0),
    ],
)
async def test_links_weigh_what_was_asked_for(library: Library, weights: Weights) -> None:
    await library.publish(*world(4))
    await derive(library)
    async with library.view() as view:
        found = await dense(view)
        topology = await library.tools.topology.of(view)
        entities, chunks = await view.entity_numbers(found.keys), await view.chunk_numbers(found.chunks)
    walk = walk_over(topology, weights)
    places = [entities[key] for key in found.keys]
    if walk.n_chunks:
        places += [walk.n_entities + chunks[chunk] for chunk in found.chunks]
    expected = weighed(found, weights)[: len(places), : len(places)]
    links = walk.of(np.array(places))
    full = np.zeros((len(places), walk.n_nodes))
    np.add.at(full, (links.of, links.to), links.weights)
    assert np.allclose(full[:, places], expected)
    assert full.sum() == pytest.approx(expected.sum())
    assert np.allclose(walk.degrees[places], expected.sum(axis=1))


def test_a_reset_of_any_mass_gives_shares() -> None:
    walk = Walk(blocks=[], n_entities=3)
    assert ranked(walk, np.array([2.0, 0.0, 6.0]), 0.5).tolist() == [0.25, 0.0, 0.75]
    assert ranked(walk, np.zeros(3), 0.5).tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize(("k", "expected"), [(0, 0), (1, 1), (3, 3), (9, 4)])
async def test_the_best_are_returned_equal_ones_by_id(travels: Library, k: int, expected: int) -> None:
    async with travels.view() as view:
        keys = ["dadu", "kublai khan", "marco polo", "venice"]
        numbers = await view.entity_numbers(keys)
        scores = np.zeros(max(numbers.values()) + 3)
        scores[[numbers[key] for key in keys]] = [0.2, 0.2, 0.5, 0.2]
        found = await top_entities(scores, k, view)
        assert [each.id for each in found] == ["marco polo", "dadu", "kublai khan", "venice"][:expected]
        assert [each.score for each in found] == [0.5, 0.2, 0.2, 0.2][:expected]


async def test_numbers_of_nothing_are_left_out(travels: Library) -> None:
    async with travels.view() as view:
        assert len(await top_chunks(np.full(1_000, 0.1), 1_000, view)) == 4
