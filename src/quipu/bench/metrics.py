"""Metrics: rankings beside gold and beside brute force, answers beside expected ones, and confidence intervals."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from math import inf, log2

import numpy as np

from quipu.bench.datasets import GoldQuestion
from quipu.model.answer import Answer
from quipu.text.unicode import is_unspaced

N_RESAMPLES = 2_000
SEED = 20_260_101

SUPPORTS = (0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3, 1.5, 1.7, 2.0)  # of a refusal curve
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


def reciprocal_rank(ranking: Sequence[str], gold: Sequence[Set[str]]) -> float:
    """Return 1 divided by the rank of the first gold passage; 0 if there is none."""
    every_gold = frozenset().union(*gold)
    return next((1 / rank for rank, passage in enumerate(ranking, 1) if passage in every_gold), 0.0)


def ndcg_at(k: int, ranking: Sequence[str], gold: Sequence[Set[str]]) -> float:
    """Return the discounted cumulative gain of the first `k`, divided by the greatest possible one.

    The first passage of each gold group gains 1, a further one nothing. Source: K. Järvelin and J. Kekäläinen,
    Cumulated Gain-Based Evaluation of IR Techniques (2002), with the logarithm of base 2 from rank 1 on.
    """
    missing = list(gold)
    gain = 0.0
    for rank, passage in enumerate(ranking[:k], 1):
        left = [group for group in missing if passage not in group]
        gain += (len(missing) - len(left)) / log2(rank + 1)
        missing = left
    return min(1.0, gain / sum(1 / log2(rank + 1) for rank in range(1, min(k, len(gold)) + 1)))


def is_exact(text: str, answers: Iterable[str]) -> bool:
    """Return whether `text` is one of the answers in normal form."""
    return normalised(text) in {normalised(answer) for answer in answers}


def token_f1(text: str, answers: Iterable[str]) -> float:
    """Return the greatest F1 of the words shared by `text` and an answer; characters in scripts without spaces.

    Source: P. Rajpurkar et al., SQuAD (2016), section 6.1.
    """
    return max((_f1(_tokens(text), _tokens(answer)) for answer in answers), default=0.0)


def _f1(first: Counter[str], second: Counter[str]) -> float:
    n_shared = (first & second).total()
    return 2 * n_shared / (first.total() + second.total()) if n_shared else 0.0


def _tokens(text: str) -> Counter[str]:
    words = normalised(text).split()
    return Counter(token for word in words for token in (word if is_unspaced(word) else (word,)))


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


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusalPoint:
    """Shares of questions that are refused, in percent, where an answer needs at least the support `needed`."""

    needed: float
    unanswerable: float
    answerable: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusalCurve:
    """What would be refused if answers needed less or more support (`Trace.support`) than the 1 that they do need.

    `separation` is the area under the curve of unanswerable questions refused over answerable ones, in percent: how
    often an answerable question has more support than an unanswerable one, equal ones at half. 50 is chance.
    """

    points: tuple[RefusalPoint, ...]
    separation: float


def refusal_curve(figures: Sequence[Mapping[str, float]]) -> RefusalCurve | None:
    """Return the curve of questions with their figures "support" and "answered", or "refused" if unanswerable.

    An answer without support is never refused. None if no question has any, or all are of one kind.
    """
    own, other = (
        np.array([by_name.get("support", inf) for by_name in figures if name in by_name])
        for name in ("answered", "refused")
    )
    if not (len(own) and len(other) and any("support" in by_name for by_name in figures)):
        return None
    return RefusalCurve(
        points=tuple(
            RefusalPoint(
                needed=needed,
                unanswerable=100 * float((other < needed).mean()),
                answerable=100 * float((own < needed).mean()),
            )
            for needed in SUPPORTS
        ),
        separation=100 * float(((own[:, None] > other) + (own[:, None] == other) / 2).mean()),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Best:
    """The name with the greatest mean, and how sure that is.

    `share` is the share of resamples of the questions in which it is the best, in percent; equal ones divide it. `lead`
    is its mean lead over each other name in points, question by question.
    """

    name: str
    share: float
    lead: Mapping[str, Mean]


def best_of(values_by_name: Mapping[str, Sequence[float]]) -> Best:
    """Return the best of several names, each with values of the same questions; of equal ones the first.

    The resamples are paired: every name is measured on the same drawn questions.
    """
    names = list(values_by_name)
    values = np.array([values_by_name[name] for name in names], dtype=np.float64)
    best = int(values.mean(axis=1).argmax())
    n = values.shape[1]
    draws = np.random.default_rng(SEED).integers(0, n, size=(N_RESAMPLES, n))
    means = np.stack([row[draws].mean(axis=1) for row in values])
    is_first = np.isclose(means, means.max(axis=0))
    wins = (is_first[best] / is_first.sum(axis=0)).mean()
    lead = {name: mean_percent((values[best] - row).tolist()) for name, row in zip(names, values, strict=True)}
    del lead[names[best]]
    return Best(name=names[best], share=100 * float(wins), lead=lead)


def answer_figures(question: GoldQuestion, answer: Answer) -> dict[str, float]:
    """Return the figures of an answer; a refusal holds nothing."""
    support = answer.trace.support
    figures: dict[str, float] = {"characters": len(answer.text)} | ({} if support is None else {"support": support})
    if not question.is_answerable:
        return figures | {"refused": not answer.is_supported}
    figures["answered"] = answer.is_supported
    if question.answers:
        text = answer.text if answer.is_supported else ""
        figures["shown"] = covers_answer(text, question.answers)
        figures["exact"] = is_exact(text, question.answers)
        figures["F1"] = token_f1(text, question.answers)
    return figures
