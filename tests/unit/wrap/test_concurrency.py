"""Limit: no more calls at once than a service bears. All times are virtual."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quipu.errors import Overloaded, Refused
from quipu.model.chat import FinishReason
from quipu.wrap.concurrency import AdaptiveLimit, CallTiming, ConcurrencyLimiter
from quipu.wrap.guard import URGENT_PATIENCE_S, ServiceCall
from quipu.wrap.meter import Meter
from quipu.wrap.metered_models import MeteredLLM
from tests.unit.wrap.fakes import PRICING, FakeLLM, completion, request, settle
from tests.unit.wrap.services import failing, queueing, refusing, simulate, steady
from tests.unit.wrap.virtual_time import now, run

CALL = ServiceCall(kind="extract")
URGENT = ServiceCall(kind="answer", is_urgent=True)


class Log:
    """Work that writes down when it begins and, after a second, ends."""

    def __init__(self) -> None:
        self.begun: list[tuple[str, float]] = []
        self.n_running = 0
        self.peak = 0

    def work(self, name: str, seconds: float = 1.0, error: Exception | None = None) -> Callable[[], Awaitable[str]]:
        async def run() -> str:
            self.begun.append((name, now()))
            self.n_running += 1
            self.peak = max(self.peak, self.n_running)
            try:
                await asyncio.sleep(seconds)
            finally:
                self.n_running -= 1
            if error:
                raise error
            return name

        return run

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.begun]


def _limit(most: int) -> ConcurrencyLimiter:
    return ConcurrencyLimiter(AdaptiveLimit(most, start=most), clock=now)


def test_calls_wait_for_their_turn_first_come_first_served() -> None:
    async def scenario() -> None:
        limit, log = _limit(2), Log()
        async with asyncio.TaskGroup() as group:
            for name in "abcde":
                group.create_task(limit.run(log.work(name), CALL))
            await settle()
            assert (log.n_running, len(log.begun)) == (2, 2)
        assert log.begun == [("a", 0), ("b", 0), ("c", 1), ("d", 1), ("e", 2)]
        assert (log.peak, log.n_running) == (2, 0)

    run(scenario())


def test_urgent_calls_go_first() -> None:
    async def scenario() -> None:
        limit, log = _limit(1), Log()
        async with asyncio.TaskGroup() as group:
            for name in "abc":
                group.create_task(limit.run(log.work(name), CALL))
            await settle()
            group.create_task(limit.run(log.work("answer 1"), URGENT))
            group.create_task(limit.run(log.work("answer 2"), URGENT))
        assert log.names == ["a", "answer 1", "answer 2", "b", "c"]

    run(scenario())


def test_results_and_errors_pass_through() -> None:
    async def scenario() -> None:
        limit, log = _limit(1), Log()
        assert await limit.run(log.work("a"), CALL) == "a"
        with pytest.raises(Refused, match="no"):
            await limit.run(log.work("b", error=Refused("no")), CALL)
        assert await limit.run(log.work("c"), CALL) == "c"

    run(scenario())


def test_nobody_calls_while_a_retry_after_runs() -> None:
    async def scenario() -> None:
        limit, log = ConcurrencyLimiter(AdaptiveLimit(8, start=8), clock=now), Log()
        busy = Overloaded("429", retry_after_s=30.0)
        with pytest.raises(Overloaded):
            await limit.run(log.work("a", error=busy), CALL)
        async with asyncio.TaskGroup() as group:
            group.create_task(limit.run(log.work("b"), CALL))
            group.create_task(limit.run(log.work("c"), CALL))
        assert [(name, round(at, 6)) for name, at in log.begun] == [("a", 0), ("b", 31), ("c", 31)]

    run(scenario())


def test_an_urgent_call_waits_for_a_short_pause_and_is_told_of_a_long_one() -> None:
    async def scenario() -> None:
        limit, log = ConcurrencyLimiter(AdaptiveLimit(2, start=2), clock=now), Log()
        with pytest.raises(Overloaded):
            await limit.run(log.work("a", error=Overloaded("429", remedy="Slow down.", retry_after_s=30.0)), CALL)
        patient = [asyncio.create_task(limit.run(log.work("b"), CALL)) for _ in range(3)]
        await settle()
        with pytest.raises(Overloaded, match="429 Slow down") as told:
            await limit.run(log.work("c"), URGENT)
        assert (told.value.retry_after_s, told.value.may_cost) == (30.0, False)
        assert now() == pytest.approx(1.0)
        await asyncio.sleep(30.0 - URGENT_PATIENCE_S)
        await limit.run(log.work("d"), URGENT)
        await asyncio.gather(*patient)
        assert "c" not in log.names

    run(scenario())


def test_an_urgent_call_that_queued_before_a_long_pause_began_is_told_of_it() -> None:
    async def scenario() -> None:
        limit, log = ConcurrencyLimiter(AdaptiveLimit(1, start=1), clock=now), Log()
        busy = asyncio.create_task(limit.run(log.work("a", error=Overloaded("429", retry_after_s=100.0)), CALL))
        await settle()
        with pytest.raises(Overloaded, match="429"):
            await limit.run(log.work("b"), URGENT)
        with pytest.raises(Overloaded):
            await busy
        assert now() == pytest.approx(1.0)
        assert await limit.run(log.work("c"), CALL) == "c"

    run(scenario())


def test_a_pause_that_grows_is_kept_to_its_end() -> None:
    async def scenario() -> None:
        limit, log = ConcurrencyLimiter(AdaptiveLimit(8, start=8), clock=now), Log()
        first = limit.run(log.work("a", 1.0, Overloaded("429", retry_after_s=10.0)), CALL)
        second = limit.run(log.work("b", 5.0, Overloaded("429", retry_after_s=10.0)), CALL)
        pair = asyncio.gather(first, second, return_exceptions=True)
        await asyncio.sleep(2.0)
        await limit.run(log.work("c"), CALL)
        await pair
        assert log.begun[-1][1] == pytest.approx(15.0)

    run(scenario())


def test_a_shorter_pause_does_not_end_a_longer_one() -> None:
    async def scenario() -> None:
        limit, log = ConcurrencyLimiter(AdaptiveLimit(8, start=8), clock=now), Log()
        first = limit.run(log.work("a", 1.0, Overloaded("429", retry_after_s=20.0)), CALL)
        second = limit.run(log.work("b", 2.0, Overloaded("429", retry_after_s=1.0)), CALL)
        await asyncio.gather(first, second, return_exceptions=True)
        await limit.run(log.work("c"), CALL)
        assert log.begun[-1][1] == pytest.approx(21.0)

    run(scenario())


def test_a_pause_that_is_too_long_is_left_to_the_caller() -> None:
    async def scenario() -> None:
        limit, log = _limit(2), Log()
        with pytest.raises(Overloaded):
            await limit.run(log.work("a", error=Overloaded("429", retry_after_s=3600.0)), CALL)
        await limit.run(log.work("b"), CALL)
        assert log.begun[-1] == ("b", 1.0)

    run(scenario())


def test_a_reply_that_was_kept_or_broke_off_says_nothing_of_the_service() -> None:
    async def scenario(finish: FinishReason) -> int:
        limit = AdaptiveLimit(64, start=1)
        llm = MeteredLLM(
            FakeLLM([completion(finish=finish)], latency_s=1.0),
            Meter(),
            PRICING,
            [ConcurrencyLimiter(limit, clock=now)],
        )
        for _ in range(5):
            await llm.complete(request())
        return limit.value

    assert run(scenario(FinishReason.INTERRUPTED)) == 1
    assert run(scenario(FinishReason.STOP)) > 1


def test_a_call_that_is_let_in_and_cancelled_at_once_gives_its_slot_back() -> None:
    async def scenario() -> None:
        limit, log = _limit(1), Log()

        async def cancelling() -> None:
            await limit.run(log.work("a"), CALL)
            waiting.cancel()  # let in by the end of "a", not yet running

        first = asyncio.create_task(cancelling())
        await settle()
        waiting = asyncio.create_task(limit.run(log.work("b"), CALL))
        await settle()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await first
        assert await limit.run(log.work("c"), CALL) == "c"
        assert log.names == ["a", "c"]

    run(scenario())


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 2**32), most=st.integers(1, 6), n_calls=st.integers(1, 40))
def test_no_slot_is_lost_whatever_is_cancelled_or_fails(seed: int, most: int, n_calls: int) -> None:
    """Random lengths, faults and pauses; calls are cancelled at random moments, some just as they are let in."""

    async def scenario() -> None:
        rng = random.Random(seed)
        limit, log = AdaptiveLimit(most, start=rng.randint(1, most)), Log()
        limiter = ConcurrencyLimiter(limit, clock=now)
        errors = [None, None, None, Refused("no"), Overloaded("503"), Overloaded("429", retry_after_s=rng.random())]
        tasks: list[asyncio.Task[str]] = []

        async def call_then_cancel_another(work: Callable[[], Awaitable[str]], call: ServiceCall) -> str:
            try:
                return await limiter.run(work, call)
            finally:
                if rng.random() < 0.4:
                    rng.choice(tasks).cancel()

        for number in range(n_calls):
            work = log.work(str(number), rng.choice([0.0, 0.1, 1.0]), rng.choice(errors))
            call = rng.choice([CALL, URGENT])
            tasks.append(asyncio.create_task(call_then_cancel_another(work, call)))
            if rng.random() < 0.4:
                asyncio.get_running_loop().call_later(rng.choice([0.0, 0.1, 1.0, 1.1, 3.0]), tasks[-1].cancel)
            if rng.random() < 0.3:
                await asyncio.sleep(rng.choice([0.0, 0.1]))
        await asyncio.wait(tasks)
        assert [task for task in tasks if not task.cancelled() and _is_unexpected(task.exception())] == []
        assert log.n_running == 0
        n_slots, again = limit.value, Log()
        await asyncio.gather(*(limiter.run(again.work(str(number)), CALL) for number in range(n_slots)))
        assert again.peak == n_slots
        assert log.peak <= most
        assert await asyncio.gather(*(limiter.run(log.work(f"after {n}"), CALL) for n in range(2 * most)))

    run(scenario())


def _is_unexpected(error: BaseException | None) -> bool:
    return error is not None and not isinstance(error, Refused | Overloaded)


def _span(start: float, end: float, n: int) -> CallTiming:
    return CallTiming(start=start, end=end, n_at_start=n, n_at_end=n)


def _grown(limit: AdaptiveLimit) -> AdaptiveLimit:
    for at in range(1_000):
        limit.record_success("extract", _span(at, at + 1, limit.value))
    return limit


@pytest.mark.parametrize(("most", "start"), [(1, 1), (3, 3), (4, 4), (64, 4), (0, 1)])
def test_it_starts_small(most: int, start: int) -> None:
    assert AdaptiveLimit(most).value == start


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
    limit = AdaptiveLimit(64)
    for at in range(100):
        limit.record_success("extract", CallTiming(start=at, end=at + 1, n_at_start=2, n_at_end=3))
    assert limit.value == 4


def test_the_first_overload_halves_once() -> None:
    limit = _grown(AdaptiveLimit(64))
    for _ in range(20):  # all of them begun before the first was noted
        limit.record_overload(_span(1_000.0, 1_001.0, 64))
    assert limit.value == 32


def test_a_latency_of_overloads_halves() -> None:
    limit = _grown(AdaptiveLimit(64))
    limit.record_overload(_span(1_000.0, 1_001.0, 64))
    for _ in range(32):
        limit.record_overload(_span(1_001.0, 1_002.0, 32))
    assert limit.value == 16


def test_the_least_is_one() -> None:
    limit = AdaptiveLimit(8)
    for at in range(100):
        limit.record_overload(_span(at, at + 0.5, 1))
    assert limit.value == 1


def test_after_an_overload_a_latency_of_successes_adds_a_call() -> None:
    limit = _grown(AdaptiveLimit(64))
    limit.record_overload(_span(1_000.0, 1_001.0, 64))
    for _ in range(32):
        limit.record_success("extract", _span(1_001.0, 1_002.0, limit.value))
    assert limit.value == 33


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
    limit, limits = AdaptiveLimit(64), list[int]()
    for at in range(20):
        n = limit.value
        for _ in range(n):
            span = CallTiming(start=at, end=at + latency_of(n), n_at_start=n, n_at_end=max(n, limit.value))
            limit.record_success("extract", span)
        limits.append(limit.value)
    return min(limits[4:])


def test_a_service_that_gets_slower_but_does_more_is_used_to_the_full() -> None:
    """As where requests are batched: sixteen times as many at once take three times as long."""
    assert _least(lambda n: 2.0 * n**0.4) == 64
    assert _least(lambda n: 2.0 * n**0.9) < 64


def test_calls_that_only_we_slow_down_are_not_held_back() -> None:
    assert _least(lambda n: 0.0007 * n) == 64


def _slowed(start: float) -> int:
    """Return the limit after a service has become twenty times slower from `start` on."""
    limit = AdaptiveLimit(64)
    for at in range(100):
        limit.record_success("extract", _span(at, at + 1.0, limit.value))
    assert limit.value == 64
    for at in range(200):
        limit.record_success("extract", _span(start + at, start + at + 20.0, limit.value))
    return limit.value


def test_what_was_measured_long_ago_is_no_measure() -> None:
    assert _slowed(100.0) < 64
    assert _slowed(5_000.0) == 64


def test_short_calls_of_another_kind_are_no_measure() -> None:
    """Keywords take a moment, extraction takes long: one shall not hold back the other."""
    limit = AdaptiveLimit(64)
    for at in range(64):
        limit.record_success("keywords", _span(at, at + 0.1, limit.value), n_tokens=20)
    before = limit.value
    for at in range(64, 400, 4):
        limit.record_success("extract", _span(at, at + 40.0, limit.value), n_tokens=1_500)
    assert limit.value >= before


def test_long_replies_take_long() -> None:
    limit = AdaptiveLimit(64)
    for at in range(300):
        n_tokens = 100 if limit.value < 20 else 2_000
        limit.record_success("extract", _span(at, at + (100 + n_tokens) / 50, limit.value), n_tokens=n_tokens)
    assert limit.value == 64


def test_short_replies_that_take_as_long_as_long_ones_are_no_sign_of_a_queue() -> None:
    """A second look at a chunk gets a short reply, and is taken only when many other calls already run."""
    limit = AdaptiveLimit(64)
    chance = Random(3)
    for number in range(500):
        n_running, n_tokens = (16, 1_200) if number < 100 else (limit.value, 4)
        latency = chance.lognormvariate(0.6, 0.5)
        limit.record_success("extract", _span(number, number + latency, n_running), n_tokens=n_tokens)
    assert limit.value == 64
