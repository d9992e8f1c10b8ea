"""Catalog: the services that are known by name, and how a model of theirs is written ("ollama/qwen3:8b")."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum
from types import MappingProxyType

from quipu.errors import InvalidInput


class JsonAbility(StrEnum):
    """What a server enforces of a reply: a JSON schema, some JSON object, or nothing."""

    SCHEMA = "schema"
    OBJECT = "object"
    NONE = "none"


class RerankShape(StrEnum):
    """The forms a request to rerank takes. `standard`: Jina's, Cohere's, vLLM's; Voyage and TEI have their own."""

    STANDARD = "standard"
    VOYAGE = "voyage"
    TEI = "tei"


@dataclass(frozen=True, slots=True, kw_only=True)
class InputKind:
    """The parameter that tells an embedding service questions from passages, and its two values; "" for none."""

    parameter: str = ""
    query: str = ""
    passage: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """What is known of a service. Where it turns out otherwise, the adapters find out and remember.

    `concurrency` is how many calls at once it bears to begin with; `batch_texts` how many texts a call to embed or
    rerank may have.
    """

    name: str
    title: str
    base_url: str = ""  # "": has to be given
    domains: tuple[str, ...] = ()  # where each user has an address of their own: what its host ends in
    key_variable: str = ""  # "": no key needed
    is_local: bool = False  # free, on a machine of one's own
    concurrency: int = 16
    json: JsonAbility = JsonAbility.SCHEMA
    limit_name: str = "max_tokens"
    batch_texts: int = 64
    input_kind: InputKind = InputKind()
    dimension_parameter: str = "dimensions"
    rerank_url: str = ""  # "": base_url
    rerank_shape: RerankShape = RerankShape.STANDARD
    api_version: str = ""
    start: str = ""  # how a local server is started
    note: str = ""


LITELLM = "litellm"

_LISTED = (
    Provider(
        name="openai",
        title="OpenAI",
        base_url="https://api.openai.com/v1",
        key_variable="OPENAI_API_KEY",
        limit_name="max_completion_tokens",
        batch_texts=256,
    ),
    Provider(
        name="azure",
        title="Azure OpenAI",
        key_variable="AZURE_OPENAI_API_KEY",
        domains=(
            ".openai.azure.com",
            ".openai.azure.us",
            ".openai.azure.cn",
            ".cognitiveservices.azure.com",
            ".services.ai.azure.com",
        ),
        api_version="2024-10-21",
        note="The model is the name of your deployment; the address is https://NAME.openai.azure.com.",
    ),
    Provider(
        name="ollama",
        title="Ollama",
        base_url="http://localhost:11434/v1",
        is_local=True,
        concurrency=4,
        batch_texts=32,
        start="ollama serve",
        note="On most machines its context window is 4,096 tokens unless OLLAMA_CONTEXT_LENGTH says otherwise.",
    ),
    Provider(
        name="lmstudio",
        title="LM Studio",
        base_url="http://localhost:1234/v1",
        is_local=True,
        concurrency=2,
        batch_texts=32,
        start="lms server start",
    ),
    Provider(
        name="vllm",
        title="vLLM",
        base_url="http://localhost:8000/v1",
        is_local=True,
        concurrency=16,
        start="vllm serve MODEL",
    ),
    Provider(
        name="llamacpp",
        title="llama.cpp",
        base_url="http://localhost:8080/v1",
        is_local=True,
        concurrency=1,
        batch_texts=16,
        start="llama-server -m MODEL.gguf -c 16384",
        note="Calls at once share the context window: raise llm_concurrency together with its --parallel.",
    ),
    Provider(
        name="deepseek",
        title="DeepSeek",
        base_url="https://api.deepseek.com/v1",
        key_variable="DEEPSEEK_API_KEY",
        json=JsonAbility.OBJECT,
    ),
    Provider(
        name="gemini",
        title="Gemini",
        base_url="https://generativelanguage.googleapis.com/v1beta/openai",
        key_variable="GEMINI_API_KEY",
        batch_texts=100,
    ),
    Provider(
        name="anthropic",
        title="Anthropic",
        base_url="https://api.anthropic.com/v1",
        key_variable="ANTHROPIC_API_KEY",
        concurrency=8,
        json=JsonAbility.NONE,
        note="Its compatible address caches no prompts; litellm/anthropic/MODEL speaks its own.",
    ),
    Provider(
        name="openrouter",
        title="OpenRouter",
        base_url="https://openrouter.ai/api/v1",
        key_variable="OPENROUTER_API_KEY",
    ),
    Provider(
        name="mistral",
        title="Mistral",
        base_url="https://api.mistral.ai/v1",
        key_variable="MISTRAL_API_KEY",
        concurrency=8,
        batch_texts=32,
        dimension_parameter="output_dimension",
    ),
    Provider(
        name="groq",
        title="Groq",
        base_url="https://api.groq.com/openai/v1",
        key_variable="GROQ_API_KEY",
        concurrency=8,
        json=JsonAbility.OBJECT,
        limit_name="max_completion_tokens",
    ),
    Provider(
        name="together",
        title="Together",
        base_url="https://api.together.xyz/v1",
        key_variable="TOGETHER_API_KEY",
    ),
    Provider(
        name="jina",
        title="Jina",
        base_url="https://api.jina.ai/v1",
        key_variable="JINA_API_KEY",
        concurrency=8,
        input_kind=InputKind(parameter="task", query="retrieval.query", passage="retrieval.passage"),
        note="Embeddings and reranking.",
    ),
    Provider(
        name="cohere",
        title="Cohere",
        base_url="https://api.cohere.ai/compatibility/v1",
        key_variable="COHERE_API_KEY",
        concurrency=8,
        rerank_url="https://api.cohere.com/v2",
    ),
    Provider(
        name="voyage",
        title="Voyage",
        base_url="https://api.voyageai.com/v1",
        key_variable="VOYAGE_API_KEY",
        concurrency=8,
        batch_texts=128,
        input_kind=InputKind(parameter="input_type", query="query", passage="document"),
        dimension_parameter="output_dimension",
        rerank_shape=RerankShape.VOYAGE,
        note="Embeddings and reranking.",
    ),
    Provider(
        name="tei",
        title="Text Embeddings Inference",
        base_url="http://localhost:8080/v1",
        is_local=True,
        concurrency=8,
        batch_texts=32,
        rerank_shape=RerankShape.TEI,
        start="text-embeddings-router --model-id MODEL --port 8080",
        note="Embeddings and reranking.",
    ),
    Provider(
        name="custom",
        title="another server",
        concurrency=4,
        note="Any other OpenAI-compatible server: its address has to be given.",
    ),
)

PROVIDERS: Mapping[str, Provider] = MappingProxyType({each.name: each for each in _LISTED})

_OTHER_NAMES = {
    "azure-openai": "azure",
    "azure_openai": "azure",
    "claude": "anthropic",
    "google": "gemini",
    "llama.cpp": "llamacpp",
    "llama-cpp": "llamacpp",
    "llama_cpp": "llamacpp",
    "lm-studio": "lmstudio",
    "lm_studio": "lmstudio",
    "local": "ollama",
    "mistralai": "mistral",
    "togetherai": "together",
    "voyageai": "voyage",
    "bedrock": "litellm/bedrock",
    "vertex_ai": "litellm/vertex_ai",
}
_PROVIDER_BY_MODEL = (
    (re.compile(r"(gpt-\d|chatgpt|o\d\b|text-embedding)", re.IGNORECASE), "openai"),
    (re.compile(r"claude", re.IGNORECASE), "anthropic"),
    (re.compile(r"gemini", re.IGNORECASE), "gemini"),
    (re.compile(r"deepseek-(chat|reasoner)", re.IGNORECASE), "deepseek"),
    (re.compile(r"jina", re.IGNORECASE), "jina"),
    (re.compile(r"rerank-", re.IGNORECASE), "cohere"),
    (re.compile(r"voyage", re.IGNORECASE), "voyage"),
    (re.compile(r"(mistral|magistral|ministral)-", re.IGNORECASE), "mistral"),
)


def parse_model_name(text: str) -> tuple[str, str]:
    """Return provider and model of a name like "openrouter/deepseek/deepseek-chat": what is before the first slash.

    The provider is a key of PROVIDERS, or LITELLM. Raises InvalidInput with the name that may have been meant.
    """
    provider, slash, model = (part.strip() for part in text.partition("/"))
    if slash and model and (provider in PROVIDERS or provider == LITELLM):
        return provider, model
    near = _near(provider, model) if slash else _guessed(provider)
    known = f"Providers: {', '.join(PROVIDERS)}, {LITELLM}."
    raise InvalidInput(
        f"{text!r} is not a model: it is written provider/model.",
        remedy=f"Did you mean {near}? {known}" if near else known,
    )


def _near(provider: str, model: str) -> str:
    """Return the name with the provider that may have been meant, "" for none."""
    folded = provider.lower()
    if not model:
        return f"{folded}/MODEL" if folded in PROVIDERS else ""
    close = [folded] if folded in PROVIDERS else get_close_matches(folded, PROVIDERS, n=1, cutoff=0.7)
    named = _OTHER_NAMES.get(folded) or next(iter(close), "")
    return f"{named}/{model}" if named else f"openrouter/{provider}/{model}"


def _guessed(model: str) -> str:
    """Return a model that was named without its provider, with it."""
    if model.lower() in PROVIDERS:
        return f"{model.lower()}/MODEL"
    known = next((provider for pattern, provider in _PROVIDER_BY_MODEL if pattern.match(model)), "")
    if not known and model:
        known = "ollama" if re.search(r"\w:\w|llama|qwen|gemma|phi", model, re.IGNORECASE) else "openai"
    return f"{known}/{model}" if known else ""
