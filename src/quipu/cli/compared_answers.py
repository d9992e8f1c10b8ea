"""Answers of compared strategies: a panel for each, and one for all that say the same of the same passages."""

import re
from collections.abc import Hashable, Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.panel import Panel

from quipu.cli.answers import panel_of, render_panels
from quipu.model.answer import Answer
from quipu.model.comparison import Compared
from quipu.text.counted import counted

_NUMBERS = re.compile(r"\s*\[[\d,; ]+\]")  # of passages, which each strategy counts in its own order
_FRAME = 8  # cells of a panel beside its title


def render_answers(console: Console, rows: Sequence[Compared]) -> None:
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
    sources = frozenset((each.document_id, each.start, each.end) for each in answer.citations)
    words = _NUMBERS.sub("", answer.text)
    return words, sources, answer.generator, answer.is_supported, answer.notes, answer.trace.stale


def _panel(names: Sequence[str], answer: Answer, width: int) -> Panel:
    title = f"{', '.join(names)} · {answer.generator}"
    if cell_len(title) <= width:
        return panel_of(answer, title, has_usage=len(names) == 1)
    title = f"{counted(len(names), 'strategy')} · {answer.generator}"
    return panel_of(answer, title, heading=", ".join(names), has_usage=False)
