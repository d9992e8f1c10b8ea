"""The fold: combines all mentions of one entity or relation into one value, independent of their order."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice

from quipu.model.graph import OTHER_TYPE, UNKNOWN_TYPE
from quipu.model.ids import digest

MAX_DESCRIPTIONS = 6
MAX_DESCRIPTION_CHARS = 1_200
MAX_KEYWORDS = 8
NO_DESCRIPTION = -1


def display_name(counts: Mapping[str, int]) -> str:
    """Return the most frequent spelling of a name. Equal counts are ordered by text."""
    return min(counts, key=lambda surface: (-counts[surface], surface))


def most_common_type(counts: Mapping[str, int]) -> str:
    """Return the type that most mentions give. A specific type beats `Other`, and `Other` beats `Unknown`."""
    vague_rank = {UNKNOWN_TYPE: 2, OTHER_TYPE: 1}
    return min(counts, key=lambda type_name: (vague_rank.get(type_name, 0), -counts[type_name], type_name))


def description_rank(description: str, *, is_definition: bool = False) -> int:
    """Return the rank of a description: definitions first, then by digest. An empty description has rank -1.

    The rank depends on the words alone. A new description therefore rarely displaces one of the first few, and the
    text, summary and vector of an entity with many mentions stay stable while documents are added and removed.
    """
    if not description:
        return NO_DESCRIPTION
    return int(digest(description)[:15], 16) | (0 if is_definition else 1 << 61)


def distinct_descriptions(ranked: Sequence[tuple[int, str]]) -> list[str]:
    """Return the distinct descriptions in order of rank. `ranked` are (rank, description) pairs in any order."""
    text_by_rank = {rank: text for rank, text in ranked if rank != NO_DESCRIPTION}
    return [text_by_rank[rank] for rank in sorted(text_by_rank)]


def join_descriptions(descriptions: Iterable[str]) -> str:
    """Return the first descriptions that fit the limits, one per line and without duplicates.

    The limits are MAX_DESCRIPTIONS and MAX_DESCRIPTION_CHARS. `descriptions` are in order of rank.
    """
    return "\n".join(_fitting(descriptions))


def needs_summary(descriptions: Sequence[str]) -> bool:
    """Return whether `join_descriptions` would omit some of these descriptions, given in order of rank.

    The first MAX_DESCRIPTIONS + 1 descriptions are enough to decide. A text that occurs twice, once as a definition,
    may count as omitted although the join contains it.
    """
    if len(descriptions) > MAX_DESCRIPTIONS:
        return True
    return len(descriptions) > 1 and not set(descriptions) <= set(_fitting(descriptions))


def descriptions_hash(descriptions: Iterable[str]) -> str:
    """Return a digest of all descriptions of an entity or relation, given in order of rank."""
    return digest("descriptions", *descriptions)


def _fitting(descriptions: Iterable[str]) -> list[str]:
    lines: list[str] = []
    n_chars_free = MAX_DESCRIPTION_CHARS
    for description in islice(descriptions, MAX_DESCRIPTIONS):
        if lines and len(description) > n_chars_free:
            break
        if description not in lines:
            lines.append(description)
            n_chars_free -= len(description)
    return lines


def top_keywords(counts: Mapping[str, int]) -> tuple[str, ...]:
    """Return the MAX_KEYWORDS most frequent keywords of a relation. Equal counts are ordered by text."""
    return tuple(sorted(counts, key=lambda keyword: (-counts[keyword], keyword))[:MAX_KEYWORDS])


def weight_to_thousandths(weight: float) -> int:
    """Return a weight in thousandths. Integer sums are exact in any order."""
    return round(weight * 1000)


def thousandths_to_weight(total: int) -> float:
    """Return the weight for a sum of thousandths."""
    return total / 1000
