"""Which vector each chunk has, as arrays: read whole once, then brought up to each revision by what changed since."""

import numpy as np
from sqlalchemy import bindparam, select

from quipu.stores.relational import change_log
from quipu.stores.relational import schema as s
from quipu.stores.relational.live import IS_LIVE
from quipu.stores.relational.lookup import Lookup
from quipu.stores.relational.memo import Followed, arrays_once, fixed
from quipu.stores.relational.snapshot import Snapshot
from quipu.stores.relational.sql import Ints, as_texts, from_texts, read_number, read_numbers

_KEY = "rows of chunks"

_c, _v = s.chunk.c, s.vector.c
_OWNED = select(_c.rid, _v.rid).join_from(s.vector, s.chunk, _c.vector_hash == _v.text_hash).where(IS_LIVE)
_ALL = as_texts(_OWNED)
_NEW = as_texts(_OWNED.where(_v.rid >= bindparam("row")))
_OF_CHUNKS = Lookup(_OWNED, _c.rid)


def rows_of_chunks(snapshot: Snapshot) -> tuple[Ints, Ints]:
    """Return the numbers of the chunks that have a vector, rising, and the row of each, both [n]; whatever the filter.

    Found once a revision: it is asked for whenever all chunks are scored.
    """
    numbers, rows = arrays_once(snapshot.memo.of_all, _KEY, lambda: _found(snapshot))
    return numbers, rows


def _found(snapshot: Snapshot) -> tuple[Ints, Ints]:
    """Follow what was found at an earlier revision, or read all; keep it for the next."""
    followed = snapshot.memo.followed.get(_KEY)
    found = _brought_up(snapshot, followed) if followed is not None else None
    if found is None:
        found = _read_all(snapshot)
    revision, next_row = read_numbers(snapshot.connection, "revision", "vector_row")
    seal = change_log.history_nonce(snapshot.connection, revision)
    snapshot.memo.followed[_KEY] = Followed(revision=revision, seal=seal, next_row=next_row, arrays=fixed(*found))
    return found


def _read_all(snapshot: Snapshot) -> tuple[Ints, Ints]:
    numbers, rows = from_texts(snapshot.connection.execute(_ALL).all(), 2)
    return _ordered(numbers, rows)


def _brought_up(snapshot: Snapshot, followed: Followed) -> tuple[Ints, Ints] | None:
    """Return the arrays with what changed since; None where that is not known, or was another history."""
    changed = change_log.changes_since(snapshot.connection, followed.revision)
    is_same = change_log.history_nonce(snapshot.connection, followed.revision) == followed.seal is not None
    are_same_vectors = followed.revision >= read_number(snapshot.connection, "gone_since")
    if changed is None or not is_same or not are_same_vectors:
        return None
    new_numbers, new_rows = from_texts(snapshot.connection.execute(_NEW, {"row": followed.next_row}).all(), 2)
    moved_numbers, moved_rows = _OF_CHUNKS.ints(snapshot, changed.chunks.tolist())
    numbers, rows = followed.arrays
    stays = ~np.isin(numbers, np.concatenate([changed.chunks, new_numbers]))
    found, at = np.unique(np.concatenate([new_numbers, moved_numbers]), return_index=True)
    found_rows = np.concatenate([new_rows, moved_rows])[at]
    return _ordered(np.concatenate([numbers[stays], found]), np.concatenate([rows[stays], found_rows]))


def _ordered(numbers: Ints, rows: Ints) -> tuple[Ints, Ints]:
    order = np.argsort(numbers, kind="stable")
    return numbers[order], rows[order]
