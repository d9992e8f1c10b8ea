"""Tests of tables: lines are counted one by one."""

import pytest

from quipu.errors import InvalidDocument
from quipu.parse import builder
from quipu.parse.builder import DocumentBuilder, add_lines


def test_lines_past_the_limit_of_text_are_refused_before_more_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(builder, "MAX_CHARACTERS", 100)
    made: list[str] = []
    lines = (made.append(line) or line for line in ["x" * 40] * 1_000)  # type: ignore[func-returns-value]
    with pytest.raises(InvalidDocument):
        add_lines(DocumentBuilder("a.xlsx"), lines)
    assert len(made) == 3
