"""Table answer: a value, a maximum, a minimum, a sum, an average or a count, computed over the cells of one table.

It is given only where exactly one table among those of the passages can answer, in one way: the question has one
reading (`table_question`), and every cell that counts is a number or date that can be read in one way. The answer shows
the cells: the header and the rows that count. In all other cases the rows are quoted as any text.
"""

import operator
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from quipu.answer.passage_text import Place, Span
from quipu.answer.question_kind import AnalysedQuestion, QuestionKind
from quipu.answer.quotation import Quote
from quipu.answer.table_question import TableReading, is_number_column, read_question
from quipu.answer.table_words import NumberCondition, TableOperation, may_ask_table
from quipu.answer.tables import YEAR, CellTable, read_tables
from quipu.model.graph import Chunk
from quipu.text.quantities import Quantities, read_dates, read_quantities
from quipu.text.unicode import is_unspaced

MAX_SHOWN_ROWS = 20
MAX_NAMES = 5  # of the rows of an extreme
MIN_SUMMANDS = 3  # of a cell that is the sum of all others, and so perhaps a total without the name
MIN_AVERAGE_DECIMALS = 2
_LABELS = {
    TableOperation.MAXIMUM: ("Highest", "Наибольшее", "最大值"),
    TableOperation.MINIMUM: ("Lowest", "Наименьшее", "最小值"),
    TableOperation.SUM: ("Sum of", "Сумма", "合计"),
    TableOperation.AVERAGE: ("Average of", "Среднее", "平均值"),
    TableOperation.COUNT: ("Rows", "Строк", "行数"),
}
_DATE_LABELS = {
    TableOperation.MAXIMUM: ("Latest", "Самое позднее", "最晚"),
    TableOperation.MINIMUM: ("Earliest", "Самое раннее", "最早"),
}
_FIRST_SHOWN = (
    " (the first {} of {} rows are shown)",
    " (показаны первые {} из {} строк)",
    "（显示前 {} 行，共 {} 行）",
)
_TOTAL = re.compile(
    r"(?:grand |sub-?)?totals?\b.*|.*\b(?:total|subtotal)|all|sum|average|mean|overall|world|combined|net total|median"
    r"|(?:maximum|minimum|max|min)|all .*|итого.*|всего.*|в среднем|среднее.*|сумма|合计|总计|小计|平均|总和|共计|全部",
    re.IGNORECASE,
)
_PART = re.compile(r"(?:of which|including|incl\.|в том числе|из них|其中)\b.*|[-–—•·]\s.*", re.IGNORECASE)
_FIGURES = re.compile(
    r"(?:metric|indicator|measure|parameter|statistic|figure|key|показатель|параметр)s?|指标|项目|", re.I
)
_FIGURE = re.compile(
    r"\b(?:net|gross|profit|margin|ratio|rate|per|growth|balance|ebitda|revenue|expenses|average)\b|%|прибыль|выручка|利润|收入",
    re.IGNORECASE,
)
_NO_MEASURE = re.compile(
    r"(?:.*\b)?(?:id|no|nr|№|#|code|rank|phone|zip|version|year|date|номер|код|год)\.?|编号|序号|年份?|年度",
    re.IGNORECASE,
)
_FOOTNOTE = re.compile(r"[*†‡§¹²³⁴-⁹ᵃ-ᶻ]|\[\^?\w{1,3}\]|\^")
_NOTHING = re.compile(r"[-–—.…]*|n/?a|\?|нет данных|无|null|none|nan", re.IGNORECASE)
_MOST_OF = re.compile(r"\b(?:most|fewest)\b", re.IGNORECASE)
_SHARE = re.compile(r"-?0?[.,]\d|[\d.,]+ ?%")
_COMPARE = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


@dataclass(frozen=True, slots=True, kw_only=True)
class TableAnswer:
    """A line that says what was computed, and the header and rows of the table that count."""

    text: str
    quote: Quote


def compute_table_answer(
    question: AnalysedQuestion,
    chunks: Collection[Chunk],
    chunk_by_place: Mapping[Place, Chunk],
    whole_documents: Collection[str] = frozenset(),
) -> TableAnswer | None:
    """Return the answer of the only table in these chunks that has one; None where none has, or more than one.

    A table of which a part may be missing is never computed over.
    """
    if not asks_for_computation(question):
        return None
    tables = read_tables(chunks, chunk_by_place, whole_documents)
    readings = [(table, reading) for table in tables if (reading := read_question(question.text, table))]
    is_sure = all(table.is_whole for table, _ in readings)
    if not is_sure or len({(table.header, table.rows) for table, _ in readings}) != 1:
        return None
    table, reading = readings[0]
    return answer_reading(table, reading, question.text)


def asks_for_computation(question: AnalysedQuestion) -> bool:
    """Return whether a question has one part and may ask for a value of a table."""
    kinds = (QuestionKind.OVERVIEW, QuestionKind.SMALL_TALK, QuestionKind.HOW_TO)
    return question.kind not in kinds and len(question.parts) == 1 and may_ask_table(question.text)


def answer_reading(table: CellTable, reading: TableReading, question: str) -> TableAnswer | None:
    """Return the answer to a question that was read; None if a cell that counts cannot be read in one way."""
    rows = _rows_that_count(table, reading)
    if not rows:
        return None
    if reading.operation is TableOperation.VALUE:
        return _value_answer(table, reading, rows, question)
    if any(_NOTHING.fullmatch(table.rows[row][column]) for row in rows for column in reading.cells_by_column):
        return None
    language = _language_of(question)
    if reading.operation is TableOperation.COUNT:
        names = [table.rows[row][reading.column].casefold() for row in rows]
        has_condition = bool(reading.cells_by_column or reading.comparisons)
        if not has_condition or len(set(names)) < len(names) or not all(names):
            return None
        return _answer(
            table,
            rows,
            f"{_LABELS[TableOperation.COUNT][language]}{_conditions(table, reading)}: {len(rows):,}",
            question,
        )
    result = _computed(table, reading, rows) if _is_of_one_kind(table, reading, rows) else None
    if result is None:
        return None
    value, rows, labels = result
    if _MOST_OF.search(question) and all(_SHARE.match(table.rows[row][reading.column]) for row in rows):
        return None  # where the share is highest, the number need not be
    label = labels[reading.operation][language]
    text = f"{label} {table.header[reading.column]}{_conditions(table, reading)}: {value}"
    if reading.operation in (TableOperation.MAXIMUM, TableOperation.MINIMUM):
        text += _names_of(table, reading, rows)
    return _answer(table, rows, text, question)


def _rows_that_count(table: CellTable, reading: TableReading) -> list[int] | None:
    """Return the rows that satisfy the conditions, without totals; None if a condition cannot be decided for a row."""
    cells_by_column, rows = reading.cells_by_column, range(len(table.rows))
    named = {cell for cells in cells_by_column.values() for cell in cells}
    totals = _total_rows(table, named)
    if reading.operation is not TableOperation.VALUE and not _is_flat(table, totals):
        return None
    counting = [
        row
        for row in rows
        if row not in totals and all(table.rows[row][column] in cells for column, cells in cells_by_column.items())
    ]
    for column, comparison in reading.comparisons.items():
        satisfied = _satisfying(table, column, comparison, counting)
        if satisfied is None:
            return None
        counting = satisfied
    return counting


def _total_rows(table: CellTable, named: Collection[str] = ()) -> list[int]:
    """Return the rows that a cell of text calls a total, unless the question names that cell."""
    texts = [c for c in range(len(table.header)) if c == 0 or not is_number_column(table, c)]
    return [
        row
        for row, cells in enumerate(table.rows)
        if any(_TOTAL.fullmatch(cells[column].strip(" :.")) and cells[column] not in named for column in texts)
    ]


def _is_flat(table: CellTable, totals: Sequence[int]) -> bool:
    """Return whether each row stands for itself: no row is a part of others, their title, or the same as another.

    One total may stand above or below all other rows. Totals between them are of some of the rows.
    """
    if len(totals) > 1 or (totals and totals[0] not in (0, len(table.rows) - 1)):
        return False
    if len(set(table.rows)) < len(table.rows):
        return False
    return not any(not cells[0] or _PART.fullmatch(cells[0]) or not any(cells[1:]) for cells in table.rows)


def _is_of_one_kind(table: CellTable, reading: TableReading, rows: Sequence[int]) -> bool:
    """Return whether the numbers of a column are of one kind: rows are things, not figures such as costs and profit.

    Columns of names that a question names ("which region") must have another name in each row: else it asks for groups.
    """
    name = table.header[reading.column]
    if not any(map(str.isalpha, name)) or _FIGURES.fullmatch(table.header[0].strip()):
        return False
    if any(_FIGURE.search(table.rows[row][0]) for row in rows):
        return False
    named = [column for column in reading.named if not is_number_column(table, column)]
    return all(len({table.rows[row][column].casefold() for row in rows}) == len(rows) for column in named)


def _satisfying(table: CellTable, column: int, comparison: NumberCondition, rows: Sequence[int]) -> list[int] | None:
    """Return the rows whose number satisfies a comparison; None if a number or unit is not clear."""
    cells = [table.rows[row][column] for row in rows]
    quantities = _quantities(table, column, cells)
    limit = read_quantities([comparison.number], [cell for row in table.rows for cell in row])
    if quantities is None or limit is None or limit.notation.decimal_mark != quantities.notation.decimal_mark:
        return None
    units = {limit.before + limit.after, quantities.before + quantities.after}
    if len(units - {""}) > 1:
        return None
    is_satisfied = _COMPARE[comparison.sign]
    return [row for row, value in zip(rows, quantities.values, strict=True) if is_satisfied(value, limit.values[0])]


def _quantities(table: CellTable, column: int, cells: Sequence[str]) -> Quantities | None:
    others = [cell for row in table.rows for cell in row]
    return read_quantities(cells, others, comma_groups=not re.search("[а-яА-Я]", table.passage.text))


def _value_answer(table: CellTable, reading: TableReading, rows: Sequence[int], question: str) -> TableAnswer | None:
    """Return the cell of the only row that satisfies the conditions."""
    has_condition = bool(reading.cells_by_column or reading.comparisons)
    cell = table.rows[rows[0]][reading.column]
    if len(rows) > 1 or not has_condition or _NOTHING.fullmatch(cell) or _FOOTNOTE.search(cell):
        return None
    return _answer(table, rows, f"{table.header[reading.column]}{_conditions(table, reading)}: {cell}", question)


def _computed(
    table: CellTable, reading: TableReading, rows: list[int]
) -> tuple[str, list[int], Mapping[TableOperation, Sequence[str]]] | None:
    """Return the result as the cells are written, the rows that show it, and its labels; None if it is not certain."""
    cells = [table.rows[row][reading.column] for row in rows]
    is_extreme = reading.operation in (TableOperation.MAXIMUM, TableOperation.MINIMUM)
    choose = max if reading.operation is TableOperation.MAXIMUM else min
    if is_extreme and (dates := read_dates(cells)):
        best = choose(dates)
        chosen = [row for row, day in zip(rows, dates, strict=True) if day == best]
        return table.rows[chosen[0]][reading.column], chosen, _DATE_LABELS
    quantities = _quantities(table, reading.column, cells)
    if quantities is None or _holds_total(quantities.values):
        return None
    values = quantities.values
    if is_extreme:
        extreme = choose(values)
        chosen = [row for row, value in zip(rows, values, strict=True) if value == extreme]
        return table.rows[chosen[0]][reading.column], chosen, _LABELS
    is_name = _NO_MEASURE.fullmatch(table.header[reading.column].strip()) or all(map(YEAR.fullmatch, cells))
    if is_name or len(values) < 2:
        return None
    total = sum(values, Decimal(0))
    if reading.operation is TableOperation.AVERAGE:
        return quantities.format(total / len(values), max(quantities.n_decimals, MIN_AVERAGE_DECIMALS)), rows, _LABELS
    are_shares = "%" in quantities.after or all(-1 < value < 1 for value in values)
    is_doubtful = are_shares or not _agrees_with_total(table, reading, total)
    return None if is_doubtful else (quantities.format(total), rows, _LABELS)


def _holds_total(values: Sequence[Decimal]) -> bool:
    """Return whether a value is the sum of all others, as a total is that is not called so."""
    total = sum(values, Decimal(0))
    return len(values) > MIN_SUMMANDS and any(value and 2 * value == total for value in values)


def _agrees_with_total(table: CellTable, reading: TableReading, total: Decimal) -> bool:
    """Return whether the table states no total of all its rows, or the same one."""
    if reading.cells_by_column or reading.comparisons:
        return True
    stated = [table.rows[row] for row in _total_rows(table)]
    quantities = _quantities(table, reading.column, [cells[reading.column] for cells in stated]) if stated else None
    return not stated or (quantities is not None and set(quantities.values) == {total})


def _conditions(table: CellTable, reading: TableReading) -> str:
    """Return the conditions in brackets, as in " (Region = North, Price > 100)"; "" if there are none."""
    conditions = [
        f"{table.header[column]} = {' | '.join(sorted(cells))}".removeprefix(" = ")
        for column, cells in sorted(reading.cells_by_column.items())
    ]
    conditions += [
        f"{table.header[column]} {comparison.sign} {comparison.number}"
        for column, comparison in sorted(reading.comparisons.items())
    ]
    return f" ({', '.join(conditions)})" if conditions else ""


def _names_of(table: CellTable, reading: TableReading, rows: Sequence[int]) -> str:
    """Return what the rows of an extreme are called, and their cells in the other columns that the question names."""
    unique = (c for c in range(len(table.header)) if len(set(table.column(c))) == len(table.rows))
    keys = [column for column in unique if not is_number_column(table, column)]
    columns = dict.fromkeys([*keys[:1], *reading.named])
    named = [
        f"{table.header[column]}: {', '.join(list(dict.fromkeys(table.rows[row][column] for row in rows))[:MAX_NAMES])}"
        for column in columns
        if column != reading.column
    ]
    return "".join(f" · {name}" for name in named)


def _answer(table: CellTable, rows: Sequence[int], text: str, question: str) -> TableAnswer:
    """Return the answer with the header and the rows that count; rows that follow each other are one span."""
    if len(rows) > MAX_SHOWN_ROWS:
        text += _FIRST_SHOWN[_language_of(question)].format(MAX_SHOWN_ROWS, len(rows))
    spans: list[Span] = [table.header_span]
    for row in rows[:MAX_SHOWN_ROWS]:
        start, end = table.row_spans[row]
        if len(spans) > 1 and table.passage.text[spans[-1][1] : start] == "\n":
            spans[-1] = (spans[-1][0], end)
        else:
            spans.append((start, end))
    mark = (spans[1][0], spans[-1][1])
    text = "\n\n".join(filter(None, (text, table.caption)))
    return TableAnswer(text=text, quote=Quote(passage=table.passage, spans=tuple(spans), mark=mark, score=1.0))


def _language_of(question: str) -> int:
    """Return the place of the question's language in labels: English, Russian or Chinese."""
    if any(map(is_unspaced, question)):
        return 2
    return 1 if re.search("[а-яё]", question, re.IGNORECASE) else 0
