"""How long a server asks to be left alone."""

import pytest

from quipu.providers.openai.waiting import retry_after_s

NOW = 1_800_000_000.0  # Fri, 15 Jan 2027 08:00:00 GMT


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "Fri, 15 Jan 2027 08:00:30 GMT"}, 30.0),
        ({"retry-after": "Fri, 15 Jan 2027 07:00:00 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-3"}, None),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"x-ratelimit-reset-requests": "1s", "x-ratelimit-reset-tokens": "6m0s"}, 360.0),
        (
            {
                "x-ratelimit-reset-requests": "20ms",
                "x-ratelimit-remaining-requests": "0",
                "x-ratelimit-reset-tokens": "6m0s",
                "x-ratelimit-remaining-tokens": "100",
            },
            0.02,
        ),
        ({"x-ratelimit-reset-tokens": "1h2m3.5s"}, 3723.5),
        ({"x-ratelimit-reset": "1800000005000"}, 5.0),
        ({"x-ratelimit-reset": "1800000008"}, 8.0),
        ({"x-ratelimit-reset": "12"}, 12.0),
        ({}, None),
    ],
)
def test_headers_of_every_kind_are_read(headers: dict[str, str], expected: float | None) -> None:
    found = retry_after_s(429, headers, None, "", NOW)
    assert found == (expected if expected is None else pytest.approx(expected))


@pytest.mark.parametrize(
    ("remaining", "expected"),
    [({}, None), ({"x-ratelimit-remaining-requests": "7"}, None), ({"x-ratelimit-remaining-requests": "0"}, 360.0)],
)
def test_where_no_limit_was_met_only_one_that_is_used_up_is_waited_for(
    remaining: dict[str, str], expected: float | None
) -> None:
    headers = {"x-ratelimit-reset-requests": "6m0s", "x-ratelimit-reset-tokens": "9m0s", **remaining}
    assert retry_after_s(500, headers, None, "", NOW) == expected
    assert retry_after_s(500, {**headers, "retry-after": "2"}, None, "", NOW) == 2.0


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("Rate limit reached. Please try again in 1.2s. Visit …", 1.2),
        ("Please try again in 6m0s.", 360.0),
        ("Please try again in 350ms.", 0.35),
        ("Too many requests; try again later.", None),
    ],
)
def test_the_message_is_read_where_no_header_says_anything(message: str, expected: float | None) -> None:
    assert retry_after_s(429, {}, None, message, NOW) == (expected if expected is None else pytest.approx(expected))


def test_geminis_delay_is_read() -> None:
    body = {"error": {"details": [{"@type": "…Help"}, {"@type": "…RetryInfo", "retryDelay": "17s"}]}}
    assert retry_after_s(429, {}, body, "", NOW) == 17.0
