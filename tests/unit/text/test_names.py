"""Tests of names in normal form."""

import sys
import unicodedata
from collections.abc import Sequence

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from quipu.model.ids import relation_ends, relation_id
from quipu.text.names import (
    MAX_KEY_LENGTH,
    anchor,
    capital_term,
    capital_terms,
    capitalised_spans,
    count_occurrences,
    entity_key,
    find_name_starts,
    group_by_anchor,
    is_linkable,
    name_forms,
    phrase_terms,
)
from quipu.text.words import index_terms, is_acronym, split_words
from tests.unit.text.text_pieces import NAMES as PIECED_NAMES
from tests.unit.text.text_pieces import TEXTS

# Characters that rules look at, close together, so that few examples meet many rules.
_TRICKY = st.text(alphabet=" .'’ʼ`&_-+#·・/()\n\tAaThenŞİßΐsS1½⑴ﷺﬁ长城ンう서กุरा\u0301\u200d", max_size=24)
_PHRASES = st.lists(
    st.sampled_from(
        ["the", "The", "a", "an", "A", "WHO", "U.S.", "&", "and", "'s", "’s", "C++", "#1", "_", "长城", "x"]
    )
).map(" ".join)
NAMES = st.one_of(st.text(max_size=40), _TRICKY, _PHRASES)


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("Marco Polo", "marco polo"),
        ("  MARCO\n POLO ", "marco polo"),
        ("Marco-Polo", "marco polo"),
        ("“Marco Polo”,", "marco polo"),
        ("The Silk Road", "silk road"),
        ("a Silk Road", "silk road"),
        ("The The", "the"),
        ("A", "a"),
        ("Venice's", "venice"),
        ("Venice’s doge", "venice doge"),
        ("the Polos' house", "polos house"),
        ("O'Brien", "obrien"),
        ("O’Brien", "obrien"),
        ("Johnson & Johnson", "johnson and johnson"),
        ("AT&T", "at&t"),
        ("C++", "c++"),
        ("C#", "c#"),
        ("ﬁre", "fire"),
        ("Ｖｅｎｉｃｅ", "venice"),
        ("Straße", "strasse"),
        ("Новгород", "новгород"),
        ("НОВГОРОД", "новгород"),
        ("İstanbul", "i̇stanbul"),
        ("Μαΐου", "μαΐου"),
        ("长城", "长城"),
        ("长 城", "长城"),
        ("马可·波罗", "马可波罗"),
        ("ジョン・スミス", "ジョンスミス"),
        ("राम", "राम"),
        ("กรุงเทพ", "กรุงเทพ"),
        ("서울 특별시", "서울특별시"),
        ("snake_case_name", "snake case name"),
        ("…", ""),
        ("", ""),
        ("👍", ""),
    ],
)
def test_a_name_has_one_normal_form(name: str, key: str) -> None:
    assert entity_key(name) == unicodedata.normalize("NFKC", key)


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("WHO", "WHO"),
        ("Who", "who"),
        ("who", "who"),
        ("the WHO", "WHO"),
        ("The WHO", "WHO"),
        ("WHO's", "WHO"),
        ("WHO’s", "WHO"),
        ("(WHO)", "WHO"),
        ("“WHO”,", "WHO"),
        ("U.S.", "US"),
        ("the U.S.", "US"),
        ("us", "us"),
        ("СССР", "СССР"),
        ("С.С.С.Р.", "СССР"),
        ("B2B", "B2B"),
        ("3G", "3g"),
        ("UNESCO", "UNESCO"),
        ("MARCO POLO", "marco polo"),
        ("NAPOLEON", "napoleon"),
    ],
)
def test_an_acronym_keeps_its_capitals(name: str, key: str) -> None:
    assert entity_key(name) == key
    assert is_acronym(key) == (key != key.casefold())


@pytest.mark.parametrize(
    ("first", "second"),
    [("राम", "रीम"), ("สี", "สา"), ("කමල", "කමලා"), ("ผู้", "ผี"), ("C", "C++"), ("C#", "C++"), ("At", "At&t")],
)
def test_different_names_keep_different_keys(first: str, second: str) -> None:
    assert entity_key(first) != entity_key(second)


@settings(deadline=None, max_examples=500, derandomize=True)
@given(NAMES)
def test_the_key_of_a_key_is_that_key(name: str) -> None:
    key = entity_key(name)
    assert entity_key(key) == key


@settings(deadline=None, max_examples=300, derandomize=True)
@given(NAMES)
def test_how_a_name_is_encoded_or_framed_makes_no_difference(name: str) -> None:
    key = entity_key(name)
    for form in ("NFC", "NFD", "NFKC", "NFKD"):
        assert entity_key(unicodedata.normalize(form, name)) == key
    assert entity_key(f"\n {name}\t") == key


@settings(deadline=None, max_examples=300, derandomize=True)
@given(NAMES, NAMES)
def test_a_relation_id_can_be_split_again(first: str, second: str) -> None:
    left, right = sorted((entity_key(first), entity_key(second)))
    assert relation_ends(relation_id(right, left)) == (left, right)


def test_every_character_alone_has_a_stable_key() -> None:
    ideographs_and_surrogates = {*range(0x3400, 0xA000), *range(0xAC00, 0xE000)}
    points = [point for point in range(0x20000) if point not in ideographs_and_surrogates]
    assert [hex(p) for p in points if entity_key(key := entity_key(f"x{chr(p)}y")) != key] == []


def test_a_long_name_is_cut() -> None:
    assert len(entity_key("长" * 500)) == MAX_KEY_LENGTH
    key = entity_key("ab " * 500)
    assert len(key) <= MAX_KEY_LENGTH
    assert entity_key(key) == key


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Which film did Christopher Nolan direct after The Prestige?", ["Christopher Nolan", "Prestige"]),
        ("Who is J. R. Hartley?", ["J. R. Hartley"]),
        ("Did the US and Saint-Denis agree?", ["US", "Saint-Denis"]),
        ("Кому служил Марко Поло?", ["Марко Поло"]),
        ("马可·波罗服务于谁？", []),
        ("where was he born?", []),
        ("WHO WAS IT?", []),
        ("Did The Who play?", []),
        ("In 1905 Einstein wrote.", ["Einstein"]),
        ("", []),
    ],
)
def test_runs_of_capitalised_words(text: str, expected: list[str]) -> None:
    assert [text[start:end] for start, end in capitalised_spans(text)] == expected


def _counts(text: str, *names: str) -> dict[str, int]:
    """Return how often each name occurs in the text, by name."""
    found = count_occurrences(split_words(text), group_by_anchor({entity_key(name) for name in names}))
    return {name: found[entity_key(name)] for name in names if entity_key(name) in found}


def _stands_in(part: Sequence[str], whole: Sequence[str]) -> bool:
    return any(list(whole[start : start + len(part)]) == list(part) for start in range(len(whole) - len(part) + 1))


def _is_candidate(key: str, text: str) -> bool:
    """Say whether full text, asked for the key, would return the text."""
    words = split_words(text)
    if len(name_forms(key)) == 1:
        return capital_term(key) in capital_terms(words)
    return bool(phrase_terms(key)) and _stands_in(phrase_terms(key), index_terms(words, text))


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


def test_looking_for_names_that_begin_alike_takes_no_more_than_for_others() -> None:
    def n_calls(n_names: int) -> int:
        """Return how many functions are called to count names in a text with all of them."""
        names = [f"World Trade Part {number}" for number in range(n_names)]
        words, keys = split_words(". ".join(names)), group_by_anchor(map(entity_key, names))
        calls: list[str] = []
        sys.setprofile(lambda _, event, __: calls.append(event))
        try:
            counts = count_occurrences(words, keys)
        finally:
            sys.setprofile(None)
        assert counts == dict.fromkeys(map(entity_key, names), 1)
        return len(calls)

    assert n_calls(800) < 9 * n_calls(100)


@settings(deadline=None, max_examples=2_000, derandomize=True)
@given(TEXTS, PIECED_NAMES, st.booleans())
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
        assert anchor(name_forms(key)) in find_name_starts(split_words(text)).anchors


@settings(deadline=None, max_examples=500, derandomize=True)
@given(PIECED_NAMES)
def test_a_name_of_several_joined_words_occurs_in_itself(name: str) -> None:
    key = entity_key(name)
    forms = name_forms(key)
    if is_linkable(key) and len(forms) > 1 and all(word.is_joined for word in split_words(key)[1:]):
        assert count_occurrences(split_words(key), group_by_anchor([key])) == {key: 1}
