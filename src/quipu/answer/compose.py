"""Compose: material to an answer, a model's or quotes, with a trace of the way; no view is open meanwhile."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace

from quipu.answer.material import Material
from quipu.answer.pack import as_text
from quipu.answer.quoted import EXTRACTIVE, quote
from quipu.answer.written import Written, messages_for, write
from quipu.errors import OverBudget, Overloaded, QuipuError, Refused, TooLong, Unavailable
from quipu.model.answer import Answer
from quipu.model.evidence import Timing, Trace
from quipu.model.query import Query
from quipu.ports.providers import LLM, TextSink, ignore_text

_NO_ANSWER = (OverBudget, Overloaded, Refused, TooLong, Unavailable)  # what quotes can stand in for


async def compose(
    query: Query,
    material: Material,
    *,
    llm: LLM | None = None,
    on_text: TextSink = ignore_text,
    clock: Callable[[], float] = time.perf_counter,
) -> Answer:
    """Return the answer that `material` gives: a model's, checked, or without one quotes, or that nothing was found.

    `on_text` is given the text in pieces, in order, as they come. Where there is no evidence no model is asked, unless
    nothing was looked up on purpose. Where the model cannot answer, or the budget allows no call, quotes stand in for
    it and a note says why; with `query.may_fall_back` off the error is raised.
    """
    begun = clock()
    written = await _answered(query, material, llm, on_text)
    timing = Timing(stage="answer", ms=(clock() - begun) * 1000)
    return Answer(
        text=written.text,
        generator=written.generator,
        citations=written.citations,
        is_supported=written.is_supported,
        context=material.packed.context(),
        prompt=as_text(messages_for(query, material)),
        statements=written.statements,
        notes=written.notes if written.is_supported else (*written.notes, *material.evidence.hidden),
        trace=Trace(
            strategy=query.strategy,
            revision=material.revision,
            evidence=material.evidence,
            dropped=material.packed.dropped,
            timings=(*material.timings, timing),
            stale=material.stale,
            notes=written.remarks,
        ),
    )


async def _answered(query: Query, material: Material, llm: LLM | None, on_text: TextSink) -> Written:
    has_matter = bool(material.packed.passages or material.packed.accounts) or not material.evidence.looks_up
    if llm is None or not has_matter:
        return await _quoted(query, material, on_text)
    try:
        return await write(query, material, llm, on_text)
    except _NO_ANSWER as error:
        if not query.may_fall_back:
            raise
        quoted = await _quoted(query, material, on_text)
        return replace(quoted, notes=(_fallback_note(error),))


async def _quoted(query: Query, material: Material, on_text: TextSink) -> Written:
    quoted = await asyncio.to_thread(quote, query, material)
    on_text(quoted.text)
    return Written(
        text=quoted.text,
        generator=EXTRACTIVE,
        citations=quoted.citations,
        is_supported=bool(quoted.citations),
        remarks=(quoted.note,),
    )


def _fallback_note(error: QuipuError) -> str:
    return f"Quoted, as the model did not answer: {error}"
