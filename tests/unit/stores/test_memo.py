"""The memo: each thing is read once a revision and filter, and never more is kept than a bound."""

from collections.abc import Mapping

import pytest

from quipu.model.query import Filter
from quipu.stores.relational import memo
from quipu.stores.relational.memo import Memos, once, remembered


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


def test_views_of_one_revision_and_filter_share_a_memo() -> None:
    memos, some = Memos(), Filter(documents=("a",))
    assert memos.at(1, some) is memos.at(1, Filter(documents=("a",)))
    assert memos.at(1, some) is not memos.at(1, Filter(documents=("b",)))
    assert memos.at(1, some) is not memos.at(1, Filter())
    assert memos.at(1, some).of_all is memos.at(1, Filter()).of_all is not memos.at(2, some).of_all


def test_a_later_revision_begins_with_nothing_and_an_earlier_one_keeps_nothing() -> None:
    memos = Memos()
    before = memos.at(1, Filter())
    after = memos.at(2, Filter())
    assert after is not before
    assert memos.at(1, Filter()) is not before
    assert memos.at(1, Filter()) is not memos.at(1, Filter())
    assert memos.at(2, Filter()) is after


def test_of_filters_the_last_used_are_remembered_and_the_whole_index_always() -> None:
    memos = Memos()
    whole = memos.at(1, Filter())
    some = [Filter(documents=(name,)) for name in "abcde"]
    first, *others = [memos.at(1, each) for each in some[:4]]
    assert memos.at(1, some[0]) is first
    memos.at(1, some[4])
    assert memos.at(1, some[0]) is first
    assert memos.at(1, some[1]) is not others[0]
    assert memos.at(1, Filter()) is whole


def test_a_full_memo_starts_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memo, "_MAX_REMEMBERED", 2)  # a hundred thousand would take long
    source, known = _Source(), dict[int, int]()
    remembered(known, [2, 4], source.read)
    assert remembered(known, [4, 6], source.read) == {4: 16, 6: 36}
    assert known == {6: 36}
