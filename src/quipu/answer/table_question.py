"""Table question: what a question asks of a table: an operation, a column and conditions (English, Russian, Chinese).

The words of the question are matched against the names of the columns and the cells. A question is read only if each of
its words is explained, by the operation, a column, a cell, or what the table is about. Otherwise it means something
that the table may not say. So a question has one reading, or none.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from quipu.answer.table_words import (
    IGNORED,
    OF_ANY_NUMBER,
    OPERATIONS,
    SENSES,
    NumberCondition,
    TableOperation,
    may_ask_table,
    name_terms,
    normal_words,
    without_comparisons,
    words_of,
)
from quipu.answer.tables import CellTable
from quipu.text.unicode import is_unspaced

_STARTS_NUMBER = re.compile(r"[-–−+(]?[$€£¥₽]?\s?\d")
_SIBLINGS = re.compile(r"([\w-]+) ?(?:,|/|&|\band\b|\bor\b|\bvs\b|\bи\b|\bили\b) ?([\w-]+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableReading:
    """What a question asks of one table. Columns are indexes.

    `column` is computed over or looked up, -1 for a count of rows. `cells_by_column` are the cells of which a row must
    have one, `comparisons` what its number must satisfy. `named` are further columns that the question names.
    """

    operation: TableOperation
    column: int
    cells_by_column: Mapping[int, frozenset[str]] = field(default_factory=dict)
    comparisons: Mapping[int, NumberCondition] = field(default_factory=dict)
    named: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Match:
    """Words [first, last) of a question that are a cell of a column."""

    first: int
    last: int
    column: int
    cell: str


def read_question(question: str, table: CellTable) -> TableReading | None:
    """Return what a question asks of a table; None if it asks for something else, or may ask for two things."""
    if not may_ask_table(question):
        return None
    bare, comparisons = without_comparisons(question)
    return _QuestionReader(bare, comparisons, table).reading()


class _QuestionReader:
    """Matches one question with one table. `used` are the places of its words that are explained so far."""

    def __init__(self, text: str, comparisons: Sequence[tuple[int, NumberCondition]], table: CellTable) -> None:
        self.text, self.table, self.placed_comparisons = text, table, comparisons
        self.words = list(words_of(text))
        self.used: set[int] = set()
        self.places_by_column: dict[int, frozenset[int]] = {}

    def reading(self) -> TableReading | None:
        """Return the only reading of the question, None if there is none or more than one."""
        columns, matches = self._full_columns(), self._cell_matches()
        if columns is None or matches is None:
            return None
        matches = [match for match in matches if not any(_span(match) < places for places in columns.values())]
        cell_places = [_span(match) for match in matches]
        columns = {c: places for c, places in columns.items() if not any(places < span for span in cell_places)}
        places = [*columns.values(), *cell_places]
        self.used = set().union(*places) if places else set()
        if sum(map(len, places)) > len(self.used):
            return None  # a word is both the name of a column and a cell, or a cell of two columns
        self.places_by_column = columns
        operations = self._operations()
        operation_places = {place for _, span in operations for place in span}
        self._name_partly(operation_places)
        cells_by_column: dict[int, set[str]] = {}
        for match in matches:
            cells_by_column.setdefault(match.column, set()).add(match.cell)
        unexplained = self._unexplained(operation_places)
        if unexplained and not operations and not cells_by_column:
            unexplained, cells_by_column = self._cell_of_words(unexplained)
        comparisons = self._comparisons()
        if unexplained or comparisons is None:
            return None
        cells = {column: frozenset(values) for column, values in cells_by_column.items()}
        return self._assembled(operations, cells, comparisons)

    def _full_columns(self) -> dict[int, frozenset[int]] | None:
        """Return the columns whose whole names the question has, with the places of their words; None if unclear."""
        places_by_column: dict[int, frozenset[int]] = {}
        for column, name in enumerate(self.table.header):
            terms = name_terms(name)
            if terms and any(map(is_unspaced, terms)):
                places = frozenset(self._sequence(terms))
            else:
                places = frozenset(place for place, word in enumerate(self.words) if word.normal in terms)
                if len({self.words[place].normal for place in places}) < len(set(terms)):
                    places = frozenset()
            if places:
                places_by_column[column] = places
        places_of_longest = {
            column: places
            for column, places in places_by_column.items()
            if not any(places < other for other in places_by_column.values())
        }
        n_places = sum(map(len, places_of_longest.values()))
        return places_of_longest if n_places == len(frozenset().union(*places_of_longest.values())) else None

    def _sequence(self, terms: Sequence[str]) -> range:
        """Return the places where the words stand side by side; an empty range if they do not."""
        normals = [word.normal for word in self.words]
        starts = (s for s in range(len(normals) - len(terms) + 1) if normals[s : s + len(terms)] == list(terms))
        start = next(starts, None)
        return range(0) if start is None else range(start, start + len(terms))

    def _cell_matches(self) -> list[_Match] | None:
        """Return the longest runs of words that are cells; None where one may be two different cells."""
        matches: dict[tuple[int, int], list[_Match]] = {}
        text = self.text.casefold()
        for column in range(len(self.table.header)):
            for cell in dict.fromkeys(self.table.column(column)):
                places = self._sequence(normal_words(cell)) if cell else range(0)
                is_said = any(self.words[place].is_content for place in places)
                if is_said and (cell.casefold() in text or not any(map(str.isdigit, cell))):
                    match = _Match(first=places.start, last=places.stop, column=column, cell=cell)
                    matches.setdefault((places.start, places.stop), []).append(match)
        longest: list[_Match] = []
        for (first, last), same in matches.items():
            if any(start <= first and last <= end and (start, end) != (first, last) for start, end in matches):
                continue
            if any(first < start < last < end for start, end in matches):
                return None
            exact = [match for match in same if match.cell.casefold() in text]
            chosen = exact if len(exact) == 1 and len({match.column for match in same}) == 1 else same
            if len(chosen) > 1:
                return None
            longest += chosen
        return longest

    def _operations(self) -> list[tuple[TableOperation, range]]:
        """Return the operations that words outside names and cells ask for, with the places of these words."""
        operations = []
        for operation, pattern in OPERATIONS.items():
            for match in pattern.finditer(self.text):
                places = [p for p, word in enumerate(self.words) if match.start() <= word.start < match.end()]
                if places and not self.used.intersection(places):
                    operations.append((operation, range(places[0], places[-1] + 1)))
        return operations

    def _name_partly(self, operation_places: set[int]) -> None:
        """Name the columns of which a further word occurs in the name of one alone, or that an adjective means."""
        names = [name_terms(name) for name in self.table.header]
        for place, word in enumerate(self.words):
            if place in self.used or not (word.is_content or word.form in SENSES):
                continue
            senses = frozenset(normal_words(SENSES.get(word.form, "")))
            own = [] if place in operation_places else [c for c, terms in enumerate(names) if word.normal in terms]
            columns = own or [c for c, terms in enumerate(names) if senses.intersection(terms)]
            if len(columns) == 1:
                self.places_by_column[columns[0]] = self.places_by_column.get(columns[0], frozenset()) | {place}
                self.used.add(place)

    def _unexplained(self, operation_places: set[int]) -> list[int]:
        """Return the places of words that neither the table nor what it is about explains."""
        units = {term for column in self.places_by_column for term in normal_words(self.table.header[column])}
        context = self._context_terms() | units
        return [
            place
            for place, word in enumerate(self.words)
            if word.is_content
            and place not in self.used
            and not (place in operation_places and (word.form not in SENSES or word.form in OF_ANY_NUMBER))
            and word.normal not in context
            and word.normal not in IGNORED
        ]

    def _context_terms(self) -> frozenset[str]:
        """Return the words of what the table is about, without those that select a part of it: "2019 and 2020"."""
        question_terms = {word.normal for word in self.words}
        terms = frozenset(normal_words(self.table.context))
        numbers = {term for term in terms if term[0].isdigit()}
        selecting = set(numbers) if len(numbers) > 1 else set()
        for match in _SIBLINGS.finditer(self.table.context):
            first, second = (frozenset(normal_words(side)) for side in match.groups())
            if bool(first & question_terms) != bool(second & question_terms):
                selecting |= first | second
        return terms - selecting

    def _cell_of_words(self, unexplained: list[int]) -> tuple[list[int], dict[int, set[str]]]:
        """Return the cell that alone has all unexplained words, if no other cell has any of them."""
        terms = {self.words[place].normal for place in unexplained}
        cells = [
            (column, cell)
            for row in self.table.rows
            for column, cell in enumerate(row)
            if terms.intersection(normal_words(cell))
        ]
        if len(cells) == 1 and terms.issubset(normal_words(cells[0][1])):
            return [], {cells[0][0]: {cells[0][1]}}
        return unexplained, {}

    def _comparisons(self) -> dict[int, NumberCondition] | None:
        """Return the comparisons by column: the one named just after the number, else the last one before it."""
        comparisons: dict[int, NumberCondition] = {}
        for place, comparison in self.placed_comparisons:
            following = next((index for index, word in enumerate(self.words) if word.start > place), -1)
            column = self._column_at(following)
            if column < 0:
                named = frozenset().union(*self.places_by_column.values())
                before = [p for p in named if self.words[p].start < place]
                column = self._column_at(max(before, default=-1))
            if column < 0 or column in comparisons:
                return None
            comparisons[column] = comparison
        return comparisons

    def _column_at(self, place: int) -> int:
        """Return the column that the word at a place names, -1 for none."""
        return next((column for column, places in self.places_by_column.items() if place in places), -1)

    def _column_beside(self, span: range, *, is_number: bool = True) -> int:
        """Return the column that an operation is about, one of numbers or not; -1 if that is not clear.

        It is named by the next word that says something. In Chinese and at the end of a question it may be the one
        before. Else the word of the operation has a sense, as "cheapest".
        """
        places = [place for place in range(len(self.words)) if self._says_something(place)]
        following = [place for place in places if place >= span.stop][:1]
        before = [place for place in places if place < span.start][-1:]
        nearest = [*following, *(before if not following or is_unspaced(self.words[span.start].form) else [])]
        columns = [column for place in [*nearest, *span] if (column := self._column_at(place)) >= 0]
        return next((column for column in columns if is_number_column(self.table, column) is is_number), -1)

    def _says_something(self, place: int) -> bool:
        word = self.words[place]
        return self._column_at(place) >= 0 or (word.is_content and word.normal not in IGNORED)

    def _assembled(
        self,
        operations: Sequence[tuple[TableOperation, range]],
        cells: Mapping[int, frozenset[str]],
        comparisons: Mapping[int, NumberCondition],
    ) -> TableReading | None:
        """Return the reading of an operation, the column that it is about, and conditions."""
        free = [column for column in self.places_by_column if column not in cells and column not in comparisons]
        kinds = {operation for operation, _ in operations}
        span = next((span for operation, span in operations if operation is TableOperation.COUNT), range(0))
        if not kinds or kinds == {TableOperation.COUNT}:
            column = self._counted(span) if kinds else (free[0] if len(free) == 1 else -1)
            if kinds and column < 0 and self._lists_rows(span):
                column, free = 0, [*free, 0]
            is_count = bool(kinds) and column in free and not is_number_column(self.table, column)
            operation = TableOperation.COUNT if is_count else TableOperation.VALUE
        elif kinds == {TableOperation.COUNT, TableOperation.SUM}:
            operation, column = TableOperation.SUM, self._column_beside(span)
        elif len(kinds) == 1:
            operation, column = operations[0][0], self._measured(operations[0][1], free)
        else:
            return None
        if column < 0 or column in cells:
            return None
        others = tuple(sorted(other for other in free if other != column))
        return TableReading(
            operation=operation, column=column, cells_by_column=cells, comparisons=comparisons, named=others
        )

    def _counted(self, span: range) -> int:
        """Return the column that "how many" is about: one of names, of which rows are counted, or of numbers."""
        column = self._column_beside(span, is_number=False)
        return self._column_beside(span) if column < 0 else column

    def _lists_rows(self, span: range) -> bool:
        """Return whether "how many" is about what the table lists by its title alone, "Servers", a name in each row."""
        following = [place for place in range(span.stop, len(self.words)) if self._says_something(place)][:1]
        titles = [list(normal_words(line)) for line in self.table.context.splitlines()]
        names = [name.casefold() for name in self.table.column(0)]
        is_title = any([self.words[place].normal] in titles for place in following)
        return is_title and all(names) and len(set(names)) == len(names) and not is_number_column(self.table, 0)

    def _measured(self, span: range, free: Sequence[int]) -> int:
        """Return the column that is measured: the one beside the word of the operation, else the only number."""
        column = self._column_beside(span)
        text = " ".join(self.words[place].form for place in span)
        is_adverb = text.startswith(("in ", "al", "в ")) or text in ("一共", "总共")
        if column >= 0 or not is_adverb:
            return column
        numbers = [column for column in free if is_number_column(self.table, column)]
        return numbers[0] if len(numbers) == 1 else -1


def is_number_column(table: CellTable, column: int) -> bool:
    """Return whether most of the filled cells of a column begin as numbers do."""
    cells = [cell for cell in table.column(column) if cell]
    return 2 * sum(_STARTS_NUMBER.match(cell) is not None for cell in cells) > len(cells)


def _span(match: _Match) -> frozenset[int]:
    return frozenset(range(match.first, match.last))
