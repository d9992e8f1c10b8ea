"""Cached chat model: complete replies are saved with their cost, so that no request is paid for twice."""

import asyncio
import json
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from quipu.model.chat import ChatRequest, Completion, FinishReason, ReplyLifetime, TokenCount
from quipu.model.usage import UsageRow
from quipu.ports.providers import LLM, TextSink, ignore_text
from quipu.ports.store import CallReply, ReplyCache
from quipu.wrap.meter import Meter
from quipu.wrap.persistence import wait_for_end, write_durably

CACHEABLE = frozenset({FinishReason.STOP, FinishReason.LENGTH})

_Ask = Callable[[TextSink], Coroutine[Any, Any, Completion]]


class CachedLLM:
    """A chat model whose complete replies are saved. `ask` returns the model to ask, counted by the meter it gets.

    A reply is saved under the identity of the model that wrote it, and looked up under each of `identities`: the model
    and its fallbacks. It is durable, with its cost, before it is returned. A reply that broke off, was filtered or is
    empty is not saved, because asking again may help. Equal requests at the same time share one call.
    """

    def __init__(
        self,
        ask: Callable[[Meter], LLM],
        identities: Sequence[str],
        replies: ReplyCache,
        meter: Meter,
        in_flight: "InFlightRequests | None" = None,
    ) -> None:
        self._ask = ask
        self._identities = identities
        self._replies = replies
        self._meter = meter
        self._in_flight = in_flight or InFlightRequests()

    @property
    def identity(self) -> str:
        return self._identities[0]

    async def complete(self, request: ChatRequest, on_text: TextSink = ignore_text) -> Completion:
        """Return the saved reply to the request, or ask the model. Raises as `LLM.complete` does."""

        async def find_or_ask(send_text: TextSink) -> Completion:
            return await self._find(request) or await self._ask_model(request, send_text)

        completion = await self._in_flight.join(request.hash(self.identity), find_or_ask, on_text)
        if completion.is_reused and request.documents and _is_complete(completion):
            await self._save(request, completion, ())  # it may have been saved for other documents
        return completion

    async def _find(self, request: ChatRequest) -> Completion | None:
        for identity in self._identities:
            input_hash = request.hash(identity)
            payload = (await self._replies.find_replies([input_hash])).get(input_hash)
            if payload is not None and (completion := read_payload(payload)) is not None:
                return replace(completion, is_reused=True, model="" if identity == self.identity else identity)
        return None

    async def _ask_model(self, request: ChatRequest, on_text: TextSink) -> Completion:
        call_meter = self._meter.child()
        if request.lifetime in (ReplyLifetime.REVISION, ReplyLifetime.ALL_DOCUMENTS) and request.revision is None:
            request = replace(request, revision=await self._replies.facts_revision())
        try:
            completion = await self._ask(call_meter).complete(request, on_text)
        except BaseException:
            await self._save_cost(call_meter.rows())  # failed attempts may have to be paid for
            raise
        if _is_complete(completion):
            await self._save(request, completion, call_meter.rows())
        else:
            await self._save_cost(call_meter.rows())
        return completion

    async def _save(self, request: ChatRequest, completion: Completion, rows: Sequence[UsageRow]) -> None:
        key = request.hash(completion.model or self.identity)
        reply = CallReply(input_hash=key, payload=write_payload(completion), request=request)
        await write_durably(partial(self._replies.record_call, rows, reply))

    async def _save_cost(self, rows: Sequence[UsageRow]) -> None:
        if rows:
            await write_durably(partial(self._replies.record_call, rows))


@dataclass(frozen=True, slots=True)
class UnkeptReplies:
    """A ReplyCache to which nothing is added: it finds the replies of another one, and counts costs there."""

    replies: ReplyCache

    async def find_replies(self, input_hashes: Sequence[str]) -> dict[str, str]:
        """Return the replies stored under these hashes."""
        return await self.replies.find_replies(input_hashes)

    async def record_call(self, usage: Sequence[UsageRow], reply: CallReply | None = None) -> None:
        """Count what a call cost; the reply is not stored."""
        if usage:
            await self.replies.record_call(usage)

    async def facts_revision(self) -> int:
        """Return the revision of the last change of facts."""
        return await self.replies.facts_revision()


class InFlightRequests:
    """The requests that are running. An equal request joins the running one. All calls of a role share this object."""

    def __init__(self) -> None:
        self._by_key: dict[str, _InFlightRequest] = {}

    async def join(self, key: str, ask: _Ask, on_text: TextSink) -> Completion:
        """Return the result of `ask`, or of the running request with the same key, then marked as reused."""
        while (running := self._by_key.get(key)) is not None and running.is_cancelled:
            await asyncio.wait({running.task})
        if running is not None:
            return replace(await running.join(on_text), is_reused=True)
        started = _InFlightRequest(ask, is_streamed=on_text is not ignore_text)
        self._by_key[key] = started
        started.task.add_done_callback(lambda _: self._by_key.pop(key))
        return await started.join(on_text)


class _InFlightRequest:
    """One running request and all its listeners. It is cancelled when its last listener is cancelled.

    The reply is streamed if the first listener wants the text; otherwise listeners get the text at the end. An error of
    a listener's own sink is raised to that listener only, after the reply has ended.
    """

    def __init__(self, ask: _Ask, *, is_streamed: bool) -> None:
        self.is_cancelled = False
        self._pieces: list[str] = []
        self._listeners: list[_Listener] = []
        self.task = asyncio.create_task(ask(self._send if is_streamed else ignore_text))

    async def join(self, on_text: TextSink) -> Completion:
        """Wait for the result. `on_text` first gets the text so far, then the rest as it arrives."""
        listener = _Listener(on_text)
        listener.send("".join(self._pieces))
        self._listeners.append(listener)
        try:
            completion = await asyncio.shield(self.task)
        finally:
            self._listeners.remove(listener)
            if not self._listeners and not self.task.done():
                self.is_cancelled = True
                self.task.cancel()
                await wait_for_end(self.task)
        if not self._pieces:
            listener.send(completion.text)
        if listener.error is not None:
            raise listener.error
        return completion

    def _send(self, text: str) -> None:
        self._pieces.append(text)
        for listener in self._listeners:
            listener.send(text)


class _Listener:
    """Receives the text of a reply until its sink fails."""

    def __init__(self, on_text: TextSink) -> None:
        self._on_text = on_text
        self.error: Exception | None = None

    def send(self, text: str) -> None:
        if text and self.error is None:
            try:
                self._on_text(text)
            except Exception as error:  # belongs to this listener alone
                self.error = error


def _is_complete(completion: Completion) -> bool:
    return completion.finish in CACHEABLE and bool(completion.text.strip())


def write_payload(completion: Completion) -> str:
    """Return the reply as JSON, the form in which it is saved."""
    tokens = completion.tokens
    return json.dumps(
        {
            "text": completion.text,
            "finish": completion.finish.value,
            "tokens": [tokens.input, tokens.cached, tokens.output],
            "is_estimate": completion.is_estimate,
        },
        separators=(",", ":"),
    )


def read_payload(payload: str) -> Completion | None:
    """Return a saved reply; None if it is damaged."""
    try:
        saved = json.loads(payload)
        text, finish = saved["text"], FinishReason(saved["finish"])
        n_input, n_cached, n_output = map(int, saved["tokens"])
        is_estimate = bool(saved["is_estimate"])
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    if not isinstance(text, str) or finish not in CACHEABLE:
        return None
    tokens = TokenCount(input=n_input, cached=n_cached, output=n_output)
    return Completion(text=text, finish=finish, tokens=tokens, is_estimate=is_estimate)
