"""`quipu compare`: one question by several strategies, side by side."""

from dataclasses import replace

import click

from quipu.cli.asking import QuestionCommand, filter_options, keyword_options, parse_query
from quipu.cli.comparisons import render_comparison
from quipu.cli.options import budget_option, load_settings, no_model_option, shared, with_engine
from quipu.cli.output import emit
from quipu.model.answer import Comparison
from quipu.model.query import Filter


@click.command(
    "compare",
    cls=QuestionCommand,
    without=("rewrite_question",),
    examples=(
        'quipu compare "Who printed the Apostol?"',
        'quipu compare "Who printed the Apostol?" --strategies naive,local,mix',
        'quipu compare "Which roads led west?" --strategies ppr,lca --where region=Asia --no-model',
        'quipu compare "What are the letters about?" --strategies mix,community_global --auto-refresh --json',
    ),
)
@click.argument("question")
@click.option(
    "-s",
    "--strategies",
    "listed",
    multiple=True,
    metavar="NAMES",
    help="Strategies, separated by commas; by default all that can run.",
)
@keyword_options
@filter_options
@no_model_option
@budget_option
def command(
    *,
    question: str,
    listed: tuple[str, ...],
    keywords: tuple[str, ...],
    themes: tuple[str, ...],
    has_no_model: bool,
    allowed: Filter,
    **setting_options: str | None,
) -> int:
    """Ask several strategies the same question, side by side.

    For each strategy it shows the evidence, the answer, the tokens of the context, the calls of a language model and
    the time. It also shows how many passages each two strategies share. A strategy that needs a missing derivation is
    listed with the command that computes it. The exit code is 1 if a strategy that you named failed.
    """
    settings = load_settings(has_no_model=has_no_model, **setting_options)
    query = parse_query(settings, question, keywords=keywords, themes=themes, allowed=allowed)
    names = [name.strip() for names_text in listed for name in names_text.split(",") if name.strip()]
    if listed and not names:
        raise click.UsageError("--strategies is empty. Leave it out to ask all strategies that can run.")
    comparison = with_engine(lambda engine: engine.compare(query, names), settings)
    emit(_lean(comparison) if shared().as_json else comparison, render_comparison)
    return 1 if any(row.error for row in comparison.results) else 0


def _lean(comparison: Comparison) -> Comparison:
    """Return the comparison without contexts and prompts: they are long, and `quipu ask` prints them."""
    return replace(
        comparison,
        results=tuple(
            replace(row, answer=replace(row.answer, context="", prompt="")) if row.answer else row
            for row in comparison.results
        ),
    )
