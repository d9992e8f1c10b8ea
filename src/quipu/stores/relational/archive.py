"""Archives and copies: all tables of an index as rows, in one file with a digest or in another database of any kind.

An archive:

    QUIPU ARCHIVE 1\\n
    frame … frame      a head, blocks of rows of one table each, an end with the digest (BLAKE2b) of everything before

A frame is the length of its header (4 bytes, little-endian), the length of its body (8 bytes), the header as JSON, and
the body. The body of a block holds its columns one after the other: numbers as 64 bits each, little-endian; texts and
bytes as all their lengths (4 bytes each, in characters or bytes), then all of them joined, texts in UTF-8; before a
column with nulls, a bit for each row. It is deflated where the header says so.
"""

import hashlib
import json
import struct
import uuid
import zlib
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any, BinaryIO

import numpy as np
from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Float,
    Integer,
    LargeBinary,
    Table,
    func,
    insert,
    inspect,
    select,
)
from sqlalchemy.schema import CreateTable

from quipu.errors import Corrupt, InvalidInput
from quipu.ports.archive import ArchivePiece, ArchiveSummary
from quipu.stores.relational import conversations, edits, history, jobs
from quipu.stores.relational import schema as s
from quipu.stores.relational.migrations import migrate
from quipu.stores.relational.sql import Backend, finish_in_thread, read_number, read_numbers, write_meta
from quipu.text.words import Analyzer

# Imported so that their tables are in the metadata.
_ALL_TABLES = (*s.metadata.sorted_tables, *conversations.TABLES, *edits.TABLES, *history.TABLES)
TABLES: Mapping[str, Table] = {table.name: table for table in _ALL_TABLES}

_ROWS_PER_BLOCK = 2_000
_LARGE_ROWS = {"chunk": 500, "content_part": 20, "document": 500, "exchange": 100, "job": 1, "reply": 500}

_MAGIC = b"QUIPU ARCHIVE 1\n"
_LENGTHS = struct.Struct("<IQ")
_MAX_HEADER_BYTES, _MAX_BODY_BYTES = 1 << 20, 1 << 32
_DIGEST_BYTES = 32
_LEVEL = 1  # of deflate: a higher one takes several times as long and saves a tenth
# Packed already, or so large that packing would take half of the time of a backup: texts of chunks, and full text.
_NOT_DEFLATED = frozenset(["vector", "content_part", "reply", "chunk", "posting"])
_REMEDY = "Nothing was changed. Take another copy of the archive."

Row = tuple[Any, ...]  # values as the driver gives them: int, float, str, bytes or None
OnRows = Callable[[int, int], None]  # gets how many rows were read, and of how many


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRows:
    """Some rows of a table.

    `kinds` has a letter for each column: i for integers, f for floats, s for texts, b for bytes.
    """

    table: str
    columns: Sequence[str]
    kinds: str
    rows: Sequence[Row]


@dataclass(frozen=True, slots=True)
class RelationalArchive:
    """An ArchiveStore on any database with a Backend."""

    backend: Backend

    async def archive(self, created_at: str) -> AsyncGenerator[ArchivePiece, None]:
        """Yield the archive of one snapshot in pieces."""
        context: AbstractContextManager[Connection] = self.backend.reading()
        connection = await finish_in_thread(context.__enter__)
        try:
            pieces = _pieces(connection, created_at)
            while (piece := await finish_in_thread(lambda: next(pieces, None))) is not None:
                yield piece
        finally:
            await finish_in_thread(lambda: context.__exit__(None, None, None))


def _pieces(connection: Connection, created_at: str) -> Iterator[ArchivePiece]:
    counts = count_rows(connection)
    schema, revision = read_numbers(connection, "schema", "revision")
    summary = ArchiveSummary(
        schema=schema,
        revision=revision,
        created_at=created_at,
        n_documents=counts.get("document", 0),
        n_chunks=counts.get("chunk", 0),
        n_rows=sum(counts.values()),
    )
    digest, n_done = hashlib.blake2b(digest_size=_DIGEST_BYTES), 0
    head = {"schema": schema, "revision": revision, "created_at": created_at, "rows": counts}
    first = _MAGIC + _frame(head, b"")
    digest.update(first)
    yield ArchivePiece(content=first, n_done=0, summary=summary)
    for block in read_blocks(connection):
        content = _frame(*_packed(block))
        digest.update(content)
        n_done += len(block.rows)
        yield ArchivePiece(content=content, n_done=n_done, summary=summary)
    end = _frame({"end": digest.hexdigest()}, b"")
    yield ArchivePiece(content=end, n_done=n_done, summary=summary)


def _frame(header: Mapping[str, object], body: bytes) -> bytes:
    text = json.dumps(header, separators=(",", ":")).encode()
    return _LENGTHS.pack(len(text), len(body)) + text + body


def _packed(block: TableRows) -> tuple[Mapping[str, object], bytes]:
    """Return the header and the body of a block."""
    columns = list(zip(*block.rows, strict=True))
    parts = [_packed_column(kind, values) for kind, values in zip(block.kinds, columns, strict=True)]
    body = b"".join(part for _, part in parts)
    is_deflated = block.table not in _NOT_DEFLATED
    header = {
        "table": block.table,
        "columns": list(block.columns),
        "kinds": block.kinds,
        "rows": len(block.rows),
        "nulls": [int(has_nulls) for has_nulls, _ in parts],
        "sizes": [len(part) for _, part in parts],
        "deflated": int(is_deflated),
    }
    return header, zlib.compress(body, _LEVEL) if is_deflated else body


def _packed_column(kind: str, values: Sequence[Any]) -> tuple[bool, bytes]:
    """Return whether a column has nulls, and its bytes."""
    nulls, has_nulls = b"", None in values
    if has_nulls:
        nulls = np.packbits(np.array([value is None for value in values])).tobytes()
        values = [_ZERO[kind] if value is None else value for value in values]
    if kind in _NUMBERS:
        return has_nulls, nulls + np.array(values, dtype=_NUMBERS[kind]).tobytes()
    joined = "".join(values).encode() if kind == "s" else b"".join(values)
    return has_nulls, nulls + np.fromiter(map(len, values), dtype="<u4", count=len(values)).tobytes() + joined


_NUMBERS = {"i": "<i8", "f": "<f8"}
_ZERO: Mapping[str, Any] = {"i": 0, "f": 0.0, "s": "", "b": b""}


def _unpacked(header: Mapping[str, Any], body: bytes) -> TableRows:
    """Return the block of a frame. Raises ValueError, KeyError or TypeError where they do not fit together."""
    n_rows, sizes, kinds = int(header["rows"]), [int(size) for size in header["sizes"]], str(header["kinds"])
    if header["deflated"]:
        inflater = zlib.decompressobj()
        body = inflater.decompress(body, min(sum(sizes), _MAX_BODY_BYTES) + 1)
    ends = list(accumulate(sizes, initial=0))
    if ends[-1] != len(body):
        raise ValueError("the body has another length than its columns")
    parts = [body[start:end] for start, end in pairwise(ends)]
    columns = [
        _unpacked_column(kind, part, n_rows, has_nulls=bool(nulls))
        for kind, part, nulls in zip(kinds, parts, header["nulls"], strict=True)
    ]
    rows: list[Row] = list(zip(*columns, strict=True))
    names = [str(name) for name in header["columns"]]
    if len(names) != len(columns) or len(rows) != n_rows:
        raise ValueError("a column is missing")
    return TableRows(table=str(header["table"]), columns=names, kinds=kinds, rows=rows)


def _unpacked_column(kind: str, content: bytes, n_rows: int, *, has_nulls: bool) -> Sequence[Any]:
    n_bits = -(-n_rows // 8) if has_nulls else 0
    nulls, content = content[:n_bits], content[n_bits:]
    values: list[Any]
    if kind in _NUMBERS:
        values = np.frombuffer(content, dtype=_NUMBERS[kind]).tolist()
    else:
        lengths, joined = np.frombuffer(content[: 4 * n_rows], dtype="<u4"), content[4 * n_rows :]
        whole = joined.decode() if kind == "s" else joined
        ends = [0, *np.cumsum(lengths, dtype=np.int64).tolist()]
        if ends[-1] != len(whole):
            raise ValueError("the texts have another length than their sum")
        values = [whole[start:end] for start, end in pairwise(ends)]
    if has_nulls:
        is_null = np.unpackbits(np.frombuffer(nulls, dtype=np.uint8), count=n_rows).tolist()
        values = [None if null else value for value, null in zip(values, is_null, strict=True)]
    return values


class ArchiveReader:
    """Reads an archive from a file, once. `summary` is known from the beginning; `frames` ends when all is checked."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._digest = hashlib.blake2b(digest_size=_DIGEST_BYTES)
        if file.read(len(_MAGIC)) != _MAGIC:
            raise Corrupt("This is not an archive of Quipu.", remedy="`quipu backup FILE` makes one.")
        self._digest.update(_MAGIC)
        head, _ = self._read_frame()
        try:
            self._counts = {str(name): int(n) for name, n in head["rows"].items()}
            self.summary = ArchiveSummary(
                schema=int(head["schema"]),
                revision=int(head["revision"]),
                created_at=str(head["created_at"]),
                n_documents=self._counts.get("document", 0),
                n_chunks=self._counts.get("chunk", 0),
                n_rows=sum(self._counts.values()),
            )
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise _damaged("its head cannot be read") from error

    def check(self, on_rows: OnRows) -> None:
        """Read everything. Raises Corrupt for an archive that was truncated or altered."""
        for _ in self._frames(on_rows):
            pass

    def blocks(self, on_rows: OnRows) -> Iterator[TableRows]:
        """Yield all blocks. Raises Corrupt, at the latest at the end, for an archive that was truncated or altered."""
        for header, body in self._frames(on_rows):
            try:
                yield _unpacked(header, body)
            except (KeyError, TypeError, ValueError, zlib.error) as error:
                raise _damaged("a block of rows cannot be read") from error

    def _frames(self, on_rows: OnRows) -> Iterator[tuple[Mapping[str, Any], bytes]]:
        n_by_table: dict[str, int] = {}
        while True:
            expected = self._digest.hexdigest()
            header, body = self._read_frame()
            if "end" in header:
                break
            table, n_rows = header.get("table"), header.get("rows")
            if not isinstance(table, str) or not isinstance(n_rows, int):
                raise _damaged("a frame is neither rows nor the end")
            n_by_table[table] = n_by_table.get(table, 0) + n_rows
            yield header, body
            on_rows(sum(n_by_table.values()), self.summary.n_rows)
        if header["end"] != expected or body or self._file.read(1):
            raise _damaged("its digest is wrong")
        if n_by_table != self._counts:
            raise _damaged("it has other rows than it says")

    def _read_frame(self) -> tuple[Mapping[str, Any], bytes]:
        lengths = self._read(_LENGTHS.size)
        n_header, n_body = _LENGTHS.unpack(lengths)
        if n_header > _MAX_HEADER_BYTES or n_body > _MAX_BODY_BYTES:
            raise _damaged("a frame is too long")
        header, body = self._read(n_header), self._read(n_body)
        for part in (lengths, header, body):
            self._digest.update(part)
        try:
            values = json.loads(header)
        except ValueError as error:
            raise _damaged("a header is no JSON") from error
        if not isinstance(values, dict):
            raise _damaged("a header is no JSON object")
        return values, body

    def _read(self, n_bytes: int) -> bytes:
        content = self._file.read(n_bytes)
        if len(content) != n_bytes:
            raise _damaged("it ends too early")
        return content


def _damaged(reason: str) -> Corrupt:
    return Corrupt(f"The archive was truncated or altered: {reason}.", remedy=_REMEDY)


def load_archive(reader: ArchiveReader, backend: Backend, analyzer: Analyzer, on_rows: OnRows) -> None:
    """Fill an empty database from an archive, in one transaction. Raises Corrupt, and then it stays empty.

    The index gets an identity of its own: what a service keeps for the index of the archive is not for this one.
    """
    with backend.writing() as connection:
        loader = TableLoader(connection, backend)
        for block in reader.blocks(on_rows):
            loader.insert(block)
        loader.finish(analyzer)
        write_meta(connection, "identity", uuid.uuid4().hex)


def count_rows(connection: Connection) -> dict[str, int]:
    """Return the number of rows of each table that is not empty."""
    counts = {table.name: connection.scalar(select(func.count()).select_from(table)) or 0 for table in TABLES.values()}
    return {name: n for name, n in counts.items() if n}


def read_blocks(connection: Connection) -> Iterator[TableRows]:
    """Yield the rows of all tables, of one after the other."""
    for table in TABLES.values():
        yield from _blocks_of(connection, table)


def _blocks_of(connection: Connection, table: Table) -> Iterator[TableRows]:
    columns, kinds = table.columns.keys(), "".join(_kind(column) for column in table.columns)
    n_rows = _LARGE_ROWS.get(table.name, _ROWS_PER_BLOCK)
    result = connection.execute(select(table))
    try:
        while rows := result.cursor.fetchmany(n_rows):
            yield TableRows(table=table.name, columns=columns, kinds=kinds, rows=rows)
    finally:
        result.close()


def _kind(column: Column[Any]) -> str:
    if isinstance(column.type, LargeBinary):
        return "b"
    if isinstance(column.type, Float):
        return "f"
    return "i" if isinstance(column.type, (Integer, BigInteger)) else "s"


class TableLoader:
    """Fills an empty database with the rows of an index; `finish` makes it an index of the present schema.

    All of it runs in one transaction of the caller.
    """

    def __init__(self, connection: Connection, backend: Backend) -> None:
        self._connection = connection
        self._backend = backend
        for table in TABLES.values():
            connection.execute(CreateTable(table))

    def insert(self, block: TableRows) -> None:
        """Insert rows. Raises Corrupt for an unknown table or column."""
        table = TABLES.get(block.table)
        if table is None or not set(block.columns) <= set(table.columns.keys()):
            raise Corrupt(
                f"The archive has a table {block.table!r} that this version of Quipu does not know.",
                remedy="Restore it with the version that made it, or a later one.",
            )
        statement = insert(table).compile(dialect=self._connection.dialect, column_keys=list(block.columns))
        self._connection.exec_driver_sql(str(statement), self._in_order(statement, block))

    @staticmethod
    def _in_order(statement: Any, block: TableRows) -> Sequence[Any]:
        """Return the rows as the statement takes them; its columns are in the order of the table."""
        names = statement.positiontup
        if names is None:
            return [dict(zip(block.columns, row, strict=True)) for row in block.rows]
        if list(names) == list(block.columns):
            return block.rows
        places = [block.columns.index(name) for name in names]
        return [tuple(row[place] for place in places) for row in block.rows]

    def finish(self, analyzer: Analyzer) -> None:
        """Make indexes, free what workers of the earlier index held, and migrate.

        Raises Mismatch for the index of a newer version of Quipu.
        """
        for table in TABLES.values():
            for index in table.indexes:
                index.create(self._connection)
        jobs.release_all(self._connection)
        migrate(self._connection, analyzer, read_number(self._connection, "schema"))


def check_empty(connection: Connection) -> None:
    """Raise InvalidInput if there is an index, or anything else, in the database."""
    if inspect(connection).get_table_names():
        raise InvalidInput("There is something in the place to copy to.", remedy="Name a folder or workspace without.")


def copy_rows(source: Connection, target: Connection) -> int:
    """Copy every row from a snapshot into the empty tables of `target`; return how many rows.

    The index there gets an identity of its own. Jobs are copied with their leases, which end by the target's clock.
    """
    n_rows = 0
    for table in s.metadata.sorted_tables:
        query = select(table)
        if table is s.meta:
            query = query.where(table.c.key != "identity")
            target.execute(table.delete().where(table.c.key != "identity"))
        n_at_once = _LARGE_ROWS.get(table.name, _ROWS_PER_BLOCK)
        result = source.execute(query, execution_options={"yield_per": n_at_once})
        for rows in result.mappings().partitions(n_at_once):
            target.execute(insert(table), [dict(row) for row in rows])
            n_rows += len(rows)
    return n_rows
