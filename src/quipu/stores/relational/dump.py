"""The dump: the canonical state as JSON lines. Two equal indexes yield the same bytes.

It holds documents, chunks, mentions, the edits that hold, what edited chunks state without them, earlier versions with
their times, folds, links, summaries, communities, aggregates, sentences, questions and synonyms, and the hash of the
text of each document and vector. It leaves out originals, versions and times of live documents, undone edits, logs,
caches, costs and row numbers.
"""

import json
from collections.abc import Iterator
from functools import partial
from typing import Any

from sqlalchemy import Connection, Select, Table, bindparam, case, func, select

from quipu.model.cluster import Hierarchy
from quipu.model.ids import relation_id
from quipu.model.summary import SummaryTargetKind
from quipu.ports.store import VectorSpace
from quipu.stores.relational import edits, history
from quipu.stores.relational import schema as s
from quipu.stores.relational.documents import TEXT_KIND
from quipu.stores.relational.sql import texts_from_json, to_json

_SOURCE, _TARGET = s.entity.alias("source"), s.entity.alias("target")
_ENDS = _SOURCE.c.key.label("source"), _TARGET.c.key.label("target")


def lines(connection: Connection) -> Iterator[str]:
    """Yield JSON lines, ordered by kind and then by their content."""
    for kind, records in (
        ("aggregate", partial(_clusters, hierarchy=Hierarchy.AGGREGATES)),
        ("aggregate_relation", _aggregate_relations),
        ("alias", _aliases),
        ("chunk", _chunks),
        ("claim", _claims),
        ("community", partial(_clusters, hierarchy=Hierarchy.COMMUNITIES)),
        ("document", _documents),
        ("earlier_version", history.records),
        ("edit", edits.records),
        ("entity", _entities),
        ("entity_mention", _entity_mentions),
        ("link", _links),
        ("question", partial(_spans, table=s.question)),
        ("relation", _relations),
        ("relation_mention", _relation_mentions),
        ("sentence", partial(_spans, table=s.sentence)),
        ("summary", _summaries),
        ("synonym", _synonyms),
        ("unedited", edits.unedited_records),
        ("vector", _vectors),
    ):
        for record in records(connection):
            yield to_json({"kind": kind, **record})


def _records(connection: Connection, query: Select[Any]) -> Iterator[dict[str, Any]]:
    """Yield each row as a dict. Columns named `*_json` are decoded, `start_char` and `end_char` become a span."""
    for row in connection.execute(query, execution_options={"yield_per": 1_000}):
        record = row._asdict()
        for name in [name for name in record if name.endswith("_json")]:
            record[name.removesuffix("_json")] = json.loads(record.pop(name))
        if "start_char" in record:
            record["span"] = [record.pop("start_char"), record.pop("end_char")]
        yield record


def _documents(connection: Connection) -> Iterator[dict[str, Any]]:
    d, k = s.document.c, s.document_content.c
    columns = d.id, d.title, d.status, d.source, d.media_type, d.metadata.label("metadata_json"), d.content_hash
    query = select(*columns, func.coalesce(k.hash, "").label("text_hash"))
    query = query.outerjoin(s.document_content, (k.document == d.rid) & (k.kind == TEXT_KIND))
    return _records(connection, query.order_by(d.id))


def _chunks(connection: Connection) -> Iterator[dict[str, Any]]:
    c, d = s.chunk.c, s.document.c
    place = d.id.label("document"), c.ordinal, c.text, c.start_char, c.end_char, c.page
    hashes = c.n_tokens, c.text_hash, c.input_hash, c.error
    query = select(c.id, *place, c.headings.label("headings_json"), c.header, *hashes)
    return _records(connection, query.join_from(s.chunk, s.document, c.document == d.rid).order_by(d.id, c.ordinal))


def _entity_mentions(connection: Connection) -> Iterator[dict[str, Any]]:
    m, c, e = s.entity_mention.c, s.chunk.c, s.entity.c
    content = m.surface, m.type, m.description, m.is_definition, m.start_char, m.end_char
    query = select(c.id.label("chunk"), m.ordinal, e.key.label("entity"), *content)
    query = query.join_from(s.entity_mention, s.chunk, m.chunk == c.rid).join(s.entity, m.entity == e.rid)
    for record in _records(connection, query.order_by(c.id, m.ordinal)):
        yield {**record, "is_definition": bool(record["is_definition"])}


def _relation_mentions(connection: Connection) -> Iterator[dict[str, Any]]:
    m, c, r = s.relation_mention.c, s.chunk.c, s.relation.c
    content = m.keywords.label("keywords_json"), m.description, m.weight
    query = (
        select(c.id.label("chunk"), m.ordinal, *_ENDS, m.is_reversed, *content)
        .join_from(s.relation_mention, s.chunk, m.chunk == c.rid)
        .join(s.relation, m.relation == r.rid)
        .join(_SOURCE, _SOURCE.c.rid == r.source)
        .join(_TARGET, _TARGET.c.rid == r.target)
    )
    for record in _records(connection, query.order_by(c.id, m.ordinal)):
        if record.pop("is_reversed"):
            record["source"], record["target"] = record["target"], record["source"]
        yield record


def _aliases(connection: Connection) -> Iterator[dict[str, Any]]:
    a, c, e = s.alias_mention.c, s.chunk.c, s.entity.c
    query = select(c.id.label("chunk"), a.ordinal, e.key.label("entity"), a.alias, a.surface)
    query = query.join_from(s.alias_mention, s.chunk, a.chunk == c.rid).join(s.entity, a.entity == e.rid)
    return _records(connection, query.order_by(c.id, a.ordinal))


def _claims(connection: Connection) -> Iterator[dict[str, Any]]:
    m, c = s.claim_mention.c, s.chunk.c
    ends = _SOURCE.c.key.label("subject"), _TARGET.c.key.label("object")
    query = (
        select(c.id.label("chunk"), m.ordinal, *ends, m.type, m.status, m.dates, m.description)
        .join_from(s.claim_mention, s.chunk, m.chunk == c.rid)
        .join(_SOURCE, m.entity == _SOURCE.c.rid)
        .outerjoin(_TARGET, m.object == _TARGET.c.rid)
    )
    for record in _records(connection, query.order_by(c.id, m.ordinal)):
        yield {**record, "object": record["object"] or ""}


def _entities(connection: Connection) -> Iterator[dict[str, Any]]:
    e = s.entity.c
    query = select(e.key, e.name, e.type, e.description, e.n_mentions, e.n_chunks, e.degree).order_by(e.key)
    return _records(connection, query)


def _relations(connection: Connection) -> Iterator[dict[str, Any]]:
    r = s.relation.c
    content = r.keywords.label("keywords_json"), r.description, r.weight, r.n_mentions, r.n_chunks
    query = select(*_ENDS, *content).join(_SOURCE, _SOURCE.c.rid == r.source).join(_TARGET, _TARGET.c.rid == r.target)
    return _records(connection, query.order_by(_SOURCE.c.key, _TARGET.c.key))


def _links(connection: Connection) -> Iterator[dict[str, Any]]:
    c, n, k = s.chunk.c, s.name.c, s.link.c
    query = select(n.key.label("name"), c.id.label("chunk"), k.n)
    query = query.join_from(s.link, s.name, k.name == n.rid).join(s.chunk, k.chunk == c.rid)
    return _records(connection, query.order_by(n.key, c.id))


def _summaries(connection: Connection) -> Iterator[dict[str, Any]]:
    k, e, r = s.summary.c, s.entity.c, s.relation.c
    of_entities = select(e.key.label("of"), k.inputs_hash, k.text).join_from(s.summary, s.entity, k.owner == e.rid)
    yield from _records(connection, of_entities.where(k.kind == SummaryTargetKind.ENTITY.value).order_by(e.key))
    of_relations = (
        select(*_ENDS, k.inputs_hash, k.text)
        .join_from(s.summary, s.relation, k.owner == r.rid)
        .join(_SOURCE, _SOURCE.c.rid == r.source)
        .join(_TARGET, _TARGET.c.rid == r.target)
        .where(k.kind == SummaryTargetKind.RELATION.value)
    )
    for record in _records(connection, of_relations.order_by(_SOURCE.c.key, _TARGET.c.key)):
        yield {"of": relation_id(record.pop("source"), record.pop("target")), **record}


def _vectors(connection: Connection) -> Iterator[dict[str, Any]]:
    v, m = s.vector.c, s.model.c
    query = select(v.space, v.text_hash, m.identity.label("model")).join_from(s.vector, s.model, v.model == m.rid)
    # Reports of communities are left out with the communities, which depend on earlier communities.
    query = query.where(m.state == "live", v.space != VectorSpace.REPORT)
    return _records(connection, query.order_by(v.space, v.text_hash))


def _spans(connection: Connection, table: Table) -> Iterator[dict[str, Any]]:
    e, c = table.c, s.chunk.c
    query = select(c.id.label("chunk"), e.ordinal, e.start_char, e.end_char).join(s.chunk, e.chunk == c.rid)
    return _records(connection, query.order_by(c.id, e.ordinal))


def _synonyms(connection: Connection) -> Iterator[dict[str, Any]]:
    p = s.synonym.c
    query = (
        select(*_ENDS, p.similarity)
        .join_from(s.synonym, _SOURCE, _SOURCE.c.rid == p.first)
        .join(_TARGET, _TARGET.c.rid == p.second)
    )
    is_ordered = _SOURCE.c.key < _TARGET.c.key
    ends = [case((is_ordered, one.c.key), else_=other.c.key) for one, other in ((_SOURCE, _TARGET), (_TARGET, _SOURCE))]
    for record in _records(connection, query.order_by(*ends)):
        first, second = sorted((record.pop("source"), record.pop("target")))
        yield {"first": first, "second": second, **record}


def _clusters(connection: Connection, hierarchy: Hierarchy) -> Iterator[dict[str, Any]]:
    """Yield each community or aggregate with its members and its report."""
    k, m, p, e, parent = s.cluster.c, s.membership.c, s.report.c, s.entity.c, s.cluster.alias("parent_cluster")
    query = (
        select(s.cluster, s.report, parent.c.id.label("parent_id"), p.rid.label("report"))
        .outerjoin(parent, parent.c.rid == k.parent)
        .outerjoin(s.report, p.rid == k.rid)
        .where(k.hierarchy == hierarchy.value)
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
                "rating": row.rating,
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
    r, source, target = s.cluster_relation.c, s.cluster.alias("source_cluster"), s.cluster.alias("target_cluster")
    ends = source.c.id.label("source"), target.c.id.label("target")
    query = select(*ends, r.level, r.description, r.weight, r.n, r.inputs_hash)
    query = query.join(source, source.c.rid == r.source).join(target, target.c.rid == r.target)
    return _records(connection, query.order_by(source.c.id, target.c.id))
