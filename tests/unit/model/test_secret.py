"""Secret: nothing of a key is shown by accident."""

import copy
import html
import pickle
from urllib.parse import quote

import pytest

from quipu.model.secret import Secret

KEY = "sk-proj-Aa0&<Bb1>/Cc2+Dd3=="


def test_no_form_as_text_shows_the_key() -> None:
    secret = Secret(KEY)
    shown = f"{secret} {secret!r} {secret!s} {[secret]}"
    assert KEY not in shown
    assert "***" in shown
    assert str(Secret()) == ""


def test_a_secret_is_not_pickled_or_copied() -> None:
    with pytest.raises(TypeError):
        pickle.dumps(Secret(KEY))
    with pytest.raises(TypeError):
        copy.copy(Secret(KEY))


def test_white_space_around_a_key_is_dropped() -> None:
    assert Secret(f" {KEY}\n").reveal() == KEY
    assert not Secret(" \n")
    assert Secret(KEY) == Secret(f"{KEY} ") != KEY
    assert len({Secret(KEY), Secret(KEY)}) == 1


@pytest.mark.parametrize("form", [KEY, quote(KEY, safe=""), html.escape(KEY)])
def test_a_key_is_masked_in_every_form_a_server_may_repeat_it_in(form: str) -> None:
    assert Secret(KEY).mask(f"bad key {form}, sorry") == "bad key ***, sorry"


def test_a_long_piece_of_a_key_is_masked_and_a_short_one_is_not() -> None:
    assert Secret(KEY).mask(f"key {KEY[3:15]}… is wrong") == "key ***… is wrong"
    assert Secret(KEY).mask("the project sk-pro") == "the project sk-pro"


@pytest.mark.parametrize("key", ["x", "k1", "abc", "a&b", "-"])
def test_a_key_of_a_few_characters_is_masked_where_it_stands_alone(key: str) -> None:
    for form in (key, quote(key, safe=""), html.escape(key)):
        for said in ("Wrong key: {}.", "{} is wrong", "key='{}'", "Bearer {}", 'they sent "{}", sorry', "{}"):
            assert Secret(key).mask(said.format(form)) == said.format("***")


def test_a_key_of_a_few_characters_leaves_the_words_it_is_part_of() -> None:
    assert Secret("x").mask("the next text of xbox, x_1 and x-ray") == "the next text of xbox, x_1 and x-ray"
    assert Secret("abc").mask("abcd, dabc, 1abc and abc-d but abc") == "abcd, dabc, 1abc and abc-d but ***"


def test_no_key_masks_nothing_and_one_of_four_characters_is_masked_anywhere() -> None:
    assert Secret("").mask("text") == "text"
    assert Secret("abcd").mask("abcdabc") == "***abc"
