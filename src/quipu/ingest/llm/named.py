"""Named: the names a text seems to hold, by rules alone, to tell when a model has overlooked them."""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from quipu.ingest.local.capitals import find_capitalised
from quipu.ingest.local.han import find_han
from quipu.ingest.local.lexicon import empty_words
from quipu.ingest.local.occurrence import Cue
from quipu.text.names import entity_key
from quipu.text.sentences import sentence_spans
from quipu.text.unicode import UNSPACED

RULES = "names/1"
MIN_MISSED = 3
MAX_SHOWN = 20

_UNSPACED = re.compile(f"[{UNSPACED}]")
_WORD = re.compile(r"\w+")
_CAPITALISED = re.compile(r"(?<!\w)[^\W\d_a-zа-яё]\w*")
_SURE = frozenset({Cue.CAPITALS, Cue.HAN, Cue.QUOTED})


@dataclass(frozen=True, slots=True)
class Named:
    """Names in the order of the text by key, as written there, and how often each stands in it."""

    name_by_key: dict[str, str]
    count_by_key: Counter[str]

    @property
    def is_sure(self) -> bool:
        """Whether the text holds names beyond doubt: two of them, one of several words, or one that comes again."""
        names = self.name_by_key
        return len(names) > 1 or any(" " in key or self.count_by_key[key] > 1 for key in names)

    def missed_by(self, found: Iterable[str]) -> list[str]:
        """Return the names of which no found name is a part, or holds them."""
        keys = [f" {entity_key(name)} " for name in found]
        return [name for key, name in self.name_by_key.items() if not any(_overlap(f" {key} ", each) for each in keys)]

    def are_many(self, missed: list[str]) -> bool:
        """Say whether so many of the names were missed, more than half, that it is worth asking again."""
        return len(missed) >= MIN_MISSED and 2 * len(missed) > len(self.name_by_key)


NONE = Named({}, Counter())


def may_be_missed(text: str, found: Iterable[str]) -> bool:
    """Say whether `names_in` could tell of names that are missing among those found; cheap, and true if in doubt."""
    if _UNSPACED.search(text):
        return True
    known = {word for name in found for word in _WORD.findall(name.casefold())}
    capitals = {word.casefold() for word in _CAPITALISED.findall(text)}
    return len(capitals - known - empty_words()) >= MIN_MISSED


def names_in(text: str) -> Named:
    """Return the names that capitals, or common Chinese forms, give away.

    Words that only open a sentence are left out, and so are lines all in capitals.
    """
    occurrences = [*find_capitalised(text, sentence_spans(text)), *find_han(text)]
    keyed = [(entity_key(each.name), each.name) for each in occurrences if each.cue in _SURE]
    keyed = [(key, name) for key, name in keyed if len(key) > 1 and not key.isdigit() and not _is_line(name)]
    by_key: dict[str, str] = {}
    for key, name in keyed:
        by_key.setdefault(key, " ".join(name.split()))
    return Named(by_key, Counter(key for key, _ in keyed))


def _is_line(name: str) -> bool:
    return " " in name and name.isupper()


def _overlap(one: str, other: str) -> bool:
    if one in other or other in one:
        return True
    return not one.isascii() and (one.strip() in other or other.strip() in one)
