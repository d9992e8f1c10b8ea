"""Graph: entities, relations, their neighbours and paths, and reports of a workspace. Every list is bounded."""

from typing import Annotated

from pydantic import Field

from quipu.engine import Quipu
from quipu.model.results import (
    MAX_EDGES,
    MAX_HOPS,
    MAX_NODES,
    MAX_PAGE,
    MAX_PATHS,
    EntityDetails,
    EntityPage,
    EntityPath,
    NeighbourPage,
    RelationDetails,
    RelationPage,
    ReportDetails,
    Subgraph,
)
from quipu.server.access import Permission
from quipu.server.operations import operation, operations_of
from quipu.server.questions import WORKSPACE

_PageSize = Annotated[int, Field(ge=1, le=MAX_PAGE)]
_Types = tuple[str, ...] | str  # a parameter that may be given more than once


@operation("GET", f"{WORKSPACE}/entities", Permission.READ)
async def list_entities(
    kb: Quipu,
    *,
    prefix: str = "",
    type: _Types = (),  # noqa: A002
    k: _PageSize = 50,
    cursor: str = "",
) -> EntityPage:
    """List entities page by page, those with the most relations first; with `prefix`, those whose names begin so."""
    return await kb.entities(prefix=prefix, types=_listed(type), k=k, after=cursor)


@operation("GET", f"{WORKSPACE}/entities/{{name:path}}", Permission.READ)
async def show_entity(kb: Quipu, name: str) -> EntityDetails:
    """Return an entity with its relations and the chunks that mention it."""
    return await kb.entity(name)


@operation("GET", f"{WORKSPACE}/neighbours/{{name:path}}", Permission.READ)
async def list_neighbours(
    kb: Quipu,
    name: str,
    *,
    type: _Types = (),  # noqa: A002
    k: _PageSize = 50,
    cursor: str = "",
) -> NeighbourPage:
    """List the neighbours of an entity page by page, those with the heaviest relation first."""
    return await kb.neighbours(name, types=_listed(type), k=k, after=cursor)


@operation("GET", f"{WORKSPACE}/relations", Permission.READ)
async def list_relations(kb: Quipu, *, type: _Types = (), k: _PageSize = 50, cursor: str = "") -> RelationPage:  # noqa: A002
    """List relations page by page, the heaviest first."""
    return await kb.relations(types=_listed(type), k=k, after=cursor)


@operation("GET", f"{WORKSPACE}/relation", Permission.READ)
async def show_relation(kb: Quipu, *, first: str, second: str) -> RelationDetails:
    """Return the relation of two entities."""
    return await kb.relation(first, second)


@operation("GET", f"{WORKSPACE}/subgraph", Permission.READ)
async def show_subgraph(
    kb: Quipu,
    *,
    name: _Types,
    hops: Annotated[int, Field(ge=1, le=MAX_HOPS)] = 2,
    max_entities: Annotated[int, Field(ge=1, le=MAX_NODES)] = 200,
    max_relations: Annotated[int, Field(ge=1, le=MAX_EDGES)] = 1_000,
) -> Subgraph:
    """Return the entities near some entities, and the relations between them; it says how many were left out."""
    return await kb.subgraph(_listed(name), hops=hops, max_entities=max_entities, max_relations=max_relations)


@operation("GET", f"{WORKSPACE}/paths", Permission.READ)
async def show_paths(
    kb: Quipu, *, first: str, second: str, k: Annotated[int, Field(ge=1, le=MAX_PATHS)] = 3
) -> tuple[EntityPath, ...]:
    """Return the shortest paths between two entities."""
    return await kb.paths(first, second, k=k)


@operation("GET", f"{WORKSPACE}/reports/{{report}}", Permission.READ)
async def show_report(kb: Quipu, report: str) -> ReportDetails:
    """Return a report on a community or aggregate."""
    return await kb.report(report)


def _listed(names: _Types) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else names


OPERATIONS = operations_of(
    list_entities,
    show_entity,
    list_neighbours,
    list_relations,
    show_relation,
    show_subgraph,
    show_paths,
    show_report,
)
