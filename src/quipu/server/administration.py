"""Administration: the health of the server, its workspaces, and the strategies, settings and usage of one."""

import asyncio
from dataclasses import dataclass, replace
from typing import Literal, get_args, get_origin

from pydantic import Field
from starlette.responses import Response

import quipu
from quipu.engine import Quipu
from quipu.model.query import Options, OptionValue, Query, options_in
from quipu.model.results import IndexStatus
from quipu.model.usage import UsageRow
from quipu.retrieve import STRATEGIES
from quipu.server.access import COOKIE, AccessKey, Permission
from quipu.server.operations import Call, WireBody, operation, operations_of
from quipu.server.questions import WORKSPACE
from quipu.server.wire import json_response


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """Whether the server answers, and nothing that a stranger could use."""

    status: str = "ok"


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """The version of Quipu that answers."""

    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceName:
    """A workspace: an index with documents of its own."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionOption:
    """An option of a question: its field (with a dot where it is in a group), and what it may be.

    `minimum` and `maximum` are null where there are none; `choices` is empty unless only these texts are allowed.
    `faithful` is the value of the method's paper or its authors' code, null where it is the default.
    """

    field: str
    description: str
    default: OptionValue
    minimum: float | None
    maximum: float | None
    choices: tuple[str, ...]
    faithful: OptionValue | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StrategyFacts:
    """A retrieval strategy: what it does, which method it follows, when to choose it, and its own options.

    `needs` are derivations without which it cannot run, `better_with` others that it reads once they are made.
    `n_model_calls` is the largest number of calls of a language model before the answer.
    """

    name: str
    summary: str
    after: str
    when: str
    needs: tuple[str, ...]
    better_with: tuple[str, ...]
    n_model_calls: int
    options: tuple[QuestionOption, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StrategyList:
    """The strategies, and the options that every question has."""

    strategies: tuple[StrategyFacts, ...]
    options: tuple[QuestionOption, ...]


class NewWorkspace(WireBody):
    """The name of a new workspace."""

    name: str = Field(description="1 to 64 lower-case letters, digits, - and _.", examples=["letters"])


@operation("GET", "/", None, media_type="text/plain")
async def greeting(call: Call) -> Response:
    """Return the web page to a browser, and a line of text to a program. No key is needed."""
    if "text/html" in call.request.headers.get("accept", ""):
        return call.server.page.index(call.request)
    text = "Quipu is running. Its API is described in api/v1/openapi.json\n"
    return Response(text, media_type="text/plain; charset=utf-8")


@operation("GET", "/health", None)
async def health() -> Health:
    """Return that the server answers. No key is needed."""
    return Health()


@operation("GET", "/ready", None)
async def ready(call: Call) -> Health:
    """Return that the workspaces can be read; fails while they cannot. No key is needed."""
    await asyncio.to_thread(call.server.workspaces.names)
    return Health()


@operation("GET", "/metrics", Permission.READ, media_type="text/plain")
async def metrics(call: Call) -> Response:
    """Return what this process counted, in the format of Prometheus: requests, stages, cost, and open workspaces."""
    engines = call.server.workspaces.open_engines()
    status_by_workspace = {name: await kb.status() for name, kb in engines if call.caller.opens(name)}
    text = call.server.metrics.text(status_by_workspace)
    return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")


@operation("GET", "/api/v1/version", Permission.READ)
async def version() -> Version:
    """Return the version of Quipu."""
    return Version(version=quipu.__version__)


@operation("GET", "/api/v1/workspaces", Permission.READ)
async def list_workspaces(call: Call) -> list[WorkspaceName]:
    """List the workspaces that the key opens."""
    return [WorkspaceName(name=name) for name in call.server.workspaces.names() if call.caller.opens(name)]


@operation("POST", "/api/v1/workspaces", Permission.ADMIN, status=201)
async def create_workspace(call: Call, body: NewWorkspace) -> WorkspaceName:
    """Create an empty workspace."""
    call.server.access.check(call.caller, Permission.ADMIN, body.name)
    await call.server.workspaces.create(body.name)
    return WorkspaceName(name=body.name)


@operation("DELETE", WORKSPACE, Permission.ADMIN)
async def delete_workspace(call: Call, workspace: str) -> WorkspaceName:
    """Delete a workspace with all its documents. This cannot be undone."""
    await call.server.workspaces.delete(workspace)
    return WorkspaceName(name=workspace)


class SessionKey(WireBody):
    """The key of a person who uses the page."""

    key: str = Field(max_length=200)


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """Who sends these requests: the name of the key and what it allows.

    `workspaces` are those it is limited to (none: no limit), `opens` those that it can use now.
    """

    name: str
    permission: Permission
    workspaces: tuple[str, ...]
    opens: tuple[str, ...]
    expires: str


@operation("POST", "/api/v1/session", None)
async def open_session(call: Call, body: SessionKey) -> Response:
    """Keep the key in a cookie that no script can read, so that a browser sends it. No key is needed to ask for it."""
    key = call.server.access.holder(body.key, call.request)
    response = json_response(_session(call, key))
    response.set_cookie(
        COOKIE,
        body.key,
        path=_cookie_path(call),
        httponly=True,
        samesite="strict",
        secure=call.request.url.scheme == "https",
    )
    return response


@operation("GET", "/api/v1/session", Permission.READ)
async def show_session(call: Call) -> Session:
    """Return whose key this is, and what it allows."""
    return _session(call, call.caller)


@operation("DELETE", "/api/v1/session", None, status=204)
async def close_session(call: Call) -> Response:
    """Forget the cookie with the key."""
    response = Response(status_code=204)
    response.delete_cookie(COOKIE, path=_cookie_path(call), httponly=True, samesite="strict")
    return response


def _cookie_path(call: Call) -> str:
    """Return the sub-path of this server: programs beside it at the same address get no key."""
    return f"{call.request.scope['root_path']}/"


def _session(call: Call, key: AccessKey) -> Session:
    opens = tuple(name for name in call.server.workspaces.names() if key.opens(name))
    return Session(
        name=key.name, permission=key.permission, workspaces=key.workspaces, opens=opens, expires=key.expires
    )


@operation("GET", f"{WORKSPACE}/status", Permission.READ)
async def status(kb: Quipu, workspace: str) -> IndexStatus:
    """Return the size of the index, its queue, and which derivations are fresh, stale or missing."""
    return replace(await kb.status(), path=workspace)  # nobody needs to know where it is on this machine


@operation("GET", f"{WORKSPACE}/usage", Permission.READ)
async def usage(kb: Quipu, call: Call, *, since: str = "", until: str = "", subjects: bool = True) -> list[UsageRow]:
    """Return the calls, tokens and cost of models, by day, stage and model.

    With an admin's key and `subjects` also by subject: a document, or the text of a question, which is nobody else's
    concern.
    """
    rows = await kb.usage(since, until)
    if subjects and call.caller.permission.includes(Permission.ADMIN):
        return rows
    row_by_key: dict[tuple[str, ...], UsageRow] = {}
    for row in (replace(row, subject="") for row in rows):
        row_by_key[row.key] = row_by_key[row.key] + row if row.key in row_by_key else row
    return list(row_by_key.values())


@operation("GET", "/api/v1/strategies", Permission.READ)
async def list_strategies() -> StrategyList:
    """List the retrieval strategies with their options, and the options that every question has."""
    strategies = tuple(
        StrategyFacts(
            name=strategy.name,
            summary=strategy.summary,
            after=strategy.after,
            when=strategy.when,
            needs=strategy.needs,
            better_with=strategy.better_with,
            n_model_calls=strategy.n_model_calls,
            options=tuple(option for kind in strategy.options for option in _options(kind)),
        )
        for strategy in STRATEGIES.values()
    )
    return StrategyList(strategies=strategies, options=_options(Query))


def _options(kind: type[Query] | type[Options]) -> tuple[QuestionOption, ...]:
    return tuple(
        QuestionOption(
            field=".".join(option.path),
            description=option.description,
            default=option.default,
            minimum=option.between[0] if option.between else None,
            maximum=option.between[1] if option.between else None,
            choices=get_args(option.annotation) if get_origin(option.annotation) is Literal else (),
            faithful=option.faithful,
        )
        for option in options_in(kind)
    )


OPERATIONS = operations_of(
    greeting,
    health,
    ready,
    metrics,
    version,
    open_session,
    show_session,
    close_session,
    list_workspaces,
    create_workspace,
    delete_workspace,
    status,
    usage,
    list_strategies,
)
