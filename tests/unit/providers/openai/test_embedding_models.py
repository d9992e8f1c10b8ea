"""Embedding models known by name."""

import pytest

from quipu.providers.openai.embedding_models import known_embedding_model


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
