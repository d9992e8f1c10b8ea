"""Composition: the answer from its input, written by a model or quoted, with the trace; no view is open meanwhile."""

import asyncio
import re
import time
from collections.abc import Callable
from dataclasses import replace

from quipu.answer.answer_input import AnswerDraft, AnswerInput
from quipu.answer.context import join_messages
from quipu.answer.question_kind import QuestionKind, analyse_question
from quipu.answer.quoted_answer import EXTRACTIVE, quote_answer
from quipu.answer.written_answer import answer_messages, write_answer
from quipu.errors import OverBudget, Overloaded, Refused, TooLong, Unavailable
from quipu.model.answer import Answer
from quipu.model.evidence import Evidence, Timing, Trace
from quipu.model.query import Query
from quipu.ports.providers import LLM, TextSink, ignore_text
from quipu.ports.store import Store

_SMALL_TALK_REPLY = {
    "": "Hello! Ask me something about your documents, or what they are about.",
    "ru": "Здравствуйте! Спросите меня о том, что есть в ваших документах, или о чём они.",
    "zh": "你好！请就您的文档提问，也可以问这些文档主要讲了什么。",
}
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
        highlights=draft.highlights,
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


def is_small_talk(text: str) -> bool:
    """Return whether a question is a greeting, thanks or the like, which needs no evidence."""
    return analyse_question(text).kind is QuestionKind.SMALL_TALK


async def reply_to_small_talk(query: Query, store: Store, on_text: TextSink = ignore_text) -> Answer:
    """Return a short reply in the language of a greeting, without retrieval and without a model."""
    script = (
        "ru" if re.search("[а-яё]", query.text, re.IGNORECASE) else "zh" if re.search("[一-鿿]", query.text) else ""
    )
    on_text(_SMALL_TALK_REPLY[script])
    async with store.view() as view:
        revision = view.revision
    return Answer(
        text=_SMALL_TALK_REPLY[script],
        generator=EXTRACTIVE,
        citations=(),
        is_supported=False,
        trace=Trace(strategy=query.strategy, revision=revision, evidence=Evidence(searches_index=False)),
    )
