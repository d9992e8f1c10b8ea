"""What a PDF of 300 pages costs: CPU a page, and the memory of the process that reads it and of the whole command.

    python -m benchmarks.long_pdf [--pages N] [--scans N]

Every page has 45 lines of prose, or a table of 40 rows with lines around its cells. Scans are A4 pages of 36 lines of
English at 300 dpi, which need the extra `ocr`; they are skipped without it. `quipu add` reads a file into a new index.
Memory is the largest resident set of the sandboxed processes and of `quipu add` itself.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # so that it runs as a file, too

from tests.unit.parse.files import At, Drawn, PageItem, pdf, prose
from tests.unit.parse.scans import FONTS, TEXTS, scanned_pdf

ADD = """
import json, resource, sys
from quipu.cli import main
try:
    main()
except SystemExit:
    pass
own, child = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
sys.stderr.write(json.dumps([own.ru_maxrss, child.ru_maxrss, child.ru_utime + child.ru_stime]))
"""
_WORDS = ("camels", "wells", "salt", "tents", "guides", "letters", "lamps")
_DPI = 300


def main() -> None:
    """Print a row for each kind of page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--pages", type=int, default=300)
    parser.add_argument("--scans", type=int, default=20)
    options = parser.parse_args()
    print("| pages | of | MB of the file | CPU, ms a page | MB to parse it | MB of add |\n|---|---|---|---|---|---|")
    for name, page in (("prose", _prose), ("a table each", _table)):
        _report(name, options.pages, pdf([page(number) for number in range(options.pages)]))
    if find_spec("tesserocr") is None or not Path(FONTS["eng"]).exists():
        print("skipped: scans (pip install 'quipu-rag[ocr]', and the font DejaVu)")
        return
    _report("scans", options.scans, scanned_pdf([_scan(number) for number in range(options.scans)], _DPI))


def _report(name: str, n_pages: int, content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "long.pdf"
        file.write_bytes(content)
        added = subprocess.run(
            [sys.executable, "-c", ADD, "--index", str(Path(folder) / "kb"), "add", str(file)],
            capture_output=True,
            text=True,
            check=True,
        )
    own_kb, child_kb, seconds = json.loads(added.stderr.splitlines()[-1])
    cells = (n_pages, name, f"{len(content) / 1e6:.1f}", f"{1_000 * seconds / n_pages:.0f}")
    print("| " + " | ".join(map(str, cells)) + f" | {child_kb / 1_000:.0f} | {own_kb / 1_000:.0f} |", flush=True)


def _scan(number: int) -> Image.Image:
    page = Image.new("L", (int(8.27 * _DPI), int(11.69 * _DPI)), 255)
    font = ImageFont.truetype(FONTS["eng"], round(11 / 72 * _DPI))
    draw = ImageDraw.Draw(page)
    for row, line in enumerate((f"Page {number + 1} of the ledger.", *(3 * TEXTS["eng"])[1:])):
        draw.text((0.9 * _DPI, (0.9 + 0.26 * row) * _DPI), line, font=font, fill=20)
    return page


def _prose(number: int) -> list[PageItem]:
    lines = (
        f"On day {number} the {_WORDS[(number + line) % 7]} of caravan {line} reached the {_WORDS[line % 7]} in time."
        for line in range(45)
    )
    return list(prose(*lines))


def _table(number: int) -> list[PageItem]:
    rows: list[PageItem] = [*prose(f"Table {number}: what the caravan carried.", top=740)]
    for row in range(40):
        y = 700 - 15 * row
        cells = (f"{_WORDS[row % 7]} {row}", f"{number * row % 97}", f"{row * 7 % 50} kg")
        rows += [At(80 + 140 * column, y, cell) for column, cell in enumerate(cells)]
        rows.append(Drawn(72, y - 4, 492, y - 4))
    rows += [Drawn(72 + 140 * column, 711, 72 + 140 * column, 111) for column in range(4)]
    return rows


if __name__ == "__main__":
    main()
