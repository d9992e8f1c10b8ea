"""Names: which known entities a question names, by exact normal form; no model, any script."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from quipu.ports.store import ReadView
from quipu.text.function_words import FUNCTION_WORDS
from quipu.text.names import entity_key
from quipu.text.words import Word, is_unspaced, name_forms, split_words

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
class _Candidate:
    key: str
    start: int
    end: int
    n_words: int


async def link_names(text: str, view: ReadView) -> tuple[LinkedName, ...]:
    """Return the known names in `text`, in order, without overlaps: the longest first, then the leftmost.

    A name of one word must be capitalised there, unless its script has no case or the text has no capital at all; an
    acronym must stand in capitals. So "Brand" is found in "the author of Brand" and not in "a brand of soap".
    """
    candidates = _candidates(text)
    known = await view.named(sorted({candidate.key for candidate in candidates}))
    taken: list[_Candidate] = []
    for candidate in sorted(candidates, key=lambda c: (-c.n_words, c.start, c.end)):
        if known.get(candidate.key) and not any(c.start < candidate.end and candidate.start < c.end for c in taken):
            taken.append(candidate)
    return tuple(
        LinkedName(surface=text[c.start : c.end], start=c.start, end=c.end, keys=known[c.key])
        for c in sorted(taken, key=lambda c: c.start)
    )


def _candidates(text: str) -> list[_Candidate]:
    words = split_words(text)
    has_capitals = text != text.lower()
    found = []
    for first in range(len(words)):
        for last in range(first, min(first + MAX_NAME_WORDS, len(words))):
            if last > first and _BREAK.search(text[words[last - 1].end : words[last].start]):
                break
            found += _read(text, words[first : last + 1], has_capitals)
    return found


def _read(text: str, words: Sequence[Word], has_capitals: bool) -> list[_Candidate]:
    """Return the ways to read these words as a name: as they stand, and with the closing dot of "U.S."."""
    start, end = words[0].start, words[-1].end
    ends = (end, end + 1) if "." in text[start:end] and text[end : end + 1] == "." else (end,)
    readings = ((entity_key(text[start:stop]), stop) for stop in ends)
    return [
        _Candidate(key, start, stop, len(words))
        for key, stop in readings
        if key and _may_name(key, words, has_capitals)
    ]


def _may_name(key: str, words: Sequence[Word], has_capitals: bool) -> bool:
    if key in FUNCTION_WORDS and len(words) == len(name_forms(key)):
        return False  # "who" names nothing, "The Who" may
    if is_unspaced(key):
        return len(name_forms(key)) >= MIN_UNSPACED_LENGTH
    if len(name_forms(key)) > 1:
        return True
    word = words[-1]
    if key != key.casefold():
        return word.is_acronym or len(words) > 1  # "US", or "U.S." in two words
    return not word.is_acronym and (word.is_capital or not has_capitals)
