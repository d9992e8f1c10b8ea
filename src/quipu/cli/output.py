"""Output: results on stdout, as tables for people or JSON for programs; everything else on stderr."""

import json
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import TypeVar

import click
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from quipu.cli.options import shared
from quipu.cli.terminal import clean, clean_json, clean_name

Value = TypeVar("Value")

_PIPE_WIDTH = 120


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
    """Return `text` cleaned, its white space folded, cut to `max_cells` columns of a terminal."""
    line = Text(" ".join(clean(text).split()))
    line.truncate(max_cells, overflow="ellipsis")
    return line.plain


def styled(text: str, style: str = "") -> Text:
    """Return text to print as it is: never read as markup, never steering the terminal."""
    return Text(clean(text), style=style, overflow="fold")


def named(name: str, style: str = "") -> Text:
    """Return the name of a document to print, on one line."""
    return styled(clean_name(name), style)


def table(*columns: str, right: Iterable[str] = (), title: str = "") -> Table:
    """Return an empty table; the columns named in `right` hold numbers. Cells wrap, so that ids can be copied whole."""
    made = Table(box=SIMPLE_HEAD, title=title or None, title_justify="left", pad_edge=False, show_edge=False)
    for name in columns:
        made.add_column(name, justify="right" if name in right else "left", overflow="fold")
    return made


def _console(*, is_stderr: bool) -> Console:
    stream = sys.stderr if is_stderr else sys.stdout
    width = None if stream.isatty() else shutil.get_terminal_size((_PIPE_WIDTH, 24)).columns
    return Console(stderr=is_stderr, width=width, highlight=False, emoji=False, markup=False)


def _jsonable(value: object) -> object:
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"{type(value).__name__} has no form in JSON")
