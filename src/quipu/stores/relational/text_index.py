"""Full text and links, kept in step with chunks and names; and the texts that wait for a vector."""

from collections import Counter
from collections.abc import Sequence

from sqlalchemy import Connection, select

from quipu.model.graph import chunk_text, entity_text, relation_text
from quipu.ports.store import Space
from quipu.stores.relational import links, meta
from quipu.stores.relational import schema as s
from quipu.stores.relational.backend import Backend
from quipu.stores.relational.documents import ChunkChanges, ChunkWords
from quipu.stores.relational.sql import blocks, select_in, texts_from_json
from quipu.stores.relational.vector_rows import OWNERS, vector_hash
from quipu.text.analyzer import Analyzer
from quipu.text.words import Words, capital_terms, split_words

_CHUNKS_AT_ONCE = 200


def update(
    connection: Connection, backend: Backend, analyzer: Analyzer, changes: ChunkChanges, references: Counter[str]
) -> None:
    """Take out chunks and names that went, put in those that came, and link each to the other."""
    for gone in blocks([*changes.removed, *(before for before, _ in changes.reworded)], _CHUNKS_AT_ONCE):
        backend.unindex_text(connection, [index_row(chunk, split_words(chunk.text), analyzer) for chunk in gone])
    links.drop_chunks(connection, [chunk.rid for chunk in changes.removed])
    for reworded in blocks((after for _, after in changes.reworded), _CHUNKS_AT_ONCE):
        backend.index_text(connection, [index_row(chunk, split_words(chunk.text), analyzer) for chunk in reworded])
    new_names = links.change_names(connection, references)
    for added in blocks(changes.added, _CHUNKS_AT_ONCE):
        words_by_rid = {chunk.rid: split_words(chunk.text) for chunk in added}
        backend.index_text(connection, [index_row(chunk, words_by_rid[chunk.rid], analyzer) for chunk in added])
        links.link_new_chunks(connection, words_by_rid)
    links.link_new_names(connection, backend, new_names, {chunk.rid for chunk in changes.added})


def rebuild(connection: Connection, backend: Backend, analyzer: Analyzer) -> None:
    """Build full text, names and links again from the chunks, entities and aliases."""
    backend.clear_text(connection)
    connection.execute(s.link.delete())
    connection.execute(s.name.delete())
    references = Counter(connection.execute(select(s.entity.c.key)).scalars())
    references.update(connection.execute(select(s.alias_mention.c.alias)).scalars())
    links.change_names(connection, references)
    for rids in blocks(connection.execute(select(s.chunk.c.rid).order_by(s.chunk.c.rid)).scalars().all()):
        update(connection, backend, analyzer, ChunkChanges(added=chunk_words(connection, rids)), Counter())
    meta.put(connection, "tokenizer", analyzer.identity)


def chunk_words(connection: Connection, rids: Sequence[int]) -> list[ChunkWords]:
    """Return the words of chunks, by row."""
    c, d = s.chunk.c, s.document.c
    query = select(c.rid, d.title, c.header, c.text).join(s.document, d.rid == c.document)
    rows = select_in(connection, query, c.rid, rids)
    return [ChunkWords(row.rid, row.title, row.header, row.text) for row in rows]


def index_terms(chunk: ChunkWords, words: Words, analyzer: Analyzer) -> list[str]:
    """Return the terms full text keeps of a chunk whose text has these words: of its title, its header, its text."""
    above = chunk_text(chunk.title, chunk.header, "")
    return [*analyzer.terms(split_words(above)), *analyzer.terms(words)] if above else analyzer.terms(words)


def index_row(chunk: ChunkWords, words: Words, analyzer: Analyzer) -> tuple[int, str, str]:
    """Return what full text keeps of a chunk: (row, terms, capitalised terms of its text)."""
    return chunk.rid, " ".join(index_terms(chunk, words, analyzer)), " ".join(capital_terms(words))


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
        chunks = chunk_words(connection, rids)
        return {chunk.rid: chunk_text(chunk.title, chunk.header, chunk.text) for chunk in chunks}
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
