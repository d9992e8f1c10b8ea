"""Checks of names, synonyms and sentences for `verify`: that they are in step with entities and chunks."""

from collections.abc import Iterator

import numpy as np
from sqlalchemy import Connection, select

from quipu.model.derivation import NAMES, SENTENCES, SYNONYMS
from quipu.stores.relational import change_log, chunks
from quipu.stores.relational import schema as s

_MILLIONTHS = 1_000_000


def differences(connection: Connection) -> Iterator[str]:
    """Yield what is wrong, in words. That a name's or sentence's vector is of its text is checked with all vectors."""
    yield from _names(connection)
    yield from _unkept(connection)
    yield from (f"chunk row {rid}: it is taken for divided into sentences" for rid in chunks.wrongly_split(connection))
    yield from _synonyms(connection)
    yield from _sentences(connection)


def _names(connection: Connection) -> Iterator[str]:
    entities = set(connection.execute(select(s.entity.c.rid)).scalars())
    named = set(connection.execute(select(s.entity_name.c.rid)).scalars())
    expected = entities if change_log.is_derived(connection, NAMES) else set()
    yield from (f"entity row {rid}: it has no row for its name" for rid in sorted(expected - named))
    yield from (f"name of entity row {rid}: nobody has or keeps it" for rid in sorted(named - expected))


def _unkept(connection: Connection) -> Iterator[str]:
    """Find what is there of derivations that nobody keeps."""
    for name, table in ((SYNONYMS, s.synonym), (SENTENCES, s.sentence)):
        if not change_log.is_derived(connection, name) and connection.execute(select(table).limit(1)).first():
            yield f"{name}: there are some, but they are not kept"


def _synonyms(connection: Connection) -> Iterator[str]:
    """Compare the cosines kept with those of the vectors there are."""
    p, n, v, m = s.synonym.c, s.entity_name.c, s.vector.c, s.model.c
    live = select(m.rid).where(m.state == "live").scalar_subquery()
    query = select(n.rid, v.data).join_from(s.entity_name, s.vector, (v.text_hash == n.vector_hash) & (v.model == live))
    vectors = {rid: np.frombuffer(data, "<f2").astype(np.float64) for rid, data in connection.execute(query)}
    for first, second, kept in connection.execute(select(s.synonym).order_by(p.first, p.second)):
        if first not in vectors or second not in vectors:
            yield f"synonyms of rows {first} and {second}: the name of one of them has no vector"
            continue
        cosine = min(round(float(vectors[first] @ vectors[second]) * _MILLIONTHS), _MILLIONTHS)
        if cosine != kept:
            yield f"synonyms of rows {first} and {second}: kept {kept}, but their names give {cosine}"


def _sentences(connection: Connection) -> Iterator[str]:
    e, c = s.sentence.c, s.chunk.c
    text_by_chunk: dict[int, str] = dict(map(tuple, connection.execute(select(c.rid, c.text))))
    expected, end = (-1, 0), 0
    for row in connection.execute(select(s.sentence).order_by(e.chunk, e.ordinal)):
        if row.chunk not in text_by_chunk:
            yield f"sentence row {row.rid}: its chunk is not there"
            continue
        expected, end = ((row.chunk, expected[1] + 1), end) if row.chunk == expected[0] else ((row.chunk, 0), 0)
        if row.ordinal != expected[1] or not end <= row.start_char < row.end_char <= len(text_by_chunk[row.chunk]):
            yield f"sentence {row.ordinal} of chunk row {row.chunk}: its place is not behind the one before"
        end = row.end_char
