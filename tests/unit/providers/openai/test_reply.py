"""What servers answer instead of a reply, in all their forms."""

import json

import pytest

from quipu.errors import Overloaded
from quipu.model.chat import FinishReason, TokenCount
from quipu.providers.openai.reply import ErrorReply, EventStreamDecoder, ReplyAssembler, excerpt, parse_reply


def _said(body: object, status: int = 400) -> tuple[str, str, str]:
    said = parse_reply(status, {}, json.dumps(body).encode())
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
    assert parse_reply(200, {}, body).status == 429
    assert parse_reply(503, {}, body).status == 503


def test_a_page_of_html_is_known_by_its_title() -> None:
    said = parse_reply(502, {}, b"<!DOCTYPE html><html><title>Bad gateway</title><body>x</body></html>")
    assert (said.is_html, said.message) == (True, "Bad gateway")
    assert parse_reply(502, {}, b"\n<html>").message == "a page in HTML"


def test_what_is_not_json_is_its_own_message() -> None:
    assert parse_reply(500, {}, b"Internal \xff error").message == "Internal � error"


def test_the_request_that_a_server_repeats_is_not_what_it_says() -> None:
    body = {"detail": [{"loc": ["body", "x"], "msg": "Extra", "input": {"messages": ["insufficient_quota"]}}]}
    assert "insufficient_quota" not in parse_reply(422, {}, json.dumps(body).encode()).searchable


def test_a_list_that_is_a_reply_stays_a_list() -> None:
    assert parse_reply(200, {}, b'[{"index": 0, "score": 1}]').body == [{"index": 0, "score": 1}]


def test_an_excerpt_is_one_short_line() -> None:
    assert excerpt(" two\n lines\x1b[31m ") == "two lines [31m"
    assert excerpt("x" * 1_000) == "x" * 299 + "…"


def _read(data: bytes, size: int) -> list[str]:
    events = EventStreamDecoder()
    found = [each for start in range(0, len(data), size) for each in events.feed(data[start : start + size])]
    return found + events.end()


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1_000])
@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b'data: {"a": 1}\n\ndata: {"b": 2}\n\n', ['{"a": 1}', '{"b": 2}']),
        (b'data: {"a": 1}\r\n\r\ndata: [DONE]\r\n\r\n', ['{"a": 1}', "[DONE]"]),
        (b"data:{}\n\n", ["{}"]),
        (b"data:  two spaces\n\n", [" two spaces"]),
        (b"data: first\ndata: second\n\n", ["first\nsecond"]),
        (b": keep alive\n\n: OPENROUTER PROCESSING\n\ndata: x\n\n", ["x"]),
        (b"event: message\nid: 7\nretry: 10\ndata: x\n\n", ["x"]),
        (b"data: never closed", ["never closed"]),
        (b"data: x\n", ["x"]),
        (b'{"error": {"message": "no event at all"}}\n', ['{"error": {"message": "no event at all"}}']),
        (b"\n\n\n", []),
        (b"", []),
        ("data: кипу\n\n".encode(), ["кипу"]),
        (b"data: \xff\n\n", ["\ufffd"]),
    ],
)
def test_events_are_found_wherever_the_bytes_are_cut(data: bytes, expected: list[str], size: int) -> None:
    assert _read(data, size) == expected


def test_a_line_that_does_not_end_is_given_up() -> None:
    events = EventStreamDecoder()
    assert events.feed(b"data: ") == []
    with pytest.raises(Overloaded, match="does not end"):
        events.feed(b"x" * 16_777_216)


def _of(*events: object) -> ReplyAssembler:
    assembler = ReplyAssembler()
    for each in events:
        assembler.add_event(each if isinstance(each, str) else json.dumps(each))
    return assembler


def _delta(text: object, finish: str | None = None, **more: object) -> dict[str, object]:
    return {"choices": [{"index": 0, "delta": {"content": text, **more}, "finish_reason": finish}]}


def test_pieces_are_joined_and_given_one_by_one() -> None:
    assembler = ReplyAssembler()
    pieces = [assembler.add_event(json.dumps(_delta(text))) for text in ("Kno", "ts", "")]
    assert pieces == ["Kno", "ts", ""]
    assert assembler.text == "Knots"


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("stop", FinishReason.STOP),
        ("end_turn", FinishReason.STOP),
        ("tool_calls", FinishReason.STOP),
        ("length", FinishReason.LENGTH),
        ("MAX_TOKENS", FinishReason.LENGTH),
        ("model_length", FinishReason.LENGTH),
        ("content_filter", FinishReason.FILTERED),
        ("SAFETY", FinishReason.FILTERED),
        ("error", FinishReason.INTERRUPTED),
        ("insufficient_system_resource", FinishReason.INTERRUPTED),
        (None, FinishReason.INTERRUPTED),
    ],
)
def test_why_a_reply_ended_is_read(reason: str | None, finish: FinishReason) -> None:
    assert _of(_delta("x", reason)).finish is finish


def test_a_reply_that_is_said_to_be_over_is_whole_without_a_reason() -> None:
    assert _of(_delta("x"), "[DONE]").finish is FinishReason.STOP


def test_a_reason_given_early_stays() -> None:
    assert _of(_delta("x", "length"), _delta("", None)).finish is FinishReason.LENGTH


def test_reasoning_is_counted_and_not_kept() -> None:
    assembler = _of(_delta(None, reasoning_content="Let me "), _delta(None, reasoning="think."), _delta("Yes."))
    assert (assembler.text, assembler.generated) == ("Yes.", "Let me think.Yes.")
    whole = _of({"choices": [{"message": {"content": "Yes.", "reasoning_content": "Hm. "}}]})
    assert (whole.text, whole.generated) == ("Yes.", "Hm. Yes.")


def test_parts_of_a_message_that_are_text_are_its_text() -> None:
    parts = [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": "Yes."}]
    assert _of(_delta(parts)).text == "Yes."


def test_calls_of_tools_and_other_choices_are_passed_over() -> None:
    other = {"choices": [{"index": 1, "delta": {"content": "another"}}]}
    assert _of(_delta(None, tool_calls=[{"function": {"name": "f"}}]), other, _delta("x")).text == "x"


def test_a_whole_reply_is_read_like_a_piece() -> None:
    whole = {"choices": [{"message": {"content": "Yes.", "refusal": None}, "finish_reason": "stop"}]}
    assert (_of(whole).text, _of(whole).finish) == ("Yes.", FinishReason.STOP)
    assert _of({"choices": [{"text": "old", "finish_reason": "stop"}]}).text == "old"


def test_a_last_event_that_repeats_the_message_beside_its_piece_adds_nothing() -> None:
    repeated = {"choices": [{"delta": {}, "message": {"content": "Yes."}, "finish_reason": "stop"}]}
    assert _of(_delta("Yes."), repeated).text == "Yes."


@pytest.mark.parametrize(
    ("pieces", "text"),
    [
        (["\ud83d", "\ude00!"], "😀!"),
        (["a\ud83d", "", "\ude00"], "a😀"),
        (["\ud83d", "b"], "\ufffdb"),
        (["\ude00b"], "\ufffdb"),
        (["b\ud83d"], "b"),
        (["кипу", "😀"], "кипу😀"),
    ],
)
def test_characters_that_come_in_halves_are_made_whole(pieces: list[str], text: str) -> None:
    assembler = ReplyAssembler()
    given = [assembler.add_event(json.dumps(_delta(each))) for each in pieces]
    assert "".join(given) == assembler.text == text


def test_a_refusal_is_kept_apart() -> None:
    assembler = _of(_delta(None, refusal="I can"), _delta(None, refusal="not."))
    assert (assembler.text, assembler.refusal) == ("", "I cannot.")


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        ({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}, TokenCount(input=10, output=5)),
        (
            {"prompt_tokens": 10, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 8}},
            TokenCount(input=10, cached=8, output=5),
        ),
        (
            {"prompt_tokens": 10, "completion_tokens": 5, "prompt_cache_hit_tokens": 99},
            TokenCount(input=10, cached=10, output=5),
        ),
        ({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 40}, TokenCount(input=10, output=30)),
        ({"prompt_tokens": 10, "completion_tokens": None}, TokenCount(input=10)),
        ({"prompt_tokens": -1, "completion_tokens": 5}, None),
        ({"prompt_tokens": 0, "completion_tokens": 0}, None),
        ({"prompt_tokens": 10**30, "completion_tokens": 5}, None),
        ({"prompt_tokens": 10, "completion_tokens": 3e300}, None),
        ({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 3e300}, TokenCount(input=10, output=5)),
        ({"prompt_tokens": True}, None),
        ({}, None),
        (None, None),
    ],
)
def test_what_a_server_counted_is_read(usage: object, tokens: TokenCount | None) -> None:
    assert _of(_delta("x"), {"choices": [], "usage": usage}).tokens == tokens


def test_the_last_count_holds_and_groq_has_its_own_place_for_it() -> None:
    first = {"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 1}}
    groq = {"choices": [], "x_groq": {"usage": {"prompt_tokens": 2, "completion_tokens": 3}}}
    assert _of(first, groq, _delta("")).tokens == TokenCount(input=2, output=3)


@pytest.mark.parametrize(
    "data", ["", "no json", "[]", "3", "null", '{"choices": 7}', '{"choices": [null, 3]}', '{"choi']
)
def test_what_cannot_be_read_is_passed_over(data: str) -> None:
    assembler = _of(_delta("a"), data, _delta("b", "stop"))
    assert (assembler.text, assembler.finish) == ("ab", FinishReason.STOP)


def test_events_that_were_not_kept_apart_are_read_one_by_one() -> None:
    assert _of(f"{json.dumps(_delta('a'))}\n{json.dumps(_delta('b'))}\n[DONE]").text == "ab"


def test_an_error_before_any_text_is_raised() -> None:
    with pytest.raises(ErrorReply) as caught:
        _of(_delta(""), {"error": {"message": "Overloaded", "code": 502}})
    assert caught.value.reply.status == 502


def test_an_error_after_some_text_breaks_the_reply_off() -> None:
    assembler = _of(_delta("a"), {"error": {"message": "Overloaded", "code": 502}}, "[DONE]")
    assert (assembler.text, assembler.finish) == ("a", FinishReason.INTERRUPTED)


def test_an_error_beside_the_last_choice_breaks_the_reply_off() -> None:
    last = {"error": {"message": "gone"}, **_delta("", "stop")}
    assert _of(_delta("a"), last).finish is FinishReason.INTERRUPTED


def test_nesting_without_end_is_passed_over() -> None:
    assert _of("[" * 100_000, _delta("a", "stop")).text == "a"


def test_a_reply_that_never_ends_ends_where_more_has_come_than_was_asked_for() -> None:
    assembler = ReplyAssembler(max_chars=10)
    taken = [assembler.add_event(json.dumps({"choices": [{"delta": {"content": "abcdef"}}]})) for _ in range(3)]
    assert (taken, assembler.text) == (["abcdef", "abcd", ""], "abcdefabcd")
    assert assembler.is_too_long
    assert assembler.finish is FinishReason.LENGTH
