"""Written answer: what a model writes, cleaned while it comes in and checked against the evidence at the end."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace

from quipu.answer.answer_input import AnswerDraft, AnswerInput
from quipu.answer.citation_check import CheckedStatements, check_citations
from quipu.answer.reply_cleaner import ReplyCleaner
from quipu.errors import Refused, Unavailable
from quipu.model.chat import ChatRequest, Completion, FinishReason, Message, ReplyLifetime, Role
from quipu.model.query import Query
from quipu.ports.providers import LLM, TextSink
from quipu.prompts import answer as prompt
from quipu.text.thinking import strip_thinking

UNSUPPORTED = "No passage supports what the model says."
UNSOURCED = "The strategy retrieves nothing: the model answered without sources."


async def write_answer(query: Query, answer_input: AnswerInput, llm: LLM, on_text: TextSink) -> AnswerDraft:
    """Return the answer of a model; `on_text` gets the text in pieces as it comes.

    Joined, the pieces are the text, with one exception: a thought at the start that no tag marks is in the pieces, but
    not in the text. Raises as `LLM.complete`, and Unavailable or Refused where the reply holds no text.
    """
    request = _request(query, answer_input)
    reply, cleaner, text = await _ask(request, answer_input, llm, on_text)
    while not text and reply.is_reused:  # the cached reply is useless: a new one may hold text
        request = replace(request, attempt=request.attempt + 1)
        reply, cleaner, text = await _ask(request, answer_input, llm, on_text)
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
        is_supported=is_supported and not says_no,
        notes=(*(() if is_supported or says_no else (UNSUPPORTED,)), *_notes(reply, query)),
        trace_notes=tuple(_trace_notes(cleaner, checked, reply)),
    )


def answer_messages(query: Query, answer_input: AnswerInput) -> tuple[Message, ...]:
    """Return the messages for a model: evidence and rules, or only the question if the strategy retrieves nothing."""
    if answer_input.evidence.searches_index:
        return answer_input.packed.messages(query)
    return prompt.render_without_evidence(query, boundary=prompt.make_answer_boundary(query, ""))


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


def _request(query: Query, answer_input: AnswerInput) -> ChatRequest:
    depends_on_documents = answer_input.evidence.searches_index or bool(query.history)
    return ChatRequest(
        messages=answer_messages(query, answer_input),
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
