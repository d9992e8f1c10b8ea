"""Types of entities as arrays, for what sorts many entities at once by type or by name."""

from collections import Counter

import numpy as np
from sqlalchemy import func, select

from quipu.model.fold import voted_type
from quipu.ports.derived import EntityTypes
from quipu.stores.relational import schema as s
from quipu.stores.relational.filters import is_allowed
from quipu.stores.relational.memo import remembered
from quipu.stores.relational.snapshot import Snapshot
from quipu.stores.relational.sql import driver_rows

_KEY = "types"

_e, _m = s.entity.c, s.entity_mention.c
_ALL = select(_e.rid, _e.type).order_by(_e.key)
_SAID = (
    select(_e.rid, _m.type, func.count())
    .join_from(s.entity_mention, s.entity, _e.rid == _m.entity)
    .where(is_allowed(_m.chunk))
    .group_by(_e.key, _e.rid, _m.type)
    .order_by(_e.key, _m.type)
)


def read(snapshot: Snapshot) -> EntityTypes:
    """Return the types of all entities the snapshot may see, in the order of their keys; read once a revision."""
    if snapshot.is_filtered:
        return _filtered(snapshot)
    memo = snapshot.memo.types if snapshot.memo is not None else None
    return remembered(memo, [_KEY], lambda _: {_KEY: _all(snapshot)})[_KEY]


def _all(snapshot: Snapshot) -> EntityTypes:
    return _arranged(driver_rows(snapshot.connection.execute(_ALL)))


def _filtered(snapshot: Snapshot) -> EntityTypes:
    """Fold the types again from the allowed mentions."""
    said: dict[int, Counter[str]] = {}
    for rid, kind, n in driver_rows(snapshot.connection.execute(_SAID)):
        said.setdefault(rid, Counter())[kind] += n
    return _arranged([(rid, voted_type(kinds)) for rid, kinds in said.items()])


def _arranged(rows: list[tuple[int, str]]) -> EntityTypes:
    types = sorted({kind for _, kind in rows})
    code = {kind: place for place, kind in enumerate(types)}
    return EntityTypes(
        numbers=np.array([rid for rid, _ in rows], dtype=np.int64),
        types=tuple(types),
        codes=np.array([code[kind] for _, kind in rows], dtype=np.int64),
    )
