"""PDF columns: tables without lines between their cells, found by words that stand below one another in columns.

Only words that the file draws one after the other are read as a row. So the columns of a newspaper, whose lines stand
side by side too, are no table.
"""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import mean

from quipu.parse.builder import looks_like_header
from quipu.parse.pdf_tables import (
    MAX_HEADER_ROWS,
    SAME_LINE,
    PdfRule,
    PdfTable,
    PdfWord,
    cell_text,
    count_header_rows,
    is_leader,
    is_level,
    is_number,
    is_value,
    is_year,
    lines_of,
    merge_header_rows,
)

MIN_GAP = 0.75  # font sizes: a wider space separates two cells
MIN_GAP_IN_LETTERS = 2.2  # times `MIN_GAP`, in letters: the spaces of a typewriter font are wide
MIN_VALUE_GAP = 0.3  # between two numbers
MAX_CURRENCY_GAP = 6.0  # between a sign and its amount
MIN_HEADER_GAP = 0.4  # between two column names
MAX_TABLE_WORDS = 20_000  # of a page
MAX_ROW_DISTANCE = 3.4  # font sizes, from baseline to baseline
MAX_HEADER_DISTANCE = 2.6
MAX_SIZE_CHANGE = 1.12  # a larger line is a heading
MAX_WORDS = 7  # of a cell on average: longer ones are text in columns
MAX_SKIPPED = 2  # lines of one cell between two rows
MIN_ROWS = {2: 4, 3: 3}  # by the number of columns; 2 for four or more
MIN_FILLED = 0.45  # of the cells
MIN_COLUMN_FILLED = 0.3  # of the cells of a column
MAX_CODE = 0.2  # of the cells: program text is aligned too
_WIDE_RULE = 0.6  # of the width of a table: the line above its header
_CODE = re.compile(r"[;{}=\\]$|^[{}=>\\]|\(\)|[(,]$|^\W+$(?<![-–—%*])|\w\(.*[,)]$")
_PAGE_NUMBER = re.compile(r"[1-9]\d{0,3}|[ivxlc]+", re.IGNORECASE)
_ALIGNED = 2.0  # points
_CURRENCIES = frozenset("$€£¥₽")
_STEPS = 8  # among rows that are no table, as many searches: one in each row would take quadratic time
_CENTRED = 1.3  # font sizes between the middle of a name and that of its columns


@dataclass(frozen=True, slots=True)
class _AlignedCell:
    """Words of one line with no wide space between them."""

    words: tuple[PdfWord, ...]

    @property
    def left(self) -> float:
        return self.words[0].left

    @property
    def right(self) -> float:
        return max(word.right for word in self.words)

    @property
    def text(self) -> str:
        return cell_text(self.words)


@dataclass(frozen=True, slots=True)
class _AlignedRow:
    cells: tuple[_AlignedCell, ...]

    @property
    def baseline(self) -> float:
        return self.cells[0].words[0].baseline

    @property
    def size(self) -> float:
        return max(word.size for cell in self.cells for word in cell.words)


@dataclass(frozen=True, slots=True)
class _ColumnSpan:
    left: float
    right: float

    def overlaps(self, cell: _AlignedCell) -> bool:
        """Return whether a cell stands above or below the column."""
        return cell.left < self.right and self.left < cell.right

    def with_cell(self, cell: _AlignedCell) -> "_ColumnSpan":
        """Return the column, wide enough for `cell`."""
        return _ColumnSpan(min(self.left, cell.left), max(self.right, cell.right))


def find_aligned(words: Sequence[PdfWord], rules: Sequence[PdfRule]) -> list[PdfTable]:
    """Return the tables whose rows are lines of words in the same columns, in order of the text of the page.

    `words` are in the order of the text. A line above a table limits its header, so `rules` are read too.
    """
    rows = [row for row in (_row(line, MIN_GAP) for line in _lines_in_order(words)) if row.cells]
    by_height = sorted(rows, key=lambda row: row.baseline)
    edges = [pair for pair in (by_height[:2], by_height[:-3:-1]) if len(pair) == 2 and _is_running(*pair)]
    rows = [row for row in rows if all(row is not edge for edge, _ in edges)]
    tables: list[PdfTable] = []
    used_places: set[int] = set()
    start = 0
    if len(words) > MAX_TABLE_WORDS:
        return []
    while start < len(rows):
        body, columns = _body(rows, start)
        table = None
        if _is_table(body, columns):
            table = _table(body, columns, [word for word in words if word.place not in used_places], rules)
        if table is not None:
            tables.append(table)
            used_places |= table.places
        start += len(body) if table is not None else max(1, len(body) // _STEPS)
    return tables


def _is_running(row: _AlignedRow, nearest: _AlignedRow) -> bool:
    """Return whether the first or last line of a page stands apart and has its page number."""
    is_apart = abs(row.baseline - nearest.baseline) > 2 * row.size and len(row.cells) <= 3
    return is_apart and any(_PAGE_NUMBER.fullmatch(row.cells[index].text) for index in (0, -1))


def _lines_in_order(words: Sequence[PdfWord]) -> Iterator[list[PdfWord]]:
    """Yield runs of words that follow one another in the text, each further right on the same line."""
    line: list[PdfWord] = []
    for word in words:
        if line and not (is_level(line[0], word) and word.left > line[-1].right - word.size / 4):
            yield line
            line = []
        line.append(word)
    if line:
        yield line


def _row(line: Sequence[PdfWord], min_gap: float) -> _AlignedRow:
    """Return a line divided where the space between two words is wider than `min_gap` font sizes."""
    cells: list[list[PdfWord]] = []
    has_leader = False
    for word in line:
        before = cells[-1][-1] if cells else None
        if is_leader(word):
            has_leader = True
            if before is not None:
                cells[-1][-1] = replace(before, text=before.text.rstrip(".") or before.text)
        elif before is not None and not has_leader and word.left - before.right <= _gap(before, word, min_gap):
            cells[-1].append(word)
        else:
            cells.append([word])
            has_leader = False
    return _AlignedRow(tuple(_AlignedCell(tuple(cell)) for cell in cells))


def _gap(before: PdfWord, word: PdfWord, min_gap: float) -> float:
    """Return the width up to which the space between two words does not separate cells, in points."""
    if before.text in _CURRENCIES and is_value(word.text):
        return MAX_CURRENCY_GAP * word.size
    if is_value(before.text) and is_value(word.text):
        return min(MIN_VALUE_GAP, min_gap) * word.size
    letter_width = (before.right - before.left + word.right - word.left) / (len(before.text) + len(word.text))
    return max(min_gap * word.size, min_gap * MIN_GAP_IN_LETTERS * letter_width)


def _body(rows: Sequence[_AlignedRow], start: int) -> tuple[list[_AlignedRow], list[_ColumnSpan]]:
    """Return the rows from `start` that share columns, and the columns.

    Lines of one cell between two rows are among them: they are titles of rows, or parts of the cells beside them.
    """
    body: list[_AlignedRow] = []
    columns: list[_ColumnSpan] = []
    skipped: list[_AlignedRow] = []
    for row in rows[start:]:
        above = (skipped or body or [row])[-1]
        if body and not 0 < above.baseline - row.baseline <= MAX_ROW_DISTANCE * max(above.size, row.size):
            break
        if len(row.cells) == 1:
            is_text = len(row.cells[0].words) > 2 * MAX_WORDS
            if not body or is_text or len(skipped) == MAX_SKIPPED or row.size > MAX_SIZE_CHANGE * body[0].size:
                break
            skipped.append(row)
            continue
        wider = _widened(columns, row)
        if wider is None:
            break
        body += [*skipped, row]
        columns, skipped = wider, []
    if skipped and any(abs(skipped[0].cells[0].left - column.left) < _ALIGNED for column in columns[1:]):
        body.append(skipped[0])
    return body, columns


def _widened(columns: Sequence[_ColumnSpan], row: _AlignedRow) -> list[_ColumnSpan] | None:
    """Return the columns with those that `row` adds; None if a cell is in two columns, or two cells are in one."""
    wider = list(columns)
    used: set[int] = set()
    for cell in row.cells:
        hits = [index for index, column in enumerate(wider) if column.overlaps(cell)]
        if len(hits) > 1 or used & set(hits):
            return None
        if hits:
            wider[hits[0]] = wider[hits[0]].with_cell(cell)
            used.add(hits[0])
        else:
            wider.append(_ColumnSpan(cell.left, cell.right))
            used.add(len(wider) - 1)
    wider.sort(key=lambda column: column.left)
    return wider if all(first.right <= second.left for first, second in pairwise(wider)) else None


def _is_table(body: Sequence[_AlignedRow], columns: Sequence[_ColumnSpan]) -> bool:
    """Return whether rows hold data in columns, and not text, program text or a table of contents."""
    if len(columns) < 2 or len(body) < MIN_ROWS.get(len(columns), 2):
        return False
    texts = _texts(body, columns)
    n_rows = len(texts)
    n_filled = [sum(bool(cell) for cell in column) for column in zip(*texts, strict=True)]
    is_filled = min(n_filled) >= MIN_COLUMN_FILLED * n_rows and sum(n_filled) >= MIN_FILLED * n_rows * len(columns)
    if n_rows < MIN_ROWS.get(len(columns), 2) or not is_filled:
        return False
    n_numbers = sum(is_number(cell) for row in texts for cell in row[1:])
    if n_rows == 2 and not (looks_like_header(*texts) and n_numbers and all(texts[1])):
        return False
    if len(columns) == 2 and 2 * n_numbers <= n_rows:
        return False
    return not (_is_prose(texts) or _is_code(texts) or _is_contents(texts))


def _table(
    body: Sequence[_AlignedRow], columns: Sequence[_ColumnSpan], words: Sequence[PdfWord], rules: Sequence[PdfRule]
) -> PdfTable:
    """Return the rows as a table, with the column names above it."""
    header = _header_lines(body[0], columns, words, rules)
    rows = [*_header_texts(header, columns), *_texts(body, columns)]
    n_header_rows = max(count_header_rows(rows), len(header))
    places = {word.place for row in header for cell in row.cells for word in cell.words}
    for row in body:
        in_row = [word.place for cell in row.cells for word in cell.words]
        places |= set(range(min(in_row), max(in_row) + 1))  # with leaders
    return PdfTable(
        rows=merge_header_rows(rows, n_header_rows),
        n_header_rows=min(n_header_rows, 1),
        places=frozenset(places),
        columns=tuple((column.left, column.right) for column in columns),
        top=(header or body)[0].baseline + body[0].size,
        bottom=body[-1].baseline,
    )


def _texts(body: Sequence[_AlignedRow], columns: Sequence[_ColumnSpan]) -> list[list[str]]:
    """Return the texts of the rows by column. A line of one cell is a row, or a part of the cell beside it."""
    texts: list[list[str]] = []
    beginning = ""  # of the first cell of the next row
    for row, below in zip(body, [*body[1:], None], strict=True):
        cells = [""] * len(columns)
        for cell in row.cells:
            cells[_column_of(cell, columns)] = cell.text
        index = next(index for index, text in enumerate(cells) if text) if any(cells) else 0
        if len(row.cells) > 1:
            cells[0] = f"{beginning} {cells[0]}".strip()
            texts.append(cells)
            beginning = ""
        elif index == 0 and below is not None and below.cells[0].text[:1].islower():
            beginning = f"{beginning} {cells[0]}".strip()
        elif index == 0:
            texts.append(cells)
        else:
            texts[-1][index] = f"{texts[-1][index]} {cells[index]}".strip()
    return texts


def _column_of(cell: _AlignedCell, columns: Sequence[_ColumnSpan]) -> int:
    """Return the index of the column in which a cell begins, otherwise of the nearest."""
    return min(
        range(len(columns)),
        key=lambda index: (not columns[index].overlaps(cell), abs(columns[index].left - cell.left), index),
    )


def _is_prose(texts: Sequence[Sequence[str]]) -> bool:
    """Return whether a column holds sentences: then the rows are lines of text that stand side by side."""
    for column in zip(*texts, strict=True):
        n_words = [len(text.split()) for text in column if text]
        if n_words and mean(n_words) > MAX_WORDS:
            return True
    return False


def _is_code(texts: Sequence[Sequence[str]]) -> bool:
    """Return whether many cells are pieces of program text."""
    cells = [cell for row in texts for cell in row if cell]
    return sum(_CODE.search(cell) is not None for cell in cells) > MAX_CODE * len(cells)


def _is_contents(texts: Sequence[Sequence[str]]) -> bool:
    """Return whether the last column has nearly nothing but rising page numbers, as in a table of contents."""
    last = [row[-1] for row in texts if row[-1]]
    pages = [int(text) for text in last if text.isdecimal() and len(text) <= 4]
    return len(texts[0]) <= 5 and len(pages) >= 0.7 * len(last) and pages == sorted(pages)


def _header_lines(
    first: _AlignedRow, columns: Sequence[_ColumnSpan], words: Sequence[PdfWord], rules: Sequence[PdfRule]
) -> list[_AlignedRow]:
    """Return the lines above the `first` row that name columns, from top to bottom."""
    left, right = columns[0].left - first.size, columns[-1].right + first.size
    above = [word for word in words if word.baseline > first.baseline + SAME_LINE * first.size]
    lines = [line for line in reversed(lines_of(above)) if line[-1].right > left and line[0].left < right]
    header: list[_AlignedRow] = []
    above_header = math.inf
    for line in lines[: MAX_HEADER_ROWS + 1]:
        row = _row(line, MIN_HEADER_GAP)
        is_header = row.cells and _names_columns(row, (header or [first])[-1], columns, first.size)
        if not is_header or len(header) == MAX_HEADER_ROWS:
            above_header = line[0].baseline
            break
        header.append(row)
    rule = _rule_above(header, above_header, columns, rules) if header else None
    if rule is not None:
        return [row for row in reversed(header) if row.baseline < rule]
    while header and len(header[-1].cells) == 1:
        header.pop()  # a caption, or the end of the text above
    return header[::-1]


def _rule_above(
    header: Sequence[_AlignedRow], end: float, columns: Sequence[_ColumnSpan], rules: Sequence[PdfRule]
) -> float | None:
    """Return the height of the highest line that is drawn above column names and below `end`; None if there is none.

    `header` are lines from the lowest to the highest.
    """
    left, right = columns[0].left, columns[-1].right
    limit = min(end, header[-1].baseline + MAX_HEADER_DISTANCE * header[-1].size)
    heights = [
        rule.at
        for rule in rules
        if rule.is_horizontal
        and header[0].baseline < rule.at < limit
        and min(rule.end, right) - max(rule.start, left) > _WIDE_RULE * (right - left)
    ]
    return max(heights, default=None)


def _names_columns(row: _AlignedRow, below: _AlignedRow, columns: Sequence[_ColumnSpan], size: float) -> bool:
    """Return whether a line above a table belongs to it: near, of the same size, without numbers, not a sentence."""
    left, right = columns[0].left - size, columns[-1].right + size
    cells = row.cells
    n_columns = sum(column.overlaps(cell) for column in columns for cell in cells)
    is_near = row.baseline - below.baseline <= MAX_HEADER_DISTANCE * max(size, row.size)
    is_within = left <= cells[0].left and cells[-1].right <= right
    is_title = len(cells) == 1 and n_columns > len(columns) / 2
    is_sentence = any(len(cell.words) > MAX_WORDS for cell in cells)
    has_numbers = any(is_number(cell.text) and not is_year(cell.text) for cell in cells)
    return (
        is_near
        and is_within
        and not is_title
        and not is_sentence
        and not has_numbers
        and row.size <= MAX_SIZE_CHANGE * size * 1.1
    )


def _header_texts(header: Sequence[_AlignedRow], columns: Sequence[_ColumnSpan]) -> Iterator[list[str]]:
    """Yield the names of the columns line by line; a name that is centred over several columns is in all of them."""
    for row in header:
        overlaps = ([cell.text for cell in row.cells if column.overlaps(cell)] for column in columns)
        yield _spread(row, columns) or [" ".join(names) for names in overlaps]


def _spread(row: _AlignedRow, columns: Sequence[_ColumnSpan]) -> list[str]:
    """Return the nearest cell of `row` for each column but the first, if each cell is centred over its columns."""
    if not 1 < len(row.cells) < len(columns) - 1:
        return []
    centres = [(cell.left + cell.right) / 2 for cell in row.cells]
    nearest = [
        min(range(len(centres)), key=lambda index: (abs(centres[index] - (column.left + column.right) / 2), index))
        for column in columns
    ]
    start = 0 if columns[0].overlaps(row.cells[0]) else 1
    for index, centre in enumerate(centres):
        group = [column for column, place in zip(columns[start:], nearest[start:], strict=True) if place == index]
        if not group:
            return []
        left, right = group[0].left, group[-1].right
        tolerance = max(_CENTRED * row.size, (right - left) / 4)
        if len(group) > 1 and abs((left + right) / 2 - centre) > tolerance:
            return []
    return [""] * start + [row.cells[place].text for place in nearest[start:]]
