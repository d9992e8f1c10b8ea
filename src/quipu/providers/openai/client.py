"""HTTP client by aiohttp, for one target and one event loop. It is imported at the first request."""

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from urllib.request import getproxies, proxy_bypass

import aiohttp

from quipu.errors import Overloaded, QuipuError, Unavailable
from quipu.providers.openai.endpoint import Endpoint, Target
from quipu.providers.openai.errors import Unreachable, address_remedy, start_remedy
from quipu.providers.openai.reply import excerpt

_KEEP_ALIVE_S = 4.0  # uvicorn, used by vLLM and others, closes idle connections after five
_MAX_BYTES = 268_435_456  # of one answer

_Timeouts = (TimeoutError, aiohttp.ServerTimeoutError)


class HttpResponse:
    """The response to a request: status, headers, and the body as it arrives."""

    def __init__(self, response: aiohttp.ClientResponse, client: "HttpClient") -> None:
        self._response = response
        self._client = client
        self.status = response.status
        self.headers: Mapping[str, str] = {name.lower(): value for name, value in response.headers.items()}

    @property
    def is_stream(self) -> bool:
        """Whether the body is a stream of server-sent events."""
        return "event-stream" in self.headers.get("content-type", "")

    async def read_some(self, until: float) -> bytes:
        """Return the next bytes, b"" at the end. `until` is a time of the event loop.

        Raises Overloaded if the connection breaks or the bytes are late.
        """
        try:
            async with asyncio.timeout_at(until):
                return await self._response.content.readany()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            failed = self._client.as_error(error)
        raise failed  # outside the except block: the library's exception holds the key and must not be its context

    async def read_all(self, until: float) -> bytes:
        """Return the whole body. Raises Overloaded if it breaks off, is late or is too large."""
        body = bytearray()
        while received := await self.read_some(until):
            body += received
            if len(body) > _MAX_BYTES:
                raise Overloaded(f"{self._client.label} sent an answer of more than {_MAX_BYTES:,} bytes.")
        return bytes(body)


class HttpClient:
    """Connections to one target. Redirects are not followed, so that the key goes to no other server."""

    def __init__(self, target: Target) -> None:
        endpoint = target.endpoint
        self.label = target.label
        self._target = target
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=_KEEP_ALIVE_S),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers=endpoint.request_headers(),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=endpoint.timeouts.connect_s),
            proxy=proxy_for(endpoint),
        )

    @asynccontextmanager
    async def request(self, method: str, url: str, body: bytes | None, until: float) -> AsyncIterator[HttpResponse]:
        """Send a request and give its response as soon as the headers arrive, at `until` at the latest.

        Raises Unreachable if nothing answers at the address, Unavailable if another kind of server does, and Overloaded
        if the connection breaks or time runs out.
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
            yield HttpResponse(response, self)
        finally:
            response.release()

    async def aclose(self) -> None:
        """Close the connections."""
        await self._session.close()

    def as_error(self, error: Exception) -> QuipuError:
        """Return the error to raise for an exception of the library."""
        target, host = self._target, self._target.endpoint.host
        if isinstance(error, aiohttp.ClientConnectorCertificateError | aiohttp.ClientConnectorSSLError):
            return Unavailable(
                f"{host} offers no trusted encryption ({self._reason(error)}).",
                remedy="Name its certificate in SSL_CERT_FILE, or write http:// if it has none.",
            )
        if isinstance(error, aiohttp.ClientConnectorDNSError):
            return Unreachable(f"The host {host} of {self.label} is not known.", remedy=start_remedy(target))
        if isinstance(error, aiohttp.ConnectionTimeoutError):
            limit = f"{target.endpoint.timeouts.connect_s:g} s"
            return Unreachable(
                f"{host} accepted no connection within {limit} ({self.label}).", remedy=start_remedy(target)
            )
        if isinstance(error, aiohttp.ClientConnectorError):
            return Unreachable(
                f"Nothing answers at {host} ({self.label}): {self._reason(error)}.", remedy=start_remedy(target)
            )
        if isinstance(error, ValueError):
            return Unavailable(
                f"A request to {self.label} cannot be written.", remedy="Check the base URL and the headers."
            )
        if isinstance(error, aiohttp.ClientResponseError):
            return Unavailable(f"{host} does not answer in HTTP ({self.label}).", remedy=address_remedy(target))
        if isinstance(error, _Timeouts):
            return Overloaded(
                f"{self.label} did not answer in time.", remedy="Raise llm_timeout_s if it is slow.", may_cost=True
            )
        reason = "the answer ended too early" if isinstance(error, aiohttp.ClientPayloadError) else self._reason(error)
        return Overloaded(f"The connection to {self.label} broke ({reason}).", remedy="Try again.", may_cost=True)

    def _reason(self, error: Exception) -> str:
        errno = error.errno if isinstance(error, OSError) else None
        reason = os.strerror(errno).lower() if errno else str(error)
        return excerpt(self._target.endpoint.mask(reason)) or type(error).__name__


def proxy_for(endpoint: Endpoint) -> str | None:
    """Return the proxy the system names for this host; None for a service on this machine."""
    hostname = endpoint.host.rpartition(":")[0] or endpoint.host
    if endpoint.is_loopback or proxy_bypass(hostname):
        return None
    return getproxies().get(endpoint.base_url.partition(":")[0])
