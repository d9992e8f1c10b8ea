"""The memo: each thing is read once a revision, and never more is kept than a bound."""

from collections.abc import Mapping

import pytest

from quipu.stores.relational import memo
from quipu.stores.relational.memo import remembered


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


def test_without_a_memo_everything_is_read() -> None:
    source = _Source()
    assert remembered(None, [2], source.read) == remembered(None, [2], source.read) == {2: 4}
    assert source.asked == [[2], [2]]


def test_a_full_memo_starts_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memo, "_MAX_REMEMBERED", 2)  # a hundred thousand would take long
    source, known = _Source(), dict[int, int]()
    remembered(known, [2, 4], source.read)
    assert remembered(known, [4, 6], source.read) == {4: 16, 6: 36}
    assert known == {6: 36}
