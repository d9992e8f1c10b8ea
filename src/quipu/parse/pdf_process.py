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
from quipu.parse.pdf_grid import find_grids, merge_rules
from quipu.parse.pdf_pictures import PictureRenderer, marked_page, picture_boxes, shares
from quipu.parse.pdf_reading_order import by_column, line_box, quoted_words
from quipu.parse.pdf_tables import PdfRule, PdfTable, PdfWord

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
_MAX_PATHS = 5_000  # of a page: a drawing has more
_MAX_SEGMENTS = 20_000
_THIN = 3.0  # points: a filled area this thin is a line
_MIN_RULE = 6.0  # points
_EDGES = tuple(ctypes.c_double() for _ in range(4))  # FPDFText_GetCharBox writes into them
_MIN_LETTERS = 25  # of a page with text of its own
_MIN_PICTURE = 0.3  # of the area of a page: a smaller picture is no scan of it
_NONSENSE = re.compile("[\ufffd\ue000-\uf8ff\x01\x03-\x08\x0e-\x1f]")  # no characters, or those of one font only
_MAX_NONSENSE = 0.2  # of the characters of a page
_PAPER = 0.95  # of the width and height of a page: an area this large is its background


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
        page_lines, page_tables = divide(lines, merge_rules(drawn_rules(page)))
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
            line = _line(page, match[0], match.start())
            words = _words(page, match, line, place)
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
    return remaining, [_raw_table(tables[index], n_lines) for index, n_lines in n_before.items()]


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


def _raw_table(table: PdfTable, n_lines_before: int) -> RawTable:
    return table.rows, table.n_header_rows, table.columns, table.top, table.bottom, n_lines_before


def _text(page: pypdfium2.PdfTextPage) -> str:
    """Return the text of a page; the index of each character is its index in PDFium."""
    n_characters = page.count_chars()
    text: str = page.get_text_range()
    if len(text) == n_characters:
        return text.replace("\ufffe", HYPHEN)
    # The text lacks characters without a code, and others are surrogate pairs. Reading one by one is slow but exact.
    codes = (pdfium.FPDFText_GetUnicode(page, index) for index in range(n_characters))
    return "".join(chr(code) if code <= sys.maxunicode else "\ufffd" for code in codes)


def _line(page: pypdfium2.PdfTextPage, text: str, start: int) -> RawLine:
    first = start + len(text) - len(text.lstrip(_BLANK))
    last = start + len(text.rstrip(_BLANK)) - 1
    whole = _whole(text.strip())
    left, right = round(page.get_charbox(first)[0], 2), round(page.get_charbox(last)[2], 2)
    size = _size(page, last)  # the first character may be a bullet in another font
    return whole, left, right, _baseline(page, first), _baseline(page, last), size


def _whole(text: str) -> str:
    """Return `text` with pairs of surrogates as one character."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _words(page: pypdfium2.PdfTextPage, match: re.Match[str], line: RawLine, place: int) -> list[PdfWord]:
    """Return the words of a line with their edges. PDFium joins lines at a hyphen, so their baselines may differ."""
    _, _, _, baseline, end_baseline, size = line
    words: list[PdfWord] = []
    for word in _WORD.finditer(match[0]):
        first = match.start() + word.start()
        last = match.start() + word.end() - 1 - (word[0] != HYPHEN and word[0].endswith(HYPHEN))
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


def drawn_rules(page: pypdfium2.PdfPage) -> list[PdfRule]:
    """Return the straight lines that a page draws along its axes, and the edges of its rectangles; none if too many."""
    n_paths = n_segments = 0
    rules: list[PdfRule] = []
    paper = page.get_size()
    for index in range(pdfium.FPDFPage_CountObjects(page)):
        path = pdfium.FPDFPage_GetObject(page, index)
        if pdfium.FPDFPageObj_GetType(path) != pdfium.FPDF_PAGEOBJ_PATH:
            continue
        n_paths += 1
        n_segments += max(0, pdfium.FPDFPath_CountSegments(path))
        if n_paths > _MAX_PATHS or n_segments > _MAX_SEGMENTS:
            return []
        if _is_visible(path):
            rules += _path_rules(path, paper)
    return rules


def is_scan(page: pypdfium2.PdfPage, text: str) -> bool:
    """Return whether a page shows text that it does not hold: hardly a letter beside a large picture, or nonsense."""
    n_visible = len("".join(text.split()))
    if len(_NONSENSE.findall(text)) > _MAX_NONSENSE * n_visible:
        return True
    if n_visible >= _MIN_LETTERS:
        return False
    width, height = page.get_size()
    area = 0.0
    for index in range(min(_MAX_PATHS, pdfium.FPDFPage_CountObjects(page))):
        picture = pdfium.FPDFPage_GetObject(page, index)
        edges = [ctypes.c_float() for _ in range(4)]
        is_picture = pdfium.FPDFPageObj_GetType(picture) in (pdfium.FPDF_PAGEOBJ_IMAGE, pdfium.FPDF_PAGEOBJ_FORM)
        if is_picture and pdfium.FPDFPageObj_GetBounds(picture, *edges):
            left, bottom, right, top = (edge.value for edge in edges)
            area += max(0.0, right - left) * max(0.0, top - bottom)
    return bool(area > _MIN_PICTURE * width * height)


def _is_visible(path: pdfium.FPDF_PAGEOBJECT) -> bool:
    """Return whether a path is drawn, in another colour than white."""
    fill, stroke = ctypes.c_int(), ctypes.c_int()
    pdfium.FPDFPath_GetDrawMode(path, fill, stroke)
    if stroke.value or not fill.value:
        return bool(stroke.value)
    colour = [ctypes.c_uint() for _ in range(4)]
    has_colour = pdfium.FPDFPageObj_GetFillColor(path, *colour)
    return not has_colour or any(part.value < 255 for part in colour[:3])


def _path_rules(path: pdfium.FPDF_PAGEOBJECT, paper: tuple[float, float]) -> Iterator[PdfRule]:
    edges = [ctypes.c_float() for _ in range(4)]
    if not pdfium.FPDFPageObj_GetBounds(path, *edges):
        return
    left, bottom, right, top = (edge.value for edge in edges)
    width, height = right - left, top - bottom
    if width > _PAPER * paper[0] and height > _PAPER * paper[1]:
        return
    if min(width, height) <= _THIN:
        corners = [(left, (bottom + top) / 2), (right, (bottom + top) / 2)]
        if height > width:
            corners = [((left + right) / 2, bottom), ((left + right) / 2, top)]
        pieces = [corners]
    else:
        pieces = _straight_pieces(path)
    for (x, y), (end_x, end_y) in pieces:
        if abs(y - end_y) < 0.5 and abs(x - end_x) >= _MIN_RULE:
            yield PdfRule(True, round(y, 2), round(min(x, end_x), 2), round(max(x, end_x), 2))
        elif abs(x - end_x) < 0.5 and abs(y - end_y) >= _MIN_RULE:
            yield PdfRule(False, round(x, 2), round(min(y, end_y), 2), round(max(y, end_y), 2))


def _straight_pieces(path: pdfium.FPDF_PAGEOBJECT) -> list[list[tuple[float, float]]]:
    """Return the start and end of each straight piece of a path, in points of the page."""
    matrix = pdfium.FS_MATRIX()
    pdfium.FPDFPageObj_GetMatrix(path, matrix)
    pieces = []
    first = before = (0.0, 0.0)
    for index in range(pdfium.FPDFPath_CountSegments(path)):
        segment = pdfium.FPDFPath_GetPathSegment(path, index)
        x, y = ctypes.c_float(), ctypes.c_float()
        pdfium.FPDFPathSegment_GetPoint(segment, x, y)
        point = (
            matrix.a * x.value + matrix.c * y.value + matrix.e,
            matrix.b * x.value + matrix.d * y.value + matrix.f,
        )
        kind = pdfium.FPDFPathSegment_GetType(segment)
        if kind == pdfium.FPDF_SEGMENT_LINETO:
            pieces.append([before, point])
        elif kind == pdfium.FPDF_SEGMENT_MOVETO:
            first = point
        before = point
        if pdfium.FPDFPathSegment_GetClose(segment):
            pieces.append([point, first])
    return pieces


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
