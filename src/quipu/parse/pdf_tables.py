"""PDF tables: the words and the drawn lines of a page become tables, with rows of cells under one header row.

Grids of drawn lines come first (quipu.parse.pdf_grid); then rows of words that stand in the same columns
(quipu.parse.pdf_columns). Both run in the PDF process, because the geometry of a page may be hostile.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

HYPHEN = "\x02"  # PDFium's mark for a hyphen at the end of a line
SAME_LINE = 0.4  # font sizes: words whose baselines differ by less stand on one line
MAX_HEADER_ROWS = 5
PAPER = 0.95  # of the width and height of a page: an area this large is its background
_PLACEHOLDER = r"[-–—]|\(?(?:X|NA|n/a|N/A)\)?|\*[*.]*|\.\.+|…"
VALUE = re.compile(
    rf"[-–+(<>≤≥~±]*[$€£¥₽]?\s?\d[\d.,\s]*(?:[%)$€£¥₽‰]|\s?(?:bn|m|k|млн|тыс|万|亿)\.?)*[⁰¹²³⁴-⁹]*|{_PLACEHOLDER}",
    re.IGNORECASE,
)
_IDEOGRAPHIC = re.compile("[\u3000-\u30ff\u3400-\u9fff\uf900-\ufaff\uff00-\uffef]")
_YEAR = re.compile(r"(?:1[89]|20)\d\d[a-z*]?(?:[/–-]\d{2,4})?")
_PLACEHOLDERS = re.compile(_PLACEHOLDER)


@dataclass(frozen=True, slots=True)
class PdfWord:
    """A word of a page: its text, left and right edge, baseline and font size, in points, and its place in the text."""

    text: str
    left: float
    right: float
    baseline: float
    size: float
    place: int

    @property
    def middle(self) -> float:
        """Return the height of the middle of its small letters."""
        return self.baseline + self.size / 4


@dataclass(frozen=True, slots=True)
class PdfRule:
    """A straight drawn line or edge of an area: from `start` to `end`, at the position `at` of the other axis."""

    is_horizontal: bool
    at: float
    start: float
    end: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PdfTable:
    """A table of a page: rows of equally many cells; the first `n_header_rows` (0 or 1) name the columns.

    `places` are the places of its words. `columns` are the left and right edges of its columns.
    """

    rows: tuple[tuple[str, ...], ...]
    n_header_rows: int
    places: frozenset[int]
    columns: tuple[tuple[float, float], ...]
    top: float
    bottom: float


def is_value(cell: str) -> bool:
    """Return whether a cell is a number, perhaps with a sign, unit or currency, or a placeholder for one."""
    return VALUE.fullmatch(cell) is not None


def is_number(cell: str) -> bool:
    """Return whether a cell is a value and no placeholder."""
    return is_value(cell) and not _PLACEHOLDERS.fullmatch(cell)


def is_year(cell: str) -> bool:
    """Return whether a cell is a year or several, as "2019" and "2019/20"."""
    return _YEAR.fullmatch(cell) is not None


def is_leader(word: PdfWord) -> bool:
    """Return whether a word is dots that lead the eye to the next cell, or a line of hyphens."""
    return not word.text.strip(".·…_") or (len(word.text) > 2 and not word.text.strip("-="))


def is_level(first: PdfWord, second: PdfWord) -> bool:
    """Return whether two words stand on one line; one of them may be raised or lowered a little."""
    return abs(first.baseline - second.baseline) < SAME_LINE * max(first.size, second.size)


def is_ideographic(letter: str) -> bool:
    """Return whether a letter is of a script that writes no spaces between words: Chinese or Japanese."""
    return _IDEOGRAPHIC.match(letter) is not None


def lines_of(words: Iterable[PdfWord]) -> list[list[PdfWord]]:
    """Return the words by line, from top to bottom, each line from left to right."""
    lines: list[list[PdfWord]] = []
    for word in sorted(words, key=lambda word: (-word.baseline, word.left, word.place)):
        if lines and is_level(lines[-1][0], word):
            lines[-1].append(word)
        else:
            lines.append([word])
    return [sorted(line, key=lambda word: (word.left, word.place)) for line in lines]


def cell_text(words: Iterable[PdfWord]) -> str:
    """Return the words of one cell as text, line by line; leaders of dots are left out."""
    text = ""
    for line in lines_of(words):
        for word in line:
            if is_leader(word):
                text = text.rstrip(". ")
                continue
            text += word.text if not text or text.endswith(HYPHEN) else f" {word.text}"
    return re.sub(r"\.{3,}\Z", "", text).strip()


def count_header_rows(rows: Sequence[Sequence[str]]) -> int:
    """Return how many rows name the columns: those above the first row with numbers beside its first cell.

    A row whose only numbers are years names columns. Without numbers it is the first row, if all its cells differ.
    """
    for index, row in enumerate(rows[: MAX_HEADER_ROWS + 1]):
        numbers = [cell for cell in row[1:] if is_number(cell)]
        if numbers and not (index + 1 < len(rows) and _names_years(row)):
            return index
    if any(is_number(cell) for row in rows for cell in row[1:]):
        return 0  # the first numbers come too late for a header above them
    names = [cell for cell in rows[0] if cell]
    return 1 if len(rows) > 1 and len(names) == len(set(names)) >= len(rows[0]) - 1 else 0


def _names_years(row: Sequence[str]) -> bool:
    """Return whether the cells after the first are years or other names, at least one of them a year."""
    cells = [cell for cell in row[1:] if cell]
    return any(map(is_year, cells)) and all(is_year(cell) or not is_number(cell) for cell in cells)


def merge_header_rows(rows: Sequence[Sequence[str]], n_header_rows: int) -> tuple[tuple[str, ...], ...]:
    """Return the rows with their header rows as one; a name that a column has twice in a row is there once."""
    if n_header_rows < 2:
        return tuple(tuple(row) for row in rows)
    header = []
    for column in zip(*rows[:n_header_rows], strict=True):
        header.append(" ".join(dict.fromkeys(filter(None, column))))
    return (tuple(header), *(tuple(row) for row in rows[n_header_rows:]))
