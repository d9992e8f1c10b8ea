"""Secrets: a key is never shown by accident, and extra request options contain no key."""

import copy
import html
import json
import pickle
from urllib.parse import quote

import pytest

from quipu.errors import InvalidInput
from quipu.model.secret import Secret, extra_identity, parse_extra

KEY = "sk-proj-Aa0&<Bb1>/Cc2+Dd3=="
EXTRA_KEY = "sk-SECRET-0123456789"


def test_no_text_form_shows_the_key() -> None:
    secret = Secret(KEY)
    text = f"{secret} {secret!r} {secret!s} {[secret]}"
    assert KEY not in text
    assert "***" in text
    assert str(Secret()) == ""


def test_a_secret_is_not_pickled_or_copied() -> None:
    with pytest.raises(TypeError):
        pickle.dumps(Secret(KEY))
    with pytest.raises(TypeError):
        copy.copy(Secret(KEY))


def test_white_space_around_a_key_is_removed() -> None:
    assert Secret(f" {KEY}\n").reveal() == KEY
    assert not Secret(" \n")
    assert Secret(KEY) == Secret(f"{KEY} ") != KEY
    assert len({Secret(KEY), Secret(KEY)}) == 1


@pytest.mark.parametrize("encoded", [KEY, quote(KEY, safe=""), html.escape(KEY)])
def test_a_key_is_masked_in_every_encoding_that_a_server_may_repeat(encoded: str) -> None:
    assert Secret(KEY).mask(f"bad key {encoded}, sorry") == "bad key ***, sorry"


def test_a_long_substring_of_a_key_is_masked_and_a_short_one_is_not() -> None:
    assert Secret(KEY).mask(f"key {KEY[3:15]}… is wrong") == "key ***… is wrong"
    assert Secret(KEY).mask("the project sk-pro") == "the project sk-pro"


@pytest.mark.parametrize("key", ["", "a", "no", "na", "12", "abc", "a&b"])
def test_a_key_of_up_to_three_characters_masks_nothing(key: str) -> None:
    text = "No: a cat has no key a&amp;b of 12.5 characters, na, abc, a%26b."
    assert Secret(key).mask(text) == text


def test_a_key_of_four_characters_is_masked_anywhere() -> None:
    assert Secret("abcd").mask("abcdabc") == "***abc"


@pytest.mark.parametrize(
    "extra",
    [
        {"api_key": EXTRA_KEY},
        {"apiKey": EXTRA_KEY},
        {"aws_secret_access_key": EXTRA_KEY},
        {"aws_session_token": EXTRA_KEY},
        {"azure_ad_token": EXTRA_KEY},
        {"extra_headers": {"Authorization": f"Bearer {EXTRA_KEY}"}},
        {"extra_headers": {"X-Api-Key": EXTRA_KEY}},
        {"fallbacks": [{"model": "m", "api_key": EXTRA_KEY}]},
        {"vertex_credentials": EXTRA_KEY},
        {"password": EXTRA_KEY},
    ],
)
def test_a_key_is_refused_without_being_shown(extra: dict[str, object]) -> None:
    with pytest.raises(InvalidInput, match="a key must not be stored") as caught:
        parse_extra(json.dumps(extra))
    assert EXTRA_KEY not in f"{caught.value} {caught.value.remedy}"


@pytest.mark.parametrize(
    "extra",
    [
        {"max_tokens": 5, "max_completion_tokens": 5, "stop_token_ids": [1], "thinking": {"budget_tokens": 9}},
        {"prompt_cache_key": "quipu"},
        {"response_format": {"json_schema": {"properties": {"key": {"type": "string"}}}}},
        {"reasoning_effort": "low", "logit_bias": {"50256": -100}},
        {},
    ],
)
def test_options_whose_names_only_resemble_a_key_are_accepted(extra: dict[str, object]) -> None:
    assert parse_extra(json.dumps(extra), may_redirect=False) == extra


@pytest.mark.parametrize("name", ["api_base", "base_url", "aws_bedrock_runtime_endpoint"])
def test_an_address_is_refused_if_a_key_would_be_sent_to_it(name: str) -> None:
    extra = json.dumps({"fallbacks": [{name: "http://elsewhere.example"}]})
    with pytest.raises(InvalidInput, match=f"extra contains '{name}', an address"):
        parse_extra(extra, may_redirect=False)
    assert parse_extra(extra)


@pytest.mark.parametrize("extra", ["[]", f"no json {EXTRA_KEY}", "1"])
def test_anything_but_a_json_object_is_refused_without_being_shown(extra: str) -> None:
    with pytest.raises(InvalidInput, match="not a JSON object") as caught:
        parse_extra(extra)
    assert EXTRA_KEY not in str(caught.value)


def test_an_identity_distinguishes_options_without_showing_them() -> None:
    one = extra_identity({"a": 1, "user": "kober"})
    assert one == extra_identity({"user": "kober", "a": 1}) != extra_identity({"a": 2, "user": "kober"})
    assert "kober" not in one
