"""Document builder: collects the blocks of one document, with headings, tables and pages, and returns the document."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from unicodedata import east_asian_width

from quipu.errors import InvalidDocument
from quipu.model.document import Block, Metadata, ParsedDocument
from quipu.parse.decode import normalise
from quipu.parse.limits import MAX_BLOCKS, MAX_CHARACTERS

MAX_HEADING = 300  # characters; a longer heading is treated as text
SEPARATOR = " | "
_MAX_COLUMN_NAME = 80  # characters; a longer cell is a value
_LINES_AT_ONCE = 4_096  # joined before more are read: a string for each of a million rows takes more than the text
_LANGUAGE = re.compile(r"[A-Za-z][\w+#-]{0,20}")
_COMMENT = re.compile(r"^[ \t]*(?:#|//|--).*$", re.MULTILINE)
_BACKTICKS = re.compile("`+")
_SENTENCE_WORD = re.compile(
    r"(?<![^\s(])(?:the|a|an|of|to|and|is|are|that|this|with|it|и|в|не|на|что|с|как)(?=\s)", re.IGNORECASE
)
_MAX_SENTENCE_WORDS = 0.03  # for each character of code: English sentences have about 0.045, code with comments 0.02
_VALUE = re.compile(
    r"[-+(]?[\d.,\s]*\d[\d.,\s]*[%€$£¥)]?|\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}.*|true|false|https?://.*|.*@.*\..*"
)


def fenced(text: str, language: str) -> str:
    """Return preformatted text between fences as in Markdown, unless it is sentences.

    The opening fence has a language, so that it cannot be taken for a closing one where a chunk begins inside code.
    """
    bare = _COMMENT.sub("", text)  # comments of code are sentences
    if len(_SENTENCE_WORD.findall(bare)) > _MAX_SENTENCE_WORDS * len(bare):
        return text
    fence = "`" * max(3, 1 + max(map(len, _BACKTICKS.findall(text)), default=0))
    return f"{fence}{language}\n{text}\n{fence}"


class HeadingPath:
    """The headings that are open at the current position while a document is read from top to bottom."""

    def __init__(self) -> None:
        self._open: list[tuple[int, str]] = []

    def above(self, level: int | None = None) -> tuple[str, ...]:
        """Return the open headings, outermost first; with `level`, only those above a new heading of that level."""
        return tuple(text for depth, text in self._open if level is None or depth < level)

    def enter(self, level: int, text: str) -> None:
        """Open a heading of `level` (1 is the highest). Open headings of the same or a lower level are closed."""
        self.leave(level)
        self._open.append((level, text))

    def leave(self, level: int) -> None:
        """Close the headings of `level` and of all lower levels."""
        self._open = [(depth, heading) for depth, heading in self._open if depth < level]


class DocumentBuilder:
    r"""Collects blocks; `build` returns them with their text, in which a blank line separates two blocks.

    Where two blocks are on different pages, the blank line holds one form feed (\f) for each new page. So the page of a
    character is the page of its chunk plus the number of form feeds between them. `name` is used in messages.
    """

    def __init__(self, name: str) -> None:
        self.path = HeadingPath()
        self.name = name
        self._texts: list[str] = []
        self._length = 0
        self._blocks: list[Block] = []

    @property
    def has_body(self) -> bool:
        """Whether a block other than a heading was added."""
        return any(block.kind != "heading" for block in self._blocks)

    def add(self, text: str, kind: str = "paragraph", *, page: int | None = None, header: str = "") -> None:
        """Add a block under the open headings. Blank text is ignored.

        Raises InvalidDocument if the text of the document becomes longer than the limit.
        """
        text = "\f".join(map(normalise, text.split("\f"))) if page is not None else normalise(text)
        self._add(text.strip("\n"), kind, self.path.above(), page=page, header=normalise(header))

    def add_code(self, text: str, language: str = "") -> None:
        """Add code, or other preformatted text, under the open headings; without a `language`, it is "text"."""
        language = language.lower() if _LANGUAGE.fullmatch(language) else "text"
        self.add(fenced(text, language) if text.strip() else "", "code")

    def add_heading(self, text: str, level: int, *, page: int | None = None) -> None:
        """Add a heading of `level` (1 is the highest) and open it. Text longer than MAX_HEADING becomes a paragraph."""
        line = " ".join(normalise(text).split())
        if len(line) > MAX_HEADING:
            self.add(line, page=page)
        elif line:
            self._add(line, "heading", self.path.above(level), page=page)
            self.path.enter(level, line)

    def append(self, document: ParsedDocument, *, page: int | None = None) -> None:
        """Add the blocks of an embedded document under the open headings."""
        above = self.path.above()
        for block in document.blocks:
            text, headings = document.text[block.start : block.end], (*above, *block.headings)
            self._add(text, block.kind, headings, page=page, header=block.header)

    def check_room_for(self, n_characters: int) -> None:
        """Raise InvalidDocument if `n_characters` more would make the text longer than the limit."""
        if self._length + n_characters > MAX_CHARACTERS:
            raise InvalidDocument(
                f"{self.name} holds more than {MAX_CHARACTERS:,} characters of text.",
                remedy="Split it into several files.",
            )

    def build(self, title: str = "", metadata: Metadata | None = None) -> ParsedDocument:
        """Return the document with all blocks added so far."""
        return ParsedDocument(
            text="".join(self._texts), title=title, blocks=tuple(self._blocks), metadata=metadata or {}
        )

    def _add(
        self, text: str, kind: str, headings: tuple[str, ...], *, page: int | None = None, header: str = ""
    ) -> None:
        if not text.strip():
            return
        gap = self._gap(page)
        start = self._length + len(gap)
        header = header if text.startswith(header) else ""
        self.check_room_for(len(gap) + len(text))
        check_block_count(len(self._blocks) + 1, self.name)
        self._length = start + len(text)
        self._texts += [gap, text]
        self._blocks.append(
            Block(start=start, end=self._length, kind=kind, headings=headings, page=page, header=header)
        )

    def _gap(self, page: int | None) -> str:
        if not self._blocks:
            return ""
        n_page_breaks = (page or 0) - (self._blocks[-1].page or 0) - self._texts[-1].count("\f")
        return "\n" + "\f" * n_page_breaks + "\n" if n_page_breaks > 0 else "\n\n"


def check_block_count(n_blocks: int, name: str) -> None:
    """Raise InvalidDocument if `n_blocks` is above the limit; `name` is the document's."""
    if n_blocks > MAX_BLOCKS:
        raise InvalidDocument(
            f"{name} holds more than {MAX_BLOCKS:,} paragraphs.", remedy="Split it into several files."
        )


def join_lines(lines: Iterable[str]) -> str:
    """Return wrapped lines as one line; without a space between two ideographs."""
    pieces: list[str] = []
    for line in filter(None, map(str.strip, lines)):
        is_wide = pieces and east_asian_width(pieces[-1][-1]) in "WF" and east_asian_width(line[0]) in "WF"
        pieces += [line] if is_wide or not pieces else [" ", line]
    return "".join(pieces)


def display_width(text: str) -> int:
    """Return the number of columns that a line takes; an ideograph takes two."""
    return sum(2 if east_asian_width(character) in "WF" else 1 for character in text)


def add_table(
    builder: DocumentBuilder, rows: Iterable[Sequence[str]], *, has_header: bool = False, page: int | None = None
) -> None:
    """Add a table with one line per row. The first row is the header if `has_header`, or if it looks like one.

    Memory use is little more than the text, however many rows there are. Raises InvalidDocument above the text limit.
    """
    filled = (row for row in rows if filled_width(row))
    first_rows = list(islice(filled, 2))
    if not first_rows:
        return
    is_header = has_header or (len(first_rows) > 1 and looks_like_header(*first_rows))
    header = format_row(first_rows[0]) if is_header else ""
    add_lines(builder, map(format_row, chain(first_rows, filled)), "table", page=page, header=header)


def add_lines(
    builder: DocumentBuilder,
    lines: Iterable[str],
    kind: str = "paragraph",
    *,
    page: int | None = None,
    header: str = "",
) -> None:
    """Add one block of many lines. Memory use is little more than its text. Raises InvalidDocument above the limit."""
    pieces = []
    remaining = _checked_lines(builder, lines)
    while piece := "\n".join(islice(remaining, _LINES_AT_ONCE)):
        pieces.append(piece)
    builder.add("\n".join(pieces), kind, page=page, header=header)


def _checked_lines(builder: DocumentBuilder, lines: Iterable[str]) -> Iterator[str]:
    """Yield `lines`; raise InvalidDocument as soon as they exceed the limit, because a few lines may be gigabytes."""
    n_characters = 0
    for line in lines:
        n_characters += len(line) + 1
        builder.check_room_for(n_characters - 1)
        yield line


def format_row(cells: Sequence[str]) -> str:
    """Return a row as one line. Its cells are joined by " | "; empty cells at the end are left out."""
    return SEPARATOR.join(" ".join(cell.split()) for cell in cells[: filled_width(cells)])


def looks_like_header(first: Sequence[str], second: Sequence[str]) -> bool:
    """Return whether `first` names the columns of the rows that start with `second`.

    Each column of `second` needs its own short name in `first`. A name is not a number, date, address or truth value.
    Only the first cell (the corner) may be empty.
    """
    n_columns = max(filled_width(first), filled_width(second))
    names = [" ".join(cell.split()).casefold() for cell in first[:n_columns]]
    filled = names[1:] if names and not names[0] else names
    return (
        n_columns > 1
        and len(names) == n_columns
        and filled_width(second) > 0
        and len(set(filled)) == len(filled) > 0
        and all(name and len(name) <= _MAX_COLUMN_NAME and not _VALUE.fullmatch(name) for name in filled)
    )


def filled_width(cells: Sequence[str]) -> int:
    """Return the number of cells up to the last one that is not blank."""
    width = len(cells)
    while width and not cells[width - 1].strip():
        width -= 1
    return width
