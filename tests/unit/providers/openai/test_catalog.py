"""The catalog of providers and the names of models."""

import pytest

from quipu.errors import InvalidInput
from quipu.providers.openai.catalog import LITELLM, PROVIDERS, known_embedding_model, parse_model_name


@pytest.mark.parametrize(
    ("name", "parsed"),
    [
        ("ollama/qwen3:8b", ("ollama", "qwen3:8b")),
        ("openai/gpt-4.1-mini", ("openai", "gpt-4.1-mini")),
        ("openrouter/deepseek/deepseek-chat", ("openrouter", "deepseek/deepseek-chat")),
        (" vllm/Qwen/Qwen3-8B ", ("vllm", "Qwen/Qwen3-8B")),
        ("litellm/bedrock/anthropic.claude", (LITELLM, "bedrock/anthropic.claude")),
    ],
)
def test_a_name_is_cut_at_its_first_slash(name: str, parsed: tuple[str, str]) -> None:
    assert parse_model_name(name) == parsed


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("gpt-4.1-mini", "openai/gpt-4.1-mini"),
        ("claude-sonnet-4", "anthropic/claude-sonnet-4"),
        ("gemini-2.5-flash", "gemini/gemini-2.5-flash"),
        ("qwen3:8b", "ollama/qwen3:8b"),
        ("openia/gpt-4o", "openai/gpt-4o"),
        ("OpenAI/gpt-4o", "openai/gpt-4o"),
        ("olama/llama3", "ollama/llama3"),
        ("llama.cpp/qwen3", "llamacpp/qwen3"),
        ("google/gemini-2.5-flash", "gemini/gemini-2.5-flash"),
        ("bedrock/nova", "litellm/bedrock/nova"),
        ("qwen/qwen3-32b", "openrouter/qwen/qwen3-32b"),
        ("openai", "openai/MODEL"),
        ("openai/", "openai/MODEL"),
    ],
)
def test_another_name_is_refused_with_the_one_that_was_meant(name: str, meant: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_model_name(name)
    assert f"Did you mean {meant}?" in caught.value.remedy
    assert repr(name) in caught.value.message


@pytest.mark.parametrize("name", ["", "/", "/gpt-4o"])
def test_a_name_without_a_hint_is_refused_with_the_list_of_providers(name: str) -> None:
    with pytest.raises(InvalidInput, match="Providers: openai, azure, ollama"):
        parse_model_name(name)


def test_what_runs_at_home_needs_no_key_and_what_does_not_needs_one() -> None:
    known = [each for each in PROVIDERS.values() if each.name != "custom"]
    assert all(bool(each.key_variable) is not each.is_local for each in known)
    assert all("localhost" in each.base_url for each in known if each.is_local)
    assert all(each.base_url.startswith("https://") for each in known if not each.is_local and each.name != "azure")


@pytest.mark.parametrize(
    ("name", "dimension", "query_prefix"),
    [
        ("text-embedding-3-small", 1536, ""),
        ("text-embedding-3-large", 3072, ""),
        ("nomic-embed-text:v1.5", 768, "search_query: "),
        ("intfloat/multilingual-e5-large", None, "query: "),
        ("e5-base-v2", None, "query: "),
        (
            "intfloat/multilingual-e5-large-instruct",
            None,
            "Instruct: Given a question, retrieve passages that answer it\nQuery: ",
        ),
        ("BAAI/bge-m3", 1024, ""),
        ("snowflake-arctic-embed2", None, "query: "),
        ("my-own-model", None, ""),
    ],
)
def test_what_is_known_is_found_by_name(name: str, dimension: int | None, query_prefix: str) -> None:
    known = known_embedding_model(name)
    assert (known.dimension, known.query_prefix) == (dimension, query_prefix)
    assert known.max_tokens >= 256
