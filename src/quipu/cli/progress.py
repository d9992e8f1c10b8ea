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
from quipu.cli.output import amount, one_line, stderr, styled, tokens
from quipu.model import event
from quipu.model.answer import AnswerPiece

_READ = "read"
_DOCUMENTS = "publish"
_MAX_DETAIL_CELLS = 40


class _RateColumn(ProgressColumn):
    """Units finished per second."""

    def render(self, task: Task) -> Text:
        """Draw the rate of one stage."""
        speed = task.finished_speed or task.speed
        return Text(f"{speed:,.0f}/s" if speed else "", style="cyan")


@contextmanager
def progress(*, is_quiet: bool = False) -> Iterator[Callable[[event.Event], None]]:
    """Yield an event sink that draws a bar for each stage; in a pipe, with --json or if quiet, it draws nothing."""
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
        TextColumn("{task.fields[spent]}", style="dim", markup=False),
        console=console,
        transient=True,
    )
    with bars:
        yield _Bars(bars).update


class _Bars:
    """One bar for each stage, added at the first event of the stage.

    Finished documents have a bar of their own. Its total is the number of documents read or queued, so it shows how
    long the whole work will take. What was spent stands beside the bar of the last event.
    """

    def __init__(self, bars: Progress) -> None:
        self._bars = bars
        self._task_by_stage: dict[str, TaskID] = {}
        self._n_documents: int | None = None
        self._last: TaskID | None = None

    def update(self, progress_event: event.Event) -> None:
        """Draw an event."""
        if isinstance(progress_event, event.DocumentDone):
            task = self._task(_DOCUMENTS, self._n_documents)
            self._bars.advance(task)
            self._show_spending(task, progress_event.spent)
            return
        if progress_event.stage == _READ:
            self._n_documents = progress_event.n_total
        detail = one_line(progress_event.detail, _MAX_DETAIL_CELLS)
        task = self._task(progress_event.stage, progress_event.n_total)
        self._bars.update(task, completed=progress_event.n_done, total=progress_event.n_total, detail=detail)
        self._show_spending(task, progress_event.spent)

    def _show_spending(self, task: TaskID, spent: event.Spending) -> None:
        """Show what was spent beside this bar, and no longer beside another one."""
        if self._last not in (None, task):
            self._bars.update(self._last, spent="")
        self._last = task
        parts = [f"{tokens(spent.n_tokens)} tokens"] if spent.n_calls else []
        if spent.cost:
            parts.append(amount(spent.cost))
        self._bars.update(task, spent=", ".join(parts))

    def _task(self, stage: str, total: int | None) -> TaskID:
        if stage not in self._task_by_stage:
            self._task_by_stage[stage] = self._bars.add_task(stage, total=total, detail="", spent="")
        return self._task_by_stage[stage]


Watcher = Callable[[str, AnswerPiece], None]

_STAGES = {
    "understand": "understanding the question",
    "retrieve": "searching the index",
    "rerank": "ordering the passages",
    "generate": "waiting for the model to write",
}

_FRAME = 4  # columns of a panel that are not text
_FREE_LINES = 6  # of the screen, kept free
_MIN_LINES = 3
_PER_SECOND = 8


@contextmanager
def watching(console: Console, clock: Callable[[], float] = time.monotonic) -> Iterator[Watcher | None]:
    """Yield a function that takes the strategy and its next piece or stage; None without a terminal.

    The text is removed at the end, because the whole answer is printed in its place.
    """
    if not console.is_terminal or console.is_dumb_terminal:
        yield None
        return
    draft = _LiveAnswer(clock)
    with Live(draft, console=console, transient=True, refresh_per_second=_PER_SECOND):
        yield draft.add


class _LiveAnswer:
    """The last lines of an answer that fit on the screen, or the stage before it, and the elapsed time."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._strategy, self._text, self._stage = "", "", ""
        self._clock, self._started = clock, clock()

    def add(self, strategy: str, piece: AnswerPiece) -> None:
        """Add the next piece; another strategy starts a new answer."""
        if strategy != self._strategy:
            self._strategy, self._text, self._started = strategy, "", self._clock()
        self._text += piece.text
        self._stage = _STAGES.get(piece.stage, self._stage)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        lines = styled(self._text or f"{self._stage}…").wrap(console, max(options.max_width - _FRAME, 1))
        last_lines = Text("\n").join(lines[-max(console.height - _FREE_LINES, _MIN_LINES) :])
        title = f"{self._strategy} · {self._clock() - self._started:.0f} s".removeprefix(" · ")
        yield Panel(last_lines, title=styled(title, "dim"), title_align="left", box=ROUNDED, border_style="dim")
