"""Guards: code that runs around every call to a service, whatever it is: the circuit breaker, and retry.

Retry repeats calls that a service could not answer just now, and stops when the service is down. Waits use exponential
backoff with "full jitter": uniformly random below a bound that doubles (M. Brooker, "Exponential Backoff And Jitter",
AWS Architecture Blog, 2015).
"""

import asyncio
import logging
import math
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeVar

from quipu.errors import Overloaded, QuipuError, Refused, TooLong, Unavailable
from quipu.text.formatting import format_count

_log = logging.getLogger(__name__)

T = TypeVar("T")

Sleep = Callable[[float], Awaitable[None]]

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


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How often a call is tried, and how long it may wait.

    A call gets up to `max_attempts` attempts. Up to `max_paid` of them may have to be paid for without a reply. The
    wait before attempt k + 1 is the Retry-After of the service plus a random time below
    min(`max_wait_s`, `first_wait_s` · 2^(k-1)).

    All waits of one call together take at most `patience_s`. A Retry-After that would exceed this is not waited for.
    An urgent call has `urgent_patience_s` instead, and gets one attempt only if the previous call failed.

    After `max_failures` failed calls in a row the service counts as down. Urgent calls give up early, so their
    failures count for urgent calls only.
    """

    max_attempts: int = 10
    max_paid: int = 4
    first_wait_s: float = 1.0
    max_wait_s: float = 30.0
    patience_s: float = 120.0
    urgent_patience_s: float = URGENT_PATIENCE_S
    max_failures: int = 5


@dataclass(slots=True)
class _AttemptCount:
    """The attempts of one call so far, how many of them may have to be paid for, and the time spent waiting."""

    n: int = 0
    n_paid: int = 0
    waited_s: float = 0.0


class Retry:
    """A guard that repeats a call after Overloaded. All calls of a service share it, so that it learns of an outage.

    When the service is down, calls raise Unavailable. Each later call gets one attempt; the first success ends this.
    """

    def __init__(
        self,
        service: str,
        policy: RetryPolicy | None = None,
        *,
        sleep: Sleep = asyncio.sleep,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._service = service
        self._policy = policy or RetryPolicy()
        self._sleep = sleep
        self._jitter = jitter
        self._breaker = CircuitBreaker(max_failures=self._policy.max_failures)
        self._patient_breaker = CircuitBreaker(max_failures=self._policy.max_failures)

    @property
    def is_down(self) -> bool:
        """Whether the service counts as down for calls that are not urgent."""
        return self._patient_breaker.is_open

    async def run(self, work: Callable[[], Awaitable[T]], call: ServiceCall) -> T:
        """Return what `work` returns. Raises the last Overloaded, or Unavailable when the service is down."""
        attempts = _AttemptCount()
        while True:
            try:
                result = await work()
            except Overloaded as error:
                attempts.n += 1
                attempts.n_paid += error.may_cost
                wait_s = self._wait_s(attempts, error)
                if self._breaker_for(call).is_open or self._must_give_up(attempts, wait_s, call):
                    _log.warning(
                        "%s did not answer a call (%s): gave up after attempt %d", self._service, call.kind, attempts.n
                    )
                    raise self._final_error(error, attempts, call) from error
            except (Refused, TooLong):  # an answer too: the service is up
                self._record_answer()
                raise
            else:
                self._record_answer()
                return result
            _log.warning("%s did not answer, attempt %d: asked again in %.1f s", self._service, attempts.n, wait_s)
            attempts.waited_s += wait_s
            await self._sleep(wait_s)

    def _record_answer(self) -> None:
        self._breaker.record_success()
        self._patient_breaker.record_success()

    def _breaker_for(self, call: ServiceCall) -> CircuitBreaker:
        return self._breaker if call.is_urgent else self._patient_breaker

    def _wait_s(self, attempts: _AttemptCount, error: Overloaded) -> float:
        bound = min(self._policy.max_wait_s, self._policy.first_wait_s * 2.0 ** (attempts.n - 1))
        return max(error.retry_after_s or 0.0, 0.0) + self._jitter() * bound

    def _must_give_up(self, attempts: _AttemptCount, wait_s: float, call: ServiceCall) -> bool:
        policy = self._policy
        has_no_attempt = attempts.n >= policy.max_attempts or attempts.n_paid >= policy.max_paid
        has_just_failed = call.is_urgent and self._breaker.n_failures > 0
        return has_no_attempt or has_just_failed or attempts.waited_s + wait_s > self._patience_s(call)

    def _patience_s(self, call: ServiceCall) -> float:
        policy = self._policy
        return min(policy.urgent_patience_s, policy.patience_s) if call.is_urgent else policy.patience_s

    def _final_error(self, error: Overloaded, attempts: _AttemptCount, call: ServiceCall) -> Overloaded | Unavailable:
        """Record that the call failed, and return the error to raise for it."""
        self._breaker.record_failure(error)
        if not call.is_urgent:
            self._patient_breaker.record_failure(error)
        if self._breaker_for(call).is_open:
            return Unavailable(
                f"{self._service} has not answered {format_count(self._breaker.n_failures, 'call')} in a row. "
                f"The last error: {error.message}",
                remedy=f"{error.remedy} When it answers again, go on with `quipu resume`.".strip(),
            )
        retry_after_s, patience_s = error.retry_after_s or 0.0, self._patience_s(call)
        if retry_after_s > patience_s:
            reason = f"It asks for a pause of {retry_after_s:,.0f} s; Quipu waits at most {patience_s:,.0f} s."
        else:
            reason = f"Gave up after {format_count(attempts.n, 'attempt')} and {attempts.waited_s:,.0f} s of waiting."
        return Overloaded(
            f"{error.message} {reason}",
            remedy=error.remedy,
            retry_after_s=error.retry_after_s,
            may_cost=error.may_cost,
        )
