"""Names: which known entities a question names, by exact normal form; no model, any script."""

import re
from dataclasses import dataclass

from quipu.ports.store import ReadView
from quipu.text.content_terms import STOP_WORDS
from quipu.text.names import entity_key, name_forms
from quipu.text.unicode import is_unspaced
from quipu.text.words import Words, split_words

MAX_NAME_WORDS = 12  # a character of an unspaced script counts as a word
MIN_UNSPACED_LENGTH = 2
# What two words of one name cannot have between them. A comma and a dot can: "Johnnycake, West Virginia", "St. Louis".
_BREAK = re.compile(r"[?!;\n。？！；]|.{4,}", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkedName:
    """Characters [start, end) of the question name these entities; more than one where an alias is shared."""

    surface: str
    start: int
    end: int
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Reading:
    """Some words of the question, read as a name."""

    key: str
    words: Words
    end: int

    @property
    def start(self) -> int:
        return self.words[0].start

    def overlaps(self, other: "_Reading") -> bool:
        return self.start < other.end and other.start < self.end


async def link_names(text: str, view: ReadView) -> tuple[LinkedName, ...]:
    """Return the known names in `text`, in order, without overlaps: the longest first, then the leftmost.

    A name of one word must be capitalised there, unless its script has no case or the text has no capital at all; an
    acronym must stand in capitals. So "Brand" is found in "the author of Brand" and not in "a brand of soap".
    """
    readings = _readings(text)
    known = await view.keys_by_name(sorted({reading.key for reading in readings}))
    has_capitals = text != text.lower()
    names = [reading for reading in readings if known.get(reading.key) and _may_name(reading, has_capitals)]
    taken: list[_Reading] = []
    for name in sorted(names, key=lambda reading: (-len(reading.words), reading.start, reading.end)):
        if not any(name.overlaps(other) for other in taken):
            taken.append(name)
    return tuple(
        LinkedName(surface=text[name.start : name.end], start=name.start, end=name.end, keys=known[name.key])
        for name in sorted(taken, key=lambda reading: reading.start)
    )


def _readings(text: str) -> list[_Reading]:
    words = split_words(text)
    readings = []
    for first in range(len(words)):
        for last in range(first, min(first + MAX_NAME_WORDS, len(words))):
            if last > first and _BREAK.search(text[words[last - 1].end : words[last].start]):
                break
            ends = _ends(text, words[first].start, words[last].end)
            readings += [
                _Reading(entity_key(text[words[first].start : end]), words[first : last + 1], end) for end in ends
            ]
    return [reading for reading in readings if reading.key]


def _ends(text: str, start: int, end: int) -> tuple[int, ...]:
    """Return where a name that starts at `start` may end: after its last word, and after the last dot of "U.S."."""
    is_dotted = "." in text[start:end] and text[end : end + 1] == "."
    return (end, end + 1) if is_dotted else (end,)


def _may_name(reading: _Reading, has_capitals: bool) -> bool:
    key, words = reading.key, reading.words
    forms = name_forms(key)
    if key in STOP_WORDS and len(words) == len(forms):
        return False  # "who" names nothing, "The Who" may
    if is_unspaced(key):
        return len(forms) >= MIN_UNSPACED_LENGTH
    if len(forms) > 1:
        return True
    if key != key.casefold():
        return words[-1].is_acronym or len(words) > 1  # "US", or "U.S." in two words
    return not words[-1].is_acronym and (words[-1].is_capital or not has_capitals)
