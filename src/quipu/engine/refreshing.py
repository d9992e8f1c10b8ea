"""Refreshing: derivations that are no part of a commit, brought up to date in order of need."""

from dataclasses import replace

from quipu.derive.embedding import embed_stale
from quipu.derive.summaries import summarise_stale
from quipu.engine.parts import Parts
from quipu.errors import OverBudget, Overloaded, Refused, TooLong, Unavailable
from quipu.model.chat import Role
from quipu.model.report import RefreshReport
from quipu.ports.sink import Sink

# What a service may answer: reported, for what it is not needed for is done, and the next time may be better.
_STOPPING = (OverBudget, Overloaded, Refused, TooLong, Unavailable)


async def bring_up_to_date(parts: Parts, on_event: Sink, *, with_summaries: bool = True) -> RefreshReport:
    """Write the summaries that are missing, then compute the vectors; the report says what stood in the way."""
    report = await _summarise(parts, on_event) if with_summaries else RefreshReport()
    kept: list[int] = []
    stopped = ""
    try:
        await embed_stale(parts.store, parts.embedder, on_event, kept.append)
    except _STOPPING as error:
        stopped = str(error)
    return replace(report, n_embedded=sum(kept), stopped=report.stopped or stopped)


async def _summarise(parts: Parts, on_event: Sink) -> RefreshReport:
    llm = parts.models.llm(Role.SUMMARISE)
    if llm is None:
        return RefreshReport()
    try:
        done = await summarise_stale(
            parts.store, llm, on_event, tokenizer=parts.recipe.tokenizer, options=parts.summaries
        )
    except (OverBudget, Unavailable) as error:
        return RefreshReport(stopped=str(error))
    return RefreshReport(n_summarised=done.n_done, unsummarised=done.failed)
