"""Limit: no more calls at once than a service bears. All times are virtual."""

import asyncio
import random
from collections.abc import Awaitable, Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quipu.errors import Overloaded, Refused
from quipu.model.chat import FinishReason
from quipu.wrap.guard import Call, GuardedLLM
from quipu.wrap.limit import Limit
from quipu.wrap.pace import Pace
from quipu.wrap.retry import URGENT_PATIENCE_S
from tests.unit.wrap.fakes import FakeLLM, completion, request, settle
from tests.unit.wrap.virtual_time import now, run

CALL = Call(kind="extract")
URGENT = Call(kind="answer", is_urgent=True)


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


def _limit(most: int) -> Limit:
    return Limit(Pace(most, start=most), clock=now)


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
        limit, log = Limit(Pace(8, start=8), clock=now), Log()
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
        limit, log = Limit(Pace(2, start=2), clock=now), Log()
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
        limit, log = Limit(Pace(1, start=1), clock=now), Log()
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
        limit, log = Limit(Pace(8, start=8), clock=now), Log()
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
        limit, log = Limit(Pace(8, start=8), clock=now), Log()
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
        pace = Pace(64, start=1)
        llm = GuardedLLM(FakeLLM([completion(finish=finish)], latency_s=1.0), [Limit(pace, clock=now)])
        for _ in range(5):
            await llm.complete(request())
        return pace.limit

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
        pace, log = Pace(most, start=rng.randint(1, most)), Log()
        limit = Limit(pace, clock=now)
        errors = [None, None, None, Refused("no"), Overloaded("503"), Overloaded("429", retry_after_s=rng.random())]
        tasks: list[asyncio.Task[str]] = []

        async def call_then_cancel_another(work: Callable[[], Awaitable[str]], call: Call) -> str:
            try:
                return await limit.run(work, call)
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
        n_slots, again = pace.limit, Log()
        await asyncio.gather(*(limit.run(again.work(str(number)), CALL) for number in range(n_slots)))
        assert again.peak == n_slots
        assert log.peak <= most
        assert await asyncio.gather(*(limit.run(log.work(f"after {n}"), CALL) for n in range(2 * most)))

    run(scenario())


def _is_unexpected(error: BaseException | None) -> bool:
    return error is not None and not isinstance(error, Refused | Overloaded)
