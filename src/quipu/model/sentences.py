"""Sentences of a chunk, as they are written down."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkSentences:
    """Where the sentences of a chunk begin and end in its text, in order; they replace those there are."""

    chunk: str
    spans: Sequence[tuple[int, int]]
