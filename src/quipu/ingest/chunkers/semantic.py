"""semantic: cuts where the subject changes, judged by the vectors of the sentences before and after each place.

Places between sentences are compared as in M. Hearst, "TextTiling" (Computational Linguistics 23(1), 1997): the
sentences just before a place with the sentences just after it, here by the cosine of their summed vectors. Breaks are
the places whose similarity is below nearly all others in the document, by a percentile, as in G. Kamradt, "5 Levels of
Text Splitting" (2023), level 4. Deviations: a break leaves text on both sides; a stretch over budget is cut at its
lowest similarities; tables and headings stay together as they do in `structure`.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from quipu.ingest.chunkers.chunker import ChunkableText, Chunker, Span, blocks_of, tokens_for_size
from quipu.ingest.chunkers.structure import (
    AFTER_HEADING,
    WORD,
    add_cuts,
    add_cuts_to_budget,
    cut_by_level,
    cut_points_of,
    segment_starts,
)
from quipu.model.chunking import PERCENTILE, SEMANTIC, Chunking
from quipu.model.document import ParsedDocument
from quipu.ports.providers import Embedder

WINDOW = 3  # sentences on each side that are compared
BATCH = 1_024  # sentences embedded in one call
_DECIMALS = 6
_ROOM = 8  # a break leaves at least 1/8 of the budget on both sides
_MARGINS = (3, _ROOM)  # of cuts in a stretch over budget


def sentences(parsed: ParsedDocument) -> list[str]:
    """Return the text between each two neighbouring segment starts, in order: the sentences and lines to compare."""
    starts = [start for start, _ in segment_starts(parsed.text, blocks_of(parsed))]
    return [parsed.text[start:end].strip() for start, end in pairwise([*starts, len(parsed.text)])]


async def sentence_similarities(documents: Sequence[Sequence[str]], embedder: Embedder) -> list[list[float]]:
    """Return, for each document, the similarity of the text around the gap between each two neighbouring sentences.

    The similarity is the cosine of the summed vectors of up to `WINDOW` sentences before and after the gap, to six
    decimals. It is 1 where one side has no vector. The sentences of all documents are embedded together, `BATCH` per
    call; only one batch of vectors is in memory at a time.
    """
    padding = [""] * WINDOW  # has no vector: keeps documents apart
    stream = [*padding]
    for document in documents:
        stream += [*document, *padding] if document else []
    similarities: list[float] = []
    vectors = np.zeros((0, embedder.dimension), dtype=np.float64)
    for start in range(0, len(stream) if any(documents) else 0, BATCH):
        batch = await embedder.embed(stream[start : start + BATCH])
        vectors = np.concatenate([vectors[-(2 * WINDOW - 1) :], batch.astype(np.float64)])
        similarities += _gap_similarities(vectors)
    return list(_split_by_document(documents, similarities))


def cut(document: ChunkableText, chunking: Chunking, similarities: Sequence[float]) -> list[Span]:
    """Return a partition of the text; `similarities` holds one number for each two neighbouring `sentences`."""
    points = cut_points_of(document)
    gaps = [index for index, point in enumerate(points) if point.level != WORD][1:-1]
    drop_by_point = {index: -similarity for index, similarity in zip(gaps, similarities, strict=True)}
    candidates = [index for index in gaps if points[index].level != AFTER_HEADING]
    candidates.sort(key=lambda index: (-drop_by_point[index], points[index].rank, index))
    percentile = PERCENTILE if chunking.percentile is None else chunking.percentile
    usual = np.percentile([drop_by_point[index] for index in candidates], percentile) if candidates else 0.0
    breaks = [index for index in candidates if drop_by_point[index] > usual]
    min_tokens = -(-document.max_tokens // _ROOM)
    cuts = add_cuts([0, len(points) - 1], breaks, points, min_tokens=min_tokens, over_tokens=0)
    cuts = add_cuts_to_budget(cuts, candidates, points, document.max_tokens, margins=_MARGINS)
    cuts = cut_by_level(cuts, points, document.max_tokens)
    return list(pairwise(points[index].start for index in cuts))


def _gap_similarities(vectors: npt.NDArray[np.float64]) -> list[float]:
    """Return the similarity at each gap with `WINDOW` rows on both sides; [n, d] gives n - 2 * WINDOW + 1 numbers."""
    n = len(vectors) - 2 * WINDOW + 1
    if n < 1:
        return []
    before, after = _window_sums(vectors, 0, n), _window_sums(vectors, WINDOW, n)
    norms = np.sqrt((before * before).sum(axis=1) * (after * after).sum(axis=1))
    cosines = (before * after).sum(axis=1) / np.where(norms > 0, norms, 1)
    return [float(cosine) for cosine in np.round(np.where(norms > 0, cosines, 1), _DECIMALS)]


def _window_sums(vectors: npt.NDArray[np.float64], first: int, n: int) -> npt.NDArray[np.float64]:
    """Return the sums of `WINDOW` rows that begin at row `first` and at each of the n - 1 rows after it: [n, d]."""
    sums = vectors[first : first + n].copy()
    for offset in range(1, WINDOW):
        sums += vectors[first + offset : first + offset + n]
    return sums


def _split_by_document(documents: Sequence[Sequence[str]], similarities: Sequence[float]) -> Iterator[list[float]]:
    """Yield the part of `similarities` between the sentences of each document: the padding is between the parts."""
    start = 1
    for document in documents:
        yield list(similarities[start : start + max(0, len(document) - 1)])
        start += len(document) + WINDOW if document else 0


CHUNKER = Chunker(
    name=SEMANTIC,
    cut=cut,
    auto_tokens=tokens_for_size,
    summary="where the similarity of neighbouring sentences drops, by their vectors",
    after="TextTiling (Hearst 1997), percentile breaks (Kamradt 2023)",
    when="a text changes its subject without a heading, as a transcript does",
    reads_vectors=True,
)
