"""Formats: the supported file types by suffix and media type. A parser is imported when it is first used."""

from dataclasses import dataclass
from importlib import import_module
from typing import cast

from quipu.model.document import ParsedDocument, SourceDocument
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

    `signature` is the file type that the bytes must have (quipu.parse.signature), or the empty string for text.
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
        """The media types of the format."""
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
        keeps="paragraphs; a first line that stands alone is the title",
    ),
    Format(
        name="Markdown",
        module="markdown",
        is_text=True,
        types=(("text/markdown", (".md", ".markdown", ".mdx")),),
        keeps="headings, lists, tables, code; front matter as metadata",
    ),
    Format(
        name="reStructuredText",
        module="rst",
        is_text=True,
        types=(("text/x-rst", (".rst", ".rest")),),
        keeps="sections, described objects as headings, lists, tables, code; roles and links as their text",
    ),
    Format(
        name="HTML",
        module="html",
        is_text=True,
        types=(("text/html", (".html", ".htm")), ("application/xhtml+xml", (".xhtml",))),
        keeps="headings, lists, tables, preformatted text; not navigation, forms, headers, footers",
    ),
    Format(
        name="PDF",
        module="pdf",
        types=(("application/pdf", (".pdf",)),),
        signature="a PDF document",
        keeps="pages, paragraphs, the outline as headings, title, author, dates; not running headers and page numbers",
    ),
    Format(
        name="Word",
        module="docx",
        types=(
            (f"{_OFFICE}wordprocessingml.document", (".docx",)),
            ("application/vnd.ms-word.document.macroenabled.12", (".docm",)),
        ),
        signature="a Word document",
        keeps="headings, lists, tables, footnotes, text boxes, properties; tracked changes as if accepted",
    ),
    Format(
        name="PowerPoint",
        module="pptx",
        types=(
            (f"{_OFFICE}presentationml.presentation", (".pptx",)),
            ("application/vnd.ms-powerpoint.presentation.macroenabled.12", (".pptm",)),
        ),
        signature="a PowerPoint presentation",
        keeps="slides as pages, their titles as headings, lists, tables, diagrams, speaker's notes, properties",
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
        module="gzip",
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
        module="signature",
        types=(
            ("application/msword", (".doc",)),
            ("application/vnd.ms-powerpoint", (".ppt",)),
            ("application/vnd.ms-excel", (".xls",)),
        ),
        keeps="nothing: refused, with the format to convert to",
        is_read=False,
    ),
)
