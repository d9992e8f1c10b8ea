"""An output folder of Microsoft GraphRAG becomes an imported graph, with communities, reports and claims."""

import sys
from pathlib import Path
from typing import Any

import pytest

from quipu.errors import InvalidInput, Unavailable
from quipu.ingest.graph_import import read_graph
from quipu.model.extraction import ExtractedEntity
from tests.unit.ingest.graph_import.graphrag_folder import FIRST, SECOND, TEXT, write_folder, write_table


def test_entities_and_relations_belong_to_their_text_units(tmp_path: Path) -> None:
    graph = read_graph([write_folder(tmp_path / "output")])
    document = graph.documents[0]
    assert (document.id, document.title, document.content.decode()) == ("d1", "scripts.txt", TEXT)
    first, second = graph.extractions["d1"].chunks
    assert (first.text, second.text) == (FIRST, SECOND)  # without the title that GraphRAG put before the text
    assert first.entities == (
        ExtractedEntity(name="Alice Kober", type="Person", description="A classicist."),
        ExtractedEntity(name="Linear B", type="Script", description="A script."),
    )
    assert [(r.source, r.weight) for r in first.relations] == [("Alice Kober", 6.0), ("Michael Ventris", 4.0)]


def test_claims_have_their_dates_and_their_quote(tmp_path: Path) -> None:
    graph = read_graph([write_folder(tmp_path)])
    (imported,) = graph.extractions["d1"].chunks[1].claims
    claim = imported.claim
    assert (claim.subject, claim.object, claim.status, claim.dates) == ("Michael Ventris", "", "true", "1952-01-01")
    assert imported.quote == "deciphered Linear B"
    fault = 'a claim about "Some words of a quote" has no description and no type'
    assert graph.omissions == (f"{tmp_path / 'covariates.parquet'}, row 2: {fault}",)


def test_communities_name_their_entities_and_reports_their_communities(tmp_path: Path) -> None:
    graph = read_graph([write_folder(tmp_path)])
    communities = [(c.id, c.level, c.parent, c.entities) for c in graph.communities]
    assert communities[1] == ("1", 1, "0", ("Michael Ventris", "John Chadwick"))
    assert [(r.community, r.rating, len(r.findings)) for r in graph.reports] == [("0", 8.0, 1), ("1", 5.0, 1)]


def test_an_entity_without_a_text_unit_gets_a_document_of_its_own_words(tmp_path: Path) -> None:
    graph = read_graph([write_folder(tmp_path / "output")])
    assert (graph.documents[1].id, graph.documents[1].content) == ("output#Knossos", b"Knossos")
    assert graph.extractions["output#Knossos"].entities[0].name == "Knossos"


def test_the_folder_above_the_output_folder_is_recognised_as_well(tmp_path: Path) -> None:
    write_folder(tmp_path / "project" / "output")
    assert read_graph([tmp_path / "project"]).documents[0].id == "d1"


def test_weights_that_are_too_small_get_the_least_weight_and_are_counted(tmp_path: Path) -> None:
    folder = write_folder(tmp_path)
    pairs = [("LINEAR B", -0.2), ("MICHAEL VENTRIS", 1e-9), ("JOHN CHADWICK", 0.5)]
    row = {"source": "ALICE KOBER", "text_unit_ids": ["u1"]}
    write_table(folder, "relationships", [{**row, "target": target, "weight": weight} for target, weight in pairs])
    graph = read_graph([folder])
    assert [r.weight for r in graph.extractions["d1"].chunks[0].relations] == [0.001, 0.001, 0.5]
    file = folder / "relationships.parquet"
    assert f"{file}: 2 weights below 0.001, the least of Quipu, which they get" in graph.omissions


def test_without_the_documents_table_the_text_units_are_the_text(tmp_path: Path) -> None:
    folder = write_folder(tmp_path)
    (folder / "documents.parquet").unlink()
    assert read_graph([folder]).documents[0].content.decode().endswith(f"\n\n{SECOND}")


@pytest.mark.parametrize(
    ("table", "rows", "message"),
    [
        ("entities", [{"id": "e1", "title": "A"}], r"entities.parquet has no column 'text_unit_ids'"),
        ("entities", [{"id": "e1", "title": None, "text_unit_ids": ["u1"]}], r"row 1: `title` is not a text, or empty"),
        ("entities", [{"id": "e1", "title": "A", "text_unit_ids": 7}], r"row 1: `text_unit_ids` is not a list"),
        ("relationships", [{"source": "A", "target": "B", "weight": "x", "text_unit_ids": []}], r"row 1: `weight`"),
        ("communities", [{"community": 1, "level": -2, "entity_ids": []}], r"row 1: `level`"),
        ("community_reports", [{"community": 9, "title": "T", "summary": "S"}], r"row 1: .*community 9, which is miss"),
    ],
)  # fmt: skip
def test_a_row_that_cannot_be_read_is_named(tmp_path: Path, table: str, rows: list[Any], message: str) -> None:
    folder = write_folder(tmp_path)
    write_table(folder, table, rows)
    with pytest.raises(InvalidInput, match=message):
        read_graph([folder])


def test_a_damaged_table_and_a_missing_one_are_named(tmp_path: Path) -> None:
    folder = write_folder(tmp_path)
    (folder / "covariates.parquet").write_bytes(b"PAR1 but no more")
    with pytest.raises(InvalidInput, match=r"covariates\.parquet is not a Parquet file"):
        read_graph([folder])
    (folder / "relationships.parquet").unlink()
    with pytest.raises(InvalidInput, match=r"relationships\.parquet is missing"):
        read_graph([folder])


def test_a_missing_pyarrow_is_told_with_the_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "entities.parquet").touch()
    (tmp_path / "text_units.parquet").touch()
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(Unavailable, match=r"pip install 'quipu-rag\[parquet\]'"):
        read_graph([tmp_path])
