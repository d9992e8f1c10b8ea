"""Chunker: what every way of cutting is, and the spans it cuts a text into."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from quipu.ingest.chunkers.manuscript import Manuscript
from quipu.model.chunking import AUTO_TOKENS, Chunking

AUTO_TOKENS_OF_LARGE = 600
LARGE_BYTES = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkSpan:
    """Characters [start, end) of a document's text, the headings all its text is under, and the page it begins on.

    `header` is the header row of the table it begins in, where that row stands before it.
    """

    start: int
    end: int
    headings: tuple[str, ...] = ()
    page: int | None = None
    header: str = ""


Cut = Callable[[Manuscript, Chunking, Sequence[float]], list[tuple[int, int]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunker:
    """A way of cutting under its name.

    `cut` is a pure function of its arguments and returns the characters [start, end) of each chunk, starts and ends
    rising; one still over budget is cut again by the caller. `auto_tokens` gives the budget for a document of so many
    bytes where none is set; `after` names the source of the algorithm, `when` tells a user when to choose it. One that
    `reads_vectors` is given how alike the text is before and after each sentence.
    """

    name: str
    cut: Cut
    auto_tokens: Callable[[int], int]
    summary: str
    after: str
    when: str
    reads_vectors: bool = False


def tokens_for_size(n_bytes: int) -> int:
    """Return the token budget of a chunk: smaller for documents over 100 kB, where passages must be found, not skimmed.

    A document that grows past that size is cut anew throughout, once.
    """
    return AUTO_TOKENS if n_bytes <= LARGE_BYTES else AUTO_TOKENS_OF_LARGE
