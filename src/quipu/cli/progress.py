"""Progress of long work, drawn on a terminal's stderr: counts, rate and time left for each stage."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

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
from quipu.cli.output import one_line, stderr
from quipu.model import event


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
    """One bar a stage, added when the stage is first heard of."""

    def __init__(self, bars: Progress) -> None:
        self._bars = bars
        self._task_by_stage: dict[str, TaskID] = {}

    def update(self, told: event.Event) -> None:
        """Draw what an event tells."""
        if not isinstance(told, event.Progress):
            return
        if told.stage not in self._task_by_stage:
            self._task_by_stage[told.stage] = self._bars.add_task(told.stage, detail="")
        self._bars.update(
            self._task_by_stage[told.stage], completed=told.done, total=told.total, detail=one_line(told.detail, 40)
        )
