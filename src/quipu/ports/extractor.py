"""Extractor: reads one chunk and says which entities and relations it names."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from quipu.model.extraction import ChunkInput, Extraction


@dataclass(frozen=True, slots=True, kw_only=True)
class Extracted:
    """The outcome for the input at `index`: an extraction, or the error that stood in its way."""

    index: int
    extraction: Extraction | None
    error: str = ""


class Extractor(Protocol):
    """Reads chunks. `identity` changes whenever the same input may give another extraction."""

    @property
    def identity(self) -> str:
        """Name and version, as in "local/1"; part of the key under which replies are kept."""
        ...

    @property
    def description(self) -> str:
        """One plain phrase that tells a user what read the documents, as in "local rules, no language model"."""
        ...

    def extract(self, inputs: Sequence[ChunkInput]) -> AsyncIterator[Extracted]:
        """Yield one outcome for each input, in any order, as each arrives; one bad input fails alone."""
        ...
