"""Graph: entities, relations, their neighbours and paths, reports, and the map of a workspace. All are bounded."""

import asyncio
import gzip
import struct
from hashlib import blake2b
from typing import Annotated, Any

import numpy as np
from pydantic import Field, TypeAdapter
from starlette.requests import Request
from starlette.responses import Response

from quipu.engine import Quipu
from quipu.engine.graph_export import FORMATS, export_format
from quipu.engine.graph_map import MAX_ON_MAP, Box, GraphMap, MapLevel, MapQuery
from quipu.errors import InvalidInput
from quipu.ingest.graph_import import CustomGraph
from quipu.model.query import Filter
from quipu.model.results import (
    MAX_EDGES,
    MAX_HOPS,
    MAX_NODES,
    MAX_PAGE,
    MAX_PATHS,
    EntityDetails,
    EntityPage,
    EntityPath,
    ImportResult,
    NeighbourPage,
    RelationDetails,
    RelationPage,
    ReportDetails,
    Subgraph,
)
from quipu.server.access import Permission
from quipu.server.operations import Call, QueryParameters, operation, operations_of
from quipu.server.questions import WORKSPACE, AsOf
from quipu.server.wire import download, json_bytes

_PageSize = Annotated[int, Field(ge=1, le=MAX_PAGE)]
_Types = tuple[str, ...] | str  # a parameter that may be given more than once
_Nodes = Annotated[int, Field(ge=1, le=MAX_NODES)]
_MAP = f"{WORKSPACE}/graph/map"
_BINARY = "application/octet-stream"
_MAGIC, _VERSION = b"QMAP", 1  # of the binary layout, see docs/graph_map.md
_ALIGNMENT = 4  # bytes, which all arrays have
_FORMATS = "; ".join(f"`{name}`: {written.purpose}" for name, written in FORMATS.items())
_FILTER = "The filter of a question, as a JSON object; an empty text allows every document."
_FILTER_TYPE = TypeAdapter(Filter)
_ZIP_SUFFIX, _ZIP_TYPE = ".zip", "application/zip"
_TYPE_NAMES = {"f": "float32", "u": "uint32", "i": "int32"}


@operation("GET", f"{WORKSPACE}/entities", Permission.READ)
async def list_entities(
    kb: Quipu,
    *,
    prefix: str = "",
    type: _Types = (),
    k: _PageSize = 50,
    cursor: str = "",
    as_of: AsOf = "",
) -> EntityPage:
    """List entities page by page, those with the most relations first; with `prefix`, those whose names begin so."""
    return await kb.entities(prefix=prefix, types=_listed(type), k=k, after=cursor, as_of=as_of)


@operation("GET", f"{WORKSPACE}/entities/{{name:path}}", Permission.READ)
async def show_entity(kb: Quipu, name: str, *, as_of: AsOf = "") -> EntityDetails:
    """Return an entity with its relations and the chunks that mention it."""
    return await kb.entity(name, as_of=as_of)


@operation("GET", f"{WORKSPACE}/neighbours/{{name:path}}", Permission.READ)
async def list_neighbours(
    kb: Quipu,
    name: str,
    *,
    type: _Types = (),
    k: _PageSize = 50,
    cursor: str = "",
    as_of: AsOf = "",
) -> NeighbourPage:
    """List the neighbours of an entity page by page, those with the heaviest relation first."""
    return await kb.neighbours(name, types=_listed(type), k=k, after=cursor, as_of=as_of)


@operation("GET", f"{WORKSPACE}/relations", Permission.READ)
async def list_relations(
    kb: Quipu,
    *,
    type: _Types = (),
    k: _PageSize = 50,
    cursor: str = "",
    as_of: AsOf = "",
) -> RelationPage:
    """List relations page by page, the heaviest first."""
    return await kb.relations(types=_listed(type), k=k, after=cursor, as_of=as_of)


@operation("GET", f"{WORKSPACE}/relation", Permission.READ)
async def show_relation(kb: Quipu, *, first: str, second: str, as_of: AsOf = "") -> RelationDetails:
    """Return the relation of two entities."""
    return await kb.relation(first, second, as_of=as_of)


@operation("GET", f"{WORKSPACE}/subgraph", Permission.READ)
async def show_subgraph(
    kb: Quipu,
    *,
    name: _Types,
    hops: Annotated[int, Field(ge=1, le=MAX_HOPS)] = 2,
    max_entities: Annotated[int, Field(ge=1, le=MAX_NODES)] = 200,
    max_relations: Annotated[int, Field(ge=1, le=MAX_EDGES)] = 1_000,
    as_of: AsOf = "",
) -> Subgraph:
    """Return the entities near some entities, and the relations between them; it says how many were left out."""
    return await kb.subgraph(
        _listed(name), hops=hops, max_entities=max_entities, max_relations=max_relations, as_of=as_of
    )


@operation("GET", f"{WORKSPACE}/paths", Permission.READ)
async def show_paths(
    kb: Quipu, *, first: str, second: str, k: Annotated[int, Field(ge=1, le=MAX_PATHS)] = 3, as_of: AsOf = ""
) -> tuple[EntityPath, ...]:
    """Return the shortest paths between two entities."""
    return await kb.paths(first, second, k=k, as_of=as_of)


@operation("GET", f"{WORKSPACE}/reports/{{report}}", Permission.READ)
async def show_report(kb: Quipu, report: str) -> ReportDetails:
    """Return a report on a community or aggregate."""
    return await kb.report(report)


class MapParameters(QueryParameters):
    """Which entities a map is made of: with these types, in these communities, at a date."""

    type: _Types = ()
    community: _Types = ()
    as_of: AsOf = ""

    def query(self, level: MapLevel, **others: Any) -> MapQuery:
        """Return the query for a map; `others` are further fields of it."""
        types, communities = _listed(self.type), _listed(self.community)
        return MapQuery(level=level, types=types, communities=communities, as_of=self.as_of, **others)


@operation("GET", f"{_MAP}/far", Permission.READ, media_type=_BINARY)
async def show_far_map(
    kb: Quipu, call: Call, *, box: str = "", allowed: MapParameters, max_nodes: _Nodes = MAX_NODES
) -> Response:
    """Return a map of the communities, those that contain others first, then the largest; see docs/graph_map.md.

    `box` is the part in view, as x0,y0,x1,y1.
    """
    query = allowed.query(MapLevel.FAR, box=_box(box), max_nodes=max_nodes)
    return await _map_response(await kb.graph_map(query), call.request)


@operation("GET", f"{_MAP}/middle", Permission.READ, media_type=_BINARY)
async def show_middle_map(
    kb: Quipu,
    call: Call,
    *,
    box: str = "",
    allowed: MapParameters,
    max_nodes: Annotated[int, Field(ge=1, le=MAX_ON_MAP[MapLevel.MIDDLE][0])] = MAX_ON_MAP[MapLevel.MIDDLE][0],
) -> Response:
    """Return a map of the entities in view with the most relations, and the heaviest relations between them."""
    query = allowed.query(MapLevel.MIDDLE, box=_box(box), max_nodes=max_nodes)
    return await _map_response(await kb.graph_map(query), call.request)


@operation("GET", f"{_MAP}/near", Permission.READ, media_type=_BINARY)
async def show_near_map(
    kb: Quipu, call: Call, *, name: _Types, allowed: MapParameters, max_nodes: _Nodes = 200
) -> Response:
    """Return a map of some entities and their neighbours, those with the heaviest relations first.

    With `max_nodes` as many as there are names, the map has only these, for example to show a path.
    """
    query = allowed.query(MapLevel.NEAR, names=_listed(name), max_nodes=max_nodes)
    return await _map_response(await kb.graph_map(query), call.request)


class GraphToImport(CustomGraph):
    """Chunks, entities and relations to add, in the shape of LightRAG's custom_kg. Unknown fields are ignored."""

    name: str = Field("graph", description="Begins the ids of the documents that are made of what has no chunk.")
    dry_run: bool = Field(False, description="Only say what would be added.")


@operation("POST", f"{WORKSPACE}/graph", Permission.WRITE, is_idempotent=True)
async def import_graph(kb: Quipu, body: GraphToImport) -> ImportResult:
    """Add a graph that is given as data. No model reads it; what has no chunk gets a document of its own words.

    The same graph again changes nothing. `omissions` say what was left out, and why.
    """
    graph = body.model_dump(exclude={"name", "dry_run"})
    return await kb.import_graph(graph, name=body.name, dry_run=body.dry_run)


@operation("GET", f"{WORKSPACE}/graph/export", Permission.READ)
async def export_graph(
    kb: Quipu,
    *,
    format: Annotated[str, Field(description=_FORMATS)] = "json",
    type: _Types = (),
    community: _Types = (),
    filter: Annotated[str, Field(description=_FILTER)] = "",
) -> Response:
    """Return the graph as a file to save; a format that is a folder of files comes as a ZIP archive.

    With `type` or `community`, only the entities that have one of them, and the relations between these. With `filter`,
    only what the documents that it allows state.
    """
    written = export_format(format)
    pieces = kb.export_graph(
        format,
        types=_listed(type),
        communities=_listed(community),
        filter=_FILTER_TYPE.validate_json(filter) if filter else None,
    )
    suffix, media_type = (_ZIP_SUFFIX, _ZIP_TYPE) if written.is_folder else (written.suffix, written.media_type)
    return await download(pieces, media_type, f'attachment; filename="graph{suffix}"')


def _box(text: str) -> Box | None:
    if not text:
        return None
    try:
        x0, y0, x1, y1 = map(float, text.split(","))
    except ValueError:
        raise InvalidInput(f"{text!r} is not a box.", remedy="Give four numbers: x0,y0,x1,y1.") from None
    return (x0, y0, x1, y1)


async def _map_response(drawn: GraphMap, request: Request) -> Response:
    """Return a map in the form that the client accepts; nothing where the client has it already."""
    is_json = "application/json" in request.headers.get("accept", "")
    content = await asyncio.to_thread(_map_json if is_json else map_bytes, drawn)
    headers = {
        "etag": f'W/"{blake2b(content, digest_size=16).hexdigest()}"',
        "cache-control": "private, no-cache",
        "vary": "accept, accept-encoding",
    }
    if headers["etag"] in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    if "gzip" in request.headers.get("accept-encoding", ""):
        content = await asyncio.to_thread(gzip.compress, content, 1, mtime=0)
        headers["content-encoding"] = "gzip"
    return Response(content, 200, headers, "application/json" if is_json else _BINARY)


def _map_json(drawn: GraphMap) -> bytes:
    columns = {
        group: {name: column.tolist() for name, column in arrays.items()}
        for group, arrays in (("nodes", drawn.nodes), ("edges", drawn.edges))
    }
    return json_bytes(_map_header(drawn) | columns | {"ids": drawn.ids, "labels": drawn.labels})


def map_bytes(drawn: GraphMap) -> bytes:
    """Return a map in the binary layout of docs/graph_map.md."""
    columns: list[bytes] = []
    arrays: list[dict[str, Any]] = []
    for group, named in (("nodes", drawn.nodes), ("edges", drawn.edges)):
        for name, column in named.items():
            kind, offset = _TYPE_NAMES[column.dtype.kind], sum(map(len, columns))
            arrays.append({"of": group, "name": name, "type": kind, "offset": offset, "length": len(column)})
            columns.append(np.ascontiguousarray(column, dtype=column.dtype.newbyteorder("<")).tobytes())
    header = json_bytes(_map_header(drawn) | {"arrays": arrays})
    header += b" " * (-len(header) % _ALIGNMENT)
    text = json_bytes({"ids": drawn.ids, "labels": drawn.labels})
    return b"".join([struct.pack("<4sIII", _MAGIC, _VERSION, len(header), len(text)), header, *columns, text])


def _map_header(drawn: GraphMap) -> dict[str, Any]:
    names = ("level", "revision", "bounds", "n_entities", "n_relations", "types", "communities")
    return {name: getattr(drawn, name) for name in (*names, "n_more_nodes", "n_more_edges")}


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
    show_far_map,
    show_middle_map,
    show_near_map,
    import_graph,
    export_graph,
)
