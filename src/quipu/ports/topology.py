"""Topology: the graph of a view as compressed arrays, for what walks it whole.

Entities and chunks are known here by their numbers, which are small whole numbers a view tells for ids and back
(`ReadView.entity_numbers`, `ReadView.entity_keys`, ...). Numbers rise with time, some stand for nothing any more, and
which number an entity has depends on history: nothing a strategy returns may depend on their order.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

import numpy as np
import numpy.typing as npt

from quipu.ports.store import ReadView

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


class EdgeWeight(StrEnum):
    """What a link between two entities counts for."""

    ONE = "one"  # 1 for each related pair
    WEIGHT = "weight"  # the sum of the weights of its mentions
    MENTIONS = "mentions"  # how many mentions state it


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbours:
    """Links of some nodes, each [m]: `of` places among the nodes asked for, rising; `to` numbers; `weights` > 0."""

    of: Ints
    to: Ints
    weights: Floats


class AdjacencyMatrix(Protocol):
    """A sparse matrix of positive weights, [n_rows, n_columns], that is read by rows."""

    @property
    def shape(self) -> tuple[int, int]:
        """How many numbers there are on either side."""
        ...

    @property
    def n_links(self) -> int:
        """How many weights are not zero."""
        ...

    def of(self, numbers: Ints) -> Neighbours:
        """Return the links of these rows, in the order of `numbers`, then of the columns' numbers."""
        ...

    def gather(self, weights: Floats) -> Floats:
        """Return, for each row, the sum of its links times the weights [n_columns] at their other ends: `A @ w`."""
        ...

    def sums(self) -> Floats:
        """Return the sum of the links of each row, [n_rows]."""
        ...

    def ones(self) -> "AdjacencyMatrix":
        """Return the same links, each with the weight 1."""
        ...


class Topology(Protocol):
    """The graph of one view: within its filter and as of its revision."""

    @property
    def revision(self) -> int:
        """That of the view."""
        ...

    @property
    def n_entities(self) -> int:
        """Numbers of entities are below this."""
        ...

    @property
    def n_chunks(self) -> int:
        """Numbers of chunks are below this."""
        ...

    def relations(self, measure: EdgeWeight) -> AdjacencyMatrix:
        """Return entity × entity, symmetric, nothing on the diagonal."""
        ...

    def appearances(self) -> AdjacencyMatrix:
        """Return entity × chunk: how often a chunk names the entity (its mentions or links, whichever are more)."""
        ...

    def mentions(self) -> AdjacencyMatrix:
        """Return entity × chunk: how often a chunk mentions the entity; that its name stands there is not enough."""
        ...

    def namings(self) -> AdjacencyMatrix:
        """Return chunk × entity: the appearances, read from the other side."""
        ...

    def synonyms(self) -> AdjacencyMatrix:
        """Return entity × entity, symmetric: the cosine of names that are much alike; empty until these are built."""
        ...


class TopologyIndex(Protocol):
    """Opens the topology of a view."""

    async def of(self, view: ReadView) -> Topology:
        """Return the view's topology; what is kept on disk is read as far as it goes, at the cost of the rest."""
        ...

    async def catch_up(self, view: ReadView) -> None:
        """Bring what is kept on disk up to the view; without it `of` still answers correctly."""
        ...
