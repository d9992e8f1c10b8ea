"""Gone: a service that is unavailable is not asked again in the same run; each asking may take minutes of retries."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from quipu.errors import Unavailable
from quipu.wrap.guard import Call

T = TypeVar("T")


class UntilGone:
    """A guard for one run: from the first Unavailable on it raises that at once."""

    def __init__(self) -> None:
        self._gone: Unavailable | None = None

    async def run(self, work: Callable[[], Awaitable[T]], call: Call) -> T:
        """Return what `work` returns; raises what it raises, or what it raised before."""
        if self._gone is not None:
            raise self._gone
        try:
            return await work()
        except Unavailable as error:
            self._gone = error
            raise
