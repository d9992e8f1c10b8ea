"""`quipu search`: find passages and entities by their words."""

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from quipu.cli.options import QuipuCommand, as_of_option, with_engine
from quipu.cli.output import emit, named, one_line, print_table, styled, table
from quipu.model.results import SearchResult

_EXCERPT_CELLS = 300


@click.command("search", cls=QuipuCommand, examples=("quipu search papermaking", "quipu search 长城 -k 3"))
@click.argument("query")
@click.option(
    "-k",
    "n_results",
    type=click.IntRange(1, 1_000),
    default=10,
    show_default=True,
    help="Maximum number of passages, and of entities.",
)
@as_of_option
def command(query: str, n_results: int, as_of: str) -> None:
    """Find passages and entities by their words.

    Passages are ranked by BM25; entities match if their name contains the words. `quipu ask` answers questions.
    """
    if not query.strip():
        raise click.UsageError("Name the words to search for.")
    results = with_engine(lambda engine: engine.search(query, k=n_results, as_of=as_of))
    emit(results, lambda console, results: _render(console, results, query.split()))


def _render(console: Console, results: SearchResult, words: list[str]) -> None:
    if not results.chunks and not results.entities:
        console.print("Nothing found.")
    if results.chunks:
        print_table(console, _passages(results, words))
    if results.entities:
        console.print(_entities(results))


def _passages(results: SearchResult, words: list[str]) -> Table:
    passages = table(
        "score", "document", "chunk", "passage", right=["score"], ids=["document", "chunk"], title="Passages"
    )
    for (scored, chunk), (start, end) in zip(results.chunks, results.snippets, strict=True):
        snippet = ("…" if start else "") + chunk.text[start:end] + ("…" if end < len(chunk.text) else "")
        heading = Text("").join(styled(f"{name}\n", "dim") for name in chunk.headings[-1:])
        excerpt = heading.append(_excerpt(snippet, words))
        passages.add_row(f"{scored.score:.2f}", named(chunk.document_id), chunk.id, excerpt)
    return passages


def _excerpt(snippet: str, words: list[str]) -> Text:
    """Return a snippet of a passage on one line, all matching words marked."""
    excerpt = styled(one_line(snippet, _EXCERPT_CELLS))
    excerpt.highlight_words(words, "bold", case_sensitive=False)
    return excerpt


def _entities(results: SearchResult) -> Table:
    entities = table("entity", "type", "mentions", "relations", right=["mentions", "relations"], title="Entities")
    for entity in results.entities:
        entities.add_row(styled(entity.name), entity.type, f"{entity.n_mentions:,}", f"{entity.degree:,}")
    return entities
