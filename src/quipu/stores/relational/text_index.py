"""Full text and links, kept in step with chunks and names; and the texts that wait for a vector."""

from collections import Counter
from collections.abc import Sequence

from sqlalchemy import Connection, select

from quipu.ports.store import Space
from quipu.stores.relational import graph, links, meta, passages
from quipu.stores.relational import schema as s
from quipu.stores.relational.backend import Backend
from quipu.stores.relational.documents import ChunkChanges
from quipu.stores.relational.snapshot import Snapshot
from quipu.stores.relational.sql import blocks, select_in
from quipu.text.words import TOKENIZER_IDENTITY

_CHUNKS_AT_ONCE = 200


def update(connection: Connection, backend: Backend, changes: ChunkChanges, references: Counter[str]) -> None:
    """Take out chunks and names that went, put in those that came, and link each to the other."""
    for removed in blocks(changes.removed, _CHUNKS_AT_ONCE):
        backend.unindex_text(connection, [links.indexed(rid, text).terms() for rid, text in removed])
        links.drop_chunks(connection, [rid for rid, _ in removed])
    new_names = links.change_names(connection, references)
    for added in blocks(changes.added, _CHUNKS_AT_ONCE):
        chunks = [links.indexed(rid, text) for rid, text in added]
        backend.index_text(connection, [chunk.terms() for chunk in chunks])
        links.link_new_chunks(connection, chunks)
    links.link_new_names(connection, backend, new_names, {rid for rid, _ in changes.added})


def rebuild(connection: Connection, backend: Backend) -> None:
    """Build full text, names and links again from the chunks, entities and aliases."""
    backend.clear_text(connection)
    connection.execute(s.link.delete())
    connection.execute(s.name.delete())
    references = Counter(connection.execute(select(s.entity.c.key)).scalars())
    references.update(connection.execute(select(s.alias_mention.c.alias)).scalars())
    links.change_names(connection, references)
    for rids in blocks(connection.execute(select(s.chunk.c.rid).order_by(s.chunk.c.rid)).scalars().all()):
        rows = select_in(connection, select(s.chunk.c.rid, s.chunk.c.text), s.chunk.c.rid, rids)
        update(connection, backend, ChunkChanges(added=[(row.rid, row.text) for row in rows]), Counter())
    meta.put(connection, "tokenizer", TOKENIZER_IDENTITY)


def stale_texts(connection: Connection, backend: Backend, model: str, limit: int) -> dict[str, str]:
    """Return up to `limit` texts without a vector under this model, by text hash, read from their owners."""
    t, m = s.vector_todo.c, s.model.c
    query = select(t.text_hash, t.space).join(s.model, m.rid == t.model).where(m.identity == model).limit(limit)
    hashes: dict[Space, list[str]] = {}
    for row in connection.execute(query.order_by(t.text_hash)):
        hashes.setdefault(Space(row.space), []).append(row.text_hash)
    snapshot = Snapshot(connection=connection, backend=backend, is_filtered=False)
    texts: dict[str, str] = {}
    for space, wanted in sorted(hashes.items()):
        texts.update(_texts(snapshot, space, wanted))
    return texts


def _texts(snapshot: Snapshot, space: Space, hashes: Sequence[str]) -> dict[str, str]:
    if space is Space.CHUNK:
        c = s.chunk.c
        rows = select_in(snapshot.connection, select(c.vector_hash, c.id), c.vector_hash, hashes)
        chunks = {chunk.id: chunk for chunk in passages.chunks(snapshot, [row.id for row in rows])}
        return {row.vector_hash: chunks[row.id].embedding_text() for row in rows}
    if space is Space.ENTITY:
        e = s.entity.c
        rows = select_in(snapshot.connection, select(e.vector_hash, e.key), e.vector_hash, hashes)
        entities = {entity.key: entity for entity in graph.entities(snapshot, [row.key for row in rows])}
        return {row.vector_hash: entities[row.key].embedding_text() for row in rows}
    return {hash_: relation.embedding_text() for hash_, relation in graph.hashed_relations(snapshot, hashes)}
