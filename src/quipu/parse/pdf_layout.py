"""PDF layout: the lines of pages become paragraphs, lists and headings; running headers and footers are removed."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median

from quipu.parse.builder import format_row
from quipu.parse.decode import stream_safe

HYPHEN = "\x02"  # PDFium's mark for a hyphen at the end of a line, which it joins to the next line
FORM_FEED = "\f"
_LARGE = 1.15  # times the body size: a heading
_MIN_PAGES = 3  # a running header repeats on at least as many pages
_N_EDGE_LINES = 2  # at the top and at the bottom of a page
_SPACE = 1.35  # times the usual line distance: a larger gap ends a paragraph
_SIZE_CHANGE = 0.12
_SHORT = 0.88  # of the text width: a line that ends before it is short
_MAX_HEADING_LINES = 3
_SAME_EDGE = 4.0  # points between the edges of a column on two pages
_LIST_ENTRY = re.compile(r"(?:[•▪◦‣●○■□–—*·-]|\(?\d{1,3}[.)]|\(?[a-z][.)])\s")
_BULLET = re.compile(r"[•▪◦‣●○■□·–—*]\s*")
_ENDS_SENTENCE = re.compile(r"[.!?…:;。！？；：][\"'”’»)\]」』）]*\Z")
_BROKEN = re.compile(f"([^\\W\\d_]+){HYPHEN}([^\\W\\d_]+)")
_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_PAGE = re.compile(r"[1-9]\d{0,4}")
_NUMBER = re.compile(r"\d+")
_SECTION = re.compile(r"(?:(?:chapter|section|part|appendix)\s+)?(?:\d+(?:\.\d+)*|[a-z]|[ivxlc]+)[.):]?\s+")
_CJK = re.compile("[\u3000-\u30ff\u3400-\u9fff\uf900-\ufaff\uff00-\uffef]")


@dataclass(frozen=True, slots=True, kw_only=True)
class PdfTableText:
    """A table of a page: rows of equally many cells, the number of header rows (0 or 1), the edges of the columns."""

    rows: Sequence[Sequence[str]]
    n_header_rows: int
    columns: Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class PdfPictureText:
    """What is said of a picture, in brackets; or, with `is_page`, the text of a whole page in Markdown."""

    text: str
    is_page: bool = False


@dataclass(frozen=True, slots=True)
class PdfLine:
    """A line of a page: its text, left and right edge, baselines of its start and end, and font size, all in points.

    A table or a picture takes the place of one line, without text and size.
    """

    text: str
    left: float
    right: float
    baseline: float
    end_baseline: float
    size: float
    table: PdfTableText | None = None
    picture: PdfPictureText | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PdfBookmark:
    """An entry of the outline: level from 1, title, page from 1, and the height on the page if it is stated."""

    level: int
    title: str
    page: int
    height: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PdfParagraph:
    """Adjacent lines as one text; `page` is the page where it begins.

    `kind` is "paragraph", "list", "table", "picture", "page", "heading" or "mark". The text of a table has a line for
    each row, and `header` is its header row. A page is the Markdown of a whole page. A mark is an outline heading that
    no line on the page shows: it becomes part of the heading path, but not of the text.
    """

    text: str
    kind: str
    page: int
    size: float = 0
    level: int = 0
    header: str = ""
    columns: Sequence[tuple[float, float]] = ()


def paragraphs(pages: Sequence[Sequence[PdfLine]], outline: Sequence[PdfBookmark]) -> list[PdfParagraph]:
    """Return the paragraphs of all pages in order.

    A paragraph that continues on the next page is one paragraph on its first page, with a form feed at the page break.
    """
    body_pages = without_running_lines(pages)
    leading = _usual_leading(body_pages)
    words = Counter(word.lower() for page in body_pages for line in page for word in _WORD.findall(line.text))
    bookmarks: dict[int, list[PdfBookmark]] = {}
    for bookmark in outline:
        bookmarks.setdefault(bookmark.page, []).append(bookmark)
    result: list[PdfParagraph] = []
    last_page = 0
    for number, lines in enumerate(body_pages, 1):
        for paragraph in _page_paragraphs(lines, number, leading, bookmarks.get(number, ())):
            if result and _continues_table(result[-1], paragraph):
                result[-1] = _with_rows(result[-1], paragraph, number - last_page)
            elif result and _continues(result[-1], paragraph):
                text = _join(result[-1].text, paragraph.text)
                result[-1] = replace(result[-1], text=_mark_page_break(text, paragraph.text, number - last_page))
            else:
                result.append(paragraph)
            last_page = number
    return [replace(paragraph, text=_join_broken_words(paragraph.text, words)) for paragraph in result]


def without_running_lines(pages: Sequence[Sequence[PdfLine]]) -> list[list[PdfLine]]:
    """Return the pages without headers, footers and page numbers that repeat on most pages or on every second page.

    A first or last line that contains the page number and otherwise repeats is removed too, for example the header of
    one chapter. If nothing else would remain, all lines stay.
    """
    body = body_size(pages)
    edges = [_edge_lines(page, body) for page in pages]
    running: set[str] = set()
    for group in (edges, edges[::2], edges[1::2]):
        filled_width = sum(bool(edge) for edge in group)
        counts = Counter(key for edge in group for key in edge.values())
        running |= {key for key, n in counts.items() if n >= _MIN_PAGES and 2 * n > filled_width}
    numbered = _numbered_lines(pages, edges)
    body_pages = [
        [line for index, line in enumerate(page) if edge.get(index) not in running and (number, index) not in numbered]
        for number, (page, edge) in enumerate(zip(pages, edges, strict=True))
    ]
    return body_pages if any(body_pages) else [list(page) for page in pages]


def _numbered_lines(pages: Sequence[Sequence[PdfLine]], edges: Sequence[Mapping[int, str]]) -> set[tuple[int, int]]:
    """Return the page and index of first and last lines that begin or end with the page number and otherwise repeat.

    The printed number is the position of the page plus an offset, the one that fits most pages.
    """
    offsets_by_line: dict[tuple[int, int], set[int]] = {}
    counts: Counter[int] = Counter()
    for number, page in enumerate(pages):
        for index in _outermost(page):
            words = page[index].text.split()
            offsets_by_line[number, index] = {
                int(word) - number for word in (words[0], words[-1]) if _PAGE.fullmatch(word)
            }
        counts.update(set().union(*(offsets_by_line[number, index] for index in _outermost(page))))
    repeated = Counter(edges[number][index] for number, index in offsets_by_line)
    page_offset = max(counts, key=lambda offset: (counts[offset], -abs(offset)), default=None)
    if page_offset is None or counts[page_offset] < _MIN_PAGES or 2 * counts[page_offset] <= len(pages):
        return set()
    return {
        (number, index)
        for (number, index), offsets in offsets_by_line.items()
        if page_offset in offsets and repeated[edges[number][index]] > 1
    }


def body_size(pages: Sequence[Sequence[PdfLine]]) -> float:
    """Return the font size with the most characters."""
    sizes: Counter[float] = Counter()
    for page in pages:
        for line in page:
            sizes[round(line.size, 1)] += len(line.text)
    return max(sizes, key=lambda size: (sizes[size], size), default=0.0)


def _edge_lines(page: Sequence[PdfLine], body: float) -> dict[int, str]:
    """Return the lines nearest the top and the bottom of a page by index, with "#" in place of their numbers.

    Lines of large type keep their numbers: "Chapter 1" and "Chapter 2" are two headings, not one header.
    """
    by_height = _by_height(page)
    nearest = {*by_height[:_N_EDGE_LINES], *by_height[-_N_EDGE_LINES:]}
    keys = {index: _folded(page[index].text) for index in sorted(nearest)}
    return {i: key if page[i].size > _LARGE * body else _NUMBER.sub("#", key) for i, key in keys.items()}


def _outermost(page: Sequence[PdfLine]) -> set[int]:
    by_height = _by_height(page)
    return {*by_height[:1], *by_height[-1:]}


def _by_height(page: Sequence[PdfLine]) -> list[int]:
    lines = (index for index in range(len(page)) if page[index].table is None and page[index].picture is None)
    return sorted(lines, key=lambda index: (-page[index].baseline, index))


def _usual_leading(pages: Sequence[Sequence[PdfLine]]) -> float:
    """Return the median distance of two lines, in font sizes."""
    ratios = [
        (above.end_baseline - below.baseline) / below.size
        for page in pages
        for above, below in pairwise(page)
        if below.size > 0
        and _is_same_size(above, below)
        and 0.5 < (above.end_baseline - below.baseline) / below.size < 3
    ]
    return median(ratios) if ratios else 1.2


def _page_paragraphs(
    lines: Sequence[PdfLine], page: int, leading: float, bookmarks: Sequence[PdfBookmark]
) -> Iterator[PdfParagraph]:
    """Yield the paragraphs, lists and headings of one page."""
    bookmarks_by_line = _place_bookmarks(lines, bookmarks)
    right = max((line.right for line in lines), default=0)
    left = min((line.left for line in lines), default=0)
    short = left + _SHORT * (right - left)
    open_lines: list[PdfLine] = []
    index = 0
    while index < len(lines):
        line_bookmarks = bookmarks_by_line.get(index, ())
        block = _block_paragraph(lines[index], page)
        if block is not None:
            yield from _merge_lines(open_lines, page)
            open_lines = []
            yield block
            index += 1
            continue
        if line_bookmarks or (open_lines and _begins_paragraph(open_lines[-1], lines[index], leading, short)):
            yield from _merge_lines(open_lines, page)
            open_lines = []
        n_heading_lines = 0
        for bookmark, n_lines in line_bookmarks:
            heading = " ".join(line.text for line in lines[index : index + n_lines])
            kind = "heading" if n_lines else "mark"
            yield PdfParagraph(text=heading or bookmark.title, kind=kind, page=page, level=bookmark.level)
            n_heading_lines = max(n_heading_lines, n_lines)
        if not n_heading_lines:
            open_lines.append(lines[index])
        index += max(1, n_heading_lines)
    yield from _merge_lines(open_lines, page)
    for bookmark, _ in bookmarks_by_line.get(len(lines), ()):
        yield PdfParagraph(text=bookmark.title, kind="mark", page=page, level=bookmark.level)


def _place_bookmarks(
    lines: Sequence[PdfLine], bookmarks: Sequence[PdfBookmark]
) -> Mapping[int, list[tuple[PdfBookmark, int]]]:
    """Return the bookmarks by the index of their line, each with the number of lines that show it (0 if none does)."""
    position_by_text: dict[str, tuple[int, int]] = {}
    for n_lines in range(1, _MAX_HEADING_LINES + 1):
        for index in range(len(lines) if bookmarks else 0):
            text = _folded(" ".join(line.text for line in lines[index : index + n_lines]))
            for form in (text, _SECTION.sub("", text, count=1)):
                position_by_text.setdefault(form, (index, n_lines))
    placed: dict[int, list[tuple[PdfBookmark, int]]] = {}
    heading_lines: set[int] = set()
    for bookmark in bookmarks:
        title = _folded(bookmark.title)
        bare_title = _SECTION.sub("", title, count=1)
        index, n_lines = position_by_text.get(title) or position_by_text.get(bare_title) or (-1, 0)
        if index < 0 or index in heading_lines:
            index, n_lines = _line_below(lines, bookmark.height), 0
        else:
            heading_lines |= set(range(index, index + n_lines))
        placed.setdefault(index, []).append((bookmark, n_lines))
    return placed


def _line_below(lines: Sequence[PdfLine], height: float | None) -> int:
    """Return the index of the first line that begins below `height`; 0 if the height is unknown."""
    if height is None:
        return 0
    return next((index for index, line in enumerate(lines) if line.baseline <= height), len(lines))


def _begins_paragraph(above: PdfLine, below: PdfLine, leading: float, short: float) -> bool:
    gap = above.end_baseline - below.baseline
    size = max(below.size, 1)
    if abs(gap) < size / 4 and below.left >= above.left:  # the same line continues further right
        return False
    if not _is_same_size(above, below) or gap > _SPACE * leading * size or _LIST_ENTRY.match(below.text):
        return True
    ends = _ENDS_SENTENCE.search(above.text) is not None
    if gap < 0:  # higher on the page: the next column
        return ends or not below.text[:1].islower()
    return ends and (above.right < short or below.left > above.left + size / 2)


def _is_same_size(above: PdfLine, below: PdfLine) -> bool:
    return abs(above.size - below.size) <= _SIZE_CHANGE * max(above.size, below.size)


def _merge_lines(lines: Sequence[PdfLine], page: int) -> Iterator[PdfParagraph]:
    if not lines:
        return
    text = lines[0].text
    for line in lines[1:]:
        text = _join(text, line.text)
    is_list_entry = _LIST_ENTRY.match(text) is not None
    yield PdfParagraph(
        text=_BULLET.sub("- ", text, count=1) if _BULLET.match(text) else text,
        kind="list" if is_list_entry else "paragraph",
        page=page,
        size=lines[-1].size,
    )


def _block_paragraph(line: PdfLine, page: int) -> PdfParagraph | None:
    """Return the paragraph of a table or a picture in place of a line; None for a line of text."""
    table, picture = line.table, line.picture
    if picture is not None:
        return PdfParagraph(text=picture.text, kind="page" if picture.is_page else "picture", page=page)
    if table is None:
        return None
    rows = [format_row(row) for row in table.rows]
    return PdfParagraph(
        text="\n".join(rows),
        kind="table",
        page=page,
        header="\n".join(rows[: table.n_header_rows]),
        columns=table.columns,
    )


def _continues_table(before: PdfParagraph, after: PdfParagraph) -> bool:
    """Return whether the table `after` has the columns of the table `before` and the same header or none."""
    return (
        before.kind == after.kind == "table"
        and after.page > before.page
        and after.header in ("", before.header)
        and len(before.columns) == len(after.columns)
        and all(
            abs(left - other_left) < _SAME_EDGE or abs(right - other_right) < _SAME_EDGE
            for (left, right), (other_left, other_right) in zip(before.columns, after.columns, strict=True)
        )
    )


def _with_rows(table: PdfParagraph, rest: PdfParagraph, n_pages: int) -> PdfParagraph:
    """Return the table with the rows of `rest` after `n_pages` form feeds; its header row is not repeated."""
    rows = rest.text.removeprefix(rest.header).lstrip("\n")
    return replace(table, text=f"{table.text}\n{FORM_FEED * n_pages}{rows}")


def _continues(before: PdfParagraph, after: PdfParagraph) -> bool:
    """Return whether `after` continues the paragraph `before` on a later page."""
    return (
        before.kind in ("paragraph", "list")
        and after.kind == "paragraph"
        and after.page > before.page
        and abs(before.size - after.size) <= _SIZE_CHANGE * max(before.size, after.size)
        and _ENDS_SENTENCE.search(before.text) is None
        and (after.text[:1].islower() or _CJK.match(after.text) is not None or before.text.endswith(("-", HYPHEN)))
    )


def _join(above: str, below: str) -> str:
    """Join two lines. A hyphen at the end becomes a mark for `_join_broken_words`; CJK text gets no space."""
    if above.endswith(HYPHEN):
        return above + below
    if above.endswith("-") and above[-2:-1].isalpha() and below[:1].islower():
        return above[:-1] + HYPHEN + below
    if _CJK.match(above[-1:]) and _CJK.match(below):
        return above + below
    return f"{above} {below}"


def _mark_page_break(joined: str, below: str, n_pages: int) -> str:
    """Return `joined`, which ends with `below`, with `n_pages` form feeds before it or after the word broken there."""
    start = len(joined) - len(below)
    if joined[start - 1] != " ":
        start = joined.find(" ", start) + 1
    return f"{joined[: start - 1]}{FORM_FEED * n_pages}{joined[start:]}" if n_pages and start else joined


def _join_broken_words(text: str, words: Mapping[str, int]) -> str:
    """Join words broken at a line end: with a hyphen if the document spells them so more often, else without."""
    if HYPHEN not in text:
        return text
    return _BROKEN.sub(lambda broken: _join_halves(broken[1], broken[2], words), text).replace(HYPHEN, "-")


def _join_halves(first: str, second: str, words: Mapping[str, int]) -> str:
    joined, hyphenated = first + second, f"{first}-{second}"
    is_compound = words.get(hyphenated.lower(), 0) > words.get(joined.lower(), 0) or not second[:1].islower()
    return hyphenated if is_compound else joined


def _folded(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", stream_safe(text)).replace(HYPHEN, "").casefold().split())
