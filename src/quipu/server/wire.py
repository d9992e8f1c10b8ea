"""Wire format: results as JSON, errors as problem details (RFC 9457), and streams of server-sent events."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass
from functools import cache

from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_json
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from quipu.errors import (
    Busy,
    Corrupt,
    InvalidInput,
    Mismatch,
    NotFound,
    OverBudget,
    Overloaded,
    QuipuError,
    Refused,
    Stale,
    TooLong,
    Unavailable,
)
from quipu.model.answer import Answer

HEARTBEAT_S = 15.0
BEAT = b": waiting\n\n"
# Nothing of the server may load code from elsewhere, or be framed.
CONTENT_POLICY = "default-src 'self'; img-src 'self' blob:; base-uri 'none'; frame-ancestors 'none'; form-action 'self'"
# The first class that an error belongs to says its status.
_STATUS: Mapping[type[QuipuError], int] = {
    NotFound: 404,
    TooLong: 422,
    InvalidInput: 422,
    Mismatch: 409,
    Stale: 409,
    Corrupt: 500,
    Refused: 502,
    OverBudget: 402,
    Busy: 503,
    Overloaded: 503,
    Unavailable: 503,
}
_RETRY_AFTER_S = 1.0  # where a service asked for no time of its own


class RequestRefused(Exception):
    """A request that never reaches an engine: it has no key, is too large, or asks for nothing there is."""

    def __init__(
        self, status: int, message: str, *, remedy: str = "", headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.remedy = remedy
        self.headers = dict(headers or {})


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """What went wrong, as RFC 9457 writes it. `remedy` says how to fix it; `errors` are the fields that are wrong.

    `request_id` finds the line in the server's log.
    """

    type: str
    title: str
    status: int
    detail: str
    remedy: str = ""
    request_id: str = ""
    missing: tuple[str, ...] = ()
    errors: tuple["FieldError", ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldError:
    """A field of a request that is not valid: its path, as in "budget.total", and what is wrong with it."""

    field: str
    detail: str


def problem_of(error: Exception, request_id: str = "") -> Problem:
    """Return what a client may know about an error. An error nobody raised on purpose says only its request id."""
    match error:
        case RequestRefused():
            kind, status, message, remedy = "request-refused", error.status, error.message, error.remedy
        case QuipuError():
            status = next((status for kind, status in _STATUS.items() if isinstance(error, kind)), 500)
            kind, message, remedy = _dashed(type(error).__name__), error.message, error.remedy
        case ValidationError():
            kind, status, message, remedy = "invalid-input", 422, "The request is not valid.", "Correct these fields."
        case _:
            kind, status, message = "internal-error", 500, "The server failed."
            remedy = f"Its log tells more about the request {request_id}."
    return Problem(
        type=f"urn:quipu:{kind}",
        title=kind.replace("-", " ").capitalize(),
        status=status,
        detail=message,
        remedy=remedy,
        request_id=request_id,
        missing=error.missing if isinstance(error, Stale) else (),
        errors=tuple(_field_errors(error)) if isinstance(error, ValidationError) else (),
    )


def headers_of(error: Exception) -> dict[str, str]:
    """Return the headers that belong to an error: when to try again, or how to authenticate."""
    if isinstance(error, RequestRefused):
        return error.headers
    if isinstance(error, Busy | Overloaded):
        wait_s = error.retry_after_s if isinstance(error, Overloaded) else None
        return {"retry-after": f"{max(wait_s or _RETRY_AFTER_S, 1):.0f}"}
    return {}


def problem_response(problem: Problem, headers: Mapping[str, str]) -> Response:
    """Return the response for a problem in the native API."""
    return Response(json_bytes(problem), problem.status, dict(headers), media_type="application/problem+json")


def json_bytes(value: object) -> bytes:
    """Return a result as JSON: dataclasses become objects with their fields, None stays null."""
    if type(value) is Answer:  # the largest result: known types are written in half the time
        return _answers().dump_json(value)
    return to_json(value, inf_nan_mode="null")


@cache
def _answers() -> TypeAdapter[Answer]:
    return TypeAdapter(Answer)


def json_response(value: object, status: int = 200) -> Response:
    """Return a result as a JSON response."""
    return Response(json_bytes(value), status, media_type="application/json")


async def download(pieces: AsyncGenerator[bytes, None], media_type: str, disposition: str) -> StreamingResponse:
    """Return a response with a file that is made piece by piece; an error before the first piece is raised here."""
    first = await anext(pieces, b"")
    return StreamingResponse(_chained(first, pieces), 200, {"content-disposition": disposition}, media_type)


async def headers_only(response: StreamingResponse) -> Response:
    """Return the headers of a stream, as HEAD asks for, and let nobody make its pieces."""
    if isinstance(response.body_iterator, AsyncGenerator):
        await response.body_iterator.aclose()
    head = Response(status_code=response.status_code)
    head.raw_headers = response.raw_headers
    return head


async def _chained(first: bytes, rest: AsyncGenerator[bytes, None]) -> AsyncIterator[bytes]:
    yield first
    async with aclosing(rest):
        async for piece in rest:
            yield piece


def sent_event(event: str, value: object, id: str = "") -> bytes:
    """Return one server-sent event; `value` becomes its JSON data."""
    head = f"id: {id}\n" if id else ""
    return f"{head}event: {event}\ndata: ".encode() + json_bytes(value) + b"\n\n"


def event_stream(events: AsyncIterator[bytes], heartbeat_s: float = HEARTBEAT_S) -> StreamingResponse:
    """Return a response of server-sent events. A comment keeps the connection open while nothing happens.

    With `heartbeat_s` 0, `events` has these comments itself: thousands of idle streams then take less memory.
    """
    headers = {"cache-control": "no-cache, no-transform", "x-accel-buffering": "no"}
    if not heartbeat_s:
        return _IdleStream(events, 200, headers, "text/event-stream")
    return StreamingResponse(with_heartbeat(events, BEAT, heartbeat_s), 200, headers, "text/event-stream")


class _IdleStream(StreamingResponse):
    """A stream in which little happens. That its client is gone is seen after the next piece: no task waits for it."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request, pieces = Request(scope, receive), self.body_iterator
        assert isinstance(pieces, AsyncGenerator)
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        async with aclosing(pieces):
            async for piece in pieces:
                await send({"type": "http.response.body", "body": piece, "more_body": True})
                if await request.is_disconnected():
                    return
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def with_heartbeat(pieces: AsyncIterator[bytes], beat: bytes, every_s: float) -> AsyncIterator[bytes]:
    """Yield the pieces, and `beat` whenever none came for `every_s` seconds."""
    waiting: asyncio.Task[bytes] | None = None
    try:
        while True:
            waiting = waiting or asyncio.ensure_future(_next(pieces))
            await asyncio.wait((waiting,), timeout=every_s)
            if not waiting.done():
                yield beat
                continue
            try:
                piece = waiting.result()
            except StopAsyncIteration:
                return
            waiting = None
            yield piece
    finally:
        if waiting is not None and not waiting.done():
            waiting.cancel()
            with suppress(asyncio.CancelledError, StopAsyncIteration):
                await waiting
        if close := getattr(pieces, "aclose", None):
            await close()


async def _next(pieces: AsyncIterator[bytes]) -> bytes:
    return await anext(pieces)


def _field_errors(error: ValidationError) -> list[FieldError]:
    return [
        FieldError(field=".".join(map(str, part["loc"])), detail=part["msg"])
        for part in error.errors(include_url=False, include_context=False, include_input=False)
    ]


def _dashed(name: str) -> str:
    return "".join(f"-{letter.lower()}" if letter.isupper() else letter for letter in name).lstrip("-")
