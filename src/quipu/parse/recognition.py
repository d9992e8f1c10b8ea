"""Text recognition: the pages of a PDF that are pictures are read by Tesseract, in a sandboxed process."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec

from quipu.errors import InvalidDocument
from quipu.parse.limits import (
    MAX_RECOGNITION_SECONDS,
    MAX_SCAN_BYTES,
    MAX_SCAN_PIXELS,
    MAX_SCAN_SECONDS,
    MAX_SCANS,
    MAX_SINGLE_SCAN_SECONDS,
    SCANS_AT_ONCE,
)
from quipu.parse.sandbox import SandboxFailure, run_sandboxed
from quipu.ports.ingest import ON_PAGES

MIN_CONFIDENCE = 75  # percent; a page below is not passed off as text
SURE_CONFIDENCE = 85  # percent; a page below is named, because many of its words may be wrong
OFF = "off"
DATA_FOLDERS = (  # where Tesseract's languages are, beside the folder that it names itself
    "/usr/share/tesseract-ocr/5/tessdata",
    "/usr/share/tesseract-ocr/4.00/tessdata",
    "/usr/share/tesseract/tessdata",
    "/usr/share/tessdata",
    "/usr/local/share/tessdata",
    "/opt/homebrew/share/tessdata",
    "C:/Program Files/Tesseract-OCR/tessdata",
)
INSTALL = (
    "Install text recognition: pip install 'quipu-rag[ocr]', and Tesseract's languages, as in: "
    "apt-get install tesseract-ocr-eng tesseract-ocr-osd. Or recognise the text first: ocrmypdf in.pdf out.pdf"
)
LEGIBLE = "Scan them again at 300 dpi, or name their languages, as in: --meta ocr=deu+eng"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecognisedPage:
    """What Tesseract read on a page: lines and tables as of other pages, its confidence in percent, its languages.

    `lacking` is the language of the page's script that has no data. `turn` is by how many degrees it was turned.
    """

    lines: Sequence[tuple[str, float, float, float, float, float]]
    tables: Sequence[tuple[Sequence[Sequence[str]], int, Sequence[tuple[float, float]], float, float, int]]
    confidence: int
    languages: str
    lacking: str = ""
    turn: int = 0

    @property
    def is_readable(self) -> bool:
        """Whether Tesseract is sure enough of the page to show its text."""
        return self.confidence >= MIN_CONFIDENCE and bool(self.lines or self.tables)

    @property
    def is_sure(self) -> bool:
        """Whether hardly a word of the page is wrong."""
        return self.confidence >= SURE_CONFIDENCE


@dataclass(frozen=True, slots=True, kw_only=True)
class Recognition:
    """The recognised pages of a PDF by index, the version of Tesseract, and why other scanned pages were not read."""

    pages: Mapping[int, RecognisedPage]
    version: str = ""
    reason: str = ""
    remedy: str = ""


def recognise(content: bytes, scans: Sequence[int], languages: str, name: str) -> Recognition:
    """Return what Tesseract reads on the pages `scans` (from 0) of a PDF.

    `languages` are names of Tesseract joined by "+", "" to detect them by the script of each page, or "off". Pages are
    read a few at a time, each time in a new process; if it fails, one at a time. Pages that fail alone, and those after
    MAX_SCANS pages or MAX_RECOGNITION_SECONDS, are left out. Raises InvalidDocument, with the document's `name`, for a
    language without data.
    """
    if languages == OFF:
        return Recognition(pages={}, reason="recognition is off", remedy="Leave out the metadata ocr=off.")
    if find_spec("tesserocr") is None:
        return Recognition(pages={}, reason="text recognition is not installed", remedy=INSTALL)
    run = _RecognitionRun(content, languages, name, min(len(scans), MAX_SCANS))
    for start in range(0, min(len(scans), MAX_SCANS), SCANS_AT_ONCE):
        run.read(scans[start : min(start + SCANS_AT_ONCE, MAX_SCANS)])
    reason, remedy = run.shortfall()
    if not reason and len(scans) > MAX_SCANS:
        reason, remedy = f"more than {MAX_SCANS:,} pages are scanned", "Split it into several files."
    return Recognition(
        pages=run.pages, version=run.version, reason=reason or "they are not legible", remedy=remedy or LEGIBLE
    )


class _RecognitionRun:
    """The recognition of one document: what was read, what failed, and how much CPU time is left."""

    def __init__(self, content: bytes, languages: str, name: str, n_scans: int) -> None:
        self.pages: dict[int, RecognisedPage] = {}
        self.version = ""
        self._content, self._languages, self._name = content, languages, name
        self._n_scans = n_scans
        self._n_seconds = 0.0
        self._on_pages = ON_PAGES.get()  # here, as progress is reported from another thread
        self._n_reported = 0
        self._failure = self._lacks = ""

    def read(self, batch: Sequence[int]) -> None:
        """Read pages together; if the process fails, each alone. Nothing is read once the time is used up."""
        if self._lacks or self._n_seconds >= MAX_RECOGNITION_SECONDS:
            return
        max_seconds = MAX_SCAN_SECONDS if len(batch) > 1 else MAX_SINGLE_SCAN_SECONDS
        try:
            output = run_sandboxed(
                "recognition_process.py",
                (self._languages, MAX_SCAN_PIXELS, ",".join(map(str, batch))),
                self._content,
                max_bytes=MAX_SCAN_BYTES + 2 * len(self._content),
                max_seconds=max_seconds,
                on_pages=partial(self._report, len(self.pages)) if self._on_pages else None,
            )
        except SandboxFailure as failure:
            self._n_seconds += max_seconds
            self._failure = failure.reason if len(batch) == 1 else self._failure
            for page in batch if len(batch) > 1 else ():
                self.read([page])
            return
        fields = json.loads(output)
        if fields.get("error") == "data":
            self._lacks = fields["lacks"]
        elif fields.get("error"):
            raise _unknown_languages(self._name, fields["missing"], fields["installed"])
        else:
            self.version = fields["version"]
            self._n_seconds += fields["seconds"]
            self.pages |= {int(index): RecognisedPage(**page) for index, page in fields["pages"].items()}

    def _report(self, n_before: int, n_done: int, _: int) -> None:
        """Report progress, unless a batch that failed had come further."""
        if self._on_pages and n_before + n_done > self._n_reported:
            self._n_reported = n_before + n_done
            self._on_pages(self._n_reported, self._n_scans)

    def shortfall(self) -> tuple[str, str]:
        """Return why pages were not read, and the remedy; ("", "") if they are only illegible."""
        if self._lacks:
            return self._lacks, INSTALL
        if self._n_seconds >= MAX_RECOGNITION_SECONDS:
            return (
                f"recognition takes more than {MAX_RECOGNITION_SECONDS:,} seconds of CPU time",
                "Split it into several files.",
            )
        if self._failure:
            return f"recognition failed ({self._failure})", LEGIBLE
        lacking = sorted({page.lacking for page in self.pages.values() if page.lacking and not page.is_readable})
        if lacking:
            packages = " ".join(f"tesseract-ocr-{language.replace('_', '-')}" for language in lacking)
            return (
                f"they are not legible, or in a language without data ({', '.join(lacking)})",
                f"{LEGIBLE}. Data is installed by: apt-get install {packages}",
            )
        return "", ""


def _unknown_languages(name: str, missing: Sequence[str], installed: Sequence[str]) -> InvalidDocument:
    return InvalidDocument(
        f"{name} names the languages {'+'.join(missing)!r} for text recognition, which has no data for them.",
        remedy=f"Installed are: {', '.join(installed)}. Others come with packages such as tesseract-ocr-deu.",
    )


def page_ranges(pages: Sequence[int]) -> str:
    """Return ascending page numbers as text, as in "1-3, 7"."""
    ranges: list[list[int]] = []
    for page in pages:
        if ranges and page == ranges[-1][-1] + 1:
            ranges[-1] = [ranges[-1][0], page]
        else:
            ranges.append([page])
    return ", ".join("-".join(map(str, numbers)) for numbers in ranges)
