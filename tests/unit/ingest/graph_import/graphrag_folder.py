"""An output folder in the schema that Microsoft GraphRAG 3 publishes for its Parquet tables."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

TEXT = "Alice Kober studied Linear B.\n\nMichael Ventris deciphered Linear B. John Chadwick helped Ventris."
FIRST, SECOND = TEXT.split("\n\n")


def write_folder(folder: Path) -> Path:
    """Write a document of two text units with everything that GraphRAG extracts; return the folder."""
    units = ["u1", "u2"]
    write_table(folder, "documents", [
        {"id": "d1", "human_readable_id": 0, "title": "scripts.txt", "text": TEXT, "text_unit_ids": units,
         "creation_date": "2026-01-13", "raw_data": None},
    ])  # fmt: skip
    write_table(folder, "text_units", [
        {"id": "u1", "human_readable_id": 0, "text": f"title: s.txt.\n{FIRST}", "n_tokens": 9, "document_id": "d1"},
        {"id": "u2", "human_readable_id": 1, "text": SECOND, "n_tokens": 12, "document_id": "d1"},
    ])  # fmt: skip
    write_table(folder, "entities", [
        _entity("e1", "ALICE KOBER", "PERSON", "A classicist.", units[:1]),
        _entity("e2", "LINEAR B", "SCRIPT", "A script.", units),
        _entity("e3", "MICHAEL VENTRIS", "PERSON", "An architect.", units[1:]),
        _entity("e4", "JOHN CHADWICK", "PERSON", "A philologist.", units[1:]),
        _entity("e5", "KNOSSOS", "", None, []),
    ])  # fmt: skip
    write_table(folder, "relationships", [
        _relation("ALICE KOBER", "LINEAR B", "Kober studied it.", 6.0, units[:1]),
        _relation("MICHAEL VENTRIS", "LINEAR B", "Ventris deciphered it.", 8.0, units),
        _relation("JOHN CHADWICK", "MICHAEL VENTRIS", "Chadwick helped him.", 4.0, units[1:]),
    ])  # fmt: skip
    write_table(folder, "communities", [
        _community(0, 0, -1, ["e1", "e2", "e3", "e4"]),
        _community(1, 1, 0, ["e3", "e4"]),
    ])  # fmt: skip
    write_table(folder, "community_reports", [_report(0, "Linear B", 8.0), _report(1, "Ventris and Chadwick", 5.0)])
    write_table(folder, "covariates", [
        _claim("c1", "MICHAEL VENTRIS", "He deciphered Linear B in 1952.", "TRUE", "u2"),
        _claim("c2", "Some words of a quote", None, None, "u2"),
    ])  # fmt: skip
    return folder


def write_table(folder: Path, name: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write a table; skip the test where pyarrow is missing."""
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed (quipu-rag[parquet])")
    parquet = pytest.importorskip("pyarrow.parquet")
    folder.mkdir(parents=True, exist_ok=True)
    parquet.write_table(pyarrow.Table.from_pylist(list(rows)), folder / f"{name}.parquet")


def _entity(id_: str, title: str, type_: str, description: str | None, units: Sequence[str]) -> dict[str, Any]:
    counts = {"human_readable_id": int(id_[1:]), "frequency": len(units), "degree": 1}
    return {"id": id_, "title": title, "type": type_, "description": description, "text_unit_ids": units, **counts}


def _relation(source: str, target: str, description: str, weight: float, units: Sequence[str]) -> dict[str, Any]:
    ids = {"id": f"{source}-{target}", "human_readable_id": 0, "combined_degree": 3}
    return {**ids, "source": source, "target": target, "description": description, "weight": weight,
            "text_unit_ids": units}  # fmt: skip


def _community(number: int, level: int, parent: int, entities: Sequence[str]) -> dict[str, Any]:
    return {
        **{"id": f"k{number}", "human_readable_id": number, "community": number, "level": level, "parent": parent},
        **{"children": [1] if number == 0 else [], "title": f"Community {number}", "entity_ids": entities},
        **{"relationship_ids": [], "text_unit_ids": ["u1"], "period": "2026-01-13", "size": len(entities)},
    }


def _report(community: int, title: str, rank: float) -> dict[str, Any]:
    findings = [{"summary": "The decipherment", "explanation": "Ventris deciphered it [Data: Entities (3)]."}]
    return {
        **{"id": f"r{community}", "human_readable_id": community, "community": community, "level": community},
        **{"parent": community - 1, "children": [], "title": title, "summary": f"About {title}.", "rank": rank},
        **{"full_content": f"# {title}", "rating_explanation": "Important.", "findings": findings},
        **{"full_content_json": "{}", "period": "2026-01-13", "size": 2},
    }


def _claim(id_: str, subject: str, description: str | None, status: str | None, unit: str) -> dict[str, Any]:
    return {
        **{"id": id_, "human_readable_id": 1, "covariate_type": "claim", "type": "WORK" if description else None},
        **{"description": description, "subject_id": subject, "object_id": "NONE", "status": status},
        **{"start_date": "1952-01-01T00:00:00" if description else None, "end_date": None},
        **{"source_text": "deciphered Linear B" if description else None, "text_unit_id": unit},
    }


def write_recorded(folder: Path, run: Path) -> Path:
    """Write the records of a run of GraphRAG, kept as JSON Lines, in the schema of its tables; return the folder.

    Each record of an entity or relation repeats the description and the weight that it has in all text units together.
    """
    corpus, extractions, communities, reports = (
        [json.loads(line) for line in (run / f"{name}.jsonl").read_text("utf-8").splitlines()]
        for name in ("corpus", "extraction", "communities", "community_reports")
    )
    units = [row["id"] for row in corpus]
    text = "\n\n".join(row["text"] for row in corpus)
    write_table(folder, "documents", [{"id": "d1", "title": "dulce.txt", "text": text, "text_unit_ids": units}])
    write_table(folder, "text_units", [{"id": r["id"], "text": r["text"], "document_id": "d1"} for r in corpus])
    entities: dict[str, dict[str, Any]] = {}
    relations: dict[tuple[str, str], dict[str, Any]] = {}
    for record in extractions:
        for entity in record["entities"]:
            row = _entity(f"e{len(entities)}", entity["name"], entity["type"], entity["description"], [])
            entities.setdefault(entity["name"], row)["text_unit_ids"].append(record["passage_id"])
        for one in record["relations"]:
            row = _relation(one["source"], one["target"], one["description"], 0.0, [])
            row = relations.setdefault((one["source"], one["target"]), row)
            row["text_unit_ids"].append(record["passage_id"])
            row["weight"] = one["weight"]
    write_table(folder, "entities", list(entities.values()))
    write_table(folder, "relationships", list(relations.values()))
    ids = {name: row["id"] for name, row in entities.items()}
    rows = [_community(c["community"], c["level"], c["parent"], [ids[n] for n in c["entities"]]) for c in communities]
    write_table(folder, "communities", rows)
    write_table(folder, "community_reports", [{**row, "human_readable_id": row["community"]} for row in reports])
    return folder
