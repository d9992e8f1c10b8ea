"""The canonical state, line by line: what two equal indexes agree on to the byte.

Live documents, chunks, mentions, edits, folds, links, summaries, and for each vector its text and model; never
versions, times, logs, caches, costs or row numbers.
"""

import json
from collections.abc import Iterator
from typing import Any

from sqlalchemy import Connection, Select, bindparam, case, select

from quipu.model.cluster import Hierarchy
from quipu.model.ids import relation_id
from quipu.model.summary import SummaryTargetKind
from quipu.ports.store import VectorSpace
from quipu.stores.relational import schema as s
from quipu.stores.relational.sql import texts_from_json, to_json

_SOURCE, _TARGET = s.entity.alias("source"), s.entity.alias("target")


def lines(connection: Connection) -> Iterator[str]:
    """Yield JSON lines, ordered by kind and then by their content."""
    for kind, records in (
        ("aggregate", _aggregates),
        ("aggregate_relation", _aggregate_relations),
        ("alias", _aliases),
        ("chunk", _chunks),
        ("claim", _claims),
        ("document", _documents),
        ("edit", _edits),
        ("entity", _entities),
        ("entity_mention", _entity_mentions),
        ("link", _links),
        ("relation", _relations),
        ("relation_mention", _relation_mentions),
        ("sentence", _sentences),
        ("summary", _summaries),
        ("synonym", _synonyms),
        ("vector", _vectors),
    ):
        for record in records(connection):
            yield to_json({"kind": kind, **record})


def _aggregates(connection: Connection) -> Iterator[dict[str, Any]]:
    """Yield each aggregate with its members and its report, ordered by id; communities are no canonical state."""
    k, m, p, e, parent = s.cluster.c, s.membership.c, s.report.c, s.entity.c, s.cluster.alias("parent_cluster")
    query = (
        select(s.cluster, s.report, parent.c.id.label("parent_id"), p.rid.label("report"))
        .outerjoin(parent, parent.c.rid == k.parent)
        .outerjoin(s.report, p.rid == k.rid)
        .where(k.hierarchy == Hierarchy.AGGREGATES.value)
        .order_by(k.id)
    )
    members = select(e.key).join(s.membership, m.entity == e.rid).where(m.cluster == bindparam("cluster"))
    for row in connection.execute(query).all():
        report = None
        if row.report is not None:
            report = {
                "title": row.title,
                "summary": row.summary,
                "findings": json.loads(row.findings),
                "chunks": texts_from_json(row.chunks),
            }
        yield {
            "id": row.id,
            "level": row.level,
            "parent": row.parent_id or "",
            "members": list(connection.execute(members.order_by(e.key), {"cluster": row.rid}).scalars()),
            "inputs_hash": row.inputs_hash,
            "report": report,
        }


def _aggregate_relations(connection: Connection) -> Iterator[dict[str, Any]]:
    """Yield each relation between aggregates, ordered by ends."""
    source, target = s.cluster.alias("source_cluster"), s.cluster.alias("target_cluster")
    r = s.cluster_relation.c
    query = (
        select(s.cluster_relation, source.c.id.label("source_id"), target.c.id.label("target_id"))
        .join(source, source.c.rid == r.source)
        .join(target, target.c.rid == r.target)
    )
    for row in connection.execute(query.order_by(source.c.id, target.c.id)):
        yield {
            "source": row.source_id,
            "target": row.target_id,
            "level": row.level,
            "description": row.description,
            "weight": row.weight,
            "n": row.n,
            "inputs_hash": row.inputs_hash,
        }


def _stream(connection: Connection, query: Select[Any]) -> Iterator[Any]:
    yield from connection.execute(query, execution_options={"yield_per": 1_000})


def _documents(connection: Connection) -> Iterator[dict[str, Any]]:
    d = s.document.c
    for row in _stream(connection, select(s.document).order_by(d.id)):
        yield {
            "id": row.id,
            "title": row.title,
            "status": row.status,
            "source": row.source,
            "media_type": row.media_type,
            "metadata": json.loads(row.metadata),
            "content_hash": row.content_hash,
        }


def _chunks(connection: Connection) -> Iterator[dict[str, Any]]:
    c, d = s.chunk.c, s.document.c
    query = select(s.chunk, d.id.label("document_id")).join_from(s.chunk, s.document, c.document == d.rid)
    for row in _stream(connection, query.order_by(d.id, c.ordinal)):
        yield {
            "id": row.id,
            "document": row.document_id,
            "ordinal": row.ordinal,
            "text": row.text,
            "span": [row.start_char, row.end_char],
            "page": row.page,
            "headings": texts_from_json(row.headings),
            "header": row.header,
            "n_tokens": row.n_tokens,
            "text_hash": row.text_hash,
            "input_hash": row.input_hash,
            "error": row.error,
        }


def _entity_mentions(connection: Connection) -> Iterator[dict[str, Any]]:
    m, c, e = s.entity_mention.c, s.chunk.c, s.entity.c
    query = select(s.entity_mention, c.id, e.key).join_from(s.entity_mention, s.chunk, m.chunk == c.rid)
    query = query.join(s.entity, m.entity == e.rid).order_by(c.id, m.ordinal)
    for row in _stream(connection, query):
        yield {
            "chunk": row.id,
            "ordinal": row.ordinal,
            "entity": row.key,
            "surface": row.surface,
            "type": row.type,
            "description": row.description,
            "is_definition": bool(row.is_definition),
            "span": [row.start_char, row.end_char],
        }


def _relation_mentions(connection: Connection) -> Iterator[dict[str, Any]]:
    m, c, r = s.relation_mention.c, s.chunk.c, s.relation.c
    query = (
        select(s.relation_mention, c.id, _SOURCE.c.key.label("first"), _TARGET.c.key.label("second"))
        .join_from(s.relation_mention, s.chunk, m.chunk == c.rid)
        .join(s.relation, m.relation == r.rid)
        .join(_SOURCE, _SOURCE.c.rid == r.source)
        .join(_TARGET, _TARGET.c.rid == r.target)
        .order_by(c.id, m.ordinal)
    )
    for row in _stream(connection, query):
        ends = [row.second, row.first] if row.is_reversed else [row.first, row.second]
        yield {
            "chunk": row.id,
            "ordinal": row.ordinal,
            "source": ends[0],
            "target": ends[1],
            "keywords": texts_from_json(row.keywords),
            "description": row.description,
            "weight": row.weight,
        }


def _aliases(connection: Connection) -> Iterator[dict[str, Any]]:
    a, c, e = s.alias_mention.c, s.chunk.c, s.entity.c
    query = select(s.alias_mention, c.id, e.key).join_from(s.alias_mention, s.chunk, a.chunk == c.rid)
    query = query.join(s.entity, a.entity == e.rid).order_by(c.id, a.ordinal)
    for row in _stream(connection, query):
        yield {
            "chunk": row.id,
            "ordinal": row.ordinal,
            "entity": row.key,
            "alias": row.alias,
            "surface": row.surface,
        }


def _claims(connection: Connection) -> Iterator[dict[str, Any]]:
    m, c = s.claim_mention.c, s.chunk.c
    query = (
        select(s.claim_mention, c.id, _SOURCE.c.key.label("subject_key"), _TARGET.c.key.label("object_key"))
        .join_from(s.claim_mention, s.chunk, m.chunk == c.rid)
        .join(_SOURCE, m.entity == _SOURCE.c.rid)
        .outerjoin(_TARGET, m.object == _TARGET.c.rid)
        .order_by(c.id, m.ordinal)
    )
    for row in _stream(connection, query):
        yield {
            "chunk": row.id,
            "ordinal": row.ordinal,
            "subject": row.subject_key,
            "object": row.object_key or "",
            "type": row.type,
            "status": row.status,
            "dates": row.dates,
            "description": row.description,
        }


def _edits(connection: Connection) -> Iterator[dict[str, Any]]:
    for row in _stream(connection, select(s.edit).order_by(s.edit.c.kind, s.edit.c.payload)):
        yield {"edit": row.kind, "payload": json.loads(row.payload)}


def _entities(connection: Connection) -> Iterator[dict[str, Any]]:
    for row in _stream(connection, select(s.entity).order_by(s.entity.c.key)):
        yield {
            "key": row.key,
            "name": row.name,
            "type": row.type,
            "description": row.description,
            "n_mentions": row.n_mentions,
            "n_chunks": row.n_chunks,
            "degree": row.degree,
        }


def _relations(connection: Connection) -> Iterator[dict[str, Any]]:
    r = s.relation.c
    query = (
        select(s.relation, _SOURCE.c.key.label("first"), _TARGET.c.key.label("second"))
        .join(_SOURCE, _SOURCE.c.rid == r.source)
        .join(_TARGET, _TARGET.c.rid == r.target)
        .order_by(_SOURCE.c.key, _TARGET.c.key)
    )
    for row in _stream(connection, query):
        yield {
            "source": row.first,
            "target": row.second,
            "keywords": texts_from_json(row.keywords),
            "description": row.description,
            "weight": row.weight,
            "n_mentions": row.n_mentions,
            "n_chunks": row.n_chunks,
        }


def _summaries(connection: Connection) -> Iterator[dict[str, Any]]:
    k, e, r = s.summary.c, s.entity.c, s.relation.c
    of_entity = select(e.key, k.inputs_hash, k.text).join_from(s.summary, s.entity, k.owner == e.rid)
    for row in _stream(connection, of_entity.where(k.kind == SummaryTargetKind.ENTITY.value).order_by(e.key)):
        yield {"of": row.key, "inputs_hash": row.inputs_hash, "text": row.text}
    of_relation = (
        select(_SOURCE.c.key.label("first"), _TARGET.c.key.label("second"), k.inputs_hash, k.text)
        .join_from(s.summary, s.relation, k.owner == r.rid)
        .join(_SOURCE, _SOURCE.c.rid == r.source)
        .join(_TARGET, _TARGET.c.rid == r.target)
    )
    ordered = of_relation.where(k.kind == SummaryTargetKind.RELATION.value).order_by(_SOURCE.c.key, _TARGET.c.key)
    for row in _stream(connection, ordered):
        yield {"of": relation_id(row.first, row.second), "inputs_hash": row.inputs_hash, "text": row.text}


def _sentences(connection: Connection) -> Iterator[dict[str, Any]]:
    e, c = s.sentence.c, s.chunk.c
    query = select(c.id, e.ordinal, e.start_char, e.end_char).join(s.chunk, e.chunk == c.rid).order_by(c.id, e.ordinal)
    for row in _stream(connection, query):
        yield {"chunk": row.id, "ordinal": row.ordinal, "span": [row.start_char, row.end_char]}


def _synonyms(connection: Connection) -> Iterator[dict[str, Any]]:
    p = s.synonym.c
    query = (
        select(_SOURCE.c.key.label("one"), _TARGET.c.key.label("other"), p.similarity)
        .join_from(s.synonym, _SOURCE, _SOURCE.c.rid == p.first)
        .join(_TARGET, _TARGET.c.rid == p.second)
    )
    is_ordered = _SOURCE.c.key < _TARGET.c.key
    ends = [case((is_ordered, one.c.key), else_=other.c.key) for one, other in ((_SOURCE, _TARGET), (_TARGET, _SOURCE))]
    for row in _stream(connection, query.order_by(*ends)):
        first, second = sorted((row.one, row.other))
        yield {"first": first, "second": second, "similarity": row.similarity}


def _links(connection: Connection) -> Iterator[dict[str, Any]]:
    c, n = s.chunk.c, s.name.c
    query = select(n.key, c.id, s.link.c.n).join_from(s.link, s.name, s.link.c.name == n.rid)
    for row in _stream(connection, query.join(s.chunk, s.link.c.chunk == c.rid).order_by(n.key, c.id)):
        yield {"name": row.key, "chunk": row.id, "n": row.n}


def _vectors(connection: Connection) -> Iterator[dict[str, Any]]:
    v, m = s.vector.c, s.model.c
    query = select(v.space, v.text_hash, m.identity).join_from(s.vector, s.model, v.model == m.rid)
    # Communities depend on those before them, and so do the reports on them.
    query = query.where(m.state == "live", v.space != VectorSpace.REPORT).order_by(v.space, v.text_hash)
    for row in _stream(connection, query):
        yield {"space": row.space, "text_hash": row.text_hash, "model": row.identity}
