"""Damaged files of every format are refused with the name of the file, or read; nothing else happens."""

import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

from quipu.errors import InvalidInput
from quipu.ingest.graph_import import read_graph
from quipu.ingest.graph_import.lightrag import CHUNKS_FILE, GRAPH_FILE
from quipu.text.names import MAX_NAME_CHARS
from tests.unit.ingest.graph_import.graphrag_folder import write_folder
from tests.unit.ingest.graph_import.lightrag_directory import write_directory
from tests.unit.ingest.graph_import.test_custom_graph import GRAPH

N_TRIALS = 60
SPICE = (
    b"\0",
    b"\xff",
    b"<",
    b"&",
    b'"',
    b"\\ud800",
    b"null",
    b"NaN",
    b"-1",
    b"1e999",
    b"[[",
    b"{}",
    b"<SEP>",
    b"\xed\xa0\x80",
)


def _graphml(folder: Path) -> Path:
    return (write_directory(folder) / GRAPH_FILE).rename(folder / "g.graphml")


def _csv(folder: Path) -> Path:
    (folder / "g.csv").write_text('Alice Kober,studied,"Linear B"\nMichael Ventris,deciphered,Linear B\n')
    return folder / "g.csv"


def _n_triples(folder: Path) -> Path:
    lines = (
        "<http://x/a> <http://x/b> <http://x/c> .",
        '<http://x/a> <http://x/b> "a \\u0041 b"@en .',
        "_:b <http://x/p> _:c .",
    )
    (folder / "g.nt").write_text("\n".join(lines) + "\n")
    return folder / "g.nt"


def _custom(folder: Path) -> Path:
    (folder / "g.json").write_text(json.dumps(GRAPH))
    return folder / "g.json"


def _lightrag(name: str) -> Callable[[Path], Path]:
    return lambda folder: write_directory(folder) / name


def _graphrag(folder: Path) -> Path:
    return write_folder(folder) / "relationships.parquet"


WRITERS = {
    "graphml": _graphml,
    "csv": _csv,
    "n-triples": _n_triples,
    "custom": _custom,
    "lightrag chunks": _lightrag(CHUNKS_FILE),
    "lightrag cache": _lightrag("kv_store_llm_response_cache.json"),
    "lightrag graph": _lightrag(GRAPH_FILE),
    "graphrag": _graphrag,
}


@pytest.mark.parametrize("kind", WRITERS)
def test_a_damaged_file_is_refused_by_its_name_or_read(tmp_path: Path, kind: str) -> None:
    random = Random(7)
    file = WRITERS[kind](tmp_path)
    source = file if kind in ("graphml", "csv", "n-triples", "custom") else tmp_path
    whole = file.read_bytes()
    assert read_graph([source]).documents
    for _ in range(N_TRIALS):
        file.write_bytes(_damaged(whole, random))
        with suppress(InvalidInput):
            for document in read_graph([source]).documents:
                assert document.content.decode("utf-8")


def _damaged(content: bytes, random: Random) -> bytes:
    """Cut out, repeat or replace a part, or put something else in."""
    start = random.randrange(len(content))
    end = min(len(content), start + random.choice((1, 4, 40, 400)))
    middle = random.choice((b"", content[start:end] * 2, random.choice(SPICE), random.randbytes(end - start)))
    return content[:start] + middle + content[end if random.random() < 0.7 else start :]


def test_names_that_are_too_long_are_left_out_and_listed(tmp_path: Path) -> None:
    long, short = "x" * (MAX_NAME_CHARS + 1), "y" * MAX_NAME_CHARS
    graph = {
        "chunks": [{"content": f"{long} met {short} and Ada.", "source_id": "a"}],
        "entities": [{"entity_name": name, "source_id": "a"} for name in (long, short, "Ada")],
        "relationships": [
            {"src_id": long, "tgt_id": "Ada", "description": "met", "source_id": "a"},
            {"src_id": short, "tgt_id": "Ada", "description": "met", "source_id": "a"},
        ],
    }
    (tmp_path / "g.json").write_text(json.dumps(graph))
    read = read_graph([tmp_path / "g.json"])
    (recording,) = read.extractions.values()
    names = [entity.name for part in recording.parts for entity in part.entities]
    assert sorted(names) == ["Ada", short]
    assert [relation.source for part in recording.parts for relation in part.relations] == [short]
    assert [line for line in read.omissions if "longer than 300" in line] == [
        f"2 records with a name longer than 300 characters, such as {long[:40]!r}…"
    ]
