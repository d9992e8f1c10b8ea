"""Tables: CSV, Parquet and JSON Lines hold the same rows, and no spreadsheet runs a text of them."""

import csv
import io
import json
import sys
from collections import Counter
from collections.abc import Mapping, Sequence

import pyarrow.parquet
import pytest

from quipu.engine import Quipu
from quipu.errors import Unavailable
from tests.unit.engine.graph_export.world import (
    ESCAPES,
    FORMULA,
    LHASA,
    SCRIPT,
    WIKI,
    exported,
    exported_bytes,
    exported_files,
)

_N_ROWS = {
    "entities": 5,
    "relations": 2,
    "documents": 3,
    "chunks": 3,
    "entity_mentions": 6,
    "relation_mentions": 2,
}


def _csv_tables(files: Mapping[str, bytes]) -> dict[str, Sequence[dict[str, str]]]:
    return {
        name.removesuffix(".csv"): list(csv.DictReader(io.StringIO(content.decode(), newline="")))
        for name, content in files.items()
    }


async def test_json_lines_have_a_line_for_each_row_of_each_table(kb: Quipu) -> None:
    rows = [json.loads(line) for line in (await exported(kb, "jsonl")).splitlines()]
    assert Counter(row["table"] for row in rows) == _N_ROWS
    assert {row["label"] for row in rows if row["table"] == "entities"} == {"Ada", SCRIPT, LHASA, WIKI, FORMULA}
    letters = next(row for row in rows if row["table"] == "documents" and row["id"] == "letters<b>.md")
    assert letters["metadata"] == {"year": 1843, "tags": ["x", "y"]}
    mention = next(row for row in rows if row["table"] == "relation_mentions" and row["weight"] == 2.5)
    assert (mention["keywords"], mention["description"]) == ([ESCAPES], ESCAPES)


async def test_csv_is_read_back_with_a_row_for_each_fact(kb: Quipu) -> None:
    tables = _csv_tables(await exported_files(kb, "csv"))
    assert {name: len(rows) for name, rows in tables.items()} == _N_ROWS
    thing = next(row for row in tables["entities"] if row["label"] == WIKI)
    assert thing["description"] == ESCAPES
    chunk = next(row for row in tables["chunks"] if row["document"] == "../evil/../con")
    assert chunk["text"] == f"{WIKI} and {FORMULA} and {ESCAPES}"


async def test_no_cell_of_csv_begins_as_a_formula(kb: Quipu) -> None:
    tables = _csv_tables(await exported_files(kb, "csv"))
    assert f"'{FORMULA}" in [row["label"] for row in tables["entities"]]
    texts = [cell for rows in tables.values() for row in rows for name, cell in row.items() if name not in ("x", "y")]
    assert not [cell for cell in texts if cell.startswith(("=", "+", "-", "@", "\t", "\r"))]


async def test_parquet_is_read_back_with_types(kb: Quipu) -> None:
    files = await exported_files(kb, "parquet")
    tables = {name: pyarrow.parquet.read_table(io.BytesIO(content)).to_pylist() for name, content in files.items()}
    assert {name.removesuffix(".parquet"): len(rows) for name, rows in tables.items()} == _N_ROWS
    ada = next(row for row in tables["entities.parquet"] if row["id"] == "ada")
    assert (ada["aliases"], ada["mentions"]) == (["Countess <u>"], 2)
    assert FORMULA in [row["label"] for row in tables["entities.parquet"]]
    assert json.loads(tables["documents.parquet"][-1]["metadata"]) == {"year": 1843, "tags": ["x", "y"]}


async def test_without_its_library_parquet_names_it(kb: Quipu, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(Unavailable, match=r"quipu-rag\[parquet\]"):
        await exported_bytes(kb, "parquet")


async def test_a_type_leaves_out_documents_that_mention_none_of_it(kb: Quipu) -> None:
    rows = [json.loads(line) for line in (await exported(kb, "jsonl", types=["Place"])).splitlines()]
    assert {row["id"] for row in rows if row["table"] == "documents"} == {"2"}
    assert [row["name"] for row in rows if row["table"] == "entity_mentions"] == [LHASA]
