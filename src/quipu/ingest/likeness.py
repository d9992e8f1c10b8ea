"""Likeness: how alike the text before and after each sentence is, for the chunker that cuts where it changes."""

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from quipu.ports.providers import Embedder

WINDOW = 3  # sentences on either side that are compared
BATCH = 1_024  # sentences embedded in one call
_DECIMALS = 6


async def similarities(documents: Sequence[Sequence[str]], embedder: Embedder) -> list[list[float]]:
    """Return, for each document and each two neighbouring sentences of it, how alike the text around the gap is.

    That is the cosine of the summed vectors of up to `WINDOW` sentences before and after, to six decimals; 1 where a
    side has no vector. The sentences of all documents are embedded together, `BATCH` a call; only that many vectors are
    held.
    """
    padding = [""] * WINDOW  # no vector: keeps documents apart
    stream = [*padding]
    for sentences in documents:
        stream += [*sentences, *padding] if sentences else []
    likeness: list[float] = []
    rows = np.zeros((0, embedder.dimension), dtype=np.float64)
    for start in range(0, len(stream) if any(documents) else 0, BATCH):
        vectors = await embedder.embed(stream[start : start + BATCH])
        rows = np.concatenate([rows[-(2 * WINDOW - 1) :], vectors.astype(np.float64)])
        likeness += _between(rows)
    return list(_each(documents, likeness))


def _between(rows: npt.NDArray[np.float64]) -> list[float]:
    """Return the likeness at each place that has `WINDOW` rows on both sides; [n, d] gives n - 2 * WINDOW + 1."""
    n = len(rows) - 2 * WINDOW + 1
    if n < 1:
        return []
    before, after = _windows(rows, 0, n), _windows(rows, WINDOW, n)
    norms = np.sqrt((before * before).sum(axis=1) * (after * after).sum(axis=1))
    cosines = (before * after).sum(axis=1) / np.where(norms > 0, norms, 1)
    return [float(each) for each in np.round(np.where(norms > 0, cosines, 1), _DECIMALS)]


def _windows(rows: npt.NDArray[np.float64], first: int, n: int) -> npt.NDArray[np.float64]:
    """Return the sums of `WINDOW` rows from `first` on, and from each of the n - 1 rows after it: [n, d]."""
    sums = rows[first : first + n].copy()
    for offset in range(1, WINDOW):
        sums += rows[first + offset : first + offset + n]
    return sums


def _each(documents: Sequence[Sequence[str]], likeness: Sequence[float]) -> Iterator[list[float]]:
    """Yield the part of `likeness` between the sentences of each document: they follow the padding one by one."""
    start = 1
    for sentences in documents:
        yield list(likeness[start : start + max(0, len(sentences) - 1)])
        start += len(sentences) + WINDOW if sentences else 0
