"""The options of every command that asks the index a question, and the query they make."""

from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import TYPE_CHECKING

import click

from quipu.cli.inputs import parse_condition, parse_date
from quipu.cli.progress import progress
from quipu.model.query import Filter, Query

if TYPE_CHECKING:
    from quipu.engine import Quipu
    from quipu.settings import Settings

Command = Callable[..., int | None]
Option = Callable[[Command], Command]


def options(*given: Option) -> Option:
    """Return decorators as one, in the order of the help page."""

    def decorate(function: Command) -> Command:
        for option in reversed(given):
            function = option(function)
        return function

    return decorate


search_options = options(
    click.option("--top-k", metavar="N", help="Most entities or relations searched; many strategies take fewer."),
    click.option("--chunk-top-k", metavar="N", help="Passages kept."),
    click.option("--min-similarity", metavar="X", help="Least cosine of a vector hit."),
    click.option(
        "--related-chunks",
        metavar="N",
        help="Passages that local, global, hybrid and mix take for each entity or relation.",
    ),
    click.option("--community-level", metavar="N", help="Finest level of communities whose reports are read."),
    click.option(
        "--dynamic-selection", is_flag=True, default=None, help="Let a model choose the reports of community_global."
    ),
    click.option("--drift-follow-ups", metavar="N", help="Most questions that a round of drift follows up."),
    click.option("--from-aggregates", is_flag=True, default=None, help="Let lca begin with aggregates, too."),
    click.option("--entity-weight", metavar="X", help="Weight in mix of what entities lead to; 0 leaves it out."),
    click.option("--relation-weight", metavar="X", help="Weight in mix of what relations lead to."),
    click.option("--vector-weight", metavar="X", help="Weight in mix of the nearest passages."),
    click.option("--auto-refresh", is_flag=True, default=None, help="Make first what a strategy needs and lacks."),
)

context_options = options(
    click.option("--entity-tokens", metavar="N", help="Most tokens of entities in the context."),
    click.option("--relation-tokens", metavar="N", help="Most tokens of relations and claims in the context."),
    click.option("--report-tokens", metavar="N", help="Most tokens of reports, where passages stand beside them."),
    click.option("--total-tokens", metavar="N", help="Most tokens of prompt and context together."),
)

keyword_options = options(
    click.option("--keyword", "keywords", multiple=True, help="A thing the question is about; replaces those found."),
    click.option("--theme", "themes", multiple=True, help="A theme of the question; replaces those found in it."),
)

_filter_options = options(
    click.option("--doc", "documents", multiple=True, metavar="ID", help="Only these documents; ids or patterns."),
    click.option("--exclude", multiple=True, metavar="ID", help="Not these documents; ids or patterns."),
    click.option("--where", "conditions", multiple=True, metavar="COND", help='On metadata, as in "year >= 1500".'),
    click.option("--after", default="", metavar="DATE", help="Only documents with this date or a later one."),
    click.option("--before", default="", metavar="DATE", help="Only documents with this date or an earlier one."),
)


def filter_options(function: Command) -> Command:
    """Give a command the options of a filter, and what they make of it as `allowed`."""

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
    """Return the query that settings and options make of a question."""
    return replace(settings.query(question), filter=allowed, low_level_keywords=keywords, high_level_keywords=themes)


async def prepared(engine: "Quipu", query: Query) -> Query:
    """Return the query when what its strategy needs is there: where that may be made first, its progress is shown."""
    if query.auto_refresh:
        with progress() as on_event:
            await engine.prepare(query, on_event)
    return query
