"""What is sent to a model besides: no key, no address, and no word of it in an identity."""

import json

import pytest

from quipu.errors import InvalidInput
from quipu.model.secret import extra_identity, parse_extra

KEY = "sk-SECRET-0123456789"


@pytest.mark.parametrize(
    "extra",
    [
        {"api_key": KEY},
        {"apiKey": KEY},
        {"aws_secret_access_key": KEY},
        {"aws_session_token": KEY},
        {"azure_ad_token": KEY},
        {"extra_headers": {"Authorization": f"Bearer {KEY}"}},
        {"extra_headers": {"X-Api-Key": KEY}},
        {"fallbacks": [{"model": "m", "api_key": KEY}]},
        {"vertex_credentials": KEY},
        {"password": KEY},
    ],
)
def test_a_key_is_refused_without_being_shown(extra: dict[str, object]) -> None:
    with pytest.raises(InvalidInput, match="a key must not be stored") as caught:
        parse_extra(json.dumps(extra))
    assert KEY not in f"{caught.value} {caught.value.remedy}"


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
def test_parameters_that_only_sound_like_one_are_taken(extra: dict[str, object]) -> None:
    assert parse_extra(json.dumps(extra), may_redirect=False) == extra


@pytest.mark.parametrize("name", ["api_base", "base_url", "aws_bedrock_runtime_endpoint"])
def test_an_address_is_refused_where_the_library_would_send_keys_there(name: str) -> None:
    extra = json.dumps({"fallbacks": [{name: "http://elsewhere.example"}]})
    with pytest.raises(InvalidInput, match=f"extra contains '{name}', an address"):
        parse_extra(extra, may_redirect=False)
    assert parse_extra(extra)


@pytest.mark.parametrize("extra", ["[]", f"no json {KEY}", "1"])
def test_what_is_no_object_is_refused_without_being_shown(extra: str) -> None:
    with pytest.raises(InvalidInput, match="not a JSON object") as caught:
        parse_extra(extra)
    assert KEY not in str(caught.value)


def test_an_identity_tells_objects_apart_and_shows_nothing_of_them() -> None:
    one = extra_identity({"a": 1, "user": "kober"})
    assert one == extra_identity({"user": "kober", "a": 1}) != extra_identity({"a": 2, "user": "kober"})
    assert "kober" not in one
