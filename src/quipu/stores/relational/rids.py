"""Row numbers of public ids."""

from collections.abc import Iterable

from sqlalchemy import select, tuple_

from quipu.model.ids import relation_ends
from quipu.stores.relational import schema as s
from quipu.stores.relational.lookup import Lookup
from quipu.stores.relational.snapshot import Snapshot

_e, _r = s.entity.c, s.relation.c
_ENTITY_RIDS = Lookup(select(_e.key, _e.rid), _e.key)
_RELATION_RIDS = Lookup(select(_r.rid, _r.source, _r.target), tuple_(_r.source, _r.target))


def entity_rids(snapshot: Snapshot, keys: Iterable[str]) -> dict[str, int]:
    """Return the row of each of these entities there is, by key."""
    return dict(_ENTITY_RIDS.rows(snapshot, sorted(set(keys))))


def relation_rids(snapshot: Snapshot, ids: Iterable[str]) -> dict[int, str]:
    """Return the id of each of these relations there is, by row; what is no relation id is left out."""
    ends = {relation_ends(i) for i in ids if i.count(" -- ") == 1}
    rids = entity_rids(snapshot, {key for pair in ends for key in pair})
    pairs = {(rids[a], rids[b]): f"{a} -- {b}" for a, b in ends if a in rids and b in rids}
    return {rid: pairs[source, target] for rid, source, target in _RELATION_RIDS.rows(snapshot, sorted(pairs))}
