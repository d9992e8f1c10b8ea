"""Concurrency limiter: limits how many calls to a service run at the same time, and adapts the limit to the service.

The limit follows AIMD (D. Chiu and R. Jain, "Analysis of the Increase and Decrease Algorithms for Congestion
Avoidance", 1989), with three deviations. A slow start adds two for each success until the first overload. After that,
each overloaded call takes away half a slot: if all calls of one latency are overloaded, the limit halves; if few are,
it settles where they are 2 / limit of all calls. The limit also falls when more concurrency only adds waiting time: see
`_LatencyByConcurrency`.
"""

import asyncio
import math
import time
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeVar

from quipu.errors import Overloaded
from quipu.model.chat import Completion, FinishReason
from quipu.wrap.guard import URGENT_PATIENCE_S, ServiceCall, Sleep

T = TypeVar("T")

MAX_PAUSE_S = 120.0
_SLOW_START = 2.0
_DECREASE = 0.5
_MIN_LATENCY_S = 0.05  # the time of shorter calls is our own, not the service's
_MEAN_CALLS = 32  # calls in a running mean
_MAX_AGE_S = 600.0


class ConcurrencyLimiter:
    """A guard that lets up to `limit.value` calls run at the same time. All calls of a service share it.

    Urgent calls go first; otherwise the order is first come, first served. After an Overloaded with a Retry-After no
    call starts until that time is over. A Retry-After above `MAX_PAUSE_S` is left to the caller. An urgent call waits
    at most `URGENT_PATIENCE_S` for its end.
    """

    def __init__(
        self, limit: "AdaptiveLimit", *, clock: Callable[[], float] = time.monotonic, sleep: Sleep = asyncio.sleep
    ) -> None:
        self._limit = limit
        self._clock = clock
        self._sleep = sleep
        self._n_running = 0
        self._resume_at = 0.0
        self._pause_error = Overloaded("")
        self._urgent_queue: deque[asyncio.Future[None]] = deque()
        self._patient_queue: deque[asyncio.Future[None]] = deque()

    async def run(self, work: Callable[[], Awaitable[T]], call: ServiceCall) -> T:
        """Return what `work` returns, started when a slot is free. Raises Overloaded if an urgent call cannot wait."""
        self._pause_s(call)
        await self._acquire(self._urgent_queue if call.is_urgent else self._patient_queue)
        try:
            while (pause_s := self._pause_s(call)) > 0:
                await self._sleep(pause_s)
            return await self._run_timed(work, call)
        finally:
            self._release()

    def _pause_s(self, call: ServiceCall) -> float:
        """Return the remaining seconds of a Retry-After; 0 or less if there is none."""
        pause_s = self._resume_at - self._clock()
        if call.is_urgent and pause_s > URGENT_PATIENCE_S:
            raise Overloaded(self._pause_error.message, remedy=self._pause_error.remedy, retry_after_s=pause_s)
        return pause_s

    async def _run_timed(self, work: Callable[[], Awaitable[T]], call: ServiceCall) -> T:
        start, n_at_start = self._clock(), self._n_running

        def timing() -> CallTiming:
            return CallTiming(start=start, end=self._clock(), n_at_start=n_at_start, n_at_end=self._n_running)

        try:
            result = await work()
        except Overloaded as error:
            self._limit.record_overload(timing())
            if error.retry_after_s is not None and error.retry_after_s <= MAX_PAUSE_S:
                self._resume_at = max(self._resume_at, self._clock() + error.retry_after_s)
                self._pause_error = error
            raise
        if not isinstance(result, Completion):
            self._limit.record_success(call.kind, timing())
        elif not result.is_reused and result.finish is not FinishReason.INTERRUPTED:
            self._limit.record_success(call.kind, timing(), n_tokens=result.tokens.output)
        return result

    async def _acquire(self, queue: deque[asyncio.Future[None]]) -> None:
        slot: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        queue.append(slot)
        self._fill_slots()
        try:
            await slot
        except asyncio.CancelledError:
            if slot.done() and not slot.cancelled():  # cancelled just after it got the slot
                self._release()
            raise

    def _release(self) -> None:
        self._n_running -= 1
        self._fill_slots()

    def _fill_slots(self) -> None:
        for queue in (self._urgent_queue, self._patient_queue):
            while queue and self._n_running < self._limit.value:
                slot = queue.popleft()
                if not slot.done():  # done means cancelled here
                    self._n_running += 1
                    slot.set_result(None)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallTiming:
    """Start and end of a call, in seconds of one clock, and how many calls were running then, this one included."""

    start: float
    end: float
    n_at_start: int
    n_at_end: int


class AdaptiveLimit:
    """The number of calls that may run at the same time, from 1 to `maximum`."""

    def __init__(self, maximum: int, *, start: int = 4) -> None:
        self._total = self._maximum = max(maximum, 1)
        self._value = float(min(max(start, 1), self._maximum))
        self._is_slow_start = True
        self._step = 1.0  # the increase after one latency without an overload
        self._fell_at = -math.inf
        self._latencies: dict[str, _LatencyByConcurrency] = {}

    @property
    def value(self) -> int:
        """How many calls may run now."""
        return int(self._value)

    def share(self, n: int) -> None:
        """Leave the same part of the maximum to each of n processes that call this service, but at least one call."""
        self._maximum = max(self._total // n, 1)
        self._value = min(self._value, float(self._maximum))

    def record_success(self, kind: str, timing: CallTiming, *, n_tokens: int = 0) -> None:
        """Record a call that was answered, and the number of tokens in its reply."""
        if timing.n_at_end < self.value:
            return  # a limit that is not reached teaches nothing
        if self._is_more_useful(kind, timing, n_tokens):
            step = _SLOW_START if self._is_slow_start else self._step / self._value
            self._step += 1 / self._value
            self._value = min(self._value + step, float(self._maximum))

    def record_overload(self, timing: CallTiming) -> None:
        """Record a call that the service rejected. It is ignored if it began before the last fall: same cause."""
        if timing.start < self._fell_at:
            return
        if self._is_slow_start:
            self._fall_to(self._value / 2, timing.end)
        else:
            self._value = max(self._value - _DECREASE, 1.0)
            self._step = 1.0

    def _is_more_useful(self, kind: str, timing: CallTiming, n_tokens: int) -> bool:
        """Return whether a higher limit may help. If latencies say no, lower the limit to the useful one."""
        # Only replies of similar length are compared: the length decides most of the latency.
        latencies = self._latencies.setdefault(f"{kind} {n_tokens.bit_length()}", _LatencyByConcurrency())
        level = timing.n_at_start.bit_length() - 1
        latency_s = max(timing.end - timing.start, _MIN_LATENCY_S)
        latencies.mean_by_level.setdefault(level, _RunningMean()).add(math.log(latency_s), timing.end)
        useful = latencies.useful_limit(level, timing.end)
        if useful is None or useful >= self._value:
            return True
        self._fall_to(useful, timing.end)
        for higher in [level for level in latencies.mean_by_level if level >= self.value.bit_length()]:
            del latencies.mean_by_level[higher]
        return False

    def _fall_to(self, value: float, now: float) -> None:
        self._value = min(max(value, 1.0), float(self._maximum))
        self._is_slow_start = False
        self._step = 1.0
        self._fell_at = now


@dataclass(slots=True)
class _RunningMean:
    """Running mean of log latencies over about the last `_MEAN_CALLS`."""

    n: int = 0
    value: float = 0.0
    at: float = 0.0

    def add(self, value: float, now: float) -> None:
        self.n = min(self.n + 1, _MEAN_CALLS)
        self.value += (value - self.value) / self.n
        self.at = now


@dataclass(slots=True)
class _LatencyByConcurrency:
    """Mean log latency of similar calls, by the power of two of the calls that ran when they began.

    If r times the concurrency makes calls take more than √r times as long, more than half of the added calls only wait
    in a queue of the service. Log latencies are taken to have a standard deviation of at most 1, so the difference of
    two means must exceed that bound by twice its standard error.
    """

    mean_by_level: dict[int, _RunningMean] = field(default_factory=dict)

    def useful_limit(self, level: int, now: float) -> float | None:
        """Return how many concurrent calls are useful; None if more than now may be."""
        mean = self.mean_by_level[level]
        for lower_level, lower_mean in self.mean_by_level.items():
            if lower_level < level and now - lower_mean.at < _MAX_AGE_S:
                rise = mean.value - lower_mean.value
                growth = (level - lower_level) * math.log(2)
                if rise - growth / 2 > 2 * math.sqrt(1 / mean.n + 1 / lower_mean.n):
                    return float(2 ** (lower_level + 1) * math.exp(max(growth - rise, 0.0)))
        return None
