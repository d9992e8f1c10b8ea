"""The memo: each thing is read once a revision and filter, and never more is kept than a bound."""

from collections.abc import Mapping

import numpy as np
import pytest

from quipu.model.cluster import Cluster, Hierarchy
from quipu.model.query import Filter
from quipu.ports.derivation_view import EntityTypes
from quipu.ports.store import VectorSpace
from quipu.stores.relational import memo
from quipu.stores.relational.memo import Memo, Memos, arrays_once, once, remembered
from quipu.stores.relational.sql import Ints


class _Source:
    """Reads squares of even numbers, and notes what it was asked."""

    def __init__(self) -> None:
        self.asked: list[list[int]] = []

    def read(self, keys: list[int]) -> Mapping[int, int]:
        self.asked.append(sorted(keys))
        return {key: key * key for key in keys if key % 2 == 0}


def test_only_what_is_not_known_is_read() -> None:
    source, known = _Source(), dict[int, int]()
    assert remembered(known, [2, 4], source.read) == {2: 4, 4: 16}
    assert remembered(known, [4, 6], source.read) == {4: 16, 6: 36}
    assert remembered(known, [6, 2], source.read) == {2: 4, 6: 36}
    assert source.asked == [[2, 4], [6]]


def test_what_is_not_there_is_left_out() -> None:
    source, known = _Source(), dict[int, int]()
    assert remembered(known, [1, 2], source.read) == {2: 4}
    assert remembered(known, [1], source.read) == {}


def test_what_is_worked_out_once_is_not_worked_out_again() -> None:
    known = dict[str, int]()
    assert once(known, "answer", lambda: 42) == 42
    assert once(known, "answer", lambda: 43) == 42


def test_arrays_that_are_shared_cannot_be_written_into() -> None:
    known = dict[str, tuple[Ints, ...]]()
    arrays = arrays_once(known, "some", lambda: (np.arange(3), np.arange(3)[1:]))
    assert arrays is arrays_once(known, "some", lambda: ())
    for array in arrays:
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 7


def test_views_of_one_revision_and_filter_share_a_memo() -> None:
    memos, some = Memos(), Filter(documents=("a",))
    assert memos.at(1, 7, some) is memos.at(1, 7, Filter(documents=("a",)))
    assert memos.at(1, 7, some) is not memos.at(1, 7, Filter(documents=("b",)))
    assert memos.at(1, 7, some) is not memos.at(1, 7, Filter())
    assert memos.at(1, 7, some).of_all is memos.at(1, 7, Filter()).of_all is not memos.at(2, 7, some).of_all


def test_a_later_revision_begins_with_nothing_and_an_earlier_one_keeps_nothing() -> None:
    memos = Memos()
    before = memos.at(1, 7, Filter())
    after = memos.at(2, 7, Filter())
    assert after is not before
    assert memos.at(1, 7, Filter()) is not before
    assert memos.at(1, 7, Filter()) is not memos.at(1, 7, Filter())
    assert memos.at(2, 7, Filter()) is after


def test_of_another_history_nothing_is_remembered() -> None:
    memos = Memos()
    before = memos.at(1, 7, Filter())
    other = memos.at(1, 8, Filter())
    assert other is not before
    assert other.of_all is not before.of_all
    assert memos.at(1, 8, Filter()) is other
    assert memos.at(1, None, Filter()) is not other


def test_of_filters_the_last_used_are_remembered_and_the_whole_index_always() -> None:
    memos = Memos()
    whole = memos.at(1, 7, Filter())
    some = [Filter(documents=(name,)) for name in "abcde"]
    first, *others = [memos.at(1, 7, each) for each in some[:4]]
    assert memos.at(1, 7, some[0]) is first
    memos.at(1, 7, some[4])
    assert memos.at(1, 7, some[0]) is first
    assert memos.at(1, 7, some[1]) is not others[0]
    assert memos.at(1, 7, Filter()) is whole


def test_filters_of_which_too_much_is_remembered_are_forgotten_but_for_the_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(memo, "_MAX_BYTES", 2_000)  # 256 MB would take long
    memos, some = Memos(), [Filter(documents=(name,)) for name in "abc"]
    whole = memos.at(1, 7, Filter())
    whole.arrays["large"] = (np.zeros(10_000, dtype=np.int64),)
    first, second = memos.at(1, 7, some[0]), memos.at(1, 7, some[1])
    first.arrays["half"] = second.arrays["half"] = (np.zeros(125, dtype=np.int64),)
    assert memos.at(1, 7, some[0]) is first
    assert memos.at(1, 7, some[1]) is second
    second.arrays["more"] = (np.zeros(1, dtype=np.int64),)
    assert memos.at(1, 7, some[1]) is second
    assert memos.at(1, 7, some[0]) is not first
    second.arrays["much more"] = (np.zeros(1_000, dtype=np.int64),)
    assert memos.at(1, 7, some[1]) is second
    memos.at(1, 7, some[2])
    assert memos.at(1, 7, some[1]) is not second
    assert memos.at(1, 7, Filter()) is whole


def test_all_that_is_remembered_under_a_filter_is_counted() -> None:
    empty, array = Memo(), np.zeros(10, dtype=np.int64)
    assert empty.n_bytes() == 0
    one_id = Memo(chunk_ids={1: "a"}).n_bytes()
    assert one_id >= 100
    assert Memo(arrays={"some": (array, array)}).n_bytes() == 160
    assert Memo(types={"types": EntityTypes(numbers=array, types=("person",), codes=array)}).n_bytes() == 160
    cluster = Cluster(id="c", hierarchy=Hierarchy.COMMUNITIES, level=0)
    assert Memo(clusters={Hierarchy.COMMUNITIES: [cluster, cluster]}).n_bytes() == 2 * one_id
    for space in VectorSpace:
        known = Memo()
        known.vector_rows[space]["a"] = 1
        known.owners[space][1] = ("a",)
        assert known.n_bytes() == 2 * one_id


def test_a_full_memo_starts_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memo, "_MAX_REMEMBERED", 2)  # a hundred thousand would take long
    source, known = _Source(), dict[int, int]()
    remembered(known, [2, 4], source.read)
    assert remembered(known, [4, 6], source.read) == {4: 16, 6: 36}
    assert known == {6: 36}
