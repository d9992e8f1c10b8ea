"""Topology: the graph of a view as sparse matrices, for algorithms that read all of it.

Entities and chunks have numbers here: small integers that a view translates from and to ids. A number may stand for
nothing any more, and which number an entity has depends on the history of the index. So nothing that a strategy returns
may depend on their order.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, Self

import numpy as np
import numpy.typing as npt

from quipu.ports.store import ReadView

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


class EdgeWeight(StrEnum):
    """What an edge between two related entities weighs."""

    ONE = "one"  # 1
    WEIGHT = "weight"  # the summed weights of the relation's mentions
    MENTIONS = "mentions"  # the number of the relation's mentions


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbours:
    """The entries of some rows of a matrix, three arrays of one length.

    `positions` say which requested row an entry belongs to, ascending; `columns` are numbers; `weights` are > 0.
    """

    positions: Ints
    columns: Ints
    weights: Floats

    @classmethod
    def concatenate(cls, parts: Sequence[Self]) -> Self:
        """Return the entries of all parts, one part after the other."""
        return cls(
            positions=np.concatenate([np.empty(0, np.int64), *(part.positions for part in parts)]),
            columns=np.concatenate([np.empty(0, np.int64), *(part.columns for part in parts)]),
            weights=np.concatenate([np.empty(0), *(part.weights for part in parts)]),
        )


class AdjacencyMatrix(Protocol):
    """A sparse matrix of positive weights, [n_rows, n_columns], that is read by rows."""

    @property
    def shape(self) -> tuple[int, int]:
        """The number of rows and of columns."""

    @property
    def n_entries(self) -> int:
        """How many weights are not zero."""

    def neighbours(self, rows: Ints) -> Neighbours:
        """Return the entries of these rows, in the order of `rows`, then by column."""

    def multiply(self, vector: Floats) -> Floats:
        """Return the matrix times `vector` [n_columns], as [n_rows]."""

    def row_sums(self) -> Floats:
        """Return the sum of each row's weights, [n_rows]."""

    def unweighted(self) -> "AdjacencyMatrix":
        """Return the same matrix with every weight 1."""


class Topology(Protocol):
    """The graph of one view, within its filter and as of its revision."""

    @property
    def revision(self) -> int:
        """The revision of the view."""

    @property
    def n_entities(self) -> int:
        """Every entity's number is below this."""

    @property
    def n_chunks(self) -> int:
        """Every chunk's number is below this."""

    def relations(self, weight: EdgeWeight) -> AdjacencyMatrix:
        """Return related entities: entity × entity, symmetric, with an empty diagonal."""

    def occurrences(self) -> AdjacencyMatrix:
        """Return how often a chunk names an entity: entity × chunk, its mentions or its links, whichever are more."""

    def mentions(self) -> AdjacencyMatrix:
        """Return how often a chunk mentions an entity: entity × chunk; a link alone does not count."""

    def occurrences_by_chunk(self) -> AdjacencyMatrix:
        """Return the occurrences transposed: chunk × entity."""

    def synonyms(self) -> AdjacencyMatrix:
        """Return the cosine of similar names: entity × entity, symmetric; empty until synonyms are computed."""


class TopologyIndex(Protocol):
    """Opens the topology of a view."""

    async def open(self, view: ReadView) -> Topology:
        """Return the topology of the view, from files as far as they are current, and from the view for the rest."""

    async def catch_up(self, view: ReadView) -> None:
        """Bring the files up to the view's revision. Without it, `open` is slower but still correct."""
