"""A walk put together from blocks is the graph of all their links."""

import numpy as np

from quipu.algo.pagerank import GraphBlock, WeightedGraph
from quipu.algo.sparse_matrix import sparse_matrix
from quipu.ports.topology import Floats

RELATED = np.array([[0.0, 2.0], [2.0, 0.0]])
NAMED = np.array([[1.0, 0.0, 3.0], [2.0, 0.0, 0.0]])
SHARE = np.array([0.5, 1.0, 0.25])


def block(full: Floats, **placed: object) -> GraphBlock:
    rows, columns = np.nonzero(full)
    links = sparse_matrix(rows, columns, full[rows, columns], (full.shape[0], full.shape[1]))
    return GraphBlock(matrix=links, **placed)  # type: ignore[arg-type]


def walk() -> WeightedGraph:
    blocks = [
        block(RELATED, weight=0.5),
        block(NAMED, columns=2, column_scale=SHARE),
        block(NAMED.T, rows=2, row_scale=SHARE),
    ]
    return WeightedGraph(blocks=blocks, n_entities=2, n_chunks=3)


def full() -> Floats:
    links = np.zeros((5, 5))
    links[:2, :2] = RELATED * 0.5
    links[:2, 2:] = NAMED * SHARE
    links[2:, :2] = links[:2, 2:].T
    return links


def test_blocks_are_summed_in_their_places() -> None:
    weights = np.arange(1.0, 6.0)
    assert np.allclose(walk().multiply(weights), full() @ weights)
    assert np.allclose(walk().degrees, full().sum(axis=1))
    assert walk().n_nodes == 5
    assert walk().n_edges == 8


def test_links_of_nodes_come_from_every_block() -> None:
    numbers = np.array([4, 0, 1])
    found = walk().neighbours(numbers)
    rows = np.zeros((3, 5))
    np.add.at(rows, (found.positions, found.columns), found.weights)
    assert np.allclose(rows, full()[numbers])


def test_a_walk_without_blocks_has_no_links() -> None:
    empty = WeightedGraph(blocks=[], n_entities=2)
    assert empty.neighbours(np.array([0, 1])).columns.tolist() == []
    assert empty.multiply(np.ones(2)).tolist() == [0, 0]
