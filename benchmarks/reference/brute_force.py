"""References for rankings: every vector compared, plain BM25 over every chunk, and convex fusion of the two."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log

import numpy as np
import numpy.typing as npt

from quipu.algo.similarity import min_max_scaled
from quipu.model.graph import Chunk
from quipu.ports.store import ReadView, VectorSpace
from quipu.text.words import Analyzer, split_words

K1, B = 1.2, 0.75  # the constants of FTS5
MIN_IDF = 1e-6  # as in FTS5, for a term that more than half of the rows have
_SAME = 2e-6  # scores nearer than this are a tie: the index rounds them to six decimals


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """How many rankings equal the reference: `same` counts equal ids, `tied` a different order of equal scores only."""

    dataset: str
    embedder: str
    strategy: str
    reference: str
    questions: int
    same: int
    tied: int

    @property
    def holds(self) -> bool:
        """Whether no ranking differs by more than the order of equal scores."""
        return self.same + self.tied == self.questions

    def __str__(self) -> str:
        ties = f", {self.tied} but for ties" if self.tied else ""
        wrong = "" if self.holds else f", {self.questions - self.same - self.tied} OTHERWISE"
        by = f"{self.dataset}, {self.embedder}: {self.strategy}"
        return f"{by} = {self.reference} to the id on {self.same} of {self.questions} questions{ties}{wrong}"


class BruteForce:
    """Every vector of the index dotted with the question's, in float32."""

    def __init__(self, ids: Sequence[str], vectors: npt.NDArray[np.float32]) -> None:
        self._ids = ids
        self._vectors = vectors

    def scores(self, vector: npt.NDArray[np.float32], *, min_score: float) -> dict[str, float]:
        """Return the cosine of every chunk that is at least `min_score` near to the vector."""
        cosines = (self._vectors @ vector).tolist()
        return {id_: score for id_, score in zip(self._ids, cosines, strict=True) if score >= min_score - _SAME}


class Bm25:
    """BM25 over the terms of every chunk, as FTS5 computes it.

    Source: S. Robertson and H. Zaragoza, The Probabilistic Relevance Framework (2009), section 3; FTS5's documentation
    for what it takes as inverse document frequency.
    """

    def __init__(self, terms_by_id: Mapping[str, Sequence[str]]) -> None:
        self._counts = {id_: Counter(terms) for id_, terms in terms_by_id.items()}
        self._lengths = {id_: len(terms) for id_, terms in terms_by_id.items()}
        self._mean_length = sum(self._lengths.values()) / max(1, len(self._lengths))
        n_having = Counter(term for counts in self._counts.values() for term in counts)
        n = len(self._counts)
        self._idf = {term: max(MIN_IDF, log((n - having + 0.5) / (having + 0.5))) for term, having in n_having.items()}

    def scores(self, terms: Sequence[str]) -> dict[str, float]:
        """Return the score of every chunk that has one of the terms."""
        indexed = [term for term in terms if term in self._idf]
        scored = {}
        for id_, counts in self._counts.items():
            if any(term in counts for term in indexed):
                norm = K1 * (1 - B + B * self._lengths[id_] / self._mean_length)
                scored[id_] = sum(self._idf[t] * counts[t] * (K1 + 1) / (counts[t] + norm) for t in indexed)
        return scored


async def brute_force(view: ReadView) -> BruteForce:
    """Return the reference for `naive`: the vectors the index holds of its chunks."""
    block = await view.vectors(VectorSpace.CHUNK)
    owners = await view.vector_owners(VectorSpace.CHUNK, block.rows.tolist())
    pairs = [(id_, place) for place, row in enumerate(block.rows.tolist()) for id_ in owners.get(row, ())]
    return BruteForce([id_ for id_, _ in pairs], block.vectors[[place for _, place in pairs]].astype(np.float32))


def bm25(chunks: Sequence[Chunk], analyzer: Analyzer) -> Bm25:
    """Return the reference for `lexical`: the terms of each chunk's title, table header and text."""
    return Bm25(
        {
            chunk.id: [
                term
                for part in (f"{chunk.title}\n{chunk.header}", chunk.text)
                for term in analyzer.terms(split_words(part), part)
            ]
            for chunk in chunks
        }
    )


def convex_fusion(cosines: Mapping[str, float], by_words: Mapping[str, float], k: int) -> list[str]:
    """Return the k best ids by the mean of two scores, each scaled from 0 (its lowest) to 1; one that is missing is 0.

    Source: S. Bruch et al., An Analysis of Fusion Functions for Hybrid Retrieval (2023), with equal weights.
    """
    fused: Counter[str] = Counter()
    for scores in (cosines, by_words):
        scaled = min_max_scaled(np.fromiter(scores.values(), np.float64, len(scores))).tolist()
        for id_, score in zip(scores, scaled, strict=True):
            fused[id_] += score / 2
    return _best(fused, k)


def is_same(ranking: Sequence[str], scores: Mapping[str, float], k: int) -> bool:
    """Return whether a ranking is the `k` best ids of `scores` in order; equal scores are ordered by id."""
    return list(ranking) == _best(scores, k)


def is_tied(ranking: Sequence[str], scores: Mapping[str, float], k: int) -> bool:
    """Return whether a ranking agrees with `scores`, except for the order or choice of ids with equal scores."""
    best = [scores[id_] for id_ in _best(scores, k)]
    ranked = [scores.get(id_, float("-inf")) for id_ in ranking]
    is_as_good = all(abs(a - b) <= _SAME for a, b in zip(ranked, best, strict=False))
    return is_as_good and len(set(ranking)) == len(ranking) and len(ranked) == len(best)


def _best(scores: Mapping[str, float], k: int) -> list[str]:
    return sorted(scores, key=lambda id_: (-round(scores[id_], 6), id_))[:k]
