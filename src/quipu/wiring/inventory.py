"""Inventory: which models the settings name, for which work, at which host, with whose key; and a probe of each."""

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

from quipu.errors import QuipuError
from quipu.model.usage import Price
from quipu.providers.litellm import LiteLlm
from quipu.providers.openai.chat import OpenAIChat
from quipu.providers.openai.probe import ProbeResult, probe_chat, probe_embedder, probe_reranker
from quipu.settings import Settings
from quipu.wiring.models import open_local_reranker, open_remote_embedder, open_reranker
from quipu.wiring.preflight import PING
from quipu.wiring.services import (
    ChatModel,
    ChatProvider,
    ModelService,
    chat_models,
    embedder_service,
    local_reranker_parts,
    reranker_service,
)
from quipu.wrap.prices import PriceTable
from quipu.wrap.recording import ReplayedLLM

PROBE_TIMEOUT_S = 120.0  # a server on a laptop may have to load its model first


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedModel:
    """A model that the settings name, and the work it is for.

    `key` says where its key was found, "" if there is none; `needs_key` that a required key is missing. `price` is None
    if it is not known.
    """

    work: tuple[str, ...]
    name: str
    host: str
    key: str
    needs_key: bool = False
    concurrency: int
    price: Price | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Inventory:
    """Every model that the settings name: chat models with their providers, the embedder and the reranker."""

    chats: tuple[tuple[NamedModel, ChatProvider], ...] = ()
    embedder: NamedModel | None = None
    reranker: NamedModel | None = None

    def models(self) -> tuple[NamedModel, ...]:
        """Return all models, without their providers."""
        others = (model for model in (self.embedder, self.reranker) if model is not None)
        return (*(model for model, _ in self.chats), *others)


def take_inventory(settings: Settings) -> Inventory:
    """Return the models of the settings without a call. Raises InvalidInput as opening an index would."""
    prices = PriceTable({entry.model: entry.price for entry in settings.price}, settings.currency)
    embedder = embedder_service(settings) if settings.embedder == "openai" else None
    reranker = reranker_service(settings)
    return Inventory(
        chats=tuple(_chats(settings, prices)),
        embedder=_from_service(embedder, "embedder", settings.embedder_model or "", prices) if embedder else None,
        reranker=_from_service(reranker, "reranker", settings.reranker or "", prices)
        if reranker
        else _local_reranker(settings),
    )


def _local_reranker(settings: Settings) -> NamedModel | None:
    if local_reranker_parts(settings) is None:
        return None
    free = Price(input=0.0, output=0.0, currency=settings.currency)
    return NamedModel(
        work=("reranker",), name=settings.reranker or "", host="this machine", key="", concurrency=1, price=free
    )


def _chats(settings: Settings, prices: PriceTable) -> Iterator[tuple[NamedModel, ChatProvider]]:
    """Yield each chat model once, with all its work: roles that call it in the same way share one entry."""
    groups: dict[tuple[str, str, str, int], list[tuple[str, ChatModel]]] = {}
    for role, models in chat_models(settings).items():
        for model, work in zip(models, (role.value, f"{role.value} (fallback)"), strict=False):
            key = (model.chat.identity, _host(model.chat), model.key_origin, model.concurrency)
            groups.setdefault(key, []).append((work, model))
    for members in groups.values():
        first = members[0][1]
        yield _from_chat_model(first, tuple(work for work, _ in members), prices), first.chat


def _from_chat_model(model: ChatModel, work: tuple[str, ...], prices: PriceTable) -> NamedModel:
    endpoint = model.chat.target.endpoint if isinstance(model.chat, OpenAIChat) else None
    return NamedModel(
        work=work,
        name=model.name,
        host=_host(model.chat),
        key=model.key_origin or ("looked for by LiteLLM" if isinstance(model.chat, LiteLlm) else ""),
        needs_key=endpoint is not None and endpoint.needs_key,
        concurrency=model.concurrency,
        price=prices.find(model.name),
    )


def _from_service(service: ModelService, work: str, name: str, prices: PriceTable) -> NamedModel:
    return NamedModel(
        work=(work,),
        name=name,
        host=service.endpoint.host,
        key=service.key_origin,
        needs_key=service.endpoint.needs_key,
        concurrency=service.endpoint.provider.concurrency,
        price=prices.find(name),
    )


def _host(chat: ChatProvider) -> str:
    if isinstance(chat, OpenAIChat):
        return chat.target.endpoint.host
    return "LiteLLM" if isinstance(chat, LiteLlm) else "recording"


async def probe_models(settings: Settings) -> list[tuple[NamedModel, ProbeResult]]:
    """Call each model of the settings once, one after the other, for at most PROBE_TIMEOUT_S each."""
    settings = _with_short_timeouts(settings)
    inventory = take_inventory(settings)
    probes = [(model, await _probe_chat(chat)) for model, chat in inventory.chats]
    if inventory.embedder:
        probes.append((inventory.embedder, await _probe_embedder(settings, inventory.embedder)))
    if inventory.reranker:
        probes.append((inventory.reranker, await _probe_reranker(settings, inventory.reranker)))
    return probes


def _with_short_timeouts(settings: Settings) -> Settings:
    """Return the settings with timeouts of at most PROBE_TIMEOUT_S."""
    roles = tuple(
        replace(role, timeout_s=min(role.timeout_s, PROBE_TIMEOUT_S) if role.timeout_s else None)
        for role in settings.role
    )
    return settings.model_copy(update={"llm_timeout_s": min(settings.llm_timeout_s, PROBE_TIMEOUT_S), "role": roles})


async def _probe_chat(chat: ChatProvider) -> ProbeResult:
    if isinstance(chat, ReplayedLLM):
        return ProbeResult(name=chat.identity, host="recording")
    try:
        return await (probe_chat(chat) if isinstance(chat, OpenAIChat) else _probe_litellm(chat))
    finally:
        await chat.aclose()


async def _probe_litellm(chat: LiteLlm) -> ProbeResult:
    result = ProbeResult(name=chat.identity, host="LiteLLM")
    start = time.perf_counter()
    try:
        await chat.complete(PING)
    except QuipuError as error:
        return replace(result, problem=error.message, remedy=error.remedy)
    return replace(result, took_s=time.perf_counter() - start)


async def _probe_reranker(settings: Settings, model: NamedModel) -> ProbeResult:
    """Probe the reranker; a local one loads its model first."""
    try:
        reranker = open_reranker(settings) or open_local_reranker(settings)
    except QuipuError as error:
        return ProbeResult(name=model.name, host=model.host, problem=error.message, remedy=error.remedy)
    if reranker is None:
        return ProbeResult(name=model.name, host=model.host)
    try:
        return await probe_reranker(reranker, model.name, model.host)
    finally:
        await reranker.aclose()


async def _probe_embedder(settings: Settings, model: NamedModel) -> ProbeResult:
    """Probe the embedder. If its dimension is unknown, opening it already needs a call, which may fail."""
    try:
        embedder = await open_remote_embedder(settings)
    except QuipuError as error:
        return ProbeResult(name=model.name, host=model.host, problem=error.message, remedy=error.remedy)
    try:
        return await probe_embedder(embedder)
    finally:
        await embedder.aclose()
