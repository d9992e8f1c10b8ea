"""PDF grid: the lines that a page draws, and the tables whose cells they frame."""

import ctypes
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

import pypdfium2
import pypdfium2.raw as pdfium

from quipu.parse.pdf_tables import (
    PAPER,
    PdfRule,
    PdfTable,
    PdfWord,
    cell_text,
    count_header_rows,
    is_value,
    lines_of,
    merge_header_rows,
)

MAX_RULES = 600  # of a page, after those that continue one another are one: a drawing has more
MAX_CELLS = 20_000
_NEAR = 3.0  # points: lines this close touch or coincide
_SHARED_LINES = 4  # of two cells side by side: these cells hold several rows of a table without inner lines
_MAX_PATHS = 5_000  # of a page: a drawing has more
_MAX_SEGMENTS = 20_000
_THIN = 3.0  # points: a filled area this thin is a line
_MIN_RULE = 6.0  # points

_Cell = tuple[int, int]  # row and column


def find_grids(words: Sequence[PdfWord], rules: Sequence[PdfRule]) -> list[PdfTable]:
    """Return the tables of a page that have lines between their rows and columns, from top to bottom.

    `rules` are merged.
    """
    if len(rules) > MAX_RULES:
        return []
    tables = (_grid(words, group) for group in _touching(rules))
    return sorted((table for table in tables if table), key=lambda table: (-table.top, table.columns))


def drawn_rules(page: pypdfium2.PdfPage) -> list[PdfRule]:
    """Return the straight lines that a page draws along its axes, and the edges of its rectangles; none if too many.

    Those that coincide or continue one another are one.
    """
    n_paths = n_segments = 0
    rules: list[PdfRule] = []
    paper = page.get_size()
    for index in range(pdfium.FPDFPage_CountObjects(page)):
        path = pdfium.FPDFPage_GetObject(page, index)
        if pdfium.FPDFPageObj_GetType(path) != pdfium.FPDF_PAGEOBJ_PATH:
            continue
        n_paths += 1
        n_segments += max(0, pdfium.FPDFPath_CountSegments(path))
        if n_paths > _MAX_PATHS or n_segments > _MAX_SEGMENTS:
            return []
        if _is_visible(path):
            rules += _path_rules(path, paper)
    return _merged(rules)


def _is_visible(path: pdfium.FPDF_PAGEOBJECT) -> bool:
    """Return whether a path is drawn, in another colour than white."""
    fill, stroke = ctypes.c_int(), ctypes.c_int()
    pdfium.FPDFPath_GetDrawMode(path, fill, stroke)
    if stroke.value or not fill.value:
        return bool(stroke.value)
    colour = [ctypes.c_uint() for _ in range(4)]
    has_colour = pdfium.FPDFPageObj_GetFillColor(path, *colour)
    return not has_colour or any(part.value < 255 for part in colour[:3])


def _path_rules(path: pdfium.FPDF_PAGEOBJECT, paper: tuple[float, float]) -> Iterator[PdfRule]:
    edges = [ctypes.c_float() for _ in range(4)]
    if not pdfium.FPDFPageObj_GetBounds(path, *edges):
        return
    left, bottom, right, top = (edge.value for edge in edges)
    width, height = right - left, top - bottom
    if width > PAPER * paper[0] and height > PAPER * paper[1]:
        return
    if min(width, height) <= _THIN:
        corners = [(left, (bottom + top) / 2), (right, (bottom + top) / 2)]
        if height > width:
            corners = [((left + right) / 2, bottom), ((left + right) / 2, top)]
        pieces = [corners]
    else:
        pieces = _straight_pieces(path)
    for (x, y), (end_x, end_y) in pieces:
        if abs(y - end_y) < 0.5 and abs(x - end_x) >= _MIN_RULE:
            yield PdfRule(True, round(y, 2), round(min(x, end_x), 2), round(max(x, end_x), 2))
        elif abs(x - end_x) < 0.5 and abs(y - end_y) >= _MIN_RULE:
            yield PdfRule(False, round(x, 2), round(min(y, end_y), 2), round(max(y, end_y), 2))


def _straight_pieces(path: pdfium.FPDF_PAGEOBJECT) -> list[list[tuple[float, float]]]:
    """Return the start and end of each straight piece of a path, in points of the page."""
    matrix = pdfium.FS_MATRIX()
    pdfium.FPDFPageObj_GetMatrix(path, matrix)
    pieces = []
    first = before = (0.0, 0.0)
    for index in range(pdfium.FPDFPath_CountSegments(path)):
        segment = pdfium.FPDFPath_GetPathSegment(path, index)
        x, y = ctypes.c_float(), ctypes.c_float()
        pdfium.FPDFPathSegment_GetPoint(segment, x, y)
        point = (
            matrix.a * x.value + matrix.c * y.value + matrix.e,
            matrix.b * x.value + matrix.d * y.value + matrix.f,
        )
        kind = pdfium.FPDFPathSegment_GetType(segment)
        if kind == pdfium.FPDF_SEGMENT_LINETO:
            pieces.append([before, point])
        elif kind == pdfium.FPDF_SEGMENT_MOVETO:
            first = point
        before = point
        if pdfium.FPDFPathSegment_GetClose(segment):
            pieces.append([point, first])
    return pieces


def _merged(rules: Sequence[PdfRule]) -> list[PdfRule]:
    """Return the rules with those that coincide or continue one another as one."""
    merged: list[PdfRule] = []
    for is_horizontal in (True, False):
        lanes: list[list[PdfRule]] = []
        for rule in sorted(
            (rule for rule in rules if rule.is_horizontal is is_horizontal), key=lambda rule: (rule.at, rule.start)
        ):
            if lanes and rule.at - lanes[-1][0].at <= _NEAR:
                lanes[-1].append(rule)
            else:
                lanes.append([rule])
        for lane in lanes:
            merged += _joined(lane)
    return merged


def _joined(lane: Sequence[PdfRule]) -> Iterator[PdfRule]:
    """Yield the pieces of rules at about the same position, each as long as possible."""
    at = round(sum(rule.at for rule in lane) / len(lane), 2)
    start = end = None
    for rule in sorted(lane, key=lambda rule: (rule.start, rule.end)):
        if start is None or end is None:
            start, end = rule.start, rule.end
        elif rule.start <= end + _NEAR:
            end = max(end, rule.end)
        else:
            yield PdfRule(lane[0].is_horizontal, at, start, end)
            start, end = rule.start, rule.end
    if start is not None and end is not None:
        yield PdfRule(lane[0].is_horizontal, at, start, end)


def _touching(rules: Sequence[PdfRule]) -> list[list[PdfRule]]:
    """Return the groups of rules that are connected by crossings."""
    horizontal = [index for index, rule in enumerate(rules) if rule.is_horizontal]
    vertical = [index for index, rule in enumerate(rules) if not rule.is_horizontal]
    parents = list(range(len(rules)))

    def root(index: int) -> int:
        while parents[index] != index:
            parents[index] = parents[parents[index]]
            index = parents[index]
        return index

    for across in horizontal:
        for down in vertical:
            first, second = rules[across], rules[down]
            if (
                first.start - _NEAR <= second.at <= first.end + _NEAR
                and second.start - _NEAR <= first.at <= second.end + _NEAR
            ):
                parents[root(across)] = root(down)
    groups: dict[int, list[PdfRule]] = {}
    for index, rule in enumerate(rules):
        groups.setdefault(root(index), []).append(rule)
    return list(groups.values())


def _grid(words: Sequence[PdfWord], rules: Sequence[PdfRule]) -> PdfTable | None:
    """Return the table that the connected `rules` frame; None if they frame something else."""
    xs = sorted({rule.at for rule in rules if not rule.is_horizontal})
    ys = sorted({rule.at for rule in rules if rule.is_horizontal}, reverse=True)
    if len(xs) < 3 or len(ys) < 3 or len(xs) * len(ys) > MAX_CELLS:
        return None
    owners = _cell_owners(xs, ys, rules)
    words_by_cell: dict[_Cell, list[PdfWord]] = {}
    depths = [-y for y in ys]
    for word in words:
        row = bisect_right(depths, -word.middle) - 1
        column = bisect_right(xs, (word.left + word.right) / 2) - 1
        if 0 <= row < len(ys) - 1 and 0 <= column < len(xs) - 1:
            words_by_cell.setdefault(owners[row, column], []).append(word)
    if not _are_rectangles(owners) or _hold_rows(words_by_cell):
        return None
    rows = _rows(words_by_cell, owners, len(ys) - 1, len(xs) - 1)
    columns = [index for index in range(len(xs) - 1) if any(texts[index] for texts, _ in rows)]
    rows = [
        ([texts[index] for index in columns], [spread[index] for index in columns])
        for texts, spread in rows
        if any(texts)
    ]
    if len(columns) < 2 or len(rows) < 2:
        return None
    n_header_rows = count_header_rows([texts for texts, _ in rows])
    return PdfTable(
        rows=merge_header_rows(
            [spread if index < n_header_rows else texts for index, (texts, spread) in enumerate(rows)], n_header_rows
        ),
        n_header_rows=min(n_header_rows, 1),
        places=frozenset(word.place for cell in words_by_cell.values() for word in cell),
        columns=tuple((xs[index], xs[index + 1]) for index in columns),
        top=ys[0],
        bottom=ys[-1],
    )


def _cell_owners(xs: Sequence[float], ys: Sequence[float], rules: Sequence[PdfRule]) -> dict[_Cell, _Cell]:
    """Return the top left position of the cell that covers each position of the grid.

    Two positions side by side are one cell if no line separates them.
    """
    walls: dict[tuple[bool, float], list[PdfRule]] = {}
    for rule in rules:
        walls.setdefault((rule.is_horizontal, rule.at), []).append(rule)
    owners: dict[_Cell, _Cell] = {}
    for row, (top, bottom) in enumerate(pairwise(ys)):
        for column, (left, right) in enumerate(pairwise(xs)):
            if column and not _crosses(walls[False, left], (top + bottom) / 2):
                owners[row, column] = owners[row, column - 1]
            elif row and not _crosses(walls[True, top], (left + right) / 2):
                owners[row, column] = owners[row - 1, column]
            else:
                owners[row, column] = (row, column)
    return owners


def _crosses(rules: Sequence[PdfRule], position: float) -> bool:
    return any(rule.start <= position <= rule.end for rule in rules)


def _are_rectangles(owners: Mapping[_Cell, _Cell]) -> bool:
    """Return whether each cell covers a rectangle; lines that frame parts of a form often do not."""
    positions_by_owner: dict[_Cell, list[_Cell]] = {}
    for position, owner in owners.items():
        positions_by_owner.setdefault(owner, []).append(position)
    return all(
        len(positions) == len({row for row, _ in positions}) * len({column for _, column in positions})
        for positions in positions_by_owner.values()
    )


def _hold_rows(words_by_cell: Mapping[_Cell, Sequence[PdfWord]]) -> bool:
    """Return whether cells side by side share lines, most of them values: they hold rows without lines between them."""
    cells_by_row: dict[int, list[list[list[PdfWord]]]] = {}
    for (row, _), words in words_by_cell.items():
        cells_by_row.setdefault(row, []).append(lines_of(words))
    for cells in cells_by_row.values():
        baselines = [{round(line[0].baseline) for line in lines} for lines in cells]
        has_values = [2 * sum(is_value(line[0].text) for line in lines) > len(lines) for lines in cells]
        for index, first in enumerate(baselines):
            for other in range(index + 1, len(baselines)):
                if len(first & baselines[other]) >= _SHARED_LINES and (has_values[index] or has_values[other]):
                    return True
    return False


def _rows(
    words_by_cell: Mapping[_Cell, Sequence[PdfWord]], owners: Mapping[_Cell, _Cell], n_rows: int, n_columns: int
) -> list[tuple[list[str], list[str]]]:
    """Return the texts of each row twice: a cell over several columns in the first of them, and in all of them.

    A cell over several rows is repeated in each of them, so that every row can be read alone.
    """
    text_by_cell = {cell: cell_text(words) for cell, words in words_by_cell.items()}
    rows = []
    for row in range(n_rows):
        cells = [owners[row, column] for column in range(n_columns)]
        spread = [text_by_cell.get(cell, "") for cell in cells]
        texts = ["" if index and cells[index - 1] == cells[index] else text for index, text in enumerate(spread)]
        rows.append((texts, spread))
    return rows
