"""Microsoft GraphRAG: the Parquet tables of an output folder, as an imported graph.

GraphRAG 2 and 3 write one file for each table. An entity or relation names the text units that it was read from; its
description is one text for all of them.
"""

import math
import unicodedata
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from quipu.errors import InvalidInput, Unavailable
from quipu.ingest.graph_import.lines import (
    CommunityLine,
    CovariateLine,
    EntityLine,
    RelationLine,
    ReportLine,
    first_fault,
)
from quipu.model.document import SourceDocument
from quipu.model.extraction import ExtractedEntity, ExtractedRelation
from quipu.model.ids import digest
from quipu.model.imported_graph import ImportedChunk, ImportedClaim, ImportedExtraction, ImportedGraph
from quipu.text.formatting import format_count
from quipu.text.names import entity_key

SUFFIX = ".parquet"
_MIN_WEIGHT = 0.001
_MAX_TABLE_BYTES = 4 << 30  # unpacked; a table is read whole
_MAX_HEADER_LINES = 20  # "title: …" and other columns, which GraphRAG may put before the text of a text unit
_COLUMNS: Mapping[str, tuple[str, ...]] = {  # those with * may be missing
    "documents": ("id", "title*", "text"),
    "text_units": ("id", "text", "document_id*", "document_ids*"),
    "entities": ("id", "title", "type*", "description*", "text_unit_ids"),
    "relationships": ("source", "target", "description*", "weight*", "text_unit_ids"),
    "communities": ("community", "level", "parent*", "entity_ids"),
    "community_reports": ("community", "title", "summary", "findings*", "rank*"),
    "covariates": (
        *("text_unit_id", "subject_id", "object_id*", "type*", "status*", "start_date*", "end_date*", "description*"),
        "source_text*",
    ),
}

Row = Mapping[str, object]
Line = TypeVar("Line", EntityLine, RelationLine, CommunityLine, ReportLine)
PlacedLine = tuple[str, CommunityLine | ReportLine]


def output_folder(folder: Path) -> Path | None:
    """Return the folder with GraphRAG's tables, which is this one or its `output`; None if there is none."""
    candidates = (folder, folder / "output")
    return next((path for path in candidates if _table_file(path, "entities").is_file()), None)


def read_output_folder(folder: Path) -> tuple[ImportedGraph, list[PlacedLine]]:
    """Return documents with entities, relations and claims, and the lines of communities and reports with their place.

    An entity, with its description, and a relation belong to all their text units; the weight of a relation is divided
    among them. What has no text unit is without text. Raises Unavailable without pyarrow, and InvalidInput,
    with file and row, for tables that are missing, damaged or not GraphRAG's.
    """
    tables = _Tables(folder)
    units = _TextUnits.of(tables)
    omissions = [
        *_add_entities(tables, units),
        *_add_relations(tables, units),
        *_add_claims(tables, units),
    ]
    lines = [*_communities(tables, omissions), *_reports(tables)]
    recordings = {name: units.recording(name) for name in units.documents}
    if (folder / "lancedb").exists() or any(folder.glob("embeddings.*")):
        omissions.append(f"{folder}: vectors, which Quipu computes with its own embedder")
    return (
        ImportedGraph(
            identity=f"graphrag/1 {digest('graphrag', *sorted(recordings))[:12]}",
            documents=tuple(units.documents.values()),
            extractions=recordings,
            textless={folder.resolve().name: units.textless},
            omissions=tuple(omissions),
        ),
        lines,
    )


class _Tables:
    """The tables of a folder; rows come with their place."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def rows(self, table: str, *, is_optional: bool = False) -> Iterator[tuple[str, Row]]:
        """Yield the rows of a table with their places. Raises InvalidInput if it cannot be read."""
        file = _table_file(self.folder, table)
        if file.is_file():
            for number, row in enumerate(_parquet_rows(file, _COLUMNS[table]), 1):
                yield f"{file}, row {number}", row
        elif not is_optional:
            raise InvalidInput(f"{file} is missing.", remedy="Give the output folder of GraphRAG, with all its tables.")


@dataclass(slots=True)
class _TextUnits:
    """The text units by document, and what was extracted from each; "" stands for what has no text unit."""

    texts: dict[str, str]
    units_by_document: dict[str, list[str]]
    documents: dict[str, SourceDocument] = field(default_factory=dict)
    entities: dict[str, list[ExtractedEntity]] = field(default_factory=lambda: defaultdict(list))
    relations: dict[str, list[ExtractedRelation]] = field(default_factory=lambda: defaultdict(list))
    claims: dict[str, list[ImportedClaim]] = field(default_factory=lambda: defaultdict(list))

    @classmethod
    def of(cls, tables: _Tables) -> "_TextUnits":
        """Return the text units in the order of their table, with the documents."""
        texts: dict[str, str] = {}
        units_by_document: dict[str, list[str]] = {}
        for where, row in tables.rows("text_units"):
            name, text = _text(where, row, "id"), _normal(_text(where, row, "text"))
            if not text.strip():
                continue
            texts[name] = text.strip()
            documents = row.get("document_ids") or [row.get("document_id")]
            document = str(documents[0] if isinstance(documents, list) and documents[0] else name)
            units_by_document.setdefault(document, []).append(name)
        units = cls(texts, units_by_document)
        rows = {_text(where, row, "id"): (where, row) for where, row in tables.rows("documents", is_optional=True)}
        for document, names in units_by_document.items():
            where, row = rows.get(document, ("", {}))
            text = _normal(_text(where, row, "text")) if row.get("text") else ""
            text = text if text.strip() else "\n\n".join(texts[name] for name in names)
            title = str(row.get("title") or document)
            units.documents[document] = SourceDocument(id=document, title=title, content=text.encode(), source=title)
            for name in names:
                texts[name] = _without_header(texts[name], text)
        return units

    def known(self, where: str, row: Row) -> list[str]:
        """Return the text units of a row that exist, or "" alone."""
        names = row.get("text_unit_ids") or []
        if not isinstance(names, list):
            raise _fault(where, "`text_unit_ids` is not a list")
        return list(dict.fromkeys(str(name) for name in names if str(name) in self.texts)) or [""]

    @property
    def textless(self) -> ImportedChunk:
        """What was extracted from no text unit."""
        return ImportedChunk(text="", entities=tuple(self.entities[""]), relations=tuple(self.relations[""]))

    def recording(self, document: str) -> ImportedExtraction:
        """Return what was extracted from a document."""
        chunks = (
            ImportedChunk(
                text=self.texts[name],
                entities=tuple(self.entities[name]),
                relations=tuple(self.relations[name]),
                claims=tuple(dict.fromkeys(self.claims[name])),
            )
            for name in self.units_by_document[document]
        )
        return ImportedExtraction(document=document, chunks=tuple(chunks))


def _add_entities(tables: _Tables, units: _TextUnits) -> Iterator[str]:
    for where, row in tables.rows("entities"):
        fields = {**_without_nulls(row), "title": _text(where, row, "title").strip()}
        if not entity_key(fields["title"]):
            yield f"{where}: an entity whose name has no letter or digit"
            continue
        entity = _line(EntityLine, where, fields).entity()
        for name in units.known(where, row):
            units.entities[name].append(entity)


def _add_relations(tables: _Tables, units: _TextUnits) -> Iterator[str]:
    """Add the relations. Weights of the fast method may be negative, or too small for Quipu: it counts thousandths."""
    n_raised = 0
    for where, row in tables.rows("relationships"):
        fields = _without_nulls(row)
        weight = fields.get("weight", 1.0)
        is_low = isinstance(weight, int | float) and weight <= 0
        whole = _line(RelationLine, where, {**fields, "weight": _MIN_WEIGHT} if is_low else fields)
        if entity_key(whole.source) == entity_key(whole.target):
            yield f'{where}: "{whole.source}" is related to itself'
            continue
        names = units.known(where, row)
        n_raised += is_low or whole.weight / len(names) < _MIN_WEIGHT
        weight = max(whole.weight / len(names), _MIN_WEIGHT)
        relation = whole.model_copy(update={"weight": weight}).relation()
        for name in names:
            units.relations[name].append(relation)
    if n_raised:
        file = _table_file(tables.folder, "relationships")
        yield f"{file}: {format_count(n_raised, 'weight')} below {_MIN_WEIGHT}, the least of Quipu, which they get"


def _add_claims(tables: _Tables, units: _TextUnits) -> Iterator[str]:
    for where, row in tables.rows("covariates", is_optional=True):
        try:
            claim = CovariateLine.model_validate(
                {name: value.isoformat() if isinstance(value, date) else value for name, value in row.items()}
            )
        except ValidationError as error:
            yield f"{where}: a claim, because {first_fault(error)}"  # a model's reply that GraphRAG did not check
            continue
        if claim.fault:
            yield f"{where}: {claim.fault}"
        elif str(claim.passage) not in units.texts:
            yield f"{where}: a claim of the text unit {claim.passage}, which is missing"
        else:
            units.claims[str(claim.passage)].append(claim.imported())


def _communities(tables: _Tables, omissions: list[str]) -> Iterator[PlacedLine]:
    """Yield communities with the names of their entities; ids of entities that are missing are added to omissions."""
    name_by_id = {str(row["id"]): str(row["title"]) for _, row in tables.rows("entities")}
    for where, row in tables.rows("communities", is_optional=True):
        ids = row.get("entity_ids")
        ids = ids if isinstance(ids, list) else []
        names = [name_by_id[str(id_)] for id_ in ids if str(id_) in name_by_id]
        if len(names) < len(ids):
            omissions.append(f"{where}: {format_count(len(ids) - len(names), 'entity')} that no table has")
        yield where, _line(CommunityLine, where, {**row, "entities": names})


def _reports(tables: _Tables) -> Iterator[PlacedLine]:
    for where, row in tables.rows("community_reports", is_optional=True):
        yield where, _line(ReportLine, where, _without_nulls(row))


def _without_nulls(row: Row) -> dict[str, object]:
    return {
        name: value
        for name, value in row.items()
        if value is not None and not (isinstance(value, float) and math.isnan(value))
    }


def _text(where: str, row: Row, name: str) -> str:
    value = row.get(name)
    if not isinstance(value, str) or not value.strip():
        raise _fault(where, f"`{name}` is not a text, or empty")
    return value


def _line(kind: type[Line], where: str, row: Row) -> Line:
    try:
        return kind.model_validate(row)
    except ValidationError as error:
        raise _fault(where, first_fault(error)) from None


def _fault(where: str, fault: str) -> InvalidInput:
    return InvalidInput(f"{where}: {fault}.", remedy="Write the table again with GraphRAG.")


def _normal(text: str) -> str:
    return unicodedata.normalize("NFC", text.replace("\0", "").replace("\r\n", "\n").replace("\r", "\n"))


def _without_header(text: str, document_text: str) -> str:
    """Return the text of a text unit without the lines that are not in its document; as it is if none is there."""
    rest = text
    for _ in range(_MAX_HEADER_LINES):
        if not rest or rest in document_text:
            return rest or text
        rest = rest.partition("\n")[2].strip()
    return text


def _table_file(folder: Path, table: str) -> Path:
    return folder / f"{table}{SUFFIX}"


def _parquet_rows(file: Path, columns: Sequence[str]) -> list[Row]:
    """Return the rows of a Parquet file with these columns. Raises Unavailable without pyarrow."""
    try:
        from pyarrow import ArrowException, parquet
    except ImportError as error:
        raise Unavailable(
            f"{file} cannot be read: pyarrow is not installed.", remedy="Run pip install 'quipu-rag[parquet]'."
        ) from error
    try:
        with parquet.ParquetFile(file) as opened:
            groups = (opened.metadata.row_group(number) for number in range(opened.metadata.num_row_groups))
            if sum(group.total_byte_size for group in groups) > _MAX_TABLE_BYTES:
                raise InvalidInput(f"{file} holds more than {_MAX_TABLE_BYTES:,} bytes.", remedy="Split the index.")
            existing = set(opened.schema_arrow.names)
            if missing := [name for name in columns if not name.endswith("*") and name not in existing]:
                raise InvalidInput(
                    f"{file} has no column {missing[0]!r}.", remedy="Tables of GraphRAG 2 and 3 can be read."
                )
            column_names = [name.removesuffix("*") for name in columns if name.removesuffix("*") in existing]
            return opened.read(columns=column_names).to_pylist()  # type: ignore[no-any-return]
    except (ArrowException, OSError, ValueError) as error:
        first_line = str(error).partition("\n")[0]
        raise InvalidInput(f"{file} is not a Parquet file ({first_line}).", remedy="Copy it again.") from None
