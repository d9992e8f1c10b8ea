"""Segmenter: finds the words in a run of a script that puts no spaces between them."""

from collections.abc import Sequence
from typing import Protocol


class Segmenter(Protocol):
    """Adds words to the pairs of characters that full text indexes anyway."""

    @property
    def identity(self) -> str:
        """Name and version; part of the tokenizer's identity, which the index records."""
        ...

    def words(self, run: str) -> Sequence[str]:
        """Return the words of a run of characters, in order; the same for the same run."""
        ...
