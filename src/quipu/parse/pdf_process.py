"""PDF process: reads one PDF from standard input with PDFium and writes its lines as JSON; run by quipu.parse.pdf.

PDFium is native code, and a few bytes of a PDF can expand to gigabytes inside it. So it runs in a sandboxed process
(quipu.parse.sandbox).
"""

import ctypes
import json
import math
import re
import sys

import pypdfium2
import pypdfium2.raw as pdfium

# [text, left, right, baseline, baseline of its end, size], in points from the lower left corner of the page. PDFium
# joins a line that ends in a hyphen to the next line, so a line may end lower than it begins.
RawLine = tuple[str, float, float, float, float, float]
OutlineEntry = tuple[int, str, int, float | None]  # level from 1, title, page from 0, height on the page

_LINE = re.compile("[^\r\n]+")
# PDFium removes a hyphen and the line break after it, and marks the place: with this code, in text with U+FFFE.
HYPHEN = "\x02"
_BLANK = f" \t\0\u00a0{HYPHEN}"
_PASSWORD_ERROR = 4
_MAX_OUTLINE_ENTRIES = 20_000
_MAX_OUTLINE_DEPTH = 12


def main() -> None:
    """Read the PDF; `sys.argv` gives the limits of pages, lines and characters."""
    max_pages, max_lines, max_characters = map(int, sys.argv[1:])
    try:
        document = pypdfium2.PdfDocument(sys.stdin.buffer.read())
        fields = read(document, max_pages=max_pages, max_lines=max_lines, max_characters=max_characters)
    except pypdfium2.PdfiumError as error:
        is_locked = getattr(error, "err_code", None) == _PASSWORD_ERROR
        fields = {"error": "password" if is_locked else "damaged", "detail": str(error)}
    except MemoryError:
        fields = {"error": "memory"}
    json.dump(fields, sys.stdout)


def read(document: pypdfium2.PdfDocument, *, max_pages: int, max_lines: int, max_characters: int) -> dict[str, object]:
    """Return the lines of all pages, the outline and the properties, or the exceeded limit as "error"."""
    if len(document) > max_pages:
        return {"error": "pages"}
    pages: list[list[RawLine]] = []
    n_lines = n_characters = 0
    for page in document:
        text_page = page.get_textpage()
        n_characters += text_page.count_chars()
        if n_characters > max_characters:
            return {"error": "characters"}
        pages.append(page_lines(text_page))
        n_lines += len(pages[-1])
        if n_lines > max_lines:
            return {"error": "lines"}
        text_page.close()
        page.close()
    return {
        "pages": pages,
        "outline": outline(document),
        "properties": document.get_metadata_dict(skip_empty=True),
    }


def page_lines(page: pypdfium2.PdfTextPage) -> list[RawLine]:
    """Return the lines of a page in PDFium's reading order, without blank ones."""
    return [_line(page, match[0], match.start()) for match in _LINE.finditer(_text(page)) if match[0].strip(_BLANK)]


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
    whole = text.strip().encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    left, right = round(page.get_charbox(first)[0], 2), round(page.get_charbox(last)[2], 2)
    size = _size(page, last)  # the first character may be a bullet in another font
    return whole, left, right, _baseline(page, first), _baseline(page, last), size


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
