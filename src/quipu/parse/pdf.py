"""PDF: paragraphs under the headings of the document's outline; PDFium reads the file in a sandboxed process."""

import base64
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import dropwhile, groupby, takewhile
from statistics import mean
from typing import Any

from quipu.errors import InvalidDocument
from quipu.model.document import (
    PDF_TYPE,
    UNREAD_PAGES,
    UNREAD_REASON,
    UNSURE_PAGES,
    MetadataValue,
    PagePicture,
    ParsedDocument,
    QuotePlace,
    SourceDocument,
)
from quipu.parse.builder import MAX_HEADING, DocumentBuilder
from quipu.parse.decode import damaged_document, display_name, normalise
from quipu.parse.limits import MAX_CHARACTERS, MAX_PDF_BYTES, MAX_PDF_LINES, MAX_PDF_PAGES, MAX_PDF_SECONDS
from quipu.parse.markdown import parse_markdown
from quipu.parse.pdf_layout import (
    PdfBookmark,
    PdfLine,
    PdfParagraph,
    PdfPictureText,
    PdfTableText,
    body_size,
    paragraphs,
)
from quipu.parse.pdf_reading_order import line_box, quoted_words
from quipu.parse.pdf_tables import PdfWord
from quipu.parse.pictures import (
    PICTURE,
    PICTURE_MARK,
    are_pictures_read,
    leave_out_pictures,
    page_reading,
    picture_text,
    with_picture,
)
from quipu.parse.recognition import RecognisedPage, Recognition, page_ranges, recognise
from quipu.parse.sandbox import SandboxFailure, run_sandboxed
from quipu.ports.ingest import ON_PAGES, OnPages

_READER = "pdf_process.py"
_KEY_BY_PROPERTY = {"Author": "author", "Subject": "subject", "Keywords": "keywords"}
_DATE_BY_PROPERTY = {"CreationDate": "created", "ModDate": "modified"}
_DATE = re.compile(r"D:(\d{4})(\d\d)?(\d\d)?(?:(\d\d)(\d\d)(\d\d)?)?")
_NO_TITLE = re.compile(
    r"microsoft (?:word|powerpoint|excel) - .*|untitled.*|\(?(?:anonymous|unspecified|unnamed|no title|none)\)?"
    r"|.*\.(?:docx?|pptx?|xlsx?|tex|dvi|indd|qxd|pages|odt)",
    re.IGNORECASE,
)
_RawLine = tuple[str, float, float, float, float, float]
_RawPicture = tuple[str, int]
_RawTable = tuple[Sequence[Sequence[str]], int, Sequence[tuple[float, float]], float, float, int]
_MAX_QUOTE = 4_000  # characters that are looked for on a page
_MAX_VALUE = 1_000  # characters of one metadata value
_MAX_TITLE = 200
_KINDS = {"picture": "paragraph"}  # of blocks, where they are not those of paragraphs
_TEXT = re.compile(r"\S+")
_WORD = re.compile(r"\w+")
_MIN_WORDS = 25  # different words of a page's own text, with which the text of a model is compared
_MIN_COMMON = 0.7  # of these words that the model must have
_TITLE_SIZE = 1.2  # times the body size: a larger line at the top of the first page is the title
_LIGATURES = dict(zip("ﬀﬁﬂﬃﬄﬅﬆ", ("ff", "fi", "fl", "ffi", "ffl", "st", "st"), strict=True))
_LIGATURE = re.compile(f"[{''.join(_LIGATURES)}]")
_REFUSALS = {
    "password": ("is protected by a password", "Save a copy without the password, or leave it out."),
    "lines": (f"has more than {MAX_PDF_LINES:,} lines", "Split it."),
    "time": (f"takes more than {MAX_PDF_SECONDS} seconds to read", "Save it again with a PDF printer, or split it."),
    "memory": ("takes more memory than a PDF may", "Save it again with a PDF printer, or split it."),
    "pages": (f"has more than {MAX_PDF_PAGES:,} pages", "Split it."),
    "characters": (f"holds more than {MAX_CHARACTERS:,} characters of text", "Split it."),
}


class PdfParser:
    """Reads the text of PDF pages. Scanned pages are recognised; a file without any text is refused."""

    media_types = frozenset({PDF_TYPE})

    def parse(self, source: SourceDocument) -> ParsedDocument:
        """Return the paragraphs with their pages under the headings of the outline, and the title, author and dates.

        The metadata `ocr` of `source` names the languages of scanned pages, or is "off". Raises InvalidDocument if the
        file is damaged, protected by a password, a scan that cannot be recognised, or too expensive to read.
        """
        content = _read(source)
        written = _pages_by_model(content)
        scans = [index for index in content.scans if index not in written]
        languages = str(source.metadata.get("ocr") or "")
        recognition = Recognition(pages={})
        if scans:
            recognition = recognise(source.content, scans, languages, display_name(source))
        readable = {index: page for index, page in recognition.pages.items() if page.is_readable}
        recognised = {index: _lines(page.lines, page.tables) for index, page in readable.items()}
        pages = [written.get(index) or recognised.get(index) or page for index, page in enumerate(content.pages)]
        if not any(pages):
            raise _without_text(display_name(source), len(pages), content.scans, recognition)
        builder = DocumentBuilder(display_name(source))
        for (kind, _), group in groupby(
            paragraphs(pages, content.outline), key=lambda paragraph: (paragraph.kind, paragraph.page)
        ):
            _add(builder, kind, list(group))
        metadata = _metadata(content.properties) | _recognition_metadata(recognition, readable, scans)
        if written:
            metadata["pages_by_model"] = page_ranges([index + 1 for index in sorted(written)])
        return builder.build(_title(content.properties, pages), metadata)


PARSER = PdfParser()


def show_page(source: SourceDocument, page: int, quote: str = "") -> PagePicture:
    """Return page `page` (from 1) of a PDF as a picture in which `quote` is marked; a scanned page is recognised.

    Raises InvalidDocument if there is no such page, and as `PdfParser.parse` does.
    """
    fields = _page_fields(source, page, quote[:_MAX_QUOTE], [])
    if fields["is_scan"]:
        languages = str(source.metadata.get("ocr") or "")
        recognised = recognise(source.content, [page - 1], languages, display_name(source)).pages.get(page - 1)
        words = _recognised_words(recognised) if recognised and not recognised.turn else []
        width, height = fields["width"], fields["height"]
        boxes = [
            (left / width, 1 - top / height, right / width, 1 - bottom / height)
            for left, bottom, right, top in map(line_box, quoted_words(words, quote[:_MAX_QUOTE]))
        ]
        fields = _page_fields(source, page, "", boxes)
    place = QuotePlace(
        page=page,
        n_pages=fields["n_pages"],
        width=round(fields["width"], 2),
        height=round(fields["height"], 2),
        boxes=tuple((round(a, 4), round(b, 4), round(c, 4), round(d, 4)) for a, b, c, d in fields["boxes"]),
    )
    return PagePicture(place=place, png=base64.b64decode(fields["png"]))


def _page_fields(
    source: SourceDocument, page: int, quote: str, boxes: Sequence[tuple[float, float, float, float]]
) -> Mapping[str, Any]:
    fields = _run(source, ("page", json.dumps([page - 1, quote, boxes, PICTURE in quote])))
    if fields.get("error") == "page":
        raise InvalidDocument(
            f"{display_name(source)} has no page {page}.", remedy=f"It has pages 1 to {fields['n_pages']}."
        )
    return fields


def _recognised_words(page: RecognisedPage) -> list[PdfWord]:
    """Return the words of recognised lines, each with a part of the line that follows its length."""
    words: list[PdfWord] = []
    for text, left, right, baseline, _, size in page.lines:
        for word in _TEXT.finditer(text):
            start, end = (left + (right - left) * place / len(text) for place in word.span())
            words.append(PdfWord(word[0], start, end, baseline, size, len(words)))
    return words


@dataclass(frozen=True, slots=True, kw_only=True)
class _PdfContent:
    """The content of a file as the sandboxed process returns it; `whole` are pictures of pages by their index."""

    pages: Sequence[Sequence[PdfLine]]
    whole: Mapping[int, bytes]
    scans: Sequence[int]
    outline: Sequence[PdfBookmark]
    properties: Mapping[str, str]


def _read(source: SourceDocument) -> _PdfContent:
    """Return the content that PDFium finds in `source`. Raises InvalidDocument if the process refuses it or fails."""
    pictures = page_reading() if are_pictures_read() else "no"
    fields = _run(source, (MAX_PDF_PAGES, MAX_PDF_LINES, MAX_CHARACTERS, pictures), ON_PAGES.get())
    leave_out_pictures(fields["n_left_out"])
    return _PdfContent(
        pages=[
            _lines(lines, fields["tables"][index], fields["pictures"].get(str(index), ()))
            for index, lines in enumerate(fields["pages"])
        ],
        whole={int(index): base64.b64decode(picture) for index, picture in fields["whole"].items()},
        scans=fields["scans"],
        outline=[
            PdfBookmark(level=level, title=_expand_ligatures(title), page=page + 1, height=height)
            for level, title, page, height in fields["outline"]
        ],
        properties=fields["properties"],
    )


def _run(source: SourceDocument, arguments: Sequence[int | str], on_pages: OnPages | None = None) -> Mapping[str, Any]:
    """Return what the sandboxed process writes. Raises InvalidDocument if it refuses the file or fails."""
    name = display_name(source)
    try:
        output = run_sandboxed(
            _READER,
            arguments,
            source.content,
            max_bytes=MAX_PDF_BYTES + 2 * len(source.content),
            max_seconds=MAX_PDF_SECONDS,
            on_pages=on_pages,
        )
    except SandboxFailure as failure:
        if failure.reason == "crash":
            raise damaged_document(name, f"the PDF library failed to read it (code {failure.code})") from failure
        what, remedy = _REFUSALS[failure.reason]
        raise InvalidDocument(f"{name} {what}.", remedy=remedy) from failure
    fields: Mapping[str, Any] = json.loads(output)
    if (reason := fields.get("error")) and reason != "page":
        what, remedy = _REFUSALS.get(reason, ("", ""))
        raise (
            InvalidDocument(f"{name} {what}.", remedy=remedy)
            if what
            else damaged_document(name, fields.get("detail", reason))
        )
    return fields


def _pages_by_model(content: _PdfContent) -> dict[int, list[PdfLine]]:
    """Return the pages that a model reads, by index, without those whose own text says something else."""
    pages = {}
    for index, picture in content.whole.items():
        text = with_picture("", picture, is_page=True)
        own = {word for line in content.pages[index] for word in _WORD.findall(line.text.lower())}
        n_common = len(own.intersection(_WORD.findall(text.lower())))
        is_checked = index not in content.scans and not text.startswith(PICTURE_MARK) and len(own) >= _MIN_WORDS
        if text and not (is_checked and n_common < _MIN_COMMON * len(own)):
            pages[index] = [PdfLine("", 0, 0, 0, 0, 0, picture=PdfPictureText(text, is_page=True))]
    return pages


def _without_text(name: str, n_pages: int, scans: Sequence[int], recognition: Recognition) -> InvalidDocument:
    """Return the error for a file without text, with what can be done about it."""
    pages = f"{n_pages} {'page' if n_pages == 1 else 'pages'}"
    if not scans:
        return InvalidDocument(
            f"{name} has {pages} but no text and no scan.",
            remedy="Leave it out. If it shows text, its letters are drawings: run ocrmypdf in.pdf out.pdf",
        )
    reason = f": {recognition.reason}" if recognition.reason else ""
    return InvalidDocument(f"{name} has {pages} but no text: it is a scan{reason}.", remedy=recognition.remedy)


def _lines(
    lines: Sequence[_RawLine], tables: Sequence[_RawTable], pictures: Sequence[_RawPicture] = ()
) -> list[PdfLine]:
    """Return the lines of a page, with each table and each picture that something is said of as a line at its place."""
    page = [PdfLine(_expand_ligatures(line[0]), *line[1:]) for line in lines]
    blocks: list[tuple[int, PdfLine]] = []
    for rows, n_header_rows, columns, top, bottom, n_before in tables:
        texts = [[_expand_ligatures(cell) for cell in row] for row in rows]
        table = PdfTableText(rows=texts, n_header_rows=n_header_rows, columns=columns)
        blocks.append((n_before, PdfLine("", columns[0][0], columns[-1][1], top, bottom, 0, table)))
    for encoded, n_before in pictures:
        if text := picture_text(with_picture("", base64.b64decode(encoded))):
            blocks.append((n_before, PdfLine("", 0, 0, 0, 0, 0, picture=PdfPictureText(text))))
    for n_before, block in sorted(blocks, key=lambda block: block[0], reverse=True):
        page.insert(n_before, block)
    return page


def _add(builder: DocumentBuilder, kind: str, group: Sequence[PdfParagraph]) -> None:
    """Add paragraphs of one kind and page; a list is one block."""
    page = group[0].page
    if kind == "list":
        builder.add("\n".join(paragraph.text for paragraph in group), "list", page=page)
        return
    for paragraph in group:
        if kind == "page":
            builder.append(parse_markdown(paragraph.text, builder.name), page=page)
        elif kind == "heading":
            builder.add_heading(paragraph.text, paragraph.level, page=page)
        elif kind == "mark":
            builder.path.enter(paragraph.level, " ".join(normalise(paragraph.text).split())[:MAX_HEADING])
        else:
            builder.add(paragraph.text, _KINDS.get(kind, kind), page=page, header=paragraph.header)


def _title(properties: Mapping[str, str], pages: Sequence[Sequence[PdfLine]]) -> str:
    """Return the title of the properties unless it is a default of a program, otherwise the largest first line."""
    title = " ".join(properties.get("Title", "").split())
    if title and not _NO_TITLE.fullmatch(title):
        return title
    first = pages[0]
    largest = max((line.size for line in first), default=0)
    if largest < _TITLE_SIZE * body_size(pages):
        return ""
    lines = list(takewhile(lambda line: line.size > 0.95 * largest, dropwhile(lambda line: line.size < largest, first)))
    title = " ".join(line.text for line in lines)
    return title if len(title) <= _MAX_TITLE else ""


def _metadata(properties: Mapping[str, str]) -> dict[str, MetadataValue]:
    """Return author, subject, keywords, and the times of creation and last change (ISO 8601)."""
    texts: dict[str, MetadataValue] = {
        key: " ".join(normalise(properties[name]).split())[:_MAX_VALUE]
        for name, key in _KEY_BY_PROPERTY.items()
        if properties.get(name, "").strip()
    }
    dates = ((key, _DATE.match(properties.get(name, ""))) for name, key in _DATE_BY_PROPERTY.items())
    return texts | {key: _iso(date) for key, date in dates if date}


def _recognition_metadata(
    recognition: Recognition, readable: Mapping[int, RecognisedPage], scans: Sequence[int]
) -> dict[str, MetadataValue]:
    """Return which pages were recognised, by what and how surely (mean percent), and which scanned pages were not.

    With them goes the reason, and which of the recognised pages may be misread.
    """
    unread = [index + 1 for index in scans if index not in readable]
    metadata: dict[str, MetadataValue] = {}
    if unread:
        reason = f"{recognition.reason[:1].upper()}{recognition.reason[1:]}. {recognition.remedy.rstrip('.')}."
        metadata = {UNREAD_PAGES: page_ranges(unread), UNREAD_REASON: reason}
    if unsure := [index + 1 for index, page in sorted(readable.items()) if not page.is_sure]:
        metadata[UNSURE_PAGES] = page_ranges(unsure)
    if readable:
        languages = ", ".join(sorted({page.languages for page in readable.values()}))
        metadata |= {
            "recognised_pages": page_ranges([index + 1 for index in sorted(readable)]),
            "recognised_with": f"{recognition.version} ({languages})",
            "recognition_confidence": round(mean(page.confidence for page in readable.values())),
        }
    return metadata


def _iso(match: re.Match[str]) -> str:
    year, month, day, hour, minute, second = match.groups()
    date = "-".join(part for part in (year, month, day) if part)
    return f"{date}T{hour}:{minute}:{second or '00'}" if hour and day else date


def _expand_ligatures(text: str) -> str:
    """Return `text` with ligatures as separate letters."""
    return _LIGATURE.sub(lambda ligature: _LIGATURES[ligature[0]], text)
