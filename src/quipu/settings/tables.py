"""Tables of a settings file: a list of things of one kind, each with its own fields."""

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import repeat
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from quipu.errors import InvalidInput
from quipu.settings.complaints import as_invalid_input
from quipu.settings.values import Given

Model = TypeVar("Model", bound=BaseModel)
T = TypeVar("T")


def parse_table(table: object, kind: type[Model], *, what: str, usage: str, origin: str) -> Model:
    """Return a table as its model. Raises InvalidInput naming what is wrong, and where."""
    if not isinstance(table, dict):
        raise InvalidInput(f"{table!r} ({origin}) is not a {what}.", remedy=f"Use {usage}.")
    try:
        return kind(**table)
    except ValidationError as error:
        given = {str(name): Given(value=value, origin=origin) for name, value in table.items()}
        raise as_invalid_input(error, given, kind, what=what, origin=origin) from None


def lines_of_tables(name: str, text: str) -> Iterator[int]:
    """Yield the line each [[name]] table begins on, then that of the first for ever: written inline."""
    pattern = re.compile(rf"\s*\[\[\s*[\"']?{name}[\"']?\s*\]\]")
    yield from (number for number, line in enumerate(text.splitlines(), 1) if pattern.match(line))
    yield from repeat(line_of(name, text))


def line_of(name: str, text: str) -> int:
    """Return the line on which a name is given, 1 where it cannot be found."""
    pattern = re.compile(rf"""\s*(\[\s*){{0,2}}["']?{re.escape(name)}["']?\s*[.=\]]""")
    return next((number for number, line in enumerate(text.splitlines(), 1) if pattern.match(line)), 1)


def saying_where(work: Callable[[], T], origin: str) -> T:
    """Return what `work` returns; an InvalidInput it raises is told with the origin of the values."""
    try:
        return work()
    except InvalidInput as error:
        raise InvalidInput(f"{error.message.rstrip('.')} ({origin}).", remedy=error.remedy) from None


def values_given(model: BaseModel, *, without: set[str]) -> Mapping[str, Any]:
    """Return the fields of a table that were given, but for those `without`."""
    return {name: value for name, value in model.model_dump(exclude=without).items() if value is not None}
