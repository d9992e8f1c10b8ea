"""Files of a graph: GraphML, GEXF and node-link JSON for graph programs, and one page of HTML for people."""

import json
import re
from base64 import b64encode
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from hashlib import sha256
from importlib.resources import files
from xml.sax.saxutils import escape, quoteattr

from quipu.engine.graph_export.part import GraphPart, Row
from quipu.model.graph import Chunk, Entity
from quipu.ports.store import OccurrenceKind, ReadView

_NO_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
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
# GEXF has attributes of its own for the label, the place and the weight.
_GEXF_KEYS: Mapping[str, Mapping[str, str]] = {
    "node": {name: kind for name, kind in _NODE_KEYS.items() if name not in ("label", "x", "y")},
    "edge": {name: kind for name, kind in _EDGE_KEYS.items() if name != "weight"},
}
_GEXF_TYPES = {"int": "integer"}

MAX_PAGE_ENTITIES, MAX_PAGE_RELATIONS = 10_000, 30_000  # a browser reads the page whole
_N_QUOTES, _QUOTE_CHARS = 3, 300
_SENTENCE_END = re.compile(r"[.!?。！？]\s|[。！？]|\n\s*\n")


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
    texts = {name: _text(row[name]) for name in keys}
    return "".join(f'<data key="{kind}_{name}">{escape(text)}</data>' for name, text in texts.items() if text)


def _text(value: object) -> str:
    """Return a value as a text that XML allows; the elements of a list have semicolons between them."""
    return _NO_XML.sub("", "; ".join(value) if isinstance(value, list) else str(value))


def _attribute(value: object) -> str:
    return quoteattr(_text(value))


async def write_gexf(part: GraphPart) -> AsyncIterator[str]:
    """Yield GEXF 1.2, the format of Gephi, with places on the map. Lists are texts with semicolons."""
    yield '<?xml version="1.0" encoding="UTF-8"?>\n<gexf xmlns="http://www.gexf.net/1.2draft"'
    yield ' xmlns:viz="http://www.gexf.net/1.2draft/viz" version="1.2">\n'
    yield '<graph defaultedgetype="undirected" mode="static">\n'
    for kind, keys in _GEXF_KEYS.items():
        yield f'<attributes class="{kind}">\n'
        for name, type_name in keys.items():
            yield f'<attribute id="{name}" title="{name}" type="{_GEXF_TYPES.get(type_name, type_name)}"/>\n'
        yield "</attributes>\n"
    yield "<nodes>\n"
    async with aclosing(part.read_entities()) as blocks:
        async for entities in blocks:
            yield "".join(
                f"<node id={_attribute(row['id'])} label={_attribute(row['label'])}>{_attribute_values('node', row)}"
                f'<viz:position x="{row["x"]}" y="{row["y"]}" z="0.0"/></node>\n'
                for row, _ in entities
            )
    yield "</nodes>\n<edges>\n"
    number = 0
    async with aclosing(part.read_relations()) as relation_blocks:
        async for relations in relation_blocks:
            yield "".join(
                f'<edge id="{number + n}" source={_attribute(row["source"])} target={_attribute(row["target"])}'
                f' weight="{row["weight"]}">{_attribute_values("edge", row)}</edge>\n'
                for n, (row, _) in enumerate(relations)
            )
            number += len(relations)
    yield "</edges>\n</graph>\n</gexf>\n"


def _attribute_values(kind: str, row: Row) -> str:
    texts = {name: _text(row[name]) for name in _GEXF_KEYS[kind]}
    values = "".join(f'<attvalue for="{name}" value={quoteattr(text)}/>' for name, text in texts.items() if text)
    return f"<attvalues>{values}</attvalues>"


async def write_json(part: GraphPart) -> AsyncIterator[str]:
    """Yield JSON in the node-link form of networkx and D3: `nodes`, and `edges` between their ids."""
    yield '{"directed": false, "multigraph": false, "graph": {},\n"nodes": ['
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


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


async def write_html(part: GraphPart) -> AsyncIterator[str]:
    """Yield a page that shows the strongest part of the graph without a server, and loads nothing from anywhere.

    Texts of documents are in a block of JSON, never in markup. The policy of the page lets only its own script run.
    """
    page = part.strongest(MAX_PAGE_ENTITIES, MAX_PAGE_RELATIONS)
    head, style, script = (
        (files("quipu.engine.graph_export") / "page.html").read_text(encoding="utf-8").split("<!-- part -->\n")
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
