"""Tables of segments behave as one array of rows."""

import itertools
import mmap
from pathlib import Path

import numpy as np
import pytest

from quipu.algo.similarity import distances, exact_scores, pack_signs, sketch_query
from quipu.ports.store import VectorBlock
from quipu.vectors.local.segments import MappedPages, VectorTable, segment_of
from tests.unit.vectors.local.ledger import clustered

DATA = clustered(100, 70).astype(np.float16)
ROWS = np.arange(100) * 3 + 5
QUERY = clustered(1, 70, seed=1)[0]


def table(*sizes: int) -> VectorTable:
    """Return the first rows in segments of these sizes, as if mapped."""
    cuts = np.cumsum([0, *sizes])
    blocks = [VectorBlock(rows=ROWS[a:b], vectors=DATA[a:b]) for a, b in itertools.pairwise(cuts)]
    return VectorTable(segments=tuple(map(segment_of, blocks)), n_mapped=len(sizes))


@pytest.mark.parametrize("sizes", [(100,), (60, 40), (1, 98, 1), (50, 30, 15, 5)])
def test_positions_count_through_all_segments(sizes: tuple[int, ...]) -> None:
    whole, positions = table(*sizes), np.array([0, 1, 49, 50, 59, 60, 61, 98, 99])
    assert len(whole) == 100
    assert whole.dimension == 70
    assert np.array_equal(whole.rows_at(positions), ROWS[positions])
    assert np.array_equal(whole.data_at(positions), DATA[positions])
    assert np.array_equal(whole.locate(ROWS[positions]), positions)
    assert np.array_equal(whole.scores(QUERY), exact_scores(DATA, QUERY))
    assert np.array_equal(whole.scores_at(positions, QUERY), exact_scores(DATA, QUERY)[positions])
    sketch = sketch_query(QUERY)
    assert np.array_equal(whole.distances(sketch), distances(pack_signs(DATA), sketch))


def test_rows_that_are_not_there_are_not_located() -> None:
    assert table(60, 40).locate(np.array([-1, 0, 6, 8, 183, 184, 302, 303, 10_000])).tolist() == [1, 99]
    assert VectorTable().locate(np.array([1, 2])).tolist() == []


@pytest.mark.parametrize("n", [0, 1, 59, 60, 61, 100])
def test_the_first_rows_are_a_table(n: int) -> None:
    first = table(60, 40).first(n)
    assert len(first) == n
    assert np.array_equal(first.rows_at(np.arange(n)), ROWS[:n])


def test_segments_in_memory_at_least_halve_in_length() -> None:
    grown = VectorTable()
    for i in range(100):
        grown = grown.extended(segment_of(VectorBlock(rows=ROWS[i : i + 1], vectors=DATA[i : i + 1])))
        sizes = list(map(len, grown.segments))
        assert all(left >= 2 * right for left, right in itertools.pairwise(sizes))
    assert np.array_equal(grown.data_at(np.arange(100)), DATA)


def test_mapped_segments_are_not_copied_to_memory() -> None:
    mapped = table(10)
    grown = mapped.extended(segment_of(VectorBlock(rows=ROWS[10:], vectors=DATA[10:])))
    assert grown.segments[0] is mapped.segments[0]
    assert list(map(len, grown.segments)) == [10, 90]


def test_released_pages_can_be_read_again(tmp_path: Path) -> None:
    content = np.random.default_rng(0).bytes(5 * mmap.PAGESIZE + 7)
    path = tmp_path / "file"
    path.write_bytes(content)
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        for start in (0, 1, mmap.PAGESIZE, len(content)):
            MappedPages(mapped, start).release()
            assert mapped[:] == content
