"""Numbers: the rows of entities and chunks, by which arrays outside the database know them.

Under a filter, entities that no allowed chunk mentions and chunks that are not allowed have none.
"""

from collections.abc import Collection, Sequence

import numpy as np
from sqlalchemy import select

from quipu.ports.derivation_view import Ints
from quipu.stores.relational import schema as s
from quipu.stores.relational.allowed import find
from quipu.stores.relational.lookup import Lookup
from quipu.stores.relational.memo import remembered
from quipu.stores.relational.rids import entity_rids
from quipu.stores.relational.snapshot import Snapshot

_c, _e = s.chunk.c, s.entity.c
_KEYS = Lookup(select(_e.rid, _e.key), _e.rid)
_CHUNK_RIDS = Lookup(select(_c.id, _c.rid), _c.id, said_in=_c.rid)
_CHUNK_IDS = Lookup(select(_c.rid, _c.id), _c.rid, said_in=_c.rid)


def entity_numbers(snapshot: Snapshot, keys: Sequence[str]) -> dict[str, int]:
    """Return the row of each of these entities."""
    rid_by_key = entity_rids(snapshot, keys)
    allowed = set(_allowed(snapshot, sorted(rid_by_key.values())))
    return {key: rid_by_key[key] for key in dict.fromkeys(keys) if rid_by_key.get(key) in allowed}


def entity_keys(snapshot: Snapshot, rids: Sequence[int]) -> dict[int, str]:
    """Return the key of each of these rows."""
    key_by_rid: dict[int, str] = dict(_KEYS.rows(snapshot, _allowed(snapshot, sorted(set(rids)))))
    return {rid: key_by_rid[rid] for rid in dict.fromkeys(rids) if rid in key_by_rid}


def chunk_numbers(snapshot: Snapshot, ids: Sequence[str]) -> dict[str, int]:
    """Return the row of each of these chunks."""
    rid_by_id: dict[str, int] = dict(_CHUNK_RIDS.rows(snapshot, sorted(set(ids))))
    return {chunk_id: rid_by_id[chunk_id] for chunk_id in dict.fromkeys(ids) if chunk_id in rid_by_id}


def chunk_ids(snapshot: Snapshot, rids: Collection[int]) -> dict[int, str]:
    """Return the id of each of these rows."""
    memo, wanted = snapshot.memo.chunk_ids, set(rids)
    id_by_rid = remembered(memo, wanted, lambda missing: dict(_CHUNK_IDS.rows(snapshot, sorted(missing))))
    return {rid: id_by_rid[rid] for rid in dict.fromkeys(rids) if rid in id_by_rid}


def chunks_allowed(snapshot: Snapshot) -> Ints | None:
    """Return the rows of the chunks the filter allows, None where there is no filter."""
    if snapshot.allowed is None:
        return None
    return snapshot.allowed.chunks


def _allowed(snapshot: Snapshot, rids: Sequence[int]) -> list[int]:
    """Return the rows, which rise, of entities that the snapshot shows."""
    if snapshot.allowed is None:
        return list(rids)
    wanted = np.array(rids, dtype=np.int64)
    _, is_allowed = find(snapshot.allowed.entities, wanted)
    return [rid for rid, shown in zip(rids, is_allowed.tolist(), strict=True) if shown]
