"""`quipu usage`: show the calls, tokens and cost of models."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import click
from rich.console import Console

from quipu.cli.options import QuipuCommand, parse_date, with_engine
from quipu.cli.output import emit, in_currency, money, one_line, styled, table, tokens
from quipu.model.usage import UsageRow, total
from quipu.text.formatting import format_count

_MAX_NAME_CELLS = 60

GROUPS: Mapping[str, Callable[[UsageRow], str]] = MappingProxyType(
    {
        "stage": lambda row: row.stage.value,
        "model": lambda row: row.model,
        "day": lambda row: row.day,
        "subject": lambda row: row.subject or "(shared)",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageGroup:
    """Usage rows grouped by one of their columns, and their total."""

    by: str
    groups: Mapping[str, UsageRow]
    total: UsageRow | None


@click.command(
    "usage",
    cls=QuipuCommand,
    examples=("quipu usage", "quipu usage --by subject --since 2026-01-01", "quipu usage --by day --json"),
)
@click.option(
    "--by",
    type=click.Choice(list(GROUPS)),
    default="stage",
    show_default=True,
    help="Add up by stage, model, day, or subject: the document or question the calls were for.",
)
@click.option("--since", default="", metavar="DATE", help="Only from this day on (UTC).")
@click.option("--until", default="", metavar="DATE", help="Only up to this day (UTC).")
def command(by: str, since: str, until: str) -> None:
    """Show the calls, tokens and cost of models.

    Costs are computed from the price table that ships with Quipu, or from [[price]] tables in quipu.toml, and shown in
    the setting currency. Interrupted calls may have been billed. The last columns show their maximum cost, which the
    other columns do not include.
    """
    first, last = parse_date(since), parse_date(until)
    rows = with_engine(lambda engine: engine.usage(since=first, until=last))
    emit(_added_up(rows, by), _render)


def _added_up(rows: Sequence[UsageRow], by: str) -> UsageGroup:
    grouped: dict[str, list[UsageRow]] = {}
    for row in rows:
        grouped.setdefault(GROUPS[by](row), []).append(row)
    groups = {name: total(members) for name, members in sorted(grouped.items())}
    if by == "subject":
        groups = dict(sorted(groups.items(), key=lambda group: (-group[1].cost, group[0])))
    return UsageGroup(by=by, groups=groups, total=total(rows) if rows else None)


def _render(console: Console, usage: UsageGroup) -> None:
    if usage.total is None:
        console.print("No model has been asked.")
        return
    costs = in_currency("cost"), in_currency("at most")
    numbers = ("calls", "input", "cached", "output", costs[0], "broken off", costs[1])
    listing = table(usage.by, *numbers, right=numbers)
    for name, row in usage.groups.items():
        listing.add_row(styled(one_line(name, _MAX_NAME_CELLS)), *_cells(row))
    if len(usage.groups) > 1:
        listing.add_section()
        listing.add_row("all", *_cells(usage.total))
    console.print(listing)
    if usage.total.n_unpriced:
        console.print(
            f"Of {format_count(usage.total.n_unpriced, 'call')} no price is known, and the cost lacks it: "
            "give one in a [[price]] table of quipu.toml.",
            style="yellow",
        )


def _cells(row: UsageRow) -> tuple[str, ...]:
    return (
        f"{row.n_calls:,}",
        tokens(row.tokens.input),
        tokens(row.tokens.cached),
        tokens(row.tokens.output),
        money(row.cost) if row.n_unpriced < row.n_calls or not row.n_calls else "no price",
        f"{row.n_interrupted:,}" if row.n_interrupted else "",
        money(row.interrupted_cost) if row.n_interrupted else "",
    )
