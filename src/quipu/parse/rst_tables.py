"""Tables of reStructuredText: the rows of grid, simple, list and CSV tables."""

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

GRID_BORDER = re.compile(r"\+(?:[-=]+\+)+$")
_SIMPLE_BORDER = re.compile(r"=+(?: +=+)+$")


@dataclass(frozen=True, slots=True)
class RstTable:
    """The rows of a table, whether the first is marked as its header, and the line after the table."""

    rows: Sequence[Sequence[str]]
    has_header: bool
    end: int


def grid_table(lines: Sequence[str], start: int) -> RstTable | None:
    """Return the table drawn with lines that begins at line `start`; None if there is none."""
    if not GRID_BORDER.match(lines[start]):
        return None
    end = start
    while end < len(lines) and lines[end][:1] in ("+", "|"):
        end += 1
    n_columns = lines[start].count("+") - 1
    rows: list[list[list[str]]] = []  # the lines of each cell
    row: list[list[str]] = [[] for _ in range(n_columns)]
    has_header = False
    for line in lines[start + 1 : end]:
        if line.startswith("+"):
            rows.append(row)
            row = [[] for _ in range(n_columns)]
            has_header = has_header or "=" in line
            continue
        for column, cell in enumerate(line.strip().strip("|").split("|")):
            row[min(column, n_columns - 1)].append(cell.strip())
    if any(row):  # the last border is missing
        rows.append(row)
    return RstTable(_joined_cells(rows), has_header, end)


def simple_table(lines: Sequence[str], start: int) -> RstTable | None:
    """Return the table with borders like "=== ===" that begins at line `start`; None if there is none."""
    if not _SIMPLE_BORDER.match(lines[start]):
        return None
    borders = [start]
    for position in range(start + 1, len(lines)):
        if _SIMPLE_BORDER.match(lines[position]):
            borders.append(position)
        elif not lines[position] and len(borders) > 1 and borders[-1] == position - 1:
            break
    starts = [border.start() for border in re.finditer("=+", lines[start])]
    spans = [*pairwise(starts), (starts[-1], None)]
    rows: list[list[list[str]]] = []  # the lines of each cell
    for line in lines[start + 1 : borders[-1]]:
        if not line or set(line) <= set("=- "):
            continue
        cells = [line[first:last].strip() for first, last in spans]
        if cells[0] or not rows:
            rows.append([[] for _ in cells])
        for cell_lines, cell in zip(rows[-1], cells, strict=True):
            cell_lines.append(cell)
    return RstTable(_joined_cells(rows), len(borders) > 2, borders[-1] + 1)


def list_table(content: Sequence[str]) -> list[list[str]]:
    """Return the rows of a list of lists, the content of the directive `list-table`."""
    rows: list[list[list[str]]] = []  # the lines of each cell
    for line in content:
        text = line.strip()
        if line.startswith(("* -", "- -", "* *", "- *")):
            rows.append([[text[3:].strip()]])
        elif rows and line.startswith(("  - ", "  * ")):
            rows[-1].append([text[2:]])
        elif rows and text in ("-", "*"):
            rows[-1].append([])
        elif rows:
            rows[-1][-1].append(text)
    return _joined_cells(rows)


def csv_table(content: Sequence[str], header: str) -> list[list[str]]:
    """Return the rows of the directive `csv-table`; `header` is its option, a row."""
    lines = [*([header] if header else []), *content]
    try:
        return list(csv.reader(lines, skipinitialspace=True))
    except csv.Error:
        return [[line] for line in lines]


def _joined_cells(rows: Sequence[Sequence[Sequence[str]]]) -> list[list[str]]:
    """Return each cell, a sequence of lines, as one line."""
    return [[" ".join(filter(None, lines)) for lines in row] for row in rows]
