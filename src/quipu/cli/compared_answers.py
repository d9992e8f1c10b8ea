"""Answers of compared strategies: a panel for each, and one for all that say the same of the same passages."""

import re
from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.panel import Panel

from quipu.cli.answers import panel_of, render_panels
from quipu.model.answer import Answer, Citation, StrategyResult
from quipu.text.formatting import format_count

_MARK = r"\[\d+(?:[,; ]+\d+)*\]"  # of passages, which each strategy counts in its own order
_MARKS = rf"(?P<marks>\s*{_MARK}(?:\s*{_MARK})*)"
_FRAME = 8  # cells of a panel beside its title


def render_answers(console: Console, rows: Sequence[StrategyResult]) -> None:
    """Draw what strategies said."""
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
    """Return what makes an answer another one: its words, what it rests on, and what is to be known about it."""
    sources = frozenset(map(_source, answer.citations))
    return tuple(_words(answer)), sources, answer.generator, answer.is_supported, answer.notes, answer.trace.stale


def _source(citation: Citation) -> Hashable:
    return citation.document_id, citation.start, citation.end


def _words(answer: Answer) -> Iterator[Hashable]:
    """Yield the text of an answer in pieces, what is cited in place of its numbers; quotes are left as they are."""
    sources: dict[int, set[Hashable]] = defaultdict(set)
    for each in answer.citations:
        sources[each.number].add(_source(each))
    quotes = sorted({each.quote for each in answer.citations if each.quote}, key=len, reverse=True)
    end = 0
    for match in re.finditer("|".join((*map(re.escape, quotes), _MARKS)), answer.text):
        if match["marks"]:
            yield answer.text[end : match.start()]
            yield from _cited(match["marks"], sources)
            end = match.end()
    yield answer.text[end:]


def _cited(marks: str, sources: Mapping[int, set[Hashable]]) -> Iterator[Hashable]:
    """Yield the marks that cite nothing as they are, then all that the others cite, in whatever order."""
    cited: set[Hashable] = set()
    for mark in re.findall(_MARK, marks):
        numbers = {int(each) for each in re.findall(r"\d+", mark)}
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
