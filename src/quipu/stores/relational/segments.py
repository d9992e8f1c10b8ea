"""Segments of full text: how commits keep its postings up to date.

A commit writes the postings of its new chunks as one segment, whose rows stand next to each other in the database. So
the bytes that it writes do not depend on the size of the index. When FANOUT segments are about equally large, they and
all smaller ones are merged into one; those of MAX_MERGED chunks stay. So a posting is written a few times, and a search
reads a few small segments and some large ones. What is removed leaves its rows in the same commit, so a removed word
is nowhere in full text. Source: P. O'Neil et al., The Log-Structured Merge-Tree (1996); deviation: large segments stay.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import accumulate

import numpy as np
from sqlalchemy import Connection, bindparam, func, select

from quipu.stores.relational import schema as s
from quipu.stores.relational.postings import (
    KEY,
    MAX_SLOTS,
    ROW,
    ROWS,
    SLOT_BYTES,
    TABLES,
    PackedRow,
    Postings,
    PostingsBuilder,
    TextSegment,
    index_key,
    posting,
    read_segments,
    segment,
)
from quipu.stores.relational.sql import (
    Backend,
    ByValues,
    Transaction,
    blocks,
    driver_rows,
    execute_rows,
    finish_in_thread,
    insert_rows,
    next_rid,
    read_number,
    write_meta,
)
from quipu.text.formatting import format_count

FANOUT = 16
MAX_MERGED = 4_096  # chunks: larger segments are not merged any more
_MAX_TOGETHER = 4 * MAX_MERGED  # chunks that one merge reads, so that no commit takes long
MAX_NEW = 256  # chunks in a new segment, so that a large commit needs no more memory than a small one
_N_REMOVED = "text_gone"  # meta key: how many chunks were removed since the log was last emptied
_AT_ONCE = 10**12  # more chunks than an index has
_ERASURE_SHARE = 10  # empty the log when one chunk in so many was removed
_TERMS_AT_ONCE = 2_048  # of a merge
_AFTER_ALL_TERMS = "\U0010ffff"  # follows all terms: no word has this character

_g, _p = segment.c, posting.c
_SIZES = select(_g.rid, _g.n_chunks).order_by(_g.rid)
_SEGMENTS = ByValues(select(segment), _g.rid)
_AROUND = select(segment).where(_g.last >= bindparam("low"), _g.first <= bindparam("high")).order_by(_g.rid)
_DELETE_SEGMENTS = ByValues(segment.delete(), _g.rid)
_DELETE_ROWS = ByValues(posting.delete().where(_p.segment == bindparam("of")), _p.term)
_SET_ROW = posting.update().where(_p.segment == bindparam("of"), _p.term == bindparam("key"))
_SET_ROW = _SET_ROW.values(slots=bindparam("new_slots"), counts=bindparam("new_counts"), positions=bindparam("places"))
_NEXT_TERM = select(_p.term).where(_p.segment == bindparam("of"), _p.term > bindparam("after")).order_by(_p.term)
_LAST_TERM_OF_BLOCK = _NEXT_TERM.offset(_TERMS_AT_ONCE - 1).limit(1)
_in_block = (_p.segment == bindparam("of")) & (_p.term > bindparam("after")) & (_p.term <= bindparam("last"))
_BLOCK = select(*ROW).where(_in_block)
_DELETE_BLOCK = posting.delete().where(_in_block)


def read_all(connection: Connection) -> Iterator[TextSegment]:
    """Yield all segments; one is in memory at a time."""
    for rid in connection.execute(select(_g.rid).order_by(_g.rid)).scalars().all():
        yield from read_segments(_SEGMENTS.rows(connection, [rid]))


class SegmentWriter:
    """Writes the postings of new chunks, `MAX_NEW` chunks to a segment. `finish` must be called at the end."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._builder = PostingsBuilder()

    def add(self, rid: int, terms: Sequence[str], keys: Sequence[str]) -> None:
        """Add a chunk with its full-text terms, in order, and the names of its keys."""
        self._builder.add(rid, terms, keys)
        if len(self._builder.chunks) >= MAX_NEW:
            self.finish()

    def finish(self) -> None:
        """Write the chunks added so far, and merge segments where there are too many."""
        if self._builder.chunks:
            self._write()
            _merge_where_due(self._connection)

    def _write(self) -> None:
        builder, self._builder = self._builder, PostingsBuilder()
        chunks, lengths = np.array(builder.chunks, dtype=np.int64), np.array(builder.lengths, dtype=np.int64)
        new = TextSegment(rid=next_rid(self._connection, segment), chunks=chunks, lengths=lengths)
        _insert(self._connection, new.rid, builder.postings().packed())
        insert_rows(self._connection, segment, [new.row()])


def remove(connection: Connection, terms_by_chunk: Mapping[int, Collection[str]]) -> None:
    """Remove chunks, given by row number with all terms and keys that they were added with."""
    if not terms_by_chunk:
        return
    removed = np.array(sorted(terms_by_chunk), dtype=np.int64)
    keys = sorted({index_key(term) for terms in terms_by_chunk.values() for term in terms})
    around = connection.execute(_AROUND, {"low": int(removed[0]), "high": int(removed[-1])}).all()
    for old in read_segments(around):
        is_removed = np.isin(old.chunks, removed)
        if not is_removed.any():
            continue
        new = TextSegment(rid=old.rid, chunks=np.where(is_removed, 0, old.chunks), lengths=old.lengths)
        if new.is_there.any():
            _remove_postings(connection, new, keys)
            _DELETE_SEGMENTS.run(connection, [new.rid])
            insert_rows(connection, segment, [new.row()])
        else:
            _delete(connection, [new.rid])
    _merge_where_due(connection)


def note_removed(connection: Connection, n_chunks: int, *, at_once: bool) -> None:
    """Count removed chunks: the database's log may hold earlier pages with their words.

    Emptying the log copies many pages. So it is due at once after a removal, but after updates only when a tenth of all
    chunks has changed.
    """
    if n_chunks:
        n_added = _AT_ONCE if at_once else n_chunks
        write_meta(connection, _N_REMOVED, read_number(connection, _N_REMOVED) + n_added)


def is_erasure_due(connection: Connection) -> bool:
    """Say whether the database's log should be emptied now, because it may hold removed words."""
    n_removed = read_number(connection, _N_REMOVED)
    n_chunks = select(func.count()).select_from(s.chunk)
    return n_removed > 0 and n_removed * _ERASURE_SHARE >= (connection.scalar(n_chunks) or 0)


async def empty_log(read: Transaction, write: Transaction, backend: Backend) -> None:
    """Empty the database's log; where somebody uses it, that stays due."""
    n_removed = await read(lambda connection: read_number(connection, _N_REMOVED))
    if await finish_in_thread(backend.empty_log) and n_removed:
        await write(partial(_note_erased, n_removed=n_removed))


def _note_erased(connection: Connection, n_removed: int) -> None:
    """Record that so many removed chunks have left the log; others may have been removed meanwhile."""
    write_meta(connection, _N_REMOVED, max(read_number(connection, _N_REMOVED) - n_removed, 0))


def clear(connection: Connection) -> None:
    """Remove everything from full text."""
    for table in TABLES:
        connection.execute(table.delete())


def rows_of(connection: Connection, rid: int) -> Iterator[list[PackedRow]]:
    """Yield all rows of a segment in the order of their terms, some at once."""
    after = ""
    while after != _AFTER_ALL_TERMS:
        last = connection.scalar(_LAST_TERM_OF_BLOCK, {"of": rid, "after": after}) or _AFTER_ALL_TERMS
        rows = driver_rows(connection.execute(_BLOCK, {"of": rid, "after": after, "last": last}))
        yield sorted((term, slots, counts, positions) for term, slots, counts, positions in rows)
        after = last


def _remove_postings(connection: Connection, after_removal: TextSegment, keys: Sequence[str]) -> None:
    """Delete from the rows of these terms the postings of slots whose chunks are not there any more."""
    for block in blocks(keys, _TERMS_AT_ONCE):
        rows = ROWS.tuples(connection, block, of=after_removal.rid)
        before = Postings.unpacked_whole(rows)
        after = before.reslotted(before.slots, after_removal.is_there[before.slots])
        changed = after.sizes != before.sizes
        empty = [row[0] for row, size in zip(rows, after.sizes.tolist(), strict=True) if not size]
        _DELETE_ROWS.run(connection, empty, of=after_removal.rid)
        changes = [
            {"of": after_removal.rid, "key": term, "new_slots": slots, "new_counts": counts, "places": positions}
            for (term, slots, counts, positions), is_changed in zip(after.packed(), changed.tolist(), strict=True)
            if is_changed and slots
        ]
        execute_rows(connection, _SET_ROW, changes)


def _merge_where_due(connection: Connection) -> None:
    """Merge segments until fewer than FANOUT of them have about the same size."""
    while rids := _to_merge([(rid, n_chunks) for rid, n_chunks in connection.execute(_SIZES)]):
        _merge(connection, rids)


def _to_merge(sizes: Sequence[tuple[int, int]]) -> list[int]:
    """Return the segments to merge, with all smaller ones; none if no size has FANOUT of them."""
    small = sorted((n_chunks, rid) for rid, n_chunks in sizes if n_chunks < MAX_MERGED)
    n_by_level = Counter(_level(n_chunks) for n_chunks, _ in small)
    highest = max((level for level, n in n_by_level.items() if n >= FANOUT), default=-1)
    chosen = [(n_chunks, rid) for n_chunks, rid in small if _level(n_chunks) <= highest]
    totals = accumulate(n_chunks for n_chunks, _ in chosen)
    return [rid for (_, rid), total in zip(chosen, totals, strict=True) if total <= _MAX_TOGETHER]


def _level(n_chunks: int) -> int:
    """Return how often a number can be divided by FANOUT."""
    return 0 if n_chunks < FANOUT else 1 + _level(n_chunks // FANOUT)


def _merge(connection: Connection, rids: Sequence[int]) -> None:
    """Replace segments by one with their chunks, without the slots of removed ones."""
    parts = sorted(read_segments(_SEGMENTS.rows(connection, rids)), key=lambda part: part.rid)
    is_there = np.concatenate([part.is_there for part in parts])
    new_slots = np.cumsum(is_there) - 1
    ends = np.cumsum([len(part.chunks) for part in parts])
    starts = {part.rid: int(end) - len(part.chunks) for part, end in zip(parts, ends, strict=True)}
    merged = TextSegment(
        rid=next_rid(connection, segment),
        chunks=np.concatenate([part.chunks for part in parts])[is_there],
        lengths=np.concatenate([part.lengths for part in parts])[is_there],
    )
    assert len(merged.chunks) <= MAX_SLOTS
    largest = max(parts, key=lambda part: int(part.lengths.sum())).rid
    after = ""
    while after != _AFTER_ALL_TERMS:
        last = connection.scalar(_LAST_TERM_OF_BLOCK, {"of": largest, "after": after}) or _AFTER_ALL_TERMS
        rows: list[tuple[str, int, bytes, bytes, bytes]] = []
        for rid in starts:
            block = {"of": rid, "after": after, "last": last}
            rows += [(row[0], rid, *row[1:]) for row in driver_rows(connection.execute(_BLOCK, block))]
            connection.execute(_DELETE_BLOCK, block)
        rows.sort()
        postings = Postings.unpacked_whole([(row[0], *row[2:]) for row in rows])
        row_starts = np.array([starts[row[1]] for row in rows], dtype=np.int64)
        old_slots = np.repeat(row_starts, postings.sizes) + postings.slots
        moved = postings.reslotted(new_slots[old_slots], is_there[old_slots])
        _insert(connection, merged.rid, moved.joined().packed())
        after = last
    _DELETE_SEGMENTS.run(connection, rids)
    insert_rows(connection, segment, [merged.row()])


def _insert(connection: Connection, rid: int, rows: Iterable[PackedRow]) -> None:
    named = (
        {"segment": rid, "term": term, "slots": slots, "counts": counts, "positions": positions}
        for term, slots, counts, positions in rows
    )
    insert_rows(connection, posting, named)


def _delete(connection: Connection, rids: Sequence[int]) -> None:
    connection.execute(posting.delete().where(_p.segment.in_(rids)))
    _DELETE_SEGMENTS.run(connection, rids)


def differences(connection: Connection, rid: int, builder: PostingsBuilder) -> Iterator[str]:
    """Compare the rows of a segment with those that its chunks give."""
    expected = {term: columns for term, *columns in builder.postings().packed()}
    for rows in rows_of(connection, rid):
        for term, *columns in rows:
            if (of_chunks := expected.pop(term, [b""])) != columns:
                yield _difference(term, len(of_chunks[0]), len(columns[0]))
    yield from (_difference(term, len(columns[0]), 0) for term, columns in sorted(expected.items()))


def _difference(term: str, n_bytes: int, n_bytes_stored: int) -> str:
    label = f"key {term.removeprefix(KEY)!r}" if term.startswith(KEY) else f"term {term!r}"
    if n_bytes == n_bytes_stored:
        return f"full text: {label} is indexed with other chunks, counts or positions"
    n_chunks = format_count(n_bytes // SLOT_BYTES, "chunk")
    return f"full text: {label} is in {n_chunks} of a segment, indexed in {n_bytes_stored // SLOT_BYTES:,}"


def sum_differences(connection: Connection) -> Iterator[str]:
    """Find segments whose sums differ from their chunks, and postings of no segment."""
    for row in connection.execute(select(segment).order_by(_g.rid)):
        (part,) = read_segments([row])
        if part.row() != row._asdict():
            yield f"full text: the sums of segment {row.rid} differ from its chunks"
    for rid in connection.execute(select(_p.segment).where(_p.segment.not_in(select(_g.rid))).distinct()).scalars():
        yield f"full text: there are postings of segment {rid}, which does not exist"
