"""Retry: repeats calls that a service could not answer just now, and stops repeating when the service is down.

Waits use exponential backoff with "full jitter": uniformly random below a bound that doubles (M. Brooker, "Exponential
Backoff And Jitter", AWS Architecture Blog, 2015).
"""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from quipu.errors import Overloaded, Refused, TooLong, Unavailable
from quipu.text.formatting import format_count
from quipu.wrap.guard import URGENT_PATIENCE_S, CircuitBreaker, ServiceCall

_log = logging.getLogger(__name__)

T = TypeVar("T")

Sleep = Callable[[float], Awaitable[None]]


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
