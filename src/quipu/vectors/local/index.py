"""Index: nearest neighbours in process, over sketches derived from the store and kept in mapped files."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from quipu.algo.ranking import top_k
from quipu.errors import Mismatch
from quipu.model.evidence import Scored
from quipu.ports.store import ReadView, VectorSpace
from quipu.ports.vector_index import SimilarPair
from quipu.vectors.local.files import SpaceFiles
from quipu.vectors.local.lock import try_exclusive
from quipu.vectors.local.manifest import Manifest
from quipu.vectors.local.search import Depth, Ranked, Scope, rank, rank_pairs, score_all
from quipu.vectors.local.state import State, fresh

_T = TypeVar("_T")

_THREAD_ROWS = 30_000  # scoring more takes about 10 ms
_SKETCHES_PER_ROW = 10  # sketches compared in the time of one exact score
_DEEPER = 4  # how much further to search where the best rows have too few owners


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    """A space's newest state, and the manifest its mapped segments come from."""

    state: State
    saved: Manifest | None


class LocalVectors:
    """Searches a store's vectors: exactly up to `exact_below` rows, above that through sign sketches.

    The store's float16 rows are the truth. What `directory` holds is derived from them; it may be missing, stale,
    damaged or of other vectors, and saves reading every row when a process starts, and memory.
    A search answers at the revision of its view; one state a space follows the newest view and serves older ones.
    """

    def __init__(self, directory: Path, *, exact_below: int = 8_000, max_unsaved: int = 4_096) -> None:
        self._directory = directory
        self._exact_below = exact_below
        self._max_unsaved = max_unsaved
        self._files = {space: SpaceFiles(directory, space.value) for space in VectorSpace}
        self._locks = {space: asyncio.Lock() for space in VectorSpace}
        self._known: dict[VectorSpace, _Known] = {}

    async def nearest(
        self, view: ReadView, space: VectorSpace, queries: npt.NDArray[np.float32], *, k: int, min_score: float = -1.0
    ) -> list[tuple[Scored, ...]]:
        """Return, for each row of `queries` ([n, d], unit), the k nearest ids by cosine, at least `min_score`.

        Best first, equal scores by id. A zero query has no neighbours. Raises Mismatch where d is not the index's.
        """
        scope = await self._scope(view, space)
        found: list[tuple[Scored, ...]] = [()] * len(queries)
        pending = np.flatnonzero(queries.any(axis=1)).tolist() if k > 0 and len(scope) else []
        if pending:
            _check_dimension(queries.shape[1], scope.state.table.dimension)
        depth = Depth(n=k, min_score=min_score, exact_below=self._exact_below)
        while pending:
            ranked = await _rank_all(scope, queries[pending], depth)
            scores = await _score_by_id(view, space, ranked)
            complete = [one.exhausted or len(scored) >= k for one, scored in zip(ranked, scores, strict=True)]
            for index, scored in zip(pending, scores, strict=True):
                found[index] = tuple(Scored(id=owner, score=score) for owner, score in top_k(scored, k))
            pending = [index for index, is_complete in zip(pending, complete, strict=True) if not is_complete]
            depth = replace(depth, n=depth.n * _DEEPER)
        return found

    async def similarities(
        self, view: ReadView, space: VectorSpace, query: npt.NDArray[np.float32], ids: Sequence[str]
    ) -> dict[str, float]:
        """Return the cosine of `query` ([d], unit) with each of `ids`; ids without a vector are left out."""
        row_by_id = await view.vector_rows(space, ids)
        if not row_by_id:
            return {}
        async with self._locks[space]:
            table = (await self._state_at(view, space)).table
        _check_dimension(len(query), table.dimension)
        rows, at = np.unique(np.fromiter(row_by_id.values(), np.int64, len(row_by_id)), return_inverse=True)
        scores = table.scores_at(table.locate(rows), query)
        return dict(zip(row_by_id, scores[at].tolist(), strict=True))

    async def all_similarities(
        self, view: ReadView, space: VectorSpace, query: npt.NDArray[np.float32]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
        """Return every row the view may see, rising, and the cosine of `query` ([d], unit) with each."""
        scope = await self._scope(view, space)
        if not len(scope):
            return np.empty(0, dtype=np.int64), np.empty(0)
        _check_dimension(len(query), scope.state.table.dimension)
        return await _in_thread_if(len(scope) > _THREAD_ROWS, lambda: score_all(scope, query))

    async def alike(
        self, view: ReadView, space: VectorSpace, ids: Sequence[str], *, min_score: float
    ) -> list[SimilarPair]:
        """Return every pair of one of `ids` with any other id of the view whose cosine is at least `min_score`."""
        row_by_id = await view.vector_rows(space, ids)
        scope = await self._scope(view, space)
        rows = np.unique(np.fromiter(row_by_id.values(), np.int64, len(row_by_id)))
        is_heavy = len(scope) * len(rows) > _THREAD_ROWS
        pairs = await _in_thread_if(is_heavy, lambda: rank_pairs(scope, rows, min_score))
        owners = await view.vector_owners(space, sorted({row for first, second, _ in pairs for row in (first, second)}))
        wanted = frozenset(row_by_id)
        found = {
            (min(one, other), max(one, other)): score
            for first, second, score in pairs
            for one in owners.get(first, ())
            for other in owners.get(second, ())
            if one in wanted and one != other
        }
        return [
            SimilarPair(first=first, second=second, score=score) for (first, second), score in sorted(found.items())
        ]

    async def catch_up(self, view: ReadView) -> None:
        """Bring the files up to the view where they are far behind, and map them; small spaces have none.

        Does nothing where another process is writing. Raises OSError where the directory cannot be written.
        """
        for space in VectorSpace:
            await self._catch_up(view, space)

    async def _scope(self, view: ReadView, space: VectorSpace) -> Scope:
        async with self._locks[space]:
            state = await self._state_at(view, space)
        rows = None if view.filter.is_empty() else await view.vectors_allowed(space)
        return Scope(state=state, allowed=state.table.locate(rows) if rows is not None else None)

    async def _state_at(self, view: ReadView, space: VectorSpace) -> State:
        """Return the state at the view's revision, and keep it where it is the newest."""
        known = self._known.get(space)
        if known is None or known.state.revision < view.revision:
            known = await self._newer(view, space, known)
            self._known[space] = known
        base = known.state.as_of(view.revision)
        if base is not None and base.revision == view.revision:
            return base
        state = await _advanced(view, space, base) if base is not None else None
        return state if state is not None else await _loaded(view, space)

    async def _newer(self, view: ReadView, space: VectorSpace, known: _Known | None) -> _Known:
        """Return what is known, or else on disk, brought up to the view; read from the store where there is nothing."""
        if known is None:
            manifest = await asyncio.to_thread(self._files[space].manifest)
            known = await self._opened(view, space, manifest)
        state = await _advanced(view, space, known.state) if known is not None else None
        if known is None or state is None:
            return _Known(state=await _loaded(view, space), saved=None)
        return _Known(state=state, saved=known.saved)

    async def _opened(self, view: ReadView, space: VectorSpace, manifest: Manifest | None) -> _Known | None:
        """Return what the files hold; None where they are absent, damaged or newer than the view."""
        if manifest is None or manifest.revision > view.revision:
            return None
        state = await asyncio.to_thread(self._files[space].load, manifest)
        return _Known(state=state, saved=manifest) if state is not None else None

    async def _catch_up(self, view: ReadView, space: VectorSpace) -> None:
        async with self._locks[space]:
            known = await self._adopted(view, space)
        if known.state.revision != view.revision or not self._is_behind(known):
            return
        written = await asyncio.to_thread(self._write, space, known)
        if written is not None:
            async with self._locks[space]:
                self._known[space] = written

    async def _adopted(self, view: ReadView, space: VectorSpace) -> _Known:
        """Return what is known at the view, mapped from the files there are now, whichever process wrote them."""
        await self._state_at(view, space)
        known = self._known[space]
        manifest = await asyncio.to_thread(self._files[space].manifest)
        if manifest != known.saved and known.state.revision == view.revision:
            opened = await self._opened(view, space, manifest)
            state = await _advanced(view, space, opened.state) if opened is not None else None
            known = _Known(state=state, saved=manifest) if state is not None else replace(known, saved=None)
            self._known[space] = known
        return known

    def _is_behind(self, known: _Known) -> bool:
        state, saved = known.state, known.saved
        if state.n_live <= self._exact_below:
            return saved is not None
        if saved is None or _is_sparse(state):
            return True
        n_unsaved = len(state.table) - saved.n_rows + len(state.gone) - len(saved.gone)
        return n_unsaved > self._max_unsaved

    def _write(self, space: VectorSpace, known: _Known) -> _Known | None:
        """Write the state to disk and return it mapped; None where another process writes, or wrote a newer one."""
        self._directory.mkdir(parents=True, exist_ok=True)
        files = self._files[space]
        with try_exclusive(self._directory / "lock") as is_held:
            on_disk = files.manifest()
            if not is_held or (on_disk is not None and on_disk.revision > known.state.revision):
                return None
            if known.state.n_live <= self._exact_below:
                files.clear()
                return replace(known, saved=None)
            saved = known.saved if known.saved == on_disk else None
            manifest, state = (
                files.rewrite(known.state) if _is_sparse(known.state) else files.append(known.state, saved)
            )
            return _Known(state=state, saved=manifest)


def _is_sparse(state: State) -> bool:
    """Say whether more than a fifth of the rows are deleted."""
    return len(state.gone) * 5 > len(state.table)


async def _advanced(view: ReadView, space: VectorSpace, state: State) -> State | None:
    """Return the state at the view's revision; None where the store no longer knows the way, or contradicts it.

    The row read beside the new ones shows that the state is of this store, and of its live model.
    """
    gone = await view.vectors_gone(space, state.revision)
    if gone is None:
        return None
    remaining = state.without(gone)
    last_row = int(np.max(remaining.table.rows_at(remaining.last_live()), initial=-1))
    block = await view.vectors_after(space, max(last_row - 1, -1))
    return await _in_thread_if(len(block.rows) > _THREAD_ROWS, lambda: remaining.grown(view.revision, block))


async def _loaded(view: ReadView, space: VectorSpace) -> State:
    block = await view.vectors_after(space, -1)
    return await _in_thread_if(len(block.rows) > _THREAD_ROWS, lambda: fresh(view.revision, block))


async def _rank_all(scope: Scope, queries: npt.NDArray[np.float32], depth: Depth) -> list[Ranked]:
    n_scored = len(scope) if len(scope) <= depth.exact_below else len(scope.state.table) // _SKETCHES_PER_ROW
    return await _in_thread_if(
        n_scored * len(queries) > _THREAD_ROWS, lambda: [rank(scope, query, depth) for query in queries]
    )


async def _score_by_id(view: ReadView, space: VectorSpace, ranked: Sequence[Ranked]) -> list[dict[str, float]]:
    """Return, for each ranking, the score of every id its rows stand for."""
    rows = np.unique(np.concatenate([one.rows for one in ranked]))
    owners = await view.vector_owners(space, rows.tolist()) if len(rows) else {}
    return [
        {
            owner: score
            for row, score in zip(one.rows.tolist(), one.scores.tolist(), strict=True)
            for owner in owners.get(row, ())
        }
        for one in ranked
    ]


async def _in_thread_if(is_heavy: bool, work: Callable[[], _T]) -> _T:
    return await asyncio.to_thread(work) if is_heavy else work()


def _check_dimension(given: int, expected: int) -> None:
    if given != expected:
        raise Mismatch(
            f"The query vector has {given} dimensions, the index {expected}.",
            remedy="Open the index with the embedder it was built with, or embed it again.",
        )
