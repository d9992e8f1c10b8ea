"""Org mode: headings, lists, tables and blocks; keywords, drawers and planning lines are left out."""

import re
from collections.abc import Sequence

from quipu.model.document import MetadataValue, ParsedDocument, SourceDocument
from quipu.parse.builder import DocumentBuilder, add_table
from quipu.parse.decode import decode, display_name

_HEADING = re.compile(r"(\*{1,40})\s+(.*)$")
_TAGS = re.compile(r"\s:[\w@#%:]{1,200}:$")
_STATE = re.compile(r"(?:T[O]DO|DONE|NEXT|WAITING|CANCELLED)\s+|\[#[A-Z0-9]\]\s+")
_KEYWORD = re.compile(r"\s*#\+([A-Za-z_]{1,40}):\s*(.*)$")
_BLOCK = re.compile(r"\s*#\+begin_(\w{1,40})", re.IGNORECASE)
_BLOCK_END = re.compile(r"\s*#\+end_(\w{1,40})\s*$", re.IGNORECASE)
_DRAWER = re.compile(r"\s*:([A-Za-z_-]{1,40}):\s*$")
_LEFT_OUT = re.compile(r"\s*(?:#(?:\s|$)|(?:SCHEDULED|DEADLINE|CLOSED):|CLOCK:)")
_ITEM = re.compile(r"\s*(?:[-+]|\d{1,4}[.)])\s+\S")
_LINK = re.compile(r"\[\[([^\[\]\n]{1,1000})\](?:\[([^\[\]\n]{1,1000})\])?\]")
_EMPHASIS = re.compile(r"(?<![\w*/=~+_])([*/=~+_])(?=\S)([^\n]{0,300}?\S)\1(?!\w)")
_CODE_KINDS = frozenset(["src", "example", "export"])
_KEY_BY_KEYWORD = {"author": "author", "date": "date", "language": "language", "keywords": "keywords"}


class OrgParser:
    """Reads the markup of Emacs Org mode."""

    media_types = frozenset({"text/x-org"})

    def parse(self, source: SourceDocument) -> ParsedDocument:
        """Return the blocks; the title is #+TITLE, otherwise the only top heading. Raises InvalidDocument."""
        reader = _OrgReader(display_name(source))
        reader.read([line.rstrip() for line in decode(source).split("\n")])
        titles = [reader.title] if reader.title else reader.top_headings
        return reader.builder.build(titles[0] if len(titles) == 1 else "", reader.metadata)


PARSER = OrgParser()


class _OrgReader:
    """Reads lines into `builder`, and the keywords at the top into `title` and `metadata`."""

    def __init__(self, name: str) -> None:
        self.builder = DocumentBuilder(name)
        self.title = ""
        self.top_headings: list[str] = []
        self.metadata: dict[str, MetadataValue] = {}

    def read(self, lines: Sequence[str]) -> None:
        """Read all lines."""
        position = 0
        last_end_by_kind = {
            match[1].lower(): end for end, line in enumerate(lines) if (match := _BLOCK_END.match(line))
        }
        while position < len(lines):
            line = lines[position]
            if block := _BLOCK.match(line):
                is_closed = last_end_by_kind.get(block[1].lower(), 0) > position
                position = self._block(lines, position, block[1].lower()) if is_closed else position + 1
            elif _DRAWER.match(line):
                position = _end_of_drawer(lines, position)
            elif heading := _HEADING.match(line):
                self._heading(len(heading[1]), heading[2])
                position += 1
            elif keyword := _KEYWORD.match(line):
                self._keyword(keyword[1].lower(), keyword[2].strip())
                position += 1
            elif not line or _LEFT_OUT.match(line):
                position += 1
            else:
                position = self._text(lines, position)

    def _heading(self, level: int, text: str) -> None:
        heading = _plain(_STATE.sub("", _TAGS.sub("", text)))
        if level == 1:
            self.top_headings.append(heading)
        self.builder.add_heading(heading, level)

    def _keyword(self, name: str, value: str) -> None:
        if name == "title":
            self.title = f"{self.title} {_plain(value)}".strip()
        elif name in _KEY_BY_KEYWORD and value:
            self.metadata[_KEY_BY_KEYWORD[name]] = value
        elif name == "caption":
            self.builder.add(_plain(value))

    def _block(self, lines: Sequence[str], start: int, kind: str) -> int:
        """Read a block, such as #+begin_src to #+end_src; a comment is left out."""
        closing = f"#+end_{kind}"
        end = next(position for position in range(start + 1, len(lines)) if lines[position].strip().lower() == closing)
        if kind in _CODE_KINDS:
            self.builder.add_code("\n".join(lines[start + 1 : end]), (*lines[start].split(), "")[1])
        elif kind != "comment":
            self.read(lines[start + 1 : end])
        return end + 1

    def _text(self, lines: Sequence[str], start: int) -> int:
        """Read a table, a list, code after ":", or a paragraph."""
        end = start
        kind = _kind(lines[start])
        while end < len(lines) and lines[end] and not (end > start and _is_start(lines[end])):
            is_continued = kind == "list" and lines[end].startswith(" ")
            if _kind(lines[end]) != kind and not is_continued:
                break
            end += 1
        unit = lines[start:end]
        if kind == "table":
            cells = (line.strip().strip("|").split("|") for line in unit if not line.lstrip().startswith("|-"))
            is_ruled = len(unit) > 1 and unit[1].lstrip().startswith("|-")
            add_table(self.builder, ([_plain(cell.strip()) for cell in row] for row in cells), has_header=is_ruled)
        elif kind == "list":
            self.builder.add("\n".join(_plain(line) for line in unit), "list")
        elif kind == "code":
            self.builder.add_code("\n".join(line.lstrip()[1:].removeprefix(" ") for line in unit))
        else:
            self.builder.add(" ".join(_plain(line.strip()) for line in unit))
        return end


def _kind(line: str) -> str:
    text = line.lstrip()
    if text.startswith("|"):
        return "table"
    if text == ":" or text.startswith(": "):
        return "code"
    return "list" if _ITEM.match(line) else "paragraph"


def _is_start(line: str) -> bool:
    return bool(_BLOCK.match(line) or _HEADING.match(line) or _DRAWER.match(line) or _KEYWORD.match(line))


def _end_of_drawer(lines: Sequence[str], start: int) -> int:
    """Return the line after the drawer that begins at `start`; the next line if it does not end within 100 lines."""
    for position in range(start + 1, min(len(lines), start + 100)):
        if lines[position].strip().lower() == ":end:":
            return position + 1
    return start + 1


def _plain(text: str) -> str:
    """Return `text` without links and emphasis."""
    return _EMPHASIS.sub(r"\2", _LINK.sub(lambda link: link[2] or link[1], text))
