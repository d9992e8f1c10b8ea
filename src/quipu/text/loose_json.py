"""Loose JSON: read what models write for JSON, with chatter, fences, comments, wrong quotes and a missing end."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from quipu.text.thinking import without_thinking

MAX_DEPTH = 64
MAX_TRIES = 64
MAX_FOUND = 10_000

_CLOSERS = {'"': '"', "'": "'", "“": '”“"', "„": '“”"', "‘": "’", "«": "»", "`": "`", "「": "」", "＂": "＂"}
_GAP = re.compile(r"(?:[\s\ufeff]|//[^\n]*|/\*(?:[^*]|\*(?!/)){0,300}\*/)*")
_BRACKET = re.compile(r"[{\[]")
_COMMA = re.compile(r"[,，;、]")
_COLON = re.compile(r"=>|[:：=]")
_TOKEN = re.compile(r"[^\s,，:：{}\[\]\"'“”]+")
_PHRASE = re.compile(r"[^,，;{}\[\]\n\"“”]+")
_AFTER_STRING = re.compile(r"\s*(?:[,，:：;}\]=]|/[/*]|\Z|[\"“'](?=\w))")
_ESCAPES = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "'": "'"}
_HEX = re.compile(r"[0-9a-fA-F]{4}")
_CONSTANTS: dict[str, bool | None] = {
    "true": True,
    "false": False,
    "null": None,
    "none": None,
    "nan": None,
    "undefined": None,
    "infinity": None,
    "-infinity": None,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Loose:
    """An object or array found in a text; `is_whole` says that it was closed. `length` is that of its text."""

    value: object
    is_whole: bool
    length: int


def loads_loosely(text: str) -> object | None:
    """Return the JSON value of a model's reply, None where there is none.

    Text that is JSON is read as it is. Else the longest object in it counts, or the longest array: it may stand among
    chatter or in a fence, and have comments, trailing or missing commas, single, smart or no quotes, NaN, line breaks
    in strings, and no end: then what was begun last in an array is left out. A number that is not finite is None.
    """
    found = find_json(text)
    return max(found, key=lambda loose: (isinstance(loose.value, dict), loose.length)).value if found else None


def find_json(text: str) -> list[Loose]:
    """Return the objects and arrays of a reply in order, none inside another; a reply that is one scalar gives it."""
    text = without_thinking(text).strip()
    try:
        value: object = json.loads(text, parse_constant=_number, parse_float=_number)
    except (ValueError, RecursionError):
        return list(_search(text))
    return [Loose(value=value, is_whole=True, length=len(text))]


class _NoJson(Exception):
    """What stands here is no JSON, however loosely it is read."""


def _search(text: str) -> Iterator[Loose]:
    """Read a value at each bracket that may begin one; all failed tries together cost a few passes over the text."""
    place, n_tries, n_found, room = 0, 0, 0, 4 * len(text) + 1_000
    while n_tries < MAX_TRIES and n_found < MAX_FOUND and room > 0 and (bracket := _BRACKET.search(text, place)):
        start = bracket.start()
        reading = _Reading(text, start)
        try:
            value = reading.value(0)
        except _NoJson:
            n_tries += 1
            room -= reading.place - start
            place = start + 1
            continue
        yield Loose(value=value, is_whole=not reading.is_cut, length=reading.place - start)
        n_found += 1
        place = reading.place


class _Reading:
    """Reads one value from a place on; `is_cut` is set once the text ends inside it."""

    def __init__(self, text: str, place: int) -> None:
        self._text, self.place, self.is_cut = text, place, False

    def value(self, depth: int, *, may_be_phrase: bool = False) -> object:
        """Read any value. Raises _NoJson."""
        char = self._peek()
        if char == "{":
            return self._object(depth)
        if char == "[":
            return self._array(depth)
        if char in _CLOSERS:
            return self._string()
        return self._bare(may_be_phrase=may_be_phrase)

    def _object(self, depth: int) -> dict[str, object]:
        self._enter(depth)
        members: dict[str, object] = {}
        while not self._ends("}"):
            key = self._string() if self._peek() in _CLOSERS else self._bare(may_be_phrase=False)
            if self.is_cut or not self._peek():
                self.is_cut = True
                break
            self._take(_COLON)
            if not self._peek():
                self.is_cut = True
                break
            value = self.value(depth + 1, may_be_phrase=True)
            if not self.is_cut or isinstance(value, dict | list):
                members[str(key)] = value
            if self.is_cut:
                break
        return members

    def _array(self, depth: int) -> list[object]:
        self._enter(depth)
        items: list[object] = []
        while not self._ends("]"):
            item = self.value(depth + 1)
            if self.is_cut:
                break
            items.append(item)
        return items

    def _enter(self, depth: int) -> None:
        if depth >= MAX_DEPTH:
            raise _NoJson
        self.place += 1

    def _ends(self, closer: str) -> bool:
        """Pass commas; say whether a container ends here, by its closer, another's, or the end of the text."""
        while _COMMA.match(self._peek()):
            self.place += 1
        char = self._peek()
        if char == closer:
            self.place += 1
        elif not char:
            self.is_cut = True
        elif char in "]}":
            # The closer is missing, and this one belongs to what is around.
            return True
        return char in ("", closer)

    def _peek(self) -> str:
        """Pass spaces and comments; return the next character, "" at the end."""
        gap = _GAP.match(self._text, self.place)
        self.place = gap.end() if gap else self.place
        return self._text[self.place : self.place + 1]

    def _take(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self._text, self.place)
        if match is None:
            raise _NoJson
        self.place = match.end()
        return match.group()

    def _bare(self, *, may_be_phrase: bool) -> object:
        """Read a number, a constant or a word without quotes; one the text ends in may be cut."""
        word = self._take(_PHRASE if may_be_phrase else _TOKEN).strip()
        self.is_cut = self.is_cut or self.place == len(self._text)
        if word.casefold() in _CONSTANTS:
            return _CONSTANTS[word.casefold()]
        return _number(word)

    def _string(self) -> str:
        closers = _CLOSERS[self._text[self.place]]
        special = re.compile(rf"[\\{re.escape(closers)}]")
        start, parts = self.place + 1, list[str]()
        while (match := special.search(self._text, start)) is not None:
            parts.append(self._text[start : match.start()])
            if match.group() != "\\":
                if _AFTER_STRING.match(self._text, match.end()):
                    self.place = match.end()
                    return _joined(parts)
                parts.append(match.group())
                start = match.end()
            else:
                escape, start = _unescape(self._text, match.end())
                parts.append(escape)
        parts.append(self._text[start:])
        self.place, self.is_cut = len(self._text), True
        return _joined(parts)


def _number(word: str) -> object:
    for kind in (int, float):
        try:
            number = kind(word)
        except ValueError:
            continue
        return number if abs(number) < float("inf") else None
    return word


def _unescape(text: str, place: int) -> tuple[str, int]:
    """Return what an escape after its backslash stands for, and where it ends; an unknown one stays as written."""
    char = text[place : place + 1]
    digits = _HEX.match(text, place + 1) if char == "u" else None
    if digits:
        return chr(int(digits.group(), 16)), digits.end()
    return _ESCAPES.get(char, "\\" + char), place + 1


def _joined(parts: list[str]) -> str:
    """Return the string; halves of surrogate pairs are joined, lone ones replaced."""
    text = "".join(parts)
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
