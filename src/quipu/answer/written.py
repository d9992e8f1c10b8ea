"""Written: the answer of a model, cleaned while it is written and checked against the evidence when it is there."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, replace

from quipu.answer.cleaning import Cleaning
from quipu.answer.material import Material
from quipu.answer.sourcing import Sourced, source
from quipu.errors import Refused, Unavailable
from quipu.model.answer import Citation, Statement
from quipu.model.chat import ChatRequest, Completion, FinishReason, Message, ReplyLifetime, Role
from quipu.model.query import Query
from quipu.ports.providers import LLM, TextSink
from quipu.prompts import answer as prompt
from quipu.text.thinking import strip_thinking

UNSUPPORTED = "No passage supports what the model says."
UNSOURCED = "Nothing was looked up: this is what the model says by itself."


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A model's answer. `notes` are for its reader, `remarks` for the trace."""

    text: str
    generator: str
    citations: tuple[Citation, ...] = ()
    statements: tuple[Statement, ...] = ()
    is_supported: bool = False
    notes: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()


def messages_for(query: Query, material: Material) -> tuple[Message, ...]:
    """Return what a model is sent: the evidence with its rules, or the question alone where nothing was looked up."""
    if material.evidence.looks_up:
        return material.packed.messages(query)
    return prompt.render_without_evidence(query, boundary=prompt.make_answer_boundary(query, ""))


async def write(query: Query, material: Material, llm: LLM, on_text: TextSink) -> Written:
    """Return what a model answers; `on_text` gets the text in pieces as it comes.

    Together the pieces are the text, but where the model began with a thought and no tag to tell it: they hold it, the
    text does not. Raises as `LLM.complete`, and Unavailable or Refused where the reply holds no text.
    """
    request = _request(query, material)
    reply, cleaning, text = await _asked(request, material, llm, on_text)
    while not text and reply.is_reused:  # kept from before and of no use: the model may say something now
        request = replace(request, attempt=request.attempt + 1)
        reply, cleaning, text = await _asked(request, material, llm, on_text)
    if not text:
        raise _no_text(reply, query)
    generator = reply.model or llm.identity
    if not material.evidence.looks_up:
        return Written(text=text, generator=generator, notes=(UNSOURCED, *_notes(reply, query)))
    found = await asyncio.to_thread(source, text, material)
    is_supported, says_no = any(each.is_supported for each in found.statements), _says_no(cleaning, found, text)
    return Written(
        text=text,
        generator=generator,
        citations=found.citations,
        statements=found.statements,
        is_supported=is_supported and not says_no,
        notes=(*(() if is_supported or says_no else (UNSUPPORTED,)), *_notes(reply, query)),
        remarks=tuple(_remarks(cleaning, found, reply)),
    )


async def _asked(
    request: ChatRequest, material: Material, llm: LLM, on_text: TextSink
) -> tuple[Completion, Cleaning, str]:
    """Return the reply to a request, what was cleaned of it, and the text that is left."""
    streamed = _Streamed(_cleaning(material), on_text)
    reply = await llm.complete(request, streamed.take)
    streamed.finish(reply.text)
    cleaning = _cleaning(material)
    return reply, cleaning, cleaning.feed(_without_first_thought(reply.text)) + cleaning.end()


class _Streamed:
    """Passes a reply on, cleaned, while it comes; a provider may also give all of it at the end, or some."""

    def __init__(self, cleaning: Cleaning, on_text: TextSink) -> None:
        self._cleaning, self._on_text = cleaning, on_text
        self._n_taken = 0

    def take(self, text: str) -> None:
        self._n_taken += len(text)
        if cleaned := self._cleaning.feed(text):
            self._on_text(cleaned)

    def finish(self, whole: str) -> None:
        self.take(whole[self._n_taken :])
        if rest := self._cleaning.end():
            self._on_text(rest)


def _without_first_thought(reply: str) -> str:
    """Return a reply without the thought it begins with, also where no tag opens that; tags further on are text."""
    rest = strip_thinking(reply)
    return rest if reply.endswith(rest) else reply


def _cleaning(material: Material) -> Cleaning:
    passages, accounts = material.packed.passages, material.packed.accounts
    places = {place for passage in passages for place in (passage.chunk.title, passage.chunk.document_id)}
    titles = {account.title for account in accounts if account.title}
    numbers = [account.number for account in accounts] + [passage.number for passage in passages]
    return Cleaning(numbers, places | titles)


def _request(query: Query, material: Material) -> ChatRequest:
    return ChatRequest(
        messages=messages_for(query, material),
        role=Role.ANSWER,
        max_output_tokens=query.budget.answer,
        documents=material.documents,
        lifetime=ReplyLifetime.REVISION if material.evidence.looks_up or query.history else ReplyLifetime.FREE,
        revision=material.revision,
        subject=query.text,
    )


def _no_text(reply: Completion, query: Query) -> Unavailable | Refused:
    if reply.finish == FinishReason.FILTERED:
        return Refused("The provider withheld the answer.", remedy="Ask in other words, or use another model.")
    return Unavailable(
        f"The model wrote no answer (its reply ended with '{reply.finish}').",
        remedy=f"If it thinks at length, raise answer_tokens above {query.budget.answer:,}.",
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


def _says_no(cleaning: Cleaning, found: Sourced, text: str) -> bool:
    """Say whether the model marked its first statement as one that the evidence does not answer the question."""
    first_end = found.statements[0].end if found.statements else len(text)
    return any(place <= first_end for place in cleaning.marks.zeros)


def _remarks(cleaning: Cleaning, found: Sourced, reply: Completion) -> Iterator[str]:
    n_supported = sum(each.is_supported for each in found.statements)
    yield f"{n_supported} of {len(found.statements)} statements hold against what they cite"
    if found.n_translated:
        yield f"{found.n_translated} cite passages in another language: only their numbers were compared"
    if cleaning.marks.n_removed:
        yield f"{cleaning.marks.n_removed} numbers that cite nothing were removed"
    if cleaning.references.is_dropped:
        yield "a list of sources the model had added was left out"
    if reply.is_reused:
        yield "the model's reply was kept from before: nothing was asked"
