"""Services named in the settings: which model does which work, at which address, with which key. Nothing is called."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

from quipu.errors import InvalidInput
from quipu.model.chat import Role
from quipu.model.document import ParsedDocument, SourceDocument
from quipu.model.secret import Secret, parse_extra
from quipu.parse import MEDIA_TYPE_BY_SUFFIX
from quipu.parse.remote import IMAGE_TYPES, PARSER_SERVERS, RemoteParser
from quipu.providers.litellm import LiteLlm, LiteLlmParameters
from quipu.providers.local import ByteTokenizer
from quipu.providers.openai.catalog import LITELLM, PROVIDERS, Provider, parse_model_name
from quipu.providers.openai.chat import ChatParameters, OpenAIChat
from quipu.providers.openai.endpoint import Endpoint, Timeouts
from quipu.providers.pretrained import RERANKER_LIBRARIES
from quipu.settings import Settings
from quipu.settings.sources import FoundKey, find_key, find_secrets
from quipu.settings.tables import RoleSettings, with_origin
from quipu.wrap.recording import ReplayedLLM

LLM_KEY, EMBEDDER_KEY, RERANKER_KEY = "QUIPU_LLM_KEY", "QUIPU_EMBEDDER_KEY", "QUIPU_RERANKER_KEY"
PARSER_KEY = "QUIPU_PARSER_KEY"
REPLAY = "replay/"  # followed by the folder of a recording
LITELLM_CONCURRENCY = REPLAY_CONCURRENCY = 8
SILENCE_S = 180.0  # longest wait for the next part of a streamed reply
TOKENIZER = ByteTokenizer()

ChatProvider = OpenAIChat | LiteLlm | ReplayedLLM


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatModel:
    """A chat model for one role, as the settings define it, without wrappers.

    `is_shared`: all roles that name the model share its concurrency limit. `key_origin` says where its key was found,
    "" if there is none.
    """

    role: Role
    name: str  # as written in the settings
    chat: ChatProvider
    concurrency: int
    is_shared: bool
    key_origin: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelService:
    """A service for vectors or scores: its endpoint with the key, its model, and where the key was found."""

    endpoint: Endpoint
    model: str
    key_origin: str = ""


def chat_models(settings: Settings) -> dict[Role, list[ChatModel]]:
    """Return for each role the model, followed by its fallback; roles without a model are left out.

    Raises InvalidInput for an unknown model name or a missing address, NotFound for a missing recording.
    """
    table_by_role = {table.role: table for table in settings.role}
    recordings: dict[str, ReplayedLLM] = {}
    models_by_role: dict[Role, list[ChatModel]] = {}
    for role in Role:
        table = table_by_role.get(role) or RoleSettings(role=role)
        if name := settings.model_of(role):
            named = [(table, name)]
            if table.fallback:
                base_url = _fallback_address(settings, table, name)
                named.append(
                    (RoleSettings(role=role, timeout_s=table.timeout_s, llm_base_url=base_url), table.fallback)
                )
            models_by_role[role] = [
                _replayed(table, name, recordings) if name.startswith(REPLAY) else _chat_model(settings, table, name)
                for table, name in named
            ]
    return models_by_role


def _fallback_address(settings: Settings, table: RoleSettings, name: str) -> str | None:
    """Return the address of a role's model for its fallback, if that has the same provider and no default address.

    Raises InvalidInput if the fallback has no default address and another provider.
    """
    provider = (table.fallback or "").partition("/")[0]
    if table.fallback == settings.llm or provider not in PROVIDERS or PROVIDERS[provider].base_url:
        return None
    if name.partition("/")[0] != provider:
        raise InvalidInput(
            f"The fallback {table.fallback!r} has no default address.",
            remedy=f"Name one of a provider that has, or of the server of {name}: docs/providers.",
        )
    return table.llm_base_url or (settings.llm_base_url if name == settings.llm else None)


def _replayed(table: RoleSettings, name: str, recordings: dict[str, ReplayedLLM]) -> ChatModel:
    """Return a recording as a model; each recording is read once. Raises NotFound if there is none."""
    if name not in recordings:
        recordings[name] = ReplayedLLM(Path(name.removeprefix(REPLAY)).expanduser())
    concurrency = table.concurrency or REPLAY_CONCURRENCY
    return ChatModel(role=table.role, name=name, chat=recordings[name], concurrency=concurrency, is_shared=True)


def embedder_service(settings: Settings) -> ModelService:
    """Return the service of the embedder 'openai'. Raises InvalidInput if its model or its address is missing."""
    if not settings.embedder_model:
        raise InvalidInput(
            "The embedder 'openai' needs a model.",
            remedy='Set embedder_model, as in "openai/text-embedding-3-small" or "ollama/nomic-embed-text".',
        )
    return _service(settings, settings.embedder_model, settings.embedder_base_url, EMBEDDER_KEY)


def reranker_service(settings: Settings) -> ModelService | None:
    """Return the service of the reranker; None if there is none, or if a library runs it in this process."""
    if not settings.reranker or local_reranker_parts(settings):
        return None
    return _service(settings, settings.reranker, settings.reranker_base_url, RERANKER_KEY)


def local_reranker_parts(settings: Settings) -> tuple[str, str] | None:
    """Return library and model of a reranker that runs in this process; None if there is none."""
    library, _, model = (settings.reranker or "").partition("/")
    return (library, model) if library in RERANKER_LIBRARIES else None


def _service(settings: Settings, name: str, base_url: str | None, own_key: str) -> ModelService:
    provider, model = parse_model_name(name)
    if provider not in PROVIDERS:
        raise InvalidInput(
            f"{name!r} cannot be an embedder or a reranker: {provider} is used for chat only.",
            remedy="Name a model of an OpenAI-compatible server: docs/providers.",
        )
    endpoint, key = _endpoint(settings, PROVIDERS[provider], base_url or "", (own_key,))
    return ModelService(endpoint=endpoint, model=model, key_origin=key.origin if key else "")


def _chat_model(settings: Settings, table: RoleSettings, name: str) -> ChatModel:
    """Return the model with this name. The settings beside `llm` apply to it if it is the default model."""
    provider, model = parse_model_name(name)
    with_origin(lambda: parse_extra(table.extra), f"[role.{table.role}]")
    is_default = name == settings.llm
    table = replace(
        table,
        llm_base_url=table.llm_base_url or (settings.llm_base_url if is_default else None),
        llm_api_version=table.llm_api_version or (settings.llm_api_version if is_default else None),
        timeout_s=table.timeout_s or settings.llm_timeout_s,
    )
    own_key = (LLM_KEY,) if _key_scope(name, table.llm_base_url) == _scope_of_llm_key(settings) else ()
    default_concurrency = PROVIDERS[provider].concurrency if provider in PROVIDERS else LITELLM_CONCURRENCY
    chat, key = (
        _litellm(settings, table, model, own_key)
        if provider == LITELLM
        else _openai(settings, table, PROVIDERS[provider], model, own_key)
    )
    return ChatModel(
        role=table.role,
        name=name,
        chat=chat,
        concurrency=table.concurrency or (settings.llm_concurrency if is_default else None) or default_concurrency,
        is_shared=table.concurrency is None,
        key_origin=key.origin if key else "",
    )


def _openai(
    settings: Settings, table: RoleSettings, provider: Provider, model: str, own_key: tuple[str, ...]
) -> tuple[OpenAIChat, FoundKey | None]:
    endpoint, key = _endpoint(settings, provider, table.llm_base_url or "", own_key)
    endpoint = replace(
        endpoint,
        api_version=table.llm_api_version or "",
        timeouts=_timeouts(table.timeout_s or settings.llm_timeout_s),
    )
    parameters = ChatParameters(
        extra=table.extra, temperature=table.temperature, max_output_tokens=table.max_output_tokens
    )
    return OpenAIChat(endpoint, model, count_tokens=TOKENIZER.count, parameters=parameters), key


def _litellm(
    settings: Settings, table: RoleSettings, model: str, own_key: tuple[str, ...]
) -> tuple[LiteLlm, FoundKey | None]:
    service, host = model.partition("/")[0], _host_of(table.llm_base_url or "")
    entries = (host,) if host else (f"{LITELLM}/{service}", *own_key)
    key = find_key(own_key, entries, find_secrets(settings.secrets, settings.outer_folder))
    if host and key is None:
        raise InvalidInput(
            f"{LITELLM}/{model} is at {host}, and no key for that host is set: "
            "the library would send it the keys of the service.",
            remedy=f'Set QUIPU_LLM_KEY, or give it in secrets.toml, as "{host}" = … (any text if it needs none).',
        )
    parameters = LiteLlmParameters(
        key=Secret(key.value if key else ""),
        base_url=table.llm_base_url or "",
        timeout_s=table.timeout_s or settings.llm_timeout_s,
        temperature=table.temperature,
        max_output_tokens=table.max_output_tokens,
        extra=table.extra,
    )
    return LiteLlm(model, count_tokens=TOKENIZER.count, parameters=parameters), key


def _endpoint(
    settings: Settings, provider: Provider, base_url: str, own_key: tuple[str, ...]
) -> tuple[Endpoint, FoundKey | None]:
    """Return an endpoint with its key. The provider's own keys are used only at the provider's own addresses.

    Settings may come from a stranger and name the stranger's server: it gets only a key that was set for it.
    """
    endpoint = Endpoint(provider=provider, base_url=base_url, timeouts=_timeouts(settings.llm_timeout_s))
    names, entries = own_key, [endpoint.host]
    if endpoint.is_official:
        names = tuple(name for name in (*own_key, provider.key_variable) if name)
        entries += [provider.name, *names]
    key = find_key(names, entries, find_secrets(settings.secrets, settings.outer_folder))
    return replace(endpoint, key=Secret(key.value if key else ""), key_names=names), key


def remote_parser(settings: Settings) -> tuple[Mapping[str, str], Callable[[SourceDocument], ParsedDocument]]:
    """Return the media types, by suffix, of the files that the server of `parser` reads, and what asks it.

    Raises InvalidInput without an address, and for a suffix that is not known.
    """
    if settings.parser_url is None:
        raise InvalidInput(
            f"parser = {settings.parser!r} needs the address of its server.",
            remedy='Set parser_url, as in "http://localhost:5001".',
        )
    known = {**MEDIA_TYPE_BY_SUFFIX, **IMAGE_TYPES}
    suffixes = [f".{suffix.lower()}" for suffix in settings.parser_suffixes.split()]
    if unknown := [suffix for suffix in suffixes if suffix not in known]:
        raise InvalidInput(
            f"parser_suffixes names {unknown[0]!r}, which is no known format.", remedy="See docs/reference/formats.md."
        )
    key = find_key(
        (PARSER_KEY,), [_host_of(settings.parser_url)], find_secrets(settings.secrets, settings.outer_folder)
    )
    parser = RemoteParser(
        server=PARSER_SERVERS[settings.parser],
        url=settings.parser_url.rstrip("/"),
        timeout_s=settings.parser_timeout_s,
        key=Secret(key.value if key else ""),
    )
    return {suffix: known[suffix] for suffix in suffixes}, parser.parse


def _timeouts(total_s: float) -> Timeouts:
    return Timeouts(total_s=total_s, silence_s=min(total_s, SILENCE_S))


def _scope_of_llm_key(settings: Settings) -> tuple[str, str] | None:
    """Return where QUIPU_LLM_KEY may be sent: to the default model, or to the only place that all roles use."""
    if settings.llm:
        return _key_scope(settings.llm, settings.llm_base_url)
    scopes = {_key_scope(table.llm, table.llm_base_url) for table in settings.role if table.llm}
    return scopes.pop() if len(scopes) == 1 else None


def _key_scope(name: str, base_url: str | None) -> tuple[str, str]:
    """Return provider, scheme and host of a model. A key for one of them is sent to no other.

    For LiteLLM the provider includes the service. The same host without encryption is another scope.
    """
    provider, _, model = name.partition("/")
    if provider == LITELLM:
        provider = f"{LITELLM}/{model.partition('/')[0]}"
    address = base_url or (PROVIDERS[provider].base_url if provider in PROVIDERS else "")
    return provider, f"{urlsplit(address).scheme}://{_host_of(address)}"


def _host_of(address: str) -> str:
    return urlsplit(address).netloc.rpartition("@")[2]
