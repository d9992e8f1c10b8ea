"""Reply cleaner: turns the reply of a model into text for a reader while it is written.

Thoughts at the start, numbers that cite nothing and a list of sources at the end are removed. Text that has been
returned never changes, so the pieces of a stream are the text.
"""

import re
from collections.abc import Collection, Iterable, Iterator

# Tags of thoughts, as in quipu.text.model_text.
_TAGS = "(?:seed:)?(?:think|thinking|thought|thoughts|reasoning|reflection)"
_THOUGHT_START = re.compile(
    rf"(?:<{_TAGS}>|\[THINK\]|◁think▷|<\|begin_of_thought\|>|<\|channel\|>analysis<\|message\|>)",
    re.IGNORECASE,
)
_THOUGHT_END = re.compile(
    rf"(?:</{_TAGS}>|\[/THINK\]|◁/think▷|<\|end_of_thought\|>|<\|channel\|>final<\|message\|>)$", re.IGNORECASE
)
_MAX_TAG = 40  # characters

_LIST_HEADINGS = frozenset(
    line.strip()
    for line in """
    references
    reference list
    sources
    source
    citations
    bibliography
    footnotes
    works cited
    sources cited
    источники
    ссылки
    литература
    список литературы
    примечания
    参考文献
    参考资料
    引用
    来源
    参考来源
    出典
    quellen
    quellenangaben
    literatur
    références
    sources citées
    fuentes
    referencias
    fonti
    riferimenti
    referências
    fontes
    """.strip().splitlines()
)
_HEADING_MARKUP = "#*_>=-•·: ：\t"  # around a heading
_RULE = re.compile(r"[ \t]*(?:[-*_=][ \t]*)*")
_LISTED = re.compile(r"[ \t]*(?:[-*•·]|\d{1,3}[.)]|[\[【［]|\(\d)")
_ENTRY = re.compile(r"[ \t]*(?:[-*•·>][ \t]+|\d{1,3}[.)][ \t]+)*[\[【［][\[^]?(?:\d{0,4}[\]】］]*)?(?P<rest>.*)")
_AFTER_PLACE = re.compile(
    r"[\s,.;:—–(›>|/*)\"”»-]*(?:(?:pp?\.?|pages?|chars?|стр\.?|с\.|第)\s*\d.*|\S+\.\w{2,5}\b.*)?", re.IGNORECASE
)
_PARTIAL_NUMBER = re.compile(r"[ \t]*\(?\d{0,3}")
_MAX_LINE = 300  # characters: no entry of a list is longer
_MAX_AFTER_PLACE = 60

MAX_MARK = 80  # characters
MAX_RANGE = 100  # a longer range of numbers is not a mark

_OPENERS, _CLOSERS = "[【［", "]】］"
_OPEN, _CLOSE = r"[\[【［]", r"[\]】］]"
_LABEL = r"(?:passages?|excerpts?|sources?|evidence|refs?\.?|nos?\.?|№|#|\^)?"
_ITEM = rf"{_LABEL}\s*(\d+)(?:\s*[-‐‑–—]\s*{_LABEL}\s*(\d+))?"
_MARK = re.compile(rf"{_OPEN}\s*{_ITEM}(?:\s*(?:[,;、，&]|and)\s*{_ITEM})*\s*(?:†[^\n]*)?{_CLOSE}", re.IGNORECASE)
_ITEMS = re.compile(_ITEM, re.IGNORECASE)
_CLEAN_MARK = re.compile(r"\[\d+\]")
_WRAPPED = re.compile(rf"{_OPEN}(?:\[\d+\]|[\s,;、，])*{_CLOSE}")
# What may still become a mark, from its opening bracket on; the letters at the end may become a label.
_MAY_BECOME = re.compile(
    rf"{_OPEN}(?:[^\S\n]|[\d,;、，&^#№.‐‑–—-]|{_OPEN}|\[\d+\]|passages?|excerpts?|sources?|evidence|refs?|nos?|and)*"
    r"(?:[a-z]{0,9}|†[^\n]*)",
    re.IGNORECASE,
)
_NO_SPACE_BEFORE = ".,;:!?…)]}。，；：！？、」』”’"


class ReplyCleaner:
    """Takes the reply of a model in pieces of any size and returns text for a reader.

    `numbers` can be cited; `places` are the titles and ids of documents that a list of sources would name.
    """

    def __init__(self, numbers: Collection[int], places: Iterable[str]) -> None:
        self._thoughts = ThoughtFilter()
        self.source_list = SourceListFilter(places)
        self.marks = CitationMarks(numbers)

    def feed(self, text: str) -> str:
        """Return the text that can no longer change."""
        return self.marks.feed(self.source_list.feed(self._thoughts.feed(text)))

    def end(self) -> str:
        """Return the text that was held back; call it after the last piece."""
        rest = self.marks.feed(self.source_list.feed(self._thoughts.end()) + self.source_list.end())
        return rest + self.marks.end()


class ThoughtFilter:
    """Removes the thought that a model begins with, and the space before the text."""

    def __init__(self) -> None:
        self._held = ""  # text that may become the tag of a thought, then the end of the thought
        self._is_thought, self._is_over = False, False

    def feed(self, text: str) -> str:
        """Return the text that is certainly no thought."""
        return text if self._is_over else "".join(map(self._step, text))

    def end(self) -> str:
        """Return the text that was held back; a thought without an end is dropped."""
        return "" if self._is_thought else self._held

    def _step(self, character: str) -> str:
        if self._is_over or (not self._held and character.isspace()):
            return character if self._is_over else ""
        self._held += character
        if self._is_thought:
            self._is_thought = not (character in ">]▷" and _THOUGHT_END.search(self._held))
            self._held = self._held[-_MAX_TAG:] if self._is_thought else ""
            return ""
        self._is_thought = _THOUGHT_START.fullmatch(self._held) is not None
        if self._is_thought or (self._held[0] in "<[◁" and len(self._held) <= _MAX_TAG):
            return ""
        text, self._held, self._is_over = self._held, "", True
        return text


class SourceListFilter:
    """Removes a list of sources at the end of a text.

    Such a list has a heading of its own ("References"), or its entries define numbers ("[1]: …"), or it is a separate
    block whose entries are a number and one of `places`, and nothing else. A line is held back while it may belong to
    such a list, and returned when a line follows that does not. Only the end of a text is removed, and never all of it.
    `is_dropped` says whether there was a list.
    """

    def __init__(self, places: Iterable[str]) -> None:
        self._places = tuple({" ".join(place.casefold().split()) for place in places if place.strip()})
        self._block: list[str] = []  # lines that are a list of sources, if nothing follows
        self._line = ""  # the current line, while it may belong to a list
        self._is_text = False  # whether the current line certainly belongs to no list
        self._has_heading = False
        self._last = ""  # the last character so far that is not a space
        self.is_dropped = False

    def feed(self, text: str) -> str:
        """Return the text that certainly does not belong to a list of sources."""
        return "".join(map(self._step, text))

    def end(self) -> str:
        """Return held-back text that is not a list of sources; call it after the last piece."""
        if self._line and not self._belongs(self._line):
            return self._let_go()
        block = "".join((*self._block, self._line))
        if not self._last:
            return block
        self.is_dropped = bool(block.strip(_HEADING_MARKUP + "\n\r"))
        return ""

    def _step(self, character: str) -> str:
        if self._is_text:
            return self._out(character)
        if character == "\n":
            if not self._belongs(self._line):
                return self._out(self._let_go() + character)
            self._has_heading = self._has_heading or _heading(self._line) in _LIST_HEADINGS
            self._block.append(f"{self._line}\n")
            self._line = ""
            return ""
        self._line += character
        return "" if self._may_belong(self._line) else self._out(self._let_go())

    def _let_go(self) -> str:
        text = "".join((*self._block, self._line))
        self._block, self._line, self._has_heading = [], "", False
        return text

    def _out(self, text: str) -> str:
        self._is_text = not text.endswith("\n")
        self._last = text.rstrip()[-1:] or self._last
        return text

    def _belongs(self, line: str) -> bool:
        """Return whether a complete line is part of a list of sources."""
        if _RULE.fullmatch(line) or _heading(line) in _LIST_HEADINGS or (self._has_heading and _LISTED.match(line)):
            return True
        entry = _ENTRY.match(line)
        return entry is not None and self._is_place(entry["rest"].rstrip())

    def _may_belong(self, line: str) -> bool:
        """Return whether a line that may be incomplete can still be part of a list of sources."""
        if len(line) > _MAX_LINE:
            return False
        start = _heading(line)
        if self._belongs(line) or any(heading.startswith(start) for heading in _LIST_HEADINGS):
            return True
        if self._has_heading and _PARTIAL_NUMBER.fullmatch(line):
            return True
        entry = _ENTRY.match(line)
        return entry is not None and self._may_be_place(entry["rest"])

    def _is_place(self, text: str) -> bool:
        """Return whether text after a bracketed number defines the number, or is a place, such as a page."""
        if text.startswith((":", "：")):
            return True
        folded = _folded(text)
        if not self._block or self._last in (":", "："):
            return False
        return any(folded.startswith(place) and _AFTER_PLACE.fullmatch(folded[len(place) :]) for place in self._places)

    def _may_be_place(self, text: str) -> bool:
        folded = _folded(text)
        return any(
            place.startswith(folded) or (folded.startswith(place) and len(folded) <= len(place) + _MAX_AFTER_PLACE)
            for place in self._places
        )


def _heading(line: str) -> str:
    return line.strip(_HEADING_MARKUP).casefold()


def _folded(text: str) -> str:
    return " ".join(text.strip("*_\"“'« \t").casefold().split())


class CitationMarks:
    """Writes citation marks as [1][4] and removes numbers that are not in `numbers`.

    Marks are numbers in square brackets of any width: [1], [1, 4], [1-3], [^2], [[3]], 【4】, [passage 5],
    【6†source】. Numbers in round brackets are not marks: they count things and name years. Text that may still
    become a mark is held back. The space before a removed mark is removed too, and so is space around the whole text.
    `n_removed` counts removed numbers. `zeros` are the places in the text where the number 0 was: with it a model says
    that there is no answer.
    """

    def __init__(self, numbers: Collection[int]) -> None:
        self._numbers = frozenset(numbers)
        self._held = ""
        self._open: list[int] = []  # positions in `_held` of brackets that are not closed yet
        self._has_gap_within = False
        self._space, self._space_before_gap, self._is_gap = "", "", False
        self._last, self._length = "", 0
        self.n_removed = 0
        self.zeros: list[int] = []

    def feed(self, text: str) -> str:
        """Return the text that can no longer change."""
        return "".join(map(self._step, text))

    def end(self) -> str:
        """Return the text that was held back; call it after the last piece."""
        return self._release()

    def _step(self, character: str) -> str:
        if character in _OPENERS:
            self._open.append(len(self._held))
        elif not self._open:
            return self._out(character)
        self._held += character
        if character in _CLOSERS:
            self._close(self._open.pop())
        if self._open and len(self._held) <= MAX_MARK and _MAY_BECOME.fullmatch(self._held):
            return ""
        return self._release()

    def _release(self) -> str:
        if not self._held and self._has_gap_within:
            self._space_before_gap = self._space_needed() if self._is_gap else self._space
            self._space, self._is_gap = "", True
        text, self._held, self._has_gap_within = self._held, "", False
        self._open.clear()
        return self._out(text)

    def _close(self, start: int) -> None:
        """Replace the held text from `start` on by its valid numbers, if it is a mark."""
        tail = self._held[start:]
        if _MARK.fullmatch(tail) and not self._is_index(tail):
            valid = self._valid_marks(tail)
        elif _WRAPPED.fullmatch(tail) and (self._has_gap_within or _CLEAN_MARK.search(tail)):
            valid = "".join(_CLEAN_MARK.findall(tail))
        else:
            return
        self._has_gap_within = self._has_gap_within or not valid
        self._held = self._held[:start] + valid

    def _valid_marks(self, mark: str) -> str:
        numbers = list(dict.fromkeys(_numbers_in(mark, self._numbers)))
        self.n_removed += sum(number > 0 and number not in self._numbers for number in numbers)
        if 0 in numbers:
            self.zeros.append(self._length)
        return "".join(f"[{number}]" for number in numbers if number in self._numbers)

    def _is_index(self, tail: str) -> bool:
        """Return whether this is the [0] of words[0], which cites nothing."""
        is_joined = len(tail) == len(self._held) and not self._space and not self._is_gap
        before = self._last if is_joined else ""
        return tail == "[0]" and before.isascii() and (before.isalnum() or before in tuple("_)"))

    def _out(self, text: str) -> str:
        pieces: list[str] = []
        for character in text:
            if character.isspace():
                self._space += character
                continue
            pieces.append((self._spacing(character) if self._length else "") + character)
            self._length += len(pieces[-1])
            self._space, self._space_before_gap, self._is_gap, self._last = "", "", False, character
        return "".join(pieces)

    def _spacing(self, following: str) -> str:
        """Return the space before a character; after a removed mark, only as much as the text needs."""
        if not self._is_gap:
            return self._space
        space = self._space_needed()
        return "" if following in _NO_SPACE_BEFORE and "\n" not in space else space

    def _space_needed(self) -> str:
        """Return the space around a removed mark: a line break after it if there is one, else the space before it."""
        if "\n" in self._space and "\n" not in self._space_before_gap:
            return self._space
        return self._space_before_gap or self._space


def _numbers_in(mark: str, valid: Collection[int]) -> Iterator[int]:
    for match in _ITEMS.finditer(mark):
        first, last = int(match[1]), int(match[2] or match[1])
        if first < last <= first + MAX_RANGE:
            yield from (number for number in range(first, last + 1) if number in (first, last) or number in valid)
        else:
            yield from dict.fromkeys((first, last))
