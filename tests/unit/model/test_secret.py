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


@pytest.mark.parametrize("key", ["", "a", "no", "na", "12", "abc", "a&b"])
def test_a_key_of_a_few_characters_is_any_word_and_masks_nothing(key: str) -> None:
    said = "No: a cat has no key a&amp;b of 12.5 characters, na, abc, a%26b."
    assert Secret(key).mask(said) == said


def test_a_key_of_four_characters_is_masked_anywhere() -> None:
    assert Secret("abcd").mask("abcdabc") == "***abc"
