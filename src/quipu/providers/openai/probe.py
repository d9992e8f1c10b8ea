"""Probes for `quipu doctor`: one small call to a model, and what to change."""

import json
import re
import time
from collections.abc import Callable
from dataclasses import dataclass

from quipu.errors import QuipuError
from quipu.model.chat import ChatRequest, Completion, Message, Role
from quipu.ports.providers import Reranker
from quipu.providers.openai.catalog import JsonSupport
from quipu.providers.openai.chat import OpenAIChat
from quipu.providers.openai.embeddings import OpenAIEmbedder
from quipu.providers.openai.endpoint import Target
from quipu.providers.openai.errors import Unreachable, context_window_remedy
from quipu.providers.openai.reply import value_at
from quipu.providers.openai.session import find_context_window, list_models
from quipu.text.model_text import strip_thinking

MIN_WINDOW = 8_192  # tokens for the instructions, a chunk of 1,200 tokens and a long reply

_MIN_TOKENS_PER_S = 10.0
_MIN_WRITING_S = 0.2  # a faster stream was written before and buffered
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
class ProbeResult:
    """The results of one small call to a model. None: it does not apply or is unknown.

    `problem` is why the call failed, "" if it succeeded; `json` is what the server enforced; `advice` what to change.
    """

    name: str
    host: str
    is_reachable: bool = True
    problem: str = ""
    remedy: str = ""
    is_listed: bool | None = None
    json: JsonSupport | None = None
    context_window: int | None = None
    dimension: int | None = None
    first_token_s: float | None = None
    tokens_per_s: float | None = None
    took_s: float | None = None
    advice: tuple[str, ...] = ()


async def probe_chat(chat: OpenAIChat, clock: Callable[[], float] = time.perf_counter) -> ProbeResult:
    """Probe a chat model with a request for JSON, and look it up in the lists of its server."""
    arrivals: list[float] = []
    started = clock()
    try:
        reply = await chat.complete(_REQUEST, lambda text: arrivals.append(clock()) if text else None)
    except QuipuError as error:
        return _failed(chat.target.name, chat.target.endpoint.host, error)
    took_s = clock() - started
    listed = [model.name for model in await list_models(chat.session)]
    window = await find_context_window(chat.session)
    first_s = arrivals[0] - started if arrivals else None
    writing_s = arrivals[-1] - arrivals[0] if arrivals else 0.0
    speed = reply.tokens.output / (writing_s if writing_s > _MIN_WRITING_S else took_s) if took_s > 0 else None
    return ProbeResult(
        name=chat.target.name,
        host=chat.target.endpoint.host,
        is_listed=chat.target.model in listed if listed else None,
        json=_enforced_json(reply.text, chat.capabilities.json),
        context_window=window,
        first_token_s=first_s,
        tokens_per_s=speed,
        took_s=took_s,
        advice=_advice(chat.target, reply, window, speed),
    )


async def probe_embedder(embedder: OpenAIEmbedder, clock: Callable[[], float] = time.perf_counter) -> ProbeResult:
    """Probe an embedding model with a request for one vector."""
    started = clock()
    try:
        dimension = await embedder.measure()
    except QuipuError as error:
        return _failed(embedder.target.name, embedder.target.endpoint.host, error)
    took_s = clock() - started
    host = embedder.target.endpoint.host
    return ProbeResult(name=embedder.target.name, host=host, dimension=dimension, took_s=took_s)


async def probe_reranker(
    reranker: Reranker, name: str, host: str, clock: Callable[[], float] = time.perf_counter
) -> ProbeResult:
    """Probe a reranker, of a server or of this process, with two texts."""
    started = clock()
    try:
        scores = await reranker.score("What are quipus?", [_PASSAGE, "Rain fell on the harbour all day."])
    except QuipuError as error:
        return _failed(name, host, error)
    took_s = clock() - started
    advice = () if scores[0] > scores[1] else ("It gives an unrelated text the higher score: is it a reranker?",)
    return ProbeResult(name=name, host=host, took_s=took_s, advice=advice)


def _failed(name: str, host: str, error: QuipuError) -> ProbeResult:
    return ProbeResult(
        name=name,
        host=host,
        is_reachable=not isinstance(error, Unreachable),
        problem=error.message,
        remedy=error.remedy,
    )


def _enforced_json(text: str, accepted: JsonSupport) -> JsonSupport:
    """Return what the server enforced: the prompt does not name the schema's field, so a free reply lacks it."""
    try:
        parsed: object = json.loads(_FENCE.sub("", strip_thinking(text)))
    except ValueError:
        return JsonSupport.NONE
    if accepted is JsonSupport.SCHEMA and isinstance(value_at(parsed, "quipu"), str):
        return JsonSupport.SCHEMA
    return JsonSupport.OBJECT if isinstance(parsed, dict) and accepted is not JsonSupport.NONE else JsonSupport.NONE


def _advice(target: Target, reply: Completion, window: int | None, speed: float | None) -> tuple[str, ...]:
    advice: list[str] = []
    if window is not None and window < MIN_WINDOW:
        remedy = context_window_remedy(target.endpoint.provider.name)
        advice.append(f"A context window of {window:,} tokens is too small for extraction. {remedy}")
    if not strip_thinking(reply.text).strip():
        advice.append(
            "It spent the whole reply on reasoning, which costs time and money in extraction: turn it off with extra, "
            'as in {"reasoning_effort": "none"} or {"chat_template_kwargs": {"enable_thinking": false}}.'
        )
    if speed is not None and speed < _MIN_TOKENS_PER_S:
        advice.append(f"At {speed:.1f} tokens a second a chunk takes minutes: use a smaller model or a GPU.")
    return tuple(advice)
