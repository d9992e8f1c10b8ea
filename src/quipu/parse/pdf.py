"""PDF: pages as paragraphs under the document's outline, read by PDFium in a process of its own."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import dropwhile, groupby, takewhile

from quipu.errors import InvalidDocument
from quipu.model.document import MetadataValue, ParsedDocument, SourceDocument
from quipu.parse.apart import Stopped, read_apart
from quipu.parse.damage import damaged
from quipu.parse.decode import name_of, normalise
from quipu.parse.draft import Draft
from quipu.parse.headings import MAX_HEADING
from quipu.parse.limits import MAX_CHARACTERS, MAX_PDF_BYTES, MAX_PDF_LINES, MAX_PDF_PAGES, MAX_PDF_SECONDS
from quipu.parse.pdf_layout import Bookmark, Line, Paragraph, body_size, paragraphs

_READER = "pdf_process.py"
_KEY_BY_PROPERTY = {"Author": "author", "Subject": "subject", "Keywords": "keywords"}
_DATE_BY_PROPERTY = {"CreationDate": "created", "ModDate": "modified"}
_DATE = re.compile(r"D:(\d{4})(\d\d)?(\d\d)?(?:(\d\d)(\d\d)(\d\d)?)?")
_NO_TITLE = re.compile(
    r"(?:microsoft (?:word|powerpoint|excel) - .*|untitled.*|.*\.(?:docx?|pptx?|xlsx?|tex|dvi|indd|qxd|pages|odt))",
    re.IGNORECASE,
)
_RawLine = tuple[str, float, float, float, float, float]
_MAX_VALUE = 1_000  # characters of one metadata value
_MAX_TITLE = 200
_TITLE_SIZE = 1.2  # times the text's: so much larger a line at the top of the first page is its title
_LIGATURES = dict(zip("ﬀﬁﬂﬃﬄﬅﬆ", ("ff", "fi", "fl", "ffi", "ffl", "st", "st"), strict=True))
_LIGATURE = re.compile(f"[{''.join(_LIGATURES)}]")
_REFUSALS = {
    "password": ("is protected by a password", "Save a copy without the password, or leave it out."),
    "lines": (f"has more than {MAX_PDF_LINES:,} lines", "Split it."),
    "time": (f"takes more than {MAX_PDF_SECONDS} seconds to read", "Save it anew with a PDF printer, or split it."),
    "memory": ("takes more memory than a PDF may", "Save it anew with a PDF printer, or split it."),
    "pages": (f"has more than {MAX_PDF_PAGES:,} pages", "Split it."),
    "characters": (f"holds more than {MAX_CHARACTERS:,} characters of text", "Split it."),
}


class PdfParser:
    """Reads the text of PDF pages; a page that is a picture has none, and a file of such pages is refused."""

    media_types = frozenset({"application/pdf"})

    def parse(self, source: SourceDocument) -> ParsedDocument:
        """Return the paragraphs with their pages, under the outline's headings, and the title, author and dates.

        Raises InvalidDocument where the file is damaged, protected by a password, scanned, or takes too much to read.
        """
        found = _read(source)
        pages = [[Line(_spelled(line[0]), *line[1:]) for line in page] for page in found.pages]
        if not any(pages):
            n_pages = len(pages)
            raise InvalidDocument(
                f"{name_of(source)} has {n_pages} {'page' if n_pages == 1 else 'pages'} but no text: it is a scan.",
                remedy="Recognise its text first, as in: ocrmypdf in.pdf out.pdf",
            )
        draft = Draft(name_of(source))
        for kind, group in groupby(paragraphs(pages, found.outline), key=lambda each: (each.kind, each.page)):
            _add(draft, kind[0], list(group))
        return draft.document(_title(found.properties, pages), _metadata(found.properties))


PARSER = PdfParser()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """What the process found in a file."""

    pages: Sequence[Sequence[_RawLine]]
    outline: Sequence[Bookmark]
    properties: Mapping[str, str]


def _read(source: SourceDocument) -> _Found:
    """Return what PDFium finds in `source`. Raises InvalidDocument with what it says against it."""
    name = name_of(source)
    try:
        answer = read_apart(
            _READER,
            (MAX_PDF_PAGES, MAX_PDF_LINES, MAX_CHARACTERS),
            source.content,
            max_bytes=MAX_PDF_BYTES + 2 * len(source.content),
            max_seconds=MAX_PDF_SECONDS,
        )
    except Stopped as stopped:
        if stopped.reason == "crash":
            raise damaged(name, f"reading it made the PDF library fail (code {stopped.code})") from stopped
        what, remedy = _REFUSALS[stopped.reason]
        raise InvalidDocument(f"{name} {what}.", remedy=remedy) from stopped
    said = json.loads(answer)
    if reason := said.get("error"):
        what, remedy = _REFUSALS.get(reason, ("", ""))
        raise InvalidDocument(f"{name} {what}.", remedy=remedy) if what else damaged(name, said.get("detail", reason))
    return _Found(
        pages=said["pages"],
        outline=[
            Bookmark(level=level, title=_spelled(title), page=page + 1, height=height)
            for level, title, page, height in said["outline"]
        ],
        properties=said["properties"],
    )


def _add(draft: Draft, kind: str, group: Sequence[Paragraph]) -> None:
    """Add paragraphs of one kind and page; the items of a list are one block."""
    page = group[0].page
    if kind == "list":
        draft.add("\n".join(each.text for each in group), "list", page=page)
        return
    for each in group:
        if kind == "heading":
            draft.add_heading(each.text, each.level, page=page)
        elif kind == "mark":
            draft.path.enter(each.level, " ".join(normalise(each.text).split())[:MAX_HEADING])
        else:
            draft.add(each.text, page=page)


def _title(properties: Mapping[str, str], pages: Sequence[Sequence[Line]]) -> str:
    """Return the title in the properties unless a program made it up, else what stands largest on the first page."""
    given = " ".join(properties.get("Title", "").split())
    if given and not _NO_TITLE.fullmatch(given):
        return given
    first = pages[0]
    largest = max((line.size for line in first), default=0)
    if largest < _TITLE_SIZE * body_size(pages):
        return ""
    lines = list(takewhile(lambda line: line.size > 0.95 * largest, dropwhile(lambda line: line.size < largest, first)))
    title = " ".join(line.text for line in lines)
    return title if len(title) <= _MAX_TITLE else ""


def _metadata(properties: Mapping[str, str]) -> dict[str, MetadataValue]:
    """Return author, subject and keywords, and when the file was made and changed (ISO 8601)."""
    said: dict[str, MetadataValue] = {
        key: " ".join(normalise(properties[name]).split())[:_MAX_VALUE]
        for name, key in _KEY_BY_PROPERTY.items()
        if properties.get(name, "").strip()
    }
    dates = ((key, _DATE.match(properties.get(name, ""))) for name, key in _DATE_BY_PROPERTY.items())
    return said | {key: _iso(found) for key, found in dates if found}


def _iso(found: re.Match[str]) -> str:
    year, month, day, hour, minute, second = found.groups()
    date = "-".join(part for part in (year, month, day) if part)
    return f"{date}T{hour}:{minute}:{second or '00'}" if hour and day else date


def _spelled(text: str) -> str:
    """Return `text` with ligatures as letters."""
    return _LIGATURE.sub(lambda found: _LIGATURES[found[0]], text)
