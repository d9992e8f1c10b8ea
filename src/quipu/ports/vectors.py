"""Vectors: nearest-neighbour search over the vectors of a view."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from quipu.model.evidence import Scored
from quipu.ports.store import ReadView, Space


class Vectors(Protocol):
    """Searches the vectors a view holds, as of that view's revision and within its filter."""

    async def nearest(
        self, view: ReadView, space: Space, queries: npt.NDArray[np.float32], *, k: int, min_score: float = -1.0
    ) -> list[tuple[Scored, ...]]:
        """Return, for each row of `queries` ([n, d], unit), the k nearest ids by cosine, at least `min_score`.

        Best first, equal scores by id. Scores are rounded to six decimals and do not depend on insertion order.
        """
        ...

    async def similarities(
        self, view: ReadView, space: Space, query: npt.NDArray[np.float32], ids: Sequence[str]
    ) -> dict[str, float]:
        """Return the cosine of `query` ([d], unit) with each of `ids`; ids without a vector are left out."""
        ...

    async def catch_up(self, view: ReadView) -> None:
        """Bring what is kept on disk up to the view; without it every search still answers correctly."""
        ...
