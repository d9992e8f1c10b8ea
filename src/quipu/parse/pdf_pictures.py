"""PDF pictures: finds the pictures of a page and renders them, or the whole page, as PNG; in the sandboxed process."""

import base64
import ctypes
import re
import struct
import zlib
from collections.abc import Sequence

import pypdfium2
import pypdfium2.raw as pdfium

from quipu.parse.pdf_tables import PAPER

RawPicture = tuple[str, int]  # PNG in base64, number of lines before it
_Line = tuple[str, float, float, float, float, float]
_Box = tuple[float, float, float, float]  # left, bottom, right, top
_MIN_PICTURE_SIDE = 40.0  # points: a smaller picture is a symbol
_MAX_PICTURES = 20  # of a page
_APART = 3.0  # points between two parts of one picture
_PICTURE_SCALE = 2.0  # pixels per point: 144 dpi
_MAX_SIDE = 1_568  # pixels: models shrink larger pictures
_MAX_PICTURE_BYTES = 128_000_000  # of all pictures of a file
_MAX_OBJECTS = 1_000  # of a page that are looked at
_SHARES = 10_000  # parts of the width and height of a page
_YELLOW = 0.35  # of the blue of what is marked
_MIN_LETTERS = 25  # of a page with text of its own
_MIN_SCAN = 0.3  # of the area of a page: a smaller picture is no scan of it
_NONSENSE = re.compile("[\ufffd\ue000-\uf8ff\x01\x03-\x08\x0e-\x1f]")  # no characters, or those of one font only
_MAX_NONSENSE = 0.2  # of the characters of a page
_MAX_PARTS = 5_000  # of a page that are looked at for a scan


class PictureRenderer:
    """Renders the pictures of pages, and whole pages, as PNG; `by_page` and `whole` have them by the page from 0.

    `n_left_out` are too many for a page, or too large together.
    """

    def __init__(self, pages: str) -> None:
        self.by_page: dict[int, list[RawPicture]] = {}
        self.whole: dict[int, str] = {}
        self.n_left_out = 0
        self._pages = pages
        self._n_bytes = 0

    def add(self, page: pypdfium2.PdfPage, index: int, lines: Sequence[_Line], *, is_scan: bool) -> None:
        """Render what is wanted of a page: the whole page, or its pictures."""
        width, height = page.get_size()
        if self._pages == "all" or (self._pages == "scans" and is_scan):
            if whole := self._png(page, (0.0, 0.0, width, height), _MAX_SIDE / max(width, height, 1.0)):
                self.whole[index] = whole
        elif not is_scan:
            boxes = picture_boxes(page)
            self.n_left_out += max(0, len(boxes) - _MAX_PICTURES)
            pictures = [(self._png(page, box), n_lines_above(lines, box)) for box in boxes[:_MAX_PICTURES]]
            self.by_page[index] = [picture for picture in pictures if picture[0]]

    def _png(self, page: pypdfium2.PdfPage, box: _Box, scale: float = _PICTURE_SCALE) -> str:
        """Return a part of a page in base64; "" above the limit of all pictures of the file."""
        width, height = page.get_size()
        left, bottom, right, top = box
        scale = min(scale, _MAX_SIDE / max(right - left, top - bottom))
        if self._n_bytes > _MAX_PICTURE_BYTES:
            self.n_left_out += 1
            return ""
        bitmap = page.render(scale=scale, crop=(left, bottom, width - right, height - top), rev_byteorder=True)
        picture = png(bitmap)
        self._n_bytes += len(picture)
        return base64.b64encode(picture).decode("ascii")


def is_scan(page: pypdfium2.PdfPage, text: str) -> bool:
    """Return whether a page shows text that it does not hold: hardly a letter beside a large picture, or nonsense."""
    n_visible = len("".join(text.split()))
    if len(_NONSENSE.findall(text)) > _MAX_NONSENSE * n_visible:
        return True
    if n_visible >= _MIN_LETTERS:
        return False
    width, height = page.get_size()
    area = 0.0
    for index in range(min(_MAX_PARTS, pdfium.FPDFPage_CountObjects(page))):
        picture = pdfium.FPDFPage_GetObject(page, index)
        edges = [ctypes.c_float() for _ in range(4)]
        is_picture = pdfium.FPDFPageObj_GetType(picture) in (pdfium.FPDF_PAGEOBJ_IMAGE, pdfium.FPDF_PAGEOBJ_FORM)
        if is_picture and pdfium.FPDFPageObj_GetBounds(picture, *edges):
            left, bottom, right, top = (edge.value for edge in edges)
            area += max(0.0, right - left) * max(0.0, top - bottom)
    return bool(area > _MIN_SCAN * width * height)


def png(bitmap: pypdfium2.PdfBitmap) -> bytes:
    """Return a rendered picture (RGB, or grey) as PNG (ISO/IEC 15948), whose rows are each preceded by their filter."""
    pixels = bitmap.to_numpy()
    n_channels = 1 if pixels.ndim == 2 else pixels.shape[2]
    rows = pixels.reshape(pixels.shape[0], -1)[:, : pixels.shape[1] * n_channels]
    if n_channels == 4:
        rows, n_channels = pixels[:, :, :3].reshape(pixels.shape[0], -1), 3
    packed = zlib.compress(b"".join(b"\0" + row.tobytes() for row in rows), 6)
    header = struct.pack(">IIBBBBB", pixels.shape[1], pixels.shape[0], 8, 2 if n_channels > 1 else 0, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", packed), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))
        for name, content in chunks
    )


def marked_page(page: pypdfium2.PdfPage, boxes: Sequence[_Box]) -> bytes:
    """Return a page as PNG in which boxes (shares of its width and height, from the upper left) are yellow."""
    bitmap = page.render(scale=_MAX_SIDE / max(1.0, *page.get_size()), rev_byteorder=True)
    pixels = bitmap.to_numpy()
    height, width = pixels.shape[:2]
    for left, top, right, bottom in boxes:
        part = pixels[round(top * height) : round(bottom * height), round(left * width) : round(right * width), 2]
        part[:] = part * _YELLOW
    return png(bitmap)


def shares(page: pypdfium2.PdfPage, box: tuple[float, float, float, float]) -> tuple[float, float, float, float]:
    """Return a box of a page, which may be turned or cropped, in shares of what it shows, from the upper left."""
    corners = [_on_paper(page, box[0], box[1]), _on_paper(page, box[2], box[3])]
    (left, right), (top, bottom) = sorted(x for x, _ in corners), sorted(y for _, y in corners)
    return left, top, right, bottom


def _on_paper(page: pypdfium2.PdfPage, x: float, y: float) -> tuple[float, float]:
    right, down = ctypes.c_int(), ctypes.c_int()
    pdfium.FPDF_PageToDevice(page, 0, 0, _SHARES, _SHARES, 0, x, y, right, down)
    return tuple(min(max(part.value / _SHARES, 0.0), 1.0) for part in (right, down))  # type: ignore[return-value]


def picture_boxes(page: pypdfium2.PdfPage) -> list[_Box]:
    """Return where the pictures of a page are, those that touch as one, from top to bottom. Symbols are left out."""
    width, height = page.get_size()
    boxes: list[_Box] = []
    for index in range(min(_MAX_OBJECTS, pdfium.FPDFPage_CountObjects(page))):
        picture = pdfium.FPDFPage_GetObject(page, index)
        edges = [ctypes.c_float() for _ in range(4)]
        if pdfium.FPDFPageObj_GetType(picture) == pdfium.FPDF_PAGEOBJ_IMAGE and pdfium.FPDFPageObj_GetBounds(
            picture, *edges
        ):
            left, bottom, right, top = (edge.value for edge in edges)
            box = (max(0.0, left), max(0.0, bottom), min(width, right), min(height, top))
            if box[0] < box[2] and box[1] < box[3] and (right - left < PAPER * width or top - bottom < PAPER * height):
                boxes.append(box)
    while len(merged := _merge_touching(boxes)) < len(boxes):
        boxes = merged
    large = [box for box in boxes if min(box[2] - box[0], box[3] - box[1]) >= _MIN_PICTURE_SIDE]
    return sorted(large, key=lambda box: (-box[3], box[0]))


def _merge_touching(boxes: Sequence[_Box]) -> list[_Box]:
    """Return the boxes, each merged with those before it that it touches."""
    merged: list[_Box] = []
    for box in boxes:
        touching = [other for other in merged if _touches(other, box)]
        merged = [other for other in merged if other not in touching]
        lefts, bottoms, rights, tops = zip(box, *touching, strict=True)
        merged.append((min(lefts), min(bottoms), max(rights), max(tops)))
    return merged


def _touches(box: _Box, other: _Box) -> bool:
    left, bottom, right, top = other
    is_beside = box[2] < left - _APART or right < box[0] - _APART
    return not is_beside and box[1] <= top + _APART and bottom <= box[3] + _APART


def n_lines_above(lines: Sequence[_Line], box: _Box) -> int:
    """Return how many lines come before a picture: up to the last one above it in its column."""
    left, _, right, top = box
    above = (
        index
        for index, (_, line_left, line_right, baseline, *_) in enumerate(lines)
        if baseline >= top - _APART and line_left < right and line_right > left
    )
    return max(above, default=-1) + 1
