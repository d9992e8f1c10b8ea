"""Tables: a row as one line of cells, and whether a first row names the columns."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice

from quipu.parse.draft import Draft

SEPARATOR = " | "
_MAX_COLUMN_NAME = 80  # characters; what is longer is a value
_LINES_AT_ONCE = 4_096  # joined before more are read: a string for each of a million rows takes more than the text
_VALUE = re.compile(
    r"[-+(]?[\d.,\s]*\d[\d.,\s]*[%€$£¥)]?|\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}.*|true|false|https?://.*|.*@.*\..*"
)


def add_table(
    draft: Draft, rows: Iterable[Sequence[str]], *, has_header: bool = False, page: int | None = None
) -> None:
    """Add a table of `rows`, one a line; its first row is the header where `has_header`, or where it looks like one.

    Memory holds little more than the text, however many rows there are. Raises InvalidDocument past the limit of text.
    """
    filled = (row for row in rows if n_filled(row))
    first_rows = list(islice(filled, 2))
    if not first_rows:
        return
    is_header = has_header or (len(first_rows) > 1 and looks_like_header(*first_rows))
    header = row_line(first_rows[0]) if is_header else ""
    add_lines(draft, map(row_line, chain(first_rows, filled)), "table", page=page, header=header)


def add_lines(
    draft: Draft, lines: Iterable[str], kind: str = "paragraph", *, page: int | None = None, header: str = ""
) -> None:
    """Add a block of many lines; memory holds little more than its text. Raises InvalidDocument past the limit."""
    pieces = []
    remaining = _counted(draft, lines)
    while piece := "\n".join(islice(remaining, _LINES_AT_ONCE)):
        pieces.append(piece)
    draft.add("\n".join(pieces), kind, page=page, header=header)


def _counted(draft: Draft, lines: Iterable[str]) -> Iterator[str]:
    """Yield `lines`; raise InvalidDocument at the one that takes the text past the limit: a few may be gigabytes."""
    n_characters = 0
    for line in lines:
        n_characters += len(line) + 1
        draft.refuse_over(n_characters - 1)
        yield line


def row_line(cells: Sequence[str]) -> str:
    """Return a row as one line: cells on one line each, joined by " | ", without the empty ones at its end."""
    return SEPARATOR.join(" ".join(cell.split()) for cell in cells[: n_filled(cells)])


def looks_like_header(first: Sequence[str], second: Sequence[str]) -> bool:
    """Say whether `first` names the columns of the rows from `second` on.

    It does where it has a different, short name that is no number, date, address or truth value for every column of
    `second`, save that the corner may be empty.
    """
    n_columns = max(n_filled(first), n_filled(second))
    names = [" ".join(cell.split()).casefold() for cell in first[:n_columns]]
    filled = names[1:] if names and not names[0] else names
    return (
        n_columns > 1
        and len(names) == n_columns
        and n_filled(second) > 0
        and len(set(filled)) == len(filled) > 0
        and all(name and len(name) <= _MAX_COLUMN_NAME and not _VALUE.fullmatch(name) for name in filled)
    )


def n_filled(cells: Sequence[str]) -> int:
    """Return the number of cells up to the last that holds something."""
    n = len(cells)
    while n and not cells[n - 1].strip():
        n -= 1
    return n
