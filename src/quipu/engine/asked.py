"""Asked: a question with options, as the query it stands for."""

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from difflib import get_close_matches
from typing import Any

from quipu.errors import InvalidInput
from quipu.model.query import Query
from quipu.retrieve.asking import check


def asked(ask: Callable[[str], Query], query: str | Query, options: Mapping[str, Any]) -> Query:
    """Return the query; `ask` makes one of a text, by the settings. Raises InvalidInput for what is no option of it."""
    if not isinstance(query, (str, Query)):
        raise InvalidInput(f"{query!r} is no question.", remedy="Ask with a text, or with a quipu.Query.")
    names = [each.name for each in fields(Query)]
    for name in options:
        if name not in names:
            near = get_close_matches(name, names, n=1)
            hint = f"Did you mean {near[0]}? " if near else ""
            raise InvalidInput(f"A question has no option {name!r}.", remedy=f"{hint}It takes: {', '.join(names)}.")
    made = replace(ask(query) if isinstance(query, str) else query, **options)
    check(made)
    return made
