"""Markdown of results, for notebooks, which call `_repr_markdown_` of the last value of a cell."""

import re
from collections.abc import Iterable, Sequence

_SPECIAL = re.compile(r"([\\`*_\[\]<>|#~$])")


def escape_markdown(text: str) -> str:
    """Return the text on one line, with every character that means something in Markdown as itself."""
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))


def markdown_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table. Strings are escaped; numbers are aligned by the reader's style sheet."""
    lines = [columns, ["---"] * len(columns)]
    lines += [[escape_markdown(str(cell)) for cell in row] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
