"""Full text and links, kept in step with chunks and names; and the texts that wait for a vector."""

from collections import Counter
from collections.abc import Sequence

from sqlalchemy import Connection, select

from quipu.model.graph import chunk_text, entity_text, relation_text
from quipu.ports.store import Space
from quipu.stores.relational import links, meta
from quipu.stores.relational import schema as s
from quipu.stores.relational.backend import Backend
from quipu.stores.relational.documents import ChunkChanges
from quipu.stores.relational.sql import blocks, select_in, texts_from_json
from quipu.stores.relational.vector_rows import OWNERS, vector_hash
from quipu.text.analyzer import Analyzer

_CHUNKS_AT_ONCE = 200


def update(
    connection: Connection, backend: Backend, analyzer: Analyzer, changes: ChunkChanges, references: Counter[str]
) -> None:
    """Take out chunks and names that went, put in those that came, and link each to the other."""
    for removed in blocks(changes.removed, _CHUNKS_AT_ONCE):
        backend.unindex_text(connection, [links.indexed(rid, text).terms(analyzer) for rid, text in removed])
        links.drop_chunks(connection, [rid for rid, _ in removed])
    new_names = links.change_names(connection, references)
    for added in blocks(changes.added, _CHUNKS_AT_ONCE):
        chunks = [links.indexed(rid, text) for rid, text in added]
        backend.index_text(connection, [chunk.terms(analyzer) for chunk in chunks])
        links.link_new_chunks(connection, chunks)
    links.link_new_names(connection, backend, new_names, {rid for rid, _ in changes.added})


def rebuild(connection: Connection, backend: Backend, analyzer: Analyzer) -> None:
    """Build full text, names and links again from the chunks, entities and aliases."""
    backend.clear_text(connection)
    connection.execute(s.link.delete())
    connection.execute(s.name.delete())
    references = Counter(connection.execute(select(s.entity.c.key)).scalars())
    references.update(connection.execute(select(s.alias_mention.c.alias)).scalars())
    links.change_names(connection, references)
    for rids in blocks(connection.execute(select(s.chunk.c.rid).order_by(s.chunk.c.rid)).scalars().all()):
        rows = select_in(connection, select(s.chunk.c.rid, s.chunk.c.text), s.chunk.c.rid, rids)
        update(connection, backend, analyzer, ChunkChanges(added=[(row.rid, row.text) for row in rows]), Counter())
    meta.put(connection, "tokenizer", analyzer.identity)


def stale_texts(connection: Connection, model: str, limit: int) -> dict[str, str]:
    """Return up to `limit` texts without a vector under this model, by text hash, read from their owners."""
    t, m = s.vector_todo.c, s.model.c
    query = select(t.text_hash, t.space).join(s.model, m.rid == t.model).where(m.identity == model).limit(limit)
    hashes: dict[Space, list[str]] = {}
    for row in connection.execute(query.order_by(t.text_hash)):
        hashes.setdefault(Space(row.space), []).append(row.text_hash)
    texts: dict[str, str] = {}
    for space, wanted in sorted(hashes.items()):
        owner = OWNERS[space].c
        rows = select_in(connection, select(owner.rid, owner.vector_hash), owner.vector_hash, wanted)
        text_by_rid = owner_texts(connection, space, [row.rid for row in rows])
        texts.update({row.vector_hash: text_by_rid[row.rid] for row in rows})
    return texts


def owner_texts(connection: Connection, space: Space, rids: Sequence[int]) -> dict[int, str]:
    """Return the text to embed of each chunk, entity or relation, by row."""
    if space is Space.CHUNK:
        c, d = s.chunk.c, s.document.c
        query = select(c.rid, c.text, d.title).join(s.document, d.rid == c.document)
        return {row.rid: chunk_text(row.title, row.text) for row in select_in(connection, query, c.rid, rids)}
    if space is Space.ENTITY:
        e = s.entity.c
        named = select(e.rid, e.name, e.description)
        return {row.rid: entity_text(row.name, row.description) for row in select_in(connection, named, e.rid, rids)}
    r, source, target = s.relation.c, s.entity.alias(), s.entity.alias()
    stated = select(r.rid, r.keywords, r.description, source.c.key.label("source"), target.c.key.label("target"))
    stated = stated.join(source, source.c.rid == r.source).join(target, target.c.rid == r.target)
    return {
        row.rid: relation_text(texts_from_json(row.keywords), row.source, row.target, row.description)
        for row in select_in(connection, stated, r.rid, rids)
    }


def wanted_texts(connection: Connection, space: Space, rids: Sequence[int]) -> dict[int, str]:
    """Return the hash each row's vector should have, from its text."""
    return {rid: vector_hash(space, text) for rid, text in owner_texts(connection, space, rids).items()}
