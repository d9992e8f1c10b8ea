"""Summaries: entities and relations with more descriptions than are shown get one text of them all, by a model."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from quipu.derive.summarising import SummaryOptions, write_summary
from quipu.derive.writing import Calls, Work, write_all
from quipu.errors import OverBudget, QuipuError, Unavailable
from quipu.model.delta import Delta
from quipu.model.event import EventSink, Progress
from quipu.model.summary import Summary, SummaryFailure, SummaryResult, SummaryTarget, SummaryTask
from quipu.ports.providers import LLM, Tokenizer
from quipu.ports.store import Store


async def summarise_stale(
    store: Store, llm: LLM, on_event: EventSink, *, tokenizer: Tokenizer, options: SummaryOptions
) -> SummaryResult:
    """Write every summary that is missing and commit them as they come; one that cannot be made fails alone.

    `llm` keeps its replies, so that what was asked before costs nothing. Raises Unavailable or OverBudget where no call
    can be made any more, when all that was done is committed.
    """
    owners = await store.summary_targets()
    n_at_once = 2 * options.n_ahead
    run = _Run(store=store, calls=Calls(llm, n_at_once), tokenizer=tokenizer, options=options)

    def on_done(done: int) -> None:
        on_event(Progress(stage="summarise", n_done=done, n_total=len(owners)))

    work: Work[SummaryTarget, SummaryTask, Summary | SummaryFailure] = Work(
        read=run.read, write=run.write, keep=run.keep
    )
    await write_all(owners, work, n_at_once=n_at_once, on_done=on_done)
    if run.calls.end is not None:
        raise run.calls.end
    return replace(run.report, n_calls=run.calls.n_asked, n_reused=run.calls.n_reused)


@dataclass(slots=True, kw_only=True)
class _Run:
    """One pass over all that waits."""

    store: Store
    calls: Calls
    tokenizer: Tokenizer
    options: SummaryOptions
    report: SummaryResult = field(default_factory=SummaryResult)

    async def read(self, owners: Sequence[SummaryTarget]) -> Sequence[SummaryTask] | None:
        """Read what is to be summed up; None once no call is made any more."""
        return await self.store.summary_tasks(owners) if self.calls.end is None else None

    async def write(self, task: SummaryTask) -> Summary | SummaryFailure | None:
        """Write one summary."""
        try:
            return await write_summary(task, self.calls.ask, self.tokenizer, self.options)
        except (Unavailable, OverBudget):
            return None
        except QuipuError as error:
            return SummaryFailure(target=task.target, error=str(error))

    async def keep(self, arrived: Sequence[Summary | SummaryFailure]) -> None:
        """Commit what has been written."""
        written = [each for each in arrived if isinstance(each, Summary)]
        failed = [each for each in arrived if isinstance(each, SummaryFailure)]
        n_outdated = (await self.store.commit(Delta(summaries=written))).n_outdated if written else 0
        self.report = replace(
            self.report,
            n_done=self.report.n_done + len(written) - n_outdated,
            n_outdated=self.report.n_outdated + n_outdated,
            failed=tuple(sorted((*self.report.failed, *failed), key=lambda each: each.target)),
        )
