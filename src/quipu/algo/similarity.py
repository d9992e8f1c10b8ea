"""Similarity: sign sketches that find near vectors cheaply, and cosines that are exact to the bit."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

_ROWS_PER_BLOCK = 128  # exact scores: a block and its widened forms stay in the cache
_SKETCHES_PER_BLOCK = 16_000  # sketch distances: malloc maps fresh pages each time for more than 131,072 bytes
_WEIGHT_STEP = 0.7  # one unit of weight, as a share of a unit vector's root mean square component
_GRID = 2.0**26  # queries are rounded to multiples of 1 / _GRID
_DECIMALS = 6
_ROWS_PER_PRODUCT = 2_048  # of a matrix product: with a thousand queries 8 MB of scores
_ROUNDING = 1e-3  # more than float32 loses in a dot product of unit vectors


def widen(vectors: npt.NDArray[np.float16], buffer: npt.NDArray[np.int32] | None = None) -> npt.NDArray[np.float32]:
    """Return finite float16 numbers as float32, exactly, several times faster than `astype`; in `buffer` if given.

    Sign, exponent and fraction move to their float32 places as integers; the product with 2^112 corrects the bias
    of the exponent, and makes subnormal numbers normal.
    """
    bits = np.empty(vectors.shape, dtype=np.int32) if buffer is None else buffer
    np.left_shift(vectors.view(np.int16), 13, out=bits, dtype=np.int32)
    np.bitwise_and(bits, np.int32(-0x70000001), out=bits)  # clears the copies of the sign left of the exponent
    widened = bits.view(np.float32)
    widened *= np.float32(2.0**112)
    return widened


def pack_signs(vectors: npt.NDArray[np.float16]) -> npt.NDArray[np.uint64]:
    """Return the sign sketches of `vectors` [n, d]: one bit a dimension, set where positive, as [ceil(d / 64), n].

    Word-major, so that a scan reads contiguous memory whatever the dimension.
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
    """A query's `signs` [words], and its dimensions' weights 0 to 3 as two bit planes, `ones` and `twos` [words]."""

    signs: npt.NDArray[np.uint64]
    ones: npt.NDArray[np.uint64]
    twos: npt.NDArray[np.uint64]


def sketch_query(query: npt.NDArray[np.float32]) -> QuerySketch:
    """Return the sketch of a unit vector [d], its weights the rounded sizes of its components.

    Weighting is worth four times as many candidates: with plain Hamming distance a dimension in which the query is
    almost zero counts as much as any other. Source: J. Gao, C. Long, RaBitQ (SIGMOD 2024), section 3.3, where the
    query alone is quantised to several bits; we keep integers and drop the row's correction, worth 0.1 % of recall.
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
    """Return the positions, rising, of the `k` smallest distances and of all that equal the largest of them.

    Ties are never cut, so the set found does not depend on the order of rows.
    """
    if k >= len(distances):
        return np.arange(len(distances))
    cut = int(np.searchsorted(np.cumsum(np.bincount(distances)), k))
    return np.flatnonzero(distances <= cut)


def largest_with_ties(scores: npt.NDArray[np.float64], k: int) -> npt.NDArray[np.int64]:
    """Return the positions, rising, of the `k` largest scores and of all that equal the smallest of them."""
    if k >= len(scores):
        return np.arange(len(scores))
    return np.flatnonzero(scores >= np.partition(scores, len(scores) - k)[len(scores) - k])


def exact_scores(
    vectors: npt.NDArray[np.float16],
    query: npt.NDArray[np.float32],
    positions: npt.NDArray[np.int64] | None = None,
) -> npt.NDArray[np.float64]:
    """Return the dot products of `vectors` [n, d], or of those at `positions`, with `query` [d], to six decimals.

    For unit vectors no addition rounds: float16 numbers are multiples of 2^-24 and the query is rounded to multiples
    of 2^-26 (which moves a score by less than 2e-7), so every partial sum is a multiple of 2^-50 below 8 and fits in
    float64. A score therefore depends on its row and the query alone, whatever the block, library or processor.
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
    vectors: npt.NDArray[np.float16], queries: npt.NDArray[np.float16], least: float
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return places in `vectors` [n, d] and in `queries` [q, d] of all pairs whose dot product may be at least `least`.

    Those of unit vectors that are less by more than 0.002 are none of them; which are at least that is for
    `exact_scores` to say.
    """
    wanted = widen(np.ascontiguousarray(queries)).T.copy()
    found = [np.empty((2, 0), dtype=np.int64)]
    for start in range(0, len(vectors), _ROWS_PER_PRODUCT):
        block = widen(np.ascontiguousarray(vectors[start : start + _ROWS_PER_PRODUCT]))
        places, of = np.nonzero(block @ wanted >= least - _ROUNDING)
        found.append(np.stack([places + start, of]))
    places, of = np.concatenate(found, axis=1)
    return places, of


def minmax(scores: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return scores scaled so that the least is 0 and the largest 1; 1 each where all are equal."""
    if not len(scores):
        return scores
    least, span = scores.min(), scores.max() - scores.min()
    return (scores - least) / span if span > 0 else np.ones(len(scores))


def ordered(score_by_id: Mapping[str, float], k: int) -> list[tuple[str, float]]:
    """Return the `k` best ids with their scores, best first, equal scores by id."""
    return sorted(score_by_id.items(), key=lambda item: (-item[1], item[0]))[:k]
