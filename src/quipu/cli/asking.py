"""The options of every command that asks a question, and the query they make."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import wraps
from typing import TYPE_CHECKING, Any, Literal, get_origin

import click

from quipu.cli.options import QuipuCommand, SectionOption, parse_date
from quipu.cli.progress import progress
from quipu.model.options import Option as QueryOption
from quipu.model.options import options_in
from quipu.model.query import ComparisonOperator, Condition, Filter, Query

if TYPE_CHECKING:
    from quipu.engine import Quipu
    from quipu.settings import Settings

Command = Callable[..., int | None]
Option = Callable[[Command], Command]

_USED_STRATEGIES = "quipu.strategy_options"

_COMPARISONS: dict[str, ComparisonOperator] = {
    "=": "=",
    "==": "=",
    "!=": "!=",
    "<": "<",
    "<=": "<=",
    ">": ">",
    ">=": ">=",
    "~": "contains",
    "in": "in",
    "exists": "exists",
}
_CONDITION = re.compile(
    r"\s*(?P<field>[^\s=!<>~]+)\s*"
    r"(?:(?P<sign>==?|!=|<=?|>=?|~)(?![=!<>~])|\s(?P<word>in|exists)(?=\s|$))"
    r"\s*(?P<value>.*?)\s*"
)


class QuestionCommand(QuipuCommand):
    """A command with the options of a query and of every strategy, `without` those that it does not use.

    Strategies are slow to import. So their options are left out where no argument may be one of them.
    """

    def __init__(self, *args: Any, without: tuple[str, ...] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params += (
            _flag(option, "Options of the question") for option in options_in(Query) if option.name not in without
        )

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments; if all are known without the options of strategies, these are not read."""
        known = {name for parameter in self.params for name in (*parameter.opts, *parameter.secondary_opts)}
        flags = {argument.partition("=")[0] for argument in args if argument.startswith("-")}
        ctx.meta[_USED_STRATEGIES] = [] if flags <= known else list(_strategy_flags())
        return super().parse_args(ctx, args)

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the parameters, with the options of strategies last."""
        flags = ctx.meta.get(_USED_STRATEGIES)
        return super().get_params(ctx) + (list(_strategy_flags()) if flags is None else flags)


def _strategy_flags() -> Iterator[SectionOption]:
    from quipu.retrieve import strategies_by_options

    for kind, strategies in strategies_by_options().items():
        for option in options_in(kind):
            yield _flag(option, f"Options of {strategies}")


def _flag(option: QueryOption, section: str) -> SectionOption:
    """Return the option of the command line; its value is checked with the settings."""
    name = f"--{option.name.replace('_', '-')}"
    if option.annotation is bool:
        names = f"{name}/--no-{name[2:]}" if option.default else name
        return SectionOption([names], section=section, is_flag=True, default=None, help=option.description)
    metavar = "N" if option.annotation is int else "X" if option.annotation is float else "TEXT"
    if get_origin(option.annotation) is Literal:
        metavar = option.allowed.replace(" or ", "|")
    return SectionOption([name], section=section, metavar=metavar, help=option.description)


def options(*decorators: Option) -> Option:
    """Combine decorators, in the order of the help page."""

    def decorate(function: Command) -> Command:
        for option in reversed(decorators):
            function = option(function)
        return function

    return decorate


keyword_options = options(
    click.option("--keyword", "keywords", multiple=True, help="A name in the question; replaces the detected ones."),
    click.option("--theme", "themes", multiple=True, help="A theme of the question; replaces the detected ones."),
)

_filter_options = options(
    click.option(
        "--doc", "documents", multiple=True, metavar="ID", help="Search only these documents; ids or patterns."
    ),
    click.option("--exclude", multiple=True, metavar="ID", help="Exclude these documents; ids or patterns."),
    click.option(
        "--where", "conditions", multiple=True, metavar="COND", help='Condition on metadata, as in "year >= 1500".'
    ),
    click.option("--after", default="", metavar="DATE", help="Only documents of this date or later."),
    click.option("--before", default="", metavar="DATE", help="Only documents of this date or earlier."),
)


def filter_options(function: Command) -> Command:
    """Add the options of a filter to a command, which gets the filter as `allowed`."""

    @wraps(function)
    def filtered(
        *,
        documents: tuple[str, ...],
        exclude: tuple[str, ...],
        conditions: tuple[str, ...],
        after: str,
        before: str,
        **others: object,
    ) -> int | None:
        where = tuple(map(parse_condition, conditions))
        dates = {"after": parse_date(after), "before": parse_date(before)}
        return function(allowed=Filter(documents=documents, exclude=exclude, where=where, **dates), **others)

    return _filter_options(filtered)


def parse_query(
    settings: "Settings", question: str, *, keywords: tuple[str, ...], themes: tuple[str, ...], allowed: Filter
) -> Query:
    """Return the query for a question, from the settings and the options."""
    return replace(settings.query(question), filter=allowed, low_level_keywords=keywords, high_level_keywords=themes)


async def prepared(engine: "Quipu", query: Query) -> Query:
    """Return the query once the strategy's derivations exist; with auto_refresh, compute them and show the progress."""
    if query.auto_refresh:
        with progress() as on_event:
            await engine.prepare(query, on_event)
    return query


def parse_condition(text: str) -> Condition:
    """Return the condition written as `region=Asia`, `year >= 1500`, `topic ~ road`, `language in en,ru`."""
    match = _CONDITION.fullmatch(text)
    word = match and (match["sign"] or match["word"])
    if not match or not word or not (match["value"] or word == "exists"):
        raise click.UsageError(
            f"--where {text!r} is not a condition: write field, comparison, value, as in region=Asia."
            " Comparisons: = != < <= > >= ~ (contains) in exists."
        )
    return Condition(field=match["field"], operator=_COMPARISONS[word], value=match["value"])
