"""Sentences: the sentences of a chunk, and which of them a place lies in."""

from bisect import bisect_right
from functools import cached_property

from quipu.text.sentences import sentence_spans


class Sentences:
    """The sentences of one text, by place."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.spans = sentence_spans(text)

    @cached_property
    def _starts(self) -> list[int]:
        return [start for start, _ in self.spans]

    def index(self, place: int) -> int:
        """Return the index of the sentence that holds the character at `place`, or of the last one before it."""
        return max(bisect_right(self._starts, place) - 1, 0)

    def around(self, place: int) -> tuple[int, int]:
        """Return [start, end) of the sentence that holds the character at `place`."""
        return self.spans[self.index(place)]
