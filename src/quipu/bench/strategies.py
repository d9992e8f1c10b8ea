"""Strategies: the same questions asked of several strategies, their figures, and which strategy to choose."""

import json
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean, median

from pydantic import TypeAdapter, ValidationError

import quipu
from quipu.bench.datasets import GoldQuestion
from quipu.bench.judge import JUDGED, Judge, Judgement, estimate_judgements
from quipu.bench.metrics import (
    Best,
    Mean,
    RefusalCurve,
    all_at,
    answer_figures,
    best_of,
    covers_answer,
    mean_percent,
    ndcg_at,
    recall_at,
    reciprocal_rank,
    refusal_curve,
)
from quipu.errors import InvalidInput, OverBudget, QuipuError
from quipu.model.answer import Answer
from quipu.model.event import EventSink, Progress, ignore_event
from quipu.model.ids import digest
from quipu.providers.local import ByteTokenizer
from quipu.retrieve import STRATEGIES
from quipu.wiring.inventory import NamedModel

RANKING = ("R@2", "R@5", "R@10", "R@20", "All@8", "MRR", "nDCG@10")
ANSWERS = ("shown", "exact", "F1", "in context", "answered", "refused", "citations hold")
SHARES = (*RANKING, *ANSWERS, *JUDGED)
COSTS = ("tokens", "characters", "calls", "money", "CPU ms", "ms")
OUTPUT_TOKENS = 300  # of a written answer, assumed for the estimate
N_SAMPLED = 5  # questions whose prompts are counted for an estimate
_MEANS = ("calls", "money")  # the other costs are medians
_TOKENIZER = ByteTokenizer()


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """The figures of one question asked with one strategy; those that do not apply to it are absent.

    Shares are between 0 and 1; `money` is in millionths of the currency unit. `error` says why there are none.
    """

    question: str
    strategy: str
    figures: Mapping[str, float]
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StrategyScore:
    """The figures of a strategy: shares in percent with intervals, what a question costs, what would be refused."""

    strategy: str
    shares: Mapping[str, Mean]
    costs: Mapping[str, float]
    refusals: RefusalCurve | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StrategyComparison:
    """The scores of all strategies over the questions that every one of them has answered.

    `best` is the choice by the share `metric`, None if no question has it. `failed` are (strategy, error) pairs of
    strategies that were left out. `n_asked` of `n_questions` were asked: less where the budget ended (`stopped` says
    so).
    """

    metric: str
    scores: tuple[StrategyScore, ...]
    best: Best | None
    n_questions: int
    n_asked: int
    failed: tuple[tuple[str, str], ...] = ()
    stopped: str = ""

    @property
    def as_good(self) -> tuple[str, ...]:
        """The strategies whose distance from the best may be chance: zero is in its 95 % interval."""
        return tuple(name for name, lead in self.best.lead.items() if lead.low <= 0) if self.best else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchEstimate:
    """What a measurement would ask of language models; `cost` is None if the price of one is unknown.

    `judge` is the model of `n_judgements` calls, to write questions and to judge, "" for none; `input_tokens` and
    `output_tokens` are of all calls.
    """

    n_questions: int
    strategies: tuple[str, ...]
    model: str
    n_answers: int
    input_tokens: int
    output_tokens: int
    cost: int | None
    judge: str = ""
    n_judgements: int = 0


def ranking_strategies() -> list[str]:
    """Return the names of the strategies that rank passages."""
    return [strategy.name for strategy in STRATEGIES.values() if strategy.ranks_passages]


class ReplyFile:
    """A file of replies, one a line, so that a run that was stopped continues where it ended.

    The first line has a digest of what is measured: the index, its revision, the questions and the settings.
    """

    def __init__(self, path: Path, key: str) -> None:
        self._path = path
        self._key = key

    def read(self) -> list[Reply]:
        """Return the replies in the file; start the file if there is none.

        A last line that was cut off is removed. Raises InvalidInput for a file of another measurement.
        """
        if not self._path.exists():
            self._path.write_text(f"{json.dumps({'quipu_bench': self._key})}\n", "utf-8")
            return []
        lines = self._path.read_text("utf-8").splitlines(keepends=True)
        if not lines or not lines[0].startswith('{"quipu_bench"') or self._key not in lines[0]:
            raise InvalidInput(
                f"{self._path} holds replies of other questions, settings or another state of the index.",
                remedy="Name another file, or delete this one.",
            )
        if not lines[-1].endswith("\n"):
            self._path.write_text("".join(lines[:-1]), "utf-8")
            del lines[-1]
        return [self._reply(line, number) for number, line in enumerate(lines[1:], 2)]

    def append(self, reply: Reply) -> None:
        """Add a reply."""
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(reply), ensure_ascii=False) + "\n")

    def _reply(self, line: str, number: int) -> Reply:
        try:
            return TypeAdapter(Reply).validate_json(line)
        except ValidationError as error:
            raise InvalidInput(f"{self._path}, line {number}: {error.errors()[0]['msg']}.") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is measured: questions, strategies, and the share by which the best is chosen.

    Without `with_answers` only contexts are made: no model writes. `judgements` are what a judge says of answers. If
    the questions `are_drafts`, made of words, the judge's model is still to write better ones about their passages.
    """

    questions: tuple[GoldQuestion, ...]
    strategies: tuple[str, ...]
    metric: str
    with_answers: bool
    judgements: tuple[Judgement, ...] = ()
    are_drafts: bool = False


async def estimate_prompt_tokens(kb: quipu.Quipu, plan: Plan) -> int:
    """Return the likely tokens of the prompts of all answers, from the prompts of a few questions. Asks no model.

    `kb` has no model. A strategy that fails counts nothing.
    """
    sample = plan.questions[:N_SAMPLED]
    n_tokens = 0
    for question in sample:
        for strategy in plan.strategies:
            try:
                answer = await kb.query(question.text, strategy=strategy, with_answer=False)
            except QuipuError:
                continue
            n_tokens += _TOKENIZER.count(answer.prompt)
    return round(n_tokens / max(len(sample), 1) * len(plan.questions))


async def estimate_run(plan: Plan, model_by_work: Mapping[str, NamedModel], kb: quipu.Quipu) -> BenchEstimate:
    """Return what a run would ask of the models for `answer` and `judge`. `kb` has no model, so nothing is asked."""
    needs_judge = plan.judgements or plan.are_drafts
    model, judge = model_by_work.get("answer"), model_by_work["judge"] if needs_judge else None
    n_asked, n_prompts = len(plan.questions), len(plan.questions) * len(plan.strategies)
    n_answers = n_prompts if plan.with_answers and model else 0
    n_context = await estimate_prompt_tokens(kb, plan)
    n_input, n_output = (n_context, n_answers * OUTPUT_TOKENS) if n_answers else (0, 0)
    n_judgements, n_shown, n_judged = estimate_judgements(
        plan.judgements, n_prompts, n_prompts - n_asked, n_context, n_asked if plan.are_drafts else 0
    )
    parts = [(model, n_input, n_output), (judge, n_shown, n_judged)]
    costs = [
        n_sent * named.price.input + n_received * named.price.output
        for named, n_sent, n_received in parts
        if named and named.price
    ]
    return BenchEstimate(
        n_questions=n_asked,
        strategies=plan.strategies,
        model=model.name if model else "",
        n_answers=n_answers,
        input_tokens=n_input + n_shown,
        output_tokens=n_output + n_judged,
        cost=round(sum(costs)) if len(costs) == sum(named is not None for named, *_ in parts) else None,
        judge=judge.name if judge else "",
        n_judgements=n_judgements,
    )


async def measurement_key(kb: quipu.Quipu, plan: Plan, *settings: str) -> str:
    """Return the digest of a measurement: the same only for the same state of the index, questions and settings."""
    status = await kb.status()
    parts = (f"{q.id}\n{q.text}\n{q.answers}\n{[sorted(group) for group in q.gold]}" for q in plan.questions)
    place = (status.path, str(status.revision), str(plan.with_answers))
    judged = (plan.strategies[0], *plan.judgements) if plan.judgements else ()
    return digest(*place, *judged, *settings, *parts)


async def compare(
    kb: quipu.Quipu, plan: Plan, replies: ReplyFile | None = None, on_event: EventSink = ignore_event
) -> StrategyComparison:
    """Ask every question with every strategy; return the scores and the best strategy.

    Replies in the file are not asked for again, and new ones are added to it. A strategy that fails is left out from
    then on. Where a budget ends, the questions asked so far are scored.
    """
    earlier = replies.read() if replies else []
    reply_by_place = {(reply.question, reply.strategy): reply for reply in earlier if not reply.error}
    questioner = _Questioner(kb, plan)
    failed: dict[str, str] = {}
    stopped = ""
    answered_ids: list[str] = []
    for n_done, question in enumerate(plan.questions):
        on_event(Progress(stage="ask", n_done=n_done, n_total=len(plan.questions), detail=question.text))
        try:
            waiting = [
                name for name in plan.strategies if name not in failed and (question.id, name) not in reply_by_place
            ]
            async for reply in questioner.ask(question, waiting):
                reply_by_place[reply.question, reply.strategy] = reply
                if reply.error:
                    failed[reply.strategy] = reply.error
                elif replies:
                    replies.append(reply)
        except OverBudget as error:
            stopped = str(error)
            break
        answered_ids.append(question.id)
    left = [name for name in plan.strategies if name not in failed]
    rows = {name: [reply_by_place[id_, name].figures for id_ in answered_ids] for name in left}
    return StrategyComparison(
        metric=plan.metric,
        scores=tuple(_score(name, figures) for name, figures in rows.items()),
        best=_best(rows, plan.metric),
        n_questions=len(plan.questions),
        n_asked=len(answered_ids),
        failed=tuple(failed.items()),
        stopped=stopped,
    )


class _Questioner:
    """Asks questions, and remembers which document a chunk is of."""

    def __init__(self, kb: quipu.Quipu, plan: Plan) -> None:
        self._kb = kb
        self._plan = plan
        self._judge = Judge(kb=kb, kinds=plan.judgements)
        self._first: tuple[str, Answer] | None = None  # the last question, and the answer of the first strategy
        self._document_by_chunk: dict[str, str] = {}

    async def ask(self, question: GoldQuestion, strategies: Iterable[str]) -> AsyncIterator[Reply]:
        """Yield the reply of each strategy. Raises OverBudget; any other failure is in the reply."""
        for strategy in strategies:
            try:
                figures = await self._figures(question, strategy)
            except OverBudget:
                raise
            except QuipuError as error:
                yield Reply(question=question.id, strategy=strategy, figures={}, error=str(error))
            else:
                yield Reply(question=question.id, strategy=strategy, figures=figures)

    async def _figures(self, question: GoldQuestion, strategy: str) -> dict[str, float]:
        start, cpu_start = time.perf_counter(), time.process_time()
        answer = await self._answer(question, strategy)
        ms, cpu_ms = (time.perf_counter() - start) * 1000, (time.process_time() - cpu_start) * 1000
        if strategy == self._plan.strategies[0]:
            self._first = question.id, answer
        figures = await self._ranking_figures(question, answer)
        if question.answers and question.is_answerable:
            figures["in context"] = covers_answer(answer.context, question.answers)
        if self._plan.with_answers:
            figures |= answer_figures(question, answer)
            figures |= await self._judged(question, strategy, answer)
            if answer.citations and answer.is_supported:
                figures["citations hold"] = await _citations_that_hold(self._kb, answer)
        return figures | {
            "tokens": _TOKENIZER.count(answer.context),
            "calls": answer.trace.n_calls,
            "money": sum(row.cost for row in answer.usage),
            "CPU ms": cpu_ms,
            "ms": ms,
        }

    async def _answer(self, question: GoldQuestion, strategy: str) -> Answer:
        return await self._kb.query(
            question.text, strategy=strategy, with_answer=self._plan.with_answers, may_fall_back=False
        )

    async def _judged(self, question: GoldQuestion, strategy: str, answer: Answer) -> dict[str, float]:
        """Return what the judge says of an answer; pairs compare it with the answer of the first strategy."""
        if not self._plan.judgements or not question.is_answerable:
            return {}
        first, rival = self._plan.strategies[0], None
        if Judgement.PAIRS in self._plan.judgements and strategy != first:
            if self._first is None or self._first[0] != question.id:  # its figures are from an earlier run
                self._first = question.id, await self._answer(question, first)
            rival = self._first[1]
        return await self._judge.figures(question, answer, rival)

    async def _ranking_figures(self, question: GoldQuestion, answer: Answer) -> dict[str, float]:
        """Return the figures of the ranking: of chunks if the gold are ids of these, else of their documents."""
        if not question.gold or not answer.trace.evidence.ranks_passages:
            return {}
        hits = [hit.id for hit in answer.trace.evidence.chunks]
        every_gold = frozenset().union(*question.gold)
        ranking = hits if not every_gold.isdisjoint(hits) else await self._documents(hits)
        return {
            **{f"R@{k}": recall_at(k, ranking, question.gold) for k in (2, 5, 10, 20)},
            "All@8": all_at(8, ranking, question.gold),
            "MRR": reciprocal_rank(ranking, question.gold),
            "nDCG@10": ndcg_at(10, ranking, question.gold),
        }

    async def _documents(self, chunk_ids: Sequence[str]) -> list[str]:
        """Return the documents of chunks, in their order, each once."""
        for id_ in chunk_ids:
            if id_ not in self._document_by_chunk:
                self._document_by_chunk[id_] = (await self._kb.chunk(id_)).chunk.document_id
        return list(dict.fromkeys(self._document_by_chunk[id_] for id_ in chunk_ids))


async def _citations_that_hold(kb: quipu.Quipu, answer: Answer) -> float:
    """Return the share of statements that their passages support, or, of a quoted answer, of quotes that are exact."""
    if answer.statements:
        return fmean(statement.is_supported for statement in answer.statements)
    exact = []
    for citation in answer.citations:
        chunk = (await kb.chunk(citation.chunk_id)).chunk
        source = chunk.text[citation.start - chunk.start : citation.end - chunk.start]
        exact.append(" ".join(source.split()) == " ".join(citation.quote.split()))
    return fmean(exact)


def _score(strategy: str, figures: Sequence[Mapping[str, float]]) -> StrategyScore:
    return StrategyScore(
        strategy=strategy,
        shares={name: mean_percent(values) for name in SHARES if (values := _values(figures, name))},
        costs={
            name: round((fmean if name in _MEANS else median)(values), 1)
            for name in COSTS
            if (values := _values(figures, name))
        },
        refusals=refusal_curve(figures),
    )


def _values(figures: Iterable[Mapping[str, float]], name: str) -> list[float]:
    return [float(by_name[name]) for by_name in figures if name in by_name]


def _best(rows: Mapping[str, Sequence[Mapping[str, float]]], metric: str) -> Best | None:
    """Return the best strategy; one without the figure on any question that another has is left out."""
    values = dict(_comparable(rows, metric))
    return best_of(values) if values else None


def _comparable(rows: Mapping[str, Sequence[Mapping[str, float]]], metric: str) -> Iterator[tuple[str, list[float]]]:
    values_by_name = {name: _values(figures, metric) for name, figures in rows.items()}
    n = max(map(len, values_by_name.values()), default=0)
    for name, values in values_by_name.items():
        if n and len(values) == n:
            yield name, values
