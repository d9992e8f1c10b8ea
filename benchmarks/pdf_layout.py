"""Reading order and running lines of PDFs beside pypdf (which LightRAG reads PDFs with) and the plain text of PDFium.

    python -m benchmarks.pdf_layout [--folder DIR] [--data DIR]

Two manuals of Debian are PDF and plain text, so it is known what they say: `apt-get download debian-policy
developers-reference`, then `dpkg-deb -x FILE DIR`. They are skipped where they are absent; so is pypdf. Three files are
made here, of which all is known: one column, two columns, and two columns drawn line by line across both; each with a
running header, page numbers, hyphens at ends of lines, and a footnote on each page with its mark in the text. What the
PDFs of `realdocs` (below `--data`) say is not known: five words in a row count that another reader gives as well.

- whole: sentences of the source that stand in the text with nothing between their words (letters and digits compared)
- order: of two sentences that follow each other in the source and are whole, how many do so in the text
- running: running headers and page numbers left in the text, of those on the pages
- notes: footnotes that are whole, with their number before them
- marks: numbers of footnotes that stand in the text as marks, and not as digits of the word or number before them
- phrases: five words in a row that at least one of the other readers gives, of those that any two of them give
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
from quipu.text.unicode import superscript
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
    """A PDF and what it says: its sentences in order, running lines (as often as they are there) and footnotes.

    `marks` are the words before the mark of each footnote, with its number.
    """

    content: bytes
    sentences: Sequence[str]
    n_running: int = 0
    notes: Sequence[str] = ()
    marks: Sequence[tuple[str, int]] = ()


def main() -> None:
    """Print a row for each file and reader."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--folder", type=Path, default=Path("manuals"))
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    arguments = parser.parse_args()
    readers: dict[str, Callable[[bytes], str]] = {"Quipu": _quipu, "pypdf": _pypdf, "PDFium": _pdfium}
    if find_spec("pypdf") is None:
        print("skipped: pypdf (pip install pypdf)")
        del readers["pypdf"]
    print("| file | reader | whole, % | order, % | running | notes | marks |\n|---|---|---|---|---|---|---|")
    for name, known in {**_made(), **_manuals(arguments.folder)}.items():
        for reader, read in readers.items():
            print(f"| {name} | {reader} | " + " | ".join(_measures(read(known.content), known)) + " |", flush=True)
    files = sorted((arguments.data / "realdocs" / "documents").rglob("*.pdf"))
    if not files or len(readers) < 3:
        print("skipped: phrases (without --data, or two other readers)")
        return
    print("\n| PDFs of realdocs | phrases, % |\n|---|---|")
    phrases = {reader: [_phrases(read(file.read_bytes())) for file in files] for reader, read in readers.items()}
    for reader, own in phrases.items():
        others = [phrases[other] for other in readers if other != reader]
        n_agreed = sum(len(mine & (one | two)) for mine, one, two in zip(own, *others, strict=True))
        n_all = sum(len((mine & (one | two)) | (one & two)) for mine, one, two in zip(own, *others, strict=True))
        print(f"| {reader} | {100 * n_agreed / n_all:.1f} |")


def _phrases(text: str) -> set[tuple[str, ...]]:
    """Return every five words in a row of a text; the marks between the cells of a table are no words."""
    words = [letters for word in text.split() if (letters := _letters(word))]
    return {tuple(words[start : start + 5]) for start in range(len(words) - 4)}


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
    n_marks = sum(_has_mark(text, word, number) for word, number in known.marks)
    yield f"{n_marks} of {len(known.marks)}" if known.marks else "–"


def _has_mark(text: str, word: str, number: int) -> bool:
    """Return whether the number of a footnote follows its word raised, in brackets or after a space, not as digits."""
    raised = superscript(str(number))
    return re.search(rf"{re.escape(word)}(?:\s?{raised}|\s?\[\^?{number}\]|\s{number}\b)", text) is not None


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
    marks: list[tuple[str, int]] = []
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
        texts[0] = f"{lines[0]}{number}{texts[0].removeprefix(lines[0])}"  # the mark of the footnote
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
        marked = body[0]
        marks.append((marked.text.split()[-1], number))
        mark_x = marked.x + _width(marked.text, marked.size) + 0.5
        body[0:1] = [marked, At(mark_x, marked.y + 3, str(number), 6)]
        edges = [At(60, 770, HEADER, 9), At(280, 40, f"Page {number}", 9)]
        pages.append([edges[0], *body, At(60, TOP - LEADING * (N_LINES + 3), notes[-1], 7), edges[1]])
    return KnownPdf(pdf(pages), sentences, n_running=2 * N_PAGES, notes=notes, marks=marks)


def _width(text: str, size: float) -> float:
    """Return the width of a line of Helvetica, in points, as PDFium has it."""
    page = pypdfium2.PdfDocument(pdf([[At(0, 400, text, size)]]))[0].get_textpage()
    return float(page.get_charbox(page.count_chars() - 1, loose=True)[2])


def _wrapped(text: str, width: int) -> list[str]:
    """Return lines; some long words are divided by a hyphen, as typesetters do."""
    divided = text.replace("acknowledged", "acknow-\u200bledged").replace("extraordinary", "extra-\u200bordinary")
    lines = textwrap.wrap(divided.replace("-\u200b", "- "), width)
    return [re.sub(r"(acknow|extra)- ", r"\1", line) for line in lines]


if __name__ == "__main__":
    main()
