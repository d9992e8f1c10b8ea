"""Progress on a terminal: bars for long work, and an answer while it is written."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.box import ROUNDED
from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.panel import Panel
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from quipu.cli.options import shared
from quipu.cli.output import one_line, stderr, styled
from quipu.model import event

_READ = "read"
_DOCUMENTS = "publish"
_MAX_DETAIL_CELLS = 40


class _RateColumn(ProgressColumn):
    """Units finished a second."""

    def render(self, task: Task) -> Text:
        """Draw the rate of one stage."""
        speed = task.finished_speed or task.speed
        return Text(f"{speed:,.0f}/s" if speed else "", style="cyan")


@contextmanager
def progress(*, is_quiet: bool = False) -> Iterator[Callable[[event.Event], None]]:
    """Yield a sink for events that draws a bar for each stage; it draws nothing in a pipe, with --json or if quiet."""
    console = stderr()
    if is_quiet or shared().as_json or not console.is_terminal:
        yield lambda _event: None
        return
    bars = Progress(
        TextColumn("{task.description:<8}"),
        BarColumn(),
        MofNCompleteColumn(),
        _RateColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[detail]}", style="dim", markup=False),
        console=console,
        transient=True,
    )
    with bars:
        yield _Bars(bars).update


class _Bars:
    """One bar a stage, added when the stage is first heard of.

    Documents that are done make a bar of their own, with as many as were read or are waiting for its total: the one
    that tells how long the whole work will take.
    """

    def __init__(self, bars: Progress) -> None:
        self._bars = bars
        self._task_by_stage: dict[str, TaskID] = {}
        self._n_documents: int | None = None

    def update(self, told: event.Event) -> None:
        """Draw what an event tells."""
        if isinstance(told, event.DocumentDone):
            self._bars.advance(self._task(_DOCUMENTS, self._n_documents))
            return
        if told.stage == _READ:
            self._n_documents = told.n_total
        detail = one_line(told.detail, _MAX_DETAIL_CELLS)
        self._bars.update(
            self._task(told.stage, told.n_total), completed=told.n_done, total=told.n_total, detail=detail
        )

    def _task(self, stage: str, total: int | None) -> TaskID:
        if stage not in self._task_by_stage:
            self._task_by_stage[stage] = self._bars.add_task(stage, total=total, detail="")
        return self._task_by_stage[stage]


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
