"""Files of graph programs: GraphML, GEXF, and JSON in the node-link form. They have entities and relations only."""

import json
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from xml.sax.saxutils import escape, quoteattr

from quipu.engine.graph_export.part import GraphPart, Row

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
