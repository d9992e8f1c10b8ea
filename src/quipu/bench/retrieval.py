"""Retrieval: every strategy that ranks passages, on one data set, through the public engine."""

import asyncio
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import quipu
from quipu.bench.datasets import Dataset, GoldQuestion
from quipu.bench.metrics import Mean, all_at, covers_answer, mean_percent, recall_at
from quipu.model.answer import Answer
from quipu.retrieve import STRATEGIES

RECALLS_AT = (2, 5, 10)
ALL_AT = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One question asked with one strategy: the documents of its chunks, best first, its answer, and the time."""

    question: GoldQuestion
    ranking: tuple[str, ...]
    answer: Answer
    ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """How one strategy did. Shares in percent over the questions with gold, except `unanswerable_answered`.

    `answered` is the share that got an answer, `covered` the share whose answer string stands in it;
    `unanswerable_answered` the share of the questions without gold that got an answer (less is better); `ms` the median
    time of a query.
    """

    dataset: str
    strategy: str
    recall: Mapping[int, Mean]
    all_found: Mean
    answered: Mean
    covered: Mean
    unanswerable_answered: Mean
    ms: float


def ranking_strategies() -> list[str]:
    """Return the names of the strategies that rank passages."""
    return [strategy.name for strategy in STRATEGIES.values() if strategy.ranks_passages]


async def measure(dataset: Dataset, index: Path, strategies: Sequence[str]) -> list[Score]:
    """Return the score of each strategy on `dataset`, indexed at `index` first where it is not yet."""
    async with quipu.open(index) as kb:
        await kb.add(*_sources(dataset))
        document_by_chunk = await _document_by_chunk(kb)
        return [
            score(dataset.name, name, [await _ask(kb, q, name, document_by_chunk) for q in dataset.questions])
            for name in strategies
        ]


def score(dataset: str, strategy: str, outcomes: Sequence[Outcome]) -> Score:
    """Return the score of a strategy from the outcome of every question."""
    with_gold = [outcome for outcome in outcomes if outcome.question.gold]
    without = [outcome for outcome in outcomes if not outcome.question.gold]
    return Score(
        dataset=dataset,
        strategy=strategy,
        recall={k: mean_percent([recall_at(k, o.ranking, o.question.gold) for o in with_gold]) for k in RECALLS_AT},
        all_found=mean_percent([all_at(ALL_AT, o.ranking, o.question.gold) for o in with_gold]),
        answered=mean_percent([o.answer.is_supported for o in with_gold]),
        covered=mean_percent([_is_covered(o) for o in with_gold]),
        unanswerable_answered=mean_percent([o.answer.is_supported for o in without]),
        ms=median(outcome.ms for outcome in outcomes) if outcomes else 0.0,
    )


def table(scores: Iterable[Score]) -> str:
    """Return the scores as a Markdown table: means in percent with their 95 % intervals, and milliseconds."""
    recalls = [f"R@{k}" for k in RECALLS_AT]
    head = ["set", "strategy", *recalls, f"All@{ALL_AT}", "answered", "covered", "unanswerable answered", "ms"]
    rows = [head, ["---"] * len(head)]
    for s in scores:
        means = (*s.recall.values(), s.all_found, s.answered, s.covered, s.unanswerable_answered)
        rows.append([s.dataset, s.strategy, *map(str, means), f"{s.ms:.0f}"])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _is_covered(outcome: Outcome) -> bool:
    """A refusal covers nothing, whatever words it is made of."""
    return outcome.answer.is_supported and covers_answer(outcome.answer.text, outcome.question.answers)


def _sources(dataset: Dataset) -> list[quipu.SourceDocument]:
    return [
        quipu.SourceDocument(id=passage.id, data=passage.text.encode(), title=passage.title)
        for passage in dataset.passages
    ]


async def _document_by_chunk(kb: quipu.Quipu) -> dict[str, str]:
    reports = await asyncio.gather(*(kb.document(document.id) for document in await kb.documents()))
    return {chunk.id: report.document.id for report in reports for chunk in report.chunks}


async def _ask(kb: quipu.Quipu, question: GoldQuestion, strategy: str, document_by_chunk: Mapping[str, str]) -> Outcome:
    begun = time.perf_counter()
    answer = await kb.query(question.text, strategy=strategy)
    ms = (time.perf_counter() - begun) * 1000
    ranking = dict.fromkeys(document_by_chunk[hit.id] for hit in answer.trace.evidence.chunks)
    return Outcome(question=question, ranking=tuple(ranking), answer=answer, ms=ms)
