"""Watching: an answer on a terminal while it is written, out of the way again when it is whole."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.box import ROUNDED
from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.panel import Panel
from rich.text import Text

from quipu.cli.output import styled

Watcher = Callable[[str, str], None]

_FRAME = 4  # columns of a panel that are not text
_BESIDE = 6  # lines of the screen that are left free
_MIN_LINES = 3
_PER_SECOND = 8


@contextmanager
def watching(console: Console, clock: Callable[[], float] = time.monotonic) -> Iterator[Watcher | None]:
    """Yield what is told the strategy and the next piece of its answer; None where there is no terminal to show it on.

    What was shown is taken away at the end: the whole answer is printed in its place.
    """
    if not console.is_terminal or console.is_dumb_terminal:
        yield None
        return
    draft = _Draft(clock)
    with Live(draft, console=console, transient=True, refresh_per_second=_PER_SECOND):
        yield draft.add


class _Draft:
    """As much of the end of an answer as fits on the screen, and how long it has taken."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._strategy, self._text = "", ""
        self._clock, self._begun = clock, clock()

    def add(self, strategy: str, text: str) -> None:
        """Take the next piece; with another strategy a new answer begins."""
        if strategy != self._strategy:
            self._strategy, self._text, self._begun = strategy, "", self._clock()
        self._text += text

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        lines = styled(self._text or "…").wrap(console, max(options.max_width - _FRAME, 1))
        shown = Text("\n").join(lines[-max(console.height - _BESIDE, _MIN_LINES) :])
        title = f"{self._strategy} · {self._clock() - self._begun:.0f} s".removeprefix(" · ")
        yield Panel(shown, title=styled(title, "dim"), title_align="left", box=ROUNDED, border_style="dim")
