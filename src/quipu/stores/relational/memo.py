"""Memo: what was looked up at one revision of an index, which never changes; so that a server reads it once."""

import threading
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from quipu.model.cluster import Cluster, Hierarchy
from quipu.model.query import Filter
from quipu.ports.derived import EntityTypes
from quipu.ports.store import Space
from quipu.stores.relational.columns import Ints

K = TypeVar("K")
V = TypeVar("V")

_MAX_REMEMBERED = 100_000  # of each kind: at most some 20 MB
_MAX_FILTERS = 4  # of which anything is remembered: those of late


@dataclass(frozen=True, slots=True)
class Memo:
    """Ids of chunks by row, rows of vectors by id, owners of vectors by row, arrays by what they are, and so on.

    All of it as one filter lets the index be seen, but for `of_all`, which all filters share; clusters are without
    their members.
    """

    of_all: dict[str, tuple[Ints, ...]] = field(default_factory=dict)
    chunk_ids: dict[int, str] = field(default_factory=dict)
    vector_rows: Mapping[Space, dict[str, int]] = field(default_factory=lambda: {space: {} for space in Space})
    arrays: dict[str, tuple[Ints, ...]] = field(default_factory=dict)
    types: dict[str, EntityTypes] = field(default_factory=dict)
    clusters: dict[Hierarchy, list[Cluster]] = field(default_factory=dict)
    owners: Mapping[Space, dict[int, tuple[str, ...]]] = field(default_factory=lambda: {space: {} for space in Space})


class Memos:
    """The memos of the newest revision that was seen: that of the whole index, and those of the filters of late."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # views open in threads
        self._revision = -1
        self._of_all: dict[str, tuple[Ints, ...]] = {}
        self._by_filter: dict[Filter, Memo] = {}

    def at(self, revision: int, allowed: Filter) -> Memo:
        """Return what is remembered of a revision under a filter; of an older one than the newest nothing is."""
        with self._lock:
            if revision < self._revision:
                return Memo()
            if revision > self._revision:
                self._revision, self._of_all, self._by_filter = revision, {}, {}
            memo = self._by_filter.pop(allowed, None) or Memo(of_all=self._of_all)
            self._by_filter[allowed] = memo  # behind all that were used before
            filters = [each for each in self._by_filter if not each.is_empty()]
            for each in filters[:-_MAX_FILTERS]:
                del self._by_filter[each]
            return memo


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
