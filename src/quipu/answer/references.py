"""References: lists of sources that models append, taken out of a text as it is written.

A line is held back for as long as it may belong to such a list, and let go when a line follows that does not. Only what
ends the text is dropped, and never the whole of it.
"""

import re
from collections.abc import Iterable

_HEADINGS = frozenset(
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
_MARKUP = "#*_>=-•·: ：\t"  # around a heading
_RULE = re.compile(r"[ \t]*(?:[-*_=][ \t]*)*")
_LISTED = re.compile(r"[ \t]*(?:[-*•·]|\d{1,3}[.)]|[\[【［]|\(\d)")
_ENTRY = re.compile(r"[ \t]*(?:[-*•·>][ \t]+|\d{1,3}[.)][ \t]+)*[\[【［][\[^]?(?:\d{0,4}[\]】］]*)?(?P<rest>.*)")
_AFTER_PLACE = re.compile(
    r"[\s,.;:—–(›>|/*)\"”»-]*(?:(?:pp?\.?|pages?|chars?|стр\.?|с\.|第)\s*\d.*|\S+\.\w{2,5}\b.*)?", re.IGNORECASE
)
_BEGUN_NUMBER = re.compile(r"[ \t]*\(?\d{0,3}")
_MAX_LINE = 300  # characters: no entry of a list is longer
_MAX_AFTER_PLACE = 60


class References:
    """Text in pieces of any size in, text without the list of sources at its end out.

    Such a list stands under a heading of its own ("References"), or its entries define numbers ("[1]: …"), or it stands
    apart and its entries are nothing but a number and one of `places`: titles and ids of documents. `is_dropped` says
    whether there was one.
    """

    def __init__(self, places: Iterable[str]) -> None:
        self._places = tuple({" ".join(place.casefold().split()) for place in places if place.strip()})
        self._block: list[str] = []  # lines that are a list of sources, if nothing follows
        self._line = ""  # the line under way, while it may belong to one
        self._is_text = False  # the line under way does not
        self._has_heading = False
        self._last = ""  # the last character of the text so far that is no space
        self.is_dropped = False

    def feed(self, text: str) -> str:
        """Return what belongs to the text for sure."""
        return "".join(map(self._step, text))

    def end(self) -> str:
        """Return what was held back and is no list: no more text comes."""
        if self._line and not self._belongs(self._line):
            return self._let_go()
        block = "".join((*self._block, self._line))
        if not self._last:
            return block
        self.is_dropped = bool(block.strip(_MARKUP + "\n\r"))
        return ""

    def _step(self, character: str) -> str:
        if self._is_text:
            return self._out(character)
        if character == "\n":
            if not self._belongs(self._line):
                return self._out(self._let_go() + character)
            self._has_heading = self._has_heading or _heading(self._line) in _HEADINGS
            self._block.append(f"{self._line}\n")
            self._line = ""
            return ""
        self._line += character
        return "" if self._may_belong(self._line) else self._out(self._let_go())

    def _let_go(self) -> str:
        held = "".join((*self._block, self._line))
        self._block, self._line, self._has_heading = [], "", False
        return held

    def _out(self, text: str) -> str:
        self._is_text = not text.endswith("\n")
        self._last = text.rstrip()[-1:] or self._last
        return text

    def _belongs(self, line: str) -> bool:
        """Say whether a whole line is part of a list of sources."""
        if _RULE.fullmatch(line) or _heading(line) in _HEADINGS or (self._has_heading and _LISTED.match(line)):
            return True
        entry = _ENTRY.match(line)
        return entry is not None and self._is_place(entry["rest"].rstrip())

    def _may_belong(self, line: str) -> bool:
        """Say whether a line that may not be at its end yet may be part of a list of sources."""
        if len(line) > _MAX_LINE:
            return False
        heading = _heading(line)
        if self._belongs(line) or any(each.startswith(heading) for each in _HEADINGS):
            return True
        if self._has_heading and _BEGUN_NUMBER.fullmatch(line):
            return True
        entry = _ENTRY.match(line)
        return entry is not None and self._may_be_place(entry["rest"])

    def _is_place(self, text: str) -> bool:
        """Say whether what follows a number in brackets defines it, or is the name of a place and where in it."""
        if text.startswith((":", "：")):
            return True
        said = _folded(text)
        if not self._block or self._last in (":", "："):
            return False
        return any(said.startswith(each) and _AFTER_PLACE.fullmatch(said[len(each) :]) for each in self._places)

    def _may_be_place(self, text: str) -> bool:
        said = _folded(text)
        return any(
            each.startswith(said) or (said.startswith(each) and len(said) <= len(each) + _MAX_AFTER_PLACE)
            for each in self._places
        )


def _heading(line: str) -> str:
    return line.strip(_MARKUP).casefold()


def _folded(text: str) -> str:
    return " ".join(text.strip("*_\"“'« \t").casefold().split())
