"""Server-sent events in every framing."""

import pytest

from quipu.errors import Overloaded
from quipu.providers.openai.sse import Events


def _read(data: bytes, size: int) -> list[str]:
    events = Events()
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
    events = Events()
    assert events.feed(b"data: ") == []
    with pytest.raises(Overloaded, match="does not end"):
        events.feed(b"x" * 16_777_216)
