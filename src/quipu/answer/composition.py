"""Composition: the answer from its input, written by a model or quoted, with the trace; no view is open meanwhile."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace

from quipu.answer.answer_input import AnswerDraft, AnswerInput
from quipu.answer.context import join_messages
from quipu.answer.extractive import quote_answer
from quipu.answer.written_answer import answer_messages, write_answer
from quipu.errors import OverBudget, Overloaded, Refused, TooLong, Unavailable
from quipu.model.answer import Answer
from quipu.model.evidence import Timing, Trace
from quipu.model.query import Query
from quipu.ports.providers import LLM, TextSink, ignore_text

_MODEL_FAILURES = (OverBudget, Overloaded, Refused, TooLong, Unavailable)  # quotes can replace the answer


async def compose_answer(
    query: Query,
    answer_input: AnswerInput,
    *,
    llm: LLM | None = None,
    on_text: TextSink = ignore_text,
    clock: Callable[[], float] = time.perf_counter,
) -> Answer:
    """Return the answer: text by a model, checked; without a model quotes, or the statement that nothing was found.

    `on_text` gets the text in pieces, in order, as they come. Without evidence no model is asked, except if the
    strategy never retrieves anything. If the model fails, or the budget allows no call, the answer is quoted and a note
    says why; with `query.may_fall_back` off the error is raised.
    """
    start = clock()
    draft = await _draft(query, answer_input, llm, on_text)
    timing = Timing(stage="answer", ms=(clock() - start) * 1000)
    return Answer(
        text=draft.text,
        generator=draft.generator,
        citations=draft.citations,
        is_supported=draft.is_supported,
        context=answer_input.packed.context(),
        prompt=join_messages(answer_messages(query, answer_input)),
        statements=draft.statements,
        notes=draft.notes if draft.is_supported else (*draft.notes, *answer_input.evidence.omissions),
        trace=Trace(
            strategy=query.strategy,
            revision=answer_input.revision,
            evidence=answer_input.evidence,
            dropped=answer_input.packed.dropped,
            timings=(*answer_input.timings, timing),
            stale=answer_input.stale,
            notes=draft.trace_notes,
        ),
    )


async def _draft(query: Query, answer_input: AnswerInput, llm: LLM | None, on_text: TextSink) -> AnswerDraft:
    packed = answer_input.packed
    has_evidence = bool(packed.passages or packed.secondary) or not answer_input.evidence.searches_index
    if llm is None or not has_evidence:
        return await _quote(query, answer_input, on_text)
    try:
        return await write_answer(query, answer_input, llm, on_text)
    except _MODEL_FAILURES as error:
        if not query.may_fall_back:
            raise
        quoted = await _quote(query, answer_input, on_text)
        return replace(quoted, notes=(f"Quoted, as the model did not answer: {error}",))


async def _quote(query: Query, answer_input: AnswerInput, on_text: TextSink) -> AnswerDraft:
    draft = await asyncio.to_thread(quote_answer, query, answer_input)
    on_text(draft.text)
    return draft
