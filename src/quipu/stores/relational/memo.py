"""Memo: what was looked up at one revision of an index, which never changes; so that a server reads it once."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from quipu.ports.derived import EntityTypes
from quipu.ports.store import Space
from quipu.stores.relational.columns import Ints

K = TypeVar("K")
V = TypeVar("V")

_MAX_REMEMBERED = 100_000  # of each kind: at most some 20 MB


@dataclass(frozen=True, slots=True)
class Memo:
    """Ids of chunks by row, rows of their vectors by id, owners of vectors by row, arrays by what they are.

    All of it of the unfiltered index.
    """

    revision: int
    chunk_ids: dict[int, str] = field(default_factory=dict)
    chunk_vectors: dict[str, int] = field(default_factory=dict)
    arrays: dict[str, tuple[Ints, Ints]] = field(default_factory=dict)
    types: dict[str, EntityTypes] = field(default_factory=dict)
    owners: Mapping[Space, dict[int, tuple[str, ...]]] = field(default_factory=lambda: {space: {} for space in Space})


def remembered(memo: dict[K, V] | None, wanted: Collection[K], read: Callable[[list[K]], Mapping[K, V]]) -> dict[K, V]:
    """Return the values of the keys there are; what the memo does not hold is read and remembered."""
    if memo is None:
        return dict(read(list(wanted)))
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
