"""Files for tests, made byte by byte: PDFs with lines where they are wanted, archives, and reading them."""

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

from quipu.model.document import Block, ParsedDocument, SourceDocument
from quipu.parse import MEDIA_TYPE_BY_SUFFIX, parse

WIDTH, HEIGHT = 595, 842


def read(name: str, data: bytes) -> ParsedDocument:
    """Return `data` parsed as a file called `name`."""
    media_type = MEDIA_TYPE_BY_SUFFIX.get(Path(name).suffix)
    assert media_type
    return parse(SourceDocument(id=name, source=name, content=data, media_type=media_type))


def texts(parsed: ParsedDocument) -> list[str]:
    """Return the text of each block."""
    return [text_of(parsed, block) for block in parsed.blocks]


def text_of(parsed: ParsedDocument, block: Block) -> str:
    return parsed.text[block.start : block.end]


def zipped(parts: Mapping[str, str | bytes], compression: int = ZIP_DEFLATED) -> bytes:
    """Return an archive of `parts` by name."""
    stream = BytesIO()
    with ZipFile(stream, "w", compression) as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    return stream.getvalue()


@dataclass(frozen=True)
class At:
    """A line of a page of a PDF: where it begins, in points from the lower left, and its size."""

    x: float
    y: float
    text: str
    size: float = 11


@dataclass(frozen=True)
class Drawn:
    """A straight line that a page of a PDF draws, in points from the lower left."""

    x: float
    y: float
    end_x: float
    end_y: float


PageItem = At | Drawn


def pdf(
    pages: Sequence[Sequence[PageItem] | bytes],
    *,
    outline: Sequence[tuple[str, int]] = (),
    info: Mapping[str, str] | None = None,
    trailer: str = "",
) -> bytes:
    """Return a PDF of `pages`: lines in Helvetica, drawn lines, or content streams. Outline entries are title and page.

    Only what Helvetica's standard encoding and a two-byte font for anything else can show.
    """
    made = _Objects()
    font = made.add("<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>")
    tree = made.reserve()
    kids = []
    for page in pages:
        content = page if isinstance(page, bytes) else "\n".join(map(_shown, page)).encode("cp1252")
        stream = made.add_stream(content)
        kids.append(
            made.add(
                f"<</Type/Page/Parent {tree} 0 R/MediaBox[0 0 {WIDTH} {HEIGHT}]/Contents {stream} 0 R"
                f"/Resources<</Font<</F1 {font} 0 R>>>>>>"
            )
        )
    made.fill(tree, f"<</Type/Pages/Count {len(kids)}/Kids[{' '.join(f'{kid} 0 R' for kid in kids)}]>>")
    entries = [made.reserve() for _ in outline]
    root = made.reserve()
    for index, (title, page_number) in enumerate(outline):
        beside = f"/Next {entries[index + 1]} 0 R" if index + 1 < len(entries) else ""
        made.fill(
            entries[index],
            f"<</Title{_string(title)}/Parent {root} 0 R{beside}/Dest[{kids[page_number - 1]} 0 R/Fit]>>",
        )
    ends = f"/First {entries[0]} 0 R/Last {entries[-1]} 0 R" if entries else ""
    made.fill(root, f"<</Type/Outlines{ends}/Count {len(entries)}>>")
    catalog = made.add(f"<</Type/Catalog/Pages {tree} 0 R/Outlines {root} 0 R>>")
    described = made.add(f"<<{''.join(f'/{key}{_string(value)}' for key, value in (info or {}).items())}>>")
    return made.file(f"/Root {catalog} 0 R/Info {described} 0 R{trailer}")


def prose(*lines: str, top: float = 700, left: float = 72, leading: float = 14) -> list[At]:
    """Return lines of a paragraph one below the other."""
    return [At(left, top - leading * index, line) for index, line in enumerate(lines)]


class _Objects:
    def __init__(self) -> None:
        self._bodies: list[bytes] = []

    def add(self, body: str) -> int:
        self._bodies.append(body.encode("latin-1"))
        return len(self._bodies)

    def add_stream(self, content: bytes) -> int:
        packed = zlib.compress(content)
        head = f"<</Length {len(packed)}/Filter/FlateDecode>>stream\n".encode()
        self._bodies.append(head + packed + b"\nendstream")
        return len(self._bodies)

    def reserve(self) -> int:
        return self.add("")

    def fill(self, number: int, body: str) -> None:
        self._bodies[number - 1] = body.encode("latin-1")

    def file(self, trailer: str) -> bytes:
        out = b"%PDF-1.7\n"
        places = []
        for number, body in enumerate(self._bodies, 1):
            places.append(len(out))
            out += b"%d 0 obj\n" % number + body + b"\nendobj\n"
        table = b"".join(b"%010d 00000 n \n" % place for place in places)
        head = b"xref\n0 %d\n0000000000 65535 f \n" % (len(places) + 1)
        end = f"trailer<</Size {len(places) + 1}{trailer}>>\nstartxref\n{len(out)}\n%%EOF\n".encode()
        return out + head + table + end


def cells(*rows: Sequence[str], lefts: Sequence[float], top: float = 700, leading: float = 16) -> list[At]:
    """Return the rows of a table: each cell begins at the left edge of its column; an empty cell is not drawn."""
    return [
        At(left, top - leading * index, text)
        for index, row in enumerate(rows)
        for left, text in zip(lefts, row, strict=True)
        if text
    ]


def frame(xs: Sequence[float], ys: Sequence[float]) -> list[Drawn]:
    """Return the lines of a grid."""
    down = [Drawn(x, min(ys), x, max(ys)) for x in xs]
    return down + [Drawn(min(xs), y, max(xs), y) for y in ys]


def _shown(line: At | Drawn) -> str:
    if isinstance(line, Drawn):
        return f"{line.x} {line.y} m {line.end_x} {line.end_y} l S"
    escaped = line.text.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)")
    return f"BT /F1 {line.size} Tf 1 0 0 1 {line.x} {line.y} Tm ({escaped}) Tj ET"


def _string(text: str) -> str:
    return f"<feff{text.encode('utf-16-be').hex()}>"
