"""Prints comparisons: answers of strategies side by side with their evidence, and what `quipu bench` measured."""

import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.console import Console
from rich.panel import Panel
from rich.text import Text

from quipu.cli.asking import panel_of, render_panels
from quipu.cli.output import Column, in_currency, money, one_line, print_wide, styled, table
from quipu.model.answer import Answer, Citation, Comparison, RankedChunk, StrategyResult
from quipu.model.usage import MICRO
from quipu.text.formatting import format_count
from quipu.text.unicode import clean_name

if TYPE_CHECKING:
    from quipu.bench.metrics import Mean
    from quipu.bench.strategies import StrategyComparison, StrategyScore

FEW_QUESTIONS = 30  # with fewer, differences between strategies are mostly chance
CHEAPER = 0.7  # times the cost of another strategy; times differ by less from run to run
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


def render_scores(console: Console, comparison: "StrategyComparison") -> None:
    """Draw the table of scores, then the choice."""
    from quipu.bench.strategies import COSTS, SHARES

    if comparison.scores:
        names = [name for name in SHARES if any(name in score.shares for score in comparison.scores)]
        columns = [_share_column(comparison, name) for name in names]
        costs = [name for name in COSTS if any(score.costs.get(name) for score in comparison.scores)]
        columns += [_cost_column(comparison, name) for name in costs]
        print_wide(console, [score.strategy for score in comparison.scores], columns, heading="strategy")
        console.print(
            styled(
                "Shares in percent, with 95 % intervals in the column of the choice; a question's cost: median tokens, "
                "characters and times, mean calls and money.",
                "dim",
            )
        )
    _render_refusals(console, comparison)
    for name, error in comparison.failed:
        console.print(styled(f"left out: {name}. {error}", "yellow"))
    if comparison.stopped:
        extent = f"{comparison.n_asked:,} of {format_count(comparison.n_questions, 'question')} asked"
        console.print(styled(f"Stopped, {extent}. {comparison.stopped}", "yellow"))
    console.print()
    for line in _choice(comparison):
        console.print(line)


def _render_refusals(console: Console, comparison: "StrategyComparison") -> None:
    """Draw, for each support that answers might need, the shares of questions that would be refused."""
    curves = {score.strategy: score.refusals for score in comparison.scores if score.refusals}
    if not curves:
        return
    needed = [f"{point.needed:g}" for point in next(iter(curves.values())).points]
    columns = [
        Column(
            name,
            (
                *(Text(f"{point.unanswerable:.0f} / {point.answerable:.0f}") for point in curve.points),
                Text(f"{curve.separation:.0f}"),
            ),
        )
        for name, curve in curves.items()
    ]
    console.print()
    print_wide(console, [*needed, "separation"], columns, heading="support needed")
    console.print(
        styled(
            "Unanswerable / answerable questions refused, in percent, if quotes needed this support (1 as they are). "
            "Separation: how often an answerable question has more support than an unanswerable one; 50 is chance.",
            "dim",
        )
    )


def _share_column(comparison: "StrategyComparison", name: str) -> Column:
    is_metric = name == comparison.metric
    cells = [_share(score.shares.get(name), is_metric=is_metric) for score in comparison.scores]
    best = comparison.best.name if comparison.best and is_metric else None
    return Column(
        name,
        tuple(
            styled(cell, "bold" if score.strategy == best else "")
            for cell, score in zip(cells, comparison.scores, strict=True)
        ),
    )


def _share(mean: "Mean | None", *, is_metric: bool) -> str:
    if mean is None:
        return "–"
    return str(mean) if is_metric else f"{mean.value:.1f}"


def _cost_column(comparison: "StrategyComparison", name: str) -> Column:
    values = [score.costs.get(name, 0.0) for score in comparison.scores]
    if name == "money":
        return Column(in_currency("money"), tuple(Text(money(round(value))) for value in values))
    digits = 1 if name == "calls" else 0
    return Column(name, tuple(Text(f"{value:,.{digits}f}") for value in values))


def _choice(comparison: "StrategyComparison") -> list[Text]:
    """Return which strategy to choose, how sure that is, and what is as good."""
    best = comparison.best
    if best is None:
        return [styled(f"No question has what {comparison.metric} needs, so no strategy is chosen.", "yellow")]
    score_by_name = {score.strategy: score for score in comparison.scores}
    share = score_by_name[best.name].shares[comparison.metric]
    lines = [
        styled(f"Choose {best.name}", "bold").append(
            f": {comparison.metric} {share} on {format_count(share.n, 'question')}. It is the best in "
            f"{best.share:.0f} % of resamples of the questions."
        )
    ]
    if comparison.as_good:
        rivals = ", ".join(f"{name} ({best.lead[name].value:.1f} behind)" for name in comparison.as_good)
        lines.append(styled(f"Not clearly worse, the difference may be chance: {rivals}."))
        cheapest = min((best.name, *comparison.as_good), key=lambda name: _price(score_by_name[name]))
        if _is_much_cheaper(score_by_name[cheapest], score_by_name[best.name]):
            lines.append(styled(f"Of these, {cheapest} costs the least for a question."))
    elif best.lead:
        lines.append(styled("Every other strategy is worse by more than chance."))
    if share.n < FEW_QUESTIONS:
        lines.append(styled(f"These are few questions: the choice is surer with {FEW_QUESTIONS} or more.", "yellow"))
    lines.append(styled(f'To use it, set strategy = "{best.name}" in quipu.toml.', "dim"))
    return lines


def _price(score: "StrategyScore") -> tuple[float, float, str]:
    return score.costs.get("money", 0.0) / MICRO, score.costs.get("CPU ms", 0.0), score.strategy


def _is_much_cheaper(score: "StrategyScore", other: "StrategyScore") -> bool:
    """Return whether a question costs clearly less money, or, for the same money, clearly less processor time."""
    (own_money, own_ms, _), (other_money, other_ms, _) = _price(score), _price(other)
    return own_money < CHEAPER * other_money or (own_money == other_money and own_ms < CHEAPER * other_ms)
