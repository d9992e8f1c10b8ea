"""Cells recovered from tables in PDFs: Quipu beside pdfplumber and camelot, on PDFs made here and on real ones.

`python -m benchmarks.pdf_tables [REALDOCS]` prints precision and recall of pairs of neighbouring cells in a row. A
library that is not installed is left out. REALDOCS is a folder with documents/ and plain.jsonl: the rows of its tables
are taken from that plain text by patterns, so headers and labels over two lines are not measured there.
"""

import json
import random
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from importlib import import_module
from itertools import pairwise
from pathlib import Path

import pypdfium2

from quipu.parse.pdf_process import read
from quipu.parse.pdf_tables import is_number, is_year
from tests.unit.parse.files import At, Drawn, PageItem, cells, frame, pdf

Row = Sequence[str]
Finder = Callable[[Path], Iterator[Row]]
_VALUE = r"(?:[-$(]?[\d,]*\.?\d+%?\)?|[–-]|\(X\)|\*+\.\*)"
_LABEL_AND_VALUES = re.compile(rf"\s*([A-Za-z][\w.,;()#/ —-]*?)[ .]*((?: {_VALUE}){{2,}})(?: [A-Z][\w. ]+)?\s*")
PATTERNS = {
    "gov-pdf/12s0324.pdf": _LABEL_AND_VALUES,
    "gov-pdf/cs-en-us-pbms.pdf": _LABEL_AND_VALUES,
    "gov-pdf/us-024.pdf": _LABEL_AND_VALUES,
    "markitdown/REPAIR-2022-INV-001_multipage.pdf": _LABEL_AND_VALUES,
    "markitdown/SPARSE-2024-INV-1234_borderless_table.pdf": re.compile(
        r"(SKU-\d+) (\w+) (\$\S+) (\$\S+)(?: (\d{4}-\d\d-\d\d))?(?: ([A-Z].*))?"
    ),
    "markitdown/movie-theater-booking-2024.pdf": re.compile(
        r"(\d) (SCR-\d) (\S+) (\S+) (.+) (IMAX 3D|Standard|4DX) (\S+ PM) (Daily) (\d+) (\$\d+) (\w\w) (\$\S+)"
    ),
}
N_GENERATED = 60
_WORDS = ("Nordhaven", "Cold storage", "Rail", "Quarterly review", "Ferry", "Glass", "Customs office", "Barley")


def main() -> None:
    """Print a row for each set of files and each finder."""
    finders: dict[str, Finder] = {"Quipu": quipu_rows}
    for name, finder in (("pdfplumber", pdfplumber_rows), ("camelot", camelot_rows)):
        try:
            import_module(name)
        except ImportError:
            print(f"Left out: {name} is not installed.")
        else:
            finders[name] = finder
    print("| files | finder | precision, % | recall, % | CPU s |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for style in ("grid", "lines above and below", "no lines"):
            print_scores(f"{N_GENERATED} made, {style}", list(generated(style, Path(folder))), finders, numeric=False)
    if len(sys.argv) > 1:
        print_scores("real, 6 files", list(real(Path(sys.argv[1]))), finders, numeric=True)


def print_scores(
    name: str, files: Sequence[tuple[Path, Sequence[Row]]], finders: dict[str, Finder], *, numeric: bool
) -> None:
    """Print the score of each finder. With `numeric`, only rows with two numbers count as found: headers do not."""
    for finder_name, finder in finders.items():
        n_right = n_found = n_expected = 0
        start = time.process_time()
        for path, expected_rows in files:
            rows = [row for row in finder(path) if not numeric or _has_numbers(row)]
            found, expected = pairs(rows), pairs(expected_rows)
            n_right += (found & expected).total()
            n_found += found.total()
            n_expected += expected.total()
        seconds = time.process_time() - start
        precision, recall = 100 * n_right / max(1, n_found), 100 * n_right / max(1, n_expected)
        print(f"| {name} | {finder_name} | {precision:.1f} | {recall:.1f} | {seconds:.1f} |", flush=True)


def pairs(rows: Sequence[Row]) -> Counter[tuple[str, str]]:
    """Return the pairs of neighbouring filled cells of each row, without spaces and leaders of dots."""
    counts: Counter[tuple[str, str]] = Counter()
    for row in rows:
        filled = [text for text in (re.sub(r"\s|(?:\.\s*)+$", "", cell or "") for cell in row) if text]
        counts.update(pairwise(filled))
    return counts


def _has_numbers(row: Row) -> bool:
    numbers = [cell for cell in row[1:] if cell and is_number(" ".join(cell.split()))]
    return len(numbers) > 1 and not all(map(is_year, numbers))


def quipu_rows(path: Path) -> Iterator[Row]:
    """Yield the rows of all tables that Quipu finds."""
    fields = read(pypdfium2.PdfDocument(path), max_pages=1_000, max_lines=10**6, max_characters=10**7)
    assert isinstance(fields["tables"], list)
    for page in fields["tables"]:
        for table in page:
            yield from table[0]


def pdfplumber_rows(path: Path) -> Iterator[Row]:
    """Yield the rows of all tables that pdfplumber finds: by drawn lines, otherwise by text."""
    with import_module("pdfplumber").open(path) as document:
        for page in document.pages:
            tables = page.extract_tables()
            by_text = {"vertical_strategy": "text", "horizontal_strategy": "text"}
            for table in tables or page.extract_tables(by_text):
                yield from table


def camelot_rows(path: Path) -> Iterator[Row]:
    """Yield the rows of all tables that camelot finds: by drawn lines, otherwise by text."""
    camelot = import_module("camelot")
    tables = list(camelot.read_pdf(str(path), pages="all", flavor="lattice", suppress_stdout=True))
    for table in tables or camelot.read_pdf(str(path), pages="all", flavor="stream", suppress_stdout=True):
        yield from table.df.values.tolist()


def generated(style: str, folder: Path) -> Iterator[tuple[Path, Sequence[Row]]]:
    """Yield PDFs of one page with a table below and above text, and the rows of the table."""
    for seed in range(N_GENERATED):
        chosen = random.Random(f"{style} {seed}")
        n_columns, n_rows = chosen.randint(3, 6), chosen.randint(3, 14)
        rows = [tuple(f"Item {column}" for column in range(1, n_columns + 1))]
        for index in range(n_rows):
            values = [f"{chosen.randint(1, 99_999):,}" for _ in range(n_columns - 2)]
            rows.append((f"{chosen.choice(_WORDS)} {index}", chosen.choice(_WORDS), *values))
        lefts = [72 + index * 460 / n_columns for index in range(n_columns)]
        leading = chosen.choice((14, 18, 24))
        body: list[PageItem] = [
            At(72, 760, "The following figures were collected in the harbour over the course of one year."),
            *(replace(cell, size=8) for cell in cells(*rows, lefts=lefts, leading=leading)),
            At(72, 660 - leading * n_rows, "All figures are provisional and may be revised by the office later on."),
        ]
        path = folder / f"{style} {seed}.pdf"
        path.write_bytes(pdf([[*body, *_lines(style, lefts, leading, n_rows)]]))
        yield path, rows


def _lines(style: str, lefts: Sequence[float], leading: float, n_rows: int) -> list[Drawn]:
    ys = [700 + leading * 0.7 - leading * index for index in range(n_rows + 2)]
    if style == "grid":
        return frame([left - 4 for left in (*lefts, 540)], ys)
    return [Drawn(72, y, 540, y) for y in (ys[0], ys[1], ys[-1])] if style == "lines above and below" else []


def real(folder: Path) -> Iterator[tuple[Path, Sequence[Row]]]:
    """Yield the real PDFs and the rows that a pattern finds in their plain text."""
    for line in (folder / "plain.jsonl").read_text(encoding="utf-8").splitlines():
        document = json.loads(line)
        pattern = PATTERNS.get(document["id"])
        if pattern is not None:
            matches = filter(None, (pattern.fullmatch(text.strip()) for text in document["text"].split("\n")))
            rows = [_row(match) for match in matches]
            yield folder / "documents" / document["id"], rows


def _row(match: re.Match[str]) -> Row:
    label, *values = (group for group in match.groups() if group)
    return (label, *values[0].split()) if match.re is _LABEL_AND_VALUES else (label, *values)


if __name__ == "__main__":
    main()
