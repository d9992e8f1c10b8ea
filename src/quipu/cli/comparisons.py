"""How a comparison looks: figures of each strategy, what they share, what each found, what each said."""

from collections.abc import Callable
from itertools import zip_longest

from rich.console import Console
from rich.table import Table
from rich.text import Text

from quipu.cli.answers import render_panels
from quipu.cli.output import named, one_line, styled, table
from quipu.cli.wide import Column, print_wide
from quipu.model.comparison import Compared, Comparison, FoundChunk

_SHOWN = 5
_TITLE_CELLS = 60
_MIN_COLUMN = 24
_COUNTS: dict[str, Callable[[Compared], int]] = {
    "passages": lambda row: row.n_chunks,
    "entities": lambda row: row.n_entities,
    "relations": lambda row: row.n_relations,
    "claims": lambda row: row.n_claims,
    "reports": lambda row: row.n_reports,
    "tokens": lambda row: row.n_context_tokens,
    "calls": lambda row: row.n_calls,
}


def render_comparison(console: Console, found: Comparison) -> None:
    """Draw the figures, the overlap, the first passages and entities, and the answers."""
    console.print(styled(found.question, "bold"))
    console.print()
    print_wide(console, [row.strategy for row in found.compared], _figures(found), heading="strategy")
    for row in found.compared:
        if row.error:
            console.print(styled(f"{row.strategy}: {row.error}", "yellow"))
    for name, why in found.left_out:
        console.print(styled(f"not asked: {name}. {why}", "dim"))
    if found.overlaps:
        console.print()
        console.print(styled("Passages shared, of those either found", "italic"))
        print_wide(console, *_overlaps(found))
    rows = [row for row in found.compared if row.answer is not None]
    n_beside = max(console.width // _MIN_COLUMN, 1)
    for start in range(0, len(rows), n_beside):
        console.print()
        console.print(_evidence(rows[start : start + n_beside]))
    console.print()
    render_panels(console, [row.answer for row in rows if row.answer is not None])


def _figures(found: Comparison) -> list[Column]:
    is_claimed = any(row.n_claims for row in found.compared)
    counts = {name: of for name, of in _COUNTS.items() if name != "claims" or is_claimed}
    columns = [
        Column(name, tuple(Text(f"{of(row):,}" if row.answer else "–") for row in found.compared))
        for name, of in counts.items()
    ]
    took = Column("ms", tuple(Text(f"{row.ms:,.0f}" if row.answer else "–") for row in found.compared))
    return [*columns, took, Column("answer by", tuple(map(_generator, found.compared)), is_right=False)]


def _generator(row: Compared) -> Text:
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


def _evidence(rows: list[Compared]) -> Table:
    """Return the first passages and entities of strategies, one column each."""
    listing = table("", *(row.strategy for row in rows), title="Found first")
    for rank, chunks in enumerate(zip_longest(*(row.chunks[:_SHOWN] for row in rows)), 1):
        listing.add_row(str(rank), *(_passage(chunk) for chunk in chunks))
    listing.add_section()
    listing.add_row("entities", *(styled(", ".join(row.entities[:_SHOWN])) for row in rows))
    return listing


def _passage(chunk: FoundChunk | None) -> Text:
    if chunk is None:
        return Text()
    return named(one_line(chunk.title or chunk.document_id, _TITLE_CELLS)).append(f"\n{chunk.id}", style="dim")
