"""Services in virtual time, for tests of the limit: how long they take, and what they do when too much is asked."""

import asyncio
import math
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from quipu.errors import Overloaded
from quipu.wrap.concurrency import AdaptiveLimit, ConcurrencyLimiter
from quipu.wrap.guard import Guard, Retry, RetryPolicy, ServiceCall, run_guarded
from tests.unit.wrap.virtual_time import now, run

CALL = ServiceCall(kind="extract")
Service = Callable[[random.Random], Awaitable[None]]


@dataclass
class Outcome:
    """What became of a run: its length, the limits over time, and calls that were not answered."""

    seconds: float = 0.0
    ideal_s: float = 0.0
    n_refused: int = 0
    n_lost: int = 0
    limits: list[tuple[float, int]] = field(default_factory=list)

    def limit_at(self, seconds: float) -> int:
        """Return the limit at some time."""
        return next(limit for at, limit in reversed(self.limits) if at <= seconds)

    def mean_limit(self) -> float:
        """Return the mean over the calls of the second half."""
        half = [limit for _, limit in self.limits[len(self.limits) // 2 :]]
        return sum(half) / len(half)


def simulate(service: Service, *, n_calls: int = 1_000, max_limit: int = 64, seed: int = 0) -> Outcome:
    """Ask a service as often as given, all waiting from the start, with retries."""
    return run(_simulated(service, n_calls, max_limit, seed))


async def _simulated(service: Service, n_calls: int, max_limit: int, seed: int) -> Outcome:
    rng = random.Random(seed)
    outcome, limit = Outcome(), AdaptiveLimit(max_limit)
    outcome.limits.append((0.0, limit.value))
    retry = Retry("service", RetryPolicy(max_failures=n_calls), jitter=rng.random)
    guards: list[Guard] = [retry, ConcurrencyLimiter(limit, clock=now)]

    async def attempt() -> None:
        begun = now()
        try:
            await service(rng)
        except Overloaded:
            outcome.n_refused += 1
            raise
        outcome.ideal_s += (now() - begun) / max_limit

    async def call() -> None:
        try:
            await run_guarded(guards, attempt, CALL)
        except Overloaded:
            outcome.n_lost += 1
        outcome.limits.append((now(), limit.value))

    async with asyncio.TaskGroup() as group:
        for _ in range(n_calls):
            group.create_task(call())
    outcome.seconds = now()
    return outcome


def steady(mean_s: float, sigma: float = 0.0) -> Service:
    """Bears any number of calls; latencies are log-normal."""

    async def serve(rng: random.Random) -> None:
        await asyncio.sleep(rng.lognormvariate(math.log(mean_s) - sigma**2 / 2, sigma))

    return serve


def queueing(n_slots: int, seconds: float) -> Service:
    """Works on so many calls at once; the others wait in a queue of its own, as with a local server."""
    slots = asyncio.Semaphore(n_slots)

    async def serve(rng: random.Random) -> None:
        async with slots:
            await asyncio.sleep(seconds * rng.lognormvariate(0.0, 0.2))

    return serve


def refusing(n_slots: int, seconds: float, retry_after_s: float | None = None) -> Service:
    """Works on so many calls at once and refuses more, as hosted services do."""
    n_running = 0

    async def serve(rng: random.Random) -> None:
        nonlocal n_running
        if n_running >= n_slots:
            await asyncio.sleep(0.05)
            raise Overloaded("429", retry_after_s=retry_after_s)
        n_running += 1
        try:
            await asyncio.sleep(seconds * rng.lognormvariate(0.0, 0.3))
        finally:
            n_running -= 1

    return serve


def failing(share: float, mean_s: float) -> Service:
    """Fails now and then, whatever is asked of it."""

    async def serve(rng: random.Random) -> None:
        await asyncio.sleep(rng.lognormvariate(math.log(mean_s) - 0.125, 0.5))
        if rng.random() < share:
            raise Overloaded("500")

    return serve
