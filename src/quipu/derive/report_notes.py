"""The notes a report is written from: those on a community that matter most, as many as there is room for.

The reports on its parts stand in for their notes where these are too long, the largest part first, as D. Edge et al.
describe (2024, section 3.1.4). What connects the parts stays.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from quipu.model.graph import Entity, Relation

MAX_TOKENS = 8_000
REPORTS_SHARE = 0.75  # of the room, at most, for the reports on parts


@dataclass(frozen=True, slots=True, kw_only=True)
class Notes:
    """Notes in the order they are shown: reports on parts, most important first; subjects; connections."""

    reports: tuple[str, ...]
    subjects: tuple[str, ...]
    connections: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """All there is to note: subjects by entity and connections by its two, most important first, and where each is.

    `part` holds the part of the community an entity is in. `reports` are those on the parts, the most important first.
    """

    subjects: Mapping[str, str]
    connections: Mapping[tuple[str, str], str]
    part: Mapping[str, str]
    reports: Mapping[str, str]


def choose_notes(told: Told, count: Callable[[str], int], *, is_large: bool) -> Notes:
    """Return what there is room for; the reports on parts stand in at once where the community `is_large`."""
    size = {text: count(text) + 1 for some in (told.subjects, told.connections, told.reports) for text in some.values()}
    members = list(told.part.values())
    largest = sorted(told.reports, key=lambda part: (-members.count(part), part))
    stand_in = frozenset(largest) if is_large else frozenset[str]()
    for part in largest:
        shown = {*_others(told, stand_in), *(told.reports[each] for each in stand_in)}
        if sum(size[text] for text in shown) <= MAX_TOKENS:
            break
        stand_in |= {part}
    reports, room = _first(
        (text for part, text in told.reports.items() if part in stand_in), size, int(MAX_TOKENS * REPORTS_SHARE)
    )
    rest, _ = _first(_others(told, stand_in), size, MAX_TOKENS - int(MAX_TOKENS * REPORTS_SHARE) + room)
    chosen = frozenset(rest)
    return Notes(
        reports=tuple(reports),
        subjects=tuple(text for text in told.subjects.values() if text in chosen),
        connections=tuple(text for text in told.connections.values() if text in chosen),
    )


def subject(entity: Entity) -> str:
    """Return the note on an entity."""
    return f"{entity.name} ({entity.type})" + (f": {entity.description}" if entity.description else "")


def connection(relation: Relation) -> str:
    """Return the note on a relation."""
    said = relation.description or ", ".join(relation.keywords)
    return f"{relation.source_name} | {relation.target_name}" + (f": {said}" if said else "")


def _others(told: Told, stand_in: frozenset[str]) -> Iterator[str]:
    """Yield the notes no report stands in for: each connection behind its subjects, then the other subjects."""
    for pair, text in told.connections.items():
        parts = [told.part.get(key, "") for key in pair]
        if parts[0] != parts[1] or parts[0] not in stand_in:
            ends = zip(pair, parts, strict=True)
            yield from (told.subjects[key] for key, part in ends if key in told.subjects and part not in stand_in)
            yield text
    yield from (text for key, text in told.subjects.items() if told.part.get(key, "") not in stand_in)


def _first(texts: Iterable[str], size: Mapping[str, int], room: int) -> tuple[Sequence[str], int]:
    """Return the first of these texts, none twice, until there is no room for the next; and the room that is left.

    One is returned even where there is no room for it: a model that takes it can say more than one that has nothing.
    """
    taken: dict[str, None] = {}
    for text in texts:
        if text in taken:
            continue
        if size[text] > room and taken:
            break
        taken[text] = None
        room -= size[text]
    return list(taken), max(room, 0)
