"""Occurrences: places where a chunk may name something, and the sentences that they lie in."""

from bisect import bisect_right
from dataclasses import dataclass
from enum import StrEnum

from quipu.ingest.local.prose import BLANK
from quipu.text.sentences import sentence_spans

MAX_QUOTE_CHARS = 300


class Cue(StrEnum):
    """The reason why a span of text looks like a name; the strongest reason first."""

    TITLE = "title"
    SUBJECT = "subject"  # the first name inside a longer title: what the page is about
    HEADING = "heading"
    SPEAKER = "speaker"
    QUOTED = "quoted"
    CAPITALS = "capitals"
    CHINESE = "chinese"
    SENTENCE_START = "sentence start"  # one capitalised word at the start of a sentence: weak
    UNKNOWN_CHINESE = "unknown chinese"  # unknown characters between common Chinese words: weak
    TERM = "term"


CUE_RANKS = {cue: rank for rank, cue in enumerate(Cue)}


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A name at [start, end) of the chunk's text. `type` is its entity type if the cue shows it, else "".

    A name that stands only in the title or in a heading has the span (0, 0).
    """

    name: str
    start: int
    end: int
    cue: Cue
    type: str = ""


class SentenceIndex:
    """The sentences of the prose of one chunk, found by position. `original` is the chunk's text, which is quoted."""

    def __init__(self, text: str, original: str = "") -> None:
        self.text = text
        self.spans = sentence_spans(text)
        self._original = original or text
        self._starts = [start for start, _ in self.spans]
        self._quotes: dict[int, str] = {}

    def index_at(self, position: int) -> int:
        """Return the index of the sentence that holds the character at `position`, or of the last one before it."""
        return max(bisect_right(self._starts, position) - 1, 0)

    def quote(self, index: int) -> str:
        """Return the sentence on one line, "" if most of it is no prose.

        A sentence longer than MAX_QUOTE_CHARS is cut after a word.
        """
        if index not in self._quotes:
            start, end = self.spans[index]
            is_prose = 2 * self.text.count(BLANK, start, end) < end - start
            self._quotes[index] = _shorten(self._original[start:end]) if is_prose else ""
        return self._quotes[index]


def _shorten(sentence: str) -> str:
    line = " ".join(sentence.split())
    if len(line) <= MAX_QUOTE_CHARS:
        return line
    cut = line[: MAX_QUOTE_CHARS - 1]
    space = cut.rfind(" ")
    return (cut[:space] if space > MAX_QUOTE_CHARS // 2 else cut) + "…"
