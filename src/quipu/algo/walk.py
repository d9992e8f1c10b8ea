"""Walk: one graph over entities and chunks, put together from blocks of links with weights of their own."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from quipu.ports.topology import AdjacencyMatrix, Floats, Ints, Neighbours


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Links from nodes [rows, rows + n) to nodes [columns, columns + m), each times `weight` and the scales.

    `row_scale` is [n], `column_scale` [m]; None where every link keeps its weight.
    """

    links: AdjacencyMatrix
    rows: int = 0
    columns: int = 0
    weight: float = 1.0
    row_scale: Floats | None = None
    column_scale: Floats | None = None

    def gather_into(self, sums: Floats, weights: Floats) -> None:
        """Add the block times `weights` to `sums`; both are [n_nodes]."""
        n, m = self.links.shape
        part = weights[self.columns : self.columns + m]
        found = self.links.gather(part if self.column_scale is None else part * self.column_scale)
        if self.row_scale is not None:
            found *= self.row_scale
        if self.weight != 1.0:
            found *= self.weight
        sums[self.rows : self.rows + n] += found

    def of(self, nodes: Ints) -> Neighbours:
        """Return the block's links of those nodes that are among its rows; `of` counts all nodes asked for."""
        at = np.flatnonzero((nodes >= self.rows) & (nodes < self.rows + self.links.shape[0]))
        rows = nodes[at] - self.rows
        found = self.links.of(rows)
        weights = found.weights * self.weight
        if self.row_scale is not None:
            weights *= self.row_scale[rows[found.of]]
        if self.column_scale is not None:
            weights *= self.column_scale[found.to]
        return Neighbours(of=at[found.of], to=found.to + self.columns, weights=weights)


@dataclass(frozen=True, kw_only=True)
class Walk:
    """An undirected weighted graph: the sum of its blocks, which together must be symmetric.

    Nodes are numbered: the entities by their numbers, then the chunks, whose numbers are raised by `n_entities`.
    """

    blocks: Sequence[Block]
    n_entities: int
    n_chunks: int = 0

    @property
    def n_nodes(self) -> int:
        """Nodes are below this."""
        return self.n_entities + self.n_chunks

    @property
    def n_links(self) -> int:
        """How many links the blocks have, each direction counted."""
        return sum(block.links.n_links for block in self.blocks)

    @cached_property
    def degrees(self) -> Floats:
        """The sum of the weights at each node, [n_nodes]."""
        degrees = np.zeros(self.n_nodes)
        for block in self.blocks:
            if block.column_scale is None:
                n = block.links.shape[0]
                sums = block.links.sums() * block.weight
                degrees[block.rows : block.rows + n] += sums if block.row_scale is None else sums * block.row_scale
            else:
                block.gather_into(degrees, np.ones(self.n_nodes))
        return degrees

    def gather(self, weights: Floats) -> Floats:
        """Return, for each node, the sum of its links times the weights [n_nodes] at their other ends."""
        sums = np.zeros(self.n_nodes)
        for block in self.blocks:
            block.gather_into(sums, weights)
        return sums

    def of(self, nodes: Ints) -> Neighbours:
        """Return the links of these nodes, block by block."""
        found = [block.of(nodes) for block in self.blocks]
        of, to = (
            np.concatenate([np.empty(0, np.int64), *parts])
            for parts in ([each.of for each in found], [each.to for each in found])
        )
        return Neighbours(of=of, to=to, weights=np.concatenate([np.empty(0), *(each.weights for each in found)]))
