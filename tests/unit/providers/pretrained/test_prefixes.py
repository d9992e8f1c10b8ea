"""Which models want a prefix."""

import pytest

from quipu.providers.pretrained.prefixes import Prefixes, prefixes_of


@pytest.mark.parametrize(
    "model", ["intfloat/multilingual-e5-small", "e5-base-v2", "/models/E5_large", "intfloat/e5-small"]
)
def test_e5_tells_questions_from_passages(model: str) -> None:
    assert prefixes_of(model) == Prefixes(query="query: ", passage="passage: ")


@pytest.mark.parametrize(
    "model", ["paraphrase-multilingual-MiniLM-L12-v2", "sentence-transformers/gtr-t5-base", "made5-x"]
)
def test_other_models_do_not(model: str) -> None:
    assert prefixes_of(model) == Prefixes()
