"""Asked: a question with options, as the query it stands for."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from quipu.errors import InvalidInput
from quipu.model.query import Query
from quipu.retrieve.asking import check


def asked(ask: Callable[[str], Query], query: str | Query, options: Mapping[str, Any]) -> Query:
    """Return the query; `ask` makes one of a text, by the settings. Raises InvalidInput for what is no option of it."""
    made = ask(query) if isinstance(query, str) else query
    try:
        made = replace(made, **options)
    except TypeError as error:
        raise InvalidInput(f"Unknown query option ({error}).", remedy="See quipu.Query for the options.") from None
    check(made)
    return made
