"""Cuts: which of the possible places become cuts, tried in an order until no gap between two is over budget."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Sequence

from quipu.ingest.chunkers.places import Place

# A cut leaves at least a half of the budget on either side, or, where a level has no place for that, a third.
MARGINS = (2, 3)


def cut_by_level(taken: list[int], places: Sequence[Place], max_tokens: int) -> None:
    """Add to the sorted `taken` (indexes of places) cuts of every level, best level first, in order of rank."""
    by_level: dict[int, list[int]] = defaultdict(list)
    for index in range(1, len(places) - 1):
        by_level[places[index].level].append(index)
    for _, candidates in sorted(by_level.items()):
        cut_in_order(taken, by_rank(candidates, places), places, max_tokens)


def by_rank(candidates: Iterable[int], places: Sequence[Place]) -> list[int]:
    """Return the candidates in an order that depends only on the text around each."""
    return sorted(candidates, key=lambda index: (places[index].rank, index))


def cut_in_order(
    taken: list[int],
    candidates: Sequence[int],
    places: Sequence[Place],
    max_tokens: int,
    *,
    margins: Sequence[int] = MARGINS,
) -> None:
    """Add to `taken` each candidate in whose gap there is too much text, and room: a share of 1 / margin on each side.

    Margins are tried one after another; a margin of 0 asks for no room.
    """
    for margin in margins:
        least = -(-max_tokens // margin) if margin else 0
        for index in candidates:
            take(taken, index, places, least=least, above=max_tokens)


def take(taken: list[int], index: int, places: Sequence[Place], *, least: int, above: int) -> None:
    """Add the place `index` where the gap it lies in has over `above` tokens, and it leaves `least` on both sides."""
    slot = bisect_left(taken, index)
    if taken[slot] == index:
        return
    left, here, right = places[taken[slot - 1]], places[index], places[taken[slot]]
    n_left = here.n_before - left.n_before + left.n_header
    n_right = right.n_before - here.n_before
    if n_left + n_right > above and min(n_left, n_right) >= least:
        taken.insert(slot, index)
