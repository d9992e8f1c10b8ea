"""The floors: what the local extractor must find of what people and GPT-3.5 found."""

import json
from pathlib import Path
from typing import NamedTuple

import pytest

from quipu.ingest.local.extraction import extract_chunk
from quipu.model.extraction import ChunkInput
from quipu.text.names import entity_key

ROOT = Path(__file__).resolve().parents[4]
LABELS = ROOT / "tests/data/labels"
MUSIQUE = ROOT / "../shared/data/musique_train100"

MIN_RECALL, MIN_PRECISION = 0.70, 0.60
MIN_MUSIQUE_RECALL, MAX_MUSIQUE_ENTITIES = 0.60, 14


class _Row(NamedTuple):
    text: str
    title: str
    wanted: frozenset[str]


def _found(row: _Row) -> frozenset[str]:
    entities = extract_chunk(ChunkInput(text=row.text, title=row.title)).entities
    return frozenset(entity_key(entity.name) for entity in entities)


def _labelled(language: str) -> list[_Row]:
    lines = (LABELS / f"{language}.jsonl").read_text("utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    return [_Row(row["text"], row.get("title", ""), frozenset(map(entity_key, row["entities"]))) for row in rows]


@pytest.mark.parametrize("language", ["en", "ru", "zh"])
@pytest.mark.parametrize("half", [slice(0, 50), slice(50, 100)], ids=["tuned on", "held out"])
def test_labelled_sentences_give_what_a_careful_reader_wants(language: str, half: slice) -> None:
    rows = _labelled(language)[half]
    found = [_found(row) for row in rows]
    n_right = sum(len(names & row.wanted) for names, row in zip(found, rows, strict=True))

    assert len(rows) == 50
    assert n_right / sum(len(row.wanted) for row in rows) >= MIN_RECALL
    assert n_right / sum(len(names) for names in found) >= MIN_PRECISION


@pytest.mark.skipif(not MUSIQUE.is_dir(), reason="needs the musique_train100 data in ../shared/data")
def test_most_entities_gpt_recorded_are_found_with_few_entities_a_chunk() -> None:
    lines = (MUSIQUE / "extraction.jsonl").read_text("utf-8").splitlines()[::4]
    wanted = {row["passage_id"]: frozenset(map(entity_key, row["entities"])) - {""} for row in map(json.loads, lines)}
    passages = map(json.loads, (MUSIQUE / "corpus.jsonl").read_text("utf-8").splitlines())
    rows = [_Row(row["text"], row["title"], wanted[row["id"]]) for row in passages if row["id"] in wanted]
    found = [_found(row) for row in rows]
    n_right = sum(len(names & row.wanted) for names, row in zip(found, rows, strict=True))

    assert len(rows) > 400
    assert n_right / sum(len(row.wanted) for row in rows) >= MIN_MUSIQUE_RECALL
    assert sum(len(names) for names in found) / len(rows) <= MAX_MUSIQUE_ENTITIES
