"""Halves of surrogate pairs, wherever they are."""

import pytest

from quipu.model.query import Filter, Query, Turn
from quipu.text.halves import texts_in, with_half


def test_the_first_text_with_half_a_pair_is_found() -> None:
    assert with_half(["Novgorod", "𝔮", "a\udcff", "\ud800b"]) == "a\udcff"
    assert with_half(["Novgorod", "𝔮"]) is None


@pytest.mark.parametrize(
    "value",
    ["\udcff", ["a", ("\udcff",)], {"a": ("b", "\udcff")}, {"\udcff": 1}, Turn(role="user", text="\udcff")],
)
def test_every_text_in_a_value_is_looked_at(value: object) -> None:
    assert with_half(texts_in(value)) == "\udcff"


def test_every_text_of_a_query_is_looked_at() -> None:
    query = Query(text="Who?", history=(Turn(role="user", text="Hi"),), filter=Filter(documents=("a.md",)))
    assert {"Who?", "Hi", "a.md", query.strategy} <= set(texts_in(query))
    assert list(texts_in((3, None, 1.5, b"bytes"))) == []
