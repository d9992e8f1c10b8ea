"""A reply as it comes in."""

import json

import pytest

from quipu.model.chat import FinishReason, TokenCount
from quipu.providers.openai.said import Fault
from quipu.providers.openai.transcript import Transcript


def _of(*events: object) -> Transcript:
    transcript = Transcript()
    for each in events:
        transcript.take(each if isinstance(each, str) else json.dumps(each))
    return transcript


def _delta(text: object, finish: str | None = None, **more: object) -> dict[str, object]:
    return {"choices": [{"index": 0, "delta": {"content": text, **more}, "finish_reason": finish}]}


def test_pieces_are_joined_and_given_one_by_one() -> None:
    transcript = Transcript()
    pieces = [transcript.take(json.dumps(_delta(text))) for text in ("Kno", "ts", "")]
    assert pieces == ["Kno", "ts", ""]
    assert transcript.text == "Knots"


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
    transcript = _of(_delta(None, reasoning_content="Let me "), _delta(None, reasoning="think."), _delta("Yes."))
    assert (transcript.text, transcript.generated) == ("Yes.", "Let me think.Yes.")
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
    transcript = Transcript()
    given = [transcript.take(json.dumps(_delta(each))) for each in pieces]
    assert "".join(given) == transcript.text == text


def test_a_refusal_is_kept_apart() -> None:
    transcript = _of(_delta(None, refusal="I can"), _delta(None, refusal="not."))
    assert (transcript.text, transcript.refusal) == ("", "I cannot.")


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
    transcript = _of(_delta("a"), data, _delta("b", "stop"))
    assert (transcript.text, transcript.finish) == ("ab", FinishReason.STOP)


def test_events_that_were_not_kept_apart_are_read_one_by_one() -> None:
    assert _of(f"{json.dumps(_delta('a'))}\n{json.dumps(_delta('b'))}\n[DONE]").text == "ab"


def test_an_error_before_any_text_is_raised() -> None:
    with pytest.raises(Fault) as caught:
        _of(_delta(""), {"error": {"message": "Overloaded", "code": 502}})
    assert caught.value.said.status == 502


def test_an_error_after_some_text_breaks_the_reply_off() -> None:
    transcript = _of(_delta("a"), {"error": {"message": "Overloaded", "code": 502}}, "[DONE]")
    assert (transcript.text, transcript.finish) == ("a", FinishReason.INTERRUPTED)


def test_an_error_beside_the_last_choice_breaks_the_reply_off() -> None:
    last = {"error": {"message": "gone"}, **_delta("", "stop")}
    assert _of(_delta("a"), last).finish is FinishReason.INTERRUPTED


def test_nesting_without_end_is_passed_over() -> None:
    assert _of("[" * 100_000, _delta("a", "stop")).text == "a"


def test_a_reply_that_never_ends_ends_where_more_has_come_than_was_asked_for() -> None:
    transcript = Transcript(max_chars=10)
    taken = [transcript.take(json.dumps({"choices": [{"delta": {"content": "abcdef"}}]})) for _ in range(3)]
    assert (taken, transcript.text) == (["abcdef", "abcd", ""], "abcdefabcd")
    assert transcript.is_over
    assert transcript.finish is FinishReason.LENGTH
