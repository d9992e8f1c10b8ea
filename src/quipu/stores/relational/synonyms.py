"""Synonyms in tables: pairs of entities with much alike names, and which names have been compared with all others."""

from collections.abc import Collection, Sequence

import numpy as np
from sqlalchemy import Connection, bindparam, func, literal_column, select

from quipu.model.delta import SynonymUpdate
from quipu.model.derivation import SYNONYMS
from quipu.ports.derivation_view import DerivationCounts, Ints, SynonymRows
from quipu.stores.relational import change_log
from quipu.stores.relational import schema as s
from quipu.stores.relational.backend import Backend
from quipu.stores.relational.lookup import Lookup
from quipu.stores.relational.rids import entity_rids
from quipu.stores.relational.snapshot import Snapshot
from quipu.stores.relational.sql import ByValues, as_texts, from_texts, insert_rows

_MILLIONTHS = 1_000_000

_p, _n, _e, _v = s.synonym.c, s.entity_name.c, s.entity.c, s.vector.c
_ENDS = [(_p.first, _p.second), (_p.second, _p.first)]
_OF = [Lookup(select(one, other, _p.similarity), one) for one, other in _ENDS]
_KEYS = Lookup(select(_e.rid, _e.key), _e.rid)
_RIDS = ByValues(
    select(_e.key, _e.rid)
    .join_from(s.entity, s.entity_name, _n.rid == _e.rid)
    .where(_n.revision <= bindparam("revision")),
    _e.key,
)
_PARTNERS = [ByValues(select(other), one) for one, other in _ENDS]
_DROP = [ByValues(s.synonym.delete(), one) for one, _ in _ENDS]
_KNOWN = ByValues(select(_p.first, _p.second), _p.first)
_MARK = ByValues(s.entity_name.update().values(is_compared=1), _n.rid)
_LIVE = select(s.model.c.rid).where(s.model.c.state == "live").scalar_subquery()
_is_new = _n.is_compared == literal_column("0")  # written out, or the partial index would not be used
_TO_COMPARE = (
    select(_e.key)
    .join_from(s.entity_name, s.entity, _e.rid == _n.rid)
    .join(s.vector, (_v.text_hash == _n.vector_hash) & (_v.model == _LIVE))
    .where(_is_new)
    .order_by(_n.rid)  # as the index has them: nothing that is found hangs on the order, and none is sorted
)


def read(snapshot: Snapshot, keys: Sequence[str]) -> dict[str, list[tuple[str, float]]]:
    """Return the synonyms of each of these entities, nearest first, equally near ones by key."""
    rid_by_key = entity_rids(snapshot, keys)
    pairs = [row for lookup in _OF for row in lookup.rows(snapshot, sorted(rid_by_key.values()))]
    visible = _visible(snapshot, {rid for row in pairs for rid in row[:2]})
    key_by_rid = dict(_KEYS.rows(snapshot, sorted(visible)))
    found: dict[int, list[tuple[str, float]]] = {}
    for rid, other, similarity in pairs:
        if rid in key_by_rid and other in key_by_rid:
            found.setdefault(rid, []).append((key_by_rid[other], similarity / _MILLIONTHS))
    nearest = {rid: sorted(each, key=lambda pair: (-pair[1], pair[0])) for rid, each in found.items()}
    return {key: nearest[rid_by_key[key]] for key in keys if rid_by_key.get(key) in nearest}


def rows(snapshot: Snapshot, entities: Ints | None = None) -> SynonymRows:
    """Return all pairs, or those with an end among these entities, whatever the filter; each pair once."""
    if entities is None:
        query = as_texts(select(_p.first, _p.second, _p.similarity))
        firsts, seconds, similarities = from_texts(snapshot.connection.execute(query).all(), 3)
    else:
        (a, b, one), (d_, c, other) = (lookup.ints(snapshot, entities.tolist()) for lookup in _OF)
        is_double = np.isin(c, entities)  # found from its first end already
        firsts = np.concatenate([a, c[~is_double]])
        seconds = np.concatenate([b, d_[~is_double]])
        similarities = np.concatenate([one, other[~is_double]])
    return SynonymRows(firsts=firsts, seconds=seconds, similarities=similarities / _MILLIONTHS)


def to_compare(snapshot: Snapshot, limit: int) -> list[str]:
    """Return entities whose names have a vector and have not been compared yet."""
    return list(snapshot.connection.execute(_TO_COMPARE.limit(limit)).scalars())


def write(connection: Connection, compared: SynonymUpdate, revision: int) -> frozenset[int]:
    """Record what a comparison found, as far as the names are still those that were compared.

    Returns the entities that have other synonyms now.
    """
    changed = restart(connection, revision) if compared.anew else frozenset()
    named = {key for pair in compared.pairs for key in (pair.first, pair.second)}.union(compared.names)
    rid_by_key: dict[str, int] = dict(map(tuple, _RIDS.rows(connection, sorted(named), revision=compared.revision)))
    pairs = {
        _ordered(rid_by_key[pair.first], rid_by_key[pair.second]): round(pair.similarity * _MILLIONTHS)
        for pair in compared.pairs
        if pair.first in rid_by_key and pair.second in rid_by_key
    }
    known = {(first, second) for first, second in _KNOWN.rows(connection, sorted({first for first, _ in pairs}))}
    new = [
        {"first": first, "second": second, "similarity": similarity}
        for (first, second), similarity in sorted(pairs.items())
        if (first, second) not in known
    ]
    insert_rows(connection, s.synonym, new)
    _MARK.run(connection, sorted(rid_by_key[key] for key in compared.names if key in rid_by_key))
    return changed | {rid for row in new for rid in (row["first"], row["second"])}


def forget(connection: Connection, rids: Collection[int]) -> frozenset[int]:
    """Drop the pairs of entities that went or have another name; return who lost a synonym, these included."""
    ordered = sorted(rids)
    partners = {rid for query in _PARTNERS for (rid,) in query.rows(connection, ordered)}
    for drop in _DROP:
        drop.run(connection, ordered)
    return frozenset(partners | set(rids)) if partners else frozenset()


def restart(connection: Connection, revision: int) -> frozenset[int]:
    """Drop every pair, so that all names are compared anew; return who lost a synonym."""
    pairs = connection.execute(select(_p.first, _p.second)).all()
    connection.execute(s.synonym.delete())
    connection.execute(s.entity_name.update().values(is_compared=0, revision=revision))
    return frozenset(rid for pair in pairs for rid in pair)


def note(connection: Connection, backend: Backend, revision: int, rids: Collection[int]) -> None:
    """Note for the topology that entities have other synonyms."""
    if rids:
        change_log.log_changes(connection, backend, revision, entities=rids)


def held(snapshot: Snapshot) -> DerivationCounts:
    """Return how many pairs there are, and how many names are to be compared."""
    n_pairs = snapshot.connection.scalar(select(func.count()).select_from(s.synonym)) or 0
    n_names = select(func.count()).select_from(s.entity_name)
    is_kept = change_log.is_derived(snapshot.connection, SYNONYMS)
    n_new = snapshot.connection.scalar(n_names.where(_is_new) if is_kept else n_names) or 0
    return DerivationCounts(n_items=n_pairs, n_stale=n_new)


def _ordered(first: int, second: int) -> tuple[int, int]:
    return (first, second) if first < second else (second, first)


def _visible(snapshot: Snapshot, rids: Collection[int]) -> frozenset[int]:
    if snapshot.allowed is None:
        return frozenset(rids)
    return frozenset(np.intersect1d(snapshot.allowed.entities, np.array(sorted(rids), dtype=np.int64)).tolist())
