"""Marks: citation numbers in a text as it is written; what is not in the context goes, the rest is written [1][4].

Taken for marks are numbers in square brackets of any width: [1], [1, 4], [1-3], [^2], [[3]], 【4】, [passage 5],
【6†source】. Numbers in round brackets are not: they count things, and name years.
"""

import re
from collections.abc import Collection, Iterator

MAX_MARK = 80  # characters
MAX_RANGE = 100  # a range of more numbers is none

_OPENERS, _CLOSERS = "[【［", "]】］"
_OPEN, _CLOSE = r"[\[【［]", r"[\]】］]"
_LABEL = r"(?:passages?|excerpts?|sources?|evidence|refs?\.?|nos?\.?|№|#|\^)?"
_ITEM = rf"{_LABEL}\s*(\d+)(?:\s*[-‐‑–—]\s*{_LABEL}\s*(\d+))?"
_MARK = re.compile(rf"{_OPEN}\s*{_ITEM}(?:\s*(?:[,;、，&]|and)\s*{_ITEM})*\s*(?:†[^\n]*)?{_CLOSE}", re.IGNORECASE)
_ITEMS = re.compile(_ITEM, re.IGNORECASE)
_SETTLED = re.compile(r"\[\d+\]")
_WRAPPED = re.compile(rf"{_OPEN}(?:\[\d+\]|[\s,;、，])*{_CLOSE}")
# What may still become a mark, from its opening bracket on; the letters at the end may become a label.
_MAY_BECOME = re.compile(
    rf"{_OPEN}(?:[^\S\n]|[\d,;、，&^#№.‐‑–—-]|{_OPEN}|\[\d+\]|passages?|excerpts?|sources?|evidence|refs?|nos?|and)*"
    r"(?:[a-z]{0,9}|†[^\n]*)",
    re.IGNORECASE,
)
_NO_SPACE_BEFORE = ".,;:!?…)]}。，；：！？、」』”’"


class Marks:
    """Text in pieces of any size in, text with settled marks out; what may still become a mark is held back.

    Space before a mark that goes goes with it, and so does space around the whole text. `n_removed` counts the numbers
    that went; `zeros` holds where in the text the number 0 stood, by which a model says that there is no answer.
    """

    def __init__(self, numbers: Collection[int]) -> None:
        self._numbers = frozenset(numbers)
        self._held = ""
        self._open: list[int] = []  # where in what is held the brackets are that nothing has closed
        self._has_gap_within = False
        self._space, self._space_before_gap, self._is_gap = "", "", False
        self._last, self._length = "", 0
        self.n_removed = 0
        self.zeros: list[int] = []

    def feed(self, text: str) -> str:
        """Return what is settled now."""
        return "".join(map(self._step, text))

    def end(self) -> str:
        """Return what was held back: no more text comes."""
        return self._release()

    def _step(self, character: str) -> str:
        if character in _OPENERS:
            self._open.append(len(self._held))
        elif not self._open:
            return self._out(character)
        self._held += character
        if character in _CLOSERS:
            self._settle(self._open.pop())
        if self._open and len(self._held) <= MAX_MARK and _MAY_BECOME.fullmatch(self._held):
            return ""
        return self._release()

    def _release(self) -> str:
        if not self._held and self._has_gap_within:
            self._space_before_gap = self._space_needed() if self._is_gap else self._space
            self._space, self._is_gap = "", True
        held, self._held, self._has_gap_within = self._held, "", False
        self._open.clear()
        return self._out(held)

    def _settle(self, start: int) -> None:
        """Put numbers of the context in place of what is held from `start`, if it is a mark."""
        tail = self._held[start:]
        if _MARK.fullmatch(tail) and not self._is_index(tail):
            kept = self._kept(tail)
        elif _WRAPPED.fullmatch(tail) and (self._has_gap_within or _SETTLED.search(tail)):
            kept = "".join(_SETTLED.findall(tail))
        else:
            return
        self._has_gap_within = self._has_gap_within or not kept
        self._held = self._held[:start] + kept

    def _kept(self, mark: str) -> str:
        said = list(dict.fromkeys(_numbers(mark, self._numbers)))
        self.n_removed += sum(number > 0 and number not in self._numbers for number in said)
        if 0 in said:
            self.zeros.append(self._length)
        return "".join(f"[{number}]" for number in said if number in self._numbers)

    def _is_index(self, tail: str) -> bool:
        """Say whether this is the [0] of words[0], which cites nothing."""
        is_joined = len(tail) == len(self._held) and not self._space and not self._is_gap
        before = self._last if is_joined else ""
        return tail == "[0]" and before.isascii() and (before.isalnum() or before in tuple("_)"))

    def _out(self, text: str) -> str:
        out = []
        for character in text:
            if character.isspace():
                self._space += character
                continue
            out.append((self._spacing(character) if self._length else "") + character)
            self._length += len(out[-1])
            self._space, self._space_before_gap, self._is_gap, self._last = "", "", False, character
        return "".join(out)

    def _spacing(self, following: str) -> str:
        """Return the space before a character; where a mark went before it, only what the text needs."""
        if not self._is_gap:
            return self._space
        space = self._space_needed()
        return "" if following in _NO_SPACE_BEFORE and "\n" not in space else space

    def _space_needed(self) -> str:
        """Return the space around a gap: its line break, where it has one, else what stood before it."""
        if "\n" in self._space and "\n" not in self._space_before_gap:
            return self._space
        return self._space_before_gap or self._space


def _numbers(mark: str, known: Collection[int]) -> Iterator[int]:
    for item in _ITEMS.finditer(mark):
        first, last = int(item[1]), int(item[2] or item[1])
        if first < last <= first + MAX_RANGE:
            yield from (number for number in range(first, last + 1) if number in (first, last) or number in known)
        else:
            yield from dict.fromkeys((first, last))
