"""Output: results on stdout, as tables for people or JSON for programs; everything else on stderr."""

import json
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from itertools import pairwise
from pathlib import Path
from typing import TypeVar

import click
from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from quipu.cli.options import current_currency, shared
from quipu.model.chat import Role
from quipu.model.usage import MICRO, Estimate, UsageRow, total
from quipu.text.formatting import format_count
from quipu.text.unicode import clean, clean_json, clean_name

Value = TypeVar("Value")

_PIPE_WIDTH = 120
_MIN_TEXT_CELLS = 16  # of a column beside ids, if it has that much text
_MIN_WRAPPED_CHARS = 50  # of the longest line: shorter ones are verses, addresses or code

_NO_PROSE = re.compile(r"\s*(?:#{1,6}\s|[|>]|[-=~*_]{3,}\s*$)|.* \| ")
_ITEM = re.compile(r"\s*(?:[-*+•]|\(?[\w]{1,3}[.)])\s")
_FENCE = re.compile(r"\s*(?:`{3}|~{3})")


def emit(value: Value, render: Callable[[Console, Value], None]) -> None:
    """Print a command's result: `value` as one JSON document with --json, else as `render` draws it."""
    if shared().as_json:
        write_json(value)
    else:
        render(stdout(), value)


def write_json(value: object) -> None:
    """Print one JSON document; dataclasses become objects with their fields."""
    is_terminal = sys.stdout.isatty()
    text = json.dumps(value, default=_jsonable, ensure_ascii=False, indent=2 if is_terminal else None)
    click.echo(clean_json(text) if is_terminal else text)


def stdout() -> Console:
    """Return the console results go to; colours and terminal width only where it is a terminal."""
    return _console(is_stderr=False)


def stderr() -> Console:
    """Return the console for everything that is not a result."""
    return _console(is_stderr=True)


def one_line(text: str, max_cells: int) -> str:
    """Return `text` on one line without control characters, cut to `max_cells` terminal columns."""
    line = Text(" ".join(clean(text).split()))
    line.truncate(max_cells, overflow="ellipsis")
    return line.plain


def styled(text: str, style: str = "") -> Text:
    """Return text that is printed literally: without markup and without control characters."""
    return Text(clean(text), style=style, overflow="fold")


def unwrapped(body: Text) -> Text:
    """Return a text with the lines joined that its document wraps: the terminal wraps them at its own width."""
    lines = list(body.split("\n", allow_blank=True))
    joined = set(wrapped_lines([line.plain for line in lines]))
    whole = Text(style=body.style)
    for number, line in enumerate(lines):
        indent = len(line.plain) - len(line.plain.lstrip()) if number - 1 in joined else 0
        whole.append_text(line[indent:])
        if number in joined:
            whole.rstrip()
        whole.append(" " if number in joined else "\n" * (number + 1 < len(lines)))
    return whole


def wrapped_lines(lines: list[str]) -> Iterator[int]:
    """Yield the numbers of the lines, from 0, that go on in the next one, as in paragraphs of e-mails.

    No line of such a paragraph has room for the first word of the next one. Code between fences and tables have none.
    """
    paragraph: list[int] = []
    is_code = False
    for number, line in enumerate([*lines, ""]):
        is_fence = _FENCE.match(line) is not None
        is_prose = bool(line.strip()) and not (is_code or is_fence or _NO_PROSE.match(line))
        is_code ^= is_fence
        if not is_prose or _ITEM.match(line):
            yield from paragraph[:-1] if _is_wrapped([lines[n].rstrip() for n in paragraph]) else ()
            paragraph = []
        if is_prose:
            paragraph.append(number)


def _is_wrapped(lines: list[str]) -> bool:
    width = max(map(len, lines), default=0)
    return width >= _MIN_WRAPPED_CHARS and all(len(f"{a} {b.split()[0]}") > width for a, b in pairwise(lines))


def named(name: str, style: str = "") -> Text:
    """Return the name of a document to print, on one line."""
    return styled(clean_name(name), style)


def table(*columns: str, right: Iterable[str] = (), ids: Iterable[str] = (), title: str = "") -> Table:
    """Return an empty table. Cells wrap, but not those of the columns named in `ids`: print these with `print_table`.

    The columns named in `right` hold numbers.
    """
    listing = Table(box=SIMPLE_HEAD, title=title or None, title_justify="left", pad_edge=False, show_edge=False)
    for name in columns:
        listing.add_column(name, justify="right" if name in right else "left", overflow="fold", no_wrap=name in ids)
    return listing


def print_table(console: Console, listing: Table) -> None:
    """Print a table so that its ids can be copied whole: they are never wrapped or cut.

    If they leave too little room for the other columns, each row is printed as lines instead.
    """
    widths = [max(map(_width, (column.header, *column.cells))) for column in listing.columns]
    needed = _GAP * (len(widths) - 1)
    for column, width in zip(listing.columns, widths, strict=True):
        column.min_width = width if column.no_wrap else None
        needed += width if column.no_wrap else min(width, _MIN_TEXT_CELLS)
    if needed <= console.width:
        console.print(listing)
    else:
        _print_rows(console, listing)


def _print_rows(console: Console, listing: Table) -> None:
    """Print each row as a line for each id, which only the terminal may wrap, and one for all else."""
    if listing.title:
        console.print(listing.title, style="italic")
    for cells in zip(*(column.cells for column in listing.columns), strict=True):
        heading = ""
        others: list[Text] = []
        for column, cell in zip(listing.columns, cells, strict=True):
            text = cell if isinstance(cell, Text) else Text(str(cell))
            if column.no_wrap:
                console.print(Text.assemble((heading, "dim"), text), soft_wrap=True)
                heading = f"  {column.header}: "
            elif text.plain:
                others.append(Text.assemble((f"{column.header}: ", "dim"), text))
        console.print(Padding(Text("; ").join(others), (0, 0, 0, 2)))


def _width(cell: object) -> int:
    return max(map(cell_len, str(cell).splitlines()), default=0)


def _console(*, is_stderr: bool) -> Console:
    stream = sys.stderr if is_stderr else sys.stdout
    width = None if stream.isatty() else shutil.get_terminal_size((_PIPE_WIDTH, 24)).columns
    return Console(stderr=is_stderr, width=width, highlight=False, emoji=False, markup=False)


def _jsonable(value: object) -> object:
    if is_dataclass(value) and not isinstance(value, type):
        by_name = {field.name: getattr(value, field.name) for field in fields(value)}
        return by_name | {"currency": current_currency()} if isinstance(value, UsageRow | Estimate) else by_name
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"{type(value).__name__} has no form in JSON")


_GAP = 3  # cells between two columns


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its heading and one cell for each row; `is_right` aligns numbers to the right."""

    heading: str
    cells: tuple[Text, ...]
    is_right: bool = True

    @property
    def width(self) -> int:
        """The width of the column in terminal cells."""
        return max(cell_len(self.heading), *(cell.cell_len for cell in self.cells), 0)


def print_wide(console: Console, rows: Sequence[str], columns: Sequence[Column], heading: str = "") -> None:
    """Print named rows; columns that do not fit continue in further tables below. Empty rows are left out."""
    names = Column(heading, tuple(map(styled, rows)), is_right=False)
    for n, part in enumerate(_parts(columns, console.width - names.width)):
        if n:
            console.print()
        _print_part(console, names, part)


def _print_part(console: Console, names: Column, part: Sequence[Column]) -> None:
    columns = (names, *part)
    right = [column.heading for column in part if column.is_right]
    listing = table(*(column.heading for column in columns), right=right)
    fits = sum(column.width + _GAP for column in columns) - _GAP <= console.width
    for table_column in listing.columns:
        table_column.no_wrap = fits
    for cells in zip(*(column.cells for column in columns), strict=True):
        if any(cell.plain for cell in cells[1:]):
            listing.add_row(*cells)
    console.print(listing)


def _parts(columns: Sequence[Column], room: int) -> Iterator[list[Column]]:
    """Yield groups of columns that fit into `room` cells. A wider column gets a group of its own and wraps."""
    part: list[Column] = []
    left = room
    for column in columns:
        if part and column.width + _GAP > left:
            yield part
            part, left = [], room
        part.append(column)
        left -= column.width + _GAP
    if part:
        yield part


def in_currency(noun: str) -> str:
    """Return the heading of figures that are money, as in "cost, USD"."""
    return f"{noun}, {current_currency()}"


def money(micro: int) -> str:
    """Return millionths of a unit with two digits after the point, or as many as a small sum needs."""
    value = micro / MICRO
    return f"{value:,.2f}" if value >= 1 or not value else f"{value:.4f}"


def amount(micro: int) -> str:
    """Return millionths of a unit as money with its currency, as in "0.0012 USD"."""
    return f"{money(micro)} {current_currency()}"


def tokens(n: int) -> str:
    """Return a number of tokens; a million or more is written in millions."""
    return f"{n:,}" if n < MICRO else f"{n / MICRO:,.2f}M"


def duration(seconds: float) -> str:
    """Return a duration in seconds, minutes or hours, whichever suits its size."""
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes = seconds / 60
    return f"{minutes:.0f} min" if minutes < 120 else f"{minutes / 60:.1f} h"


def spent(rows: Sequence[UsageRow]) -> str:
    """Return the calls of models and their cost, as in "2 calls: 3,210 tokens in, 120 out, 0.0012 USD"."""
    sums = total(rows)
    parts = [f"{tokens(sums.tokens.input)} tokens in", f"{tokens(sums.tokens.output)} out"]
    if sums.tokens.cached:
        parts.insert(1, f"{tokens(sums.tokens.cached)} of them cached")
    if sums.n_unpriced < sums.n_calls:
        parts.append(amount(sums.cost) + (f" ({sums.n_unpriced:,} without a price)" if sums.n_unpriced else ""))
    broken = f"; {sums.n_interrupted:,} broke off, at most {amount(sums.interrupted_cost)} more"
    return f"{format_count(sums.n_calls, 'call')}: {', '.join(parts)}{broken if sums.n_interrupted else ''}"


ALL_WORK = "all work"


def work_in_words(work: Sequence[str]) -> str:
    """Return the names of these roles, separated by commas, or a phrase for all that the setting `llm` sets."""
    roles = [role.value for role in Role if role is not Role.VISION]
    if set(work) >= set(roles):
        return ", ".join([ALL_WORK, *(name for name in work if name not in roles)])
    return ", ".join(work)
