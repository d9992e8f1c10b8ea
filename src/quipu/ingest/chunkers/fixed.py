"""fixed: windows of a set number of tokens, each repeating the end of the one before.

A window ends where the budget ends, at the last word before it; in a table, at the last row. It is packed from left to
right, so an edit moves every window after it.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence

from quipu.ingest.chunkers.chunker import Chunker
from quipu.ingest.chunkers.manuscript import Manuscript
from quipu.model.chunking import AUTO_TOKENS, FIXED, Chunking
from quipu.text.unicode import is_grapheme_boundary

_OVERLAP_SHARE = 12  # the overlap is this part of a window where none is given: 100 of 1,200 tokens
_MAX_WORD = 64  # characters; a longer word is cut between graphemes
_FIRST_TRY = 4  # characters a token


def cut(manuscript: Manuscript, chunking: Chunking, _similarities: Sequence[float]) -> list[tuple[int, int]]:
    """Return the windows; each holds something visible that the one before does not."""
    overlap = manuscript.max_tokens // _OVERLAP_SHARE if chunking.overlap is None else chunking.overlap
    text_end = len(manuscript.text.rstrip())
    spans: list[tuple[int, int]] = []
    start, end = manuscript.visible_from(0), 0
    while end < text_end:
        reach, following = _reach(manuscript, start), manuscript.visible_from(end)
        if reach <= following:  # the overlap and a table's header leave no room
            start = following
            reach = _reach(manuscript, start)
        end = min(_last_joint(manuscript, following, reach), text_end)
        spans.append((start, end))
        start = manuscript.visible_from(_first_joint(manuscript, start, end, overlap))
    return spans


def _reach(manuscript: Manuscript, start: int) -> int:
    """Return the end of the longest window from `start` that is within budget, of one character at least."""
    n_left = len(manuscript.text) - start

    def cost(size: int) -> int:
        return manuscript.n_tokens(start, start + size)

    return start + _most_characters(cost, n_left, manuscript.max_tokens)


def _first_joint(manuscript: Manuscript, start: int, end: int, overlap: int) -> int:
    """Return where the window after [start, end) begins: at most `overlap` tokens before its end, after its start."""

    def cost(size: int) -> int:
        return manuscript.count(manuscript.text[end - size : end])

    if overlap == 0 or end - start < 2 or cost(1) > overlap:
        return end
    earliest = end - _most_characters(cost, end - start - 1, overlap)
    if manuscript.block_at(earliest).kind == "table":
        line_end = manuscript.text.find("\n", earliest - 1, end - 1)
        if line_end >= 0:
            return line_end + 1
    near = range(earliest, min(end, earliest + _MAX_WORD))
    return next((index for index in near if _is_word_start(manuscript.text, index)), _grapheme_from(near, manuscript))


def _last_joint(manuscript: Manuscript, start: int, reach: int) -> int:
    """Return the last place in (start, reach] where a row, else a word, else a grapheme ends."""
    text = manuscript.text
    if reach >= len(text):
        return reach
    block = manuscript.block_at(reach)
    if block.kind == "table":
        line_end = text.rfind("\n", max(start, block.start), reach + 1)
        if line_end > start:
            return line_end
    near = range(reach, max(start, reach - _MAX_WORD), -1)
    word = next((index for index in near if text[index].isspace() or _is_word_start(text, index)), None)
    if word is not None:
        return word
    return next((index for index in near if is_grapheme_boundary(text, index)), reach)


def _most_characters(cost: Callable[[int], int], n_left: int, budget: int) -> int:
    """Return the most characters, from 1 to `n_left`, that cost at most `budget`, looking little further than that."""
    size = min(n_left, budget * _FIRST_TRY)
    while size < n_left and cost(size) <= budget:
        size = min(n_left, 2 * size)
    return max(1, bisect_right(range(1, size + 1), budget, key=cost))


def _is_word_start(text: str, index: int) -> bool:
    return text[index - 1].isspace() and not text[index].isspace()


def _grapheme_from(near: range, manuscript: Manuscript) -> int:
    return next((index for index in near if is_grapheme_boundary(manuscript.text, index)), near.stop)


CHUNKER = Chunker(
    name=FIXED,
    cut=cut,
    auto_tokens=lambda _n_bytes: AUTO_TOKENS,
    summary="windows of equal size, each repeating the end of the one before",
    after="the common practice",
    when="chunks must be as full as those of another system, or the text has no structure",
)
