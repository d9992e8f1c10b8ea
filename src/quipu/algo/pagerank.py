"""Personalised PageRank on an undirected graph of entities and chunks."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from quipu.ports.topology import AdjacencyMatrix, Floats, Ints, Neighbours

TOLERANCE = 1e-8
_MAX_STEPS = 1_000
_SMALLEST = np.finfo(float).tiny  # a double below it loses digits, and division by it overflows


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphBlock:
    """Edges from nodes [rows, rows + n) to nodes [columns, columns + m): a matrix [n, m] times `weight` and scales.

    `row_scale` is [n] and `column_scale` [m]; None leaves the weights as they are.
    """

    matrix: AdjacencyMatrix
    rows: int = 0
    columns: int = 0
    weight: float = 1.0
    row_scale: Floats | None = None
    column_scale: Floats | None = None

    def multiply_into(self, product: Floats, vector: Floats) -> None:
        """Add the block times `vector` to `product`; both are [n_nodes]."""
        n, m = self.matrix.shape
        part = vector[self.columns : self.columns + m]
        sums = self.matrix.multiply(part if self.column_scale is None else part * self.column_scale)
        if self.row_scale is not None:
            sums *= self.row_scale
        if self.weight != 1.0:
            sums *= self.weight
        product[self.rows : self.rows + n] += sums

    def neighbours(self, nodes: Ints) -> Neighbours:
        """Return the block's edges of these nodes; `positions` refer to all requested nodes."""
        positions = np.flatnonzero((nodes >= self.rows) & (nodes < self.rows + self.matrix.shape[0]))
        rows = nodes[positions] - self.rows
        entries = self.matrix.neighbours(rows)
        weights = entries.weights * self.weight
        if self.row_scale is not None:
            weights *= self.row_scale[rows[entries.positions]]
        if self.column_scale is not None:
            weights *= self.column_scale[entries.columns]
        columns = entries.columns + self.columns
        return Neighbours(positions=positions[entries.positions], columns=columns, weights=weights)


@dataclass(frozen=True, kw_only=True)
class WeightedGraph:
    """An undirected weighted graph: the sum of its blocks, which together must be symmetric.

    Nodes are the entities by their numbers, then the chunks, whose numbers are raised by `n_entities`.
    """

    blocks: Sequence[GraphBlock]
    n_entities: int
    n_chunks: int = 0

    @property
    def n_nodes(self) -> int:
        """Every node is below this."""
        return self.n_entities + self.n_chunks

    @property
    def n_edges(self) -> int:
        """How many edges the blocks have; each direction counts."""
        return sum(block.matrix.n_entries for block in self.blocks)

    @cached_property
    def degrees(self) -> Floats:
        """The summed weight of each node's edges, [n_nodes]."""
        degrees = np.zeros(self.n_nodes)
        for block in self.blocks:
            if block.column_scale is None:
                n = block.matrix.shape[0]
                sums = block.matrix.row_sums() * block.weight
                degrees[block.rows : block.rows + n] += sums if block.row_scale is None else sums * block.row_scale
            else:
                block.multiply_into(degrees, np.ones(self.n_nodes))
        return degrees

    def multiply(self, vector: Floats) -> Floats:
        """Return the adjacency matrix times `vector`; both are [n_nodes]."""
        product = np.zeros(self.n_nodes)
        for block in self.blocks:
            block.multiply_into(product, vector)
        return product

    def neighbours(self, nodes: Ints) -> Neighbours:
        """Return the edges of these nodes, block by block."""
        return Neighbours.concatenate([block.neighbours(nodes) for block in self.blocks])


def personalised_pagerank(
    graph: WeightedGraph, reset: Floats, *, damping: float, tolerance: float = TOLERANCE
) -> Floats:
    """Return the share of time that a random walk spends at each node, [n_nodes].

    The walk follows an edge, in proportion to its weight, with probability `damping`, which is in [0, 1); otherwise it
    restarts at a node in proportion to `reset` [n_nodes]. The result is linear in `reset` and has the same sum; a node
    without edges keeps its own reset. The summed absolute error is at most `tolerance` times the sum, for a tolerance
    of 1e-12 or more and a damping of 0.999 or less. Raises ValueError for a negative reset, or a damping outside
    [0, 1).

    Source: r = d A D⁻¹ r + (1 - d) p (T. Haveliwala, Topic-Sensitive PageRank, 2002). With r = D y this becomes
    (D - d A) y = (1 - d) p. Its matrix is symmetric and positive definite, so conjugate gradients solve it (M.
    Hestenes, E. Stiefel, 1952), with D as preconditioner (P. Concus, G. Golub, D. O'Leary, 1976). The error falls by
    at least d / (1 + √(1 - d²)) in each step, where power iteration's falls by d: 0.56 instead of 0.85 at d = 0.85.
    """
    if not 0 <= damping < 1:
        raise ValueError(f"a damping of {damping} is not in [0, 1)")
    if len(reset) and reset.min() < 0:
        raise ValueError(f"a weight of {reset.min()} is negative")
    has_edges = graph.degrees > 0
    start = np.where(has_edges, reset, 0.0)
    mass = float(start.sum())
    if not mass:
        return reset.copy()
    ranks = np.maximum(_solve(graph, start / mass, damping, tolerance), 0.0)
    ranks *= mass / ranks.sum()
    return np.where(has_edges, ranks, reset)


def _solve(graph: WeightedGraph, start: Floats, damping: float, tolerance: float) -> Floats:
    """Return the ranks for a reset of sum 1. Some may be below 0, by less than `tolerance`."""
    degrees = graph.degrees
    inverse = np.divide(1.0, degrees, out=np.zeros(len(degrees)), where=degrees > 0)
    solution = start * inverse
    residual = (graph.multiply(solution) - start) * damping
    direction, buffer, squared = np.zeros(len(start)), np.empty(len(start)), 1.0
    for _ in range(_MAX_STEPS):
        # The error is at most the residual / (1 - d), because a step of the walk keeps the sum.
        if np.abs(residual, out=buffer).sum() <= tolerance * (1 - damping):
            break
        np.multiply(residual, inverse, out=buffer)
        previous, squared = squared, _dot(residual, buffer)
        if squared < _SMALLEST:
            break
        direction *= squared / previous
        direction += buffer
        image = graph.multiply(direction)
        image *= -damping
        image += np.multiply(degrees, direction, out=buffer)
        step = squared / _dot(direction, image)
        solution += np.multiply(direction, step, out=buffer)
        residual -= np.multiply(image, step, out=buffer)
    return solution * degrees


def _dot(first: Floats, second: Floats) -> float:
    # Not by BLAS: its threads wait for each other longer than the product takes.
    return float(np.einsum("i,i", first, second))
