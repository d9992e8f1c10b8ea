"""Similarity and ranking: near vectors by sign sketches, cosines exact to the bit, and lists of ids by score."""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

T = TypeVar("T")


_ROWS_PER_BLOCK = 128  # of exact scores: a block and its widened forms stay in the cache
_SKETCHES_PER_BLOCK = 16_000  # of sketch distances: malloc maps new pages for every array over 131,072 bytes
_WEIGHT_STEP = 0.7  # one unit of weight, relative to the root mean square of a unit vector's components
_GRID = 2.0**26  # queries are rounded to multiples of 1 / _GRID
_DECIMALS = 6
_ROWS_PER_PRODUCT = 2_048  # of a matrix product: with a thousand queries 8 MB of scores
_ROUNDING = 1e-3  # above the rounding error of a float32 dot product of unit vectors


def widen(vectors: npt.NDArray[np.float16], buffer: npt.NDArray[np.int32] | None = None) -> npt.NDArray[np.float32]:
    """Return finite float16 numbers as float32, exactly, and several times faster than `astype`; in `buffer` if given.

    Integer shifts move sign, exponent and fraction to their float32 positions. The product with 2^112 corrects the
    bias of the exponent and makes subnormal numbers normal.
    """
    bits = np.empty(vectors.shape, dtype=np.int32) if buffer is None else buffer
    np.left_shift(vectors.view(np.int16), 13, out=bits, dtype=np.int32)
    np.bitwise_and(bits, np.int32(-0x70000001), out=bits)  # clears the copies of the sign bit
    widened = bits.view(np.float32)
    widened *= np.float32(2.0**112)
    return widened


def unit_vectors(vectors: npt.NDArray[np.floating]) -> npt.NDArray[np.float64]:
    """Return the rows of `vectors` [n, d] scaled to length one, in float64; zero rows stay zero."""
    wide = vectors.astype(np.float64, copy=False)
    norms = np.sqrt((wide * wide).sum(axis=1, keepdims=True))
    units: npt.NDArray[np.float64] = wide / np.where(norms > 0, norms, 1)
    return units


def pack_signs(vectors: npt.NDArray[np.float16]) -> npt.NDArray[np.uint64]:
    """Return the sign sketches of `vectors` [n, d]: one bit for each dimension, set where positive.

    The shape is [ceil(d / 64), n], so that a scan reads contiguous memory for any dimension.
    Source: M. Charikar, Similarity estimation techniques from rounding algorithms (STOC 2002), section 3.
    """
    return _pack(vectors.view(np.int16) > 0)  # the sign of a float16 is the sign of its bits


def _pack(bits: npt.NDArray[np.bool_]) -> npt.NDArray[np.uint64]:
    n, dimension = bits.shape
    packed = np.zeros((n, -(-dimension // 64) * 8), dtype=np.uint8)
    packed[:, : -(-dimension // 8)] = np.packbits(bits, axis=1)
    return np.ascontiguousarray(packed.view(np.uint64).T)


@dataclass(frozen=True, slots=True, kw_only=True)
class QuerySketch:
    """A query's `signs` [words], and a weight of 0 to 3 for each dimension as two bit planes, `ones` and `twos`."""

    signs: npt.NDArray[np.uint64]
    ones: npt.NDArray[np.uint64]
    twos: npt.NDArray[np.uint64]


def sketch_query(query: npt.NDArray[np.float32]) -> QuerySketch:
    """Return the sketch of a unit vector [d]; the weights are its components' rounded sizes.

    Weights improve recall as much as four times more candidates would: in a plain Hamming distance, a dimension in
    which the query is almost zero counts as much as any other. Source: J. Gao, C. Long, RaBitQ (SIGMOD 2024), section
    3.3, which quantises only the query to several bits. Here weights are integers, and the correction for each row is
    left out, which costs 0.1 % of recall.
    """
    weights = np.minimum(np.rint(np.abs(query) * (np.sqrt(len(query)) / _WEIGHT_STEP)), 3).astype(np.uint8)
    return QuerySketch(
        signs=_pack(query[None] > 0)[:, 0],
        ones=_pack((weights & 1)[None] > 0)[:, 0],
        twos=_pack((weights & 2)[None] > 0)[:, 0],
    )


def distances(sketches: npt.NDArray[np.uint64], query: QuerySketch) -> npt.NDArray[np.uint16]:
    """Return, for each column of `sketches` [words, n], the summed weight of the dimensions whose sign differs."""
    n = sketches.shape[1]
    sums = np.zeros(n, dtype=np.uint16)
    for start in range(0, n, _SKETCHES_PER_BLOCK):
        total = sums[start : start + _SKETCHES_PER_BLOCK]
        for row, sign, ones, twos in zip(sketches, query.signs, query.ones, query.twos, strict=True):
            differing = row[start : start + _SKETCHES_PER_BLOCK] ^ sign
            total += np.bitwise_count(differing & ones)
            total += np.bitwise_count(differing & twos) << np.uint8(1)
    return sums


def smallest_with_ties(distances: npt.NDArray[np.uint16], k: int) -> npt.NDArray[np.int64]:
    """Return the positions, ascending, of the `k` smallest distances and of all ties with the largest of them.

    No tie is cut, so the result does not depend on the order of rows.
    """
    if k >= len(distances):
        return np.arange(len(distances))
    cut = int(np.searchsorted(np.cumsum(np.bincount(distances)), k))
    return np.flatnonzero(distances <= cut)


def largest_with_ties(scores: npt.NDArray[np.float64], k: int) -> npt.NDArray[np.int64]:
    """Return the positions, ascending, of the `k` largest scores and of all ties with the smallest of them."""
    if k >= len(scores):
        return np.arange(len(scores))
    return np.flatnonzero(scores >= np.partition(scores, len(scores) - k)[len(scores) - k])


def exact_scores(
    vectors: npt.NDArray[np.float16],
    query: npt.NDArray[np.float32],
    positions: npt.NDArray[np.int64] | None = None,
) -> npt.NDArray[np.float64]:
    """Return the dot products of `query` [d] with `vectors` [n, d], or with those at `positions`, to six decimals.

    For unit vectors no addition rounds. float16 numbers are multiples of 2^-24, and the query is rounded to multiples
    of 2^-26, which moves a score by less than 2e-7. So every partial sum is a multiple of 2^-50 below 8 and fits into a
    float64. A score depends only on its row and the query, not on the block, the library or the processor.
    """
    n, dimension = len(vectors) if positions is None else len(positions), len(query)
    gridded = np.rint(query.astype(np.float64) * _GRID) / _GRID
    scores = np.empty(n, dtype=np.float64)
    buffer = np.empty((min(n, _ROWS_PER_BLOCK), dimension), dtype=np.int32)
    numbers = np.empty(buffer.shape, dtype=np.float64)
    for start in range(0, n, _ROWS_PER_BLOCK):
        rows = slice(start, start + _ROWS_PER_BLOCK)
        block = vectors[rows if positions is None else positions[rows]]
        numbers[: len(block)] = widen(block, buffer[: len(block)])
        np.dot(numbers[: len(block)], gridded, out=scores[rows])
    return np.round(scores, _DECIMALS) + 0.0  # no negative zero


def near_pairs(
    vectors: npt.NDArray[np.float16], queries: npt.NDArray[np.float16], min_score: float
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the row numbers in `vectors` [n, d] and `queries` [q, d] of all pairs that may score `min_score` or more.

    For unit vectors the result has no pair that scores less than `min_score` - 0.002. Use `exact_scores` to decide
    about the rest.
    """
    columns = widen(np.ascontiguousarray(queries)).T.copy()
    pairs = [np.empty((2, 0), dtype=np.int64)]
    for start in range(0, len(vectors), _ROWS_PER_PRODUCT):
        block = widen(np.ascontiguousarray(vectors[start : start + _ROWS_PER_PRODUCT]))
        vector_rows, query_rows = np.nonzero(block @ columns >= min_score - _ROUNDING)
        pairs.append(np.stack([vector_rows + start, query_rows]))
    vector_rows, query_rows = np.concatenate(pairs, axis=1)
    return vector_rows, query_rows


def n_fitting(costs: Iterable[int], budget: int) -> int:
    """Return how many elements of a ranking fit into `budget`, counted from the first without a gap.

    The result is a prefix, not a knapsack: a smaller element never overtakes one that ranks above it.
    """
    count = total = 0
    for cost in costs:
        total += cost
        if total > budget:
            break
        count += 1
    return count


def round_robin(
    rankings: Sequence[Sequence[T]], identity: Callable[[T], Hashable], weights: Sequence[float] = ()
) -> list[T]:
    """Merge rankings in turns: the first of each ranking, then the second of each, and so on.

    Two elements are equal where `identity` returns the same for both; the first of equal ones stays. Only ranks count,
    so scores of different kinds are never compared. Source: LightRAG's fusion of its local, global and vector results.

    With `weights`, one for each ranking and none below 0, the element at rank r (from 1) of a ranking with weight w is
    placed at r / w; equal places follow the order of the rankings. A ranking of weight 2 gives twice as many elements
    as one of weight 1, and one of weight 0 gives none. A higher weight never moves an element of its ranking down.
    Equal weights give plain turns.
    """
    turns = [
        (round(rank / weight, 9), order, element)
        for order, (ranking, weight) in enumerate(zip(rankings, weights or [1.0] * len(rankings), strict=True))
        if weight > 0
        for rank, element in enumerate(ranking, 1)
    ]
    merged: dict[Hashable, T] = {}
    for _, _, element in sorted(turns, key=lambda turn: turn[:2]):
        merged.setdefault(identity(element), element)
    return list(merged.values())


def min_max_scaled(scores: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return scores scaled so that the lowest is 0 and the highest is 1; all are 1 where all are equal."""
    if not len(scores):
        return scores
    lowest, span = scores.min(), scores.max() - scores.min()
    return (scores - lowest) / span if span > 0 else np.ones(len(scores))


def top_k(score_by_id: Mapping[str, float], k: int) -> list[tuple[str, float]]:
    """Return the `k` best ids with their scores, best first, equal scores by id."""
    return sorted(score_by_id.items(), key=lambda pair: (-pair[1], pair[0]))[:k]
