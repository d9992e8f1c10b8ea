"""Export of the graph, or a part of it, as a file or a folder of files.

To add a format, write a function that yields the file in pieces, and add it to FORMATS: the help, the documentation and
the server list what is there.
"""

import zipfile
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager

import numpy as np

from quipu.engine.graph_export.graph_files import write_gexf, write_graphml, write_html, write_json
from quipu.engine.graph_export.part import ExportFormat, FilePiece, GraphPart
from quipu.engine.graph_export.statements import write_cypher, write_turtle
from quipu.engine.graph_export.tables import PieceBuffer, write_csv, write_jsonl, write_parquet
from quipu.engine.graph_export.vault import write_vault
from quipu.engine.graph_map import GraphMaps, MappedGraph, MapQuery
from quipu.engine.graph_pages import RankedGraph
from quipu.errors import NotFound
from quipu.model.query import Filter
from quipu.ports.derivation_view import NodeKind
from quipu.ports.store import ReadView

_DATE = (1980, 1, 1, 0, 0, 0)  # of every file of an archive, so that equal exports are equal bytes

FORMATS: Mapping[str, ExportFormat] = {
    "html": ExportFormat(
        media_type="text/html",
        suffix=".html",
        purpose="one page to look at: a map and a list with quotes; it needs no server and loads nothing",
        write=write_html,
    ),
    "json": ExportFormat(
        media_type="application/json",
        suffix=".json",
        purpose="nodes and edges, as networkx and D3 read them",
        write=write_json,
    ),
    "graphml": ExportFormat(
        media_type="application/graphml+xml",
        suffix=".graphml",
        purpose="for Gephi, Cytoscape, yEd and networkx",
        write=write_graphml,
    ),
    "gexf": ExportFormat(
        media_type="application/gexf+xml",
        suffix=".gexf",
        purpose="for Gephi, with places on the map",
        write=write_gexf,
    ),
    "jsonl": ExportFormat(
        media_type="application/jsonl",
        suffix=".jsonl",
        purpose="a line for each entity, relation, document, chunk and mention",
        write=write_jsonl,
    ),
    "csv": ExportFormat(
        media_type="text/csv",
        suffix=".csv",
        purpose="a folder of tables: entities, relations, documents, chunks, mentions",
        write_files=write_csv,
    ),
    "parquet": ExportFormat(
        media_type="application/vnd.apache.parquet",
        suffix=".parquet",
        purpose="a folder of the same tables, typed (needs quipu-rag[parquet])",
        write_files=write_parquet,
    ),
    "cypher": ExportFormat(
        media_type="application/x-cypher-query",
        suffix=".cypher",
        purpose="a script for Neo4j: entities, relations, documents and what they mention",
        write=write_cypher,
    ),
    "turtle": ExportFormat(
        media_type="text/turtle",
        suffix=".ttl",
        purpose="RDF: the same as cypher",
        write=write_turtle,
    ),
    "obsidian": ExportFormat(
        media_type="text/markdown",
        suffix=".md",
        purpose="a folder of Markdown: a note for each entity and document, with links",
        write_files=write_vault,
    ),
}


def export_format(name: str) -> ExportFormat:
    """Return the format of that name. Raises NotFound, which lists all formats."""
    if name not in FORMATS:
        raise NotFound(f"There is no format {name!r}.", remedy=f"There are: {', '.join(FORMATS)}.")
    return FORMATS[name]


class GraphExports(GraphMaps):
    """The method of the engine that exports the graph."""

    async def export_graph(
        self,
        format_name: str = "json",
        *,
        types: Sequence[str] = (),
        communities: Sequence[str] = (),
        filter: Filter | None = None,
    ) -> AsyncGenerator[bytes, None]:
        """Yield the graph as a file in pieces: entities and the relations between them, in some formats documents, too.

        `format_name` is one of FORMATS; a format that is a folder comes as a ZIP archive. With `types` or `communities`
        (ids), only these entities. With `filter`, only what it allows, as of its date. An HTML page has at most
        10,000 entities, those with the most relations. Raises NotFound for an unknown format or community, Unavailable
        where the library of a format is missing.
        """
        written = export_format(format_name)
        query = MapQuery(types=types, communities=communities)
        async with (
            self._part(query, filter or Filter()) as part,
            aclosing(_contents(written, part)) as contents,
        ):
            async for content in contents:
                yield content

    @asynccontextmanager
    async def _part(self, query: MapQuery, allowed: Filter) -> AsyncIterator[GraphPart]:
        """Open a view of the documents that the filter allows, with the entities that the query allows."""
        async with self._graph() as (view, ranked):
            graph = await self._map(view, ranked)
            if allowed.is_empty():
                yield _part_of(view, graph, ranked, graph.keys, query)
                return
        async with self._components.view_at(allowed) as (then, view):
            ranked = RankedGraph(await then.topology.open(view), await view.entity_types())
            numbers = ranked.types.numbers.tolist()
            key_by_number = await view.ids(NodeKind.ENTITY, numbers)
            yield _part_of(view, graph, ranked, [key_by_number[number] for number in numbers], query)


def _part_of(
    view: ReadView, graph: MappedGraph, ranked: RankedGraph, keys: Sequence[str], query: MapQuery
) -> GraphPart:
    """Return the part of a view; `keys` are those of its entities, `graph` is the map of the whole index."""
    place_by_key = {key: place for place, key in enumerate(graph.keys)}
    map_places = np.array([place_by_key.get(key, -1) for key in keys], dtype=np.int64)
    allowed = ranked.has_type(np.arange(len(keys)), query.types)
    if query.communities:
        allowed &= np.append(graph.allowed(MapQuery(communities=query.communities)), False)[map_places]
    sources, targets, _ = ranked.relations
    is_inside = allowed[sources] & allowed[targets]
    return GraphPart(
        view=view,
        graph=graph,
        keys=keys,
        map_places=map_places,
        entities=ranked.entities[allowed[ranked.entities]],
        relations=(sources[is_inside], targets[is_inside]),
        is_limited=bool(query.types or query.communities),
    )


async def _contents(written: ExportFormat, part: GraphPart) -> AsyncGenerator[bytes, None]:
    """Yield the bytes of a file, or of an archive of several."""
    if written.write_files is not None:
        async for content in _archived(written.write_files(part)):
            yield content
    if written.write is not None:
        async for piece in written.write(part):
            yield piece.encode("utf-8", "replace")


async def _archived(pieces: AsyncIterator[FilePiece]) -> AsyncIterator[bytes]:
    """Yield a ZIP archive of files that come in pieces."""
    target = PieceBuffer()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        current, file = "", None
        async for piece in pieces:
            if file is None or piece.file != current:
                if file is not None:
                    file.close()
                current, entry = piece.file, zipfile.ZipInfo(piece.file, _DATE)
                entry.compress_type = zipfile.ZIP_DEFLATED
                file = archive.open(entry, "w", force_zip64=True)
            file.write(piece.text if isinstance(piece.text, bytes) else piece.text.encode("utf-8", "replace"))
            yield target.take()
        if file is not None:
            file.close()
    yield target.take()
