"""Sign sketches, exact scores and cuts that keep ties."""

import numpy as np
import numpy.typing as npt
import pytest

from quipu.algo.similarity import (
    distances,
    exact_scores,
    largest_with_ties,
    min_max_scaled,
    near_pairs,
    pack_signs,
    sketch_query,
    smallest_with_ties,
    top_k,
    widen,
)


def units(n: int, dimension: int, seed: int = 0) -> npt.NDArray[np.float32]:
    vectors = np.random.default_rng(seed).standard_normal((n, dimension))
    unit: npt.NDArray[np.float64] = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return unit.astype(np.float32)


def test_widening_is_exact_for_every_finite_number() -> None:
    numbers = np.arange(65_536, dtype=np.uint16).view(np.float16)
    finite = numbers[np.isfinite(numbers)]
    assert np.array_equal(widen(finite).view(np.uint32), finite.astype(np.float32).view(np.uint32))


@pytest.mark.parametrize("dimension", [1, 7, 64, 70, 256, 384])
def test_signs_are_packed_one_bit_a_dimension(dimension: int) -> None:
    vectors = units(9, dimension).astype(np.float16)
    sketches = pack_signs(vectors)
    assert sketches.shape == (-(-dimension // 64), 9)
    bits = np.unpackbits(np.ascontiguousarray(sketches.T).view(np.uint8), axis=1)
    assert np.array_equal(bits[:, :dimension], vectors > 0)
    assert not bits[:, dimension:].any()


def test_zero_and_negative_zero_are_not_positive() -> None:
    assert pack_signs(np.array([[0.0, -0.0, 6e-8, -6e-8]], dtype=np.float16)).view(np.uint8)[0, 0] == 0b00100000


@pytest.mark.parametrize("dimension", [5, 64, 100, 384])
def test_a_distance_is_the_weight_of_the_dimensions_whose_sign_differs(dimension: int) -> None:
    vectors, query = units(40_000 // dimension, dimension).astype(np.float16), units(1, dimension, seed=1)[0]
    weights = np.minimum(np.rint(np.abs(query) * np.sqrt(dimension) / 0.7), 3)
    expected = ((vectors > 0) != (query > 0)) @ weights
    assert np.array_equal(distances(pack_signs(vectors), sketch_query(query)), expected)


def test_distances_do_not_depend_on_blocks() -> None:
    vectors, query = units(33_000, 64).astype(np.float16), sketch_query(units(1, 64, seed=1)[0])
    whole = distances(pack_signs(vectors), query)
    parts = [distances(pack_signs(vectors[start : start + 777]), query) for start in range(0, len(vectors), 777)]
    assert np.array_equal(whole, np.concatenate(parts))


def test_all_distances_equal_to_the_last_are_kept() -> None:
    found = smallest_with_ties(np.array([5, 2, 9, 2, 5, 0, 5], dtype=np.uint16), 4)
    assert found.tolist() == [0, 1, 3, 4, 5, 6]


def test_all_scores_equal_to_the_last_are_kept() -> None:
    found = largest_with_ties(np.array([0.5, 0.2, 0.9, 0.2, 0.5, 0.0]), 2)
    assert found.tolist() == [0, 2, 4]


@pytest.mark.parametrize("k", [3, 4, 100])
def test_asking_for_all_gives_all(k: int) -> None:
    assert smallest_with_ties(np.array([3, 1, 2], dtype=np.uint16), k).tolist() == [0, 1, 2]
    assert largest_with_ties(np.array([3.0, 1.0, 2.0]), k).tolist() == [0, 1, 2]


def test_scores_are_cosines_to_six_decimals() -> None:
    vectors, query = units(2_000, 384).astype(np.float16), units(1, 384, seed=1)[0]
    scores = exact_scores(vectors, query)
    assert np.array_equal(scores, np.round(scores, 6))
    assert np.abs(scores - vectors.astype(np.float64) @ query.astype(np.float64)).max() < 1e-6


def test_a_score_does_not_depend_on_the_rows_around_it() -> None:
    vectors, query = units(1_500, 384).astype(np.float16), units(1, 384, seed=1)[0]
    together = exact_scores(vectors, query)
    assert [exact_scores(vector[None], query)[0] for vector in vectors] == together.tolist()
    assert np.array_equal(exact_scores(vectors[::-1], query), together[::-1])


def test_sums_of_unit_vectors_are_exact_in_any_order_of_dimensions() -> None:
    vectors, query = units(500, 384).astype(np.float16), units(1, 384, seed=1)[0]
    order = np.random.default_rng(2).permutation(384)
    gridded = np.rint(query.astype(np.float64) * 2**26) / 2**26
    products = vectors.astype(np.float64) * gridded
    forwards = [sum(row) for row in products.tolist()]
    assert [sum(row) for row in products[:, order].tolist()] == forwards
    assert np.array_equal(np.round(forwards, 6), exact_scores(vectors, query))


def test_a_score_of_zero_has_no_sign() -> None:
    score = exact_scores(np.array([[-1e-7, 0]], dtype=np.float16), np.array([1, 0], dtype=np.float32))
    assert not np.signbit(score[0])


def test_equal_scores_are_ordered_by_id() -> None:
    assert top_k({"c": 0.5, "a": 0.5, "d": 0.1, "b": 0.9}, 3) == [("b", 0.9), ("a", 0.5), ("c", 0.5)]


def test_near_pairs_hold_every_pair_that_is_near_enough_and_few_others() -> None:
    random = np.random.default_rng(0)
    data = random.standard_normal((3_000, 24)).astype(np.float32)
    vectors = (data / np.linalg.norm(data, axis=1, keepdims=True)).astype(np.float16)
    queries = vectors[::500]
    places, of = near_pairs(vectors, queries, 0.5)
    found = set(zip(places.tolist(), of.tolist(), strict=True))
    exact = vectors.astype(np.float64) @ queries.astype(np.float64).T
    assert found >= set(zip(*(each.tolist() for each in np.nonzero(exact >= 0.5)), strict=True))
    assert found <= set(zip(*(each.tolist() for each in np.nonzero(exact >= 0.498)), strict=True))
    assert len(found) > len(queries)  # each is near to itself


def test_scaled_scores_reach_from_nothing_to_one() -> None:
    assert min_max_scaled(np.array([2.0, 4.0, 3.0])).tolist() == [0.0, 1.0, 0.5]
    assert min_max_scaled(np.array([0.3, 0.3])).tolist() == [1.0, 1.0]
    assert min_max_scaled(np.array([])).tolist() == []
