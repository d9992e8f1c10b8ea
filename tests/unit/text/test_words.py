"""Tests of words: terms of full text, and where names occur."""

from collections.abc import Sequence

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from quipu.text.names import entity_key
from quipu.text.words import (
    anchor,
    anchored,
    capital_term,
    capital_terms,
    count_occurrences,
    index_terms,
    is_linkable,
    is_unspaced,
    name_forms,
    phrase_terms,
    query_terms,
    split_words,
)

_PIECES = (
    *(" ", "  ", "\n", " \n ", "-", " - ", "·", "・", "&", " & ", ".", ". ", "'", "’s", ", ", "/", "+", "#", "\u200d"),
    *(
        "A",
        "a",
        "B",
        "WHO",
        "who",
        "Who",
        "St",
        "x1",
        "9",
        "1984",
        "C++",
        "C#",
        "O'Brien",
        "İ",
        "ß",
        "é",
        "e\u0301",
        "⑴",
    ),
    *("长", "城", "股", "票", "ン", "ス", "서", "울", "ก", "รุ", "राम", "री", "Ж", "ж", "ΐ", "Ἀθ", "ﷺ", "Ⅳ"),
)
_TEXTS = st.lists(st.sampled_from(_PIECES), min_size=1, max_size=14).map("".join)
_NAMES = st.lists(st.sampled_from(_PIECES), min_size=1, max_size=5).map("".join)


def _counts(text: str, *names: str) -> dict[str, int]:
    """Return how often each name occurs in the text, by name."""
    by_anchor: dict[str, list[str]] = {}
    for key in {entity_key(name) for name in names}:
        by_anchor.setdefault(anchor(name_forms(key)), []).append(key)
    found = count_occurrences(split_words(text), by_anchor)
    return {name: found[entity_key(name)] for name in names if entity_key(name) in found}


def _stands_in(part: Sequence[str], whole: Sequence[str]) -> bool:
    return any(list(whole[start : start + len(part)]) == list(part) for start in range(len(whole) - len(part) + 1))


def _is_candidate(key: str, text: str) -> bool:
    """Say whether full text, asked for the key, would return the text."""
    words = split_words(text)
    if len(name_forms(key)) == 1:
        return capital_term(key) in capital_terms(words)
    return bool(phrase_terms(key)) and _stands_in(phrase_terms(key), index_terms(words))


@pytest.mark.parametrize(
    ("text", "forms"),
    [
        ("Marco Polo's  house", ["marco", "polo", "house"]),
        ("O'Brien, O’Brien", ["obrien", "obrien"]),
        ("C++ and C# and F", ["c++", "and", "c#", "and", "f"]),
        ("## Part 1 #tag", ["part", "1", "tag"]),
        ("1,000.5", ["1", "000", "5"]),
        ("snake_case", ["snake", "case"]),
        ("长城A股", ["长", "城", "a", "股"]),
        ("ジョン・スミス", ["ジ", "ョ", "ン", "ス", "ミ", "ス"]),
        ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),
        ("cafe\u0301 café", ["café", "café"]),
        ("⑴ Ⅳ ﬁn", ["1", "iv", "fin"]),
        ("…!?", []),
        ("", []),
    ],
)
def test_words_are_runs_of_letters_and_single_characters_of_unspaced_scripts(text: str, forms: list[str]) -> None:
    assert [word.form for word in split_words(text)] == forms


def test_words_know_where_they_stand() -> None:
    text = "The WHO’s «长城» iPhone"
    words = split_words(text)
    assert [text[word.start : word.end] for word in words] == ["The", "WHO’s", "长", "城", "iPhone"]
    assert [word.is_capital for word in words] == [True, True, True, True, True]
    assert [word.form for word in words if word.is_acronym] == ["who"]
    assert [word.is_joined for word in words] == [False, True, False, True, False]


@pytest.mark.parametrize(
    ("gap", "is_joined"),
    [
        (" ", True),
        ("  ", True),
        ("\n", True),
        (" \n ", True),
        ("\n\n", False),
        ("-", True),
        (" – ", True),
        ("·", True),
        (" & ", True),
        ("/", True),
        (", ", False),
        (": ", False),
        ("; ", False),
        (" (", False),
        ("? ", False),
        (" | ", False),
    ],
)
def test_only_a_joint_joins_two_words(gap: str, is_joined: bool) -> None:
    assert [word.is_joined for word in split_words(f"Marco{gap}Polo")] == [False, is_joined]


@pytest.mark.parametrize(("text", "is_joined"), [("St. Mark", True), ("Dr. No", True), ("Polo. Mark", False)])
def test_a_full_stop_joins_only_after_an_abbreviation(text: str, is_joined: bool) -> None:
    assert split_words(text)[1].is_joined == is_joined


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("The Wall", ["the", "wall"]),
        ("长城", ["长城", "城"]),
        ("万里长城", ["万里", "里长", "长城", "城"]),
        ("长", ["长"]),
        ("长 城。北", ["长城", "城", "北"]),
        ("A股市", ["a", "股市", "市"]),
        ("牛股A", ["牛股", "股", "a"]),
        ("Café Ёлка Ελλάδα йод", ["cafe", "елка", "ελλαδα", "йод"]),
        ("C++ C#", ["c++", "c#"]),
    ],
)
def test_full_text_indexes_words_and_pairs_and_the_last_character_of_a_run(text: str, terms: list[str]) -> None:
    assert index_terms(split_words(text)) == terms


@pytest.mark.parametrize(
    ("question", "terms"),
    [
        ("Who built the wall? The wall!", ["who", "built", "the", "wall"]),
        ("长城", ["长城"]),
        ("长", ["长"]),
        ("万里长城在哪", ["万里", "里长", "长城", "城在", "在哪"]),
        ("A股", ["a", "股"]),
        ("?! …", []),
        ("", []),
    ],
)
def test_a_question_asks_for_each_term_once_and_of_a_run_for_pairs_alone(question: str, terms: list[str]) -> None:
    assert query_terms(question) == terms


@settings(deadline=None, max_examples=300, derandomize=True)
@given(_TEXTS)
def test_a_text_has_every_term_that_it_asks_for_as_a_question(text: str) -> None:
    assert set(query_terms(text)) <= set(index_terms(split_words(text)))


@pytest.mark.parametrize(
    ("key", "is_worth_it"),
    [
        ("ab", True),
        ("长城", True),
        ("1984", True),
        ("1 2", True),
        ("c#", True),
        ("a", False),
        ("长", False),
        ("7", False),
        ("12345", False),
        ("&&", False),
        ("++", False),
        ("", False),
    ],
)
def test_short_names_and_numbers_and_signs_are_not_looked_for(key: str, is_worth_it: bool) -> None:
    assert is_linkable(key) == is_worth_it


@pytest.mark.parametrize(
    ("name", "text", "n"),
    [
        ("Venice", "Venice, venice, VENICE, Venetian, Venice's.", 2),
        ("NAPOLEON", "Napoleon NAPOLEON napoleon", 2),
        ("WHO", "WHO who Who The WHO's", 2),
        ("Who", "WHO who Who The WHO's", 1),
        ("marco polo", "Marco Polo, MARCO POLO, marco polo, Marco Marco Polo Polo", 4),
        ("New York New York", "New York New York New York", 2),
        ("Ab Ab", "Ab Ab Ab", 2),
        ("长城", "长城长城城长", 2),
        ("人人", "人人人人", 3),
        ("Μαΐου", "Μαΐου μαΐου", 1),
        ("iPhone", "An iPhone and an iphone", 1),
    ],
)
def test_occurrences_are_counted_by_whole_words_in_a_row(name: str, text: str, n: int) -> None:
    assert _counts(text, name) == {name: n}


def test_names_that_share_a_beginning_are_counted_apart() -> None:
    assert _counts("New York City. New York. York!", "New York", "New York City", "York", "New") == {
        "New York": 2,
        "New York City": 1,
        "York": 3,
        "New": 2,
    }


@settings(deadline=None, max_examples=2_000, derandomize=True)
@given(_TEXTS, _NAMES, st.booleans())
@example("长  城", "长城", False)
@example("牛股A", "股A", False)
@example("A股市", "A股", False)
@example("股 票", "股+票", False)
@example("Μαΐου", "Μαΐου", False)
def test_a_text_that_names_something_is_among_the_candidates_for_it(text: str, name: str, is_within: bool) -> None:
    """Linking new names to old chunks looks at candidates only; linking new chunks to old names at every anchor."""
    text = f"{text}{name}{text}" if is_within else text
    key = entity_key(name)
    if not is_linkable(key):
        return
    if _counts(text, name):
        assert _is_candidate(key, text)
        assert anchor(name_forms(key)) in anchored(split_words(text)).anchors


@settings(deadline=None, max_examples=500, derandomize=True)
@given(_NAMES)
def test_a_name_of_several_joined_words_occurs_in_itself(name: str) -> None:
    key = entity_key(name)
    forms = name_forms(key)
    if is_linkable(key) and len(forms) > 1 and all(word.is_joined for word in split_words(key)[1:]):
        assert count_occurrences(split_words(key), {anchor(forms): [key]}) == {key: 1}


@settings(deadline=None, max_examples=500, derandomize=True)
@given(_TEXTS)
def test_a_word_is_what_its_characters_say_wherever_it_stands(text: str) -> None:
    words = split_words(text)
    assert [word.form for word in split_words(f"{text}\n\n{text}")] == [word.form for word in (*words, *words)]
    for word in words:
        assert word.form
        assert is_unspaced(word.form) == is_unspaced(text[word.start])
        assert [each.form for each in split_words(text[word.start : word.end])] == [word.form]
