"""The fold: the same mentions give the same result in any order."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quipu.model.graph import (
    MAX_DESCRIPTION_CHARS,
    MAX_DESCRIPTIONS,
    MAX_RELATION_KEYWORDS,
    NO_DESCRIPTION,
    description_rank,
    descriptions_hash,
    display_name,
    distinct_descriptions,
    join_descriptions,
    most_common_type,
    needs_summary,
    thousandths_to_weight,
    top_keywords,
    weight_to_thousandths,
)


@pytest.mark.parametrize(
    ("surfaces", "name"),
    [
        ({"Polo": 1, "polo": 3}, "polo"),
        ({"polo": 2, "Polo": 2, "POLO": 1}, "Polo"),
        ({"长城": 1, "Great Wall": 1}, "Great Wall"),
        ({"x": 1}, "x"),
    ],
)
def test_the_most_frequent_spelling_is_the_name_and_ties_are_ordered_by_text(
    surfaces: dict[str, int], name: str
) -> None:
    assert display_name(surfaces) == name
    assert display_name(dict(reversed(surfaces.items()))) == name


@pytest.mark.parametrize(
    ("types", "most_common"),
    [
        ({"Unknown": 9}, "Unknown"),
        ({"Unknown": 9, "Other": 1}, "Other"),
        ({"Unknown": 9, "Other": 8, "Person": 1}, "Person"),
        ({"Person": 1, "Location": 2}, "Location"),
        ({"Person": 2, "Location": 2}, "Location"),
        ({"Other": 9, "Unknown": 9, "Gene": 1}, "Gene"),
    ],
)
def test_the_most_common_specific_type_wins(types: dict[str, int], most_common: str) -> None:
    assert most_common_type(types) == most_common
    assert most_common_type(dict(reversed(types.items()))) == most_common


def test_definitions_rank_first_and_an_empty_description_has_no_rank() -> None:
    ranks = [description_rank(f"text {n}") for n in range(50)]
    definitions = [description_rank(f"text {n}", is_definition=True) for n in range(50)]
    assert max(definitions) < min(ranks)
    assert len(set(ranks)) == len(set(definitions)) == 50
    assert 0 <= min(definitions) <= max(ranks) < 2**63
    assert description_rank("") == description_rank("", is_definition=True) == NO_DESCRIPTION


@settings(derandomize=True, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["", "a", "b", "c", "d", "e", "f", "g", "h"]), st.booleans())), st.randoms())
def test_the_join_does_not_depend_on_the_order(described: list[tuple[str, bool]], random: object) -> None:
    ranked = [(description_rank(text, is_definition=first), text) for text, first in described]
    lines = join_descriptions(distinct_descriptions(ranked)).split("\n")
    assert join_descriptions(distinct_descriptions(ranked[::-1])).split("\n") == lines
    assert join_descriptions(distinct_descriptions(ranked * 2)).split("\n") == lines
    assert len(lines) == len(set(lines)) <= MAX_DESCRIPTIONS


def test_a_description_that_is_also_a_definition_is_joined_once() -> None:
    ranked = [(description_rank("x", is_definition=first), "x") for first in (True, False)]
    assert join_descriptions(distinct_descriptions(ranked)) == "x"


def test_the_join_stops_at_the_length_limit_but_contains_at_least_one_description() -> None:
    long = "x" * (MAX_DESCRIPTION_CHARS + 1)
    half = "y" * (MAX_DESCRIPTION_CHARS // 2)
    assert join_descriptions([long, "short"]) == long
    assert join_descriptions([half, "z" * len(half), "w" * len(half)]) == f"{half}\n{'z' * len(half)}"
    assert join_descriptions([]) == ""


def test_the_most_frequent_keywords_are_returned_and_ties_are_ordered_by_text() -> None:
    many = Counter({f"k{n:02}": 1 for n in range(MAX_RELATION_KEYWORDS + 2)})
    assert top_keywords({**many, "zz": 2}) == ("zz", *(f"k{n:02}" for n in range(MAX_RELATION_KEYWORDS - 1)))
    assert top_keywords({}) == ()


@settings(derandomize=True, deadline=None)
@given(st.lists(st.floats(min_value=0, max_value=1e6)))
def test_sums_of_weights_are_exact_in_any_order(weights: list[float]) -> None:
    total = sum(weight_to_thousandths(weight) for weight in weights)
    assert total == sum(weight_to_thousandths(weight) for weight in reversed(weights))
    assert weight_to_thousandths(thousandths_to_weight(total)) == total


@pytest.mark.parametrize(
    ("ordered", "expected"),
    [
        ([], False),
        (["x" * 5_000], False),
        ([f"{n}" for n in range(MAX_DESCRIPTIONS)], False),
        ([f"{n}" for n in range(MAX_DESCRIPTIONS + 1)], True),
        (["x", "x", "y"], False),
        (["x" * MAX_DESCRIPTION_CHARS, "y"], True),
        (["x" * MAX_DESCRIPTION_CHARS, "x" * MAX_DESCRIPTION_CHARS], False),
        (["x", "y" * (MAX_DESCRIPTION_CHARS - 1)], False),
    ],
)
def test_a_summary_is_needed_if_there_are_too_many_or_too_long_descriptions(ordered: list[str], expected: bool) -> None:
    assert needs_summary(ordered) == expected


@settings(deadline=None, derandomize=True)
@given(st.lists(st.text("ab ", min_size=1, max_size=700), max_size=12, unique=True))
def test_the_first_descriptions_decide_whether_a_summary_is_needed(ordered: list[str]) -> None:
    assert needs_summary(ordered) == needs_summary(ordered[: MAX_DESCRIPTIONS + 1])
    assert needs_summary(ordered) == (join_descriptions(ordered) != "\n".join(ordered))


def test_the_hash_depends_on_the_words_and_their_order() -> None:
    hashes = {descriptions_hash(texts) for texts in (["x", "y"], ["y", "x"], ["xy"], ["x"], ["x", "y", ""])}
    assert len(hashes) == 5
    assert descriptions_hash(["x", "y"]) == descriptions_hash(iter(("x", "y")))
