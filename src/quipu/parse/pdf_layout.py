"""PDF layout: lines on pages to paragraphs, lists and headings, without what repeats on every page."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median

from quipu.parse.decode import stream_safe

HYPHEN = "\x02"  # PDFium's mark for a hyphen at the end of a line, which it joins to the next

FORM_FEED = "\f"
_LARGE = 1.15  # times the size of most text: type of headings
_MIN_PAGES = 3  # what repeats on fewer is no running header
_N_EDGE_LINES = 2  # at the top and at the bottom of a page
_SPACE = 1.35  # a gap so many times the usual one ends a paragraph
_SIZE_CHANGE = 0.12
_SHORT = 0.88  # of the width of the page's text: a line that ends before is short
_MAX_HEADING_LINES = 3
_ITEM = re.compile(r"(?:[•▪◦‣●○■□–—*·-]|\(?\d{1,3}[.)]|\(?[a-z][.)])\s")
_BULLET = re.compile(r"[•▪◦‣●○■□·–—*]\s*")
_ENDS_SENTENCE = re.compile(r"[.!?…:;。！？；：][\"'”’»)\]」』）]*\Z")
_BROKEN = re.compile(f"([^\\W\\d_]+){HYPHEN}([^\\W\\d_]+)")
_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_PAGE = re.compile(r"[1-9]\d{0,4}")
_NUMBER = re.compile(r"\d+")
_SECTION = re.compile(r"(?:(?:chapter|section|part|appendix)\s+)?(?:\d+(?:\.\d+)*|[a-z]|[ivxlc]+)[.):]?\s+")
_CJK = re.compile("[\u3000-\u30ff\u3400-\u9fff\uf900-\ufaff\uff00-\uffef]")


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a page: its text, left and right edge, baselines where it begins and ends, and font size, in points."""

    text: str
    left: float
    right: float
    baseline: float
    end_baseline: float
    size: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Bookmark:
    """An entry of the outline: level from 1, title, page from 1, and how far up that page, where it says."""

    level: int
    title: str
    page: int
    height: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Paragraph:
    """A run of lines as one text, on the page it begins on.

    `kind` is paragraph, list, heading, or mark: a heading that no line shows, whose text is only above what follows.
    """

    text: str
    kind: str
    page: int
    size: float = 0
    level: int = 0


def paragraphs(pages: Sequence[Sequence[Line]], outline: Sequence[Bookmark]) -> list[Paragraph]:
    """Return the paragraphs of all pages in order.

    One that runs on over a page's end is whole, on its first page, with a form feed where the next begins.
    """
    kept = without_running_lines(pages)
    leading = _usual_leading(kept)
    words = Counter(word.lower() for page in kept for line in page for word in _WORD.findall(line.text))
    bookmarks: dict[int, list[Bookmark]] = {}
    for bookmark in outline:
        bookmarks.setdefault(bookmark.page, []).append(bookmark)
    found: list[Paragraph] = []
    last_page = 0
    for number, lines in enumerate(kept, 1):
        for paragraph in _of_page(lines, number, leading, bookmarks.get(number, ())):
            if found and _runs_on(found[-1], paragraph):
                text = _joined(found[-1].text, paragraph.text)
                found[-1] = replace(found[-1], text=_turned(text, paragraph.text, number - last_page))
            else:
                found.append(paragraph)
            last_page = number
    return [replace(each, text=_mended(each.text, words)) for each in found]


def without_running_lines(pages: Sequence[Sequence[Line]]) -> list[list[Line]]:
    """Return the pages without the headers, footers and page numbers that stand on most of them, or on every other.

    Of the outermost lines, what repeats beside the page's number goes as well: the header of one chapter. Nothing is
    taken away where nothing else would be left.
    """
    body = body_size(pages)
    edges = [_edge_lines(page, body) for page in pages]
    running: set[str] = set()
    for group in (edges, edges[::2], edges[1::2]):
        n_filled = sum(bool(edge) for edge in group)
        counts = Counter(key for edge in group for key in edge.values())
        running |= {key for key, n in counts.items() if n >= _MIN_PAGES and 2 * n > n_filled}
    numbered = _numbered_lines(pages, edges)
    kept = [
        [line for index, line in enumerate(page) if edge.get(index) not in running and (number, index) not in numbered]
        for number, (page, edge) in enumerate(zip(pages, edges, strict=True))
    ]
    return kept if any(kept) else [list(page) for page in pages]


def _numbered_lines(pages: Sequence[Sequence[Line]], edges: Sequence[Mapping[int, str]]) -> set[tuple[int, int]]:
    """Return the page and index of outermost lines that begin or end with the page's number and otherwise repeat.

    The number printed is the page's count, plus what most pages say it is ahead or behind.
    """
    ahead: dict[tuple[int, int], set[int]] = {}
    counts: Counter[int] = Counter()
    for number, page in enumerate(pages):
        for index in _outermost(page):
            words = page[index].text.split()
            ahead[number, index] = {int(word) - number for word in (words[0], words[-1]) if _PAGE.fullmatch(word)}
        counts.update(set().union(*(ahead[number, index] for index in _outermost(page))))
    repeated = Counter(edges[number][index] for number, index in ahead)
    usual = max(counts, key=lambda offset: (counts[offset], -abs(offset)), default=None)
    if usual is None or counts[usual] < _MIN_PAGES or 2 * counts[usual] <= len(pages):
        return set()
    return {place for place, offsets in ahead.items() if usual in offsets and repeated[edges[place[0]][place[1]]] > 1}


def body_size(pages: Sequence[Sequence[Line]]) -> float:
    """Return the font size of most of the text."""
    sizes: Counter[float] = Counter()
    for page in pages:
        for line in page:
            sizes[round(line.size, 1)] += len(line.text)
    return max(sizes, key=lambda size: (sizes[size], size), default=0.0)


def _edge_lines(page: Sequence[Line], body: float) -> dict[int, str]:
    """Return the lines nearest the top and the bottom of a page by index, their numbers left open.

    Those of large type keep theirs: "Chapter 1" and "Chapter 2" are headings, not one header.
    """
    by_height = _by_height(page)
    nearest = {*by_height[:_N_EDGE_LINES], *by_height[-_N_EDGE_LINES:]}
    keys = {index: _folded(page[index].text) for index in sorted(nearest)}
    return {i: key if page[i].size > _LARGE * body else _NUMBER.sub("#", key) for i, key in keys.items()}


def _outermost(page: Sequence[Line]) -> set[int]:
    by_height = _by_height(page)
    return {*by_height[:1], *by_height[-1:]}


def _by_height(page: Sequence[Line]) -> list[int]:
    return sorted(range(len(page)), key=lambda index: (-page[index].baseline, index))


def _usual_leading(pages: Sequence[Sequence[Line]]) -> float:
    """Return the usual distance of two lines, in font sizes."""
    ratios = [
        (above.end_baseline - below.baseline) / below.size
        for page in pages
        for above, below in pairwise(page)
        if below.size > 0
        and _is_same_size(above, below)
        and 0.5 < (above.end_baseline - below.baseline) / below.size < 3
    ]
    return median(ratios) if ratios else 1.2


def _of_page(lines: Sequence[Line], page: int, leading: float, bookmarks: Sequence[Bookmark]) -> Iterator[Paragraph]:
    """Yield the paragraphs, lists and headings of one page."""
    placed = _placed(lines, bookmarks)
    right = max((line.right for line in lines), default=0)
    left = min((line.left for line in lines), default=0)
    short = left + _SHORT * (right - left)
    open_lines: list[Line] = []
    index = 0
    while index < len(lines):
        marks = placed.get(index, ())
        if marks or (open_lines and _begins_paragraph(open_lines[-1], lines[index], leading, short)):
            yield from _closed(open_lines, page)
            open_lines = []
        n_shown = 0
        for bookmark, n_lines in marks:
            shown = " ".join(line.text for line in lines[index : index + n_lines])
            kind = "heading" if n_lines else "mark"
            yield Paragraph(text=shown or bookmark.title, kind=kind, page=page, level=bookmark.level)
            n_shown = max(n_shown, n_lines)
        if not n_shown:
            open_lines.append(lines[index])
        index += max(1, n_shown)
    yield from _closed(open_lines, page)
    for bookmark, _ in placed.get(len(lines), ()):
        yield Paragraph(text=bookmark.title, kind="mark", page=page, level=bookmark.level)


def _placed(lines: Sequence[Line], bookmarks: Sequence[Bookmark]) -> Mapping[int, list[tuple[Bookmark, int]]]:
    """Return the bookmarks by the line they belong before, with how many lines show them (0: none does)."""
    shown: dict[str, tuple[int, int]] = {}
    for n_lines in range(1, _MAX_HEADING_LINES + 1):
        for index in range(len(lines) if bookmarks else 0):
            text = _folded(" ".join(line.text for line in lines[index : index + n_lines]))
            for form in (text, _SECTION.sub("", text, count=1)):
                shown.setdefault(form, (index, n_lines))
    placed: dict[int, list[tuple[Bookmark, int]]] = {}
    taken: set[int] = set()
    for bookmark in bookmarks:
        title = _folded(bookmark.title)
        index, n_lines = shown.get(title) or shown.get(_SECTION.sub("", title, count=1)) or (-1, 0)
        if index < 0 or index in taken:
            index, n_lines = _line_below(lines, bookmark.height), 0
        else:
            taken |= set(range(index, index + n_lines))
        placed.setdefault(index, []).append((bookmark, n_lines))
    return placed


def _line_below(lines: Sequence[Line], height: float | None) -> int:
    """Return the index of the first line that begins below `height`; 0 where that is not known."""
    if height is None:
        return 0
    return next((index for index, line in enumerate(lines) if line.baseline <= height), len(lines))


def _begins_paragraph(above: Line, below: Line, leading: float, short: float) -> bool:
    gap = above.end_baseline - below.baseline
    size = max(below.size, 1)
    if abs(gap) < size / 4 and below.left >= above.left:  # further right on the same line
        return False
    if not _is_same_size(above, below) or gap > _SPACE * leading * size or _ITEM.match(below.text):
        return True
    ends = _ENDS_SENTENCE.search(above.text) is not None
    if gap < 0:  # up again: the next column
        return ends or not below.text[:1].islower()
    return ends and (above.right < short or below.left > above.left + size / 2)


def _is_same_size(above: Line, below: Line) -> bool:
    return abs(above.size - below.size) <= _SIZE_CHANGE * max(above.size, below.size)


def _closed(lines: Sequence[Line], page: int) -> Iterator[Paragraph]:
    if not lines:
        return
    text = lines[0].text
    for line in lines[1:]:
        text = _joined(text, line.text)
    is_item = _ITEM.match(text) is not None
    yield Paragraph(
        text=_BULLET.sub("- ", text, count=1) if _BULLET.match(text) else text,
        kind="list" if is_item else "paragraph",
        page=page,
        size=lines[-1].size,
    )


def _runs_on(before: Paragraph, after: Paragraph) -> bool:
    """Say whether `after` is the rest of a paragraph that the end of a page or column interrupted."""
    return (
        before.kind in ("paragraph", "list")
        and after.kind == "paragraph"
        and after.page > before.page
        and abs(before.size - after.size) <= _SIZE_CHANGE * max(before.size, after.size)
        and _ENDS_SENTENCE.search(before.text) is None
        and (after.text[:1].islower() or _CJK.match(after.text) is not None or before.text.endswith(("-", HYPHEN)))
    )


def _joined(above: str, below: str) -> str:
    """Return two lines as one: a hyphen at the end becomes a mark for `_mended`, CJK text gets no space."""
    if above.endswith(HYPHEN):
        return above + below
    if above.endswith("-") and above[-2:-1].isalpha() and below[:1].islower():
        return above[:-1] + HYPHEN + below
    if _CJK.match(above[-1:]) and _CJK.match(below):
        return above + below
    return f"{above} {below}"


def _turned(joined: str, below: str, n_pages: int) -> str:
    """Return `joined`, which ends with `below`, with `n_pages` form feeds before that, or after the word they share."""
    start = len(joined) - len(below)
    if joined[start - 1] != " ":
        start = joined.find(" ", start) + 1
    return f"{joined[: start - 1]}{FORM_FEED * n_pages}{joined[start:]}" if n_pages and start else joined


def _mended(text: str, words: Mapping[str, int]) -> str:
    """Return `text` with broken words whole, as the document spells them elsewhere; else without the hyphen."""
    if HYPHEN not in text:
        return text
    return _BROKEN.sub(lambda broken: _unbroken(broken[1], broken[2], words), text).replace(HYPHEN, "-")


def _unbroken(left: str, right: str, words: Mapping[str, int]) -> str:
    one, two = left + right, f"{left}-{right}"
    is_compound = words.get(two.lower(), 0) > words.get(one.lower(), 0) or not right[:1].islower()
    return two if is_compound else one


def _folded(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", stream_safe(text)).replace(HYPHEN, "").casefold().split())
