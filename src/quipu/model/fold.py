"""The fold: what the mentions of one entity or relation amount to, whatever order they came in."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice

from quipu.model.graph import OTHER_TYPE, UNKNOWN_TYPE
from quipu.model.ids import digest

MAX_DESCRIPTIONS = 6
MAX_DESCRIPTION_CHARS = 1_200
MAX_KEYWORDS = 8
NO_DESCRIPTION = -1


def display_name(surfaces: Mapping[str, int]) -> str:
    """Return the most frequent surface; ties by order of text."""
    return min(surfaces, key=lambda surface: (-surfaces[surface], surface))


def most_common_type(types: Mapping[str, int]) -> str:
    """Return the type most mentions give; one that says something beats `Other`, which beats `Unknown`."""
    vague = {UNKNOWN_TYPE: 2, OTHER_TYPE: 1}
    return min(types, key=lambda kind: (vague.get(kind, 0), -types[kind], kind))


def description_rank(description: str, *, is_definition: bool = False) -> int:
    """Return the rank of a description among those of its entity: definitions first, then by digest.

    The rank depends on the words alone, so a new description displaces one of the first few only rarely, and a hub's
    text, summary and vector stay as they are while documents come and go. Returns -1 for an empty description.
    """
    if not description:
        return NO_DESCRIPTION
    return int(digest(description)[:15], 16) | (0 if is_definition else 1 << 61)


def join_descriptions(ordered: Iterable[str]) -> str:
    """Return the first few descriptions, a line each and none twice, within the limits on number and characters."""
    return "\n".join(_lines(ordered))


def needs_summary(ordered: Sequence[str]) -> bool:
    """Say whether the join of these descriptions, of which the first MAX_DESCRIPTIONS + 1 will do, is not all of them.

    The answer depends on the words alone, as the join does. It may be yes where all that is left out is a description
    that is there already, said once as a definition and once not.
    """
    if len(ordered) > MAX_DESCRIPTIONS:
        return True
    return len(ordered) > 1 and not set(ordered) <= set(_lines(ordered))


def descriptions_hash(ordered: Iterable[str]) -> str:
    """Return what identifies all descriptions of an entity or relation, given in the order of their rank."""
    return digest("descriptions", *ordered)


def _lines(ordered: Iterable[str]) -> list[str]:
    lines: list[str] = []
    room = MAX_DESCRIPTION_CHARS
    for description in islice(ordered, MAX_DESCRIPTIONS):
        if lines and len(description) > room:
            break
        if description not in lines:
            lines.append(description)
            room -= len(description)
    return lines


def top_keywords(keywords: Mapping[str, int]) -> tuple[str, ...]:
    """Return the most frequent keywords of a relation; ties by order of text."""
    return tuple(sorted(keywords, key=lambda word: (-keywords[word], word))[:MAX_KEYWORDS])


def weight_to_thousandths(weight: float) -> int:
    """Return a weight as an integer, so that sums are exact in any order."""
    return round(weight * 1000)


def thousandths_to_weight(total: int) -> float:
    """Return the weight an integer sum stands for."""
    return total / 1000


def distinct_descriptions(described: Sequence[tuple[int, str]]) -> list[str]:
    """Return distinct descriptions in order of their rank, from (rank, description) pairs in any order."""
    distinct = {order: text for order, text in described if order != NO_DESCRIPTION}
    return [distinct[order] for order in sorted(distinct)]
