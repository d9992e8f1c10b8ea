"""`quipu bench`: measure strategies on one's own documents and questions, and say which one to choose."""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.text import Text

from quipu.cli.asking import options
from quipu.cli.options import QuipuCommand, QuipuGroup, budget_option, load_settings, no_model_option, with_engine
from quipu.cli.output import Column, amount, emit, in_currency, money, print_wide, stderr, styled, tokens
from quipu.cli.progress import progress
from quipu.errors import InvalidInput
from quipu.model.chat import Role
from quipu.model.usage import MICRO
from quipu.text.formatting import format_count, format_times

if TYPE_CHECKING:
    from quipu.bench.datasets import GoldQuestion
    from quipu.bench.metrics import Mean
    from quipu.bench.strategies import BenchEstimate, Plan, StrategyComparison, StrategyScore
    from quipu.engine import Quipu
    from quipu.settings import Settings

FEW_QUESTIONS = 30  # with fewer, differences between strategies are mostly chance
CHEAPER = 0.7  # times the cost of another strategy; times differ by less from run to run
SEED = 1
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
    ),
)
def command() -> None:
    """Measure strategies on your documents and questions, and say which one to choose."""


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
        default=Path(tempfile.gettempdir()) / "quipu-bench",
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
    emit(comparison, _render)
    named = set(_names(request)) & {name for name, _ in comparison.failed}
    return 1 if comparison.stopped or named else 0


def _index_dataset(request: _BenchRequest, settings: "Settings", on_event: Callable[..., None]) -> "Settings":
    """Return settings for the index of a data set, which is made if it is not in the cache."""
    import asyncio

    from quipu.bench.datasets import read_dataset
    from quipu.bench.retrieval import index_dataset

    assert request.questions is not None
    dataset = read_dataset(request.questions.resolve())
    folder = asyncio.run(index_dataset(dataset, request.cache, settings, on_event))
    return settings.model_copy(update={"index": folder})


async def _plan(request: _BenchRequest, settings: "Settings", engine: "Quipu") -> "Plan":
    from quipu.bench.judge import Judgement
    from quipu.bench.retrieval import ranking_strategies
    from quipu.bench.strategies import Plan
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
    return [name.strip() for text in request.listed for name in text.split(",") if name.strip()]


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


def _render(console: Console, comparison: "StrategyComparison") -> None:
    """Draw the table of scores, then the choice."""
    from quipu.bench.strategies import COSTS, SHARES

    if comparison.scores:
        names = [name for name in SHARES if any(name in score.shares for score in comparison.scores)]
        columns = [_share_column(comparison, name) for name in names]
        costs = [name for name in COSTS if any(score.costs.get(name) for score in comparison.scores)]
        columns += [_cost_column(comparison, name) for name in costs]
        print_wide(console, [score.strategy for score in comparison.scores], columns, heading="strategy")
        console.print(
            styled(
                "Shares in percent, with 95 % intervals in the column of the choice; a question's cost: median tokens, "
                "characters and times, mean calls and money.",
                "dim",
            )
        )
    _render_refusals(console, comparison)
    for name, error in comparison.failed:
        console.print(styled(f"left out: {name}. {error}", "yellow"))
    if comparison.stopped:
        extent = f"{comparison.n_asked:,} of {format_count(comparison.n_questions, 'question')} asked"
        console.print(styled(f"Stopped, {extent}. {comparison.stopped}", "yellow"))
    console.print()
    for line in _choice(comparison):
        console.print(line)


def _render_refusals(console: Console, comparison: "StrategyComparison") -> None:
    """Draw, for each support that answers might need, the shares of questions that would be refused."""
    curves = {score.strategy: score.refusals for score in comparison.scores if score.refusals}
    if not curves:
        return
    needed = [f"{point.needed:g}" for point in next(iter(curves.values())).points]
    columns = [
        Column(
            name,
            (
                *(Text(f"{point.unanswerable:.0f} / {point.answerable:.0f}") for point in curve.points),
                Text(f"{curve.separation:.0f}"),
            ),
        )
        for name, curve in curves.items()
    ]
    console.print()
    print_wide(console, [*needed, "separation"], columns, heading="support needed")
    console.print(
        styled(
            "Unanswerable / answerable questions refused, in percent, if quotes needed this support (1 as they are). "
            "Separation: how often an answerable question has more support than an unanswerable one; 50 is chance.",
            "dim",
        )
    )


def _share_column(comparison: "StrategyComparison", name: str) -> Column:
    is_metric = name == comparison.metric
    cells = [_share(score.shares.get(name), is_metric=is_metric) for score in comparison.scores]
    best = comparison.best.name if comparison.best and is_metric else None
    return Column(
        name,
        tuple(
            styled(cell, "bold" if score.strategy == best else "")
            for cell, score in zip(cells, comparison.scores, strict=True)
        ),
    )


def _share(mean: "Mean | None", *, is_metric: bool) -> str:
    if mean is None:
        return "–"
    return str(mean) if is_metric else f"{mean.value:.1f}"


def _cost_column(comparison: "StrategyComparison", name: str) -> Column:
    values = [score.costs.get(name, 0.0) for score in comparison.scores]
    if name == "money":
        return Column(in_currency("money"), tuple(Text(money(round(value))) for value in values))
    digits = 1 if name == "calls" else 0
    return Column(name, tuple(Text(f"{value:,.{digits}f}") for value in values))


def _choice(comparison: "StrategyComparison") -> list[Text]:
    """Return which strategy to choose, how sure that is, and what is as good."""
    best = comparison.best
    if best is None:
        return [styled(f"No question has what {comparison.metric} needs, so no strategy is chosen.", "yellow")]
    score_by_name = {score.strategy: score for score in comparison.scores}
    share = score_by_name[best.name].shares[comparison.metric]
    lines = [
        styled(f"Choose {best.name}", "bold").append(
            f": {comparison.metric} {share} on {format_count(share.n, 'question')}. It is the best in "
            f"{best.share:.0f} % of resamples of the questions."
        )
    ]
    if comparison.as_good:
        rivals = ", ".join(f"{name} ({best.lead[name].value:.1f} behind)" for name in comparison.as_good)
        lines.append(styled(f"Not clearly worse, the difference may be chance: {rivals}."))
        cheapest = min((best.name, *comparison.as_good), key=lambda name: _price(score_by_name[name]))
        if _is_much_cheaper(score_by_name[cheapest], score_by_name[best.name]):
            lines.append(styled(f"Of these, {cheapest} costs the least for a question."))
    elif best.lead:
        lines.append(styled("Every other strategy is worse by more than chance."))
    if share.n < FEW_QUESTIONS:
        lines.append(styled(f"These are few questions: the choice is surer with {FEW_QUESTIONS} or more.", "yellow"))
    lines.append(styled(f'To use it, set strategy = "{best.name}" in quipu.toml.', "dim"))
    return lines


def _price(score: "StrategyScore") -> tuple[float, float, str]:
    return score.costs.get("money", 0.0) / MICRO, score.costs.get("CPU ms", 0.0), score.strategy


def _is_much_cheaper(score: "StrategyScore", other: "StrategyScore") -> bool:
    """Return whether a question costs clearly less money, or, for the same money, clearly less processor time."""
    (own_money, own_ms, _), (other_money, other_ms, _) = _price(score), _price(other)
    return own_money < CHEAPER * other_money or (own_money == other_money and own_ms < CHEAPER * other_ms)
