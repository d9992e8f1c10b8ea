"""PDF process: reads one PDF from standard input with PDFium and writes its lines as JSON; run by quipu.parse.pdf.

PDFium is native code, and a few bytes of a PDF can expand to gigabytes inside it. So it runs in a sandboxed process
(quipu.parse.sandbox).
"""

import base64
import ctypes
import json
import math
import re
import sys
from collections.abc import Iterator, Sequence

import pypdfium2
import pypdfium2.raw as pdfium

from quipu.parse.pdf_columns import find_aligned
from quipu.parse.pdf_grid import drawn_rules, find_grids
from quipu.parse.pdf_pictures import PictureRenderer, is_scan, marked_page, picture_boxes, shares
from quipu.parse.pdf_reading_order import by_column, line_box, quoted_words
from quipu.parse.pdf_tables import PdfRule, PdfWord
from quipu.text.unicode import superscript

# [text, left, right, baseline, baseline of its end, size], in points from the lower left corner of the page. PDFium
# joins a line that ends in a hyphen to the next line, so a line may end lower than it begins.
RawLine = tuple[str, float, float, float, float, float]
# [rows, number of header rows, edges of the columns, top, bottom, number of lines before it]
RawTable = tuple[Sequence[Sequence[str]], int, Sequence[tuple[float, float]], float, float, int]
OutlineEntry = tuple[int, str, int, float | None]  # level from 1, title, page from 0, height on the page

_LINE = re.compile("[^\r\n]+")
_WORD = re.compile("[^ \t\0\u00a0\x02]+\x02?|\x02")
# PDFium removes a hyphen and the line break after it, and marks the place: with this code, in text with U+FFFE.
HYPHEN = "\x02"
_BLANK = f" \t\0\u00a0{HYPHEN}"
_PASSWORD_ERROR = 4
_MAX_OUTLINE_ENTRIES = 20_000
_MAX_OUTLINE_DEPTH = 12
_EDGES = tuple(ctypes.c_double() for _ in range(4))  # FPDFText_GetCharBox writes into them
_NUMBER = re.compile(r"[-+\u2212\u2013]?[0-9]+(?![0-9/\u2044])")  # no fraction
_NOTE_MARK = re.compile("\\A[⁰¹²³⁴-⁹](?: ?[⁰¹²³⁴-⁹])*(?: |(?=[^\\W\\d_]))")  # of a footnote, before its text
_MIN_RISE = 0.8  # points: characters whose baselines differ by less stand on one line
_RAISED = 0.15  # font sizes above the baseline of its neighbour: an exponent, or the mark of a footnote
_MAX_RAISED_SIZE = 0.85  # of the size of its neighbour


def main() -> None:
    """Read the PDF; `sys.argv` gives the limits of pages, lines and characters, and which pictures are wanted.

    Pictures are wanted in "no" case, or "never", "scans" or "all" says which whole pages are wanted beside them. Or
    show one page: "page" and the arguments of `read_page` as JSON.
    """
    try:
        document = pypdfium2.PdfDocument(sys.stdin.buffer.read())
        if sys.argv[1] == "page":
            json.dump(read_page(document, *json.loads(sys.argv[2])), sys.stdout)
            return
        max_pages, max_lines, max_characters = map(int, sys.argv[1:4])
        pictures = PictureRenderer(sys.argv[4]) if sys.argv[4] != "no" else None
        fields = read(document, pictures, max_pages=max_pages, max_lines=max_lines, max_characters=max_characters)
    except pypdfium2.PdfiumError as error:
        is_locked = getattr(error, "err_code", None) == _PASSWORD_ERROR
        fields = {"error": "password" if is_locked else "damaged", "detail": str(error)}
    except MemoryError:
        fields = {"error": "memory"}
    json.dump(fields, sys.stdout)


def read(
    document: pypdfium2.PdfDocument,
    pictures: PictureRenderer | None = None,
    *,
    max_pages: int,
    max_lines: int,
    max_characters: int,
) -> dict[str, object]:
    """Return the lines of all pages, the outline and the properties, or the exceeded limit as "error"."""
    if len(document) > max_pages:
        return {"error": "pages"}
    pages: list[list[RawLine]] = []
    tables: list[list[RawTable]] = []
    scans: list[int] = []
    n_lines = n_characters = 0
    for page in document:
        text_page = page.get_textpage()
        n_characters += text_page.count_chars()
        if n_characters > max_characters:
            return {"error": "characters"}
        lines = [*_page_lines(text_page)]
        n_lines += len(lines)
        has_scan = is_scan(page, "".join(line[0] for line, _ in lines))
        if has_scan:
            scans.append(len(pages))
        if n_lines > max_lines:
            return {"error": "lines"}
        page_lines, page_tables = divide(lines, drawn_rules(page))
        if pictures:
            pictures.add(page, len(pages), page_lines, is_scan=has_scan)
        pages.append(page_lines)
        tables.append(page_tables)
        text_page.close()
        page.close()
        sys.stderr.write(f"{len(pages)}/{len(document)}\n")
    return {
        "pages": pages,
        "tables": tables,
        "scans": scans,
        "pictures": pictures.by_page if pictures else {},
        "whole": pictures.whole if pictures else {},
        "n_left_out": pictures.n_left_out if pictures else 0,
        "outline": outline(document),
        "properties": document.get_metadata_dict(skip_empty=True),
    }


def read_page(
    document: pypdfium2.PdfDocument,
    index: int,
    quote: str,
    boxes: Sequence[tuple[float, float, float, float]],
    is_of_picture: bool,
) -> dict[str, object]:
    """Return a page as a picture with a quote marked, or boxes; {"error": "page"} if there is no such page.

    A scan is returned without a picture, unless boxes are given: its words have to be recognised. A quote that is of a
    picture, and not of the text of the page, marks the pictures of the page.
    """
    if not 0 <= index < len(document):
        return {"error": "page", "n_pages": len(document)}
    page = document[index]
    text_page = page.get_textpage()
    lines = [*_page_lines(text_page)]
    scanned = bool(quote) and not boxes and is_scan(page, "".join(line[0] for line, _ in lines))
    if not boxes:
        places = [line_box(line) for line in quoted_words([word for _, line in lines for word in line], quote)]
        if not places and is_of_picture:  # of which one of the page is not known any more
            places = picture_boxes(page)
        boxes = [shares(page, box) for box in places]
    width, height = page.get_size()
    return {
        "n_pages": len(document),
        "width": width,
        "height": height,
        "is_scan": scanned,
        "boxes": boxes,
        "png": "" if scanned else base64.b64encode(marked_page(page, boxes)).decode("ascii"),
    }


def _page_lines(page: pypdfium2.PdfTextPage) -> Iterator[tuple[RawLine, list[PdfWord]]]:
    """Yield the lines of a page with their words in PDFium's reading order, without blank ones."""
    place = 0
    for match in _LINE.finditer(_text(page)):
        if match[0].strip(_BLANK):
            text, start = match[0], match.start()
            ends = start + len(text) - len(text.lstrip(_BLANK)), start + len(text.rstrip(_BLANK)) - 1
            baselines = _baseline(page, ends[0]), _baseline(page, ends[1])
            text = _with_superscripts(page, text, start, baselines)
            line = _line(page, text, ends, baselines)
            words = _words(page, text, start, line, place)
            place += len(words)
            yield line, words


def divide(
    lines: Sequence[tuple[RawLine, list[PdfWord]]], rules: Sequence[PdfRule]
) -> tuple[list[RawLine], list[RawTable]]:
    """Return the lines of a page without the words that are in tables, and the tables."""
    lines = _reordered(lines)
    words = [word for _, line_words in lines for word in line_words]
    tables = find_grids(words, rules)
    in_grids = frozenset[int]().union(*(table.places for table in tables))
    tables += find_aligned([word for word in words if word.place not in in_grids], rules)
    table_by_place = {place: index for index, table in enumerate(tables) for place in table.places}
    remaining: list[RawLine] = []
    n_before: dict[int, int] = {}
    for line, line_words in lines:
        outside = [word for word in line_words if word.place not in table_by_place]
        for word in line_words:
            if word.place in table_by_place:
                n_before.setdefault(table_by_place[word.place], len(remaining))
        if len(outside) == len(line_words):
            remaining.append(line)
        elif outside:
            first, last = outside[0], outside[-1]
            text = " ".join(word.text for word in outside)
            remaining.append((text, first.left, last.right, first.baseline, last.baseline, last.size))
    return remaining, [
        (table.rows, table.n_header_rows, table.columns, table.top, table.bottom, n_lines)
        for table, n_lines in ((tables[index], n_lines) for index, n_lines in n_before.items())
    ]


def _reordered(lines: Sequence[tuple[RawLine, list[PdfWord]]]) -> Sequence[tuple[RawLine, list[PdfWord]]]:
    """Return the lines; where the file mixes two columns, those of the left column before those of the right."""
    ordered = by_column([words for _, words in lines])
    if len(ordered) == len(lines) and all(len(new) == len(old) for new, (_, old) in zip(ordered, lines, strict=True)):
        return lines
    return [
        (
            (
                " ".join(word.text for word in words),
                words[0].left,
                words[-1].right,
                words[0].baseline,
                words[-1].baseline,
                words[-1].size,
            ),
            words,
        )
        for words in ordered
    ]


def _text(page: pypdfium2.PdfTextPage) -> str:
    """Return the text of a page; the index of each character is its index in PDFium."""
    n_characters = page.count_chars()
    text: str = page.get_text_range()
    if len(text) == n_characters:
        return text.replace("\ufffe", HYPHEN)
    # The text lacks characters without a code, and others are surrogate pairs. Reading one by one is slow but exact.
    codes = (pdfium.FPDFText_GetUnicode(page, index) for index in range(n_characters))
    return "".join(chr(code) if code <= sys.maxunicode else "\ufffd" for code in codes)


def _with_superscripts(page: pypdfium2.PdfTextPage, text: str, start: int, baselines: tuple[float, float]) -> str:
    """Return a line with its raised digits as superscripts; `start` is the place of its first character in the page."""
    characters = list(text)
    neighbour = end = 0
    for number in _NUMBER.finditer(text):
        last = start + number.end() - 1
        height = _baseline(page, last)
        if all(height - baseline < _MIN_RISE for baseline in baselines):
            continue
        first = last
        while first > start + number.start() and abs(_baseline(page, first - 1) - height) < _MIN_RISE:
            first -= 1
        before = text[: first - start].rstrip(_BLANK)
        if not before:
            after = (start + place for place in range(number.end(), len(text)) if text[place] not in _BLANK)
            neighbour = next((place for place in after if height - _baseline(page, place) >= _MIN_RISE), last)
        elif len(before.rstrip(",")) > end or not end:  # else it follows another mark
            neighbour = start + len(before) - 1
        if _is_raised(page, last, neighbour):
            end = number.end()
            characters[first - start : end] = superscript(text[first - start : end])
    return "".join(characters)


def _is_raised(page: pypdfium2.PdfTextPage, index: int, neighbour: int) -> bool:
    """Return whether a character is smaller than another one and begins above its baseline, not above its top."""
    size = _size(page, neighbour)
    rise = _baseline(page, index) - _baseline(page, neighbour)
    return _RAISED * size <= rise <= size and _size(page, index) <= _MAX_RAISED_SIZE * size


def _line(page: pypdfium2.PdfTextPage, text: str, ends: tuple[int, int], baselines: tuple[float, float]) -> RawLine:
    first, last = ends
    left, right = round(page.get_charbox(first)[0], 2), round(page.get_charbox(last)[2], 2)
    size = _size(page, last)  # the first character may be a bullet in another font
    whole = _NOTE_MARK.sub(lambda mark: mark[0].replace(" ", "") + " ", _whole(text.strip()))
    return whole, left, right, *baselines, size


def _whole(text: str) -> str:
    """Return `text` with pairs of surrogates as one character."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _words(page: pypdfium2.PdfTextPage, text: str, start: int, line: RawLine, place: int) -> list[PdfWord]:
    """Return the words of a line with their edges. PDFium joins lines at a hyphen, so their baselines may differ."""
    _, _, _, baseline, end_baseline, size = line
    words: list[PdfWord] = []
    for word in _WORD.finditer(text):
        first = start + word.start()
        last = start + word.end() - 1 - (word[0] != HYPHEN and word[0].endswith(HYPHEN))
        words.append(
            PdfWord(
                text="-" if word[0] == HYPHEN else _whole(word[0]),
                left=_edge(page, first, is_right=False),
                right=_edge(page, last, is_right=True),
                baseline=baseline if baseline == end_baseline else _baseline(page, first),
                size=size or 1.0,
                place=place + len(words),
            )
        )
    return words


def _edge(page: pypdfium2.PdfTextPage, index: int, *, is_right: bool) -> float:
    """Return the left or right edge of a character."""
    left, right, bottom, top = _EDGES
    pdfium.FPDFText_GetCharBox(page, index, left, right, bottom, top)
    return round((right if is_right else left).value, 2)


def outline(document: pypdfium2.PdfDocument) -> list[OutlineEntry]:
    """Return the bookmarks that point to a page, in order."""
    entries: list[OutlineEntry] = []
    for bookmark in document.get_toc(max_depth=_MAX_OUTLINE_DEPTH):
        target = bookmark.get_dest()
        page = None if target is None else target.get_index()
        title = " ".join((bookmark.get_title() or "").split())
        if target is not None and page is not None and page >= 0 and title:
            mode, view = target.get_view()
            height = view[1] if mode == pdfium.PDFDEST_VIEW_XYZ and len(view) > 1 else None
            entries.append((bookmark.level + 1, title, page, height or None))
        if len(entries) >= _MAX_OUTLINE_ENTRIES:
            break
    return entries


def _baseline(page: pypdfium2.PdfTextPage, index: int) -> float:
    x, y = ctypes.c_double(), ctypes.c_double()
    pdfium.FPDFText_GetCharOrigin(page, index, x, y)
    return round(y.value, 2)


def _size(page: pypdfium2.PdfTextPage, index: int) -> float:
    """Return the displayed font size of a character: many programs write size 1 and scale it."""
    matrix = pdfium.FS_MATRIX()
    is_scaled = pdfium.FPDFText_GetMatrix(page, index, matrix)
    scale = math.hypot(matrix.c, matrix.d) if is_scaled else 1.0
    return round(float(pdfium.FPDFText_GetFontSize(page, index)) * scale, 2)


if __name__ == "__main__":
    main()
