"""Prefixes: the words some models want before a text, to tell a question from a passage."""

import re
from dataclasses import dataclass

_E5 = re.compile(r"(?:^|[/_-])e5(?:[_-]|$)", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prefixes:
    """What stands before a question and before a passage."""

    query: str = ""
    passage: str = ""


def prefixes_of(model: str) -> Prefixes:
    """Return the prefixes of a model, known by its name: the E5 family was trained with them (Wang et al. 2022)."""
    return Prefixes(query="query: ", passage="passage: ") if _E5.search(model) else Prefixes()
