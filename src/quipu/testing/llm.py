"""Scripted models without a server: an LLM, an embedder and a reranker that follow a script in this process."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from quipu.errors import Overloaded, QuipuError, Refused, TooLong, Unavailable
from quipu.model.chat import ChatRequest, Completion, FinishReason, TokenCount
from quipu.ports.providers import TextSink, ignore_text
from quipu.testing.scripted.fault_injection import RequestDraw
from quipu.testing.scripted.model import (
    ChatCall,
    ChatReply,
    NumericReply,
    ScriptedModel,
    count_prompt,
    count_tokens,
    split_pieces,
)
from quipu.testing.scripted.script import MIDWAY, Fault, FaultName, RequestKind, Script

Sleep = Callable[[float], Awaitable[object]]

_TEMPORARY = frozenset(
    {
        FaultName.TOO_MANY_REQUESTS,
        FaultName.SERVER_ERROR,
        FaultName.BAD_GATEWAY,
        FaultName.SERVICE_UNAVAILABLE,
    }
)
_LOST = frozenset({FaultName.TIMEOUT, FaultName.RESET, FaultName.ERROR_IN_200})
_BROKEN_NUMBERS = frozenset({*MIDWAY, FaultName.COUNT, FaultName.NAN, FaultName.DIMENSION})


@dataclass(frozen=True, slots=True, kw_only=True)
class AnsweredCall:
    """One call of a scripted LLM: the request, its kind, and the completion or the error."""

    request: ChatRequest
    kind: RequestKind
    outcome: Completion | QuipuError


class ScriptedLLM:
    """An LLM that follows a script, with the same replies, faults and latencies as the scripted server.

    Errors of HTTP or of the connection are raised as the port documents. `answered` holds every call in the order in
    which the calls ended.
    """

    def __init__(
        self, script: Script | None = None, *, identity: str = "scripted/chat", sleep: Sleep = asyncio.sleep
    ) -> None:
        self.identity = identity
        self.answered: list[AnsweredCall] = []
        self.peak_under_way = 0
        self._script = script or Script()
        self._model = ScriptedModel(self._script)
        self._sleep = sleep
        self._n_under_way = 0

    def n_completed(self, *kinds: RequestKind) -> int:
        """Return how many calls of these kinds (or of any kind) got a complete reply."""
        return sum(_is_whole(call.outcome) and (not kinds or call.kind in kinds) for call in self.answered)

    def configure(self, script: Script) -> None:
        """Use another script from now on; `answered` stays."""
        self._script, self._model = script, ScriptedModel(script)

    async def complete(self, request: ChatRequest, on_text: TextSink = ignore_text) -> Completion:
        """Return the scripted reply; raises the error of the injected fault."""
        self._n_under_way += 1
        self.peak_under_way = max(self.peak_under_way, self._n_under_way)
        kind = RequestKind.OTHER
        try:
            self._check(request)
            reply = self._model.complete(_call(request, self.identity))
            kind = reply.draw.kind
            latency_s = reply.draw.latency_s * self._script.limit.slowdown(self._n_under_way)
            outcome = await self._send_reply(reply, latency_s, on_text)
        except QuipuError as error:
            self.answered.append(AnsweredCall(request=request, kind=kind, outcome=error))
            raise
        finally:
            self._n_under_way -= 1
        self.answered.append(AnsweredCall(request=request, kind=kind, outcome=outcome))
        return outcome

    def _check(self, request: ChatRequest) -> None:
        limit, window = self._script.limit, self._script.service.context_window
        if limit.rejects(self._n_under_way):
            raise Overloaded("Too many requests at a time.", retry_after_s=limit.retry_after_s)
        n_requested = count_prompt([message.text for message in request.messages]) + request.max_output_tokens
        if window is not None and n_requested > window:
            raise TooLong(f"The request of {n_requested} tokens does not fit the context window of {window}.")

    async def _send_reply(self, reply: ChatReply, latency_s: float, on_text: TextSink) -> Completion:
        latency = self._script.latency
        fault = reply.draw.fault
        await self._wait(latency_s * latency.first_share)
        _raise_instead(fault)
        pieces = split_pieces(reply.text, self._script.service.piece_chars)
        gap_s = latency_s * (1 - latency.first_share) / max(1, len(pieces)) + latency.piece_s
        broken = fault if fault and fault.name in MIDWAY else None
        sent = pieces[: broken.n_pieces] if broken else pieces
        for piece in sent:
            on_text(piece)
            await self._wait(gap_s)
        if not reply.text and reply.finish is FinishReason.FILTERED:
            raise Refused("The script withholds the reply.", may_cost=True)
        if broken is None:
            is_estimate = fault is not None and fault.name is FaultName.NO_USAGE
            return Completion(text=reply.text, finish=reply.finish, tokens=reply.tokens, is_estimate=is_estimate)
        text = "".join(sent)
        if not text:
            raise Overloaded("The connection broke before any text arrived.", may_cost=True)
        tokens = TokenCount(input=reply.tokens.input, output=count_tokens(text))
        return Completion(text=text, finish=FinishReason.INTERRUPTED, tokens=tokens, is_estimate=True)

    async def _wait(self, seconds: float) -> None:
        if seconds > 0:
            await self._sleep(seconds)


class ScriptedEmbedder:
    """An embedder of hashed words: texts with common words have near vectors."""

    def __init__(self, script: Script | None = None, *, sleep: Sleep = asyncio.sleep) -> None:
        self._script = script or Script()
        self._model = ScriptedModel(self._script)
        self._sleep = sleep
        self.n_calls = 0

    @property
    def identity(self) -> str:
        """Name and dimension."""
        return f"scripted/words-{self.dimension}"

    @property
    def dimension(self) -> int:
        """The length of every vector."""
        return self._script.service.dimension

    async def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return one unit vector per text; raises the error of the injected fault."""
        self.n_calls += 1
        numbers = self._model.embed(self.identity, texts)
        return await _in_order(numbers, self._sleep)

    async def embed_queries(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return the vectors of questions, the same as `embed`."""
        return await self.embed(texts)


class ScriptedReranker:
    """A reranker whose score is the share of the question's words in a text."""

    identity = "scripted/words"

    def __init__(self, script: Script | None = None, *, sleep: Sleep = asyncio.sleep) -> None:
        self._model = ScriptedModel(script or Script())
        self._sleep = sleep
        self.n_calls = 0

    async def score(self, question: str, texts: Sequence[str]) -> list[float]:
        """Return the share of the question's words in each text; raises the error of the injected fault."""
        self.n_calls += 1
        numbers = self._model.score(self.identity, question, texts)
        rows = await _in_order(numbers, self._sleep)
        return [float(row[0]) for row in rows]


def _call(request: ChatRequest, model: str) -> ChatCall:
    return ChatCall(
        model=model,
        messages=request.messages,
        max_tokens=request.max_output_tokens,
        schema=request.schema or None,
    )


def _raise_instead(fault: Fault | None) -> None:
    """Raise the error of a fault that replaces the reply."""
    if fault is None:
        return
    if fault.name in _TEMPORARY:
        raise Overloaded(f"The script says: {fault.name}.", retry_after_s=fault.retry_after_s)
    if fault.name in _LOST:
        raise Overloaded(f"The script says: {fault.name}.", may_cost=True)
    if fault.name in (FaultName.QUOTA, FaultName.NOT_JSON):
        raise Unavailable(f"The script says: {fault.name}.", remedy="Change the script.")
    if fault.name is FaultName.BAD_REQUEST:
        raise Refused("The script refuses this request.")


async def _in_order(numbers: NumericReply, sleep: Sleep) -> npt.NDArray[np.float32]:
    """Return the rows in the order of the texts after their latency; raises errors as a provider would."""
    draw: RequestDraw = numbers.draw
    if draw.latency_s > 0:
        await sleep(draw.latency_s)
    _raise_instead(draw.fault)
    if draw.fault and draw.fault.name in _BROKEN_NUMBERS:
        raise Overloaded(f"The script says: {draw.fault.name}.", may_cost=True)
    rows = np.empty_like(numbers.rows)
    rows[list(numbers.indices)] = numbers.rows
    return rows


def _is_whole(outcome: Completion | QuipuError) -> bool:
    return isinstance(outcome, Completion) and outcome.finish is not FinishReason.INTERRUPTED
