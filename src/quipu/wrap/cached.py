"""Cached: replies are kept with what they cost, so that nothing paid for is asked twice."""

import asyncio
import json
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from quipu.model.chat import ChatRequest, Completion, FinishReason, ReplyLifetime, TokenCount
from quipu.model.usage import UsageRow
from quipu.ports.providers import LLM, TextSink, ignore_text
from quipu.ports.reply_cache import ReplyCache
from quipu.wrap.meter import Meter
from quipu.wrap.persistent import persist
from quipu.wrap.unbroken import ended, unbroken

Asking = Coroutine[Any, Any, Completion]

KEPT = frozenset({FinishReason.STOP, FinishReason.LENGTH})


class Flights:
    """Requests under way: whoever asks the same meanwhile is told the same. Shared by all calls of a role."""

    def __init__(self) -> None:
        self._by_key: dict[str, _Flight] = {}

    async def join(self, key: str, ask: Callable[[TextSink], Asking], on_text: TextSink) -> Completion:
        """Return the outcome of `ask`, or of the same request under way, which is then marked as reused."""
        while (flight := self._by_key.get(key)) is not None and flight.is_dropped:
            await asyncio.wait({flight.task})
        if flight is not None:
            return replace(await flight.join(on_text), is_reused=True)
        flight = _Flight(ask, is_watched=on_text is not ignore_text)
        self._by_key[key] = flight
        flight.task.add_done_callback(lambda _: self._by_key.pop(key))
        return await flight.join(on_text)


class CachedLLM:
    """A chat model whose whole replies are kept. `ask` gives the model to ask, counted by the meter it is given.

    A reply is kept under the model that gave it, and looked for under each of `identities`: those of the model and of
    its fallbacks. It is durable, with its cost, before it is returned. A reply that broke off, was filtered or has no
    text is not kept: to ask again may help.
    """

    def __init__(
        self,
        ask: Callable[[Meter], LLM],
        identities: Sequence[str],
        replies: ReplyCache,
        meter: Meter,
        flights: Flights | None = None,
    ) -> None:
        self._ask = ask
        self._identities = identities
        self._replies = replies
        self._meter = meter
        self._flights = flights or Flights()

    @property
    def identity(self) -> str:
        """That of the model."""
        return self._identities[0]

    async def complete(self, request: ChatRequest, on_text: TextSink = ignore_text) -> Completion:
        """Return the reply kept for the request, or ask; raises as `LLM.complete` does."""

        async def find_or_ask(tell: TextSink) -> Completion:
            return await self._kept(request) or await self._asked(request, tell)

        completion = await self._flights.join(request.hash(self.identity), find_or_ask, on_text)
        if completion.is_reused and request.documents and _is_whole(completion):
            await unbroken(self._put(request, completion, ()))  # which may be other documents than it was kept for
        return completion

    async def _kept(self, request: ChatRequest) -> Completion | None:
        for identity in self._identities:
            payload = await self._replies.find(request.hash(identity))
            if payload is not None and (completion := read_payload(payload)) is not None:
                return replace(completion, is_reused=True, model="" if identity == self.identity else identity)
        return None

    async def _asked(self, request: ChatRequest, on_text: TextSink) -> Completion:
        call = self._meter.child()
        if request.lifetime in (ReplyLifetime.REVISION, ReplyLifetime.ALL_DOCUMENTS) and request.revision is None:
            request = replace(request, revision=await self._replies.facts_revision())
        try:
            completion = await self._ask(call).complete(request, on_text)
        except BaseException:
            await unbroken(self._spend(call))  # for attempts that may have to be paid for
            raise
        await unbroken(self._keep(request, completion, call))
        return completion

    async def _keep(self, request: ChatRequest, completion: Completion, call: Meter) -> None:
        if _is_whole(completion):
            await self._put(request, completion, call.rows())
        else:
            await self._spend(call)

    async def _put(self, request: ChatRequest, completion: Completion, rows: Sequence[UsageRow]) -> None:
        key = request.hash(completion.model or self.identity)
        await persist(partial(self._replies.keep, key, write_payload(completion), request, rows))

    async def _spend(self, call: Meter) -> None:
        if rows := call.rows():
            await persist(partial(self._replies.spend, rows))


class _Flight:
    """One request under way, for all who wait for it. It is dropped when the last of them is cancelled.

    It is streamed where the first of them watches; else the others are given the text at its end. What a watcher's own
    sink raises is raised to that watcher, once the reply is there.
    """

    def __init__(self, ask: Callable[[TextSink], Asking], *, is_watched: bool) -> None:
        self.is_dropped = False
        self._pieces: list[str] = []
        self._watchers: list[_Watcher] = []
        self.task = asyncio.create_task(ask(self._tell if is_watched else ignore_text))

    async def join(self, on_text: TextSink) -> Completion:
        """Wait for the outcome; `on_text` is given what has come so far, and the rest as it comes."""
        watcher = _Watcher(on_text)
        watcher.tell("".join(self._pieces))
        self._watchers.append(watcher)
        try:
            completion = await asyncio.shield(self.task)
        finally:
            self._watchers.remove(watcher)
            if not self._watchers and not self.task.done():
                self.is_dropped = True
                self.task.cancel()
                await ended(self.task)
        if not self._pieces:
            watcher.tell(completion.text)
        if watcher.error is not None:
            raise watcher.error
        return completion

    def _tell(self, text: str) -> None:
        self._pieces.append(text)
        for watcher in self._watchers:
            watcher.tell(text)


class _Watcher:
    """One who is given the text while it comes, until that fails."""

    def __init__(self, on_text: TextSink) -> None:
        self._on_text = on_text
        self.error: Exception | None = None

    def tell(self, text: str) -> None:
        if text and self.error is None:
            try:
                self._on_text(text)
            except Exception as error:  # the watcher's own, and nobody else's
                self.error = error


def _is_whole(completion: Completion) -> bool:
    return completion.finish in KEPT and bool(completion.text.strip())


def write_payload(completion: Completion) -> str:
    """Return the reply as it is kept: JSON."""
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
    """Return a kept reply, None where it is damaged."""
    try:
        kept = json.loads(payload)
        text, finish = kept["text"], FinishReason(kept["finish"])
        given, cached, output = map(int, kept["tokens"])
        is_estimate = bool(kept["is_estimate"])
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    if not isinstance(text, str) or finish not in KEPT:
        return None
    tokens = TokenCount(input=given, cached=cached, output=output)
    return Completion(text=text, finish=finish, tokens=tokens, is_estimate=is_estimate)
