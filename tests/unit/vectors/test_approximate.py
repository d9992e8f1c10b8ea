"""Tests of approximate search: exact scores of a view's own rows, what follows the index, and when all is compared."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import numpy as np
import pytest

from quipu.errors import Unavailable
from quipu.model.graph import IndexCounts
from quipu.ports.store import ReadView, VectorBlock, VectorSpace
from quipu.ports.vector_index import ApproximateVectorIndex, CandidateState
from quipu.vectors.approximate import MAX_CANDIDATES, MAX_TAIL, ApproximateVectors
from quipu.vectors.local import LocalVectors
from tests.unit.vectors.local.ledger import Ledger, LedgerView, Matrix, clustered, named

DIMENSION = 24
SPACE = VectorSpace.CHUNK


class EmbeddedView(LedgerView):
    """A view that knows its embedder."""

    embedder = "words"

    async def counts(self, *_names: str) -> IndexCounts:
        """Return the embedder."""
        return IndexCounts(embedder=(self.embedder, DIMENSION))


def view(ledger: Ledger, allowed: Sequence[str] | None = None, revision: int | None = None) -> EmbeddedView:
    """Open a view of the newest revision."""
    return EmbeddedView(ledger, ledger.revision if revision is None else revision, allowed)


@dataclass
class MemoryCandidates:
    """Rows in memory, compared with all; `hidden` ones are missed. It counts its searches."""

    name = "Memory"
    rows: dict[int, Matrix] = field(default_factory=dict)
    states: dict[VectorSpace, CandidateState] = field(default_factory=dict)
    hidden: set[int] = field(default_factory=set)
    n_searches: int = 0
    n_cleared: int = 0
    is_gone: bool = False

    async def state(self, space: VectorSpace) -> CandidateState:
        """Return what is held."""
        if self.is_gone:
            raise Unavailable("Memory is gone.")
        return self.states.get(space, CandidateState())

    async def update(
        self,
        space: VectorSpace,
        added: VectorBlock,
        deleted: Sequence[int],
        state: CandidateState,
        after: CandidateState,
    ) -> None:
        """Add and delete rows."""
        self.rows |= zip(added.rows.tolist(), added.vectors.astype(np.float32), strict=True)
        for row in deleted:
            del self.rows[row]
        self.states[space] = state

    async def clear(self, space: VectorSpace) -> None:
        """Forget everything."""
        self.rows.clear()
        self.states.pop(space, None)
        self.n_cleared += 1

    async def nearest_rows(self, _space: VectorSpace, query: Matrix, n: int) -> list[int]:
        """Return the nearest rows but the hidden ones."""
        if self.is_gone:
            raise Unavailable("Memory is gone.")
        self.n_searches += 1
        rows = [row for row in self.rows if row not in self.hidden]
        return sorted(rows, key=lambda row: -float(self.rows[row] @ query))[:n]

    async def close(self) -> None:
        """Do nothing."""


@pytest.fixture
def candidates() -> MemoryCandidates:
    return MemoryCandidates()


@pytest.fixture
def index(tmp_path: Path, candidates: MemoryCandidates) -> ApproximateVectors:
    return ApproximateVectors(LocalVectors(tmp_path), candidates, exact_below=50)


@pytest.fixture
def ledger() -> Ledger:
    ledger = Ledger()
    ledger.add(named(clustered(600, DIMENSION)))
    return ledger


def port(view: EmbeddedView) -> ReadView:
    return cast(ReadView, view)


QUERIES = clustered(5, DIMENSION, seed=1)


async def _agrees(index: ApproximateVectors, view: EmbeddedView, k: int = 7, min_score: float = -1.0) -> bool:
    """Say whether a search gives ids and scores of the exact one."""
    results = await index.nearest(port(view), SPACE, QUERIES, k=k, min_score=min_score)
    return results == await index.exact.nearest(port(view), SPACE, QUERIES, k=k, min_score=min_score)


@pytest.mark.parametrize(("k", "min_score"), [(1, -1.0), (7, -1.0), (240, -1.0), (7, 0.95), (0, -1.0)])
async def test_with_the_right_candidates_ids_and_scores_are_exact(
    index: ApproximateVectors, candidates: MemoryCandidates, ledger: Ledger, k: int, min_score: float
) -> None:
    await index.catch_up(port(view(ledger)))
    assert await _agrees(index, view(ledger), k, min_score)
    assert candidates.n_searches >= len(QUERIES)


async def test_a_missed_candidate_is_missing_and_the_trace_says_that_this_may_be(
    index: ApproximateVectors, candidates: MemoryCandidates, ledger: Ledger
) -> None:
    assert isinstance(index, ApproximateVectorIndex)
    assert not isinstance(index.exact, ApproximateVectorIndex)
    await index.catch_up(port(view(ledger)))
    ((best, second),) = await index.exact.nearest(port(view(ledger)), SPACE, QUERIES[:1], k=2)
    candidates.hidden = {row for row, kept in ledger.rows.items() if best.id in kept.owners}
    asked = index.for_question()
    assert await asked.nearest(port(view(ledger)), SPACE, QUERIES[:1], k=1) == [(second,)]
    assert asked.notes() == ("nearest vectors are approximate: Memory named the candidates",)
    assert index.notes() == index.for_question().notes() == ()


async def test_only_rows_of_the_view_are_returned(
    index: ApproximateVectors, candidates: MemoryCandidates, ledger: Ledger
) -> None:
    await index.catch_up(port(view(ledger)))
    allowed = [f"c{number:05d}" for number in range(0, 600, 5)]
    assert await _agrees(index, view(ledger, allowed), k=30)
    assert candidates.n_searches > len(QUERIES)  # deeper, where the filter hides candidates
    searched = candidates.n_searches
    assert await _agrees(index, view(ledger, allowed[:50]))
    assert candidates.n_searches == searched  # few: all are compared


async def test_where_a_filter_hides_nearly_all_candidates_every_vector_is_compared(
    index: ApproximateVectors, candidates: MemoryCandidates
) -> None:
    ledger = Ledger()
    near = np.repeat(QUERIES[:1], MAX_CANDIDATES * 2, axis=0)
    ledger.add({**named(near, "near"), **named(clustered(100, DIMENSION), "far")})
    await index.catch_up(port(view(ledger)))
    assert await _agrees(index, view(ledger, [f"far{number:05d}" for number in range(100)]))
    assert candidates.n_searches > 0


async def test_it_follows_additions_removals_and_a_change_log_that_was_cut(
    index: ApproximateVectors, candidates: MemoryCandidates, ledger: Ledger
) -> None:
    before = view(ledger)
    await index.catch_up(port(before))
    ledger.add(named(clustered(80, DIMENSION, seed=2), "d"))
    assert await _agrees(index, view(ledger))  # new rows are scored here
    ledger.remove([f"c{number:05d}" for number in range(100)])
    await index.catch_up(port(view(ledger)))
    assert len(candidates.rows) == 580 and candidates.states[SPACE].n_rows == 580
    assert await _agrees(index, view(ledger))
    await index.catch_up(port(before))  # of a slower process
    assert len(candidates.rows) == 580
    ledger.remove(["d00000"])
    ledger.forget()
    await index.catch_up(port(view(ledger)))
    assert (candidates.n_cleared, len(candidates.rows)) == (1, 579)


async def test_vectors_of_another_embedder_replace_all(
    index: ApproximateVectors, candidates: MemoryCandidates, ledger: Ledger
) -> None:
    await index.catch_up(port(view(ledger)))
    ledger.remove([owner for row in ledger.rows.values() for owner in row.owners])
    ledger.add(named(clustered(200, DIMENSION, seed=3), "e"))
    newer = view(ledger)
    newer.embedder = "other words"
    assert await _agrees(index, newer) and candidates.n_searches == 0
    await index.catch_up(port(newer))
    assert len(candidates.rows) == 200
    assert await _agrees(index, newer) and candidates.n_searches > 0


async def test_few_rows_and_candidates_far_behind_need_no_candidates(
    index: ApproximateVectors, candidates: MemoryCandidates
) -> None:
    ledger = Ledger()
    ledger.add(named(clustered(50, DIMENSION)))
    await index.catch_up(port(view(ledger)))
    assert await _agrees(index, view(ledger))
    ledger.add(named(clustered(50, DIMENSION, seed=4), "d"))
    await index.catch_up(port(view(ledger)))
    ledger.add(named(clustered(MAX_TAIL + 1, DIMENSION, seed=5), "e"))
    assert await _agrees(index, view(ledger))
    assert candidates.n_searches == 0


async def test_without_an_answer_all_is_compared_here_and_the_trace_says_why(
    index: ApproximateVectors, candidates: MemoryCandidates, ledger: Ledger, caplog: pytest.LogCaptureFixture
) -> None:
    await index.catch_up(port(view(ledger)))
    ledger.add(named(clustered(10, DIMENSION, seed=6), "d"))
    candidates.is_gone = True
    with caplog.at_level(logging.WARNING):
        await index.catch_up(port(view(ledger)))
    assert "Memory stays behind the index: Memory is gone." in caplog.text
    asked = index.for_question()
    assert await _agrees(asked, view(ledger))
    assert asked.notes() == ("Memory was not used: Memory is gone.",)


async def test_everything_else_is_the_exact_indexs(index: ApproximateVectors, ledger: Ledger) -> None:
    await index.catch_up(port(view(ledger)))
    opened, query = port(view(ledger)), QUERIES[0]
    rows, scores = await index.all_similarities(opened, SPACE, query)
    exact_rows, exact_scores = await index.exact.all_similarities(opened, SPACE, query)
    assert np.array_equal(rows, exact_rows) and np.array_equal(scores, exact_scores)
    assert await index.similarities(opened, SPACE, query, ["c00001"]) == await index.exact.similarities(
        opened, SPACE, query, ["c00001"]
    )
    pairs = await index.similar_pairs(opened, SPACE, ["c00001"], min_score=0.9)
    assert pairs and pairs == await index.exact.similar_pairs(opened, SPACE, ["c00001"], min_score=0.9)
