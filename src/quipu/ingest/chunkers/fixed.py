"""fixed: windows of a fixed number of tokens; each window repeats the end of the window before it.

A window ends at the last word within the budget; in a table, at the last row. Windows are packed from left to right, so
an edit moves every later window.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence

from quipu.ingest.chunkers.chunker import ChunkableText, Chunker, Span
from quipu.model.chunking import AUTO_TOKENS, FIXED, Chunking
from quipu.text.unicode import is_grapheme_boundary

_OVERLAP_SHARE = 12  # the default overlap is 1/12 of a window: 100 of 1,200 tokens
_MAX_WORD = 64  # characters; a longer word is cut between graphemes
_FIRST_TRY = 4  # characters per token


def cut(document: ChunkableText, chunking: Chunking, _similarities: Sequence[float]) -> list[Span]:
    """Return the windows. Each holds a visible character that the window before it does not hold."""
    overlap = document.max_tokens // _OVERLAP_SHARE if chunking.overlap is None else chunking.overlap
    text_end = len(document.text.rstrip())
    spans: list[Span] = []
    start, end = document.next_visible(0), 0
    while end < text_end:
        reach, following = _reach(document, start), document.next_visible(end)
        if reach <= following:  # the overlap and a table's header leave no room
            start = following
            reach = _reach(document, start)
        end = min(_window_end(document, following, reach), text_end)
        spans.append((start, end))
        start = document.next_visible(_next_window_start(document, start, end, overlap))
    return spans


def _reach(document: ChunkableText, start: int) -> int:
    """Return the end of the longest window from `start` within budget; the window has at least one character."""
    n_remaining = len(document.text) - start

    def cost(size: int) -> int:
        return document.n_tokens(start, start + size)

    return start + _most_characters(cost, n_remaining, document.max_tokens)


def _next_window_start(document: ChunkableText, start: int, end: int, overlap: int) -> int:
    """Return where the window after [start, end) begins: after `start`, and at most `overlap` tokens before `end`."""

    def cost(size: int) -> int:
        return document.count(document.text[end - size : end])

    if overlap == 0 or end - start < 2 or cost(1) > overlap:
        return end
    earliest = end - _most_characters(cost, end - start - 1, overlap)
    if document.block_at(earliest).kind == "table":
        line_end = document.text.find("\n", earliest - 1, end - 1)
        if line_end >= 0:
            return line_end + 1
    near = range(earliest, min(end, earliest + _MAX_WORD))
    return next((index for index in near if _is_word_start(document.text, index)), _grapheme_from(near, document))


def _window_end(document: ChunkableText, start: int, reach: int) -> int:
    """Return the last place in (start, reach] where a row, else a word, else a grapheme ends."""
    text = document.text
    if reach >= len(text):
        return reach
    block = document.block_at(reach)
    if block.kind == "table":
        line_end = text.rfind("\n", max(start, block.start), reach + 1)
        if line_end > start:
            return line_end
    near = range(reach, max(start, reach - _MAX_WORD), -1)
    word = next((index for index in near if text[index].isspace() or _is_word_start(text, index)), None)
    if word is not None:
        return word
    return next((index for index in near if is_grapheme_boundary(text, index)), reach)


def _most_characters(cost: Callable[[int], int], n_remaining: int, budget: int) -> int:
    """Return the largest number of characters, from 1 to `n_remaining`, that costs at most `budget` tokens.

    Sizes much larger than the result are not counted.
    """
    size = min(n_remaining, budget * _FIRST_TRY)
    while size < n_remaining and cost(size) <= budget:
        size = min(n_remaining, 2 * size)
    return max(1, bisect_right(range(1, size + 1), budget, key=cost))


def _is_word_start(text: str, index: int) -> bool:
    return text[index - 1].isspace() and not text[index].isspace()


def _grapheme_from(near: range, document: ChunkableText) -> int:
    return next((index for index in near if is_grapheme_boundary(document.text, index)), near.stop)


CHUNKER = Chunker(
    name=FIXED,
    cut=cut,
    auto_tokens=lambda _n_bytes: AUTO_TOKENS,
    summary="windows of equal size; each repeats the end of the window before it",
    after="the common practice",
    when="chunks must be as full as in another system, or the text has no structure",
)
