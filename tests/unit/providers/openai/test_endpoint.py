"""Where a service is: addresses as users write them, headers, and nothing secret in any form as text."""

import pytest

from quipu.errors import InvalidInput, Unavailable
from quipu.model.secret import Secret
from quipu.providers.openai.catalog import PROVIDERS
from quipu.providers.openai.endpoint import Endpoint, Target

KEY = "sk-test-0123456789abcdef"


def _endpoint(provider: str = "custom", url: str = "") -> Endpoint:
    return Endpoint(provider=PROVIDERS[provider], base_url=url, key=Secret(KEY))


@pytest.mark.parametrize(
    "written",
    [
        "http://localhost:9000/v1",
        "http://localhost:9000/v1/",
        " http://localhost:9000/v1/chat/completions ",
        "http://localhost:9000/v1/embeddings",
        "localhost:9000/v1",
    ],
)
def test_an_address_is_tidied(written: str) -> None:
    assert _endpoint(url=written).url("/chat/completions", "m") == "http://localhost:9000/v1/chat/completions"


@pytest.mark.parametrize("written", ["example.com/v1", "ftp://example.com", "http://", "http://[::1", "http://a:99999"])
def test_what_is_no_address_is_refused(written: str) -> None:
    with pytest.raises(InvalidInput, match="is not a URL"):
        _endpoint(url=written)


def test_an_address_that_is_refused_is_shown_without_its_password() -> None:
    with pytest.raises(InvalidInput) as caught:
        _endpoint(url=f"ftp://user:{KEY}@example.com?token={KEY}")
    assert KEY not in str(caught.value)


def test_a_provider_without_an_address_wants_one() -> None:
    with pytest.raises(InvalidInput, match=r"azure has no default address.*NAME\.openai\.azure\.com"):
        _endpoint("azure")


def test_a_query_in_the_address_stays_behind_the_operation() -> None:
    assert (
        _endpoint(url="https://gate.example/v1?team=a").url("/models", "m") == "https://gate.example/v1/models?team=a"
    )


def test_on_azure_each_deployment_has_an_address_and_the_key_a_header_of_its_own() -> None:
    azure = Endpoint(
        provider=PROVIDERS["azure"], base_url="https://x.openai.azure.com", key=Secret(KEY), api_version="2025-01-01"
    )
    url = azure.url("/chat/completions", "my gpt")
    assert url == "https://x.openai.azure.com/openai/deployments/my%20gpt/chat/completions?api-version=2025-01-01"
    assert azure.request_headers()["api-key"] == KEY
    assert "Authorization" not in azure.request_headers()


@pytest.mark.parametrize(
    ("base", "expected"),
    [
        ("https://x.openai.azure.com/openai/v1", "https://x.openai.azure.com/openai/v1/embeddings"),
        (
            "https://x.openai.azure.com/openai/deployments/d/embeddings?api-version=2024-06-01",
            "https://x.openai.azure.com/openai/deployments/d/embeddings?api-version=2024-06-01",
        ),
        ("https://x.azure.com/", "https://x.azure.com/openai/deployments/d/embeddings?api-version=2024-10-21"),
    ],
)
def test_azures_other_addresses_are_taken_as_they_are(base: str, expected: str) -> None:
    assert _endpoint("azure", base).url("/embeddings", "d") == expected


def test_headers_hold_the_key_where_there_is_one() -> None:
    assert Endpoint(provider=PROVIDERS["openai"], key=Secret(KEY)).request_headers()["Authorization"] == f"Bearer {KEY}"
    assert "Authorization" not in Endpoint(provider=PROVIDERS["ollama"]).request_headers()


@pytest.mark.parametrize("key", ["sk-one\nsk-two-0123456789", "sk-ключ-0123456789"])
def test_a_key_that_is_none_is_refused_without_being_shown(key: str) -> None:
    endpoint = Endpoint(provider=PROVIDERS["openai"], key=Secret(key))
    with pytest.raises(Unavailable, match="OPENAI_API_KEY or QUIPU_LLM_KEY") as caught:
        endpoint.request_headers()
    assert "0123456789" not in str(caught.value)


def test_no_form_as_text_shows_more_than_provider_and_host() -> None:
    endpoint = Endpoint(
        provider=PROVIDERS["custom"],
        base_url=f"https://user:{KEY}@gate.example:8443/v1?key={KEY}",
        key=Secret(KEY),
    )
    target = Target(endpoint=endpoint, model="m")
    assert f"{endpoint!r}" == f"{endpoint}" == "Endpoint(custom at gate.example:8443)"
    assert KEY not in f"{target!r} {target.name} {target.label}"


def test_every_secret_of_an_endpoint_is_masked() -> None:
    endpoint = Endpoint(
        provider=PROVIDERS["custom"],
        base_url="https://user:password-in-url@gate.example/v1?code=code-in-query",
        key=Secret(KEY),
    )
    masked = endpoint.mask(f"{KEY} password-in-url code-in-query gate.example")
    assert masked == "*** *** *** gate.example"


def test_a_key_is_missing_only_where_the_provider_wants_one_at_its_own_address() -> None:
    assert Endpoint(provider=PROVIDERS["openai"]).needs_key
    assert not Endpoint(provider=PROVIDERS["openai"], base_url="http://localhost:1/v1").needs_key
    assert not Endpoint(provider=PROVIDERS["ollama"]).needs_key
    assert not _endpoint("openai").needs_key


@pytest.mark.parametrize(
    ("url", "is_loopback"),
    [
        ("http://localhost:1/v1", True),
        ("http://127.0.0.2/v1", True),
        ("http://[::1]:1/v1", True),
        ("http://a/v1", False),
    ],
)
def test_this_machine_is_known(url: str, is_loopback: bool) -> None:
    assert _endpoint(url=url).is_loopback is is_loopback


def test_a_name_and_a_password_in_the_address_are_sent_as_a_login_and_a_key_instead_of_them() -> None:
    url = "https://user:pass%40word@gate.example/v1"
    endpoint = Endpoint(provider=PROVIDERS["custom"], base_url=url)
    assert endpoint.url("/models", "m") == "https://gate.example/v1/models"
    assert endpoint.request_headers()["Authorization"] == "Basic dXNlcjpwYXNzQHdvcmQ="
    assert endpoint.mask("dXNlcjpwYXNzQHdvcmQ= pass@word") == "*** ***"
    assert _endpoint(url=url).request_headers()["Authorization"] == f"Bearer {KEY}"


def test_the_remedy_for_a_key_names_where_it_is_looked_for() -> None:
    def remedy(provider: str, names: tuple[str, ...] | None, base_url: str = "") -> str:
        return Endpoint(provider=PROVIDERS[provider], base_url=base_url, key_names=names).key_remedy

    assert remedy("openai", None) == "Set OPENAI_API_KEY or QUIPU_LLM_KEY to a key of OpenAI."
    assert remedy("openai", ("MINE", "OPENAI_API_KEY")) == "Set MINE or OPENAI_API_KEY to a key of OpenAI."
    assert remedy("vllm", ()) == "Give its key in secrets.toml, as vllm = …"
    assert remedy("vllm", (), "http://a:1/v1") == 'Give its key in secrets.toml, as "a:1" = …'
    assert remedy("openai", None, "http://a/v1") == (
        'Set QUIPU_LLM_KEY to a key of a, or give it in secrets.toml, as "a" = … '
        "(OPENAI_API_KEY is sent only to api.openai.com.)"
    )


def test_what_is_beside_the_compatible_part_is_found() -> None:
    assert Endpoint(provider=PROVIDERS["ollama"]).url_outside_api("/api/show") == "http://localhost:11434/api/show"


def test_only_a_custom_server_is_told_apart_by_its_host() -> None:
    assert Target(endpoint=_endpoint("vllm", "http://gpu:1/v1"), model="m").name == "vllm/m"
    assert Target(endpoint=_endpoint("custom", "http://gpu:1/v1"), model="m").name == "custom(gpu:1)/m"
