"""Virtual time: an event loop whose clock jumps to the next timer, so that hours pass in a moment."""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _Jumping(selectors.SelectSelector):
    """A selector that, asked to wait, moves the clock instead."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if not ready:
            assert timeout is not None, "everything waits and no timer is set"
            # what is too little for the clock's precision still passes
            self.now += max(timeout, self.now * 1e-15) if timeout > 0 else 0.0
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop that never waits. Nothing outside it (threads, sockets) may be waited for."""

    def __init__(self) -> None:
        self._jumping = _Jumping()
        super().__init__(self._jumping)

    def time(self) -> float:
        """Return the virtual time in seconds."""
        return self._jumping.now


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run `work` in virtual time."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(work)


def now() -> float:
    """Return the virtual time of the running loop."""
    return asyncio.get_running_loop().time()
