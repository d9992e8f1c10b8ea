"""XLSX: workbooks sheet by sheet; adjacent rows form a table. Values are as last calculated, dates in ISO form."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import chain, groupby, pairwise
from typing import IO
from xml.etree.ElementTree import Element

from quipu.errors import InvalidDocument
from quipu.model.document import ParsedDocument, SourceDocument
from quipu.parse.archive import OfficePackage, relation_id
from quipu.parse.builder import DocumentBuilder, add_lines, add_table, filled_width, format_row, looks_like_header
from quipu.parse.decode import normalise
from quipu.parse.limits import MAX_CHARACTERS, MAX_SHARED_STRINGS
from quipu.parse.xml import attribute, child, children, descendants, local, stream_elements, whole_number

MEDIA_TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
MACRO_MEDIA_TYPE = "application/vnd.ms-excel.sheet.macroenabled.12"

_MAX_PLACED_COLUMNS = 1_000  # a cell further right follows its predecessor without a gap
_COLUMN = re.compile(r"[A-Z]{1,3}")
_DATES = frozenset({*range(14, 23), *range(27, 37), *range(45, 48), *range(50, 59)})  # ISO/IEC 29500-1, 18.8.30
_PERCENTS = frozenset({9, 10})
_NOT_CODE = re.compile(r'"[^"]*"|\\.|\[[^\]]*\]|_.|\*.')
_DATE_CODE = re.compile(r"[dmyhs]", re.IGNORECASE)


class XlsxParser:
    """Reads Excel's XML row by row, so memory use follows the text of a sheet. Hidden sheets are left out."""

    media_types = frozenset({MEDIA_TYPE, MACRO_MEDIA_TYPE})

    def parse(self, source: SourceDocument) -> ParsedDocument:
        """Return a heading for each sheet, followed by its tables.

        Raises InvalidDocument if the file is damaged, protected, or would exhaust memory.
        """
        package = OfficePackage(source)
        workbook = package.tree(package.main)
        relations = package.relations(package.main)
        cells = _CellReader.of(package, workbook)
        builder = DocumentBuilder(package.name)
        for sheet in descendants(workbook, "sheet"):
            relation = relations.get(relation_id(sheet))
            is_visible = attribute(sheet, "state") in ("", "visible")
            if relation is not None and relation.kind == "worksheet" and is_visible:
                builder.path.leave(1)
                builder.add_heading(attribute(sheet, "name"), 1)
                with package.archive.open(relation.target) as stream:
                    _add_sheet(builder, _rows(stream, cells, package.name))
        title, metadata = package.properties()
        return (builder if builder.has_body else DocumentBuilder(package.name)).build(title, metadata)


PARSER = XlsxParser()


@dataclass(frozen=True, slots=True)
class _SheetRow:
    """A non-empty row: its number from 1, and its cells from the first column."""

    number: int
    cells: list[str]

    @property
    def has_one_cell(self) -> bool:
        return sum(bool(cell) for cell in self.cells) == 1


def _add_sheet(builder: DocumentBuilder, rows: Iterator[_SheetRow]) -> None:
    """Add the tables of a sheet; rows with a single cell outside a table are text."""
    for (_, is_table), group in groupby(_group_rows(rows), key=lambda member: member[0]):
        lines = (row.cells for _, row in group)
        if is_table:
            add_table(builder, _from_first_column(lines))
        else:
            add_lines(builder, map(format_row, _from_first_column(lines)))


def _group_rows(rows: Iterator[_SheetRow]) -> Iterator[tuple[tuple[int, bool], _SheetRow]]:
    """Yield each row with the number of its group and whether the group is a table."""
    n_groups = 0
    is_table = False
    before: _SheetRow | None = None
    for row, following in pairwise(chain(rows, (None,))):
        if row is not None:
            if before is None or _begins_group(before, row, following, is_table=is_table):
                n_groups += 1
                is_table = not row.has_one_cell
            yield (n_groups, is_table), row
            before = row


def _begins_group(before: _SheetRow, row: _SheetRow, following: _SheetRow | None, *, is_table: bool) -> bool:
    """Return whether a table or text begins at `row`. Empty rows end a table only if text or a header follows."""
    has_gap = row.number > before.number + 1
    if not is_table:
        return has_gap or not row.has_one_cell
    return has_gap and (row.has_one_cell or (following is not None and looks_like_header(row.cells, following.cells)))


def _from_first_column(rows: Iterator[list[str]]) -> Iterator[list[str]]:
    """Yield the rows without the leading columns that are empty in the first row and in the row itself."""
    n_empty: int | None = None
    for row in rows:
        if n_empty is None:
            n_empty = next(index for index, cell in enumerate(row) if cell)
        yield row if any(row[:n_empty]) else row[n_empty:]


def _rows(stream: IO[bytes], cells: "_CellReader", name: str) -> Iterator[_SheetRow]:
    """Yield the non-empty rows. A row or cell without a position follows the one before it."""
    number = 0
    for element in stream_elements(stream, "row", name):
        stated = whole_number(attribute(element, "r"))
        number = number + 1 if stated is None else stated
        values = cells.row(element, name)
        if filled_width(values):
            yield _SheetRow(number, values)


class _CellReader:
    """Converts cells to text with the number formats, shared strings and date system of one workbook."""

    def __init__(self, strings: Sequence[str], formats: Sequence[str], *, is_1904: bool) -> None:
        self._strings = strings
        self._formats = formats  # by number of the cell style: "date", "percent" or ""
        self._epoch = datetime(1904, 1, 1) if is_1904 else datetime(1899, 12, 30)

    @classmethod
    def of(cls, package: OfficePackage, workbook: Element) -> "_CellReader":
        """Return the reader for the cells of `workbook`."""
        strings = package.related(package.main, "sharedStrings")
        styles = package.related(package.main, "styles")
        return cls(
            _shared_strings(package, strings) if strings else [],
            _formats(package.tree(styles)) if styles else [],
            is_1904=attribute(child(workbook, "workbookPr"), "date1904") in ("1", "true"),
        )

    def row(self, element: Element, name: str) -> list[str]:
        """Return the cells of a row by column, empty ones where it has none.

        Raises InvalidDocument, naming the document `name`, for cells that share more text than a document may hold.
        """
        values: list[str] = []
        n_characters = 0
        for cell in children(element, "c"):
            column = _column(attribute(cell, "r"))
            if column is not None and len(values) < column <= _MAX_PLACED_COLUMNS:
                values += [""] * (column - len(values))
            values.append(normalise(self._value(cell)).strip())
            n_characters += len(values[-1])
            if n_characters > MAX_CHARACTERS:
                raise InvalidDocument(
                    f"{name} holds more than {MAX_CHARACTERS:,} characters of text.",
                    remedy="Split it into several files.",
                )
        return values

    def _value(self, cell: Element) -> str:
        kind = attribute(cell, "t") or "n"
        if kind == "inlineStr":
            inline = child(cell, "is")
            return "" if inline is None else _string(inline)
        value = child(cell, "v")
        text = (value.text or "") if value is not None else ""
        if kind == "s":
            index = whole_number(text)
            return self._strings[index] if index is not None and index < len(self._strings) else ""
        if kind == "b":
            return "true" if text == "1" else "false"
        if kind == "n":
            style = whole_number(attribute(cell, "s"))
            number_format = self._formats[style] if style is not None and style < len(self._formats) else ""
            return self._number(text, number_format)
        return text  # the text result of a formula, a date in ISO form, or an error like #N/A

    def _number(self, text: str, number_format: str) -> str:
        try:
            number = float(text)
            if number_format == "date":
                return self._date(number)
            return f"{number * 100:.12g}%" if number_format == "percent" else _plain(number)
        except (ValueError, OverflowError):
            return text

    def _date(self, days: float) -> str:
        """Return a number of days as a date, with a time if it has one; less than a day is a time only."""
        if 0 <= days < 1:
            return (self._epoch + timedelta(seconds=round(days * 86_400))).strftime("%H:%M:%S")
        # In the 1900 date system day 60 is 29 February 1900, a date that does not exist.
        is_before_gap = days < 60 and self._epoch.year == 1899
        moment = self._epoch + timedelta(days=int(days) + is_before_gap, seconds=round(days % 1 * 86_400))
        return moment.date().isoformat() if moment.time() == datetime.min.time() else moment.isoformat(sep=" ")


def _plain(number: float) -> str:
    """Return a number with up to 15 digits, as in Excel; whole numbers have no exponent."""
    return str(int(number)) if number == int(number) and abs(number) < 1e15 else f"{number:.15g}"


def _column(reference: str) -> int | None:
    """Return the column number, from 0, of a cell reference such as "B3"; None if there is no column."""
    letters = _COLUMN.match(reference)
    if letters is None:
        return None
    column = 0
    for letter in letters[0]:
        column = column * 26 + ord(letter) - ord("A") + 1
    return column - 1


def _shared_strings(package: OfficePackage, part: str) -> list[str]:
    strings: list[str] = []
    n_characters = 0
    with package.archive.open(part) as stream:
        for element in stream_elements(stream, "si", package.name):
            strings.append(_string(element))
            n_characters += len(strings[-1])
            if len(strings) > MAX_SHARED_STRINGS or n_characters > MAX_CHARACTERS:
                raise InvalidDocument(
                    f"The cells of {package.name} share more than {MAX_SHARED_STRINGS:,} strings.",
                    remedy="Save its sheets as CSV.",
                )
    return strings


def _string(element: Element) -> str:
    """Return the text of a string with all its formatted runs, without phonetic hints."""
    runs = chain.from_iterable(
        [node] if local(node) == "t" else children(node, "t") for node in children(element, "t", "r")
    )
    return "".join(run.text or "" for run in runs)


def _formats(styles: Element) -> list[str]:
    """Return the number format of each cell style: "date", "percent" or ""."""
    codes = {attribute(node, "numFmtId"): attribute(node, "formatCode") for node in descendants(styles, "numFmt")}
    cell_styles = child(styles, "cellXfs")
    format_ids = (attribute(node, "numFmtId") for node in (() if cell_styles is None else children(cell_styles, "xf")))
    return [_format_kind(format_id, codes.get(format_id)) for format_id in format_ids]


def _format_kind(format_id: str, code: str | None) -> str:
    if code is None:
        builtin_id = whole_number(format_id) or 0
        return "date" if builtin_id in _DATES else "percent" if builtin_id in _PERCENTS else ""
    bare = _NOT_CODE.sub("", code)
    if bare.lower().startswith("general"):
        return ""
    return "date" if _DATE_CODE.search(bare) else "percent" if "%" in bare else ""
