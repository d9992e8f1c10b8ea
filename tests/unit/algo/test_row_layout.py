"""Sums over rows laid side by side are those of the full matrix."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quipu.algo import sparse_matrix as sparse
from quipu.algo.sparse_matrix import concatenated_ranges, row_layout, sparse_matrix


@pytest.mark.parametrize("max_length", [0, 1, 3, 64])
@given(lengths=st.lists(st.integers(0, 6), max_size=9), has_weights=st.booleans())
def test_rows_of_any_length_are_summed(max_length: int, lengths: list[int], has_weights: bool) -> None:
    chance = np.random.default_rng(len(lengths))
    full = np.zeros((len(lengths), 8))
    for row, length in enumerate(lengths):
        full[row, chance.choice(8, length, replace=False)] = chance.random(length) + 0.5 if has_weights else 1.0
    rows, columns = np.nonzero(full)
    matrix = sparse_matrix(rows, columns, full[rows, columns] if has_weights else None, (len(lengths), 8))
    weights = chance.random(8)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sparse, "MAX_BLOCK_LENGTH", max_length)  # else no row here is long
        layout = row_layout(matrix.starts, matrix.columns, matrix.weights)
        sums = layout.multiply(weights, len(lengths) + 2)
    assert np.allclose(sums[: len(lengths)], full @ weights)
    assert sums[len(lengths) :].tolist() == [0, 0]


def test_a_large_matrix_is_gathered_as_a_small_one() -> None:
    chance = np.random.default_rng(0)
    codes = np.unique(chance.integers(0, 300 * 300, 3 * sparse.MIN_ENTRIES) ** 2 // 300**2)
    matrix = sparse_matrix(codes // 300, codes % 300, chance.random(len(codes)), (300, 300))
    assert matrix.n_entries >= sparse.MIN_ENTRIES
    weights = chance.random(300)
    found = matrix.neighbours(np.arange(300))
    expected = np.bincount(found.positions, weights=found.weights * weights[found.columns], minlength=300)
    assert np.allclose(matrix.multiply(weights), expected)


@pytest.mark.parametrize(
    ("starts", "lengths", "expected"), [([], [], []), ([4, 0, 9], [2, 0, 1], [4, 5, 9]), ([7], [0], [])]
)
def test_ranges_are_listed_one_after_the_other(starts: list[int], lengths: list[int], expected: list[int]) -> None:
    assert concatenated_ranges(np.array(starts, dtype=np.int64), np.array(lengths, dtype=np.int64)).tolist() == expected
