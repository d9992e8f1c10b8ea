"""An approximate vector index: another system names candidates, and the store's own vectors score them.

Candidates may be incomplete, so a neighbour may be missing; a score is never wrong, and a row that the view does not
show is never returned. Only `nearest` uses them.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
import numpy.typing as npt

from quipu.algo.similarity import top_k
from quipu.errors import Unavailable
from quipu.model.evidence import Scored
from quipu.ports.store import ReadView, VectorSpace
from quipu.ports.vector_index import CandidateIndex, CandidateState, SimilarPair, VectorIndex

_log = logging.getLogger(__name__)

MIN_CANDIDATES = 100
CANDIDATES_PER_RESULT = 4
DEPTH_FACTOR = 4  # how much deeper to search where a filter hides most candidates
MAX_CANDIDATES = 1_000  # what pgvector returns at most; deeper, all vectors are compared
MAX_TAIL = 1_000  # new rows that a question scores itself, because the candidates do not have them yet


_Tail = tuple[int, ...] | None  # rows that the candidates lack; None where every vector must be compared


@dataclass(slots=True)
class ApproximateVectors:
    """Takes candidates from another system and scores them by `exact`, which does everything else.

    Spaces, and views of a filter, with up to `exact_below` rows are searched by `exact` alone. So is everything while
    the other system does not answer or is far behind.
    """

    exact: VectorIndex
    candidates: CandidateIndex
    exact_below: int
    _n_approximate: int = 0
    _failure: str = ""
    _tails: dict[VectorSpace, tuple[int, _Tail]] = field(default_factory=dict)  # with the revision they are of

    def for_question(self) -> Self:
        """Return the same index with notes of its own."""
        return replace(self, _n_approximate=0, _failure="")

    def notes(self) -> tuple[str, ...]:
        """Return what the trace must say about the searches so far."""
        name = self.candidates.name
        notes = [f"nearest vectors are approximate: {name} named the candidates"] if self._n_approximate else []
        notes += [f"{name} was not used: {self._failure}"] if self._failure else []
        return tuple(notes)

    async def nearest(
        self, view: ReadView, space: VectorSpace, queries: npt.NDArray[np.float32], *, k: int, min_score: float = -1.0
    ) -> list[tuple[Scored, ...]]:
        """Return, for each row of `queries` ([n, d], unit), about the k nearest ids by cosine, at least `min_score`.

        Best first, equal scores by id. Scores are those of `similarities`.
        """
        try:
            tail = await self._tail(view, space)
            if tail is not None:
                return [await self._nearest(view, space, query, tail, (k, min_score)) for query in queries]
        except Unavailable as error:
            self._failure = str(error)
        return await self.exact.nearest(view, space, queries, k=k, min_score=min_score)

    async def _nearest(
        self,
        view: ReadView,
        space: VectorSpace,
        query: npt.NDArray[np.float32],
        tail: tuple[int, ...],
        limits: tuple[int, float],
    ) -> tuple[Scored, ...]:
        k, min_score = limits
        n = max(MIN_CANDIDATES, CANDIDATES_PER_RESULT * k)
        while n <= MAX_CANDIDATES and query.any():
            rows = await self.candidates.nearest_rows(space, query, n)
            owners = await view.vector_owners(space, sorted({*rows, *tail}))
            ids = sorted({owner for allowed in owners.values() for owner in allowed})
            scores = await self.exact.similarities(view, space, query, ids)
            near = {owner: score for owner, score in scores.items() if score >= min_score}
            if len(near) >= k or len(near) < len(scores) or len(rows) < n:
                self._n_approximate += 1
                return tuple(Scored(id=owner, score=score) for owner, score in top_k(near, k))
            n *= DEPTH_FACTOR
        return (await self.exact.nearest(view, space, query[None], k=k, min_score=min_score))[0]

    async def _tail(self, view: ReadView, space: VectorSpace) -> _Tail:
        revision, tail = self._tails.get(space, (-1, None))
        if revision != view.revision:
            tail = await self._read_tail(view, space)
            self._tails[space] = view.revision, tail
        allowed = await view.allowed_numbers(space) if tail is not None else None
        return None if allowed is not None and len(allowed) <= self.exact_below else tail

    async def _read_tail(self, view: ReadView, space: VectorSpace) -> _Tail:
        state = await self.candidates.state(space)
        if state.n_rows <= self.exact_below or state.embedder != await _embedder(view):
            return None
        rows = (await view.vectors(space, state.last_row)).rows
        return tuple(rows.tolist()) if len(rows) <= MAX_TAIL else None

    async def similarities(
        self, view: ReadView, space: VectorSpace, query: npt.NDArray[np.float32], ids: Sequence[str]
    ) -> dict[str, float]:
        return await self.exact.similarities(view, space, query, ids)

    async def all_similarities(
        self, view: ReadView, space: VectorSpace, query: npt.NDArray[np.float32]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
        return await self.exact.all_similarities(view, space, query)

    async def similar_pairs(
        self, view: ReadView, space: VectorSpace, ids: Sequence[str], *, min_score: float
    ) -> list[SimilarPair]:
        return await self.exact.similar_pairs(view, space, ids, min_score=min_score)

    async def catch_up(self, view: ReadView) -> None:
        """Bring `exact` and the candidates up to the view. Without an answer the candidates stay as they are."""
        await self.exact.catch_up(view)
        embedder = await _embedder(view)
        try:
            for space in VectorSpace:
                await self._update(view, space, embedder)
        except Unavailable as error:
            _log.warning("%s stays behind the index: %s", self.candidates.name, error)
        self._tails.clear()

    async def _update(self, view: ReadView, space: VectorSpace, embedder: str) -> None:
        state = await self.candidates.state(space)
        if state.last_row >= 0 and state.revision >= view.revision:
            return
        block = await view.vectors(space, state.last_row, since=state.revision)
        if state.last_row >= 0 and (block.deleted is None or state.embedder != embedder):
            await self.candidates.clear(space)
            state = CandidateState()
            block = await view.vectors(space)
        deleted = [] if block.deleted is None else block.deleted[block.deleted <= state.last_row].tolist()
        if state.last_row < 0 and not len(block.rows):
            return
        newest = CandidateState(
            last_row=max([state.last_row, *block.rows[-1:].tolist()]),
            revision=view.revision,
            n_rows=max(0, state.n_rows + len(block.rows) - len(deleted)),
            embedder=embedder,
        )
        await self.candidates.update(space, block, deleted, newest, after=state)


async def _embedder(view: ReadView) -> str:
    """Return identity and dimension of the embedder of the index, "" for none."""
    embedder = (await view.counts("embedder")).embedder
    return f"{embedder[0]} {embedder[1]}" if embedder else ""
