"""Tests of the worker pool and of the lease heartbeat."""

import asyncio
import gc
from collections.abc import Callable
from pathlib import Path

import pytest

from quipu.errors import Busy, Corrupt, QuipuError, Unavailable
from quipu.ingest.workers import ChunkTask, WorkerPool, lease_heartbeat, shared_limits
from quipu.model.usage import NO_LIMIT, LedgerSums, SpendingLimit
from quipu.wrap.concurrency import AdaptiveLimit, CallTiming
from tests.unit.stores.opening import open_index


class Work:
    """Groups that end when they are told to, and what they did."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.ended: list[str] = []
        self.answered: dict[str, Callable[[int], None]] = {}
        self.gates: dict[str, asyncio.Event] = {}

    def group(self, name: str) -> ChunkTask:
        self.gates[name] = asyncio.Event()

        async def run(answered: Callable[[int], None]) -> None:
            self.begun.append(name)
            self.answered[name] = answered
            await self.gates[name].wait()
            self.ended.append(name)

        return run


async def _settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def _has_room(pool: WorkerPool) -> bool:
    task = asyncio.create_task(pool.wait_for_room())
    await _settle()
    is_done = task.done()
    task.cancel()
    return is_done


async def test_without_chunks_ahead_one_group_follows_the_other() -> None:
    work = Work()
    async with WorkerPool(0) as pool:
        pool.start(work.group("a"), 5)
        assert not await _has_room(pool)
        work.answered["a"](5)
        assert not await _has_room(pool)  # all is answered, but not published yet
        work.gates["a"].set()
        assert await _has_room(pool)
    assert work.ended == ["a"]


async def test_there_is_room_while_fewer_chunks_wait_than_are_wanted_ahead() -> None:
    work = Work()
    async with WorkerPool(4) as pool:
        assert await _has_room(pool)
        pool.start(work.group("a"), 3)
        assert await _has_room(pool)
        pool.start(work.group("b"), 3)
        assert not await _has_room(pool)
        work.answered["a"](2)
        assert not await _has_room(pool)
        work.answered["b"](1)
        assert await _has_room(pool)
        work.gates["a"].set()
        work.gates["b"].set()
    assert sorted(work.ended) == ["a", "b"]


async def test_chunks_a_group_never_answered_are_not_waited_for() -> None:
    work = Work()
    async with WorkerPool(2) as pool:
        pool.start(work.group("a"), 100)
        await _settle()
        work.gates["a"].set()
        assert await _has_room(pool)
        assert pool.is_idle


async def test_the_failure_of_a_group_stops_the_others_and_is_raised() -> None:
    work = Work()

    async def fail(_: Callable[[int], None]) -> None:
        raise ZeroDivisionError("out of order")

    with pytest.raises(ZeroDivisionError, match="out of order"):
        async with WorkerPool(10) as pool:
            pool.start(work.group("a"), 1)
            pool.start(fail, 1)
            await pool.wait_until_idle()
    assert work.begun == ["a"]
    assert work.ended == []


async def test_leaving_by_an_error_stops_every_group() -> None:
    work = Work()
    with pytest.raises(KeyboardInterrupt):
        async with WorkerPool(10) as pool:
            pool.start(work.group("a"), 1)
            await _settle()
            raise KeyboardInterrupt
    assert (work.begun, work.ended) == (["a"], [])


async def test_groups_that_fail_together_leave_no_failure_that_nobody_heard_of() -> None:
    unheard: list[str] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: unheard.append(str(context["message"])))

    async def fail(_: Callable[[int], None]) -> None:
        raise ZeroDivisionError("out of order")

    with pytest.raises(ZeroDivisionError):
        async with WorkerPool(10) as pool:
            for _ in range(3):
                pool.start(fail, 1)
            await pool.wait_until_idle()
    del pool
    gc.collect()
    assert unheard == []


@pytest.mark.parametrize("error", [Busy("taken"), Unavailable("The disk is full."), Corrupt("A page cannot be read.")])
async def test_a_renewal_that_fails_is_followed_by_others(
    error: QuipuError, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcomes = asyncio.Queue[QuipuError | None]()
    async with open_index(tmp_path / "index.sqlite", lease_s=0.003) as store:

        async def renew() -> float:
            failure = error if outcomes.empty() else None
            outcomes.put_nowait(failure)
            if failure:
                raise failure
            has_gone_on.set()
            return 60.0

        has_gone_on = asyncio.Event()
        monkeypatch.setattr(store, "renew_leases", renew)
        async with lease_heartbeat(store), asyncio.timeout(10):
            await has_gone_on.wait()
    assert outcomes.get_nowait() is error


class SharedLedger:
    """A ledger whose number of workers is set by the test."""

    lease_s = 0.003

    def __init__(self) -> None:
        self.n_others, self.n_left = 0, 0

    async def add(self, change: LedgerSums, limit: SpendingLimit = NO_LIMIT) -> LedgerSums:
        return LedgerSums(n_workers=self.n_others + 1)

    def settle(self, change: LedgerSums) -> None:
        raise AssertionError("no call was made")

    async def leave(self) -> None:
        self.n_left += 1


async def test_workers_share_the_number_of_calls_at_once_as_others_come_and_go() -> None:
    ledger, limit, values = SharedLedger(), AdaptiveLimit(12, start=12), asyncio.Queue[int]()

    def share(n_workers: int) -> None:
        limit.share(n_workers)
        values.put_nowait(limit.value)

    async def until(value: int) -> None:
        async with asyncio.timeout(60):
            while await values.get() != value:
                pass

    async with shared_limits(ledger, share):
        ledger.n_others = 2
        await until(4)
        ledger.n_others = 40
        await until(1)  # each may make one call at least
        assert ledger.n_left == 0
    assert ledger.n_left == 1
    limit.record_success("extract", CallTiming(start=0.0, end=1.0, n_at_start=1, n_at_end=1))
    assert limit.value > 1  # alone again, it may rise to all of them


async def test_no_worker_begins_whose_ledger_cannot_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(_change: LedgerSums) -> LedgerSums:
        raise Unavailable("The disk is full.")

    ledger = SharedLedger()
    monkeypatch.setattr(ledger, "add", fail)
    with pytest.raises(Unavailable):
        async with shared_limits(ledger, lambda _: None):
            pytest.fail("it began")
