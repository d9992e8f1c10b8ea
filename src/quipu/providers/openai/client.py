"""Client: HTTP by aiohttp for one target and one event loop; imported when the first request is made."""

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from urllib.request import getproxies, proxy_bypass

import aiohttp

from quipu.errors import Overloaded, QuipuError, Unavailable
from quipu.providers.openai.endpoint import Endpoint, Target
from quipu.providers.openai.faults import Unreachable, address_remedy, start_remedy
from quipu.providers.openai.said import excerpt

_KEEP_ALIVE_S = 4.0  # uvicorn, below vLLM and others, hangs up after five
_MAX_BYTES = 268_435_456  # of one answer

_Timeouts = (TimeoutError, aiohttp.ServerTimeoutError)


class Answer:
    """The answer to a request: status and headers, and the body as it comes."""

    def __init__(self, response: aiohttp.ClientResponse, client: "Client") -> None:
        self._response = response
        self._client = client
        self.status = response.status
        self.headers: Mapping[str, str] = {name.lower(): value for name, value in response.headers.items()}

    @property
    def is_stream(self) -> bool:
        """Whether the body is a stream of events."""
        return "event-stream" in self.headers.get("content-type", "")

    async def piece(self, until: float) -> bytes:
        """Return what has come next, b"" at the end. Raises Overloaded where it breaks off or is late.

        `until` is a time of the event loop.
        """
        try:
            async with asyncio.timeout_at(until):
                return await self._response.content.readany()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            failed = self._client.as_error(error)
        raise failed  # out here, where the library's exception, which holds the key, is not its context

    async def body(self, until: float) -> bytes:
        """Return all of it. Raises Overloaded where it breaks off, is late or does not end."""
        pieces: list[bytes] = []
        n_bytes = 0
        while piece := await self.piece(until):
            pieces.append(piece)
            n_bytes += len(piece)
            if n_bytes > _MAX_BYTES:
                raise Overloaded(f"{self._client.place} sent an answer of more than {_MAX_BYTES:,} bytes.")
        return b"".join(pieces)


class Client:
    """Connections to one target. Redirects are not followed: the key goes nowhere but where it was meant to."""

    def __init__(self, target: Target) -> None:
        endpoint = target.endpoint
        self.place = target.place
        self._target = target
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=_KEEP_ALIVE_S),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers=endpoint.request_headers(),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=endpoint.timeouts.connect_s),
            proxy=proxy_for(endpoint),
        )

    @asynccontextmanager
    async def request(self, method: str, url: str, body: bytes | None, until: float) -> AsyncIterator[Answer]:
        """Send a request and give its answer as soon as its headers are there, at `until` at the latest.

        Raises Unreachable where nothing answers at the address, Unavailable where what does is not what is wanted,
        Overloaded where the connection breaks or time runs out.
        """
        failed: QuipuError | None = None
        try:
            async with asyncio.timeout_at(until):
                response = await self._session.request(method, url, data=body, allow_redirects=False)
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            failed = self.as_error(error)
        if failed is not None:
            raise failed
        try:
            yield Answer(response, self)
        finally:
            response.release()

    async def aclose(self) -> None:
        """Close the connections."""
        await self._session.close()

    def as_error(self, error: Exception) -> QuipuError:
        """Return what an exception of the library amounts to."""
        target, host = self._target, self._target.endpoint.host
        if isinstance(error, aiohttp.ClientConnectorCertificateError | aiohttp.ClientConnectorSSLError):
            return Unavailable(
                f"{host} offers no trusted encryption ({self._told(error)}).",
                remedy="Name its certificate in SSL_CERT_FILE, or write http:// where it has none.",
            )
        if isinstance(error, aiohttp.ClientConnectorDNSError):
            return Unreachable(f"The host {host} of {self.place} is not known.", remedy=start_remedy(target))
        if isinstance(error, aiohttp.ConnectionTimeoutError):
            limit = f"{target.endpoint.timeouts.connect_s:g} s"
            return Unreachable(f"{host} took no connection within {limit} ({self.place}).", remedy=start_remedy(target))
        if isinstance(error, aiohttp.ClientConnectorError):
            return Unreachable(
                f"Nothing answers at {host} ({self.place}): {self._told(error)}.", remedy=start_remedy(target)
            )
        if isinstance(error, ValueError):
            return Unavailable(
                f"A request to {self.place} cannot be written.", remedy="Check the base URL and the headers."
            )
        if isinstance(error, aiohttp.ClientResponseError):
            return Unavailable(f"{host} gave no answer in HTTP ({self.place}).", remedy=address_remedy(target))
        if isinstance(error, _Timeouts):
            return Overloaded(
                f"{self.place} did not answer in time.", remedy="Raise llm_timeout_s if it is slow.", may_cost=True
            )
        what = "the answer ended too early" if isinstance(error, aiohttp.ClientPayloadError) else self._told(error)
        return Overloaded(f"The connection to {self.place} broke ({what}).", remedy="Try again.", may_cost=True)

    def _told(self, error: Exception) -> str:
        number = error.errno if isinstance(error, OSError) else None
        reason = os.strerror(number).lower() if number else str(error)
        return excerpt(self._target.endpoint.mask(reason)) or type(error).__name__


def proxy_for(endpoint: Endpoint) -> str | None:
    """Return the proxy the system names for this host; a service on this machine is never behind one."""
    hostname = endpoint.host.rpartition(":")[0] or endpoint.host
    if endpoint.is_loopback or proxy_bypass(hostname):
        return None
    return getproxies().get(endpoint.base_url.partition(":")[0])
