"""Entity names and synonyms: a row for the vector of each name, and the pairs of entities with similar names.

Names are embedded while the derivation "names" is kept; each new name is then compared with all others once.
"""

from collections.abc import Collection, Mapping

import numpy as np
from sqlalchemy import Connection, bindparam, func, literal_column, select

from quipu.model.delta import SynonymUpdate
from quipu.model.derivation import NAMES, SYNONYMS
from quipu.ports.derivation_view import DerivationCounts, SynonymRows
from quipu.ports.store import VectorSpace
from quipu.stores.relational import change_log
from quipu.stores.relational import schema as s
from quipu.stores.relational.backend import Backend
from quipu.stores.relational.snapshot import Lookup, Snapshot
from quipu.stores.relational.sql import ByValues, Ints, as_texts, from_texts, insert_rows
from quipu.stores.relational.vector_writes import VectorChanges, n_waiting, vector_hash
from quipu.stores.relational.vectors import LIVE

_MILLIONTHS = 1_000_000

_p, _n, _e, _v = s.synonym.c, s.entity_name.c, s.entity.c, s.vector.c
_ENDS = [(_p.first, _p.second), (_p.second, _p.first)]
_PAIRS = as_texts(select(_p.first, _p.second, _p.similarity))
_PAIRS_OF = [Lookup(select(end, other, _p.similarity), end) for end, other in _ENDS]
_is_uncompared = _n.is_compared == literal_column("0")  # a literal: for a parameter the partial index is not used
_UNCOMPARED = (
    select(_e.key)
    .join_from(s.entity_name, s.entity, _e.rid == _n.rid)
    .join(s.vector, (_v.text_hash == _n.vector_hash) & (_v.model == LIVE))
    .where(_is_uncompared)
    .order_by(_n.rid)  # the order of the index, so nothing is sorted; results do not depend on it
)
_UNCHANGED_RIDS = ByValues(
    select(_e.key, _e.rid)
    .join_from(s.entity, s.entity_name, _n.rid == _e.rid)
    .where(_n.revision <= bindparam("revision")),
    _e.key,
)
_PARTNERS = [ByValues(select(other), end) for end, other in _ENDS]
_DROP_PAIRS = [ByValues(s.synonym.delete(), end) for end, _ in _ENDS]
_EXISTING = ByValues(select(_p.first, _p.second), _p.first)
_MARK_COMPARED = ByValues(s.entity_name.update().values(is_compared=1), _n.rid)
_NAME_HASHES = ByValues(select(_n.rid, _n.vector_hash), _n.rid)
_DROP_NAMES = ByValues(s.entity_name.delete(), _n.rid)
_N_NAMES = select(func.count()).select_from(s.entity_name)


def synonym_rows(snapshot: Snapshot, entities: Ints | None = None) -> SynonymRows:
    """Return all pairs once, or those with an end among these entities, whatever the filter."""
    if entities is None:
        firsts, seconds, similarities = from_texts(snapshot.connection.execute(_PAIRS).all(), 3)
    else:
        (firsts, seconds, similarities), (ends, others, same) = (
            lookup.ints(snapshot, entities.tolist()) for lookup in _PAIRS_OF
        )
        is_new = ~np.isin(others, entities)  # otherwise it was read from its first end
        firsts = np.concatenate([firsts, others[is_new]])
        seconds = np.concatenate([seconds, ends[is_new]])
        similarities = np.concatenate([similarities, same[is_new]])
    return SynonymRows(firsts=firsts, seconds=seconds, similarities=similarities / _MILLIONTHS)


def uncompared_names(snapshot: Snapshot, limit: int | None) -> list[str]:
    """Return the keys of up to `limit` entities whose names have a vector and are not compared with others yet."""
    return list(snapshot.connection.execute(_UNCOMPARED.limit(limit)).scalars())


def synonym_counts(snapshot: Snapshot) -> DerivationCounts:
    """Count the pairs, and the names that are not compared yet."""
    n_pairs = snapshot.connection.scalar(select(func.count()).select_from(s.synonym)) or 0
    is_kept = change_log.is_derived(snapshot.connection, SYNONYMS)
    n_uncompared = snapshot.connection.scalar(_N_NAMES.where(_is_uncompared) if is_kept else _N_NAMES) or 0
    return DerivationCounts(n_items=n_pairs, n_stale=n_uncompared)


def name_counts(snapshot: Snapshot) -> DerivationCounts:
    """Count the entities with a name row, and the names without a vector."""
    if not change_log.is_derived(snapshot.connection, NAMES):
        n_entities = snapshot.connection.scalar(select(func.count()).select_from(s.entity)) or 0
        return DerivationCounts(n_items=0, n_stale=n_entities, n_texts=n_entities)
    n_texts = n_waiting(snapshot.connection, VectorSpace.NAME)
    return DerivationCounts(n_items=snapshot.connection.scalar(_N_NAMES) or 0, n_stale=n_texts, n_texts=n_texts)


def write_synonyms(connection: Connection, compared: SynonymUpdate, revision: int) -> frozenset[int]:
    """Write the pairs of a comparison, except for names that have changed since; return entities with new synonyms."""
    changed = restart_synonyms(connection, revision) if compared.reset else frozenset()
    keys = {key for pair in compared.pairs for key in (pair.first, pair.second)}.union(compared.names)
    unchanged = _UNCHANGED_RIDS.rows(connection, sorted(keys), revision=compared.revision)
    rid_by_key: dict[str, int] = dict(map(tuple, unchanged))
    similarity_by_pair = {
        _ordered(rid_by_key[pair.first], rid_by_key[pair.second]): round(pair.similarity * _MILLIONTHS)
        for pair in compared.pairs
        if pair.first in rid_by_key and pair.second in rid_by_key
    }
    firsts = sorted({first for first, _ in similarity_by_pair})
    existing = {(first, second) for first, second in _EXISTING.rows(connection, firsts)}
    new = [
        {"first": first, "second": second, "similarity": similarity}
        for (first, second), similarity in sorted(similarity_by_pair.items())
        if (first, second) not in existing
    ]
    insert_rows(connection, s.synonym, new)
    _MARK_COMPARED.run(connection, sorted(rid_by_key[key] for key in compared.names if key in rid_by_key))
    return changed | {rid for row in new for rid in (row["first"], row["second"])}


def drop_synonyms(connection: Connection, rids: Collection[int]) -> frozenset[int]:
    """Drop the pairs of gone or renamed entities; return these and their former synonyms, or nothing without pairs."""
    ordered = sorted(rids)
    partners = {rid for query in _PARTNERS for (rid,) in query.rows(connection, ordered)}
    for statement in _DROP_PAIRS:
        statement.run(connection, ordered)
    return frozenset(partners | set(rids)) if partners else frozenset()


def restart_synonyms(connection: Connection, revision: int) -> frozenset[int]:
    """Drop every pair, so that all names are compared again; return the entities that had synonyms."""
    pairs = connection.execute(select(_p.first, _p.second)).all()
    connection.execute(s.synonym.delete())
    connection.execute(s.entity_name.update().values(is_compared=0, revision=revision))
    return frozenset(rid for pair in pairs for rid in pair)


def log_synonyms(connection: Connection, backend: Backend, revision: int, rids: Collection[int]) -> None:
    """Record in the change log that these entities have other synonyms."""
    if rids:
        change_log.log_changes(connection, backend, revision, entities=rids)


def follow_names(
    connection: Connection, names: Mapping[int, str], gone: Collection[int], revision: int
) -> tuple[frozenset[int], VectorChanges]:
    """Update the name rows of these entities, given by row id, if names are kept.

    Returns the entities that had a different name row before, and the changed vectors.
    """
    vectors = VectorChanges()
    if not change_log.is_derived(connection, NAMES):
        return frozenset(), vectors
    new_hashes = {rid: vector_hash(VectorSpace.NAME, name) for rid, name in names.items()}
    old_hashes: dict[int, str] = dict(map(tuple, _NAME_HASHES.rows(connection, [*names, *gone])))
    changed = frozenset(rid for rid, text_hash in old_hashes.items() if new_hashes.get(rid) != text_hash)
    new = sorted(rid for rid, text_hash in new_hashes.items() if old_hashes.get(rid) != text_hash)
    for rid in {*changed, *new}:
        vectors.moved(VectorSpace.NAME, old_hashes.get(rid, ""), new_hashes.get(rid, ""))
    _DROP_NAMES.run(connection, sorted(changed))
    rows = [{"rid": rid, "vector_hash": new_hashes[rid], "revision": revision, "is_compared": 0} for rid in new]
    insert_rows(connection, s.entity_name, rows)
    return changed, vectors


def write_names(connection: Connection, revision: int) -> VectorChanges:
    """Give every entity a name row, when names begin to be kept or are derived again; return the changed vectors."""
    names: dict[int, str] = dict(map(tuple, connection.execute(select(_e.rid, _e.name))))
    rids = connection.execute(select(_n.rid)).scalars().all()
    _, vectors = follow_names(connection, names, [rid for rid in rids if rid not in names], revision)
    return vectors


def _ordered(first: int, second: int) -> tuple[int, int]:
    return (first, second) if first < second else (second, first)
