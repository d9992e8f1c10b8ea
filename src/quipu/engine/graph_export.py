"""Export of the graph, or a part of it, as a file: GraphML or JSON for programs, one page of HTML for people.

To add a format, write a function that yields the file in pieces, and add it to FORMATS.
"""

import json
import re
from base64 import b64encode
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from importlib.resources import files
from xml.sax.saxutils import escape, quoteattr

import numpy as np

from quipu.engine.graph_map import GraphMaps, MappedGraph, MapQuery
from quipu.errors import NotFound
from quipu.model.graph import Chunk, Entity, Relation
from quipu.model.ids import relation_id
from quipu.ports.derivation_view import Ints
from quipu.ports.store import OccurrenceKind, ReadView

MAX_PAGE_ENTITIES, MAX_PAGE_RELATIONS = 10_000, 30_000  # of an HTML page, which a browser reads whole
_ROWS_PER_READ = 1_000
_N_QUOTES, _QUOTE_CHARS = 3, 300
_NO_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_SENTENCE_END = re.compile(r"[.!?。！？]\s|[。！？]|\n\s*\n")
_NODE_KEYS: Mapping[str, str] = {
    "label": "string",
    "type": "string",
    "description": "string",
    "aliases": "string",
    "mentions": "int",
    "community": "string",
    "x": "float",
    "y": "float",
}
_EDGE_KEYS: Mapping[str, str] = {"weight": "double", "description": "string", "keywords": "string", "mentions": "int"}

Row = Mapping[str, object]  # what a format writes of one entity or relation


@dataclass(frozen=True)
class GraphPart:
    """The part of a graph that is exported: `entities` [n] are places, those with the most relations first.

    `relations` are the places of the ends of the relations between them, [m] each, the heaviest first.
    """

    view: ReadView
    graph: MappedGraph
    entities: Ints
    relations: tuple[Ints, Ints]

    @cached_property
    def community_by_entity(self) -> Sequence[str]:
        """The id of the coarsest community of each entity of the graph, "" for none."""
        coarsest = self.graph.ancestors[self.graph.tree.finest, 0]
        return [self.graph.ids[place] if place >= 0 else "" for place in coarsest.tolist()]

    def strongest(self, max_entities: int, max_relations: int) -> "GraphPart":
        """Return the part with the most relations, within these limits."""
        sources, targets = self.relations
        entities = self.entities[:max_entities]
        is_inside = np.isin(sources, entities) & np.isin(targets, entities)
        relations = (sources[is_inside][:max_relations], targets[is_inside][:max_relations])
        return GraphPart(self.view, self.graph, entities, relations)

    async def read_entities(self) -> AsyncGenerator[list[tuple[Row, Entity]], None]:
        """Yield blocks of entities with the values that every format writes."""
        for start in range(0, len(self.entities), _ROWS_PER_READ):
            places = self.entities[start : start + _ROWS_PER_READ].tolist()
            entities = await self.view.entities([self.graph.keys[place] for place in places])
            yield [(self._entity_row(*pair), pair[1]) for pair in zip(places, entities, strict=True)]

    async def read_relations(self) -> AsyncGenerator[list[tuple[Row, Relation]], None]:
        """Yield blocks of relations with the values that every format writes."""
        keys = self.graph.keys
        for start in range(0, len(self.relations[0]), _ROWS_PER_READ):
            pairs = zip(*(ends[start : start + _ROWS_PER_READ].tolist() for ends in self.relations), strict=True)
            relations = await self.view.relations([relation_id(keys[a], keys[b]) for a, b in pairs])
            yield [(_relation_row(relation), relation) for relation in relations]

    def _entity_row(self, place: int, entity: Entity) -> Row:
        x, y = self.graph.layout.nodes[place].tolist()
        return {
            "id": entity.key,
            "label": entity.name,
            "type": entity.type,
            "description": entity.description,
            "aliases": list(entity.aliases),
            "mentions": entity.n_mentions,
            "community": self.community_by_entity[place],
            "x": round(x, 2),
            "y": round(y, 2),
        }


def _relation_row(relation: Relation) -> Row:
    return {
        "source": relation.source,
        "target": relation.target,
        "weight": relation.weight,
        "description": relation.description,
        "keywords": list(relation.keywords),
        "mentions": relation.n_mentions,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportFormat:
    """A format of a file: its media type, the suffix of its names, and what writes it piece by piece."""

    media_type: str
    suffix: str
    write: Callable[[GraphPart], AsyncIterator[str]]


async def write_graphml(part: GraphPart) -> AsyncIterator[str]:
    """Yield GraphML, which Gephi, Cytoscape, yEd and networkx read. Lists are texts with semicolons."""
    yield '<?xml version="1.0" encoding="UTF-8"?>\n<graphml xmlns="http://graphml.graphdrawing.org/xmlns">\n'
    for kind, keys in (("node", _NODE_KEYS), ("edge", _EDGE_KEYS)):
        for name, type_name in keys.items():
            yield f'<key id="{kind}_{name}" for="{kind}" attr.name="{name}" attr.type="{type_name}"/>\n'
    yield '<graph edgedefault="undirected">\n'
    async with aclosing(part.read_entities()) as blocks:
        async for entities in blocks:
            yield "".join(
                f"<node id={_attribute(row['id'])}>{_elements('node', _NODE_KEYS, row)}</node>\n" for row, _ in entities
            )
    async with aclosing(part.read_relations()) as relation_blocks:
        async for relations in relation_blocks:
            yield "".join(
                f"<edge source={_attribute(row['source'])} target={_attribute(row['target'])}>"
                f"{_elements('edge', _EDGE_KEYS, row)}</edge>\n"
                for row, _ in relations
            )
    yield "</graph>\n</graphml>\n"


def _elements(kind: str, keys: Mapping[str, str], row: Row) -> str:
    values = {name: row[name] for name in keys}
    texts = {name: "; ".join(value) if isinstance(value, list) else str(value) for name, value in values.items()}
    return "".join(
        f'<data key="{kind}_{name}">{escape(_NO_XML.sub("", text))}</data>' for name, text in texts.items() if text
    )


def _attribute(text: object) -> str:
    return quoteattr(_NO_XML.sub("", str(text)))


async def write_json(part: GraphPart) -> AsyncIterator[str]:
    """Yield JSON in the node-link form of networkx and D3: `nodes`, and `edges` between their ids."""
    yield f'{{"directed": false, "multigraph": false, "graph": {{"revision": {part.view.revision}}},\n"nodes": ['
    separator = "\n"
    async with aclosing(part.read_entities()) as blocks:
        async for entities in blocks:
            yield separator + ",\n".join(_json(row) for row, _ in entities)
            separator = ",\n"
    yield '],\n"edges": ['
    separator = "\n"
    async with aclosing(part.read_relations()) as relation_blocks:
        async for relations in relation_blocks:
            yield separator + ",\n".join(_json(row) for row, _ in relations)
            separator = ",\n"
    yield "]}\n"


async def write_html(part: GraphPart) -> AsyncIterator[str]:
    """Yield a page that shows the strongest part of the graph without a server, and loads nothing from anywhere.

    Texts of documents are in a block of JSON, never in markup. The policy of the page lets only its own script run.
    """
    page = part.strongest(MAX_PAGE_ENTITIES, MAX_PAGE_RELATIONS)
    head, style, script = (
        (files("quipu.engine") / "graph_page.html").read_text(encoding="utf-8").split("<!-- part -->\n")
    )
    policy = f"default-src 'none'; base-uri 'none'; form-action 'none'; style-src {_source(style)}"
    policy += f"; script-src {_source(script)}"
    yield (
        head.replace("{policy}", policy)
        + f"<style>{style}</style>\n"
        + '<script type="application/json" id="graph">{"nodes":['
    )
    separator = ""
    async with aclosing(page.read_entities()) as blocks:
        async for entities in blocks:
            quotes = await _quotes(page.view, [entity for _, entity in entities])
            yield separator + ",\n".join(_safe({**row, "quotes": quotes[entity.key]}) for row, entity in entities)
            separator = ",\n"
    yield '],"edges":['
    separator = ""
    async with aclosing(page.read_relations()) as relation_blocks:
        async for relations in relation_blocks:
            yield separator + ",\n".join(_safe(row) for row, _ in relations)
            separator = ",\n"
    totals = {"n_entities": len(part.entities), "n_relations": len(part.relations[0])}
    yield f'],"communities":{_safe(await _communities(page))},"totals":{_safe(totals)}}}</script>\n'
    yield f"<script>{script}</script>\n</html>\n"


def _source(content: str) -> str:
    return f"'sha256-{b64encode(sha256(content.encode()).digest()).decode()}'"


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _safe(value: object) -> str:
    """Return JSON that cannot end the script element it is in."""
    return _json(value).replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


async def _communities(part: GraphPart) -> list[Row]:
    """Return the coarsest communities of the part, with the titles of their reports."""
    used = {part.community_by_entity[place] for place in part.entities.tolist()} - {""}
    layout, place_by_id = part.graph.layout, part.graph.place_by_id
    titles = {report.cluster: report.title for report in await part.view.cluster_reports(sorted(used))}
    return [
        {
            "id": identifier,
            "label": titles.get(identifier, ""),
            "x": round(float(layout.communities[place_by_id[identifier], 0]), 2),
            "y": round(float(layout.communities[place_by_id[identifier], 1]), 2),
            "radius": round(float(layout.radii[place_by_id[identifier]]), 2),
        }
        for identifier in sorted(used)
    ]


async def _quotes(view: ReadView, entities: Sequence[Entity]) -> dict[str, list[Row]]:
    """Return for each entity the sentences of a few chunks that mention it, with their documents."""
    counts = await view.occurrences(OccurrenceKind.MENTION, [entity.key for entity in entities], _N_QUOTES)
    ids = list(dict.fromkeys(chunk for chunk_ids in counts.values() for chunk in chunk_ids))
    chunk_by_id = {chunk.id: chunk for chunk in await view.chunks(ids)}
    return {
        entity.key: [_quote(entity, chunk_by_id[chunk]) for chunk in counts.get(entity.key, ()) if chunk in chunk_by_id]
        for entity in entities
    }


def _quote(entity: Entity, chunk: Chunk) -> Row:
    """Return the sentence in which a chunk first names an entity, else its beginning."""
    text = chunk.text
    names = "|".join(re.escape(name) for name in (entity.name, *entity.aliases) if name)
    match = re.search(names, text, re.IGNORECASE) if names else None
    place = match.start() if match else 0
    ends = [mark.end() for mark in _SENTENCE_END.finditer(text)]
    start = max((end for end in ends if end <= place), default=0)
    end = min((end for end in ends if end > place), default=len(text))
    start = max(start, place - _QUOTE_CHARS // 2)
    end = min(end, start + _QUOTE_CHARS)
    return {"text": " ".join(text[start:end].split()), "document": chunk.document_id, "title": chunk.title}


FORMATS: Mapping[str, ExportFormat] = {
    "html": ExportFormat(media_type="text/html", suffix=".html", write=write_html),
    "graphml": ExportFormat(media_type="application/graphml+xml", suffix=".graphml", write=write_graphml),
    "json": ExportFormat(media_type="application/json", suffix=".json", write=write_json),
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
    ) -> AsyncGenerator[str, None]:
        """Yield the graph as a file in pieces: its entities, and the relations between them.

        `format_name` is one of FORMATS. With `types` or `communities` (ids), only these entities. An HTML page has at
        most 10,000 entities, those with the most relations. Raises NotFound for an unknown format or community.
        """
        write = export_format(format_name).write
        async with self._graph() as (view, ranked):
            graph = await self._map(view, ranked)
            allowed = graph.allowed(MapQuery(types=types, communities=communities))
            sources, targets, _ = ranked.relations
            is_inside = allowed[sources] & allowed[targets]
            entities = ranked.entities[allowed[ranked.entities]]
            async for piece in write(GraphPart(view, graph, entities, (sources[is_inside], targets[is_inside]))):
                yield piece
