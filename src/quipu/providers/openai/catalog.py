"""Catalog of services and embedding models that are known by name; parses model names such as "ollama/qwen3:8b"."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum
from types import MappingProxyType

from quipu.errors import InvalidInput


class JsonSupport(StrEnum):
    """What a server enforces in a reply: a JSON schema, any JSON object, or nothing."""

    SCHEMA = "schema"
    OBJECT = "object"
    NONE = "none"


class RerankFormat(StrEnum):
    """The formats of a rerank request. Jina, Cohere and vLLM use `standard`; Voyage and TEI have their own."""

    STANDARD = "standard"
    VOYAGE = "voyage"
    TEI = "tei"


@dataclass(frozen=True, slots=True, kw_only=True)
class InputType:
    """The parameter by which an embedding service tells questions from passages, and its values; "" for none."""

    parameter: str = ""
    query: str = ""
    passage: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """Known facts about a service. An adapter corrects its own copy when the service rejects a request.

    `concurrency` is the highest number of concurrent calls. `batch_texts` is the number of texts in one request for
    embeddings or scores.
    """

    name: str
    title: str
    base_url: str = ""  # "": the user must set it
    domains: tuple[str, ...] = ()  # if each user has an own address: the end of its host name
    key_variable: str = ""  # "": no key needed
    is_local: bool = False  # on the user's own machine, and free
    concurrency: int = 16
    json: JsonSupport = JsonSupport.SCHEMA
    limit_name: str = "max_tokens"
    batch_texts: int = 64
    input_type: InputType = InputType()
    dimension_parameter: str = "dimensions"
    rerank_url: str = ""  # "": base_url
    rerank_format: RerankFormat = RerankFormat.STANDARD
    api_version: str = ""
    start: str = ""  # the command that starts a local server
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
        note="On most machines its context window is 4,096 tokens unless OLLAMA_CONTEXT_LENGTH is set.",
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
        note="Concurrent calls share the context window: raise llm_concurrency together with its --parallel.",
    ),
    Provider(
        name="deepseek",
        title="DeepSeek",
        base_url="https://api.deepseek.com/v1",
        key_variable="DEEPSEEK_API_KEY",
        json=JsonSupport.OBJECT,
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
        json=JsonSupport.NONE,
        note="Its compatible interface caches no prompts; litellm/anthropic/MODEL uses its native one.",
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
        json=JsonSupport.OBJECT,
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
        input_type=InputType(parameter="task", query="retrieval.query", passage="retrieval.passage"),
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
        input_type=InputType(parameter="input_type", query="query", passage="document"),
        dimension_parameter="output_dimension",
        rerank_format=RerankFormat.VOYAGE,
        note="Embeddings and reranking.",
    ),
    Provider(
        name="tei",
        title="Text Embeddings Inference",
        base_url="http://localhost:8080/v1",
        is_local=True,
        concurrency=8,
        batch_texts=32,
        rerank_format=RerankFormat.TEI,
        start="text-embeddings-router --model-id MODEL --port 8080",
        note="Embeddings and reranking.",
    ),
    Provider(
        name="custom",
        title="another server",
        concurrency=4,
        note="Any other OpenAI-compatible server: its address must be set.",
    ),
)

PROVIDERS: Mapping[str, Provider] = MappingProxyType({provider.name: provider for provider in _LISTED})

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
    """Split a name such as "openrouter/deepseek/deepseek-chat" into provider and model, at the first slash.

    The provider is a key of PROVIDERS, or LITELLM. Raises InvalidInput that suggests a similar name.
    """
    provider, slash, model = (part.strip() for part in text.partition("/"))
    if slash and model and (provider in PROVIDERS or provider == LITELLM):
        return provider, model
    suggestion = _suggest_provider(provider, model) if slash else _guess_provider(provider)
    listed = f"Providers: {', '.join(PROVIDERS)}, {LITELLM}."
    raise InvalidInput(
        f"{text!r} is not a model name: write provider/model.",
        remedy=f"Did you mean {suggestion}? {listed}" if suggestion else listed,
    )


def _suggest_provider(provider: str, model: str) -> str:
    """Return the name with the most similar provider, "" for none."""
    folded = provider.lower()
    if not model:
        return f"{folded}/MODEL" if folded in PROVIDERS else ""
    close = [folded] if folded in PROVIDERS else get_close_matches(folded, PROVIDERS, n=1, cutoff=0.7)
    name = _OTHER_NAMES.get(folded) or next(iter(close), "")
    return f"{name}/{model}" if name else f"openrouter/{provider}/{model}"


def _guess_provider(model: str) -> str:
    """Return a model named without its provider as provider/model, guessed from the name."""
    if model.lower() in PROVIDERS:
        return f"{model.lower()}/MODEL"
    provider = next((provider for pattern, provider in _PROVIDER_BY_MODEL if pattern.match(model)), "")
    if not provider and model:
        provider = "ollama" if re.search(r"\w:\w|llama|qwen|gemma|phi", model, re.IGNORECASE) else "openai"
    return f"{provider}/{model}" if provider else ""


_RETRIEVE = "Represent this sentence for searching relevant passages: "


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingModel:
    """Known facts about an embedding model: `dimension` (None: to be measured), and `max_tokens` of one text."""

    dimension: int | None = None
    max_tokens: int = 2_048
    query_prefix: str = ""
    passage_prefix: str = ""


_UNKNOWN_MODEL = EmbeddingModel()
_E5 = EmbeddingModel(max_tokens=512, query_prefix="query: ", passage_prefix="passage: ")

# The first matching pattern counts. Prefixes and lengths come from the model cards.
_EMBEDDING_MODELS = (
    ("text-embedding-3-small|text-embedding-ada-002", EmbeddingModel(dimension=1536, max_tokens=8_191)),
    ("text-embedding-3-large", EmbeddingModel(dimension=3072, max_tokens=8_191)),
    (
        "nomic-embed-text",
        EmbeddingModel(
            dimension=768, max_tokens=2_048, query_prefix="search_query: ", passage_prefix="search_document: "
        ),
    ),
    (
        "e5-mistral|e5-.*-instruct|qwen3-embedding",
        EmbeddingModel(
            max_tokens=8_192,
            query_prefix="Instruct: Given a question, retrieve passages that answer it\nQuery: ",
        ),
    ),
    (r"(^|[/_-])e5[_-]", _E5),
    ("mxbai-embed-large", EmbeddingModel(dimension=1024, max_tokens=512, query_prefix=_RETRIEVE)),
    (
        "arctic-embed2|arctic-embed-.*-v2",
        EmbeddingModel(max_tokens=8_192, query_prefix="query: "),
    ),
    ("arctic-embed", EmbeddingModel(max_tokens=512, query_prefix=_RETRIEVE)),
    ("bge-m3", EmbeddingModel(dimension=1024, max_tokens=8_192)),
    ("bge-(small|base|large)-en", EmbeddingModel(max_tokens=512, query_prefix=_RETRIEVE)),
    ("all-minilm", EmbeddingModel(max_tokens=256)),
    (
        "embeddinggemma",
        EmbeddingModel(
            dimension=768,
            max_tokens=2_048,
            query_prefix="task: search result | query: ",
            passage_prefix="title: none | text: ",
        ),
    ),
    ("jina-embeddings-v3", EmbeddingModel(dimension=1024, max_tokens=8_192)),
    ("jina-embeddings|voyage-|mistral-embed", EmbeddingModel(max_tokens=8_192)),
    ("gemini-embedding", EmbeddingModel(max_tokens=2_048)),
    ("embed-(english|multilingual)-", EmbeddingModel(max_tokens=512)),
)


def known_embedding_model(name: str) -> EmbeddingModel:
    """Return the known facts about the embedding model with this name."""
    return next(
        (model for pattern, model in _EMBEDDING_MODELS if re.search(pattern, name, re.IGNORECASE)), _UNKNOWN_MODEL
    )
