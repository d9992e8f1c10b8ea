"""Wiring of models: which model does which work, where, with which key and limit, and what is refused."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from quipu.engine.components import Models
from quipu.errors import InvalidInput
from quipu.ingest.llm import LlmExtractor
from quipu.ingest.local import LocalExtractor
from quipu.model.chat import Role
from quipu.model.secret import Secret
from quipu.model.usage import Price, UsageRow
from quipu.ports.ingest import Extractor
from quipu.ports.store import CallReply
from quipu.providers.litellm import LiteLlmParameters
from quipu.providers.local import WordLlamaEmbedder
from quipu.providers.openai.catalog import PROVIDERS
from quipu.providers.openai.chat import OpenAIChat
from quipu.settings import Settings
from quipu.settings.tables import ModelPrice, RoleSettings
from quipu.wiring import make_extractor, open_engine, services
from quipu.wiring.models import check_settings, open_models
from quipu.wiring.services import chat_models, embedder_service, reranker_service
from quipu.wrap.guard import Guard

OWN_KEY = "sk-own-key-of-the-user"


@pytest.fixture
def no_keys(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Take every key out of the environment, and work in a folder without secrets."""
    monkeypatch.chdir(tmp_path)
    for provider in PROVIDERS.values():
        monkeypatch.delenv(provider.key_variable or "QUIPU_LLM_KEY", raising=False)


def _settings(*roles: RoleSettings, **values: Any) -> Settings:
    return Settings(**{"role": roles, **values})


def _keys(settings: Settings) -> dict[str, tuple[str, str]]:
    """Return, for each model, the key it would be sent and where that was found."""
    keys: dict[str, tuple[str, str]] = {}
    for models in chat_models(settings).values():
        for model in models:
            assert isinstance(model.chat, OpenAIChat)
            keys[model.name] = (model.chat.target.endpoint.key.reveal(), model.key_origin)
    return keys


def _role(role: Role, llm: str | None = None, **values: Any) -> RoleSettings:
    return RoleSettings(role=role, llm=llm, **values)


@pytest.mark.usefixtures("no_keys")
def test_every_role_has_the_model_of_all_but_where_it_has_its_own() -> None:
    own = _role(Role.ANSWER, "ollama/qwen3:8b", fallback="openai/gpt-4.1")
    models = chat_models(_settings(own, llm="openai/gpt-4.1-mini"))
    assert set(models) == set(Role) - {Role.VISION}  # only where a table names it: pictures are not sent by chance
    assert [model.name for model in models[Role.ANSWER]] == ["ollama/qwen3:8b", "openai/gpt-4.1"]
    assert [model.name for model in models[Role.EXTRACT]] == ["openai/gpt-4.1-mini"]


@pytest.mark.usefixtures("no_keys")
def test_a_fallback_without_an_address_is_at_the_server_of_its_model() -> None:
    large = _role(Role.ANSWER, "custom/large", llm_base_url="http://gpu:1/v1", fallback="custom/small")
    models = chat_models(
        _settings(large, _role(Role.JUDGE, fallback="custom/tiny"), llm="custom/m", llm_base_url="http://a/v1")
    )
    hosts = [model.chat.target.endpoint.host for model in (*models[Role.ANSWER], *models[Role.JUDGE])]  # type: ignore[union-attr]
    assert hosts == ["gpu:1", "gpu:1", "a", "a"]
    with pytest.raises(InvalidInput, match=r"'custom/small' has no default address\..*Name one of a provider that has"):
        chat_models(_settings(_role(Role.ANSWER, "openai/gpt-4.1", fallback="custom/small")))


@pytest.mark.usefixtures("no_keys")
def test_without_a_model_for_all_only_the_roles_that_name_one_have_one() -> None:
    assert set(chat_models(_settings(_role(Role.ANSWER, "ollama/qwen3:8b")))) == {Role.ANSWER}
    assert chat_models(Settings()) == {}


@pytest.mark.usefixtures("no_keys")
def test_what_is_said_of_llm_holds_for_the_roles_that_use_it_and_no_other_model() -> None:
    roles = (_role(Role.JUDGE, timeout_s=9.0), _role(Role.ANSWER, "custom/b", llm_base_url="http://b/v1"))
    settings = _settings(*roles, llm="custom/a", llm_base_url="http://a/v1", llm_concurrency=3, llm_timeout_s=70.0)
    found = {role: models[0] for role, models in chat_models(settings).items()}
    chats = {role: model.chat for role, model in found.items() if isinstance(model.chat, OpenAIChat)}
    assert [chats[role].target.endpoint.host for role in (Role.EXTRACT, Role.JUDGE, Role.ANSWER)] == ["a", "a", "b"]
    assert [found[role].concurrency for role in (Role.EXTRACT, Role.JUDGE)] == [3, 3]
    assert found[Role.ANSWER].concurrency == PROVIDERS["custom"].concurrency
    timeouts = [chats[role].target.endpoint.timeouts.total_s for role in (Role.EXTRACT, Role.JUDGE, Role.ANSWER)]
    assert timeouts == [70.0, 9.0, 70.0]


@pytest.mark.usefixtures("no_keys")
def test_a_key_that_names_no_provider_is_sent_to_the_provider_of_llm_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUIPU_LLM_KEY", OWN_KEY)
    monkeypatch.setenv("DEEPSEEK_API_KEY", "dk-key")
    roles = (
        _role(Role.ANSWER, "deepseek/deepseek-chat", fallback="openrouter/x/y"),
        _role(Role.KEYWORDS, "openai/gpt-4.1-nano"),
        _role(Role.JUDGE, "openai/proxied", llm_base_url="https://proxy.example/v1"),
    )
    assert _keys(_settings(*roles, llm="openai/gpt-4.1-mini")) == {
        "openai/gpt-4.1-mini": (OWN_KEY, "environment QUIPU_LLM_KEY"),
        "openai/gpt-4.1-nano": (OWN_KEY, "environment QUIPU_LLM_KEY"),
        "deepseek/deepseek-chat": ("dk-key", "environment DEEPSEEK_API_KEY"),
        "openrouter/x/y": ("", ""),
        "openai/proxied": ("", ""),
    }


@pytest.mark.usefixtures("no_keys")
def test_without_llm_that_key_is_for_the_one_place_that_roles_name_or_for_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUIPU_LLM_KEY", OWN_KEY)
    one = (_role(Role.EXTRACT, "openai/small"), _role(Role.ANSWER, "openai/large"))
    assert {key for key, _ in _keys(_settings(*one)).values()} == {OWN_KEY}
    two = (_role(Role.EXTRACT, "openai/small"), _role(Role.ANSWER, "mistral/large"))
    assert {key for key, _ in _keys(_settings(*two)).values()} == {""}


@pytest.mark.usefixtures("no_keys")
def test_by_litellm_too_that_key_is_sent_to_one_service_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUIPU_LLM_KEY", OWN_KEY)
    sent: dict[str, str] = {}

    def note(model: str, *, parameters: LiteLlmParameters, **_: object) -> None:  # the library is an extra
        sent[model] = parameters.key.reveal()

    monkeypatch.setattr(services, "LiteLlm", note)
    roles = (
        _role(Role.ANSWER, "litellm/openai/gpt-4.1", fallback="litellm/groq/llama"),
        _role(Role.JUDGE, "litellm/anthropic/claude-opus-4-1"),
    )
    chat_models(_settings(*roles, llm="litellm/anthropic/claude-haiku-4-5"))
    assert sent == {
        "anthropic/claude-haiku-4-5": OWN_KEY,
        "anthropic/claude-opus-4-1": OWN_KEY,
        "openai/gpt-4.1": "",
        "groq/llama": "",
    }


@pytest.mark.usefixtures("no_keys")
def test_embedder_and_reranker_have_keys_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUIPU_LLM_KEY", OWN_KEY)
    monkeypatch.setenv("QUIPU_RERANKER_KEY", "rk-key")
    settings = Settings(embedder="openai", embedder_model="openai/text-embedding-3-small", reranker="jina/m")
    embedder, reranker = embedder_service(settings), reranker_service(settings)
    assert reranker is not None
    assert (embedder.endpoint.key.reveal(), reranker.endpoint.key.reveal()) == ("", "rk-key")
    assert embedder.endpoint.key_remedy == "Set QUIPU_EMBEDDER_KEY or OPENAI_API_KEY to a key of OpenAI."


def _key_at(base_url: str, llm: str = "openai/qwen") -> str:
    """Return the key of a role that settings give an address of its own."""
    (key, _) = _keys(_settings(_role(Role.ANSWER, llm, llm_base_url=base_url)))[llm]
    return key


@pytest.mark.usefixtures("no_keys")
@pytest.mark.parametrize(
    "base_url",
    [
        "http://evil.example/v1",
        "https://api.openai.com.evil.example/v1",
        "https://api.openai.com@evil.example/v1",
        "http://api.openai.com/v1",
        "https://api.openai.com:8443/v1",
        "http://localhost:11434/v1",
    ],
)
def test_a_providers_key_is_sent_to_no_other_address(base_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", OWN_KEY)
    assert _key_at(base_url) == ""
    assert (
        embedder_service(
            Settings(embedder="openai", embedder_model="openai/e", embedder_base_url=base_url)
        ).endpoint.key
        == Secret()
    )
    monkeypatch.delenv("OPENAI_API_KEY")
    Path("secrets.toml").write_text(f'openai = "{OWN_KEY}"\nOPENAI_API_KEY = "{OWN_KEY}"\n', encoding="utf-8")
    assert _key_at(base_url) == ""
    assert _key_at("https://API.OpenAI.com:443/v1/") == OWN_KEY


@pytest.mark.usefixtures("no_keys")
def test_a_key_of_azure_is_sent_to_azure_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", OWN_KEY)
    assert _key_at("https://mine.openai.azure.com", "azure/gpt") == OWN_KEY
    for elsewhere in ("https://evil.example", "http://mine.openai.azure.com", "https://openai.azure.com.evil.example"):
        assert _key_at(elsewhere, "azure/gpt") == ""


@pytest.mark.usefixtures("no_keys")
def test_a_line_for_a_host_is_its_key_and_no_other_hosts() -> None:
    Path("secrets.toml").write_text('"gpu.example:8000" = "hk-key"\ncustom = "no"\nvllm = "no"\n', encoding="utf-8")
    assert _key_at("http://gpu.example:8000/v1") == _key_at("http://gpu.example:8000/v1", "vllm/m") == "hk-key"
    assert _key_at("http://gpu.example:9000/v1", "vllm/m") == _key_at("http://b/v1", "custom/m") == ""


@pytest.mark.usefixtures("no_keys")
def test_by_litellm_an_address_needs_a_key_as_the_library_would_send_it_those_it_finds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sent: list[str] = []
    monkeypatch.setattr(services, "LiteLlm", lambda _, parameters, **__: sent.append(parameters.key.reveal()))
    settings = _settings(_role(Role.ANSWER, "litellm/openai/x", llm_base_url="http://evil.example/v1"))
    with pytest.raises(InvalidInput, match=r"no key for that host is set"):
        chat_models(settings)
    Path("secrets.toml").write_text('"evil.example" = "ek-key"\nlitellm = "no"\n', encoding="utf-8")
    chat_models(settings)
    assert sent == ["ek-key"]


@pytest.mark.usefixtures("no_keys")
@pytest.mark.parametrize(
    ("values", "unpriced"),
    [
        ({"llm": "custom/large", "llm_base_url": "http://a/v1"}, "custom/large"),
        ({"llm": "openai/gpt-4.1", "role": (_role(Role.ANSWER, fallback="openai/x"),)}, "openai/x"),
        ({"role": (_role(Role.SUMMARISE, "openai/x"),)}, "openai/x"),
        ({"embedder": "openai", "embedder_model": "openai/x"}, "openai/x"),
        ({"llm": "openai/gpt-4.1", "reranker": "jina/x"}, "jina/x"),
    ],
)
async def test_a_budget_in_money_wants_a_price_for_every_model_before_anything_is_asked(
    tmp_path: Path, values: dict[str, Any], unpriced: str
) -> None:
    priced = ModelPrice(model=unpriced, price=Price(input=1.0, output=1.0))
    index = tmp_path / "kb"
    with pytest.raises(InvalidInput, match=rf"No price is known for {unpriced}, .*\[\[price\]\]"):
        await open_engine(Settings(index=index, budget="5.00", **values))
    assert not index.exists()
    check_settings(_settings(**{"budget": "5.00", "price": (priced,), **values}))
    check_settings(Settings(budget="3 calls, 10k tokens", **values))


@pytest.mark.usefixtures("no_keys")
def test_a_key_in_extra_is_refused_with_the_table_it_is_in() -> None:
    with pytest.raises(
        InvalidInput, match=r"extra contains 'api_key', but a key must not be stored in a setting \(\[role.answer\]\)\."
    ) as caught:
        chat_models(_settings(_role(Role.ANSWER, "openai/x", extra=f'{{"api_key": "{OWN_KEY}"}}')))
    assert OWN_KEY not in str(caught.value)


@pytest.mark.usefixtures("no_keys")
def test_a_model_whose_key_no_variable_may_hold_is_told_of_the_file() -> None:
    own = _role(Role.ANSWER, "custom/b", llm_base_url="http://b/v1")
    (model,) = chat_models(_settings(own, llm="openai/a"))[Role.ANSWER]
    assert isinstance(model.chat, OpenAIChat)
    assert model.chat.target.endpoint.key_remedy == 'Give its key in secrets.toml, as "b" = …'


@pytest.mark.usefixtures("no_keys")
@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"llm": "gpt-4o"}, r"'gpt-4o' is not a model.*Did you mean openai/gpt-4o\?"),
        ({"llm": "custom/own"}, "custom has no default address"),
        ({"reranker": "jina"}, "'jina' is not a model"),
        ({"reranker": "litellm/x"}, "litellm is used for chat only"),
        ({"embedder": "openai"}, "The embedder 'openai' needs a model"),
        ({"extractor": "llm"}, "needs a language model"),
    ],
)
async def test_settings_that_cannot_work_leave_no_index_behind(
    tmp_path: Path, settings: dict[str, str], complaint: str
) -> None:
    with pytest.raises(InvalidInput, match=complaint):
        await open_engine(Settings(index=tmp_path / "kb", **settings))
    assert not (tmp_path / "kb").exists()


class _NoReplies:
    """Keeps nothing."""

    async def find_replies(self, keys: Sequence[str]) -> dict[str, str]:
        return {}

    async def record_call(self, usage: Sequence[UsageRow], reply: CallReply | None = None) -> None:
        return None

    async def facts_revision(self) -> int:
        return 0


def _limits(models: Models) -> dict[Role, Guard]:
    return {role: chain._links[0].guards[-1] for role, chain in models.chains.items()}


@pytest.mark.usefixtures("no_keys")
def test_roles_that_ask_one_model_share_its_limit_but_one_with_a_concurrency_of_its_own() -> None:
    roles = (
        _role(Role.SUMMARISE, "ollama/other"),
        _role(Role.ANSWER, concurrency=2),
        _role(Role.KEYWORDS, temperature=0.5),
    )
    limits = _limits(open_models(_settings(*roles, llm="ollama/one"), _NoReplies(), WordLlamaEmbedder()))
    shared = limits[Role.EXTRACT]
    assert limits[Role.JUDGE] is limits[Role.REPORT] is limits[Role.KEYWORDS] is shared
    assert limits[Role.SUMMARISE] is not shared
    assert limits[Role.ANSWER] is not shared


@pytest.mark.usefixtures("no_keys")
def test_the_extractor_is_the_model_where_there_is_one_unless_rules_are_asked_for() -> None:
    def extractor(**values: str) -> Extractor:
        settings = Settings(**values)
        return make_extractor(settings, open_models(settings, _NoReplies(), WordLlamaEmbedder()))

    assert isinstance(extractor(), LocalExtractor)
    assert isinstance(extractor(llm="ollama/one"), LlmExtractor)
    assert isinstance(extractor(llm="ollama/one", extractor="local"), LocalExtractor)


def test_without_a_model_nothing_that_asks_one_is_imported(tmp_path: Path) -> None:
    probe = (
        "import sys; from quipu import sync\n"
        f"with sync.open({str(tmp_path / 'kb')!r}) as kb: kb.add_text('Alice Kober taught.'); kb.query('Who taught?')\n"
        "asking = ('aiohttp', 'litellm', 'quipu.providers.openai.chat', 'quipu.ingest.llm', 'quipu.wiring.models')\n"
        "print([name for name in asking if name in sys.modules])"
    )
    environment = {name: value for name, value in os.environ.items() if not name.startswith("QUIPU_")}
    ran = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True, env=environment)
    assert ran.stdout == "[]\n"
