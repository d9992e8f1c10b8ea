"""Limit: lets no more calls at once through than a service bears, urgent ones first."""

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable
from typing import TypeVar

from quipu.errors import Overloaded
from quipu.model.chat import Completion, FinishReason
from quipu.wrap.guard import Call
from quipu.wrap.pace import Pace, Span
from quipu.wrap.retry import URGENT_PATIENCE_S, Sleep

T = TypeVar("T")

MAX_PAUSE_S = 120.0


class Limit:
    """A guard that holds calls back; one is shared by all calls of a service, whatever they are for.

    Waiting calls go first come, first served, urgent ones before the others. While a Retry-After runs, none begins; one
    longer than `MAX_PAUSE_S` is left to the caller. An urgent call waits for its end `URGENT_PATIENCE_S` at most.
    """

    def __init__(
        self, pace: Pace, *, clock: Callable[[], float] = time.monotonic, sleep: Sleep = asyncio.sleep
    ) -> None:
        self._pace = pace
        self._clock = clock
        self._sleep = sleep
        self._n_running = 0
        self._resume_at = 0.0
        self._reason = Overloaded("")
        self._urgent: deque[asyncio.Future[None]] = deque()
        self._patient: deque[asyncio.Future[None]] = deque()

    async def run(self, work: Callable[[], Awaitable[T]], call: Call) -> T:
        """Return what `work` returns, begun when there is room. Raises Overloaded where an urgent call cannot wait."""
        self._pause(call)
        await self._enter(self._urgent if call.is_urgent else self._patient)
        try:
            while (pause := self._pause(call)) > 0:
                await self._sleep(pause)
            return await self._measured(work, call)
        finally:
            self._leave()

    def _pause(self, call: Call) -> float:
        """Return how many seconds of a Retry-After are left, 0 or less where none runs."""
        pause = self._resume_at - self._clock()
        if call.is_urgent and pause > URGENT_PATIENCE_S:
            raise Overloaded(self._reason.message, remedy=self._reason.remedy, retry_after_s=pause)
        return pause

    async def _measured(self, work: Callable[[], Awaitable[T]], call: Call) -> T:
        start, n_at_start = self._clock(), self._n_running

        def span() -> Span:
            return Span(start=start, end=self._clock(), n_at_start=n_at_start, n_at_end=self._n_running)

        try:
            result = await work()
        except Overloaded as error:
            self._pace.overloaded(span())
            if error.retry_after_s is not None and error.retry_after_s <= MAX_PAUSE_S:
                self._resume_at = max(self._resume_at, self._clock() + error.retry_after_s)
                self._reason = error
            raise
        if not isinstance(result, Completion):
            self._pace.succeeded(call.kind, span())
        elif not result.is_reused and result.finish is not FinishReason.INTERRUPTED:
            self._pace.succeeded(call.kind, span(), n_tokens=result.tokens.output)
        return result

    async def _enter(self, queue: deque[asyncio.Future[None]]) -> None:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        queue.append(turn)
        self._admit()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # let in and cancelled at once
                self._leave()
            raise

    def _leave(self) -> None:
        self._n_running -= 1
        self._admit()

    def _admit(self) -> None:
        for queue in (self._urgent, self._patient):
            while queue and self._n_running < self._pace.limit:
                turn = queue.popleft()
                if not turn.done():  # done: cancelled
                    self._n_running += 1
                    turn.set_result(None)
