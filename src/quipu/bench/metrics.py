"""Metrics: recall of gold passages, answer strings in answers, and confidence intervals of means."""

import re
import unicodedata
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass

import numpy as np

from quipu.text.unicode import is_unspaced

N_RESAMPLES = 2_000
SEED = 20_260_101

_NOT_WORD = re.compile(r"[\W_]+")
_ARTICLE = re.compile(r"\b(?:a|an|the)\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mean:
    """A mean with its 95 % bootstrap interval; `n` values."""

    value: float
    low: float
    high: float
    n: int

    def __str__(self) -> str:
        return f"{self.value:.1f} [{self.low:.1f}, {self.high:.1f}]" if self.n else "–"


def recall_at(k: int, ranking: Sequence[str], gold: Sequence[Set[str]]) -> float:
    """Return the share of gold groups with a passage among the first `k` of `ranking`; `gold` is not empty."""
    top = set(ranking[:k])
    return sum(not top.isdisjoint(group) for group in gold) / len(gold)


def all_at(k: int, ranking: Sequence[str], gold: Sequence[Set[str]]) -> bool:
    """Return whether every gold group has a passage among the first `k`."""
    return recall_at(k, ranking, gold) == 1.0


def covers_answer(text: str, answers: Iterable[str]) -> bool:
    """Return whether `text` contains one of the answer strings; case, punctuation and articles are ignored. It must
    match whole words, except in scripts without spaces.
    """
    normal = f" {normalised(text)} "
    needles = (answer if is_unspaced(answer) else f" {answer} " for answer in map(normalised, answers) if answer)
    return any(answer in normal for answer in needles)


def normalised(text: str) -> str:
    """Return `text` in lower case without punctuation, articles and double spaces (as SQuAD compares answers)."""
    bare = _NOT_WORD.sub(" ", unicodedata.normalize("NFKC", text).casefold())
    return " ".join(_ARTICLE.sub(" ", bare).split())


def mean_percent(values: Sequence[float]) -> Mean:
    """Return the mean of values in [0, 1] in percent, with a 95 % interval by the percentile bootstrap (Efron 1979).

    The resampling is seeded: equal values give an equal interval.
    """
    if not values:
        return Mean(value=0.0, low=0.0, high=0.0, n=0)
    sample = 100 * np.asarray(values, dtype=np.float64)
    draws = np.random.default_rng(SEED).integers(0, len(sample), size=(N_RESAMPLES, len(sample)))
    low, high = np.percentile(sample[draws].mean(axis=1), [2.5, 97.5])
    return Mean(value=float(sample.mean()), low=float(low), high=float(high), n=len(sample))
