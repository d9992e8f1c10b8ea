"""Prints a comparison of strategies: figures, answers side by side, and one table of their evidence."""

import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from functools import partial

from rich.cells import cell_len
from rich.console import Console
from rich.panel import Panel
from rich.text import Text

from quipu.cli.asking import panel_of, render_panels
from quipu.cli.output import Column, in_currency, money, one_line, print_wide, styled, table
from quipu.model.answer import Answer, Citation, Comparison, RankedChunk, StrategyResult
from quipu.text.formatting import format_count
from quipu.text.unicode import clean_name

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


def render_comparison(console: Console, comparison: Comparison) -> None:
    """Draw the figures, the overlap, the first evidence, and the answers; equal answers are drawn once."""
    console.print(styled(comparison.question, "bold"))
    console.print()
    print_wide(console, [row.strategy for row in comparison.results], _figures(comparison), heading="strategy")
    if not any(row.n_calls for row in comparison.results):
        console.print(styled("No language model was asked.", "dim"))
    for row in comparison.results:
        if row.error:
            console.print(styled(f"{row.strategy}: {row.error}", "yellow"))
    for name, why in comparison.skipped:
        console.print(styled(f"not asked: {name}. {why}", "dim"))
    if comparison.overlaps:
        console.print()
        console.print(
            styled("Overlap of the passages of two strategies (Jaccard index; 1.00: the same passages)", "italic")
        )
        print_wide(console, *_overlaps(comparison))
    answered = [row for row in comparison.results if row.answer is not None]
    render_evidence(console, answered)
    render_answers(console, answered)


def _figures(comparison: Comparison) -> list[Column]:
    rows = comparison.results
    columns = [
        _numbers(name, comparison, partial(_number, of))
        for name, of in _COUNTS.items()
        if name in _ALWAYS or any(map(of, rows))
    ]
    if any(map(_cost, rows)):
        columns.append(_numbers(in_currency("money"), comparison, lambda row: money(_cost(row))))
    columns.append(_numbers("ms", comparison, lambda row: f"{row.ms:,.0f}"))
    generators = tuple(map(_generator, rows))
    if len({cell.plain for cell in generators}) > 1:
        columns.append(Column("answer by", generators, is_right=False))
    return columns


def _numbers(heading: str, comparison: Comparison, cell: Callable[[StrategyResult], str]) -> Column:
    return Column(heading, tuple(Text(cell(row) if row.answer else "–") for row in comparison.results))


def _number(of: Callable[[StrategyResult], int], row: StrategyResult) -> str:
    return f"{of(row):,}"


def _cost(row: StrategyResult) -> int:
    return sum(usage.cost for usage in row.answer.usage) if row.answer else 0


def _generator(row: StrategyResult) -> Text:
    if row.answer is None:
        return styled("failed", "yellow")
    return styled(f"{row.answer.generator}{'' if row.answer.is_supported else ', unsupported'}")


def _overlaps(comparison: Comparison) -> tuple[list[str], list[Column]]:
    """Return the table of overlaps: for each two strategies, passages in both as a share of passages in either."""
    names = list(dict.fromkeys(name for overlap in comparison.overlaps for name in (overlap.first, overlap.second)))
    jaccard = {(overlap.first, overlap.second): f"{overlap.jaccard:.2f}" for overlap in comparison.overlaps}
    columns = [
        Column(second, tuple(Text(jaccard.get((first, second), "")) for first in names[:-1])) for second in names[1:]
    ]
    return names[:-1], columns


_MARK = r"\[\d+(?:[,; ]+\d+)*\]"  # of passages, which each strategy counts in its own order
_MARKS = rf"(?P<marks>\s*{_MARK}(?:\s*{_MARK})*)"
_FRAME = 8  # cells of a panel beside its title


def render_answers(console: Console, rows: Sequence[StrategyResult]) -> None:
    """Draw the answers of the strategies."""
    grouped: dict[Hashable, list[tuple[str, Answer]]] = {}
    for row in rows:
        if row.answer is not None:
            grouped.setdefault(_said(row.answer), []).append((row.strategy, row.answer))
    if not grouped:
        return
    console.print()
    width = console.width - _FRAME
    render_panels(console, [_panel([name for name, _ in group], group[0][1], width) for group in grouped.values()])


def _said(answer: Answer) -> Hashable:
    """Return a key for comparing answers: the text, the cited sources, the author, the support and the notes."""
    sources = frozenset(map(_source, answer.citations))
    return tuple(_words(answer)), sources, answer.generator, answer.is_supported, answer.notes, answer.trace.stale


def _source(citation: Citation) -> Hashable:
    return citation.document_id, citation.start, citation.end


def _words(answer: Answer) -> Iterator[Hashable]:
    """Yield the text of an answer in pieces, with cited sources in place of numbers; quotes are not changed."""
    sources: dict[int, set[Hashable]] = defaultdict(set)
    for citation in answer.citations:
        sources[citation.number].add(_source(citation))
    quotes = sorted({citation.quote for citation in answer.citations if citation.quote}, key=len, reverse=True)
    end = 0
    for match in re.finditer("|".join((*map(re.escape, quotes), _MARKS)), answer.text):
        if match["marks"]:
            yield answer.text[end : match.start()]
            yield from _cited(match["marks"], sources)
            end = match.end()
    yield answer.text[end:]


def _cited(marks: str, sources: Mapping[int, set[Hashable]]) -> Iterator[Hashable]:
    """Yield the marks that cite nothing, unchanged, then the sources that the other marks cite, in any order."""
    cited: set[Hashable] = set()
    for mark in re.findall(_MARK, marks):
        numbers = {int(digits) for digits in re.findall(r"\d+", mark)}
        if numbers <= sources.keys():
            cited.update(*(sources[number] for number in numbers))
        else:
            yield mark
    yield frozenset(cited)


def _panel(names: Sequence[str], answer: Answer, width: int) -> Panel:
    title = f"{', '.join(names)} · {answer.generator}"
    if cell_len(title) <= width:
        return panel_of(answer, title, has_usage=len(names) == 1)
    title = f"{format_count(len(names), 'strategy')} · {answer.generator}"
    return panel_of(answer, title, heading=", ".join(names), has_usage=False)


_SHOWN, _REPORTS = 5, 3  # passages and entities of each strategy; reports
_MAX_ROWS = 20
_TITLE_CELLS, _REPORT_CELLS = 32, 48
_ID_LETTERS = 8  # of a report: enough to show it by
_NOT_FOUND = "·"


def render_evidence(console: Console, rows: Sequence[StrategyResult]) -> None:
    """Draw a table of ranks, then the first entities and reports. Strategies with equal results share a line."""
    _print_ranks(console, [row for row in rows if row.chunks])
    _print_firsts(console, "first entities", rows, lambda row: ", ".join(row.entities[:_SHOWN]))
    _print_firsts(console, "first reports", rows, lambda row: "; ".join(map(_report, row.reports[:_REPORTS])))


def _print_ranks(console: Console, rows: Sequence[StrategyResult]) -> None:
    """Print the first passages of all strategies; passages that more strategies found come first."""
    ranks = {row.strategy: {chunk.id: rank for rank, chunk in enumerate(row.chunks, 1)} for row in rows}
    chunks = {chunk.id: chunk for row in rows for chunk in row.chunks[:_SHOWN]}

    def order(chunk: str) -> tuple[int, int, str]:
        ranked_chunks = [ranked[chunk] for ranked in ranks.values() if chunk in ranked]
        return -len(ranked_chunks), sum(ranked_chunks), chunk

    ordered = sorted(chunks, key=order)
    first = ordered[:_MAX_ROWS]
    if not first:
        return
    console.print()
    console.print(styled("First passages, with their rank in each strategy", "italic"))
    ids = Column("chunk", tuple(styled(chunk, "dim") for chunk in first), is_right=False)
    columns = [Column(name, tuple(_rank(ranked.get(chunk)) for chunk in first)) for name, ranked in ranks.items()]
    print_wide(console, [_title(chunks[chunk]) for chunk in first], [ids, *columns], heading="passage")
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
    console: Console, heading: str, rows: Sequence[StrategyResult], render: Callable[[StrategyResult], str]
) -> None:
    """Print a line for each distinct text of `render`, with the strategies that have it; "" prints nothing."""
    names_by_text: dict[str, list[str]] = {}
    for row in rows:
        if text := render(row):
            names_by_text.setdefault(text, []).append(row.strategy)
    if not names_by_text:
        return
    console.print()
    listing = table("strategy", heading)
    for text, names in names_by_text.items():
        listing.add_row(styled(", ".join(names)), styled(text))
    console.print(listing)
