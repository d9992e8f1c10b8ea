"""Tests of long tables from file to answer: each row is found with its header, and all rows are computed over."""

from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path

import docx
import openpyxl
import pytest

from quipu import sync
from tests.unit.parse.files import cells, pdf

HEADER = ("Parcel", "Destination", "Weight (kg)")
CITIES = ("Almaty", "Bukhara", "Kashgar", "Merv", "Samarkand")
ROWS = [(f"Parcel {n}", CITIES[n % len(CITIES)], str(n * 7 % 100 + 1)) for n in range(1, 401)]
TABLE = [HEADER, *ROWS]


def _csv() -> bytes:
    return "\n".join(map(",".join, TABLE)).encode()


def _markdown() -> bytes:
    lines = [f"| {' | '.join(row)} |" for row in TABLE]
    return "\n".join(["# Parcels", "", lines[0], "|---|---|---:|", *lines[1:]]).encode()


def _html() -> bytes:
    names = "".join(f"<th>{name}</th>" for name in HEADER)
    rows = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in ROWS)
    return f"<h1>Parcels</h1><table><thead><tr>{names}</tr></thead><tbody>{rows}</tbody></table>".encode()


def _xlsx() -> bytes:
    book, content = openpyxl.Workbook(), BytesIO()
    sheet = book.active
    for *names, weight in TABLE:
        sheet.append([*names, int(weight) if weight.isdigit() else weight])
    book.save(content)
    return content.getvalue()


def _docx() -> bytes:
    document, content = docx.Document(), BytesIO()
    table = document.add_table(rows=0, cols=len(HEADER))
    for row in TABLE:
        for cell, text in zip(table.add_row().cells, row, strict=True):
            cell.text = text
    document.save(content)
    return content.getvalue()


def _pdf() -> bytes:
    pages = [ROWS[first : first + 40] for first in range(0, len(ROWS), 40)]
    return pdf([cells(HEADER, *rows, lefts=(72, 250, 400)) for rows in pages])


FILES: dict[str, Callable[[], bytes]] = {
    "parcels.csv": _csv,
    "parcels.md": _markdown,
    "parcels.html": _html,
    "parcels.xlsx": _xlsx,
    "parcels.docx": _docx,
    "parcels.pdf": _pdf,
}


@pytest.fixture(scope="module", params=FILES)
def index(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[sync.BlockingQuipu]:
    folder: Path = tmp_path_factory.mktemp("tables")
    (folder / request.param).write_bytes(FILES[request.param]())
    with sync.open(folder / "index") as kb:
        kb.add(folder / request.param)
        yield kb


@pytest.mark.parametrize("number", [1, 137, 262, 400])
def test_a_row_in_any_chunk_is_found_with_its_header(index: sync.BlockingQuipu, number: int) -> None:
    _, city, weight = ROWS[number - 1]
    answer = index.query(f"What is the weight of parcel {number}?")
    assert answer.text.startswith(f"Weight (kg) (Parcel = Parcel {number}): {weight}\n")
    quote = [line.strip("| ") for line in answer.text.partition("[1]")[0].splitlines() if "|" in line]
    assert quote[0].split(" | ") == list(HEADER)
    assert quote[-1].split(" | ") == [f"Parcel {number}", city, weight]
    row = answer.citations[1]
    assert index.text(row.document_id)[row.start : row.end] == row.quote


def test_all_rows_of_a_table_in_several_chunks_are_summed(index: sync.BlockingQuipu) -> None:
    total = sum(int(weight) for _, city, weight in ROWS if city == "Merv")
    answer = index.query("What is the total weight of the parcels with destination Merv?")
    assert answer.text.startswith(f"Sum of Weight (kg) (Destination = Merv): {total}")
