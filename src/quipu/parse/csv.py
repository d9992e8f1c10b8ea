"""CSV and TSV: one table, a row a line, its first row repeated as the header where it names the columns."""

import csv
from collections import Counter
from collections.abc import Iterator
from itertools import islice

from quipu.errors import InvalidDocument
from quipu.model.document import ParsedDocument, SourceDocument
from quipu.parse.decode import decode, name_of
from quipu.parse.draft import Draft
from quipu.parse.limits import MAX_ROW_CELLS
from quipu.parse.table import add_table

_DELIMITERS = (",", ";", "\t", "|")
_SAMPLE_ROWS = 50
_SAMPLE_CHARACTERS = 65_536


class CsvParser:
    """Reads rows of any length and number; memory follows the size of the file, not the number of its cells."""

    media_types = frozenset({"text/csv", "text/tab-separated-values"})

    def parse(self, source: SourceDocument) -> ParsedDocument:
        """Return the rows as one table; the delimiter is a tab, or what cuts the first rows most evenly.

        Raises InvalidDocument where the bytes are no text, or a quoted cell does not end.
        """
        text = decode(source)
        body_start, delimiter = 0, "\t"
        if not source.media_type.lower().startswith("text/tab-separated-values"):
            body_start, delimiter = _declared(text) or (0, _guessed(text))
        draft = Draft(name_of(source))
        add_table(draft, _rows(_lines(text, body_start), delimiter, draft.name))
        return draft.document()


PARSER = CsvParser()


def _rows(lines: Iterator[str], delimiter: str, name: str) -> Iterator[list[str]]:
    """Yield the cells of each row; raise InvalidDocument for a cell that does not end, or a row of too many."""
    n_cells = 0

    def counted() -> Iterator[str]:
        nonlocal n_cells
        for line in lines:
            n_cells += line.count(delimiter)
            if n_cells > MAX_ROW_CELLS:
                raise InvalidDocument(
                    f"{name} has a row of more than {MAX_ROW_CELLS:,} cells, at line {reader.line_num + 1}.",
                    remedy="Write it with fewer columns, or as text.",
                )
            yield line

    reader = csv.reader(counted(), delimiter=delimiter)
    try:
        for row in reader:
            n_cells = 0
            yield row
    except csv.Error as error:
        raise InvalidDocument(
            f"{name} cannot be read as a table: {error}, at line {reader.line_num}.",
            remedy='Close the quotation mark of that cell; a mark within a cell is written "".',
        ) from error


def _lines(text: str, start: int = 0) -> Iterator[str]:
    r"""Yield the lines of `text` with their \n, without holding all of them."""
    while start < len(text):
        end = text.find("\n", start) + 1 or len(text)
        yield text[start:end]
        start = end


def _declared(text: str) -> tuple[int, str] | None:
    """Return where the rows begin and the delimiter, where a first line like "sep=;" names it, as Excel writes."""
    first = text[:8].partition("\n")[0]
    return (len(first) + 1, first[4]) if len(first) == 5 and first.lower().startswith("sep=") else None


def _guessed(text: str) -> str:
    """Return the delimiter that cuts most of the first rows into the same number of cells; a comma where none does."""
    return max(_DELIMITERS, key=lambda delimiter: _evenness(text[:_SAMPLE_CHARACTERS], delimiter))


def _evenness(sample: str, delimiter: str) -> tuple[float, int]:
    """Return the share of rows with the commonest number of cells, and that number; nothing for rows of one cell."""
    try:
        rows = islice(csv.reader(_lines(sample), delimiter=delimiter), _SAMPLE_ROWS)
        widths = Counter(len(row) for row in rows if row)
    except csv.Error:
        return 0.0, 0
    if not widths:
        return 0.0, 0
    width, count = max(widths.items(), key=lambda item: (item[1], item[0]))
    return (count / widths.total(), width) if width > 1 else (0.0, 0)
