"""Guards: code that runs around every call to a service, whatever the service is; and the circuit breaker."""

import math
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeVar

from quipu.errors import QuipuError, Unavailable

T = TypeVar("T")

URGENT_PATIENCE_S = 10.0  # an urgent call spends at most this long waiting


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceCall:
    """What a guard knows of a call. Calls of one `kind` are alike; a user is waiting for an urgent call."""

    kind: str
    is_urgent: bool = False


class Guard(Protocol):
    """Runs a call: at once or later, once or several times. All calls of a service share one guard."""

    async def run(self, work: Callable[[], Awaitable[T]], call: ServiceCall) -> T:
        """Run `work`; return its result or raise its error."""


async def run_guarded(guards: Sequence[Guard], work: Callable[[], Awaitable[T]], call: ServiceCall) -> T:
    """Run `work` inside guards; the first guard is the outermost."""
    for guard in reversed(guards):
        work = partial(guard.run, work, call)
    return await work()


class CircuitBreaker:
    """Counts consecutive failures of a service. It opens after `max_failures` and stays open for `open_s` seconds.

    Used as a guard, it counts Unavailable as a failure, and while it is open every call raises the last error at once.
    Other callers record failures and successes themselves and read `is_open`. A recorded success closes the breaker.
    """

    def __init__(
        self, *, max_failures: int = 1, open_s: float = math.inf, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.n_failures = 0
        self._max_failures = max_failures
        self._open_s = open_s
        self._clock = clock
        self._open_until = -math.inf
        self._last_error: QuipuError | None = None

    @property
    def is_open(self) -> bool:
        """Whether the service counts as down."""
        return self.n_failures >= self._max_failures and self._clock() < self._open_until

    def record_failure(self, error: QuipuError) -> None:
        """Count a failure."""
        self.n_failures += 1
        self._last_error = error
        self._open_until = self._clock() + self._open_s

    def record_success(self) -> None:
        """Close the breaker and start counting from 0."""
        self.n_failures = 0

    async def run(self, work: Callable[[], Awaitable[T]], call: ServiceCall) -> T:
        """Return what `work` returns. Raises the last error without a call while the breaker is open."""
        if self.is_open and self._last_error is not None:
            raise self._last_error
        try:
            result = await work()
        except Unavailable as error:
            self.record_failure(error)
            raise
        if not self.is_open:  # a call that began before the breaker opened does not close it
            self.record_success()
        return result
