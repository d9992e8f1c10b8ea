"""Names in tables: while "names" is kept, each entity has a row for the vector of its name, in step with the entity."""

from collections.abc import Collection, Mapping

from sqlalchemy import Connection, func, select

from quipu.model.derivation import NAMES
from quipu.ports.derivation_view import DerivationCounts
from quipu.ports.store import VectorSpace
from quipu.stores.relational import change_log
from quipu.stores.relational import schema as s
from quipu.stores.relational.snapshot import Snapshot
from quipu.stores.relational.sql import ByValues, insert_rows
from quipu.stores.relational.vector_writes import VectorChanges, n_waiting, vector_hash

_n = s.entity_name.c
_KEPT = ByValues(select(_n.rid, _n.vector_hash), _n.rid)
_DROP = ByValues(s.entity_name.delete(), _n.rid)


def follow(
    connection: Connection, names: Mapping[int, str], gone: Collection[int], vectors: VectorChanges, revision: int
) -> frozenset[int]:
    """Note the names entities have now, by row, and which are gone; return those that had another name, or any.

    Nothing happens where names are not kept.
    """
    if not change_log.is_derived(connection, NAMES):
        return frozenset()
    wanted = {rid: vector_hash(VectorSpace.NAME, name) for rid, name in names.items()}
    kept: dict[int, str] = dict(map(tuple, _KEPT.rows(connection, [*names, *gone])))
    changed = frozenset(rid for rid, text_hash in kept.items() if wanted.get(rid) != text_hash)
    new = sorted(rid for rid, text_hash in wanted.items() if kept.get(rid) != text_hash)
    for rid in {*changed, *new}:
        vectors.moved(VectorSpace.NAME, kept.get(rid, ""), wanted.get(rid, ""))
    _DROP.run(connection, sorted(changed))
    rows = [{"rid": rid, "vector_hash": wanted[rid], "revision": revision, "is_compared": 0} for rid in new]
    insert_rows(connection, s.entity_name, rows)
    return changed


def begin(connection: Connection, revision: int) -> VectorChanges:
    """Give every entity its row, when names begin to be kept or are made anew; return what that changes."""
    vectors = VectorChanges()
    names: dict[int, str] = dict(map(tuple, connection.execute(select(s.entity.c.rid, s.entity.c.name))))
    known = connection.execute(select(_n.rid)).scalars().all()
    follow(connection, names, [rid for rid in known if rid not in names], vectors, revision)
    return vectors


def held(snapshot: Snapshot) -> DerivationCounts:
    """Return how many entities there are, and how many names have no vector yet."""
    n_names = snapshot.connection.scalar(select(func.count()).select_from(s.entity_name)) or 0
    if not change_log.is_derived(snapshot.connection, NAMES):
        n_entities = snapshot.connection.scalar(select(func.count()).select_from(s.entity)) or 0
        return DerivationCounts(n_items=0, n_stale=n_entities, n_texts=n_entities)
    n_texts = n_waiting(snapshot.connection, VectorSpace.NAME)
    return DerivationCounts(n_items=n_names, n_stale=n_texts, n_texts=n_texts)
