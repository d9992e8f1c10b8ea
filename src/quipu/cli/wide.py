"""Wide tables: those of more columns than a terminal holds, printed as several, so that no name or number breaks."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from quipu.cli.output import styled, table

_GAP = 3  # cells between two columns


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its heading and its cells, as many as there are rows; `is_right` where they are numbers."""

    heading: str
    cells: tuple[Text, ...]
    is_right: bool = True

    @property
    def width(self) -> int:
        """How many cells of a terminal it takes."""
        return max(cell_len(self.heading), *(cell.cell_len for cell in self.cells), 0)


def print_wide(console: Console, rows: Sequence[str], columns: Sequence[Column], heading: str = "") -> None:
    """Print rows by name, in as many tables below each other as their columns need; empty rows are left out."""
    names = Column(heading, tuple(map(styled, rows)), is_right=False)
    for n, part in enumerate(_parts(columns, console.width - names.width)):
        if n:
            console.print()
        _print_part(console, names, part)


def _print_part(console: Console, names: Column, part: Sequence[Column]) -> None:
    shown = (names, *part)
    listing = table(*(each.heading for each in shown), right=[each.heading for each in part if each.is_right])
    fits = sum(each.width + _GAP for each in shown) - _GAP <= console.width
    for column in listing.columns:
        column.no_wrap = fits
    for cells in zip(*(each.cells for each in shown), strict=True):
        if any(cell.plain for cell in cells[1:]):
            listing.add_row(*cells)
    console.print(listing)


def _parts(columns: Sequence[Column], room: int) -> Iterator[list[Column]]:
    """Yield columns that together take up to `room` cells; one that is wider stands alone, and wraps."""
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
