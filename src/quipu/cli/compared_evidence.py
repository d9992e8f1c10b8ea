"""What compared strategies found first: the rank each gives to each passage, its first entities and its reports."""

from collections.abc import Callable, Sequence

from rich.console import Console
from rich.text import Text

from quipu.cli.output import one_line, styled, table
from quipu.cli.terminal import clean_name
from quipu.cli.wide import Column, print_wide
from quipu.model.answer import RankedChunk, StrategyResult
from quipu.text.formatting import format_count

_SHOWN, _REPORTS = 5, 3  # passages and entities of each strategy; reports
_MAX_ROWS = 20
_TITLE_CELLS, _REPORT_CELLS = 32, 48
_ID_LETTERS = 8  # of a report: enough to show it by
_NOT_FOUND = "·"


def render_evidence(console: Console, rows: Sequence[StrategyResult]) -> None:
    """Draw a table of ranks, then first entities and reports; strategies that found the same share a line."""
    _print_ranks(console, [row for row in rows if row.chunks])
    _print_firsts(console, "first entities", rows, lambda row: ", ".join(row.entities[:_SHOWN]))
    _print_firsts(console, "first reports", rows, lambda row: "; ".join(map(_report, row.reports[:_REPORTS])))


def _print_ranks(console: Console, rows: Sequence[StrategyResult]) -> None:
    """Print the passages that are among the first of any strategy, those most strategies found before the others."""
    ranks = {row.strategy: {chunk.id: rank for rank, chunk in enumerate(row.chunks, 1)} for row in rows}
    chunks = {chunk.id: chunk for row in rows for chunk in row.chunks[:_SHOWN]}

    def order(chunk: str) -> tuple[int, int, str]:
        found = [ranked[chunk] for ranked in ranks.values() if chunk in ranked]
        return -len(found), sum(found), chunk

    ordered = sorted(chunks, key=order)
    shown = ordered[:_MAX_ROWS]
    if not shown:
        return
    console.print()
    console.print(styled("Passages found first, with the rank each strategy gives them", "italic"))
    ids = Column("chunk", tuple(styled(chunk, "dim") for chunk in shown), is_right=False)
    columns = [Column(name, tuple(_rank(ranked.get(chunk)) for chunk in shown)) for name, ranked in ranks.items()]
    print_wide(console, [_title(chunks[chunk]) for chunk in shown], [ids, *columns], heading="passage")
    if len(ordered) > _MAX_ROWS:
        console.print(
            styled(f"… and {format_count(len(ordered) - _MAX_ROWS, 'more passage')}; --json shows all.", "dim")
        )


def _rank(rank: int | None) -> Text:
    return Text(_NOT_FOUND, style="dim") if rank is None else Text(str(rank), style="bold" if rank == 1 else "")


def _title(chunk: RankedChunk) -> str:
    return one_line(clean_name(chunk.title or chunk.document_id), _TITLE_CELLS)


def _report(report: tuple[str, str]) -> str:
    identifier, title = report
    return f"{one_line(title, _REPORT_CELLS)} ({identifier[:_ID_LETTERS]})"


def _print_firsts(
    console: Console, heading: str, rows: Sequence[StrategyResult], told: Callable[[StrategyResult], str]
) -> None:
    """Print a line for each text that `told` gives, with the strategies it is given for; "" has none."""
    names_by_text: dict[str, list[str]] = {}
    for row in rows:
        if text := told(row):
            names_by_text.setdefault(text, []).append(row.strategy)
    if not names_by_text:
        return
    console.print()
    listing = table("strategy", heading)
    for text, names in names_by_text.items():
        listing.add_row(styled(", ".join(names)), styled(text))
    console.print(listing)
