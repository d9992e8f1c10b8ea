"""Formats: the supported file types by suffix and media type, and their signatures.

A parser is imported when it is first used. A signature is the type that the first bytes of a file show. It refuses
wrong suffixes and old Office formats.
"""

import re
from dataclasses import dataclass
from importlib import import_module
from io import BytesIO
from typing import cast
from zipfile import BadZipFile, ZipFile

from quipu.errors import InvalidDocument
from quipu.model.document import ParsedDocument, SourceDocument
from quipu.parse.decode import display_name, is_text
from quipu.parse.limits import MAX_ENTRIES
from quipu.ports.ingest import Parser

_OFFICE = "application/vnd.openxmlformats-officedocument."

_CODE_SUFFIXES = (
    ".py .pyi .js .mjs .cjs .jsx .ts .tsx .java .c .h .cc .cpp .cxx .hpp .cs .go .rs .rb .php .pl .pm .sh .bash .zsh "
    ".ps1 .swift .kt .kts .scala .lua .r .jl .sql .hs .ml .ex .exs .erl .clj .lisp .el .dart .groovy .proto .graphql "
    ".cmake .mk .f90 .pas .vb .nim .zig .awk"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """A format: its suffixes by media type, the module of this package with its parser, and what the parser extracts.

    `signature` is the file type that the bytes must have, or the empty string for text.
    `is_text` is True if the bytes are one text in one encoding.
    `is_read` is False for a format that is recognised only to be refused with advice.
    """

    name: str
    module: str
    types: tuple[tuple[str, tuple[str, ...]], ...]
    signature: str = ""
    is_text: bool = False
    keeps: str = ""
    is_read: bool = True

    @property
    def media_types(self) -> frozenset[str]:
        return frozenset(media_type for media_type, _ in self.types)

    def parse(self, source: SourceDocument) -> ParsedDocument:
        """Read `source` with the parser of the format; the parser is imported now, which keeps start-up fast."""
        return cast(Parser, import_module(f"quipu.parse.{self.module}").PARSER).parse(source)


FORMATS: tuple[Format, ...] = (
    Format(
        name="Plain text",
        module="text",
        is_text=True,
        types=(("text/plain", (".txt", ".text", ".log")),),
        keeps="headings that are underlined, numbered or in capitals, and paragraphs; files with markup as such",
    ),
    Format(
        name="Markdown",
        module="markdown",
        is_text=True,
        types=(("text/markdown", (".md", ".markdown", ".mdx")),),
        keeps="headings, lists, tables, code, alt texts of pictures, no comments of HTML; front matter as metadata",
    ),
    Format(
        name="reStructuredText",
        module="rst",
        is_text=True,
        types=(("text/x-rst", (".rst", ".rest")),),
        keeps="sections, described objects as headings, lists, tables, code; roles and links as their text",
    ),
    Format(
        name="AsciiDoc",
        module="asciidoc",
        is_text=True,
        types=(("text/asciidoc", (".adoc", ".asciidoc")), ("text/x-asciidoc", ())),
        keeps="sections, lists, terms with their text, tables, code, alt texts; macros and links as their text; author",
    ),
    Format(
        name="HTML",
        module="html",
        is_text=True,
        types=(("text/html", (".html", ".htm")), ("application/xhtml+xml", (".xhtml",))),
        keeps="headings, lists, tables, formulas as LaTeX, preformatted text, alt texts; no navigation, forms, footers",
    ),
    Format(
        name="PDF",
        module="pdf",
        types=(("application/pdf", (".pdf",)),),
        signature="a PDF document",
        keeps="pages, paragraphs, tables, outline as headings, title, author, dates; not running headers, page numbers",
    ),
    Format(
        name="Word",
        module="docx",
        types=(
            (f"{_OFFICE}wordprocessingml.document", (".docx",)),
            ("application/vnd.ms-word.document.macroenabled.12", (".docm",)),
        ),
        signature="a Word document",
        keeps="headings, lists, tables, formulas as LaTeX, alt texts, notes, boxes, properties; changes as accepted",
    ),
    Format(
        name="PowerPoint",
        module="pptx",
        types=(
            (f"{_OFFICE}presentationml.presentation", (".pptx",)),
            ("application/vnd.ms-powerpoint.presentation.macroenabled.12", (".pptm",)),
        ),
        signature="a PowerPoint presentation",
        keeps="slides as pages, titles as headings, lists, tables, diagrams, alt texts, speaker's notes, properties",
    ),
    Format(
        name="Excel",
        module="xlsx",
        types=(
            (f"{_OFFICE}spreadsheetml.sheet", (".xlsx",)),
            ("application/vnd.ms-excel.sheet.macroenabled.12", (".xlsm",)),
        ),
        signature="an Excel workbook",
        keeps="sheet names as headings, tables with their header row, values as last calculated; not hidden sheets",
    ),
    Format(
        name="CSV, TSV",
        module="csv",
        is_text=True,
        types=(("text/csv", (".csv",)), ("text/tab-separated-values", (".tsv", ".tab"))),
        keeps="rows, and the header row where the first one is",
    ),
    Format(
        name="JSON, JSON lines",
        module="json",
        is_text=True,
        types=(("application/json", (".json",)), ("application/x-ndjson", (".jsonl", ".ndjson"))),
        keeps="a block for each record: its title as heading, its values as `key: value`, its text",
    ),
    Format(
        name="Jupyter notebook",
        module="notebook",
        is_text=True,
        types=(("application/x-ipynb+json", (".ipynb",)),),
        keeps="cells in order: Markdown, code, the first lines of outputs; not pictures",
    ),
    Format(
        name="Source code",
        module="source_code",
        is_text=True,
        types=(
            ("text/x-source", tuple(_CODE_SUFFIXES.split())),
            ("application/yaml", (".yaml", ".yml")),
            ("application/toml", (".toml",)),
            ("text/x-ini", (".ini", ".cfg", ".conf", ".properties")),
        ),
        keeps="a block for each function, class, key or section, under its name",
    ),
    Format(
        name="Gzip",
        module="archive",
        types=(("application/gzip", (".gz",)),),
        signature="a gzip archive",
        keeps="the file inside, in any of these formats",
    ),
    Format(
        name="XML",
        module="xml_document",
        is_text=True,
        types=(("application/xml", (".xml", ".docbook", ".dbk", ".rss", ".atom")), ("text/xml", ())),
        keeps="titles as headings, paragraphs, code, list items; of other elements a line for each value",
    ),
    Format(
        name="Org mode",
        module="org",
        is_text=True,
        types=(("text/x-org", (".org",)),),
        keeps="headings, lists, tables, code; title, author, date",
    ),
    Format(
        name="LaTeX",
        module="latex",
        is_text=True,
        types=(("text/x-tex", (".tex", ".ltx", ".latex")),),
        keeps="sections, lists, tables, code, formulas as written; title, author, date",
    ),
    Format(
        name="Manual page",
        module="roff",
        is_text=True,
        types=(("text/troff", (".roff", ".man", ".mdoc")),),
        keeps="sections, options with what they do, code, tables; known by the title line, so also ssh.1 and ssh.1.gz",
    ),
    Format(
        name="Rich Text",
        module="rtf",
        types=(("application/rtf", (".rtf",)), ("text/rtf", ())),
        signature="a Rich Text document",
        keeps="paragraphs, headings by outline level, table rows",
    ),
    Format(
        name="OpenDocument text",
        module="odt",
        types=(("application/vnd.oasis.opendocument.text", (".odt",)),),
        signature="an OpenDocument file",
        keeps="headings, lists, tables, footnotes, properties",
    ),
    Format(
        name="E-mail",
        module="mail",
        types=(("message/rfc822", (".eml",)), ("application/mbox", (".mbox",))),
        keeps="subject as heading, sender, recipients, date, text with quoted replies, attachments by name",
    ),
    Format(
        name="EPUB",
        module="epub",
        types=(("application/epub+zip", (".epub",)),),
        signature="an EPUB book",
        keeps="chapters in reading order with their headings, title, author, language, publisher, date",
    ),
    Format(
        name="Old Office",
        module="formats",
        types=(
            ("application/msword", (".doc",)),
            ("application/vnd.ms-powerpoint", (".ppt",)),
            ("application/vnd.ms-excel", (".xls",)),
        ),
        keeps="nothing: refused, with the format to convert to",
        is_read=False,
    ),
)


_PDF_WITHIN = 1024  # bytes; PDF readers accept other bytes before the header
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_ZIP = (b"PK\x03\x04", b"PK\x05\x06")
_KIND_BY_START = (
    (b"\x89PNG\r\n", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"Rar!\x1a\x07", "a RAR archive"),
    (b"SQLite format 3\0", "an SQLite database"),
    (b"{\\rtf", "a Rich Text document"),
    (b"<!DOCTYPE html", "an HTML page"),
    (b"<html", "an HTML page"),
)
_KIND_BY_PART = (
    ("word/", "a Word document"),
    ("ppt/", "a PowerPoint presentation"),
    ("xl/", "an Excel workbook"),
    ("meta-inf/container.xml", "an EPUB book"),
)
_KIND_BY_MIMETYPE = (
    (b"application/epub+zip", "an EPUB book"),
    (b"application/vnd.oasis.opendocument.", "an OpenDocument file"),
)
# The directory inside an OLE file gives the names of its streams in UTF-16.
_KIND_BY_STREAM = (
    ("EncryptedPackage", "an Office document protected by a password"),
    ("WordDocument", "a Word document of the old format (.doc)"),
    ("PowerPoint Document", "a PowerPoint presentation of the old format (.ppt)"),
    ("Workbook", "an Excel workbook of the old format (.xls)"),
    ("__substg1.0_", "an Outlook message (.msg)"),
)
OLD_OFFICE = "an old Office document"
PROTECTED = _KIND_BY_STREAM[0][1]
_REMEDY_BY_KIND = {
    PROTECTED: "Open it in Office, remove the password and save it.",
    _KIND_BY_STREAM[1][1]: "Save it as .docx in Word or LibreOffice.",
    _KIND_BY_STREAM[2][1]: "Save it as .pptx in PowerPoint or LibreOffice.",
    _KIND_BY_STREAM[3][1]: "Save it as .xlsx in Excel or LibreOffice.",
    _KIND_BY_STREAM[4][1]: "Save it as .eml.",
    OLD_OFFICE: "Save it as .docx, .pptx or .xlsx.",
    "an OpenDocument file": "Save it as .docx, .pptx or .xlsx.",
}
_SUFFIX_BY_KIND = {
    "a PDF document": ".pdf",
    "a Word document": ".docx",
    "a PowerPoint presentation": ".pptx",
    "an Excel workbook": ".xlsx",
    "an EPUB book": ".epub",
    "a Rich Text document": ".rtf",
    "an HTML page": ".html",
}
_MEDIA_TYPE_BY_KIND = {"a PDF document": "application/pdf", "a Rich Text document": "application/rtf"}
_KEY = b"-----BEGIN "
_MANUAL_PAGE = re.compile(rb"^\.[ \t]*(?:TH[ \t]+\S|D[dt][ \t]+\S)", re.MULTILINE)  # its title line
# A text file may begin with these signatures.
_ALSO_TEXT = frozenset({"", "an HTML page", "a GIF image", "a Rich Text document"})


IMAGES = Format(  # its parser checks the files: a picture with the suffix of another kind is read, too
    name="Pictures",
    module="markdown",  # a model makes Markdown of them
    types=(
        ("image/png", (".png",)),
        ("image/jpeg", (".jpg", ".jpeg")),
        ("image/gif", (".gif",)),
        ("image/webp", (".webp",)),
    ),
)


IMAGES_REMEDY = "Name a model that reads pictures: llm in [role.vision] of quipu.toml."


def check_signature(source: SourceDocument, expected: str) -> None:
    """Raise InvalidDocument if the bytes are another type of file than `expected` ("" stands for any text)."""
    kind = detect_file_type(source.content)
    if kind == expected or (not expected and kind in _ALSO_TEXT):
        return
    if not kind:
        raise InvalidDocument(
            f"{display_name(source)} is not {expected}: its first bytes are different.",
            remedy="Copy or download it again, or give it the right suffix.",
        )
    if kind == PROTECTED:
        raise InvalidDocument(f"{display_name(source)} is protected by a password.", remedy=_REMEDY_BY_KIND[kind])
    if kind == "a ZIP archive" and expected:
        return  # its directory cannot be read: the parser reports the damage
    suffix = _SUFFIX_BY_KIND.get(kind)
    remedy = f"Rename it to end in {suffix}." if suffix else "Convert it to a format Quipu reads, or leave it out."
    raise InvalidDocument(
        f"{display_name(source)} has the wrong suffix: it holds {kind}.", remedy=_REMEDY_BY_KIND.get(kind, remedy)
    )


def sniff_text_type(head: bytes) -> str:
    """Return the media type of text or a PDF that begins with `head`; "" for other bytes and for keys and certificates.

    Text is in a Unicode encoding, or in another one that makes text of it.
    """
    kind = detect_file_type(head)
    if kind in _MEDIA_TYPE_BY_KIND:
        return _MEDIA_TYPE_BY_KIND[kind]
    if kind not in _ALSO_TEXT or head.lstrip().startswith(_KEY) or not is_text(head):
        return ""
    if _MANUAL_PAGE.search(head):
        return "text/troff"
    return "text/html" if kind == "an HTML page" else "text/plain"


def detect_file_type(content: bytes) -> str:
    """Return the type of file with its article, as in "a PDF document"; the empty string if no signature matches."""
    if b"%PDF-" in content[:_PDF_WITHIN] and not content.startswith(_ZIP):
        return "a PDF document"
    if content.startswith(_OLE):
        streams = (kind for stream, kind in _KIND_BY_STREAM if stream.encode("utf-16-le") in content)
        return next(streams, OLD_OFFICE)
    if content.startswith(_ZIP):
        return _detect_zip_type(content)
    start = content[:64].lstrip(b"\xef\xbb\xbf \t\r\n")
    return next((kind for signature, kind in _KIND_BY_START if start.startswith(signature)), "")


def _detect_zip_type(content: bytes) -> str:
    try:
        if content.count(b"PK\x01\x02") > MAX_ENTRIES:
            return "a ZIP archive"
        names = [name.lower() for name in ZipFile(BytesIO(content)).namelist()]
    except (BadZipFile, RuntimeError, ValueError, OSError):
        return "a ZIP archive"
    mimetype = next((kind for media_type, kind in _KIND_BY_MIMETYPE if media_type in content[:200]), "")
    parts = (kind for part, kind in _KIND_BY_PART if any(name.startswith(part) for name in names))
    return mimetype or next(parts, "a ZIP archive")


_REPLACEMENT_BY_TYPE = {
    "application/msword": ("Word format (.doc)", ".docx"),
    "application/vnd.ms-powerpoint": ("PowerPoint format (.ppt)", ".pptx"),
    "application/vnd.ms-excel": ("Excel format (.xls)", ".xlsx"),
}


class OldOfficeParser:
    """Refuses .doc, .ppt and .xls files with advice on how to convert them."""

    media_types = frozenset(_REPLACEMENT_BY_TYPE)

    def parse(self, source: SourceDocument) -> ParsedDocument:
        """Raise InvalidDocument with the format to convert the document to."""
        old_format, suffix = _REPLACEMENT_BY_TYPE[source.media_type.partition(";")[0].strip().lower()]
        protected = " and protected by a password" if detect_file_type(source.content) == PROTECTED else ""
        raise InvalidDocument(
            f"{display_name(source)} is in the old {old_format}{protected}, which Quipu does not read.",
            remedy=f"Save it as {suffix}, in Office or with: soffice --headless --convert-to {suffix[1:]} FILE",
        )


PARSER = OldOfficeParser()
