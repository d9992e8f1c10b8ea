"""Tables: the whole tables in and around the passages of an answer, as cells, to compute over.

A table is read from the text of its document, in which each row is a line of cells with "|" between them. It counts
only if it is whole, has a header row of distinct names, and no row has more cells than the header.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from quipu.answer.passage_text import PassageText, Place, Span, join_chunks
from quipu.answer.text_blocks import BlockKind, is_table_rule
from quipu.model.graph import Chunk

MAX_CAPTION_CHARS = 300  # a longer paragraph above a table is no caption
MAX_NAME_CHARS = 80  # a longer cell of the first row is no name of a column
MAX_ROWS = 5_000
_CELL_END = re.compile(r"(?<!\\)\|")
_ROW_END = re.compile(r"\n\f*")
_LINK = re.compile(r"!?\[([^\]\n]*)\]\([^)\n]*\)")
_EMPHASIS = re.compile(r"(\*\*|__|\*|`)(?=\S)(.+?)(?<=\S)\1")
_BREAK = re.compile(r"<br ?/?>", re.IGNORECASE)
_NUMBER = re.compile(r"[-–−+($€£¥₽]*\d[\d.,\s]*[%)]?")
YEAR = re.compile(r"(?:1[5-9]|20|21)\d\d")


@dataclass(frozen=True, slots=True, kw_only=True)
class CellTable:
    """A table in a text: the names of its columns, its rows with as many cells, and where header and rows stand.

    `context` is what says what the table is about: the line above it, the headings, the title and the name of the
    document. `caption` is that line alone, which may name the unit, or "". A table that is not whole may have further
    rows.
    """

    passage: PassageText
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    header_span: Span
    row_spans: tuple[Span, ...]
    context: str
    caption: str = ""
    is_whole: bool = True

    def column(self, index: int) -> list[str]:
        """Return the cells of a column, without its name."""
        return [row[index] for row in self.rows]


def read_tables(
    chunks: Collection[Chunk], chunk_by_place: Mapping[Place, Chunk], whole_documents: Collection[str]
) -> Iterator[CellTable]:
    """Yield the tables that these chunks hold, in their order.

    `chunk_by_place` holds the chunks themselves and those around them. Of `whole_documents` it holds every chunk.
    """
    by_document: dict[str, dict[int, Chunk]] = {}
    for (document_id, ordinal), chunk in chunk_by_place.items():
        by_document.setdefault(document_id, {})[ordinal] = chunk
    places = {(chunk.document_id, chunk.ordinal) for chunk in chunks}
    for document_id in dict.fromkeys(chunk.document_id for chunk in chunks):
        near = by_document.get(document_id, {})
        for run in _runs(near):
            found_chunks = [chunk for chunk in run if (document_id, chunk.ordinal) in places]
            if found_chunks:
                is_last = document_id in whole_documents or any(chunk.id == run[-1].id for chunk in chunks)
                yield from _tables_of(run, found_chunks, is_last=is_last)


def _runs(chunk_by_ordinal: Mapping[int, Chunk]) -> Iterator[list[Chunk]]:
    """Yield the chunks in runs without a gap."""
    ordinals = sorted(chunk_by_ordinal)
    for _, run in groupby(enumerate(ordinals), key=lambda numbered: numbered[1] - numbered[0]):
        yield [chunk_by_ordinal[ordinal] for _, ordinal in run]


def _tables_of(run: Sequence[Chunk], found_chunks: Sequence[Chunk], *, is_last: bool) -> Iterator[CellTable]:
    """Yield the tables of consecutive chunks that stand at least in part in one of `found_chunks`."""
    passage = join_chunks(run)
    offset = run[0].start
    for first, last in _row_runs(passage):
        start, end = passage.blocks[first].start, passage.blocks[last].end
        if any(chunk.start < end + offset and start + offset < chunk.end for chunk in found_chunks):
            earlier_header = run[0].header if start == 0 else ""
            may_go_on = not is_last and not passage.text[end:].strip()
            is_whole = not (earlier_header or may_go_on or _touches_rows(passage, first, last))
            if table := _table(passage, first, last, earlier_header):
                yield replace(table, is_whole=is_whole)


def _row_runs(passage: PassageText) -> Iterator[tuple[int, int]]:
    """Yield the first and last block of each table: rows and rules that follow each other, line by line."""
    blocks, text = passage.blocks, passage.text
    first = -1
    for index, block in enumerate(blocks):
        is_line = block.kind is BlockKind.ROW or (first >= 0 and is_table_rule(text[block.start : block.end]))
        follows = first >= 0 and _ROW_END.fullmatch(_between(passage, index - 1)) is not None
        if first >= 0 and not (is_line and follows):
            yield first, index - 1
            first = -1
        if first < 0 and block.kind is BlockKind.ROW:
            first = index
    if first >= 0:
        yield first, len(blocks) - 1


def _between(passage: PassageText, index: int) -> str:
    """Return what stands between a block and the next one, without the spaces around line breaks."""
    gap = passage.text[passage.blocks[index].end : passage.blocks[index + 1].start]
    return gap.replace(" ", "")


def _touches_rows(passage: PassageText, first: int, last: int) -> bool:
    """Return whether the lines beside a table may be rows of it: a line just below it, or a table on the next page.

    A line just above it may be a row, too, except above a header with a rule.
    """
    blocks = passage.blocks
    has_rule = last > first and blocks[first + 1].kind is not BlockKind.ROW
    for before, after in ((first - 1, first), (last, last + 1)):
        if before < 0 or after == len(blocks):
            continue
        gap = _between(passage, before)
        are_rows = blocks[before].kind is blocks[after].kind is BlockKind.ROW
        if ("\f" in gap and are_rows) or (gap.count("\n") < 2 and not (has_rule and after == first)):
            return True
    return False


def _table(passage: PassageText, first: int, last: int, earlier_header: str) -> CellTable | None:
    """Return the table of these blocks; None unless it has a header and every row fits it.

    `earlier_header` is its header if that stands in an earlier chunk.
    """
    blocks = [block for block in passage.blocks[first : last + 1] if block.kind is BlockKind.ROW]
    lines = [passage.text[block.start : block.end] for block in blocks]
    spans = [(block.start, block.end) for block in blocks]
    if earlier_header:
        lines, spans = [earlier_header, *lines], [(0, 0), *spans]
    has_rule = last > first and passage.blocks[first + 1].kind is not BlockKind.ROW
    is_enclosed = all(line.startswith("|") and line.endswith("|") for line in lines) or has_rule
    header, *rows = [_cells(line, is_enclosed=is_enclosed) for line in lines]
    width = len(header)
    if not 0 < len(rows) <= MAX_ROWS or width < 2 or any(len(row) > width for row in rows):
        return None
    filled = [(*row, *[""] * (width - len(row))) for row in rows]
    if not _names_columns(header, filled[0], has_rule=has_rule or bool(earlier_header)):
        return None
    return CellTable(
        passage=passage,
        header=tuple(header),
        rows=tuple(filled),
        header_span=spans[0],
        row_spans=tuple(spans[1:]),
        context=_context(passage, first),
        caption=_caption(passage, first),
    )


def _cells(line: str, *, is_enclosed: bool) -> list[str]:
    """Return the cells of a row as plain text. Only in Markdown "|" may enclose it; elsewhere it ends an empty cell."""
    if is_enclosed:
        line = line.strip().removeprefix("|")
        line = line[:-1] if line.endswith("|") and not line.endswith("\\|") else line
    return [plain_cell(cell) for cell in _CELL_END.split(line)]


def rule_below(header: str) -> str:
    """Return the line that Markdown needs below the header of a table, with as many cells."""
    n_cells = len(_CELL_END.split(header.strip().strip("|")))
    return " | ".join(["---"] * n_cells)


def plain_cell(cell: str) -> str:
    """Return a cell without the marks of links, emphasis, code and line breaks."""
    text = _BREAK.sub(" ", _LINK.sub(r"\1", cell.replace("\\|", "|")))
    while (bare := _EMPHASIS.sub(r"\2", text)) != text:
        text = bare
    return " ".join(text.split())


def _names_columns(header: Sequence[str], row: Sequence[str], *, has_rule: bool) -> bool:
    """Return whether a first row names columns: distinct names, of which only the first may be empty; years are names.

    Without a rule below it, a row of which the next one has the same years may be data.
    """
    names = [name.casefold() for name in (header[1:] if not header[0] else header)]
    if not all(names) or len(set(names)) < len(names) or any(len(name) > MAX_NAME_CHARS for name in names):
        return False
    if has_rule:
        return True
    numbers = [name for name in names if _NUMBER.fullmatch(name)]
    are_years = all(map(YEAR.fullmatch, numbers))
    return are_years and not (numbers and any(map(YEAR.fullmatch, row[1:])))


def _context(passage: PassageText, first: int) -> str:
    """Return the words that say what a table is about."""
    blocks, text = passage.blocks, passage.text
    start = blocks[first].start
    chunk = next(chunk for place, chunk in reversed(passage.pieces) if place <= start)
    heading = blocks[first].heading
    pieces = [chunk.title, passage.name, *chunk.headings, _caption(passage, first)]
    if heading >= 0:
        pieces.append(text[blocks[heading].start : blocks[heading].end])
    return "\n".join(filter(None, pieces))


def _caption(passage: PassageText, first: int) -> str:
    """Return the short paragraph or the heading just above a table; "" if there is neither."""
    above = passage.blocks[first - 1] if first > 0 else None
    if above is None or above.kind not in (BlockKind.PARAGRAPH, BlockKind.HEADING):
        return ""
    text = passage.text[above.start : above.end]
    if above.kind is BlockKind.HEADING:
        text = text.strip("#=-~ \n")
    return " ".join(text.split()) if len(text) <= MAX_CAPTION_CHARS else ""
