"""Tables: entities, relations, documents, chunks and mentions as CSV or Parquet, or all of them as JSON Lines."""

import csv
import io
import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from typing import Any

from quipu.engine.graph_export.part import ExportedDocument, FilePiece, GraphPart, Row
from quipu.errors import Unavailable

# The columns of each table, and what each holds.
_TABLES: Mapping[str, Mapping[str, str]] = {
    "entities": {
        "id": "string",
        "label": "string",
        "type": "string",
        "description": "string",
        "aliases": "list",
        "mentions": "int",
        "community": "string",
        "x": "double",
        "y": "double",
    },
    "relations": {
        "source": "string",
        "target": "string",
        "weight": "double",
        "description": "string",
        "keywords": "list",
        "mentions": "int",
    },
    "documents": {"id": "string", "title": "string", "source": "string", "metadata": "json"},
    "chunks": {
        "id": "string",
        "document": "string",
        "ordinal": "int",
        "start": "int",
        "end": "int",
        "headings": "list",
        "text": "string",
    },
    "entity_mentions": {
        "chunk": "string",
        "entity": "string",
        "name": "string",
        "type": "string",
        "description": "string",
    },
    "relation_mentions": {
        "chunk": "string",
        "source": "string",
        "target": "string",
        "keywords": "list",
        "description": "string",
        "weight": "double",
    },
}
_OF_DOCUMENTS = ("documents", "chunks", "entity_mentions", "relation_mentions")
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
_ROWS_PER_GROUP = 2_000  # of a Parquet file


async def write_jsonl(part: GraphPart) -> AsyncIterator[str]:
    """Yield JSON Lines: an object for each row of each table, whose `table` says which one it is of."""
    for table in ("entities", "relations"):
        async with aclosing(_rows(part, (table,))) as blocks:
            async for name, rows in blocks:
                yield _json_lines(name, rows)
    async with aclosing(_rows(part, _OF_DOCUMENTS)) as blocks:
        async for name, rows in blocks:
            yield _json_lines(name, rows)


def _json_lines(table: str, rows: Sequence[Row]) -> str:
    return "".join(json.dumps({"table": table, **row}, ensure_ascii=False) + "\n" for row in rows)


async def write_csv(part: GraphPart) -> AsyncIterator[FilePiece]:
    """Yield a CSV file for each table (RFC 4180, UTF-8). Lists are texts with semicolons, metadata is JSON.

    A text that a spreadsheet would run as a formula gets an apostrophe before it (OWASP, CSV Injection).
    """
    for table, columns in _TABLES.items():
        yield FilePiece(file=f"{table}.csv", text=_csv_lines([list(columns)]))
        async with aclosing(_rows(part, (table,))) as blocks:
            async for _, rows in blocks:
                cells = ([_cell(row[name]) for name in columns] for row in rows)
                yield FilePiece(file=f"{table}.csv", text=_csv_lines(list(cells)))


def _csv_lines(rows: Sequence[Sequence[str]]) -> str:
    target = io.StringIO(newline="")
    csv.writer(target).writerows(rows)
    return target.getvalue()


def _cell(value: object) -> str:
    if isinstance(value, (int, float)):
        return str(value)
    text = "; ".join(value) if isinstance(value, list) else value if isinstance(value, str) else _metadata_json(value)
    return f"'{text}" if text.startswith(_FORMULA_STARTS) else text


def _metadata_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


async def write_parquet(part: GraphPart) -> AsyncIterator[FilePiece]:
    """Yield a Parquet file for each table. Lists are lists, metadata is JSON. Raises Unavailable without pyarrow."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise Unavailable(
            "Parquet cannot be written: pyarrow is not installed.", remedy="Run pip install 'quipu-rag[parquet]'."
        ) from error
    types = {
        "string": pyarrow.string(),
        "json": pyarrow.string(),
        "int": pyarrow.int64(),
        "double": pyarrow.float64(),
        "list": pyarrow.list_(pyarrow.string()),
    }
    for table, columns in _TABLES.items():
        sink, file = PieceBuffer(), f"{table}.parquet"
        schema = pyarrow.schema([(name, types[kind]) for name, kind in columns.items()])
        with parquet.ParquetWriter(sink, schema) as writer:
            async with aclosing(_row_groups(part, table)) as groups:
                async for rows in groups:
                    values = {name: [_parquet_value(row[name]) for row in rows] for name in columns}
                    writer.write_table(pyarrow.table(values, schema=schema))
                    yield FilePiece(file=file, text=sink.take())
        yield FilePiece(file=file, text=sink.take())


def _parquet_value(value: object) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()  # a lone surrogate is no UTF-8
    return _metadata_json(value) if isinstance(value, dict) else value


class PieceBuffer(io.RawIOBase):
    """A file that only grows; what was written since the last time can be taken."""

    def __init__(self) -> None:
        super().__init__()
        self._pieces: list[bytes] = []
        self._n_bytes = 0

    def writable(self) -> bool:
        """Return True."""
        return True

    def write(self, piece: Any) -> int:
        """Keep a piece until it is taken."""
        content = bytes(piece)
        self._pieces.append(content)
        self._n_bytes += len(content)
        return len(content)

    def tell(self) -> int:
        """Return how many bytes were written."""
        return self._n_bytes

    def take(self) -> bytes:
        """Return what was written since the last call."""
        content = b"".join(self._pieces)
        self._pieces.clear()
        return content


async def _row_groups(part: GraphPart, table: str) -> AsyncGenerator[list[Row], None]:
    waiting: list[Row] = []
    async with aclosing(_rows(part, (table,))) as blocks:
        async for _, rows in blocks:
            waiting += rows
            if len(waiting) >= _ROWS_PER_GROUP:
                yield waiting
                waiting = []
    if waiting:
        yield waiting


async def _rows(part: GraphPart, tables: Sequence[str]) -> AsyncGenerator[tuple[str, Sequence[Row]], None]:
    """Yield blocks of rows: of the entities, of the relations, or of several tables that are read by document."""
    if tables == ("entities",):
        async with aclosing(part.read_entities()) as blocks:
            async for entities in blocks:
                yield "entities", [row for row, _ in entities]
    elif tables == ("relations",):
        async with aclosing(part.read_relations()) as relation_blocks:
            async for relations in relation_blocks:
                yield "relations", [row for row, _ in relations]
    else:
        reading = part.read_documents(
            with_entities="entity_mentions" in tables, with_relations="relation_mentions" in tables
        )
        async with aclosing(reading) as documents:
            async for document in documents:
                for table in tables:
                    yield table, _document_rows(document, table)


def _document_rows(part: ExportedDocument, table: str) -> Sequence[Row]:
    if table == "documents":
        return [part.row]
    if table == "chunks":
        return [
            {
                "id": chunk.id,
                "document": chunk.document_id,
                "ordinal": chunk.ordinal,
                "start": chunk.start,
                "end": chunk.end,
                "headings": list(chunk.headings),
                "text": chunk.text,
            }
            for chunk in part.chunks
        ]
    if table == "entity_mentions":
        return [
            {"chunk": chunk.id, "entity": m.key, "name": m.surface, "type": m.type, "description": m.description}
            for chunk in part.chunks
            for m in part.entities.get(chunk.id, ())
        ]
    return [
        {
            "chunk": chunk.id,
            "source": m.source,
            "target": m.target,
            "keywords": list(m.keywords),
            "description": m.description,
            "weight": m.weight,
        }
        for chunk in part.chunks
        for m in part.relations.get(chunk.id, ())
    ]
