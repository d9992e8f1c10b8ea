"""Session: the connections of one target, made at the first request and once for each event loop."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING
from weakref import WeakSet

from quipu.errors import Unavailable
from quipu.providers.openai.endpoint import Target
from quipu.providers.openai.said import Fault, Said, read_said

if TYPE_CHECKING:
    from quipu.providers.openai.client import Answer, Client


def deadline(within_s: float) -> float:
    """Return the time of the running event loop that is `within_s` away."""
    return asyncio.get_running_loop().time() + within_s


class Session:
    """Sends requests to one target. What is `until` is a time of the running event loop."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.has_answered = False  # as was wanted, at least once: set by whoever can tell
        self._clients: dict[asyncio.AbstractEventLoop, Client] = {}
        self._closed: WeakSet[asyncio.AbstractEventLoop] = WeakSet()

    @asynccontextmanager
    async def post(self, url: str, body: bytes, until: float) -> "AsyncIterator[Answer]":
        """Send JSON and give the answer when its headers are there. Raises Fault where it is an error."""
        endpoint = self.target.endpoint
        if endpoint.needs_key:
            raise Unavailable(f"{self.target.place} needs a key, and none is set.", remedy=endpoint.key_remedy)
        client = await self._client()
        async with client.request("POST", url, body, until) as answer:
            if answer.status != 200:
                raise Fault(read_said(answer.status, answer.headers, await answer.body(until)))
            yield answer

    async def post_whole(self, url: str, body: bytes, until: float) -> Said:
        """Send JSON and return the whole answer. Raises Fault where it is an error."""
        async with self.post(url, body, until) as answer:
            return read_said(answer.status, answer.headers, await answer.body(until))

    async def ask(self, url: str, until: float, body: bytes | None = None) -> object:
        """Return the JSON that answers a question beside the point, such as which models there are; None for none.

        Raises Overloaded or Unavailable where nothing answers.
        """
        client = await self._client()
        async with client.request("GET" if body is None else "POST", url, body, until) as answer:
            said = read_said(answer.status, answer.headers, await answer.body(until))
        return said.body if said.status == 200 else None

    async def aclose(self) -> None:
        """Close the connections of the running event loop; none is made in it after that."""
        loop = asyncio.get_running_loop()
        self._closed.add(loop)
        client = self._clients.pop(loop, None)
        if client is not None:
            await client.aclose()

    async def _client(self) -> "Client":
        loop = asyncio.get_running_loop()
        if loop in self._closed:
            raise Unavailable(
                f"The connections to {self.target.place} have been closed.", remedy="Open the index again."
            )
        if loop not in self._clients:
            from quipu.providers.openai.client import Client  # noqa: PLC0415 - aiohttp takes a tenth of a second

            ended = [each for each in self._clients if each.is_closed()]
            self._clients[loop] = Client(self.target)
            for each in ended:
                await self._clients.pop(each).aclose()
        return self._clients[loop]
