"""Tests of ids: functions of content alone, the same on every machine."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quipu.model.ids import chunk_id, digest, digest_bytes, relation_ends, relation_id

_PARTS = st.lists(st.text(max_size=5), max_size=4)


@settings(derandomize=True, deadline=None)
@given(_PARTS, _PARTS)
def test_only_equal_parts_have_equal_digests(first: list[str], second: list[str]) -> None:
    assert (digest(*first) == digest(*second)) == (first == second)


def test_digests_never_change() -> None:
    """An index built by an older version is only as good as these."""
    assert digest("quipu", "长城") == "6aee6600c9845f98ea923794896c9202"
    assert digest_bytes(b"quipu") == "f1b77fc8ca85befeb1eb39f8f991d00c"
    assert chunk_id("a", digest("text"), 0) == "33cb02295ee12b3a"


def test_parts_are_told_apart_where_their_joined_text_is_equal() -> None:
    assert digest("ab", "c") != digest("a", "bc") != digest("abc")


def test_text_that_is_no_unicode_still_has_a_digest() -> None:
    assert digest("\ud800") != digest("\ud801")


def test_a_chunk_id_tells_document_text_and_occurrence_apart() -> None:
    ids = {chunk_id(document, text, n) for document in ("a", "b") for text in ("x", "y") for n in (0, 1)}
    assert len(ids) == 8
    assert {len(each) for each in ids} == {16}


@pytest.mark.parametrize(("left", "right"), [("acre", "venice"), ("venice", "acre"), ("长城", "WHO"), ("at&t", "c++")])
def test_a_relation_id_is_the_same_in_both_directions(left: str, right: str) -> None:
    assert relation_id(left, right) == relation_id(right, left)
    assert relation_ends(relation_id(left, right)) == tuple(sorted((left, right)))


@pytest.mark.parametrize("text", ["", "acre", "acre--venice", "a -- b -- c"])
def test_what_is_no_relation_id_cannot_be_split(text: str) -> None:
    with pytest.raises(ValueError):
        relation_ends(text)
