"""Text of models: the reasoning that some write between tags before a reply, and JSON that is not quite JSON."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

MAX_DEPTH = 64
MAX_TRIES = 64
MAX_VALUES = 10_000

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

_NAMES = r"(?:seed:)?(?:think|thinking|thought|thoughts|reasoning|reflection)"
_TAG = re.compile(
    rf"(?P<open><{_NAMES}>|\[THINK\]|◁think▷|<\|begin_of_thought\|>|<\|channel\|>analysis<\|message\|>)"
    rf"|(?P<close></{_NAMES}>|\[/THINK\]|◁/think▷|<\|end_of_thought\|>"
    r"|(?:<\|end\|>)?(?:<\|start\|>assistant)?<\|channel\|>final<\|message\|>)",
    re.IGNORECASE,
)
# What may follow a closing tag directly if a reply starts there. A space and a word are prose that mentions the tag.
_REPLY_START = re.compile(r"[ \t]*(?:\r?\n|\Z)|[\w{\[(\"“*#<|-]")
_QUOTES = "`'\"“‘"


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonMatch:
    """A JSON value that was found in a text. `is_complete` means that it was closed; `length` is in characters."""

    value: object
    is_complete: bool
    length: int


def parse_lenient_json(text: str) -> object | None:
    """Return the JSON value of a model's reply, None if there is none.

    Valid JSON is parsed as it is. Otherwise the result is the longest object in the text, or the longest array if there
    is no object. The value may stand among chatter or in a fence. It may have comments, trailing or missing commas,
    single, smart or no quotes, NaN, and line breaks in strings. If its end is missing, the last unfinished array
    element or object member is left out. A number that is not finite becomes None.
    """
    matches = find_json_values(text)
    return max(matches, key=lambda match: (isinstance(match.value, dict), match.length)).value if matches else None


def find_json_values(text: str) -> list[JsonMatch]:
    """Return the outermost objects and arrays of a reply in order; a reply that is a JSON scalar gives that scalar."""
    text = strip_thinking(text).strip()
    try:
        value: object = json.loads(text, parse_constant=_number, parse_float=_number)
    except (ValueError, RecursionError):
        return list(_search(text))
    return [JsonMatch(value=value, is_complete=True, length=len(text))]


class _NotJson(Exception):
    """The text at this position is not JSON, even when it is read leniently."""


def _search(text: str) -> Iterator[JsonMatch]:
    """Parse a value at each bracket. All failed attempts together cost at most a few passes over the text."""
    position, n_failed, n_values, budget = 0, 0, 0, 4 * len(text) + 1_000
    while (
        n_failed < MAX_TRIES and n_values < MAX_VALUES and budget > 0 and (bracket := _BRACKET.search(text, position))
    ):
        start = bracket.start()
        parser = _LenientParser(text, start)
        try:
            value = parser.parse_value(0)
        except _NotJson:
            n_failed += 1
            budget -= parser.position - start
            position = start + 1
            continue
        yield JsonMatch(value=value, is_complete=not parser.is_truncated, length=parser.position - start)
        n_values += 1
        position = parser.position


class _LenientParser:
    """Parses one value from a position on; `is_truncated` is set when the text ends inside the value."""

    def __init__(self, text: str, position: int) -> None:
        self._text, self.position, self.is_truncated = text, position, False

    def parse_value(self, depth: int, *, may_be_phrase: bool = False) -> object:
        """Parse any value. Raises _NotJson."""
        char = self._skip_gap()
        if char == "{":
            return self._parse_object(depth)
        if char == "[":
            return self._parse_array(depth)
        if char in _CLOSERS:
            return self._parse_string()
        return self._parse_bare(may_be_phrase=may_be_phrase)

    def _parse_object(self, depth: int) -> dict[str, object]:
        self._enter(depth)
        members: dict[str, object] = {}
        while not self._ends("}"):
            key = self._parse_string() if self._skip_gap() in _CLOSERS else self._parse_bare(may_be_phrase=False)
            if self.is_truncated or not self._skip_gap():
                self.is_truncated = True
                break
            self._match(_COLON)
            if not self._skip_gap():
                self.is_truncated = True
                break
            value = self.parse_value(depth + 1, may_be_phrase=True)
            if not self.is_truncated or isinstance(value, dict | list):
                members[str(key)] = value
            if self.is_truncated:
                break
        return members

    def _parse_array(self, depth: int) -> list[object]:
        self._enter(depth)
        elements: list[object] = []
        while not self._ends("]"):
            element = self.parse_value(depth + 1)
            if self.is_truncated:
                break
            elements.append(element)
        return elements

    def _enter(self, depth: int) -> None:
        if depth >= MAX_DEPTH:
            raise _NotJson
        self.position += 1

    def _ends(self, closer: str) -> bool:
        """Skip commas and return whether the container ends: at its closer, another one, or the end of the text."""
        while _COMMA.match(self._skip_gap()):
            self.position += 1
        char = self._skip_gap()
        if char == closer:
            self.position += 1
        elif not char:
            self.is_truncated = True
        elif char in "]}":
            # The closer of this container is missing. This one belongs to the container around it.
            return True
        return char in ("", closer)

    def _skip_gap(self) -> str:
        """Skip spaces and comments and return the next character, "" at the end of the text."""
        gap = _GAP.match(self._text, self.position)
        self.position = gap.end() if gap else self.position
        return self._text[self.position : self.position + 1]

    def _match(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self._text, self.position)
        if match is None:
            raise _NotJson
        self.position = match.end()
        return match.group()

    def _parse_bare(self, *, may_be_phrase: bool) -> object:
        """Parse a number, a constant or a word without quotes. It may be cut off if the text ends with it."""
        word = self._match(_PHRASE if may_be_phrase else _TOKEN).strip()
        self.is_truncated = self.is_truncated or self.position == len(self._text)
        if word.casefold() in _CONSTANTS:
            return _CONSTANTS[word.casefold()]
        return _number(word)

    def _parse_string(self) -> str:
        closers = _CLOSERS[self._text[self.position]]
        special = re.compile(rf"[\\{re.escape(closers)}]")
        start, parts = self.position + 1, list[str]()
        while (match := special.search(self._text, start)) is not None:
            parts.append(self._text[start : match.start()])
            if match.group() != "\\":
                if _AFTER_STRING.match(self._text, match.end()):
                    self.position = match.end()
                    return _join_parts(parts)
                parts.append(match.group())
                start = match.end()
            else:
                escape, start = _unescape(self._text, match.end())
                parts.append(escape)
        parts.append(self._text[start:])
        self.position, self.is_truncated = len(self._text), True
        return _join_parts(parts)


def _number(word: str) -> object:
    for number_type in (int, float):
        try:
            number = number_type(word)
        except ValueError:
            continue
        return number if abs(number) < float("inf") else None
    return word


def _unescape(text: str, position: int) -> tuple[str, int]:
    """Return the character of the escape after a backslash, and where it ends; an unknown escape stays as written."""
    char = text[position : position + 1]
    digits = _HEX.match(text, position + 1) if char == "u" else None
    if digits:
        return chr(int(digits.group(), 16)), digits.end()
    return _ESCAPES.get(char, "\\" + char), position + 1


def _join_parts(parts: list[str]) -> str:
    """Return the string with surrogate pairs joined and lone surrogates replaced."""
    text = "".join(parts)
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def has_thinking(text: str) -> bool:
    """Return whether the text holds a thinking tag. The text may only mention the tag."""
    return _TAG.search(text) is not None


def strip_thinking(text: str) -> str:
    """Return the text without the thinking between tags.

    Thinking starts at an opening tag at the start of a line. Without a closing tag it reaches to the end of the text.
    A closing tag without an opening tag ends thinking that started with the text. If nothing follows that tag, the
    text before it stays and only the tag is removed.
    """
    parts: list[str] = []
    position, is_open, is_first = 0, False, True
    for tag in _TAG.finditer(text):
        if is_open:
            if tag["close"]:
                is_open, position, is_first = False, tag.end(), False
        elif tag["open"]:
            if _is_at_line_start(text, tag.start()):
                parts.append(text[position : tag.start()])
                is_open = True
        elif _ends_thinking(text, tag):
            parts.append(text[position : tag.start()])
            if is_first and text[tag.end() :].strip():
                parts.clear()
            position, is_first = tag.end(), False
    if not is_open:
        parts.append(text[position:])
    return "".join(parts)


def strip_thinking_tags(text: str) -> str:
    """Return the text without thinking tags; the thinking itself stays."""
    return _TAG.sub("", text)


def _is_at_line_start(text: str, position: int) -> bool:
    return not text[text.rfind("\n", 0, position) + 1 : position].strip()


def _ends_thinking(text: str, tag: re.Match[str]) -> bool:
    """Return whether a closing tag without an opening tag ends thinking. Otherwise the text only mentions the tag."""
    if tag.start() and text[tag.start() - 1] in _QUOTES:
        return False
    return _is_at_line_start(text, tag.start()) or _REPLY_START.match(text, tag.end()) is not None
