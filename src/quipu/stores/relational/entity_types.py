"""Types of entities as arrays, for what sorts many entities at once by type or by name."""

import numpy as np
from sqlalchemy import func, select

from quipu.model.fold import most_common_type
from quipu.ports.derivation_view import EntityTypes
from quipu.stores.relational import schema as s
from quipu.stores.relational.filters import ALLOWED_CHUNK
from quipu.stores.relational.memo import fixed, once
from quipu.stores.relational.snapshot import Snapshot
from quipu.stores.relational.sql import as_texts, driver_rows, from_texts

_KEY = "types"

_e, _m = s.entity.c, s.entity_mention.c
_ALL = select(_e.rid).order_by(_e.key)
# A row a type: a row an entity takes three times as long.
_BY_TYPE = as_texts(select(_e.rid)).add_columns(_e.type).group_by(_e.type)
_is_allowed = _m.chunk.in_(select(ALLOWED_CHUNK.c.rid))
_ALLOWED = _ALL.where(_e.rid.in_(select(_m.entity).where(_is_allowed)))
_SAID = select(_m.entity, _m.type, func.count()).where(_is_allowed).group_by(_m.entity, _m.type)


def read(snapshot: Snapshot) -> EntityTypes:
    """Return the types of all entities the snapshot may see, in the order of their keys; read once a revision."""
    return once(snapshot.memo.types, _KEY, lambda: _worked_out(snapshot))


def _worked_out(snapshot: Snapshot) -> EntityTypes:
    found = _filtered(snapshot) if snapshot.is_filtered else _all(snapshot)
    fixed(found.numbers, found.codes)
    return found


def _all(snapshot: Snapshot) -> EntityTypes:
    numbers = [rid for (rid,) in driver_rows(snapshot.connection.execute(_ALL))]
    rids_by_type = {kind: from_texts([(rids,)], 1)[0] for rids, kind in snapshot.connection.execute(_BY_TYPE)}
    types = sorted(rids_by_type)
    codes = np.zeros(max(numbers, default=0) + 1, dtype=np.int64)
    for code, kind in enumerate(types):
        codes[rids_by_type[kind]] = code
    ordered = np.array(numbers, dtype=np.int64)
    return EntityTypes(numbers=ordered, types=tuple(types), codes=codes[ordered])


def _filtered(snapshot: Snapshot) -> EntityTypes:
    """Fold the types again from the allowed mentions."""
    said: dict[int, dict[str, int]] = {}
    for rid, kind, n in driver_rows(snapshot.connection.execute(_SAID)):
        said.setdefault(rid, {})[kind] = n
    type_by_rid = {rid: most_common_type(kinds) if len(kinds) > 1 else next(iter(kinds)) for rid, kinds in said.items()}
    types = sorted(set(type_by_rid.values()))
    code = {kind: place for place, kind in enumerate(types)}
    numbers = [rid for (rid,) in driver_rows(snapshot.connection.execute(_ALLOWED))]
    return EntityTypes(
        numbers=np.array(numbers, dtype=np.int64),
        types=tuple(types),
        codes=np.array([code[type_by_rid[rid]] for rid in numbers], dtype=np.int64),
    )
