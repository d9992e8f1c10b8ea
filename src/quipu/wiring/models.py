"""Wiring of models: the services of the settings within their wrappers; made when an index is opened, asked later."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

from quipu.engine.components import ExtractionModel, Models
from quipu.errors import InvalidInput
from quipu.model.chat import Role
from quipu.ports.providers import Embedder
from quipu.ports.reply_cache import ReplyCache
from quipu.providers.openai.chat import OpenAIChat
from quipu.providers.openai.embeddings import EmbeddingParameters, OpenAIEmbedder
from quipu.providers.openai.embeddings import open_embedder as open_remote
from quipu.providers.openai.rerank import HttpReranker
from quipu.settings import Settings
from quipu.wiring.checking import all_of, embedding, fitting, pinging
from quipu.wiring.extraction import tokens_needed
from quipu.wiring.services import COUNT, Chat, ChatModel, chat_models, embedder_service, reranker_service
from quipu.wrap.chain import EmbedderChain, LLMChain, ModelLink, RerankerChain
from quipu.wrap.concurrency import AdaptiveLimit, ConcurrencyLimiter
from quipu.wrap.guard import Guard
from quipu.wrap.meter import Meter, ModelPricing, SpendingBudget
from quipu.wrap.prices import PriceTable
from quipu.wrap.recording import RecordedLLM, ReplayedLLM
from quipu.wrap.retry import Retry, RetryPolicy


def check_settings(settings: Settings) -> None:
    """Raise InvalidInput where the settings name what is no model, has no address or no price to keep a budget by.

    A model whose price is missing would stop the work when it is first asked, after others have been paid for.
    """
    names = [model.name for models in chat_models(settings).values() for model in models]
    if reranker_service(settings):
        names.append(settings.reranker or "")
    if settings.embedder == "openai":
        embedder_service(settings)
        names.append(settings.embedder_model or "")
    prices = _prices(settings)
    unpriced = dict.fromkeys(name for name in names if prices.find(name) is None)
    if unpriced and settings.spending.cost is not None:
        raise InvalidInput(
            f"No price is known for {', '.join(unpriced)}, so the budget {settings.budget!r} cannot be kept.",
            remedy="Add a [[price]] table for it to quipu.toml, or give the budget in tokens or calls.",
        )
    if settings.record is not None:
        _make_folder(settings.record)


def open_models(
    settings: Settings, replies: ReplyCache, embedder: Embedder, retry: RetryPolicy | None = None
) -> Models:
    """Return the models of the settings within their wrappers; `embedder` is wrapped, too, where it is a remote one."""
    by_role = chat_models(settings)
    prices = _prices(settings)
    meter = Meter(budget=SpendingBudget(settings.spending) if settings.budget else None)
    guards = _Guards(retry)
    links = {
        role: [_link(model, guards, prices, settings.record) for model in models] for role, models in by_role.items()
    }
    chains = {role: LLMChain(each, replies) for role, each in links.items()}
    reranker = open_reranker(settings)
    remote = embedder if isinstance(embedder, OpenAIEmbedder) else None
    readers = by_role.get(Role.EXTRACT, [])
    closing: list[Callable[[], Awaitable[None]]] = [
        each.chat.aclose for models in by_role.values() for each in models if isinstance(each.chat, OpenAIChat)
    ]
    embedder_chain = _embedder_chain(remote, settings, replies, guards, prices) if remote else None
    places = {
        role: [(_service(each.chat), link) for each, link in zip(by_role[role], links[role], strict=True)]
        for role in _needed(settings, by_role)
    }
    checks = [pinging(places, replies)] if places else []
    if readers and settings.extractor != "local" and isinstance(readers[0].chat, OpenAIChat):
        checks.append(fitting(readers[0].chat, tokens_needed(settings)))
    checks += [embedding(embedder_chain)] if embedder_chain else []
    return Models(
        meter=meter,
        chains=chains,
        embedder_chain=embedder_chain,
        reranker_chain=RerankerChain(
            provider=reranker,
            pricing=_pricing(settings.reranker or reranker.identity, prices),
            save_usage=replies.add_usage,
            guards=guards.of(reranker.identity, reranker.target.endpoint.provider.concurrency),
        )
        if reranker
        else None,
        reading=_reading(readers[0], prices) if readers else ExtractionModel(),
        check=all_of(checks),
        n_ahead=max(
            (by_role[role][0].concurrency for role in (Role.SUMMARISE, Role.REPORT) if role in by_role), default=1
        ),
        closing=(*closing, *(each.aclose for each in (remote, reranker) if each)),
    )


def _make_folder(record: Path) -> None:
    try:
        record.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(
            f"record = {str(record)!r} cannot be made ({error.strerror}).", remedy="Name another folder."
        ) from None


def _prices(settings: Settings) -> PriceTable:
    return PriceTable({each.model: each.price for each in settings.price})


def _needed(settings: Settings, by_role: Mapping[Role, Sequence[ChatModel]]) -> list[Role]:
    """Return the roles whose models documents need."""
    readers = () if settings.extractor == "local" else (Role.EXTRACT,)
    return [role for role in (*readers, Role.SUMMARISE) if role in by_role]


def _embedder_chain(
    remote: OpenAIEmbedder, settings: Settings, replies: ReplyCache, guards: "_Guards", prices: PriceTable
) -> EmbedderChain:
    return EmbedderChain(
        provider=remote,
        pricing=_pricing(settings.embedder_model or remote.target.name, prices),
        save_usage=replies.add_usage,
        guards=guards.of(remote.target.name, remote.target.endpoint.provider.concurrency),
    )


async def open_remote_embedder(settings: Settings, measured: tuple[str, int] | None = None) -> OpenAIEmbedder:
    """Return the embedder of an OpenAI-compatible server; one of unknown dimension is asked for a vector.

    It need not be where the index knows it: `measured` are identity and dimension of the embedder it was made with.

    Raises InvalidInput where no model is named, Unavailable where the server does not answer.
    """
    service = embedder_service(settings)
    return await open_remote(
        service.endpoint,
        service.model,
        count_tokens=COUNT,
        parameters=EmbeddingParameters(dimension=settings.embedder_dimension),
        measured=measured,
    )


def open_reranker(settings: Settings) -> HttpReranker | None:
    """Return the reranker of the settings, None where there is none."""
    service = reranker_service(settings)
    return HttpReranker(service.endpoint, service.model, count_tokens=COUNT) if service else None


class _Guards:
    """What stands around the calls of a service: one set for each, however many pieces of work ask it."""

    def __init__(self, retry: RetryPolicy | None = None) -> None:
        self._retry = retry
        self._by_name: dict[tuple[str, str], tuple[Guard, ...]] = {}

    def of(self, service: str, concurrency: int, own: str = "") -> tuple[Guard, ...]:
        """Return the guards of a service; with `own` a set that is not shared."""
        if (service, own) not in self._by_name:
            self._by_name[service, own] = (Retry(service, self._retry), ConcurrencyLimiter(AdaptiveLimit(concurrency)))
        return self._by_name[service, own]


def _link(model: ChatModel, guards: _Guards, prices: PriceTable, record: Path | None) -> ModelLink:
    service = _service(model.chat)
    own = "" if model.is_shared else model.role.value
    llm = model.chat if record is None or isinstance(model.chat, ReplayedLLM) else RecordedLLM(model.chat, record)
    return ModelLink(llm=llm, pricing=_pricing(model.name, prices), guards=guards.of(service, model.concurrency, own))


def _service(chat: Chat) -> str:
    """Return what calls of a model have in common: the model, and where it is."""
    return chat.target.label if isinstance(chat, OpenAIChat) else chat.identity


def _pricing(model: str, prices: PriceTable) -> ModelPricing:
    return ModelPricing(model=model, price=prices.find(model), count_tokens=COUNT)


def _reading(model: ChatModel, prices: PriceTable) -> ExtractionModel:
    return ExtractionModel(model=model.name, price=prices.find(model.name), concurrency=model.concurrency)
