"""A vector index in the process: nearest neighbours over sketches, which are derived from the store and mapped."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from quipu.algo.similarity import top_k
from quipu.errors import Mismatch
from quipu.model.evidence import Scored
from quipu.ports.store import ReadView, VectorSpace
from quipu.ports.vector_index import SimilarPair
from quipu.vectors.local.segment_files import Manifest, SpaceFiles, try_lock_exclusively
from quipu.vectors.local.segments import (
    RankedRows,
    SearchDepth,
    SearchScope,
    SpaceState,
    initial_state,
    rank,
    rank_pairs,
    score_all,
)

_T = TypeVar("_T")

_THREAD_ROWS = 30_000  # scoring more takes about 10 ms
_SKETCHES_PER_ROW = 10  # sketches compared in the time of one exact score
_DEPTH_FACTOR = 4  # how much further to search where the best rows have too few owners


@dataclass(frozen=True, slots=True, kw_only=True)
class _SavedState:
    """The newest state of a space, and the manifest of its mapped segments."""

    state: SpaceState
    saved: Manifest | None


class LocalVectors:
    """Searches the vectors of a store: exactly up to `exact_below` rows, and through sign sketches above.

    The float16 rows in the store are the truth. The files in `directory` are derived from them, and may be missing,
    stale, damaged or of other vectors. They save memory, and reading every row when a process starts. A search answers
    at the revision of its view; each space has one state, which follows the newest view and serves older ones.
    """

    def __init__(self, directory: Path, *, exact_below: int = 8_000, max_unsaved: int = 4_096) -> None:
        self._directory = directory
        self._exact_below = exact_below
        self._max_unsaved = max_unsaved
        self._files = {space: SpaceFiles(directory, space.value) for space in VectorSpace}
        self._locks = {space: asyncio.Lock() for space in VectorSpace}
        self._newest: dict[VectorSpace, _SavedState] = {}

    async def nearest(
        self, view: ReadView, space: VectorSpace, queries: npt.NDArray[np.float32], *, k: int, min_score: float = -1.0
    ) -> list[tuple[Scored, ...]]:
        """Return, for each row of `queries` ([n, d], unit), the k nearest ids by cosine, at least `min_score`.

        Best first, equal scores by id. A zero query has no neighbours. Raises Mismatch where d is not the index's.
        """
        scope = await self._scope(view, space)
        neighbours: list[tuple[Scored, ...]] = [()] * len(queries)
        pending = np.flatnonzero(queries.any(axis=1)).tolist() if k > 0 and len(scope) else []
        if pending:
            _check_dimension(queries.shape[1], scope.state.table.dimension)
        depth = SearchDepth(n=k, min_score=min_score, exact_below=self._exact_below)
        while pending:
            ranked = await _rank_all(scope, queries[pending], depth)
            scores = await _score_by_id(view, space, ranked)
            complete = [rows.is_exhausted or len(scored) >= k for rows, scored in zip(ranked, scores, strict=True)]
            for index, scored in zip(pending, scores, strict=True):
                neighbours[index] = tuple(Scored(id=owner, score=score) for owner, score in top_k(scored, k))
            pending = [index for index, is_complete in zip(pending, complete, strict=True) if not is_complete]
            depth = replace(depth, n=depth.n * _DEPTH_FACTOR)
        return neighbours

    async def similarities(
        self, view: ReadView, space: VectorSpace, query: npt.NDArray[np.float32], ids: Sequence[str]
    ) -> dict[str, float]:
        row_by_id = await view.numbers(space, ids)
        if not row_by_id:
            return {}
        async with self._locks[space]:
            table = (await self._state_at(view, space)).table
        _check_dimension(len(query), table.dimension)
        rows, inverse = np.unique(np.fromiter(row_by_id.values(), np.int64, len(row_by_id)), return_inverse=True)
        scores = table.scores_at(table.locate(rows), query)
        return dict(zip(row_by_id, scores[inverse].tolist(), strict=True))

    async def all_similarities(
        self, view: ReadView, space: VectorSpace, query: npt.NDArray[np.float32]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
        scope = await self._scope(view, space)
        if not len(scope):
            return np.empty(0, dtype=np.int64), np.empty(0)
        _check_dimension(len(query), scope.state.table.dimension)
        return await _in_thread_if(len(scope) > _THREAD_ROWS, lambda: score_all(scope, query))

    async def similar_pairs(
        self, view: ReadView, space: VectorSpace, ids: Sequence[str], *, min_score: float
    ) -> list[SimilarPair]:
        """Return every pair of one of `ids` with any other id of the view whose cosine is at least `min_score`."""
        row_by_id = await view.numbers(space, ids)
        scope = await self._scope(view, space)
        rows = np.unique(np.fromiter(row_by_id.values(), np.int64, len(row_by_id)))
        is_heavy = len(scope) * len(rows) > _THREAD_ROWS
        pairs = await _in_thread_if(is_heavy, lambda: rank_pairs(scope, rows, min_score))
        owners = await view.vector_owners(space, sorted({row for first, second, _ in pairs for row in (first, second)}))
        score_by_pair = {
            (min(one, other), max(one, other)): score
            for first, second, score in pairs
            for one in owners.get(first, ())
            for other in owners.get(second, ())
            if one in row_by_id and one != other
        }
        return [
            SimilarPair(first=first, second=second, score=score)
            for (first, second), score in sorted(score_by_pair.items())
        ]

    async def catch_up(self, view: ReadView) -> None:
        """Bring the files up to the view where they are far behind, and map them. Small spaces have no files.

        Does nothing while another process writes. Raises OSError where the directory cannot be written.
        """
        for space in VectorSpace:
            await self._catch_up(view, space)

    async def _scope(self, view: ReadView, space: VectorSpace) -> SearchScope:
        async with self._locks[space]:
            state = await self._state_at(view, space)
        rows = await view.allowed_numbers(space)
        return SearchScope(state=state, allowed=state.table.locate(rows) if rows is not None else None)

    async def _state_at(self, view: ReadView, space: VectorSpace) -> SpaceState:
        """Return the state at the view's revision, and remember it where it is the newest."""
        newest = self._newest.get(space)
        if newest is None or newest.state.revision < view.revision:
            newest = await self._newer(view, space, newest)
            self._newest[space] = newest
        base = newest.state.as_of(view.revision)
        if base is not None and base.revision == view.revision:
            return base
        state = await _advance(view, space, base) if base is not None else None
        return state if state is not None else await _load(view, space)

    async def _newer(self, view: ReadView, space: VectorSpace, older: _SavedState | None) -> _SavedState:
        """Return the state at the view: from an older state, else from the files, else from the store."""
        if older is None:
            manifest = await asyncio.to_thread(self._files[space].manifest)
            older = await self._open(view, space, manifest)
        state = await _advance(view, space, older.state) if older is not None else None
        if older is None or state is None:
            return _SavedState(state=await _load(view, space), saved=None)
        return _SavedState(state=state, saved=older.saved)

    async def _open(self, view: ReadView, space: VectorSpace, manifest: Manifest | None) -> _SavedState | None:
        """Return the state in the files; None where they are absent, damaged or newer than the view."""
        if manifest is None or manifest.revision > view.revision:
            return None
        state = await asyncio.to_thread(self._files[space].load, manifest)
        return _SavedState(state=state, saved=manifest) if state is not None else None

    async def _catch_up(self, view: ReadView, space: VectorSpace) -> None:
        async with self._locks[space]:
            newest = await self._with_files(view, space)
        if newest.state.revision != view.revision or not self._is_behind(newest):
            return
        written = await asyncio.to_thread(self._write, space, newest)
        if written is not None:
            async with self._locks[space]:
                self._newest[space] = written

    async def _with_files(self, view: ReadView, space: VectorSpace) -> _SavedState:
        """Return the state at the view, mapped from the current files, which another process may have written."""
        await self._state_at(view, space)
        newest = self._newest[space]
        manifest = await asyncio.to_thread(self._files[space].manifest)
        if manifest != newest.saved and newest.state.revision == view.revision:
            opened = await self._open(view, space, manifest)
            state = await _advance(view, space, opened.state) if opened is not None else None
            newest = _SavedState(state=state, saved=manifest) if state is not None else replace(newest, saved=None)
            self._newest[space] = newest
        return newest

    def _is_behind(self, newest: _SavedState) -> bool:
        state, saved = newest.state, newest.saved
        if state.n_live <= self._exact_below:
            return saved is not None
        if saved is None or _is_sparse(state):
            return True
        n_unsaved = len(state.table) - saved.n_rows + len(state.deleted) - len(saved.deleted)
        return n_unsaved > self._max_unsaved

    def _write(self, space: VectorSpace, newest: _SavedState) -> _SavedState | None:
        """Write the state to disk and return it mapped; None where another process writes or wrote a newer one."""
        self._directory.mkdir(parents=True, exist_ok=True)
        files = self._files[space]
        with try_lock_exclusively(self._directory / "lock") as is_locked:
            on_disk = files.manifest()
            if not is_locked or (on_disk is not None and on_disk.revision > newest.state.revision):
                return None
            if newest.state.n_live <= self._exact_below:
                files.clear()
                return replace(newest, saved=None)
            saved = newest.saved if newest.saved == on_disk else None
            manifest, state = (
                files.rewrite(newest.state) if _is_sparse(newest.state) else files.append(newest.state, saved)
            )
            return _SavedState(state=state, saved=manifest)


def _is_sparse(state: SpaceState) -> bool:
    """Return whether more than a fifth of the rows are deleted."""
    return len(state.deleted) * 5 > len(state.table)


async def _advance(view: ReadView, space: VectorSpace, state: SpaceState) -> SpaceState | None:
    """Return the state at the view's revision; None where the change log is too short, or the store contradicts it.

    The last newest row is read again with the new ones. If it is equal, the state belongs to this store and its current
    embedder.
    """
    last_row = _last_row(state)
    block = await view.vectors(space, max(last_row - 1, -1), since=state.revision)
    if block.deleted is None:
        return None
    remaining = state.without(block.deleted)
    if (last_remaining := _last_row(remaining)) != last_row:
        block = await view.vectors(space, max(last_remaining - 1, -1))
    return await _in_thread_if(len(block.rows) > _THREAD_ROWS, lambda: remaining.grown(view.revision, block))


def _last_row(state: SpaceState) -> int:
    """Return the newest row that is not deleted, -1 if there is none."""
    return int(np.max(state.table.rows_at(state.last_live()), initial=-1))


async def _load(view: ReadView, space: VectorSpace) -> SpaceState:
    block = await view.vectors(space)
    return await _in_thread_if(len(block.rows) > _THREAD_ROWS, lambda: initial_state(view.revision, block))


async def _rank_all(scope: SearchScope, queries: npt.NDArray[np.float32], depth: SearchDepth) -> list[RankedRows]:
    n_scored = len(scope) if len(scope) <= depth.exact_below else len(scope.state.table) // _SKETCHES_PER_ROW
    return await _in_thread_if(
        n_scored * len(queries) > _THREAD_ROWS, lambda: [rank(scope, query, depth) for query in queries]
    )


async def _score_by_id(view: ReadView, space: VectorSpace, ranked: Sequence[RankedRows]) -> list[dict[str, float]]:
    """Return, for each ranking, the score of every id that owns one of its rows."""
    rows = np.unique(np.concatenate([ranking.rows for ranking in ranked]))
    owners = await view.vector_owners(space, rows.tolist()) if len(rows) else {}
    return [
        {
            owner: score
            for row, score in zip(ranking.rows.tolist(), ranking.scores.tolist(), strict=True)
            for owner in owners.get(row, ())
        }
        for ranking in ranked
    ]


async def _in_thread_if(is_heavy: bool, work: Callable[[], _T]) -> _T:
    return await asyncio.to_thread(work) if is_heavy else work()


def _check_dimension(dimension: int, expected: int) -> None:
    if dimension != expected:
        raise Mismatch(
            f"The query vector has {dimension} dimensions, the index {expected}.",
            remedy="Open the index with the embedder it was built with, or embed it again.",
        )
