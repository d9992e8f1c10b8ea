"""The answer from its input: written by a model and checked against the evidence, or quoted; no view is open meanwhile.

What a model writes is cleaned while it comes in.
"""

import asyncio
import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from quipu.answer.answer_input import AnswerDraft, AnswerInput
from quipu.answer.citation_check import CheckedStatements, check_citations, find_citation_marks
from quipu.answer.context import PackedEvidence, join_messages
from quipu.answer.question_kind import QuestionKind, analyse_question
from quipu.answer.quoted_answer import EXTRACTIVE, quote_answer
from quipu.answer.reply_cleaner import ReplyCleaner
from quipu.errors import OverBudget, Overloaded, Refused, TooLong, Unavailable
from quipu.model.answer import Answer, Citation
from quipu.model.chat import ChatRequest, Completion, FinishReason, Message, ReplyLifetime, Role
from quipu.model.evidence import Evidence, Timing, Trace
from quipu.model.query import Query
from quipu.ports.providers import LLM, TextSink, ignore_text
from quipu.ports.store import Store
from quipu.prompts import answer as prompt
from quipu.text.model_text import strip_thinking

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

    Where `query.with_answer` is off, there is only the context and the prompt: the text is empty.

    `on_text` gets the text in pieces, in order, as they come. Without evidence no model is asked, except if the
    strategy never retrieves anything. If the model fails, or the budget allows no call, the answer is quoted and a note
    says why; with `query.may_fall_back` off the error is raised.
    """
    start = clock()
    draft = _with_dates_and_copies(await _draft(query, answer_input, llm, on_text), answer_input)
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
        citation_marks=draft.citation_marks,
        notes=draft.notes if draft.is_supported else (*draft.notes, *answer_input.evidence.omissions),
        trace=Trace(
            strategy=query.strategy,
            revision=answer_input.revision,
            evidence=answer_input.evidence,
            dropped=answer_input.packed.dropped,
            timings=(*answer_input.timings, timing),
            stale=answer_input.stale,
            notes=draft.trace_notes,
            support=draft.support,
        ),
    )


def _with_dates_and_copies(draft: AnswerDraft, answer_input: AnswerInput) -> AnswerDraft:
    """Return a draft whose citations name the dates of their documents, and the other documents with the same text."""
    dates, copies = answer_input.date_by_document, answer_input.copies_by_document
    if not dates and not copies:
        return draft

    def complete(citations: Sequence[Citation]) -> tuple[Citation, ...]:
        return tuple(
            replace(citation, date=dates.get(citation.document_id, ""), also_in=copies.get(citation.document_id, ()))
            for citation in citations
        )

    statements = (replace(statement, citations=complete(statement.citations)) for statement in draft.statements)
    return replace(draft, citations=complete(draft.citations), statements=tuple(statements))


async def _draft(query: Query, answer_input: AnswerInput, llm: LLM | None, on_text: TextSink) -> AnswerDraft:
    if not query.with_answer:
        return AnswerDraft(text="", generator=EXTRACTIVE)
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


UNSUPPORTED = "No passage supports what the model says."
UNSOURCED = "The strategy retrieves nothing: the model answered without sources."


async def write_answer(query: Query, answer_input: AnswerInput, llm: LLM, on_text: TextSink) -> AnswerDraft:
    """Return the answer of a model; `on_text` gets the text in pieces as it comes.

    With `query.passages_per_call` the model answers from the first passages, then refines its answer with the next
    ones, part by part, as LangChain's RefineDocumentsChain does; only the last reply is passed on.

    Joined, the pieces are the text, with one exception: a thought at the start that no tag marks is in the pieces, but
    not in the text. Raises as `LLM.complete`, and Unavailable or Refused where the reply holds no text.
    """
    *earlier_parts, last_part = answer_input.packed.in_parts(query.passages_per_call)
    answer_so_far = ""
    for part in earlier_parts:
        request = _request(query, answer_input, part, answer_so_far)
        answer_so_far = (await _ask_for_text(request, answer_input, llm, ignore_text))[2] or answer_so_far
    request = _request(query, answer_input, last_part, answer_so_far)
    reply, cleaner, text = await _ask_for_text(request, answer_input, llm, on_text)
    if not text:
        raise _no_text_error(reply, query)
    generator = reply.model or llm.identity
    if not answer_input.evidence.searches_index:
        return AnswerDraft(text=text, generator=generator, notes=(UNSOURCED, *_notes(reply, query)))
    checked = await asyncio.to_thread(check_citations, text, answer_input)
    is_supported = any(statement.is_supported for statement in checked.statements)
    says_no = _says_no(cleaner, checked, text)
    return AnswerDraft(
        text=text,
        generator=generator,
        citations=checked.citations,
        statements=checked.statements,
        citation_marks=find_citation_marks(text),
        is_supported=is_supported and not says_no,
        notes=(*(() if is_supported or says_no else (UNSUPPORTED,)), *_notes(reply, query)),
        trace_notes=(
            *([f"the answer was refined over {len(earlier_parts) + 1} calls"] if earlier_parts else []),
            *_trace_notes(cleaner, checked, reply),
        ),
    )


def answer_messages(query: Query, answer_input: AnswerInput) -> tuple[Message, ...]:
    """Return the messages for a model: evidence and rules, or only the question if the strategy retrieves nothing.

    Where the answer is refined over several calls, they are those of the first call.
    """
    if answer_input.evidence.searches_index:
        return answer_input.packed.in_parts(query.passages_per_call)[0].messages(query)
    return prompt.render_without_evidence(query, boundary=prompt.make_answer_boundary(query, ""))


async def _ask_for_text(
    request: ChatRequest, answer_input: AnswerInput, llm: LLM, on_text: TextSink
) -> tuple[Completion, ReplyCleaner, str]:
    """Return what `_ask` returns; a cached reply without text is useless, so that a new one is asked for."""
    reply, cleaner, text = await _ask(request, answer_input, llm, on_text)
    while not text and reply.is_reused:
        request = replace(request, attempt=request.attempt + 1)
        reply, cleaner, text = await _ask(request, answer_input, llm, on_text)
    return reply, cleaner, text


async def _ask(
    request: ChatRequest, answer_input: AnswerInput, llm: LLM, on_text: TextSink
) -> tuple[Completion, ReplyCleaner, str]:
    """Return the reply to a request, the cleaner that cleaned it, and the clean text."""
    stream = _CleanedStream(_cleaner(answer_input), on_text)
    reply = await llm.complete(request, stream.feed)
    stream.finish(reply.text)
    cleaner = _cleaner(answer_input)
    return reply, cleaner, cleaner.feed(_without_first_thought(reply.text)) + cleaner.end()


class _CleanedStream:
    """Passes a reply on while it comes, cleaned; a provider may give all of it, or the rest, only at the end."""

    def __init__(self, cleaner: ReplyCleaner, on_text: TextSink) -> None:
        self._cleaner, self._on_text = cleaner, on_text
        self._n_received = 0

    def feed(self, text: str) -> None:
        self._n_received += len(text)
        if cleaned := self._cleaner.feed(text):
            self._on_text(cleaned)

    def finish(self, whole: str) -> None:
        self.feed(whole[self._n_received :])
        if rest := self._cleaner.end():
            self._on_text(rest)


def _without_first_thought(reply: str) -> str:
    """Return a reply without the thought it begins with, even if no tag opens it; tags further on are text."""
    rest = strip_thinking(reply)
    return rest if reply.endswith(rest) else reply


def _cleaner(answer_input: AnswerInput) -> ReplyCleaner:
    passages, secondary = answer_input.packed.passages, answer_input.packed.secondary
    places = {place for passage in passages for place in (passage.chunk.title, passage.chunk.document_id)}
    titles = {source.title for source in secondary if source.title}
    numbers = [source.number for source in secondary] + [passage.number for passage in passages]
    return ReplyCleaner(numbers, places | titles)


def _request(query: Query, answer_input: AnswerInput, part: PackedEvidence, answer_so_far: str) -> ChatRequest:
    """Return the request for an answer from a part of the evidence, or for refining the answer so far with it."""
    is_searched = answer_input.evidence.searches_index
    messages = part.messages(query, answer_so_far) if is_searched else answer_messages(query, answer_input)
    depends_on_documents = answer_input.evidence.searches_index or bool(query.history)
    return ChatRequest(
        messages=messages,
        role=Role.ANSWER,
        max_output_tokens=query.budget.answer,
        documents=answer_input.documents,
        lifetime=ReplyLifetime.REVISION if depends_on_documents else ReplyLifetime.FREE,
        revision=answer_input.revision,
        subject=query.text,
    )


def _no_text_error(reply: Completion, query: Query) -> Unavailable | Refused:
    if reply.finish == FinishReason.FILTERED:
        return Refused("The provider withheld the answer.", remedy="Ask in other words, or use another model.")
    return Unavailable(
        f"The model wrote no answer (its reply ended with '{reply.finish}').",
        remedy=f"If the model thinks for long, raise answer_tokens above {query.budget.answer:,}.",
    )


def _notes(reply: Completion, query: Query) -> Iterator[str]:
    match reply.finish:
        case FinishReason.LENGTH:
            yield f"The answer was cut off at {query.budget.answer:,} tokens: raise answer_tokens for more."
        case FinishReason.FILTERED:
            yield "The provider withheld the rest of the answer."
        case FinishReason.INTERRUPTED:
            yield "The model broke off: the rest of the answer is missing."
        case FinishReason.STOP:
            pass


def _says_no(cleaner: ReplyCleaner, checked: CheckedStatements, text: str) -> bool:
    """Return whether the model marked its first statement with [0]: the evidence does not answer the question."""
    first_end = checked.statements[0].end if checked.statements else len(text)
    return any(place <= first_end for place in cleaner.marks.zeros)


def _trace_notes(cleaner: ReplyCleaner, checked: CheckedStatements, reply: Completion) -> Iterator[str]:
    n_supported = sum(statement.is_supported for statement in checked.statements)
    yield f"{n_supported} of {len(checked.statements)} statements are supported by what they cite"
    if checked.n_translated:
        yield f"{checked.n_translated} cite passages in another language: only their numbers were compared"
    if cleaner.marks.n_removed:
        yield f"{cleaner.marks.n_removed} numbers that cite nothing were removed"
    if cleaner.source_list.is_dropped:
        yield "a list of sources that the model had added was removed"
    if reply.is_reused:
        yield "the model's reply came from the cache: nothing was asked"
