"""What servers answer instead of a reply, in all their forms."""

import json

import pytest

from quipu.providers.openai.said import excerpt, read_said


def _said(body: object, status: int = 400) -> tuple[str, str, str]:
    said = read_said(status, {}, json.dumps(body).encode())
    return said.message, said.code, said.parameter


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (
            {"error": {"message": "No.", "type": "invalid", "param": "max_tokens", "code": "unsupported"}},
            ("No.", "unsupported invalid", "max_tokens"),
        ),
        ({"error": "model not found"}, ("model not found", "", "")),
        ({"message": "invalid api token"}, ("invalid api token", "", "")),
        ({"detail": "Not Found"}, ("Not Found", "", "")),
        (
            {"detail": [{"loc": ["body", "stream_options"], "msg": "Extra inputs", "type": "extra_forbidden"}]},
            ("Extra inputs", "", "stream_options"),
        ),
        (
            {"object": "error", "message": {"detail": [{"loc": ["body", "top_k"], "msg": "Extra"}]}},
            ("Extra", "", "top_k"),
        ),
        ([{"error": {"code": 400, "message": "API key not valid."}}], ("API key not valid.", "", "")),
        ({"error": "Input too long", "error_type": "Validation"}, ("Input too long", "Validation", "")),
        (
            {"error": {"message": "Provider returned error", "metadata": {"raw": "context length"}}},
            ("Provider returned error: context length", "", ""),
        ),
        ({"ok": False}, ('{"ok": false}', "", "")),
        (None, ("", "", "")),
    ],
)
def test_message_code_and_field_are_found(body: object, expected: tuple[str, str, str]) -> None:
    assert _said(body) == expected


def test_a_status_in_the_body_counts_under_a_status_of_success() -> None:
    body = json.dumps({"error": {"message": "Slow down.", "code": 429}}).encode()
    assert read_said(200, {}, body).status == 429
    assert read_said(503, {}, body).status == 503


def test_a_page_of_html_is_known_by_its_title() -> None:
    said = read_said(502, {}, b"<!DOCTYPE html><html><title>Bad gateway</title><body>x</body></html>")
    assert (said.is_html, said.message) == (True, "Bad gateway")
    assert read_said(502, {}, b"\n<html>").message == "a page in HTML"


def test_what_is_not_json_is_its_own_message() -> None:
    assert read_said(500, {}, b"Internal \xff error").message == "Internal � error"


def test_the_request_that_a_server_repeats_is_not_what_it_says() -> None:
    body = {"detail": [{"loc": ["body", "x"], "msg": "Extra", "input": {"messages": ["insufficient_quota"]}}]}
    assert "insufficient_quota" not in read_said(422, {}, json.dumps(body).encode()).words


def test_a_list_that_is_a_reply_stays_a_list() -> None:
    assert read_said(200, {}, b'[{"index": 0, "score": 1}]').body == [{"index": 0, "score": 1}]


def test_an_excerpt_is_one_short_line() -> None:
    assert excerpt(" two\n lines\x1b[31m ") == "two lines [31m"
    assert excerpt("x" * 1_000) == "x" * 299 + "…"
