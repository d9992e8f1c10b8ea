"""Sparse matrices agree with full ones, also where some rows were replaced."""

import numpy as np
import numpy.typing as npt
from hypothesis import given
from hypothesis import strategies as st

from quipu.algo.sparse_matrix import PatchedMatrix, SparseMatrix, sparse_matrix
from quipu.ports.topology import AdjacencyMatrix, Floats

Full = npt.NDArray[np.float64]


def sparse(full: Full, *, has_weights: bool = True) -> SparseMatrix:
    rows, columns = np.nonzero(full)
    order = np.random.default_rng(0).permutation(len(rows))
    weights = full[rows, columns][order] if has_weights else None
    return sparse_matrix(rows[order], columns[order], weights, (full.shape[0], full.shape[1]))


@st.composite
def full_matrices(draw: st.DrawFn, n: int = 6) -> Full:
    cells = st.lists(st.sampled_from([0.0, 0.0, 1.0, 2.5]), min_size=n * n, max_size=n * n)
    return np.array(draw(cells)).reshape(n, n)


def check(links: AdjacencyMatrix, full: Full) -> None:
    numbers = np.array([3, 0, 3, 5])
    found = links.neighbours(numbers)
    listed = [
        (i, j, full[number, j]) for i, number in enumerate(numbers.tolist()) for j in np.flatnonzero(full[number])
    ]
    assert list(zip(found.positions.tolist(), found.columns.tolist(), found.weights.tolist(), strict=True)) == listed
    weights: Floats = np.arange(1.0, full.shape[1] + 1)
    assert np.allclose(links.multiply(weights), full @ weights)
    assert np.allclose(links.row_sums(), full.sum(axis=1))
    assert links.n_entries == np.count_nonzero(full)
    assert links.shape == full.shape


@given(full=full_matrices())
def test_a_matrix_is_read_as_the_full_one(full: Full) -> None:
    check(sparse(full), full)
    check(sparse(full).unweighted(), np.sign(full))
    check(sparse(np.sign(full), has_weights=False), np.sign(full))


@given(before=full_matrices(), after=full_matrices(), rows=st.sets(st.integers(0, 5)))
def test_a_patched_matrix_is_read_as_the_rebuilt_one(before: Full, after: Full, rows: set[int]) -> None:
    replaced = np.array(sorted(rows), dtype=np.int64)
    rebuilt = before.copy()
    rebuilt[replaced] = after[replaced]
    patch = sparse(after[replaced])
    check(PatchedMatrix(matrix=sparse(before), rows=replaced, patch=patch, shape=(6, 6)), rebuilt)
    check(PatchedMatrix(matrix=sparse(before), rows=replaced, patch=patch, shape=(6, 6)).unweighted(), np.sign(rebuilt))


def test_a_patch_may_reach_beyond_the_matrix() -> None:
    full = np.zeros((6, 6))
    full[0, 5], full[5, 0] = 2.0, 2.0
    matrix = sparse(full[:1, :])
    patched = PatchedMatrix(matrix=matrix, rows=np.array([5]), patch=sparse(full[5:]), shape=(6, 6))
    check(patched, full)


def test_weights_a_caller_was_given_are_its_own() -> None:
    matrix = sparse(np.array([[1.0, 2.0]]))
    matrix.row_sums()[0] = 9.0
    assert matrix.row_sums().tolist() == [3.0]


def test_a_matrix_of_ones_is_made_once_so_that_its_layout_is() -> None:
    matrix = sparse(np.array([[1.0, 2.0]]))
    patched = PatchedMatrix(matrix=matrix, rows=np.array([0]), patch=matrix, shape=(1, 2))
    assert matrix.unweighted() is patched.unweighted().matrix is matrix.unweighted().unweighted()
