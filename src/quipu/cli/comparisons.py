"""How a comparison looks: figures of each strategy, what they share, what each found, what each said."""

from collections.abc import Callable
from functools import partial

from rich.console import Console
from rich.text import Text

from quipu.cli.amounts import money
from quipu.cli.compared_answers import render_answers
from quipu.cli.compared_evidence import render_evidence
from quipu.cli.output import styled
from quipu.cli.wide import Column, print_wide
from quipu.model.answer import Comparison, StrategyResult

_ALWAYS = ("passages", "tokens")  # the others are left out where there are none for any strategy
_COUNTS: dict[str, Callable[[StrategyResult], int]] = {
    "passages": lambda row: row.n_chunks,
    "entities": lambda row: row.n_entities,
    "relations": lambda row: row.n_relations,
    "claims": lambda row: row.n_claims,
    "reports": lambda row: row.n_reports,
    "tokens": lambda row: row.n_context_tokens,
    "calls": lambda row: row.n_calls,
}


def render_comparison(console: Console, found: Comparison) -> None:
    """Draw the figures, the overlap, what was found first, and the answers, equal ones once."""
    console.print(styled(found.question, "bold"))
    console.print()
    print_wide(console, [row.strategy for row in found.results], _figures(found), heading="strategy")
    if not any(row.n_calls for row in found.results):
        console.print(styled("No language model was asked.", "dim"))
    for row in found.results:
        if row.error:
            console.print(styled(f"{row.strategy}: {row.error}", "yellow"))
    for name, why in found.skipped:
        console.print(styled(f"not asked: {name}. {why}", "dim"))
    if found.overlaps:
        console.print()
        console.print(styled("Passages shared, of those either found (1.00: the same)", "italic"))
        print_wide(console, *_overlaps(found))
    answered = [row for row in found.results if row.answer is not None]
    render_evidence(console, answered)
    render_answers(console, answered)


def _figures(found: Comparison) -> list[Column]:
    rows = found.results
    columns = [
        _numbers(name, found, partial(_number, of))
        for name, of in _COUNTS.items()
        if name in _ALWAYS or any(map(of, rows))
    ]
    if any(map(_cost, rows)):
        columns.append(_numbers("money", found, lambda row: money(_cost(row))))
    columns.append(_numbers("ms", found, lambda row: f"{row.ms:,.0f}"))
    generators = tuple(map(_generator, rows))
    if len({each.plain for each in generators}) > 1:
        columns.append(Column("answer by", generators, is_right=False))
    return columns


def _numbers(heading: str, found: Comparison, cell: Callable[[StrategyResult], str]) -> Column:
    return Column(heading, tuple(Text(cell(row) if row.answer else "–") for row in found.results))


def _number(of: Callable[[StrategyResult], int], row: StrategyResult) -> str:
    return f"{of(row):,}"


def _cost(row: StrategyResult) -> int:
    return sum(each.cost for each in row.answer.usage) if row.answer else 0


def _generator(row: StrategyResult) -> Text:
    if row.answer is None:
        return styled("failed", "yellow")
    return styled(f"{row.answer.generator}{'' if row.answer.is_supported else ', unsupported'}")


def _overlaps(found: Comparison) -> tuple[list[str], list[Column]]:
    """Return the rows and columns of what two strategies share: passages in both of those in either."""
    names = list(dict.fromkeys(name for each in found.overlaps for name in (each.first, each.second)))
    jaccard = {(each.first, each.second): f"{each.jaccard:.2f}" for each in found.overlaps}
    columns = [
        Column(second, tuple(Text(jaccard.get((first, second), "")) for first in names[:-1])) for second in names[1:]
    ]
    return names[:-1], columns
