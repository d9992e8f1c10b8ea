"""Operations: the functions of the API. The signature of a function is its contract, and becomes its OpenAPI entry.

    @operation("GET", "/workspaces/{workspace}/entities/{name:path}", Permission.READ)
    async def entity(kb: Quipu, name: str) -> EntityDetails: ...

`kb` is the engine of the workspace in the path, `call` the request and what serves it. A parameter with the name of a
part of the path holds that part, `body` the JSON body, and a keyword-only parameter one of the query string. What the
function returns is sent as JSON, unless it is a Response.
"""

import asyncio
import hashlib
import inspect
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar, get_type_hints

from pydantic import BaseModel, ConfigDict, TypeAdapter, create_model
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route, compile_path
from starlette.types import Message, Receive, Scope, Send

from quipu.engine import Quipu
from quipu.server.access import NOBODY, AccessKey, Permission, check_origin
from quipu.server.wire import Problem, RequestRefused, headers_of, headers_only, json_response, problem_response
from quipu.stores.sqlite.server_state import MAX_RESERVED_S, ServerState, StoredReply

if TYPE_CHECKING:
    from quipu.server.components import ServerComponents

CLOSED = ConfigDict(extra="forbid", strict=True, frozen=True)
_IDEMPOTENT_S = 24 * 3_600  # how long a reply to a request with an Idempotency-Key is repeated
_MAX_KEY_CHARS = 200
_RENEW_S = MAX_RESERVED_S / 4
_PARSED = ConfigDict(extra="forbid", frozen=True)  # a query string holds text only
Function = TypeVar("Function", bound=Callable[..., Awaitable[object]])
ErrorRenderer = Callable[[Problem, Mapping[str, str]], Response]


class QueryParameters(BaseModel):
    """Parameters of a query string that belong together: a keyword-only parameter of such a type has them as fields."""

    model_config = _PARSED


class WireBody(BaseModel):
    """A body of a request: unknown fields are refused, and a value has the type that is asked for."""

    model_config = CLOSED


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One request: what serves it, who sent it, and the workspace it is about ("": none)."""

    request: Request
    server: "ServerComponents"
    caller: AccessKey
    workspace: str = ""

    @asynccontextmanager
    async def use(self, workspace: str, permission: Permission = Permission.READ) -> AsyncIterator[Quipu]:
        """Keep the engine of a workspace that the path does not name open during the block.

        Raises NotFound where there is none, or the sender may not open it; RequestRefused where the key allows less.
        """
        self.server.access.check(self.caller, permission, workspace)
        async with self.server.workspaces.use(workspace) as kb:
            yield kb


@dataclass(frozen=True, kw_only=True)
class Operation:
    """One operation: method, path, who may call it, and the function that does the work.

    `permission` is None where no key is needed. `render_error` writes errors in the form of the API that the operation
    belongs to. `reads_body` is set where the function itself reads the body, piece by piece.
    `is_idempotent` is set where a request with an Idempotency-Key is done once.
    `takes_any_type` is set where clients send JSON under the name of another type, as curl does unless told otherwise.
    """

    method: str
    path: str
    permission: Permission | None
    function: Callable[..., Awaitable[object]]
    status: int = 200
    render_error: ErrorRenderer = problem_response
    tag: str = ""
    media_type: str = "application/json"
    body_media_type: str = "application/json"
    reads_body: bool = False
    takes_any_type: bool = False
    is_idempotent: bool = False
    path_parameters: frozenset[str] = field(default_factory=frozenset)

    @property
    def subject(self) -> str:
        """What the operation is about: the name of its module, unless a `tag` says otherwise."""
        return self.tag or self.function.__module__.rpartition(".")[2]

    @cached_property
    def hints(self) -> Mapping[str, Any]:
        """The types of the function's parameters, and of its result under "return"."""
        return get_type_hints(self.function, include_extras=True)

    @cached_property
    def body(self) -> TypeAdapter[Any] | None:
        """The type of the body, None where the operation takes none."""
        return TypeAdapter(self.hints["body"]) if "body" in self.hints else None

    @cached_property
    def query_parameters(self) -> type[BaseModel] | None:
        """The parameters of the query string as the fields of one class, None where there are none."""
        fields: dict[str, Any] = {}
        for parameter in inspect.signature(self.function).parameters.values():
            if parameter.name in self.groups:
                group = self.groups[parameter.name].model_fields
                fields |= {name: (described.annotation, described) for name, described in group.items()}
            elif parameter.kind is parameter.KEYWORD_ONLY:
                default = ... if parameter.default is parameter.empty else parameter.default
                fields[parameter.name] = (self.hints[parameter.name], default)
        return create_model(f"{self.function.__name__}_parameters", __config__=_PARSED, **fields) if fields else None

    @cached_property
    def groups(self) -> Mapping[str, type[QueryParameters]]:
        """The types of the parameters that stand for several ones of the query string."""
        hints = self.hints.items()
        return {name: hint for name, hint in hints if inspect.isclass(hint) and issubclass(hint, QueryParameters)}

    def route(self, server: "ServerComponents") -> Route:
        """Return the route that serves this operation."""
        return Route(self.path, OperationEndpoint(self, server), methods=[self.method], name=self.function.__name__)


def operation(
    method: str,
    path: str,
    permission: Permission | None,
    *,
    status: int = 200,
    **others: Any,
) -> Callable[[Function], Function]:
    """Mark a function as an operation; `others` are further fields of Operation. The function stays as it is."""

    def mark(function: Function) -> Function:
        names = frozenset(compile_path(path)[2])
        function.operation = Operation(  # type: ignore[attr-defined]
            method=method,
            path=path,
            permission=permission,
            function=function,
            status=status,
            path_parameters=names,
            **others,
        )
        return function

    return mark


def operations_of(*functions: Callable[..., Awaitable[object]]) -> tuple[Operation, ...]:
    """Return the operations of these functions, in this order: the first that matches a path answers."""
    return tuple(function.operation for function in functions)  # type: ignore[attr-defined]


class OperationEndpoint:
    """Serves one operation: checks the caller, reads the request, runs the function, writes its result."""

    def __init__(self, described: Operation, server: "ServerComponents") -> None:
        self._operation = described
        self._server = server

    @property
    def name(self) -> str:
        """The name of the operation."""
        return self._operation.function.__name__

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        try:
            call = self._checked(request)
            with self._server.open_requests.counted(call.caller.id):
                if "kb" in self._operation.hints:
                    async with self._server.workspaces.use(call.workspace) as kb:
                        await self._respond(call, kb, send)
                else:
                    await self._respond(call, None, send)
        except Exception as error:
            self._server.report(error, request)
            response = self._operation.render_error(self._server.problem(error, request), headers_of(error))
            await response(scope, receive, send)

    def _checked(self, request: Request) -> Call:
        """Return the call of a sender who may make it; raises RequestRefused or NotFound for any other."""
        check_origin(request)
        workspace, permission = request.path_params.get("workspace", ""), self._operation.permission
        caller = NOBODY
        if permission is not None:
            caller = self._server.access.caller(request)
            self._server.access.check(caller, permission, workspace)
        return Call(request=request, server=self._server, caller=caller, workspace=workspace)

    async def _respond(self, call: Call, kb: Quipu | None, send: Send) -> None:
        request, arguments = call.request, await self._arguments(call.request)
        context = {"kb": kb, "call": call}
        arguments |= {name: value for name, value in context.items() if name in self._operation.hints}
        result = await self._result(call, arguments)
        response = result if isinstance(result, Response) else json_response(result, self._operation.status)
        if request.method == "HEAD" and isinstance(response, StreamingResponse):
            response = await headers_only(response)
        await response(request.scope, request.receive, send)

    async def _result(self, call: Call, arguments: Mapping[str, Any]) -> object:
        """Return what the function returns; raises RequestRefused if it takes too long, or nobody waits any more."""
        if arguments.keys().isdisjoint(("kb", "call")):  # it asks nobody, as /health: there is nothing to wait for
            return await self._operation.function(**arguments)
        work, reply_s = self._work(call, arguments), self._server.options.reply_s
        try:
            async with asyncio.timeout(reply_s):
                return await (work if self._operation.reads_body else _unless_disconnected(work, call.request))
        except TimeoutError:
            raise RequestRefused(
                504, f"No reply was ready after {reply_s:g} seconds.", remedy="Try a stream."
            ) from None

    def _work(self, call: Call, arguments: Mapping[str, Any]) -> Awaitable[object]:
        """Return what does the work, once for each Idempotency-Key where the operation allows one."""
        if not self._operation.is_idempotent:
            return self._operation.function(**arguments)

        async def respond() -> Response:
            return json_response(await self._operation.function(**arguments), self._operation.status)

        body = arguments["body"].model_dump_json() if "body" in arguments else ""
        return once(call, hashlib.sha256(f"{self.name}\n{body}".encode()).hexdigest(), respond)

    async def _arguments(self, request: Request) -> dict[str, Any]:
        """Return the parts of the path, of the query string and of the body that the function takes."""
        names = self._operation.path_parameters & self._operation.hints.keys()
        arguments = {name: request.path_params[name] for name in names}
        if self._operation.query_parameters is not None:
            model = self._operation.query_parameters.model_validate(_query_string(request))
            values = {name: getattr(model, name) for name in type(model).model_fields}
            for parameter, group in self._operation.groups.items():
                arguments[parameter] = group(**{name: values.pop(name) for name in group.model_fields})
            arguments |= values
        elif request.query_params:
            unknown = ", ".join(request.query_params)
            raise RequestRefused(422, f"There is no parameter {unknown} here.", remedy="Leave it out.")
        if self._operation.body is not None:
            if not self._operation.takes_any_type:
                _check_media_type(request)
            arguments["body"] = self._operation.body.validate_json(
                await read_body(request, self._server.options.max_body_bytes, self._server.options.body_s)
            )
        return arguments


async def once(call: Call, digest: str, respond: Callable[[], Awaitable[Response]]) -> Response:
    """Return what `respond` returns, once for each Idempotency-Key: for a day, the same request gets the same reply.

    `digest` is that of the request. Raises RequestRefused for a key that another request has used, and while the first
    one is not answered. A request that fails leaves its key free.
    """
    sent = call.request.headers.get("idempotency-key", "")
    if len(sent) > _MAX_KEY_CHARS:
        raise RequestRefused(422, f"The Idempotency-Key is longer than {_MAX_KEY_CHARS} characters.")
    if not sent:
        return await respond()
    key = f"{call.caller.id} {sent}"  # what one sender did is nothing to another
    state, now = await call.server.workspaces.state(call.workspace), time.time()
    reserved = StoredReply(key=key, digest=digest, status=0, body=b"", created=now)
    if not await asyncio.to_thread(state.add_reply, reserved, now - _IDEMPOTENT_S):
        return _repeated(await asyncio.to_thread(state.reply, key), digest)
    renewing = asyncio.create_task(_renew(state, key))
    try:
        response = await respond()
    except BaseException:
        await asyncio.to_thread(state.remove_reply, key)
        raise
    finally:
        renewing.cancel()
    reply = replace(reserved, status=response.status_code, body=bytes(response.body))
    await asyncio.to_thread(state.update_reply, reply)
    return response


async def _renew(state: ServerState, key: str) -> None:
    """Keep a key reserved while its request is worked on, however long that takes."""
    while True:
        await asyncio.sleep(_RENEW_S)
        await asyncio.to_thread(state.renew_reply, key, time.time())


def _repeated(reply: StoredReply | None, digest: str) -> Response:
    """Return the reply that an Idempotency-Key got before. Raises RequestRefused while there is none yet."""
    if reply is not None and reply.digest != digest:
        raise RequestRefused(422, "This Idempotency-Key was used for another request.", remedy="Make a new key.")
    if reply is None or not reply.status:
        message = "The first request with this Idempotency-Key is not answered yet."
        raise RequestRefused(409, message, remedy="Try again in a second.", headers={"retry-after": "1"})
    return Response(reply.body, reply.status, {"idempotent-replayed": "true"}, "application/json")


def _query_string(request: Request) -> dict[str, object]:
    """Return the parameters of the query string: a list where one is given more than once."""
    names = dict.fromkeys(name for name, _ in request.query_params.multi_items())
    values = {name: request.query_params.getlist(name) for name in names}
    return {name: texts if len(texts) > 1 else texts[0] for name, texts in values.items()}


def limited(request: Request, max_bytes: int, remedy: str) -> Request:
    """Return a request whose body ends in RequestRefused as soon as it is larger than `max_bytes`."""
    too_large = RequestRefused(413, f"The body is larger than {max_bytes:,} bytes.", remedy=remedy)
    size = request.headers.get("content-length", "")
    if size.isdigit() and int(size) > max_bytes:
        raise too_large
    n_bytes = 0

    async def receive() -> Message:
        nonlocal n_bytes
        message = await request.receive()
        n_bytes += len(message.get("body", b""))
        if n_bytes > max_bytes:
            raise too_large
        return message

    return Request(request.scope, receive)


async def read_body(request: Request, max_bytes: int, max_s: float) -> bytes:
    """Return the body of a request; raises RequestRefused if it is larger than `max_bytes`, or late."""
    try:
        async with asyncio.timeout(max_s):
            return await limited(request, max_bytes, "Send less, or documents one by one.").body()
    except TimeoutError:
        raise RequestRefused(408, f"The body took more than {max_s:g} seconds.", remedy="Send it again.") from None


def _check_media_type(request: Request) -> None:
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != "application/json":
        raise RequestRefused(
            415,
            f"The body has the type {media_type or 'unknown'!r}.",
            remedy="Send JSON, with the header Content-Type: application/json.",
        )


async def _unless_disconnected(work: Awaitable[object], request: Request) -> object:
    """Return the result of `work`, which is cancelled when the client is gone: nobody would read the answer."""
    task = asyncio.ensure_future(work)
    disconnect = asyncio.ensure_future(_disconnected(request))
    try:
        await asyncio.wait((task, disconnect), return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise RequestRefused(499, "The client is gone.")
        return task.result()
    finally:
        for unfinished in (task, disconnect):
            if not unfinished.done():
                unfinished.cancel()
        await asyncio.gather(task, disconnect, return_exceptions=True)


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
