"""Repair: what is wrong with facts is named, and everything that the store derives from facts is built again."""

import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Table, bindparam, func, select

from quipu.model.derivation import NAMES, SENTENCES, SYNONYMS
from quipu.model.document import DocumentStatus
from quipu.stores.relational import (
    change_log,
    conversations,
    edits,
    entities,
    fold,
    history,
    replies,
    text_index,
    vector_writes,
)
from quipu.stores.relational import schema as s
from quipu.stores.relational.documents import content_differences, metadata_rows
from quipu.stores.relational.snapshot import BloomFilter, Snapshot
from quipu.stores.relational.sql import blocks, checksum, execute_rows, insert_rows, metadata_from_json
from quipu.text.formatting import format_count
from quipu.text.names import is_linkable

_c, _d, _e, _r, _m, _q = (
    table.c for table in (s.chunk, s.document, s.entity, s.relation, s.entity_mention, s.relation_mention)
)
_MENTIONS = (s.entity_mention, s.relation_mention, s.alias_mention, s.claim_mention)
MAX_EXAMPLES = 20
_MAX_DOCUMENTS = 10  # that one message names


def fact_faults(snapshot: Snapshot) -> list[str]:
    """Return the damage in facts, in words, with the documents concerned: nothing can compute these again."""
    connection = snapshot.connection
    messages = snapshot.backend.damage(connection)
    for check in (fact_differences, _lost_ends, _gaps, history.differences):
        messages += first(check(connection))
    return messages + first(edits.differences(snapshot))


def losses(snapshot: Snapshot) -> list[str]:
    """Return the signs that facts are missing, in words, with the documents that may have stated them.

    A new fold would hide these signs: mentions that were counted but are not there, keys that no name agrees with, and
    what a missing chunk stated.
    """
    return [message for check in (_of_no_chunk, _uncounted, _keys) for message in first(check(snapshot.connection))]


def rebuild(snapshot: Snapshot, bloom: BloomFilter, revision: int) -> None:
    """Build everything again that the store derives from facts; texts whose vectors are damaged are queued.

    Files beside the database that were made before are outdated then.
    """
    connection = snapshot.connection
    change_log.forget_before(connection, revision)
    _rebuild_metadata(connection)
    edits.rebuild_keys(connection)
    for table in _MENTIONS:
        connection.execute(table.delete().where(table.c.chunk.not_in(select(_c.rid))))
    fold.rebuild(connection, snapshot.backend)
    text_index.rebuild(connection, snapshot.analyzer, bloom)
    for table, is_lost in _ownerless():
        connection.execute(table.delete().where(is_lost))
    if change_log.is_derived(connection, NAMES):
        entities.write_names(connection, revision)
    for name, table in ((NAMES, s.entity_name), (SYNONYMS, s.synonym), (SENTENCES, s.sentence)):
        if not change_log.is_derived(connection, name):
            connection.execute(table.delete())
    text_index.rebuild_questions(connection)
    vector_writes.rebuild(connection, revision)


def _rebuild_metadata(connection: Connection) -> None:
    connection.execute(s.metadata_value.delete())
    for row in connection.execute(select(_d.rid, _d.metadata)).all():
        insert_rows(connection, s.metadata_value, metadata_rows(row.rid, metadata_from_json(row.metadata)))


def _ownerless() -> Iterator[tuple[Table, ColumnElement[bool]]]:
    """Yield the tables with rows that belong to others, and which of their rows have lost these."""
    d, f, m, p, r = s.reply_document.c, s.reply_source.c, s.membership.c, s.report.c, s.cluster_relation.c
    clusters = select(s.cluster.c.rid)
    yield s.reply_document, d.document.not_in(select(_d.id).union(select(s.job.c.document)))
    yield s.reply_source, f.source.not_in(select(s.reply.c.input_hash))
    yield s.membership, m.cluster.not_in(clusters) | m.entity.not_in(select(_e.rid))
    yield s.report, p.rid.not_in(clusters)
    yield s.cluster_relation, r.source.not_in(clusters) | r.target.not_in(clusters)
    yield conversations.exchange_document, conversations.is_lost()


def fact_differences(connection: Connection) -> Iterator[str]:
    """Find damage in rows of facts and in what documents and replies keep."""
    for check in (partial(damaged_rows, tables=s.FACTS), _chunks, content_differences, _mentions, _unreadable_replies):
        yield from check(connection)


def damaged_rows(connection: Connection, tables: Iterable[Table]) -> Iterator[str]:
    """Compare each row of these tables with its checksum."""
    for table in tables:
        columns = s.CHECKED[table]
        key = [column.name for column in table.primary_key]
        query = select(*(table.c[name] for name in dict.fromkeys((*key, *columns, "checksum"))))
        for row in connection.execute(query, execution_options={"yield_per": 1_000}):
            if row.checksum != checksum(table, row._mapping):
                place = ", ".join(f"{name} {row._mapping[name]}" for name in key)
                yield f"{table.name} at {place}: it differs from its checksum{_of_document(connection, table, row)}"


def _of_document(connection: Connection, table: Table, row: Row[*tuple[Any, ...]]) -> str:
    """Return the document of a row of facts, for the end of a message; "" where there is none."""
    column = {s.document: "rid", s.chunk: "document"}.get(table, "chunk")
    if column not in table.c:
        return ""
    query = select(s.document.c.id).where(s.document.c.rid == row._mapping[column])
    if column == "chunk":
        query = select(s.document.c.id).join(s.chunk, s.chunk.c.document == s.document.c.rid)
        query = query.where(s.chunk.c.rid == row.chunk)
    name = connection.scalar(query)
    return f" (document {name!r})" if name is not None else ""


def write_checksums(connection: Connection, table: Table) -> None:
    """Write the checksums of all rows of a table in `schema.CHECKED`."""
    key = list(table.primary_key)
    change = table.update().where(*(column == bindparam(f"of_{column.name}") for column in key))
    rows = connection.execute(select(table), execution_options={"yield_per": 1_000})
    values = ((row, {"new_checksum": checksum(table, row._mapping)}) for row in rows)
    changes = [{**{f"of_{c.name}": row._mapping[c.name] for c in key}, **value} for row, value in values]
    execute_rows(connection, change.values(checksum=bindparam("new_checksum")), changes)


def _chunks(connection: Connection) -> Iterator[str]:
    """Compare each document's status, and its chunks' places and spans, with the chunks themselves."""
    c, d = s.chunk.c, s.document.c
    by_document: dict[int, list[Any]] = {}
    for row in connection.execute(select(c.id, c.document, c.ordinal, c.text, c.start_char, c.end_char, c.error)):
        by_document.setdefault(row.document, []).append(row)
        if row.end_char - row.start_char != len(row.text):
            span = format_count(row.end_char - row.start_char, "character")
            yield f"document row {row.document}, chunk {row.id}: its span has {span}, its text {len(row.text)}"
    for document in connection.execute(select(d.rid, d.id, d.status)):
        rows = by_document.pop(document.rid, [])
        if sorted(row.ordinal for row in rows) != list(range(len(rows))):
            yield f"document {document.id!r}: the ordinals of its chunks do not count from 0"
        status = DocumentStatus.PARTIAL if any(row.error for row in rows) else DocumentStatus.READY
        if document.status != status:
            yield f"document {document.id!r}: its status is {document.status}, but its chunks make it {status}"
    yield from (f"chunk {row.id}: its document is not live" for rows in by_document.values() for row in rows)


def _mentions(connection: Connection) -> Iterator[str]:
    """Find mentions outside the text of their chunk, and aliases and claims of entities that do not exist."""
    m, c, a, k = s.entity_mention.c, s.chunk.c, s.alias_mention.c, s.claim_mention.c
    outside = select(s.document.c.id, m.ordinal).join(s.chunk, c.rid == m.chunk)
    outside = outside.join(s.document, s.document.c.rid == c.document)
    outside = outside.where((m.start_char < 0) | (m.end_char < m.start_char) | (m.end_char > func.length(c.text)))
    for row in connection.execute(outside.order_by(c.id, m.ordinal)):
        yield f"document {row.id!r}: the span of mention {row.ordinal} is outside the text of its chunk"
    entities = select(s.entity.c.rid)
    aliases = select(s.alias_mention).where(a.entity.not_in(entities)).order_by(a.alias)
    for row in connection.execute(aliases):
        yield f"alias {row.alias!r}: its entity does not exist{_of_document(connection, s.alias_mention, row)}"
    claims = select(k.chunk, k.ordinal).where(k.entity.not_in(entities) | k.object.not_in(entities))
    for row in connection.execute(claims.order_by(k.chunk, k.ordinal)):
        place = f"claim {row.ordinal} of chunk row {row.chunk}"
        yield f"{place}: one of its entities does not exist{_of_document(connection, s.claim_mention, row)}"


def _unreadable_replies(connection: Connection) -> Iterator[str]:
    hashes = connection.execute(select(s.reply.c.input_hash).order_by(s.reply.c.input_hash)).scalars().all()
    for block in blocks(hashes):
        readable = replies.read(connection, block)
        for input_hash in block:
            if input_hash not in readable:
                d = s.reply_document.c
                query = select(d.document).distinct().where(d.input_hash == input_hash)
                users = connection.execute(query).scalars()
                yield f"reply {input_hash}: it cannot be read (documents {', '.join(map(repr, sorted(users)))})"


def name_uses(connection: Connection) -> dict[str, int]:
    """Return how many entities and alias mentions use each name."""
    uses = Counter(connection.execute(select(s.entity.c.key)).scalars())
    uses.update(connection.execute(select(s.alias_mention.c.alias)).scalars())
    return {key: n for key, n in uses.items() if is_linkable(key)}


def first(messages: Iterator[str]) -> list[str]:
    """Return these messages, the first MAX_EXAMPLES of them and how many more; a damaged value ends them."""
    listed: list[str] = []
    try:
        listed.extend(messages)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, zlib.error) as error:
        listed.append(f"damaged values stopped a check ({type(error).__name__}: {error})")
    extra = [f"… and {len(listed) - MAX_EXAMPLES} more of this kind"] if len(listed) > MAX_EXAMPLES else []
    return listed[:MAX_EXAMPLES] + extra


def _listed(documents: Sequence[str]) -> str:
    names = ", ".join(repr(name) for name in documents[:_MAX_DOCUMENTS])
    return f"{names} and {len(documents) - _MAX_DOCUMENTS:,} more" if len(documents) > _MAX_DOCUMENTS else names


def _of_no_chunk(connection: Connection) -> Iterator[str]:
    """Find mentions in a chunk that is not there."""
    for table in _MENTIONS:
        rows = select(table.c.chunk).distinct().where(table.c.chunk.not_in(select(_c.rid))).order_by(table.c.chunk)
        for rid in connection.execute(rows).scalars():
            yield f"{table.name} of chunk row {rid}: the chunk does not exist"


def _lost_ends(connection: Connection) -> Iterator[str]:
    """Find mentions of an entity that is not there, and of relations whose ends their chunk does not mention."""
    in_chunk = select(_m.entity).where(_m.chunk == _q.chunk).correlate(s.relation_mention)
    is_whole = _r.source.in_(in_chunk) & _r.target.in_(in_chunk)
    source, target = s.entity.alias(), s.entity.alias()
    ends = select(_r.rid).join(source, source.c.rid == _r.source).join(target, target.c.rid == _r.target)
    is_related = select(_r.rid).where(
        _r.rid == _q.relation, is_whole, _r.rid.in_(ends.where(source.c.key < target.c.key))
    )
    for table, is_lost, what in (
        (s.entity_mention, _m.entity.not_in(select(_e.rid)), "an entity that does not exist"),
        (s.relation_mention, ~is_related.correlate(s.relation_mention).exists(), "a relation with other ends"),
    ):
        query = select(_d.id, func.count()).join_from(table, s.chunk, table.c.chunk == _c.rid)
        query = query.join(s.document, _d.rid == _c.document).where(is_lost).group_by(_d.id).order_by(_d.id)
        for name, n in connection.execute(query):
            yield f"document {name!r}: {format_count(n, 'mention')} of {what}"


def _gaps(connection: Connection) -> Iterator[str]:
    """Find chunks with a mention missing before their last one."""
    for table in _MENTIONS:
        query = select(_d.id, table.c.chunk).join_from(table, s.chunk, table.c.chunk == _c.rid)
        query = query.join(s.document, _d.rid == _c.document).group_by(_d.id, table.c.chunk)
        query = query.having(func.count() != func.max(table.c.ordinal) + 1).order_by(_d.id, table.c.chunk)
        for row in connection.execute(query):
            yield f"document {row.id!r}: rows of {table.name} are missing in chunk row {row.chunk}"


def _uncounted(connection: Connection) -> Iterator[str]:
    """Find entities and relations whose mentions differ from two counts that agree: mentions are missing."""
    n_by_rid = _counts(connection, s.entity_mention, "entity", func.count())
    surfaces, types = (
        _counts(connection, table, "entity", func.sum(table.c.n)) for table in (s.entity_surface, s.entity_type)
    )
    for row in connection.execute(select(_e.rid, _e.key, _e.n_mentions).order_by(_e.key)).all():
        n = n_by_rid.get(row.rid, 0)
        if n != row.n_mentions == surfaces.get(row.rid, 0) == types.get(row.rid, 0):
            yield _missing("entity", [row.key], row.n_mentions, n, connection)
    n_by_rid = _counts(connection, s.relation_mention, "relation", func.count())
    n_chunks = _counts(connection, s.relation_mention, "relation", func.count(_q.chunk.distinct()))
    for row in connection.execute(select(s.relation).order_by(_r.rid)).all():
        n = n_by_rid.get(row.rid, 0)
        if n != row.n_mentions and n_chunks.get(row.rid, 0) != row.n_chunks:
            ends = select(_e.key).where(_e.rid.in_([row.source, row.target])).order_by(_e.key)
            yield _missing("relation", connection.execute(ends).scalars().all(), row.n_mentions, n, connection)


def _missing(kind: str, keys: Sequence[str], n_counted: int, n: int, connection: Connection) -> str:
    """Return the message that mentions are missing, with the documents that may have stated them."""
    naming = [set(_naming(connection, key)) for key in keys] or [set()]
    among = set.intersection(*naming) or set.union(*naming)
    counted = f"{format_count(n_counted, 'mention')} counted, {n:,} there"
    return f"{kind} {' -- '.join(keys)!r}: {counted} (documents {_listed(sorted(among))})"


def _counts(connection: Connection, table: Table, owner: str, count: Any) -> dict[int, int]:
    return dict(map(tuple, connection.execute(select(table.c[owner], count).group_by(table.c[owner]))))


def _naming(connection: Connection, key: str) -> list[str]:
    """Return the documents that mention an entity, or have its name in their words."""
    mentioning = select(_c.document).join(s.entity_mention, _m.chunk == _c.rid).join(s.entity, _e.rid == _m.entity)
    naming = select(_c.document).join(s.link, s.link.c.chunk == _c.rid).join(s.name, s.name.c.rid == s.link.c.name)
    rids = mentioning.where(_e.key == key).union(naming.where(s.name.c.key == key))
    return list(connection.execute(select(_d.id).where(_d.rid.in_(rids)).order_by(_d.id)).scalars())


def _keys(connection: Connection) -> Iterator[str]:
    """Find entities and aliases without a name where there are names without them: one side has another key."""
    expected, stored = name_uses(connection).keys(), set(connection.execute(select(s.name.c.key)).scalars())
    lost = sorted(stored - expected)
    for key in sorted(expected - stored) if lost else ():
        others = " or ".join(map(repr, lost[:_MAX_DOCUMENTS]))
        yield f"entity {key!r}: its key may be damaged ({others}?); documents {_listed(_naming(connection, key))}"
