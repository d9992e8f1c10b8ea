"""Grounds: whether a text holds a name at all, and where it stands first."""

import re
import unicodedata
from functools import cached_property

from quipu.model.extraction import ChunkInput
from quipu.text.content_terms import STOP_WORDS
from quipu.text.unicode import UNSPACED

STEM_SHARE = 3  # letters of a word's end that an inflection may change
MIN_STEM = 4

_WORD = re.compile(r"\w+")
_UNSPACED = re.compile(f"[{UNSPACED}]")
_SCRIPTS = (re.compile(r"[A-Za-z\u00c0-\u024f]"), re.compile(r"[\u0400-\u04ff]"), _UNSPACED)
_ACCENTS = re.compile(r"[\u0300-\u036f]+")
_BETWEEN = r"[\W_]{1,4}"


class Grounds:
    """The text of one chunk, its title, headings and table header, in which names are looked for."""

    def __init__(self, chunk: ChunkInput) -> None:
        self._text = chunk.text
        self._said = "\n".join((chunk.title, *chunk.headings, chunk.header, chunk.text))

    def hold(self, name: str) -> bool:
        """Say whether the name may come from here: any of its significant words in some inflection, or its initials.

        A name in another script than the text's passes, since it may be a translation.
        """
        words, significant = _words_of(name)
        if any(map(self._holds_word, significant)) or (not significant and self.hold_exactly(name)):
            return True
        initials = "".join(word[0] for word in words)
        is_initials = len(words) > 1 and initials not in STOP_WORDS and f" {initials} " in self._words
        return is_initials or _script(name) != self._script

    def hold_whole(self, name: str) -> bool:
        """Say whether all significant words of the name stand here, each in some inflection: no translation passes."""
        _, significant = _words_of(name)
        if not significant or _UNSPACED.search(name):
            return self.hold_exactly(name)
        return all(map(self._holds_word, significant))

    def hold_exactly(self, name: str) -> bool:
        """Say whether the name stands here word for word, in any case."""
        words = _WORD.findall(_fold(name))
        if _UNSPACED.search(name):
            return _fold(name) in self._folded
        return bool(words) and f" {' '.join(words)} " in self._words

    def span(self, name: str) -> tuple[int, int]:
        """Return where the name stands first in the text, [start, end): as written, in another case, with other marks.

        (0, 0) where it does not.
        """
        start = self._text.find(name)
        while start >= 0:
            end = start + len(name)
            if self._is_apart(start, end):
                return start, end
            start = self._text.find(name, end)
        words = _WORD.findall(name)
        if not words or not self.hold_exactly(name):
            return 0, 0
        match = re.search(_BETWEEN.join(map(re.escape, words)), self._text, re.IGNORECASE)
        return match.span() if match else (0, 0)

    def _is_apart(self, start: int, end: int) -> bool:
        """Say whether [start, end) is no part of longer words."""
        before, after = self._text[start - 1 : start], self._text[end : end + 1]
        return not (_joins(before, self._text[start]) or _joins(after, self._text[end - 1]))

    def _holds_word(self, word: str) -> bool:
        if _UNSPACED.search(word):
            return word in self._folded or any(word[i : i + 2] in self._folded for i in range(len(word) - 1))
        if len(word) <= MIN_STEM:
            return f" {word} " in self._words
        return f" {word[: max(MIN_STEM, len(word) - STEM_SHARE)]}" in self._words

    @cached_property
    def _folded(self) -> str:
        return _fold(self._said)

    @cached_property
    def _words(self) -> str:
        """The words with a space around each."""
        return f" {' '.join(_WORD.findall(self._folded))} "

    @cached_property
    def _script(self) -> int:
        return _script(self._text)


def _joins(outer: str, inner: str) -> bool:
    """Say whether a character beside a name continues its word; scripts without spaces do not tell."""
    return outer.isalnum() and inner.isalnum() and not (_UNSPACED.match(outer) or _UNSPACED.match(inner))


def _words_of(name: str) -> tuple[list[str], list[str]]:
    """Return the words of a name, folded, and those of them that are significant."""
    words = _WORD.findall(_fold(name))
    return words, [word for word in words if word not in STOP_WORDS and len(word) > 1]


def _fold(text: str) -> str:
    """Return a text without case and accents."""
    if text.isascii():
        return text.casefold()
    return _ACCENTS.sub("", unicodedata.normalize("NFKD", text).casefold())


def _script(text: str) -> int:
    """Return a number for the script most of the text is in: Latin, Cyrillic, one without spaces, or another."""
    counts = [len(pattern.findall(text)) for pattern in _SCRIPTS]
    return counts.index(max(counts)) if any(counts) else len(counts)
