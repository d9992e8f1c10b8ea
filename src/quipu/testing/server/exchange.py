"""Exchange: one request and its reply on the connection, complete or broken by a fault, and its log entry."""

import asyncio
import socket
import struct
import time
from collections.abc import Sequence

from aiohttp import web

from quipu.model.chat import TokenCount
from quipu.testing.scripted.fault_injection import RequestDraw
from quipu.testing.scripted.script import INSTEAD, MIDWAY, Fault, FaultName, RequestKind
from quipu.testing.server.request_log import LoggedRequest, RequestLog
from quipu.testing.server.wire_format import BAD_GATEWAY, PAGE, error_body, error_event

_RESET_ON_CLOSE = struct.pack("ii", 1, 0)  # SO_LINGER of zero seconds: close() sends RST
_MIN_SLEEP_S = 0.002

# Status, code, type and message of the errors sent in place of a reply; some are sent at once.
_ERRORS = {
    FaultName.BAD_REQUEST: (400, "content_policy_violation", "invalid_request_error", "This request is not allowed."),
    FaultName.TOO_MANY_REQUESTS: (429, "rate_limit_exceeded", "requests", "Rate limit reached for requests."),
    FaultName.QUOTA: (429, "insufficient_quota", "insufficient_quota", "You exceeded your current quota."),
    FaultName.SERVER_ERROR: (500, "server_error", "server_error", "The server had an error. Sorry about that!"),
    FaultName.SERVICE_UNAVAILABLE: (503, "overloaded", "server_error", "The engine is currently overloaded."),
}
_AT_ONCE = frozenset({FaultName.BAD_REQUEST, FaultName.TOO_MANY_REQUESTS, FaultName.QUOTA})
_FAILURE = error_body("server_error", "The server had an error.", "server_error")


class Exchange:
    """One request from its arrival to its end."""

    def __init__(self, request: web.Request, request_log: RequestLog, kind: RequestKind) -> None:
        self.request = request
        self.n_under_way = request_log.n_under_way + 1
        self._request_log = request_log
        self._kind = kind
        self._n = request_log.begin()
        self._started_s = time.monotonic()
        self._model = ""
        self._request_draw: RequestDraw | None = None
        self._tokens = TokenCount()
        self._text_hash = ""
        self._latency_s = 0.0
        self._status = 0
        self._fault = ""
        self._is_completed = False

    def draw(self, draw: RequestDraw, *, model: str, tokens: TokenCount, text_hash: str, slowdown: float) -> None:
        """Store the request's draw; the reply takes `slowdown` times as long as drawn."""
        self._request_draw, self._model, self._tokens, self._text_hash = draw, model, tokens, text_hash
        self._kind = draw.kind
        self._fault = draw.fault.name.value if draw.fault else ""
        self._latency_s = draw.latency_s * slowdown

    def end(self) -> None:
        """Write the request to the log."""
        entry = LoggedRequest(
            n=self._n,
            kind=self._kind,
            model=self._model,
            status=self._status,
            is_completed=self._is_completed,
            fault=self._fault,
            attempt=self._request_draw.attempt if self._request_draw else 1,
            tokens=self._tokens,
            latency_s=self._latency_s,
            started_s=self._started_s,
            ended_s=time.monotonic(),
            n_under_way=self.n_under_way,
            key=self._request_draw.key if self._request_draw else "",
            text_hash=self._text_hash,
        )
        self._request_log.end(entry)

    async def fail(self) -> web.StreamResponse | None:
        """Send the fault that replaces the reply; return None if there is no such fault."""
        fault = self._request_draw.fault if self._request_draw else None
        if fault is None or fault.name not in INSTEAD:
            return None
        if fault.name not in _AT_ONCE:
            await self.wait_until(self._started_s + self._latency_s)
        if fault.name is FaultName.TIMEOUT:
            await asyncio.Event().wait()
        if fault.name is FaultName.RESET:
            return self.reset()
        if fault.name is FaultName.BAD_GATEWAY:
            return await self.send(502, BAD_GATEWAY, content_type="text/html", retry_after_s=fault.retry_after_s)
        if fault.name is FaultName.NOT_JSON:
            return await self.send(200, PAGE, content_type="text/html")
        if fault.name is FaultName.ERROR_IN_200:
            return await self.send(200, _FAILURE)
        status, code, kind, message = _ERRORS[fault.name]
        return await self.send(status, error_body(code, message, kind), retry_after_s=fault.retry_after_s)

    async def send(
        self, status: int, body: bytes, *, content_type: str = "application/json", retry_after_s: float | None = None
    ) -> web.StreamResponse:
        """Send a body that is not a reply of the model."""
        headers = {} if retry_after_s is None else {"Retry-After": f"{retry_after_s:g}"}
        response = web.Response(status=status, body=body, content_type=content_type, headers=headers)
        await response.prepare(self.request)
        await response.write_eof()
        self._status = status
        return response

    async def reply(self, body: bytes, extra_s: float = 0.0) -> web.StreamResponse:
        """Send the complete reply after its latency and `extra_s`, or half of it if a fault breaks it."""
        self._latency_s += extra_s
        await self.wait_until(self._started_s + self._latency_s)
        fault = self._midway()
        if fault is None:
            response = await self.send(200, body)
            self._is_completed = not self._is_gone()
            return response
        if fault.name is FaultName.ERROR_MIDWAY:
            return await self.send(200, _FAILURE)
        half = web.StreamResponse(headers={"Content-Type": "application/json", "Content-Length": str(len(body))})
        await half.prepare(self.request)
        self._status = 200
        await half.write(body[: len(body) // 2])
        await self._break(fault.name)
        return half

    async def stream(
        self, first: bytes, pieces: Sequence[bytes], last: Sequence[bytes], *, first_share: float, piece_s: float
    ) -> web.StreamResponse:
        """Send the events of the reply at their times, or only some of them if a fault breaks it."""
        breaks = self._midway()
        due_s = self._started_s + self._latency_s * first_share
        gap_s = self._latency_s * (1 - first_share) / max(1, len(pieces)) + piece_s
        self._latency_s += piece_s * len(pieces)
        await self.wait_until(due_s)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-cache"})
        await response.prepare(self.request)
        self._status = 200
        waiting = [first]
        for piece in pieces[: breaks.n_pieces] if breaks else pieces:
            waiting.append(piece)
            due_s += gap_s
            if due_s - time.monotonic() >= _MIN_SLEEP_S:
                await response.write(b"".join(waiting))
                waiting.clear()
                await self.wait_until(due_s)
        if breaks:
            await response.write(b"".join(waiting))
            await self._break(breaks.name, response)
            return response
        await response.write(b"".join((*waiting, *last)))
        await response.write_eof()
        self._is_completed = not self._is_gone()
        return response

    def reset(self) -> web.StreamResponse:
        """Abort the connection: the client gets a reset."""
        transport = self.request.transport
        if transport is not None:
            connection = transport.get_extra_info("socket")
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
            transport.abort()
        return web.Response()

    async def wait_until(self, due_s: float) -> None:
        """Sleep until `due_s` on the monotonic clock."""
        delay_s = due_s - time.monotonic()
        if delay_s > 0:
            await asyncio.sleep(delay_s)

    async def _break(self, name: FaultName, stream: web.StreamResponse | None = None) -> None:
        if name is FaultName.STALL:
            await asyncio.Event().wait()
        if stream is not None and name in (FaultName.ERROR_MIDWAY, FaultName.UNFINISHED):
            await stream.write_eof(error_event(_FAILURE) if name is FaultName.ERROR_MIDWAY else b"")
        elif name is FaultName.RESET_MIDWAY:
            await asyncio.sleep(_MIN_SLEEP_S)  # otherwise the reset arrives before the bytes sent last
            self.reset()
        elif self.request.transport is not None:
            self.request.transport.close()

    def _midway(self) -> Fault | None:
        fault = self._request_draw.fault if self._request_draw else None
        return fault if fault and fault.name in MIDWAY else None

    def _is_gone(self) -> bool:
        return self.request.transport is None or self.request.transport.is_closing()
