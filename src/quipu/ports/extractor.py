"""Extractor: reads one chunk and says which entities and relations it names."""

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import Protocol

from quipu.model.extraction import ChunkInput, Extraction


@dataclass(frozen=True, slots=True, kw_only=True)
class Extracted:
    """The outcome for the input at `index`: an extraction, the error that stood in its way, or both.

    Both: what could be read before the error. It is published, and the chunk counts as failed, to be tried again.
    `n_dropped` records were left out, since the text or the ontology does not bear them out.
    """

    index: int
    extraction: Extraction | None
    error: str = ""
    n_dropped: int = 0


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

    @property
    def n_ahead(self) -> int:
        """How many inputs should be waiting for an outcome at any time; 0 for one that computes in this process."""
        ...

    def n_tokens_sent(self, chunk: ChunkInput) -> int:
        """Return how many tokens are sent to a model to read a chunk once; 0 where none is asked."""
        ...

    async def check(self) -> None:
        """Raise Unavailable, with the remedy, where nothing can be extracted as things stand."""
        ...

    def extract(self, inputs: Sequence[ChunkInput]) -> AsyncGenerator[Extracted, None]:
        """Yield one outcome for each input, in any order, as each arrives; one bad input fails alone.

        Raises Unavailable or OverBudget where no further input can be read, after the outcomes of those under way.
        Closed before its end, it begins nothing more and gives up what is under way.
        """
        ...
