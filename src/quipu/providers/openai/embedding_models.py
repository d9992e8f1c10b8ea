"""Embedding models known by name: how long their vectors are, how much they read, what they want before a text."""

import re
from dataclasses import dataclass

_RETRIEVE = "Represent this sentence for searching relevant passages: "


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingModel:
    """What is known of a model: `dimension` None for one that has to be asked, `max_tokens` of one text."""

    dimension: int | None = None
    max_tokens: int = 2_048
    query_prefix: str = ""
    passage_prefix: str = ""


_UNKNOWN = EmbeddingModel()
_E5 = EmbeddingModel(max_tokens=512, query_prefix="query: ", passage_prefix="passage: ")

# The first that matches counts. Prefixes and lengths are those of the models' own cards.
_KNOWN = (
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
    """Return what is known of a model of this name."""
    return next((model for pattern, model in _KNOWN if re.search(pattern, name, re.IGNORECASE)), _UNKNOWN)
