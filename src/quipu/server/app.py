"""Application: all routes of the server, and what surrounds each of them."""

import asyncio
import logging
import secrets
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from typing import Any

from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

import quipu
from quipu.server import (
    administration,
    conversations,
    documents,
    edits,
    graph,
    jobs,
    maintenance,
    ollama_api,
    openai_api,
    questions,
)
from quipu.server.components import ServerComponents, is_prefix
from quipu.server.mcp_endpoint import McpEndpoint
from quipu.server.openapi import PAGE_POLICY, openapi_document, reference_page
from quipu.server.operations import ErrorRenderer, Operation, OperationEndpoint
from quipu.server.wire import CONTENT_POLICY, RequestRefused, json_response, problem_of, problem_response

OPERATIONS: tuple[Operation, ...] = (
    *administration.OPERATIONS,
    *questions.OPERATIONS,
    *conversations.OPERATIONS,
    *documents.OPERATIONS,
    *jobs.OPERATIONS,
    *graph.OPERATIONS,
    *edits.OPERATIONS,
    *maintenance.OPERATIONS,
    *openai_api.OPERATIONS,
    *ollama_api.OPERATIONS,
)
_log = logging.getLogger(__name__)
# Nothing of the server may be framed, guessed to be another type, or load code from elsewhere.
_SECURITY_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"content-security-policy", CONTENT_POLICY.encode()),
)


def make_app(server: ServerComponents) -> Starlette:
    """Return the ASGI application that serves these workspaces; it closes them when it ends."""

    @cache  # it takes long to make, and needs no key
    def description() -> dict[str, Any]:
        return openapi_document(OPERATIONS, quipu.__version__)

    async def openapi(request: Request) -> Response:
        return json_response(description() | {"servers": [{"url": request.scope["root_path"] or "/"}]})

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        continuing = asyncio.create_task(server.jobs.start_all())
        yield
        continuing.cancel()
        await asyncio.gather(continuing, return_exceptions=True)
        await mcp.close()
        await server.jobs.close()
        if server.job_process is not None:
            await server.job_process.close()
        await server.workspaces.close()

    @cache
    def reference() -> str:
        return reference_page(description())

    async def docs(_: Request) -> Response:
        return Response(reference(), 200, {"content-security-policy": PAGE_POLICY}, "text/html; charset=utf-8")

    mcp = McpEndpoint(server)
    routes = [operation.route(server) for operation in OPERATIONS]
    return Starlette(
        routes=[
            *routes,
            *server.page.routes(),
            *mcp.routes(),
            Route("/api/v1/openapi.json", openapi),
            Route("/api/v1/docs", docs),
        ],
        middleware=[Middleware(_RequestGuard, server=server)],
        lifespan=lifespan,
        exception_handlers={404: _no_route, 405: _no_route},
    )


async def _no_route(request: Request, _: Exception) -> Response:
    """Answer a request that no operation serves; where the path has other methods, the header Allow names them."""
    methods = {
        method
        for route in request.app.routes
        if route.path_regex.match(request.scope["path"])
        for method in route.methods or ()
    }
    status = 405 if methods else 404
    message = "This path has other methods." if methods else f"There is no {request.method} {request.url.path}."
    refused = RequestRefused(status, message, remedy="/api/v1/openapi.json lists what there is.")
    headers = {"allow": ", ".join(sorted(methods))} if methods else {}
    render = _error_renderer(request.scope["path"].removeprefix(request.scope.get("root_path", "")))
    return render(problem_of(refused, request.scope.get("request_id", "")), headers)


def _error_renderer(path: str) -> ErrorRenderer:
    """Return what writes errors in the form of the API that a path would belong to."""
    if path.startswith("/v1/"):
        return openai_api.openai_error
    is_of_ollama = path.startswith("/api/") and not path.startswith("/api/v1/")
    return ollama_api.ollama_error if is_of_ollama else problem_response


def forwarded_prefix(headers: Headers) -> str:
    """Return the sub-path that a reverse proxy took from the path of a request, "" for none or a wrong one."""
    prefix = headers.get("x-forwarded-prefix", "").rstrip("/")
    return prefix if is_prefix(prefix) else ""


class _RequestGuard:
    """Surrounds every request: gives it an id, checks its Host header, and adds the security headers."""

    def __init__(self, app: ASGIApp, server: ServerComponents) -> None:
        self._app = app
        self._server = server

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = scope["request_id"] = secrets.token_hex(8)
        start, status = time.perf_counter(), 0

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                own = {name for name, _ in message["headers"]}
                others = [header for header in _SECURITY_HEADERS if header[0] not in own]
                message["headers"] = [*message["headers"], (b"x-request-id", request_id.encode()), *others]
            await send(message)

        try:
            headers = Headers(scope=scope)
            self._check(headers)
            prefix = self._server.options.prefix or forwarded_prefix(headers)
            if prefix and scope["path"] == prefix:
                redirection = RedirectResponse(f"{prefix}/")  # addresses in the page are relative to its folder
                await redirection(scope, receive, send_with_headers)
                return
            if prefix:
                scope["root_path"] = prefix
                scope["path"] = prefix + scope["path"].removeprefix(prefix)
            await self._app(scope, receive, send_with_headers)
        except RequestRefused as error:
            response = problem_response(problem_of(error, request_id), error.headers)
            await response(scope, receive, send_with_headers)
        finally:
            self._count(scope, status, time.perf_counter() - start)

    def _count(self, scope: Scope, status: int, seconds: float) -> None:
        """Count and log a request: its operation, never its path, its parameters or its key."""
        endpoint = scope.get("endpoint")
        operation = endpoint.name if isinstance(endpoint, OperationEndpoint | McpEndpoint) else "none"
        self._server.metrics.count_request(operation, status, seconds)
        _log.info(
            "request",
            extra={
                "request_id": scope["request_id"],
                "operation": operation,
                "status": status,
                "ms": round(1_000 * seconds, 1),
            },
        )

    def _check(self, headers: Headers) -> None:
        """Raise RequestRefused for a foreign Host: a page that points its own name at this machine (DNS rebinding)."""
        host = headers.get("host", "").lower()
        name = host if host.endswith("]") else host.rpartition(":")[0] if ":" in host else host
        hosts = self._server.options.hosts
        if name not in hosts and "*" not in hosts:
            raise RequestRefused(
                421, "The Host header is not a name of this server.", remedy="Allow it: quipu serve --allow-host NAME"
            )
