"""Builds the models that the settings name, inside their wrappers. Only a new embedder may be called at once."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from quipu.engine.components import ExtractionModel, Models
from quipu.errors import InvalidInput
from quipu.ingest.llm import ExtractionOptions, LlmExtractor
from quipu.ingest.llm.ontology_file import load_ontology
from quipu.ingest.pictures import PictureReader
from quipu.model.chat import Role
from quipu.model.chunking import AUTO_TOKENS
from quipu.model.document import ParsedDocument, SourceDocument
from quipu.parse import ILLUSTRATED
from quipu.parse.pictures import IllustratedParser, PageReading
from quipu.ports.ingest import Extractor
from quipu.ports.providers import LLM, Embedder
from quipu.ports.store import ReplyCache, SpendingLedger
from quipu.prompts.extraction import render_system
from quipu.providers.openai.chat import OpenAIChat
from quipu.providers.openai.embeddings import EmbeddingParameters, OpenAIEmbedder
from quipu.providers.openai.embeddings import open_embedder as open_openai_embedder
from quipu.providers.openai.rerank import HttpReranker
from quipu.providers.pretrained import CrossEncoderReranker
from quipu.settings import Settings
from quipu.wiring.preflight import PreflightCheck, combine_checks, context_window_check, embedder_check, ping_check
from quipu.wiring.services import (
    TOKENIZER,
    ChatModel,
    ChatProvider,
    chat_models,
    embedder_service,
    local_reranker_parts,
    reranker_service,
)
from quipu.wrap.chain import EmbedderChain, LLMChain, ModelLink, RerankerChain
from quipu.wrap.concurrency import AdaptiveLimit, ConcurrencyLimiter
from quipu.wrap.guard import Guard, Retry, RetryPolicy
from quipu.wrap.meter import Meter, ModelPricing, SpendingBudget
from quipu.wrap.prices import PriceTable
from quipu.wrap.recording import RecordedLLM, ReplayedLLM

MIN_REPLY_TOKENS = 512  # of an extraction


def check_settings(settings: Settings) -> None:
    """Raise InvalidInput for an unknown model, a missing address, or a missing price if there is a budget in money.

    Without this check a missing price would stop the work at the first call, after other calls were paid for.
    """
    names = [model.name for models in chat_models(settings).values() for model in models]
    if reranker_service(settings):
        names.append(settings.reranker or "")
    open_local_reranker(settings)
    if settings.embedder == "openai":
        embedder_service(settings)
        names.append(settings.embedder_model or "")
    prices = _price_table(settings)
    unpriced = dict.fromkeys(name for name in names if prices.find(name) is None)
    if unpriced and settings.spending.cost is not None:
        raise InvalidInput(
            f"No price is known for {', '.join(unpriced)}, so the budget {settings.budget!r} cannot be kept.",
            remedy="Add a [[price]] table for it to quipu.toml, or give the budget in tokens or calls.",
        )
    if settings.record is not None:
        _make_folder(settings.record)


def open_models(
    settings: Settings,
    replies: ReplyCache,
    embedder: Embedder,
    retry: RetryPolicy | None = None,
    ledger: SpendingLedger | None = None,
) -> Models:
    """Return the models of the settings inside their wrappers. A remote `embedder` is wrapped too.

    `ledger` is what was spent of the budget already, here or in other processes.
    """
    models_by_role = chat_models(settings)
    builder = _ChainBuilder(settings, replies, retry)
    links_by_role = {role: [builder.link(model) for model in models] for role, models in models_by_role.items()}
    remote = embedder if isinstance(embedder, OpenAIEmbedder) else None
    embedder_chain = builder.embedder_chain(remote) if remote else None
    reranker = open_reranker(settings)
    local_reranker = open_local_reranker(settings)
    checks = _chat_checks(settings, models_by_role, links_by_role, replies)
    if embedder_chain:
        checks.append(embedder_check(embedder_chain))
    extraction_model = next(iter(models_by_role.get(Role.EXTRACT, [])), None)
    writers = [models_by_role[role][0] for role in (Role.SUMMARISE, Role.REPORT) if role in models_by_role]
    chats = [model.chat for models in models_by_role.values() for model in models]
    return Models(
        meter=Meter(budget=SpendingBudget(settings.spending, ledger) if settings.budget else None),
        chains={role: LLMChain(links, replies) for role, links in links_by_role.items()},
        embedder_chain=embedder_chain,
        reranker_chain=builder.reranker_chain(reranker) if reranker else None,
        limits=builder.limits,
        local_reranker=local_reranker,
        reading=builder.extraction_model(extraction_model) if extraction_model else ExtractionModel(),
        check=combine_checks(checks),
        currency=settings.currency,
        n_ahead=max((model.concurrency for model in writers), default=1),
        n_pictures_ahead=max((model.concurrency for model in models_by_role.get(Role.VISION, ())), default=1),
        closing=(
            *(chat.aclose for chat in chats if isinstance(chat, OpenAIChat)),
            *(provider.aclose for provider in (remote, reranker, local_reranker) if provider),
        ),
    )


def _chat_checks(
    settings: Settings,
    models_by_role: Mapping[Role, Sequence[ChatModel]],
    links_by_role: Mapping[Role, Sequence[ModelLink]],
    replies: ReplyCache,
) -> list[PreflightCheck]:
    """Return the checks of the chat models that documents need."""
    extraction_roles = () if settings.extractor == "local" else (Role.EXTRACT,)
    labelled_links = {
        role: [
            (_label(model.chat), link) for model, link in zip(models_by_role[role], links_by_role[role], strict=True)
        ]
        for role in (*extraction_roles, Role.SUMMARISE, Role.VISION)
        if role in models_by_role
    }
    checks = [ping_check(labelled_links, replies)] if labelled_links else []
    if Role.EXTRACT in labelled_links:
        chat = models_by_role[Role.EXTRACT][0].chat
        if isinstance(chat, OpenAIChat):
            checks.append(context_window_check(chat, tokens_needed(settings)))
    return checks


async def open_remote_embedder(settings: Settings, measured: tuple[str, int] | None = None) -> OpenAIEmbedder:
    """Return the embedder of an OpenAI-compatible server. If its dimension is unknown, a call measures it.

    `measured` is identity and dimension of the embedder the index was built with, so that the same embedder needs no
    call. Raises InvalidInput if no model is named, Unavailable if the server does not answer.
    """
    service = embedder_service(settings)
    return await open_openai_embedder(
        service.endpoint,
        service.model,
        count_tokens=TOKENIZER.count,
        parameters=EmbeddingParameters(dimension=settings.embedder_dimension),
        measured=measured,
    )


def open_reranker(settings: Settings) -> HttpReranker | None:
    """Return the reranker of a server that the settings name; None if there is none."""
    service = reranker_service(settings)
    return HttpReranker(service.endpoint, service.model, count_tokens=TOKENIZER.count) if service else None


def open_local_reranker(settings: Settings) -> CrossEncoderReranker | None:
    """Return the reranker that the settings name and that runs in this process; None if there is none.

    Raises Unavailable if its library is not installed, InvalidInput if no model is named.
    """
    parts = local_reranker_parts(settings)
    return CrossEncoderReranker(*parts) if parts else None


class _ChainBuilder:
    """Puts models into chains. All work that calls the same service shares its guards."""

    def __init__(self, settings: Settings, replies: ReplyCache, retry: RetryPolicy | None) -> None:
        self._settings = settings
        self._save_usage = replies.record_call
        self._retry = retry
        self._prices = _price_table(settings)
        self._guards: dict[tuple[str, str], tuple[Guard, ...]] = {}
        self.limits: list[AdaptiveLimit] = []

    def link(self, model: ChatModel) -> ModelLink:
        """Return a chat model with its guards; it is recorded if the settings say so."""
        own = "" if model.is_shared else model.role.value
        llm: LLM = model.chat
        if self._settings.record is not None and not isinstance(llm, ReplayedLLM):
            llm = RecordedLLM(llm, self._settings.record)
        guards = self._guards_of(_label(model.chat), model.concurrency, own)
        return ModelLink(llm=llm, pricing=self._pricing(model.name), guards=guards)

    def embedder_chain(self, embedder: OpenAIEmbedder) -> EmbedderChain:
        """Return the chain of a remote embedder."""
        name = embedder.target.name
        return EmbedderChain(
            provider=embedder,
            pricing=self._pricing(self._settings.embedder_model or name),
            save_usage=self._save_usage,
            guards=self._guards_of(name, embedder.target.endpoint.provider.concurrency),
        )

    def reranker_chain(self, reranker: HttpReranker) -> RerankerChain:
        """Return the chain of a reranker."""
        return RerankerChain(
            provider=reranker,
            pricing=self._pricing(self._settings.reranker or reranker.identity),
            save_usage=self._save_usage,
            guards=self._guards_of(reranker.identity, reranker.target.endpoint.provider.concurrency),
        )

    def extraction_model(self, model: ChatModel) -> ExtractionModel:
        """Return name, price and concurrency of the model that reads documents."""
        return ExtractionModel(model=model.name, price=self._prices.find(model.name), concurrency=model.concurrency)

    def _guards_of(self, service: str, concurrency: int, own: str = "") -> tuple[Guard, ...]:
        """Return the guards of a service. With a role in `own` they are shared with no other role."""
        if (service, own) not in self._guards:
            self.limits.append(limit := AdaptiveLimit(concurrency))
            self._guards[service, own] = (Retry(service, self._retry), ConcurrencyLimiter(limit))
        return self._guards[service, own]

    def _pricing(self, model: str) -> ModelPricing:
        return ModelPricing(model=model, price=self._prices.find(model), count_tokens=TOKENIZER.count)


def _label(chat: ChatProvider) -> str:
    """Return a name for the model and its address. Calls with the same label go to the same service."""
    return chat.target.label if isinstance(chat, OpenAIChat) else chat.identity


def _price_table(settings: Settings) -> PriceTable:
    return PriceTable({entry.model: entry.price for entry in settings.price}, settings.currency)


def _make_folder(record: Path) -> None:
    try:
        record.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(
            f"The folder record = {str(record)!r} cannot be created ({error.strerror}).", remedy="Name another folder."
        ) from None


def make_llm_extractor(llm: LLM, settings: Settings, concurrency: int) -> LlmExtractor:
    """Return the extractor that reads chunks with `llm`, with `concurrency` calls at the same time."""
    return LlmExtractor(llm, TOKENIZER, extraction_options(settings), concurrency=concurrency)


def metered_extractor(extractor: Extractor, models: Models) -> Callable[[Meter], Extractor] | None:
    """Return a function from a meter to the extractor counted by it; None if the extractor calls none of the models."""
    chain = models.chains.get(Role.EXTRACT)
    if chain is None or not isinstance(extractor, LlmExtractor):
        return None
    return lambda meter: extractor.with_llm(chain.llm(meter))


def tokens_needed(settings: Settings) -> int:
    """Return the smallest context window, in tokens, for extraction: instructions, the largest chunk, a usual reply."""
    chunkings = (settings.default_chunking, *(rule.chunking for rule in settings.chunking))
    n_chunk = max(chunking.max_tokens or AUTO_TOKENS for chunking in chunkings)
    instructions = render_system(extraction_options(settings).guidance)
    return TOKENIZER.count(instructions) + n_chunk + max(n_chunk // 2, MIN_REPLY_TOKENS)


def extraction_options(settings: Settings) -> ExtractionOptions:
    """Return the options of extraction by a model. Raises InvalidInput naming a wrong line or field of a file."""
    ontology = load_ontology(settings.ontology, settings.glossary, is_strict=settings.ontology_mode == "strict")
    return ExtractionOptions(
        format=settings.extraction_format,
        language=settings.language or "",
        max_gleaning=settings.max_gleaning,
        always_glean=settings.always_glean,
        with_claims=settings.claims,
        ontology=ontology,
        prompts=settings.prompts,
    )


def open_picture_reader(
    settings: Settings,
    models: Models,
    parse: Callable[[SourceDocument], ParsedDocument],
    identities: Mapping[str, str],
) -> tuple[PictureReader, Mapping[str, str]]:
    """Return what asks the model of the role `vision` about pictures.

    With it comes by which settings the media types are parsed: `identities`, and the model for those with pictures.
    """
    reader = PictureReader(
        parser=IllustratedParser(parse, PageReading(settings.vision_pages)),
        llm=models.chains[Role.VISION].llm(models.meter),
        n_ahead=models.n_pictures_ahead,
        language=settings.language or "",
        prompts=settings.prompts,
    )
    own = f"vision={reader.identity} {settings.vision_pages}"
    return reader, {**identities, **{name: f"{identities.get(name, '')} {own}".strip() for name in ILLUSTRATED}}
