"""CSV and TSV: one table with one line per row. A first row that names the columns becomes its header."""

import csv
from collections import Counter
from collections.abc import Iterator
from itertools import islice

from quipu.errors import InvalidDocument
from quipu.model.document import ParsedDocument, SourceDocument
from quipu.parse.builder import DocumentBuilder, add_table
from quipu.parse.decode import decode, display_name
from quipu.parse.limits import MAX_ROW_CELLS

_DELIMITERS = (",", ";", "\t", "|")
_SAMPLE_ROWS = 50
_SAMPLE_CHARACTERS = 65_536


class CsvParser:
    """Reads any number of rows; memory use follows the size of the file, not the number of cells."""

    media_types = frozenset({"text/csv", "text/tab-separated-values"})

    def parse(self, source: SourceDocument) -> ParsedDocument:
        """Return the rows as one table.

        The delimiter of TSV is a tab. For CSV it is the one that gives most of the first rows the same number of cells.
        Raises InvalidDocument if the bytes are not text, or a quoted cell does not end.
        """
        text = decode(source)
        body_start, delimiter = 0, "\t"
        if not source.media_type.lower().startswith("text/tab-separated-values"):
            body_start, delimiter = _declared_delimiter(text) or (0, _guess_delimiter(text))
        builder = DocumentBuilder(display_name(source))
        add_table(builder, _rows(_lines(text, body_start), delimiter, builder.name))
        return builder.build()


PARSER = CsvParser()


def _rows(lines: Iterator[str], delimiter: str, name: str) -> Iterator[list[str]]:
    """Yield the cells of each row. Raises InvalidDocument if a cell does not end, or a row has too many cells."""
    n_cells = 0

    def counted_lines() -> Iterator[str]:
        nonlocal n_cells
        for line in lines:
            n_cells += line.count(delimiter)
            if n_cells > MAX_ROW_CELLS:
                raise InvalidDocument(
                    f"{name} has a row of more than {MAX_ROW_CELLS:,} cells, at line {reader.line_num + 1}.",
                    remedy="Write it with fewer columns, or as text.",
                )
            yield line

    reader = csv.reader(counted_lines(), delimiter=delimiter)
    try:
        for row in reader:
            n_cells = 0
            yield row
    except csv.Error as error:
        raise InvalidDocument(
            f"{name} cannot be read as a table: {error}, at line {reader.line_num}.",
            remedy='Close the quotation mark of that cell; a quotation mark inside a cell is written "".',
        ) from error


def _lines(text: str, start: int = 0) -> Iterator[str]:
    r"""Yield the lines of `text`, each with its \n."""
    while start < len(text):
        end = text.find("\n", start) + 1 or len(text)
        yield text[start:end]
        start = end


def _declared_delimiter(text: str) -> tuple[int, str] | None:
    """Return the start of the rows and the delimiter if the first line declares it as Excel does, as in "sep=;"."""
    first = text[:8].partition("\n")[0]
    return (len(first) + 1, first[4]) if len(first) == 5 and first.lower().startswith("sep=") else None


def _guess_delimiter(text: str) -> str:
    """Return the delimiter that gives most of the first rows the same number of cells; by default a comma."""
    return max(_DELIMITERS, key=lambda delimiter: _evenness(text[:_SAMPLE_CHARACTERS], delimiter))


def _evenness(sample: str, delimiter: str) -> tuple[float, int]:
    """Return the share of rows with the most frequent number of cells, and this number; zeros for one cell per row."""
    try:
        rows = islice(csv.reader(_lines(sample), delimiter=delimiter), _SAMPLE_ROWS)
        widths = Counter(len(row) for row in rows if row)
    except csv.Error:
        return 0.0, 0
    if not widths:
        return 0.0, 0
    width, count = max(widths.items(), key=lambda entry: (entry[1], entry[0]))
    return (count / widths.total(), width) if width > 1 else (0.0, 0)
