"""`quipu explain`: why a passage is among the evidence."""

from typing import TYPE_CHECKING

import click

from quipu.cli.asking import filter_options, keyword_options, parse_query, prepared, search_options
from quipu.cli.budget import budget_option, no_model_option
from quipu.cli.explanations import render_explanation
from quipu.cli.options import QuipuCommand
from quipu.cli.output import emit
from quipu.cli.session import load_settings, with_engine
from quipu.model.evidence import Explanation
from quipu.model.query import Filter, Query

if TYPE_CHECKING:
    from quipu.engine import Quipu


@click.command(
    "explain",
    cls=QuipuCommand,
    examples=(
        'quipu explain "Who taught Alice Kober?"',
        'quipu explain "Who taught Alice Kober?" -s local --rank 2',
        'quipu explain "Who taught Alice Kober?" --chunk 1f0c5d9e27b34a86',
    ),
)
@click.argument("question")
@click.option("-s", "--strategy", metavar="NAME", help="How to retrieve.")
@click.option("--chunk", default="", metavar="ID", help="Why this passage is there, or why not.")
@click.option("--rank", type=click.IntRange(min=1), metavar="N", help="Why the passage of this rank is there.")
@search_options
@keyword_options
@filter_options
@no_model_option
@budget_option
def command(
    *,
    question: str,
    chunk: str,
    rank: int | None,
    keywords: tuple[str, ...],
    themes: tuple[str, ...],
    has_no_model: bool,
    allowed: Filter,
    **given: str | None,
) -> None:
    """Show why a passage is there: the way from the question to it.

    Of the passage of that id or rank, else of the first three: where the search began, which entities and relations of
    the evidence lead to it, with their scores, and the shortest way over relations. No answer is asked for.
    """
    if chunk and rank is not None:
        raise click.UsageError("Say --chunk or --rank, not both.")
    settings = load_settings(has_no_model=has_no_model, **given)
    query = parse_query(settings, question, keywords=keywords, themes=themes, allowed=allowed)
    found = with_engine(lambda engine: _explain(engine, query, chunk, rank), settings)
    emit(found, render_explanation)


async def _explain(engine: "Quipu", query: Query, chunk: str, rank: int | None) -> Explanation:
    return await engine.explain(await prepared(engine, query), chunk=chunk, rank=rank)
