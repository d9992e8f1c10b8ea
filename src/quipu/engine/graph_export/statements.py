"""Statements for graph databases: Cypher for Neo4j, and Turtle for RDF stores; with documents and what they mention."""

import re
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from urllib.parse import quote

from quipu.engine.graph_export.part import GraphPart, Row

_ROWS_PER_STATEMENT = 500
_CYPHER_ESCAPES = {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f", "\0": ""}
_TURTLE_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f"}
_CYPHER_SPECIAL, _TURTLE_SPECIAL = (
    re.compile("|".join(map(re.escape, table))) for table in (_CYPHER_ESCAPES, _TURTLE_ESCAPES)
)
_CONTROL = re.compile("[\x00-\x1f\x7f]")
_SURROGATE = re.compile("[\ud800-\udfff]")

_CYPHER_HEAD = """\
// A graph of Quipu for Neo4j 4.4 or newer: cypher-shell --file graph.cypher
// The same file again changes nothing.
CREATE CONSTRAINT quipu_entity IF NOT EXISTS FOR (entity:Entity) REQUIRE entity.id IS UNIQUE;
CREATE CONSTRAINT quipu_document IF NOT EXISTS FOR (document:Document) REQUIRE document.id IS UNIQUE;
"""
_MERGE_ENTITIES = "MERGE (entity:Entity {id: row.id}) SET entity += row"
_MERGE_RELATIONS = (
    "MATCH (source:Entity {id: row.source}), (target:Entity {id: row.target}) "
    "MERGE (source)-[relation:RELATED]->(target) SET relation += row.properties"
)
_MERGE_DOCUMENTS = "MERGE (document:Document {id: row.id}) SET document += row"
_MERGE_MENTIONS = (
    "MATCH (document:Document {id: row.document}), (entity:Entity {id: row.entity}) "
    "MERGE (document)-[mentions:MENTIONS]->(entity) SET mentions.count = row.count"
)
_TURTLE_HEAD = """\
@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
@prefix dcterms: <http://purl.org/dc/terms/> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
@prefix quipu: <urn:quipu:term:> .

"""


async def write_cypher(part: GraphPart) -> AsyncIterator[str]:
    """Yield a Cypher script of MERGE statements: (:Entity)-[:RELATED]->(:Entity), (:Document)-[:MENTIONS]->(:Entity).

    A relation has no direction; the arrow points from the entity that is first by id.
    """
    yield _CYPHER_HEAD
    async with aclosing(part.read_entities()) as blocks:
        async for entities in blocks:
            yield _unwind(_MERGE_ENTITIES, [_cypher_entity(row) for row, _ in entities])
    async with aclosing(part.read_relations()) as relation_blocks:
        async for relations in relation_blocks:
            yield _unwind(_MERGE_RELATIONS, [_cypher_relation(row) for row, _ in relations])
    async with aclosing(part.read_documents(with_relations=False)) as documents:
        async for document in documents:
            row = {name: document.row[name] for name in ("id", "title", "source")}
            yield _unwind(_MERGE_DOCUMENTS, [row])
            mentions = [
                {"document": document.document.id, "entity": key, "count": n} for key, n in document.mentions.items()
            ]
            yield _unwind(_MERGE_MENTIONS, mentions)


def _unwind(statement: str, rows: Sequence[Row]) -> str:
    """Return statements that run once for each row, some hundred rows in each."""
    parts = (rows[start : start + _ROWS_PER_STATEMENT] for start in range(0, len(rows), _ROWS_PER_STATEMENT))
    blocks = (",\n".join(map(cypher_literal, part)) for part in parts)
    return "".join(f"UNWIND [\n{block}\n] AS row\n{statement};\n" for block in blocks)


def _cypher_entity(row: Row) -> Row:
    names = {"id": "id", "label": "name", "type": "type", "description": "description", "aliases": "aliases"}
    return {new: row[name] for name, new in names.items()} | {"mentions": row["mentions"]}


def _cypher_relation(row: Row) -> Row:
    properties = {name: row[name] for name in ("weight", "description", "keywords", "mentions")}
    return {"source": row["source"], "target": row["target"], "properties": properties}


def cypher_literal(value: object) -> str:
    """Return a value as a literal of Cypher. The names in a mapping must be plain words.

    Neo4j replaces \\uXXXX before it parses a statement, wherever it stands. So a backslash of a text is never written
    before a "u": the text is joined from two.
    """
    if isinstance(value, str):
        text = _CYPHER_SPECIAL.sub(lambda match: _CYPHER_ESCAPES[match.group()], _SURROGATE.sub("\ufffd", value))
        return "'" + text.replace(r"\\u", r"\\' + 'u") + "'"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{name}: {cypher_literal(element)}" for name, element in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(cypher_literal(element) for element in value) + "]"
    return repr(value)


async def write_turtle(part: GraphPart) -> AsyncIterator[str]:
    """Yield Turtle: entities with label, type and description, relations as resources, documents and their mentions."""
    yield _TURTLE_HEAD
    async with aclosing(part.read_entities()) as blocks:
        async for entities in blocks:
            yield "".join(_turtle_entity(row) for row, _ in entities)
    async with aclosing(part.read_relations()) as relation_blocks:
        async for relations in relation_blocks:
            yield "".join(_turtle_relation(row) for row, _ in relations)
    async with aclosing(_turtle_documents(part)) as documents:
        async for text in documents:
            yield text


def _turtle_entity(row: Row) -> str:
    types = ["quipu:Entity"] + ([_iri("type", row["type"])] if row["type"] else [])
    return _resource(
        _iri("entity", row["id"]),
        {
            "a": types,
            "rdfs:label": [_literal(row["label"])],
            "skos:altLabel": [_literal(alias) for alias in _list(row["aliases"])],
            "rdfs:comment": [_literal(row["description"])] if row["description"] else [],
            "quipu:mentionCount": [str(row["mentions"])],
        },
    )


def _turtle_relation(row: Row) -> str:
    source, target = _iri("entity", row["source"]), _iri("entity", row["target"])
    relation = _resource(
        _iri("relation", f"{row['source']} -- {row['target']}"),
        {
            "a": ["quipu:Relation"],
            "quipu:source": [source],
            "quipu:target": [target],
            "quipu:keyword": [_literal(word) for word in _list(row["keywords"])],
            "rdfs:comment": [_literal(row["description"])] if row["description"] else [],
            "quipu:weight": [f'"{row["weight"]}"^^xsd:double'],
            "quipu:mentionCount": [str(row["mentions"])],
        },
    )
    return f"{source} skos:related {target} .\n{relation}"


async def _turtle_documents(part: GraphPart) -> AsyncGenerator[str, None]:
    async with aclosing(part.read_documents(with_relations=False)) as documents:
        async for document in documents:
            row = document.row
            yield _resource(
                _iri("document", row["id"]),
                {
                    "a": ["quipu:Document"],
                    "dcterms:title": [_literal(row["title"])] if row["title"] else [],
                    "dcterms:source": [_literal(row["source"])] if row["source"] else [],
                    "dcterms:identifier": [_literal(row["id"])],
                    "quipu:mentions": [_iri("entity", key) for key in document.mentions],
                },
            )


def _resource(subject: str, values: Mapping[str, Sequence[str]]) -> str:
    lines = [f"{predicate} {', '.join(objects)}" for predicate, objects in values.items() if objects]
    statement = " ;\n    ".join(lines)
    return f"{subject} {statement} .\n"


def _iri(kind: str, identifier: object) -> str:
    """Return the name of a resource. Everything but letters, digits and a few signs of ASCII is percent-encoded."""
    return f"<urn:quipu:{kind}:{quote(str(identifier), safe='', errors='replace')}>"


def _literal(value: object) -> str:
    text = _TURTLE_SPECIAL.sub(lambda match: _TURTLE_ESCAPES[match.group()], _SURROGATE.sub("\ufffd", str(value)))
    return '"' + _CONTROL.sub(lambda match: f"\\u{ord(match.group()):04X}", text) + '"'


def _list(value: object) -> Sequence[str]:
    return value if isinstance(value, list) else []
