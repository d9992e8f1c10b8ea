"""Vectors: nearest-neighbour search over the vectors of a view."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from quipu.model.evidence import Scored
from quipu.ports.store import ReadView, VectorSpace


@dataclass(frozen=True, slots=True, kw_only=True)
class SimilarPair:
    """Two ids of a space, in their order, and the cosine of their vectors."""

    first: str
    second: str
    score: float


class VectorIndex(Protocol):
    """Searches the vectors a view holds, as of that view's revision and within its filter."""

    async def nearest(
        self, view: ReadView, space: VectorSpace, queries: npt.NDArray[np.float32], *, k: int, min_score: float = -1.0
    ) -> list[tuple[Scored, ...]]:
        """Return, for each row of `queries` ([n, d], unit), the k nearest ids by cosine, at least `min_score`.

        Best first, equal scores by id. Scores are rounded to six decimals and do not depend on insertion order.
        """
        ...

    async def similarities(
        self, view: ReadView, space: VectorSpace, query: npt.NDArray[np.float32], ids: Sequence[str]
    ) -> dict[str, float]:
        """Return the cosine of `query` ([d], unit) with each of `ids`; ids without a vector are left out."""
        ...

    async def all_similarities(
        self, view: ReadView, space: VectorSpace, query: npt.NDArray[np.float32]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
        """Return every row the view holds within its filter, rising, and the cosine of `query` ([d], unit) with each.

        Both [n]. Scores are those that `similarities` gives.
        """
        ...

    async def alike(
        self, view: ReadView, space: VectorSpace, ids: Sequence[str], *, min_score: float
    ) -> list[SimilarPair]:
        """Return every pair of one of `ids` with any other id of the view whose cosine is at least `min_score`.

        Each pair once, ordered. Exact however many there are: no pair is missed. Scores are rounded to six decimals.
        """
        ...

    async def catch_up(self, view: ReadView) -> None:
        """Bring what is kept on disk up to the view; without it every search still answers correctly."""
        ...
