"""How much a reply may hold."""

import pytest

from quipu.ingest.llm.allowance import entity_limit, output_tokens


@pytest.mark.parametrize(
    ("size", "tokens"), [(0, 4_096), (1_500, 4_096), (1_501, 8_192), (4_000, 8_192), (4_001, 16_384), (90_000, 16_384)]
)
def test_tokens_of_a_reply_go_by_steps(size: int, tokens: int) -> None:
    assert output_tokens(size, 32_768) == tokens
    assert output_tokens(size, 1_000) == 1_000


@pytest.mark.parametrize(("size", "limit"), [(0, 10), (200, 15), (1_200, 40), (4_000, 110)])
def test_entities_are_more_in_a_longer_chunk(size: int, limit: int) -> None:
    assert entity_limit(size) == limit
