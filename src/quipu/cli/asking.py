"""The options of every command that asks a question, and the query they make."""

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


def options(*decorators: Option) -> Option:
    """Combine decorators, in the order of the help page."""

    def decorate(function: Command) -> Command:
        for option in reversed(decorators):
            function = option(function)
        return function

    return decorate


search_options = options(
    click.option("--top-k", metavar="N", help="Maximum entities or relations searched; many strategies take fewer."),
    click.option("--chunk-top-k", metavar="N", help="Maximum passages."),
    click.option("--min-similarity", metavar="X", help="Minimum cosine of a vector match."),
    click.option(
        "--related-chunks",
        metavar="N",
        help="Passages for each entity or relation, in local, global, hybrid and mix.",
    ),
    click.option("--community-level", metavar="N", help="Finest community level whose reports are read."),
    click.option(
        "--dynamic-selection", is_flag=True, default=None, help="Let a model select the reports of community_global."
    ),
    click.option("--drift-follow-ups", metavar="N", help="Maximum follow-up questions in a round of drift."),
    click.option("--from-aggregates", is_flag=True, default=None, help="Let lca use aggregates as seeds, too."),
    click.option("--entity-weight", metavar="X", help="Weight of entities in mix; 0 leaves them out."),
    click.option("--relation-weight", metavar="X", help="Weight of relations in mix."),
    click.option("--vector-weight", metavar="X", help="Weight of the nearest passages by vector in mix."),
    click.option(
        "--auto-refresh", is_flag=True, default=None, help="First compute the derivations that the strategy needs."
    ),
)

context_options = options(
    click.option("--entity-tokens", metavar="N", help="Maximum tokens of entities in the context."),
    click.option("--relation-tokens", metavar="N", help="Maximum tokens of relations and claims in the context."),
    click.option("--report-tokens", metavar="N", help="Maximum tokens of reports beside passages."),
    click.option("--total-tokens", metavar="N", help="Maximum tokens of prompt and context together."),
)

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
