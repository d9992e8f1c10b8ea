"""Wiring of probes: one small call to each model the settings name, and what it showed; for `quipu doctor`."""

import time
from dataclasses import replace

from quipu.errors import QuipuError
from quipu.providers.litellm import LiteLlm
from quipu.providers.openai.chat import OpenAIChat
from quipu.providers.openai.embeddings import OpenAIEmbedder
from quipu.providers.openai.probe import ProbeResult, probe_chat, probe_embedder, probe_reranker
from quipu.settings import Settings
from quipu.wiring.checking import PING
from quipu.wiring.inventory import NamedModel, take_inventory
from quipu.wiring.models import open_remote_embedder, open_reranker
from quipu.wiring.services import Chat
from quipu.wrap.recording import ReplayedLLM

PATIENCE_S = 120.0  # a server on a laptop may have to load its model first


async def probe_models(settings: Settings) -> list[tuple[NamedModel, ProbeResult]]:
    """Ask each model the settings name once, one after the other; none has longer than PATIENCE_S."""
    settings = _impatient(settings)
    inventory = take_inventory(settings)
    found = [(named, await _probe_chat(chat)) for named, chat in inventory.chats]
    if inventory.embedder:
        found.append((inventory.embedder, await _probe_embedder(settings, inventory.embedder)))
    if inventory.reranker and (reranker := open_reranker(settings)):
        try:
            found.append((inventory.reranker, await probe_reranker(reranker)))
        finally:
            await reranker.aclose()
    return found


def _impatient(settings: Settings) -> Settings:
    """Return the settings with nobody waited for longer than PATIENCE_S."""
    roles = tuple(
        replace(each, timeout_s=min(each.timeout_s, PATIENCE_S) if each.timeout_s else None) for each in settings.role
    )
    return settings.model_copy(update={"llm_timeout_s": min(settings.llm_timeout_s, PATIENCE_S), "role": roles})


async def _probe_chat(chat: Chat) -> ProbeResult:
    if isinstance(chat, ReplayedLLM):
        return ProbeResult(name=chat.identity, host="recording")
    try:
        return await (probe_chat(chat) if isinstance(chat, OpenAIChat) else _probe_litellm(chat))
    finally:
        await chat.aclose()


async def _probe_litellm(chat: LiteLlm) -> ProbeResult:
    found = ProbeResult(name=chat.identity, host="LiteLLM")
    begun = time.perf_counter()
    try:
        await chat.complete(PING)
    except QuipuError as error:
        return replace(found, problem=error.message, remedy=error.remedy)
    return replace(found, took_s=time.perf_counter() - begun)


async def _probe_embedder(settings: Settings, named: NamedModel) -> ProbeResult:
    """Return what a vector shows; one of unknown dimension is asked for it when it is opened, and may fail there."""
    try:
        embedder: OpenAIEmbedder = await open_remote_embedder(settings)
    except QuipuError as error:
        return ProbeResult(name=named.name, host=named.host, problem=error.message, remedy=error.remedy)
    try:
        return await probe_embedder(embedder)
    finally:
        await embedder.aclose()
