"""Recorded extraction, in place of a model."""

import json
from pathlib import Path

import pytest

from benchmarks.reference.scores import RECORDED_FILE, read_recorded
from quipu.errors import InvalidInput
from quipu.model.extraction import ChunkInput, Extraction

KOBER = {
    "passage_id": "p1",
    "entities": ["Alice Kober", "Brooklyn College", "Linear B", "Alice Kober"],
    "triples": [["Alice Kober", "taught at", "Brooklyn College"], ["Linear B", "script"], ["Evans", "dug", "Knossos"]],
}


def _write(folder: Path, *records: object) -> None:
    (folder / RECORDED_FILE).write_text("".join(f"{json.dumps(record)}\n" for record in records))


async def _extract(folder: Path, chunk: ChunkInput) -> Extraction:
    extractor = read_recorded(folder)
    assert extractor is not None
    await extractor.check()
    outcomes = [outcome async for outcome in extractor.extract([chunk])]
    assert [outcome.index for outcome in outcomes] == [0]
    assert outcomes[0].extraction is not None
    return outcomes[0].extraction


async def test_a_passage_gets_the_names_and_whole_triples_recorded_of_it(tmp_path: Path) -> None:
    _write(tmp_path, KOBER)
    found = await _extract(tmp_path, ChunkInput(text="In 1930 Alice Kober went to Brooklyn.", documents=("p1",)))
    assert [(entity.name, entity.start, entity.end) for entity in found.entities] == [
        ("Alice Kober", 8, 19),
        ("Brooklyn College", 0, 0),
        ("Linear B", 0, 0),
    ]
    kober, evans = found.relations
    assert (kober.source, kober.keywords, kober.target) == ("Alice Kober", ("taught at",), "Brooklyn College")
    assert kober.description == "Alice Kober taught at Brooklyn College"
    assert evans.description == "Evans dug Knossos"


async def test_a_passage_without_a_record_says_nothing(tmp_path: Path) -> None:
    _write(tmp_path, KOBER)
    assert await _extract(tmp_path, ChunkInput(text="Alice Kober.", documents=("p2",))) == Extraction()


def test_a_set_that_records_nothing_of_passages_has_no_extractor(tmp_path: Path) -> None:
    assert read_recorded(tmp_path) is None
    _write(tmp_path, {"cache_key": "9154", "entities": [{"name": "Scrooge"}]})
    assert read_recorded(tmp_path) is None


def test_a_line_that_is_no_record_is_named(tmp_path: Path) -> None:
    _write(tmp_path, KOBER, {"passage_id": 3})
    with pytest.raises(InvalidInput, match=r"line 2 is not a passage"):
        read_recorded(tmp_path)


def test_what_is_recorded_twice_is_named_as_an_import_names_it(tmp_path: Path) -> None:
    _write(tmp_path, KOBER, KOBER)
    with pytest.raises(InvalidInput, match=r"line 2: 'p1' is recorded a second time"):
        read_recorded(tmp_path)
