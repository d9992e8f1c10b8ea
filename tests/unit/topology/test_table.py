"""A table with replaced rows equals a table that is built again from all entries."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quipu.ports.topology import Floats, Ints
from quipu.topology import table
from quipu.topology.table import Entries, LayeredTable, RowTable, build_table

Cells = dict[tuple[int, int], int]

cells = st.dictionaries(st.tuples(st.integers(0, 5), st.integers(0, 4)), st.integers(1, 9), max_size=12)
steps = st.lists(st.tuples(st.sets(st.integers(0, 6)), cells), max_size=4)


def entries_of(found: Cells) -> Entries:
    rows, columns = (np.array([cell[i] for cell in found], dtype=np.int64) for i in range(2))
    return Entries(rows, columns, (np.array(list(found.values()), dtype=np.int64),))


def cells_of(found: Entries) -> Cells:
    (values,) = found.values
    return dict(zip(zip(found.rows.tolist(), found.columns.tolist(), strict=True), values.tolist(), strict=True))


def same(left: RowTable, right: RowTable) -> bool:
    pairs = zip((left.starts, left.columns, *left.values), (right.starts, right.columns, *right.values), strict=True)
    return all(np.array_equal(a, b) for a, b in pairs)


@pytest.mark.parametrize("few", [0, 1_000], ids=["compacted", "patched"])
@given(before=cells, changes=steps)
def test_replaced_rows_are_there_and_the_others_stay(
    few: int, before: Cells, changes: list[tuple[set[int], Cells]]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table, "_MIN_PATCH_ENTRIES", few)  # else no patch of a test is large enough to be taken in
        layered, expected = LayeredTable(build_table(entries_of(before))), before
        for rows, after in changes:
            new = {cell: value for cell, value in after.items() if cell[0] in rows}
            expected = {cell: value for cell, value in expected.items() if cell[0] not in rows} | new
            layered = layered.replaced(np.array(sorted(rows), dtype=np.int64), entries_of(new))
            assert cells_of(layered.all_entries()) == expected
            assert same(layered.merge_layers(), build_table(entries_of(expected)))


def test_a_large_patch_is_taken_into_the_base() -> None:
    many = {(row, 0): 1 for row in range(2_000)}
    layered = LayeredTable(build_table(entries_of(many))).replaced(np.arange(1_999), entries_of({(3, 1): 1}))
    assert layered.patch is not None
    layered = layered.replaced(np.arange(2_100), entries_of({(row, 2): 7 for row in range(2_100)}))
    assert layered.patch is None
    assert len(layered.base) == 2_100


def test_a_table_may_have_empty_rows_at_its_end() -> None:
    made = build_table(entries_of({(1, 2): 3}), 5)
    assert made.starts.tolist() == [0, 0, 1, 1, 1, 1]
    assert len(build_table(entries_of({(1, 2): 3}))) == 2


def test_the_matrix_of_a_base_is_made_once_for_all_revisions() -> None:
    base = LayeredTable(build_table(entries_of({(0, 1): 2, (1, 0): 2})))
    before = base.replaced(np.array([2]), entries_of({(2, 0): 1})).links(lambda _: None, (3, 3))
    calls: list[int] = []

    def weigh(values: object) -> None:
        calls.append(1)

    for n in range(3, 6):
        base.replaced(np.array([n]), entries_of({(n, 0): 1})).links(weigh, (n + 1, n + 1))
    assert len(calls) == 1 + 3  # the base once, each patch
    assert before.shape == (3, 3)


def test_links_of_a_table_are_laid_out_once_however_many_numbers_there_are_by_now() -> None:
    layered = LayeredTable(build_table(entries_of({(0, 1): 2, (1, 0): 3})))

    def weigh(values: Sequence[Ints]) -> Floats:
        return values[0].astype(np.float64)

    for n in range(2, 6):
        found = layered.links(weigh, (n, n))
        assert found.shape == (n, n)
        assert found.row_sums().tolist() == [2, 3] + [0] * (n - 2)
        assert found.multiply(np.arange(n, dtype=np.float64)).tolist() == [2, 0] + [0] * (n - 2)
        assert found.neighbours(np.arange(n)).columns.tolist() == [1, 0]
        assert found.n_entries == 2
    assert len(layered.base._matrices) == 1
