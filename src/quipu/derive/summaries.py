"""Summaries: entities and relations with more descriptions than are shown get one text of them all, by a model."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from quipu.derive.summarising import SummaryOptions, write_summary
from quipu.errors import OverBudget, QuipuError, Unavailable
from quipu.model.chat import ChatRequest, Completion
from quipu.model.delta import Delta
from quipu.model.event import Progress
from quipu.model.summary import Owner, Summary, SummaryFailure, SummaryReport, SummaryTask
from quipu.ports.llm import LLM
from quipu.ports.sink import Sink
from quipu.ports.store import Store
from quipu.ports.tokenizer import Tokenizer

READ_AT_ONCE = 16  # owners whose descriptions are read together

_Outcome = Summary | SummaryFailure | None  # None: not tried, since no call is made any more


async def summarise_stale(
    store: Store, llm: LLM, on_event: Sink, *, tokenizer: Tokenizer, options: SummaryOptions
) -> SummaryReport:
    """Write every summary that is missing and commit them as they come; one that cannot be made fails alone.

    `llm` keeps its replies, so that what was asked before costs nothing. Raises Unavailable or OverBudget where no call
    can be made any more, when all that was done is committed.
    """
    owners = await store.unsummarised()
    run = _Run(store=store, calls=_Calls(llm, 2 * options.n_ahead), tokenizer=tokenizer, options=options)
    try:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(run.feed(owners))
            for _ in range(2 * options.n_ahead):
                tasks.create_task(run.work())
            await run.collect(len(owners), on_event)
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from None
    if run.calls.end is not None:
        raise run.calls.end
    return replace(run.report, n_calls=run.calls.n_asked, n_reused=run.calls.n_reused)


class _Calls:
    """Asks the model, a bounded number of requests at once, until it says that nothing more will be answered."""

    def __init__(self, llm: LLM, n_at_once: int) -> None:
        self.end: Unavailable | OverBudget | None = None
        self.n_asked, self.n_reused = 0, 0
        self._llm = llm
        self._room = asyncio.Semaphore(n_at_once)

    async def ask(self, request: ChatRequest) -> Completion:
        """Return the completion with the name of its model; what is under way when calls end is still waited for."""
        async with self._room:
            if self.end is not None:
                raise self.end
            try:
                completion = await self._llm.complete(request)
            except (Unavailable, OverBudget) as error:
                self.end = self.end or error
                raise
        self.n_asked += not completion.is_reused
        self.n_reused += completion.is_reused
        return replace(completion, model=completion.model or self._llm.identity)


@dataclass(slots=True, kw_only=True)
class _Run:
    """One pass over all that waits: a feeder reads, workers write, and what they have written is committed."""

    store: Store
    calls: _Calls
    tokenizer: Tokenizer
    options: SummaryOptions
    report: SummaryReport = field(default_factory=SummaryReport)
    tasks: "asyncio.Queue[SummaryTask | None]" = field(default_factory=lambda: asyncio.Queue(maxsize=READ_AT_ONCE))
    outcomes: "asyncio.Queue[_Outcome]" = field(default_factory=asyncio.Queue)

    async def feed(self, owners: Sequence[Owner]) -> None:
        """Read what is to be summed up, a few owners ahead of the workers."""
        for some in _blocks(owners):
            tasks = await self.store.summary_tasks(some) if self.calls.end is None else []
            for task in tasks:
                await self.tasks.put(task)
            for _ in range(len(some) - len(tasks)):
                self.outcomes.put_nowait(None)
        for _ in range(2 * self.options.n_ahead):
            await self.tasks.put(None)

    async def work(self) -> None:
        """Write summaries until there is nothing more to read."""
        while task := await self.tasks.get():
            self.outcomes.put_nowait(await self._write(task))

    async def collect(self, total: int, on_event: Sink) -> None:
        """Commit what has been written whenever the last commit is done."""
        n_left = total
        while n_left:
            arrived = [await self.outcomes.get()]
            while not self.outcomes.empty():
                arrived.append(self.outcomes.get_nowait())
            n_left -= len(arrived)
            await self._commit(arrived)
            on_event(Progress(stage="summarise", done=total - n_left, total=total))

    async def _write(self, task: SummaryTask) -> _Outcome:
        try:
            return await write_summary(task, self.calls.ask, self.tokenizer, self.options)
        except (Unavailable, OverBudget):
            return None
        except QuipuError as error:
            return SummaryFailure(owner=task.owner, error=str(error))

    async def _commit(self, arrived: Sequence[_Outcome]) -> None:
        written = [each for each in arrived if isinstance(each, Summary)]
        failed = [each for each in arrived if isinstance(each, SummaryFailure)]
        n_outdated = (await self.store.commit(Delta(summaries=written))).n_outdated if written else 0
        self.report = replace(
            self.report,
            n_done=self.report.n_done + len(written) - n_outdated,
            n_outdated=self.report.n_outdated + n_outdated,
            failed=tuple(sorted((*self.report.failed, *failed), key=lambda each: each.owner)),
        )


def _blocks(owners: Sequence[Owner]) -> Iterator[Sequence[Owner]]:
    for start in range(0, len(owners), READ_AT_ONCE):
        yield owners[start : start + READ_AT_ONCE]
