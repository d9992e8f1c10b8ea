"""Display names: how entities are called in a snapshot, under a filter by what the allowed chunks say alone."""

from collections import Counter
from collections.abc import Collection

from sqlalchemy import select

from quipu.model.fold import display_name
from quipu.stores.relational import schema as s
from quipu.stores.relational.lookup import Lookup
from quipu.stores.relational.snapshot import Snapshot

_e, _m = s.entity.c, s.entity_mention.c
_NAMES = Lookup(select(_e.rid, _e.key, _e.name), _e.rid)
_SURFACES = Lookup(select(_m.entity, _m.surface), _m.entity, said_in=_m.chunk)


def keys_and_names(snapshot: Snapshot, entities: Collection[int]) -> dict[int, tuple[str, str]]:
    """Return the key and the display name of each entity, by row; an allowed chunk must mention each."""
    rows = _NAMES.rows(snapshot, entities)
    if not snapshot.is_filtered:
        return {rid: (key, name) for rid, key, name in rows}
    surfaces: dict[int, Counter[str]] = {}
    for rid, surface in _SURFACES.rows(snapshot, entities):
        surfaces.setdefault(rid, Counter())[surface] += 1
    return {rid: (key, display_name(surfaces[rid])) for rid, key, _ in rows}
