"""Cleaning: what a model writes to what a reader gets, while it is written.

No thoughts, no numbers that cite nothing, no list of sources: those are ours to give. What has come out never changes,
so the pieces of a stream are the text.
"""

import re
from collections.abc import Collection, Iterable

from quipu.answer.marks import Marks
from quipu.answer.references import References

_NAMES = "(?:seed:)?(?:think|thinking|thought|thoughts|reasoning|reflection)"  # as quipu.text.thinking
_OPENING = re.compile(
    rf"(?:<{_NAMES}>|\[THINK\]|◁think▷|<\|begin_of_thought\|>|<\|channel\|>analysis<\|message\|>)", re.IGNORECASE
)
_CLOSING = re.compile(
    rf"(?:</{_NAMES}>|\[/THINK\]|◁/think▷|<\|end_of_thought\|>|<\|channel\|>final<\|message\|>)$", re.IGNORECASE
)
_MAX_TAG = 40  # characters


class Cleaning:
    """Text of a model in pieces of any size in, text for a reader out."""

    def __init__(self, numbers: Collection[int], places: Iterable[str]) -> None:
        self._thoughts = Thoughts()
        self.references = References(places)
        self.marks = Marks(numbers)

    def feed(self, text: str) -> str:
        """Return what is settled now."""
        return self.marks.feed(self.references.feed(self._thoughts.feed(text)))

    def end(self) -> str:
        """Return what was held back: no more text comes."""
        rest = self.marks.feed(self.references.feed(self._thoughts.end()) + self.references.end())
        return rest + self.marks.end()


class Thoughts:
    """Text in pieces of any size in, text without the thought a model opens it with out, and no space before it."""

    def __init__(self) -> None:
        self._held = ""  # what may become the tag of a thought, then the thought
        self._is_thought, self._is_over = False, False

    def feed(self, text: str) -> str:
        """Return what is no thought for sure."""
        return text if self._is_over else "".join(map(self._step, text))

    def end(self) -> str:
        """Return what was held back, but for a thought that has no end."""
        return "" if self._is_thought else self._held

    def _step(self, character: str) -> str:
        if self._is_over or (not self._held and character.isspace()):
            return character if self._is_over else ""
        self._held += character
        if self._is_thought:
            self._is_thought = not (character in ">]▷" and _CLOSING.search(self._held))
            self._held = self._held[-_MAX_TAG:] if self._is_thought else ""
            return ""
        self._is_thought = _OPENING.fullmatch(self._held) is not None
        if self._is_thought or (self._held[0] in "<[◁" and len(self._held) <= _MAX_TAG):
            return ""
        held, self._held, self._is_over = self._held, "", True
        return held
