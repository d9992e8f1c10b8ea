"""Postings: which chunks of a segment have each term, how often and at which places, and the tables that keep it.

A segment numbers its chunks from 0; a chunk's number in its segment is its slot. A slot has 16 bits, and a count has 8
where all counts of the row fit. A position has 16 bits, too: in a chunk of more than 65,536 terms they begin again at
0. So a phrase may seem to stand where it does not, but never the other way round.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import numpy as np
import numpy.typing as npt
import sqlalchemy as sa
from sqlalchemy import bindparam, select

from quipu.errors import Corrupt
from quipu.stores.relational import schema as s
from quipu.stores.relational.sql import ByValues, Ints

# `chunks`: the row number of the chunk in each slot as int64, 0 where it was removed. `lengths`: how many terms each
# has, as uint32. `n_chunks` and `n_terms` count what is there; `first` and `last` enclose the row numbers.
segment = sa.Table(
    "segment",
    s.metadata,
    sa.Column("rid", s.INTEGER, primary_key=True),
    *(sa.Column(name, s.INTEGER, nullable=False) for name in ("n_chunks", "n_terms", "first", "last")),
    *(sa.Column(name, sa.LargeBinary, nullable=False) for name in ("chunks", "lengths")),
)
# The postings of a term in a segment. SQLite reads `positions`, the longest, only where they are asked for.
posting = sa.Table(
    "posting",
    s.metadata,
    sa.Column("segment", s.INTEGER, primary_key=True),
    sa.Column("term", s.TEXT, primary_key=True),
    *(sa.Column(name, sa.LargeBinary, nullable=False) for name in ("slots", "counts", "positions")),
    sqlite_with_rowid=False,
)
TABLES = (segment, posting)

MAX_SLOTS = 1 << 16
KEY = "^"  # before a key under which a chunk is found beside its terms, and in no term
MAX_TERM = 255  # characters: the row of a longer term would not fit into a database's index

_CHUNK, _LENGTH = np.dtype("<i8"), np.dtype("<u4")
_SLOT, _COUNT, _WIDE_COUNT, _POSITION = np.dtype("<u2"), np.dtype("u1"), np.dtype("<u4"), np.dtype("<u2")
SLOT_BYTES = _SLOT.itemsize
_MAX_COUNT = 255
_POSITION_BITS = 16
_LAST_POSITION = (1 << _POSITION_BITS) - 1

_p = posting.c
ROW = (_p.term, _p.slots, _p.counts, _p.positions)
ROWS = ByValues(select(*ROW).where(_p.segment == bindparam("of")), _p.term)  # the whole rows of terms of a segment

Mask = npt.NDArray[np.bool_]
PackedRow = tuple[str, bytes, bytes, bytes]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TextSegment:
    """Some chunks, by slot: their row numbers, 0 for a removed one, and their lengths in terms, both [n_slots]."""

    rid: int
    chunks: Ints
    lengths: Ints

    @property
    def is_there(self) -> Mask:
        """Whether the chunk in each slot is still there, [n_slots]."""
        return self.chunks > 0

    def row(self) -> dict[str, Any]:
        """Return the segment as a row of its table."""
        present = self.chunks[self.is_there]
        return {
            "rid": self.rid,
            "n_chunks": len(present),
            "n_terms": int(self.lengths[self.is_there].sum()),
            "first": int(present.min()) if len(present) else 0,
            "last": int(present.max()) if len(present) else 0,
            "chunks": self.chunks.astype(_CHUNK).tobytes(),
            "lengths": self.lengths.astype(_LENGTH).tobytes(),
        }


def read_segments(rows: Iterable[Any]) -> list[TextSegment]:
    """Return the segments of rows with `rid`, `chunks` and `lengths`."""
    return [
        TextSegment(
            rid=row.rid,
            chunks=np.frombuffer(row.chunks, _CHUNK).astype(np.int64),
            lengths=np.frombuffer(row.lengths, _LENGTH).astype(np.int64),
        )
        for row in rows
    ]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Postings:
    """The posting lists of terms, one after the other, in one array for each column.

    `sizes` [n_terms] counts the postings of each term. `slots` [n_postings] rise within a term. `counts` [n_postings]
    is how often the term is in the chunk, 0 for keys, which have no positions. `positions` [sum of counts] are those of
    each posting in turn, as uint16 where they come from the database.
    """

    terms: Sequence[str]
    sizes: Ints
    slots: Ints
    counts: Ints
    positions: npt.NDArray[np.integer[Any]]

    @classmethod
    def unpacked(cls, rows: Sequence[Sequence[Any]]) -> "Postings":
        """Return the postings of rows that begin with term, slots and counts; positions are left out.

        Raises Corrupt if a row is damaged.
        """
        sizes = np.array([len(row[1]) // SLOT_BYTES for row in rows], dtype=np.int64)
        if any(len(row[1]) % SLOT_BYTES for row in rows):
            raise _damaged(rows[0][0])
        packed_counts = [row[2] for row in rows]
        if list(map(len, packed_counts)) == sizes.tolist():
            counts = np.frombuffer(b"".join(packed_counts), _COUNT).astype(np.int64)
        else:
            counts = np.concatenate([_unpacked_counts(row[0], row[2], len(row[1]) // SLOT_BYTES) for row in rows])
        slots = np.frombuffer(b"".join(row[1] for row in rows), _SLOT).astype(np.int64)
        return cls(
            terms=[row[0] for row in rows],
            sizes=sizes,
            slots=slots,
            counts=counts,
            positions=np.empty(0, dtype=np.int64),
        )

    @classmethod
    def unpacked_whole(cls, rows: Sequence[PackedRow]) -> "Postings":
        """Return the postings of rows of term, slots, counts and positions. Raises Corrupt if a row is damaged."""
        postings = cls.unpacked(rows)
        packed = b"".join(row[3] for row in rows)
        if len(packed) != _POSITION.itemsize * postings.counts.sum():
            raise _damaged(rows[0][0])
        return replace(postings, positions=np.frombuffer(packed, _POSITION))

    def packed(self) -> Iterator[PackedRow]:
        """Yield a row of term, slots, counts and positions for each term."""
        slots = self.slots.astype(_SLOT).tobytes()
        counts = self.counts.astype(_COUNT).tobytes()
        positions = np.asarray(self.positions, _POSITION).tobytes()
        ends = np.cumsum(self.sizes)
        position_ends = np.append(0, np.cumsum(self.counts))[ends]
        wide = set(np.repeat(np.arange(len(self.sizes)), self.sizes)[self.counts > _MAX_COUNT].tolist())
        start = position_start = 0
        for row, (term, end, position_end) in enumerate(
            zip(self.terms, ends.tolist(), position_ends.tolist(), strict=True)
        ):
            yield (
                term,
                slots[2 * start : 2 * end],
                self.counts[start:end].astype(_WIDE_COUNT).tobytes() if row in wide else counts[start:end],
                positions[2 * position_start : 2 * position_end],
            )
            start, position_start = end, position_end

    def reslotted(self, slots: Ints, is_kept: Mask) -> "Postings":
        """Return the postings that are kept, [n_postings], each with its new slot; a term may be left with none."""
        rows = np.repeat(np.arange(len(self.sizes)), self.sizes)
        return Postings(
            terms=self.terms,
            sizes=np.bincount(rows[is_kept], minlength=len(self.sizes)),
            slots=slots[is_kept],
            counts=self.counts[is_kept],
            positions=self.positions if is_kept.all() else self.positions[np.repeat(is_kept, self.counts)],
        )

    def joined(self) -> "Postings":
        """Return the postings with equal terms, which follow each other, as one term; terms without any go."""
        rows = [row for row, size in enumerate(self.sizes.tolist()) if size]
        firsts = [i for i, row in enumerate(rows) if not i or self.terms[row] != self.terms[rows[i - 1]]]
        sizes = self.sizes[rows]
        return Postings(
            terms=[self.terms[rows[i]] for i in firsts],
            sizes=np.add.reduceat(sizes, firsts) if firsts else sizes,
            slots=self.slots,
            counts=self.counts,
            positions=self.positions,
        )


class PostingsBuilder:
    """Collects the terms of the chunks of a new segment."""

    def __init__(self) -> None:
        self.chunks: list[int] = []
        self.lengths: list[int] = []
        self._numbers: defaultdict[str, int] = defaultdict(count().__next__)
        self._numbers_by_chunk: list[npt.NDArray[np.int32]] = []

    def add(self, rid: int, terms: Sequence[str], keys: Sequence[str]) -> None:
        """Add a chunk, by its row number, with its full-text terms and the names of its keys."""
        self.chunks.append(rid)
        self.lengths.append(len(terms))
        terms_and_keys = [*terms, *(KEY + key for key in dict.fromkeys(keys))]
        self._numbers_by_chunk.append(
            np.fromiter(map(self._numbers.__getitem__, terms_and_keys), np.int32, len(terms_and_keys))
        )

    def postings(self) -> Postings:
        """Return the postings of all chunks, ordered by term; the slot of a chunk is its place in `chunks`."""
        keys = [index_key(term) for term in self._numbers]
        terms = sorted(set(keys))
        place_by_term = {term: place for place, term in enumerate(terms)}
        sizes = np.array(list(map(len, self._numbers_by_chunk)), dtype=np.int64)
        numbers = np.concatenate(self._numbers_by_chunk) if self._numbers_by_chunk else np.empty(0, np.int32)
        rows = np.array([place_by_term[key] for key in keys], dtype=np.int64)[numbers]
        slots = np.repeat(np.arange(len(sizes)), sizes)
        positions = np.arange(len(rows)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        order = np.sort(rows << 32 | np.arange(len(rows))) & 0xFFFFFFFF  # three times as fast as a stable argsort
        rows, slots, positions = rows[order], slots[order], positions[order]
        firsts = np.flatnonzero(np.diff(rows * MAX_SLOTS + slots, prepend=-1))
        is_key = np.array([term.startswith(KEY) for term in terms], dtype=np.bool_)[rows]
        counts = np.diff(firsts, append=len(rows))
        return Postings(
            terms=terms,
            sizes=np.bincount(rows[firsts], minlength=len(terms)),
            slots=slots[firsts],
            counts=np.where(is_key[firsts], 0, counts),
            positions=positions[~is_key] & _LAST_POSITION,
        )


def index_key(term: str) -> str:
    """Return the term as the key of its rows: a very long one is cut."""
    return term[:MAX_TERM]


def places(row: PackedRow) -> Ints:
    """Return where a term stands in its segment, [sum of counts], rising: each slot and position in one number."""
    postings = Postings.unpacked_whole([row])
    return np.sort((np.repeat(postings.slots, postings.counts) << _POSITION_BITS) | postings.positions)


def phrase_slots(places_by_term: Sequence[Ints]) -> Ints:
    """Return the slots of the chunks with these terms next to each other in this order, rising."""
    lead = min(range(len(places_by_term)), key=lambda i: len(places_by_term[i]))
    starts = _moved(places_by_term[lead], -lead)
    for offset, term_places in enumerate(places_by_term):
        if offset != lead and len(starts):
            term_there = _moved(starts, offset)
            following = np.searchsorted(term_places, term_there)
            starts = starts[term_places.take(following, mode="clip") == term_there] if len(term_places) else term_places
    return np.unique(starts >> _POSITION_BITS)


def _moved(term_places: Ints, offset: int) -> Ints:
    """Return places in the same chunks, `offset` positions later."""
    return (term_places & ~_LAST_POSITION) | ((term_places + offset) & _LAST_POSITION)


def _unpacked_counts(term: str, packed: bytes, size: int) -> Ints:
    if len(packed) not in (size, size * _WIDE_COUNT.itemsize):
        raise _damaged(term)
    return np.frombuffer(packed, _COUNT if len(packed) == size else _WIDE_COUNT).astype(np.int64)


def _damaged(term: str) -> Corrupt:
    return Corrupt(
        f"Full text is damaged at or after the term {term!r}.",
        remedy="Build it again from the chunks: quipu refresh --rebuild",
    )
