"""The cache of snapshots: each value is read once for a revision and filter, and the cache stays within its limits."""

from collections.abc import Mapping

import numpy as np
import pytest

from quipu.model.cluster import Cluster, Hierarchy
from quipu.model.query import Filter
from quipu.ports.derivation_view import EntityTypes
from quipu.ports.store import VectorSpace
from quipu.stores.relational import snapshot
from quipu.stores.relational.snapshot import (
    SnapshotCache,
    SnapshotCaches,
    cached_arrays,
    cached_value,
    cached_values,
)
from quipu.stores.relational.sql import Ints


class _Source:
    """Reads squares of even numbers, and notes what it was asked."""

    def __init__(self) -> None:
        self.requests: list[list[int]] = []

    def read(self, keys: list[int]) -> Mapping[int, int]:
        self.requests.append(sorted(keys))
        return {key: key * key for key in keys if key % 2 == 0}


def test_only_keys_that_are_not_cached_are_read() -> None:
    source, cached = _Source(), dict[int, int]()
    assert cached_values(cached, [2, 4], source.read) == {2: 4, 4: 16}
    assert cached_values(cached, [4, 6], source.read) == {4: 16, 6: 36}
    assert cached_values(cached, [6, 2], source.read) == {2: 4, 6: 36}
    assert source.requests == [[2, 4], [6]]


def test_keys_without_a_value_are_left_out() -> None:
    source, cached = _Source(), dict[int, int]()
    assert cached_values(cached, [1, 2], source.read) == {2: 4}
    assert cached_values(cached, [1], source.read) == {}


def test_a_cached_value_is_not_computed_again() -> None:
    cached = dict[str, int]()
    assert cached_value(cached, "answer", lambda: 42) == 42
    assert cached_value(cached, "answer", lambda: 43) == 42


def test_cached_arrays_are_read_only() -> None:
    cached = dict[str, tuple[Ints, ...]]()
    arrays = cached_arrays(cached, "some", lambda: (np.arange(3), np.arange(3)[1:]))
    assert arrays is cached_arrays(cached, "some", lambda: ())
    for array in arrays:
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 7


def test_views_of_one_revision_and_filter_share_a_cache() -> None:
    caches, some = SnapshotCaches(), Filter(documents=("a",))
    assert caches.at(1, 7, some) is caches.at(1, 7, Filter(documents=("a",)))
    assert caches.at(1, 7, some) is not caches.at(1, 7, Filter(documents=("b",)))
    assert caches.at(1, 7, some) is not caches.at(1, 7, Filter())
    assert (
        caches.at(1, 7, some).unfiltered is caches.at(1, 7, Filter()).unfiltered is not caches.at(2, 7, some).unfiltered
    )


def test_a_later_revision_begins_with_nothing_and_an_earlier_one_keeps_nothing() -> None:
    caches = SnapshotCaches()
    before = caches.at(1, 7, Filter())
    after = caches.at(2, 7, Filter())
    assert after is not before
    assert caches.at(1, 7, Filter()) is not before
    assert caches.at(1, 7, Filter()) is not caches.at(1, 7, Filter())
    assert caches.at(2, 7, Filter()) is after


def test_another_history_has_an_empty_cache() -> None:
    caches = SnapshotCaches()
    before = caches.at(1, 7, Filter())
    other = caches.at(1, 8, Filter())
    assert other is not before
    assert other.unfiltered is not before.unfiltered
    assert caches.at(1, 8, Filter()) is other
    assert caches.at(1, None, Filter()) is not other


def test_the_last_used_filters_stay_cached_and_the_whole_index_always() -> None:
    caches = SnapshotCaches()
    whole = caches.at(1, 7, Filter())
    some = [Filter(documents=(name,)) for name in "abcde"]
    first, *others = [caches.at(1, 7, each) for each in some[:4]]
    assert caches.at(1, 7, some[0]) is first
    caches.at(1, 7, some[4])
    assert caches.at(1, 7, some[0]) is first
    assert caches.at(1, 7, some[1]) is not others[0]
    assert caches.at(1, 7, Filter()) is whole


def test_filters_over_the_memory_limit_are_dropped_except_the_last_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(snapshot, "_MAX_BYTES", 2_000)  # 256 MB would take long
    caches, some = SnapshotCaches(), [Filter(documents=(name,)) for name in "abc"]
    whole = caches.at(1, 7, Filter())
    whole.arrays["large"] = (np.zeros(10_000, dtype=np.int64),)
    first, second = caches.at(1, 7, some[0]), caches.at(1, 7, some[1])
    first.arrays["half"] = second.arrays["half"] = (np.zeros(125, dtype=np.int64),)
    assert caches.at(1, 7, some[0]) is first
    assert caches.at(1, 7, some[1]) is second
    second.arrays["more"] = (np.zeros(1, dtype=np.int64),)
    assert caches.at(1, 7, some[1]) is second
    assert caches.at(1, 7, some[0]) is not first
    second.arrays["much more"] = (np.zeros(1_000, dtype=np.int64),)
    assert caches.at(1, 7, some[1]) is second
    caches.at(1, 7, some[2])
    assert caches.at(1, 7, some[1]) is not second
    assert caches.at(1, 7, Filter()) is whole


def test_all_cached_values_of_a_filter_count_towards_its_size() -> None:
    empty, array = SnapshotCache(), np.zeros(10, dtype=np.int64)
    assert empty.n_bytes() == 0
    one_id = SnapshotCache(chunk_ids={1: "a"}).n_bytes()
    assert one_id >= 100
    assert SnapshotCache(arrays={"some": (array, array)}).n_bytes() == 160
    assert SnapshotCache(types={"types": EntityTypes(numbers=array, types=("person",), codes=array)}).n_bytes() == 160
    cluster = Cluster(id="c", hierarchy=Hierarchy.COMMUNITIES, level=0)
    assert SnapshotCache(clusters={Hierarchy.COMMUNITIES: [cluster, cluster]}).n_bytes() == 2 * one_id
    for space in VectorSpace:
        cached = SnapshotCache()
        cached.vector_rows[space]["a"] = 1
        cached.owners[space][1] = ("a",)
        assert cached.n_bytes() == 2 * one_id


def test_a_full_cache_starts_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot, "_MAX_CACHED_IDS", 2)  # a hundred thousand would take long
    source, cached = _Source(), dict[int, int]()
    cached_values(cached, [2, 4], source.read)
    assert cached_values(cached, [4, 6], source.read) == {4: 16, 6: 36}
    assert cached == {6: 36}
