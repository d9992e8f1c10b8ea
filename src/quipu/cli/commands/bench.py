"""`quipu bench`: measure strategies on one's own documents and questions, and say which one to choose."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console

from quipu.cli.asking import options
from quipu.cli.commands.bench_speed import CACHE, SEED, speed
from quipu.cli.comparisons import render_scores
from quipu.cli.options import (
    QuipuCommand,
    QuipuGroup,
    budget_option,
    load_settings,
    no_model_option,
    split_names,
    with_engine,
)
from quipu.cli.output import amount, emit, stderr, styled, tokens
from quipu.cli.progress import progress
from quipu.errors import InvalidInput
from quipu.model.chat import Role
from quipu.text.formatting import format_count, format_times

if TYPE_CHECKING:
    from quipu.bench.datasets import GoldQuestion
    from quipu.bench.strategies import BenchEstimate, Plan, StrategyComparison
    from quipu.engine import Quipu
    from quipu.settings import Settings

BY_RETRIEVAL = ("R@5", "R@2", "R@10", "R@20", "All@8", "MRR", "nDCG@10", "in context")
BY_ANSWERS = ("shown", "F1", "exact", "in context", "refused", "R@5")


@dataclass(frozen=True, slots=True, kw_only=True)
class _BenchRequest:
    """The options of the command line."""

    questions: Path | None
    is_own: bool
    n: int
    listed: tuple[str, ...]
    metric: str
    replies: Path | None
    cache: Path
    is_dry: bool
    with_answers: bool
    judgements: tuple[str, ...] = ()


@click.group(
    "bench",
    cls=QuipuGroup,
    examples=(
        "quipu bench retrieval --own",
        "quipu bench retrieval questions.jsonl",
        "quipu bench answers questions.tsv --strategies weave,mix,lexical",
        "quipu bench answers questions.jsonl --dry-run",
        "quipu bench speed ./docs",
    ),
)
def command() -> None:
    """Measure strategies on your documents and questions, say which one to choose, and measure speed."""


_bench_options = options(
    click.argument("questions", required=False, type=click.Path(path_type=Path, exists=True)),
    click.option(
        "--own",
        "is_own",
        is_flag=True,
        help="Make the questions from the documents of the index, with the language model if one is set.",
    ),
    click.option("-n", "n", type=click.IntRange(1, 100_000), metavar="N", default=100, help="Questions to make. [100]"),
    click.option(
        "-s", "--strategies", "listed", multiple=True, metavar="NAMES", help="Separated by commas; by default all."
    ),
    click.option(
        "--replies",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE",
        help="Keep the figures of each question there; a run that was stopped continues from it.",
    ),
    click.option(
        "--cache",
        type=click.Path(path_type=Path, file_okay=False),
        default=CACHE,
        metavar="DIR",
        help="Where the index of a data set is kept.",
    ),
    click.option("--dry-run", "is_dry", is_flag=True, help="Only estimate what the language model would cost."),
    no_model_option,
    budget_option,
)


def _by_option(metrics: tuple[str, ...]) -> Callable[[Callable[..., int]], Callable[..., int]]:
    return click.option(
        "--by", "metric", type=click.Choice(metrics), default=metrics[0], help=f"Choose by this. [{metrics[0]}]"
    )


@command.command(
    "retrieval",
    cls=QuipuCommand,
    examples=(
        "quipu bench retrieval --own",
        "quipu bench retrieval questions.jsonl --by MRR",
        "quipu bench retrieval ./musique --strategies weave,naive,ppr --json",
    ),
)
@_bench_options
@_by_option(BY_RETRIEVAL)
def retrieval(*, has_no_model: bool, budget: str | None, **request: object) -> int:
    """Measure what strategies find: the passages or documents that a question needs.

    QUESTIONS is a file about the documents of the index, with JSON lines such as {"question": "Who built it?", "gold":
    ["harbour.md"], "answers": ["Ada"]}, or a table (.tsv) with the same columns. A folder with corpus.jsonl and
    queries.jsonl is a data set with an index of its own. With --own the questions are made from your documents, by the
    model of the role `judge`, or without a model from words of their sentences. R@k is the share of the needed
    documents among the first k, All@8 the share of questions with all of them among the first 8. Intervals are of 95 %.
    """
    return _measure(_request(request, with_answers=False), has_no_model=has_no_model, budget=budget)


@command.command(
    "answers",
    cls=QuipuCommand,
    examples=(
        "quipu bench answers questions.jsonl",
        'quipu bench answers questions.tsv --dry-run --strategies "weave,mix"',
        "quipu bench answers questions.jsonl --budget 2.00 --replies run.jsonl",
        "quipu bench answers questions.jsonl --judge ragas --judge pairs -s weave,mix",
    ),
)
@_bench_options
@_by_option(BY_ANSWERS)
@click.option(
    "--judge",
    "judgements",
    multiple=True,
    type=click.Choice(["ragas", "grades", "pairs"]),
    help="Let the model of the role `judge` judge the answers. May be given several times.",
)
def answers(*, has_no_model: bool, budget: str | None, **request: object) -> int:
    """Measure the answers of strategies: quoted, or written by the language model if one is set.

    QUESTIONS is as in `quipu bench retrieval`, with the expected answers. "shown" is the share of questions whose
    answer shows an expected one; "exact" and "F1" compare the whole texts, as SQuAD does. "in context" says whether
    the evidence held it, "answered" that there was an answer; "refused" is the share of unanswerable questions that
    got none. "citations hold": the share of statements that their passages support, or of quotes that are exact.

    A judge finds, with "ragas", the share of an answer's statements that the evidence supports ("faithful"), how near
    the answer is to the question ("relevant"), and how well the passages hold the expected answer ("context
    precision", "context recall"); with "grades", grades by four criteria; with "pairs", the share of comparisons in
    which a strategy beats the first one listed, in both orders ("wins"; a tie is half a win).
    """
    return _measure(_request(request, with_answers=True), has_no_model=has_no_model, budget=budget)


command.add_command(speed)


def _request(values: dict[str, object], *, with_answers: bool) -> _BenchRequest:
    request = _BenchRequest(**values, with_answers=with_answers)  # type: ignore[arg-type]
    if request.is_own == bool(request.questions):
        raise click.UsageError("Give a file of questions, a data set's folder, or --own.")
    return request


def _measure(request: _BenchRequest, *, has_no_model: bool, budget: str | None) -> int:
    settings = load_settings(has_no_model=has_no_model, budget=budget)
    if request.judgements and settings.model_of(Role.JUDGE) is None:
        raise InvalidInput("A judge needs a language model.", remedy="Set llm in [role.judge] of quipu.toml, or `llm`.")
    with progress() as on_event:
        if request.questions and request.questions.is_dir():
            settings = _index_dataset(request, settings, on_event)
        plan = with_engine(partial(_plan, request, settings), settings.without_models())
        estimate = _estimate(plan, settings) if settings.names_model else None
        if not request.is_dry:
            _say(estimate)
            comparison = with_engine(partial(_compare, request, plan, settings, on_event), settings)
    if request.is_dry:
        emit(estimate, _render_estimate)
        return 0
    emit(comparison, render_scores)
    named = set(_names(request)) & {name for name, _ in comparison.failed}
    return 1 if comparison.stopped or named else 0


def _index_dataset(request: _BenchRequest, settings: "Settings", on_event: Callable[..., None]) -> "Settings":
    """Return settings for the index of a data set, which is made if it is not in the cache."""
    import asyncio

    from quipu.bench.datasets import index_dataset, read_dataset

    assert request.questions is not None
    dataset = read_dataset(request.questions.resolve())
    folder = asyncio.run(index_dataset(dataset, request.cache, settings, on_event))
    return settings.model_copy(update={"index": folder})


async def _plan(request: _BenchRequest, settings: "Settings", engine: "Quipu") -> "Plan":
    from quipu.bench.judge import Judgement
    from quipu.bench.strategies import Plan, ranking_strategies
    from quipu.retrieve import strategy_named

    names = _names(request)
    for name in names:
        strategy_named(name)
    return Plan(
        questions=await _questions(request, engine),
        strategies=tuple(dict.fromkeys(names or ranking_strategies())),
        metric=request.metric,
        with_answers=request.with_answers,
        judgements=tuple(map(Judgement, dict.fromkeys(request.judgements))),
        are_drafts=request.is_own and settings.model_of(Role.JUDGE) is not None,
    )


def _names(request: _BenchRequest) -> list[str]:
    return split_names(request.listed)


async def _questions(request: _BenchRequest, engine: "Quipu") -> "tuple[GoldQuestion, ...]":
    from quipu.bench.datasets import own_questions, read_dataset, read_questions

    if request.questions is None:
        questions = await own_questions(engine, request.n, SEED)
        if not questions:
            raise click.UsageError("The documents have no sentence with two names: give a file of questions.")
        return questions
    if request.questions.is_dir():
        return read_dataset(request.questions.resolve()).questions
    return read_questions(request.questions, [document.id for document in await engine.documents()])


async def _compare(
    request: _BenchRequest, plan: "Plan", settings: "Settings", on_event: Callable[..., None], engine: "Quipu"
) -> "StrategyComparison":
    from quipu.bench.judge import written_questions
    from quipu.bench.strategies import ReplyFile, compare, measurement_key

    if plan.are_drafts:
        plan = replace(plan, questions=await written_questions(engine, plan.questions, on_event), are_drafts=False)
    if request.replies is None:
        return await compare(engine, plan, None, on_event)
    values = settings.model_dump_json(exclude={"index", "budget"})
    replies = ReplyFile(request.replies, await measurement_key(engine, plan, values))
    return await compare(engine, plan, replies, on_event)


def _estimate(plan: "Plan", settings: "Settings") -> "BenchEstimate":
    from quipu.bench.strategies import estimate_run
    from quipu.wiring.inventory import take_inventory

    model_by_work = {work: model for model, _ in take_inventory(settings).chats for work in model.work}
    return with_engine(partial(estimate_run, plan, model_by_work), settings.without_models())


def _say(estimate: "BenchEstimate | None") -> None:
    """Tell people what the model will be asked, before it is asked."""
    if estimate:
        _render_estimate(stderr(), estimate)


def _render_estimate(console: Console, estimate: "BenchEstimate | None") -> None:
    if estimate is None:
        console.print("No language model is set: the measurement costs nothing.")
        return
    questions = format_count(estimate.n_questions, "question")
    console.print(styled(f"{questions} with {len(estimate.strategies)} of the strategies."))
    work = [f"{estimate.model} writes {format_count(estimate.n_answers, 'answer')}"] if estimate.n_answers else []
    if estimate.n_judgements:
        work.append(f"{estimate.judge} is asked {format_times(estimate.n_judgements)}")
    if work:
        cost = "the price is unknown" if estimate.cost is None else f"about {amount(estimate.cost)}"
        n_tokens = f"{tokens(estimate.input_tokens)} tokens in, {tokens(estimate.output_tokens)} out"
        console.print(styled(f"{' and '.join(work)}: about {n_tokens}; {cost}."))
    console.print(styled("Strategies may ask it further questions. Replies are cached: nothing is paid twice.", "dim"))
