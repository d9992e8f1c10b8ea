"""Tests of batches: whole, of the right size, and in the same places when something comes or goes."""

from collections.abc import Iterator, Mapping, Sequence
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quipu.algo.batches import Batch, batch_tree
from quipu.model.ids import digest

_rows = st.lists(st.tuples(st.integers(1, 40), st.integers(0, 50)), min_size=1, max_size=60)


def _walk(batch: Batch) -> Iterator[Batch]:
    yield batch
    for part in batch.parts:
        yield from _walk(part)


@settings(deadline=None, max_examples=300, derandomize=True)
@given(_rows, st.integers(1, 60), st.integers(2, 9))
def test_every_item_is_in_one_leaf_and_no_batch_holds_too_much(
    row: list[tuple[int, int]], room: int, width: int
) -> None:
    weights, marks = [weight for weight, _ in row], [mark for _, mark in row]
    tree = batch_tree(weights, marks, room=room, width=width)
    leaves = [batch for batch in _walk(tree) if not batch.parts]
    assert [at for leaf in leaves for at in range(leaf.start, leaf.end)] == list(range(len(row)))
    assert all(sum(weights[leaf.start : leaf.end]) <= room or leaf.end - leaf.start == 1 for leaf in leaves)
    for batch in _walk(tree):
        if batch.parts:
            assert 2 <= len(batch.parts) <= width
            assert (batch.start, batch.end) == (batch.parts[0].start, batch.parts[-1].end)


def test_what_fits_one_batch_is_one() -> None:
    assert batch_tree([3, 4, 3], [1, 2, 3], room=10, width=2) == Batch(0, 3)


def test_the_cut_is_before_the_lowest_mark_that_leaves_enough_on_either_side() -> None:
    tree = batch_tree([1] * 12, [9, 0, 9, 9, 5, 9, 3, 9, 9, 9, 9, 1], room=8, width=2)
    assert tree == Batch(0, 12, (Batch(0, 6), Batch(6, 12)))


def test_equal_marks_are_cut_at_the_first() -> None:
    assert batch_tree([1] * 8, [7] * 8, room=4, width=4).parts[0] == Batch(0, 1)


def _batches(items: Sequence[str], weights: Mapping[str, int]) -> set[tuple[bool, tuple[str, ...]]]:
    marks = [int(digest(item)[:12], 16) for item in items]
    tree = batch_tree([weights[item] for item in items], marks, room=2_000, width=8)
    return {(not batch.parts, tuple(items[batch.start : batch.end])) for batch in _walk(tree)}


@pytest.mark.parametrize("n", [200, 2_000])
def test_an_item_more_or_less_changes_about_one_leaf_and_what_is_above_it(n: int) -> None:
    random = Random(n)
    names = [digest(f"{i}") for i in range(n + 40)]
    weights = {name: random.randint(10, 90) for name in names}
    row = sorted(names[:n])
    before = _batches(row, weights)
    leaves: list[int] = []
    batches: list[int] = []
    for name in [*names[n:], *random.sample(row, 40)]:
        after = _batches(sorted({*row} ^ {name}), weights)
        leaves.append(sum(is_leaf for is_leaf, _ in after - before))
        batches.append(len(after - before))
    n_leaves = sum(is_leaf for is_leaf, _ in before)
    assert n_leaves >= n // 40
    assert sum(leaves) / len(leaves) <= 1.3
    assert max(batches) <= 8
    assert min(leaves) >= 1
