"""Administration: the health of the server, its workspaces, and the strategies, settings and usage of one."""

from dataclasses import dataclass

from pydantic import Field

import quipu
from quipu.engine import Quipu
from quipu.model.results import IndexStatus
from quipu.model.usage import UsageRow
from quipu.retrieve import STRATEGIES
from quipu.server.operations import Call, Permission, WireBody, operation, operations_of
from quipu.server.questions import WORKSPACE


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
class StrategyFacts:
    """A retrieval strategy: its name, what it does, and the derivations it needs."""

    name: str
    summary: str
    needs: tuple[str, ...]


class NewWorkspace(WireBody):
    """The name of a new workspace."""

    name: str = Field(description="1 to 64 lower-case letters, digits, - and _.", examples=["letters"])


@operation("GET", "/health", None)
async def health() -> Health:
    """Return that the server answers. No key is needed."""
    return Health()


@operation("GET", "/api/v1/version", Permission.READ)
async def version() -> Version:
    """Return the version of Quipu."""
    return Version(version=quipu.__version__)


@operation("GET", "/api/v1/workspaces", Permission.READ)
async def list_workspaces(call: Call) -> list[WorkspaceName]:
    """List the workspaces."""
    return [WorkspaceName(name=name) for name in call.server.workspaces.names()]


@operation("POST", "/api/v1/workspaces", Permission.ADMIN, status=201)
async def create_workspace(call: Call, body: NewWorkspace) -> WorkspaceName:
    """Create an empty workspace."""
    await call.server.workspaces.create(body.name)
    return WorkspaceName(name=body.name)


@operation("DELETE", WORKSPACE, Permission.ADMIN)
async def delete_workspace(call: Call, workspace: str) -> WorkspaceName:
    """Delete a workspace with all its documents. This cannot be undone."""
    await call.server.workspaces.delete(workspace)
    return WorkspaceName(name=workspace)


@operation("GET", f"{WORKSPACE}/status", Permission.READ)
async def status(kb: Quipu) -> IndexStatus:
    """Return the size of the index, its queue, and which derivations are fresh, stale or missing."""
    return await kb.status()


@operation("GET", f"{WORKSPACE}/usage", Permission.READ)
async def usage(kb: Quipu, *, since: str = "", until: str = "") -> list[UsageRow]:
    """Return the calls, tokens and cost of models, by month, stage and model."""
    return await kb.usage(since, until)


@operation("GET", "/api/v1/strategies", Permission.READ)
async def list_strategies() -> list[StrategyFacts]:
    """List the retrieval strategies."""
    return [
        StrategyFacts(name=strategy.name, summary=strategy.summary, needs=tuple(strategy.needs))
        for strategy in STRATEGIES.values()
    ]


OPERATIONS = operations_of(
    health, version, list_workspaces, create_workspace, delete_workspace, status, usage, list_strategies
)
