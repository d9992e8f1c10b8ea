"""Memo: what was looked up at one revision of an index, which never changes; so that a server reads it once."""

import threading
from collections.abc import Callable, Collection, Mapping, Sized
from dataclasses import dataclass, field
from itertools import accumulate, chain
from typing import TypeVar

from quipu.model.cluster import Cluster, ClusterCount, Hierarchy
from quipu.model.query import Filter
from quipu.ports.derivation_view import EntityTypes
from quipu.ports.store import VectorSpace
from quipu.stores.relational.sql import Ints

K = TypeVar("K")
V = TypeVar("V")

_MAX_REMEMBERED = 100_000  # ids of each kind in a memo, which has 13 of them
_BYTES_EACH = 200  # that an id takes with what it is found by, measured: 260 MB of ids at most in a memo
_MAX_FILTERS = 4  # of which anything is remembered: those of late
_MAX_BYTES = 256_000_000  # of all these filters together


@dataclass(frozen=True, slots=True, kw_only=True)
class Followed:
    """Arrays of the whole index as of a revision, with its seal, and the row the next vector was to have then."""

    revision: int
    seal: int | None
    next_row: int
    arrays: tuple[Ints, ...]


@dataclass(frozen=True, slots=True)
class Memo:
    """Ids of chunks by row, rows of vectors by id, owners of vectors by row, arrays by what they are, and so on.

    All of it as one filter lets the index be seen, but for `of_all`, which all filters share, and `followed`, which is
    of an earlier revision until it is brought up to a later one; clusters are without their members.
    """

    of_all: dict[str, tuple[Ints, ...]] = field(default_factory=dict)
    followed: dict[str, Followed] = field(default_factory=dict)
    chunk_ids: dict[int, str] = field(default_factory=dict)
    vector_rows: Mapping[VectorSpace, dict[str, int]] = field(
        default_factory=lambda: {space: {} for space in VectorSpace}
    )
    arrays: dict[str, tuple[Ints, ...]] = field(default_factory=dict)
    types: dict[str, EntityTypes] = field(default_factory=dict)
    clusters: dict[Hierarchy, list[Cluster]] = field(default_factory=dict)
    cluster_counts: dict[Hierarchy, list[ClusterCount]] = field(default_factory=dict)
    owners: Mapping[VectorSpace, dict[int, tuple[str, ...]]] = field(
        default_factory=lambda: {space: {} for space in VectorSpace}
    )

    def n_bytes(self) -> int:
        """Return about how much memory it takes, without what filters share."""
        types = self.types.copy().values()  # copies: other threads may add meanwhile
        arrays = chain(*self.arrays.copy().values(), *((each.numbers, each.codes) for each in types))
        ids: list[Sized] = [self.chunk_ids, *self.vector_rows.values(), *self.owners.values()]
        n_kept = sum(map(len, [*ids, *self.clusters.copy().values()]))
        return sum(array.nbytes for array in arrays) + _BYTES_EACH * n_kept


class Memos:
    """The memos of the newest revision that was seen: that of the whole index, and those of the filters of late.

    Of filters the one asked with last is kept whatever it takes, and of others what fits `_MAX_BYTES` with it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()  # views open in threads
        self._revision = -1
        self._seal: int | None = None
        self._of_all: dict[str, tuple[Ints, ...]] = {}
        self._followed: dict[str, Followed] = {}
        self._by_filter: dict[Filter, Memo] = {}

    def at(self, revision: int, seal: int | None, allowed: Filter) -> Memo:
        """Return what is remembered of a revision under a filter; of an older one than the newest nothing is.

        Nor is anything of the same revision of another history, as of a backup: its seal is another.
        """
        with self._lock:
            if revision < self._revision:
                return Memo()
            if (revision, seal) != (self._revision, self._seal):
                self._revision, self._seal, self._of_all, self._by_filter = revision, seal, {}, {}
            memo = self._by_filter.pop(allowed, None) or Memo(of_all=self._of_all, followed=self._followed)
            self._by_filter[allowed] = memo  # behind all that were used before
            self._forget()
            return memo

    def _forget(self) -> None:
        filters = [each for each in reversed(self._by_filter) if not each.is_empty()]
        sums = accumulate(self._by_filter[each].n_bytes() for each in filters)
        for n_later, (each, n_bytes) in enumerate(zip(filters, list(sums), strict=True)):
            if n_later >= _MAX_FILTERS or (n_later and n_bytes > _MAX_BYTES):
                del self._by_filter[each]


def fixed(*arrays: Ints) -> tuple[Ints, ...]:
    """Return arrays as they are, which can no longer be written into: many views share them."""
    for array in arrays:
        array.setflags(write=False)
    return arrays


def arrays_once(memo: dict[str, tuple[Ints, ...]], key: str, read: Callable[[], tuple[Ints, ...]]) -> tuple[Ints, ...]:
    """Return the arrays at a key, which are read where they are not remembered yet, and cannot be written into."""
    return once(memo, key, lambda: fixed(*read()))


def once(memo: dict[K, V], key: K, read: Callable[[], V]) -> V:
    """Return the value at a key, which is read where it is not remembered yet."""
    return remembered(memo, [key], lambda _: {key: read()})[key]


def remembered(memo: dict[K, V], wanted: Collection[K], read: Callable[[list[K]], Mapping[K, V]]) -> dict[K, V]:
    """Return the values of the keys there are; what the memo does not hold is read and remembered."""
    found: dict[K, V] = {}
    missing: list[K] = []
    for key in wanted:  # each key is looked at once: other threads may empty the memo meanwhile
        value = memo.get(key)
        if value is None:
            missing.append(key)
        else:
            found[key] = value
    if missing:
        new = read(missing)
        if len(memo) + len(new) > _MAX_REMEMBERED:
            memo.clear()
        if len(new) <= _MAX_REMEMBERED:
            memo.update(new)
        found.update(new)
    return found
