"""Wiring of services: which model does which work, where it is and with which key; nothing is asked here."""

from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

from quipu.errors import InvalidInput
from quipu.model.chat import Role
from quipu.model.secret import Secret, parse_extra
from quipu.providers.litellm import LiteLlm, LiteLlmParameters
from quipu.providers.local import ByteTokenizer
from quipu.providers.openai.catalog import LITELLM, PROVIDERS, Provider, parse_model_name
from quipu.providers.openai.chat import ChatParameters, OpenAIChat
from quipu.providers.openai.endpoint import Endpoint, Timeouts
from quipu.settings import Settings
from quipu.settings.keys import FoundKey, find_key, find_secrets
from quipu.settings.roles import RoleSettings
from quipu.settings.tables import saying_where
from quipu.wrap.recording import ReplayedLLM

LLM_KEY, EMBEDDER_KEY, RERANKER_KEY = "QUIPU_LLM_KEY", "QUIPU_EMBEDDER_KEY", "QUIPU_RERANKER_KEY"
REPLAY = "replay/"  # and the folder of a recording
LITELLM_CONCURRENCY = REPLAY_CONCURRENCY = 8
SILENCE_S = 180.0  # longest wait for the next piece of a reply
COUNT = ByteTokenizer().count

Chat = OpenAIChat | LiteLlm | ReplayedLLM


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatModel:
    """A chat model for one piece of work, as the settings have it, without wrappers.

    `key_origin` is where its key was found, "" where there is none.
    """

    role: Role
    name: str  # as it is written in settings
    chat: Chat
    concurrency: int
    is_shared: bool  # whether its limit of calls is that of all roles that name it
    key_origin: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """A service of vectors or scores: its address with the key, its model, and where the key was found."""

    endpoint: Endpoint
    model: str
    key_origin: str = ""


def chat_models(settings: Settings) -> dict[Role, list[ChatModel]]:
    """Return, for each role that has one, the model and after it its fallback. Nothing is asked yet.

    Raises InvalidInput for a name that is no model, and where a server's address is missing, NotFound for a recording
    that is not there.
    """
    own = {each.role: each for each in settings.role}
    recordings: dict[str, ReplayedLLM] = {}
    found: dict[Role, list[ChatModel]] = {}
    for role in Role:
        table = own.get(role) or RoleSettings(role=role)
        if name := table.llm or settings.llm:
            bare = RoleSettings(
                role=role, timeout_s=table.timeout_s, llm_base_url=_shared_address(settings, table, name)
            )
            asked = [(table, name), *([(bare, table.fallback)] if table.fallback else [])]
            found[role] = [
                _replayed(each, name, recordings) if name.startswith(REPLAY) else _chat_model(settings, each, name)
                for each, name in asked
            ]
    return found


def _shared_address(settings: Settings, table: RoleSettings, name: str) -> str | None:
    """Return the address of a role's model where its fallback, of the same provider, has none of its own.

    Raises InvalidInput where it has none and can be given none.
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
    """Return a recording as a model; each is read once. Raises NotFound where there is none."""
    if name not in recordings:
        recordings[name] = ReplayedLLM(Path(name.removeprefix(REPLAY)).expanduser())
    concurrency = table.concurrency or REPLAY_CONCURRENCY
    return ChatModel(role=table.role, name=name, chat=recordings[name], concurrency=concurrency, is_shared=True)


def embedder_service(settings: Settings) -> Service:
    """Return where the embedder 'openai' is. Raises InvalidInput where its model or its address is missing."""
    if not settings.embedder_model:
        raise InvalidInput(
            "The embedder 'openai' needs a model.",
            remedy='Set embedder_model, as in "openai/text-embedding-3-small" or "ollama/nomic-embed-text".',
        )
    return _service(settings, settings.embedder_model, settings.embedder_base_url, EMBEDDER_KEY)


def reranker_service(settings: Settings) -> Service | None:
    """Return where the reranker is, None where there is none."""
    if not settings.reranker:
        return None
    return _service(settings, settings.reranker, settings.reranker_base_url, RERANKER_KEY)


def _service(settings: Settings, name: str, base_url: str | None, own_key: str) -> Service:
    provider, model = parse_model_name(name)
    if provider not in PROVIDERS:
        raise InvalidInput(
            f"{name!r} is no embedder and no reranker: {provider} is asked for chat only.",
            remedy="Name a model of an OpenAI-compatible server: docs/providers.",
        )
    endpoint, found = _endpoint(settings, PROVIDERS[provider], base_url or "", (own_key,))
    return Service(endpoint=endpoint, model=model, key_origin=found.origin if found else "")


def _chat_model(settings: Settings, table: RoleSettings, name: str) -> ChatModel:
    """Return the model of that name; what the settings say of `llm` holds for it where it is that one."""
    provider, model = parse_model_name(name)
    saying_where(lambda: parse_extra(table.extra), f"[role.{table.role}]")
    is_default = name == settings.llm
    table = replace(
        table,
        llm_base_url=table.llm_base_url or (settings.llm_base_url if is_default else None),
        llm_api_version=table.llm_api_version or (settings.llm_api_version if is_default else None),
        timeout_s=table.timeout_s or settings.llm_timeout_s,
    )
    own_key = (LLM_KEY,) if _place(name, table.llm_base_url) == _owner(settings) else ()
    usual = PROVIDERS[provider].concurrency if provider in PROVIDERS else LITELLM_CONCURRENCY
    chat, found = (
        _litellm(settings, table, model, own_key)
        if provider == LITELLM
        else _openai(settings, table, PROVIDERS[provider], model, own_key)
    )
    return ChatModel(
        role=table.role,
        name=name,
        chat=chat,
        concurrency=table.concurrency or (settings.llm_concurrency if is_default else None) or usual,
        is_shared=table.concurrency is None,
        key_origin=found.origin if found else "",
    )


def _openai(
    settings: Settings, table: RoleSettings, provider: Provider, model: str, own_key: tuple[str, ...]
) -> tuple[OpenAIChat, FoundKey | None]:
    endpoint, found = _endpoint(settings, provider, table.llm_base_url or "", own_key)
    endpoint = replace(
        endpoint,
        api_version=table.llm_api_version or "",
        timeouts=_timeouts(table.timeout_s or settings.llm_timeout_s),
    )
    parameters = ChatParameters(
        extra=table.extra, temperature=table.temperature, max_output_tokens=table.max_output_tokens
    )
    return OpenAIChat(endpoint, model, count_tokens=COUNT, parameters=parameters), found


def _litellm(
    settings: Settings, table: RoleSettings, model: str, own_key: tuple[str, ...]
) -> tuple[LiteLlm, FoundKey | None]:
    service, host = model.partition("/")[0], _host_of(table.llm_base_url or "")
    lines = (host,) if host else (f"{LITELLM}/{service}", *own_key)
    found = find_key(own_key, lines, find_secrets(settings.secrets, settings.index))
    if host and found is None:
        raise InvalidInput(
            f"{LITELLM}/{model} is at {host}, and no key for that host is set: "
            "the library would send it those of the service.",
            remedy=f'Set QUIPU_LLM_KEY, or give it in secrets.toml, as "{host}" = … (any text where it wants none).',
        )
    parameters = LiteLlmParameters(
        key=Secret(found.value if found else ""),
        base_url=table.llm_base_url or "",
        timeout_s=table.timeout_s or settings.llm_timeout_s,
        temperature=table.temperature,
        max_output_tokens=table.max_output_tokens,
        extra=table.extra,
    )
    return LiteLlm(model, count_tokens=COUNT, parameters=parameters), found


def _endpoint(
    settings: Settings, provider: Provider, base_url: str, own_key: tuple[str, ...]
) -> tuple[Endpoint, FoundKey | None]:
    """Return a service with its key; elsewhere than at its own address that is not the provider's.

    Settings may be a stranger's, and name a server of theirs: it gets only a key that is given for it.
    """
    endpoint = Endpoint(provider=provider, base_url=base_url, timeouts=_timeouts(settings.llm_timeout_s))
    names, lines = own_key, [endpoint.host]
    if endpoint.is_official:
        names = tuple(name for name in (*own_key, provider.key_variable) if name)
        lines += [provider.name, *names]
    found = find_key(names, lines, find_secrets(settings.secrets, settings.index))
    return replace(endpoint, key=Secret(found.value if found else ""), key_names=names), found


def _timeouts(total_s: float) -> Timeouts:
    return Timeouts(total_s=total_s, silence_s=min(total_s, SILENCE_S))


def _owner(settings: Settings) -> tuple[str, str] | None:
    """Return whose the key is that names no provider: that of `llm`, or of the one place all roles are asked at."""
    if settings.llm:
        return _place(settings.llm, settings.llm_base_url)
    places = {_place(each.llm, each.llm_base_url) for each in settings.role if each.llm}
    return places.pop() if len(places) == 1 else None


def _place(name: str, base_url: str | None) -> tuple[str, str]:
    """Return a model's provider and where it is: a key for one host is no other's business. LiteLLM's name the service.

    The same host without encryption is another place.
    """
    provider, _, model = name.partition("/")
    if provider == LITELLM:
        provider = f"{LITELLM}/{model.partition('/')[0]}"
    address = base_url or (PROVIDERS[provider].base_url if provider in PROVIDERS else "")
    return provider, f"{urlsplit(address).scheme}://{_host_of(address)}"


def _host_of(address: str) -> str:
    return urlsplit(address).netloc.rpartition("@")[2]
