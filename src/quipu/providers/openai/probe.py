"""Probe: what one small call shows of a model, and what to change, for `quipu doctor`."""

import json
import re
import time
from collections.abc import Callable
from dataclasses import dataclass

from quipu.errors import QuipuError
from quipu.model.chat import ChatRequest, Completion, Message, Role
from quipu.providers.openai.catalog import JsonAbility
from quipu.providers.openai.chat import OpenAIChat
from quipu.providers.openai.embeddings import OpenAIEmbedder
from quipu.providers.openai.endpoint import Target
from quipu.providers.openai.faults import Unreachable
from quipu.providers.openai.fields import at
from quipu.providers.openai.listing import find_window, list_models
from quipu.providers.openai.rerank import HttpReranker
from quipu.providers.openai.room import window_remedy
from quipu.text.thinking import strip_thinking

MIN_WINDOW = 8_192  # tokens: instructions, a chunk of 1,200 tokens and a long reply

_MIN_TOKENS_PER_S = 10.0
_MIN_WRITING_S = 0.2  # what comes faster was written before and held back
_SCHEMA = {
    "type": "object",
    "properties": {"quipu": {"type": "string"}},
    "required": ["quipu"],
    "additionalProperties": False,
}
_REQUEST = ChatRequest(
    messages=(Message("user", "Tell in about fifty words, as JSON, what a knot is."),),
    role=Role.JUDGE,
    max_output_tokens=400,
    schema=json.dumps(_SCHEMA),
)
_FENCE = re.compile(r"^\s*```\w*\n?|```\s*$")
_PASSAGE = "Quipus are records kept in knotted cords."


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What is known of a model after one small call; None for what does not apply or could not be found out.

    `problem` is why the call failed, "" where it did not; `json` what the server enforced; `advice` what to change.
    """

    name: str
    host: str
    is_reachable: bool = True
    problem: str = ""
    remedy: str = ""
    is_listed: bool | None = None
    json: JsonAbility | None = None
    context_window: int | None = None
    dimension: int | None = None
    first_token_s: float | None = None
    tokens_per_s: float | None = None
    took_s: float | None = None
    advice: tuple[str, ...] = ()


async def probe_chat(chat: OpenAIChat, clock: Callable[[], float] = time.perf_counter) -> Finding:
    """Return what a call that asks for JSON, and the server's own lists, tell of a chat model."""
    arrivals: list[float] = []
    started = clock()
    try:
        reply = await chat.complete(_REQUEST, lambda text: arrivals.append(clock()) if text else None)
    except QuipuError as error:
        return _failed(chat.target, error)
    took_s = clock() - started
    listed = [each.name for each in await list_models(chat.session)]
    window = await find_window(chat.session)
    first_s = arrivals[0] - started if arrivals else None
    writing_s = arrivals[-1] - arrivals[0] if arrivals else 0.0
    speed = reply.tokens.output / (writing_s if writing_s > _MIN_WRITING_S else took_s) if took_s > 0 else None
    return Finding(
        name=chat.target.name,
        host=chat.target.endpoint.host,
        is_listed=chat.target.model in listed if listed else None,
        json=_enforced(reply.text, chat.form.json),
        context_window=window,
        first_token_s=first_s,
        tokens_per_s=speed,
        took_s=took_s,
        advice=_advice(chat.target, reply, window, speed),
    )


async def probe_embedder(embedder: OpenAIEmbedder, clock: Callable[[], float] = time.perf_counter) -> Finding:
    """Return what a call for one vector tells of an embedding model."""
    started = clock()
    try:
        dimension = await embedder.measure()
    except QuipuError as error:
        return _failed(embedder.target, error)
    took_s = clock() - started
    host = embedder.target.endpoint.host
    return Finding(name=embedder.target.name, host=host, dimension=dimension, took_s=took_s)


async def probe_reranker(reranker: HttpReranker, clock: Callable[[], float] = time.perf_counter) -> Finding:
    """Return what scoring two texts tells of a reranker."""
    started = clock()
    try:
        scores = await reranker.score("What are quipus?", [_PASSAGE, "Rain fell on the harbour all day."])
    except QuipuError as error:
        return _failed(reranker.target, error)
    took_s = clock() - started
    advice = () if scores[0] > scores[1] else ("It scores a text beside the question higher: is it a reranker?",)
    return Finding(name=reranker.target.name, host=reranker.target.endpoint.host, took_s=took_s, advice=advice)


def _failed(target: Target, error: QuipuError) -> Finding:
    return Finding(
        name=target.name,
        host=target.endpoint.host,
        is_reachable=not isinstance(error, Unreachable),
        problem=error.message,
        remedy=error.remedy,
    )


def _enforced(text: str, accepted: JsonAbility) -> JsonAbility:
    """Return what was enforced of a reply: the request never named the schema's field, so a free reply lacks it."""
    try:
        parsed: object = json.loads(_FENCE.sub("", strip_thinking(text)))
    except ValueError:
        return JsonAbility.NONE
    if accepted is JsonAbility.SCHEMA and isinstance(at(parsed, "quipu"), str):
        return JsonAbility.SCHEMA
    return JsonAbility.OBJECT if isinstance(parsed, dict) and accepted is not JsonAbility.NONE else JsonAbility.NONE


def _advice(target: Target, reply: Completion, window: int | None, speed: float | None) -> tuple[str, ...]:
    found: list[str] = []
    if window is not None and window < MIN_WINDOW:
        wider = window_remedy(target.endpoint.provider.name)
        found.append(f"A context window of {window:,} tokens is too small for extraction. {wider}")
    if not strip_thinking(reply.text).strip():
        found.append(
            "It spent the whole reply on reasoning, which costs time and money in extraction: turn it off with extra, "
            'as in {"reasoning_effort": "none"} or {"chat_template_kwargs": {"enable_thinking": false}}.'
        )
    if speed is not None and speed < _MIN_TOKENS_PER_S:
        found.append(f"At {speed:.1f} tokens a second a chunk takes minutes: use a smaller model or a GPU.")
    return tuple(found)
