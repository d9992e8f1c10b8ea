"""VectorIndex: nearest-neighbour search over the vectors of a view; and the candidates of an approximate one."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, Self, runtime_checkable

import numpy as np
import numpy.typing as npt

from quipu.model.evidence import Scored
from quipu.ports.store import ReadView, VectorBlock, VectorSpace


@dataclass(frozen=True, slots=True, kw_only=True)
class SimilarPair:
    """Two ids of one vector space, `first < second`, and the cosine of their vectors."""

    first: str
    second: str
    score: float


class VectorIndex(Protocol):
    """Searches the vectors of a view: at its revision, restricted by its filter."""

    async def nearest(
        self, view: ReadView, space: VectorSpace, queries: npt.NDArray[np.float32], *, k: int, min_score: float = -1.0
    ) -> list[tuple[Scored, ...]]:
        """Return, for each row of `queries` ([n, d], unit vectors), the k nearest ids with a cosine >= `min_score`.

        Best first; equal scores are ordered by id. Scores are rounded to six decimals and do not depend on the order
        of insertion.
        """

    async def similarities(
        self, view: ReadView, space: VectorSpace, query: npt.NDArray[np.float32], ids: Sequence[str]
    ) -> dict[str, float]:
        """Return the cosine of `query` ([d], unit vector) with each of `ids`. Ids without a vector are omitted."""

    async def all_similarities(
        self, view: ReadView, space: VectorSpace, query: npt.NDArray[np.float32]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
        """Return all row numbers that the view's filter allows, ascending, and the cosine of `query` with each.

        Both have shape [n]. `query` is a unit vector, [d]. The scores equal those of `similarities`.
        """

    async def similar_pairs(
        self, view: ReadView, space: VectorSpace, ids: Sequence[str], *, min_score: float
    ) -> list[SimilarPair]:
        """Return every pair of one of `ids` and any other id of the view with a cosine >= `min_score`.

        Each pair occurs once, and the list is ordered. The search is exact. Scores are rounded to six decimals.
        """

    async def catch_up(self, view: ReadView) -> None:
        """Update the saved index to the view's revision. Searches are correct without it, but slower."""


@runtime_checkable
class ApproximateVectorIndex(VectorIndex, Protocol):
    """A vector index whose `nearest` may miss a neighbour, and says so. Its scores are exact all the same."""

    def for_question(self) -> Self:
        """Return the same index with notes of its own."""

    def notes(self) -> tuple[str, ...]:
        """Return what the trace must say about the searches so far; nothing where all were made without candidates."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateState:
    """What a candidate index holds of a space: its live rows at `revision`, up to `last_row`; they are about `n_rows`.

    `embedder` is identity and dimension of the model of their vectors.
    """

    last_row: int = -1
    revision: int = 0
    n_rows: int = 0
    embedder: str = ""


class CandidateIndex(Protocol):
    """Finds rows of vectors that may be the nearest, quickly; kept outside of the index, and derived from it.

    It may hold rows that the store has no more, and lack new ones. Methods raise Unavailable if it does not answer.
    """

    @property
    def name(self) -> str:
        """What it is, for messages."""

    async def state(self, space: VectorSpace) -> CandidateState:
        """Return what it holds of a space."""

    async def update(
        self,
        space: VectorSpace,
        added: VectorBlock,
        deleted: Sequence[int],
        state: CandidateState,
        after: CandidateState,
    ) -> None:
        """Add and delete rows, then record the new state. Repeating an update that was cut off is harmless.

        `after` is the state that it continues. Where another process has changed that, a service with transactions
        does nothing, and the next update goes on from there.
        """

    async def clear(self, space: VectorSpace) -> None:
        """Forget all rows of a space and its state."""

    async def nearest_rows(self, space: VectorSpace, query: npt.NDArray[np.float32], n: int) -> list[int]:
        """Return up to `n` rows whose vectors have about the largest dot product with `query`, [d]."""

    async def close(self) -> None:
        """Close every connection."""
