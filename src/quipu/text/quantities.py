"""Quantities: the numbers and dates of a table column, read in one notation and one unit, or not at all."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

_SPACE = r"[ \u00a0\u2009\u202f'’]"  # may stand between groups of three digits in either notation
_POINT = re.compile(rf"(?:[1-9]\d{{0,2}}(?:,\d{{3}})+|[1-9]\d{{0,2}}(?:{_SPACE}\d{{3}})+|\d+)(?:\.\d+)?", re.ASCII)
_COMMA = re.compile(rf"(?:[1-9]\d{{0,2}}(?:\.\d{{3}})+|[1-9]\d{{0,2}}(?:{_SPACE}\d{{3}})+|\d+)(?:,\d+)?", re.ASCII)
_CURRENCY = r"(?:[$€£¥₽₴₹]|[A-Z]{2,3}[ \u00a0]|US\$)"
_CELL = re.compile(
    rf"(?P<open>\()?(?P<sign>[-−–+])?[ \u00a0]?(?P<before>{_CURRENCY})?[ \u00a0]?(?P<inner>[-−–])?"
    rf"(?P<digits>\d(?:[\d.,]|{_SPACE}(?=\d{{3}}(?!\d)))*)[ \u00a0]?"
    r"(?P<after>[%‰°€$£¥₽₴₹][A-Za-z]?|[^\W\d_][\w/²³.]*(?: [^\W\d_]+)?)?(?P<close>\))?"
)
_IDENTIFIER = re.compile(r"0\d+")
_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_DATES = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"(?P<y>\d{4})([-/.])(?P<m>\d{1,2})\2(?P<d>\d{1,2})",
        r"(?P<d>\d{1,2})\.(?P<m>\d{1,2})\.(?P<y>\d{4})",
        r"(?P<d>\d{1,2})\.? (?P<name>[a-z]{3})[a-z]*\.?,? (?P<y>\d{4})",
        r"(?P<name>[a-z]{3})[a-z]*\.? (?P<d>\d{1,2}),? (?P<y>\d{4})",
        r"(?P<y>\d{4})年(?P<m>\d{1,2})月(?P<d>\d{1,2})日",
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Notation:
    """How the numbers of a table are written: the decimal mark, "." or ",", and what separates thousands ("")."""

    decimal_mark: str
    separator: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantities:
    """The values of cells, in their order; `before` and `after` are the currency and the unit that all of them have."""

    values: tuple[Decimal, ...]
    notation: Notation
    before: str = ""
    after: str = ""

    def format(self, value: Decimal, n_decimals: int | None = None) -> str:
        """Return a value as the cells write theirs, with at most `n_decimals` digits after the mark (None: all)."""
        if n_decimals is not None:
            value = round(value, n_decimals)
        text = f"{abs(value):,f}"
        whole, _, decimals = text.partition(".")
        decimals = decimals.rstrip("0") if n_decimals is not None else decimals
        number = whole.replace(",", self.notation.separator) + (
            self.notation.decimal_mark + decimals if decimals else ""
        )
        sign = "-" if value < 0 else ""
        space = " " if self.after[:1].isalpha() else ""
        return f"{sign}{self.before}{number}{space}{self.after}"

    @property
    def n_decimals(self) -> int:
        """The largest number of digits after the decimal mark."""
        return max((len(f"{value:f}".partition(".")[2]) for value in self.values), default=0)


def read_quantities(
    cells: Sequence[str], others: Iterable[str] = (), *, comma_groups: bool = True
) -> Quantities | None:
    """Return the numbers of cells; None unless all are numbers of one unit and can be read in one way only.

    `others` are the other cells of the table: they may show the notation. Where nothing does, "1,234" is a thousand if
    `comma_groups`, and "1.234" is not read. A number in parentheses is negative, as in accounts.
    """
    matches = [_CELL.fullmatch(cell.strip()) for cell in cells]
    if not matches or any(match is None or not _is_consistent(match) for match in matches):
        return None
    digits = [match["digits"] for match in matches if match]
    units = {((match["before"] or "").strip(), (match["after"] or "").strip()) for match in matches if match}
    mark = _decimal_mark(digits, others, comma_groups=comma_groups)
    if not mark or len(units) > 1 or any(map(_IDENTIFIER.fullmatch, digits)):
        return None
    pattern = _POINT if mark == "." else _COMMA
    if not all(map(pattern.fullmatch, digits)):
        return None
    values = [_value(number, mark) for number in digits]
    signed = [
        -value if match["open"] or (match["sign"] or match["inner"] or "+") != "+" else value
        for value, match in zip(values, filter(None, matches), strict=True)
    ]
    wholes = (re.findall(r"\D", number.partition(mark)[0]) for number in digits)
    (before, after), separators = units.pop(), {marks[0] for marks in wholes if marks}
    notation = Notation(decimal_mark=mark, separator=min(separators, default=""))
    return Quantities(values=tuple(signed), notation=notation, before=before, after=after)


def read_dates(cells: Sequence[str]) -> tuple[date, ...] | None:
    """Return the dates of cells; None unless all are dates of one form in which day and month cannot be confused."""
    for pattern in _DATES:
        matches = [pattern.fullmatch(cell.strip()) for cell in cells]
        if cells and all(matches):
            dates = [_date(match) for match in matches if match]
            return tuple(day for day in dates if day) if all(dates) else None
    return None


def _is_consistent(match: re.Match[str]) -> bool:
    """Return whether parentheses are closed and hold no sign, and there is at most one sign and one unit of money."""
    signs = [match["sign"], match["inner"], match["open"]]
    return bool(match["open"]) == bool(match["close"]) and sum(map(bool, signs)) < 2


def _decimal_mark(digits: Sequence[str], others: Iterable[str], *, comma_groups: bool) -> str:
    """Return the decimal mark of a column; "" if the cells contradict each other or do not tell."""
    other_matches = (_CELL.fullmatch(cell.strip()) for cell in others)
    numbers = [*digits, *(match["digits"] for match in other_matches if match)]
    marks = {mark for number in numbers if (mark := _shown_mark(number))}
    if marks:
        return marks.pop() if len(marks) == 1 else ""
    if not any("." in number or "," in number for number in digits):
        return "."
    return "." if comma_groups and not any("." in number for number in digits) else ""


def _shown_mark(number: str) -> str:
    """Return the decimal mark that a number can only have; "" if it can be read with either, or with none."""
    is_point, is_comma = _POINT.fullmatch(number) is not None, _COMMA.fullmatch(number) is not None
    if is_point == is_comma:
        return ""
    return "." if is_point else ","


def _value(number: str, mark: str) -> Decimal:
    whole, _, decimals = number.partition(mark)
    bare = re.sub(r"\D", "", whole)
    return Decimal(f"{bare}.{decimals}" if decimals else bare)


def _date(match: re.Match[str]) -> date | None:
    groups = match.groupdict()
    name = (groups.get("name") or "").lower()
    if name and name not in _MONTHS:
        return None
    try:
        return date(int(groups["y"]), _MONTHS.index(name) + 1 if name else int(groups["m"]), int(groups["d"]))
    except ValueError:
        return None
