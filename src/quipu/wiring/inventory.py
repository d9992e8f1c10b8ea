"""Wiring of an inventory: which models the settings name, for which work, where they are and whose key they get."""

from collections.abc import Iterator
from dataclasses import dataclass

from quipu.model.usage import Price
from quipu.providers.litellm import LiteLlm
from quipu.providers.openai.chat import OpenAIChat
from quipu.settings import Settings
from quipu.wiring.services import Chat, ChatModel, Service, chat_models, embedder_service, reranker_service
from quipu.wrap.prices import PriceTable


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedModel:
    """A model the settings name, and the work it is for.

    `key` is where its key was found, "" where there is none; `needs_key` says that one is missing. `price` is None
    where it is not known.
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
    """Every model the settings name: chat models with what asks them, embedder, reranker."""

    chats: tuple[tuple[NamedModel, Chat], ...] = ()
    embedder: NamedModel | None = None
    reranker: NamedModel | None = None

    def models(self) -> tuple[NamedModel, ...]:
        """Return the models without what asks them."""
        others = (each for each in (self.embedder, self.reranker) if each is not None)
        return (*(named for named, _ in self.chats), *others)


def take_inventory(settings: Settings) -> Inventory:
    """Return the models of the settings; nothing is asked. Raises InvalidInput as opening an index would."""
    prices = PriceTable({each.model: each.price for each in settings.price})
    embedder = embedder_service(settings) if settings.embedder == "openai" else None
    reranker = reranker_service(settings)
    return Inventory(
        chats=tuple(_chats(settings, prices)),
        embedder=_of_service(embedder, "embedder", settings.embedder_model or "", prices) if embedder else None,
        reranker=_of_service(reranker, "reranker", settings.reranker or "", prices) if reranker else None,
    )


def _chats(settings: Settings, prices: PriceTable) -> Iterator[tuple[NamedModel, Chat]]:
    """Yield each chat model once, with all it is for: roles that ask it in the same way share it."""
    grouped: dict[tuple[str, str, str, int], list[tuple[str, ChatModel]]] = {}
    for role, models in chat_models(settings).items():
        for model, work in zip(models, (role.value, f"{role.value} (fallback)"), strict=False):
            key = (model.chat.identity, _host(model.chat), model.key_origin, model.concurrency)
            grouped.setdefault(key, []).append((work, model))
    for members in grouped.values():
        first = members[0][1]
        yield _of_chat(first, tuple(work for work, _ in members), prices), first.chat


def _of_chat(model: ChatModel, work: tuple[str, ...], prices: PriceTable) -> NamedModel:
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


def _of_service(service: Service, work: str, name: str, prices: PriceTable) -> NamedModel:
    return NamedModel(
        work=(work,),
        name=name,
        host=service.endpoint.host,
        key=service.key_origin,
        needs_key=service.endpoint.needs_key,
        concurrency=service.endpoint.provider.concurrency,
        price=prices.find(name),
    )


def _host(chat: Chat) -> str:
    if isinstance(chat, OpenAIChat):
        return chat.target.endpoint.host
    return "LiteLLM" if isinstance(chat, LiteLlm) else "recording"
