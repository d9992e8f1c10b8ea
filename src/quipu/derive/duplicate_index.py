"""The names of an index by the forms that make them alike, so that a change of a few names costs little.

Each name has forms, such as its words in the singular. Two names meet where they share a form, and the rule of that
form then compares them. Forms are kept as sorted hashes: a hundred thousand names take some tens of megabytes.
"""

from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

from quipu.derive.duplicates import RULES, ComparedName, Likeness, may_be_one

Pair = tuple[int, int]
Ints = npt.NDArray[np.int64]

# A posting is a hash with the number of its rule and, in the lowest bit, whether the name is a long one in that rule.
_RULE_BITS, _HASH_MASK = 3, (1 << 62) - 16


class DuplicateIndex:
    """Pairs of names that are alike, by the numbers of their entities; kept up to date as names come and go."""

    def __init__(self, key_by_number: Mapping[int, str]) -> None:
        self._key_by_number = dict(key_by_number)
        self._number_by_key = {key: number for number, key in key_by_number.items()}
        self._likeness_by_pair: dict[Pair, Likeness] = {}
        self._pairs_by_bound: dict[float, set[Pair]] = {}
        self._partners: dict[int, set[int]] = {}
        names = {number: ComparedName(key) for number, key in key_by_number.items()}
        postings = [(posting, number) for number, name in names.items() for posting in _postings(name)]
        table = np.array(postings, dtype=np.int64).reshape(-1, 2)
        order = np.argsort(table[:, 0], kind="stable")
        self._postings, self._owners = table[order, 0].copy(), table[order, 1].copy()
        for start, end in _runs(self._postings >> 1):
            self._compare(start, end, names)

    @property
    def likeness_by_pair(self) -> Mapping[Pair, Likeness]:
        """How alike the names of two entities are, by their numbers, the smaller first."""
        return self._likeness_by_pair

    def most_alike(self) -> Iterator[tuple[Pair, Likeness]]:
        """Yield the pairs by the greatest certainty that they may have, then by numbers."""
        for bound in sorted(self._pairs_by_bound, reverse=True):
            for pair in sorted(self._pairs_by_bound[bound]):
                yield pair, self._likeness_by_pair[pair]

    @property
    def key_by_number(self) -> Mapping[int, str]:
        """The keys of all entities."""
        return self._key_by_number

    def number(self, key: str) -> int | None:
        """Return the number of an entity, None if there is no such key."""
        return self._number_by_key.get(key)

    def may_be_one(self, first: int, second: int) -> bool:
        """Return whether two names could stand for one thing: both exist, with equal numbers and no other titles."""
        names = [ComparedName(self._key_by_number[n]) for n in (first, second) if n in self._key_by_number]
        return len(names) == 2 and may_be_one(*names)

    def partners(self, number: int) -> AbstractSet[int]:
        """Return the entities whose names are like that of an entity."""
        return self._partners.get(number, frozenset())

    def update(self, changed: Iterable[int], key_by_number: Mapping[int, str]) -> None:
        """Give changed entities their new keys; those that have none are gone."""
        changed = [number for number in changed if self._key_by_number.get(number) != key_by_number.get(number)]
        new = {number: key_by_number[number] for number in changed if number in key_by_number}
        groups = _groups([*new.values(), *(self._key_by_number[n] for n in changed if n in self._key_by_number)])
        before = {group: self._sizes(group) for group in groups}
        self._remove(changed)
        self._insert(new)
        affected = {*changed}
        for group in groups:
            if _depends_on_size(group, before[group], self._sizes(group)):
                affected.update(self._owners[slice(*self._range(group))].tolist())
        for number in affected:
            for partner in self._partners.pop(number, ()):
                self._forget((min(number, partner), max(number, partner)))
                self._partners[partner].discard(number)
        names: dict[int, ComparedName] = {}
        for group in sorted(_groups(self._key_by_number[n] for n in affected if n in self._key_by_number)):
            self._compare(*self._range(group), names, affected)

    def _range(self, group: int) -> tuple[int, int]:
        start, end = np.searchsorted(self._postings, [group << 1, (group + 1) << 1])
        return int(start), int(end)

    def _sizes(self, group: int) -> tuple[int, int]:
        """Return how many names meet in a group: the short ones, or all, and the long ones."""
        start, middle, end = np.searchsorted(self._postings, [group << 1, group << 1 | 1, (group + 1) << 1])
        return int(middle - start), int(end - middle)

    def _remove(self, numbers: Iterable[int]) -> None:
        places: list[int] = []
        for number in numbers:
            key = self._key_by_number.pop(number, None)
            if key is not None:
                del self._number_by_key[key]
                for posting in _postings(ComparedName(key)):
                    start, end = np.searchsorted(self._postings, [posting, posting + 1])
                    places += (start + np.flatnonzero(self._owners[start:end] == number)).tolist()
        self._postings, self._owners = np.delete(self._postings, places), np.delete(self._owners, places)

    def _insert(self, key_by_number: Mapping[int, str]) -> None:
        self._key_by_number |= key_by_number
        self._number_by_key |= {key: number for number, key in key_by_number.items()}
        rows = [(posting, n) for n, key in key_by_number.items() for posting in _postings(ComparedName(key))]
        if rows:
            table = np.array(sorted(rows), dtype=np.int64)
            places = np.searchsorted(self._postings, table[:, 0])
            self._postings = np.insert(self._postings, places, table[:, 0])
            self._owners = np.insert(self._owners, places, table[:, 1])

    def _note(self, pair: Pair, likeness: Likeness) -> None:
        known = self._likeness_by_pair.get(pair)
        if known is not None:
            likeness = known.or_(likeness)
            self._forget(pair)
        self._likeness_by_pair[pair] = likeness
        self._pairs_by_bound.setdefault(likeness.bound, set()).add(pair)

    def _forget(self, pair: Pair) -> None:
        bound = self._likeness_by_pair.pop(pair).bound
        self._pairs_by_bound[bound].discard(pair)
        if not self._pairs_by_bound[bound]:
            del self._pairs_by_bound[bound]

    def _compare(
        self, start: int, end: int, names: dict[int, ComparedName], affected: AbstractSet[int] | None = None
    ) -> None:
        """Compare the names of the postings [start, end), which share a form; only pairs with an `affected` one."""
        if end - start < 2:
            return
        owners, sides = self._owners[start:end].tolist(), (self._postings[start:end] & 1).tolist()
        rule = RULES[int(self._postings[start] >> 1) & ((1 << _RULE_BITS) - 1)]
        if rule.long_forms is not None and not 0 < sum(sides) <= rule.max_block:
            return
        if rule.long_forms is None and len(owners) > rule.max_block:
            return
        for number in owners:
            if number not in names:
                names[number] = ComparedName(self._key_by_number[number])
        short, long = ([names[n] for n, side in zip(owners, sides, strict=True) if side == which] for which in (0, 1))
        for one, other, likeness in rule.pairs(short, long):
            first, second = sorted((self._number_by_key[one.key], self._number_by_key[other.key]))
            if affected is None or first in affected or second in affected:
                self._note((first, second), likeness)
                self._partners.setdefault(first, set()).add(second)
                self._partners.setdefault(second, set()).add(first)


def _groups(keys: Iterable[str]) -> set[int]:
    return {posting >> 1 for key in keys for posting in _postings(ComparedName(key))}


def _postings(name: ComparedName) -> set[int]:
    postings: set[int] = set()
    for number, rule in enumerate(RULES):
        for side, forms in enumerate((rule.forms, rule.long_forms)):
            for form in forms(name) if forms is not None else ():
                if form:
                    digest = int.from_bytes(blake2b(form.encode("utf-8", "replace"), digest_size=8).digest())
                    postings.add(digest & _HASH_MASK | number << 1 | side)
    return postings


def _runs(groups: Ints) -> Iterator[tuple[int, int]]:
    """Yield the [start, end) of each run of two or more equal numbers."""
    bounds = np.flatnonzero(np.diff(groups, prepend=-1, append=-1))
    is_several = np.diff(bounds) > 1
    yield from zip(bounds[:-1][is_several].tolist(), bounds[1:][is_several].tolist(), strict=True)


def _depends_on_size(group: int, before: tuple[int, int], after: tuple[int, int]) -> bool:
    """Return whether how alike others of a group are has changed with the numbers of its short and long names."""
    rule = RULES[group & ((1 << _RULE_BITS) - 1)]
    if rule.long_forms is None:
        return (before[0] <= rule.max_block) != (after[0] <= rule.max_block)
    has_short_names = bool(before[0] and after[0])
    return has_short_names and before[1] != after[1] and min(before[1], after[1]) <= rule.max_block
