"""Prices: what hosted models cost."""

import pytest

from quipu.model.usage import Price
from quipu.wrap.prices import FREE, PriceTable

OWN = Price(input=7.0, output=8.0)


@pytest.mark.parametrize(
    ("model", "output"),
    [
        ("openai/gpt-4o", 10.0),
        ("gpt-4o", 10.0),
        ("openai/gpt-4o-2024-08-06", 10.0),
        ("openai/gpt-4o-mini", 0.6),
        ("openai/gpt-4o-mini-2024-07-18", 0.6),
        ("openrouter/openai/gpt-4.1-nano", 0.4),
        ("litellm/anthropic/claude-sonnet-4-20250514", 15.0),
        ("anthropic/claude-3-5-haiku-latest", 4.0),
        ("gemini/gemini-2.0-flash-001", 0.4),
        ("deepseek/deepseek-chat", 0.42),
        ("litellm/groq/llama-3.3-70b-versatile", 0.79),
        ("openai/text-embedding-3-small", 0.0),
    ],
)
def test_models_are_known_by_provider_and_version(model: str, output: float) -> None:
    price = PriceTable().find(model)
    assert price is not None
    assert price.output == output


@pytest.mark.parametrize(
    "model",
    [
        "openai/gpt-4o-audio-preview",
        "openai/gpt-5-turbo-of-tomorrow",
        "custom(10.0.0.1)/my-model",
        "together/deepseek/deepseek-chat",
        "",
    ],
)
def test_what_is_not_known_has_no_price(model: str) -> None:
    assert PriceTable().find(model) is None


@pytest.mark.parametrize("model", ["ollama/qwen3:8b", "lmstudio/gpt-4o", "vllm/org/model", "llamacpp/x", "tei/bge-m3"])
def test_local_models_are_free(model: str) -> None:
    assert PriceTable().find(model) == FREE


def test_the_users_prices_win() -> None:
    table = PriceTable({"gpt-4o": OWN, "ollama/*": OWN})
    assert table.find("openai/gpt-4o") == OWN
    assert table.find("ollama/qwen3:8b") == OWN
    assert table.find("openai/gpt-4o-mini") != OWN


def test_the_longest_pattern_wins() -> None:
    other = Price(input=1.0, output=1.0)
    table = PriceTable({"*": other, "openai/gpt-4o*": OWN, "gpt-*": other})
    assert table.find("openai/gpt-4o-2024-08-06") == OWN
    assert table.find("openai/gpt-4.1") == other
    assert table.find("anything") == other


def test_cached_tokens_are_never_dearer() -> None:
    for model in ("gpt-5", "gpt-4.1", "o3", "claude-haiku-4-5", "deepseek/deepseek-chat"):
        price = PriceTable().find(model)
        assert price is not None
        assert price.cached is not None
        assert price.cached < price.input


def test_a_price_has_the_currency_of_the_settings_and_built_in_prices_are_in_usd_only() -> None:
    euros = PriceTable({"gpt-4o": OWN}, "EUR")
    own, local = euros.find("openai/gpt-4o"), euros.find("ollama/qwen3:8b")
    assert own is not None and local is not None
    assert (own.input, own.currency, local.input, local.currency) == (OWN.input, "EUR", 0.0, "EUR")
    assert euros.find("openai/gpt-4.1-mini") is None
    in_dollars = PriceTable().find("openai/gpt-4.1-mini")
    assert in_dollars is not None and in_dollars.currency == "USD"
