"""Chunking: invalid options are refused, JSON restores the value, rules match by pattern."""

from typing import Any

import pytest

from quipu.errors import Corrupt, InvalidInput
from quipu.model.chunking import Chunking, ChunkingRule, chunking_from_json

VALUES = (
    Chunking(),
    Chunking(max_tokens=300),
    Chunking(method="fixed", max_tokens=512, overlap=64),
    Chunking(method="fixed", overlap=0),
    Chunking(method="separator", separator="\n---\n§"),
    Chunking(method="semantic", percentile=90),
)


@pytest.mark.parametrize(
    ("values", "complaint", "remedy"),
    [
        ({"method": "fixd"}, "no chunking method 'fixd'", "structure, fixed, separator, semantic"),
        ({"max_tokens": 0}, "max_tokens = 0", "from 1 to 32,000"),
        ({"max_tokens": 32_001}, "max_tokens = 32001", "from 1 to 32,000"),
        ({"method": "fixed", "overlap": -1}, "overlap = -1", "from 0"),
        ({"method": "fixed", "max_tokens": 64, "overlap": 64}, "overlap of 64 .* chunks of 64", "smaller"),
        ({"method": "fixed", "overlap": 1_200}, "overlap of 1,200 .* chunks of 1,200", "smaller"),
        ({"overlap": 10}, "'structure' has no option overlap \\(10\\)", "'fixed'"),
        ({"method": "separator"}, "needs a separator", "Give the text"),
        ({"method": "separator", "separator": ""}, "separator has 0 characters", "1 to 1,000"),
        ({"method": "fixed", "separator": "x"}, "'fixed' has no option separator", "'separator'"),
        ({"method": "semantic", "percentile": 100}, "percentile = 100", "from 1 to 99"),
    ],
)
def test_an_invalid_option_is_refused_with_the_value_and_a_remedy(
    values: dict[str, Any], complaint: str, remedy: str
) -> None:
    with pytest.raises(InvalidInput, match=complaint) as raised:
        Chunking(**values)
    assert remedy in raised.value.remedy


@pytest.mark.parametrize("chunking", VALUES)
def test_a_chunking_is_restored_from_its_json(chunking: Chunking) -> None:
    assert chunking_from_json(chunking.to_json()) == chunking


def test_the_json_contains_only_set_options_with_sorted_keys() -> None:
    fixed = Chunking(method="fixed", overlap=64, max_tokens=512)
    assert fixed.to_json() == '{"max_tokens": 512, "method": "fixed", "overlap": 64}'
    assert len({chunking.to_json() for chunking in VALUES}) == len(VALUES)


@pytest.mark.parametrize("text", ["", "{", "[]", "3", '{"method": "none"}', '{"size": 3}'])
def test_any_other_text_is_reported_as_corrupt(text: str) -> None:
    with pytest.raises(Corrupt, match="cannot be read"):
        chunking_from_json(text)


def test_a_rule_applies_to_the_ids_its_pattern_matches() -> None:
    rule = ChunkingRule(match="minutes/*.md", chunking=Chunking(method="fixed"))
    assert rule.applies_to("minutes/1998/may.md")
    assert not rule.applies_to("old/minutes/may.md")
    assert not rule.applies_to("minutes/may.txt")
    assert str(rule) == "minutes/*.md: fixed"
