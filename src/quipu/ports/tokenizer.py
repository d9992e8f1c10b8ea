"""Tokenizer: counts tokens, for budgets."""

from typing import Protocol


class Tokenizer(Protocol):
    """Counts tokens. `identity` is recorded where counts decide chunk boundaries."""

    @property
    def identity(self) -> str:
        """Name and version, as in "bytes/4"."""
        ...

    def count(self, text: str) -> int:
        """Return the number of tokens of `text`; 0 only for the empty text; never less for a longer text."""
        ...
