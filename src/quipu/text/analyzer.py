"""Analyzer: the terms of full text, for chunks and for questions alike."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from quipu.text.words import TOKENIZER_IDENTITY, Words, index_terms, is_unspaced, query_terms, split_words

MIN_SEGMENT = 3  # words of two characters are pairs already


@dataclass(frozen=True, slots=True, kw_only=True)
class Analyzer:
    """Words and pairs of characters, and, with a segmenter, the longer words of unspaced scripts after them.

    Links need the pairs alone, so they are the same with and without a segmenter.
    """

    segment: Callable[[str], Sequence[str]] | None = None
    segmenter: str = ""

    @property
    def identity(self) -> str:
        """What the index records: full text built under another identity is not searched."""
        return f"{TOKENIZER_IDENTITY}+{self.segmenter}" if self.segmenter else TOKENIZER_IDENTITY

    def terms(self, words: Words) -> list[str]:
        """Return the terms of a chunk's words."""
        return [*index_terms(words), *self._segments(words)]

    def query_terms(self, text: str) -> list[str]:
        """Return the distinct terms of a question, in order of appearance."""
        return list(dict.fromkeys([*query_terms(text), *self._segments(split_words(text))]))

    def _segments(self, words: Words) -> Iterator[str]:
        if self.segment is not None:
            for run in _unspaced_runs(words):
                yield from (word for word in self.segment(run) if len(word) >= MIN_SEGMENT)


def _unspaced_runs(words: Words) -> Iterator[str]:
    run = ""
    for word in words:
        if run and not (word.is_joined and is_unspaced(word.form)):
            yield run
            run = ""
        if is_unspaced(word.form):
            run += word.form
    if run:
        yield run
