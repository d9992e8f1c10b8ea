"""Grounding: whether a text contains a name, where it does, and which of its names a model has missed."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from quipu.ingest.local.capitalised_names import find_capitalised
from quipu.ingest.local.lexicon import NAME_ENDS, is_common_word
from quipu.ingest.local.occurrences import Cue
from quipu.ingest.local.script_rules import find_chinese_names
from quipu.model.extraction import ChunkInput
from quipu.text.names import entity_key
from quipu.text.sentences import sentence_spans
from quipu.text.unicode import UNSPACED
from quipu.text.words import STOP_WORDS

MAX_STEM_CUT = 3  # letters at a word's end that an inflection may change
MIN_STEM = 4
DETECTION_VERSION = "names/1"
MIN_MISSED = 3
MAX_MISSED_SHOWN = 20

_WORD = re.compile(r"\w+")
_UNSPACED = re.compile(f"[{UNSPACED}]")
_SCRIPTS = (re.compile(r"[A-Za-z\u00c0-\u024f]"), re.compile(r"[\u0400-\u04ff]"), _UNSPACED)
_ACCENTS = re.compile(r"[\u0300-\u036f]+")
_BETWEEN_WORDS = r"[\W_]{1,4}"
# Chinese and Japanese words at the end of names of organisations and places, as "University".
_GENERIC_END = re.compile("(?:公司|集团|大学|学院|学校|医院|银行|组织|委员会|研究所|协会|会社|中心|部门|政府)$")
_CAPITALISED = re.compile(r"(?<!\w)[^\W\d_a-zа-яё]\w*")
_CERTAIN_CUES = frozenset({Cue.CAPITALS, Cue.CHINESE, Cue.QUOTED})


class GroundingText:
    """The text of one chunk with its title, headings and table header, to look for names in."""

    def __init__(self, chunk: ChunkInput) -> None:
        self._text = chunk.text
        self._full_text = "\n".join((chunk.title, *chunk.headings, chunk.header, chunk.text))

    def may_contain(self, name: str) -> bool:
        """Return whether the name may come from this text: a distinctive word in some inflection, or the initials.

        A name of generic and common words needs all of them that are not generic. A name in another script than the
        text also passes, because it may be a translation.
        """
        words, significant = _words_of(name)
        distinctive, needs_all = _distinctive(name)
        if (all if needs_all else any)(map(self._contains_word, distinctive)) and (
            significant or self.contains_exactly(name)
        ):
            return True
        initials = "".join(word[0] for word in words)
        is_initials = len(words) > 1 and initials not in STOP_WORDS and f" {initials} " in self._words
        return is_initials or _script(name) != self._script

    def contains_all_words(self, name: str) -> bool:
        """Return whether the text contains every significant word of the name, in some inflection; no translations."""
        _, significant = _words_of(name)
        if not significant or _UNSPACED.search(name):
            return self.contains_exactly(name)
        return all(map(self._contains_word, significant))

    def contains_exactly(self, name: str) -> bool:
        """Return whether the text contains the name word for word, ignoring case and accents."""
        words = _WORD.findall(_fold(name))
        if _UNSPACED.search(name):
            return _fold(name) in self._folded
        return bool(words) and f" {' '.join(words)} " in self._words

    def span(self, name: str) -> tuple[int, int]:
        """Return where the chunk's text first contains the name, [start, end); (0, 0) if it does not.

        An exact occurrence is preferred; else case and the marks between words may differ.
        """
        start = self._text.find(name)
        while start >= 0:
            end = start + len(name)
            if self._is_separate(start, end):
                return start, end
            start = self._text.find(name, end)
        words = _WORD.findall(name)
        if not words or not self.contains_exactly(name):
            return 0, 0
        match = re.search(_BETWEEN_WORDS.join(map(re.escape, words)), self._text, re.IGNORECASE)
        return match.span() if match else (0, 0)

    def place(self, names: Iterable[str]) -> tuple[int, int]:
        """Return where the chunk's text names something by one of its names, [start, end).

        Where no name stands as it is, this is the first distinctive word of one; else the whole text, which names it
        in its title or in another language.
        """
        names = list(names)
        for start, end in map(self.span, names):
            if end:
                return start, end
        words = (word for name in names for word in _distinctive(name)[0])
        for word in words:
            for match in _WORD.finditer(self._text):
                if self._contains_word(word) and _fold(match[0]).startswith(_stem(word)):
                    return match.span()
        return 0, len(self._text)

    def _is_separate(self, start: int, end: int) -> bool:
        """Return whether [start, end) is not a part of longer words."""
        before, after = self._text[start - 1 : start], self._text[end : end + 1]
        return not (_joins(before, self._text[start]) or _joins(after, self._text[end - 1]))

    def _contains_word(self, word: str) -> bool:
        if _UNSPACED.search(word):
            return word in self._folded or any(word[i : i + 2] in self._folded for i in range(len(word) - 1))
        return f" {word} " in self._words if len(word) <= MIN_STEM else f" {_stem(word)}" in self._words

    @cached_property
    def _folded(self) -> str:
        return _fold(self._full_text)

    @cached_property
    def _words(self) -> str:
        """The words with a space around each."""
        return f" {' '.join(_WORD.findall(self._folded))} "

    @cached_property
    def _script(self) -> int:
        return _script(self._text)


@dataclass(frozen=True, slots=True)
class DetectedNames:
    """Names that rules find in a text: by key, as first written there, in the order of the text; and their counts."""

    name_by_key: dict[str, str]
    count_by_key: Counter[str]

    @property
    def is_certain(self) -> bool:
        """Whether the text surely contains names: two of them, one of several words, or one that occurs again."""
        names = self.name_by_key
        return len(names) > 1 or any(" " in key or self.count_by_key[key] > 1 for key in names)

    def missed_by(self, names: Iterable[str]) -> list[str]:
        """Return the detected names that are not part of any of `names` and contain none of them."""
        keys = [f" {entity_key(name)} " for name in names]
        return [
            name for key, name in self.name_by_key.items() if not any(_overlap(f" {key} ", other) for other in keys)
        ]

    def is_mostly(self, missed: list[str]) -> bool:
        """Return whether gleaning is worth a call: more than half the names and at least `MIN_MISSED` are missed."""
        return len(missed) >= MIN_MISSED and 2 * len(missed) > len(self.name_by_key)


NO_NAMES = DetectedNames({}, Counter())


def may_miss_names(text: str, names: Iterable[str]) -> bool:
    """Return whether `detect_names` might find names in the text that are missing among `names`.

    A cheap test of capitalised words; True in scripts without spaces, where only detection can tell.
    """
    if _UNSPACED.search(text):
        return True
    name_words = {word for name in names for word in _WORD.findall(name.casefold())}
    capitalised = {word.casefold() for word in _CAPITALISED.findall(text)}
    return sum(not is_common_word(word) for word in capitalised - name_words) >= MIN_MISSED


def detect_names(text: str) -> DetectedNames:
    """Return the names that capitals, quotes or common Chinese forms reveal.

    Words that are capitalised only because they open a sentence are not names, nor are lines all in capitals.
    """
    occurrences = [*find_capitalised(text, sentence_spans(text)), *find_chinese_names(text)]
    keyed = [
        (entity_key(occurrence.name), occurrence.name) for occurrence in occurrences if occurrence.cue in _CERTAIN_CUES
    ]
    keyed = [
        (key, name)
        for key, name in keyed
        if len(key) > 1 and not key.isdigit() and not (" " in name and name.isupper())
    ]
    name_by_key: dict[str, str] = {}
    for key, name in keyed:
        name_by_key.setdefault(key, " ".join(name.split()))
    return DetectedNames(name_by_key, Counter(key for key, _ in keyed))


def _joins(outer: str, inner: str) -> bool:
    """Return whether a character beside a name continues its word; in scripts without spaces it never does."""
    return outer.isalnum() and inner.isalnum() and not (_UNSPACED.match(outer) or _UNSPACED.match(inner))


def _words_of(name: str) -> tuple[list[str], list[str]]:
    """Return the folded words of a name, and those that are significant."""
    words = _WORD.findall(_fold(name))
    return words, [word for word in words if word not in STOP_WORDS and len(word) > 1]


def _distinctive(name: str) -> tuple[list[str], bool]:
    """Return the folded words by which a name is known, and whether a text must have all of them or any one.

    Generic words such as "Corp" and common words such as "world" tell nothing where the name has others.
    """
    words = _WORD.findall(unicodedata.normalize("NFC", name).casefold())  # accents count: "й" is another letter
    significant = [word for word in words if word not in STOP_WORDS and len(word) > 1]
    specific = [_GENERIC_END.sub("", word) or word for word in significant if word not in NAME_ENDS]
    rare = [word for word in specific if not is_common_word(word)]
    return [_fold(word) for word in rare or specific or significant], not rare


def _stem(word: str) -> str:
    return word[: max(MIN_STEM, len(word) - MAX_STEM_CUT)]


def _fold(text: str) -> str:
    """Return a text without case and accents."""
    if text.isascii():
        return text.casefold()
    return _ACCENTS.sub("", unicodedata.normalize("NFKD", text).casefold())


def _script(text: str) -> int:
    """Return a number for the main script of a text: Latin, Cyrillic, one without spaces, or another."""
    counts = [len(pattern.findall(text)) for pattern in _SCRIPTS]
    return counts.index(max(counts)) if any(counts) else len(counts)


def _overlap(first: str, second: str) -> bool:
    if first in second or second in first:
        return True
    return not first.isascii() and (first.strip() in second or second.strip() in first)
