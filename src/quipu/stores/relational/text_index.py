"""Full text and links, kept in step with chunks and names; and the texts that wait for a vector."""

from collections import Counter
from collections.abc import Sequence

from sqlalchemy import Connection, bindparam, select

from quipu.model.graph import chunk_text, entity_text, relation_text
from quipu.ports.store import VectorSpace
from quipu.stores.relational import links, meta, reports, sentences
from quipu.stores.relational import schema as s
from quipu.stores.relational.backend import Backend
from quipu.stores.relational.documents import ChunkChanges, ChunkWords
from quipu.stores.relational.name_sieve import NameSieve
from quipu.stores.relational.sql import ByValues, blocks, texts_from_json
from quipu.stores.relational.vector_rows import OWNERS, vector_hash
from quipu.text.names import capital_terms
from quipu.text.words import Analyzer, Words, split_words

_CHUNKS_AT_ONCE = 32  # their words, a few hundred bytes each, are in memory together

_c, _d, _e, _r, _t = s.chunk.c, s.document.c, s.entity.c, s.relation.c, s.vector_todo.c
_source, _target = s.entity.alias(), s.entity.alias()
_CHUNKS = ByValues(select(_c.rid, _d.title, _c.header, _c.text).join(s.document, _d.rid == _c.document), _c.rid)
_ENTITIES = ByValues(select(_e.rid, _e.name, _e.description), _e.rid)
_NAMES = ByValues(select(_e.rid, _e.name), _e.rid)
_RELATIONS = ByValues(
    select(_r.rid, _r.keywords, _source.c.key, _target.c.key, _r.description)
    .join(_source, _source.c.rid == _r.source)
    .join(_target, _target.c.rid == _r.target),
    _r.rid,
)
_BY_HASH = {
    space: ByValues(select(owner.c.rid, owner.c.vector_hash), owner.c.vector_hash) for space, owner in OWNERS.items()
}
_WAITING = (
    select(_t.text_hash, _t.space)
    .join(s.model, s.model.c.rid == _t.model)
    .where(s.model.c.identity == bindparam("model"))
    .order_by(_t.text_hash)
    .limit(bindparam("limit"))
)


def update(
    connection: Connection,
    backend: Backend,
    analyzer: Analyzer,
    sieve: NameSieve,
    changes: ChunkChanges,
    references: Counter[str],
) -> None:
    """Take out chunks and names that went, put in those that came, and link each to the other."""
    for gone in blocks([*changes.removed, *(before for before, _ in changes.reworded)], _CHUNKS_AT_ONCE):
        backend.unindex_text(connection, [index_row(chunk, split_words(chunk.text), analyzer) for chunk in gone])
    links.drop_chunks(connection, [chunk.rid for chunk in changes.removed])
    for reworded in blocks((after for _, after in changes.reworded), _CHUNKS_AT_ONCE):
        backend.index_text(connection, [index_row(chunk, split_words(chunk.text), analyzer) for chunk in reworded])
    new_names = links.change_names(connection, sieve, references)
    for added in blocks(changes.added, _CHUNKS_AT_ONCE):
        words_by_rid = {chunk.rid: split_words(chunk.text) for chunk in added}
        backend.index_text(connection, [index_row(chunk, words_by_rid[chunk.rid], analyzer) for chunk in added])
        links.link_new_chunks(connection, sieve, words_by_rid)
    links.link_new_names(connection, backend, new_names, {chunk.rid for chunk in changes.added})


def rebuild(connection: Connection, backend: Backend, analyzer: Analyzer) -> None:
    """Build full text, names and links again from the chunks, entities and aliases."""
    backend.clear_text(connection)
    connection.execute(s.link.delete())
    connection.execute(s.name.delete())
    references = Counter(connection.execute(select(s.entity.c.key)).scalars())
    references.update(connection.execute(select(s.alias_mention.c.alias)).scalars())
    sieve = NameSieve()
    links.change_names(connection, sieve, references)
    for rids in blocks(connection.execute(select(s.chunk.c.rid).order_by(s.chunk.c.rid)).scalars().all()):
        update(connection, backend, analyzer, sieve, ChunkChanges(added=chunk_words(connection, rids)), Counter())
    meta.put(connection, "tokenizer", analyzer.identity)


def chunk_words(connection: Connection, rids: Sequence[int]) -> list[ChunkWords]:
    """Return the words of chunks, by row."""
    return [ChunkWords(*row) for row in _CHUNKS.rows(connection, rids)]


def index_terms(chunk: ChunkWords, words: Words, analyzer: Analyzer) -> list[str]:
    """Return the terms full text keeps of a chunk whose text has these words: of its title, its header, its text."""
    above = chunk_text(chunk.title, chunk.header, "")
    return [*analyzer.terms(split_words(above)), *analyzer.terms(words)] if above else analyzer.terms(words)


def index_row(chunk: ChunkWords, words: Words, analyzer: Analyzer) -> tuple[int, str, str]:
    """Return what full text keeps of a chunk: (row, terms, capitalised terms of its text)."""
    return chunk.rid, " ".join(index_terms(chunk, words, analyzer)), " ".join(capital_terms(words))


def stale_texts(connection: Connection, model: str, limit: int) -> dict[str, str]:
    """Return up to `limit` texts without a vector under this model, by text hash, read from their owners."""
    hashes: dict[VectorSpace, list[str]] = {}
    for text_hash, space in connection.execute(_WAITING, {"model": model, "limit": limit}):
        hashes.setdefault(VectorSpace(space), []).append(text_hash)
    texts: dict[str, str] = {}
    for space, wanted in sorted(hashes.items()):
        rows = _BY_HASH[space].rows(connection, wanted)
        text_by_rid = owner_texts(connection, space, [row.rid for row in rows])
        texts.update({row.vector_hash: text_by_rid[row.rid] for row in rows})
    return texts


def owner_texts(connection: Connection, space: VectorSpace, rids: Sequence[int]) -> dict[int, str]:
    """Return the text to embed of each of what owns vectors of a space, by row."""
    if space is VectorSpace.CHUNK:
        chunks = chunk_words(connection, rids)
        return {chunk.rid: chunk_text(chunk.title, chunk.header, chunk.text) for chunk in chunks}
    if space is VectorSpace.ENTITY:
        return {rid: entity_text(name, description) for rid, name, description in _ENTITIES.rows(connection, rids)}
    if space is VectorSpace.NAME:
        return dict(map(tuple, _NAMES.rows(connection, rids)))
    if space is VectorSpace.SENTENCE:
        return dict(sentences.texts(connection, rids))
    if space is VectorSpace.REPORT:
        return reports.texts(connection, rids)
    return {
        rid: relation_text(texts_from_json(keywords), source, target, description)
        for rid, keywords, source, target, description in _RELATIONS.rows(connection, rids)
    }


def wanted_texts(connection: Connection, space: VectorSpace, rids: Sequence[int]) -> dict[int, str]:
    """Return the hash each row's vector should have, from its text."""
    return {rid: vector_hash(space, text) for rid, text in owner_texts(connection, space, rids).items()}
