"""Reading order and running lines of PDFs beside pypdf (which LightRAG reads PDFs with) and the plain text of PDFium.

    python -m benchmarks.pdf_layout [--folder DIR]

Two manuals of Debian are PDF and plain text, so it is known what they say: `apt-get download debian-policy
developers-reference`, then `dpkg-deb -x FILE DIR`. They are skipped where they are absent; so is pypdf. Three files are
made here, of which all is known: one column, two columns, and two columns drawn line by line across both; each with a
running header, page numbers, hyphens at ends of lines, and a footnote on each page.

- whole: sentences of the source that stand in the text with nothing between their words (letters and digits compared)
- order: of two sentences that follow each other in the source and are whole, how many do so in the text
- running: running headers and page numbers left in the text, of those on the pages
- notes: footnotes that are whole
"""

import argparse
import gzip
import io
import itertools
import re
import textwrap
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from random import Random

import pypdfium2

from quipu.model.document import SourceDocument
from quipu.parse.pdf import PdfParser
from quipu.text.sentences import sentence_spans
from tests.unit.parse.files import At, PageItem, pdf

MANUALS = {  # the PDF and the text of each, below the folder
    "Debian Policy": ("usr/share/doc/debian-policy/policy.pdf.gz", "usr/share/doc/debian-policy/policy.txt.gz"),
    "Developer's Reference": (
        "usr/share/developers-reference/developers-reference.pdf",
        "usr/share/developers-reference/developers-reference.txt.gz",
    ),
}
MIN_WORDS = 8  # of a sentence that is looked for
HEADER = "THE CARAVANS OF THE NORTHERN ROAD"
_NOTES = (
    "The archive of the town keeps this receipt in a chest",
    "Later copies of the letter name another governor",
    "A witness had to be a merchant with a house",
    "Horses were counted twice at the northern gate",
    "This price was never paid again",
)
N_PAGES, LEADING, TOP, N_LINES = 12, 12, 720, 40


@dataclass(frozen=True, slots=True)
class KnownPdf:
    """A PDF and what it says: its sentences in order, running lines (as often as they are there) and footnotes."""

    content: bytes
    sentences: Sequence[str]
    n_running: int = 0
    notes: Sequence[str] = ()


def main() -> None:
    """Print a row for each file and reader."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--folder", type=Path, default=Path("manuals"))
    files = {**_made(), **_manuals(parser.parse_args().folder)}
    readers: dict[str, Callable[[bytes], str]] = {"Quipu": _quipu, "pypdf": _pypdf, "PDFium": _pdfium}
    if find_spec("pypdf") is None:
        print("skipped: pypdf (pip install pypdf)")
        del readers["pypdf"]
    print("| file | reader | whole, % | order, % | running | notes |\n|---|---|---|---|---|---|")
    for name, known in files.items():
        for reader, read in readers.items():
            print(f"| {name} | {reader} | " + " | ".join(_measures(read(known.content), known)) + " |", flush=True)


def _quipu(content: bytes) -> str:
    return PdfParser().parse(SourceDocument(id="a.pdf", content=content, media_type="application/pdf")).text


def _pypdf(content: bytes) -> str:
    return "\n".join(page.extract_text() for page in import_module("pypdf").PdfReader(io.BytesIO(content)).pages)


def _pdfium(content: bytes) -> str:
    return "\n".join(page.get_textpage().get_text_range() for page in pypdfium2.PdfDocument(content))


def _measures(text: str, known: KnownPdf) -> Iterator[str]:
    letters = _letters(text)
    places: list[int] = []
    start = 0
    for sentence in known.sentences:
        place = letters.find(_letters(sentence), start)
        place = letters.find(_letters(sentence)) if place < 0 else place
        places.append(place)
        start = place if place >= 0 else start
    pairs = [(first, second) for first, second in itertools.pairwise(places) if first >= 0 and second >= 0]
    yield f"{100 * sum(place >= 0 for place in places) / len(places):.1f}"
    yield f"{100 * sum(first < second for first, second in pairs) / max(1, len(pairs)):.1f}"
    n_left = len(re.findall(rf"{HEADER}|^\W*Page \d+\W*$", text, re.MULTILINE))
    yield f"{n_left} of {known.n_running}" if known.n_running else "–"
    n_notes = sum(_letters(note) in letters for note in known.notes)
    yield f"{n_notes} of {len(known.notes)}" if known.notes else "–"


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, unicodedata.normalize("NFKC", text).casefold()))


def _manuals(folder: Path) -> dict[str, KnownPdf]:
    known = {}
    for name, paths in MANUALS.items():
        files = [folder / path for path in paths]
        if not all(file.exists() for file in files):
            print(f"skipped: {name} (no {files[0]})")
            continue
        content, text = (gzip.decompress(f.read_bytes()) if f.suffix == ".gz" else f.read_bytes() for f in files)
        known[name] = KnownPdf(content, _sentences(text.decode()))
    return known


def _sentences(text: str) -> list[str]:
    """Return the sentences of the paragraphs of a text; no lists, tables, notes and headings, which look otherwise."""
    sentences = []
    for paragraph in re.split(r"\n\s*\n", text):
        if re.match(r" {0,4}[A-Z]", paragraph) and not re.search(r"[\[\]_*|]| {3,}\S.* {3,}", paragraph.strip()):
            spans = sentence_spans(paragraph)
            sentences += [
                paragraph[start:end] for start, end in spans if len(paragraph[start:end].split()) >= MIN_WORDS
            ]
    return sentences


def _made() -> Mapping[str, KnownPdf]:
    return {
        "one column": _pages(columns=1, is_mixed=False),
        "two columns": _pages(columns=2, is_mixed=False),
        "two columns, line by line": _pages(columns=2, is_mixed=True),
    }


def _pages(*, columns: int, is_mixed: bool) -> KnownPdf:
    """Return pages with a running header, page numbers and a footnote each; `is_mixed` draws across both columns."""
    words = Random(7)
    names = ("Samarkand", "Bukhara", "Khiva", "Merv", "Kashgar", "Turfan", "Balkh")
    goods = ("salt", "silk", "glazed bricks", "raisins", "horses", "letters", "lapis lazuli")
    pages: list[list[PageItem]] = []
    sentences: list[str] = []
    notes: list[str] = []
    for number in range(1, N_PAGES + 1):
        texts: list[str] = []
        lines: list[str] = []
        while len(lines) < columns * N_LINES:
            texts.append(
                f"In the year {1200 + len(sentences) + len(texts)} the caravan of {words.choice(names)} carried "
                f"{words.choice(goods)} and {words.choice(goods)} to the governor of {words.choice(names)}, who "
                f"acknowledged the extraordinary consignment with {words.randrange(3, 90)} witnesses."
            )
            lines = _wrapped(" ".join(texts), 44 if columns == 2 else 92)
        shown = lines[: columns * N_LINES]
        sentences += texts[:-1]  # the last one may be cut
        notes.append(
            f"{number} {_NOTES[number % len(_NOTES)]}, as {words.choice(names)} paid in {words.choice(goods)}."
        )
        body = [
            At(60 + 250 * (index // N_LINES), TOP - LEADING * (index % N_LINES), line, 9)
            for index, line in enumerate(shown)
        ]
        if is_mixed:
            body = [item for row in range(N_LINES) for item in (body[row], body[row + N_LINES])]
        edges = [At(60, 770, HEADER, 9), At(280, 40, f"Page {number}", 9)]
        pages.append([edges[0], *body, At(60, TOP - LEADING * (N_LINES + 3), notes[-1], 7), edges[1]])
    return KnownPdf(pdf(pages), sentences, n_running=2 * N_PAGES, notes=notes)


def _wrapped(text: str, width: int) -> list[str]:
    """Return lines; some long words are divided by a hyphen, as typesetters do."""
    divided = text.replace("acknowledged", "acknow-\u200bledged").replace("extraordinary", "extra-\u200bordinary")
    lines = textwrap.wrap(divided.replace("-\u200b", "- "), width)
    return [re.sub(r"(acknow|extra)- ", r"\1", line) for line in lines]


if __name__ == "__main__":
    main()
