"""PDF reading order: the words of a page in two columns, which the file draws line by line; and where a quote stands.

Most files draw one column after the other, and are read in that order. Some draw a line of the left column and then the
line beside it: their columns are told apart by the empty strip between them, and by text that fills the left column.
"""

import unicodedata
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, groupby, pairwise
from statistics import median

from quipu.parse.pdf_tables import PdfWord, is_leader, is_value, lines_of

MIN_LINES = 12  # of each column
MIN_CLEAR = 0.75  # of the lines of the page, which do not cross the strip
MIN_CHANGES = 0.2  # of the lines: how often the file goes on from the left to the right column
MIN_STRIP = 1.0  # font sizes
MIN_WORDS = 4.0  # of a side of a line, on average
MAX_VALUES = 0.2  # of the words: more are a table
MAX_DIVIDED = 0.3  # of the lines: more have columns of their own
MIN_FULL = 0.4  # of the lines of the left column, which fill it
_WIDEST = 0.9  # of the lines of the left column are not wider than it
_NEARLY = 0.8  # of the width of the left column
_MIDDLE = (0.35, 0.65)  # of the width of the text
_SMALL = 0.9  # of the size of most lines of a column: footnotes are smaller
_MAX_WORDS = 20_000
_MIN_PIECE = 6  # letters and digits of a quote that stand together on a page
_ASCENT, _DESCENT = 0.9, 0.25  # font sizes above and below the baseline

_Lines = Sequence[Sequence[PdfWord]]


def by_column(file_lines: _Lines) -> list[list[PdfWord]]:
    """Return the words by line in reading order, with new places; `file_lines` unless the file mixes two columns."""
    words = [word for line in file_lines for word in line]
    if not MIN_LINES <= len(words) <= _MAX_WORDS:
        return [list(line) for line in file_lines]
    lines = lines_of(words)
    strip = _strip(lines)
    n_changes = sum(before.left < strip < word.left for before, word in pairwise(words))
    if not strip or n_changes < MIN_CHANGES * len(lines) or not _are_columns(lines, strip):
        return [list(line) for line in file_lines]
    ordered = list(_ordered(lines, strip))
    place = 0
    numbered: list[list[PdfWord]] = []
    for line in ordered:
        numbered.append([replace(word, place=place + index) for index, word in enumerate(line)])
        place += len(line)
    return numbered


def _strip(lines: _Lines) -> float:
    """Return where most lines of a right column begin, a little to the left; 0 if there is none."""
    left = min(word.left for line in lines for word in line)
    right = max(word.right for line in lines for word in line)
    low, high = (left + share * (right - left) for share in _MIDDLE)
    beginnings = [line[0] for line in lines]
    beginnings += [
        word for line in lines for before, word in pairwise(line) if word.left - before.right > MIN_STRIP * word.size
    ]
    starts = Counter(round(word.left) for word in beginnings if low < word.left < high)
    start = max(starts, key=lambda position: (starts[position], -position), default=0)
    return start - 1.5 if starts[start] >= MIN_LINES / 2 else 0.0


def _are_columns(lines: _Lines, strip: float) -> bool:
    """Return whether most lines keep clear of the strip, and both sides are text, on the left filling its column."""
    clear = [line for line in lines if not _crosses(line, strip)]
    sides = [
        [side for line in clear if (side := [word for word in line if (word.left < strip) is is_left])]
        for is_left in (True, False)
    ]
    words = [word for line in clear for word in line]
    left = min((word.left for word in words), default=strip)
    ends = sorted(side[-1].right for side in sides[0])
    width = ends[int(_WIDEST * len(ends))] - left if ends else 0.0  # a running header may be wider
    n_full = sum(side[-1].right - left > _NEARLY * width for side in sides[0])
    return (
        len(clear) >= MIN_CLEAR * len(lines)
        and all(_is_text(side) for side in sides)
        and n_full >= MIN_FULL * len(sides[0])
    )


def _is_text(lines: _Lines) -> bool:
    """Return whether the lines of one column are many, not short, without wide spaces, and not mostly values."""
    words = [word for line in lines for word in line if not is_leader(word)]
    n_values = sum(is_value(word.text) for word in words)
    n_divided = sum(any(word.left - before.right > 2 * word.size for before, word in pairwise(line)) for line in lines)
    if n_divided > MAX_DIVIDED * len(lines):
        return False
    return len(lines) >= MIN_LINES and len(words) >= MIN_WORDS * len(lines) and n_values <= MAX_VALUES * len(words)


def _crosses(line: Sequence[PdfWord], strip: float) -> bool:
    return any(word.left < strip < word.right for word in line)


def _ordered(lines: _Lines, strip: float) -> Iterator[list[PdfWord]]:
    """Yield the lines of the left column, then of the right one, then their footnotes.

    A line across both columns ends what is above it.
    """
    for is_across, group in groupby(lines, key=lambda line: _crosses(line, strip)):
        band = list(group)
        if is_across:
            yield from (list(line) for line in band)
            continue
        columns = [
            [side for line in band if (side := [word for word in line if (word.left < strip) is is_left])]
            for is_left in (True, False)
        ]
        n_body_lines = [_count_body_lines(column) for column in columns]
        for column, n_lines in zip(columns, n_body_lines, strict=True):
            yield from column[:n_lines]
        for column, n_lines in zip(columns, n_body_lines, strict=True):
            yield from column[n_lines:]


def _count_body_lines(column: _Lines) -> int:
    """Return how many lines stand above the footnotes: the last lines, smaller than the others, or those before one."""
    sizes = [max(word.size for word in line) for line in column]
    is_body = [size > _SMALL * median(sizes) for size in sizes]
    n_lines = len(sizes) - (is_body[-2:] == [False, True])  # the number of the page may stand below
    return next((index for index in range(n_lines, 0, -1) if is_body[index - 1]), 0)


def quoted_words(words: Sequence[PdfWord], quote: str) -> list[list[PdfWord]]:
    """Return the words of a page that a quote consists of, by line.

    Letters and digits are compared, in pieces as long as possible: what is quoted leaves out running headers and joins
    what hyphens divide. A quote that is shorter than a piece must stand there as a whole.
    """
    letters = [_letters(word.text) for word in words]
    ends = list(accumulate(map(len, letters)))
    page, wanted_letters = "".join(letters), _letters(quote)
    quoted = set[int]()
    start = place = 0
    while start < len(wanted_letters):
        length, place = _longest_piece(page, wanted_letters[start:], place)
        if length >= min(_MIN_PIECE, len(wanted_letters)):
            first, last = bisect_right(ends, place), bisect_left(ends, place + length)
            quoted.update(range(first, last + 1))
            place += length
        start += max(1, length)
    chosen = [words[index] for index in sorted(quoted)]
    return [list(line) for _, line in groupby(chosen, key=lambda word: word.baseline)]


def line_box(line: Sequence[PdfWord]) -> tuple[float, float, float, float]:
    """Return the left, bottom, right and top edge of the words of a line, in points from the lower left corner."""
    baseline, size = line[0].baseline, max(word.size for word in line)
    left, right = min(word.left for word in line), max(word.right for word in line)
    return left, baseline - _DESCENT * size, right, baseline + _ASCENT * size


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, unicodedata.normalize("NFKC", text).casefold()))


def _longest_piece(page: str, text: str, place: int) -> tuple[int, int]:
    """Return how many characters of the beginning of `text` stand on a page, and where, best after `place`."""
    low, high, best = 0, len(text), place
    while low < high:
        middle = (low + high + 1) // 2
        at = page.find(text[:middle], place)
        at = page.find(text[:middle]) if at < 0 else at
        low, high, best = (middle, high, at) if at >= 0 else (low, middle - 1, best)
    return low, best
