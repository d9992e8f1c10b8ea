"""Sentences: the sentences of a chunk, which of them a place lies in, and how one is quoted."""

from bisect import bisect_right

from quipu.text.sentences import sentence_spans

MAX_QUOTE = 300


class Sentences:
    """The sentences of one text, by place."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.spans = sentence_spans(text)
        self._starts = [start for start, _ in self.spans]
        self._quotes: dict[int, str] = {}

    def index(self, place: int) -> int:
        """Return the index of the sentence that holds the character at `place`, or of the last one before it."""
        return max(bisect_right(self._starts, place) - 1, 0)

    def quote(self, index: int) -> str:
        """Return the sentence on one line, cut at a word to at most MAX_QUOTE characters."""
        if index not in self._quotes:
            start, end = self.spans[index]
            self._quotes[index] = _shorten(self.text[start:end])
        return self._quotes[index]


def _shorten(sentence: str) -> str:
    line = " ".join(sentence.split())
    if len(line) <= MAX_QUOTE:
        return line
    cut = line[: MAX_QUOTE - 1]
    space = cut.rfind(" ")
    return (cut[:space] if space > MAX_QUOTE // 2 else cut) + "…"
