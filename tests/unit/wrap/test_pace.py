"""Pace: how many calls at once a service bears. All times are virtual."""

from collections.abc import Callable
from random import Random

import pytest

from quipu.wrap.pace import Pace, Span
from tests.unit.wrap.services import failing, queueing, refusing, simulate, steady


def _span(start: float, end: float, n: int) -> Span:
    return Span(start=start, end=end, n_at_start=n, n_at_end=n)


def _grown(pace: Pace) -> Pace:
    for at in range(1_000):
        pace.succeeded("extract", _span(at, at + 1, pace.limit))
    return pace


@pytest.mark.parametrize(("most", "start"), [(1, 1), (3, 3), (4, 4), (64, 4), (0, 1)])
def test_it_starts_small(most: int, start: int) -> None:
    assert Pace(most).limit == start


def test_a_steady_service_is_used_to_the_full_within_three_latencies() -> None:
    outcome = simulate(steady(2.0))
    assert [outcome.limit_at(seconds) for seconds in (1.9, 2.1, 4.1, 6.1)] == [4, 12, 36, 64]


@pytest.mark.parametrize("sigma", [0.5, 1.0])
@pytest.mark.parametrize("seed", range(4))
def test_latencies_that_vary_hold_nothing_back(sigma: float, seed: int) -> None:
    outcome = simulate(steady(2.0, sigma), seed=seed)
    assert min(limit for at, limit in outcome.limits if at > 12) == 64


@pytest.mark.parametrize("most", [1, 4, 16, 64])
def test_the_most_is_never_passed(most: int) -> None:
    assert max(limit for _, limit in simulate(steady(2.0, 0.5), max_limit=most).limits) == most


def test_growth_needs_a_limit_that_is_met() -> None:
    pace = Pace(64)
    for at in range(100):
        pace.succeeded("extract", Span(start=at, end=at + 1, n_at_start=2, n_at_end=3))
    assert pace.limit == 4


def test_the_first_overload_halves_once() -> None:
    pace = _grown(Pace(64))
    for _ in range(20):  # all of them begun before the first was noted
        pace.overloaded(_span(1_000.0, 1_001.0, 64))
    assert pace.limit == 32


def test_a_latency_of_overloads_halves() -> None:
    pace = _grown(Pace(64))
    pace.overloaded(_span(1_000.0, 1_001.0, 64))
    for _ in range(32):
        pace.overloaded(_span(1_001.0, 1_002.0, 32))
    assert pace.limit == 16


def test_the_least_is_one() -> None:
    pace = Pace(8)
    for at in range(100):
        pace.overloaded(_span(at, at + 0.5, 1))
    assert pace.limit == 1


def test_after_an_overload_a_latency_of_successes_adds_a_call() -> None:
    pace = _grown(Pace(64))
    pace.overloaded(_span(1_000.0, 1_001.0, 64))
    for _ in range(32):
        pace.succeeded("extract", _span(1_001.0, 1_002.0, pace.limit))
    assert pace.limit == 33


@pytest.mark.parametrize("n_slots", [4, 16, 48])
@pytest.mark.parametrize("retry_after_s", [None, 1.0])
def test_a_service_that_refuses_is_met_where_it_stands(n_slots: int, retry_after_s: float | None) -> None:
    outcome = simulate(refusing(n_slots, 2.0, retry_after_s), n_calls=1_500)
    assert n_slots - 1 <= outcome.mean_limit() <= n_slots + 2
    assert outcome.n_lost == 0


def test_few_are_refused() -> None:
    assert simulate(refusing(16, 2.0), n_calls=1_500).n_refused <= 300


def test_faults_of_single_calls_do_not_stop_the_work() -> None:
    assert simulate(failing(0.05, 2.0), n_calls=2_000).mean_limit() > 24
    assert simulate(failing(0.2, 2.0), n_calls=2_000).mean_limit() > 6


def test_calls_do_not_pile_up_in_the_queue_of_a_service() -> None:
    outcome = simulate(queueing(4, 2.0))
    assert 4 <= outcome.mean_limit() <= 32
    assert outcome.seconds < 1.05 * 1_000 / 4 * 2.0 * 1.03  # as fast as without a limit


def _least(latency_of: Callable[[int], float]) -> int:
    """Return the least limit, once it has grown, of calls whose latency depends on how many run."""
    pace, limits = Pace(64), list[int]()
    for at in range(20):
        n = pace.limit
        for _ in range(n):
            span = Span(start=at, end=at + latency_of(n), n_at_start=n, n_at_end=max(n, pace.limit))
            pace.succeeded("extract", span)
        limits.append(pace.limit)
    return min(limits[4:])


def test_a_service_that_gets_slower_but_does_more_is_used_to_the_full() -> None:
    """As where requests are batched: sixteen times as many at once take three times as long."""
    assert _least(lambda n: 2.0 * n**0.4) == 64
    assert _least(lambda n: 2.0 * n**0.9) < 64


def test_calls_that_only_we_slow_down_are_not_held_back() -> None:
    assert _least(lambda n: 0.0007 * n) == 64


def _slowed(start: float) -> int:
    """Return the limit after a service has become twenty times slower from `start` on."""
    pace = Pace(64)
    for at in range(100):
        pace.succeeded("extract", _span(at, at + 1.0, pace.limit))
    assert pace.limit == 64
    for at in range(200):
        pace.succeeded("extract", _span(start + at, start + at + 20.0, pace.limit))
    return pace.limit


def test_what_was_measured_long_ago_is_no_measure() -> None:
    assert _slowed(100.0) < 64
    assert _slowed(5_000.0) == 64


def test_short_calls_of_another_kind_are_no_measure() -> None:
    """Keywords take a moment, extraction takes long: one shall not hold back the other."""
    pace = Pace(64)
    for at in range(64):
        pace.succeeded("keywords", _span(at, at + 0.1, pace.limit), n_tokens=20)
    before = pace.limit
    for at in range(64, 400, 4):
        pace.succeeded("extract", _span(at, at + 40.0, pace.limit), n_tokens=1_500)
    assert pace.limit >= before


def test_long_replies_take_long() -> None:
    pace = Pace(64)
    for at in range(300):
        n_tokens = 100 if pace.limit < 20 else 2_000
        pace.succeeded("extract", _span(at, at + (100 + n_tokens) / 50, pace.limit), n_tokens=n_tokens)
    assert pace.limit == 64


def test_short_replies_that_take_as_long_as_long_ones_are_no_sign_of_a_queue() -> None:
    """A second look at a chunk gets a short reply, and is taken only when many other calls already run."""
    pace = Pace(64)
    chance = Random(3)
    for number in range(500):
        n_running, n_tokens = (16, 1_200) if number < 100 else (pace.limit, 4)
        latency = chance.lognormvariate(0.6, 0.5)
        pace.succeeded("extract", _span(number, number + latency, n_running), n_tokens=n_tokens)
    assert pace.limit == 64
