"""Ledger: a store in memory that keeps every revision's vectors, for tests of what derives from them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

import numpy as np
import numpy.typing as npt

from quipu.model.evidence import Scored
from quipu.ports.store import ReadView, VectorBlock, VectorSpace

Matrix = npt.NDArray[np.float32]


@dataclass(slots=True, kw_only=True)
class Row:
    """A vector with its owners, the revision that brought it and the one that deleted it."""

    data: npt.NDArray[np.float16]
    owners: tuple[str, ...]
    born: int
    died: int = 1 << 60


@dataclass(slots=True)
class Ledger:
    """Rows of the chunk space by number. Every change is one revision."""

    rows: dict[int, Row] = field(default_factory=dict)
    revision: int = 0
    gone_since: int = 0

    def add(self, vectors: Mapping[str, Matrix]) -> None:
        """Add vectors, each owned by its id; equal ones share a row where the id is "a+b"."""
        self.revision += 1
        first = max(self.rows, default=0) + 1
        for number, (owners, vector) in enumerate(vectors.items(), first):
            row = Row(data=vector.astype(np.float16), owners=tuple(owners.split("+")), born=self.revision)
            self.rows[number] = row

    def remove(self, owners: Sequence[str]) -> None:
        """Delete the rows of these owners."""
        self.revision += 1
        for row in self.rows.values():
            if row.died > self.revision and set(row.owners) & set(owners):
                row.died = self.revision

    def forget(self) -> None:
        """Forget which rows were deleted so far."""
        self.gone_since = self.revision

    def view(self, *, revision: int | None = None, allowed: Sequence[str] | None = None) -> "LedgerView":
        """Open a view of a revision, of some owners or all."""
        return LedgerView(self, self.revision if revision is None else revision, allowed)


class LedgerView:
    """The vector methods of a ReadView. `n_read` counts the rows read."""

    def __init__(self, ledger: Ledger, revision: int, allowed: Sequence[str] | None) -> None:
        self.revision = revision
        self.n_read = 0
        self._ledger = ledger
        self._allowed = None if allowed is None else frozenset(allowed)

    def port(self) -> ReadView:
        """Return the view as what the code under test expects."""
        return cast(ReadView, self)

    def live(self) -> dict[int, Row]:
        """Return the rows that exist at this revision."""
        rows = self._ledger.rows.items()
        return {number: row for number, row in rows if row.born <= self.revision < row.died}

    async def vectors(self, space: VectorSpace, after: int = -1, *, since: int | None = None) -> VectorBlock:
        found = {number: one for number, one in self.live().items() if number > after and space is VectorSpace.CHUNK}
        self.n_read += len(found)
        data = np.stack([one.data for one in found.values()]) if found else np.empty((0, 0), dtype=np.float16)
        deleted = None if since is None else self._deleted(space, since)
        return VectorBlock(rows=np.array(list(found), dtype=np.int64), vectors=data, deleted=deleted)

    def _deleted(self, space: VectorSpace, revision: int) -> npt.NDArray[np.int64] | None:
        if revision < self._ledger.gone_since:
            return None
        rows = self._ledger.rows.items() if space is VectorSpace.CHUNK else ()
        return np.array([number for number, row in rows if revision < row.died <= self.revision], dtype=np.int64)

    async def allowed_numbers(self, space: VectorSpace) -> npt.NDArray[np.int64] | None:
        if self._allowed is None:
            return None
        return np.array([number for number, row in self.live().items() if self._seen(row)], dtype=np.int64)

    async def vector_owners(self, space: VectorSpace, rows: Sequence[int]) -> dict[int, tuple[str, ...]]:
        found = {number: self._ledger.rows[number] for number in rows}
        return {number: self._seen(row) for number, row in found.items() if row.born <= self.revision < row.died}

    async def numbers(self, space: VectorSpace, ids: Sequence[str]) -> dict[str, int]:
        wanted = set(ids)
        live = self.live().items()
        return {owner: number for number, row in live for owner in self._seen(row) if owner in wanted}

    def nearest(self, query: Matrix, k: int, min_score: float = -1.0) -> tuple[Scored, ...]:
        """Return what a search must find, by comparing the query with every vector."""
        rows = list(self.live().values())
        data = np.array([row.data for row in rows], dtype=np.float64).reshape(len(rows), len(query))
        scores = np.round(data @ query.astype(np.float64), 6).tolist()
        found = [Scored(id=i, score=score) for row, score in zip(rows, scores, strict=True) for i in self._seen(row)]
        return tuple(sorted((s for s in found if s.score >= min_score), key=lambda s: (-s.score, s.id))[:k])

    def _seen(self, row: Row) -> tuple[str, ...]:
        return row.owners if self._allowed is None else tuple(o for o in row.owners if o in self._allowed)


def clustered(n: int, dimension: int, seed: int = 0) -> Matrix:
    """Return unit vectors in clusters of ten dimensions each, as texts about a few hundred subjects are."""
    random = np.random.default_rng(seed)
    centres, spread = np.random.default_rng(99).standard_normal((2, 200, dimension))
    near = random.standard_normal((n, 10)) @ spread[:10]
    vectors = centres[random.integers(0, 200, n)] + near + 0.1 * random.standard_normal((n, dimension))
    unit: npt.NDArray[np.float64] = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return unit.astype(np.float32)


def named(vectors: Matrix, prefix: str = "c") -> dict[str, Matrix]:
    """Return vectors by ids made of their order."""
    return {f"{prefix}{i:05d}": vector for i, vector in enumerate(vectors)}
