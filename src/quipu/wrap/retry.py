"""Retry: asks again what a service could not answer just now, and stops asking a service that is dead.

Waits follow "full jitter": uniformly random below a bound that doubles (M. Brooker, "Exponential Backoff And Jitter",
AWS Architecture Blog, 2015).
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from quipu.errors import Overloaded, Refused, TooLong, Unavailable
from quipu.text.formatting import format_count
from quipu.wrap.guard import Call

T = TypeVar("T")

URGENT_PATIENCE_S = 10.0

Sleep = Callable[[float], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How often and how long a call is tried.

    `max_paid` attempts may have to be paid for without a reply; attempts in all are `max_attempts`. The k-th wait is
    random below `first_wait_s` · 2^k and `max_wait_s`, on top of what the service asks for. `patience_s` is how long
    one call may spend waiting between attempts, and the longest Retry-After that is waited for; somebody waits for an
    urgent one, which gets `urgent_patience_s`, and a single attempt right after another call was given up. After
    `max_failures` calls in a row that were given up the service counts as dead; urgent ones, which are given up early,
    count for urgent ones alone.
    """

    max_attempts: int = 10
    max_paid: int = 4
    first_wait_s: float = 1.0
    max_wait_s: float = 30.0
    patience_s: float = 120.0
    urgent_patience_s: float = URGENT_PATIENCE_S
    max_failures: int = 5


@dataclass(slots=True)
class _Tries:
    """What one call has been through."""

    n: int = 0
    n_paid: int = 0
    waited_s: float = 0.0


class Retry:
    """A guard that retries on Overloaded; one is shared by all calls of a service, so that it learns when that is dead.

    A dead service raises Unavailable. Each later call then gets one attempt, and the first that succeeds brings the
    service back.
    """

    def __init__(
        self,
        service: str,
        policy: RetryPolicy | None = None,
        *,
        sleep: Sleep = asyncio.sleep,
        fraction: Callable[[], float] = random.random,
    ) -> None:
        self._service = service
        self._policy = policy or RetryPolicy()
        self._sleep = sleep
        self._fraction = fraction
        self._n_failures = self._n_patient_failures = 0

    @property
    def is_dead(self) -> bool:
        """Whether the service counts as dead for calls that are patient."""
        return self._n_patient_failures >= self._policy.max_failures

    async def run(self, work: Callable[[], Awaitable[T]], call: Call) -> T:
        """Return what `work` returns. Raises the last Overloaded, or Unavailable where the service is dead."""
        tries = _Tries()
        while True:
            try:
                result = await work()
            except Overloaded as error:
                tries.n += 1
                tries.n_paid += error.may_cost
                wait = self._wait(tries, error)
                if self._is_dead_for(call) or self._is_enough(tries, wait, call):
                    raise self._given_up(error, tries, call) from error
            except (Refused, TooLong):
                self._answered()
                raise
            else:
                self._answered()
                return result
            tries.waited_s += wait
            await self._sleep(wait)

    def _answered(self) -> None:
        self._n_failures = self._n_patient_failures = 0

    def _is_dead_for(self, call: Call) -> bool:
        n = self._n_failures if call.is_urgent else self._n_patient_failures
        return n >= self._policy.max_failures

    def _wait(self, tries: _Tries, error: Overloaded) -> float:
        asked = max(error.retry_after_s or 0.0, 0.0)
        bound = min(self._policy.max_wait_s, self._policy.first_wait_s * 2.0 ** (tries.n - 1))
        return asked + self._fraction() * bound

    def _is_enough(self, tries: _Tries, wait: float, call: Call) -> bool:
        policy = self._policy
        is_used_up = tries.n >= policy.max_attempts or tries.n_paid >= policy.max_paid
        is_known = call.is_urgent and self._n_failures > 0
        return is_used_up or is_known or tries.waited_s + wait > self._patience_s(call)

    def _patience_s(self, call: Call) -> float:
        policy = self._policy
        return min(policy.urgent_patience_s, policy.patience_s) if call.is_urgent else policy.patience_s

    def _given_up(self, error: Overloaded, tries: _Tries, call: Call) -> Overloaded | Unavailable:
        self._n_failures += 1
        self._n_patient_failures += not call.is_urgent
        if self._is_dead_for(call):
            calls = format_count(self._n_failures, "call")
            return Unavailable(
                f"{self._service} has not answered {calls} in a row. The last: {error.message}",
                remedy=f"{error.remedy} When it answers again, go on with `quipu resume`.".strip(),
            )
        asked, patience = error.retry_after_s or 0.0, self._patience_s(call)
        if asked > patience:
            reason = f"It asks to be left alone for {asked:,.0f} s; no more than {patience:,.0f} s are waited."
        else:
            reason = f"Given up after {format_count(tries.n, 'attempt')} and {tries.waited_s:,.0f} s of waiting."
        return Overloaded(
            f"{error.message} {reason}",
            remedy=error.remedy,
            retry_after_s=error.retry_after_s,
            may_cost=error.may_cost,
        )
