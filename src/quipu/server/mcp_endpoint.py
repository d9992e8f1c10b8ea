"""MCP endpoint: the tools of an index at `/mcp` of the server, and over standard input and output."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from quipu.engine import Quipu
from quipu.errors import QuipuError
from quipu.server.access import Permission, check_origin, unknown_workspace
from quipu.server.components import ServerComponents
from quipu.server.dialects import document_url
from quipu.server.mcp_results import IndexForTools, document_uri
from quipu.server.operations import Call, read_body
from quipu.server.wire import RequestRefused, headers_of, problem_response
from quipu.server.workspaces import ONLY_WORKSPACE

if TYPE_CHECKING:
    from mcp.server.mcpserver import Context
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

_CALL = "quipu.call"  # the key of a request's scope under which a tool finds who sent it


class McpEndpoint:
    """Answers at `/mcp` with the tools of the only workspace, and at `/mcp/WORKSPACE` with those of any.

    Keys, permissions, limits and checks of the sender are those of the REST API. The library is imported, and its
    session manager started, by the first request. A session is one request, so any worker process can answer.
    """

    name = "mcp"  # in the log and in metrics

    def __init__(self, server: ServerComponents) -> None:
        self._server = server
        self._starting = asyncio.Lock()
        self._ending = asyncio.Event()
        self._manager: StreamableHTTPSessionManager | None = None
        self._running: asyncio.Task[None] | None = None

    def routes(self) -> list[Route]:
        """Return the routes that this answers."""
        return [Route("/mcp", self), Route("/mcp/{workspace}", self)]

    async def close(self) -> None:
        """End all open replies."""
        self._ending.set()
        if self._running is not None:
            await self._running

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a message of the protocol, or a problem where its sender may not use the workspace."""
        request, options = Request(scope, receive), self._server.options
        try:
            scope[_CALL] = call = self._checked(request)
            with self._server.open_requests.counted(call.caller.id):
                body = await read_body(request, options.max_body_bytes, options.body_s)
                manager = await self._started()
                await manager.handle_request(scope, _received(body, receive), send)
        except (QuipuError, RequestRefused) as error:
            response = problem_response(self._server.problem(error, request), headers_of(error))
            await response(scope, receive, send)

    def _checked(self, request: Request) -> Call:
        check_origin(request)
        workspace = request.path_params.get("workspace", ONLY_WORKSPACE)
        caller = self._server.access.caller(request)
        self._server.access.check(caller, Permission.READ, workspace)
        if not self._server.workspaces.exists(workspace):
            raise unknown_workspace(workspace)
        return Call(request=request, server=self._server, caller=caller, workspace=workspace)

    async def _started(self) -> "StreamableHTTPSessionManager":
        async with self._starting:
            if self._manager is None:
                self._manager = self._make_manager()
                is_ready = asyncio.Event()
                self._running = asyncio.create_task(self._run(self._manager, is_ready))
                await is_ready.wait()
            return self._manager

    async def _run(self, manager: "StreamableHTTPSessionManager", is_ready: asyncio.Event) -> None:
        async with manager.run():
            is_ready.set()
            await self._ending.wait()

    def _make_manager(self) -> "StreamableHTTPSessionManager":
        from quipu.server.mcp_tools import session_manager

        return session_manager(
            self._index,
            may_write=self._server.options.mcp_may_write,
            without_paths=self._server.workspaces.without_paths,
            max_body_bytes=self._server.options.max_body_bytes,
        )

    @asynccontextmanager
    async def _index(self, ctx: "Context[Any, Any]") -> AsyncIterator[IndexForTools]:
        request: Request = ctx.request_context.request  # type: ignore[assignment] # over HTTP there is always one
        call: Call = request.scope[_CALL]
        async with self._server.workspaces.use(call.workspace) as kb:
            yield IndexForTools(
                kb=kb,
                link=partial(document_url, call.request, call.workspace),
                check_write=partial(self._server.access.check, call.caller, Permission.WRITE, call.workspace),
            )


def _received(body: bytes, receive: Receive) -> Receive:
    """Return what receives a body that was read already, and then what follows it: that the client is gone."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_again() -> Message:
        return messages.pop() if messages else await receive()

    return receive_again


async def serve_over_stdio(kb: Quipu, *, may_write: bool) -> None:
    """Answer the messages of one client over standard input and output until it ends.

    Raises Unavailable where the library `mcp` is not installed.
    """
    from quipu.server.mcp_tools import tool_server

    @asynccontextmanager
    async def index(_: "Context[Any, Any]") -> AsyncIterator[IndexForTools]:
        yield IndexForTools(kb=kb, link=document_uri)

    await tool_server(index, may_write=may_write).run_stdio_async()
